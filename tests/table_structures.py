"""Scripts that name what they build: by text, registry, factory or configuration, in modules of their own."""

import textwrap

from scripts import Script

from ddpify import Options

ROWS = """\
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

x = torch.sin(torch.arange(352.0) ** 1.5).view(44, 8)
y = (x.sum(1) > 0).long()


class Waves(Dataset):
    def __init__(self, part="train"):
        self.rows = x[:36] if part == "train" else x[36:]
        self.labels = y[:36] if part == "train" else y[36:]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], self.labels[i]
"""
NETS = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.tanh(self.inner(x))


class Narrow(nn.Module):
    def __init__(self, num_classes=2):
        super().__init__()
        self.head = nn.Linear(8, num_classes)

    def forward(self, x):
        return self.head(x)


class Wide(nn.Module):
    def __init__(self, num_classes=2, width=12):
        super().__init__()
        self.stem = nn.Linear(8, width)
        self.block = Block(width)
        self.head = nn.Linear(width, num_classes)

    def forward(self, x):
        return self.head(self.block(torch.tanh(self.stem(x))))


def deep(num_classes=2):
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, num_classes))


def test():
    print(Narrow()(torch.zeros(2, 8)).size())
"""
LOOP = """\
import torch
import torch.nn.functional as F


def train(model, loader, optimizer, criterion=F.cross_entropy):
    model.train()
    total = 0.0
    for rows, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(rows), labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * rows.size(0)
    print(f"loss {total / len(loader.dataset):.6f}")


def evaluate(model, loader):
    model.eval()
    hits = 0
    with torch.no_grad():
        for rows, labels in loader:
            hits += (model(rows).argmax(1) == labels).sum().item()
    print(f"hits {hits}")
"""
THREE = {"rows.py": ROWS, "nets.py": NETS, "loop.py": LOOP}
OF_AN_OPTION = """\
import torch.nn as nn
import torch.nn.functional as F


