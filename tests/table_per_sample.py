"""Losses that go through the samples of a batch one by one, as those of detectors do: by number, side by side, in lists and in sums."""

from dataclasses import replace

from scripts import Script, on_three

from ddpify import Options


def _trained(*lines: str, loss: str = "z.mean()", count: str = "rows.shape[0]") -> Script:
    """A script that computes `z` of the outputs for each batch, and trains on `loss`."""
    body = "".join(f"        {line}\n" for line in lines)
    return Script(f"""\
feed = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True, drop_last=True)
net = nn.Linear(8, 3)
sgd = torch.optim.SGD(net.parameters(), lr=0.001)
for epoch in range(2):
    for rows, kinds in feed:
        out = net(rows)
        n = {count}
{body}\
        loss = {loss}
        sgd.zero_grad()
        loss.backward()
        sgd.step()
""")


_ONE = {"squares": "{o}.pow(2).sum()", "an average": "{o}.mean()", "a loss": "F.cross_entropy({o}[None], {k}[None])", "rows": "{o}"}
_COLLECTED = {
    "a list by number": ("z = torch.stack([{by_number} for i in range(n)])",),
    "a list side by side": ("z = torch.stack([{side_by_side} for o, k in zip(out, kinds)])",),
    "appended by number": ("z = []", "for i in range(n):", "    z.append({by_number})", "z = torch.stack(z)"),
    "appended from names": (
        "z = []",
        "for i in range(n):",
        "    o, k = out[i], kinds[i]",
        "    z.append({side_by_side})",
        "z = torch.stack(z)",
    ),
    "joined": ("z = torch.cat([{by_number}.reshape(1, -1) for i in range(n)])",),
    "appended side by side, and joined": (
        "parts = []",
        "for o, k in zip(out, kinds):",
        "    parts.append({side_by_side})",
        "z = torch.cat([torch.unsqueeze(part, 0) for part in parts])",
    ),
}
_REDUCED = {
    "averaged": "z.mean()",
    "added up": "z.sum()",
    "in an exponential": "torch.logsumexp(z.flatten(1) if z.dim() > 1 else z, 0).mean()",
}
_PAIRED = {
    ("squares", "averaged"),
    ("an average", "added up"),
    ("rows", "in an exponential"),
    ("a loss", "averaged"),
}


def _collected(how: str, one: str, reduced: str) -> Script:
    one = _ONE[one]
    given = {"by_number": one.format(o="out[i]", k="kinds[i]"), "side_by_side": one.format(o="o", k="k")}
    return _trained(*(line.format(**given) for line in _COLLECTED[how]), loss=_REDUCED[reduced])


