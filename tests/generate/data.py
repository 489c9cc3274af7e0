"""Where the samples come from, and how a loop gets its batches."""

from __future__ import annotations

from .pieces import Piece

_SAMPLES = """
def make_samples(count, seed):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(count, 16, generator=generator)
    scores = features[:, :3] + 0.3 * torch.randn(count, 3, generator=generator)
    return features, scores.argmax(dim=1)
"""
DATASET = """
class Samples(Dataset):
    def __init__(self, count, seed):
        self.features, self.labels = make_samples(count, seed)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.features[index], self.labels[index]
"""
SETS = """
train_set = TensorDataset(*make_samples(num_train, 1))
val_set = TensorDataset(*make_samples(num_val, 2))
"""
VAL = "val_loader = DataLoader(val_set, batch_size=batch_size)\n"
PLAIN = "for inputs, targets in train_loader:\n    {body}\n"
LOOPS = (
    PLAIN,
    "for i, (inputs, targets) in enumerate(train_loader):\n    {body}\n",
    "for batch in train_loader:\n    inputs, targets = batch\n    {body}\n",
    "for batch in train_loader:\n    inputs = batch[0]\n    targets = batch[1]\n    {body}\n",
    "for i, batch in enumerate(train_loader, 1):\n    inputs, targets = batch\n    {body}\n",
    "for i, data in enumerate(train_loader, 0):\n    inputs, targets = data\n    {body}\n",
)
TENSOR = ("from torch.utils.data import DataLoader, TensorDataset",)
OWN = ("from torch.utils.data import DataLoader, Dataset",)


def loader(feature: str, setup: str, *, imports: tuple[str, ...] = TENSOR, definitions: str = "", loop: str = "", **kw: object) -> Piece:
    """A piece whose validation data is a plain loader; without a loop of its own it takes any of LOOPS."""
    return Piece(
        f"data: {feature}",
        imports=imports,
        settings={"num_train": 48, "num_val": 24, "batch_size": 12},
        definitions=_SAMPLES + definitions,
        setup=setup,
        loop=loop,
        task="rows",
        **kw,  # type: ignore[arg-type]
    )


