"""A small classifier: training, evaluation after each epoch, and the best weights."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

x = torch.sin(torch.arange(6400.0) ** 1.5).view(800, 8)
y = (x.sum(1) > 0).long()
train_set, val_set = TensorDataset(x[:640], y[:640]), TensorDataset(x[640:], y[640:])


def main():
    torch.manual_seed(0)
    accelerator = Accelerator()
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=50)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    model, optimizer, train_loader, val_loader = accelerator.prepare(model, optimizer, train_loader, val_loader)
    best = 0.0
    for epoch in range(3):
        model.train()
        total = 0.0
        for images, labels in train_loader:
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            total += loss.item()
        model.eval()
        correct = 0
        with torch.no_grad():
            for images, labels in val_loader:
                predictions, labels = accelerator.gather_for_metrics((model(images).argmax(1), labels))
                correct += (predictions == labels).sum().item()
        accuracy = correct / len(val_set)
        accelerator.print(f"epoch {epoch}: loss {total / len(train_loader):.4f}, accuracy {accuracy:.4f}")
        if accuracy > best:
            best = accuracy
            accelerator.save(accelerator.unwrap_model(model).state_dict(), "best.pt")


if __name__ == "__main__":
    main()