class get_model(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.out = nn.Linear(8, classes)

    def forward(self, rows):
        return self.out(rows)


class get_loss(nn.Module):
    def forward(self, out, labels):
        return F.cross_entropy(out, labels)
"""
OPTIONS = """
    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", default="Wide")
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
"""
FIT = """
    train_loader = DataLoader(Waves("train"), batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(Waves("test"), batch_size=args.batch_size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(args.epochs):
        train(model, train_loader, optimizer)
        evaluate(model, test_loader)
    torch.save(model.state_dict(), "last.pt")
"""
IMPORTS = """
    from loop import evaluate, train
    from rows import Waves
"""


def _built(how: str, above: str = "") -> str:
    """A script that builds its model in one of several ways."""
    parts = (IMPORTS, above, OPTIONS, how, FIT)
    return "\n".join(textwrap.dedent(part).strip("\n") for part in parts)


SAME = ("loss", "hits")
SCRIPTS: dict[str, Script] = {
    "outputs that are an object of the project's own": Script(
        """
        class Guess:
            def __init__(self, scores, loss):
                self.scores, self.loss = scores, loss


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(8, 2)

            def forward(self, rows, kinds):
                scores = self.head(rows)
                return Guess(scores, F.cross_entropy(scores, kinds))


        net = Net()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(2):
            hits, total = 0, 0.0
            for rows, kinds in feed:
                guess = net(rows, kinds)
                sgd.zero_grad()
                guess.loss.backward()
                sgd.step()
                hits += (guess.scores.argmax(1) == kinds).sum().item()
                total += guess.loss.item() * len(kinds)
            print("epoch", epoch, hits / len(x), f"{total / len(x):.6f}")
        """,
        same=("epoch",),
    ),
    "layers of a network by their names, and what some of them give": Script(
        """
        from collections import OrderedDict


        class Base(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.act, self.last = nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 4)

            def forward(self, rows):
                return self.last(self.act(self.first(rows)))


        class Steps(nn.ModuleDict):
            def __init__(self, net, wanted):
                layers = OrderedDict()
                for name, layer in net.named_children():
                    layers[name] = layer
                super().__init__(layers)
                self.wanted = wanted

            def forward(self, rows):
                out = OrderedDict()
                for name, layer in self.named_children():
                    rows = layer(rows)
                    if name in self.wanted:
                        out[self.wanted[name]] = rows
                return out


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.steps = Steps(Base(), {"first": "low", "last": "high"})
                self.head = nn.Linear(10, 2)

            def forward(self, rows):
                found = self.steps(rows)
                return self.head(torch.cat([found["low"], found["high"]], dim=1))


        net = Net()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        focal = nn.CrossEntropyLoss(reduction="none")
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(2):
            for rows, kinds in feed:
                each = focal(net(rows), kinds)
                loss = ((1 - torch.exp(-each)) ** 2 * each).mean()
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """
    ),
    "critics at several scales, each with its features and a score": Script(
        """
        class Critic(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(width, 8), nn.Linear(8, 1)])

            def forward(self, rows):
                seen = []
                for layer in self.layers:
                    rows = torch.tanh(layer(rows))
                    seen.append(rows)
                return seen[:-1], seen[-1]


        class Critics(nn.Module):
            def __init__(self):
                super().__init__()
                self.critics = nn.ModuleList([Critic(8), Critic(4)])

            def forward(self, rows):
                found = list()
                for critic in self.critics:
                    found.append(critic(rows))
                    rows = F.avg_pool1d(rows.unsqueeze(1), 2).squeeze(1)
                return found


        maker, critics = nn.Linear(8, 8), Critics()
        steps = torch.optim.SGD(maker.parameters(), lr=0.1), torch.optim.SGD(critics.parameters(), lr=0.1)
        feed = DataLoader(TensorDataset(x), batch_size=4, shuffle=True, drop_last=True)
        for epoch in range(2):
            for (rows,) in feed:
                made = maker(rows)
                steps[0].zero_grad()
                loss = 0.0
                for (features, score), (real_features, _) in zip(critics(made), critics(rows)):
                    loss += torch.mean(torch.sum((score - 1) ** 2, dim=1))
                    for one, other in zip(features, real_features):
                        loss += 0.1 * torch.mean(torch.abs(one - other))
                loss.backward()
                steps[0].step()

                steps[1].zero_grad()
                loss = 0.0
                for (_, score), (_, real) in zip(critics(made.detach()), critics(rows)):
                    loss += torch.mean((real - 1) ** 2) + torch.mean(score**2)
                loss.backward()
                steps[1].step()
        """
    ),
    **{
        f"a network of the module that {how} names": Script(
            f"""
        import importlib

        parser = argparse.ArgumentParser()
        parser.add_argument("--kind", default="plain")
        args = parser.parse_args()
        place = {place}
        net = getattr(importlib.import_module(place), "Scorer")(8)
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                sgd.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                sgd.step()
            """,
            files={
                **dict.fromkeys(("kinds/__init__.py", "kinds/plain/__init__.py", "kinds/deep/__init__.py"), ""),
                "kinds/plain/net.py": "import torch.nn as nn\n\n\nclass Scorer(nn.Linear):\n"
                "    def __init__(self, width):\n        super().__init__(width, 2)\n",
                "kinds/deep/net.py": "import torch.nn as nn\n\n\nclass Scorer(nn.Module):\n"
                "    def __init__(self, width):\n        super().__init__()\n"
                "        self.layers = nn.Sequential(nn.Linear(width, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))\n\n"
                "    def forward(self, rows):\n        return self.layers(rows)\n",
            },
        )
        for how, place in (("a form", '"kinds.{}.net".format(args.kind)'), ("a percent form", '"kinds.%s.net" % args.kind'))
    },
    # --- layers by names that are put together ---------------------------------------------------------------------------
    "layers set by numbered names": Script(
        """
        class Stack(nn.Module):
            def __init__(self, widths, cells):
                super().__init__()
                self.depth = len(widths)
                for i, (width, cell) in enumerate(zip(widths, cells), 1):
                    setattr(self, "stage" + str(i), nn.Linear(*width))
                    setattr(self, f"cell{i}", cell)

            def step(self, rows, stage, cell):
                return cell(torch.tanh(stage(rows)), gain=0.5)

            def forward(self, rows):
                for i in range(1, self.depth):
                    rows = self.step(rows, getattr(self, "stage" + str(i)), getattr(self, "cell%d" % i))
                return self.step(rows, self.stage2, getattr(self, "cell2"))


        class Cell(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.scale = nn.Linear(width, width)

            def forward(self, rows, gain=1.0):
                return rows + gain * self.scale(rows)


        class Scorer(nn.Module):
            def __init__(self, stack):
                super().__init__()
                self.stack = stack

            def forward(self, rows):
                return self.stack(rows)


        widths = [(8, 12), (12, 2)]
        net = Scorer(Stack(widths, [Cell(after) for before, after in widths]))
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                sgd.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                sgd.step()
        """
    ),
    "layers added by numbered names": Script(
        """
        class Dense(nn.Module):
            def __init__(self, depth):
                super().__init__()
                self.depth = depth
                for i in range(depth):
                    self.add_module("layer{}".format(i), nn.Linear(8 + 2 * i, 2))

            def forward(self, rows):
                for i in range(self.depth):
                    rows = torch.cat([rows, torch.tanh(getattr(self, "layer{}".format(i))(rows))], 1)
                return rows[:, -2:]


        net = Dense(int(os.environ.get("DEPTH", 3)))
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                sgd.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                sgd.step()
        """
    ),
    "a class by its name in a module": Script(_built("model = getattr(nets, args.arch)(num_classes=2)", "import nets"), SAME, files=THREE),
    "a class by its name in a package's namespace": Script(
        _built("model = zoo.__dict__[args.arch](num_classes=2)", "import zoo"),
        SAME,
        files={
            **THREE,
            "zoo/__init__.py": "from .nets import *\nfrom .more import Other\n",
            "zoo/nets.py": NETS,
            "zoo/more.py": "from torch import nn\n\n\nclass Other(nn.Linear):\n    def __init__(self, num_classes):\n"
            "        super().__init__(8, num_classes)\n",
        },
    ),
    "a class by its name among the globals": Script(
        _built('model = globals()[args.arch](num_classes=2)\nprint("arch", args.arch)', "from nets import *"), SAME, files=THREE
    ),
    "an evaluated name": Script(_built("model = eval(args.arch)()", "from nets import Narrow, Wide, deep"), SAME, files=THREE),
    "an evaluated call": Script(_built('model = eval("nets." + args.arch + "(num_classes=2)")', "import nets"), SAME, files=THREE),
    "a dictionary of constructors": Script(
        _built(
            "model = KINDS[args.arch](num_classes=2)",
            "from nets import Narrow, Wide, deep\n\n"
            'KINDS = {"Narrow": Narrow, "Wide": Wide, "deep": deep, "half": lambda num_classes: Wide(num_classes, width=6)}',
        ),
        SAME,
        files=THREE,
    ),
    "a chain of names": Script(
        _built("model = factory.build(args.arch, 2)", "import factory"),
        SAME,
        files={
            **THREE,
            "factory.py": """\
from nets import Narrow, Wide, deep


def build(name, classes):
    if name == "Narrow":
        return Narrow(classes)
    elif name == "Wide":
        net = Wide(classes, width=10)
    elif name.startswith("deep"):
        net = deep(classes)
    else:
        raise ValueError(name)
    return net
""",
        },
    ),
    "a registry that a decorator fills": Script(
        _built('model = create(args.arch, {"num_classes": 2})', "from zoo import create"),
        SAME,
        files={
            **THREE,
            "zoo/__init__.py": "from .registry import create\nfrom . import small, large\n",
            "zoo/registry.py": """\
_FOUND = {}


def register(name=None):
    def keep(made):
        _FOUND[name or made.__name__] = made
        return made

    return keep


def create(name, settings):
    if name not in _FOUND:
        raise KeyError(f"{name} is none of {sorted(_FOUND)}")
    return _FOUND[name](**settings)
""",
            "zoo/small.py": """\
from torch import nn

from .registry import register


@register("Narrow")
class Narrow(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.head = nn.Linear(8, num_classes)

    def forward(self, x):
        return self.head(x)


@register("Line")
def line(num_classes):
    return nn.Linear(8, num_classes)
""",
            "zoo/large.py": """\
import torch
from torch import nn

from .registry import register


@register()
class Wide(nn.Module):
    def __init__(self, num_classes, width=10):
        super().__init__()
        self.stem = nn.Linear(8, width)
        self.head = nn.Linear(width, num_classes)

    def forward(self, x):
        return self.head(torch.relu(self.stem(x)))
""",
        },
    ),
    "a registry that is a class": Script(
        _built('model = MODELS.build({"type": args.arch, "num_classes": 2})', "import parts\nfrom registry import MODELS"),
        SAME,
        files={
            **THREE,
            "registry.py": """\
class Registry:
    def __init__(self, name):
        self.name = name
        self._module_dict = {}

    def get(self, key):
        return self._module_dict.get(key, None)

    def register_module(self, name=None):
        def _register(cls):
            self._module_dict[name if name is not None else cls.__name__] = cls
            return cls

        return _register

    def build(self, cfg, **more):
        settings = dict(cfg)
        cls = self.get(settings.pop("type"))
        return cls(**settings, **more)


MODELS = Registry("models")
LOSSES = Registry("losses")
""",
            "parts.py": """\
import torch
from torch import nn

from registry import LOSSES, MODELS


@MODELS.register_module()
class Narrow(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.head = nn.Linear(8, num_classes)

    def forward(self, x):
        return self.head(x)


@MODELS.register_module(name="Wide")
class WideNet(Narrow):
    def __init__(self, num_classes, width=8):
        super().__init__(num_classes)
        self.stem = nn.Linear(8, width)

    def forward(self, x):
        return self.head(torch.tanh(self.stem(x)))


@LOSSES.register_module()
class Focal(nn.Module):
    def forward(self, a, b):
        return ((a - b) ** 2).mean()
""",
        },
    ),
    "a module and a class by name, found in its namespace": Script(
        """
    from options import TrainOptions
    from models import create_model
    from rows import Waves

    opt = TrainOptions().parse()
    loader = DataLoader(Waves(), batch_size=opt.batch_size, shuffle=True, num_workers=int(opt.workers))
    model = create_model(opt)
    for epoch in range(opt.epochs):
        total = 0.0
        for rows, labels in loader:
            model.set_input(rows, labels)
            model.optimize_parameters()
            total += model.loss.item() * len(rows)
        print(f"loss {total / len(loader.dataset):.6f}")
    model.save("net.pt")
""",
        ("loss",),
        files={
            "rows.py": ROWS,
            "options.py": """\
import argparse


class BaseOptions:
    def initialize(self, parser):
        parser.add_argument("--model", default="two_layer")
        parser.add_argument("--batch_size", type=int, default=6)
        parser.add_argument("--workers", default=0)
        self.initialized = True
        return parser

    def parse(self):
        parser = self.initialize(argparse.ArgumentParser())
        opt, _ = parser.parse_known_args()
        opt.is_train = self.is_train
        self.opt = opt
        return self.opt


class TrainOptions(BaseOptions):
    def initialize(self, parser):
        parser = BaseOptions.initialize(self, parser)
        parser.add_argument("--epochs", type=int, default=3)
        parser.add_argument("--rate", type=float, default=0.1)
        self.is_train = True
        return parser


class TestOptions(BaseOptions):
    def initialize(self, parser):
        parser = super().initialize(parser)
        parser.add_argument("--results", default="results")
        self.is_train = False
        return parser
""",
            "models/__init__.py": """\
import importlib

from models.base_model import BaseModel


def find_model_using_name(model_name):
    model_filename = "models." + model_name + "_model"
    modellib = importlib.import_module(model_filename)
    model = None
    target = model_name.replace("_", "") + "model"
    for name, cls in modellib.__dict__.items():
        if name.lower() == target.lower() and issubclass(cls, BaseModel):
            model = cls
    if model is None:
        print("In %s.py, there should be a subclass of BaseModel" % model_filename)
        exit(0)
    return model


def create_model(opt):
    model = find_model_using_name(opt.model)
    instance = model(opt)
    print("model [%s] was created" % type(instance).__name__)
    return instance
""",
            "models/base_model.py": """\
from abc import ABC, abstractmethod

import torch


class BaseModel(ABC):
    def __init__(self, opt):
        self.opt = opt

    @abstractmethod
    def forward(self):
        pass

    def set_input(self, rows, labels):
        self.rows, self.labels = rows, labels

    def optimize_parameters(self):
        self.forward()
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()

    def save(self, path):
        torch.save(self.net.state_dict(), path)
""",
            "models/two_layer_model.py": """\
import torch
from torch import nn

from .base_model import BaseModel


class TwoLayerModel(BaseModel):
    def __init__(self, opt):
        BaseModel.__init__(self, opt)
        self.net = nn.Sequential(nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 2))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=opt.rate)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self):
        self.loss = self.criterion(self.net(self.rows), self.labels)
""",
        },
    ),
    "a template's config parser": Script(
        """
    import json

    import losses as module_loss
    import nets as module_arch
    import sources as module_data
    from parse_config import ConfigParser
    from trainer import Trainer


    def main(config):
        data_loader = config.init_obj("data_loader", module_data)
        valid_loader = data_loader.split_validation()
        model = config.init_obj("arch", module_arch)
        criterion = getattr(module_loss, config["loss"])
        params = filter(lambda p: p.requires_grad, model.parameters())
        optimizer = config.init_obj("optimizer", torch.optim, params)
        scheduler = config.init_obj("lr_scheduler", torch.optim.lr_scheduler, optimizer)
        trainer = Trainer(model, criterion, optimizer, config=config, data_loader=data_loader, valid_loader=valid_loader,
                          lr_scheduler=scheduler)
        trainer.train()


    if __name__ == "__main__":
        parser = argparse.ArgumentParser()
        parser.add_argument("-c", "--config", default="config.json")
        main(ConfigParser.from_args(parser))
""",
        ("loss", "hits"),
        files={
            "rows.py": ROWS,
            "nets.py": NETS,
            "config.json": """{
    "arch": {"type": "Wide", "args": {"num_classes": 2}},
    "data_loader": {"type": "WavesLoader", "args": {"batch_size": 6, "shuffle": true, "num_workers": 0}},
    "optimizer": {"type": "SGD", "args": {"lr": 0.1}},
    "lr_scheduler": {"type": "StepLR", "args": {"step_size": 1, "gamma": 0.9}},
    "loss": "nll",
    "trainer": {"epochs": 3}
}
""",
            "losses.py": "import torch.nn.functional as F\n\n\ndef nll(output, target):\n    return F.cross_entropy(output, target)\n",
            "parse_config.py": """\
import json


class ConfigParser:
    def __init__(self, config):
        self._config = config

    @classmethod
    def from_args(cls, parser):
        args = parser.parse_args()
        with open(args.config) as handle:
            config = json.load(handle)
        return cls(config)

    def init_obj(self, name, module, *args, **kwargs):
        module_name = self[name]["type"]
        module_args = dict(self[name]["args"])
        assert all(k not in module_args for k in kwargs), "overwriting kwargs given in config file is not allowed"
        module_args.update(kwargs)
        return getattr(module, module_name)(*args, **module_args)

    def __getitem__(self, name):
        return self.config[name]

    @property
    def config(self):
        return self._config
""",
            "sources.py": """\
from base_loader import BaseLoader
from rows import Waves


class WavesLoader(BaseLoader):
    def __init__(self, batch_size, shuffle=True, num_workers=0, training=True):
        self.dataset = Waves("train")
        super().__init__(self.dataset, batch_size, shuffle, num_workers)
""",
            "base_loader.py": """\
from torch.utils.data import DataLoader

from rows import Waves


class BaseLoader(DataLoader):
    def __init__(self, dataset, batch_size, shuffle, num_workers):
        self.settings = {"dataset": dataset, "batch_size": batch_size, "shuffle": shuffle, "num_workers": num_workers}
        super().__init__(**self.settings)

    def split_validation(self):
        return DataLoader(Waves("test"), batch_size=4)
""",
            "base_trainer.py": """\
from abc import abstractmethod


class BaseTrainer:
    def __init__(self, model, criterion, optimizer, config):
        self.config = config
        self.model = model
        self.criterion = criterion
        self.optimizer = optimizer
        self.epochs = config["trainer"]["epochs"]

    @abstractmethod
    def _train_epoch(self, epoch):
        raise NotImplementedError

    def train(self):
        for epoch in range(1, self.epochs + 1):
            log = {"epoch": epoch}
            log.update(self._train_epoch(epoch))
            for key, value in log.items():
                print(f"{key} {value:.6f}")
""",
            "trainer.py": """\
import torch

from base_trainer import BaseTrainer


class Trainer(BaseTrainer):
    def __init__(self, model, criterion, optimizer, config, data_loader, valid_loader=None, lr_scheduler=None):
        super().__init__(model, criterion, optimizer, config)
        self.data_loader = data_loader
        self.valid_loader = valid_loader
        self.lr_scheduler = lr_scheduler

    def _train_epoch(self, epoch):
        self.model.train()
        total = 0.0
        for batch_idx, (data, target) in enumerate(self.data_loader):
            self.optimizer.zero_grad()
            output = self.model(data)
            loss = self.criterion(output, target)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        log = {"loss": total / len(self.data_loader)}
        if self.valid_loader is not None:
            log.update(**self._valid_epoch(epoch))
        self.lr_scheduler.step()
        return log

    def _valid_epoch(self, epoch):
        self.model.eval()
        hits = 0
        with torch.no_grad():
            for data, target in self.valid_loader:
                hits += (self.model(data).argmax(1) == target).sum().item()
        return {"hits": hits}
""",
        },
    ),
    "a function that times another": Script(
        """
    from clock import timed
    from rows import Waves


    @timed
    def train(model, loader, optimizer):
        total = 0.0
        for rows, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(rows), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        return total / len(loader.dataset)


    @timed
    @torch.no_grad()
    def evaluate(model, loader):
        return sum((model(rows).argmax(1) == labels).sum().item() for rows, labels in loader)


    @timed
    def main():
        train_loader = DataLoader(Waves(), batch_size=6, shuffle=True)
        test_loader = DataLoader(Waves("test"), batch_size=4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            print(f"loss {train(model, train_loader, optimizer):.6f}")
            print(f"hits {evaluate(model, test_loader)}")
        torch.save(model.state_dict(), "last.pt")


    if __name__ == "__main__":
        main()
""",
        SAME,
        files={
            "rows.py": ROWS,
            "clock.py": """\
import functools
import time


def timed(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        start = time.perf_counter()
        result = function(*args, **kwargs)
        print(f"{function.__name__} took {time.perf_counter() - start:.1f} s")
        return result

    return wrapper
""",
        },
    ),
    "steps through a generator that never ends": Script(
        """
    from batches import Ahead, infinite
    from rows import Waves

    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
    test = DataLoader(Waves("test"), batch_size=4)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    stream = infinite(loader)
    for step in range(18):
        rows, labels = next(stream)
        loss = F.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        hits = sum((model(rows).argmax(1) == labels).sum().item() for rows, labels in Ahead(test))
    print(f"hits {hits}")
""",
        ("hits",),
        files={
            "rows.py": ROWS,
            "batches.py": """\
def infinite(loader):
    while True:
        yield from loader


class Ahead:
    def __init__(self, loader):
        self.loader = loader

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        self.source = iter(self.loader)
        self.fetch()
        return self

    def fetch(self):
        try:
            self.coming = next(self.source)
        except StopIteration:
            self.coming = None

    def __next__(self):
        batch = self.coming
        if batch is None:
            raise StopIteration
        self.fetch()
        return batch
""",
        },
    ),
    "a prefetcher that trains": Script(
        """
    from batches import Ahead
    from rows import Waves

    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        ahead = Ahead(loader)
        rows, labels = ahead.following()
        total = 0.0
        while rows is not None:
            loss = F.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            rows, labels = ahead.following()
        print(f"loss {total / len(loader):.6f}")
""",
        ("loss",),
        files={
            "rows.py": ROWS,
            "batches.py": """\
class Ahead:
    def __init__(self, loader):
        self.source = iter(loader)
        self.load()

    def load(self):
        try:
            self.rows, self.labels = next(self.source)
        except StopIteration:
            self.rows = self.labels = None

    def following(self):
        rows, labels = self.rows, self.labels
        if rows is not None:
            self.load()
        return rows, labels
""",
        },
    ),
    "partial models, losses and layers": Script(
        """
    from functools import partial

    from nets import Wide
    from rows import Waves

    make_net = partial(Wide, num_classes=2, width=6)
    make_optimizer = partial(torch.optim.SGD, lr=0.1, momentum=0.5)
    criterion = partial(F.cross_entropy, label_smoothing=0.1)
    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
    model = make_net()
    optimizer = make_optimizer(model.parameters())
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            criterion(model(rows), labels).backward()
            optimizer.step()
    torch.save(model.state_dict(), "last.pt")
""",
        files=THREE,
    ),
    "a partial loss that sums": Script(
        """
    from functools import partial

    from loop import train
    from nets import Wide
    from rows import Waves

    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
    model = Wide()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(3):
        train(model, loader, optimizer, partial(F.cross_entropy, reduction="sum"))
""",
        files=THREE,
    ),
    "a partial collate function": Script(
        """
    from functools import partial

    from nets import Narrow
    from rows import Waves


    def stack(batch, scale):
        return torch.stack([row for row, _ in batch]) * scale, torch.stack([label for _, label in batch])


    loader = DataLoader(Waves(), batch_size=6, shuffle=True, collate_fn=partial(stack, scale=0.5))
    model = Narrow()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
""",
        files=THREE,
    ),
    "a dictionary of functions": Script(
        """
    import jobs
    from nets import Narrow
    from rows import Waves

    JOBS = {"train": jobs.train, "test": jobs.test}
    loaders = {name: DataLoader(Waves(name), batch_size=6, shuffle=name == "train") for name in ("train", "test")}
    model = Narrow()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for name in ("train", "test"):
            JOBS[name](model, loaders[name], optimizer)
""",
        SAME,
        files={
            **THREE,
            "jobs.py": """\
import loop


def train(model, loader, optimizer):
    loop.train(model, loader, optimizer)


def test(model, loader, optimizer):
    loop.evaluate(model, loader)
""",
        },
    ),
    "settings that are added to the arguments": Script(
        """
    import yaml

    from loop import train
    from nets import Wide
    from rows import Waves
    from settings import args

    with open("settings.yaml") as handle:
        for name, value in yaml.safe_load(handle).items():
            setattr(args, name, value)
    args.__dict__.update({"rate": 0.1})
    vars(args).update(epochs=3)
    args.half = args.batch_size // 2
    loader = DataLoader(Waves(), batch_size=args.batch_size, shuffle=True)
    model = Wide(width=args.width)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.rate)
    for epoch in range(args.epochs):
        train(model, loader, optimizer)
    print("half", args.half)
""",
        ("loss", "half"),
        files={
            **THREE,
            "settings.yaml": "batch_size: 6\nwidth: 5\n",
            "settings.py": "import argparse\n\nparser = argparse.ArgumentParser()\n"
            'parser.add_argument("--batch_size", type=int, default=2)\nargs = parser.parse_args()\n',
        },
    ),
    "a nested configuration in yaml": Script(
        """
    import yaml

    import nets
    from loop import evaluate, train
    from rows import Waves

    with open("config.yaml") as handle:
        cfg = yaml.safe_load(handle)
    size = cfg["train"]["batch_size"]
    loader = DataLoader(Waves(), batch_size=size, shuffle=True, num_workers=cfg["train"].get("workers", 0))
    test = DataLoader(Waves("test"), batch_size=cfg["test"]["batch_size"])
    model = getattr(nets, cfg["model"]["name"])(**cfg["model"]["args"])
    device = torch.device(cfg["device"])
    model.to(device)
    optimizer = getattr(torch.optim, cfg["train"]["optimizer"])(model.parameters(), **cfg["train"]["optimizer_args"])
    for epoch in range(cfg["train"]["epochs"]):
        total = 0.0
        for rows, labels in loader:
            rows = rows.to(device) + 0.01 * torch.ones(size, 8)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(rows), labels.to(device), reduction="sum") / size
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"loss {total / len(loader):.6f}")
        evaluate(model, test)
""",
        ("loss", "hits"),
        files={
            **THREE,
            "config.yaml": "device: cpu\ntrain: {batch_size: 6, workers: 0, epochs: 3, optimizer: SGD, optimizer_args: {lr: 0.1}}\n"
            "test: {batch_size: 4}\nmodel: {name: Wide, args: {num_classes: 2}}\n",
        },
    ),
    "a configuration read with omegaconf": Script(
        """
    from omegaconf import OmegaConf

    from loop import train
    from nets import Narrow, Wide
    from rows import Waves

    cfg = OmegaConf.merge(OmegaConf.load("base.yaml"), OmegaConf.create({"epochs": 3}))
    loader = DataLoader(Waves(), batch_size=cfg.loader.batch_size, shuffle=True, num_workers=cfg.loader.workers)
    model = {"narrow": Narrow, "wide": Wide}[cfg.model]()
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.rate)
    for epoch in range(cfg.epochs):
        train(model, loader, optimizer)
    if cfg.get("save", True):
        torch.save({"model": model.state_dict(), "cfg": OmegaConf.to_container(cfg)}, "last.pt")
