"""torchmetrics: collections that are cloned for each phase, one of their metrics by its name, and totals over the data."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MetricCollection, SumMetric
from torchmetrics.classification import MulticlassAccuracy

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(128, 8)
y = x[:, :3].argmax(1)
train_loader = DataLoader(TensorDataset(x[:96], y[:96]), batch_size=8, shuffle=True)
val_loader = DataLoader(TensorDataset(x[96:], y[96:]), batch_size=4)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
metrics = MetricCollection({"acc": MulticlassAccuracy(3, average="micro")})
train_metrics = metrics.clone(prefix="train/").to(device)
val_metrics = metrics.clone(prefix="val/").to(device)
by_class = MetricCollection([MulticlassAccuracy(3)]).to(device)
seen = SumMetric().clone().to(device)

for epoch in range(2):
    model.train()
    for data, target in train_loader:
        data, target = data.to(device), target.to(device)
        out = model(data)
        loss = nn.functional.cross_entropy(out, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_metrics.update(out, target)
    print("train", {k: round(v.item(), 4) for k, v in train_metrics.compute().items()})
    train_metrics.reset()

    model.eval()
    with torch.no_grad():
        for data, target in val_loader:
            data, target = data.to(device), target.to(device)
            out = model(data)
            val_metrics.update(out, target)
            by_class["MulticlassAccuracy"].update(out, target)
            seen.update(len(target))
    print(f"val {val_metrics.compute()['val/acc'].item():.4f} of {seen.compute().item()}")
    print(f"by class {by_class['MulticlassAccuracy'].compute().item():.4f}")
    for metric in (val_metrics, by_class, seen):
        metric.reset()
torch.save(model.state_dict(), "model.pt")
