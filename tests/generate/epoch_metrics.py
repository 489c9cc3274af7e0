"""Metrics of random expressions: what a training or a validation collects of its batches, and prints once it has seen all of them."""

from __future__ import annotations

import random
from collections.abc import Callable

from .compose import Generated
from .expressions import NET

HEAD = f"""\
import collections

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y, w = torch.randn(32, 4, 6), torch.randint(0, 3, (32,)), torch.rand(32)
train_set, val_set = TensorDataset(x, y, w), TensorDataset(x[:28] * 0.5, y[:28], w[:28])
train_loader = DataLoader(train_set, batch_size=8, shuffle=True, drop_last=True)
val_loader = DataLoader(val_set, batch_size=8)


{NET}for epoch in range(2):
"""
_STEP = """\
        out, feats = net(rows)
        loss = F.cross_entropy(out, kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_TRAINING = "{start}    for i, (rows, kinds, weights) in enumerate(train_loader):\n" + _STEP + "{each}{end}"
_VALIDATION = (
    "    for rows, kinds, weights in train_loader:\n" + _STEP + "    net.eval()\n{start}    with torch.no_grad():\n"
    "        for i, (rows, kinds, weights) in enumerate(val_loader):\n            out, feats = net(rows)\n"
    "            loss = F.cross_entropy(out, kinds)\n{each}{end}    net.train()\n"
)
_NUMBERS = """\
loss.item()|loss.item() * rows.size(0)|loss.item() * len(kinds)|torch.exp(loss).item()|loss.item() ** 0.5|loss.item() * 8
float(loss.detach())
(out.argmax(1) == kinds).sum().item()|(out.argmax(1) == kinds).float().mean().item()|out.max(1)[1].eq(kinds).sum().item()|len(kinds)
(out.argmax(1) == kinds).float().sum().item() / len(kinds)|(out.argmax(1) != kinds).float().mean().item() * kinds.size(0)|rows.shape[0]|1
F.mse_loss(out, F.one_hot(kinds, 3).float(), reduction='sum').item()|(out.argmax(1)[kinds == 1] == 1).sum().item()|(kinds == 1).sum().item()
((out.argmax(1) == 1) & (kinds == 1)).sum().item()|out.topk(2, 1)[1].eq(kinds[:, None]).any(1).float().mean().item() * 100
np.mean(out.argmax(1).numpy() == kinds.numpy())|np.abs(out.detach().numpy()).sum()|(weights * (out.argmax(1) == kinds)).sum().item()
weights.sum().item()|out.softmax(1).max(1)[0].mean().item()|out.detach().norm().item()|out.std().item()|loss.detach().cpu().numpy()
feats.detach().abs().mean(dim=(1, 2)).sum().item()|sum(out.argmax(1) == kinds).item()|int((out.argmax(1) == kinds).all())"""
_ROWS = """\
out|feats.flatten(1)|out.softmax(1)|out.argmax(1).float()|weights|out[:, 0]|feats.mean(1)
F.cross_entropy(out, kinds, reduction='none')"""
_OF_ROWS = """\
{v}.mean()|{v}.sum()|{v}.max()|{v}.min()|{v}.std()|{v}.median()|{v}.pow(2).mean().sqrt()|{v}.norm()|{v}[0].sum()|({v} > 0).sum()|{v}.var()
({v} > 0).float().mean()|{v}.pow(2).sum()|{v}.abs().max()"""
_KEPT = """\
out.argmax(1)|out.softmax(1)[:, 1].detach()|out.detach()|F.cross_entropy(out, kinds, reduction='none').detach()|out.argmax(1) == kinds
weights
feats.mean((1, 2)).detach()"""
_DIVISORS = "len({loader})|seen|len({data})|steps|1|len({loader}.dataset)|(i + 1)|seen * 1.0"
_OF_LISTS = """\
np.mean(L)|max(L)|min(L)|sum(L) / len(L)|np.median(L)|np.std(L)|sorted(L)[0]|sum(L)|np.sum(L) / len({data})|len(L)|np.array(L).mean()
torch.tensor(L).float().mean().item()|np.percentile(L, 90)|np.average(L)"""
_OF_ALL = "{c}.mean()|{c}.sum()|{c}.max()|{c}.std()|len({c})|({q} == 1).sum()|({c}.reshape(len({q}), -1)[:, 0] * {q}).sum()|{c}.shape"
_CELLS = """\
for t, p in zip(kinds, out.argmax(1)):\n    cm[t, p] += 1|np.add.at(cm, (kinds.numpy(), out.argmax(1).numpy()), 1)
for j in range(len(kinds)):\n    cm[kinds[j], out[j].argmax()] += 1
cm += np.bincount(3 * kinds.numpy() + out.argmax(1).numpy(), minlength=9).reshape(3, 3)""".replace("\n    ", "\\n    ")

_Metric = tuple[list[str], list[str], list[str]]


def metric(seed: int) -> Generated:
    """The script of a seed, which prints a random number of each epoch."""
    rng = random.Random(seed)
    start, each, end = metric_lines(rng)
    trains = rng.random() < 0.5
    body = _TRAINING if trains else _VALIDATION
    body = body.format(start=indented(start, 4), each=indented(each, 8 if trains else 12), end=indented(end, 4))
    body = body.replace("{loader}", "train_loader" if trains else "val_loader").replace("{data}", "train_set" if trains else "val_set")
    return Generated(seed, HEAD + body, (f"in: {'training' if trains else 'validation'}", *(f"line: {line}" for line in (*each, *end))))


def metric_lines(rng: random.Random) -> _Metric:
    """The lines of a metric before a loop, of each batch, and after the loop, for `{loader}` and `{data}`."""
    return rng.choice(_WAYS)(rng)


def indented(lines: list[str], by: int) -> str:
    return "".join(" " * by + line.replace("\n", "\n" + " " * by) + "\n" for line in lines)


def _one(rng: random.Random, table: str) -> str:
    return rng.choice([text for line in table.splitlines() for text in line.split("|")]).replace("\\n", "\n")


def number_of_batch(rng: random.Random) -> str:
    """A number of a batch."""
    if rng.random() < 0.7:
        return _one(rng, _NUMBERS)
    return _one(rng, _OF_ROWS).format(v=_one(rng, _ROWS)) + ".item()"


def _total(rng: random.Random) -> _Metric:
    number, divisor = number_of_batch(rng), _one(rng, _DIVISORS)
    added = rng.choice((f"total += {number}", f"total = total + {number}"))
    return ["total, seen, steps = 0.0, 0, 0"], [added, "seen += len(kinds)", "steps += 1"], [f"print('epoch', total / {divisor})"]


def _counted(rng: random.Random) -> _Metric:
    count = rng.choice(("count += 1", "count += len(rows)", "count += out.numel()", "count += (kinds > 0).sum().item()"))
    return (
        ["total, count = 0.0, 0"],
        [f"total += {number_of_batch(rng)}", count],
        ["mean = total / count", "print('epoch', round(mean, 4))"],
    )


def _list(rng: random.Random) -> _Metric:
    number = number_of_batch(rng)
    return ["L = []"], [rng.choice((f"L.append({number})", f"L += [{number}]"))], [f"print('epoch', {_one(rng, _OF_LISTS)})"]


def _rows(rng: random.Random) -> _Metric:
    rows, last = _one(rng, _KEPT), _one(rng, _OF_ALL)
    if rng.random() < 0.5:
        shown = last.format(c="torch.cat(P).float()", q="torch.cat(Q)")
        return ["P, Q = [], []"], [f"P.append({rows})", "Q.append(kinds)"], [f"print('epoch', {shown})"]
    put = rng.choice((f"P.append(({rows}).numpy())", f"P.extend(({rows}).numpy())", f"P.extend(({rows}).tolist())"))
    joined = "np.concatenate(P).astype(float)" if "append" in put else "np.array(P).astype(float)"
    put_kinds = rng.choice(("Q.extend(kinds.tolist())", "Q.extend(kinds.numpy())"))
    return ["P, Q = [], []"], [put, put_kinds], [f"print('epoch', {last.format(c=joined, q='np.array(Q)')})"]


def _best(rng: random.Random) -> _Metric:
    number = number_of_batch(rng)
    kept = rng.choice((f"best = max(best, {number})", f"best = {number} if {number} > best else best"))
    return ["best = 0.0"], [kept], ["print('epoch', best)"]


def _running(rng: random.Random) -> _Metric:
    return ["running = 0.0"], [f"running = 0.9 * running + 0.1 * {number_of_batch(rng)}"], ["print('epoch', running)"]


def _dict(rng: random.Random) -> _Metric:
    shown = rng.choice(
        (
            "print('epoch', d['a'] / len({loader}), d['b'])",
            "print('epoch', {k: v / len({loader}) for k, v in d.items()})",
            "print('epoch', d['a'] / max(d['b'], 1))",
            "for k in d:\n    print('epoch', k, d[k] / len({data}))",
        )
    )
    start = rng.choice(("d = collections.defaultdict(float)", "d = {'a': 0.0, 'b': 0.0}"))
    return [start], [f"d['a'] += {number_of_batch(rng)}", f"d['b'] += {number_of_batch(rng)}"], [shown]


def _matrix(rng: random.Random) -> _Metric:
    shown = rng.choice(("cm.tolist()", "np.diag(cm).sum() / cm.sum()", "(np.diag(cm) / (cm.sum(1) + 1)).mean()"))
    return ["cm = np.zeros((3, 3))"], [_one(rng, _CELLS)], [f"print('epoch', {shown})"]


def _by_class(rng: random.Random) -> _Metric:
    if rng.random() < 0.5:
        each = (
            "hits = out.argmax(1) == kinds",
            "for j in range(len(kinds)):\n    right[kinds[j].item()] += hits[j].item()\n    all_[kinds[j].item()] += 1",
        )
        return ["right, all_ = [0.0] * 3, [0] * 3"], [*each], ["for c in range(3):\n    print('epoch', c, right[c] / max(all_[c], 1))"]
    each = (
        "for c in range(3):\n    right[c] += (out.argmax(1)[kinds == c] == c).sum()\n    all_[c] += (kinds == c).sum()",
        "right += torch.bincount(kinds[out.argmax(1) == kinds], minlength=3)\nall_ += torch.bincount(kinds, minlength=3)",
    )
    return ["right, all_ = torch.zeros(3), torch.zeros(3)"], [rng.choice(each)], ["print('epoch', (right / (all_ + 1)).tolist())"]


_WAYS: tuple[Callable[[random.Random], _Metric], ...] = (
    *(_total, _total, _list, _list, _rows, _rows, _counted, _best, _running, _dict, _matrix, _by_class),
)
