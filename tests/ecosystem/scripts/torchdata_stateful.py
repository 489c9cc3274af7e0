"""torchdata: a loader whose place in the data is saved with the model."""
import os

import torch
import torch.nn as nn
from torch.utils.data import TensorDataset
from torchdata.stateful_dataloader import StatefulDataLoader


def main(epochs=3, path="checkpoint.pt"):
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x = torch.randn(96, 8)
    y = x[:, :3].argmax(1)
    train_loader = StatefulDataLoader(TensorDataset(x[:64], y[:64]), batch_size=8)
    val_loader = StatefulDataLoader(TensorDataset(x[64:], y[64:]), batch_size=8)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    start = 0
    if os.path.exists(path):
        checkpoint = torch.load(path, map_location=device)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        train_loader.load_state_dict(checkpoint["train_loader"])
        start = checkpoint["epoch"]
    for epoch in range(start, epochs):
        model.train()
        total = 0.0
        for data, target in train_loader:
            data, target = data.to(device), target.to(device)
            loss = nn.functional.cross_entropy(model(data), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        correct = 0
        with torch.no_grad():
            for data, target in val_loader:
                correct += (model(data.to(device)).argmax(1) == target.to(device)).sum().item()
        print(f"epoch {epoch}: loss {total / len(train_loader):.4f}, {correct} of 32 right")
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "train_loader": train_loader.state_dict(),
            "epoch": epoch + 1,
        }
        torch.save(state, path)


if __name__ == "__main__":
    main()