""",
        ("loss",),
        files={**THREE, "base.yaml": "loader: {batch_size: 6, workers: 0}\nmodel: wide\nrate: 0.1\n"},
    ),
    "a function that hydra calls": Script(
        """
    import hydra
    from hydra.utils import instantiate
    from omegaconf import DictConfig, OmegaConf

    from loop import evaluate, train
    from rows import Waves


    @hydra.main(version_base=None, config_path="conf", config_name="config")
    def main(cfg: DictConfig) -> None:
        print(OmegaConf.to_yaml(cfg))
        loader = DataLoader(Waves(), batch_size=cfg.train.batch_size, shuffle=True)
        test = DataLoader(Waves("test"), batch_size=cfg.train.batch_size)
        model = instantiate(cfg.model)
        optimizer = torch.optim.SGD(model.parameters(), lr=cfg.train.rate)
        for epoch in range(cfg.train.epochs):
            train(model, loader, optimizer)
            evaluate(model, test)


    if __name__ == "__main__":
        main()
""",
        SAME,
        files={
            **THREE,
            "conf/config.yaml": "defaults:\n  - model: wide\n  - _self_\n  - override hydra/job_logging: none\n"
            "train: {batch_size: 6, rate: 0.1, epochs: 3}\nhydra:\n  output_subdir: null\n  run:\n    dir: .\n",
            "conf/model/wide.yaml": "_target_: nets.Wide\nnum_classes: 2\n",
            "conf/model/narrow.yaml": "_target_: nets.Narrow\n",
        },
    ),
    "targets that settings in code name": Script(
        """
    from dataclasses import dataclass, field
    from typing import Any

    from hydra.utils import instantiate
    from omegaconf import OmegaConf

    from loop import evaluate, train
    from rows import Waves


    @dataclass
    class Net:
        _target_: str = "nets.Wide"
        num_classes: int = 2


    @dataclass
    class Settings:
        net: Net = field(default_factory=Net)
        steps: Any = field(default_factory=lambda: {"_target_": "torch.optim.SGD", "lr": 0.1, "momentum": 0.5})
        batch_size: int = 6


    def main(cfg):
        model = instantiate(cfg.net)
        optimizer = instantiate(cfg.steps, params=model.parameters())
        loader = DataLoader(Waves(), batch_size=cfg.batch_size, shuffle=True)
        for epoch in range(3):
            train(model, loader, optimizer)
        evaluate(model, DataLoader(Waves("test"), batch_size=cfg.batch_size))


    main(OmegaConf.structured(Settings))
