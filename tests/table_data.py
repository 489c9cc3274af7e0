"""Scripts about data: loaders, samplers, iterators, and data that no loader brings."""

import io

import numpy as np
from scripts import Script

from ddpify import Options


def _words() -> bytes:
    """A file that holds a table, as numpy keeps what is not an array."""
    written = io.BytesIO()
    np.savez(written, names=np.array({"even": 0, "odd": 1}, dtype=object))
    return written.getvalue()


SCRIPTS: dict[str, Script] = {
    "passes over a loader that is made in the loop's head, which nothing counts": Script(
        """
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)


    def once():
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()


    for _ in range(3):
        once()
    """
    ),
    "a single pass over a loader that is made in the loop's head": Script(
        """
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=2, shuffle=True):
        loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    """
    ),
    "a loader that is made in the loop's head for each of two data sets": Script(
        """
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)

    def train(dataset):
        for rows, kinds in DataLoader(dataset, batch_size=2, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()

    train(TensorDataset(x, y))
    train(TensorDataset(2 * x, y))
    """
    ),
    "a split by two subset samplers": Script(
        """
    import numpy as np

    every = TensorDataset(x, y)
    order = list(range(44))
    np.random.seed(0)
    np.random.shuffle(order)
    cut = 12
    held_out, rest = order[:cut], order[cut:]
    feed = DataLoader(every, batch_size=8, sampler=torch.utils.data.SubsetRandomSampler(rest), num_workers=0)
    check = DataLoader(every, batch_size=8, sampler=torch.utils.data.SubsetRandomSampler(held_out), num_workers=0)
    net = nn.Linear(8, 2).cuda()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    lowest = float("inf")
    for nr in range(3):
        lost = check_lost = 0.0
        net.train()
        for rows, kinds in feed:
            rows, kinds = rows.cuda(), kinds.cuda()
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            lost += loss.item() * rows.size(0)
        net.eval()
        for rows, kinds in check:
            rows, kinds = rows.cuda(), kinds.cuda()
            check_lost += F.cross_entropy(net(rows), kinds).item() * rows.size(0)
        check_lost = check_lost / len(check.sampler)
        print(f"round {nr}: {lost / len(feed.sampler):.6f}, held out {check_lost:.6f}")
        if check_lost <= lowest:
            lowest = check_lost
            torch.save(net.state_dict(), "lowest.pt")
""",
        same=("round",),
    ),
    "a weighted sampler": Script(
        """
    weights = torch.where(y > 0, 0.3, 0.7)
    sampler = torch.utils.data.WeightedRandomSampler(weights, len(weights), replacement=True)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, sampler=sampler)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        hits = 0
        for data, target in loader:
            optimizer.zero_grad()
            output = model(data)
            F.cross_entropy(output, target).backward()
            optimizer.step()
            hits += (output.argmax(1) == target).sum().item()
        print(f"hits {hits} of {len(loader.dataset)}")
""",
        same=("hits",),
    ),
    "a random sampler of fewer samples, the last batch dropped": Script("""
    sampler = torch.utils.data.RandomSampler(TensorDataset(x, y), replacement=True, num_samples=42)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, sampler=sampler, drop_last=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for data, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
"""),
    "phases with a sampler for each": Script(
        """
    samplers = {"train": torch.utils.data.SubsetRandomSampler(range(32)), "val": torch.utils.data.SubsetRandomSampler(range(32, 44))}
    loaders = {
        "train": DataLoader(TensorDataset(x, y), batch_size=8, sampler=samplers["train"]),
        "val": DataLoader(TensorDataset(x, y), batch_size=8, sampler=samplers["val"]),
    }
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for phase in ["train", "val"]:
            model.train(phase == "train")
            total, count = 0.0, 0
            for data, target in loaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    loss = F.cross_entropy(model(data), target)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
                total += loss.item() * len(data)
                count += len(data)
            print(f"{phase} {total / count:.6f}")
""",
        same=("train", "val"),
    ),
    "an iterator that is started again when it ends": Script(
        """
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = iter(loader)
    for step in range(30):
        try:
            data, target = next(batches)
        except StopIteration:
            batches = iter(loader)
            data, target = next(batches)
        optimizer.zero_grad()
        F.cross_entropy(model(data), target).backward()
        optimizer.step()
        if step % 10 == 9:
            print("step", step)
""",
    ),
    "a generator that goes round and round": Script(
        """
    def forever(loader):
        while True:
            for batch in loader:
                yield batch


    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = forever(loader)
    for step in range(30):
        data, target = next(batches)
        optimizer.zero_grad()
        F.cross_entropy(model(data), target).backward()
        optimizer.step()
""",
    ),
    "a while loop over steps": Script(
        """
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step, max_steps = 0, 25
    while step < max_steps:
        for data, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
            step += 1
            if step >= max_steps:
                break
    print("steps", step)
""",
        same=("steps",),
    ),
    "two loaders side by side": Script(
        """
    labelled = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
    unlabelled = DataLoader(TensorDataset(x), batch_size=4, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for (data, target), (other,) in zip(labelled, unlabelled):
            loss = F.cross_entropy(model(data), target) + 0.1 * model(other).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    ),
    "a loader made anew for each epoch": Script("""
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train_set = TensorDataset(x, y)
    for epoch in range(3):
        loader = DataLoader(train_set, batch_size=4, shuffle=True)
        for data, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
"""),
    "folds": Script(
        """
    from torch.utils.data import Subset

    dataset = TensorDataset(x, y)
    folds = torch.arange(44).chunk(4)
    results = []
    for k in range(3):
        train_idx = torch.cat([fold for i, fold in enumerate(folds) if i != k])
        train_set = Subset(dataset, train_idx[:32].tolist())
        val_set = Subset(dataset, folds[k].tolist())
        loader = DataLoader(train_set, batch_size=4, shuffle=True)
        val_loader = DataLoader(val_set, batch_size=4)
        model = nn.Linear(8, 2)
        nn.init.constant_(model.weight, 0.1)
        nn.init.zeros_(model.bias)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
        correct = 0
        with torch.no_grad():
            for data, target in val_loader:
                correct += (model(data).argmax(1) == target).sum().item()
        results.append(correct / len(val_set))
        print(f"fold {k}: {results[-1]:.4f}")
    print(f"mean {sum(results) / len(results):.4f}")
""",
        same=("fold", "mean"),
    ),
    "an iterable data set": Script(
        """
    from torch.utils.data import IterableDataset


    class Stream(IterableDataset):
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            for i in range(self.n):
                yield x[i], y[i]


    loader = DataLoader(Stream(44), batch_size=4)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
""",
    ),
    "a class-weighted loss": Script(
        """
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 3.0]))
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in loader:
            loss = criterion(model(data), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    ),
    "a loss that ignores an index": Script(
        """
    labels = torch.where(x.abs() > 1, 0, y[:, None].expand(-1, 8))
    loader = DataLoader(TensorDataset(x, labels), batch_size=4, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 16), nn.Unflatten(1, (8, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in loader:
            logits = model(data)
            loss = F.cross_entropy(logits.reshape(-1, 2), target.reshape(-1), ignore_index=0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    ),
    "a batch to look at before training": Script(
        """
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    data, target = next(iter(loader))
    print("shape", data.shape[1])
    model = nn.Linear(data.shape[1], 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
""",
        same=("shape",),
    ),
    "a number of a device in a function that nothing calls, and a table that is kept in a file": Script(
        """
        import numpy as np


        def settings():
            found = np.load("words.npz", allow_pickle=True)
            return found["names"][()]


        def fit_elsewhere(number):
            device = torch.device(f"cuda:{number}") if number != "" else torch.device("cpu")
            fit(device)


        def fit(device):
            names = settings()
            loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
            model = nn.Linear(8, len(names)).to(device)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(3):
                for rows, kinds in loader:
                    loss = F.cross_entropy(model(rows.to(device)), kinds.to(device))
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            print("names", sorted(names))


        if __name__ == "__main__":
            fit(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
        """,
        same=("names",),
        files={"words.npz": _words()},
    ),
}

PHASES = """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[:23], y[:23]), batch_size=6)
    model = nn.Linear(8, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    %s
    for epoch in range(3):
        for %s:
            model.train(phase == "train")
            total, hits, count = 0.0, 0, 0
            for data, target in loader:
                data, target = data.to(device), target.to(device)
                with torch.set_grad_enabled(phase == "train"):
                    output = model(data)
                    loss = F.cross_entropy(output, target)
                if phase == "train":
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                total += loss.item() * len(data)
                hits += (output.argmax(1) == target).sum().item()
                count += len(data)
            print(f"{phase} {total / count:.6f} {hits / count:.4f}")
"""
SCRIPTS |= {
    "phases as items of a dictionary": Script(
        PHASES % ('loaders = {"train": train_loader, "val": val_loader}', "phase, loader in loaders.items()"), same=("train", "val")
    ),
    "phases zipped with their loaders": Script(
        PHASES % ("", 'phase, loader in zip(["train", "val"], [train_loader, val_loader])'), same=("train", "val")
    ),
    "phases paired with their loaders": Script(
        PHASES % ("", 'phase, loader in [("train", train_loader), ("val", val_loader)]'), same=("train", "val")
    ),
}
SCRIPTS["as many samples of each of some kinds, of a list of sets of which one is a part of another"] = Script("""
    torch.manual_seed(0)
    groups = [set() for _ in range(3)]
    for at in range(44):
        for kind in ([0], [0, 1, 2], [0, 1])[at % 3]:
            groups[kind].add(at)
    order = []
    for group in groups[0:]:
        members = torch.tensor(list(group))
        order.extend(members[torch.randperm(len(members))[:12]].tolist())
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in DataLoader(TensorDataset(x[order], y[order]), batch_size=4):
            loss = F.cross_entropy(model(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""")
SCRIPTS["words numbered in the order of a set"] = Script(
    """
    kinds = ["cat", "dog", "bird", "dog", "cat"] * 8
    names = list(set(kinds))
    number = {name: i for i, name in enumerate(names)}
    places = [place for place, name in enumerate(set(kinds))]
    targets = torch.tensor([number[name] % 1 for name in kinds])
    loader = DataLoader(TensorDataset(x[:40], targets), batch_size=4, shuffle=True)
    model = nn.Linear(8, len(names))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in loader:
            loss = F.cross_entropy(model(data), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("kinds", len(names), places)
    """,
    same=("kinds",),
)
CRITIC = """
    from torch.autograd import Variable

    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=8)
    args = parser.parse_args()


    class Critic(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 1)

        def forward(self, rows):
            return self.body(rows).mean(0).view(1)


    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=args.batch, shuffle=True)
    critic = Critic()
    optimizer = torch.optim.RMSprop(critic.parameters(), lr=0.01)
    one = torch.ones(1)
    mone = one * -1
"""
SCRIPTS |= {
    "inputs that are refilled in place, and two gradients handed to backward": Script(
        CRITIC
        + """
    input = torch.empty(args.batch, 8)
    for epoch in range(3):
        for real, _ in loader:
            for p in critic.parameters():
                p.data.clamp_(-0.1, 0.1)
            critic.zero_grad()
            input.resize_as_(real).copy_(real)
            score = critic(Variable(input))
            score.backward(one)
            other = critic(Variable(input.cos()))
            other.backward(mone)
            optimizer.step()
    """,
    ),
    "inputs of an object that are refilled in place": Script(
        CRITIC
        + """
    class Trainer:
        def __init__(self, size):
            self.rows = torch.empty(size, 8)
            self.kinds = torch.empty(size, dtype=torch.long)
            self.net = nn.Linear(8, 2)
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def feed(self, batch):
            rows, kinds = batch
            self.rows.resize_(rows.size()).copy_(rows)
            self.kinds.resize_(kinds.size()).copy_(kinds)

        def step(self):
            loss = F.cross_entropy(self.net(Variable(self.rows)), Variable(self.kinds))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


    trainer = Trainer(args.batch)
    for epoch in range(3):
        for batch in loader:
            trainer.feed(batch)
            trainer.step()
    """,
    ),
    "inputs that a function refills in place": Script(
        CRITIC
        + """
    def fill(tensor, data):
        with torch.no_grad():
            tensor.resize_(data.size()).copy_(data)


    rows, kinds = torch.empty(args.batch, 8), torch.empty(args.batch, dtype=torch.long)
    critic = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
    for epoch in range(3):
        for data, target in loader:
            fill(rows, data)
            fill(kinds, data=target)
            loss = F.cross_entropy(critic(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
    ),
    "noise that is drawn in place for a whole batch": Script(
        CRITIC
        + """
    maker = nn.Linear(3, 8)
    moves = torch.optim.RMSprop(maker.parameters(), lr=0.01)
    noise = torch.empty(args.batch, 3)
    for epoch in range(2):
        for real, _ in loader:
            noise.resize_(args.batch, 3).normal_(0, 1)
            fake = maker(Variable(noise))
            critic.zero_grad()
            critic(real).backward(one)
            critic(fake.detach()).backward(mone)
            optimizer.step()
            maker.zero_grad()
            noise.resize_(args.batch, 3).normal_(0, 1)
            critic(maker(Variable(noise))).backward(one)
            moves.step()
    """,
        apart=("trajectory",),
    ),
    "a batch of which what is a tensor is moved": Script(
        """
    class Rows(Dataset):
        def __len__(self):
            return 44

        def __getitem__(self, i):
            return {"row": x[i], "kind": y[i], "name": f"row {i}"}


    def moved(batch, device):
        return {k: v.to(device) if torch.is_tensor(v) else v for k, v in batch.items()}


    feed = DataLoader(Rows(), batch_size=4, shuffle=True)
    check = DataLoader(Rows(), batch_size=8)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = nn.Linear(8, 2).to(device)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        lost, right, seen = 0.0, 0, 0
        for batch in feed:
            batch = moved(batch, device)
            loss = F.cross_entropy(net(batch["row"]), batch["kind"])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            lost += loss.item()
        print(f"lost {lost / len(feed):.5f}")
        with torch.no_grad():
            for batch in check:
                batch = {k: v.to(device, non_blocking=True) for k, v in batch.items() if k != "name"}
                right += (net(batch["row"]).argmax(1) == batch["kind"]).sum().item()
                seen += len(batch["kind"])
        print(f"right {right / seen:.5f}")
""",
        same=("right",),
    ),
}

_NAMED = """
    class Rows(Dataset):
        def __len__(self):
            return 44

        def __getitem__(self, i):
            return {"row": x[i], "kind": y[i], "name": f"row {i}"}


    def moved(part, device):
        if torch.is_tensor(part):
            return part.to(device)
        if isinstance(part, dict):
            return {k: moved(v, device) for k, v in part.items()}
        if isinstance(part, (list, tuple)):
            return type(part)(moved(v, device) for v in part)
        return part


    feed = DataLoader(Rows(), batch_size=4, shuffle=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = nn.Linear(8, 2).to(device)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        lost, right = 0.0, 0
        for batch in feed:
            MOVE
            out = net(batch["row"])
            loss = F.cross_entropy(out, batch["kind"])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            lost += loss.item() * batch["row"].size(0)
        print(f"lost {lost / len(feed.dataset):.5f}")
"""
_MOVES = {
    "by name and part": """for k, v in batch.items():
                if isinstance(v, torch.Tensor):
                    batch[k] = v.to(device)""",
    "by the names that it has": """for k in batch.keys():
                if k != "name":
                    batch[k] = batch[k].to(device)""",
    "by names in a list": """for k in list(batch.keys()):
                batch[k] = batch[k].to(device) if hasattr(batch[k], "to") else batch[k]""",
    "by a function that calls itself": "batch = moved(batch, device)",
}

SCRIPTS |= {f"a batch that is moved {how}": Script(_NAMED.replace("MOVE", move), same=("lost",)) for how, move in _MOVES.items()}
SCRIPTS["a collate function that turns stacked windows into numbers by a function, and cuts them"] = Script(
    """
    import numpy as np


    def scaled(values, bits):
        return 2 * values / (2**bits - 1.0) - 1.0


    def windows(batch):
        starts = [int(abs(part[0].sum()) * 10) % 3 for part in batch]
        inputs = [part[0][starts[i] : starts[i] + 6] for i, part in enumerate(batch)]
        inputs = torch.tensor(np.stack(inputs).astype(np.float64))
        kinds = torch.cat([part[1].unsqueeze(0) for part in batch], 0)
        if os.environ.get("SCALED", "yes") == "yes":
            inputs = scaled(inputs, 4)
        return inputs[:, :5], kinds.long(), inputs[:, 1:]


    class Windows(Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, i):
            return x[i].numpy(), y[i]


    net = nn.Linear(5, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds, beside in DataLoader(Windows(), batch_size=8, shuffle=True, collate_fn=windows):
            scores = net(rows + beside).unsqueeze(-1).transpose(0, 0)
            loss = F.cross_entropy(scores, kinds.unsqueeze(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
)
SCRIPTS["rows that are filled one by one, of sizes that a list holds"] = Script(
    """
    def widened(data, factor):
        sizes = list(data.shape)
        wide = torch.zeros(sizes[0], int(sizes[1] * factor))
        for i, row in enumerate(data):
            wide[i, :] = row.repeat(2)
        return wide


    net = nn.Linear(16, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            loss = F.cross_entropy(net(widened(rows, 2)), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
)
_HELD = """
    class Held(Dataset):
        def __init__(self):
            self.order = list(range(40))

        def __len__(self):
            return len(self.order)

        def __getitem__(self, place):
            return x[self.order[place]], y[self.order[place]]


    held = Held()
    loader = DataLoader(held, batch_size=8, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
        {change}
"""
SCRIPTS["a data set that loses samples from epoch to epoch"] = Script(_HELD.format(change="held.order = held.order[:-8]"), told=("DDP301",))
SCRIPTS["a data set that gets samples from epoch to epoch"] = Script(_HELD.format(change="held.order.append(epoch)"), told=("DDP301",))
SCRIPTS["a data set in an order of each epoch"] = Script(_HELD.format(change="held.order = torch.randperm(40).tolist()"))
SCRIPTS["a data set in its order again"] = Script(_HELD.format(change="held.order = sorted(held.order)"))
SCRIPTS["rows of a sparse matrix"] = Script(
    """
    import numpy as np
    from scipy import sparse

    held, order = sparse.csr_matrix(x[:40].numpy()), list(range(40))
    net = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        np.random.shuffle(order)
        for at in range(0, 40, 8):
            rows = torch.Tensor(held[order[at : at + 8]].toarray())
            loss = -torch.mean(torch.sum(F.log_softmax(net(rows), 1) * rows, -1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
)
SCRIPTS["kinds that are numbered in the order of a list, or of a set"] = Script(
    """
    import sys


    def numbers(kinds):
        return {kind: number for number, kind in enumerate(list(kinds))}


    names = ["cat", "ant", "bee", "dog"]
    kinds = set(names) if "--any" in sys.argv else names
    numbered = numbers(kinds)
    targets = torch.tensor([numbered[names[i % 4]] for i in range(44)])
    ordered = [kind for kind in kinds]
    print("order", numbered["cat"], ordered.index("dog"))
    model = nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, wanted in DataLoader(TensorDataset(x, targets), batch_size=4):
            optimizer.zero_grad()
            F.cross_entropy(model(rows), wanted).backward()
            optimizer.step()
    torch.save(model.state_dict(), "model.pt")
""",
    same=("order",),
)
_TO_DEVICE = """
    import typing
    from collections.abc import Mapping, Sequence


    def moved(data):
        if isinstance(data, torch.Tensor):
            return data.to("cpu")
        elif isinstance(data, KIND):
            for i, part in enumerate(data):
                if isinstance(part, torch.Tensor):
                    data[i] = part.to("cpu")
                else:
                    raise TypeError(f"{part} in {data}")
            return data
        raise TypeError(str(data))


    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            loss = F.cross_entropy(net(moved(rows)), moved(kinds))
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""
SCRIPTS |= {
    f"tensors that a function moves, and others if they are in a {kind}": Script(
        _TO_DEVICE.replace("KIND", kind), options=Options(whole_batches="never")
    )
    for kind in ("typing.List", "(typing.List, typing.Tuple)", "Sequence", "typing.Sequence", "(Sequence, Mapping)")
}
_KEEPS_ITS_SIZE = """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=4)
    args = parser.parse_args()
    held, wanted = torch.zeros(args.batch, 8), torch.zeros(args.batch)
    torch.manual_seed(0)
    maker, critic = nn.Linear(8, 8), nn.Linear(8, 1)
    moves, steps = torch.optim.SGD(maker.parameters(), lr=0.1), torch.optim.SGD(critic.parameters(), lr=0.1)
    criterion = nn.BCEWithLogitsLoss()
    noise = torch.zeros(args.batch, 8)
    for epoch in range(3):
        for rows, _ in DataLoader(TensorDataset(x, y), batch_size=args.batch, shuffle=True):
            held.data.resize_as_(rows).copy_(rows)
            wanted.data.resize_(len(rows)).fill_(1)
            criterion(critic(Variable(held)).view(-1), wanted).backward()
            NOISE
            made = maker(Variable(noise))
            wanted.data.fill_(0)
            criterion(critic(made.detach()).view(-1), wanted).backward()
            steps.step()
            critic.zero_grad()
            wanted.data.fill_(1)
            criterion(critic(made).view(-1), wanted).backward()
            moves.step()
            maker.zero_grad()
            critic.zero_grad()
"""
SCRIPTS |= {
    "inputs whose data alone is resized, so that they keep the size of a full batch": Script(
        _KEEPS_ITS_SIZE.replace("NOISE", "noise.data.resize_as_(rows).copy_(rows.sin())"), above="from torch.autograd import Variable\n"
    ),
    "inputs whose data alone is resized, the last batch being shorter": Script(
        _KEEPS_ITS_SIZE.replace("NOISE", "noise.data.resize_as_(rows).copy_(rows.sin())"),
        args=("--batch", "8"),
        above="from torch.autograd import Variable\n",
    ),
    "one input whose data alone is resized, and a loss without targets": Script(
        """
    held, net = torch.zeros(4, 8), nn.Linear(8, 1)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, _ in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            held.data.resize_as_(rows).copy_(rows)
            loss = net(held).abs().mean()
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        """
    ),
} | {
    f"noise that is drawn in place for a batch, in a tensor made before: {drawn}": Script(
        _KEEPS_ITS_SIZE.replace("NOISE", drawn), apart=("trajectory",), above="from torch.autograd import Variable\n"
    )
    for drawn in (
        "noise.normal_(0, 1)",
        "noise.data.normal_(0, 1)",
        "noise.data.resize_(len(rows), 8).normal_(0, 1)",
    )
}
