"""A small classifier: training, evaluation after each epoch, and the best weights."""

import ignite.distributed as idist
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset

x = torch.sin(torch.arange(6400.0) ** 1.5).view(800, 8)
y = (x.sum(1) > 0).long()
train_set, val_set = TensorDataset(x[:640], y[:640]), TensorDataset(x[640:], y[640:])


def main(local_rank):
    torch.manual_seed(0)
    device = idist.device()
    train_loader = idist.auto_dataloader(train_set, batch_size=32, shuffle=True)
    val_loader = idist.auto_dataloader(val_set, batch_size=50)
    model = idist.auto_model(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)))
    optimizer = idist.auto_optim(torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9))
    best = 0.0
    for epoch in range(3):
        model.train()
        train_loader.sampler.set_epoch(epoch)
        total = 0.0
        for images, labels in train_loader:
            images, labels = images.to(device), labels.to(device)
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += idist.all_reduce(loss.item()) / idist.get_world_size()
        model.eval()
        correct = 0
        with torch.no_grad():
            for images, labels in val_loader:
                images, labels = images.to(device), labels.to(device)
                correct += (model(images).argmax(1) == labels).sum().item()
        accuracy = idist.all_reduce(correct) / len(val_set)
        if idist.get_rank() == 0:
            print(f"epoch {epoch}: loss {total / len(train_loader):.4f}, accuracy {accuracy:.4f}")
        if accuracy > best:
            best = accuracy
            if idist.get_rank() == 0:
                torch.save(model.module.state_dict(), "best.pt")


if __name__ == "__main__":
    with idist.Parallel("nccl" if torch.cuda.is_available() else "gloo") as parallel:
        parallel.run(main)
