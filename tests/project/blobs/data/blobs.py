import torch
from torch.utils.data import Dataset

__all__ = ["Blobs"]


class Blobs(Dataset):
    """Points around two centres."""

    def __init__(self, count=44):
        self.points = torch.sin(torch.arange(count * 8.0) ** 1.5).view(count, 8)
        self.labels = (self.points.sum(1) > 0).long()

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        return self.points[index], self.labels[index]