_WAYS = {
    "some entries of a total": (("z = out.sum(0)[1:]",), "z.pow(2).sum()"),
    "the entries of a total": (("a, b, c = out[kinds > 0].sum(0)",), "a - 2 * b"),
    "how many are of a kind": (("z = F.one_hot(kinds, 3).sum(0)[1]",), "F.cross_entropy(out, kinds) * z"),
    "a sum of the rows": (("z = sum(out)",), "z.pow(2).mean()"),
    "columns that the labels name": (("z = out[:, kinds]",), "z.mean()"),
    "columns that the labels pick": (("z = out.index_select(1, kinds)",), "z.pow(2).mean()"),
    "rows that the labels name": (("z = out[kinds]",), "z.mean() * n"),
    "rows that a mask takes": (("z = out[kinds > 0]",), "z.sum() / n"),
    "the first of parts of two": (("z = out.split(2)[0]",), "z.pow(2).mean()"),
    "rows of two samples, normalised": (("z = F.batch_norm(out.reshape(n // 2, 2, -1), None, None, training=True)",), "z[:1].std()"),
    "a part of all pairs beside weights": (("z = [a * b for a, b in zip(torch.kron(out[:, 0], out[:, 0]), kinds)]",), "sum(z) / n"),
    "groups of channels, each with each": (("z = out[:, None] - F.group_norm(out, 1)[None]",), "z.sum() * 1.0"),
    "a total by number": (("z = 0", "for i in range(n):", "    z = z + out[i].mean()"), "z * 1.0"),
    "a total of a generator": (("z = sum(out[i].mean() for i in range(n))",), "z * 1.0"),
    "an average of a total": (("z = 0", "for i in range(n):", "    z = z + out[i].pow(2).sum()"), "z / n"),
    "each with each": (
        ("z = 0", "for i in range(n):", "    for j in range(n):", "        z = z + (out[i] - out[j]).pow(2).sum()"),
        "z * 1.0",
    ),
    "each with the one before": (("z = torch.stack([(o - out[i - 1]).flatten() for i, o in enumerate(out)])",), "z.pow(2).mean()"),
    "each with the average": (("z = torch.stack([(o - out.mean(0)).pow(2).sum() for o in out])",), "z.mean()"),
    "each with the next": (("z = torch.stack([(out[i] - out[i + 1]).pow(2).sum() for i in range(0, n, 2)])",), "z.mean()"),
    "some of them": (
        ("z = []", "for i in range(n):", "    if kinds[i] > 0:", "        z.append(out[i].pow(2).sum())", "z.append(out.sum())"),
        "sum(z) / 7",
    ),
    "under a condition": (
        ("z = []", "i = 0", "while i < n:", "    z.append(out[i].pow(2).sum())", "    i += 1", "z = torch.stack(z)"),
        "z.sum()",
    ),
    "as long as there are some": (("z = torch.cat([o[None] for i, o in enumerate(out) if i < n])",), "torch.logsumexp(z, 0).mean()"),
    "with a test in the loop": (
        ("z = []", "for i, o in enumerate(out):", "    if i < n:", "        z.append(o * (kinds[i] > 0).sum())", "z = torch.stack(z)"),
        "torch.logsumexp(z, 0).mean()",
    ),
    "the entry of each one's kind": (("z = torch.stack([out[i, k] for i, k in enumerate(kinds.tolist())])",), "z.mean()"),
    "a list, each with the one before": (
        ("z, last = [], out[0]", "for o in out:", "    z.append(o * last)", "    last = o", "z = torch.stack(z)"),
        "z.pow(2).mean()",
    ),
    "a list, each with one before that the loop keeps": (
        ("z = []", "last = out[0]", "for o in out:", "    z.append(o * last)", "    last = o", "z = torch.stack(z)"),
        "z.pow(2).mean()",
    ),
    "a list, each with the average": (
        ("z = []", "for o in out:", "    z.append(o - out.mean(0))", "z = torch.stack(z)"),
        "z.pow(2).mean()",
    ),
    "a list, each with an average that has a name": (
        ("z = []", "m = [out.mean(0)]", "for o in out:", "    z.append(o - m[0])", "z = torch.stack(z)"),
        "z.pow(2).mean()",
    ),
    "a list, by a function that knows the average": (
        ("def far(row):", "    return row - out.mean(0)", "z = []", "for o in out:", "    z.append(far(o))", "z = torch.stack(z)"),
        "z.pow(2).mean()",
    ),
    "a list of two entries for each": (
        ("z = []", "for o in out:", "    z.append(o)", "    z.append(o * o)", "z = torch.stack(z)"),
        "torch.logsumexp(z, 0).mean()",
    ),
    "a list of one entry more": (
        ("z = []", "for o in out:", "    z.append(o)", "z.append(out.sum(0))", "z = torch.stack(z)"),
        "z.pow(2).mean()",
    ),
    "a list that goes through the rows twice": (
        ("z = []", "for o in out:", "    z.append(o)", "for o in out:", "    z.append(o * 2)", "z = torch.stack(z)"),
        "torch.logsumexp(z, 0).mean()",
    ),
    "a list of what a counter numbers": (
        ("z, i = [], 0", "for o in out:", "    z.append(o * i)", "    i += 1", "z = torch.stack(z)"),
        "z.pow(2).mean()",
    ),
    "a list of what another list holds already": (
        ("z = []", "seen = []", "for o in out:", "    seen.append(o)", "    z.append(sum(seen))", "z = torch.stack(z)"),
        "z.pow(2).mean()",
    ),
    "a list of parts of each": (
        (
            "z = []",
            "for o in out:",
            "    parts = []",
            "    for j in range(3):",
            "        parts.append(o[j : j + 1] * j)",
            "    z.append(torch.hstack(parts))",
            "z = torch.stack(z)",
        ),
        "z.pow(2).mean()",
    ),
    "a list of parts of each, and of all": (
        (
            "z = []",
            "for o in out:",
            "    parts = []",
            "    for j in range(3):",
            "        parts.append(o[j : j + 1] * out[:, j].sum())",
            "    z.append(torch.hstack(parts))",
            "z = torch.stack(z)",
        ),
        "z.pow(2).mean()",
    ),
    "rows of a matrix of all pairs": (
        ("s = out @ out.t()", "z = torch.stack([s[i].logsumexp(0) - s[i, i] for i in range(n)])"),
        "z.mean()",
    ),
}

