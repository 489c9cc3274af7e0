"""Train what the configuration asks for."""
import _paths  # noqa: F401
import torch

from blobs.data import build_loaders
from blobs.engine.trainer import Trainer
from blobs.nets import build_net
from blobs.options import TrainOptions


def main():
    opt = TrainOptions().parse()
    torch.manual_seed(opt.seed)
    loaders = build_loaders(opt)
    net = build_net(opt.net.type, **opt.net.args)
    trainer = Trainer(net, loaders, opt)
    trainer.fit()


if __name__ == "__main__":
    main()
