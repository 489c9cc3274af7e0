"""Scripts about loaders, wherever and however they are made, and about samplers of every kind."""

import textwrap

from scripts import Script, on_three

_FETCHED = """
import os

import torch
from torch.utils.data import TensorDataset

x = torch.sin(torch.arange(352.0) ** 1.5).view(44, 8)
y = (x.sum(1) > 0).long()


class CIFAR100(TensorDataset):
    def __init__(self, root, train, download):
        place = os.path.join(root, str(train))
        if download and not os.path.exists(place):
            os.makedirs(place)
        super().__init__(x[:36] if train else x[36:], y[:36] if train else y[36:])
"""
_AHEAD = """
import queue, threading

class BackgroundGenerator(threading.Thread):
    def __init__(self, generator, max_prefetch=1):
        super().__init__(daemon=True)
        self.queue, self.generator = queue.Queue(max_prefetch), iter(generator)
        self.start()

    def run(self):
        for one in self.generator:
            self.queue.put((one,))
        self.queue.put(None)

    def __iter__(self):
        while (one := self.queue.get()) is not None:
            yield one[0]
"""

_DRAWN = """\
import torch
from torch.utils.data import Sampler


class Drawn(Sampler):
    def __init__(self, length):
        self.length, self.ordered = length, False

    def __len__(self):
        return self.length

    def __iter__(self):
        yield from range(self.length) if self.ordered else torch.randperm(self.length).tolist()


def total(loader):
    if hasattr(loader.sampler, "ordered"):
        loader.sampler.ordered = True
    seen = []
    for rows, _ in loader:
        seen.append(rows)
    rows = torch.cat(seen)
    return (rows.sum(1) * torch.arange(len(rows))).sum()
"""
_IN_ORDER = """
def in_order(loader):
    seen = []
    for rows, _ in loader:
        seen.append(rows)
    return torch.cat(seen)

def joined(loader):
    seen = torch.empty(0, 8)
    for rows, _ in loader:
        seen = torch.cat([seen, rows])
    return seen

loader = DataLoader(TensorDataset(x, y), batch_size=6)
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for rows, kinds in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(rows), kinds).backward()
        optimizer.step()
seen = %s
print("total", round((seen.sum(1) * torch.arange(len(seen))).sum().item(), 3))
"""
_STREAMED = """
{made}
net = nn.Linear(8, 2)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for rows, kinds in DataLoader(data, batch_size=4):
        loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""
_ROWS = """\
import torch


class Rows(torch.utils.data.IterableDataset):
    def __iter__(self):
        rows = torch.sin(torch.arange(192.0)).view(24, 8)
        return ((row, int(row.sum() > 0)) for row in rows.to(torch.get_default_dtype()))

    def shuffle(self, size):
        return self

    def take(self, number):
        return self


def AG_NEWS():
    return Rows(), Rows()


def load_dataset(name, streaming, split=""):
    return Rows() if split else {"train": Rows()}
"""
_STREAMS = {
    "a package's streams, of which one trains": Script(
        _STREAMED.format(made="from torchtext.datasets import AG_NEWS\n\ndata, other = AG_NEWS()"),
        told=("DDP301",),
        stand_ins={"torchtext/__init__.py": "", "torchtext/datasets.py": _ROWS},
    ),
    "a part of a stream, shuffled": Script(
        _STREAMED.format(
            made="from datasets import load_dataset\n\ndata = load_dataset('rows', streaming=True)['train'].shuffle(9).take(24)"
        ),
        told=("DDP301",),
        stand_ins={"datasets.py": _ROWS},
    ),
    "a data set that is asked for as a stream": Script(
        _STREAMED.format(made="from datasets import load_dataset\n\ndata = load_dataset('rows', split='train', streaming=True)"),
        told=("DDP301",),
        stand_ins={"datasets.py": _ROWS},
    ),
}

_QUICK = """
        class Quick:
            def __init__(self, *columns, size):
                self.columns, self.size = columns, size

            def __iter__(self):
                self.at = 0
                return self

            def __next__(self):
                if self.at >= len(self.columns[0]):
                    raise StopIteration
                rows = tuple(c[self.at : self.at + self.size] for c in self.columns)
                self.at += self.size
                return rows


        def train(net, batches):
            sgd = torch.optim.SGD(net.parameters(), lr=0.01)
            for epoch in range(3):
                for rows, kinds in batches:
                    loss = F.cross_entropy(net(rows), kinds, reduction="sum")
                    sgd.zero_grad()
                    loss.backward()
                    sgd.step()


"""

_ASKING = """
import torch.distributed as dist
from torch.utils.data.distributed import DistributedSampler


def is_joined():
    if not dist.is_available():
        return False
    return dist.is_initialized()


def count():
    return dist.get_world_size() if is_joined() else 1


DATAnet = nn.Linear(8, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
for epoch in range(2):
    if isinstance(loader.sampler, DistributedSampler):
        loader.sampler.set_epoch(epoch)
    for rows, kinds in loader:
        loss = F.cross_entropy(net(rows), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
AFTER"""


def _asking(data: str, rate: str = "0.1", after: str = "", told: tuple[str, ...] = ()) -> Script:
    """A script with functions that ask for the process group: how it makes its loaders, its rate, and what it does after each epoch."""
    made, end = textwrap.dedent(data).lstrip("\n"), textwrap.indent(textwrap.dedent(after).lstrip("\n"), 4 * " ")
    return Script(_ASKING.replace("DATA", made).replace("RATE", rate).replace("AFTER", end), told=told)


_REDUCED = """
import torch.distributed as dist


def reduced(value, average=True):
    world = dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1
    if world < 2:
        return value
    dist.all_reduce(value)
    if average:
        value /= world
    return value


def train_epoch(net, optimizer, loader):
    mean = torch.zeros(1)
    for step, (rows, kinds) in enumerate(loader):
        loss = F.cross_entropy(net(rows), kinds)
        loss.backward()
        mean = (mean * step + reduced(loss.detach())) / (step + 1)
        optimizer.step()
        optimizer.zero_grad()
    return mean.item()


@torch.no_grad()
def evaluate(net, loader):
    right = torch.zeros(1)
    for rows, kinds in loader:
ADDSRETURNS

loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
check = DataLoader(TensorDataset(x[12:], y[12:]), batch_size=4)
net = nn.Linear(8, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    print(f"trained {train_epoch(net, optimizer, loader):.5f}, right {evaluate(net, check)}")
"""


_CONFUSION = """
    class Confusion:
        def __init__(self):
            self.counts = START

        def update(self, kinds, guesses):
            STARTED
            self.counts += torch.bincount(2 * kinds + guesses, minlength=4).reshape(2, 2)

        def combine(self):
            if not torch.distributed.is_available():
                return
            if not torch.distributed.is_initialized():
                return
            torch.distributed.barrier()
            torch.distributed.all_reduce(self.counts)

        def __str__(self):
            counts = self.counts.float()
            return f"right {counts.diag().sum() / counts.sum():.4f} of {int(counts.sum())}, {(counts.diag() / counts.sum(1)).tolist()}"


    def evaluate(net, loader):
        net.eval()
        confusion = Confusion()
        with torch.no_grad():
            for rows, kinds in loader:
                confusion.update(kinds, net(rows).argmax(1))
        confusion.combine()
        return confusion


    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    others = DataLoader(TensorDataset(x[10:], y[10:]), batch_size=4)
    for epoch in range(2):
        net.train()
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
        confusion = evaluate(net, others)
        print(epoch, str(confusion))
    print("seen", *confusion.counts.flatten().tolist())
"""


def _confused(start: str, started: str) -> str:
    """A script whose evaluation counts in an object that adds up over the ranks itself: what the counts start as, or become."""
    return _CONFUSION.replace("START\n", f"{start}\n").replace("STARTED", started)


def _reduced(returns: str, adds: str = "right += (net(rows).argmax(1) == kinds).sum()", told: tuple[str, ...] = ()) -> Script:
    """A script that adds its totals up over the ranks itself: what its evaluation returns, and what it does for each batch."""
    text = _REDUCED.replace("ADDS", textwrap.indent(f"{adds}\n", 8 * " ")).replace("RETURNS", textwrap.indent(f"{returns}\n", 4 * " "))
    return Script(text, same=() if told else ("trained",), told=told)


SCRIPTS: dict[str, Script] = {
    "a loader in one training, and batches of a class of the script's own in another": Script(
        _QUICK
        + """
        train(nn.Linear(8, 2), DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6))
        train(nn.Linear(8, 2), Quick(x[:36], y[:36], size=6))
        """
    ),
    "a loader, or batches of a class of the script's own": Script(
        _QUICK
        + """
        slow = os.environ.get("QUICK", "0") == "0"
        train(nn.Linear(8, 2), DataLoader(TensorDataset(x, y), batch_size=8) if slow else Quick(x, y, size=8))
        """,
        told=("DDP402",),
    ),
    "two loaders side by side, by a function of Python 2 where there is one": Script(
        """
        try:
            from itertools import izip as zip
        except ImportError:
            pass

        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        ones = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
        others = DataLoader(TensorDataset(x[4:40]), batch_size=6, shuffle=True)
        for epoch in range(2):
            for step, ((rows, kinds), (more,)) in enumerate(zip(ones, others)):
                loss = F.cross_entropy(net(rows), kinds) + net(more).pow(2).mean()
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """
    ),
    **_STREAMS,
    # ------------------------------------------------------------------------------------------ samplers of the script's own
    "an own sampler that permutes with numpy": Script("""
    import numpy as np
    from torch.utils.data import Sampler

    class Mixed(Sampler):
        def __init__(self, labels):
            self.labels = labels

        def __iter__(self):
            order = np.random.permutation(len(self.labels))
            return iter(order.tolist())

        def __len__(self):
            return len(self.labels)

    data = TensorDataset(x[:36], y[:36])
    loader = DataLoader(data, batch_size=6, sampler=Mixed(y[:36]))
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
"""),
    "an own sampler that shuffles with random and has no length": Script("""
    import random

    class Blocks(torch.utils.data.Sampler):
        def __init__(self, count, block):
            self.count, self.block = count, block

        def __iter__(self):
            starts = list(range(0, self.count, self.block))
            random.shuffle(starts)
            for start in starts:
                yield from range(start, start + self.block)

    blocks = Blocks(36, 4)
    feed = DataLoader(TensorDataset(x, y), sampler=blocks, batch_size=12, drop_last=True)
    net = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 2))
    adam = torch.optim.Adam(net.parameters())
    for turn in range(4):
        for a, b in feed:
            adam.zero_grad()
            cost = F.cross_entropy(net(a), b)
            cost.backward()
            adam.step()
        print("turn", turn)
