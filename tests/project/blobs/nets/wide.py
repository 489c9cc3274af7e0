import torch
import torch.nn as nn

from .registry import register

__all__ = ["Wide"]


@register("wide")
class Wide(nn.Module):
    def __init__(self, inputs, hidden=16, classes=2):
        super().__init__()
        self.classes = classes
        self.body = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, classes))

    def forward(self, x):
        shift = torch.ones(self.classes)
        if torch.cuda.is_available():
            shift = shift.cuda()
        return self.body(x) + shift
