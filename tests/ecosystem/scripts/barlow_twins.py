"""Barlow Twins with a hand-written Muon optimizer for the matrices and AdamW for the rest."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


def newton_schulz(G, steps=5):
    a, b, c = 3.4445, -4.7750, 2.0315
    X = G / (G.norm() + 1e-7)
    flipped = X.size(0) > X.size(1)
    if flipped:
        X = X.T
    for _ in range(steps):
        A = X @ X.T
        X = a * X + (b * A + c * A @ A) @ X
    return X.T if flipped else X


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.9):
        super().__init__(params, dict(lr=lr, momentum=momentum))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "buffer" not in state:
                    state["buffer"] = torch.zeros_like(p.grad)
                state["buffer"].mul_(group["momentum"]).add_(p.grad)
                update = newton_schulz(p.grad.add(state["buffer"], alpha=group["momentum"]))
                p.add_(update, alpha=-group["lr"])


class Views(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(0)
        base = torch.randn(n, 12, generator=g)
        self.a, self.b = base + 0.2 * torch.randn(n, 12, generator=g), base + 0.2 * torch.randn(n, 12, generator=g)

    def __len__(self):
        return len(self.a)

    def __getitem__(self, i):
        return self.a[i], self.b[i]


class BarlowTwins(nn.Module):
    def __init__(self, dim=8, lambd=0.005):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(12, 24, bias=False), nn.ReLU(), nn.Linear(24, 16, bias=False))
        self.projector = nn.Linear(16, dim)
        self.lambd = lambd

    def forward(self, y1, y2):
        z1, z2 = self.projector(self.backbone(y1)), self.projector(self.backbone(y2))
        z1 = (z1 - z1.mean(0)) / (z1.std(0) + 1e-4)
        z2 = (z2 - z2.mean(0)) / (z2.std(0) + 1e-4)
        c = z1.T @ z2 / z1.shape[0]
        on_diag = (torch.diagonal(c) - 1).pow(2).sum()
        off_diag = c.pow(2).sum() - torch.diagonal(c).pow(2).sum()
        return on_diag + self.lambd * off_diag


if __name__ == "__main__":
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = BarlowTwins().to(device)
    matrices = [p for p in model.backbone.parameters() if p.ndim == 2]
    rest = list(model.projector.parameters())
    optimizers = [Muon(matrices, lr=0.01), torch.optim.AdamW(rest, lr=1e-3)]
    loader = DataLoader(Views(96), batch_size=24, shuffle=True, drop_last=True)
    for epoch in range(2):
        total = 0.0
        for a, b in loader:
            loss = model(a.to(device), b.to(device))
            for opt in optimizers:
                opt.zero_grad(set_to_none=True)
            loss.backward()
            for opt in optimizers:
                opt.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}")
    torch.save({"backbone": model.backbone.state_dict()}, "barlow.pt")
