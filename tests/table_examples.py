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


class RawField:
    def process(self, rows):
        return rows


class NestedField(Field):
    def __init__(self, nesting_field, **options):
        super().__init__(batch_first=True, **options)

    def process(self, rows):
        words, letters = max(len(row) for row in rows), max(len(word) for row in rows for word in row)
        empty = [self.pad] * letters
        filled = [[word + empty[len(word) :] for word in row] + [empty] * (words - len(row)) for row in rows]
        return torch.tensor(filled)


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

    def split(self, split_ratio=0.7, random_state=None):
        rows, first = Shuffler(random_state)(self.examples), int(split_ratio * len(self))
        return Dataset(rows[:first], self.fields), Dataset(rows[first:], self.fields)


class Shuffler:
    def __init__(self, state=None):
        self.random_state = random.getstate() if state is None else state

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

    def __len__(self):
        return self.batch_size


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

_ENCODED = """
import random

from torchtext.data import BucketIterator, Dataset, Example, {fields}

{made}
rows = [[1 + (i * j) % 8 for j in range(2 + i * i % 7)] for i in range({count})]
examples = [Example.fromlist({values}, fields) for row in rows]
torch.manual_seed(3)
train, check = Dataset(examples, fields).split(0.8{state})
train_iter, check_iter = BucketIterator.splits((train, check), batch_size=6, sort_key=lambda one: len(one.src), sort_within_batch=True)


{net}


def run(net, batches, sgd=None):
    total, right = 0.0, 0.0
    for batch in batches:
{body}
        total += loss.item()
    return total / len(batches), right / len(batches)


def check(net, batches):
    with torch.no_grad():
        return sum(F.cross_entropy(net({given}), batch.trg).item() for batch in batches)


net = Net()
sgd = torch.optim.SGD(net.parameters(), lr=0.3)
for epoch in range(3):
    loss, right = run(net, train_iter, sgd)
    print("check", epoch, round(loss, 5), round(right, 3), round(check(net, check_iter), 5))
"""
_STEP = """\
out = net({given})
loss = F.cross_entropy(out, batch.trg)
sgd.zero_grad()
loss.backward()
sgd.step()
right += 100.0 * (out.argmax(1) == batch.trg).float().sum().item() / len(batch)"""
_ATTENDING = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.over, self.score, self.out = nn.Embedding(9, 8), nn.GRU(8, 8), nn.Linear(8, 1), nn.Linear(8, 2)

    def forward(self, src, lengths):
        embedded = self.words(src)
        packed = nn.utils.rnn.pack_padded_sequence(embedded, lengths)
        states, _ = nn.utils.rnn.pad_packed_sequence(self.over(packed)[0])
        scores = self.score(states).squeeze(2).masked_fill(src == 0, -1e9)
        return self.out((torch.softmax(scores, 0).unsqueeze(2) * states).sum(0))"""
_LAST_STATE = """
class Net(nn.Module):
    def __init__(self, size=6):
        super().__init__()
        self.size = size
        self.words, self.over, self.out = nn.Embedding(9, 8), nn.LSTM(8, 8), nn.Linear(8, 2)

    def forward(self, src, size=None):
        states = torch.zeros(1, self.size if size is None else size, 8)
        _, (last, _) = self.over(self.words(src), (states, states))
        return self.out(last[-1])"""
_LETTERS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters, self.out = nn.Embedding(12, 8), nn.Linear(8, 2)

    def forward(self, src):
        return self.out(torch.tanh(self.letters(src).sum(2)).sum(1))"""


def _encoded(
    net: str,
    given: str,
    fields: str,
    made: str,
    values: str = "[row, len(row) % 2]",
    state: str = "",
    before: str = "",
    count: int = 54,
    told: tuple[str, ...] = (),
) -> Script:
    """A script that trains on what a data set's `split` gives it."""
    body = (before + "\n" if before else "") + _STEP.format(given=given)
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    text = _ENCODED.format(net=net.strip(), given=given, fields=fields, made=made, values=values, state=state, body=lines, count=count)
    return Script(text, () if told else ("check",), told=told, stand_ins={"torchtext/__init__.py": "", "torchtext/data.py": _TEXT})


_FIELDS = 'fields = [("src", Field(use_vocab=False, pad_token=0{options})), ("trg", LabelField(use_vocab=False))]'
_NESTED = """\
letters = NestedField(Field(use_vocab=False, pad_token=0), pad_token=0)
fields = [("name", RawField()), ("src", letters), ("trg", LabelField(use_vocab=False))]"""


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
            "examples that are split at random, packed, and attended to": _encoded(
                _ATTENDING, "*batch.src", "Field, LabelField", _FIELDS.format(options=", include_lengths=True"), state=", random.seed(3)"
            ),
            "examples that are split at random, without a seed of their own": _encoded(
                _LETTERS.replace(".sum(2)", ""), "batch.src", "Field, LabelField", _FIELDS.format(options=", batch_first=True")
            ),
            "examples that are split as the process would draw": _encoded(
                _LETTERS.replace(".sum(2)", ""),
                "batch.src",
                "Field, LabelField",
                _FIELDS.format(options=", batch_first=True"),
                state=", random_state=random.getstate()",
            ),
            "examples of words of letters, beside their names": _encoded(
                _LETTERS,
                "batch.src",
                "Field, LabelField, NestedField, RawField",
                _NESTED,
                values='["row %d" % len(row), [[1 + n, 2 + n, 3][: 1 + n % 3] for n in row], len(row) % 2]',
                state=", random.seed(4)",
                before="assert len(batch.name) == len(batch)",
            ),
            "examples in whole batches alone, and states of as many": _encoded(
                _LAST_STATE,
                "batch.src",
                "Field, LabelField",
                _FIELDS.format(options=""),
                state=", random.seed(5)",
                before="if batch.src.size(1) is not 6:\n    continue",
                count=59,
            ),
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
SCRIPTS["examples that are packed as they are looked up"] = _encoded(
    _ATTENDING.replace("        embedded = self.words(src)\n", "").replace("(embedded, lengths)", "(self.words(src), lengths)"),
    "*batch.src",
    "Field, LabelField",
    _FIELDS.format(options=", include_lengths=True"),
    told=("DDP307",),
)
SCRIPTS["examples of training and of an evaluation, in one loop"] = Script(
    SCRIPTS["examples of sequences that begin with the samples"]
    .text.replace("        sgd.zero_grad()", "        if sgd is None:\n            continue\n        sgd.zero_grad()")
    .replace("check(net, check_iter)", "fit(net, check_iter, None)"),
    told=("DDP307",),
    stand_ins={"torchtext/__init__.py": "", "torchtext/data.py": _TEXT},
)
