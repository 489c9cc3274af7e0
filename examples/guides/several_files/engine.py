import torch
import torch.nn.functional as F


def train(model, loader, optimizer, device):
    model.train()
    for x, y in loader:
        loss = F.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    right = 0
    for x, y in loader:
        right += (model(x.to(device)).argmax(1) == y.to(device)).sum().item()
    return right / len(loader.dataset)
