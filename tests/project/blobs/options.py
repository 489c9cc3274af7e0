import argparse
import types

import torch
import yaml


def to_namespace(values):
    """Nested dicts as attributes."""
    return types.SimpleNamespace(**{k: to_namespace(v) if isinstance(v, dict) and k != "args" else v for k, v in values.items()})


class BaseOptions:
    def __init__(self):
        self.parser = argparse.ArgumentParser()
        self.initialized = False

    def initialize(self):
        self.parser.add_argument("--config", default="config/small.yaml")
        self.parser.add_argument("--seed", type=int, default=3)
        self.initialized = True

    def parse(self):
        if not self.initialized:
            self.initialize()
        args = self.parser.parse_args()
        with open(args.config) as handle:
            opt = to_namespace(yaml.safe_load(handle))
        for key, value in vars(args).items():
            setattr(opt, key, value)
        opt.device = torch.device(f"cuda:{opt.gpu}" if torch.cuda.is_available() else "cpu")
        return opt


class TrainOptions(BaseOptions):
    def initialize(self):
        super().initialize()
        self.parser.add_argument("--out", default="runs")
