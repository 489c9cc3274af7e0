"""Learn to take noise away from points on a ring, step by step, with an averaged copy of the weights (DDPM)."""
import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS = 50


class Denoiser(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.time = nn.Embedding(STEPS, width)
        self.first = nn.Linear(2, width)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, x, t):
        return self.rest(self.first(x) + self.time(t))


@torch.no_grad()
def update(average, model, decay=0.9):
    for kept, new in zip(average.parameters(), model.parameters()):
        kept.mul_(decay).add_(new, alpha=1 - decay)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    angles = torch.arange(512.0) * 0.7
    points = torch.stack([angles.cos(), angles.sin()], dim=1)
    loader = DataLoader(TensorDataset(points), batch_size=32, shuffle=True)
    signal = torch.cumprod(1 - torch.linspace(1e-4, 0.1, STEPS), dim=0).to(device)
    model = Denoiser().to(device)
    average = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(3):
        total = 0.0
        for (x,) in loader:
            x = x.to(device)
            t = torch.randint(STEPS, (len(x),), device=device)
            noise = torch.randn_like(x)
            keep = signal[t].unsqueeze(1)
            noisy = keep.sqrt() * x + (1 - keep).sqrt() * noise
            loss = F.mse_loss(model(noisy, t), noise)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            update(average, model)
            total += loss.item() * len(x)
        print(f"epoch {epoch}: loss {total / len(points):.4f}")
    torch.save({"model": model.state_dict(), "average": average.state_dict()}, "diffusion.pt")


if __name__ == "__main__":
    main()
