"""A small classifier: training, evaluation after each epoch, and the best weights."""

import torch
from lightning_fabric import Fabric
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

x = torch.sin(torch.arange(6400.0) ** 1.5).view(800, 8)
y = (x.sum(1) > 0).long()
train_set, val_set = TensorDataset(x[:640], y[:640]), TensorDataset(x[640:], y[640:])


def main():
    torch.manual_seed(0)
    fabric = Fabric(devices=2, strategy="ddp")
    fabric.launch()
    train_loader = DataLoader(train_set, batch_size=32 // fabric.world_size, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=50)
    train_loader, val_loader = fabric.setup_dataloaders(train_loader, val_loader)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    model, optimizer = fabric.setup(model, optimizer)
    best = 0.0
    for epoch in range(3):
        model.train()
        total = 0.0
        for images, labels in train_loader:
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            fabric.backward(loss)
            optimizer.step()
            total += fabric.all_reduce(loss.detach(), reduce_op="mean").item()
        model.eval()
        correct = 0
        with torch.no_grad():
            for images, labels in val_loader:
                correct += (model(images).argmax(1) == labels).sum().item()
        accuracy = fabric.all_reduce(float(correct), reduce_op="sum").item() / len(val_set)
        fabric.print(f"epoch {epoch}: loss {total / len(train_loader):.4f}, accuracy {accuracy:.4f}")
        if accuracy > best:
            best = accuracy
            fabric.save("best.pt", model.state_dict())


if __name__ == "__main__":
    main()
