"""Rectified flow in the style of short repositories: time and noise drawn in the loop, EMA by hand, torch.compile after the optimizer."""
import argparse
import os
from copy import deepcopy
from glob import glob

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def modulate(x, shift, scale):
    return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


class TimestepEmbedder(nn.Module):
    def __init__(self, dim, freqs=8):
        super().__init__()
        self.register_buffer("freqs", torch.exp(torch.linspace(0, 4, freqs)))
        self.mlp = nn.Sequential(nn.Linear(2 * freqs, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, t):
        args = t[:, None] * self.freqs[None]
        return self.mlp(torch.cat([args.sin(), args.cos()], dim=-1))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm = nn.LayerNorm(dim, elementwise_affine=False)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.ada = nn.Sequential(nn.SiLU(), nn.Linear(dim, 3 * dim))
        nn.init.zeros_(self.ada[-1].weight)
        nn.init.zeros_(self.ada[-1].bias)

    def forward(self, x, c):
        shift, scale, gate = self.ada(c).chunk(3, dim=1)
        h = modulate(self.norm(x), shift, scale)
        return x + gate.unsqueeze(1) * self.attn(h, h, h, need_weights=False)[0]


class DiT(nn.Module):
    def __init__(self, size=8, patch=2, dim=16, depth=2, classes=4):
        super().__init__()
        self.patch = nn.Conv2d(1, dim, patch, stride=patch)
        self.pos = nn.Parameter(torch.zeros(1, (size // patch) ** 2, dim))
        self.t, self.y = TimestepEmbedder(dim), nn.Embedding(classes + 1, dim)
        self.blocks = nn.ModuleList([Block(dim, 2) for _ in range(depth)])
        self.out = nn.Linear(dim, patch * patch)
        self.size, self.p = size, patch

    def unpatchify(self, x):
        h = self.size // self.p
        x = x.reshape(x.shape[0], h, h, self.p, self.p)
        return torch.einsum("nhwpq->nhpwq", x).reshape(x.shape[0], 1, self.size, self.size)

    def forward(self, x, t, y):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        c = self.t(t) + self.y(y)
        for block in self.blocks:
            x = block(x, c)
        return self.unpatchify(self.out(x))


@torch.no_grad()
def update_ema(ema_model, model, decay=0.99):
    ema_params, params = dict(ema_model.named_parameters()), dict(model.named_parameters())
    for name, param in params.items():
        ema_params[name.replace("_orig_mod.", "")].mul_(decay).add_(param.data, alpha=1 - decay)


def main(args):
    torch.manual_seed(args.global_seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    os.makedirs(args.results_dir, exist_ok=True)
    experiment_index = len(glob(f"{args.results_dir}/*"))
    experiment_dir = f"{args.results_dir}/{experiment_index:03d}-DiT"
    os.makedirs(experiment_dir, exist_ok=True)
    model = DiT().to(device)
    ema = deepcopy(model)
    for p in ema.parameters():
        p.requires_grad_(False)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0)
    g = torch.Generator().manual_seed(0)
    images, labels = torch.rand(64, 1, 8, 8, generator=g), torch.randint(0, 4, (64,), generator=g)
    loader = DataLoader(TensorDataset(images, labels), batch_size=args.global_batch_size, shuffle=True, drop_last=True)
    if args.compile:
        model = torch.compile(model)
    update_ema(ema, model, decay=0)
    model.train()
    ema.eval()
    train_steps, log_steps, running_loss = 0, 0, 0
    for epoch in range(args.epochs):
        print(f"Beginning epoch {epoch}...")
        for x, y in loader:
            x, y = x.to(device) * 2 - 1, y.to(device)
            y = torch.where(torch.rand(y.shape, device=device) < 0.1, torch.full_like(y, 4), y)
            t = torch.sigmoid(torch.randn(x.shape[0], device=device))
            z = torch.randn_like(x)
            xt = (1 - t.view(-1, 1, 1, 1)) * x + t.view(-1, 1, 1, 1) * z
            loss = ((model(xt, t, y) - (z - x)) ** 2).mean(dim=(1, 2, 3)).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            update_ema(ema, model)
            running_loss += loss.item()
            log_steps += 1
            train_steps += 1
            if train_steps % args.log_every == 0:
                avg_loss = running_loss / log_steps
                print(f"(step={train_steps:07d}) Train Loss: {avg_loss:.4f}")
                running_loss, log_steps = 0, 0
            if train_steps % args.ckpt_every == 0:
                checkpoint = {"model": model.state_dict(), "ema": ema.state_dict(), "opt": opt.state_dict(), "args": args}
                torch.save(checkpoint, f"{experiment_dir}/{train_steps:07d}.pt")
    model.eval()
    print("Done!")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--results-dir", default="results")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--global-batch-size", type=int, default=8)
    parser.add_argument("--global-seed", type=int, default=0)
    parser.add_argument("--log-every", type=int, default=4)
    parser.add_argument("--ckpt-every", type=int, default=8)
    parser.add_argument("--compile", action="store_true")
    main(parser.parse_args())
