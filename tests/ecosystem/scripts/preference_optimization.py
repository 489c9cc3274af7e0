"""Direct preference optimisation of a small causal model against a frozen copy of itself."""
import copy

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModelForCausalLM, LlamaConfig


class Preferences(Dataset):
    def __init__(self, n, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.rows = []
        for _ in range(n):
            prompt = torch.randint(3, 40, (4,), generator=g)
            chosen = torch.randint(3, 20, (int(torch.randint(3, 7, (1,), generator=g)),), generator=g)
            rejected = torch.randint(20, 40, (int(torch.randint(3, 7, (1,), generator=g)),), generator=g)
            self.rows.append((prompt, chosen, rejected))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        prompt, chosen, rejected = self.rows[i]
        item = {}
        for name, answer in (("chosen", chosen), ("rejected", rejected)):
            item[f"{name}_input_ids"] = torch.cat([prompt, answer])
            item[f"{name}_labels"] = torch.cat([torch.full_like(prompt, -100), answer])
        return item


def collate(rows):
    batch = {}
    for key in rows[0]:
        value = -100 if key.endswith("labels") else 0
        batch[key] = pad_sequence([r[key] for r in rows], batch_first=True, padding_value=value)
    for name in ("chosen", "rejected"):
        batch[f"{name}_attention_mask"] = (batch[f"{name}_input_ids"] != 0).long()
    return batch


def sequence_logps(model, ids, mask, labels):
    logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1]
    labels = labels[:, 1:].clone()
    keep = labels != -100
    labels[~keep] = 0
    logps = torch.gather(logits.log_softmax(-1), dim=2, index=labels.unsqueeze(2)).squeeze(2)
    return (logps * keep).sum(-1)


def dpo_loss(policy_chosen, policy_rejected, ref_chosen, ref_rejected, beta):
    logits = (policy_chosen - policy_rejected) - (ref_chosen - ref_rejected)
    losses = -F.logsigmoid(beta * logits)
    chosen_rewards = beta * (policy_chosen - ref_chosen).detach()
    rejected_rewards = beta * (policy_rejected - ref_rejected).detach()
    return losses.mean(), chosen_rewards, rejected_rewards


def logps_of(model, batch):
    return [sequence_logps(model, batch[f"{n}_input_ids"], batch[f"{n}_attention_mask"], batch[f"{n}_labels"]) for n in ("chosen", "rejected")]


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = LlamaConfig(vocab_size=40, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
                         max_position_embeddings=16)
    policy = AutoModelForCausalLM.from_config(config).to(device)
    reference = copy.deepcopy(policy).eval()
    reference.requires_grad_(False)
    loader = DataLoader(Preferences(64), batch_size=8, shuffle=True, collate_fn=collate)
    test_loader = DataLoader(Preferences(16, 1), batch_size=8, collate_fn=collate)
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
    for epoch in range(2):
        policy.train()
        total, wins, seen = 0.0, 0, 0
        for batch in loader:
            batch = {k: v.to(device) for k, v in batch.items()}
            chosen, rejected = logps_of(policy, batch)
            with torch.no_grad():
                ref_chosen, ref_rejected = logps_of(reference, batch)
            loss, good, bad = dpo_loss(chosen, rejected, ref_chosen, ref_rejected, beta=0.1)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(policy.parameters(), 10.0)
            optimizer.step()
            scheduler.step()
            total += loss.item() * len(chosen)
            wins += (good > bad).sum().item()
            seen += len(chosen)
        policy.eval()
        margins = []
        with torch.no_grad():
            for batch in test_loader:
                batch = {k: v.to(device) for k, v in batch.items()}
                chosen, rejected = logps_of(policy, batch)
                margins.append(chosen - rejected)
        margin = torch.cat(margins).mean().item()
        print(f"epoch {epoch} loss {total / seen:.4f} reward accuracy {wins / seen:.3f} test margin {margin:.4f}")
    policy.save_pretrained("policy")


if __name__ == "__main__":
    main()
