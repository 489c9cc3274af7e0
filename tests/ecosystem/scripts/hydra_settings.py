"""A hydra application with structured configs, instantiate, and an output folder of hydra's."""
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hydra
import torch
import torch.nn as nn
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.utils import instantiate
from omegaconf import MISSING, DictConfig, OmegaConf
from torch.utils.data import DataLoader, TensorDataset

log = logging.getLogger(__name__)


@dataclass
class ModelConfig:
    hidden: int = 16
    layers: int = 2


@dataclass
class DataConfig:
    size: int = 96
    batch_size: int = 8


@dataclass
class Config:
    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    optimizer: Any = field(default_factory=lambda: {"_target_": "torch.optim.SGD", "lr": 0.05, "momentum": 0.9})
    epochs: int = 2
    seed: int = 7


ConfigStore.instance().store(name="config", node=Config)


def build_model(cfg):
    layers, width = [], 6
    for _ in range(cfg.layers):
        layers += [nn.Linear(width, cfg.hidden), nn.ReLU()]
        width = cfg.hidden
    return nn.Sequential(*layers, nn.Linear(width, 3))


def loaders(cfg):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(cfg.size, 6, generator=g)
    y = (x.sum(1) > 0).long() + (x[:, 0] > 1).long()
    cut = int(0.75 * cfg.size)
    train = DataLoader(TensorDataset(x[:cut], y[:cut]), batch_size=cfg.batch_size, shuffle=True)
    return train, DataLoader(TensorDataset(x[cut:], y[cut:]), batch_size=cfg.batch_size)


@hydra.main(version_base=None, config_name="config")
def main(cfg: DictConfig) -> None:
    torch.manual_seed(cfg.seed)
    log.info(OmegaConf.to_yaml(cfg))
    out = Path(HydraConfig.get().runtime.output_dir)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = build_model(cfg.model).to(device)
    train_loader, val_loader = loaders(cfg.data)
    optimizer = instantiate(cfg.optimizer, params=model.parameters())
    criterion = nn.CrossEntropyLoss()
    for epoch in range(cfg.epochs):
        model.train()
        running = 0.0
        for x, y in train_loader:
            x, y = x.to(device), y.to(device)
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        model.eval()
        correct = 0
        with torch.no_grad():
            for x, y in val_loader:
                correct += (model(x.to(device)).argmax(1) == y.to(device)).sum().item()
        print(f"epoch {epoch} loss {running / len(train_loader):.4f} accuracy {correct / len(val_loader.dataset):.3f}")
    torch.save(model.state_dict(), out / "model.pt")


if __name__ == "__main__":
    main()