_WRITTEN = {  # into the rows of a tensor, by number
    "a mask up to a length": ("z[i, kinds[i] :] = 0",),
    "a mask of pairs": ("for j in range(3):", "    z[i, j] = out[i, j] * kinds[i]"),
    "a row that a condition asks for": ("if kinds[i] > 0:", "    z[i] = out[i].pow(2)"),
    "a row added to": ("z[i] += out[i]", "z[i, 0] *= 2"),
    "a row by its number": ("z[i] = out[i] * i",),
    "an entry at its number": ("z[i, i % 3] = out[i].sum()",),
    "the row before": ("z[i] = out[i - 1]",),
    "a row further on": ("z[i - 1] = out[i]",),
    "what was written before": ("z[i] = z[i - 1] + out[i]",),
    "the average": ("z[i] = out[i] - out.mean(0)",),
    "the row of a kind": ("z[kinds[i]] = out[i]",),
    "entries as many as a row has": ("z[i, : out.shape[1] - 1] = out[i, 0]",),
    "an entry of a row": ("z[i][0] = out[i][1]",),
    "a copy": ("z[i].copy_(out[i])",),
    "a copy of another": ("z[i].copy_(out[i - 1])",),
    "a total": ("t = 0 if i == 0 else t", "t = t + out[i]", "z[i] = t"),
}
_NUMBERS = {"all": "range(n)", "all but the last": "range(n - 1)", "all but the first": "range(1, n)", "half of them": "range(n // 2)"}


_STORED = {  # each sample's own, or the same for all, and then what is neither
    "a number": ("z[:, 0] = 2",),
    "another column": ("z[:, 0] = out[:, 1]", "z[..., 1:] += out[..., :2]"),
    "a number where a mask is": ("z[kinds > 0] = 2", "z[out > 0] += 1"),
    "rows where a mask is": ("z[kinds > 0] = out[kinds > 0]",),
    "a column filled": ("z[:, 0].fill_(3)", "z[:, 1].mul_(out[:, 2])"),
    "an entry at each one's kind": ("z[torch.arange(n), kinds] = 3", "z[range(n), kinds] += out[:, 0]"),
    "a number into the first row": ("z[0] = 2",),
    "an average into the first row": ("z[0] = out.mean(0)",),
    "a row into the last row": ("z[-1] = out[0]",),
    "a number into half of the rows": ("z[: n // 2] = 2",),
    "a number into each second row": ("z[::2] = 2",),
    "a number into the first entry": ("z[0, 0] = 2",),
    "a number into the first entry of the first row": ("z[0][0] = 2",),
    "an average into a column": ("z[:, 0] = out.mean()",),
    "an average into the rows of a mask": ("z[kinds > 0] = out.mean(0)",),
    "an average, at each one's kind": ("z[range(n), kinds] = out.mean()",),
    "a number, at all kinds": ("z[:, kinds] = 2",),
    "rows at their kinds": ("z[kinds] = out",),
    "numbers of the rows": ("z[:, 0] = torch.arange(n)",),
    "the first row filled": ("z[0].zero_()",),
    "a column filled with the largest": ("z[:, 0].fill_(float(out.detach().max()))",),
    "a column times the largest": ("z[:, 0].mul_(out.max())",),
    "the data of the first row": ("z.data[0] = 2",),
}


def _written(lines: tuple[str, ...], numbers: str = "range(n)") -> Script:
    """A script that writes to the rows of a tensor one by one, and trains on its rows."""
    return _stored((f"for i in {numbers}:", *(f"    {line}" for line in lines)))


def _stored(lines: tuple[str, ...]) -> Script:
    """A script that writes to the rows of a tensor, and trains on them."""
    return _trained("z = out.new_ones(n, 3)", *lines, "z = z * out.roll(1, 1)", loss="z.pow(2).mean()")


def _listed(numbers: str) -> Script:
    """A script that trains on a list of rows, by their numbers."""
    return _trained("z = []", f"for i in {numbers}:", "    z.append(out[i].pow(2))", "z = torch.stack(z)", loss="z.logsumexp(1).mean()")


_IN_A_FORWARD = {
    "attends to its own steps, part by part": (
        "parts = []",
        "for j in range(2):",
        "    part = row[:, 4 * j : 4 * j + 4]",
        "    q, k, v = self.maps[j](part), self.maps[j](part), self.maps[j](part)",
        "    parts.append(torch.softmax(q @ k.T / 2, -1) @ v)",
        "done.append(torch.hstack(parts))",
    ),
    "goes through its steps": ("h = row[0]", "for step in row[1:]:", "    h = torch.tanh(self.out(h)[:1] + step)", "done.append(h[None])"),
}
_OF_OTHERS = {
    "is weighed by its number": ("done.append(row * i)",),
    "is taken by a number beside it": ("done.append(rows[i - 1] * 2)",),
    "is measured by all": ("done.append(row * rows.mean())",),
    "has the one before": ("done.append(row + self.last)", "self.last = row"),
    "may be left out": ("if row.sum() > 0:", "    done.append(row)"),
    "is there several times": ("for j in range(3):", "    done.append(row)"),
}


