import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=2)
parser.add_argument("--batch_size", type=int, default=8)
parser.add_argument("--lr", type=float, default=0.02)


def mould(grain):
    return nn.Sequential(nn.Linear(4, grain), nn.ReLU(), nn.Linear(grain, 6))


def main():
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(71)
    clay = torch.cos(torch.arange(480.0) ** 1.2).view(48, 10)
    loader = DataLoader(TensorDataset(clay[:, :4], clay[:, 4:]), batch_size=args.batch_size, shuffle=True)
    potter = mould(16).to(device)
    judge = nn.Sequential(nn.Linear(6, 12), nn.LeakyReLU(0.1), nn.Linear(12, 1)).to(device)
    potting = torch.optim.Adam(potter.parameters(), lr=args.lr)
    judging = torch.optim.Adam(judge.parameters(), lr=args.lr)
    fits, real_or_not = nn.L1Loss(), nn.BCEWithLogitsLoss()
    for epoch in range(args.rounds):
        for source, target in loader:
            source, target = source.to(device), target.to(device)
            output = potter(source)
            d_real, d_fake = judge(target), judge(output.detach())
            caught = real_or_not(d_real, torch.ones_like(d_real)) + real_or_not(d_fake, torch.zeros_like(d_fake))
            judging.zero_grad()
            caught.backward()
            judging.step()
            d_out = judge(output)
            passed = fits(output, target) + 0.1 * real_or_not(d_out, torch.ones_like(d_out))
            potting.zero_grad()
            passed.backward()
            potting.step()
        print(f"epoch {epoch} is over")
    torch.save(potter.state_dict(), "mould.pth")


if __name__ == "__main__":
    main()
