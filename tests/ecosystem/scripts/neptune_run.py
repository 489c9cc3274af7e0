"""A regression whose run is kept by neptune, offline."""
import neptune
import torch
import torch.nn as nn
from neptune.utils import stringify_unsupported
from torch.utils.data import DataLoader, TensorDataset, random_split

run = neptune.init_run(project="common/shapes", mode="offline", name="regression", tags=["mlp"])

parameters = {"lr": 0.05, "bs": 8, "epochs": 3, "sizes": (16, 8), "device": "cuda" if torch.cuda.is_available() else "cpu"}
run["config/hyperparameters"] = stringify_unsupported(parameters)


class Net(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(5, sizes[0]), nn.ReLU(), nn.Linear(sizes[0], sizes[1]), nn.ReLU(), nn.Linear(sizes[1], 1))

    def forward(self, x):
        return self.main(x)


torch.manual_seed(5)
x = torch.randn(96, 5)
data = TensorDataset(x, torch.sin(x.sum(1, keepdim=True)))
train_data, val_data = random_split(data, [72, 24])
loaders = {
    "train": DataLoader(train_data, batch_size=parameters["bs"], shuffle=True),
    "val": DataLoader(val_data, batch_size=parameters["bs"]),
}
model = Net(parameters["sizes"]).to(parameters["device"])
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=parameters["lr"])
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5)
run["config/model"] = type(model).__name__

best = float("inf")
for epoch in range(parameters["epochs"]):
    for phase, loader in loaders.items():
        model.train(phase == "train")
        running = 0.0
        for x, y in loader:
            x, y = x.to(parameters["device"]), y.to(parameters["device"])
            with torch.set_grad_enabled(phase == "train"):
                loss = criterion(model(x), y)
            if phase == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                run["train/batch/loss"].append(loss.item())
            running += loss.item() * x.size(0)
        mean = running / len(loader.dataset)
        run[f"{phase}/epoch/loss"].append(mean)
        print(f"{epoch} {phase} {mean:.5f}")
    scheduler.step(mean)
    if mean < best:
        best = mean
        torch.save(model.state_dict(), "best.pt")

run["checkpoint"].upload("best.pt")
run["best"] = best
run.stop()
