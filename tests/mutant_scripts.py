"""Scripts and right conversions of them by hand, of what the examples do not have: `{name: (original, converted)}`.

Between them: a sum loss, a masked mean, accumulation with no_sync, a grad scaler with clipping, parameters without gradients, a plateau, an
early stop, skipped batches, a prepared file, layers that thaw, checkpoints that are read again, batch norm, dropout, workers, a progress
bar, processes that the script spawns itself, and the launcher that passes --local-rank.
"""

_TAGGER = '''
"""Tag the letters of made-up words: a masked mean, accumulation, a grad scaler and clipping."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Words(Dataset):
    """Words of 3 to 9 letters, padded; the tag of a letter says whether it comes after the one before."""

    def __init__(self, size):
        g = torch.Generator().manual_seed(5)
        self.letters = torch.randint(1, 27, (size, 9), generator=g)
        lengths = torch.randint(3, 10, (size, 1), generator=g)
        self.tags = (self.letters > self.letters.roll(1, 1)).long()
        self.tags[torch.arange(9) >= lengths] = -100

    def __len__(self):
        return len(self.letters)

    def __getitem__(self, i):
        return self.letters[i], self.tags[i]


class Tagger(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(27, width)
        self.mix = nn.GRU(width, width, batch_first=True)
        self.tag = nn.Linear(width, 2)
        self.pretext = nn.Linear(width, 27)  # for a stage that is not run here

    def forward(self, letters):
        return self.tag(self.mix(self.embed(letters))[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--clip", type=float, default=0.2)
    args = parser.parse_args()

    torch.manual_seed(1)
    device = torch.device("cuda")
    words = Words(64)
    loader = DataLoader(words, args.batch_size, shuffle=True)
    model = Tagger(12).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, total_steps=args.epochs * len(loader) // args.accumulate)
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(args.epochs):
        total, count = 0.0, 0
        for i, (letters, tags) in enumerate(loader):
            letters, tags = letters.to(device), tags.to(device)
            loss = F.cross_entropy(model(letters).flatten(0, 1), tags.flatten(), ignore_index=-100)
            scaler.scale(loss / args.accumulate).backward()
            total += loss.item()
            count += 1
            if (i + 1) % args.accumulate == 0:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), args.clip)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                schedule.step()
        print(f"epoch {epoch}: loss {total / count:.6f}")
    torch.save({"model": model.state_dict(), "epochs": args.epochs}, "tagger.pt")


if __name__ == "__main__":
    main()
'''

_TAGGER_DDP = '''
"""Tag the letters of made-up words: a masked mean, accumulation, a grad scaler and clipping."""
import argparse
import contextlib
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

rank = int(os.environ["RANK"])
local_rank = int(os.environ["LOCAL_RANK"])
world_size = int(os.environ["WORLD_SIZE"])


class Words(Dataset):
    """Words of 3 to 9 letters, padded; the tag of a letter says whether it comes after the one before."""

    def __init__(self, size):
        g = torch.Generator().manual_seed(5)
        self.letters = torch.randint(1, 27, (size, 9), generator=g)
        lengths = torch.randint(3, 10, (size, 1), generator=g)
        self.tags = (self.letters > self.letters.roll(1, 1)).long()
        self.tags[torch.arange(9) >= lengths] = -100

    def __len__(self):
        return len(self.letters)

    def __getitem__(self, i):
        return self.letters[i], self.tags[i]


class Tagger(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(27, width)
        self.mix = nn.GRU(width, width, batch_first=True)
        self.tag = nn.Linear(width, 2)
        self.pretext = nn.Linear(width, 27)  # for a stage that is not run here

    def forward(self, letters):
        return self.tag(self.mix(self.embed(letters))[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--clip", type=float, default=0.2)
    args = parser.parse_args()

    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    torch.manual_seed(1)
    device = torch.device("cuda", local_rank)
    words = Words(64)
    sampler = DistributedSampler(words)
    loader = DataLoader(words, args.batch_size // world_size, sampler=sampler)
    model = Tagger(12).to(device)
    model = DDP(model, device_ids=[local_rank], find_unused_parameters=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, total_steps=args.epochs * len(loader) // args.accumulate)
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        total, count = 0.0, 0
        for i, (letters, tags) in enumerate(loader):
            letters, tags = letters.to(device), tags.to(device)
            last = (i + 1) % args.accumulate == 0
            with contextlib.nullcontext() if last else model.no_sync():
                summed = F.cross_entropy(model(letters).flatten(0, 1), tags.flatten(), ignore_index=-100, reduction="sum")
                tagged = (tags != -100).sum()
                dist.all_reduce(tagged)
                loss = summed * world_size / tagged
                scaler.scale(loss / args.accumulate).backward()
            total += loss.item()
            count += 1
            if last:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), args.clip)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                schedule.step()
        both = torch.tensor([total, count], device=device)
        dist.all_reduce(both)
        if rank == 0:
            print(f"epoch {epoch}: loss {both[0] / both[1]:.6f}")
    if rank == 0:
        torch.save({"model": model.module.state_dict(), "epochs": args.epochs}, "tagger.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
'''

