"""Data sets that collate, loaders that others go around, and batches of more than two parts."""

from __future__ import annotations

from .data import DATASET, OWN, SETS, SHUFFLED, VAL, loader
from .pieces import Piece

_OWN_SETS = "train_set, val_set = Samples(num_train, 1), Samples(num_val, 2)\n"
_DICTS = DATASET.replace(
    "return self.features[index], self.labels[index]",
    'return {"features": self.features[index], "labels": self.labels[index], "index": index}',
)
WRAPPED: list[Piece] = [
    loader(
        "collated by the data set",
        _OWN_SETS
        + "train_loader = DataLoader(train_set, batch_size=batch_size, shuffle=True, collate_fn=train_set.collate_fn)\n"
        + "val_loader = DataLoader(val_set, batch_size=batch_size, collate_fn=val_set.collate_fn)\n",
        imports=OWN,
        definitions=DATASET
        + """
    @staticmethod
    def collate_fn(batch):
        features = torch.stack([item[0] for item in batch], 0)
        labels = torch.tensor([int(item[1]) for item in batch])
        return features, labels
""",
    ),
    loader(
        "dicts of samples, moved by a comprehension",
        _OWN_SETS + 'where = "cuda" if torch.cuda.is_available() else "cpu"\n' + SHUFFLED,
        imports=OWN,
        definitions=_DICTS,
        loop="""
for batch in train_loader:
    batch = {k: v.to(where) for k, v in batch.items()}
    inputs, targets = batch["features"], batch["labels"]
    {body}
""",
        tags=frozenset({"dict batches"}),
        weight=2,
    ),
    loader(
        "dicts of samples, moved by a function",
        _OWN_SETS + 'where = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")\n' + SHUFFLED,
        imports=OWN,
        definitions=_DICTS
        + """

def to_device(batch, device):
    if isinstance(batch, dict):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [to_device(value, device) for value in batch]
    return batch.to(device)
""",
        loop="""
for i, batch in enumerate(train_loader):
    batch = to_device(batch, where)
    inputs, targets = batch["features"], batch["labels"]
    {body}
""",
        tags=frozenset({"dict batches"}),
    ),
    loader(
        "an iterator that begins again, as a class",
        SETS + SHUFFLED + "stream = InfiniteLoader(train_loader)\n",
        definitions="""
class InfiniteLoader:
    def __init__(self, loader):
        self.loader = loader
        self.iterator = iter(loader)

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return next(self.iterator)
        except StopIteration:
            self.iterator = iter(self.loader)
            return next(self.iterator)
""",
        loop="for step in range(4):\n    inputs, targets = next(stream)\n    {body}\n",
    ),
    loader(
        "a loader class of its own around another",
        "train_loader = SplitLoader(TensorDataset(*make_samples(num_train, 1)), batch_size, shuffle=True)\n"
        "val_loader = SplitLoader(TensorDataset(*make_samples(num_val, 2)), batch_size, shuffle=False)\n",
        definitions="""
class SplitLoader(DataLoader):
    def __init__(self, dataset, batch_size, shuffle, num_workers=0):
        self.n_samples = len(dataset)
        super().__init__(dataset=dataset, batch_size=batch_size, shuffle=shuffle, num_workers=num_workers)
""",
    ),
    loader(
        "a loader that moves what another yields",
        SETS + SHUFFLED + 'train_batches = DeviceLoader(train_loader, "cuda" if torch.cuda.is_available() else "cpu")\n',
        definitions="""
class DeviceLoader:
    def __init__(self, loader, device):
        self.loader = loader
        self.device = device

    def __iter__(self):
        for batch in self.loader:
            yield [part.to(self.device, non_blocking=True) for part in batch]

    def __len__(self):
        return len(self.loader)
""",
        loop="for inputs, targets in train_batches:\n    {body}\n",
    ),
    loader(
        "labels weighed by a dict of counts",
        _OWN_SETS
        + """
label_counts = Counter(int(label) for _, label in train_set)
sample_weights = [1.0 / label_counts[int(label)] for _, label in train_set]
balanced = WeightedRandomSampler(torch.DoubleTensor(sample_weights), len(sample_weights))
train_loader = DataLoader(train_set, batch_size=batch_size, sampler=balanced, drop_last=True)
"""
        + VAL,
        imports=("from collections import Counter", "from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler"),
        definitions=DATASET,
    ),
    loader(
        "one fold of several",
        """
dataset = TensorDataset(*make_samples(num_train + num_val, 1))
order = np.random.RandomState(0).permutation(len(dataset))
folds = np.array_split(order, 3)
train_ids = np.concatenate([ids for i, ids in enumerate(folds) if i != 1])
train_set, val_set = Subset(dataset, train_ids.tolist()), Subset(dataset, folds[1].tolist())
"""
        + SHUFFLED,
        imports=("import numpy as np", "from torch.utils.data import DataLoader, Subset, TensorDataset"),
        tags=frozenset({"folds"}),
        weight=1.5,
    ),
    loader(
        "rows standardised by those of the training",
        """
train_x, train_y = make_samples(num_train, 1)
val_x, val_y = make_samples(num_val, 2)
mean, std = train_x.mean(dim=0, keepdim=True), train_x.std(dim=0, keepdim=True)
train_set = TensorDataset((train_x - mean) / std, train_y)
val_set = TensorDataset((val_x - mean) / std, val_y)
"""
        + SHUFFLED,
    ),
    loader(
        "windows of a series",
        """
series = torch.sin(torch.arange(num_train + 31.0) * 0.37) + 0.1 * torch.cos(torch.arange(num_train + 31.0))
train_set, val_set = Windows(series[:num_train + 16]), Windows(series[15:])
"""
        + SHUFFLED,
        imports=OWN,
        definitions="""
class Windows(Dataset):
    def __init__(self, series, length=16):
        self.series = series
        self.length = length

    def __len__(self):
        return len(self.series) - self.length

    def __getitem__(self, i):
        window = self.series[i:i + self.length]
        return window, (self.series[i + self.length] > 0.3).long() + (self.series[i + self.length] > -0.3).long()
""",
        tags=frozenset({"own validation length"}),
    ),
    loader(
        "parts of a batch beyond its labels",
        """
train_set = TensorDataset(*make_samples(num_train, 1), torch.linspace(0.5, 1.5, num_train))
val_set = TensorDataset(*make_samples(num_val, 2))
"""
        + SHUFFLED,
        loop="for inputs, targets, *rest in train_loader:\n    inputs = inputs * rest[0].unsqueeze(1)\n    {body}\n",
        tags=frozenset({"cpu batches"}),
    ),
    loader(
        "micro-batches cut from each batch",
        SETS + SHUFFLED.replace("shuffle=True", "shuffle=True, drop_last=True"),
        loop="""
for big_inputs, big_targets in train_loader:
    for inputs, targets in zip(big_inputs.chunk(2), big_targets.chunk(2)):
        {body}
""",
        weight=0.5,
    ),
]
