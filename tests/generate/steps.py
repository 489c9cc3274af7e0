"""The optimizer, and what is done with a loss. `{forward}` stands for the forward pass and the loss, `{parameters}` for what is trained."""

from __future__ import annotations

from .pieces import Piece

OPTIMIZERS = {
    "SGD": "optimizer = torch.optim.SGD({parameters}, lr=lr)\n",
    "momentum": "optimizer = optim.SGD({parameters}, lr=lr, momentum=0.9, weight_decay=1e-4)\n",
    "Adam": "optimizer = optim.Adam({parameters}, lr=0.2 * lr)\n",
    "AdamW": "optimizer = torch.optim.AdamW({parameters}, lr=0.2 * lr, weight_decay=0.01)\n",
    "by name": "optimizer = getattr(torch.optim, optimizer_name)({parameters}, lr=lr)\n",
    "AdamW, no decay of biases": (
        "decayed = [p for p in {parameters} if p.requires_grad and p.dim() > 1]\n"
        "undecayed = [p for p in {parameters} if p.requires_grad and p.dim() <= 1]\n"
        'optimizer = optim.AdamW([{"params": decayed, "weight_decay": 0.01}, {"params": undecayed, "weight_decay": 0.0}], lr=0.2 * lr)\n'
    ),
    "groups": 'optimizer = torch.optim.SGD([{"params": {parameters}, "lr": lr}], lr=0.5 * lr, momentum=0.9)\n',
}
BACKWARD = "optimizer.zero_grad()\n{forward}\nloss.backward()\n"
STEP = "optimizer.step()\n"


def step(feature: str, batch: str, setup: str = "", **kw: object) -> Piece:
    return Piece(f"step: {feature}", settings={"epochs": 3, "lr": 0.1}, setup=setup, batch=batch, **kw)  # type: ignore[arg-type]


def named(names: str) -> frozenset[str]:
    return frozenset(names.split())