""",
        SAME,
        files=THREE,
    ),
    "flags of absl": Script(
        """
    from absl import app, flags

    from loop import evaluate, train
    from nets import Wide
    from rows import Waves

    FLAGS = flags.FLAGS
    flags.DEFINE_integer("batch_size", 6, "samples a step")
    flags.DEFINE_float("rate", 0.1, "learning rate")
    EPOCHS = flags.DEFINE_integer("epochs", 3, "passes")


    def main(argv):
        del argv
        loader = DataLoader(Waves(), batch_size=FLAGS.batch_size, shuffle=True)
        model = Wide()
        optimizer = torch.optim.SGD(model.parameters(), lr=FLAGS.rate)
        for epoch in range(EPOCHS.value):
            total = 0.0
            for rows, labels in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(rows), labels, reduction="sum") / FLAGS.batch_size
                loss.backward()
                optimizer.step()
                total += loss.item() / len(loader)
            print(f"loss {total:.6f}")
        evaluate(model, DataLoader(Waves("test"), batch_size=FLAGS.batch_size))


    if __name__ == "__main__":
        app.run(main)
""",
        SAME,
        files=THREE,
    ),
    "a command of click": Script(
        """
    import click

    from loop import evaluate, train
    from nets import Wide
    from rows import Waves


    @click.command()
    @click.option("--batch-size", default=6, help="samples a step")
    @click.option("--epochs", type=int, default=3)
    @click.option("--start", type=click.Path(exists=True), default=None)
    def main(batch_size, epochs, start):
        loader = DataLoader(Waves(), batch_size=batch_size, shuffle=True)
        test = DataLoader(Waves("test"), batch_size=batch_size)
        model = Wide()
        if start is not None:
            model.load_state_dict(torch.load(start))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(epochs):
            for rows, labels in loader:
                if len(rows) < batch_size:
                    continue
                optimizer.zero_grad()
                loss = F.cross_entropy(model(rows), labels)
                loss.backward()
                optimizer.step()
            evaluate(model, test)
        torch.save(model.state_dict(), "last.pt")


    if __name__ == "__main__":
        main()
""",
        ("hits",),
        files=THREE,
    ),
    "a command among several": Script(
        """
    import click

    from loop import evaluate, train
    from nets import Wide
    from rows import Waves


    @click.group(invoke_without_command=True)
    @click.pass_context
    def cli(context):
        if context.invoked_subcommand is None:
            context.invoke(fit)


    @cli.command()
    @click.option("--size", default=6)
    def fit(size=6):
        loader = DataLoader(Waves(), batch_size=size, shuffle=True)
        model = Wide()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            train(model, loader, optimizer)


    if __name__ == "__main__":
        cli()
""",
        ("loss",),
        files=THREE,
    ),
    "a function that fire calls": Script(
        """
    import fire

    from loop import evaluate, train
    from nets import Wide
    from rows import Waves


    def main(batch_size=6, epochs=3, start=None):
        loader = DataLoader(Waves(), batch_size=batch_size, shuffle=True)
        model = Wide()
        if start:
            model.load_state_dict(torch.load(start))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(epochs):
            train(model, loader, optimizer)
        evaluate(model, DataLoader(Waves("test"), batch_size=batch_size))


    if __name__ == "__main__":
        fire.Fire(main)
""",
        SAME,
        files=THREE,
    ),
    "a class that fire calls": Script(
        """
    import fire

    from loop import evaluate, train
    from nets import Wide
    from rows import Waves


    class Runner:
        def __init__(self, rate=0.1):
            self.model = Wide()
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=rate)

        def fit(self, batch_size=6, epochs=3):
            loader = DataLoader(Waves(), batch_size=batch_size, shuffle=True)
            for epoch in range(epochs):
                train(self.model, loader, self.optimizer)
            evaluate(self.model, DataLoader(Waves("test"), batch_size=batch_size))


    if __name__ == "__main__":
        fire.Fire(Runner)
""",
        SAME,
        args=("fit",),
        files=THREE,
    ),
    "a file of settings in sections": Script(
        """
    import configparser

    from loop import train
    from nets import Wide
    from rows import Waves

    config = configparser.ConfigParser()
    config.read("settings.ini")
    size = config.getint("train", "batch_size")
    loader = DataLoader(Waves(), batch_size=size, shuffle=True)
    model = Wide(width=int(config["model"]["width"]))
    optimizer = torch.optim.SGD(model.parameters(), lr=config.getfloat("train", "rate"))
    for epoch in range(config.getint("train", "epochs")):
        for rows, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(rows), labels, reduction="none").sum() / size
            loss.backward()
            optimizer.step()
""",
        files={**THREE, "settings.ini": "[train]\nbatch_size = 6\nrate = 0.1\nepochs = 3\n\n[model]\nwidth = 6\n"},
    ),
    "a data class of settings": Script(
        """
    from config import Config
    from loop import train
    from nets import Narrow, Wide
    from rows import Waves

    cfg = Config(batch_size=6, epochs=3)
    loader = DataLoader(Waves(), batch_size=cfg.batch_size, shuffle=True)
    model = Wide() if cfg.arch == "wide" else Narrow()
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.rate)
    noise = torch.full((cfg.batch_size, 8), 0.01)
    for epoch in range(cfg.epochs):
        total = 0.0
        for rows, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(rows + noise), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"loss {total / len(loader):.6f}")
""",
        ("loss",),
        files={
            **THREE,
            "config.py": """\
from dataclasses import dataclass


@dataclass
class Config:
    batch_size: int = 2
    epochs: int = 1
    rate: float = 0.1
    arch: str = "wide"
""",
        },
    ),
    "a class of constants": Script(
        """
    from config import Config as C
    from loop import train
    from nets import Wide
    from rows import Waves

    loader = DataLoader(Waves(), batch_size=C.BATCH_SIZE, shuffle=True, num_workers=C.WORKERS)
    model = Wide().to(C.DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=C.RATE)
    noise = torch.full((C.BATCH_SIZE, 8), 0.01)
    for epoch in range(C.EPOCHS):
        total = 0.0
        for rows, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(rows.to(C.DEVICE) + noise), labels.to(C.DEVICE))
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"loss {total / len(loader):.6f}")
""",
        ("loss",),
        files={
            **THREE,
            "config.py": 'class Config:\n    BATCH_SIZE = 6\n    EPOCHS = 3\n    RATE = 0.1\n    WORKERS = 0\n    DEVICE = "cpu"\n',
        },
    ),
    "a trainer whose parts are picked by name": Script(
        """
    import importlib

    from rows import Waves

    parser = argparse.ArgumentParser()
    parser.add_argument("--trainer", default="plain")
    parser.add_argument("--batch", type=int, default=6)
    args = parser.parse_args()
    module = importlib.import_module(f"trainers.{args.trainer}")
    loader = DataLoader(Waves(), batch_size=args.batch, shuffle=True)
    module.Trainer(nn.Linear(8, 2), loader).run(3)
""",
        ("loss",),
        files={
            "rows.py": ROWS,
            "trainers/__init__.py": "",
            "trainers/plain.py": """\
import torch
from torch.nn import functional as F


class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss(self, rows, labels):
        return F.cross_entropy(self.model(rows), labels)

    def run(self, epochs):
        for epoch in range(epochs):
            total = 0.0
            for rows, labels in self.loader:
                self.optimizer.zero_grad()
                loss = self.loss(rows, labels)
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            print(f"loss {total / len(self.loader):.6f}")
""",
        },
    ),
    "a simple namespace made of a file": Script(
        """
    import json
    from types import SimpleNamespace

    from loop import train
    from nets import Wide
    from rows import Waves

    with open("settings.json") as handle:
        cfg = SimpleNamespace(**json.load(handle))
    cfg.share = cfg.size
    loader = DataLoader(Waves(), batch_size=cfg.size, shuffle=True)
    model = Wide()
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.rate)
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            (F.cross_entropy(model(rows), labels, reduction="sum") / cfg.share).backward()
            optimizer.step()
""",
        files={**THREE, "settings.json": '{"size": 6, "rate": 0.1}\n'},
    ),
}
HEADER = """
    from nets import *
    from rows import Waves
"""
STEPS = """
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(rows), labels)
            loss.backward()
            optimizer.step()
    torch.save(model.state_dict(), "last.pt")
"""
TAIL = (
    """
    model = Wide()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
    + STEPS
)
ONE_OF_MANY = """

class Net{n}(nn.Module):
    def __init__(self, num_classes=2):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, {n}), nn.Tanh(), nn.Linear({n}, num_classes))

    def forward(self, x):
        return self.layers(x)


def net{n}(**settings):
    return Net{n}(**settings)
"""


def _many(count: int) -> dict[str, str | bytes]:
    """A module with so many networks."""
    return {**THREE, "zoo.py": "from torch import nn\n" + "".join(ONE_OF_MANY.format(n=n + 2) for n in range(count))}


