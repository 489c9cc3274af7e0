"""What classes and functions of timm compute, as far as it matters how their results depend on a batch. Checked on timm 1.0.31."""

from copy import deepcopy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.val = 0
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def accuracy(output, target, topk=(1,)):
    best = output.topk(max(topk), dim=1)[1]
    hits = best == target.view(-1, 1)
    return [hits[:, :k].float().sum() * 100.0 / target.size(0) for k in topk]


class LabelSmoothingCrossEntropy(nn.Module):
    def __init__(self, smoothing=0.1):
        super().__init__()
        self.smoothing = smoothing

    def forward(self, x, target):
        return F.cross_entropy(x, target, label_smoothing=self.smoothing)


class SoftTargetCrossEntropy(nn.Module):
    def forward(self, x, target):
        return torch.sum(-target * F.log_softmax(x, dim=-1), dim=-1).mean()


class ModelEmaV2(nn.Module):
    def __init__(self, model, decay=0.9999, device=None):
        super().__init__()
        self.module = deepcopy(model)
        self.module.eval()
        self.decay = decay

    def update(self, model):
        with torch.no_grad():
            for kept, new in zip(self.module.state_dict().values(), model.state_dict().values()):
                kept.copy_(self.decay * kept + (1.0 - self.decay) * new)

    def set(self, model):
        with torch.no_grad():
            for kept, new in zip(self.module.state_dict().values(), model.state_dict().values()):
                kept.copy_(new)

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)


class ModelEmaV3(ModelEmaV2):
    def __init__(self, model, decay=0.9999, **settings):
        super().__init__(model, decay)

    def update(self, model, step=None):
        super().update(model)


def create_optimizer_v2(model_or_params, opt="sgd", lr=None, weight_decay=0.0, momentum=0.9, **settings):
    params = model_or_params.parameters() if isinstance(model_or_params, nn.Module) else model_or_params
    return torch.optim.SGD(params, lr=lr)


def create_optimizer(args, model, filter_bias_and_bn=True):
    return torch.optim.SGD(model.parameters(), lr=args.lr)


class Scheduler:
    def __init__(self, optimizer, *args, **settings):
        self.optimizer = optimizer

    def step(self, epoch, metric=None):
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"] * 0.1**epoch

    def step_update(self, num_updates, metric=None):
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"] * 0.1**num_updates

    def state_dict(self):
        return {}

    def load_state_dict(self, state_dict):
        pass


class CosineLRScheduler(Scheduler):
    pass


class StepLRScheduler(Scheduler):
    pass


class MultiStepLRScheduler(Scheduler):
    pass


class TanhLRScheduler(Scheduler):
    pass


class PolyLRScheduler(Scheduler):
    pass


class PlateauLRScheduler(Scheduler):
    def step(self, epoch, metric=None):
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"] * (0.1 if metric > 0 else 1.0)


def create_scheduler_v2(optimizer, sched="cosine", num_epochs=300, **settings):
    return Scheduler(optimizer), num_epochs


def create_scheduler(args, optimizer, updates_per_epoch=0):
    return Scheduler(optimizer), args.epochs


class Mixup:
    def __init__(self, mixup_alpha=1.0, cutmix_alpha=0.0, cutmix_minmax=None, prob=1.0, switch_prob=0.5, mode="batch", correct_lam=True,
                 label_smoothing=0.1, num_classes=1000, multi_label=False):
        self.num_classes = num_classes

    def __call__(self, x, target):
        share = np.random.beta(1.0, 1.0)
        order = torch.randperm(x.size(0))
        x = x * share + x[order] * (1.0 - share)
        target = F.one_hot(target, self.num_classes)
        target = target * share + target[order] * (1.0 - share)
        return x, target


class ModelEma:
    def __init__(self, model, decay=0.9999, device="", resume=""):
        self.ema = deepcopy(model)
        self.ema.eval()
        self.decay = decay

    def update(self, model):
        with torch.no_grad():
            for kept, new in zip(self.ema.state_dict().values(), model.state_dict().values()):
                kept.copy_(self.decay * kept + (1.0 - self.decay) * new)


class NativeScaler:
    def __init__(self, device="cuda"):
        self._scaler = torch.amp.GradScaler(device)

    def __call__(self, loss, optimizer, clip_grad=None, clip_mode="norm", parameters=None, create_graph=False, need_update=True):
        self._scaler.scale(loss).backward(create_graph=create_graph)
        if need_update:
            if clip_grad is not None:
                self._scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(parameters, clip_grad)
            self._scaler.step(optimizer)
            self._scaler.update()

    def state_dict(self):
        return self._scaler.state_dict()

    def load_state_dict(self, state_dict):
        self._scaler.load_state_dict(state_dict)