STEPS = [
    step("plain", BACKWARD + STEP, weight=5),
    step("gradients cleared after the forward", "{forward}\noptimizer.zero_grad()\nloss.backward()\noptimizer.step()\n", weight=2),
    step("model.zero_grad", "model.zero_grad()\n{forward}\nloss.backward()\noptimizer.step()\n", excludes=named("several")),
    step("gradients set to None", "optimizer.zero_grad(set_to_none=True)\n{forward}\nloss.backward()\noptimizer.step()\n"),
    step("norm clipped", BACKWARD + "torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)\n" + STEP, weight=2),
    step("values clipped", BACKWARD + "nn.utils.clip_grad_value_(model.parameters(), 0.05)\n" + STEP),
    step(
        "norm of gradients by hand",
        BACKWARD
        + """
norm = sum(p.grad.pow(2).sum() for p in model.parameters() if p.grad is not None) ** 0.5
if norm > 0.5:
    for p in model.parameters():
        if p.grad is not None:
            p.grad.mul_(0.5 / norm)
"""
        + STEP,
    ),
    step(
        "gradients changed by hand",
        BACKWARD
        + """
for p in model.parameters():
    if p.grad is not None:
        p.grad.add_(p.detach(), alpha=1e-3)
"""
        + STEP,
    ),
    step(
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
        excludes=named("uneven"),
    ),
    step(
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
        excludes=named("uneven"),
    ),
    step(
        "scheduler for each batch",
        BACKWARD + STEP + "scheduler.step()\n",
        "scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 0.95 ** s)\n",
    ),
    step(
        "one cycle over len(train_loader)",
        BACKWARD + STEP + "scheduler.step()\n",
        "scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, epochs=epochs, steps_per_epoch=len(train_loader))\n",
        excludes=frozenset({"no loader", "no length", "made late"}),
    ),
    step(
        "cosine over all steps",
        BACKWARD + STEP + "scheduler.step()\n",
        "scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * (num_train // batch_size))\n",
    ),
    step(
        "scheduler for each epoch",
        BACKWARD + STEP,
        "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)\n",
        after="scheduler.step()\n",
        weight=2,
    ),
    step(
        "warm-up by hand",
        """
warmup += 1
for group in optimizer.param_groups:
    group["lr"] = lr * min(1.0, warmup / 6)
"""
        + BACKWARD
        + STEP,
        "warmup = 0\n",
    ),
    step(
        "rate by epoch, by a function",
        BACKWARD + STEP,
        start="adjust_learning_rate(optimizer, epoch, lr)\n",
        definitions="""
def adjust_learning_rate(optimizer, epoch, lr):
    for param_group in optimizer.param_groups:
        param_group["lr"] = lr * (0.5 ** epoch)
""",
    ),
    step(
        "warm-up by samples seen",
        BACKWARD + "seen += inputs.size(0)\noptimizer.param_groups[0]['lr'] = lr * min(1.0, seen / 60)\n" + STEP,
        "seen = 0\n",
    ),
    step(
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
    step(
        "half the rate while the loss is high",
        BACKWARD + "for group in optimizer.param_groups:\n    group['lr'] = lr if loss.item() < 1.0 else 0.5 * lr\n" + STEP,
    ),
    step(
        "closure",
        """
def closure():
    optimizer.zero_grad()
    {forward}
    loss.backward()
    return loss

loss = optimizer.step(closure)
""",
        tags=named("closure"),
    ),
    step(
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
    step(
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
    step(
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
        excludes=named("ema several") | {"no gradient of inputs"},
        weight=0.5,
    ),
    step(
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
        excludes=named("ema several") | {"no gradient of inputs"},
        weight=1.5,
    ),
    step(
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
    step(
        "steps counted",
        BACKWARD + STEP + "total_steps += 1\nif total_steps % 3 == 0:\n    print(f'step {total_steps}: loss {loss.item():.6f}')\n",
        "total_steps = 0\n",
        finish='print(f"done after {total_steps} steps")\n',
        weight=2,
    ),
    step(
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
    step(
        "rate of each iteration by a polynomial",
        """
iteration += 1
current_lr = lr * (1 - iteration / max_iter) ** 0.9
for group in optimizer.param_groups:
    group["lr"] = current_lr
"""
        + BACKWARD
        + STEP,
        "iteration, max_iter = 0, epochs * len(train_loader) + 1\n",
        excludes=frozenset({"no loader", "no length", "made late"}),
    ),
    step(
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
    step(
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
    step(
        "norms of gradients kept",
        BACKWARD + "norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)))\n" + STEP,
        start="norms = []\n",
        after='print(f"epoch {epoch} mean norm {sum(norms) / len(norms):.6f} largest {max(norms):.6f}")\n',
    ),
    step(
        "two updates on each batch",
        "for _ in range(2):\n    optimizer.zero_grad()\n    {forward}\n    loss.backward()\n    optimizer.step()\n",
    ),
    step(
        "two optimizers over one model",
        "optimizer.zero_grad()\nfirst_optimizer.zero_grad()\n{forward}\nloss.backward()\noptimizer.step()\nfirst_optimizer.step()\n",
        "first_optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad][:1], lr=0.02)\n",
    ),
    step(
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
        excludes=named("several"),
    ),
    step("mean of a loss that is one number", "optimizer.zero_grad()\n{forward}\nloss = loss.mean()\nloss.backward()\noptimizer.step()\n"),
    step(
        "loss printed as a running mean",
        BACKWARD
        + STEP
        + """
shown += loss.item()
since_shown += 1
if since_shown == 2:
    print(f"step loss {shown / 2:.6f}")
    shown, since_shown = 0.0, 0
""",
        start="shown, since_shown = 0.0, 0\n",
    ),
    step(
        "epoch cut short",
        BACKWARD + STEP + "batches_seen += 1\nif batches_seen >= 3:\n    break\n",
        start="batches_seen = 0\n",
        excludes=named("cleaned_up"),
        weight=0.5,
    ),
]
