"""Teach a small network what a large one knows: knowledge distillation with a temperature, one GPU."""
import argparse
import os
import time
import atexit

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
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


def batches_of_rank(dataset, batch_size):
    """Every world_size-th batch of a data set, as indices: together the ranks evaluate each sample once."""
    starts = range(rank * batch_size, len(dataset), world_size * batch_size)
    return [i for start in starts for i in range(start, min(start + batch_size, len(dataset)))]


def sum_over_ranks(value):
    """The total over all ranks of a number, array or tensor that each computed from its own share of the data."""
    parts = [None] * world_size
    dist.all_gather_object(parts, value.detach().cpu().numpy() if torch.is_tensor(value) else value)
    total = sum(parts)
    return torch.as_tensor(total, device=value.device) if torch.is_tensor(value) else total


def make_spirals(size, seed):
    """Points on three noisy spiral arms, and the arm each lies on."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 3, (size,), generator=generator)
    radius = torch.rand(size, generator=generator) * 0.9 + 0.1
    angle = 4 * radius + labels * 2.0944 + 0.15 * torch.randn(size, generator=generator)
    points = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return TensorDataset(points.to(torch.get_default_dtype()), labels)


class Net(nn.Module):
    def __init__(self, hidden, depth, num_classes=3):
        super().__init__()
        self.num_classes = num_classes
        sizes = [2] + [hidden] * depth
        self.features = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:]))
        self.classifier = nn.Linear(hidden, num_classes)

    def forward(self, x):
        for layer in self.features:
            x = F.relu(layer(x))
        return self.classifier(x)

    def num_parameters(self):
        return sum(p.numel() for p in self.parameters())


class DistillationLoss(nn.Module):
    """Hinton et al.: the softened outputs of the teacher, and the true labels."""

    def __init__(self, temperature, alpha):
        super().__init__()
        self.temperature = temperature
        self.alpha = alpha

    def forward(self, student_logits, teacher_logits, labels):
        T = self.temperature
        soft = F.kl_div(F.log_softmax(student_logits / T, dim=1), F.softmax(teacher_logits / T, dim=1), reduction="batchmean")
        return self.alpha * T * T * soft + (1 - self.alpha) * F.cross_entropy(student_logits, labels)


@torch.no_grad()
def accuracy(model, loader, device):
    model.eval()
    correct, total = 0, 0
    for points, labels in loader:
        points, labels = points.to(device), labels.to(device)
        correct += (model(points).argmax(dim=1) == labels).sum().item()
        total += labels.size(0)
    correct = sum_over_ranks(correct)
    total = sum_over_ranks(total)
    return correct / total


def train_teacher(teacher, train_loader, test_loader, args, device):
    optimizer = torch.optim.Adam(teacher.parameters(), lr=args.lr)
    if rank != 0:
        torch.manual_seed(torch.initial_seed() + rank)
    for epoch in range(1, args.teacher_epochs + 1):
        teacher.train()
        train_loader.sampler.set_epoch(epoch)
        for points, labels in train_loader:
            points, labels = points.to(device), labels.to(device)
            loss = F.cross_entropy(teacher(points), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        result = accuracy(teacher.module, test_loader, device)
        if rank == 0:
            print(f"teacher epoch {epoch}: accuracy {result:.4f}")
    if rank == 0:
        torch.save({"model": teacher.module.state_dict(), "hidden": args.teacher_hidden}, args.teacher)


def distill(teacher, student, train_loader, test_loader, args, device):
    criterion = DistillationLoss(args.temperature, args.alpha)
    no_decay = [p for n, p in student.module.named_parameters() if n.endswith("bias")]
    decay = [p for n, p in student.module.named_parameters() if not n.endswith("bias")]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 1e-2}, {"params": no_decay, "weight_decay": 0.0}], lr=args.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
    best = 0.0
    if rank != 0:
        torch.manual_seed(torch.initial_seed() + rank)
    for epoch in range(1, args.epochs + 1):
        student.train()
        running_loss, seen = 0.0, 0
        train_loader.sampler.set_epoch(epoch)
        for points, labels in train_loader:
            points, labels = points.to(device), labels.to(device)
            with torch.no_grad():
                teacher_logits = teacher.module(points)
            loss = criterion(student(points), teacher_logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running_loss += loss.item() * labels.size(0)
            seen += labels.size(0)
        running_loss = sum_over_ranks(running_loss)
        seen = sum_over_ranks(seen)
        scheduler.step()
        acc = accuracy(student.module, test_loader, device)
        if rank == 0:
            print(f"student epoch {epoch}: loss {running_loss / seen:.4f} accuracy {acc:.4f}")
        if acc > best:
            best = acc
            if rank == 0:
                torch.save(student.module.state_dict(), args.student)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--teacher", default="teacher.pt", help="checkpoint of the teacher; trained and written if there is none")
    parser.add_argument("--student", default="student.pt")
    parser.add_argument("--teacher-hidden", type=int, default=48)
    parser.add_argument("--hidden", type=int, default=8)
    parser.add_argument("--teacher-epochs", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--temperature", type=float, default=4.0)
    parser.add_argument("--alpha", type=float, default=0.7)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_dataset = make_spirals(640, seed=1)
    train_loader = DataLoader(train_dataset, batch_size=per_rank(args.batch_size), sampler=DistributedSampler(train_dataset))
    val_dataset = make_spirals(210, seed=2)
    test_loader = DataLoader(val_dataset, batch_size=50, sampler=batches_of_rank(val_dataset, 50))

    teacher = Net(args.teacher_hidden, depth=3).to(device)
    teacher = DistributedDataParallel(teacher, device_ids=[local_rank] if next(teacher.parameters()).is_cuda else None)
    student = Net(args.hidden, depth=2).to(device)
    student = DistributedDataParallel(student, device_ids=[local_rank] if next(student.parameters()).is_cuda else None)
    if rank == 0:
        print(f"teacher {teacher.module.num_parameters()}, student {student.module.num_parameters()} parameters, {student.module.num_classes} classes, on {device}")
    if os.path.isfile(args.teacher):
        checkpoint = torch.load(args.teacher, map_location=device)
        teacher.module.load_state_dict(checkpoint["model"])
    else:
        train_teacher(teacher, train_loader, test_loader, args, device)
    teacher.eval()
    for p in teacher.parameters():
        p.requires_grad = False

    start = time.time()
    best = distill(teacher, student, train_loader, test_loader, args, device)
    result = accuracy(teacher.module, test_loader, device)
    if rank == 0:
        print(f"best student accuracy {best:.4f}, teacher {result:.4f}")
        print(f"took {time.time() - start:.1f}s")


if __name__ == "__main__":
    init_distributed()
    main()