"""),
    "an own sampler with both generators behind a helper": Script("""
    import random
    import numpy

    def shuffled(values):
        values = list(values)
        random.shuffle(values)
        return values

    class Halves:
        def __init__(self, n):
            self.n = n

        def __len__(self):
            return self.n

        def _first(self):
            return numpy.random.choice(self.n // 2, self.n // 2, replace=False).tolist()

        def __iter__(self):
            return iter(self._first() + shuffled(range(self.n // 2, self.n)))

    train_dl = DataLoader(TensorDataset(x[:24], y[:24]), 6, sampler=Halves(24))
    model = nn.Linear(8, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(3):
        for batch in train_dl:
            out = model(batch[0])
            loss = nn.functional.cross_entropy(out, batch[1])
            opt.zero_grad()
            loss.backward()
            opt.step()
"""),
    "an own sampler with a seed and an epoch of its own": Script("""
    class Seeded(torch.utils.data.Sampler):
        def __init__(self, source, seed):
            self.source, self.seed, self.epoch = source, seed, 0

        def set_epoch(self, epoch):
            self.epoch = epoch

        def __len__(self):
            return len(self.source)

        def __iter__(self):
            g = torch.Generator()
            g.manual_seed(self.seed + self.epoch)
            return iter(torch.randperm(len(self.source), generator=g).tolist())

    data = TensorDataset(x[:36], y[:36])
    order = Seeded(data, 7)
    loader = DataLoader(data, batch_size=6, sampler=order)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        order.set_epoch(epoch)
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
"""),
    "an own sampler whose epoch is set through the loader": Script("""
    class Rotated(torch.utils.data.Sampler):
        def __init__(self, n):
            self.n, self.epoch = n, 0

        def set_epoch(self, epoch):
            self.epoch = epoch

        def __len__(self):
            return self.n

        def __iter__(self):
            return iter([(i * 7 + self.epoch) % self.n for i in range(self.n)])

    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, sampler=Rotated(36))
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
"""),
    "a list of indices as the sampler": Script("""
    chosen = [i for i in range(44) if i % 11]
    loader = DataLoader(TensorDataset(x, y), batch_size=6, sampler=chosen[:36])
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
"""),
    "an own sampler that never ends": Script(
        """
    class Endless(torch.utils.data.Sampler):
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            while True:
                yield from torch.randperm(self.n).tolist()

        def __len__(self):
            return 2 ** 31

    stream = iter(DataLoader(TensorDataset(x, y), batch_size=6, sampler=Endless(44)))
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(20):
        rows, kinds = next(stream)
        optimizer.zero_grad()
        F.cross_entropy(model(rows), kinds).backward()
        optimizer.step()
""",
    ),
    "an own sampler that never ends and draws by numpy": Script(
        """
    import numpy as np

    def forever(n):
        i, order = 0, np.random.permutation(n)
        while True:
            yield order[i]
            i += 1
            if i >= n:
                i, order = 0, np.random.permutation(n)

    class Endless(torch.utils.data.Sampler):
        def __init__(self, data):
            self.number = len(data)

        def __iter__(self):
            return iter(forever(self.number))

        def __len__(self):
            return 2 ** 31

    np.random.seed(4)
    data = TensorDataset(x, y)
    stream = iter(DataLoader(data, batch_size=6, sampler=Endless(data)))
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(40):
        rows, kinds = next(stream)
        optimizer.zero_grad()
        F.cross_entropy(model(rows), kinds).backward()
        optimizer.step()
""",
    ),
    "an own batch sampler that never ends and draws by random": Script(
        """
    import random

    class Batches(torch.utils.data.Sampler):
        def __iter__(self):
            while True:
                yield random.sample(range(44), 6)

    random.seed(4)
    stream = iter(DataLoader(TensorDataset(x, y), batch_sampler=Batches()))
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(20):
        rows, kinds = next(stream)
        optimizer.zero_grad()
        F.cross_entropy(model(rows), kinds).backward()
        optimizer.step()
""",
    ),
    "an own sampler that no seed makes alike, in a thread": Script(
        """
    import numpy as np
    from prefetch_generator import BackgroundGenerator

    class Fresh(torch.utils.data.Sampler):
        def __iter__(self):
            np.random.seed()
            return iter(np.random.permutation(36))

        def __len__(self):
            return 36

    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, sampler=Fresh())
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for rows, kinds in BackgroundGenerator(loader):
        optimizer.zero_grad()
        F.cross_entropy(model(rows), kinds).backward()
        optimizer.step()
""",
        told=("DDP301",),
    ),
    "a sampler without an end beside options": Script(
        """
    class Order(torch.utils.data.Sampler):
        def __iter__(self):
            while True:
                yield from torch.randperm(44).tolist()

    class Endless:
        def __init__(self, data, **options):
            self.loader = DataLoader(data, sampler=Order(), **options)
            self.batches = iter(self.loader)

        def next(self):
            return next(self.batches)

    batches = Endless(TensorDataset(x, y), batch_size=6)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(20):
        rows, kinds = batches.next()
        optimizer.zero_grad()
        F.cross_entropy(model(rows), kinds).backward()
        optimizer.step()
""",
    ),
    "an own sampler that slices a stream without an end": Script(
        """
    import itertools

    class Stream(torch.utils.data.Sampler):
        def __init__(self, n, seed=3):
            self.n, self.seed = n, seed

        def __iter__(self):
            yield from itertools.islice(self.drawn(), 0, None, 1)

        def drawn(self):
            draws = torch.Generator()
            draws.manual_seed(self.seed)
            while True:
                yield from torch.randperm(self.n, generator=draws).tolist()

    stream = iter(DataLoader(TensorDataset(x, y), batch_size=6, sampler=Stream(44)))
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(20):
        rows, kinds = next(stream)
        optimizer.zero_grad()
        F.cross_entropy(model(rows), kinds).backward()
        optimizer.step()
""",
    ),
    "a pair of streams of batches, by their places": Script(
        """
    class Parts:
        def __init__(self, rows, kinds, size):
            self.rows, self.kinds, self.size = rows, kinds, size

        def __iter__(self):
            for i in range(0, len(self.rows), self.size):
                yield self.rows[i : i + self.size], self.kinds[i : i + self.size]

    both = Parts(x[:40], y[:40], 8), Parts(x[40:], y[40:], 4)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in both[0]:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
        for rows, kinds in both[1]:
            print(F.cross_entropy(model(rows), kinds).item())
""",
        told=("DDP307",),
    ),
    "an own sampler that learns from the losses": Script(
        """
    class Hard(torch.utils.data.Sampler):
        def __init__(self, n):
            self.weights = torch.ones(n)

        def __iter__(self):
            return iter(torch.multinomial(self.weights, len(self.weights), True).tolist())

        def __len__(self):
            return len(self.weights)

        def update(self, indices, losses):
            self.weights[indices] = losses

    hard = Hard(36)
    loader = DataLoader(TensorDataset(x[:36], y[:36], torch.arange(36)), batch_size=6, sampler=hard)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds, which in loader:
            losses = F.cross_entropy(model(rows), kinds, reduction="none")
            optimizer.zero_grad()
            losses.mean().backward()
            optimizer.step()
            hard.update(which, losses.detach())
""",
        told=("DDP301",),
    ),
    "a collate function that leaves out some entries of each sample": Script(
        """
    class Named(Dataset):
        def __len__(self):
            return 36

        def __getitem__(self, i):
            return {"rows": x[i], "kind": int(y[i]), "idx": i}

    def put_together(samples):
        if isinstance(samples[0], torch.Tensor):
            return torch.stack(samples, 0)
        elif isinstance(samples[0], int):
            return torch.LongTensor(samples)
        elif isinstance(samples[0], dict):
            return {key: put_together([s[key] for s in samples]) for key in samples[0] if key.find("idx") < 0}
        raise TypeError(type(samples[0]))

    loader = DataLoader(Named(), batch_size=6, shuffle=True, collate_fn=put_together)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for batch in loader:
            loss = F.cross_entropy(model(batch["rows"]), batch["kind"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    ),
    "an own sampler seeded by the system": Script(
        """
    import numpy as np

    class Fresh(torch.utils.data.Sampler):
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            np.random.seed()
            return iter(np.random.permutation(self.n))

        def __len__(self):
            return self.n

    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, sampler=Fresh(36))
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
""",
        apart=("trajectory",),  # its order differs from run to run
    ),
    # ------------------------------------------------------------------------------------------ batch samplers
    "torch's batch sampler over a random sampler": Script(
        """
    from torch.utils.data import BatchSampler, RandomSampler

    data = TensorDataset(x[:40], y[:40])
    batches = BatchSampler(RandomSampler(data), batch_size=6, drop_last=True)
    loader = DataLoader(data, batch_sampler=batches)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
        print("steps in an epoch", len(loader))
""",
        same=("steps",),
    ),
    "torch's batch sampler over an own sampler, in line": Script("""
    import random
    from torch.utils.data.sampler import BatchSampler, Sampler

    class Shuffled(Sampler):
        def __init__(self, size):
            self.size = size

        def __len__(self):
            return self.size

        def __iter__(self):
            return iter(random.sample(range(self.size), self.size))

    parser = argparse.ArgumentParser()
    parser.add_argument("--bs", type=int, default=12)
    args = parser.parse_args()

    def main():
        loader = DataLoader(TensorDataset(x, y), batch_sampler=BatchSampler(Shuffled(36), args.bs, False))
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for lap in range(4):
            for i, (inputs, wanted) in enumerate(loader):
                sgd.zero_grad()
                F.cross_entropy(net(inputs), wanted).backward()
                sgd.step()

    if __name__ == "__main__":
        main()
"""),
    "a bucket sampler of the script's own": Script("""
    import random
    from torch.utils.data import Sampler

    class Buckets(Sampler):
        # samples of like length share a batch
        def __init__(self, lengths, batch_size):
            self.lengths, self.batch_size = lengths, batch_size

        def __len__(self):
            return len(self.lengths) // self.batch_size

        def __iter__(self):
            order = sorted(range(len(self.lengths)), key=lambda i: self.lengths[i])
            batches = [order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)]
            random.shuffle(batches)
            for batch in batches:
                yield batch

    lengths = [(i * 13) % 17 for i in range(36)]
    data = TensorDataset(x[:36], y[:36])
    train_loader = DataLoader(data, batch_sampler=Buckets(lengths, 6), num_workers=0)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        model.train()
        for rows, kinds in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
"""),
    "two streams in each batch": Script("""
    import itertools
    import numpy as np
    from torch.utils.data.sampler import Sampler

    class TwoParts(Sampler):
        def __init__(self, marked, plain, size, plain_size):
            self.marked, self.plain = marked, plain
            self.marked_size, self.plain_size = size - plain_size, plain_size

        def __iter__(self):
            first = np.random.permutation(self.marked)
            second = itertools.chain.from_iterable(np.random.permutation(self.plain) for _ in itertools.count())
            pairs = zip(*[iter(first)] * self.marked_size)
            return (list(a) + list(itertools.islice(second, self.plain_size)) for a in pairs)

        def __len__(self):
            return len(self.marked) // self.marked_size

    sampler = TwoParts(list(range(24)), list(range(24, 44)), 12, 6)
    loader = torch.utils.data.DataLoader(TensorDataset(x, y), batch_sampler=sampler, num_workers=0, pin_memory=False)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        for i, (rows, kinds) in enumerate(loader):
            scores = model(rows)
            loss = F.cross_entropy(scores, kinds, reduction="sum") / len(rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""),
    "balanced batches and a loss of each sample": Script("""
    import random

    class Balanced(torch.utils.data.Sampler):
        def __init__(self, labels, classes, each, rounds):
            self.groups = [[i for i, k in enumerate(labels.tolist()) if k == c] for c in range(classes)]
            self.each, self.rounds = each, rounds

        def __len__(self):
            return self.rounds

        def __iter__(self):
            for _ in range(self.rounds):
                batch = []
                for group in self.groups:
                    batch += random.sample(group, self.each)
                yield batch

    loader = DataLoader(TensorDataset(x, y), batch_sampler=Balanced(y, 2, 6, 5))
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
"""),
    "balanced batches and a loss that compares samples": Script(
        """
    import random

    class Balanced(torch.utils.data.Sampler):
        def __init__(self, labels, each, rounds):
            self.groups = [[i for i, k in enumerate(labels.tolist()) if k == c] for c in range(2)]
            self.each, self.rounds = each, rounds

        def __len__(self):
            return self.rounds

        def __iter__(self):
            for _ in range(self.rounds):
                yield [i for group in self.groups for i in random.sample(group, self.each)]

    def hardest(points, kinds):
        apart = torch.cdist(points, points)
        alike = kinds[:, None] == kinds[None, :]
        worst = apart.masked_fill(~alike, 0).max(1).values.flip(0)
        best = apart.masked_fill(alike, 1e9).sort(1).values[:, 0]
        return F.relu(worst - best.roll(1) + 0.3).mean()

    loader = DataLoader(TensorDataset(x, y), batch_sampler=Balanced(y, 6, 5))
    model = nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            hardest(model(rows), kinds).backward()
            optimizer.step()
""",
    ),
    "batch samplers of two kinds, which a function chooses from by its caller": Script(
        """
    import random

    from torch.utils.data import BatchSampler, RandomSampler, Sampler

    class Pairs(Sampler):
        def __init__(self, length, size):
            self.length, self.size = length, size

        def __len__(self):
            return self.length // self.size

        def __iter__(self):
            order = random.sample(range(self.length), self.length)
            for i in range(len(self)):
                yield order[i * self.size : (i + 1) * self.size]

    def load(data, how="all"):
        if how == "all":
            draw = lambda data: BatchSampler(RandomSampler(data), 6, True)
        else:
            draw = lambda data: Pairs(len(data), 6)
        return DataLoader(data, batch_sampler=draw(data))

    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", action="store_true")
    args = parser.parse_args()
    if not args.pairs:
        loader = load(TensorDataset(x, y))
    else:
        loader = load(TensorDataset(x, y), "pairs")
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
""",
        args=("--pairs",),
    ),
    "a sampler that a module asks for what it has, and sets": Script(
        """
    from drawing import Drawn, total

    loader = DataLoader(TensorDataset(x, y), batch_size=6, sampler=Drawn(44))
    held_out = DataLoader(TensorDataset(x[:8], y[:8]), batch_size=6)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
    for name, one in (("held out", held_out), ("training", loader)):
        print(f"total {name} {total(one):.4f}")
""",
        files={"drawing.py": _DRAWN},
        same=("total",),
    ),
    "rows of the training loader, in their order, by one expression": Script(
        _IN_ORDER % "torch.cat([rows for rows, _ in loader])", same=("total",)
    ),
    "rows of the training loader, in their order, batch by batch": Script(_IN_ORDER % "in_order(loader)", same=("total",)),
    "rows of the training loader, in their order, joined to others": Script(_IN_ORDER % "joined(loader)", same=("total",)),
    # ------------------------------------------------------------------------------------------ streams
    "a stream of numbers": Script("""
    from torch.utils.data import IterableDataset

    class Numbers(IterableDataset):
        def __init__(self, first, last):
            self.first, self.last = first, last

        def __iter__(self):
            for i in range(self.first, self.last):
                yield x[i], y[i]

    numbers = Numbers(2, 38)
    loader = DataLoader(numbers, batch_size=6)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
"""),
    "a stream from a file, the last batch dropped": Script(
        """
    class Lines(torch.utils.data.IterableDataset):
        def __init__(self, path):
            self.path = path

        def parse(self, line):
            *numbers, kind = line.split(",")
            return torch.tensor([float(n) for n in numbers]), int(kind)

        def __iter__(self):
            with open(self.path) as file:
                for line in file:
                    yield self.parse(line)

    loader = DataLoader(Lines("rows.csv"), batch_size=12, drop_last=True)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
""",
        files={"rows.csv": "".join(f"{i % 5},{i % 7},{i % 3},{i % 2}\n" for i in range(47))},
    ),
    "a stream that its workers share": Script("""
    from torch.utils.data import IterableDataset, get_worker_info

    class Shared(IterableDataset):
        def __iter__(self):
            info = get_worker_info()
            first, step = (0, 1) if info is None else (info.id, info.num_workers)
            for i in range(first, 36, step):
                yield x[i], y[i]

    def main():
        loader = DataLoader(dataset=Shared(), batch_size=6, num_workers=2)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), kinds).backward()
                optimizer.step()

    if __name__ == "__main__":
        main()
"""),
    "a stream that every worker repeats": Script(
        """
    class Repeated(torch.utils.data.IterableDataset):
        def __iter__(self):
            for i in range(36):
                yield x[i], y[i]

    loader = DataLoader(Repeated(), batch_size=6, num_workers=2)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
""",
        told=("DDP301",),
    ),
    "a stream that draws its order": Script(
        """
    import random

    class Drawn(torch.utils.data.IterableDataset):
        def __iter__(self):
            order = list(range(36))
            random.shuffle(order)
            for i in order:
                yield x[i], y[i]

    loader = DataLoader(Drawn(), batch_size=6)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
""",
        told=("DDP301",),
    ),
    # ------------------------------------------------------------------------------------------ classes of loaders
    "a loader that prefetches": Script("""
    class Ahead(DataLoader):
        def __iter__(self):
            kept = None
            for batch in super().__iter__():
                if kept is not None:
                    yield kept
                kept = batch
            if kept is not None:
                yield kept

    loader = Ahead(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True, num_workers=0)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
"""),
    "a loader with a constructor of its own": Script("""
    class RowLoader(torch.utils.data.DataLoader):
        def __init__(self, rows, kinds, batch_size, shuffle=True, num_workers=0):
            self.rows = rows
            self.held = TensorDataset(rows, kinds)
            super().__init__(self.held, batch_size, shuffle=shuffle, num_workers=num_workers)

    loader = RowLoader(x[:36], y[:36], 6)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
"""),
    "a loader's class for training and evaluation": Script(
        """
    class Feeder(DataLoader):
        def __init__(self, rows, kinds, size, training):
            everything = TensorDataset(rows, kinds)
            super(Feeder, self).__init__(everything, batch_size=size, shuffle=training)

    feed = Feeder(x[:36], y[:36], 6, training=True)
    check = Feeder(x[36:], y[36:], 4, training=False)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        model.train()
        for rows, kinds in feed:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
        model.eval()
        right = 0
        with torch.no_grad():
            for rows, kinds in check:
                right += (model(rows).argmax(1) == kinds).sum().item()
        print("right", right)
""",
        same=("right",),
    ),
    # ------------------------------------------------------------------------------------------ factories
    "a function makes all loaders by a flag": Script(
        """
    def make_loader(dataset, batch, train):
        return DataLoader(dataset, batch_size=batch, shuffle=train)

    train_loader = make_loader(TensorDataset(x[:36], y[:36]), 6, True)
    test_loader = make_loader(TensorDataset(x[36:], y[36:]), 3, False)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
        hits = 0
        with torch.no_grad():
            for rows, kinds in test_loader:
                hits += (model(rows).argmax(1) == kinds).sum().item()
        print(f"hits {hits} of {len(test_loader.dataset)}")
""",
        same=("hits",),
    ),
    "a function makes all loaders by a split": Script(
        """
    def build(split, batch_size=6, workers=0):
        part = slice(0, 36) if split == "train" else slice(36, 44)
        dataset = TensorDataset(x[part], y[part])
        return torch.utils.data.DataLoader(
            dataset,
            batch_size=batch_size,
            shuffle=(split == "train"),
            num_workers=workers,
            drop_last=split == "train",
        )

    def main():
        loader, val_loader = build("train"), build("val", batch_size=3)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), kinds).backward()
                optimizer.step()
            total = 0.0
            with torch.no_grad():
                for rows, kinds in val_loader:
                    total += F.cross_entropy(model(rows), kinds, reduction="sum").item()
            print(f"val {total / 8:.6f}")

    if __name__ == "__main__":
        main()
""",
        same=("val",),
    ),
    "a function makes all loaders by a default": Script(
        """
    def loader_of(rows, kinds, size=6, shuffle=True):
        return DataLoader(TensorDataset(rows, kinds), batch_size=size, shuffle=shuffle)

    fit = loader_of(x[:36], y[:36])
    check = loader_of(x[36:], y[36:], shuffle=False)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in fit:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
        total = 0.0
        model.eval()
        with torch.no_grad():
            for rows, kinds in check:
                total += F.cross_entropy(model(rows), kinds, reduction="sum").item()
        model.train()
        print("total", round(total, 6))
""",
        same=("total",),
    ),
    "a function makes all loaders, and nothing tells which": Script(
        """
    def loader_of(rows, kinds, size):
        return DataLoader(TensorDataset(rows, kinds), batch_size=size, shuffle=False)

    fit = loader_of(x[:36], y[:36], 6)
    check = loader_of(x[36:], y[36:], 3)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in fit:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
        total = 0.0
        model.eval()
        with torch.no_grad():
            for rows, kinds in check:
                total += F.cross_entropy(model(rows), kinds, reduction="sum").item()
        model.train()
        print("total", round(total, 6))
""",
        same=("total",),
    ),
    "loaders of a list comprehension": Script(
        """
    parts = TensorDataset(x[:36], y[:36]), TensorDataset(x[36:41], y[36:41])
    feed, check = [DataLoader(part, batch_size=6, shuffle=True) for part in parts]
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in feed:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
        right = 0
        with torch.no_grad():
            for rows, kinds in check:
                right += (model(rows).argmax(1) == kinds).sum().item()
        print("right", right)
""",
        told=("DDP301",),
    ),
    # ------------------------------------------------------------------------------------------ data without a name
    "data without a name in a conditional": Script("""
    parser = argparse.ArgumentParser()
    parser.add_argument("--few", action="store_true")
    args = parser.parse_args()
    loader = (
        DataLoader(TensorDataset(x[:12], y[:12]), batch_size=6, shuffle=True)
        if args.few
        else DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    )
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
"""),
    "a loader without a name": Script("""
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
"""),
    "data of a dictionary": Script("""
    parts = {"train": TensorDataset(x[:36], y[:36]), "test": TensorDataset(x[36:], y[36:])}
    loaders = {"train": DataLoader(parts["train"], batch_size=6, shuffle=True), "test": DataLoader(parts["test"], batch_size=4)}
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loaders["train"]:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
"""),
    # ------------------------------------------------------------------------------------------ around loaders
    "iterators of two loaders that a count of the steps starts again": Script(
        """
    def train(model, source, target, optimizer, epoch):
        len_source, len_target = len(source), len(target)
        num_iter = len_source if len_source > len_target else len_target
        for batch_idx in range(num_iter):
            if batch_idx % len_source == 0:
                iter_source = iter(source)
            if batch_idx % len_target == 0:
                iter_target = iter(target)
            rows, kinds = next(iter_source)
            (others,) = next(iter_target)
            optimizer.zero_grad()
            scores = model(torch.cat((rows, others), 0))
            loss = F.cross_entropy(scores.narrow(0, 0, rows.size(0)), kinds) + 0.1 * scores[rows.size(0) :].pow(2).mean()
            loss.backward()
            optimizer.step()

    source = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    target = DataLoader(TensorDataset(2 * x[:24].flip(0)), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        train(model, source, target, optimizer, epoch)
"""
    ),
    "a mean weighted by the length of targets that a prefetcher may leave None": Script(
        """
    class Feed:
        def __init__(self, loader):
            self.it = iter(loader)
            self.ahead()
        def ahead(self):
            try:
                self.rows, self.kinds = next(self.it)
            except StopIteration:
                self.rows, self.kinds = None, None
        def next(self):
            batch = self.rows, self.kinds
            self.ahead()
            return batch

    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        total = 0.0
        feed = Feed(loader)
        rows, kinds = feed.next()
        while rows is not None:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(rows), kinds)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(kinds)
            rows, kinds = feed.next()
        print("loss", round(total / len(loader.dataset), 4))
""",
        same=("loss",),
    ),
    "a prefetcher's class": Script("""
    class Prefetcher:
        def __init__(self, loader):
            self.loader = iter(loader)
            self.preload()

        def preload(self):
            try:
                self.rows, self.kinds = next(self.loader)
            except StopIteration:
                self.rows, self.kinds = None, None
                return
            self.rows = self.rows.float()

        def next(self):
            rows, kinds = self.rows, self.kinds
            self.preload()
            return rows, kinds

    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        prefetcher = Prefetcher(loader)
        rows, kinds = prefetcher.next()
        while rows is not None:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
            rows, kinds = prefetcher.next()
"""),
    "an endless loader's class": Script("""
    class Endless:
        def __init__(self, loader):
            self.loader = loader
            self.source = iter(loader)

        def __next__(self):
            try:
                return next(self.source)
            except StopIteration:
                self.source = iter(self.loader)
                return next(self.source)

    feed = Endless(DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True))
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(20):
        rows, kinds = next(feed)
        optimizer.zero_grad()
        F.cross_entropy(model(rows), kinds).backward()
        optimizer.step()
