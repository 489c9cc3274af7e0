"""Train one small network for an epoch, without any configuration; nobody converts this script."""
import types

import _paths  # noqa: F401
import torch

from blobs.data import build_loaders
from blobs.engine.trainer import Trainer
from blobs.nets import Wide

opt = types.SimpleNamespace(
    batch_size=6, workers=0, epochs=1, lr=0.05, optimizer="SGD", loss="cross_entropy", out="probe", gpu=0, device=torch.device("cpu")
)
torch.manual_seed(5)
trainer = Trainer(Wide(8), build_loaders(opt), opt)
trainer.fit()
print(*(f"{p.sum().item():.6f}" for p in trainer.net.parameters()))