def _forward(lines: tuple[str, ...], told: tuple[str, ...] = ()) -> Script:
    """A script with a network whose forward fills a list with an entry for each sample."""
    body = "".join(f"            {line}\n" for line in lines)
    return Script(
        f"""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.maps, self.out, self.last = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)]), nn.Linear(8, 2), 0

    def forward(self, rows):
        done = []
        for i, row in enumerate(rows):
{body}\
        return self.out(torch.cat([torch.unsqueeze(d, dim=0) for d in done])[:, 0])


steps = torch.stack([x, x.roll(1, 1), x.roll(2, 1)], 1)
feed = DataLoader(TensorDataset(steps, y), batch_size=6, shuffle=True, drop_last=True)
net = Net()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for rows, kinds in feed:
        loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
""",
        told=told,
    )


_BY_NUMBER = """\
        made = torch.zeros(len(rows), 3, 8)
        for i, row in enumerate(rows):
            for j in range(3):
                made[i, j] = row[j] * 2
        rows = made
        done = []
"""


def _of_numbered(script: Script) -> Script:
    """A script whose forward goes through rows that it has written by number."""
    return replace(script, text=script.text.replace("        done = []\n", _BY_NUMBER))


_SOME = {  # several entries of some samples, and none of others
    "the letters of each": "chosen = torch.tensor([n for word in words for n in numbers(word)])",
    "the letters of some, in a row": "chosen = torch.cat([torch.tensor(numbers(word)) for word in words if word != 'wxyz'])",
    "the letters of each, in a row": "chosen = torch.cat([torch.tensor(numbers(word)) for word in words])",
    "the letters of each, in arrays": "chosen = torch.from_numpy(np.concatenate([np.array(numbers(word)) for word in words]))",
    "some letters of each": "chosen = torch.tensor([n for word in words for n in numbers(word) if n > 3])",
    "the first letters of some": "chosen = torch.tensor([numbers(word)[0] for word in words if word != 'wxyz'])",
    "those at some places": "chosen = kinds[[i for i, word in enumerate(words) if word != 'wxyz']]",
    "those at places in a tensor": "chosen = kinds[torch.tensor([i for i, word in enumerate(words) if word != 'wxyz'])]",
    "those at places that are put into a list": """\
places = []
for i, word in enumerate(words):
    if word != "wxyz":
        places.append(i)
chosen = kinds[places]""",
}


def _of_some(line: str) -> Script:
    """A script that trains on some entries of the samples of each batch."""
    lines = line.replace("\n", "\n        ")
    return Script(f"""\
import numpy as np

WORDS = ["abc", "de", "fghi", "jo", "klm", "no", "pqrs", "tu", "va", "wxyz", "ab", "cdef"] * 3


class Words(Dataset):
    def __getitem__(self, index):
        return WORDS[index], index % 3

    def __len__(self):
        return len(WORDS)


def numbers(word):
    return [ord(letter) - 96 for letter in word]


torch.manual_seed(3)
net = nn.Sequential(nn.Embedding(30, 6), nn.Linear(6, 30))
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
feed = DataLoader(Words(), batch_size=6, shuffle=True)
for epoch in range(2):
    for words, kinds in feed:
        {lines}
        loss = F.cross_entropy(net(chosen), chosen)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
""")