"""),
    "an iterator around a loader": Script(
        """
    class OnDevice:
        def __init__(self, loader, device):
            self.loader, self.device = loader, device

        def __len__(self):
            return len(self.loader)

        def __iter__(self):
            for batch in self.loader:
                yield [part.to(self.device) for part in batch]

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    feed = OnDevice(DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True), device)
    model = nn.Linear(8, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in feed:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
        print("batches", len(feed))
""",
        same=("batches",),
    ),
    "two loaders of different sizes, one cycled": Script("""
    from itertools import cycle

    marked = DataLoader(TensorDataset(x[:12], y[:12]), batch_size=6, shuffle=True)
    plain = DataLoader(TensorDataset(x[12:36], y[12:36]), batch_size=12, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(6):
        for (a, b), (c, d) in zip(cycle(marked), plain):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(a), b) + 0.5 * F.cross_entropy(model(c), d)
            loss.backward()
            optimizer.step()
"""),
    "one loader after the other": Script("""
    import itertools

    first = DataLoader(TensorDataset(x[:18], y[:18]), batch_size=6, shuffle=True)
    second = DataLoader(TensorDataset(x[18:36], y[18:36]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in itertools.chain(first, second):
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
"""),
    "some batches of each epoch": Script("""
    from itertools import islice

    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        for rows, kinds in islice(loader, 4):
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
"""),
    "loaders in a list, one for each source": Script("""
    sources = [TensorDataset(x[:18], y[:18]), TensorDataset(x[18:36], y[18:36])]
    loaders = []
    for source in sources:
        loaders.append(DataLoader(source, batch_size=6, shuffle=True))
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for loader in loaders:
            for rows, kinds in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), kinds).backward()
                optimizer.step()
"""),
    "iterators of several loaders": Script("""
    loaders = [
        DataLoader(TensorDataset(x[:18], y[:18]), batch_size=6, shuffle=True),
        DataLoader(TensorDataset(x[18:36], y[18:36]), batch_size=6, shuffle=True),
    ]
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        feeds = [iter(loader) for loader in loaders]
        for step in range(3):
            optimizer.zero_grad()
            loss = 0
            for feed in feeds:
                rows, kinds = next(feed)
                loss = loss + F.cross_entropy(model(rows), kinds)
            loss.backward()
            optimizer.step()
"""),
    "loaders as attributes": Script(
        """
    class Data:
        def __init__(self, size):
            whole = TensorDataset(x, y)
            self.fit, self.check = random_split(whole, [36, 8], generator=torch.Generator().manual_seed(0))
            self.size = size

        def train_dataloader(self):
            return DataLoader(self.fit, batch_size=self.size, shuffle=True)

        def val_dataloader(self):
            return DataLoader(self.check, batch_size=self.size)

    class Trainer:
        def __init__(self, data, model):
            self.loader, self.val_loader = data.train_dataloader(), data.val_dataloader()
            self.model = model
            self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def epoch(self):
            for rows, kinds in self.loader:
                self.optimizer.zero_grad()
                F.cross_entropy(self.model(rows), kinds).backward()
                self.optimizer.step()

        @torch.no_grad()
        def check(self):
            return sum((self.model(a).argmax(1) == b).sum().item() for a, b in self.val_loader)

        def fit(self, epochs):
            for epoch in range(epochs):
                self.epoch()
                print("right", self.check())

    Trainer(Data(6), nn.Linear(8, 2)).fit(3)
""",
        same=("right",),
    ),
    "a loader made anew in each epoch by a function": Script("""
    from torch.utils.data import ConcatDataset, Subset

    def loader_for(epoch):
        parts = ConcatDataset([Subset(TensorDataset(x, y), range(epoch, 18 + epoch)), TensorDataset(x[20:38], y[20:38])])
        return DataLoader(parts, batch_size=6, shuffle=True)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader_for(epoch):
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
"""),
    "folds with subset samplers": Script(
        """
    from torch.utils.data import SubsetRandomSampler

    data = TensorDataset(x[:36], y[:36])
    for fold in range(3):
        held = list(range(fold * 12, fold * 12 + 12))
        rest = [i for i in range(36) if i not in held]
        feed = DataLoader(data, batch_size=6, sampler=SubsetRandomSampler(rest))
        check = DataLoader(data, batch_size=6, sampler=SubsetRandomSampler(held))
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), kinds).backward()
                optimizer.step()
        right = 0
        with torch.no_grad():
            for rows, kinds in check:
                right += (model(rows).argmax(1) == kinds).sum().item()
        print("fold", fold, "right", right)
""",
    ),
    "batches of the loader's data set": Script(
        """
    class Own(Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            return x[i * 6 : i * 6 + 6], y[i * 6 : i * 6 + 6]

    loader = DataLoader(Own(), batch_size=None, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
""",
        told=("DDP301",),
    ),
    # ------------------------------------------------------------------------------------------ and more of each
    "parts of a batch moved by a generator expression": Script("""
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    device = torch.device("cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for batch in loader:
            batch = tuple(t.to(device) for t in batch)
            optimizer.zero_grad()
            F.cross_entropy(model(batch[0]), batch[1]).backward()
            optimizer.step()
"""),
    "parts of a batch moved by a comprehension": Script("""
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    device = torch.device("cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for batch in loader:
            rows, kinds = [t.to(device) for t in batch]
            optimizer.zero_grad()
            F.cross_entropy(model(rows), kinds).backward()
            optimizer.step()
"""),
    "a batch's dictionary, moved": Script("""
    class Own(Dataset):
        def __len__(self):
            return 36
        def __getitem__(self, i):
            return {"x": x[i], "y": y[i]}
    loader = DataLoader(Own(), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    device = torch.device("cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for batch in loader:
            batch = {k: v.to(device) for k, v in batch.items()}
            optimizer.zero_grad()
            F.cross_entropy(model(batch["x"]), batch["y"]).backward()
            optimizer.step()
"""),
    "an accuracy over a bucket sampler's batches": Script(
        """
    import random
    class Buckets(torch.utils.data.Sampler):
        def __init__(self, n, size):
            self.n, self.size = n, size
        def __len__(self):
            return -(-self.n // self.size)
        def __iter__(self):
            order = random.sample(range(self.n), self.n)
            for i in range(0, self.n, self.size):
                yield order[i : i + self.size]
    data = TensorDataset(x[:36], y[:36])
    loader = DataLoader(data, batch_sampler=Buckets(36, 6))
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        right, total = 0, 0.0
        for a, b in loader:
            optimizer.zero_grad()
            out = model(a)
            loss = F.cross_entropy(out, b)
            loss.backward()
            optimizer.step()
            right += (out.argmax(1) == b).sum().item()
            total += loss.item() * len(b)
        print(f"acc {right / len(data):.5f} {total / len(loader.dataset):.6f}")
""",
        same=("acc",),
        told=("DDP404",),
    ),
    "an accuracy over the batches of torch's batch sampler": Script(
        """
    from torch.utils.data import BatchSampler, RandomSampler
    data = TensorDataset(x[:36], y[:36])
    loader = DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), 6, drop_last=False))
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        right, total = 0, 0.0
        for a, b in loader:
            optimizer.zero_grad()
            out = model(a)
            loss = F.cross_entropy(out, b)
            loss.backward()
            optimizer.step()
            right += (out.argmax(1) == b).sum().item()
            total += loss.item()
        print(f"acc {right / len(data):.5f} {total / len(loader):.6f}")
""",
        same=("acc",),
    ),
    "means over a stream": Script(
        """
    class S(torch.utils.data.IterableDataset):
        def __init__(self, n): self.n = n
        def __len__(self): return self.n
        def __iter__(self):
            return zip(x[:self.n], y[:self.n])
    data = S(36)
    loader = DataLoader(data, batch_size=6)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        right, total, n = 0, 0.0, 0
        for a, b in loader:
            optimizer.zero_grad()
            out = model(a)
            loss = F.cross_entropy(out, b)
            loss.backward()
            optimizer.step()
            right += (out.argmax(1) == b).sum().item()
            n += len(b)
            total += loss.item()
        print(f"acc {right / n:.5f} {total / len(loader):.6f}")
""",
        same=("acc",),
    ),
    "an accuracy over a stream with a length": Script(
        """
    class S(torch.utils.data.IterableDataset):
        def __init__(self, n): self.n = n
        def __len__(self): return self.n
        def __iter__(self):
            return zip(x[:self.n], y[:self.n])
    data = S(36)
    loader = DataLoader(data, batch_size=6)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        right = 0
        for a, b in loader:
            optimizer.zero_grad()
            out = model(a)
            loss = F.cross_entropy(out, b)
            loss.backward()
            optimizer.step()
            right += (out.argmax(1) == b).sum().item()
        print(f"acc {right / len(data):.5f}")
""",
        same=("acc",),
    ),
    "one prefetcher's class for training and evaluation": Script(
        """
    class Feed:
        def __init__(self, loader):
            self.it = iter(loader)
            self.ahead()
        def ahead(self):
            try:
                self.batch = next(self.it)
            except StopIteration:
                self.batch = None
        def next(self):
            batch = self.batch
            self.ahead()
            return batch

    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    check = DataLoader(TensorDataset(x[36:], y[36:]), batch_size=4)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        feed = Feed(loader)
        batch = feed.next()
        while batch is not None:
            a, b = batch
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
            batch = feed.next()
        right = 0
        feed = Feed(check)
        batch = feed.next()
        with torch.no_grad():
            while batch is not None:
                a, b = batch
                right += (model(a).argmax(1) == b).sum().item()
                batch = feed.next()
        print("right", right)
""",
        same=("right",),
    ),
    "a total divided by the size that a batch sampler is given": Script("""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bs", type=int, default=12)
    args = parser.parse_args()
    class Parts(torch.utils.data.Sampler):
        def __init__(self, n, size):
            self.n, self.size = n, size
        def __len__(self):
            return self.n // self.size
        def __iter__(self):
            order = torch.randperm(self.n).tolist()
            for i in range(0, self.n, self.size):
                yield order[i : i + self.size]
    loader = DataLoader(TensorDataset(x, y), batch_sampler=Parts(36, args.bs))
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        for a, b in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(a), b, reduction="sum") / args.bs
            loss.backward()
            optimizer.step()
"""),
    "a total divided by the size of torch's batch sampler": Script("""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bs", type=int, default=12)
    args = parser.parse_args()
    batches = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(range(36)), args.bs, True)
    loader = DataLoader(TensorDataset(x, y), batch_sampler=batches)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        for a, b in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(a), b, reduction="sum") / args.bs
            loss.backward()
            optimizer.step()
"""),
    "a loss of the first rows that a batch sampler puts there": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--bs", type=int, default=12)
    parser.add_argument("--marked", type=int, default=6)
    args = parser.parse_args()
    class Parts(torch.utils.data.Sampler):
        def __init__(self, n, size, marked):
            self.n, self.size, self.marked = n, size, marked
        def __len__(self):
            return self.n // self.size
        def __iter__(self):
            for i in range(0, self.n, self.size):
                yield list(range(i, i + self.size))
    loader = DataLoader(TensorDataset(x, y), batch_sampler=Parts(36, args.bs, args.marked))
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        for a, b in loader:
            optimizer.zero_grad()
            out = model(a)
            loss = F.cross_entropy(out[:args.marked], b[:args.marked])
            loss.backward()
            optimizer.step()
""",
    ),
    "rows grouped by a number that the sampler is given": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--k", type=int, default=6)
    args = parser.parse_args()
    class PK(torch.utils.data.Sampler):
        def __init__(self, k):
            self.k = k
        def __len__(self):
            return 44
        def __iter__(self):
            order = []
            for _ in range(4):
                for c in range(2):
                    rows = (y == c).nonzero()[:, 0]
                    order += rows[torch.randperm(len(rows))[: self.k]].tolist()
            return iter(order)
    loader = DataLoader(TensorDataset(x, y), sampler=PK(args.k), batch_size=2 * args.k)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        for a, b in loader:
            optimizer.zero_grad()
            means = model(a).view(-1, args.k, 2).mean(1)
            loss = F.cross_entropy(means, b[:: args.k])
            loss.backward()
            optimizer.step()
