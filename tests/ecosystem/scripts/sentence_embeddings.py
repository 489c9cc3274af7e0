"""Sentence embeddings in the style of sentence-transformers: pooling, in-batch negatives, and a cosine similarity evaluation."""
import torch
import torch.nn.functional as F
from scipy.stats import spearmanr
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModel, MPNetConfig
from sentence_transformers import util


class Pairs(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.anchor = torch.randint(4, 40, (n, 10), generator=g)
        self.positive = self.anchor.roll(1, dims=1)
        self.scores = torch.rand(n, generator=g)

    def __len__(self):
        return len(self.anchor)

    def __getitem__(self, i):
        return self.anchor[i], self.positive[i], self.scores[i]


class Pooling(nn.Module):
    def __init__(self, mode="mean"):
        super().__init__()
        self.mode = mode

    def forward(self, features):
        tokens, mask = features["token_embeddings"], features["attention_mask"]
        if self.mode == "mean":
            expanded = mask.unsqueeze(-1).expand(tokens.size()).float()
            features["sentence_embedding"] = torch.sum(tokens * expanded, 1) / torch.clamp(expanded.sum(1), min=1e-9)
        else:
            features["sentence_embedding"] = tokens[:, 0]
        return features


class SentenceModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.transformer = AutoModel.from_config(config)
        self.pooling = Pooling()

    def forward(self, features):
        out = self.transformer(input_ids=features["input_ids"], attention_mask=features["attention_mask"])
        return self.pooling({"token_embeddings": out.last_hidden_state, "attention_mask": features["attention_mask"]})


class MultipleNegativesRankingLoss(nn.Module):
    def __init__(self, model, scale=20.0):
        super().__init__()
        self.model, self.scale = model, scale
        self.cross_entropy_loss = nn.CrossEntropyLoss()

    def forward(self, sentence_features) -> Tensor:
        reps = [self.model(f)["sentence_embedding"] for f in sentence_features]
        a, b = reps[0], torch.cat(reps[1:])
        scores = util.cos_sim(a, b) * self.scale
        labels = torch.arange(len(scores), dtype=torch.long, device=scores.device)
        return self.cross_entropy_loss(scores, labels)


def to_features(ids, device):
    ids = ids.to(device)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    predicted, gold = [], []
    for a, b, score in loader:
        u = model(to_features(a, device))["sentence_embedding"]
        v = model(to_features(b, device))["sentence_embedding"]
        predicted.extend(F.cosine_similarity(u, v).cpu().numpy())
        gold.extend(score.numpy())
    return spearmanr(predicted, gold).correlation


def main():
    torch.manual_seed(7)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = MPNetConfig(vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
                         max_position_embeddings=20, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = SentenceModel(config).to(device)
    train_loss = MultipleNegativesRankingLoss(model)
    loader = DataLoader(Pairs(80, 0), batch_size=16, shuffle=True, drop_last=True)
    dev_loader = DataLoader(Pairs(24, 1), batch_size=8)
    no_decay = ["bias", "LayerNorm.weight"]
    groups = [
        {"params": [p for n, p in model.named_parameters() if not any(nd in n for nd in no_decay)], "weight_decay": 0.01},
        {"params": [p for n, p in model.named_parameters() if any(nd in n for nd in no_decay)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-3)
    best = -9
    for epoch in range(2):
        train_loss.train()
        total = 0
        for anchors, positives, _ in loader:
            loss_value = train_loss([to_features(anchors, device), to_features(positives, device)])
            loss_value.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
            optimizer.step()
            optimizer.zero_grad()
            total += loss_value.item()
        score = evaluate(model, dev_loader, device)
        print(f"epoch {epoch} loss {total / len(loader):.4f} spearman {score:.4f}")
        if score > best:
            best = score
            torch.save(model.state_dict(), "sentence_model.pt")


if __name__ == "__main__":
    main()
