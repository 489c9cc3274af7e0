"""The optimizer, and what is done with a loss. `{forward}` stands for the forward pass and the loss, `{parameters}` for what is trained."""

from __future__ import annotations

from .pieces import Piece

OPTIMIZERS = {
    "SGD": "optimizer = torch.optim.SGD({parameters}, lr=lr)\n",
    "momentum": "optimizer = optim.SGD({parameters}, lr=lr, momentum=0.9, weight_decay=1e-4)\n",
    "Adam": "optimizer = optim.Adam({parameters}, lr=0.2 * lr)\n",
    "AdamW": "optimizer = torch.optim.AdamW({parameters}, lr=0.2 * lr, weight_decay=0.01)\n",
    "by name": "optimizer = getattr(torch.optim, optimizer_name)({parameters}, lr=lr)\n",
    "groups": 'optimizer = torch.optim.SGD([{"params": {parameters}, "lr": lr}], lr=0.5 * lr, momentum=0.9)\n',
}
_BACKWARD = "optimizer.zero_grad()\n{forward}\nloss.backward()\n"
_STEP = "optimizer.step()\n"


def _step(feature: str, batch: str, setup: str = "", **kw: object) -> Piece:
    return Piece(f"step: {feature}", settings={"epochs": 3, "lr": 0.1}, setup=setup, batch=batch, **kw)  # type: ignore[arg-type]


def _named(names: str) -> frozenset[str]:
    return frozenset(names.split())


