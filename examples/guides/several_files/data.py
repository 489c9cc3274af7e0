import torch
from torch.utils.data import DataLoader, TensorDataset


def loaders(batch_size):
    x = torch.sin(torch.arange(5120.0) ** 1.5).view(640, 8)
    y = (x.sum(1) > 0).long()
    train = DataLoader(TensorDataset(x[:512], y[:512]), batch_size=batch_size, shuffle=True)
    test = DataLoader(TensorDataset(x[512:], y[512:]), batch_size=batch_size)
    return train, test
