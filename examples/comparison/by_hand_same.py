"""A small classifier: training, evaluation after each epoch, and the best weights."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

x = torch.sin(torch.arange(6400.0) ** 1.5).view(800, 8)
y = (x.sum(1) > 0).long()
train_set, val_set = TensorDataset(x[:640], y[:640]), TensorDataset(x[640:], y[640:])


def main():
    torch.manual_seed(0)
    local_rank = int(os.environ["LOCAL_RANK"])
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
    train_loader = DataLoader(train_set, batch_size=32 // dist.get_world_size(), sampler=DistributedSampler(train_set))
    val_loader = DataLoader(val_set, batch_size=50, sampler=range(dist.get_rank(), len(val_set), dist.get_world_size()))
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
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
            total += loss.item()
        model.eval()
        correct = 0
        with torch.no_grad():
            for images, labels in val_loader:
                images, labels = images.to(device), labels.to(device)
                correct += (model.module(images).argmax(1) == labels).sum().item()
        sums = torch.tensor([total / len(train_loader) / dist.get_world_size(), correct], dtype=torch.float64, device=device)
        dist.all_reduce(sums)
        loss, accuracy = sums[0].item(), sums[1].item() / len(val_set)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.4f}")
        if dist.get_rank() == 0 and accuracy > best:
            best = accuracy
            torch.save(model.module.state_dict(), "best.pt")


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
