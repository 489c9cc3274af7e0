"""timm with a schedule for each update, ModelEmaV3, gradient accumulation and label smoothing, in functions of a script."""
import torch
import torch.nn as nn
import timm
import timm.optim
import timm.scheduler
from timm.utils import AverageMeter, ModelEmaV3, accuracy
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, BATCH, ACCUMULATE = 2, 8, 2


def data(size, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (size,), generator=g)
    return TensorDataset(torch.randn(size, 3, 32, 32, generator=g) + y.view(-1, 1, 1, 1) / 3, y)


def train(model, loader, optimizer, criterion, scheduler, ema, device, epoch):
    model.train()
    meter = AverageMeter()
    optimizer.zero_grad()
    updates = epoch * (len(loader) // ACCUMULATE)
    for i, (x, y) in enumerate(loader):
        x, y = x.to(device), y.to(device)
        loss = criterion(model(x), y)
        (loss / ACCUMULATE).backward()
        meter.update(loss.item(), x.size(0))
        if (i + 1) % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad()
            updates += 1
            ema.update(model, step=updates)
            scheduler.step_update(num_updates=updates)
    return meter.avg


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    top1 = AverageMeter()
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        (acc1,) = accuracy(model(x), y, topk=(1,))
        top1.update(acc1.item(), x.size(0))
    return top1.avg


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = timm.create_model("test_convnext", pretrained=False, num_classes=4).to(device)
    train_loader = DataLoader(data(64, 0), batch_size=BATCH, shuffle=True, drop_last=True)
    val_loader = DataLoader(data(24, 1), batch_size=BATCH)
    optimizer = timm.optim.create_optimizer_v2(model.parameters(), opt="sgd", lr=0.05, momentum=0.9, weight_decay=1e-4)
    scheduler, epochs = timm.scheduler.create_scheduler_v2(
        optimizer, sched="cosine", num_epochs=EPOCHS, warmup_epochs=0, step_on_epochs=False,
        updates_per_epoch=len(train_loader) // ACCUMULATE,
    )
    ema = ModelEmaV3(model, decay=0.9)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    for epoch in range(EPOCHS):
        loss = train(model, train_loader, optimizer, criterion, scheduler, ema, device, epoch)
        top1, ema_top1 = evaluate(model, val_loader, device), evaluate(ema.module, val_loader, device)
        scheduler.step(epoch + 1)
        print(f"epoch {epoch} loss {loss:.4f} top1 {top1:.2f} ema {ema_top1:.2f}")
    torch.save(ema.module.state_dict(), "ema.pt")


if __name__ == "__main__":
    main()
