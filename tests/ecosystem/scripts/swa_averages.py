"""Stochastic weight averaging of torch, with update_bn, and a step scheduler."""
import torch
import torch.nn as nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(64, 10)
y = (x[:, :3].sum(1) > 0).long()
train_set, test_set = TensorDataset(x[:48], y[:48]), TensorDataset(x[48:], y[48:])
train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
test_loader = DataLoader(test_set, batch_size=8)

model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 2)).to(device)
swa_model = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
swa_scheduler = SWALR(optimizer, swa_lr=0.05)
swa_start = 2
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)


def evaluate(net, loader):
    net.eval()
    correct = 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            correct += net(data).argmax(1).eq(target).sum().item()
    return 100.0 * correct / len(loader.dataset)


for epoch in range(5):
    model.train()
    running = 0.0
    for data, target in train_loader:
        data, target = data.to(device, non_blocking=True), target.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(data), target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0, foreach=True)
        optimizer.step()
        running += loss.item() * data.size(0)
    if epoch > swa_start:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()
    print(f"epoch {epoch} loss {running / len(train_loader.dataset):.4f} accuracy {evaluate(model, test_loader):.2f}")

update_bn(train_loader, swa_model)
print(f"averaged accuracy {evaluate(swa_model, test_loader):.2f}")
torch.save(swa_model.module.state_dict(), "swa.pt")