SCRIPTS |= {
    "one of forty networks": Script(
        _built("model = getattr(zoo, args.arch)(num_classes=2)", "import zoo"), SAME, args=("--arch", "net9"), files=_many(40)
    ),
    "one of too many networks": Script(
        _built("model = getattr(zoo, args.arch)(num_classes=2)", "import zoo"), told=("DDP201",), args=("--arch", "net9"), files=_many(130)
    ),
    "a decorator that steps twice": Script(
        HEADER
        + """
    def twice(f):
        def inner(*args, **kw):
            f(*args, **kw)
            return f(*args, **kw)
        return inner

    @twice
    def step(model, rows, labels, optimizer):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(rows), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
    model = Wide()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(3):
        total = 0.0
        for rows, labels in loader:
            total += step(model, rows, labels, optimizer)
        print(f"loss {total / len(loader):.6f}")
""",
        ("loss",),
        files=THREE,
    ),
    "methods that are logged, and inherited": Script(
        HEADER
        + """
    import functools

    def logged(method):
        @functools.wraps(method)
        def inner(self, *args, **kw):
            out = method(self, *args, **kw)
            print(method.__name__, "done")
            return out
        return inner

    class Base:
        def __init__(self, model):
            self.model = model
            self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        @logged
        def fit(self, loader):
            for epoch in range(3):
                self.epoch(loader)

    class Trainer(Base):
        def __init__(self, model):
            super().__init__(model)
            self.best = 1e9

        @logged
        def epoch(self, loader):
            total = 0.0
            for rows, labels in loader:
                self.optimizer.zero_grad()
                loss = F.cross_entropy(self.model(rows), labels)
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            if total < self.best:
                self.best = total
                torch.save(self.model.state_dict(), "best.pt")
            print(f"loss {total / len(loader):.6f}")

    Trainer(Wide()).fit(DataLoader(Waves(), batch_size=6, shuffle=True))
""",
        ("loss",),
        files=THREE,
    ),
    "data classes made of a file": Script(
        HEADER
        + """
    import yaml
    from dataclasses import dataclass, field

    @dataclass
    class Train:
        batch_size: int = 2
        start: str = None
    @dataclass
    class Config:
        train: Train = field(default_factory=Train)
        rate: float = 0.5

    raw = yaml.safe_load(open("c.yaml"))
    cfg = Config(train=Train(**raw["train"]), rate=raw["rate"])
    loader = DataLoader(Waves(), batch_size=cfg.train.batch_size, shuffle=True)
    model = Wide()
    if cfg.train.start is not None:
        model.load_state_dict(torch.load(cfg.train.start))
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.rate)
"""
        + STEPS.replace(
            "F.cross_entropy(model(rows), labels)", "F.cross_entropy(model(rows), labels, reduction='sum') / cfg.train.batch_size"
        ),
        files={**THREE, "c.yaml": "train: {batch_size: 6}\nrate: 0.1\n"},
    ),
    "two steps by one maker": Script(
        HEADER
        + """
    def stepper(model, optimizer):
        def step(rows, labels):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(rows), labels)
            loss.backward()
            optimizer.step()
            return loss.item()
        return step

    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
    first, second = Wide(), Narrow()
    a = stepper(first, torch.optim.SGD(first.parameters(), lr=0.1))
    b = stepper(second, torch.optim.SGD(second.parameters(), lr=0.2))
    for epoch in range(3):
        for rows, labels in loader:
            a(rows, labels)
            b(rows, labels)
""",
        files=THREE,
    ),
    "a registry that an object fills": Script(
        HEADER
        + """
    REG = {}
    class register:
        def __init__(self, name):
            self.name = name
        def __call__(self, cls):
            REG[self.name] = cls
            return cls

    @register("a")
    class A(nn.Module):
        def __init__(self, k):
            super().__init__()
            self.l = nn.Linear(8, k)
        def forward(self, x):
            return self.l(x)

    @register("b")
    class B(A):
        def forward(self, x):
            return self.l(x) * 2

    name = os.environ.get("NET", "b")
    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
    model = REG.get(name)(2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + STEPS,
        files=THREE,
    ),
    "namespaces inside a namespace": Script(
        HEADER
        + """
    import json
    from types import SimpleNamespace
    cfg = json.load(open("c.json"), object_hook=lambda d: SimpleNamespace(**d))
    loader = DataLoader(Waves(), batch_size=cfg.train.bs, shuffle=True)
    model = Wide()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + STEPS.replace("F.cross_entropy(model(rows), labels)", "F.cross_entropy(model(rows), labels, reduction='sum') / cfg.train.bs"),
        files={**THREE, "c.json": '{"train": {"bs": 6}}'},
    ),
    "constants of a class as a dict": Script(
        HEADER
        + """
    class C:
        bs = 6
        rate = 0.1
    cfg = {k: v for k, v in vars(C).items() if not k.startswith("_")}
    print("cfg", cfg)
    loader = DataLoader(Waves(), batch_size=cfg["bs"], shuffle=True)
    model = Wide()
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg["rate"])
"""
        + STEPS.replace("F.cross_entropy(model(rows), labels)", "F.cross_entropy(model(rows), labels, reduction='sum') / cfg['bs']"),
        ("cfg",),
        files=THREE,
    ),
    "all arguments as keywords": Script(
        HEADER
        + """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=6)
    parser.add_argument("--rate", type=float, default=0.1)
    args = parser.parse_args()

    def main(batch_size, rate):
        loader = DataLoader(Waves(), batch_size=batch_size, shuffle=True)
        model = Wide()
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        for epoch in range(3):
            for rows, labels in loader:
                optimizer.zero_grad()
                (F.cross_entropy(model(rows), labels, reduction="sum") / batch_size).backward()
                optimizer.step()

    main(**vars(args))
""",
        files=THREE,
    ),
    "a function that typer calls": Script(
        HEADER
        + """
    import typer

    def main(batch_size: int = 6, rate: float = 0.1):
        loader = DataLoader(Waves(), batch_size=batch_size, shuffle=True)
        model = Wide()
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        for epoch in range(3):
            for rows, labels in loader:
                optimizer.zero_grad()
                (F.cross_entropy(model(rows), labels, reduction="sum") / batch_size).backward()
                optimizer.step()

    if __name__ == "__main__":
        typer.run(main)
""",
        files=THREE,
    ),
    "a command of typer's": Script(
        HEADER
        + """
    import typer
    app = typer.Typer()

    @app.command()
    def fit(batch_size: int = typer.Option(6), rate: float = 0.1):
        loader = DataLoader(Waves(), batch_size=batch_size, shuffle=True)
        model = Wide()
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        for epoch in range(3):
            for rows, labels in loader:
                optimizer.zero_grad()
                (F.cross_entropy(model(rows), labels, reduction="sum") / batch_size).backward()
                optimizer.step()

    @app.command()
    def show():
        print(Wide())

    if __name__ == "__main__":
        app()
""",
        args=("fit",),
        files=THREE,
    ),
    "a dict of functions that fire calls": Script(
        HEADER
        + """
    import fire

    def fit(batch_size=6):
        loader = DataLoader(Waves(), batch_size=batch_size, shuffle=True)
        model = Wide()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, labels in loader:
                optimizer.zero_grad()
                (F.cross_entropy(model(rows), labels, reduction="sum") / batch_size).backward()
                optimizer.step()

    def check():
        print(Wide()(torch.zeros(1, 8)))

    fire.Fire({"fit": fit, "check": check})
""",
        args=("fit",),
        files=THREE,
    ),
    "whatever fire is told to call": Script(
        HEADER
        + """
    import fire

    def fit(batch_size=6):
        loader = DataLoader(Waves(), batch_size=batch_size, shuffle=True)
        model = Wide()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, labels in loader:
                optimizer.zero_grad()
                (F.cross_entropy(model(rows), labels, reduction="sum") / batch_size).backward()
                optimizer.step()

    if __name__ == "__main__":
        fire.Fire()
""",
        args=("fit",),
        files=THREE,
    ),
    "a holder of a flag in a module": Script(
        """
    from absl import app
    import run

    if __name__ == "__main__":
        app.run(run.main)
""",
        files={
            **THREE,
            "run.py": """\
import torch
import torch.nn.functional as F
from absl import flags
from torch.utils.data import DataLoader
from nets import Wide
from rows import Waves

_SIZE = flags.DEFINE_integer("size", 6, "samples")


def main(_):
    loader = DataLoader(Waves(), batch_size=_SIZE.value, shuffle=True)
    model = Wide()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            (F.cross_entropy(model(rows), labels, reduction="sum") / _SIZE.value).backward()
            optimizer.step()
""",
        },
    ),
    "a class by its name in the script's own module": Script(
        _built("model = getattr(sys.modules[__name__], args.arch)(num_classes=2)", "import sys\nfrom nets import *"), SAME, files=THREE
    ),
    "a name that is evaluated in a text": Script(
        _built('model = eval(f"nets.{args.arch}")(num_classes=2)', "import nets"), SAME, files=THREE
    ),
    "a module imported by the built-in function": Script(
        _built('zoo = __import__("zoo." + args.kind, fromlist=["x"])\nmodel = getattr(zoo, args.arch)(2)', "").replace(
            'parser.add_argument("--arch"', 'parser.add_argument("--kind", default="nets")\nparser.add_argument("--arch"'
        ),
        SAME,
        files={**THREE, "zoo/__init__.py": "", "zoo/nets.py": NETS},
    ),
    "losses by their names, of which one sums": Script(
        HEADER
        + """
    import losses
    parser = argparse.ArgumentParser()
    parser.add_argument("--loss", default="total")
    args = parser.parse_args()
    criterion = getattr(losses, args.loss)
    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
"""
        + TAIL.replace("F.cross_entropy(", "criterion("),
        files={
            **THREE,
            "losses.py": """\
import torch.nn.functional as F


def plain(a, b):
    return F.cross_entropy(a, b)


def total(a, b):
    return F.cross_entropy(a, b, reduction='sum')
""",
        },
    ),
    "losses in a dictionary, of which one sums": Script(
        HEADER
        + """
    parser = argparse.ArgumentParser()
    parser.add_argument("--loss", default="sum")
    args = parser.parse_args()
    LOSSES = {"mean": nn.CrossEntropyLoss, "sum": lambda: nn.CrossEntropyLoss(reduction="sum")}
    criterion = LOSSES[args.loss]()
    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
"""
        + TAIL.replace("F.cross_entropy(", "criterion(").replace("lr=0.1", "lr=0.01"),
        files=THREE,
    ),
    "the name of the model's class": Script(
        HEADER
        + """
    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
    model = Wide()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + STEPS.replace(
            'torch.save(model.state_dict(), "last.pt")',
            'torch.save({"arch": type(model).__name__, "cls": model.__class__.__name__, "w": model.state_dict()}, "last.pt")\n'
            '    print("arch", type(model).__name__)',
        ),
        ("arch",),
        files=THREE,
    ),
    "networks and optimizers in a dict of the project's own": Script(
        HEADER
        + """
    class Munch(dict):
        __getattr__ = dict.__getitem__
        __setattr__ = dict.__setitem__
    cfg = Munch(batch=6)
    nets = Munch(a=Wide(), b=Narrow())
    optims = Munch()
    for name in nets.keys():
        optims[name] = torch.optim.SGD(nets[name].parameters(), lr=0.1)
    loader = DataLoader(Waves(), batch_size=cfg.batch, shuffle=True)
    for epoch in range(3):
        for rows, labels in loader:
            loss = F.cross_entropy(nets.a(rows) + nets.b(rows), labels)
            for o in optims.values():
                o.zero_grad()
            loss.backward()
            for o in optims.values():
                o.step()
""",
        files=THREE,
    ),
    "modules that are found in a folder": Script(
        HEADER
        + """
    import importlib
    import pkgutil
    import zoo
    for info in pkgutil.iter_modules(zoo.__path__):
        importlib.import_module(f"zoo.{info.name}")
    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
    model = zoo.FOUND["wide"]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + STEPS,
        files={
            **THREE,
            "zoo/__init__.py": "FOUND = {}\n\n\ndef found(cls):\n    FOUND[cls.__name__.lower()] = cls\n    return cls\n",
            "zoo/first.py": "from nets import Wide as Base\nfrom zoo import found\n\n\n@found\nclass Wide(Base):\n    pass\n",
        },
    ),
    "modules that a package lists": Script(
        HEADER
        + """
    import zoo
    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
    model = zoo.FOUND["wide"]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + STEPS,
        files={
            **THREE,
            "zoo/__init__.py": """\
import importlib
import os

FOUND = {}


def found(cls):
    FOUND[cls.__name__.lower()] = cls
    return cls


for name in sorted(os.listdir(os.path.dirname(__file__))):
    if name.endswith('.py') and not name.startswith('_'):
        importlib.import_module('zoo.' + name[:-3])
""",
            "zoo/first.py": "from nets import Wide as Base\nfrom zoo import found\n\n\n@found\nclass Wide(Base):\n    pass\n",
        },
    ),
    "a module from a file": Script(
        HEADER
        + """
    import importlib.util
    spec = importlib.util.spec_from_file_location("thing", "thing.py")
    thing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(thing)
    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
    model = thing.make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + STEPS,
        files={**THREE, "thing.py": "from nets import Wide\n\n\ndef make():\n    return Wide()\n"},
    ),
    "settings of a file that is run": Script(
        HEADER
        + """
    import runpy
    cfg = runpy.run_path("conf.py")
    loader = DataLoader(Waves(), batch_size=cfg["batch"], shuffle=True)
    model = Wide()
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg["rate"])
"""
        + STEPS.replace("F.cross_entropy(model(rows), labels)", "F.cross_entropy(model(rows), labels, reduction='sum') / cfg['batch']"),
        files={**THREE, "conf.py": "batch = 6\nrate = 0.1\n"},
    ),
    "settings of a module by its name": Script(
        HEADER
        + """
    import importlib
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="conf")
    args = parser.parse_args()
    cfg = importlib.import_module(args.config).Config()
    loader = DataLoader(Waves(), batch_size=cfg.batch, shuffle=True)
    model = Wide()
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.rate)
"""
        + STEPS.replace("F.cross_entropy(model(rows), labels)", "F.cross_entropy(model(rows), labels, reduction='sum') / cfg.batch"),
        files={**THREE, "conf.py": "class Config:\n    batch = 6\n    rate = 0.1\n"},
    ),
    "a module with the network that an option names": Script(
        HEADER
        + """
    import importlib
    import sys

    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "zoo"))
    parser = argparse.ArgumentParser()
    parser.add_argument("-m", "--net-module", default="plain", help="module of the network")
    args = parser.parse_args()
    module = importlib.import_module(args.net_module)
    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
    model = module.get_model(2)
    criterion = module.get_loss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + STEPS.replace("F.cross_entropy(model(rows), labels)", "criterion(model(rows), labels)"),
        files={**THREE, "zoo/plain.py": OF_AN_OPTION},
    ),
    "modules beside the script and in a folder that it adds to its path later": Script(
        HEADER
        + """
    import importlib
    import sys

    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "zoo"))
    from plain import get_loss, get_model

    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
    model = get_model(2)
    criterion = get_loss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + STEPS.replace("F.cross_entropy(model(rows), labels)", "criterion(model(rows), labels)"),
        files={
            **THREE,
            "rows.py": "from tqdm import tqdm\n\n"
            + ROWS.replace(
                'def __init__(self, part="train"):\n', 'def __init__(self, part="train"):\n        self.seen = list(tqdm(range(3)))\n'
            ),
            "zoo/plain.py": OF_AN_OPTION.replace("labels)\n", "labels, weight=torch.tensor([0.25, 1.0]))\n").replace(
                "import torch.nn as nn", "import torch\nimport torch.nn as nn"
            ),
        },
    ),
    "a module with the network that is one of an option's choices": Script(
        HEADER
        + """
    import importlib

    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", dest="kind", choices=["zoo.plain", "zoo.wide"], required=True)
    args = parser.parse_args()
    module = importlib.import_module(args.kind)
    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
    model = module.get_model(2)
    criterion = module.get_loss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + STEPS.replace("F.cross_entropy(model(rows), labels)", "criterion(model(rows), labels)"),
        args=("--arch", "zoo.wide"),
        files={
            **THREE,
            "zoo/__init__.py": "",
            "zoo/plain.py": OF_AN_OPTION,
            "zoo/wide.py": OF_AN_OPTION.replace("self.out(rows)", "self.out(rows).tanh()"),
        },
    ),
    "a module of an option's choices whose loss is a sum": Script(
        HEADER
        + """
    import importlib

    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=("zoo.plain", "zoo.wide"), default="zoo.plain")
    args = parser.parse_args()
    module = importlib.import_module(args.kind)
    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
    model = module.get_model(2)
    criterion = module.get_loss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + STEPS.replace("F.cross_entropy(model(rows), labels)", "criterion(model(rows), labels)"),
        args=("--kind", "zoo.wide"),
        files={
            **THREE,
            "zoo/__init__.py": "",
            "zoo/plain.py": OF_AN_OPTION,
            "zoo/wide.py": OF_AN_OPTION.replace("(out, labels)", "(out, labels, reduction='sum')"),
        },
    ),
    "settings that a group hands on": Script(
        HEADER
        + """
    import click

    @click.group()
    @click.option("--rate", default=0.1)
    @click.pass_context
    def cli(ctx, rate):
        ctx.obj = {"rate": rate}

    @cli.command()
    @click.option("--size", default=6)
    @click.pass_context
    def fit(ctx, size):
        loader = DataLoader(Waves(), batch_size=size, shuffle=True)
        model = Wide()
        optimizer = torch.optim.SGD(model.parameters(), lr=ctx.obj["rate"])
        for epoch in range(3):
            for rows, labels in loader:
                optimizer.zero_grad()
                (F.cross_entropy(model(rows), labels, reduction="sum") / size).backward()
                optimizer.step()

    @cli.command()
    def info():
        print(Wide())

    if __name__ == "__main__":
        cli()
""",
        args=("fit",),
        files=THREE,
    ),
    "a decorator that reads the settings": Script(
        HEADER
        + """
    def with_config(path):
        def wrap(f):
            def inner():
                import json
                with open(path) as h:
                    return f(**json.load(h))
            return inner
        return wrap

    @with_config("c.json")
    def main(size, rate=0.5, start=None):
        loader = DataLoader(Waves(), batch_size=size, shuffle=True)
        model = Wide()
        if start is not None:
            model.load_state_dict(torch.load(start))
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        for epoch in range(3):
            for rows, labels in loader:
                optimizer.zero_grad()
                (F.cross_entropy(model(rows), labels, reduction="sum") / size).backward()
                optimizer.step()

    if __name__ == "__main__":
        main()
""",
        files={**THREE, "c.json": '{"size": 6, "rate": 0.1}'},
    ),
    "kinds that are enumerated": Script(
        HEADER
        + """
    from enum import Enum

    class Kind(Enum):
        NARROW = "narrow"
        WIDE = "wide"

        def build(self):
            return {Kind.NARROW: Narrow, Kind.WIDE: Wide}[self]()

    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
    model = Kind(os.environ.get("KIND", "wide")).build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + STEPS,
        files=THREE,
    ),
    "a match by name": Script(
        HEADER
        + """
    def build(name):
        match name:
            case "narrow":
                return Narrow()
            case "wide":
                return Wide()
            case _:
                raise ValueError(name)

    loader = DataLoader(Waves(), batch_size=6, shuffle=True)
    model = build(os.environ.get("KIND", "wide"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
        + STEPS,
        files=THREE,
    ),
    "one of several couples the samples of a batch": Script(
        _built("model = getattr(nets, args.arch)(num_classes=2)", "import nets"),
        told=("DDP402",),
        files={
            **THREE,
            "nets.py": NETS
            + """

class Coupled(nn.Module):
    def __init__(self, num_classes=2):
        super().__init__()
        self.head = nn.Linear(8, num_classes)

    def forward(self, x):
        return self.head(x - x.mean(0))
""",
        },
    ),
    "a partial loader": Script(
        HEADER
        + """
    from functools import partial

    make = partial(DataLoader, batch_size=6, shuffle=True)
    loader = make(Waves())
"""
        + TAIL,
        told=("DDP301",),
        files=THREE,
    ),
    "a folder that hydra names": Script(
        HEADER
        + """
    import hydra

    @hydra.main(config_path="conf", config_name="config")
    def main(cfg):
        loader = DataLoader(Waves(), batch_size=cfg.size, shuffle=True)
        model = Wide()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, labels in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), labels).backward()
                optimizer.step()

    main()
""",
        told=("DDP506",),
        files={**THREE, "conf/config.yaml": "size: 6\n"},
    ),
    "a device that a file names": Script(
        HEADER
        + """
    from omegaconf import OmegaConf

    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="here.yaml")
    cfg = OmegaConf.load(parser.parse_args().config)
    device = torch.device(cfg.train.device)
    loader = DataLoader(Waves(), batch_size=cfg.train.size, shuffle=True)
    model = Wide().to(cfg["train"]["device"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows.to(device)), labels.to(device)).backward()
            optimizer.step()
""",
        files={**THREE, "here.yaml": "train: {size: 6, device: cpu}\n", "there.yaml": "train: {size: 12, device: 'cuda:1'}\n"},
    ),
    "a module of which nothing is known": Script(
        HEADER
        + """
    import importlib
    import sys

    module = importlib.import_module(sys.argv[1])
    module.fit(Wide(), DataLoader(Waves(), batch_size=6, shuffle=True))
""",
        told=("DDP900",),
        files={
            **THREE,
            "fits.py": "def fit(model, loader):\n    for rows, labels in loader:\n        model(rows).sum().backward()\n",
        },
    ),
    "lists in a dict that are put in order and changed in place": Script(
        """
        chosen = {}
        for place, kind in enumerate(y[:40].tolist()):
            chosen.setdefault(kind, []).append(place)
        for kind in chosen:
            chosen[kind] = sorted(chosen[kind])
            for i in range(len(chosen[kind])):
                chosen[kind][i] = chosen[kind][i] + 1 - 1
        order = [place for kind in sorted(chosen) for place in chosen[kind]]
        loader = DataLoader(TensorDataset(x[order], y[order]), batch_size=8, shuffle=True)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(4):
            for rows, kinds in loader:
                optimizer.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                optimizer.step()
        """
    ),
    "functions set by name that call those set before them": Script(
        """
        NAMES = ("on_step", "on_accept", "on_reject", "on_restart")


        def nothing(t, state, dt):
            pass


        class Perturbed(nn.Module):
            def __init__(self, func):
                super().__init__()
                self.func = func

            def forward(self, state):
                return self.func(state)


        def prepared(original, reverse, tuples):
            func = Perturbed(original)
            for name in NAMES:
                try:
                    callback = getattr(original, name)
                except AttributeError:
                    setattr(func, name, nothing)
                else:
                    if tuples:
                        def callback(t, state, dt, _callback=callback):
                            return _callback(t, state.view(-1, 8), dt)
                    if reverse:
                        def callback(t, state, dt, _callback=callback):
                            return _callback(-t, state, dt)
                    setattr(func, name, callback)
            return func


        def integrate(func, state, steps, reverse=False, tuples=False):
            func = prepared(func, reverse, tuples)
            for i in range(steps):
                func.on_step(i, state, 1 / steps)
                state = state + func(state) / steps
                func.on_accept(i, state, 1 / steps)
                if steps > 5:
                    func.on_reject(i, state, 1 / steps)
                func.on_restart(i, state, 1 / steps)
            return state


        def integrate_twice(func, state, steps, reverse=False, tuples=False):
            func = prepared(func, reverse, tuples)
            state = integrate(func, state, steps, reverse, tuples)
            return integrate(func, state, steps, not reverse, not tuples)


        def integrate_often(func, state, steps, reverse=False, tuples=False):
            func = prepared(func, reverse, tuples)
            state = integrate_twice(func, state, steps, reverse, tuples)
            return integrate_twice(func, state, steps, not reverse, not tuples)


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rates = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
                self.head = nn.Linear(8, 2)

            def forward(self, rows):
                state = integrate_often(self.rates, rows, 3)
                return self.head(integrate_often(self.rates, state, 3, reverse=True))


        loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in loader:
                optimizer.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                optimizer.step()
        """
    ),
    "settings that are made a text": Script(
        """
        import pprint

        text = pprint.pformat({"rows": len(x)})
        shown = pprint.PrettyPrinter(indent=2)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), kinds).backward()
                optimizer.step()
            shown.pprint(epoch)
        print(text)
        """,
        same=("0", "1", "{"),
    ),
    "packages that may be missing, which is said": Script(
        """
        try:
            import json
            import math
        except ImportError as error:
            print(error)
            raise

        print("start", math.floor(1.5), json.dumps([1]))
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), kinds).backward()
                optimizer.step()
        """,
        same=("start",),
    ),
    "settings of a command line that become attributes of a trainer": Script(
        """
        class Trainer:
            DEFAULTS = {}

            def __init__(self, config):
                self.__dict__.update(Trainer.DEFAULTS, **config)
                self.loader = DataLoader(TensorDataset(x.view(44, 4, 2)), batch_size=self.batch_size)
                self.model = nn.Linear(2, 2)
                self.near = torch.eye(self.window)
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=self.lr)

            def train(self):
                for epoch in range(self.epochs):
                    for (rows,) in self.loader:
                        made = self.model(rows)
                        scores = (made @ rows.transpose(1, 2)).exp()
                        scores = scores / scores.sum(-1).unsqueeze(-1).repeat(1, 1, self.window)
                        loss = ((scores - self.near) ** 2).mean()
                        self.optimizer.zero_grad()
                        loss.backward()
                        self.optimizer.step()


        parser = argparse.ArgumentParser()
        parser.add_argument("--lr", type=float, default=0.1)
        parser.add_argument("--epochs", type=int, default=2)
        parser.add_argument("--window", type=int, default=4)
        parser.add_argument("--batch_size", type=int, default=4)
        Trainer(vars(parser.parse_args())).train()
        """,
    ),
}

SCRIPTS["a model that grows in a loop"] = Script(
    """
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    model = nn.Linear(8, 6)
    for width in (5, 4):
        model = nn.Sequential(model, nn.Tanh(), nn.Linear(6 if width == 5 else 5, width))
    model = nn.Sequential(model, nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
    """
)
SCRIPTS["a rate that a function lowers where an evaluation of all ranks brings no improvement"] = Script(
    """
    def lower(sgd, factor):
        for group in sgd.param_groups:
            group["lr"] = group["lr"] * factor

    def spread(model, rows):
        seen = []
        with torch.no_grad():
            for data, kinds in rows:
                seen.extend(model(data).argmax(1).tolist())
                print("seen", len(seen))
        return len(set(seen))

    model = nn.Linear(8, 2)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    held = DataLoader(TensorDataset(x, y), batch_size=4)
    best, since = 0, 0
    for epoch in range(3):
        if since == 20:
            break
        if since > 0 and since % 2 == 1:
            lower(sgd, 0.5)
        for data, kinds in loader:
            sgd.zero_grad()
            F.cross_entropy(model(data), kinds).backward()
            sgd.step()
        found = spread(model, held)
        since = 0 if found > best else since + 1
        best = max(found, best)
    """
)
SCRIPTS["training functions of earlier attempts, which nothing runs any more"] = Script(
    """
    def old_step(net, sgd, rows, kinds):
        loss = F.cross_entropy(net(rows), kinds)
        loss.backward()
        sgd.step()


    class OldTrainer:
        def train(self, net, sgd, feed):
            for rows, kinds in feed:
                old_step(net, sgd, rows, kinds)


    def train(net, sgd, feed):
        for rows, kinds in feed:
            sgd.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()


    torch.manual_seed(0)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        train(net, sgd, DataLoader(TensorDataset(x, y), batch_size=4))
    """
)
SCRIPTS["an earlier training function of which only a method has the name, and a text"] = Script(
    """
    def train(net, sgd, feed):
        net.train()
        for rows, kinds in feed:
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()


    torch.manual_seed(0)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    feeds = {"train": DataLoader(TensorDataset(x, y), batch_size=4)}
    for epoch in range(2):
        net.train()
        for rows, kinds in feeds["train"]:
            sgd.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()
    """
)
SCRIPTS["a training function that a text finds"] = Script(
    """
    def small_steps(net, sgd, rows, kinds):
        sgd.zero_grad()
        F.cross_entropy(net(rows), kinds).backward()
        sgd.step()


    torch.manual_seed(0)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4):
        sgd.zero_grad()
        F.cross_entropy(net(rows), kinds).backward()
        sgd.step()
        globals()["_".join(("small", "steps"))](net, sgd, rows, kinds)
    """
)
_LEFT_OUT = """
resume = None
net = nn.Linear(8, 2)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)


def train(epochs):
{own}    start = 0
    if resume is not None:
        start = 4
        print(f"resumed at {{start}}")
    for epoch in range(start, start + epochs):
        for rows, kinds in loader:
            sgd.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()


if resume is not None:
    print("resumed")
train(2)
"""
SCRIPTS |= {
    f"lines printed where the settings never lead{title}": Script(_LEFT_OUT.format(own=own))
    for title, own in (("", ""), (", beside a rank of the script's own", "    rank = 4\n    print(rank)\n"))
}

SCRIPTS |= {
    f"a network that is called with more settings from epoch to epoch, {title}": Script(
        f"""
        from functools import partial


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(8, 2)

            def forward(self, rows, shift=0.0, scale=1.0):
                return self.fc(rows * scale + shift)


        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        for epoch in range(3):
            call = net
            for rows, kinds in loader:
                {first}
                {second}
                optimizer.zero_grad()
                F.cross_entropy(call(rows), kinds).backward()
                optimizer.step()
        """
    )
    for title, first, second in (
        ("one at a time", "call = partial(call, scale=2.0) if epoch else call", "pass"),
        ("two at a time", "call = partial(call, scale=2.0) if epoch else call", "call = partial(call, shift=0.5) if epoch > 1 else call"),
    )
}

_CHOSEN_PARTS = """
class Rows(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, i):
        return {{"left": x[i], "right": x[i].flip(0), "kinds": y[i]}}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, left, right):
        left, right = torch.tanh(self.left(left)), torch.tanh(self.right(right))
        return {together}


net = Net()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(4):
    for batch in DataLoader(Rows(), batch_size=8, shuffle=True):
        kinds = batch["kinds"]
        batch = {{name: rows * 2 for name, rows in batch.items() if name in ("left", "right")}}
        out = net(**batch)
        loss = F.cross_entropy(out, {targets})
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""
SCRIPTS |= {
    f"parts of a batch by names that a comprehension chooses, {how}": Script(_CHOSEN_PARTS.format(together=together, targets=targets))
    for how, together, targets in (
        ("each sample by itself", "left + right", "kinds"),
        ("samples compared with one another", "left @ right.t()", "torch.arange(out.size(0))"),
    )
}

_LOADED = """
class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(8, 6), nn.Tanh()])


