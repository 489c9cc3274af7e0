"""State that random training loops keep from one batch to the next, and that later losses read."""

from __future__ import annotations

import random
import re
from typing import NamedTuple

from .compose import Generated
from .epoch_metrics import indented
from .expressions import HEAD, TAIL


class _State(NamedTuple):
    """A variable: the line before the loop, the one of each batch, and lines that change a loss by it."""

    start: str
    update: str
    uses: tuple[str, ...]


_EPOCHS = "for epoch in range(2):\n"
_LOOP = HEAD.replace("for rows, kinds, weights in loader:", "for i, (rows, kinds, weights) in enumerate(loader):")
_ROWS = """\
out|out.softmax(1)|feats.mean((1, 2))|feats.flatten(1)|F.cross_entropy(out, kinds, reduction='none')|weights|rows.flatten(1)"""
_NUMBERS = """\
{v}.detach().mean(0)|{v}.detach().mean()|{v}.detach().sum()|{v}.detach().max()|{v}.detach().std()|{v}.detach().mean().item()|loss.item()
{v}.detach().sum().item()|loss.detach()|{v}.detach().pow(2).mean(0)|{v}.detach().norm()|len(kinds)|(kinds == 1).sum()|{v}.detach()[0]
(kinds == 1).float().mean()|{v}.detach().abs().max().item()|{v}.detach().sum(0)|{v}.detach().var(0)|{v}.detach().median()"""
_LEVEL = "float(torch.as_tensor({s}).float().mean())"
_STATES = (
    _State(
        "kept = 0.0",
        "kept = 0.9 * kept + 0.1 * {n}",
        (
            f"loss = loss + (out.sum(1) * {_LEVEL.format(s='kept')}).mean()",
            f"loss = loss / (1 + abs({_LEVEL.format(s='kept')}))",
            "loss = loss * torch.as_tensor(kept).float().mean().clamp(-2, 2).add(3)",
        ),
    ),
    _State("total = 0", "total = total + {n}", (f"loss = loss + 0.001 * {_LEVEL.format(s='total')} * out.mean()",)),
    _State("total = 0", "total += {n}", (f"loss = loss / (1 + abs({_LEVEL.format(s='total')}))",)),
    _State(
        "centre = torch.zeros(3)",
        "centre.mul_(0.9).add_(out.detach().mean(0), alpha=0.1)",
        ("loss = loss + (out - centre.clone()).pow(2).mean()",),
    ),
    _State(
        "centre = torch.zeros(3)",
        "centre = torch.lerp(centre, out.detach().mean(0), 0.1)",
        ("loss = loss + (out - centre.clone()).pow(2).mean()",),
    ),
    _State(
        "bank = []",
        "bank.append(out.detach())",
        (
            "loss = loss if not bank else loss + (out - torch.cat(bank).mean(0)).pow(2).mean()",
            "loss = loss if not bank else loss + (out @ torch.cat(bank[-2:]).t()).logsumexp(1).mean()",
            "loss = loss + 0.01 * len(bank) * out.mean()",
        ),
    ),
    _State(
        "last = None",
        "last = out.detach()",
        (
            "loss = loss if last is None else loss + F.mse_loss(out, last)",
            "loss = loss if last is None else loss + (out.mean(0) - last.mean(0)).pow(2).sum()",
        ),
    ),
    _State("seen = 0", "seen += len(kinds)", ("loss = loss * (1 + seen / 100)", "loss = loss / max(seen, 1)")),
    _State("steps = 0", "steps += 1", ("loss = loss * (1 + steps / 100)", "loss = loss if steps % 2 else loss * 2")),
    _State(
        "counts = torch.zeros(3)",
        "counts += torch.bincount(kinds, minlength=3)",
        (
            "loss = loss + F.cross_entropy(out, kinds, weight=1 / (counts + 1.0))",
            "loss = loss + (out.mean(0) * counts / (counts.sum() + 1)).sum()",
        ),
    ),
    _State(
        "high = 0.0",
        "high = max(high, {v}.detach().max().item())",
        ("loss = loss + out[out > 0.5 * high].sum() / len(out)", "loss = loss + high * out.mean()"),
    ),
    _State("queue = torch.ones(8, 3)", "queue = torch.cat([queue[2:], out.detach()[:2]])", ("loss = loss + (out - queue).pow(2).mean()",)),
    _State(
        "queue, place = torch.ones(16, 3), 0",
        "queue[place : place + len(out)] = out.detach()\nplace = (place + len(out)) % 16",
        ("loss = loss + (out @ queue.clone().t()).logsumexp(1).mean()",),
    ),
    _State(
        "means = torch.zeros(3, 3)",
        "for c in range(3):\n    if (kinds == c).any():\n        means[c] = 0.5 * means[c] + 0.5 * out.detach()[kinds == c].mean(0)",
        ("loss = loss + (out - means.clone()[kinds]).pow(2).sum(1).mean()",),
    ),
    _State(
        "means = torch.zeros(3, 3)",
        "for row, kind in zip(out.detach(), kinds):\n    means[kind] = 0.9 * means[kind] + 0.1 * row",
        ("loss = loss + (out @ means.clone().t()).logsumexp(1).mean()",),
    ),
    _State(
        "scales = torch.ones(3)",
        "scales = scales * torch.exp(-0.1 * F.one_hot(kinds, 3).float().mean(0))",
        ("loss = loss + F.cross_entropy(out, kinds, weight=scales)",),
    ),
    _State(
        "found = {{}}",
        "for kind in kinds.tolist():\n    found[kind] = found.get(kind, 0) + 1",
        ("loss = loss * (1 + 0.01 * sum(found.values()))", "loss = loss + 0.01 * found.get(1, 0) * out.mean()"),
    ),
    _State("done = False", "done = loss.item() < 1.0", ("if done:\n    break", "loss = loss * (0.5 if done else 1)")),
    _State("hard = 0", "hard += int(loss.item() > 1.0)", ("loss = loss * (1 + 0.1 * hard)",)),
    _State("past = torch.zeros(32)", "past[i] = loss.item()", ("loss = loss + past[:4].mean() * out.mean()",)),
    _State(
        "low, waited = 1e9, 0",
        "waited = 0 if loss.item() < low else waited + 1\nlow = min(low, loss.item())",
        ("loss = loss * (1 + 0.1 * waited)", "for group in optimizer.param_groups:\n    group['lr'] = 0.01 / (1 + waited)"),
    ),
    _State("rate = 0.01", "rate = 0.01 / (1 + abs(" + _LEVEL.format(s="{n}") + "))", ("optimizer.param_groups[0]['lr'] = rate",)),
)


