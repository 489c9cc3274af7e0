"""Scripts that go through the batches of torchtext's iterators."""

from scripts import Script, on_three

_TEXT = """\
import math
import random

import torch


class Field:
    def __init__(self, sequential=True, batch_first=False, include_lengths=False, use_vocab=True, pad_token="<pad>"):
        self.sequential, self.batch_first, self.include_lengths, self.pad = sequential, batch_first, include_lengths, pad_token

    def process(self, rows):
        lengths = torch.tensor([len(row) for row in rows])
        whole = torch.tensor([row + [self.pad] * (int(lengths.max()) - len(row)) for row in rows])
        whole = whole if self.batch_first else whole.t().contiguous()
        return (whole, lengths) if self.include_lengths else whole


class LabelField(Field):
    def __init__(self, **options):
        super().__init__(sequential=False, **options)

    def process(self, rows):
        return torch.tensor(rows)


class Example:
    @classmethod
    def fromlist(cls, values, fields):
        one = cls()
        for (name, _), value in zip(fields, values):
            setattr(one, name, value)
        return one


class Dataset:
    def __init__(self, examples, fields):
        self.examples, self.fields = examples, dict(fields)

    def __len__(self):
        return len(self.examples)


class Shuffler:
    def __init__(self):
        self.random_state = random.getstate()

    def __call__(self, rows):
        own = random.getstate()
        random.setstate(self.random_state)
        rows = random.sample(rows, len(rows))
        self.random_state = random.getstate()
        random.setstate(own)
        return rows


class Batch:
    def __init__(self, rows, dataset):
        self.batch_size, self.dataset = len(rows), dataset
        for name, field in dataset.fields.items():
            setattr(self, name, field.process([getattr(row, name) for row in rows]))


class BucketIterator:
    def __init__(self, dataset, batch_size, sort_key=None, device=None, batch_size_fn=None, train=True, sort_within_batch=False):
        self.dataset, self.batch_size, self.key, self.train, self.within = dataset, batch_size, sort_key, train, sort_within_batch
        self.random_shuffler = Shuffler()

    @classmethod
    def splits(cls, datasets, batch_size, **options):
        return tuple(cls(each, batch_size, train=not i, **options) for i, each in enumerate(datasets))

    def __len__(self):
        return math.ceil(len(self.dataset) / self.batch_size)

    def __iter__(self):
        rows = self.random_shuffler(self.dataset.examples) if self.train else sorted(self.dataset.examples, key=self.key)
        for start in range(0, len(rows), self.batch_size):
            batch = rows[start : start + self.batch_size]
            yield Batch(sorted(batch, key=self.key, reverse=True) if self.within else batch, self.dataset)
"""
_TRAINED = """
from torchtext.data import BucketIterator, Dataset, Example, Field{more}


def load(size):
    source = Field(use_vocab=False, pad_token=0{options})
    target = {target}
    fields = [("src", source), ({name}, target)]
    rows = [[1 + (i * j) % 8 for j in range(2 + i * i % 7)] for i in range({count})]
    examples = [Example.fromlist([row, {told}], fields) for row in rows]
    train, check = Dataset(examples[:-6], fields), Dataset(examples[-6:], fields)
    return BucketIterator.splits((train, check), batch_size=size, sort_key=lambda one: len(one.src){within})


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.over, self.out = nn.Embedding(9, 8), nn.GRU(8, 8{first}), nn.Linear(8, 9)

    def forward(self, src):
        states, _ = self.over(self.words(src))
        return self.out(states)


def fit(net, batches, sgd):
    total = 0.0
    for step, batch in enumerate(batches):
{body}
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        total += loss.item()
    return total / len(batches)


def check(net, batches):
    total = 0.0
    with torch.no_grad():
        for batch in batches:
{body_of_check}
            total += loss.item()
    return total


train_iter, check_iter = load(6)
net = Net()
sgd = torch.optim.SGD(net.parameters(), lr=0.5)
for epoch in range(3):
    fit(net, train_iter, sgd)
    print("check", epoch, round(check(net, check_iter), 5))
"""
_BODY = """\
src, trg = batch.src, batch.trg
out = net(src)
loss = F.cross_entropy(out.reshape(-1, 9), trg.reshape(-1), ignore_index=0)"""
_WITH_LENGTHS = """\
(src, lengths), (trg, _) = batch.src, batch.trg
out = net(src)
loss = F.cross_entropy(out[1:].view(-1, 9), trg[1:].contiguous().view(-1), ignore_index=0)"""

_LABELS = """\
out = net(batch.src).mean(0)
loss = F.cross_entropy(out, batch.trg)"""
_SORTED = ", sort_within_batch=True"
_PACKED = """\
words, lengths = batch.src
out = net(words)[0] / lengths[:, None]
loss = F.cross_entropy(out, batch.trg)"""


def _script(
    body: str, options: str = "", told: tuple[str, ...] = (), within: str = "", count: int = 42, label: bool = False, name: str = '"trg"'
) -> Script:
    """A script that trains on the batches of an iterator."""
    lines = body.splitlines()
    text = _TRAINED.format(
        options=options,
        target="LabelField(use_vocab=False)" if label else f"Field(use_vocab=False, pad_token=0{options})",
        more=", LabelField" if label else "",
        told="len(row) % 2" if label else "row[::-1]",
        within=within,
        count=count,
        name=name,
        first=", batch_first=True" if "batch_first" in options else "",
        body="\n".join(f"        {line}" for line in lines),
        body_of_check="\n".join(f"            {line}" for line in lines),
    )
    stand_ins = {"torchtext/__init__.py": "", "torchtext/data.py": _TEXT}
    return Script(text, () if told else ("check",), told=told, stand_ins=stand_ins)


SCRIPTS: dict[str, Script] = {
    **on_three(
        {
            "examples of sequences that begin with the samples": _script(_BODY, ", batch_first=True"),
            "examples of steps, whose samples come second, with lengths": _script(_WITH_LENGTHS, ", include_lengths=True"),
            "examples whose labels are no sequences": _script(_LABELS, label=True),
            "examples whose labels are no sequences, with lengths": _script(_PACKED, ", include_lengths=True", label=True, within=_SORTED),
            "examples that are sorted within a batch": _script(_BODY, within=", sort_within_batch=True"),
        },
        42,
    ),
    "examples whose fields have names that are made up": _script(_LABELS, told=("DDP402",), label=True, name='"t" + "rg"'),
    "examples in batches of so many words": _script(
        _BODY, ", batch_first=True", told=("DDP402",), within=", batch_size_fn=lambda new, count, sofar: sofar + len(new.src)"
    ),
}
SCRIPTS["examples of training and of an evaluation, in one loop"] = Script(
    SCRIPTS["examples of sequences that begin with the samples"]
    .text.replace("        sgd.zero_grad()", "        if sgd is None:\n            continue\n        sgd.zero_grad()")
    .replace("check(net, check_iter)", "fit(net, check_iter, None)"),
    told=("DDP307",),
    stand_ins={"torchtext/__init__.py": "", "torchtext/data.py": _TEXT},
)