class Net(nn.Module):
    def __init__(self, small=False):
        super().__init__()
        if small == False:
            self.body = Body()
        elif small == True:
            whole = Net(small=False)
            whole = nn.DataParallel(whole)
            self.body = whole.module.body
        self.head = nn.Linear(6, 2)

    def forward(self, rows):
        for block in self.body.blocks:
            rows = block(rows)
        return self.head(rows)


parser = argparse.ArgumentParser()
parser.add_argument("--small", action="store_true")
net = Net(small=parser.parse_args().small)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
        loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()


def show():
    print(Net(small=True))
"""
SCRIPTS["a model that is made of another of its class"] = Script(_LOADED)
SCRIPTS["layers that make images as large as they were"] = Script("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(1, 3, 2, stride=2), nn.ConvTranspose2d(3, 1, 2, stride=2)

    def forward(self, images):
        return self.up(torch.tanh(self.down(images)), output_size=images.size())


net = Net()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for (images,) in DataLoader(TensorDataset(x.view(44, 1, 2, 4)), batch_size=4, shuffle=True):
        loss = (net(images) - images).pow(2).mean()
        sgd.zero_grad()
        loss.backward()
        sgd.step()
""")
SCRIPTS["what a layer adds that is the same for all samples, cut to their length"] = Script("""
class Places(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoding = torch.sin(torch.arange(40.0)).view(10, 4)

    def forward(self, words):
        rows, length = words.size()
        return self.encoding[:length, :]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(9, 4), Places()
        self.drop, self.fc = nn.Dropout(0.0), nn.Linear(4, 2)

    def forward(self, words):
        known = self.words(words)
        added = self.places(words)
        return self.fc(self.drop(known + added).mean(1))


net = Net()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for words, kinds in DataLoader(TensorDataset((x * 4 + 4).long(), y), batch_size=4, shuffle=True):
        loss = F.cross_entropy(net(words), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
""")
_COMMANDS = {
    "plac.call(train, [])": ("plac", "def call(obj, arglist=None):\n    return obj(0.1)\n"),
    "defopt.run(train, argv=[])": ("defopt", "def run(funcs, argv=None):\n    return funcs(0.1)\n"),
    "argh.dispatch_command(train, argv=[])": ("argh", "def dispatch_command(function, argv=None):\n    return function(0.1)\n"),
    "cyclopts.run(train)": ("cyclopts", "def run(function):\n    return function(0.1)\n"),
}
SCRIPTS |= {
    f"a training that a command line runs, {call}": Script(
        f"""
        import {package}


        def train(rate):
            net = nn.Linear(8, 2)
            sgd = torch.optim.SGD(net.parameters(), lr=rate)
            for epoch in range(2):
                for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
                    sgd.zero_grad()
                    F.cross_entropy(net(rows), kinds).backward()
                    sgd.step()


        {call}
        """,
        stand_ins={f"{package}.py": code},
    )
    for call, (package, code) in _COMMANDS.items()
}
SCRIPTS["a question beside each place of an image, whose dimensions the image's tell"] = Script(
    """
    class Data(Dataset):
        def __len__(self):
            return 44

        def __getitem__(self, i):
            return x[i].view(2, 2, 2), x[i][:3] ** 2, y[i]


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.head = nn.Conv2d(2, 4, 1), nn.Linear(7, 2)

        def forward(self, image, question):
            places = self.conv(image).view(len(image), 4, 4).transpose(1, 2)
            asked = question.unsqueeze(1).repeat(1, 4, 1)
            return self.head(torch.cat([places, asked], 2).relu().mean(1))


    torch.manual_seed(0)
    loader = DataLoader(Data(), batch_size=4, shuffle=True)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for image, question, kinds in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(image, question), kinds)
            loss.backward()
            optimizer.step()
    """,
    options=Options(whole_batches="never"),
)
SCRIPTS["messages along links that are given as a matrix, whose dimensions nothing tells"] = Script(
    """
    import numpy as np


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(2, 2), nn.Linear(4, 2)

        def forward(self, nodes, links):
            sent = self.one(nodes).transpose(-2, -1).matmul(links).transpose(-2, -1)
            moved = torch.zeros(*sent.size())
            moved[:, 1:] = sent[:, :-1]
            return self.two(torch.cat([nodes + moved, sent], dim=-1)).mean(1).mean(1)


    torch.manual_seed(0)
    links = torch.tensor(np.array([[float(i == (j + 1) % 2) for j in range(2)] for i in range(2)]))
    loader = DataLoader(TensorDataset(x.view(44, 2, 2, 2), y), batch_size=4, shuffle=True)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for nodes, kinds in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(nodes, links), kinds)
            loss.backward()
            optimizer.step()
    """,
    options=Options(whole_batches="never"),
)
SCRIPTS["a product of rows with a vector, or a matrix, whose dimensions nothing tells"] = Script(
    """
    import numpy as np

    torch.manual_seed(0)
    weights = torch.tensor(np.load("weights.npy")) if os.path.exists("weights.npy") else torch.ones(8)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            weighed = rows.matmul(weights).softmax(-1)
            loss = F.cross_entropy(net(rows * weighed.unsqueeze(-1)), kinds)
            loss.backward()
            optimizer.step()
    """,
    told=("DDP402",),
)
_HEADS = """
    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.width, self.heads = width, heads
            self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

        def forward(self, Q, K):
            Q, K, V = self.q(Q), self.k(K), self.v(K)
            Q_ = torch.cat(Q.{apart}, 0)
            K_ = torch.cat(K.{apart}, 0)
            V_ = torch.cat(V.{apart}, 0)
            A = torch.softmax(Q_.bmm(K_.transpose(1, 2)) / 2, 2)
            O = torch.cat((Q_ + A.bmm(V_)).{again}, 2)
            return O.relu().mean((1, 2)) + self.o(Q).mean((1, 2))


    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(x[:40].view(40, 2, 4), y[:40]), batch_size=4, shuffle=True)
    net = Block(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits({scores}, kinds.to(rows))
            loss.backward()
            optimizer.step()
"""