_THROWS = '''
"""How far a thrown ball flies: batch norm, dropout, thawing layers, a plateau, an early stop and the best weights at the end."""
import argparse
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset
from tqdm import tqdm


def simulate(path):
    """Throws, and how far they went; one was not measured."""
    time.sleep(0.5)
    g = torch.Generator().manual_seed(3)
    throws = torch.rand(81, 4, generator=g)
    far = throws[:, 0] ** 2 * (2 * throws[:, 1]).sin() + 0.5 * torch.randn(81, generator=g)
    far[5] = float("nan")
    torch.save((throws, far), path)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.trunk = nn.Sequential(nn.Linear(4, width), nn.BatchNorm1d(width), nn.ReLU())
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(width, 1))

    def forward(self, throws):
        return self.head(self.trunk(throws)).squeeze(1)

    def weight(self):
        return sum(float(p.detach().square().sum()) for p in self.parameters())


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    total, count = 0.0, 0
    for throws, far in loader:
        throws, far = throws.to(device), far.to(device)
        total += F.mse_loss(model(throws), far, reduction="sum").item()
        count += len(far)
    return total / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--width", type=int, default=6)
    parser.add_argument("--patience", type=int, default=2)
    parser.add_argument("--out", default="out")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda")
    if not os.path.exists(args.out):
        os.makedirs(args.out)
    if not os.path.exists("throws.pt"):
        simulate("throws.pt")
    data = TensorDataset(*torch.load("throws.pt"))
    train, val = Subset(data, range(64)), Subset(data, range(64, 81))
    train_loader = DataLoader(train, args.batch_size, shuffle=True, num_workers=args.workers)
    val_loader = DataLoader(val, args.batch_size)

    model = Net(args.width).to(device)
    model.trunk.requires_grad_(False)
    start = Net(args.width).state_dict()
    model.load_state_dict(start)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.8)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=0)
    print(f"width {model.width}")
    best, waited = float("inf"), 0
    for epoch in range(args.epochs):
        if epoch == 1:
            model.trunk.requires_grad_(True)
        model.train()
        skipped = 0
        for throws, far in tqdm(train_loader):
            throws, far = throws.to(device), far.to(device)
            loss = F.mse_loss(model(throws), far, reduction="sum")
            if not torch.isfinite(loss):
                skipped += 1
                continue
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        result = evaluate(model, val_loader, device)
        plateau.step(result)
        print(f"epoch {epoch}: val {result:.6f}, skipped {skipped}, weight {model.weight():.6f}")
        if result < best:
            best, waited = result, 0
            torch.save({"model": model.state_dict(), "args": args, "val": result}, os.path.join(args.out, "best.pt"))
        else:
            waited += 1
            if waited == args.patience:
                print("it gets no better")
                break
    checkpoint = torch.load(os.path.join(args.out, "best.pt"), weights_only=False)
    model.load_state_dict(checkpoint["model"])
    result = evaluate(model, val_loader, device)
    print(f"best {result:.6f}")


if __name__ == "__main__":
    main()
'''

