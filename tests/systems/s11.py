"""Best and last checkpoints; a run that was stopped goes on from the last one."""
import argparse
import os
from os.path import join

import torch
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--keep", type=str, default="kept")
args = parser.parse_args()
folder = join(args.keep, "weights")
os.makedirs(folder, exist_ok=True)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
grid = torch.sin(torch.arange(640.0)).view(80, 8)
side = (grid[:, :4].sum(1) > grid[:, 4:].sum(1)).long()
train_loader = DataLoader(TensorDataset(grid[:60], side[:60]), batch_size=10, shuffle=True)
valid_loader = DataLoader(TensorDataset(grid[60:], side[60:]), batch_size=10)

torch.manual_seed(7)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).to(device)
model = torch.nn.DataParallel(model)
last = join(folder, "last.pth")
if os.path.exists(last):
    model.module.load_state_dict(torch.load(last, map_location=device))
    print("going on from", last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
best_acc = 0.0

for epoch in range(1, args.epochs + 1):
    model.train()
    for x, y in train_loader:
        loss = torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in valid_loader:
            right += (model(x.to(device)).argmax(1) == y.to(device)).sum().item()
    acc = right / len(valid_loader.dataset)
    print(f"epoch {epoch}: accuracy {acc:.4f}")
    if best_acc < acc:
        print(f"better than {best_acc:.4f}")
        best_acc = acc
        torch.save(model.module.state_dict(), join(folder, "best.pth"))
    torch.save(model.module.state_dict(), last)
    model.module.load_state_dict(torch.load(last, map_location=device))
    print("loaded what was saved")
