"""Scripts that the generator of `tests/generate` has found, reduced."""

from scripts import Script, on_three

SCRIPTS: dict[str, Script] = {
    "a loss that the optimizer's step gives back": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        last = 1e9
        for epoch in range(3):
            total = 0.0
            for inputs, targets in loader:

                def closure():
                    optimizer.zero_grad()
                    loss = F.cross_entropy(model(inputs), targets)
                    loss.backward()
                    return loss

                loss = optimizer.step(closure)
                total += loss.item()
            print(f"train {total / len(loader):.6f}")
            if total > 0.9 * last:
                for group in optimizer.param_groups:
                    group["lr"] *= 0.5
            last = total
        """,
        same=("train",),
    ),
    "a total over a data set of which a sampler draws a part": Script(
        """
        from torch.utils.data import SubsetRandomSampler

        loader = DataLoader(TensorDataset(x, y), batch_size=8, sampler=SubsetRandomSampler(range(32)))
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            total = 0.0
            for inputs, targets in loader:
                loss = F.cross_entropy(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item() * inputs.size(0)
            print(f"train {total / len(loader.dataset):.6f}")
        """,
        same=("train",),
    ),
    "a total over a data set whose last batch is dropped": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True, drop_last=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            total = 0.0
            for inputs, targets in loader:
                loss = F.cross_entropy(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item() * inputs.size(0)
            print(f"train {total / len(loader.dataset):.6f}")
        """,
        same=("train",),
        rows=43,
    ),
    "a tensor for a batch, filled in place for each": Script(
        """
        batch_size = 8
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=batch_size, shuffle=True, drop_last=True)
        inputs = torch.zeros(batch_size, 8)
        targets = torch.zeros(batch_size, dtype=torch.long)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for features, labels in loader:
                inputs.copy_(features)
                targets.copy_(labels)
                loss = F.cross_entropy(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """
    ),
    "rows of drawn data that a mask chooses": Script(
        """
        generator = torch.Generator().manual_seed(0)
        loader = DataLoader(TensorDataset(torch.randn(40, 8, generator=generator), torch.arange(40) % 3), batch_size=8, shuffle=True)
        model = nn.Linear(8, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for inputs, targets in loader:
                outputs = model(inputs)
                keep = targets != 2
                loss = F.cross_entropy(outputs[keep], targets[keep])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """
    ),
}
_SENTENCES = """
        class Sentences(Dataset):
            def __len__(self):
                return 40

            def __getitem__(self, index):
                words = (torch.arange(3 + index % 6) * (index + 1)) % 19 + 1
                return words, words % 5 + 1


        def collate(samples):
            longest = max(len(words) for words, _ in samples)
            {collate}


        loader = DataLoader(Sentences(), batch_size=8, shuffle=True, collate_fn=collate)
        model = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 6))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for inputs, targets in loader:
                outputs = model(inputs)
                loss = F.cross_entropy(outputs.reshape(-1, 6), targets.reshape(-1))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
"""
_FILLED = {
    "tensors as long as the longest sample": """
            inputs = torch.zeros(len(samples), longest, dtype=torch.long)
            targets = torch.zeros(len(samples), longest, dtype=torch.long)
            for row, (words, tags) in enumerate(samples):
                inputs[row, : len(words)] = words
                targets[row, : len(tags)] = tags
            return inputs, targets
    """,
    "lists filled up to the longest sample": """
            inputs = [words.tolist() + [0] * (longest - len(words)) for words, _ in samples]
            targets = [tags.tolist() + [0] * (longest - len(tags)) for _, tags in samples]
            return torch.tensor(inputs), torch.tensor(targets)
    """,
}
SCRIPTS |= {title: Script(_SENTENCES.replace("{collate}", code.strip()), told=("DDP402",)) for title, code in _FILLED.items()}
SCRIPTS["padding, and a function that steps by a loss that another has computed"] = Script(
    """
    from torch.nn.utils.rnn import pad_sequence


    class Sentences(Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, index):
            words = (torch.arange(3 + index % 6) * (index + 1)) % 19 + 1
            return words, words % 5 + 1


    def collate(samples):
        words, tags = zip(*samples)
        return pad_sequence(words, batch_first=True), pad_sequence(tags, batch_first=True)


    def update(optimizer, loss):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


    loader = DataLoader(Sentences(), batch_size=8, shuffle=True, collate_fn=collate)
    model = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for inputs, targets in loader:
            update(optimizer, F.cross_entropy(model(inputs).reshape(-1, 6), targets.reshape(-1)))
    """,
    told=("DDP402",),
)
SCRIPTS |= {
    title: Script(
        f"""
        import copy

        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        val_loader = DataLoader(TensorDataset(x, y), batch_size=8)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = nn.Linear(8, 2)
        {copied}
        model = model.to(device)
        average = average.to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for inputs, targets in loader:
                inputs, targets = inputs.to(device), targets.to(device)
                loss = F.cross_entropy(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                with torch.no_grad():
                    for old, new in zip(average.parameters(), model.parameters()):
                        old.mul_(0.9).add_(new, alpha=0.1)
            total = 0.0
            with torch.no_grad():
                for inputs, targets in val_loader:
                    inputs, targets = inputs.to(device), targets.to(device)
                    total += F.cross_entropy(average(inputs), targets, reduction="sum").item()
            print(f"validation {{total / 44:.6f}}")
        """,
        same=("validation",),
    )
    for title, copied in {
        "a copy of a model that nothing has seeded, made before the wrap": "average = copy.deepcopy(model)",
        "a second model with the weights of one that nothing has seeded": (
            "average = nn.Linear(8, 2)\n        average.load_state_dict(model.state_dict())"
        ),
    }.items()
}
SCRIPTS["all outputs of a validation of which one rank has no batch"] = Script(
    """
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=12, shuffle=True)
    test_loader = DataLoader(TensorDataset(x[:24], y[:24]), batch_size=12)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        for inputs, targets in loader:
            loss = F.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        outputs, labels = [], []
        with torch.no_grad():
            for inputs, targets in test_loader:
                outputs.append(model(inputs))
                labels.append(targets)
        print(f"validation {F.cross_entropy(torch.cat(outputs), torch.cat(labels)).item():.6f}")
    """,
    same=("validation",),
    ranks=(2, 3),
    rows=36,
)
SCRIPTS["guesses of a stream that has no length"] = Script(
    """
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            yield from zip(x[:40], y[:40])


    loader = DataLoader(Stream(), batch_size=8)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        guesses, truths = [], []
        for inputs, targets in loader:
            outputs = model(inputs)
            loss = F.cross_entropy(outputs, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            guesses.extend(outputs.argmax(1).tolist())
            truths.extend(targets.tolist())
        print("right", sum(a == b for a, b in zip(guesses, truths)) / len(truths))
    """,
    same=("right",),
)

