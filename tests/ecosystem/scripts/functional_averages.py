"""Consistency under small moves with torch.func: functional_call with averaged weights, StatefulDataLoader, and a run that can be resumed."""
import copy
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call
from torch.utils.data import Dataset
from torchdata.stateful_dataloader import StatefulDataLoader


class Points(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 5, generator=g)
        self.y = (self.x[:, 0] * self.x[:, 1] > 0).long()
        self.shift = 0.1 * torch.randn(n, 5, generator=g)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "y": self.y[i], "shift": self.shift[i]}


def main():
    torch.manual_seed(2)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 2)).to(device)
    average = {k: v.detach().clone() for k, v in model.state_dict().items()}
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    train_loader = StatefulDataLoader(Points(96, 0), batch_size=12)
    val_loader = StatefulDataLoader(Points(32, 1), batch_size=12)
    first_epoch = 0
    if os.path.isfile("state.pt"):
        state = torch.load("state.pt")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first_epoch = state["epoch"]
    for epoch in range(first_epoch, 3):
        model.train()
        total = 0.0
        for batch in train_loader:
            x, y, shift = (batch[k].to(device) for k in ("x", "y", "shift"))
            logits = model(x)
            with torch.no_grad():
                target = functional_call(model, average, (x + shift,)).softmax(-1)
            loss = F.cross_entropy(logits, y) + 0.5 * F.kl_div(logits.log_softmax(-1), target, reduction="batchmean")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                for name, value in model.state_dict().items():
                    average[name].lerp_(value, 0.1)
            total += loss.item() * len(x)
        model.eval()
        hits = 0
        for batch in val_loader:
            with torch.no_grad():
                hits += (functional_call(model, average, (batch["x"].to(device),)).argmax(-1) == batch["y"].to(device)).sum().item()
        print(f"epoch {epoch}: loss {total / len(train_loader.dataset):.4f} accuracy {hits / len(val_loader.dataset):.3f}")
        torch.save({"model": model.state_dict(), "average": average, "optimizer": optimizer.state_dict(), "epoch": epoch + 1}, "state.pt")


if __name__ == "__main__":
    main()
