"""Losses and forwards of random expressions: each line is tried on a batch as it is chosen, so that shapes always fit.

What real scripts compute of a batch is seldom as wild; but whatever a rule takes for a mean over samples must be one.
"""

from __future__ import annotations

import random
import re
import warnings

import torch
import torch.nn.functional as F
from torch import nn

from .compose import Generated

NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.near, self.head = nn.Linear(6, 5), nn.Linear(20, 3)

    def forward(self, rows):
        feats = torch.tanh(self.near(rows))
        return self.head(feats.flatten(1)), feats


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
"""
_DATA = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y, w = torch.randn(32, 4, 6), torch.randint(0, 3, (32,)), torch.rand(32)
loader = DataLoader(TensorDataset(x, y, w), batch_size=8, shuffle=True, drop_last=True)


"""
_LOOP = """\
for epoch in range(2):
    for rows, kinds, weights in loader:
"""
OUTPUTS = "        out, feats = net(rows)\n"
HEAD = _DATA + NET + _LOOP + OUTPUTS
TAIL = """\
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_FORWARD = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.near, self.head = nn.Linear(6, 5), nn.Linear({size}, 3)

    def forward(self, rows):
        feats = torch.tanh(self.near(rows))
{lines}        return self.head({last}.reshape(len(rows), -1))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
"""
_OF_ONE = """\
{v}.sum({d})|{v}.mean({d})|{v}.max({d})[0]|{v}.min({d}).values|{v}.amax({d})|{v}.median({d})[0]|{v}.prod({d})|torch.logsumexp({v}, {d})
{v}.norm(dim={d})|{v}.norm()|{v}.std({d})|{v}.var(dim={d}, unbiased=False)|torch.linalg.norm({v}, dim={d})|{v}.trace()|sum({v})
{v}.softmax({d})|F.log_softmax({v}, dim={d})|{v}.cumsum({d})|{v}.logcumsumexp({d})|torch.cumprod({v}.sigmoid(), {d})|{v}.sort({d})[0]
{v}.flip({d})|torch.roll({v}, 1, {d})|torch.diff({v}, dim={d})|F.normalize({v}, dim={d})|F.glu({v}, {d})|{v}.topk(2, {d})[0]
{v}.transpose({d}, {e})|{v}.movedim({d}, {e})|{v}.T|{v}.mT|{v}.permute(1, 0)|{v}.permute(1, 0, 2)|{v}.permute(0, 2, 1)
{v}.flatten({d})|{v}.flatten()|{v}.unsqueeze({d})|{v}.squeeze({d})|{v}[None]|{v}[:, None]|{v}.view(-1)|{v}.view({v}.size(0), -1)
{v}.reshape(-1, {v}.shape[-1])|{v}.reshape({v}.shape[0], -1)|{v}.reshape(2, -1)|{v}.reshape(-1, 2)|{v}.reshape({v}.shape[0] // 2, 2, -1)
{v}.unbind({d})[0]|{v}.chunk(2, {d})[0]|{v}.chunk(2, dim={d})[1]|{v}.split(2, {d})[0]|torch.split({v}, [2, {v}.shape[0] - 2])[1]
{v}.narrow({d}, 0, 2)|{v}[0]|{v}[-1]|{v}[:, 0]|{v}[..., 0]|{v}[:2]|{v}[1:]|{v}[:-1]|{v}[::2]|{v}[:, 1:]|{v}[:, -1]|{v}.diagonal()
{v}[kinds > 0]|{v}[kinds == 1].sum(0)|{v}[:, kinds]|{v}.index_select(0, kinds)|{v}.index_select(1, kinds)|{v}.masked_fill({v} > 0, 0.0)
{v}.gather(1, kinds[:, None])|{v}.gather(1, kinds.view(-1, 1)).squeeze(1)|{v}[range(len({v})), kinds]|{v}[torch.arange({v}.shape[0]), kinds]
torch.zeros(3, {v}.shape[-1]).index_add(0, kinds, {v})|{v} * F.one_hot(kinds, 3)|torch.where({v} > 0, {v}, torch.zeros_like({v}))
F.relu({v})|torch.tanh({v})|{v} ** 2|{v}.pow(2)|torch.exp(-({v} ** 2))|{v}.abs().sqrt()|{v}.clamp(min=0)|F.softplus({v})|{v}.detach()
{v} / ({v}.abs().sum({d}, keepdim=True) + 1)|{v} - {v}.mean({d}, keepdim=True)|{v} - {v}.mean()|{v} / ({v}.std() + 1)
{v}.repeat(2, 1)|{v}.repeat_interleave(2, {d})|{v}.expand(2, *{v}.shape)|torch.stack([{v}, {v} * 2], {d})|torch.cat([{v}, -{v}], {d})
{v} * weights[:, None]|{v} * weights|{v} * weights.view(-1, 1, 1)|torch.ones_like({v}) * {v}.mean(0)|{v}.new_ones({v}.shape[0], 1) * {v}
F.layer_norm({v}, {v}.shape[1:])|F.layer_norm({v}, {v}.shape[-1:])|F.group_norm({v}, 1)|F.batch_norm({v}, None, None, training=True)
F.pad({v}, (1, 1))|F.avg_pool1d({v}, 2)|F.max_pool1d({v}, 2)|F.interpolate({v}, scale_factor=2)|F.linear({v}, torch.ones(2, {v}.shape[-1]))
{v} @ {v}.t()|{v} @ {v}.transpose(-1, -2)|torch.cdist({v}, {v})|torch.outer({v}, {v})|torch.bmm({v}, {v}.transpose(1, 2))|torch.cov({v}.T)
torch.einsum('bi,bj->bij', {v}, {v})|torch.einsum('bi,bj->ij', {v}, {v})|torch.einsum('bi,ci->bc', {v}, {v})|torch.tril({v})|{v}.triu(1)
torch.stack([v.sum() for v in {v}])|torch.stack([a * b for a, b in zip({v}, weights)])|torch.stack(list({v})[1:])|sum(v.sum() for v in {v})
torch.stack([{v}[i].sum() for i in range(len(rows))])|torch.cat([{v}[i : i + 1] ** 2 for i in range({v}.size(0))])"""
_OF_TWO = """\
{v} + {u}|{v} - {u}|{v} * {u}|{v} @ {u}|{v} @ {u}.t()|{v}[:, None] - {u}[None]|{v}[:, None] * {u}|{v} / ({u}.abs() + 1)|torch.kron({v}, {u})
torch.cat([{v}, {u}], {d})|torch.stack([{v}, {u}])|F.cosine_similarity({v}, {u}, dim={d})|torch.cdist({v}, {u})
F.pairwise_distance({v}, {u})
torch.maximum({v}, {u})|torch.einsum('bi,bi->b', {v}, {u})|torch.einsum('bi,ci->bc', {v}, {u})|torch.where({u} > 0, {v}, {u})
torch.dot({v}, {u})
({v} * {u}).sum(-1)|torch.matmul({v}, {u})|torch.lerp({v}, {u}, 0.3)|{v}.gather(0, {u}.argsort(0))|torch.bmm({v}, {u}.unsqueeze(-1))"""
_LOSSES = """\
F.cross_entropy({v}, kinds)|F.cross_entropy({v}, kinds, reduction='sum')|F.cross_entropy({v}, kinds, reduction='none')
F.nll_loss({v}, kinds)
F.cross_entropy({v}, kinds, weight=torch.tensor([1.0, 2.0, 3.0]))|F.cross_entropy({v}, kinds, label_smoothing=0.1)|F.huber_loss({v}, {u})
F.cross_entropy({v}, torch.arange(len({v})))|F.cross_entropy({v}, kinds, ignore_index=0)|F.multi_margin_loss({v}, kinds)
F.mse_loss({v}, {u})|F.mse_loss({v}, {u}, reduction='none')|F.l1_loss({v}, {u}.detach())|F.smooth_l1_loss({v}, {u})
F.binary_cross_entropy_with_logits({v}, ({u} > 0).float())|F.cosine_embedding_loss({v}, {u}, torch.ones(len({v})))
F.triplet_margin_loss({v}, {u}, {u}.flip(0))|F.margin_ranking_loss({v}, {u}, torch.ones_like({v}))
F.kl_div(F.log_softmax({v}, -1), F.softmax({u}, -1), reduction='batchmean')|F.kl_div(F.log_softmax({v}, -1), F.softmax({u}, -1))"""
_ENDS = """\
{v}.mean()|{v}.sum()|{v}.sum() / len(kinds)|{v}.sum() / {v}.size(0)|{v}.sum() / {v}.numel()|{v}.mean(0).sum()|{v}.sum(0).mean()|{v}.max()
{v}.norm()|{v}.std()|torch.logsumexp({v}.flatten(), 0)|({v} * weights).sum() / weights.sum()|{v}.pow(2).mean().sqrt()|{v}.sum(-1).mean()
{v}.mean(-1).sum()|{v}.mean() + out.pow(2).mean()|{v}.sum() / rows.shape[0]|torch.log({v}.pow(2).mean() + 1)|{v}[0].sum()|{v}.mean(-1).max()
{v}.sum() / (kinds > 0).sum()|{v}.median()|sum({v}) / len({v})|{v}.sum() * 0.1|{v}.mean() ** 2"""
_KINDS = [[t for line in table.splitlines() for t in line.split("|")] for table in (_OF_ONE, _OF_TWO, _LOSSES, _ENDS)]
_TRIES = 300