_MADE_OTHERWISE = """\
import numpy as np


def thinned(points):
    for b in range(points.shape[0]):
        where = np.where(points[b, :, 0] > 0.5)[0]
        if len(where) > 0:
            points[b, where, :] = points[b, 0, :]
    return points


def scaled(points):
    B, N, C = points.shape
    scales = 1 + np.abs(points[:, 0, 0])
    for k in range(B):
        points[k, :, :] *= scales[k]
    return points


class Clouds(Dataset):
    def __getitem__(self, i):
        points = x[i].numpy().reshape(4, 2).copy()
        points[:, 0:1] = points[:, 0:1] - points[:, 0:1].mean()
        return points, int(y[i])

    def __len__(self):
        return 42


net = nn.Sequential(nn.Flatten(), nn.Linear(8, 2))
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for points, kinds in DataLoader(Clouds(), batch_size=6, shuffle=False):
        points = points.data.numpy()
        points = thinned(points)
        points[:, :, 0:1] = scaled(points[:, :, 0:1])
        loss = F.cross_entropy(net(torch.as_tensor(points, dtype=x.dtype)), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""


_ONE_LOSS = "F.cross_entropy(net({row})[None], kind[None])"
_FORWARDS = {
    "added to a name": ("z = 0", "for row, kind in zip(rows, kinds):", f"    z += {_ONE_LOSS.format(row='row')}", "z /= n"),
    "added to a name, which is assigned": (
        "z = 0.0",
        "for row, kind in zip(rows, kinds):",
        f"    z = z + {_ONE_LOSS.format(row='row')}",
        "z = z / n",
    ),
    "of a function of its own": (
        "def one(row, kind):",
        f"    return {_ONE_LOSS.format(row='row')}",
        "z = sum([one(row, kind) for row, kind in zip(rows, kinds)]) / n",
    ),
}
_FORWARDS_OF_OTHERS = {
    "of all but the first": ("z = 0", "for i in range(1, n):", "    z = z + net(rows[i]).pow(2).sum()", "z = z / (n - 1)"),
    "of some": ("z = 0", "for row in rows[:4]:", "    z = z + net(row).pow(2).sum()", "z = z / 4"),
    "beside rows in another order": ("z = 0", "for row, o in zip(rows, rows.flip(0)):", "    z = z + (net(row) - net(o)).pow(2).sum()"),
    "with a function that reads all rows": (
        "def one(row):",
        "    return net(row - rows.mean(0)).pow(2).sum()",
        "z = sum([one(row) for row in rows]) / n",
    ),
    "until one of them is large": ("z = 0", "for row in rows:", "    z = z + net(row).pow(2).sum()", "    if row[0] > 1:", "        break"),
}
SCRIPTS: dict[str, Script] = {
    "points of samples are thinned and scaled, sample by sample": Script(
        _MADE_OTHERWISE, rows=42, options=Options(whole_batches="never")
    ),
    **on_three({f"a loss of {which}": _of_some(line) for which, line in _SOME.items()}),
    "a forward fills a list of rows that it has written by number": _of_numbered(_forward(_IN_A_FORWARD["goes through its steps"])),
    "a forward fills a list of rows that it has written, by their number": _of_numbered(_forward(("done.append(row * i)",), ("DDP402",))),
    **{f"a forward fills a list, and each sample {how}": _forward(lines) for how, lines in _IN_A_FORWARD.items()},
    **{f"a forward fills a list, and each sample {how}": _forward(lines, ("DDP402",)) for how, lines in _OF_OTHERS.items()},
    **{f"{how}: {one}, {reduced}": _collected(how, one, reduced) for how in _COLLECTED for one, reduced in sorted(_PAIRED)},
    **{f"samples one by one: {how}": _trained(*lines, loss=loss) for how, (lines, loss) in _WAYS.items()},
    **{f"rows written to: {how}": _stored(lines) for how, lines in _STORED.items()},
    **{f"rows written by number: {how}": _written(lines) for how, lines in _WRITTEN.items()},
    **{f"rows written by number, {of}": _written(("z[i] = out[i].pow(2)",), numbers) for of, numbers in _NUMBERS.items()},
    **{f"rows in a list, {of}": _listed(numbers) for of, numbers in _NUMBERS.items()},
    **{f"a forward for each sample, {how}": _trained(*lines, loss="z") for how, lines in _FORWARDS.items()},
    **{
        f"a forward for each sample, {how}": replace(_trained(*lines, loss="z"), told=("DDP403" if "break" in lines[-1] else "DDP402",))
        for how, lines in _FORWARDS_OF_OTHERS.items()
    },
    **on_three({"one by one on three ranks": _trained("z = [out[i].mean() for i in range(n)]", loss="sum(z)", count="len(kinds)")}),
}  # fmt: skip
_GLIMPSES = """
    class Glimpses(nn.Module):
        def __init__(self):
            super().__init__()
            self.look, self.keep, self.move = nn.Linear(4, 6), nn.Linear(6, 6), nn.Linear(6, 1)
            self.head = nn.Linear(6, 2)

        def forward(self, rows, place, state):
            start = (2 * (place + 1)).long().clamp(0, 4)
            end = start + 4
            parts = []
            for i in range(len(rows)):
                parts.append(rows[i, start[i, 0] : end[i, 0]])
            state = torch.relu(self.look({looked}) + self.keep(state))
            return torch.tanh(self.move(state)).detach(), state


    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
    net = Glimpses()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            state = torch.zeros(len(rows), 6, requires_grad=True)
            place = torch.zeros(len(rows), 1)
            for step in range(3):
                place, state = net(rows, place, state)
            loss = F.cross_entropy(net.head({state}), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
SCRIPTS |= {
    "glimpses of each row, from where the one before said": Script(
        _GLIMPSES.replace("{looked}", "torch.stack(parts)").replace("{state}", "state"), options=Options(whole_batches="never")
    ),
    "glimpses of each row, less those of all": Script(
        _GLIMPSES.replace("{looked}", "torch.stack(parts) - torch.stack(parts).mean(0)").replace("{state}", "state"), told=("DDP402",)
    ),
    "glimpses of all rows in one": Script(
        _GLIMPSES.replace("{looked}", "torch.cat(parts).view(-1, 4).sort(0)[0]").replace("{state}", "state"), told=("DDP402",)
    ),
    "glimpses of each row, and the average of all states": Script(
        _GLIMPSES.replace("{looked}", "torch.stack(parts)").replace("{state}", "state + state.mean(0)")
    ),
}

# --- texts that are turned into tensors in the loop, each as long as the longest of the batch --------------------------------
_TEXTS = """
    import numpy as np
    from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

    class Texts(Dataset):
        def __init__(self):
            self.texts = ["".join(chr(97 + (7 * i + 3 * j) % 26) for j in range(3 + i % 5)) for i in range(44)]
            self.kinds = [["near", "far"][i % 2] for i in range(44)]

        def __len__(self):
            return 44

        def __getitem__(self, i):
            return self.texts[i], self.kinds[i]

        def number(self, kind):
            return ["near", "far"].index(kind)

    data = Texts()
    loader = DataLoader(data, batch_size=8, shuffle=True)

    def letters(text):
        codes = [ord(letter) for letter in text]
        return codes, len(codes)

    def tensors(texts, kinds):
        both = [letters(text) for text in texts]
        lines = [pair[0] for pair in both]
        lengths = torch.LongTensor([pair[1] for pair in both])
        MADE
        wanted = torch.LongTensor([data.number(kind) for kind in kinds])
        lengths, order = lengths.sort(0, descending=True)
        table = table[order]
        if len(kinds):
            wanted = wanted[order]
        return table, lengths, wanted

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.near, self.along, self.last = nn.Embedding(128, 6), nn.GRU(6, 6, bidirectional=True), nn.Linear(6, 2)

        def forward(self, table, lengths):
            table = table.t()
            start = torch.zeros(2, table.size(1), 6).to(x)
            RUN

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for epoch in range(3):
        total = 0.0
        for texts, kinds in loader:
            table, lengths, wanted = tensors(texts, kinds)
            LOSS
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("total %.6f" % total)
"""
_PACKED = """_, hidden = self.along(pack_padded_sequence(self.near(table), lengths), start)
            return self.last(hidden[-1])"""
_PLACES = "return self.last(self.along(self.near(table), start)[0][:, :, :6]).transpose(0, 1)"
_TABLES = {
    "a tensor that is filled line by line": """table = torch.zeros((len(lines), lengths.max())).long()
        for i, (line, length) in enumerate(zip(lines, lengths)):
            table[i, :length] = torch.LongTensor(line)""",
    "an array that is filled line by line": """table = np.zeros((len(lines), max(len(line) for line in lines)), dtype=np.int64)
        for i, line in enumerate(lines):
            table[i, : len(line)] = line
        table = torch.from_numpy(table)""",
    "lists of one length": "table = torch.LongTensor([line + [0] * (8 - len(line)) for line in lines])",
    "lists as long as the longest": """longest = max(len(line) for line in lines)
        table = torch.tensor([line + [0] * (longest - len(line)) for line in lines])""",
    "an array of lists": "table = torch.from_numpy(np.array([line + [0] * (8 - len(line)) for line in lines]))",
    "lists that are added to a list": """filled = []
        for line in lines:
            filled.append(line + [0] * (8 - len(line)))
        table = torch.tensor(filled)""",
    "lists that are made longer": """for line in lines:
            line.extend([0] * (8 - len(line)))
        table = torch.tensor(lines)""",
    "sequences that torch fills up": "table = pad_sequence([torch.tensor(line) for line in lines], batch_first=True)",
    "sequences that torch fills up, time in front": "table = pad_sequence([torch.tensor(line) for line in lines]).t()",
}
SCRIPTS |= {
    f"texts turned into tensors in the loop: {title}": Script(
        _TEXTS.replace("MADE", made).replace("RUN", _PACKED).replace("LOSS", "loss = F.cross_entropy(model(table, lengths), wanted)"),
        same=("total",),
    )
    for title, made in _TABLES.items()
}
_OF_PLACES = "loss = F.mse_loss(model(table, lengths)[:, :, 0], table.to(x) / 100)"
SCRIPTS |= {
    f"texts turned into tensors in the loop, averaged over all places: {title}": Script(
        _TEXTS.replace("MADE", _TABLES[title]).replace("RUN", _PLACES).replace("LOSS", _OF_PLACES),
        same=("total",) if not told else (),
        told=told,
    )
    for title, told in {
        "lists as long as the longest": (),
        "a tensor that is filled line by line": (),
        "sequences that torch fills up": ("DDP402",),
    }.items()
}

_CLOUDS = """
import numpy as np


class Clouds(Dataset):
    def __len__(self):
        return 40

    def _read(self, i):
        return np.array(x[i].view(4, 2)), np.array([y[i]]).astype(np.int32)

    def __getitem__(self, i):
        return self._read(i)


def drop(clouds):
    seen = False
    for b in range(clouds.shape[0]):
        share = np.random.random() * 1e-9
        dropped = np.where(np.random.random(clouds.shape[1]) >= share)[0][2:]
        if CONDITION:
            clouds[TO, dropped, :] = clouds[b, 0, :]
    return clouds


def far(here, there):
    return torch.sum((here[:, :, None] - there[:, None]) ** 2, dim=-1)


def at(points, numbers):
    sizes = numbers.size()
    numbers = numbers.reshape(sizes[0], -1)
    taken = torch.gather(points, 1, numbers[..., None].expand(-1, -1, points.size(-1)))
    return taken.reshape(*sizes, -1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Linear(2, 4), nn.Linear(2, 4), nn.Linear(4, 2)

    def forward(self, clouds):
        near = far(clouds, clouds).argsort()[:, :, :2]
        centres = at(clouds, near[:, :2, 0])
        beside = at(clouds, far(centres, clouds).argsort()[:, :, :3])
        beside = torch.cat([self.second(centres[:, :, None] - beside), self.first(beside)], 2).max(2)[0]
        shown = far(centres, centres).argsort()[:, :, :2]
        return self.head((at(beside, shown).mean(2) + beside).mean(1) + self.first(at(clouds, near)).mean((1, 2)))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    right = []
    for clouds, kinds in DataLoader(Clouds(), batch_size=8):
        clouds = torch.tensor(drop(clouds.data.numpy()))
        optimizer.zero_grad()
        scores = model(clouds)
        loss = F.cross_entropy(scores, kinds[:, 0].long())
        right.append(scores.data.max(1)[1].eq(kinds[:, 0].long()).sum().item() / float(clouds.size()[0]))
        loss.backward()
        optimizer.step()
    print("right", np.mean(right))
"""


def _clouds(condition: str, to: str = "b", told: tuple[str, ...] = ()) -> Script:
    """Clouds of points, some of whose points are replaced, one cloud after the other."""
    text = _CLOUDS.replace("CONDITION", condition).replace("TO", to)
    return Script(text, same=() if told else ("right",), told=told)


SCRIPTS |= {
    "clouds whose points are replaced where any were drawn": _clouds("len(dropped) > 0"),
    "clouds whose points are replaced where their own first point says so": _clouds("clouds[b, 0, 0] > 0"),
    "clouds whose points are replaced once one of them has said so": _clouds("seen := seen or clouds[b, 0, 0] > 0", told=("DDP402",)),
    "clouds whose points are replaced where the average of all says so": _clouds("clouds[:, 0, 0].mean() > 0", told=("DDP402",)),
    "clouds whose own first point says whether those of the first are replaced": _clouds("clouds[b, 0, 0] > 0", "0", told=("DDP402",)),
}

# --- samples that a collate function leaves in a list, and words that the loop numbers ----------------------------------------
_WORDS = """
    import numpy as np

    class Texts(Dataset):
        def __init__(self):
            self.texts = [" ".join(["red", "green", "blue", "dark"][(3 * i + j) % 4] for j in range(2 + i % 4)) for i in range(44)]

        def __len__(self):
            return 44

        def __getitem__(self, i):
            return self.texts[i], ["near", "far"][i % 2]

    words = {"": 0, "red": 1, "green": 2, "blue": 3, "dark": 4}
    kinds_known = {"near": 0, "far": 1}

    def numbered(text, length=6):
        numbers = [words[word] for word in text.split()][:length]
        return numbers + [0] * (length - len(numbers))

    def of_one_length(texts):
        rows = [[words[word] for word in text.split()] for text in texts]
        longest = max(map(len, rows))
        return torch.tensor([row + [0] * (longest - len(row)) for row in rows])

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.near, self.last = nn.Embedding(5, 6), nn.Linear(6, 2)

        def forward(self, numbers):
            there = (numbers != 0).unsqueeze(-1).to(x)
            return self.last((self.near(numbers) * there).sum(1) / there.sum(1))

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    loader = DataLoader(Texts(), batch_size=8, shuffle=True, collate_fn=COLLATE)
    for epoch in range(3):
        right = 0
        for batch in loader:
            NUMBERS
            scores = model(numbers)
            loss = F.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (scores.argmax(1) == labels).sum().item()
        print("right", right)
"""
_PREPARED = {
    "columns, by zip": ("lambda batch: batch", "texts, kinds = zip(*batch)", "[numbered(text) for text in texts]"),
    "columns of a list": ("list", "texts, kinds = list(zip(*batch))", "list(map(numbered, texts))"),
    "columns of the collate function": ("lambda batch: tuple(zip(*batch))", "texts, kinds = batch", "[numbered(text) for text in texts]"),
    "entries of each sample": (
        "tuple",
        "texts, kinds = [sample[0] for sample in batch], [sample[1] for sample in batch]",
        "[numbered(text) for text in texts]",
    ),
    "two lists that one line begins": (
        "lambda batch: batch",
        """rows, kinds = [], []
            for text, kind in batch:
                rows.append(numbered(text))
                kinds.append(kind)""",
        "rows",
    ),
}
_LABELS = "labels = torch.tensor([kinds_known[kind] for kind in kinds])"


def _words(collate: str, lines: str, rows: str, told: tuple[str, ...] = ()) -> Script:
    """Texts of which a loop makes numbers."""
    made = "\n            ".join((lines, f"numbers = {rows}", _LABELS))
    return Script(_WORDS.replace("COLLATE", collate).replace("NUMBERS", made), same=() if told else ("right",), told=told)


SCRIPTS |= {
    f"words that the loop numbers: {title}": _words(collate, lines, f"torch.tensor({rows})")
    for title, (collate, lines, rows) in _PREPARED.items()
}
SCRIPTS |= {
    "words that the loop numbers: as long as the longest": _words("None", "texts, kinds = batch", "of_one_length(texts)"),
    "words that the loop numbers: columns in two orders": _words(
        "list", "texts, kinds = zip(*batch)", "torch.tensor([numbered(text) for text in texts[::-1]])", told=("DDP402",)
    ),
}

# --- lists of what is of several samples ---------------------------------------------------------------------------------
_OF_SEVERAL = """
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    for epoch in range(2):
        for rows, labels in loader:
            MADE
            loss = F.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
SCRIPTS |= {
    f"rows made of lists of what is of several samples: {title}": Script(
        _OF_SEVERAL.replace("MADE", made.replace("\n", "\n            ")), told=("DDP402",)
    )
    for title, made in {
        "running totals": "total, listed = [0.0] * 8, []\nfor row in rows.tolist():\n    total = [a + b for a, b in zip(total, row)]\n"
        "    listed.append(list(total))\nrows = torch.tensor(listed).to(x)",
        "a function that knows the average": "middle = rows.mean(0)\nrows = torch.stack(list(map(lambda row: row - middle, rows)))",
        "a function that knows the largest": "top = max(row[0] for row in rows.tolist())\n"
        "rows = torch.tensor(list(map(lambda row: [v / (abs(top) + 1) for v in row], rows.tolist()))).to(x)",
        "each beside the first": "listed = rows.tolist()\npairs = [[row, listed[0]] for row in listed]\n"
        "rows = torch.tensor([[a - b for a, b in zip(*pair)] for pair in pairs]).to(x)",
    }.items()
}

# --- a batch whose parts a function moves, one after the other ----------------------------------------------------------------
_MOVED = """
    class Trainer:
        def __init__(self, net, device):
            self.net, self.device = net, device
            self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        def moved(self, part):
            return part.to(self.device)

        def fit(self, loader):
            for epoch in range(3):
                total = 0.0
                for batch in loader:
                    rows, labels = MADE
                    loss = F.cross_entropy(self.net(rows), labels)
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                    total += loss.item()
                print("total %.6f" % total)

    Trainer(nn.Linear(8, 2), "cpu").fit(DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True))
"""
SCRIPTS |= {
    f"parts of a batch that map moves: {title}": Script(_MOVED.replace("MADE", made))
    for title, made in {
        "a lambda": "map(lambda part: part.to(self.device), batch)",
        "a method, in a list": "list(map(self.moved, batch))",
        "torch's": "map(torch.Tensor.contiguous, batch)",
    }.items()
}
