"""Choices that random training loops make by numbers of a batch or of an epoch, and what they do then."""

from __future__ import annotations

import random
import warnings

from .compose import Generated
from .epoch_metrics import HEAD, indented, number_of_batch
from .expressions import one_batch

_START = """\
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0, threshold=0.01)
best, waited, count, kept, history, factor = 1e9, 0, 0, None, [], 1.0
"""
_OF_A_BATCH = """\
continue|break|loss = loss * 2|loss = loss + 0.1 * out.pow(2).mean()|count += 1|history.append(loss.item())|factor = factor * 0.9
optimizer.param_groups[0]['lr'] *= 0.9|for group in optimizer.param_groups:\\n    group['lr'] = 0.005
loss = F.cross_entropy(net(rows * 0.9)[0], kinds)|torch.save(net.state_dict(), 'chosen.pt')|weights = weights * 0.5|rows = rows * 0.5
for p in net.parameters():\\n    p.data.clamp_(-0.3, 0.3)|net.near.weight.data.mul_(0.99)|net.near.requires_grad_(False)|scheduler.step(1.0)
torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)|kept = {k: v.clone() for k, v in net.state_dict().items()}"""
_OF_AN_EPOCH = """\
break|best = {n}|waited += 1|optimizer.param_groups[0]['lr'] *= 0.5|torch.save(net.state_dict(), 'best.pt')|count += 1
torch.save({{'net': net.state_dict(), 'best': {n}}}, 'best.pt')|print('better', {n})|kept = copy.deepcopy(net.state_dict())
net.load_state_dict(torch.load('first.pt'))|net.near.weight.requires_grad = False|history.append({n})|factor = 0.5
optimizer = torch.optim.SGD(net.parameters(), lr=0.002)"""
_LOSS = "loss = F.cross_entropy(out, kinds)"
_USES = """\
loss = loss * factor|loss = loss * (1 + 0.1 * count)|loss = loss * (1 + 0.1 * waited)|loss = loss + 0.01 * len(history) * out.mean()"""
_SHOWN = """\
print(epoch, count, waited)|print(epoch, len(history))|print(epoch, factor)|print(epoch, optimizer.param_groups[0]['lr'])
print(epoch, None if kept is None else sorted(kept))"""


def chosen(seed: int) -> Generated:
    """The script of a seed, which does something if a number is above a threshold that some batches reach."""
    rng = random.Random(seed)
    of_batch = rng.random() < 0.55
    use, shown = _one(rng, _USES), _one(rng, _SHOWN)
    if of_batch:
        branch = choice_lines(rng)
        before, after = (branch, "") if rng.random() < 0.6 else ("", branch)
        text, line = script([_LOSS, use, before], [after], [shown], []), branch
    else:
        value = number_of_batch(rng)
        add, start = f"total += {value}", "total = 0.0"
        mean = rng.choice(("total / len(train_loader)", "total"))
        level = _mean(rng, value) * (1 if "/" in mean else 4)
        action = _one(rng, _OF_AN_EPOCH).format(n=mean)
        line = f"if {_test(rng, mean, level)}:\n    {action}"
        text = script([_LOSS, use], [add], [line, shown] if action != "break" else [shown, line], [start])
    return Generated(seed, text, (f"choice: of {'a batch' if of_batch else 'an epoch'}", f"line: {line}", f"line: {use}", f"line: {shown}"))


def choice_lines(rng: random.Random) -> str:
    """A branch that some batches take."""
    value = number_of_batch(rng)
    branch = f"if {_test(rng, value, _mean(rng, value))}:\n    {_one(rng, _OF_A_BATCH)}".replace("\\n", "\n    ")
    return branch + (f"\nelse:\n    {_one(rng, _USES)}" if rng.random() < 0.2 else "")


def script(before: list[str], after: list[str], end: list[str], start: list[str], kept: str = "") -> str:
    """A script with lines before and after a step, after a loop, before it, and before the training."""
    body = ["out, feats = net(rows)", *before, "optimizer.zero_grad()", "loss.backward()", "optimizer.step()", *after]
    head = _START + kept + "torch.save(net.state_dict(), 'first.pt')\nfor epoch in range(3):\n"
    loop = "    for i, (rows, kinds, weights) in enumerate(train_loader):\n"
    lines = (indented([line for line in some if line], by) for some, by in ((start, 4), (body, 8), (end, 4)))
    first, steps, last = (text.replace("\\n", "\n") for text in lines)
    return "import copy\n" + HEAD.replace("for epoch in range(2):\n", head) + first + loop + steps + last


def _test(rng: random.Random, value: str, level: float) -> str:
    """A comparison that goes one way or the other."""
    side, level = rng.choice("<>"), float(f"{level * rng.uniform(0.9, 1.1):.3g}")
    first = "epoch" if "total" in value else "i"
    return rng.choice(("", "", "not ", f"{first} > 0 and ")) + f"{value} {side} {level}"


def _mean(rng: random.Random, value: str) -> float:
    """What a number of a batch is for an untrained network."""
    known = one_batch()
    exec("import numpy as np\nloss = F.cross_entropy(out, kinds)", known)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(eval(value, known))


def _one(rng: random.Random, table: str) -> str:
    return rng.choice([text for line in table.splitlines() for text in line.split("|")])