SCRIPTS["an order that a trainer's method shuffles for each epoch"] = Script(
    """
    import numpy as np

    class Trainer:
        def __init__(self, model, optimizer):
            self.model = model
            self.optimizer = optimizer

        def train_epoch(self):
            order = np.arange(40)
            np.random.shuffle(order)
            for start in range(0, 40, 8):
                rows = order[start:start + 8]
                loss = F.cross_entropy(self.model(x[rows]), y[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()


    model = nn.Linear(8, 2)
    trainer = Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for epoch in range(3):
        trainer.train_epoch()
    """
)
SCRIPTS["an order that an object shuffles and cuts into batches"] = Script(
    """
    import random

    class Batches:
        def __init__(self, rows, size):
            self.rows = rows
            self.size = size

        def mix(self):
            random.shuffle(self.rows)

        def cut(self):
            for start in range(0, len(self.rows), self.size):
                rows = self.rows[start:start + self.size]
                yield x[rows], y[rows]


    batches = Batches(list(range(40)), 8)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        batches.mix()
        for inputs, targets in batches.cut():
            loss = F.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
)
SCRIPTS["a closure that reads names which a validation gives other rows"] = Script(
    """
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    test_loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for inputs, targets in loader:
            inputs = 2 * inputs

            def closure():
                optimizer.zero_grad()
                loss = F.cross_entropy(model(inputs), targets)
                loss.backward()
                return loss

            optimizer.step(closure)
        right = 0
        with torch.no_grad():
            for inputs, targets in test_loader:
                inputs = 2 * inputs
                right += (model(inputs).argmax(1) == targets).sum().item()
        print("right", right / len(test_loader.dataset))
    """,
    same=("right",),
)
SCRIPTS["a buffer that a validation gives another loader's rows"] = Script(
    """
    rows = x[:40]
    loader = DataLoader(TensorDataset(rows, y[:40]), batch_size=8, shuffle=True)
    test_loader = DataLoader(TensorDataset(rows, y[:40]), batch_size=8)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    size = loader.batch_size
    inputs = torch.zeros(size, 8)
    for epoch in range(2):
        for features, targets in loader:
            inputs.copy_(features)
            loss = F.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        right = 0
        with torch.no_grad():
            for inputs, targets in test_loader:
                right += (model(inputs).argmax(1) == targets).sum().item()
        print("right", right / len(test_loader.dataset))
    """,
    told=("DDP303",),
)
SCRIPTS["a buffer of functions within a function, which one of them gives another loader's rows"] = Script(
    """
    def main():
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        test_loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        inputs = torch.zeros(loader.batch_size, 8)

        def train():
            for features, targets in loader:
                inputs.copy_(features)
                loss = F.cross_entropy(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

        def test():
            nonlocal inputs
            right = 0
            with torch.no_grad():
                for inputs, targets in test_loader:
                    right += (model(inputs).argmax(1) == targets).sum().item()
            return right / len(test_loader.dataset)

        for epoch in range(3):
            train()
            print("right", test())

    main()
    """,
    told=("DDP303",),
)

_SETTINGS = """
loader = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True)
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
seen = 0
for epoch in range(3):
    for inputs, targets in loader:
        outputs = model(inputs)
        loss = F.cross_entropy(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        {set}
        optimizer.step()
print("rate", round(optimizer.param_groups[0]["lr"], 6))
"""
_EXTREMES = """
loader = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True)
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    found = 0.0
    for inputs, targets in loader:
        outputs = model(inputs)
        loss = F.cross_entropy(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {keep}
    print("found", found)
"""

SCRIPTS |= on_three(
    {
        "the largest and the smallest number of an epoch, and of the training": Script(
            """
            loader = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            ever, widest = 0.0, torch.tensor(0.0)
            for epoch in range(3):
                low, high = float("inf"), float("-inf")
                for inputs, targets in loader:
                    outputs = model(inputs)
                    loss = F.cross_entropy(outputs, targets)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    low = min(low, outputs.min().item())
                    high = max(high, outputs.detach().max().item())
                    ever = max(outputs.detach().abs().max().item(), ever)
                    widest = torch.maximum(widest, outputs.detach().abs().max())
                print(f"range {low:.6f} {high:.6f} {high - low:.6f}")
                print(f"ever {ever:.6f} {widest.item():.6f}")
            """,
            same=("range", "ever"),
        ),
        "a rate that grows with the samples seen": Script(
            _SETTINGS.format(set='seen += inputs.size(0)\n        optimizer.param_groups[0]["lr"] = 0.1 * min(1.0, seen / 60)'),
            same=("rate",),
        ),
        "a rate that each batch's loss chooses": Script(
            _SETTINGS.format(set='for group in optimizer.param_groups:\n            group["lr"] = 0.1 if loss.item() < 0.6 else 0.04'),
            same=("rate",),
        ),
        "a rate that follows each batch's loss where that is large": Script(
            _SETTINGS.format(set='if loss.item() > 0.6:\n            optimizer.param_groups[0]["lr"] = 0.1 * loss.item() ** 2'),
            same=("rate",),
        ),
        "a plateau of the loss of each batch": Script(_SETTINGS.format(set="plateau.step(loss.item())"), same=("rate",)),
        "a plateau of the loss of each batch, by name": Script(_SETTINGS.format(set="plateau.step(metrics=loss.item())"), same=("rate",)),
    },
    rows=36,
)
SCRIPTS |= {
    f"no largest number of all ranks: {title}": Script(_EXTREMES.format(keep=keep), told=("DDP404",))
    for title, keep in {
        "the size of the largest": "found = max(found, abs(outputs.detach().max().item()))",
        "the smallest of the largest": "found = min(found, outputs.detach().max().item())",
        "a multiple": "found = max(found, -2 * outputs.detach().max().item())",
        "a total": "found += outputs.detach().max().item()",
        "one that fades": "found = max(0.9 * found, outputs.detach().max().item())",
    }.items()
}
SCRIPTS |= {
    f"{what} by the largest output": Script(_SETTINGS.format(set=text.format("outputs.detach().max().item()")), told=("DDP409",))
    for what, text in {
        "a rate": 'optimizer.param_groups[0]["lr"] = 0.1 * {}',
        "a plateau": "plateau.step({})",
        "a plateau, by name,": "plateau.step(epoch=None, metrics={})",
        "gradients clipped": "nn.utils.clip_grad_norm_(model.parameters(), {})",
    }.items()
}
_SENTENCES = """
from torch.nn.utils.rnn import pad_sequence

def collate(samples):
    inputs, targets = zip(*samples)
    return pad_sequence(inputs, batch_first=True), pad_sequence(targets, batch_first=True)

sentences = [(torch.sin(torch.arange(8.0 * n) + i).view(n, 8), 1 + (torch.arange(n) + i) % 3) for i in range(24) for n in (2 + i % 5,)]
loader = DataLoader(sentences, batch_size=4, shuffle=True, collate_fn=collate)
model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for inputs, targets in loader:
        outputs = model(inputs)
        mask = (targets != 0).float()
        each = F.cross_entropy(outputs.transpose(1, 2), targets, reduction="none")
        {loss}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
SCRIPTS |= {
    "a mean of each padded sentence's own mean": Script(
        _SENTENCES.format(loss="loss = ((each * mask).sum(1) / mask.sum(1)).mean()"),
    ),
    "a mean of each padded sentence's own mean, step by step": Script(
        _SENTENCES.format(
            loss="each = each * mask\n        own = each.sum(dim=1) / mask.sum(dim=1).clamp(min=1)\n        loss = 0.5 * own.mean()",
        ),
    ),
    "a mean of each padded sentence's total over its words": Script(
        _SENTENCES.format(loss="loss = (each.sum(1) / mask.sum(1)).mean()"), told=("DDP402",)
    ),
    "a mean of each padded sentence's own mean, and of all entries": Script(
        _SENTENCES.format(loss="loss = ((each * mask).sum(1) / mask.sum(1)).mean() + 0.1 * outputs.pow(2).mean()"), told=("DDP402",)
    ),
    "an iterator that a function is given, starts again and gives back": Script(
        """
        def train(loader, batches, model, optimizer):
            for i in range(len(loader)):
                try:
                    inputs, targets = next(batches)
                except StopIteration:
                    batches = iter(loader)
                    inputs, targets = next(batches)
                loss = F.cross_entropy(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            return batches

        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        batches = iter(loader)
        for epoch in range(3):
            batches = train(loader, batches, model, optimizer)
        """
    ),
    "a buffer of the function around, moved for each batch": Script(
        """
        def main():
            batch_size = 8
            loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=batch_size, shuffle=True, drop_last=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            inputs = torch.zeros(batch_size, 8)

            def train():
                nonlocal inputs
                for features, targets in loader:
                    inputs.copy_(features)
                    inputs = inputs.to("cpu")
                    loss = F.cross_entropy(model(inputs), targets)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()

            for epoch in range(3):
                train()

        main()
        """
    ),
    "totals of the function around": Script(
        """
        def main():
            loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            total = 0.0

            def train():
                nonlocal total
                for inputs, targets in loader:
                    loss = F.cross_entropy(model(inputs), targets)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    total += loss.item()

            for epoch in range(3):
                train()
                print(f"total {total:.6f}")

        main()
        """,
        same=("total",),
    ),
}
SCRIPTS["rows chosen of what may be None"] = Script(
    """
    class Prefetcher:
        def __init__(self, loader):
            self.loader = iter(loader)
            self.preload()

        def preload(self):
            try:
                self.inputs, self.targets = next(self.loader)
            except StopIteration:
                self.inputs, self.targets = None, None

        def next(self):
            batch = self.inputs, self.targets
            self.preload()
            return batch

    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        prefetcher = Prefetcher(loader)
        inputs, targets = prefetcher.next()
        while inputs is not None:
            outputs = model(inputs)
            keep = inputs[:, 0] > 0
            loss = F.cross_entropy(outputs[keep], targets[keep])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            inputs, targets = prefetcher.next()
    """
)
SCRIPTS["buffers for a batch, whose rows a loss combines"] = Script(
    """
    batch_size = 8
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=batch_size, shuffle=True, drop_last=True)
    rows = torch.zeros(batch_size, 8)
    kinds = torch.zeros(batch_size, dtype=torch.long)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for features, labels in loader:
            rows.copy_(features)
            kinds.copy_(labels)
            inputs, targets = rows, kinds
            inputs, targets = inputs.to("cpu"), targets.to("cpu")
            outputs = model(inputs)
            counts = torch.bincount(targets, minlength=2).to(outputs.dtype)
            loss = F.cross_entropy(outputs, targets, weight=len(targets) / (2 * counts.clamp(min=1)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
)
_BY_SENTENCE = _SENTENCES.format(loss="loss = ((each{masked}).sum(1) / mask.sum(1)).mean()").split("\n        optimizer.zero_grad()")[0]
_UPDATE = """
def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
_SCALED = """
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""
_SCALER = 'scaler = torch.amp.GradScaler("cuda", enabled=torch.cuda.is_available())\n'
SCRIPTS |= {
    "a mean of each padded sentence's own mean, scaled": Script(_SCALER + _BY_SENTENCE.format(masked=" * mask") + _SCALED),
    "a mean of each padded sentence's own mean, given to a function that steps": Script(
        _UPDATE + _BY_SENTENCE.format(masked=" * mask") + "\n        update(optimizer, loss)\n"
    ),
    "a mean of each padded sentence's total, given to a function that steps": Script(
        _UPDATE + _BY_SENTENCE.format(masked="") + "\n        update(optimizer, loss)\n", told=("DDP402",)
    ),
}
_VECTOR = """
    {setup}
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train():
        totals = {zeros}
        for inputs, targets in loader:
            loss = F.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            totals[0] += loss.item() * targets.size(0)
            totals[1] += targets.size(0)
        return float(totals[0] / totals[1])

    for epoch in range(3):
        mean = train()
        print(f"mean {{mean:.6f}}")
    """
SCRIPTS |= {
    "totals in the entries of a tensor": Script(_VECTOR.format(setup="", zeros="torch.zeros(2)"), same=("mean",)),
    "totals in the entries of an array": Script(_VECTOR.format(setup="import numpy as np\n", zeros="np.zeros(2)"), same=("mean",)),
    "totals in the entries of a tensor that a function gives": Script(
        _VECTOR.format(setup="from helpers import made", zeros="made(2)"),
        told=("DDP404",),
        files={"helpers.py": "from unseen import made\n"},
    ),
    "a list of the epochs' totals, over tensors that are split": Script(
        """
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
        curve = []
        for epoch in range(3):
            total = 0.0
            for inputs, targets in zip(x[:40].split(8), y[:40].split(8)):
                loss = F.cross_entropy(model(inputs), targets, reduction="sum")
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            curve.append(total)
        print("curve", [round(total, 6) for total in curve])
        """,
        same=("curve",),
    ),
}
SCRIPTS["losses of all outputs but the last, in a list that the network returns"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
            self.heads = nn.ModuleList([nn.Linear(8, 2) for _ in range(3)])

        def forward(self, rows):
            out = []
            for block, head in zip(self.blocks, self.heads):
                rows = torch.tanh(block(rows))
                out.append(head(rows))
            return out

    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for inputs, targets in loader:
            outputs = model(inputs)
            others = sum(F.cross_entropy(output, targets) for output in outputs[:-1])
            loss = F.cross_entropy(outputs[-1], targets) + 0.3 * others
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
)
_NAMED_TOTALS = """
    class Tracker:
        def __init__(self):
            self.totals, self.counts = {{}}, {{}}

        def update(self, key, value, n=1):
            self.totals[key] = self.totals.get(key, 0.0) + value * n
            self.counts[key] = self.counts.get(key, 0) + n

        def result(self):
            return {{key: self.totals[key] / self.counts[key] for key in self.totals}}

    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    others = DataLoader(TensorDataset(x[40:], y[40:]), batch_size=8)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        tracker = Tracker()
        for inputs, targets in loader:
            loss = F.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            {update}
        for name, value in tracker.result().items():
            print(f"mean {{value:.6f}}", name)
        shown = Tracker()
        with torch.no_grad():
            for inputs, targets in others:
                shown.update("loss", F.cross_entropy(model(inputs), targets).item(), len(targets))
        print(f"mean of others {{shown.result()['loss']:.6f}}")
    """
SCRIPTS |= {
    f"totals in the dicts of an object, {how}": Script(_NAMED_TOTALS.format(update=update), same=("mean",), told=told)
    for how, update, told in (
        ("by samples", 'tracker.update("loss", loss.item(), n=len(targets))', ()),
        ("by batches", 'tracker.update("loss", loss.item())', ()),
        ("under a name of the batch", 'tracker.update(f"kind {targets[0].item()}", loss.item())', ("DDP404",)),
        ("where the loss is high", 'if loss.item() > 0.6:\n                tracker.update("loss", loss.item())', ("DDP404",)),
        ("counted as well", 'tracker.update("count", len(targets))\n            tracker.update("loss", loss.item())', ()),
    )
}
SCRIPTS["two steps on each batch of an iterator"] = Script(
    """
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        total, count = 0.0, 0
        batches = iter(loader)
        while True:
            batch = next(batches, None)
            if batch is None:
                break
            inputs, targets = batch
            for _ in range(2):
                loss = F.cross_entropy(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(targets)
            count += len(targets)
        print(f"mean {total / count:.6f}")
    """,
    same=("mean",),
)
_SHUFFLED = """
    def train({names}):
        order = torch.randperm(len(rows))
        rows, kinds = rows[order], kinds[order]
        total = 0.0
        for start in range(0, len(rows), 8):
            inputs, targets = rows[start : start + 8], kinds[start : start + 8]
            loss = F.cross_entropy(model(inputs), targets) / level
            level = 0.9 * level + 0.1 * loss.item()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        return {names}, total

    rows, kinds, level = x[:40], y[:40], 1.0
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        {names}, total = train({names})
        print(f"total {{total:.6f}}")
    """
SCRIPTS["rows, and a number, that a function is given, changes and gives back"] = Script(
    _SHUFFLED.format(names="rows, kinds, level"), same=("total",)
)
_COUNTED = """
    class Score:
        def __init__(self):
            self.right, self.total = 0, 0

        def note(self, hit):
            self.right += hit
            self.total += 1

    {define}

    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        seen = {start}
        for inputs, targets in loader:
            outputs = model(inputs)
            loss = F.cross_entropy(outputs, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            {count}
        print("seen", {shown})
    """
_ROWS = """
    def rows(outputs):
        count = 0
        for row in outputs:
            count += 1
        return count
"""
_NOTED = """
    def note(seen, outputs, targets):
        for i in range(len(targets)):
            if outputs[i].argmax() == targets[i]:
                seen.note(1)
            else:
                seen.note(0)
"""
_OBJECT = "seen.right, seen.total"
_AT_PLACES = "for i, label in enumerate(targets):\n                seen[i] += 1"
SCRIPTS |= {
    f"counted {how}": Script(_COUNTED.format(define=define, start=start, count=count, shown=shown), same=("seen",), told=told)
    for how, define, start, count, shown, told in (
        ("by a function, sample by sample", _ROWS, "0", "seen += rows(outputs)", "seen", ()),
        ("by a generator over samples", "", "0", "seen += sum(1 for row in outputs)", "seen", ()),
        ("by the numbers of samples", "", "0", "for i in range(len(targets)):\n                seen += 1", "seen", ()),
        ("in a list, sample by sample", "", "[0, 0]", "for label in targets:\n                seen[int(label)] += 1", "seen", ()),
        ("in a list, by places in the batch", "", "[0] * 48", _AT_PLACES, "seen", ("DDP404",)),
        ("by an object, sample by sample", "", "Score()", "for i in range(len(targets)):\n                seen.note(1)", _OBJECT, ()),
        ("by an object, by the samples' answers", _NOTED, "Score()", "note(seen, outputs, targets)", _OBJECT, ("DDP404",)),
        ("by an object, by each batch's loss", "", "Score()", "seen.note(1 if loss.item() < 0.6 else 0)", _OBJECT, ("DDP404",)),
        ("by an object, where the loss is low", "", "Score()", "if loss.item() < 0.6:\n                seen.note(1)", _OBJECT, ("DDP404",)),
        ("in a tensor, by each batch's loss", "", "torch.zeros(2)", "seen[0] += 1 if loss.item() < 0.6 else 0", "seen", ("DDP404",)),
        ("as a flag, where the loss is low", "", "False", "if loss.item() < 0.6:\n                seen = True", "seen", ("DDP404",)),
        ("in a set, where the loss is low", "", "set()", "if loss.item() < 0.6:\n                seen.add(epoch)", "seen", ("DDP404",)),
        ("in a set that is shown in a text", "", "set()", "if loss.item() < 0.6:\n                seen.add(1)", 'f"{seen}"', ("DDP404",)),
    )
}
_AVERAGED = """
    import copy

    feed = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    held = DataLoader(TensorDataset(x, y), batch_size=8)
    net = nn.Linear(8, 2)
    mean = {copied}
    if os.path.exists("earlier.pt"):
        net.load_state_dict(torch.load("earlier.pt"))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in feed:
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                for name, weight in net.named_parameters():
                    {held}.mul_(0.9).add_(weight, alpha=0.1)
        lost = 0.0
        with torch.no_grad():
            for rows, kinds in held:
                lost += F.cross_entropy({scores}, kinds, reduction="sum").item()
        print(f"lost {{lost:.9f}}")
"""
_COPY = ("copy.deepcopy(net)", "dict(mean.named_parameters())[name]", "mean(rows)")
_DICT = (
    "{n: p.detach().clone() for n, p in net.named_parameters()}",
    "mean[name]",
    'F.linear(rows, mean["weight"], mean["bias"])',
)
SCRIPTS |= {
    f"an average of weights that nothing seeds, which begins as {how}": Script(
        _AVERAGED.format(copied=copied, held=held, scores=scores), same=("lost",)
    )
    for how, (copied, held, scores) in (("a copy of the model", _COPY), ("a dict of copies", _DICT))
}
_TEXT = """
    import logging
    import sys

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)


    class Losses:
        def __init__(self):
            {start}

        def update(self, value, n):
            {update}

        def {name}(self):
            {shown}


    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        losses = Losses()
        for inputs, targets in loader:
            loss = F.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.update(loss.item(), len(targets))
        {show}
"""
_LISTED = ("self.seen = []", "self.seen.append(value)", 'return f"{sum(self.seen) / len(self.seen):.9f}"')
_PAIRED = (
    "self.seen = {}",
    'total, count = self.seen.get("loss", (0.0, 0)); self.seen["loss"] = (total + value * n, count + n)',
    "return f\"{self.seen['loss'][0] / self.seen['loss'][1]:.9f}\"",
)
_TOTAL = (
    "self.total, self.count = 0.0, 0",
    "self.total += value * n; self.count += n",
    'return f"{self.total / self.count:.9f}"',
)
_PRINTED = 'print("mean", losses)'
SCRIPTS |= {
    f"the text that an object makes of {what}": Script(
        _TEXT.format(start=start, update=update, shown=shown, name=name, show=show), same=("mean",)
    )
    for what, (start, update, shown), name, show in (
        ("a list, in an f-string", _LISTED, "__str__", 'print(f"mean {losses}")'),
        ("a dict of pairs", _PAIRED, "__repr__", _PRINTED),
        ("a list, logged", _LISTED, "__str__", 'logging.getLogger("run").info("mean %s", losses)'),
        ("its totals", _TOTAL, "__str__", _PRINTED),
        ("its totals, by str", _TOTAL, "__repr__", 'print("mean " + str(losses))'),
    )
}
_RUNS = """
    import copy

    {seeds}


    def samples(count, seed):
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randn(count, 8, generator=generator)
        return rows, (rows[:, 0] > 0).long()


    for run in range(2):
        {seeded}
        loader = DataLoader(TensorDataset(*samples(40, 3)), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        {beside}
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for inputs, targets in loader:
                outputs = model(inputs)
                with torch.no_grad():
                    soft = beside(inputs).softmax(1)
                loss = F.cross_entropy(outputs, targets) + F.mse_loss(outputs.softmax(1), soft)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print(f"run {{run}}", round(model.weight.sum().item(), 9), round(beside.weight.sum().item(), 9))
"""
SCRIPTS |= {
    f"several trainings, seeded {when}, each with {what}": Script(
        _RUNS.format(seeds=seeds, seeded=seeded, beside=beside), same=("run 0",) if seeds else ("run",)
    )
    for when, seeds, seeded in (("by themselves", "", "torch.manual_seed(7 + run)"), ("once", "torch.manual_seed(7)", 'print("next")'))
    for what, beside in (("a teacher of its own", "beside = nn.Linear(8, 2)"), ("a copy of its model", "beside = copy.deepcopy(model)"))
}
SCRIPTS |= {
    "outputs of a forward in a dict beside those that the loss reads": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.head, self.side = nn.Linear(8, 8), nn.Linear(8, 2), nn.Linear(8, 8)

            def forward(self, rows):
                hidden = self.body(rows).tanh()
                return {"side": self.side(hidden).pow(2).mean(1)}, self.head(hidden)


        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for inputs, targets in loader:
                others, outputs = model(inputs)
                loss = F.cross_entropy(outputs, targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """
    ),
    "a queue of features of earlier batches that a coupled loss is computed against": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        queue = torch.zeros(20, 2)
        for epoch in range(3):
            for inputs, targets in loader:
                outputs = model(inputs)
                keys = F.normalize(outputs.detach(), dim=1)
                spread = torch.logsumexp(outputs @ queue.t(), dim=1).mean()
                queue = torch.cat([keys, queue])[:20]
                loss = F.cross_entropy(outputs, targets) + spread
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """
    ),
    "a number trained beside a model of which another optimizer trains a part": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        log_scale = nn.Parameter(torch.zeros(1))
        optimizer = torch.optim.SGD([*model.parameters(), log_scale], lr=0.1)
        bias_optimizer = torch.optim.SGD([model.bias], lr=0.05)
        for epoch in range(3):
            for inputs, targets in loader:
                loss = F.cross_entropy(model(inputs), targets) * torch.exp(-log_scale[0]) + log_scale[0]
                optimizer.zero_grad()
                bias_optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                bias_optimizer.step()
        torch.save(model, "whole.pt")
        """,
        apart=("keys",),
    ),
}
_TWO_MODULES = """
    import sys

    from logs import Tee


    class Run:
        def __init__(self):
            sys.stdout = Tee("printed.txt")
            self.loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
            self.model = nn.Linear(8, 2)
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

        def train(self):
            for epoch in range(3):
                for inputs, targets in self.loader:
                    loss = F.cross_entropy(self.model(inputs), targets)
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                print(f"epoch {epoch}")
            sys.stdout.flush()


    Run().train()
"""
_TEE = """
import sys


class Tee:
    def __init__(self, path):
        self.screen = sys.stdout
        self.file = open(path, "w")

    def write(self, text):
        self.screen.write(text)
        self.file.write(text)

    def flush(self):
        self.screen.flush()
        self.file.flush()
"""
SCRIPTS |= {
    "output that another module's class sends to a file, too": Script(_TWO_MODULES, same=("epoch",), files={"logs.py": _TEE}),
    "rows of a coupled loss that a function gives back": Script(
        """
        def update(model, optimizer, inputs, targets):
            outputs = model(inputs)
            loss = 0.05 * F.cross_entropy(outputs, targets, reduction="sum")
            loss = loss + ((outputs[:, 0] - targets) ** 2).mean().sqrt()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return outputs, loss


        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for epoch in range(3):
            guesses, labels = [], []
            for inputs, targets in loader:
                outputs, loss = update(model, optimizer, inputs, targets)
                guesses.append(outputs.argmax(1))
                labels.append(targets)
            right = (torch.cat(guesses) == torch.cat(labels)).double().mean().item()
            print(f"right {right:.9f}")
        """,
    ),
    "rows cut of a coupled loss's that a function gives back": Script(
        """
        def update(model, optimizer, inputs, targets):
            both = model(torch.cat([inputs, 0.9 * inputs]))
            outputs, others = both[: len(inputs)], both[len(inputs) :]
            gaps = outputs[:, 0].unsqueeze(1) - outputs[:, 0].unsqueeze(0)
            loss = F.relu(0.5 - gaps).mean() + F.cross_entropy(outputs, targets) + others.pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return outputs, loss


        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for epoch in range(3):
            right = 0
            for inputs, targets in loader:
                outputs, loss = update(model, optimizer, inputs, targets)
                for label, guess in zip(targets.tolist(), outputs.argmax(1).tolist()):
                    right += int(label == guess)
            print(f"right {right}")
        """,
    ),
    "an early stop by what dicts in a list hold": Script(
        """
        def score(outputs, targets):
            return {"loss": F.cross_entropy(outputs, targets).item(), "n": len(targets)}


        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        held = DataLoader(TensorDataset(x, y), batch_size=8)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        lowest = 1e9
        for epoch in range(4):
            for inputs, targets in loader:
                loss = F.cross_entropy(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            parts = []
            with torch.no_grad():
                for inputs, targets in held:
                    parts.append(score(model(inputs), targets))
            lost = sum(p["loss"] * p["n"] for p in parts) / sum(p["n"] for p in parts)
            print(f"lost {lost:.9f}")
            if lost > 0.99 * lowest:
                break
            lowest = lost
        """,
        same=("lost",),
    ),
    "an order that NumPy shuffles in each of several trainings, which seed it": Script(
        """
        import numpy as np

        for run in range(2):
            np.random.seed(run)
            torch.manual_seed(run)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(2):
                order = np.arange(40)
                np.random.shuffle(order)
                for start in range(0, 40, 8):
                    rows = order[start : start + 8]
                    loss = F.cross_entropy(model(x[rows]), y[rows])
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
        """
    ),
}
SCRIPTS |= {
    "batches that are cut before each of several trainings": Script(
        """
        import random


        def step(model, optimizer, inputs, targets):
            loss = F.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss


        for run in range(2):
            batches = list(zip(x[:40].split(8), y[:40].split(8)))
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(2):
                random.shuffle(batches)
                total = 0.0
                for inputs, targets in batches:
                    total += step(model, optimizer, inputs, targets).item()
                print(f"run {run}: {total / len(batches):.9f}")
        """,
        told=("DDP406",),
    ),
}
SCRIPTS |= {
    "a learning rate that each batch's loss sets, and the epoch's lowers": Script(
        """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        last = 0.0
        for epoch in range(4):
            total = 0.0
            for inputs, targets in loader:
                loss = F.cross_entropy(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                for group in optimizer.param_groups:
                    group["lr"] = 0.1 if loss.item() < 0.65 else 0.05
                optimizer.step()
                total += loss.item()
            print(f"train {total / len(loader):.9f}")
            if total > 0.9 * last:
                for group in optimizer.param_groups:
                    group["lr"] *= 0.5
            last = total
        """,
        same=("train",),
    ),
}
SCRIPTS |= {
    "the rest of a batch's parts, and of what a function gives": Script(
        """
        def measured(scores, kinds):
            return F.cross_entropy(scores, kinds, reduction="none"), scores, scores.pow(2).mean(1), len(kinds)


        loader = DataLoader(TensorDataset(x[:40], y[:40], torch.linspace(0.5, 1.5, 40)), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            total = count = 0
            for inputs, targets, *rest in loader:
                each, *others, n = measured(model(inputs * rest[0].unsqueeze(1)), targets)
                loss = (each * rest[0]).mean() + 0.1 * others[1].mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item() * n
                count += n
            print(f"train {total / count:.9f}")
        """,
        same=("train",),
    ),
}
SCRIPTS |= {
    "numbers of the parts that each batch is cut into, kept over the epoch": Script(
        """
        def coupled(first, second):
            return F.cross_entropy(first @ second.t(), torch.arange(len(first)))


        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True, drop_last=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        parts_seen = 0
        for epoch in range(3):
            hits, count, mean, seen = 0, 0, 0.0, 0
            for all_inputs, all_targets in loader:
                for inputs, targets in zip(all_inputs.chunk(2), all_targets.chunk(2)):
                    outputs = model(inputs)
                    loss = F.cross_entropy(outputs, targets) + 0.3 * coupled(outputs, model(0.9 * inputs))
                    (loss / 2).backward()
                    parts_seen += 1
                    if parts_seen % 2 == 0:
                        optimizer.step()
                        optimizer.zero_grad()
                    hits += (outputs.argmax(1) == targets).sum().item()
                    count += len(targets)
                    seen += 1
                    mean += (loss.item() - mean) / seen
            print(f"hits {hits} of {count}, loss {mean:.9f}")
        """,
        same=("hits",),
    ),
}
_PADDED = """
    from torch.nn.utils.rnn import pad_sequence


    class Words(Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, index):
            length = 2 + (7 * index) % 6
            return torch.arange(index, index + length) % 9 + 1, torch.arange(index, index + length) % 3 + 1


    def collate(samples):
        words, tags = zip(*samples)
        return pad_sequence(words, batch_first=True), pad_sequence(tags, batch_first=True)


    loader = DataLoader(Words(), batch_size=8, shuffle=True, collate_fn=collate)
    model = nn.Sequential(nn.Embedding(10, 6), nn.Linear(6, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for words, tags in loader:
            outputs = model(words)
            mask = tags != 0
            each = F.cross_entropy(outputs.transpose(1, 2), tags, reduction="none")
            loss = (each * mask).sum() / mask.sum()
            size = {size}
            optimizer.zero_grad()
            {backward}
            optimizer.step()
"""
SCRIPTS |= {
    f"padded tokens, counted by a mask, {what}": Script(_PADDED.format(size=size, backward=backward), told=told)
    for what, size, backward, told in (
        ("and beside them an average over all", "0.3 * outputs.abs().mean()", "(loss + size).backward()", ("DDP402",)),
        ("and an average over all in a list", "0.3 * outputs.abs().mean()", "torch.autograd.backward([loss, size])", ("DDP402",)),
        ("and the size of the weights", "0.3 * model[1].weight.abs().mean()", "(loss + size).backward()", ()),
    )
}
SCRIPTS["an order drawn beside parameters that were drawn, too"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(8, 2) * 0.1)

        def forward(self, rows):
            return rows @ self.weight


    class Trainer:
        def __init__(self):
            self.x, self.y = x[:40], y[:40]
            self.net = Net()
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def fit(self):
            for epoch in range(4):
                order, total = torch.randperm(len(self.x)), 0.0
                self.x, self.y = self.x[order], self.y[order]
                for start in range(0, len(self.x), 10):
                    rows, kinds = self.x[start : start + 10], self.y[start : start + 10]
                    self.optimizer.zero_grad()
                    loss = F.cross_entropy(self.net(rows), kinds)
                    loss.backward()
                    self.optimizer.step()
                    total += loss.item() * len(rows)
                print("loss", epoch, f"{total / 40:.5f}")


    torch.manual_seed(0)
    Trainer().fit()
    """,
    same=("loss",),
)
SCRIPTS["losses of an epoch out of the history, where the epoch weighs the loss"] = Script(
    """
    torch.manual_seed(0)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    samples, history = list(zip(x[:40], y[:40])), []
    for epoch in range(3):
        first = len(history)
        for start in range(0, len(samples), 8):
            part = samples[start : start + 8]
            rows, kinds = torch.stack([row for row, _ in part]), torch.stack([kind for _, kind in part])
            optimizer.zero_grad()
            loss = min(1.0, 0.5 + 0.25 * epoch) * F.cross_entropy(net(rows), kinds)
            loss.backward()
            optimizer.step()
            history.append(loss.item())
        print("loss", epoch, f"{sum(history[first:]) / len(history[first:]):.5f}")
    """,
    same=("loss",),
)
