"""A small vision transformer written with einops, trained with warmup and cosine decay."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from einops import rearrange, repeat
from einops.layers.torch import Rearrange
from torch.utils.data import DataLoader, TensorDataset


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x):
        qkv = self.to_qkv(self.norm(x)).chunk(3, dim=-1)
        q, k, v = map(lambda t: rearrange(t, "b n (h d) -> b h n d", h=self.heads), qkv)
        attn = torch.matmul(q, k.transpose(-1, -2)) * q.shape[-1] ** -0.5
        out = torch.matmul(attn.softmax(dim=-1), v)
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))


class ViT(nn.Module):
    def __init__(self, image_size=16, patch=4, dim=16, depth=2, heads=2, classes=4):
        super().__init__()
        self.to_patch = nn.Sequential(
            Rearrange("b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=patch, p2=patch), nn.Linear(patch * patch * 3, dim)
        )
        self.pos = nn.Parameter(torch.randn(1, (image_size // patch) ** 2 + 1, dim) * 0.02)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.layers = nn.ModuleList([])
        for _ in range(depth):
            feed = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
            self.layers.append(nn.ModuleList([Attention(dim, heads), feed]))
        self.head = nn.Linear(dim, classes)

    def forward(self, img):
        x = self.to_patch(img)
        cls_tokens = repeat(self.cls_token, "1 1 d -> b 1 d", b=x.shape[0])
        x = torch.cat((cls_tokens, x), dim=1) + self.pos
        for attn, feed in self.layers:
            x = attn(x) + x
            x = feed(x) + x
        return self.head(x[:, 0])


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images, labels = torch.randn(64, 3, 16, 16), torch.randint(0, 4, (64,))
    loader = DataLoader(TensorDataset(images, labels), batch_size=8, shuffle=True)
    model = ViT().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    total, warmup = 3 * len(loader), 4
    schedule = lambda step: (step + 1) / warmup if step < warmup else 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    for epoch in range(3):
        model.train()
        epoch_loss = epoch_accuracy = 0
        for data, label in loader:
            data, label = data.to(device), label.to(device)
            output = model(data)
            loss = F.cross_entropy(output, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            acc = (output.argmax(dim=1) == label).float().mean()
            epoch_accuracy += acc / len(loader)
            epoch_loss += loss / len(loader)
        print(f"Epoch : {epoch + 1} - loss : {epoch_loss:.4f} - acc: {epoch_accuracy:.4f}")


if __name__ == "__main__":
    main()