""",
        told=("DDP301", "DDP303"),
    ),
    "a flag that chooses the size, the order and the last batch": Script(
        """
    def batches(train, size, test_size):
        data = TensorDataset(x[:36], y[:36]) if train else TensorDataset(x[36:], y[36:])
        return DataLoader(
            data,
            batch_size=size if train else test_size,
            shuffle=True if train else False,
            drop_last=True if train else False,
        )

    loader, test_loader = batches(True, 6, 5), batches(False, 6, 5)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
        with torch.no_grad():
            right = sum((model(a).argmax(1) == b).sum().item() for a, b in test_loader)
        print("right", right)
""",
        same=("right",),
    ),
    "rows grouped by a number written out": Script(
        """
    class PK(torch.utils.data.Sampler):
        def __init__(self, k):
            self.k = k
        def __len__(self):
            return 44
        def __iter__(self):
            order = []
            for _ in range(4):
                for c in range(2):
                    rows = (y == c).nonzero()[:, 0]
                    order += rows[torch.randperm(len(rows))[: self.k]].tolist()
            return iter(order)
    loader = DataLoader(TensorDataset(x, y), sampler=PK(6), batch_size=12)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        for a, b in loader:
            optimizer.zero_grad()
            means = model(a).view(-1, 6, 2).mean(1)
            loss = means.pow(2).mean()
            loss.backward()
            optimizer.step()
""",
        told=("DDP301",),
    ),
    "a function makes all loaders, with options that it passes on": Script(
        """
    def get_loader(root, is_train=True, **kw):
        lo, hi = (0, 36) if is_train else (36, 44)
        return DataLoader(TensorDataset(x[lo:hi], y[lo:hi]), 6 if is_train else 4, is_train, **kw)
    def main():
        train_loader = get_loader("data", num_workers=0)
        val_loader = get_loader("data", is_train=False, num_workers=0)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for a, b in train_loader:
                optimizer.zero_grad()
                F.cross_entropy(model(a), b).backward()
                optimizer.step()
            right = 0
            with torch.no_grad():
                for a, b in val_loader:
                    right += (model(a).argmax(1) == b).sum().item()
            print("right", right)
    main()
""",
        same=("right",),
    ),
    "a loop over splits makes all loaders": Script(
        """
    def loaders(size):
        out = {}
        for split in ("train", "val", "test"):
            lo, hi = {"train": (0, 36), "val": (36, 40), "test": (40, 44)}[split]
            out[split] = DataLoader(TensorDataset(x[lo:hi], y[lo:hi]), batch_size=size, shuffle=split == "train", drop_last=False)
        return out
    feeds = loaders(6)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in feeds["train"]:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
        for split in ("val", "test"):
            right = 0
            with torch.no_grad():
                for a, b in feeds[split]:
                    right += (model(a).argmax(1) == b).sum().item()
            print("right", right)
""",
        same=("right",),
    ),
    "a loader made inside a function that has no epoch": Script(
        """
    def run(model, optimizer, rows, kinds, train=True):
        loader = DataLoader(TensorDataset(rows, kinds), batch_size=6, shuffle=train)
        total = 0.0
        for a, b in loader:
            loss = F.cross_entropy(model(a), b)
            if train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(b)
        return total / len(rows)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        print("loss", run(model, optimizer, x[:36], y[:36]))
        with torch.no_grad():
            print("val", round(run(model, optimizer, x[36:], y[36:], train=False), 6))
""",
        same=("val",),
    ),
    "an iterator beside a loop, started again": Script("""
    from itertools import cycle
    a = DataLoader(TensorDataset(x[:12], y[:12]), batch_size=6, shuffle=True, drop_last=True)
    b = DataLoader(TensorDataset(x[12:36]), batch_size=6, shuffle=True, drop_last=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        ia = iter(a)
        for i, (c,) in enumerate(b):
            try:
                r, k = next(ia)
            except StopIteration:
                ia = iter(a)
                r, k = next(ia)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(r), k) + model(c).pow(2).mean()
            loss.backward()
            optimizer.step()
"""),
    "the first batch of a new iterator at each step": Script("""
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(15):
        a, b = next(iter(loader))
        optimizer.zero_grad()
        F.cross_entropy(model(a), b).backward()
        optimizer.step()
"""),
    "a sampler over another sampler": Script("""
    import random
    class Rep(torch.utils.data.Sampler):
        def __init__(self, inner, times):
            self.inner, self.times = inner, times
        def __len__(self):
            return self.times * len(self.inner)
        def __iter__(self):
            for _ in range(self.times):
                yield from self.inner
    class Rnd(torch.utils.data.Sampler):
        def __init__(self, n): self.n = n
        def __len__(self): return self.n
        def __iter__(self):
            idx = list(range(self.n)); random.shuffle(idx); return iter(idx)
    loader = DataLoader(TensorDataset(x, y), batch_size=6, sampler=Rep(Rnd(18), 2))

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
"""),
    "a class derived from torch's sampler": Script("""
    class Mine(torch.utils.data.RandomSampler):
        pass
    data = TensorDataset(x[:36], y[:36])
    loader = DataLoader(data, batch_size=6, sampler=Mine(data))

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
"""),
    "a class derived from torch's batch sampler": Script("""
    from torch.utils.data import BatchSampler, RandomSampler
    class Again(BatchSampler):
        def __iter__(self):
            batch = []
            for i in self.sampler:
                batch.append(i)
                if len(batch) == self.batch_size:
                    yield batch
                    batch = []
    data = TensorDataset(x[:36], y[:36])
    loader = DataLoader(data, batch_sampler=Again(RandomSampler(data), 6, True))

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
"""),
    "a sampler with a generator of its own": Script("""
    import numpy as np
    class Mine(torch.utils.data.Sampler):
        def __init__(self, n, seed=3):
            self.n = n
            self.rng = np.random.RandomState(seed)
        def __len__(self): return self.n
        def __iter__(self):
            return iter(self.rng.permutation(self.n))
    loader = DataLoader(TensorDataset(x, y), batch_size=6, sampler=Mine(36))

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
"""),
    "a permutation as the sampler": Script("""
    loader = DataLoader(TensorDataset(x, y), batch_size=6, sampler=torch.randperm(36).tolist())

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
"""),
    "a sampler among the options": Script("""
    kw = dict(batch_size=6, sampler=torch.utils.data.SubsetRandomSampler(range(36)))
    loader = DataLoader(TensorDataset(x, y), **kw)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
"""),
    "a loader class that splits its data by samplers, with options it keeps": Script(
        """
    import numpy as np

    class Split(DataLoader):
        def __init__(self, data, batch_size, shuffle, share):
            self.shuffle, self.rows = shuffle, len(data)
            self.sampler, self.rest = self.halves(share)
            self.options = {"dataset": data, "batch_size": batch_size, "shuffle": self.shuffle}
            super().__init__(sampler=self.sampler, **self.options)

        def halves(self, share):
            if not share:
                return None, None
            places = np.random.RandomState(0).permutation(self.rows)
            self.shuffle = False
            return tuple(torch.utils.data.SubsetRandomSampler(p.tolist()) for p in (places[share:], places[:share]))

        def held_out(self):
            return DataLoader(sampler=self.rest, **self.options) if self.rest is not None else None

    torch.manual_seed(0)
    loader = Split(TensorDataset(x, y), 6, True, 8)
    test = loader.held_out()
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
        with torch.no_grad():
            print("right", sum((model(a).argmax(1) == b).sum().item() for a, b in test))
""",
        same=("right",),
    ),
    "a stream by a function that it is given": Script("""
    def rows(n):
        for i in range(n):
            yield x[i], y[i]
    class S(torch.utils.data.IterableDataset):
        def __init__(self, make, n):
            self.make, self.n = make, n
        def __iter__(self):
            return self.make(self.n)
    data = S(rows, 36)
    loader = DataLoader(data, batch_size=6)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
"""),
    "a stream that draws by a function that it is given": Script(
        """
    import random
    class S(torch.utils.data.IterableDataset):
        def __init__(self, make):
            self.make = make
        def __iter__(self):
            for i in range(36):
                j = self.make()
                yield x[j], y[j]
    loader = DataLoader(S(lambda: random.randrange(36)), batch_size=6)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
""",
        told=("DDP301",),
    ),
    "a stream through a buffer that shuffles": Script(
        """
    import random
    class S(torch.utils.data.IterableDataset):
        def __iter__(self):
            return zip(x[:36], y[:36])
    class Buffer(torch.utils.data.IterableDataset):
        def __init__(self, inner, size):
            self.inner, self.size = inner, size
        def __iter__(self):
            kept = []
            for sample in self.inner:
                kept.append(sample)
                if len(kept) > self.size:
                    yield kept.pop(random.randrange(len(kept)))
            yield from kept
    loader = DataLoader(Buffer(S(), 6), batch_size=6)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
""",
        told=("DDP301",),
    ),
    "a stream without an end": Script("""
    import itertools
    class S(torch.utils.data.IterableDataset):
        def __iter__(self):
            for i in itertools.count():
                yield x[i % 44], y[i % 44]
    loader = DataLoader(S(), batch_size=6)
    feed = iter(loader)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(15):
        a, b = next(feed)
        optimizer.zero_grad()
        F.cross_entropy(model(a), b).backward()
        optimizer.step()
"""),
    "a list of batches as the batch sampler": Script("""
    def batches(n, size):
        order = torch.randperm(n).tolist()
        return [order[i : i + size] for i in range(0, n, size)]
    loader = DataLoader(TensorDataset(x, y), batch_sampler=batches(36, 6))

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
"""),
    "one sampler for a loader that trains and one that evaluates": Script(
        """
    order = torch.utils.data.RandomSampler(range(36))
    loader = DataLoader(TensorDataset(x, y), batch_size=6, sampler=order)
    check = DataLoader(TensorDataset(x, y), batch_size=6, sampler=order)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
        right = 0
        with torch.no_grad():
            for a, b in check:
                right += (model(a).argmax(1) == b).sum().item()
        print("right", right)
""",
        same=("right",),
    ),
    "a wrapper that goes round and round": Script("""
    class Cycle:
        def __init__(self, loader):
            self.loader = loader
        def __iter__(self):
            while True:
                for batch in self.loader:
                    yield batch
    feed = iter(Cycle(DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)))
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(15):
        a, b = next(feed)
        optimizer.zero_grad()
        F.cross_entropy(model(a), b).backward()
        optimizer.step()
"""),
    "an enumerated cycle": Script("""
    import itertools
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (a, b) in enumerate(itertools.cycle(loader)):
        if step == 14:
            break
        optimizer.zero_grad()
        F.cross_entropy(model(a), b).backward()
        optimizer.step()
"""),
    "a method makes all loaders": Script(
        """
    class Data:
        def __init__(self, size):
            self.size = size
        def loader(self, split):
            rows = slice(0, 36) if split == "train" else slice(36, 44)
            return DataLoader(TensorDataset(x[rows], y[rows]), batch_size=self.size, shuffle=split == "train")
    data = Data(6)
    loader, check = data.loader("train"), data.loader("test")
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
        right = 0
        with torch.no_grad():
            for a, b in check:
                right += (model(a).argmax(1) == b).sum().item()
        print("right", right)