SHUFFLED = "train_loader = DataLoader(train_set, batch_size=batch_size, shuffle=True)\n" + VAL
LOADERS = [
    loader("plain", SETS + SHUFFLED, weight=5),
    loader(
        "own dataset",
        "train_set = Samples(num_train, 1)\nval_set = Samples(num_val, 2)\n" + SHUFFLED,
        imports=OWN,
        definitions=DATASET,
        weight=3,
    ),
    loader(
        "positional", SETS + "train_loader = DataLoader(train_set, batch_size, True)\nval_loader = DataLoader(val_set, batch_size, False)"
    ),
    loader(
        "kwargs dict",
        SETS
        + """
kwargs = {"batch_size": batch_size, "num_workers": 0}
if torch.cuda.is_available():
    kwargs.update({"pin_memory": True})
train_loader = DataLoader(train_set, shuffle=True, **kwargs)
val_loader = DataLoader(val_set, shuffle=False, **kwargs)
""",
    ),
    loader(
        "two kwargs dicts",
        SETS
        + """
train_kwargs = {"batch_size": batch_size}
test_kwargs = {"batch_size": num_val}
common = dict(num_workers=0, shuffle=True)
train_kwargs.update(common)
train_loader = DataLoader(train_set, **train_kwargs)
val_loader = DataLoader(val_set, **test_kwargs)
""",
    ),
    loader("not shuffled", SETS + "train_loader = DataLoader(train_set, batch_size=batch_size)\n" + VAL),
    loader(
        "uneven validation",
        SETS.replace("num_val", "num_val - 5") + SHUFFLED,
    ),
    loader(
        "last batch dropped",
        SETS.replace("num_train", "num_train + 7")
        + "train_loader = DataLoader(train_set, batch_size=batch_size, shuffle=True, drop_last=True)\n"
        + VAL,
    ),
    loader(
        "shorter last batch",
        SETS.replace("num_train", "num_train + 6") + SHUFFLED,
        tags=frozenset({"uneven"}),
    ),
    loader(
        "short batches skipped",
        SETS.replace("num_train", "num_train + 6") + SHUFFLED,
        loop="for inputs, targets in train_loader:\n    if inputs.size(0) != batch_size:\n        continue\n    {body}\n",
    ),
    loader(
        "random split",
        """
dataset = TensorDataset(*make_samples(num_train + num_val, 1))
train_set, val_set = random_split(dataset, [num_train, num_val], generator=torch.Generator().manual_seed(0))
"""
        + SHUFFLED,
        imports=("from torch.utils.data import DataLoader, TensorDataset, random_split",),
    ),
    loader(
        "random split without a seed",
        """
dataset = TensorDataset(*make_samples(num_train + num_val, 1))
train_set, val_set = random_split(dataset, [num_train, num_val])
"""
        + SHUFFLED,
        imports=("from torch.utils.data import DataLoader, TensorDataset, random_split",),
    ),
    loader(
        "subset by indices",
        """
dataset = Samples(num_train + num_val, 1)
indices = list(range(len(dataset)))
train_set, val_set = Subset(dataset, indices[num_val:]), Subset(dataset, indices[:num_val])
"""
        + SHUFFLED,
        imports=("from torch.utils.data import DataLoader, Dataset, Subset",),
        definitions=DATASET,
    ),
    loader(
        "samplers over indices",
        """
dataset = TensorDataset(*make_samples(num_train + num_val, 1))
indices = list(range(len(dataset)))
random.Random(0).shuffle(indices)
train_loader = DataLoader(dataset, batch_size=batch_size, sampler=SubsetRandomSampler(indices[num_val:]))
val_loader = DataLoader(dataset, batch_size=batch_size, sampler=SequentialSampler(Subset(dataset, indices[:num_val])))
""",
        imports=("import random", "from torch.utils.data import DataLoader, SequentialSampler, Subset, SubsetRandomSampler, TensorDataset"),
    ),
    loader(
        "weighted sampler",
        SETS
        + """
labels = train_set.tensors[1]
weights = (1.0 / torch.bincount(labels, minlength=3).clamp(min=1))[labels]
sampler = WeightedRandomSampler(weights, num_samples=len(train_set), replacement=True)
train_loader = DataLoader(train_set, batch_size=batch_size, sampler=sampler)
"""
        + VAL,
        imports=("from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler",),
    ),
    loader(
        "batch sampler",
        SETS
        + "train_loader = DataLoader(train_set, batch_sampler=BatchSampler(RandomSampler(train_set), batch_size, drop_last=False))\n"
        + VAL,
        imports=("from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset",),
    ),
    loader(
        "own batch sampler",
        SETS + "train_loader = DataLoader(train_set, batch_sampler=ShuffledBatches(len(train_set), batch_size))\n" + VAL,
        imports=("from torch.utils.data import DataLoader, Sampler, TensorDataset",),
        definitions="""
class ShuffledBatches(Sampler):
    def __init__(self, count, size):
        self.count, self.size = count, size

    def __iter__(self):
        order = torch.randperm(self.count).tolist()
        for start in range(0, self.count, self.size):
            yield order[start:start + self.size]

    def __len__(self):
        return (self.count + self.size - 1) // self.size
""",
    ),
    loader(
        "own sampler",
        SETS + "train_loader = DataLoader(train_set, batch_size=batch_size, sampler=Shuffled(train_set))\n" + VAL,
        imports=("from torch.utils.data import DataLoader, Sampler, TensorDataset",),
        definitions="""
class Shuffled(Sampler):
    def __init__(self, dataset):
        self.dataset = dataset

    def __iter__(self):
        return iter(torch.randperm(len(self.dataset)).tolist())

    def __len__(self):
        return len(self.dataset)
""",
    ),
    loader(
        "concatenated datasets",
        """
parts = [TensorDataset(*make_samples(num_train // 4, part)) for part in range(4)]
train_set = ConcatDataset(parts)
val_set = TensorDataset(*make_samples(num_val, 9))
"""
        + SHUFFLED,
        imports=("from torch.utils.data import ConcatDataset, DataLoader, TensorDataset",),
    ),
    loader(
        "dict of loaders",
        """
datasets = {"train": TensorDataset(*make_samples(num_train, 1)), "val": TensorDataset(*make_samples(num_val, 2))}
loaders = {name: DataLoader(datasets[name], batch_size=batch_size, shuffle=name == "train") for name in ("train", "val")}
train_loader, val_loader = loaders["train"], loaders["val"]
""",
    ),
    loader(
        "function that makes loaders",
        "train_loader, val_loader = get_loaders(num_train, num_val, batch_size)\n",
        definitions="""
def get_loaders(num_train, num_val, batch_size=32, workers=0):
    def one(count, seed, train):
        return DataLoader(TensorDataset(*make_samples(count, seed)), batch_size=batch_size, shuffle=train, num_workers=workers)

    return one(num_train, 1, True), one(num_val, 2, False)
""",
        weight=2,
    ),
    loader(
        "collate into a dict",
        "train_loader = DataLoader(Samples(num_train, 1), batch_size=batch_size, shuffle=True, collate_fn=collate)\n"
        "val_loader = DataLoader(Samples(num_val, 2), batch_size=batch_size, collate_fn=collate)\n",
        imports=OWN,
        definitions=DATASET
        + """
def collate(samples):
    features, labels = zip(*samples)
    return {"features": torch.stack(features), "labels": torch.stack(labels)}
""",
        loop='for batch in train_loader:\n    inputs, targets = batch["features"], batch["labels"]\n    {body}\n',
        tags=frozenset({"dict batches"}),
    ),
    loader(
        "iterator restarted by hand",
        SETS + SHUFFLED + "batches = iter(train_loader)\n",
        loop="""
for i in range(len(train_loader)):
    try:
        inputs, targets = next(batches)
    except StopIteration:
        batches = iter(train_loader)
        inputs, targets = next(batches)
    {body}
""",
    ),
    loader(
        "iterator of each epoch",
        SETS + SHUFFLED,
        loop="iterator = iter(train_loader)\nfor i in range(len(train_loader)):\n    inputs, targets = next(iterator)\n    {body}\n",
    ),
    loader(
        "while loop over an iterator",
        SETS + SHUFFLED,
        loop="""
iterator = iter(train_loader)
while True:
    batch = next(iterator, None)
    if batch is None:
        break
    inputs, targets = batch
    {body}
""",
    ),
    loader(
        "two loaders in step",
        SETS
        + "noisy_set = TensorDataset(torch.sin(torch.arange(num_train * 16.0)).view(num_train, 16))\n"
        + "noisy_loader = DataLoader(noisy_set, batch_size=batch_size, shuffle=True)\n"
        + SHUFFLED,
        loop="for (inputs, targets), (noise,) in zip(train_loader, noisy_loader):\n    inputs = inputs + 0.1 * noise\n    {body}\n",
        tags=frozenset({"cpu batches"}),
    ),
    loader(
        "buffers filled for each batch",
        SETS
        + "train_loader = DataLoader(train_set, batch_size=batch_size, shuffle=True, drop_last=True)\n"
        + VAL
        + "feature_buffer = torch.zeros(batch_size, 16)\nlabel_buffer = torch.zeros(batch_size, dtype=torch.long)\n",
        loop="""
for features, labels in train_loader:
    feature_buffer.copy_(features)
    label_buffer.copy_(labels)
    inputs, targets = feature_buffer, label_buffer
    {body}
""",
        tags=frozenset({"cpu batches", "no gradient of inputs"}),
    ),
    loader(
        "buffers resized for each batch",
        SETS + SHUFFLED + "inputs = torch.empty(0)\ntargets = torch.empty(0, dtype=torch.long)\n",
        loop="""
for features, labels in train_loader:
    inputs.resize_(features.size()).copy_(features)
    targets.resize_(labels.size()).copy_(labels)
    {body}
""",
        tags=frozenset({"cpu batches", "no gradient of inputs"}),
    ),
    loader(
        "prefetcher",
        SETS + SHUFFLED,
        definitions="""
class Prefetcher:
    def __init__(self, loader):
        self.loader = iter(loader)
        self.preload()

    def preload(self):
        try:
            self.next_input, self.next_target = next(self.loader)
        except StopIteration:
            self.next_input, self.next_target = None, None

    def next(self):
        batch = self.next_input, self.next_target
        self.preload()
        return batch
""",
        loop="""
prefetcher = Prefetcher(train_loader)
inputs, targets = prefetcher.next()
while inputs is not None:
    {body}
    inputs, targets = prefetcher.next()
""",
    ),
    loader(
        "loader that yields whole batches",
        "train_loader = DataLoader(Batches(num_train, batch_size), batch_size=None)\nval_set = TensorDataset(*make_samples(num_val, 2))\n"
        + VAL,
        imports=("from torch.utils.data import DataLoader, IterableDataset, TensorDataset",),
        definitions="""
class Batches(IterableDataset):
    def __init__(self, count, size):
        self.count, self.size = count, size

    def __iter__(self):
        features, labels = make_samples(self.count, 1)
        for start in range(0, self.count, self.size):
            yield features[start:start + self.size], labels[start:start + self.size]
""",
        tags=frozenset({"no length"}),
    ),
    loader(
        "stream of samples",
        "train_loader = DataLoader(Stream(num_train), batch_size=batch_size)\nval_set = TensorDataset(*make_samples(num_val, 2))\n" + VAL,
        imports=("from torch.utils.data import DataLoader, IterableDataset, TensorDataset",),
        definitions="""
class Stream(IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        features, labels = make_samples(self.count, 1)
        for row, label in zip(features, labels):
            yield row, label
""",
        tags=frozenset({"no length"}),
    ),
    loader(
        "loader made in each epoch",
        "train_set = TensorDataset(*make_samples(num_train, 1))\nval_set = TensorDataset(*make_samples(num_val, 2))\n" + VAL,
        loop="train_loader = DataLoader(train_set, batch_size=batch_size, shuffle=True)\n" + PLAIN,
        tags=frozenset({"made late"}),
    ),
    loader(
        "endless generator",
        SETS + SHUFFLED + "batches = cycle(train_loader)\nsteps_per_epoch = num_train // batch_size\n",
        definitions="""
def cycle(loader):
    while True:
        for batch in loader:
            yield batch
""",
        loop="for i in range(steps_per_epoch):\n    inputs, targets = next(batches)\n    {body}\n",
    ),
    loader(
        "progress bar",
        SETS + SHUFFLED,
        imports=("from tqdm import tqdm", *TENSOR),
        loop='for inputs, targets in tqdm(train_loader, desc=f"epoch {epoch}", leave=False):\n    {body}\n',
    ),
]
_TOKENS = """
class Sentences(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.lengths = torch.randint(3, 9, (count,), generator=generator).tolist()
        self.words = [torch.randint(1, 20, (length,), generator=generator) for length in self.lengths]

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        return self.words[index], (self.words[index] * 3 + 1) % 5 + 1
"""
_PAD = {
    "pad_sequence": """
def collate(samples):
    words, tags = zip(*samples)
    return pad_sequence(words, batch_first=True), pad_sequence(tags, batch_first=True)
""",
    "padded by hand": """
def collate(samples):
    longest = max(len(words) for words, _ in samples)
    inputs = torch.zeros(len(samples), longest, dtype=torch.long)
    targets = torch.zeros(len(samples), longest, dtype=torch.long)
    for row, (words, tags) in enumerate(samples):
        inputs[row, :len(words)] = words
        targets[row, :len(tags)] = tags
    return inputs, targets
""",
}
SEQUENCES = [
    Piece(
        f"data: sequences, {how}",
        imports=("from torch.nn.utils.rnn import pad_sequence", *OWN),
        settings={"num_train": 48, "num_val": 24, "batch_size": 12},
        definitions=_TOKENS + collate,
        setup="train_loader = DataLoader(Sentences(num_train, 1), batch_size=batch_size, shuffle=True, collate_fn=collate)\n"
        "val_loader = DataLoader(Sentences(num_val, 2), batch_size=batch_size, collate_fn=collate)\n",
        loop=PLAIN,
        task="tokens",
        weight=4,
    )
    for how, collate in _PAD.items()
]
