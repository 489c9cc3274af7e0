"""torch.compile, GradScaler and autocast, checkpoints with both, resumed if there is one."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        return x + checkpoint(self.net, x, use_reentrant=False)


class Net(nn.Module):
    def __init__(self, dim=16, depth=2):
        super().__init__()
        self.inp = nn.Linear(8, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.out = nn.utils.parametrizations.weight_norm(nn.Linear(dim, 3))

    def forward(self, x):
        x = self.inp(x)
        for block in self.blocks:
            x = block(x)
        return self.out(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--resume", default="last.pt")
    parser.add_argument("--backend", default="eager")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    raw_model = Net().to(device)
    model = torch.compile(raw_model, backend=args.backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=device == "cuda")
    scaler = torch.amp.GradScaler(device, enabled=device == "cuda")
    start = 0
    if os.path.exists(args.resume):
        state = torch.load(args.resume, map_location=device)
        raw_model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["epoch"] + 1
    x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))
    loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True, pin_memory=device == "cuda")
    for epoch in range(start, args.epochs):
        model.train()
        losses = []
        for xb, yb in loader:
            xb, yb = xb.to(device, non_blocking=True), yb.to(device, non_blocking=True)
            with torch.autocast(device, dtype=torch.float16, enabled=device == "cuda"):
                loss = F.cross_entropy(model(xb), yb)
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f}")
        torch.save({"model": raw_model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, args.resume)


if __name__ == "__main__":
    main()