def loss(seed: int) -> Generated:
    """The script of a seed, whose loss is computed in some random lines."""
    rng = random.Random(seed)
    while True:
        lines = loss_lines(rng, rng.randint(1, 5))
        if lines:
            body = "".join(f"        {line}\n" for line in lines)
            return Generated(seed, HEAD + body + TAIL, tuple(f"line: {line.partition(' = ')[2]}" for line in lines))


def forward(seed: int) -> Generated:
    """The script of a seed whose network computes its output in some random lines."""
    rng = random.Random(seed)
    while True:
        scope = {name: value for name, value in one_batch().items() if name not in ("kinds", "weights", "out")}
        lines = _lines(rng, rng.randint(1, 4), scope, ["feats"])
        last = f"a{len(lines) - 1}"
        value = scope.get(last)
        if isinstance(value, torch.Tensor) and value.requires_grad and value.shape[:1] == (8,):
            lines = _used(lines, last)
            body = "".join(f"        {line}\n" for line in lines)
            net = _FORWARD.format(size=value[0].numel(), lines=body, last=last)
            loop = _LOOP + "        loss = F.cross_entropy(net(rows), kinds)\n" + TAIL
            return Generated(seed, _DATA + net + loop, tuple(f"line: {line.partition(' = ')[2]}" for line in lines))


