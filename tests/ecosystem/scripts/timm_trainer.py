"""A small trainer around a timm backbone with a head of its own: frozen stages first, two learning rates, NativeScaler, resume."""
import os
import time

import timm
import torch
import torch.nn as nn
from timm.layers import SelectAdaptivePool2d
from timm.utils import AverageMeter, NativeScaler, accuracy
from torch.utils.data import DataLoader, Dataset, random_split


class ToyImages(Dataset):
    def __init__(self, n=120, classes=4):
        g = torch.Generator().manual_seed(1)
        self.labels = torch.randint(0, classes, (n,), generator=g)
        self.images = torch.randn(n, 3, 32, 32, generator=g) + self.labels.view(-1, 1, 1, 1) * 0.3

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class FineTuned(nn.Module):
    def __init__(self, name, classes):
        super().__init__()
        self.backbone = timm.create_model(name, pretrained=False, num_classes=0, global_pool="")
        self.pool = SelectAdaptivePool2d(pool_type="avg", flatten=True)
        self.head = nn.Sequential(nn.LayerNorm(self.backbone.num_features), nn.Linear(self.backbone.num_features, classes))

    def forward(self, x):
        return self.head(self.pool(self.backbone.forward_features(x)))


class Trainer:
    def __init__(self, model, train_set, val_set, batch_size=8, epochs=2, work_dir="work"):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device)
        self.train_loader = DataLoader(train_set, batch_size=batch_size, shuffle=True, drop_last=True)
        self.val_loader = DataLoader(val_set, batch_size=batch_size * 2)
        backbone = [p for p in self.model.backbone.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(
            [{"params": backbone, "lr": 1e-4}, {"params": self.model.head.parameters(), "lr": 1e-3}], weight_decay=0.05
        )
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=[1e-4, 1e-3], epochs=epochs, steps_per_epoch=len(self.train_loader)
        )
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
        self.epochs, self.work_dir = epochs, work_dir
        self.start_epoch, self.best = 0, 0.0
        os.makedirs(work_dir, exist_ok=True)

    @property
    def last_path(self):
        return os.path.join(self.work_dir, "last.pth")

    def resume(self):
        if os.path.isfile(self.last_path):
            state = torch.load(self.last_path, map_location="cpu")
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.start_epoch = state["epoch"] + 1
            self.best = state["best"]

    def save(self, epoch, is_best):
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "epoch": epoch, "best": self.best}
        torch.save(state, self.last_path)
        if is_best:
            torch.save(state, os.path.join(self.work_dir, "best.pth"))

    def train_epoch(self, epoch):
        losses, top1, batch_time = AverageMeter(), AverageMeter(), AverageMeter()
        self.model.train()
        end = time.perf_counter()
        for step, (x, y) in enumerate(self.train_loader):
            x, y = x.to(self.device, non_blocking=True), y.to(self.device, non_blocking=True)
            logits = self.model(x)
            loss = self.criterion(logits, y)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            self.scheduler.step()
            (acc1,) = accuracy(logits, y, topk=(1,))
            losses.update(loss.item(), x.size(0))
            top1.update(acc1.item(), x.size(0))
            batch_time.update(time.perf_counter() - end)
            end = time.perf_counter()
        return losses.avg, top1.avg

    def validate(self):
        self.model.eval()
        losses, correct, seen = AverageMeter(), 0, 0
        with torch.no_grad():
            for x, y in self.val_loader:
                x, y = x.to(self.device), y.to(self.device)
                logits = self.model(x)
                losses.update(self.criterion(logits, y).item(), len(y))
                correct += (logits.argmax(1) == y).sum().item()
                seen += len(y)
        return losses.avg, 100.0 * correct / seen

    def fit(self):
        self.resume()
        for epoch in range(self.start_epoch, self.epochs):
            train_loss, train_acc = self.train_epoch(epoch)
            val_loss, val_acc = self.validate()
            is_best = val_acc > self.best
            self.best = max(self.best, val_acc)
            self.save(epoch, is_best)
            print(f"Epoch [{epoch + 1}/{self.epochs}] train {train_loss:.4f}/{train_acc:.1f} val {val_loss:.4f}/{val_acc:.1f} best {self.best:.1f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    data = ToyImages()
    train_set, val_set = random_split(data, [96, 24], generator=torch.Generator().manual_seed(5))
    model = FineTuned("resnet10t", 4)
    for name, p in model.backbone.named_parameters():
        if name.startswith(("conv1", "bn1", "layer1")):
            p.requires_grad_(False)
    Trainer(model, train_set, val_set).fit()
