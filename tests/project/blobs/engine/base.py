import os
from abc import ABC, abstractmethod

import torch

try:
    from torch.utils.tensorboard import SummaryWriter
except ImportError:
    SummaryWriter = None

from ..utils import Log, save_checkpoint


class BaseTrainer(ABC):
    def __init__(self, net, opt):
        self.opt, self.device = opt, opt.device
        self.net = net.to(self.device)
        self.optimizer = getattr(torch.optim, opt.optimizer)(self.net.parameters(), lr=opt.lr)
        self.best, self.seconds = 0.0, []
        os.makedirs(opt.out, exist_ok=True)
        self.log = Log(os.path.join(opt.out, "log.txt"))
        self.writer = SummaryWriter(opt.out) if SummaryWriter is not None else None

    @abstractmethod
    def train_epoch(self, epoch):
        raise NotImplementedError

    @abstractmethod
    def evaluate(self):
        raise NotImplementedError

    def fit(self):
        for epoch in range(self.opt.epochs):
            result = self.train_epoch(epoch)
            result.update(self.evaluate())
            self.log(f"epoch {epoch}: " + ", ".join(f"{key} {value:.4f}" for key, value in result.items()))
            if self.writer is not None:
                self.writer.add_scalar("loss", result["loss"], epoch)
            is_best = result["accuracy"] >= self.best
            self.best = max(self.best, result["accuracy"])
            save_checkpoint({"epoch": epoch, "net": self.net.state_dict(), "best": self.best}, is_best, self.opt.out)