def loss_lines(rng: random.Random, count: int) -> list[str]:
    """Assignments that lead from a network's outputs to `loss`; none where no such were found."""
    scope, (_, _, losses, ends) = one_batch(), _KINDS
    lines = _lines(rng, count, scope, ["out", "feats"])
    names = ["out", "feats", *(line.partition(" = ")[0] for line in lines)]
    for _ in range(_TRIES):
        text = _filled(rng, rng.choice(ends if rng.random() < 0.8 else losses), names)
        value = _tried(text, scope)
        if value is not None and value.ndim == 0 and value.requires_grad:
            return _used([*lines, f"loss = {text}"], "loss")
    return []


def _lines(rng: random.Random, count: int, scope: dict[str, object], names: list[str]) -> list[str]:
    """Assignments of what can be computed from some names; their values are added to `scope`."""
    of_one, of_two, losses, _ = _KINDS
    names, lines = [*names], list[str]()
    for _ in range(_TRIES):
        if len(lines) == count:
            break
        text = _filled(rng, rng.choice(rng.choices((of_one, of_two, losses), (0.7, 0.22, 0.08))[0]), names)
        if (value := _tried(text, scope)) is not None:
            names.append(f"a{len(lines)}")
            scope[names[-1]] = value
            lines.append(f"{names[-1]} = {text}")
    return lines


def one_batch() -> dict[str, object]:
    """What the lines of a script read, for one batch."""
    rows = torch.randn(8, 4, 6)
    feats = torch.tanh(nn.Linear(6, 5)(rows))
    kinds = torch.tensor([0, 1, 2, 0, 1, 2, 1, 0])
    out = nn.Linear(20, 3)(feats.flatten(1))
    return {"torch": torch, "F": F, "rows": rows, "kinds": kinds, "weights": torch.rand(8), "feats": feats, "out": out}


def _filled(rng: random.Random, text: str, names: list[str]) -> str:
    """An expression with some variables and dimensions: mostly of what was computed last."""
    v, u = (rng.choice(names[-2:] if rng.random() < 0.75 else [*names, "rows", "weights"]) for _ in range(2))
    return text.format(v=v, u=u, d=rng.choice((0, 1, 1, 2, -1, -1)), e=rng.choice((0, 1, 2, -1)))


def _tried(text: str, scope: dict[str, object]) -> torch.Tensor | None:
    """What an expression gives; None where it fails, or gives nothing that a loss could be computed from."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = eval(text, dict(scope))
    except Exception:  # whatever torch says of shapes that do not fit
        return None
    if not torch.is_tensor(value) or not value.is_floating_point() or not 0 < value.numel() < 4000:
        return None
    return value if bool(value.isfinite().all()) and bool(value.abs().max() < 1e4) else None


def _used(lines: list[str], last: str) -> list[str]:
    """The lines that the last variable depends on."""
    needed, kept = {last}, list[str]()
    for line in reversed(lines):
        name, _, text = line.partition(" = ")
        if name in needed:
            needed |= set(re.findall(r"\b[a-z]\w*", text))
            kept.append(line)
    return kept[::-1]