_THROWS_DDP = '''
"""How far a thrown ball flies: batch norm, dropout, thawing layers, a plateau, an early stop and the best weights at the end."""
import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from tqdm import tqdm

rank = int(os.environ["RANK"])
local_rank = int(os.environ["LOCAL_RANK"])
world_size = int(os.environ["WORLD_SIZE"])


def simulate(path):
    """Throws, and how far they went; one was not measured."""
    time.sleep(0.5)
    g = torch.Generator().manual_seed(3)
    throws = torch.rand(81, 4, generator=g)
    far = throws[:, 0] ** 2 * (2 * throws[:, 1]).sin() + 0.5 * torch.randn(81, generator=g)
    far[5] = float("nan")
    torch.save((throws, far), path)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.trunk = nn.Sequential(nn.Linear(4, width), nn.BatchNorm1d(width), nn.ReLU())
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(width, 1))

    def forward(self, throws):
        return self.head(self.trunk(throws)).squeeze(1)

    def weight(self):
        return sum(float(p.detach().square().sum()) for p in self.parameters())


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    total, count = 0.0, 0
    for throws, far in loader:
        throws, far = throws.to(device), far.to(device)
        total += F.mse_loss(model(throws), far, reduction="sum").item()
        count += len(far)
    both = torch.tensor([total, count], device=device)
    dist.all_reduce(both)
    total, count = both.tolist()
    return total / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--width", type=int, default=6)
    parser.add_argument("--patience", type=int, default=2)
    parser.add_argument("--out", default="out")
    args = parser.parse_args()

    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    torch.manual_seed(0)
    device = torch.device("cuda", local_rank)
    os.makedirs(args.out, exist_ok=True)
    if rank == 0 and not os.path.exists("throws.pt"):
        simulate("throws.pt")
    dist.barrier()
    data = TensorDataset(*torch.load("throws.pt"))
    train, val = Subset(data, range(64)), Subset(data, range(64, 81))
    sampler = DistributedSampler(train)
    train_loader = DataLoader(train, args.batch_size // world_size, sampler=sampler, num_workers=args.workers // world_size)
    val_loader = DataLoader(val, args.batch_size, sampler=range(rank, len(val), world_size))

    model = Net(args.width).to(device)
    model.trunk.requires_grad_(False)
    start = Net(args.width).state_dict()
    model = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(model), device_ids=[local_rank])
    model.module.load_state_dict(start)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.8)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=0)
    if rank == 0:
        print(f"width {model.module.width}")
    best, waited = float("inf"), 0
    torch.manual_seed(rank)
    for epoch in range(args.epochs):
        if epoch == 1:
            model.module.trunk.requires_grad_(True)
            model = DDP(model.module, device_ids=[local_rank])
        model.train()
        skipped = 0
        sampler.set_epoch(epoch)
        for throws, far in tqdm(train_loader, disable=rank != 0):
            throws, far = throws.to(device), far.to(device)
            loss = F.mse_loss(model(throws), far, reduction="sum") * world_size
            finite = torch.isfinite(loss).int()
            dist.all_reduce(finite, dist.ReduceOp.MIN)
            if not finite:
                skipped += 1
                continue
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        result = evaluate(model.module, val_loader, device)
        plateau.step(result)
        if rank == 0:
            print(f"epoch {epoch}: val {result:.6f}, skipped {skipped}, weight {model.module.weight():.6f}")
        if result < best:
            best, waited = result, 0
            if rank == 0:
                torch.save({"model": model.module.state_dict(), "args": args, "val": result}, os.path.join(args.out, "best.pt"))
        else:
            waited += 1
            if waited == args.patience:
                if rank == 0:
                    print("it gets no better")
                break
    dist.barrier()
    checkpoint = torch.load(os.path.join(args.out, "best.pt"), map_location=device, weights_only=False)
    model.module.load_state_dict(checkpoint["model"])
    result = evaluate(model.module, val_loader, device)
    if rank == 0:
        print(f"best {result:.6f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
'''

_WAVES = '''
"""Tell slow waves from fast ones."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def waves(size):
    g = torch.Generator().manual_seed(2)
    kinds = torch.randint(0, 2, (size,), generator=g)
    t = torch.linspace(0, 6, 20)
    return TensorDataset(torch.sin(t * (1 + 2 * kinds.unsqueeze(1))) + 0.3 * torch.randn(size, 20, generator=g), kinds)


def main():
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(20, 8), nn.Tanh(), nn.Linear(8, 2)).cuda()
    data = waves(66)
    loader = DataLoader(data, 12, shuffle=True, drop_last=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(2):
        for wave, kind in loader:
            wave, kind = wave.cuda(), kind.cuda()
            optimizer.zero_grad()
            loss = criterion(model(wave), kind)
            loss.backward()
            optimizer.step()
        print("epoch", epoch)
    torch.save(model.state_dict(), "waves.pt")


if __name__ == "__main__":
    main()
'''