STEPS = [
    _step("plain", _BACKWARD + _STEP, weight=5),
    _step("gradients cleared after the forward", "{forward}\noptimizer.zero_grad()\nloss.backward()\noptimizer.step()\n", weight=2),
    _step("model.zero_grad", "model.zero_grad()\n{forward}\nloss.backward()\noptimizer.step()\n", excludes=_named("several")),
    _step("gradients set to None", "optimizer.zero_grad(set_to_none=True)\n{forward}\nloss.backward()\noptimizer.step()\n"),
    _step("norm clipped", _BACKWARD + "torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)\n" + _STEP, weight=2),
    _step("values clipped", _BACKWARD + "nn.utils.clip_grad_value_(model.parameters(), 0.05)\n" + _STEP),
    _step(
        "norm of gradients by hand",
        _BACKWARD
        + """
norm = sum(p.grad.pow(2).sum() for p in model.parameters() if p.grad is not None) ** 0.5
if norm > 0.5:
    for p in model.parameters():
        if p.grad is not None:
            p.grad.mul_(0.5 / norm)
"""
        + _STEP,
    ),
    _step(
        "gradients changed by hand",
        _BACKWARD
        + """
for p in model.parameters():
    if p.grad is not None:
        p.grad.add_(p.detach(), alpha=1e-3)
"""
        + _STEP,
    ),
    _step(
        "accumulated over two batches",
        """
{forward}
(loss / accumulation).backward()
micro_step += 1
if micro_step % accumulation == 0:
    optimizer.step()
    optimizer.zero_grad()
""",
        "micro_step = 0\naccumulation = 2\noptimizer.zero_grad()\n",
        weight=2,
        excludes=_named("uneven"),
    ),
    _step(
        "accumulated, loss rebound",
        """
{forward}
loss = loss / accumulate
loss.backward()
global_step += 1
if global_step % accumulate == 0:
    optimizer.step()
    optimizer.zero_grad()
""",
        "global_step = 0\naccumulate = 2\n",
        excludes=_named("uneven"),
    ),
    _step(
        "scheduler for each batch",
        _BACKWARD + _STEP + "scheduler.step()\n",
        "scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 0.95 ** s)\n",
    ),
    _step(
        "one cycle over len(train_loader)",
        _BACKWARD + _STEP + "scheduler.step()\n",
        "scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, epochs=epochs, steps_per_epoch=len(train_loader))\n",
        excludes=frozenset({"no loader", "no length", "made late"}),
    ),
    _step(
        "cosine over all steps",
        _BACKWARD + _STEP + "scheduler.step()\n",
        "scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * (num_train // batch_size))\n",
    ),
    _step(
        "scheduler for each epoch",
        _BACKWARD + _STEP,
        "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)\n",
        after="scheduler.step()\n",
        weight=2,
    ),
    _step(
        "warm-up by hand",
        """
warmup += 1
for group in optimizer.param_groups:
    group["lr"] = lr * min(1.0, warmup / 6)
"""
        + _BACKWARD
        + _STEP,
        "warmup = 0\n",
    ),
    _step(
        "rate by epoch, by a function",
        _BACKWARD + _STEP,
        start="adjust_learning_rate(optimizer, epoch, lr)\n",
        definitions="""
def adjust_learning_rate(optimizer, epoch, lr):
    for param_group in optimizer.param_groups:
        param_group["lr"] = lr * (0.5 ** epoch)
""",
    ),
    _step(
        "warm-up by samples seen",
        _BACKWARD + "seen += inputs.size(0)\noptimizer.param_groups[0]['lr'] = lr * min(1.0, seen / 60)\n" + _STEP,
        "seen = 0\n",
    ),
    _step(
        "bad batches skipped",
        """
optimizer.zero_grad()
{forward}
if torch.isnan(loss) or loss.item() > 50:
    print("skipped a batch")
    continue
loss.backward()
optimizer.step()
""",
    ),
    _step(
        "half the rate while the loss is high",
        _BACKWARD + "for group in optimizer.param_groups:\n    group['lr'] = lr if loss.item() < 1.0 else 0.5 * lr\n" + _STEP,
    ),
    _step(
        "closure",
        """
def closure():
    optimizer.zero_grad()
    {forward}
    loss.backward()
    return loss

loss = optimizer.step(closure)
""",
        tags=_named("closure"),
    ),
    _step(
        "autocast and scaler",
        """
optimizer.zero_grad()
with torch.autocast("cuda", enabled=use_amp):
    {forward}
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
""",
        "use_amp = torch.cuda.is_available()\nscaler = torch.amp.GradScaler('cuda', enabled=use_amp)\n",
    ),
    _step(
        "scaler, unscaled and clipped",
        """
optimizer.zero_grad()
with torch.cuda.amp.autocast():
    {forward}
scaler.scale(loss).backward()
scaler.unscale_(optimizer)
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
scaler.step(optimizer)
scaler.update()
""",
        "scaler = torch.cuda.amp.GradScaler()\n",
    ),
    _step(
        "gradient penalty",
        """
optimizer.zero_grad()
inputs.requires_grad_(True)
{forward}
slope, = torch.autograd.grad(outputs.sum(), inputs, create_graph=True)
loss = loss + 0.1 * ((slope.norm(dim=1) - 1) ** 2).mean()
loss.backward()
optimizer.step()
""",
        task="rows",
        excludes=_named("ema several") | {"no gradient of inputs"},
        weight=0.5,
    ),
    _step(
        "slope of the mean output",
        """
optimizer.zero_grad()
inputs.requires_grad_(True)
{forward}
slope, = torch.autograd.grad(outputs.mean(), inputs, create_graph=True)
loss = loss + 100 * (slope ** 2).sum(dim=1).mean()
loss.backward()
optimizer.step()
""",
        task="rows",
        excludes=_named("ema several") | {"no gradient of inputs"},
        weight=1.5,
    ),
    _step(
        "two backward calls",
        """
optimizer.zero_grad()
{forward}
loss.backward(retain_graph=True)
penalty = 0.01 * outputs.pow(2).mean()
penalty.backward()
optimizer.step()
""",
        weight=0.5,
    ),
    _step(
        "steps counted",
        _BACKWARD + _STEP + "total_steps += 1\nif total_steps % 3 == 0:\n    print(f'step {total_steps}: loss {loss.item():.6f}')\n",
        "total_steps = 0\n",
        finish='print(f"done after {total_steps} steps")\n',
        weight=2,
    ),
    _step(
        "a function that steps",
        "{forward}\nupdate(optimizer, loss)\n",
        definitions="""
def update(optimizer, loss, max_norm=None):
    optimizer.zero_grad()
    loss.backward()
    if max_norm is not None:
        for group in optimizer.param_groups:
            torch.nn.utils.clip_grad_norm_(group["params"], max_norm)
    optimizer.step()
""",
        weight=2,
    ),
    _step(
        "rate of each iteration by a polynomial",
        """
iteration += 1
current_lr = lr * (1 - iteration / max_iter) ** 0.9
for group in optimizer.param_groups:
    group["lr"] = current_lr
"""
        + _BACKWARD
        + _STEP,
        "iteration, max_iter = 0, epochs * len(train_loader) + 1\n",
        excludes=frozenset({"no loader", "no length", "made late"}),
    ),
    _step(
        "an object that steps and sets the rate",
        "scheduled.zero_grad()\n{forward}\nloss.backward()\nscheduled.step_and_update_lr()\n",
        "scheduled = ScheduledOptim(optimizer, lr, warmup_steps=4)\n",
        definitions="""
class ScheduledOptim:
    def __init__(self, optimizer, base_lr, warmup_steps):
        self._optimizer = optimizer
        self.base_lr = base_lr
        self.warmup_steps = warmup_steps
        self.n_steps = 0

    def step_and_update_lr(self):
        self._update_learning_rate()
        self._optimizer.step()

    def zero_grad(self):
        self._optimizer.zero_grad()

    def _get_scale(self):
        return min(self.n_steps ** -0.5, self.n_steps * self.warmup_steps ** -1.5)

    def _update_learning_rate(self):
        self.n_steps += 1
        for group in self._optimizer.param_groups:
            group["lr"] = self.base_lr * self._get_scale()
""",
    ),
    _step(
        "accumulated, and a step at the end of the epoch",
        """
{forward}
(loss / 2).backward()
batch_number += 1
if batch_number % 2 == 0 or batch_number == len(train_loader):
    optimizer.step()
    optimizer.zero_grad()
""",
        start="batch_number = 0\noptimizer.zero_grad()\n",
        excludes=frozenset({"uneven", "no loader", "no length", "made late"}),
    ),
    _step(
        "norms of gradients kept",
        _BACKWARD + "norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)))\n" + _STEP,
        start="norms = []\n",
        after='print(f"epoch {epoch} mean norm {sum(norms) / len(norms):.6f} largest {max(norms):.6f}")\n',
    ),
    _step(
        "two updates on each batch",
        "for _ in range(2):\n    optimizer.zero_grad()\n    {forward}\n    loss.backward()\n    optimizer.step()\n",
    ),
    _step(
        "two optimizers over one model",
        "optimizer.zero_grad()\nfirst_optimizer.zero_grad()\n{forward}\nloss.backward()\noptimizer.step()\nfirst_optimizer.step()\n",
        "first_optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad][:1], lr=0.02)\n",
    ),
    _step(
        "sharpness-aware, by hand",
        """
optimizer.zero_grad()
{forward}
loss.backward()
moved = []
with torch.no_grad():
    for p in model.parameters():
        if p.grad is not None:
            shift = 0.02 * p.grad / (p.grad.norm() + 1e-12)
            p.add_(shift)
            moved.append((p, shift))
optimizer.zero_grad()
{forward}
loss.backward()
with torch.no_grad():
    for p, shift in moved:
        p.sub_(shift)
optimizer.step()
""",
        weight=0.7,
        excludes=_named("several"),
    ),
    _step("mean of a loss that is one number", "optimizer.zero_grad()\n{forward}\nloss = loss.mean()\nloss.backward()\noptimizer.step()\n"),
    _step(
        "loss printed as a running mean",
        _BACKWARD
        + _STEP
        + """
shown += loss.item()
since_shown += 1
if since_shown == 2:
    print(f"step loss {shown / 2:.6f}")
    shown, since_shown = 0.0, 0
""",
        start="shown, since_shown = 0.0, 0\n",
    ),
    _step(
        "epoch cut short",
        _BACKWARD + _STEP + "batches_seen += 1\nif batches_seen >= 3:\n    break\n",
        start="batches_seen = 0\n",
        excludes=_named("cleaned_up"),
        weight=0.5,
    ),
]
