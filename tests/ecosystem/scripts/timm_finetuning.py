"""Fine-tune a vision transformer of timm: label smoothing, an average of the weights, checkpoints of the best epoch."""
import argparse
import time
from collections import OrderedDict

import timm
import torch
import torch.nn as nn
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import AverageMeter, ModelEmaV2, accuracy
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="test_vit")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--lr", type=float, default=1e-3)
parser.add_argument("--compile", action="store_true")
args = parser.parse_args()

NUM_CLASSES = 5


def fake_images(size, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, NUM_CLASSES, (size,), generator=g)
    x = torch.randn(size, 3, 160, 160, generator=g) + y.view(-1, 1, 1, 1).float() / 4
    return TensorDataset(x, y)


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, model_ema, device, scheduler):
    losses = AverageMeter()
    model.train()
    num_updates = epoch * len(loader)
    for batch_idx, (images, target) in enumerate(loader):
        images, target = images.to(device), target.to(device)
        with torch.autocast(device_type=device.type, dtype=torch.bfloat16, enabled=False):
            output = model(images)
            loss = loss_fn(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if model_ema is not None:
            model_ema.update(model)
        num_updates += 1
        scheduler.step_update(num_updates=num_updates, metric=losses.avg)
        losses.update(loss.item(), images.size(0))
    return OrderedDict([("loss", losses.avg)])


def validate(model, loader, loss_fn, device):
    losses, top1, top5 = AverageMeter(), AverageMeter(), AverageMeter()
    model.eval()
    with torch.no_grad():
        for images, target in loader:
            images, target = images.to(device), target.to(device)
            output = model(images)
            loss = loss_fn(output, target)
            acc1, acc5 = accuracy(output, target, topk=(1, 5))
            losses.update(loss.item(), images.size(0))
            top1.update(acc1.item(), images.size(0))
            top5.update(acc5.item(), images.size(0))
    return OrderedDict([("loss", losses.avg), ("top1", top1.avg), ("top5", top5.avg)])


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = timm.create_model(args.model, pretrained=False, num_classes=NUM_CLASSES)
    model.to(device)
    model_ema = ModelEmaV2(model, decay=0.99)
    if args.compile:
        model = torch.compile(model)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=args.lr, weight_decay=0.05)
    train_loss_fn = LabelSmoothingCrossEntropy().to(device)
    validate_loss_fn = nn.CrossEntropyLoss().to(device)
    loader_train = DataLoader(fake_images(64, 0), batch_size=args.batch_size, shuffle=True, drop_last=True)
    loader_eval = DataLoader(fake_images(32, 1), batch_size=args.batch_size)
    scheduler = CosineLRScheduler(optimizer, t_initial=args.epochs, lr_min=1e-5, warmup_t=1, warmup_lr_init=1e-4)

    best = None
    for epoch in range(args.epochs):
        start = time.time()
        train_metrics = train_one_epoch(epoch, model, loader_train, optimizer, train_loss_fn, model_ema, device, scheduler)
        eval_metrics = validate(model, loader_eval, validate_loss_fn, device)
        ema_metrics = validate(model_ema.module, loader_eval, validate_loss_fn, device)
        scheduler.step(epoch + 1, eval_metrics["top1"])
        print(f"epoch {epoch} train {train_metrics['loss']:.4f} top1 {eval_metrics['top1']:.2f} ema {ema_metrics['top1']:.2f} time {time.time() - start:.1f}")
        if best is None or eval_metrics["top1"] > best:
            best = eval_metrics["top1"]
            torch.save({"epoch": epoch, "state_dict": model.state_dict(), "ema": model_ema.module.state_dict()}, "best.pth")
    print(f"best top1 {best:.2f}")


if __name__ == "__main__":
    main()