""",
        same=("right",),
    ),
    "a property makes all loaders, by what it was told before": Script(
        """
    class Data:
        def __init__(self, rows, train):
            self.set, self.train = TensorDataset(x[rows], y[rows]), train
        @property
        def loader(self):
            return DataLoader(self.set, batch_size=6, shuffle=self.train)
    fit, check = Data(slice(0, 36), True), Data(slice(36, 44), False)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in fit.loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
        right = 0
        with torch.no_grad():
            for a, b in check.loader:
                right += (model(a).argmax(1) == b).sum().item()
        print("right", right)
""",
        same=("right",),
        told=("DDP301",),
    ),
    "a loop over the data sets of a dictionary makes all loaders": Script(
        """
    sets = {"train": TensorDataset(x[:36], y[:36]), "val": TensorDataset(x[36:], y[36:])}
    loaders = {}
    for name, data in sets.items():
        loaders[name] = DataLoader(data, batch_size=6, shuffle=name == "train")
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loaders["train"]:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
        right = 0
        with torch.no_grad():
            for a, b in loaders["val"]:
                right += (model(a).argmax(1) == b).sum().item()
        print("right", right)
""",
        same=("right",),
    ),
    "loaders made by map": Script(
        """
    loader, check = map(lambda d: DataLoader(d, batch_size=6), (TensorDataset(x[:36], y[:36]), TensorDataset(x[36:41], y[36:41])))
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
        right = 0
        with torch.no_grad():
            for a, b in check:
                right += (model(a).argmax(1) == b).sum().item()
        print("right", right)
""",
        same=("right",),
        told=("DDP301",),
    ),
    "a loader by functools.partial": Script(
        """
    from functools import partial
    make = partial(DataLoader, batch_size=6, num_workers=0)
    loader = make(TensorDataset(x[:36], y[:36]), shuffle=True)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
""",
    ),
    "a loader by functools.partial that says the order": Script(
        """
    from functools import partial
    make = partial(DataLoader, batch_size=6, shuffle=True)
    loader = make(TensorDataset(x[:36], y[:36]))

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
""",
        told=("DDP301",),
    ),
    "weights that learn from the losses": Script(
        """
    w = torch.ones(36)
    sampler = torch.utils.data.WeightedRandomSampler(w, 36)
    loader = DataLoader(TensorDataset(x[:36], y[:36], torch.arange(36)), batch_size=6, sampler=sampler)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b, i in loader:
            optimizer.zero_grad()
            l = F.cross_entropy(model(a), b, reduction="none")
            l.mean().backward()
            optimizer.step()
            sampler.weights[i] = l.detach()
""",
        told=("DDP301",),
    ),
    "what a batch sampler has, read off the loader": Script("""
    import random
    class P(torch.utils.data.Sampler):
        def __init__(self): self.seen = 0
        def __len__(self): return 6
        def __iter__(self):
            o = random.sample(range(36), 36)
            return iter([o[i:i+6] for i in range(0, 36, 6)])
    loader = DataLoader(TensorDataset(x, y), batch_sampler=P())
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        loader.batch_sampler.seen = epoch
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
        print("epoch", loader.batch_sampler.seen)
"""),
    "a data set that is shuffled in each epoch": Script(
        """
    import random
    class D(Dataset):
        def __init__(self):
            self.rows = list(range(36))
        def __len__(self): return 36
        def __getitem__(self, i): return x[self.rows[i]], y[self.rows[i]]
        def mix(self):
            random.shuffle(self.rows)
    data = D()
    loader = DataLoader(data, batch_size=6)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        data.mix()
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
""",
    ),
    "a list of rows that is shuffled in each epoch": Script(
        """
    import random
    rows = list(range(36))
    class D(Dataset):
        def __len__(self): return 36
        def __getitem__(self, i): return x[rows[i]], y[rows[i]]
    loader = DataLoader(D(), batch_size=6)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        random.shuffle(rows)
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
""",
    ),
    "a sampler that is shuffled in each epoch": Script(
        """
    import numpy as np
    class B(torch.utils.data.Sampler):
        def __init__(self, n, size):
            ids = list(range(n))
            self.bins = [ids[i : i + size] for i in range(0, n, size)]
        def __len__(self): return len(self.bins)
        def __iter__(self):
            for ids in self.bins:
                np.random.shuffle(ids)
                yield ids
        def shuffle(self, epoch):
            np.random.shuffle(self.bins)
    batches = B(36, 6)
    loader = DataLoader(TensorDataset(x, y), batch_sampler=batches)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
        batches.shuffle(epoch)
""",
    ),
    "a subset drawn in each epoch": Script(
        """
    import numpy as np
    data = TensorDataset(x, y)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        keep = np.random.choice(44, 36, replace=False)
        loader = DataLoader(data, batch_size=6, sampler=torch.utils.data.SubsetRandomSampler(keep))
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
""",
    ),
    "a sampler that draws in its constructor, in each epoch": Script(
        """
    import numpy as np
    class S(torch.utils.data.Sampler):
        def __init__(self, n): self.rows = np.random.permutation(n)
        def __len__(self): return len(self.rows)
        def __iter__(self): return iter(self.rows)
    data = TensorDataset(x, y)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        loader = DataLoader(data, batch_size=6, sampler=S(36))
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
""",
    ),
    "gradients accumulated over a bucket sampler's batches": Script("""
    import random
    class Buckets(torch.utils.data.Sampler):
        def __init__(self, n, size):
            self.n, self.size = n, size
        def __len__(self):
            return -(-self.n // self.size)
        def __iter__(self):
            order = random.sample(range(self.n), self.n)
            for i in range(0, self.n, self.size):
                yield order[i : i + self.size]
    loader = DataLoader(TensorDataset(x, y), batch_sampler=Buckets(42, 6))
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        optimizer.zero_grad()
        for i, (a, b) in enumerate(loader):
            (F.cross_entropy(model(a), b) / 2).backward()
            if (i + 1) % 2 == 0 or i + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
"""),
    "a sampler at its position, with workers": Script("""
    import random
    class S(torch.utils.data.Sampler):
        def __init__(self, data): self.data = data
        def __len__(self): return len(self.data)
        def __iter__(self): return iter(random.sample(range(len(self.data)), len(self.data)))
    def main():
        data = TensorDataset(x[:36], y[:36])
        loader = DataLoader(data, 6, False, S(data), num_workers=2)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for a, b in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(a), b).backward()
                optimizer.step()
    if __name__ == "__main__":
        main()
"""),
    "a sampler where it is asked for, else shuffled": Script("""
    parser = argparse.ArgumentParser()
    parser.add_argument("--balance", action="store_true")
    args = parser.parse_args()
    data = TensorDataset(x[:36], y[:36])
    sampler = torch.utils.data.WeightedRandomSampler(torch.ones(36), 36) if args.balance else None
    loader = DataLoader(data, batch_size=6, shuffle=sampler is None, sampler=sampler)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
"""),
    "one sampler or another": Script("""
    parser = argparse.ArgumentParser()
    parser.add_argument("--balance", action="store_true")
    args = parser.parse_args()
    data = TensorDataset(x[:36], y[:36])
    if args.balance:
        sampler = torch.utils.data.WeightedRandomSampler(torch.ones(36), 36)
    else:
        sampler = torch.utils.data.RandomSampler(data)
    loader = DataLoader(data, batch_size=6, sampler=sampler)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
"""),
    "a function makes all loaders by a flag that says the opposite": Script(
        """
    def make(rows, kinds, is_test=False):
        data = TensorDataset(rows, kinds)
        return DataLoader(data, batch_size=4 if is_test else 6, shuffle=not is_test, drop_last=not is_test)
    loader, check = make(x[:36], y[:36]), make(x[36:], y[36:], is_test=True)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()

        right = 0
        with torch.no_grad():
            for a, b in check:
                right += (model(a).argmax(1) == b).sum().item()
        print("right", right)
""",
        same=("right",),
    ),
    "a function makes all loaders, and nothing tells the one that trains": Script(
        """
    def make(rows, kinds):
        data = TensorDataset(rows, kinds)
        return DataLoader(data, batch_size=6, shuffle=True, drop_last=True, num_workers=0)
    loader, check = make(x[:36], y[:36]), make(x[36:42], y[36:42])

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()

        right = 0
        with torch.no_grad():
            for a, b in check:
                right += (model(a).argmax(1) == b).sum().item()
        print("right", right)
""",
        same=("right",),
    ),
    "a method makes all loaders, one in a function in it, which shuffle as their data says": Script(
        """
    class Rows(TensorDataset):
        def __init__(self, cut, mixed):
            super().__init__(x[cut], y[cut])
            self.mixed = mixed

    class Source:
        def __init__(self, size):
            self.size = size

        def loader(self, cut, mixed, *more):
            def wrapped(data):
                return DataLoader(data, self.size, data.mixed)
            return wrapped(Rows(cut, mixed))
    source = Source(6)
    loader, check = source.loader(slice(0, 36), True), source.loader(slice(36, 44), False)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()

        right = 0
        with torch.no_grad():
            for a, b in check:
                right += (model(a).argmax(1) == b).sum().item()
        print("right", right)
""",
        same=("right",),
    ),
    "a function makes all loaders in a loop over phases, by data of each": Script(
        """
    def make(data):
        return DataLoader(data, batch_size=6, shuffle=True)

    def make_all(parts):
        loaders = {}
        for phase in ["train", "val"]:
            loaders[phase] = make(parts[phase])
        return loaders
    loaders = make_all({"train": TensorDataset(x[:36], y[:36]), "val": TensorDataset(x[36:], y[36:])})
    loader, check = loaders["train"], loaders["val"]

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()

        right = 0
        with torch.no_grad():
            for a, b in check:
                right += (model(a).argmax(1) == b).sum().item()
        print("right", right)
""",
        same=("right",),
    ),
    "a class of loaders without arguments that tell the one that trains": Script(
        """
    class Rows(DataLoader):
        def __init__(self, cut):
            super().__init__(TensorDataset(x[cut], y[cut]), batch_size=6, shuffle=True)
    loader, check = Rows(slice(0, 36)), Rows(slice(36, 44))

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()

        right = 0
        with torch.no_grad():
            for a, b in check:
                right += (model(a).argmax(1) == b).sum().item()
        print("right", right)
""",
        same=("right",),
    ),
    "a function makes all loaders, whose batches are to be whole, and nothing tells the one that trains": Script(
        """
    def make(rows, kinds):
        return DataLoader(TensorDataset(rows, kinds), batch_size=6, shuffle=True)
    loader, check = make(x[:36], y[:36]), make(x[36:], y[36:])

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            (F.cross_entropy(model(a), b) * a.std(0).sort().values[2:].sum().exp().log1p() ** b.unique().numel()).backward()
            optimizer.step()

        right = 0
        with torch.no_grad():
            for a, b in check:
                right += (model(a).argmax(1) == b).sum().item()
        print("right", right)
""",
        same=("right",),
    ),
    "a function makes two loaders, and one or the other trains": Script(
        """
    def make(size):
        loaders = {}
        loaders["near"] = DataLoader(TensorDataset(x[:24], y[:24]), batch_size=size, shuffle=True)
        loaders["far"] = DataLoader(TensorDataset(x[24:36], y[24:36]), batch_size=size, shuffle=True)
        return loaders

    def fit(loader, check, name):
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for a, b in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(a), b).backward()
                optimizer.step()
        right = 0
        with torch.no_grad():
            for a, b in check:
                right += (model(a).argmax(1) == b).sum().item()
        print("right", name, right)

    def first():
        loaders = make(6)
        fit(loaders["near"], loaders["far"], "first")

    def second():
        loaders = make(12)
        fit(loaders["far"], loaders["near"], "second")

    first()
    second()
""",
        same=("right",),
    ),
    "a loader that starts again by hand, made for each of several trainings": Script(
        """
    def fit(first):
        loader = DataLoader(TensorDataset(x[first:first + 24], y[first:first + 24]), batch_size=6, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step = 0
        while step < 10:
            try:
                a, b = next(batches)
            except (NameError, StopIteration):
                batches = iter(loader)
                a, b = next(batches)
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
            step += 1
        with torch.no_grad():
            print("loss", f"{F.cross_entropy(model(x), y).item():.5f}")

    for first in range(0, 20, 8):
        fit(first)
""",
        same=("loss",),
    ),
    "two loaders of one data set that one function makes, side by side": Script(
        """
    data = TensorDataset(x[:36], y[:36])

    def make():
        return DataLoader(data, batch_size=6, shuffle=True)

    first, second = make(), make()

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        alike = 0
        for (a, b), (c, _) in zip(first, second):
            alike += int(torch.equal(a, c))
            optimizer.zero_grad()
            F.cross_entropy(model((a + c) / 2), b).backward()
            optimizer.step()
        print("alike", alike > 2)
""",
        same=("alike",),
    ),
    "two loaders of one data set from one comprehension, side by side": Script(
        """
    data = TensorDataset(x[:36], y[:36])
    first, second = [DataLoader(rows, batch_size=6, shuffle=True) for rows in (data, data)]

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        alike = 0
        for (a, b), (c, _) in zip(first, second):
            alike += int(torch.equal(a, c))
            optimizer.zero_grad()
            F.cross_entropy(model((a + c) / 2), b).backward()
            optimizer.step()
        print("alike", alike > 2)
""",
        same=("alike",),
    ),
    "two loaders of one class over one data set, side by side": Script(
        """
    data = TensorDataset(x[:36], y[:36])

    class Rows(DataLoader):
        def __init__(self, rows):
            super().__init__(rows, batch_size=6, shuffle=True)

    first, second = Rows(data), Rows(data)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        alike = 0
        for (a, b), (c, _) in zip(first, second):
            alike += int(torch.equal(a, c))
            optimizer.zero_grad()
            F.cross_entropy(model((a + c) / 2), b).backward()
            optimizer.step()
        print("alike", alike > 2)
""",
        same=("alike",),
    ),
    "a function makes all loaders in a comprehension over phases": Script(
        """
    def make(phase):
        cut = slice(0, 36) if phase == "train" else slice(36, 44)
        return DataLoader(TensorDataset(x[cut], y[cut]), batch_size=6, shuffle=phase == "train")
    loaders = {phase: make(phase) for phase in ("train", "val")}
    loader, check = loaders["train"], loaders["val"]

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()

        right = 0
        with torch.no_grad():
            for a, b in check:
                right += (model(a).argmax(1) == b).sum().item()
        print("right", right)
""",
        same=("right",),
    ),
    **{
        f"all loaders are made {title}": Script(
            textwrap.dedent("""
            def part(phase):
                cut = {"train": slice(0, 36), "val": slice(36, 40), "test": slice(40, 44)}[phase]
                return TensorDataset(x[cut], y[cut])

            def make(phase, size=6, **options):
                train = phase == "train"
                return DataLoader(part(phase), batch_size=size, shuffle=train, drop_last=train, **options)

            """)
            + textwrap.dedent(made)
            + textwrap.dedent("""
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(3):
                for a, b in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(a), b).backward()
                    optimizer.step()
                with torch.no_grad():
                    for name, data in (("val", check), ("test", test)):
                        right = sum((model(a).argmax(1) == b).sum().item() for a, b in data)
                        print("right", name, right)
            """),
            same=("right",),
        )
        for title, made in (
            ("in a generator over phases", 'loader, check, test = tuple(make(phase) for phase in ("train", "val", "test"))'),
            ("in a list over phases", 'loader, check, test = [make(p, size=4 if p == "test" else 6) for p in ["train", "val", "test"]]'),
            (
                "with options by phase",
                """
                HOW = {"train": dict(shuffle=True, drop_last=True), "val": dict(shuffle=False), "test": {}}
                def load(phase, size):
                    return DataLoader(part(phase), batch_size=size, num_workers=0, **HOW[phase])
                loader, check, test = load("train", 6), load("val", 4), load("test", 4)
                """,
            ),
            (
                "with options that say how large batches are",
                """
                def load(phase, **options):
                    return DataLoader(part(phase), shuffle=(phase == "train"), **options)
                options = {"batch_size": 6, "pin_memory": False}
                loader, check, test = load("train", **options), load("val", **options), load("test", batch_size=4)
                """,
            ),
            (
                "by a partial call",
                """
                from functools import partial
                make = partial(DataLoader, batch_size=6, num_workers=0, drop_last=True)
                loader, check, test = make(part("train"), shuffle=True), make(part("val"), batch_size=4), make(part("test"), batch_size=4)
                """,
            ),
            (
                "for each entry of a dict of data sets",
                """
                parts = {phase: part(phase) for phase in ["train", "val", "test"]}
                loaders = {phase: DataLoader(one, batch_size=6, shuffle=(phase == "train")) for phase, one in parts.items()}
                loader, check, test = loaders["train"], loaders["val"], loaders["test"]
                """,
            ),
            (
                "for each name in a dict of data sets",
                """
                parts = {"train": part("train"), "val": part("val"), "test": part("test")}
                loaders = {name: DataLoader(parts[name], batch_size=6, shuffle=name == "train") for name in parts}
                loader, check, test = loaders["train"], loaders["val"], loaders["test"]
                """,
            ),
        )
    },
    "a function makes all loaders with samplers by a flag": Script(
        """
    def make(rows, kinds, train):
        data = TensorDataset(rows, kinds)
        sampler = torch.utils.data.RandomSampler(data) if train else torch.utils.data.SequentialSampler(data)
        return DataLoader(data, sampler=sampler, batch_size=6)
    loader, check = make(x[:36], y[:36], True), make(x[36:], y[36:], False)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()

        right = 0
        with torch.no_grad():
            for a, b in check:
                right += (model(a).argmax(1) == b).sum().item()
        print("right", right)
