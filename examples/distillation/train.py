"""Teach a small network what a large one knows: knowledge distillation with a temperature, one GPU."""
import argparse
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


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
    return correct / total


def train_teacher(teacher, train_loader, test_loader, args, device):
    optimizer = torch.optim.Adam(teacher.parameters(), lr=args.lr)
    for epoch in range(1, args.teacher_epochs + 1):
        teacher.train()
        for points, labels in train_loader:
            points, labels = points.to(device), labels.to(device)
            loss = F.cross_entropy(teacher(points), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"teacher epoch {epoch}: accuracy {accuracy(teacher, test_loader, device):.4f}")
    torch.save({"model": teacher.state_dict(), "hidden": args.teacher_hidden}, args.teacher)


def distill(teacher, student, train_loader, test_loader, args, device):
    criterion = DistillationLoss(args.temperature, args.alpha)
    no_decay = [p for n, p in student.named_parameters() if n.endswith("bias")]
    decay = [p for n, p in student.named_parameters() if not n.endswith("bias")]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 1e-2}, {"params": no_decay, "weight_decay": 0.0}], lr=args.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
    best = 0.0
    for epoch in range(1, args.epochs + 1):
        student.train()
        running_loss, seen = 0.0, 0
        for points, labels in train_loader:
            points, labels = points.to(device), labels.to(device)
            with torch.no_grad():
                teacher_logits = teacher(points)
            loss = criterion(student(points), teacher_logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running_loss += loss.item() * labels.size(0)
            seen += labels.size(0)
        scheduler.step()
        acc = accuracy(student, test_loader, device)
        print(f"student epoch {epoch}: loss {running_loss / seen:.4f} accuracy {acc:.4f}")
        if acc > best:
            best = acc
            torch.save(student.state_dict(), args.student)
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
    train_loader = DataLoader(make_spirals(640, seed=1), batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(make_spirals(210, seed=2), batch_size=50)

    teacher = Net(args.teacher_hidden, depth=3).to(device)
    student = Net(args.hidden, depth=2).to(device)
    print(f"teacher {teacher.num_parameters()}, student {student.num_parameters()} parameters, {student.num_classes} classes, on {device}")
    if os.path.isfile(args.teacher):
        checkpoint = torch.load(args.teacher, map_location=device)
        teacher.load_state_dict(checkpoint["model"])
    else:
        train_teacher(teacher, train_loader, test_loader, args, device)
    teacher.eval()
    for p in teacher.parameters():
        p.requires_grad = False

    start = time.time()
    best = distill(teacher, student, train_loader, test_loader, args, device)
    print(f"best student accuracy {best:.4f}, teacher {accuracy(teacher, test_loader, device):.4f}")
    print(f"took {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
