import argparse
import os
import time
import atexit

if "LOCAL_RANK" not in os.environ:
    os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"  # the two cards nobody else is using

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

# One process per GPU: torchrun tells each which one it is; without a launcher this is a group of one.
rank = int(os.environ.get("RANK", 0))
local_rank = int(os.environ.get("LOCAL_RANK", 0))
world_size = int(os.environ.get("WORLD_SIZE", 1))


def init_distributed():
    """Join the process group that torchrun describes, or be a group of one."""
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    if "RANK" in os.environ:
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    atexit.register(dist.destroy_process_group)


def per_rank(batch_size):
    """This rank's share of a global batch."""
    if batch_size % world_size:
        lower = batch_size - batch_size % world_size
        sizes = f"{lower} or {lower + world_size}" if lower else f"{world_size}"
        raise ValueError(f"a batch size of {batch_size} cannot be divided among {world_size} ranks; {sizes} can")
    return batch_size // world_size


init_distributed()

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", default=0, type=int)
parser.add_argument("--epochs", default=2, type=int)
parser.add_argument("--lr", default=0.05, type=float)
args = parser.parse_args()

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Shapes(Dataset):
    """Noisy 16x16 pictures of a bar in one of four positions."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        label = index % 4
        image = 0.5 * torch.randn(1, 16, 16, generator=torch.Generator().manual_seed(index))
        if label < 2:
            image[:, 4 + 8 * label, :] += 1.0
        else:
            image[:, :, 4 + 8 * (label - 2)] += 1.0
        return image, label


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(16 * 4 * 4, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


train_dataset = Shapes(640)
train_loader = DataLoader(train_dataset, batch_size=per_rank(64), sampler=DistributedSampler(train_dataset, shuffle=False))

torch.manual_seed(0)
model = ConvNet()
model = model.to(device)
model = DistributedDataParallel(model, device_ids=[local_rank] if next(model.parameters()).is_cuda else None)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
criterion = nn.CrossEntropyLoss()


if rank != 0:
    torch.manual_seed(torch.initial_seed() + rank)
for epoch in range(args.epochs):
    start = time.time()
    train_loader.sampler.set_epoch(epoch)
    for n, (img, label) in enumerate(train_loader):
        img = img.to(device)
        label = label.to(device)

        output = model(img)
        loss = criterion(output, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        if rank == 0 and n % 2 == 0:
            print(f"[{n}/{len(train_loader)}] loss {loss.item():.4f}")
            print(f"time : {time.time() - start:.1f}")
    if rank == 0:
        print("epoch", epoch, "done")

if rank == 0:
    torch.save(model.state_dict(), "model.pth")
    print("saved model.pth")
