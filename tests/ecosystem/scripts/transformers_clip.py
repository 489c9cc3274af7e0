"""Fine-tune CLIP from transformers on pairs of images and captions, by a contrastive loss of one's own over its embeddings."""
import argparse

import torch
import torch.nn.functional as F
from torch.optim import AdamW
from torch.utils.data import DataLoader, Dataset
from tqdm.auto import tqdm
from transformers import CLIPConfig, CLIPModel, get_cosine_schedule_with_warmup


class Captions(Dataset):
    def __init__(self, n, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.kind = torch.randint(0, 10, (n,), generator=g)
        self.images = torch.randn(n, 3, 16, 16, generator=g) + self.kind.view(-1, 1, 1, 1) / 5
        self.texts = torch.randint(3, 30, (n, 8), generator=g)
        self.texts[:, 0] = self.kind + 3
        self.texts[:, -1] = 49

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return {"pixel_values": self.images[i], "input_ids": self.texts[i], "attention_mask": torch.ones(8, dtype=torch.long)}


def collate_fn(examples):
    return {
        "pixel_values": torch.stack([e["pixel_values"] for e in examples]),
        "input_ids": torch.stack([e["input_ids"] for e in examples]),
        "attention_mask": torch.stack([e["attention_mask"] for e in examples]),
    }


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    hits, seen = 0, 0
    images, texts = [], []
    for batch in loader:
        batch = {k: v.to(device) if torch.is_tensor(v) else v for k, v in batch.items()}
        out = model(**batch)
        images.append(out.image_embeds)
        texts.append(out.text_embeds)
    images, texts = torch.cat(images), torch.cat(texts)
    ranks = (images @ texts.t()).argmax(dim=1)
    hits = (ranks == torch.arange(len(ranks), device=device)).float().mean().item()
    model.train()
    return hits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=5e-4)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    small = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    config = CLIPConfig(
        text_config=dict(vocab_size=50, max_position_embeddings=8, eos_token_id=49, bos_token_id=1, pad_token_id=0, **small),
        vision_config=dict(image_size=16, patch_size=8, **small),
        projection_dim=8,
    )
    model = CLIPModel(config).to(device)
    train_loader = DataLoader(Captions(64), batch_size=args.batch_size, shuffle=True, collate_fn=collate_fn, drop_last=True)
    val_loader = DataLoader(Captions(32, 1), batch_size=args.batch_size, collate_fn=collate_fn)
    optimizer = AdamW(model.parameters(), lr=args.lr, weight_decay=0.2)
    total = len(train_loader) * args.epochs
    scheduler = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=2, num_training_steps=total)
    for epoch in range(args.epochs):
        running = 0.0
        bar = tqdm(train_loader, desc=f"epoch {epoch}")
        for batch in bar:
            batch = {k: v.to(device) if torch.is_tensor(v) else v for k, v in batch.items()}
            outputs = model(**batch)
            image_embeds, text_embeds = outputs.image_embeds, outputs.text_embeds
            logits = model.logit_scale.exp() * text_embeds @ image_embeds.t()
            labels = torch.arange(len(logits), device=device)
            loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            running += loss.item()
            bar.set_postfix(loss=loss.item())
        recall = evaluate(model, val_loader, device)
        print(f"epoch {epoch} loss {running / len(train_loader):.4f} recall {recall:.3f}")
    model.save_pretrained("clip-small")


if __name__ == "__main__":
    main()