def kept(seed: int) -> Generated:
    """The script of a seed, which keeps one or two variables over batches: in the loop, in a criterion or in the network."""
    rng = random.Random(seed)
    place = rng.choice(("loop", "loop", "criterion", "network"))
    states = [s for s in _STATES if place == "loop" or not re.search("break|optimizer", " ".join(s.uses))]
    starts, before, uses, after = list[str](), list[str](), list[str](), list[str]()
    for state in rng.sample(states, rng.choice((1, 1, 2))):
        start, update, use = _filled(rng, state)
        starts.append(start)
        (before if rng.random() < 0.5 and "loss" not in update else after).append(update)
        uses.append(use)
    body = ["loss = F.cross_entropy(out, kinds)", *before, *uses]
    text = _in_loop(rng, starts, body, after) if place == "loop" else _in_module(rng, place == "network", starts, [*body, *after])
    return Generated(seed, text, (f"kept: in the {place}", *(f"line: {line}" for line in (*before, *after, *uses))))


def state_lines(rng: random.Random) -> tuple[str, str, str]:
    """The line that a variable starts with, the one that updates it, and one that changes a loss by it."""
    return _filled(rng, rng.choice(_STATES))


def _filled(rng: random.Random, state: _State) -> tuple[str, str, str]:
    rows = rng.choice(_ROWS.split("|"))
    number = rng.choice(_NUMBERS.replace("\n", "|").split("|")).format(v=rows)
    return state.start.format(), state.update.format(v=rows, n=number), rng.choice(state.uses)


def _in_loop(rng: random.Random, starts: list[str], body: list[str], after: list[str]) -> str:
    """A script whose loop holds the variables, for an epoch or throughout."""
    by_epoch = rng.random() < 0.3
    start = indented(starts, 4 if by_epoch else 0)
    return _LOOP.replace(_EPOCHS, _EPOCHS + start if by_epoch else start + _EPOCHS) + indented(body, 8) + TAIL + indented(after, 8)


def _in_module(rng: random.Random, in_network: bool, starts: list[str], body: list[str]) -> str:
    """A script whose variables are attributes of the module that computes the loss."""
    names = {name.strip() for start in starts for name in start.partition(" = ")[0].split(",")}
    attribute = re.compile(rf"\b({'|'.join(names)})\b")
    starts, body = ([attribute.sub(r"self.\1", line) for line in some] for some in (starts, body))
    if rng.random() < 0.5:
        starts = [re.sub(r"^self\.(\w+) = (torch.*)", r'self.register_buffer("\1", \2)', start) for start in starts]
    start, forward = indented(starts, 8), indented([*body, "return loss"], 8)
    if in_network:
        given = "        out = self.head(feats.flatten(1))\n" + forward
        text = _LOOP.replace("        return self.head(feats.flatten(1)), feats\n", given).replace(
            "\n\n    def forward", "\n" + start + "\n    def forward"
        )
        text = text.replace("forward(self, rows)", "forward(self, rows, kinds, weights, i)")
        return text.replace("out, feats = net(rows)", "loss = net(rows, kinds, weights, i)") + TAIL
    init = "    def __init__(self):\n        super().__init__()\n" + start
    module = f"class Criterion(nn.Module):\n{init}\n    def forward(self, out, feats, rows, kinds, weights, i):\n{forward}\n\n"
    text = _LOOP.replace("net = Net()\n", module + "net = Net()\ncriterion = Criterion()\n")
    return text + "        loss = criterion(out, feats, rows, kinds, weights, i)\n" + TAIL