""",
        same=("right",),
    ),
    "subsets of one data set by a permutation": Script(
        """
    from torch.utils.data import Subset
    data = TensorDataset(x, y)
    torch.manual_seed(3)
    order = torch.randperm(44).tolist()
    loader = DataLoader(Subset(data, order[:36]), batch_size=6, shuffle=True)
    check = DataLoader(Subset(data, order[36:]), batch_size=8)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()

        right = 0
        with torch.no_grad():
            for a, b in check:
                right += (model(a).argmax(1) == b).sum().item()
        print("right", right)
""",
        same=("right",),
    ),
    "a loader that a generator starts again, both asked by their own methods": Script("""
        def forever(batches):
            going = batches.__iter__()
            while True:
                try:
                    yield going.__next__()
                except StopIteration:
                    going = batches.__iter__()


        feed = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        batches = forever(feed)
        for step in range(2 * len(feed)):
            rows, kinds = batches.__next__()
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        """),
    "batches of an object's own, asked by its methods, less their average": Script(
        """
        class Batches:
            def __init__(self, feed):
                self.feed = feed

            def __iter__(self):
                self.going = iter(self.feed)
                return self

            def __next__(self):
                rows, kinds = next(self.going)
                return rows - rows.mean(0), kinds


        feed = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            batches = Batches(feed).__iter__()
            for step in range(6):
                rows, kinds = batches.__next__()
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
    ),
    "a factor that is made of the type of the rows, those of an evaluation, too": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.by = nn.Linear(8, 2), torch.tensor([1.0, 0.5], dtype=torch.float64)

            def forward(self, rows):
                self.by = self.by.type_as(rows)
                return self.body(rows) * self.by


        def right(batches):
            total = 0
            for rows, kinds in batches:
                total += (net(rows).argmax(1) == kinds).sum().item()
            return total / len(batches.dataset)


        feed = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
        held = DataLoader(TensorDataset(x[5:], y[5:]), batch_size=3)
        net = Net()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in feed:
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            with torch.no_grad():
                print("right", right(held), right(feed))
        """,
        same=("right",),
    ),
    "loaders of two batch sizes side by side": Script("""
    first = DataLoader(TensorDataset(x[:12], y[:12]), batch_size=6, shuffle=True, drop_last=True)
    second = DataLoader(TensorDataset(x[12:36], y[12:36]), batch_size=12, shuffle=True, drop_last=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(7):
        for i, ((a, b), (c, d)) in enumerate(zip(first, second)):
            optimizer.zero_grad()
            out = model(torch.cat([a, c]))
            loss = F.cross_entropy(out, torch.cat([b, d]))
            loss.backward()
            optimizer.step()
"""),
    "a loader whose iterator is handed on": Script("""
    class Background:
        def __init__(self, inner):
            self.inner = inner
        def __iter__(self):
            for one in self.inner:
                yield one
    class Loader(DataLoader):
        def __iter__(self):
            return iter(Background(super().__iter__()))
    loader = Loader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
"""),
    "a stream whose epoch is set through the loader": Script(
        """
    class S(torch.utils.data.IterableDataset):
        def __init__(self): self.epoch = 0
        def __iter__(self):
            g = torch.Generator().manual_seed(self.epoch)
            for i in torch.randperm(36, generator=g).tolist():
                yield x[i], y[i]
    loader = DataLoader(S(), batch_size=6)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        loader.dataset.epoch = epoch
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
""",
        told=("DDP301",),
    ),
    "a stream with an epoch of its own": Script("""
    class S(torch.utils.data.IterableDataset):
        def __init__(self): self.epoch = 0
        def set_epoch(self, epoch): self.epoch = epoch
        def __iter__(self):
            g = torch.Generator()
            g.manual_seed(self.epoch)
            for i in torch.randperm(36, generator=g).tolist():
                yield x[i], y[i]
    data = S()
    loader = DataLoader(data, batch_size=6)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        data.set_epoch(epoch)
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
"""),
    "a stream that draws whether it yields": Script(
        """
    class S(torch.utils.data.IterableDataset):
        def __iter__(self):
            for i in range(36):
                if torch.rand(1) < 2:
                    yield x[i], y[i]
    loader = DataLoader(S(), batch_size=6)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
""",
        told=("DDP301",),
    ),
    "the training loader under another name, evaluated": Script(
        """
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    check = loader

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()

        right = 0
        with torch.no_grad():
            for a, b in check:
                right += (model(a).argmax(1) == b).sum().item()
        print("right", right)
""",
        same=("right",),
    ),
    "a stream that is split where its workers start": Script(
        """
    import math
    class S(torch.utils.data.IterableDataset):
        def __init__(self, lo, hi):
            self.lo, self.hi = lo, hi
        def __iter__(self):
            info = torch.utils.data.get_worker_info()
            assert info is None or info.num_workers
            for i in range(self.lo, self.hi):
                yield x[i], y[i]
    def split(worker):
        info = torch.utils.data.get_worker_info()
        part = math.ceil(36 / info.num_workers)
        info.dataset.lo, info.dataset.hi = worker * part, min(36, worker * part + part)
    loader = DataLoader(S(0, 36), batch_size=6, num_workers=2, worker_init_fn=split)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for a, b in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
""",
        told=("DDP301",),
    ),
    "a thread that draws ahead, in a bar with a name": Script(
        """
    from prefetch_generator import BackgroundGenerator
    from tqdm import tqdm

    def one_pass(net, opt, feed, turn):
        ahead = BackgroundGenerator(feed, max_prefetch=4)
        bar = tqdm(ahead, total=len(feed))
        for a, b in bar:
            opt.zero_grad()
            F.cross_entropy(net(a), b).backward()
            opt.step()

    feed = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    net = nn.Linear(8, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for turn in range(3):
        one_pass(net, opt, feed, turn)
""",
        stand_ins={"prefetch_generator.py": _AHEAD},
    ),
    "many loaders, each over a data set without a name": Script("""
    one = DataLoader(TensorDataset(x[:12], y[:12]), batch_size=6, shuffle=True)
    two = DataLoader(TensorDataset(x[12:24], y[12:24]), batch_size=6, shuffle=True)
    three = DataLoader(TensorDataset(x[24:36], y[24:36]), batch_size=6, shuffle=True)
    four = DataLoader(TensorDataset(x[:12] * 2, y[:12]), batch_size=6, shuffle=True)
    five = DataLoader(TensorDataset(x[12:24] * 2, y[12:24]), batch_size=6, shuffle=True)
    six = DataLoader(TensorDataset(x[24:36] * 2, y[24:36]), batch_size=6, shuffle=True)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(a, b):
        optimizer.zero_grad()
        F.cross_entropy(model(a), b).backward()
        optimizer.step()

    for epoch in range(3):
        for a, b in one:
            step(a, b)
        for a, b in two:
            step(a, b)
        for a, b in three:
            step(a, b)
        for a, b in four:
            step(a, b)
        for a, b in five:
            step(a, b)
        for a, b in six:
            step(a, b)
"""),
    "a progress bar over the loader of a trainer": Script("""
    from tqdm import tqdm

    class Trainer:
        def __init__(self):
            self.loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
            self.net = nn.Linear(8, 2)
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def round(self, number):
            bar = tqdm(self.loader)
            for step, (rows, kinds) in enumerate(bar):
                self.optimizer.zero_grad()
                loss = F.cross_entropy(self.net(rows), kinds)
                loss.backward()
                self.optimizer.step()
                bar.set_description(f"{loss.item():.3f}")
            print("round", number, "with rows", step * 6 + rows.shape[0])

    trainer = Trainer()
    for number in range(3):
        trainer.round(number)
"""),
    "statistics of an averaged model, over the training data": Script(
        """
    from torch.optim.swa_utils import SWALR, AveragedModel, update_bn

    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    net = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    averaged = AveragedModel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    schedule = SWALR(optimizer, swa_lr=0.05)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
        averaged.update_parameters(net)
        schedule.step()
    batches = []
    averaged.register_forward_pre_hook(lambda module, given: batches.append(len(given[0])))
    update_bn(loader, averaged)
    print("over", len(batches), "batches of", sum(batches), "rows")
    torch.save(averaged.module.state_dict(), "averaged.pt")
""",
        same=("over",),
    ),
    "a sampler of the script's own with the name of torch's class": Script(
        """
        from samplers import Sampler

        loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, sampler=Sampler(36))
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in loader:
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        files={
            "samplers.py": textwrap.dedent(
                """\
                class Sampler:
                    def __init__(self, number):
                        self.number = number

                    def __len__(self):
                        return self.number

                    def __iter__(self):
                        yield from range(self.number - 1, -1, -1)
                """
            )
        },
    ),
    "a function of the script's own with the name of torch's class": Script(
        """
        from samplers import DistributedSampler

        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in loader:
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print(DistributedSampler(40))
        """,
        files={"samplers.py": "def DistributedSampler(number):\n    return number + 1\n"},
        told=("DDP904",),
    ),
    "a function that takes the loader's name for what shows its progress": Script(
        """
        from tqdm import tqdm


        def fit(epoch, batches, net, optimizer):
            batches = tqdm(batches)
            for rows, kinds in batches:
                optimizer.zero_grad()
                loss = F.cross_entropy(net(rows), kinds)
                loss.backward()
                optimizer.step()
                batches.set_description(f"{epoch} {loss.item():.3f}")


        batches = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for i in range(3):
            fit(i, batches, net, optimizer)
        """
    ),
    **{
        f"a loader whose name is taken {where}": Script(
            """
            from tqdm import tqdm


            net = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            """
            + code
        )
        for where, code in {
            "in each epoch for what shows its progress": """
            batches = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
            test = DataLoader(TensorDataset(x, y), batch_size=6)
            for epoch in range(3):
                batches = tqdm(batches, desc=f"{epoch}")
                for rows, kinds in batches:
                    optimizer.zero_grad()
                    loss = F.cross_entropy(net(rows), kinds)
                    loss.backward()
                    optimizer.step()
                test = tqdm(test)
                with torch.no_grad():
                    right = sum((net(rows).argmax(1) == kinds).sum().item() for rows, kinds in test)
                print(epoch, len(batches), right)
            """,
            "by that of a bar in each epoch": """
            def fit(batches):
                for epoch in range(3):
                    bar = tqdm(batches)
                    batches = bar
                    for i, (rows, kinds) in enumerate(bar):
                        optimizer.zero_grad()
                        loss = F.cross_entropy(net(rows), kinds)
                        loss.backward()
                        optimizer.step()


            fit(DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True))
            """,
            "before the epochs": """
            batches = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
            batches = tqdm(batches)
            for epoch in range(3):
                for rows, kinds in batches:
                    optimizer.zero_grad()
                    loss = F.cross_entropy(net(rows), kinds)
                    loss.backward()
                    optimizer.step()
            """,
            "in each epoch that makes a loader": """
            for epoch in range(3):
                batches = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
                batches = tqdm(batches)
                for rows, kinds in batches:
                    optimizer.zero_grad()
                    loss = F.cross_entropy(net(rows), kinds)
                    loss.backward()
                    optimizer.step()
            """,
        }.items()
    },
    "a loader that a function of an unknown package may have made": Script(
        """
        import streams

        made = len(y) > 100
        if made:
            _, loader = streams.loaders(6)
        else:
            loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for i, (rows, kinds) in enumerate(loader):
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        told=("DDP402", "DDP403"),
    ),
    "rows that a function of an unknown package gives in place of the loader's": Script(
        """
        import streams

        loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for rows, kinds in loader:
            if len(y) > 100:
                rows, kinds = streams.batch(6)
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        told=("DDP402",),
    ),
    "data sets of a class that is chosen, which download where loaders are made": Script(
        """
        import torchvision.datasets as sets

        if len(y) > 100:
            dataset = sets.CIFAR10
        else:
            dataset = sets.CIFAR100
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        loader = DataLoader(dataset(root="data", train=True, download=True), batch_size=6, shuffle=True)
        check = DataLoader(dataset(root="data", train=False, download=True), batch_size=6)
        for epoch in range(2):
            net.train()
            for rows, kinds in loader:
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            net.eval()
            right = 0
            with torch.no_grad():
                for rows, kinds in check:
                    right += (net(rows).argmax(1) == kinds).sum().item()
            print("right", right)
        """,
        same=("right",),
        stand_ins={
            "torchvision/__init__.py": "",
            "torchvision/datasets.py": _FETCHED,
        },
    ),
    "batches that are moved part by part, whatever they consist of": Script(
        """
        class Rows(Dataset):
            def __len__(self):
                return 36

            def __getitem__(self, i):
                return {"row": x[i], "kind": y[i], "more": [x[i].flip(0), x[i] * 2]}


        def moved(data, device):
            if isinstance(data, (list, tuple)):
                return type(data)(moved(part, device) for part in data)
            elif isinstance(data, dict):
                return {name: moved(part, device) for name, part in data.items()}
            elif torch.is_tensor(data):
                return data.to(device)
            return data


        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        net = nn.Linear(8, 2).to(device)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        feed = DataLoader(Rows(), batch_size=6, shuffle=True)
        for epoch in range(2):
            total = 0.0
            for batch in feed:
                batch = moved(batch, device)
                loss = F.cross_entropy(net(batch["row"]) + net(batch["more"][0]), batch["kind"])
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                total += loss.item() * len(batch["kind"])
            print("loss", epoch, f"{total / 36:.6f}")
        """,
        same=("loss",),
    ),
    "batches whose rows a function that calls itself for each part centres": Script(
        """
        class Rows(Dataset):
            def __len__(self):
                return 36

            def __getitem__(self, i):
                return {"row": x[i], "kind": y[i]}


        def centred(data, net):
            if isinstance(data, dict):
                return {name: centred(part, net) for name, part in data.items()}
            if data.dtype == torch.long:
                return data
            out = net(data)
            return out - out.mean(0)


        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        feed = DataLoader(Rows(), batch_size=6, shuffle=True)
        for epoch in range(2):
            for batch in feed:
                batch = centred(batch, net)
                loss = F.cross_entropy(batch["row"], batch["kind"])
                sgd.zero_grad()
                loss.backward()
                sgd.step()
        """,
        told=("DDP402",),
    ),
    "two of the loaders that one function makes, zipped before the loop": Script(
        """
        import config


        def near(train):
            return DataLoader(TensorDataset(x[:24], y[:24]) if train else TensorDataset(x[24:36], y[24:36]), batch_size=6, shuffle=True)


        def far(train):
            return DataLoader(TensorDataset(x[12:36], y[12:36]) if train else TensorDataset(x[:12], y[:12]), batch_size=6, shuffle=True)


        def get_loader(name, train=True):
            if name == "near":
                return near(train)
            elif name == "far":
                return far(train)


        def fit(net, source, target):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for epoch in range(3):
                pairs = enumerate(zip(source, target))
                for step, ((rows, kinds), (others, _)) in pairs:
                    loss = F.cross_entropy(net(rows), kinds) + 0.1 * net(others).pow(2).mean()
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()


        source, target = get_loader(config.source), get_loader(config.target)
        net = nn.Linear(8, 2)
        fit(net, source, target)
        """,
        files={"config.py": 'source = "near"\ntarget = "far"\n'},
    ),
    "a distributed sampler where a flag asks for one that is never given": Script(
        """
        from torch.utils.data.distributed import DistributedSampler


        def get_loader(rows, distributed, train=True):
            data = TensorDataset(rows, y[: len(rows)])
            sampler = DistributedSampler(data, shuffle=train) if distributed else None
            return DataLoader(data, batch_size=6, shuffle=(sampler is None), sampler=sampler, drop_last=True), sampler


        model = nn.Linear(8, 2)
        loader, sampler = get_loader(x, False, train=True)
        val, _ = get_loader(x, False, train=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            if sampler is not None:
                sampler.set_epoch(epoch)
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    ),
    "a random sampler, or a distributed one where there is a rank that a launcher passes": Script(
        """
        from torch.utils.data import RandomSampler, SequentialSampler
        from torch.utils.data.distributed import DistributedSampler

        parser = argparse.ArgumentParser()
        parser.add_argument("--local_rank", type=int, default=-1)
        args = parser.parse_args()
        train_set, val_set = TensorDataset(x[:36], y[:36]), TensorDataset(x[36:], y[36:])
        train_sampler = RandomSampler(train_set) if args.local_rank == -1 else DistributedSampler(train_set)
        val_sampler = SequentialSampler(val_set) if args.local_rank == -1 else DistributedSampler(val_set)
        loader = DataLoader(train_set, batch_size=6, sampler=train_sampler)
        val_loader = DataLoader(val_set, batch_size=4, sampler=val_sampler)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in loader:
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                print(f"right {sum((net(rows).argmax(1) == kinds).sum().item() for rows, kinds in val_loader)}")
        """,
        same=("right",),
    ),
    "a distributed sampler written beside none, and another in one of two branches": Script(
        """
        from torch.utils.data.distributed import DistributedSampler

        parser = argparse.ArgumentParser()
        parser.add_argument("--distributed", action="store_true")
        args = parser.parse_args()
        first, second = TensorDataset(x[:36], y[:36]), TensorDataset(x, y)
        alone = DataLoader(first, 6, shuffle=not args.distributed, sampler=DistributedSampler(first) if args.distributed else None)
        if args.distributed:
            sampler = DistributedSampler(second)
        else:
            sampler = None
        loader = DataLoader(second, batch_size=6, shuffle=(sampler is None), sampler=sampler, drop_last=True)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            if args.distributed:
                sampler.set_epoch(epoch)
            for feed in (alone, loader):
                for rows, kinds in feed:
                    loss = F.cross_entropy(net(rows), kinds)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
        """,
    ),
    "data that is fetched for what a parameter is by default": Script(
        """
        from torchvision.datasets import CIFAR100


        def fetched():
            return DataLoader(CIFAR100("data", train=True, download=True), batch_size=6, shuffle=True)


        def train(epochs, loader=fetched()):
            net = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for epoch in range(epochs):
                for rows, kinds in loader:
                    loss = F.cross_entropy(net(rows), kinds)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()


        if __name__ == "__main__":
            train(2)
        """,
        stand_ins={"torchvision/__init__.py": "", "torchvision/datasets.py": _FETCHED},
    ),
    # ------------------------------------------------------------------------------------------ scripts that know of ranks
    "totals that a function of the script adds up over the ranks": _reduced("return reduced(right, average=False).item()"),
    "a total that is added up over the ranks where it is": _reduced(
        "if dist.is_available() and dist.is_initialized():\n    dist.all_reduce(right)\nreturn right.item()"
    ),
    "a total and a count that are added up over the ranks in one tensor": _reduced(
        "total, count = reduced(torch.tensor([right.item(), float(len(loader))]), average=False).tolist()\nreturn total, count"
    ),
    "an average by its share of the batches that the script averages over the ranks": _reduced(
        "right = reduced(right / len(loader))\nreturn right.item()", told=("DDP404",)
    ),
    "counts in an object that adds them up over the ranks itself": Script(
        _confused("torch.zeros(2, 2, dtype=torch.long)", "assert len(kinds) == len(guesses)"), same=("seen",)
    ),
    "counts in an object that adds them up over the ranks itself, which begin with the first batch": Script(
        _confused("None", "if self.counts is None:\n                self.counts = torch.zeros(2, 2, dtype=torch.long)"), same=("seen",)
    ),
    "counts in an object that adds them up over the ranks itself, and bounds them": Script(
        _confused("None", "if self.counts is None:\n                self.counts = torch.zeros(2, 2, dtype=torch.long)").replace(
            "all_reduce(self.counts)", "all_reduce(self.counts)\n            self.counts.clamp_(max=9)"
        ),
        told=("DDP304",),
    ),
    "totals that a function adds up over the ranks, of an evaluation that may end early": _reduced(
        "return reduced(right, average=False).item()",
        adds="if right > 30:\n    break\nright += (net(rows).argmax(1) == kinds).sum()",
        told=("DDP304",),
    ),
    "a loader of its own where there are several ranks, with batches of each": _asking(
        """
        data = TensorDataset(x[:36], y[:36])
        if count() > 1:
            loader = DataLoader(data, batch_size=6, sampler=DistributedSampler(data))
        else:
            loader = DataLoader(data, batch_size=6, shuffle=True)
        """,
    ),
    "a sampler and batches of each rank where a function says that there is a group": _asking(
        """
        data = TensorDataset(x[:36], y[:36])
        sampler = DistributedSampler(data) if is_joined() else None
        loader = DataLoader(data, batch_size=6 // count(), shuffle=sampler is None, sampler=sampler)
        """,
    ),
    "a learning rate times the number of ranks": _asking(
        """
        data = TensorDataset(x[:36], y[:36])
        loader = DataLoader(data, batch_size=6, shuffle=True)
        """,
        rate="0.1 * count()",
        told=("DDP407",),
    ),
    "a split drawn by ranks that are seeded apart": _asking(
        """
        torch.manual_seed(7 + int(os.environ.get("RANK", 0)))
        chosen, rest = random_split(TensorDataset(x, y), [36, 8])
        loader = DataLoader(chosen, batch_size=6, shuffle=True)
        """,
        told=("DDP103",),
    ),
    "an evaluation that is shared out where there are several ranks": _asking(
        """
        data, held_out = TensorDataset(x[:36], y[:36]), TensorDataset(x[36:], y[36:])
        loader = DataLoader(data, batch_size=6, shuffle=True)
        check = DataLoader(held_out, batch_size=4, sampler=DistributedSampler(held_out, shuffle=False) if count() > 1 else None)
        """,
        after="""
        with torch.no_grad():
            right = 0
            for rows, kinds in check:
                right += (net(rows).argmax(1) == kinds).sum().item()
        print(f"right {right}")
        """,
        told=("DDP304",),
    ),
    "an epoch that is set where a flag asks for it, of a sampler that is not there yet": Script("""
    parser = argparse.ArgumentParser()
    parser.add_argument("--distributed", action="store_true")
    args = parser.parse_args()
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        if args.distributed:
            loader.sampler.set_epoch(epoch)
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""),
    "loaders of an own class that hands on all it is given, for training and for evaluation": Script(
        """
        class Batches(DataLoader):
            def __init__(self, *args, **kwargs):
                super(Batches, self).__init__(*args, **kwargs)


        class Named(DataLoader):
            def __init__(self, dataset, batch_size, **options):
                super().__init__(dataset, batch_size, **options)


        train_loader = Batches(TensorDataset(x[:36], y[:36]), 6, True, num_workers=0)
        more = Named(TensorDataset(x[:36], y[:36]), 12, shuffle=True)
        test_loader = Batches(TensorDataset(x[36:], y[36:]), batch_size=3)
        held = Named(TensorDataset(x[36:], y[36:]), 4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for loader in (train_loader, more):
                for rows, kinds in loader:
                    loss = F.cross_entropy(model(rows), kinds)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            with torch.no_grad():
                lost = sum(F.cross_entropy(model(rows), kinds, reduction="sum").item() for rows, kinds in test_loader)
                lost += sum(F.cross_entropy(model(rows), kinds, reduction="sum").item() for rows, kinds in held)
            print(f"lost {lost:.6f}")
        """,
        same=("lost",),
    ),
    "loaders of an own class that takes the size first, for training and for evaluation": Script(
        """
        class Batches(DataLoader):
            def __init__(self, batch_size, dataset, **options):
                super().__init__(dataset, batch_size, **options)


        train_loader = Batches(6, TensorDataset(x[:36], y[:36]), shuffle=True)
        test_loader = Batches(3, TensorDataset(x[36:], y[36:]))
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in train_loader:
                loss = F.cross_entropy(model(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                lost = sum(F.cross_entropy(model(rows), kinds, reduction="sum").item() for rows, kinds in test_loader)
            print(f"lost {lost:.6f}")
        """,
        told=("DDP301",),
    ),
    "episodes of a batch sampler, of a function that makes all loaders": Script(
        """
        class Episodes:
            def __init__(self, labels, episodes):
                self.labels, self.episodes = labels, episodes

            def __iter__(self):
                for i in range(self.episodes):
                    yield torch.cat([torch.nonzero(self.labels == kind).view(-1)[i : i + 6] for kind in range(2)])

            def __len__(self):
                return self.episodes


        def loader_of(mode):
            return DataLoader(TensorDataset(x, y), batch_sampler=Episodes(y, 5))


        def loss_of(out, target):
            middles = torch.stack([out[target == kind].mean(0) for kind in torch.unique(target)])
            return F.cross_entropy(-torch.cdist(out, middles), target)


        torch.manual_seed(0)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train, val = loader_of("train"), loader_of("val")
        for epoch in range(3):
            for rows, kinds in train:
                optimizer.zero_grad()
                loss_of(model(rows), kinds).backward()
                optimizer.step()
            with torch.no_grad():
                for rows, kinds in val:
                    loss = loss_of(model(rows), kinds)
        """
    ),
}
SCRIPTS = on_three(SCRIPTS)