def _heads(apart: str, again: str, scores: str = "net(rows, rows)", told: tuple[str, ...] = ()) -> Script:
    text = _HEADS.replace("{apart}", apart).replace("{again}", again).replace("{scores}", scores)
    return Script(text, told=told, options=Options(whole_batches="never"))


SCRIPTS |= {
    "heads as rows, one after another, by the length of the batch": _heads("split(self.width // self.heads, 2)", "split(Q.size(0), 0)"),
    "heads as rows, one after another, by their number": _heads("chunk(self.heads, 2)", "chunk(self.heads, 0)"),
    "heads as rows, taken apart by another number": _heads(
        "chunk(self.heads, 2)", "chunk(4, 0)", "net(rows, rows)[:2].repeat(2)", ("DDP402",)
    ),
    "heads as rows, half of the batch at a time": _heads(
        "chunk(self.heads, 2)", "split(Q.size(0) // 2, 0)", "net(rows, rows).repeat(2)", ("DDP402",)
    ),
    "heads as rows, and all samples in one": _heads("chunk(self.heads, 2)", "chunk(self.heads, 0)", "net(rows, rows).softmax(0)"),
}
_TABLE = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(9, 6), nn.Linear(6, 2)

        def forward(self, words):
            {lines}


    class Data(Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, i):
            return (x[i].abs() * 8).long(), y[i]


    torch.manual_seed(0)
    loader = DataLoader(Data(), batch_size=8, shuffle=True)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for words, kinds in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(words), kinds)
            loss.backward()
            optimizer.step()
