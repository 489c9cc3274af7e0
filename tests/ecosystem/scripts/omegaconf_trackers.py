"""A run configured by omegaconf, logged by loguru, rich and tensorboardX."""
import random
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from loguru import logger
from omegaconf import OmegaConf
from rich.console import Console
from rich.progress import track
from tensorboardX import SummaryWriter
from torch.utils.data import DataLoader, TensorDataset

console = Console()
cfg = OmegaConf.create(
    {
        "seed": 3,
        "data": {"size": 64, "batch_size": 8},
        "model": {"hidden": 16},
        "optim": {"lr": 0.05, "epochs": 3, "clip": 1.0},
        "out": "runs",
    }
)


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = nn.Sequential(nn.Linear(6, cfg.model.hidden), nn.Tanh(), nn.Linear(cfg.model.hidden, 1)).to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=cfg.optim.lr)
        x = torch.randn(cfg.data.size, 6)
        self.loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=cfg.data.batch_size, shuffle=True)
        self.writer = SummaryWriter(logdir=str(Path(cfg.out) / "board"))
        self.step = 0

    def fit(self):
        best = float("inf")
        for epoch in range(self.cfg.optim.epochs):
            loss = self.epoch(epoch)
            logger.info("epoch {} loss {:.4f}", epoch, loss)
            self.writer.add_scalar("loss/epoch", loss, epoch)
            if loss < best:
                best = loss
                torch.save({"model": self.model.state_dict(), "cfg": OmegaConf.to_container(self.cfg)}, Path(self.cfg.out) / "best.pt")
        self.writer.close()
        return best

    def epoch(self, epoch):
        self.model.train()
        total = 0.0
        for x, y in track(self.loader, description=f"epoch {epoch}"):
            x, y = x.to(self.device), y.to(self.device)
            loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.optim.clip)
            self.optimizer.step()
            self.writer.add_scalar("loss/step", loss.item(), self.step)
            self.step += 1
            total += loss.item()
        return total / len(self.loader)


if __name__ == "__main__":
    seed_everything(cfg.seed)
    Path(cfg.out).mkdir(exist_ok=True)
    console.print(OmegaConf.to_yaml(cfg))
    best = Trainer(cfg).fit()
    console.print(f"best loss {best:.4f}")