_STREAMED = """
    import stored


    class Rows(Dataset):
        def __len__(self):
            return len(x)

        def __getitem__(self, i):
            return {"rows": x[i], "kinds": y[i], "place": i}


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 2)

        def forward(self, rows, kinds):
            return F.cross_entropy(self.layer(rows), kinds)


    parser = argparse.ArgumentParser()
    parser.add_argument("--store", default="")
    args = parser.parse_args()
    if args.store:
        loader = stored.Reader(args.store, batch_size=4)
    else:
        loader = DataLoader(Rows(), batch_size=4, shuffle=True)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for i, batch in enumerate(loader):
            batch = {name: part for name, part in batch.items() if name in ("rows", "kinds")}
            loss = net(**batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
_STORED = {"stored.py": "class Reader:\n    def __init__(self, path, batch_size):\n        raise OSError(path)\n"}
SCRIPTS["a loader, or one of a package that is not known"] = Script(_STREAMED, told=("DDP402",), stand_ins=_STORED)
SCRIPTS["a loader, or one that reads a stream, in a bar"] = Script(
    _STREAMED.replace("import stored", "import webdataset\n    from tqdm import tqdm")
    .replace("stored.Reader(args.store, batch_size=4)", "webdataset.WebLoader(webdataset.WebDataset(args.store), batch_size=4)")
    .replace("    for i, batch in enumerate(loader):", "    bar = tqdm(loader)\n        for i, batch in enumerate(bar):"),
    told=("DDP402",),
)

_JOINED = """
def collate(samples):
    first = torch.stack([s[0] for s in samples])
    counts = first.clamp(min=0)
    return {{"rows": torch.cat({joined}), "sizes": counts.sum(dim=-1), "kinds": torch.tensor([int(s[1]) for s in samples])}}


loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True, collate_fn=collate)
model = nn.Linear({wide}, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for batch in loader:
        optimizer.zero_grad()
        scores = model(batch["rows"]) / batch["sizes"].clamp(min=1).unsqueeze(1)
        F.cross_entropy(scores, batch["kinds"]).backward()
        optimizer.step()
"""
SCRIPTS |= {
    f"a collate function that joins parts {title}": Script(_JOINED.format(joined=joined, wide=wide), told=told)
    for title, joined, wide, told in (
        ("beside each other", "[first, counts], dim=1", 16, ()),
        ("along their last dimension", "(first, counts), -1", 16, ()),
        ("of all samples, one after another", "[s[0].unsqueeze(0) for s in samples if s[0].sum() > -9], 0", 8, ("DDP402",)),
    )
}

_NUMBERED = """
net = nn.Linear(8, 2)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
feed = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)


def endless(loader):
    while True:
        for number, (rows, kinds) in enumerate(loader):
            yield rows, kinds


def step(rows, kinds):
    loss = F.cross_entropy(net(rows), kinds)
    sgd.zero_grad()
    loss.backward()
    sgd.step()


"""
SCRIPTS |= {
    "an iterator of numbered batches in each epoch": Script(
        _NUMBERED
        + """
for epoch in range(2):
    batches = iter(enumerate(feed))
    for _ in range(len(feed)):
        number, (rows, kinds) = next(batches)
        step(rows, kinds)
"""
    ),
    "a generator of numbered batches that begins again": Script(
        _NUMBERED
        + """
batches = endless(feed)
for _ in range(15):
    step(*next(batches))
"""
    ),
    "a generator of numbered batches that an object draws from": Script(
        _NUMBERED
        + """
class Training:
    def run(self, loader):
        self.batches = endless(loader)
        for _ in range(15):
            rows, kinds = self.batches.__next__()
            step(rows, kinds)


Training().run(feed)
"""
    ),
}
SCRIPTS["the parts of the next batch, each moved to the device"] = Script(
    """
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        batches, total = iter(loader), 0.0
        for step in range(len(loader)):
            rows, kinds = [part.to("cpu") for part in next(batches)]
            optimizer.zero_grad()
            loss = F.cross_entropy(net(rows), kinds)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("loss", epoch, f"{total / len(loader):.5f}")
    """,
    same=("loss",),
)
SCRIPTS["a loader made again in each round of one training"] = Script(
    """
    torch.manual_seed(0)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    firsts = []
    for turn in range(4):
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        for epoch in range(2):
            for i, (rows, kinds) in enumerate(loader):
                if i == 0:
                    firsts.append(rows[0, 0].item())
                loss = F.cross_entropy(model(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    print("more orders than a round has", len(set(firsts)) > 5)
    """,
    same=("more orders",),
)
_BOTH = """
    from tqdm import tqdm

    def one_pass(model, loader, optimizer=None):
        model.train(optimizer is not None)
        total, seen, hits = 0.0, 0, []
        {bar} = tqdm(loader, leave=False)
        for rows, kinds in {bar}:
            with torch.set_grad_enabled(optimizer is not None):
                out = model(rows)
                loss = F.cross_entropy(out, kinds)
                if optimizer is not None:
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            total += loss.item() * len(rows)
            seen += len(rows)
            hits.append((out.argmax(1) == kinds).float())
        return total / seen, torch.cat(hits).mean().item()

    def make_loaders(balance):
        loaders = {{}}
        for part in ("train", "val"):
            rows, kinds = (x[:32], y[:32]) if part == "train" else (x[32:], y[32:])
            sampler = None
            if balance and part == "train":
                sampler = torch.utils.data.WeightedRandomSampler(kinds + 1.0, len(kinds))
            shuffle = part == "train" and sampler is None
            loaders[part] = DataLoader(TensorDataset(rows, kinds), batch_size=8, shuffle=shuffle, sampler={sampler})
        return loaders

    torch.manual_seed(0)
    loaders = make_loaders(balance={balance})
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        loss, accuracy = one_pass(model, loaders["train"], optimizer)
        print("trained", epoch, f"{{loss:.5f}} {{accuracy:.5f}}")
        loss, accuracy = one_pass(model, loaders["val"])
        print("judged", epoch, f"{{loss:.5f}} {{accuracy:.5f}}")
    """
SCRIPTS["a dict of loaders goes through one function for both, under a bar with a name"] = Script(
    _BOTH.format(bar="bar", sampler="None", balance=False), same=("judged", "trained")
)
SCRIPTS["a dict of loaders goes through one function for both, under a bar that takes its name"] = Script(
    _BOTH.format(bar="loader", sampler="None", balance=False), same=("judged", "trained")
)
SCRIPTS["a dict of loaders goes through one function for both, of which training may be balanced"] = Script(
    _BOTH.format(bar="bar", sampler="sampler", balance=False), same=("judged", "trained")
)
SCRIPTS["a dict of loaders goes through one function for both, of which training is balanced"] = Script(
    _BOTH.format(bar="bar", sampler="sampler", balance=True), same=("judged", "trained")
)
_BY_HAND = """
from tqdm import tqdm

model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
for epoch in range(3):
    {begun}
    while True:
        try:
            {taken} = next(feed)
        except StopIteration:
            break
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
"""
SCRIPTS |= {
    f"an iterator over {title}": Script(_BY_HAND.replace("{begun}", begun.replace("\n", "\n    ")).replace("{taken}", taken))
    for title, (begun, taken) in {
        "a bar that has a name": ("bar = tqdm(loader)\nfeed = iter(bar)", "data, target"),
        "a bar that has a name, numbered": ("bar = tqdm(loader)\nfeed = iter(enumerate(bar))", "number, (data, target)"),
        "a bar": ("feed = iter(tqdm(loader))", "data, target"),
        "a bar, which is numbered": ("feed = enumerate(tqdm(loader))", "number, (data, target)"),
    }.items()
}
SCRIPTS["an iterator over a bar that starts again"] = Script(
    """
    from tqdm import tqdm

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    bar = tqdm(loader)
    feed = iter(bar)
    for step in range(15):
        try:
            data, target = next(feed)
        except StopIteration:
            feed = iter(bar)
            data, target = next(feed)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
    """,
    told=("DDP401",),
)
_BY_FLAG = """
    def one_pass(loader, optimizer=None):
        SETTING
        total = 0.0
        for rows, kinds in loader:
            loss = F.cross_entropy(model(rows), kinds)
            if ASKED:
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            total += loss.item()
        return total / len(loader)

    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader, held_out = DataLoader(TensorDataset(x, y), batch_size=8), DataLoader(TensorDataset(x[:21], y[:21]), batch_size=8)
    for epoch in range(3):
        print("trained %.6f" % one_pass(loader, optimizer), end="")
        print("\\nheld out %.6f" % one_pass(held_out))
    """
SCRIPTS |= {
    f"one function for training and evaluation, told apart by {title}": Script(
        _BY_FLAG.replace("SETTING", text.replace("\n", "\n        ")).replace("ASKED", asked), same=("held out",)
    )
    for title, text, asked in (
        (
            "a flag that a condition sets",
            "if optimizer is None:\n    model.eval()\n    training = False\nelse:\n    model.train()\n    training = True",
            "training",
        ),
        ("a flag that a condition changes", "training = False\nif optimizer is not None:\n    training = True", "training"),
        ("a name that a condition sets", "if optimizer:\n    mode = 'train'\nelse:\n    mode = 'test'", "mode == 'train'"),
        ("a flag that is chosen", "training = False if optimizer is None else True", "training"),
    )
}
_CHOSEN = """
    class Part(Dataset):
        def __init__(self, part):
            self.rows, self.kinds = (x[:32], y[:32]) if part == "train" else (x[32:], y[32:])

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, index):
            return self.rows[index], self.kinds[index]

    class Turned(Part):
        def __getitem__(self, index):
            return -self.rows[index], self.kinds[index]

    parser = argparse.ArgumentParser()
    parser.add_argument("--turned", action="store_true")
    args = parser.parse_args()
    loaders = {}
    MADE
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for phase in ("train", "val"):
            total = 0.0
            for rows, kinds in loaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    loss = F.cross_entropy(model(rows), kinds)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                total += loss.item()
            print(phase, "%.6f" % (total / len(loaders[phase])))
    """
_BY_PHASE = """for phase in ("train", "val"):
        if args.turned:
            loaders[phase] = DataLoader(Turned(phase), batch_size=8, shuffle=phase == "train")
        else:
            loaders[phase] = DataLoader(Part(phase), batch_size=8, shuffle=phase == "train")"""
_BY_KEY = """if args.turned:
        loaders["train"] = DataLoader(Turned("train"), batch_size=8, shuffle=True)
        loaders["val"] = DataLoader(Turned("val"), batch_size=8)
    else:
        loaders["train"] = DataLoader(Part("train"), batch_size=8, shuffle=True)
        loaders["val"] = DataLoader(Part("val"), batch_size=8)"""
SCRIPTS |= {
    f"a dict of loaders, of which each is one of two: {title}": Script(_CHOSEN.replace("MADE", made), same=("val",))
    for title, made in (("made for each phase", _BY_PHASE), ("made one after another", _BY_KEY))
}
SCRIPTS["a function that trains for one epoch by its own count, called for each"] = Script(
    """
    def fit(model, loader, epochs):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(epochs):
            for rows, kinds in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(rows), kinds).backward()
                optimizer.step()


    model = nn.Linear(8, 2)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    for turn in range(3):
        fit(model, loader, 1)
        print("summed", round(model.weight.abs().sum().item(), 5))
""",
    same=("summed",),
)
SCRIPTS["epochs counted from the start again, in a second training with the same loader"] = Script(
    """
    class Trainer:
        def __init__(self):
            self.model = nn.Linear(8, 2)
            self.loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

        def train(self, epochs):
            for epoch in range(epochs):
                self.one(epoch)

        def one(self, number):
            for rows, kinds in self.loader:
                self.optimizer.zero_grad()
                F.cross_entropy(self.model(rows), kinds).backward()
                self.optimizer.step()


    trainer = Trainer()
    for epochs in (1, 2):
        trainer.train(epochs)
    trainer.train(1)
    print("summed", round(trainer.model.weight.abs().sum().item(), 5))
""",
    same=("summed",),
)
_FROM_ELSEWHERE = {
    "cut by its size, by their number": ("labels = y.split(args.batch_size)", "i, (rows,) in enumerate(loader)", "labels[i]"),
    "cut by its size, side by side": ("labels = torch.split(y, args.batch_size)", "(rows,), given in zip(loader, labels)", "given"),
    "cut by hand, side by side": (
        "labels = [y[i : i + args.batch_size] for i in range(0, 44, args.batch_size)]",
        "(rows,), given in zip(loader, labels)",
        "given",
    ),
    "as many as it has, by their number": ("labels = y.chunk(6)", "i, (rows,) in enumerate(loader)", "labels[i]"),
}
SCRIPTS |= {
    f"labels of batches from beside the loader: {title}": Script(
        f"""
        parser = argparse.ArgumentParser()
        parser.add_argument("--batch_size", type=int, default=8)
        args = parser.parse_args()
        loader = DataLoader(TensorDataset(x), batch_size=args.batch_size)
        {labels}
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for epoch in range(3):
            total = 0.0
            for {each}:
                loss = F.cross_entropy(model(rows), {given})
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            print("loss %.6f" % total)
        """,
        same=("loss",),
    )
    for title, (labels, each, given) in _FROM_ELSEWHERE.items()
}
SCRIPTS["one weight for each batch, by its number"] = Script(
    """
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    weights = torch.linspace(0.5, 1.5, 6)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(3):
        total = 0.0
        for i, (rows, labels) in enumerate(loader):
            loss = F.cross_entropy(model(rows), labels) * weights[i]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("loss %.6f" % total)
    """,
    same=("loss",),
)
_SAMPLED = """
    from torch.utils.data import RandomSampler, SubsetRandomSampler, WeightedRandomSampler

    def numbers_of(sampler):
        return len(sampler.indices)

    class Trainer:
        def __init__(self, loader):
            self.loader = loader
            of_loader = self.loader.sampler
            self.seen = ASKED
            self.model = nn.Linear(8, 2)
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5)

        def train(self):
            for epoch in range(3):
                for rows, labels in self.loader:
                    loss = F.cross_entropy(self.model(rows), labels)
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                print("seen %.1f" % self.seen)

    data = TensorDataset(x, y)
    Trainer(DataLoader(data, batch_size=8, HOW)).train()
"""
SCRIPTS |= {
    f"what a loader's sampler has: {title}": Script(_SAMPLED.replace("ASKED", asked).replace("HOW", how), same=("seen",))
    for title, asked, how in (
        ("the numbers of a subset", "len(self.loader.sampler.indices)", "sampler=SubsetRandomSampler(range(4, 44))"),
        ("the numbers of a subset, by another name", "len(of_loader.indices)", "sampler=SubsetRandomSampler(range(4, 44))"),
        ("how many it draws, by another name", "len(of_loader)", "sampler=SubsetRandomSampler(range(4, 44))"),
        ("the numbers of a subset, asked by a function", "numbers_of(self.loader.sampler)", "sampler=SubsetRandomSampler(range(4, 44))"),
        ("weights", "self.loader.sampler.weights.sum()", "sampler=WeightedRandomSampler([1.0 + i % 2 for i in range(44)], 44)"),
        ("as many as a random one draws", "self.loader.sampler.num_samples", "sampler=RandomSampler(data)"),
        ("the data of the loader's own", "len(self.loader.sampler.data_source)", "shuffle=True"),
        ("as many as the loader's own draws", "self.loader.sampler.num_samples", "shuffle=True"),
    )
}
SCRIPTS["a loader alone, or with what a model is made of, as a flag says"] = Script(
    """
    batch_size = 4


    def load(part, described=False):
        if part == "test":
            return DataLoader(TensorDataset(x[36:], y[36:]), batch_size=4)
        loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=4, shuffle=True)
        if not described:
            return loader
        table = torch.empty(20, 3)
        nn.init.uniform_(table, -0.5, 0.5)
        return loader, table, 20


    class Net(nn.Module):
        def __init__(self, size, table):
            super().__init__()
            self.words = nn.Embedding(size, 3)
            if table is None:
                self.words.weight.data.uniform_(-0.1, 0.1)
            else:
                self.words.weight = nn.Parameter(table, requires_grad=True)
            self.last = nn.Linear(24, 2)

        def forward(self, rows):
            return self.last(self.words((rows * 9).long().abs()).flatten(1))


    loader, table, size = load("train", len(str(batch_size)) == 1)
    net = Net(size, table)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    with torch.no_grad():
        print("right", sum((net(rows).argmax(1) == kinds).sum().item() for rows, kinds in load("test")))
    """,
    same=("right",),
)
