"""Batches that a script cuts of its arrays itself, without a loader."""

from __future__ import annotations

from .data import TENSOR, VAL, loader
from .pieces import Piece

_ARRAYS = "train_x, train_y = (t.numpy() for t in make_samples(num_train, 1))\nval_set = TensorDataset(*make_samples(num_val, 2))\n"
_TENSORS = "train_x, train_y = make_samples(num_train, 1)\nval_set = TensorDataset(*make_samples(num_val, 2))\n"
_BATCHER = """
class Batcher:
    def __init__(self, features, labels, size):
        self.features, self.labels, self.size = features, labels, size
        self.order = np.arange(len(features))
        self.reset()

    def reset(self):
        np.random.shuffle(self.order)
        self.pointer = 0

    def has_next(self):
        return self.pointer < len(self.order)

    def next_batch(self):
        rows = self.order[self.pointer:self.pointer + self.size]
        self.pointer += self.size
        return torch.from_numpy(self.features[rows]), torch.from_numpy(self.labels[rows])
"""


def by_hand(feature: str, setup: str, loop: str, **kw: object) -> Piece:
    return loader(feature, setup, loop=loop, tags=frozenset({"no loader"}), **kw)  # type: ignore[arg-type]


BY_HAND = [
    by_hand(
        "permutation and slices",
        _TENSORS + VAL,
        loop="""
permutation = torch.randperm(num_train)
for start in range(0, num_train, batch_size):
    chosen = permutation[start:start + batch_size]
    inputs, targets = train_x[chosen], train_y[chosen]
    {body}
""",
    ),
    by_hand(
        "slices by number",
        _TENSORS + VAL + "num_batches = num_train // batch_size\n",
        loop="""
for i in range(num_batches):
    inputs = train_x[i * batch_size:(i + 1) * batch_size]
    targets = train_y[i * batch_size:(i + 1) * batch_size]
    {body}
""",
    ),
    by_hand(
        "shuffled numpy indices",
        _TENSORS + VAL,
        imports=("import numpy as np", *TENSOR),
        loop="""
order = np.arange(num_train)
np.random.shuffle(order)
for start in range(0, num_train, batch_size):
    rows = order[start:start + batch_size]
    inputs, targets = train_x[rows], train_y[rows]
    {body}
""",
    ),
    by_hand(
        "split tensors",
        _TENSORS + VAL,
        loop="for inputs, targets in zip(train_x.split(batch_size), train_y.split(batch_size)):\n    {body}\n",
    ),
    by_hand(
        "generator function over batches",
        _TENSORS + VAL,
        definitions="""
def iterate_batches(features, labels, size):
    order = torch.randperm(len(features))
    for start in range(0, len(features), size):
        chosen = order[start:start + size]
        yield features[chosen], labels[chosen]
""",
        loop="for inputs, targets in iterate_batches(train_x, train_y, batch_size):\n    {body}\n",
    ),
    by_hand(
        "random batches of a function",
        _TENSORS + VAL + "generator = torch.Generator().manual_seed(3)\n",
        definitions="""
def get_batch(features, labels, size, generator):
    chosen = torch.randint(len(features), (size,), generator=generator)
    return features[chosen], labels[chosen]
""",
        loop="for i in range(4):\n    inputs, targets = get_batch(train_x, train_y, batch_size, generator)\n    {body}\n",
    ),
    by_hand(
        "numpy rows in a random order",
        _ARRAYS + VAL,
        imports=("import numpy as np", *TENSOR),
        loop="""
order = np.random.permutation(num_train)
for b in range(num_train // batch_size):
    rows = order[b * batch_size:(b + 1) * batch_size]
    inputs = torch.from_numpy(train_x[rows]).float()
    targets = torch.from_numpy(train_y[rows]).long()
    {body}
""",
    ),
    by_hand(
        "list of pairs, shuffled",
        "samples = list(zip(*make_samples(num_train, 1)))\nval_set = TensorDataset(*make_samples(num_val, 2))\n" + VAL,
        imports=("import random", *TENSOR),
        loop="""
random.shuffle(samples)
for start in range(0, len(samples), batch_size):
    chunk = samples[start:start + batch_size]
    inputs = torch.stack([row for row, _ in chunk])
    targets = torch.stack([label for _, label in chunk])
    {body}
""",
    ),
    by_hand(
        "object with a pointer",
        _ARRAYS + VAL + "batcher = Batcher(train_x, train_y, batch_size)\n",
        imports=("import numpy as np", *TENSOR),
        definitions=_BATCHER,
        loop="batcher.reset()\nwhile batcher.has_next():\n    inputs, targets = batcher.next_batch()\n    {body}\n",
    ),
    by_hand(
        "batches cut beforehand, shuffled",
        _TENSORS + VAL + "batches = list(zip(train_x.split(batch_size), train_y.split(batch_size)))\n",
        imports=("import random", *TENSOR),
        loop="random.shuffle(batches)\nfor inputs, targets in batches:\n    {body}\n",
    ),
    by_hand(
        "permutation split",
        _TENSORS + VAL,
        loop="for rows in torch.randperm(num_train).split(batch_size):\n    inputs, targets = train_x[rows], train_y[rows]\n    {body}\n",
    ),
    by_hand(
        "arrays shuffled before each epoch",
        _TENSORS + VAL,
        loop="""
shuffle = torch.randperm(len(train_x))
train_x, train_y = train_x[shuffle], train_y[shuffle]
for start in range(0, len(train_x), batch_size):
    end = start + batch_size
    inputs, targets = train_x[start:end], train_y[start:end]
    {body}
""",
    ),
]