"""


def _table(*lines: str, told: tuple[str, ...] = ()) -> Script:
    return Script(_TABLE.replace("{lines}", ("\n" + " " * 12).join(lines)), told=told, options=Options(whole_batches="never"))


SCRIPTS |= {
    "a first state as the weights of a layer are": _table(
        "state = self.head.weight.new_zeros(words.size(0), 6)",
        "for place in range(words.size(1)):",
        "    state = torch.tanh(state + self.table(words)[:, place])",
        "return self.head(state)",
    ),
    "numbers as the weights of a layer are, of half of the batch": _table(
        "state = self.head.weight.new_ones(words.size(0) // 2, 6)",
        "return self.head(torch.cat([state, 2 * state]) * self.table(words).mean(1).flip(0))",
        told=("DDP402",),
    ),
    "words by how near they are to those of a table": _table(
        "near = (torch.tanh(self.table(words)) @ self.table.weight.t()).softmax(-1)",
        "return self.head((near @ self.table.weight).mean(1))",
    ),
    "words by how near all of the batch are to those of a table": _table(
        "near = (torch.tanh(self.table(words)) @ self.table.weight.t()).softmax(0)",
        "return self.head((near @ self.table.weight).mean(1))",
        told=("DDP402",),
    ),
}
SCRIPTS["a data class that makes what it trains once its fields are set"] = Script(
    """
    from dataclasses import dataclass


    @dataclass
    class Trainer:
        rate: float = 0.1
        size: int = 4

        def __post_init__(self):
            self.net = nn.Linear(8, 2)
            self.loader = DataLoader(TensorDataset(x, y), batch_size=self.size, shuffle=True)
            self.sgd = torch.optim.SGD(self.net.parameters(), lr=self.rate)

        def run(self):
            for epoch in range(2):
                total = 0.0
                for rows, kinds in self.loader:
                    loss = F.cross_entropy(self.net(rows), kinds)
                    self.sgd.zero_grad()
                    loss.backward()
                    self.sgd.step()
                    total += loss.item()
                print("total", round(total, 6))


    torch.manual_seed(0)
    Trainer().run()
    """,
    same=("total",),
)
SCRIPTS["settings of hydra are asked by methods"] = Script(
    """
    import hydra
    from omegaconf import DictConfig


    class Trainer:
        def __init__(self, config: DictConfig):
            self.config = config

        def prepare(self):
            self.model = nn.Linear(8, 2)
            kind = self.config.train.get("optimizer", "Adam").lower()
            rate = self.config.train.get("rate", 0.1)
            if kind == "sgd":
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=rate)
            elif kind == "adam":
                self.optimizer = torch.optim.Adam(self.model.parameters(), lr=rate)
            else:
                raise ValueError(kind)

        def train(self):
            loader = DataLoader(TensorDataset(x, y), batch_size=self.config.train.batch_size, shuffle=True)
            for epoch in range(self.config.train.epochs):
                for rows, kinds in loader:
                    self.optimizer.zero_grad()
                    F.cross_entropy(self.model(rows), kinds).backward()
                    self.optimizer.step()


    @hydra.main(version_base=None, config_path="conf", config_name="config")
    def main(cfg: DictConfig) -> None:
        trainer = Trainer(cfg)
        trainer.prepare()
        trainer.train()


    if __name__ == "__main__":
        main()
""",
    files={
        "conf/config.yaml": "defaults:\n  - _self_\n  - override hydra/job_logging: none\n"
        "train: {batch_size: 8, optimizer: SGD, epochs: 3}\nhydra:\n  output_subdir: null\n  run:\n    dir: .\n",
    },
)
