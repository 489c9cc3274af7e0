import torch

import blobs.losses as losses
from extras.meters import Meter

from ..data.feed import on_device
from .base import BaseTrainer
from .timing import timed


class Trainer(BaseTrainer):
    def __init__(self, net, loaders, opt):
        super().__init__(net, opt)
        self.loaders = loaders
        self.criterion = getattr(losses, opt.loss)()

    @timed
    def train_epoch(self, epoch):
        self.net.train()
        meter = Meter()
        for points, labels in on_device(self.loaders["train"], self.device):
            loss = self.criterion(self.net(points), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            meter.update(loss.item(), labels.size(0))
        return {"loss": meter.avg}

    @torch.no_grad()
    def evaluate(self):
        self.net.eval()
        right = 0
        for points, labels in on_device(self.loaders["val"], self.device):
            right += (self.net(points).argmax(1) == labels).sum().item()
        return {"accuracy": right / len(self.loaders["val"].dataset)}
