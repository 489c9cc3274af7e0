"""torchmetrics inside a class: a regression with several metrics, early stopping, and a plateau scheduler."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split
from torchmetrics import MeanAbsoluteError, MeanMetric, MetricCollection, R2Score


class EarlyStopping:
    def __init__(self, patience=2):
        self.patience, self.best, self.bad = patience, float("inf"), 0

    def __call__(self, value):
        if value < self.best:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


class Regression:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        x = torch.randn(80, 6)
        data = TensorDataset(x, x[:, :2].sum(1))
        train, val = random_split(data, [64, 16], generator=torch.Generator().manual_seed(0))
        self.train_loader = DataLoader(train, batch_size=8, shuffle=True)
        self.val_loader = DataLoader(val, batch_size=8)
        self.model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1)).to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, patience=1)
        self.loss_metric = MeanMetric().to(self.device)
        self.metrics = MetricCollection([MeanAbsoluteError(), R2Score()]).to(self.device)

    def train_one_epoch(self):
        self.model.train()
        for x, y in self.train_loader:
            x, y = x.to(self.device), y.to(self.device)
            loss = nn.functional.mse_loss(self.model(x).squeeze(1), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.loss_metric.update(loss.detach(), weight=x.size(0))
        value = self.loss_metric.compute().item()
        self.loss_metric.reset()
        return value

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        for x, y in self.val_loader:
            x, y = x.to(self.device), y.to(self.device)
            self.metrics.update(self.model(x).squeeze(1), y)
        values = {name: value.item() for name, value in self.metrics.compute().items()}
        self.metrics.reset()
        return values

    def fit(self, epochs):
        stop = EarlyStopping()
        for epoch in range(epochs):
            loss, values = self.train_one_epoch(), self.validate()
            self.scheduler.step(values["MeanAbsoluteError"])
            print(f"epoch {epoch} loss {loss:.4f} " + " ".join(f"{k} {v:.4f}" for k, v in values.items()))
            if stop(values["MeanAbsoluteError"]):
                break
        torch.save(self.model.state_dict(), "regression.pt")


if __name__ == "__main__":
    torch.manual_seed(0)
    Regression().fit(4)
