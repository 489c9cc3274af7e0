"""Denoise drawings and show how it goes: curves, grids of pictures, the model as text, checkpoints."""
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter


def grid_of(pictures):
    return torch.cat([p for p in pictures[:4].detach().cpu()], dim=2)


def main():
    clean = torch.sin(torch.arange(64 * 36.0) / 7).view(64, 1, 6, 6)
    noisy = clean + 0.3 * torch.cos(torch.arange(64 * 36.0) ** 1.3).view(64, 1, 6, 6)
    loader = DataLoader(TensorDataset(noisy, clean), batch_size=16, shuffle=True)
    torch.manual_seed(2)
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 3, padding=1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    writer = SummaryWriter("runs")
    print("net\n", net)
    step = 0
    for epoch in range(2):
        for x, target in loader:
            output = net(x)
            loss = nn.functional.l1_loss(output, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 3 == 0:
                for group in optimizer.param_groups:
                    rate = group["lr"]
                writer.add_scalar("rate", rate, step)
                writer.add_scalar("loss", loss.item(), step)
                writer.add_image("pictures", grid_of(output), step)
                print("step {}: {:.4f}".format(step, loss.item()))
            step += 1
        os.makedirs("saved", exist_ok=True)
        torch.save({"net": net.state_dict(), "epoch": epoch}, "saved/last.pt")
    writer.close()


if __name__ == "__main__":
    main()