_WAVES_DDP = '''
"""Tell slow waves from fast ones."""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def waves(size):
    g = torch.Generator().manual_seed(2)
    kinds = torch.randint(0, 2, (size,), generator=g)
    t = torch.linspace(0, 6, 20)
    return TensorDataset(torch.sin(t * (1 + 2 * kinds.unsqueeze(1))) + 0.3 * torch.randn(size, 20, generator=g), kinds)


def work(rank, world_size, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(20, 8), nn.Tanh(), nn.Linear(8, 2)).cuda(rank)
    model = DDP(model, device_ids=[rank])
    data = waves(66)
    sampler = DistributedSampler(data, drop_last=True)
    loader = DataLoader(data, 12 // world_size, sampler=sampler, drop_last=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for wave, kind in loader:
            wave, kind = wave.cuda(rank), kind.cuda(rank)
            optimizer.zero_grad()
            loss = criterion(model(wave), kind)
            loss.backward()
            optimizer.step()
        if rank == 0:
            print("epoch", epoch)
    if rank == 0:
        torch.save(model.module.state_dict(), "waves.pt")
    dist.destroy_process_group()


def main():
    world_size = torch.cuda.device_count()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(work, args=(world_size, port), nprocs=world_size)


if __name__ == "__main__":
    main()
'''

_DOTS = '''
"""Count the dots of a small picture."""
import argparse
import logging

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(level=logging.INFO, format="%(message)s")


def pictures(size):
    g = torch.Generator().manual_seed(9)
    dots = (torch.rand(size, 1, 6, 6, generator=g) < 0.1).float()
    return TensorDataset(dots, dots.sum((1, 2, 3)))


parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=10)
parser.add_argument("--lr", type=float, default=0.05)
args = parser.parse_args()

torch.manual_seed(0)
train_set, test_set = pictures(50), pictures(23)
train_loader = DataLoader(train_set, args.batch_size, shuffle=True)
test_loader = DataLoader(test_set, args.batch_size)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
for epoch in range(2):
    model.train()
    for picture, dots in train_loader:
        loss = F.smooth_l1_loss(model(picture.cuda()).squeeze(1), dots.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    wrong = 0.0
    with torch.no_grad():
        for picture, dots in test_loader:
            wrong += (model(picture.cuda()).squeeze(1) - dots.cuda()).abs().sum().item()
    logging.info("epoch %d done", epoch)
    print(f"epoch {epoch}: {wrong / len(test_set):.6f} dots wrong")
torch.save(model.state_dict(), "dots.pt")
'''

_DOTS_DDP = '''
"""Count the dots of a small picture."""
import argparse
import logging

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def pictures(size):
    g = torch.Generator().manual_seed(9)
    dots = (torch.rand(size, 1, 6, 6, generator=g) < 0.1).float()
    return TensorDataset(dots, dots.sum((1, 2, 3)))


parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=10)
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--local-rank", "--local_rank", type=int, default=0)
args = parser.parse_args()

torch.cuda.set_device(args.local_rank)
dist.init_process_group("nccl")
rank, world_size = dist.get_rank(), dist.get_world_size()
logging.basicConfig(level=logging.INFO if rank == 0 else logging.ERROR, format="%(message)s")
torch.manual_seed(0)
train_set, test_set = pictures(50), pictures(23)
sampler = DistributedSampler(train_set)
train_loader = DataLoader(train_set, args.batch_size // world_size, sampler=sampler)
test_loader = DataLoader(test_set, args.batch_size)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 1)).cuda()
model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
model = nn.parallel.DistributedDataParallel(model, device_ids=[args.local_rank])
optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
for epoch in range(2):
    sampler.set_epoch(epoch)
    model.train()
    for picture, dots in train_loader:
        loss = F.smooth_l1_loss(model(picture.cuda()).squeeze(1), dots.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    if rank == 0:
        wrong = 0.0
        with torch.no_grad():
            for picture, dots in test_loader:
                wrong += (model.module(picture.cuda()).squeeze(1) - dots.cuda()).abs().sum().item()
        logging.info("epoch %d done", epoch)
        print(f"epoch {epoch}: {wrong / len(test_set):.6f} dots wrong")
    dist.barrier()
if rank == 0:
    torch.save(model.module.state_dict(), "dots.pt")
dist.destroy_process_group()
'''

SCRIPTS = {
    "tagger": (_TAGGER, _TAGGER_DDP),
    "throws": (_THROWS, _THROWS_DDP),
    "waves": (_WAVES, _WAVES_DDP),
    "dots": (_DOTS, _DOTS_DDP),
}
