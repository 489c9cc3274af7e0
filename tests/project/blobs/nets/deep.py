import torch.nn as nn

from .registry import register

__all__ = ["Deep"]


@register("deep")
class Deep(nn.Module):
    classes = 2

    def __init__(self, inputs, hidden=8):
        super().__init__()
        layers = [nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, self.classes)]
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x)
