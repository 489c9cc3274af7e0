"""Autocast as a decorator, parametrized layers, a scaler, checkpointed blocks, fused AdamW, resume from the last checkpoint."""
import os

import torch
import torch.nn as nn
import torch.nn.utils.parametrize as parametrize
from torch.nn.utils.parametrizations import orthogonal, spectral_norm
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).transpose(-1, -2)


class Residual(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.RMSNorm(dim)
        self.inner = spectral_norm(nn.Linear(dim, dim))

    def forward(self, x):
        return x + torch.tanh(self.inner(self.norm(x)))


class Net(nn.Module):
    def __init__(self, dim=12, classes=4):
        super().__init__()
        self.stem = orthogonal(nn.Linear(10, dim))
        self.mix = nn.Linear(dim, dim)
        parametrize.register_parametrization(self.mix, "weight", Symmetric())
        self.blocks = nn.ModuleList(Residual(dim) for _ in range(2))
        self.head = nn.Linear(dim, classes)

    @torch.autocast(device_type=DEVICE, dtype=torch.bfloat16, enabled=DEVICE == "cuda")
    def forward(self, x):
        x = self.mix(self.stem(x))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(x)


def main():
    torch.manual_seed(5)
    g = torch.Generator().manual_seed(0)
    x = torch.randn(128, 10, generator=g)
    y = x[:, :4].argmax(1)
    loader = DataLoader(TensorDataset(x[:96], y[:96]), batch_size=12, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[96:], y[96:]), batch_size=12)
    model = Net().to(DEVICE)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, fused=DEVICE == "cuda")
    scheduler = torch.optim.lr_scheduler.SequentialLR(
        optimizer,
        [torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=4), torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)],
        milestones=[4],
    )
    scaler = torch.amp.GradScaler(DEVICE, enabled=DEVICE == "cuda")
    start = 0
    if os.path.exists("last.pt"):
        state = torch.load("last.pt", map_location=DEVICE)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        start = state["epoch"]
    for epoch in range(start, 2):
        model.train()
        seen, loss_sum = 0, 0.0
        for inputs, targets in loader:
            inputs, targets = inputs.to(DEVICE), targets.to(DEVICE)
            loss = criterion(model(inputs).float(), targets)
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=2.0, foreach=True)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            loss_sum += loss.item() * inputs.size(0)
            seen += inputs.size(0)
        model.eval()
        with torch.no_grad():
            right = sum(int((model(a.to(DEVICE)).argmax(1) == b.to(DEVICE)).sum()) for a, b in val_loader)
        print(f"epoch {epoch} loss {loss_sum / seen:.4f} right {right} of {len(val_loader.dataset)} lr {scheduler.get_last_lr()[0]:.5f}")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "epoch": epoch + 1}, "last.pt")


if __name__ == "__main__":
    main()
