"""Optimizers, schedules and steps that a script writes as classes and functions of its own."""

from __future__ import annotations

from .pieces import Piece
from .steps import BACKWARD, STEP, named, step

OWN_STEPS: list[Piece] = [
    step(
        "an optimizer class of its own",
        BACKWARD + "layerwise.step()\n",
        "layerwise = LayerwiseSGD(optimizer.param_groups[0]['params'], lr=0.05)\n",
        definitions="""
class LayerwiseSGD(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1, momentum=0.9, trust=0.02):
        super().__init__(params, dict(lr=lr, momentum=momentum, trust=trust))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                ratio = group["trust"] * p.norm() / (p.grad.norm() + 1e-6)
                buf = state.setdefault("momentum_buffer", torch.zeros_like(p))
                buf.mul_(group["momentum"]).add_(p.grad, alpha=float(ratio) * group["lr"])
                p.sub_(buf)
""",
        excludes=named("several") | {"zero gradients"},
        tags=named("rate unused"),
    ),
    step(
        "gradients of a list of losses",
        "optimizer.zero_grad()\n{forward}\nside = 0.01 * outputs.abs().mean()\ntorch.autograd.backward([loss, side])\noptimizer.step()\n",
        weight=0.7,
    ),
    step(
        "warm-up and cosine of each iteration by a function",
        "lr_now = cosine_rate(lr, step_now, total_iterations)\nset_lr(optimizer, lr_now)\nstep_now += 1\n" + BACKWARD + STEP,
        "step_now, total_iterations = 0, epochs * 4\n",
        definitions="""
def cosine_rate(base, step, total, warmup=2):
    if step < warmup:
        return base * (step + 1) / warmup
    return base * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


def set_lr(optimizer, lr):
    for group in optimizer.param_groups:
        group["lr"] = lr
""",
        imports=("import math",),
    ),
    step(
        "a scheduler class of its own",
        "rate_schedule(optimizer, batches_so_far, epoch)\nbatches_so_far += 1\n" + BACKWARD + STEP,
        "rate_schedule = RateSchedule(lr, epochs, 4, warmup_epochs=1)\nbatches_so_far = 0\n",
        definitions="""
class RateSchedule:
    def __init__(self, base_lr, num_epochs, iters_per_epoch, warmup_epochs=0):
        self.lr = base_lr
        self.iters_per_epoch = iters_per_epoch
        self.total = num_epochs * iters_per_epoch
        self.warmup = warmup_epochs * iters_per_epoch
        self.epoch = -1

    def __call__(self, optimizer, iteration, epoch):
        lr = self.lr * pow(1 - min(iteration, self.total - 1) / self.total, 0.9)
        if self.warmup > 0 and iteration < self.warmup:
            lr = lr * (iteration + 1) / self.warmup
        if epoch > self.epoch:
            print("learning rate of epoch %d is %.5f" % (epoch, lr))
            self.epoch = epoch
        self._adjust(optimizer, lr)

    def _adjust(self, optimizer, lr):
        if len(optimizer.param_groups) == 1:
            optimizer.param_groups[0]["lr"] = lr
        else:
            optimizer.param_groups[0]["lr"] = lr
            for group in optimizer.param_groups[1:]:
                group["lr"] = 10 * lr
""",
    ),
    step(
        "steps left out while gradients are not finite",
        BACKWARD
        + """
finite = all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
if finite:
    optimizer.step()
else:
    print("gradients are not finite")
""",
    ),
    step(
        "sharpness-aware, an optimizer around another",
        """
optimizer.zero_grad()
{forward}
loss.backward()
sam.first_step()
optimizer.zero_grad()
{forward}
loss.backward()
sam.second_step()
""",
        "sam = SAM(optimizer, rho=0.02)\n",
        definitions="""
class SAM:
    def __init__(self, base_optimizer, rho=0.05):
        self.base_optimizer = base_optimizer
        self.param_groups = base_optimizer.param_groups
        self.rho = rho
        self.shifts = {}

    @torch.no_grad()
    def first_step(self):
        scale = self.rho / (self._grad_norm() + 1e-12)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.shifts[p] = p.grad * scale
                p.add_(self.shifts[p])

    @torch.no_grad()
    def second_step(self):
        for p, shift in self.shifts.items():
            p.sub_(shift)
        self.shifts = {}
        self.base_optimizer.step()

    def _grad_norm(self):
        return torch.norm(torch.stack([p.grad.norm(p=2) for g in self.param_groups for p in g["params"] if p.grad is not None]), p=2)
""",
        weight=0.7,
        excludes=named("several") | {"zero gradients"},
    ),
]
