"""torchmetrics in a training loop: update, compute and reset, forward, and a collection."""
import torch
import torch.nn as nn
import torchmetrics
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score

NUM_CLASSES = 4
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def blobs(size, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, NUM_CLASSES, (size,), generator=g)
    x = torch.randn(size, 10, generator=g)
    x[torch.arange(size), y] += 2.0
    return TensorDataset(x, y)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, NUM_CLASSES))

    def forward(self, x):
        return self.body(x)


train_loader = DataLoader(blobs(64, 0), batch_size=8, shuffle=True)
val_loader = DataLoader(blobs(44, 1), batch_size=8)
model = Classifier().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
train_acc = torchmetrics.Accuracy(task="multiclass", num_classes=NUM_CLASSES).to(device)
metrics = torchmetrics.MetricCollection(
    {"acc": MulticlassAccuracy(num_classes=NUM_CLASSES), "f1": MulticlassF1Score(num_classes=NUM_CLASSES, average="macro")}
).to(device)
mean_loss = torchmetrics.MeanMetric().to(device)

best_f1 = 0.0
for epoch in range(3):
    model.train()
    for i, (inputs, targets) in enumerate(train_loader):
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        batch_acc = train_acc(outputs.softmax(dim=-1), targets)
        mean_loss.update(loss.detach())
        if i % 4 == 0:
            print(f"batch {i} accuracy {batch_acc:.3f}")
    epoch_acc = train_acc.compute()
    epoch_loss = mean_loss.compute()
    print(f"epoch {epoch} training accuracy {epoch_acc:.4f} loss {epoch_loss:.4f}")
    train_acc.reset()
    mean_loss.reset()

    model.eval()
    with torch.no_grad():
        for inputs, targets in val_loader:
            inputs, targets = inputs.to(device), targets.to(device)
            metrics.update(model(inputs), targets)
    results = metrics.compute()
    print(f"epoch {epoch} validation " + " ".join(f"{k} {v:.4f}" for k, v in results.items()))
    metrics.reset()
    if results["f1"] > best_f1:
        best_f1 = results["f1"]
        torch.save(model.state_dict(), "best.pt")
