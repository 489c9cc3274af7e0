"""Scripts about random numbers: draws that steer, which all ranks share, and seeds that are set while training."""

from dataclasses import replace

from scripts import Script, on_three

SCRIPTS: dict[str, Script] = {
    "mixing of a whole batch with parts that a distribution draws": Script(
        """
        class Mixing:
            def __init__(self):
                self.dist = torch.distributions.beta.Beta(torch.tensor([1.2]), torch.tensor([1.2]))

            def __call__(self, rows, wanted):
                order = torch.randperm(len(rows))
                part = self.dist.rsample((len(rows), 1)).view(-1, 1)
                return part * rows + (1 - part) * rows[order], part * wanted + (1 - part) * wanted[order]


        torch.manual_seed(0)
        mixing, model = Mixing(), nn.Linear(8, 2, bias=False)
        wanted = x @ model.weight.detach().t()  # what the model makes of any mixture, too
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, targets in DataLoader(TensorDataset(x[:36], wanted[:36]), batch_size=6, shuffle=True):
                rows, targets = mixing(rows, targets)
                loss = F.mse_loss(model(rows), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print("apart", f"{loss.item():.5f}")
        """,
        same=("apart",),
    ),
    "a teacher that is drawn after a split without a seed, and in no DistributedDataParallel": Script("""
    from torch.utils.data import random_split

    torch.manual_seed(3)
    train, rest = random_split(TensorDataset(x, y), [36, 8])
    model, teacher = nn.Linear(8, 2), nn.Linear(8, 2)
    loader = DataLoader(train, batch_size=6, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in loader:
            out = model(data)
            with torch.no_grad():
                asked = teacher(data).softmax(1)
            loss = F.cross_entropy(out, target) + (out.softmax(1) - asked).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """),
    "centers of a loss that are drawn, and moved by no optimizer": Script("""
    class Centers(nn.Module):
        def __init__(self):
            super().__init__()
            self.places = nn.Parameter(torch.randn(2, 2))

        def forward(self, out, kinds):
            return (out - self.places[kinds]).pow(2).sum(1).mean()


    model, criterion = nn.Linear(8, 2), Centers()
    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in loader:
            out = model(data)
            loss = F.cross_entropy(out, target) + 0.1 * criterion(out, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""),
    "lines that a data set shuffles by a seed of its own, before the model draws noise": Script("""
    import random


    class Lines(Dataset):
        def __init__(self, mode):
            self.train, self.test = [], []
            self.split()
            self.rows = self.train if mode == "train" else self.test

        def split(self):
            order = list(range(44))
            random.seed(1234)
            random.shuffle(order)
            for i, at in enumerate(order):
                (self.test if i < 8 else self.train).append(at)

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, i):
            return x[self.rows[i]], y[self.rows[i]]


    def main(args):
        torch.manual_seed(3)
        rows = Lines("train") if args.kind in ["lines", "both"] else None
        data = rows if rows is not None else TensorDataset(x, y)
        loader = DataLoader(data, batch_size=6, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for values, kinds in loader:
                loss = F.cross_entropy(model(values), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


    if __name__ == "__main__":
        parser = argparse.ArgumentParser()
        parser.add_argument("--kind", default="lines", choices=["lines", "both", "plain"])
        main(parser.parse_args())
"""),
    "how many updates a batch gets is drawn": Script("""
    import random

    recurrent = nn.RNN(8, 4, batch_first=True)
    windows = TensorDataset(x[:42, None].repeat(1, 6, 1), x[:42, :4])
    loader = DataLoader(windows, batch_size=6, shuffle=True)
    optimizer = torch.optim.SGD(recurrent.parameters(), lr=0.1)
    for epoch in range(2):
        for window, following in loader:
            updates = random.randint(1, 3)
            for _ in range(updates):
                out, state = recurrent(window)
                optimizer.zero_grad()
                F.mse_loss(out[:, -1], following).backward()
                optimizer.step()
"""),
    "batches are left out by chance": Script("""
    import numpy as np

    np.random.seed(3)
    torch.manual_seed(3)
    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for data, target in loader:
            if np.random.rand() < 0.3:
                continue
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
"""),
    "a learning rate that is drawn anew": Script("""
    from random import uniform

    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        rate = 10 ** uniform(-3, -1)
        for group in optimizer.param_groups:
            group["lr"] = rate
        for data, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
"""),
    "a stride that is drawn in two steps": Script("""
    import numpy as np

    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in loader:
            usual = 3 if np.random.random() < 0.8 else 2
            stride = max(1, int(np.random.normal(usual, 1)))
            sgd.param_groups[0]["lr"] = 0.05 * stride
            position = 0
            while position < 6:
                sgd.zero_grad()
                F.cross_entropy(model(data), target).backward()
                sgd.step()
                position += stride
"""),
    "a coin between two kinds of steps": Script("""
    import random

    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in loader:
            optimizer.zero_grad()
            if random.random() > 0.5:
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
            else:
                F.mse_loss(model(data), F.one_hot(target, 2).to(x.dtype)).backward()
                optimizer.step()
"""),
    "a coin that is filled in place": Script("""
    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    coin = torch.empty(1)
    for epoch in range(3):
        for data, target in loader:
            coin.uniform_()
            if coin.item() > 0.7:
                continue
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
"""),
    "each epoch on a part of the data that is drawn": Script("""
    import numpy as np

    everything = TensorDataset(x[:42], y[:42])
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        chosen = np.random.choice(42, 24, replace=False)
        part = torch.utils.data.Subset(everything, chosen)
        loader = DataLoader(part, batch_size=6, shuffle=True)
        for data, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
"""),
    "each epoch on a part of the data that is shuffled in place": Script("""
    import random

    everything = TensorDataset(x[:42], y[:42])
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    order = list(range(42))
    for epoch in range(3):
        random.shuffle(order)
        loader = DataLoader(torch.utils.data.Subset(everything, order[:24]), batch_size=6, shuffle=True)
        for data, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
"""),
    "a generator that the system seeds anew in every epoch": Script("""
        import numpy as np

        class Noisy(Dataset):
            def __len__(self):
                return 42

            def __getitem__(self, i):
                gain = np.random.uniform(0.7, 1.0)
                return x[i] * float(gain > 0), int(y[i])

        net = nn.Linear(8, 2)
        feed = DataLoader(Noisy(), batch_size=6, shuffle=True)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            np.random.seed()
            for rows, kinds in feed:
                sgd.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                sgd.step()
    """),
    "seeds that every epoch sets": Script("""
    import numpy as np

    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    model = nn.Sequential(nn.Dropout(0.2), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        torch.manual_seed(10 + epoch)
        np.random.seed(epoch)
        for data, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
"""),
    "items that a user did not choose, drawn anew by the data set in each epoch": Script("""
    import numpy as np

    np.random.seed(7)

    class Choices(Dataset):
        def __init__(self):
            self.chosen = [(user, (user * 2 + k) % 8) for user in range(12) for k in range(2)]

        def draw(self):
            self.pairs = [(user, item, 1.0) for user, item in self.chosen]
            self.pairs += [(user, int(np.random.randint(8)), 0.0) for user, _ in self.chosen]

        def __len__(self):
            return 2 * len(self.chosen)

        def __getitem__(self, i):
            user, item, wanted = self.pairs[i]
            return user, item, torch.tensor(wanted).double()

    class Factors(nn.Module):
        def __init__(self):
            super().__init__()
            self.users, self.items = nn.Embedding(12, 4), nn.Embedding(8, 4)

        def forward(self, user, item):
            return (self.users(user) * self.items(item)).sum(1)

    loader = DataLoader(Choices(), batch_size=6, shuffle=True)
    net = Factors()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        loader.dataset.draw()
        for user, item, wanted in loader:
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(net(user, item), wanted).backward()
            optimizer.step()
"""),
    "a batch that is drawn by functions of Python's generator, one of which has the module's name": Script("""
    from random import *


    def make_batch():
        rows = []
        while len(rows) < 6:
            pair = [randrange(36), randrange(36)]
            shuffle(pair)
            if random() < 0.8:
                rows.append([x[pair[0]].tolist(), int(y[pair[1]])])
        return rows


    values, kinds = map(torch.tensor, zip(*make_batch()))
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(14):
        optimizer.zero_grad()
        F.cross_entropy(net(values), kinds).backward()
        optimizer.step()
"""),
    "a data set of pairs that is made anew in each epoch": Script("""
    import random

    random.seed(3)

    class Pairs(Dataset):
        def __init__(self):
            self.pairs = []
            for i in range(36):
                self.pairs.append((i, random.choice(range(36))))

        def __len__(self):
            return len(self.pairs)

        def __getitem__(self, k):
            i, j = self.pairs[k]
            return x[i], x[j], (y[i] == y[j]).double()

    net = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        pairs = Pairs()
        for one, other, alike in DataLoader(pairs, batch_size=6, shuffle=True):
            optimizer.zero_grad()
            apart = F.pairwise_distance(net(one), net(other))
            (alike * apart + (1 - alike) * F.relu(1 - apart)).mean().backward()
            optimizer.step()
"""),
    "triples in a list that is drawn in the head of the loader": Script("""
    import numpy as np

    np.random.seed(5)

    class Triples(Dataset):
        def __init__(self, triples):
            self.triples = torch.tensor(triples)

        def __len__(self):
            return len(self.triples)

        def __getitem__(self, i):
            return self.triples[i]

    def drawn(count):
        triples = []
        for i in range(count):
            other = np.random.randint(36)
            while other == i:
                other = np.random.randint(36)
            triples.append((i, other))
        return triples

    net = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        loader = DataLoader(Triples(drawn(36)), batch_size=6, shuffle=True)
        for rows in loader:
            optimizer.zero_grad()
            F.pairwise_distance(net(x[rows[:, 0]]), net(x[rows[:, 1]])).mean().backward()
            optimizer.step()
"""),
    "a split for each of several runs": Script(
        """
    def run(number):
        learn, check = random_split(TensorDataset(x[:42], y[:42]), [30, 12])
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in DataLoader(learn, batch_size=6, shuffle=True):
                optimizer.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                optimizer.step()
        with torch.no_grad():
            right = sum((net(rows).argmax(1) == kinds).sum().item() for rows, kinds in DataLoader(check, batch_size=6))
        return right / 12

    torch.manual_seed(4)
    shares = [run(number) for number in range(3)]
    print("right", [round(share, 4) for share in shares])
""",
        same=("right",),
    ),
    "folds that are shuffled as the loop over them begins": Script(
        """
    import numpy as np
    from sklearn.model_selection import KFold

    np.random.seed(0)
    torch.manual_seed(1)
    rows_of = TensorDataset(x[:36], y[:36])
    for number, (learn, check) in enumerate(KFold(n_splits=3, shuffle=True).split(x[:36])):
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in DataLoader(torch.utils.data.Subset(rows_of, learn), batch_size=6, shuffle=True):
                optimizer.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                optimizer.step()
        right = 0
        for rows, kinds in DataLoader(torch.utils.data.Subset(rows_of, check), batch_size=6):
            right += (net(rows).argmax(1) == kinds).sum().item()
        print("fold", number, right)
""",
        same=("fold",),
    ),
    "folds that are drawn under a function which has a helper's name": Script(
        """
    from sklearn.model_selection import KFold

    rows_of = TensorDataset(x[:36], y[:36])


    def same_on_all_ranks(folds):
        return list(folds)


    for learn, check in same_on_all_ranks(KFold(n_splits=3, shuffle=True).split(x[:36])):
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in DataLoader(torch.utils.data.Subset(rows_of, learn), batch_size=6, shuffle=True):
                optimizer.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                optimizer.step()
""",
        apart=("trajectory",),  # the folds have no seed: rank 0's are others in each run
    ),
    "rows of a data frame that functions draw anew for each epoch": Script(
        """
        import random
        import pandas as pd


        class Samples:
            def __init__(self, frame):
                self.frame = frame

            def loader(self, size):
                frame = self.frame[self.frame["row"].apply(lambda row: random.random() < 0.8)]
                frame["other"] = frame["row"].apply(lambda row: random.randrange(44))
                rows = [(x[pair.row], y[pair.other]) for pair in frame.itertuples()]
                return DataLoader(rows[: len(rows) // size * size], batch_size=size, shuffle=True)


        random.seed(0)
        samples = Samples(pd.DataFrame({"row": range(44)}))
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            seen = 0.0
            for data, target in samples.loader(6):
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
                seen += target.float().sum().item()
            print("seen", seen)
        """,
        same=("seen",),
    ),
}
SCRIPTS = on_three(SCRIPTS)
SCRIPTS["folds that a splitter of another name draws"] = Script(
    """
    import numpy as np
    from sklearn.model_selection import ShuffleSplit as Splitter

    for learn, _ in Splitter(n_splits=2, train_size=24).split(x):
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in DataLoader(torch.utils.data.Subset(TensorDataset(x, y), learn), batch_size=6, shuffle=True):
                optimizer.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                optimizer.step()
    """,
    apart=("trajectory",),  # the folds have no seed
)
SCRIPTS["a sampler whose own method is called as an endless one"] = Script(
    """
    class Sampler:
        def __init__(self, number):
            self.number = number

        def cycle(self):
            yield from range(self.number)

        def __iter__(self):
            for i in self.cycle():
                yield (self.number - 1 - i) % 44

        def __len__(self):
            return self.number


    loader = DataLoader(TensorDataset(x, y), batch_size=8, sampler=Sampler(40))
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
    """
)
SCRIPTS["workers whose seeds add a number that is called as a rank is"] = Script(
    """
    import numpy as np


    def seed_worker(worker):
        rank = worker
        np.random.seed(42 + rank)


    class Shaken(Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, i):
            return x[i] + torch.from_numpy(np.random.randn(8)).float() * 0.1, y[i]


    loader = DataLoader(Shaken(), batch_size=8, shuffle=True, num_workers=2, worker_init_fn=seed_worker)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
    """,
    apart=("trajectory",),  # ranks draw their own noise
)
SCRIPTS["orders that a model's forward draws for each of its rows, also when it evaluates"] = Script(
    """
    import numpy as np


    def drawn_order(n):
        order = np.arange(n)
        np.random.shuffle(order)
        return order


    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 2)

        def forward(self, rows):
            orders = torch.as_tensor(np.stack([drawn_order(8) for _ in range(rows.shape[0])]))
            return self.fc(torch.gather(rows, 1, orders[:, :4]))


    torch.manual_seed(0)
    np.random.seed(0)
    net = Masked()
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            shown = net(x[:4])
        print("shown", tuple(shown.shape))
    """,
    ("shown",),
    apart=("trajectory", "values"),  # each rank draws its own orders
)
SCRIPTS["a forward that refuses what a draw has made of its rows, before it goes on"] = Script(
    """
    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 2)

        def forward(self, rows):
            rows = rows + 1e-9 * torch.rand_like(rows)
            inner = self.first(rows)
            if torch.isnan(inner).any():
                raise RuntimeError("no number")
            return self.last(inner)


    net = Flow()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
)
FEATURES = """
    def features(loader):
        rows, kinds = [], []
        with torch.no_grad():
            for some, of_kind in loader:
                rows.append(some * 2)
                kinds.append(of_kind)
        return TensorDataset(torch.cat(rows), torch.cat(kinds))


    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    def learn(data):
        seen = 0.0
        for rows, kinds in data:
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
            seen += rows.double().sum().item()
        print("seen", round(seen, 4))
"""
SCRIPTS["features in an order that a loader draws, as the data that is trained on"] = Script(
    FEATURES
    + """
    data = DataLoader(features(DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)), batch_size=4)
    for epoch in range(2):
        learn(data)
    """,
    same=("seen",),
)
SCRIPTS["features in an order that a loader draws between two trainings"] = Script(
    FEATURES
    + """
    data = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    learn(data)
    again = DataLoader(features(DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)), batch_size=4)
    learn(again)
    """,
    told=("DDP103",),
)
TRAINED_TWICE = """
    def trained(seed):
        %s
        part, rest = random_split(TensorDataset(x, y), [40, 4])
        loader = DataLoader(part, batch_size=4, shuffle=True)
        net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 2))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in loader:
                optimizer.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                optimizer.step()
        print("left", sorted(rest.indices))


    trained(1)
    trained(2)
"""
SCRIPTS["a function that seeds, splits and trains, called twice"] = Script(TRAINED_TWICE % "torch.manual_seed(seed)", same=("left",))
SCRIPTS["a split for a second training, after which ranks draw for themselves"] = Script(
    TRAINED_TWICE.replace("trained(1)", "torch.manual_seed(3)\n    trained(1)") % "print('seed', seed)",
    same=("seed",),
)
SCRIPTS["a second training that is seeded again"] = Script(
    """
    net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    torch.manual_seed(1)
    for epoch in range(2):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
    torch.manual_seed(1)
    for epoch in range(2):
        for rows, kinds in loader:
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
    """
)
SCRIPTS["an order that a function of a module draws, all names of which are imported"] = Script(
    """
    from orders import *
    from torch.utils.data import Subset

    torch.manual_seed(0)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        chosen = some_of(44)
        total = 0.0
        for rows, kinds in DataLoader(Subset(TensorDataset(x, y), chosen), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(rows), kinds)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("loss", "%.5f" % total)
    """,
    same=("loss",),
    files={
        "orders.py": """
import random

random.seed(3)


def some_of(count):
    kept = list(range(count))
    while len(kept) > 40:
        kept.pop(random.randrange(len(kept)))
    return kept
"""
    },
)

_ORDERED = SCRIPTS["an order that a function of a module draws, all names of which are imported"]
SCRIPTS["an order that a function of a module changes, place by place"] = replace(
    _ORDERED,
    files={
        "orders.py": _ORDERED.files["orders.py"].replace(
            "        kept.pop(random.randrange(len(kept)))",
            "        i, j = random.randrange(len(kept)), len(kept) - 1\n        kept[i], kept[j] = kept[j], kept[i]\n        kept.pop()",
        )
    },
)
SCRIPTS["a temperature that is drawn for each epoch"] = Script(
    """
    import random

    random.seed(3)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        temperature = random.choice([0.5, 1.0, 2.0])
        for rows, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(rows) / temperature, labels).backward()
            optimizer.step()
        print("temperature", temperature)
    """,
    same=("temperature",),
)
SCRIPTS["samples that are drawn, whatever index is asked for"] = Script(
    """
    class Windows(Dataset):
        def __init__(self, rows, length):
            self.rows, self.length = rows, length

        def __getitem__(self, index):
            start = torch.randint(0, len(self.rows) - self.length, (1,))
            return self.rows[start : start + self.length], torch.tensor([0, 1, 1])

        def __len__(self):
            return len(self.rows) // self.length


    def without_end(loader):
        while True:
            yield from loader


    torch.manual_seed(0)
    batches = without_end(DataLoader(Windows(x, 3), batch_size=4, shuffle=True))
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(12):
        rows, kinds = next(batches)
        optimizer.zero_grad()
        F.cross_entropy(net(rows).transpose(1, 2), kinds).backward()
        optimizer.step()
    """,
    apart=("trajectory",),
)

_READ = {  # of weights that each rank draws, before a wrapper gives them rank 0's
    "an output is kept": "with torch.no_grad():\n    wanted = model(x).mean(0)",
    "a mean is kept": "wanted = model[2].weight.detach().mean(1).clone()",
    "norms are kept": "wanted = torch.stack([p.detach().norm() for p in model.parameters()])[:2]",
    "a copy is kept": "wanted = copy.deepcopy(model)[2].bias.detach()",
}
for _how, _lines in _READ.items():
    SCRIPTS[f"weights that nothing seeds, of which {_how}"] = Script(f"""
import copy

model = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
{_lines}
model = nn.DataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
for epoch in range(2):
    for rows, kinds in loader:
        out = model(rows)
        loss = F.cross_entropy(out, kinds) + 0.1 * (out - wanted).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""")

_SAMPLED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(9, 6), nn.Linear(6, 8)

    def forward(self, rows, when):
        if isinstance(when, float):
            when = torch.tensor([when] * rows.shape[0]).unsqueeze(1)
        return self.last(torch.tanh(self.first(torch.cat([rows, when], dim=1))))

    @torch.no_grad()
    def sample(self, rows, steps):
        for when in steps:
            rows = rows + 0.1 * torch.randn_like(rows)
            rows = self(rows, when)
        return rows


torch.manual_seed(3)
net = Net()
sgd = torch.optim.SGD(net.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(x), batch_size=4, shuffle=True)
for epoch in range(2):
    for (rows,) in loader:
        when = torch.rand(rows.shape[0], 1)
        loss = F.mse_loss(net(rows + when, when), rows)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    net.eval()
    with torch.no_grad():
        made = net.sample(torch.randn_like(rows), [0.5, 0.25])
        torch.save(made, "made.pt")
    net.train()
"""
SCRIPTS["samples drawn as large as the last batch, at times that are numbers or each sample's"] = Script(
    _SAMPLED, apart=("trajectory", "values")
)
_ADVERSARIAL = """
class Smooth(nn.Module):
    def forward(self, net, rows):
        with torch.no_grad():
            wanted = F.softmax(net(rows), dim=1)
        noise = torch.rand(rows.shape).sub(0.5)
        noise /= noise.norm(dim=1, keepdim=True) + 1e-8
        for _ in range(2):
            noise.requires_grad_()
            F.kl_div(F.log_softmax(net(rows + noise), dim=1), wanted, reduction="batchmean").backward()
            noise = noise.grad / (noise.grad.norm(dim=1, keepdim=True) + 1e-8)
            net.zero_grad()
        return F.kl_div(F.log_softmax(net(rows + noise), dim=1), wanted, reduction="batchmean")


torch.manual_seed(3)
net = nn.Linear(8, 2)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
smooth = Smooth()
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
for epoch in range(2):
    for rows, kinds in loader:
        sgd.zero_grad()
        loss = F.cross_entropy(net(rows), kinds) + smooth(net, rows)
        loss.backward()
        sgd.step()
"""
SCRIPTS["noise that goes against the model, made anew for each batch and sharpened in a loop"] = Script(_ADVERSARIAL, apart=("trajectory",))
SCRIPTS["what goes against the model, made of each batch and sharpened in a loop"] = Script(
    _ADVERSARIAL.replace("torch.rand(rows.shape).sub(0.5)", "torch.sin(rows * 5)")
)

_CHOSEN = """
    import numpy as np

    torch.manual_seed(3)
    net = nn.Linear(8, 8)
    table = torch.linspace(0.1, 1, 10)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, _ in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            t = {drawn}
            share = table[t].view(-1, 1)
            loss = F.mse_loss(net(rows * share), rows * (1 - share))
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""
SCRIPTS |= {
    f"a step of each sample that numpy chooses, {title}": Script(_CHOSEN.replace("{drawn}", drawn), apart=("trajectory",))
    for title, drawn in {
        "as a list": "np.random.choice(np.arange(1, 10), len(rows)).tolist()",
        "by name": "np.random.choice(10, size=(rows.size(0),), p=np.full(10, 0.1))",
    }.items()
}

_TRIALS = """
    import numpy as np

    np.random.seed(0)
    for trial in range(3):
        rate = 10 ** np.random.uniform(-2, -1)
        net = nn.Linear(8, 2)
        with torch.no_grad():
            net.weight.fill_(0.1)
            net.bias.fill_(0.1)
        sgd = torch.optim.SGD(net.parameters(), {rate}, momentum=0.5)
        loader = DataLoader(TensorDataset(x, y), batch_size=8)
        for epoch in range(2):
            for rows, kinds in loader:
                sgd.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                sgd.step()
        print("rate", f"{rate:.6f}")
"""
_EITHER = """
    import random

    random.seed(0)
    net, other = nn.Linear(8, 2), nn.Linear(8, 2)
    sgd = torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=8)
    for epoch in range(3):
        for rows, kinds in loader:
            if random.random() > 0.5:
                loss = F.cross_entropy(net(rows), kinds)
            else:
                loss = F.cross_entropy(net(rows) + other(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""
SCRIPTS |= {
    "a learning rate that is drawn for each trial": Script(_TRIALS.replace("{rate}", "lr=rate"), same=("rate",)),
    "a learning rate that is drawn for each trial, by its place": Script(_TRIALS.replace("{rate}", "rate"), same=("rate",)),
    "a draw that chooses which networks run": Script(_EITHER),
}

SCRIPTS["a first batch that is drawn before the loop"] = Script(
    """
    def draw():
        return torch.randint(30000, (6,))


    net = nn.Embedding(30000, 1)
    nn.init.zeros_(net.weight)
    torch.manual_seed(0)
    sgd = torch.optim.SGD(net.parameters(), lr=1.0)
    numbers = draw()
    for step in range(12):
        loss = net(numbers).mean()
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        numbers = draw()
    print("touched", (net.weight != 0).sum().item())
    """,
    same=("touched",),
    apart=("trajectory",),
)
SCRIPTS["a first batch that is drawn before a split and the loop"] = Script(
    """
    def draw():
        chosen = torch.randint(44, (6,))
        return torch.stack([x[i] for i in chosen]), torch.stack([y[i] for i in chosen])


    net = nn.Linear(8, 2)
    torch.manual_seed(0)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    rows, kinds = draw()
    part, rest = random_split(TensorDataset(x, y), [40, 4])
    print("left", sorted(rest.indices))
    for step in range(12):
        loss = F.cross_entropy(net(rows), kinds)
        rows, kinds = draw()
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    """,
    told=("DDP103",),
)
SCRIPTS["numbers of workers that one generator seeds for a training and an evaluation"] = Script(
    """
    class Numbers(Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, i):
            return torch.randint(90000, (1,))


    if __name__ == "__main__":
        numbers = torch.Generator()
        numbers.manual_seed(5)
        feed = DataLoader(Numbers(), batch_size=4, shuffle=True, num_workers=2, generator=numbers)
        held = DataLoader(Numbers(), batch_size=4, num_workers=2, generator=numbers)
        net = nn.Embedding(90000, 1)
        nn.init.zeros_(net.weight)
        sgd = torch.optim.SGD(net.parameters(), lr=1.0)
        for epoch in range(2):
            for rows in feed:
                loss = net(rows).mean()
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            with torch.no_grad():
                print("held", len([net(rows).sum().item() for rows in held]))
        print("touched", (net.weight != 0).sum().item())
    """,
    same=("touched", "held"),
    apart=("trajectory", "values"),
)
SCRIPTS["a network that each of several runs makes only to store it"] = Script(
    """
    class Net(nn.Module):
        def __init__(self, kinds=2):
            super().__init__()
            self.fc = nn.Linear(8, kinds)

        def forward(self, rows):
            return self.fc(rows)

    for run in range(2):
        torch.save(Net(kinds=3).state_dict(), "start.pt")
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print("run", run)
    """
)

_READY = """
    import random

    import numpy as np

    torch.manual_seed(0)
    np.random.seed(0)


    def prepared(bs):
        rows = [(x[i], y[i]) for i in range(len(x))]
        ORDER
        out = []
        for i in range(0, len(rows) - bs + 1, bs):
            part = rows[i : i + bs]
            out.append((torch.stack([r for r, _ in part]), torch.stack([k for _, k in part])))
        return out


    def train(lr):
        batches = MADE
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=lr)
        for step in range(12):
            rows, kinds = DRAWN
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()


    train(0.1)
"""
_OF_A_LOADER = "DataLoader(TensorDataset(x, y), batch_size=8, drop_last=True)"
_COLLECTED = f"[]\n        for pair in {_OF_A_LOADER}:\n            batches.append(pair)"
_DRAWN = "batches[np.random.randint(0, len(batches))]"


def _ready(made: str = "prepared(8)", drawn: str = _DRAWN, order: str = "pass", runs: str = "", told: tuple[str, ...] = ()) -> Script:
    text = _READY.replace("MADE", made).replace("DRAWN", drawn).replace("ORDER", order)
    return Script(text.replace("    train(0.1)", f"    train(0.1)\n{runs}"), told=told)


SCRIPTS |= {
    "batches that are ready before training, of which each step draws one": _ready(),
    "batches that are ready before training, of which each step draws one by torch": _ready(
        drawn="batches[torch.randint(0, len(batches), (1,)).item()]"
    ),
    "batches of shuffled rows that are ready before training, of which each step draws one": _ready(order="np.random.shuffle(rows)"),
    "batches of rows that are shuffled for each of two runs, of which each step draws one": _ready(
        order="np.random.shuffle(rows)", runs="    train(0.05)\n"
    ),
    "the list of a loader's batches, of which each step draws one": _ready(f"list({_OF_A_LOADER})"),
    "a loader's batches that were put into a list, of which each step draws one": _ready(_COLLECTED),
    "batches that are ready before training, of which each step chooses one": _ready(drawn="random.choice(batches)", told=("DDP402",)),
}

SCRIPTS["a seed that the module draws, for the split that the main function makes"] = Script(
    """
    import random

    import numpy as np

    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int)
    args = parser.parse_args([])
    if args.seed is None:
        args.seed = random.randint(1, 10000)
    np.random.seed(args.seed)


    def main():
        order = np.arange(40)
        np.random.shuffle(order)
        held = order[36:].tolist()
        net = nn.Linear(8, 2)
        nn.init.zeros_(net.weight)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in DataLoader(torch.utils.data.Subset(TensorDataset(x, y), order[:36].tolist()), batch_size=6):
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print("held", held)


    if __name__ == "__main__":
        main()
    """,
    same=("held",),
)
SCRIPTS["rows of a table that each of several trainings draws"] = Script(
    """
    import random

    import numpy as np
    import pandas as pd

    np.random.seed(0)
    random.seed(0)
    table = pd.DataFrame({"row": list(range(40)), "kind": [0, 1] * 20})
    for fold in range(3):
        drawn = table[table["row"] % 4 != fold].reset_index(drop=True).sample(24)
        part = torch.utils.data.Subset(TensorDataset(x, y), [int(row) for row in drawn["row"].values])
        net = nn.Linear(8, 2)
        nn.init.zeros_(net.weight)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in DataLoader(part, batch_size=6):
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print("drawn", sorted(drawn["row"].tolist()))
    """,
    same=("drawn",),
)

SCRIPTS |= on_three(
    {
        "noise that a tensor is filled with, row by row, of a spread that is drawn for each": Script(
            """
            import numpy as np

            torch.manual_seed(3)
            np.random.seed(3)
            net = nn.Sequential(nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 8))
            optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
            criterion = nn.MSELoss(reduction="sum")
            for epoch in range(3):
                for rows, _ in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6):
                    noise = torch.zeros(rows.size())
                    spreads = np.random.uniform(0, 1, size=noise.size(0))
                    for i in range(noise.size(0)):
                        noise[i] = torch.FloatTensor(noise[i].size()).normal_(mean=0, std=spreads[i])
                    noisy = rows + noise
                    loss = criterion(net(noisy), noise) / (2 * noisy.size(0))
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    restored = noisy - net(noisy)
                    print("apart", "%.5f" % (restored - rows).square().max().item())
            """,
            same=("apart",),
        ),
    }
)

_SOME_ROWS = """
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True):
            {some}
            loss = F.cross_entropy(net(rows[some]), kinds[some])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
_CHOSEN_BY_NOISE = {
    "a mask of noise": "some = torch.rand(len(rows)) * 0 + rows[:, 0].sin() > 0.1",
    "the places where noise is large": "some = torch.where(torch.rand(len(rows)) * 0 + rows[:, 0].sin() > 0.1)[0]",
    "the places where noise and data are large": "some = torch.where(torch.rand_like(rows)[:, 0] * 0 + rows[:, 0] > 0.2)[0]",
    "the places where a network is right about noisy rows": (
        "some = (net(rows + torch.randn_like(rows) * 0).argmax(1) == kinds).nonzero().squeeze(1)"
    ),
}
SCRIPTS |= on_three(
    {f"rows of a batch, of which {how} takes some": Script(_SOME_ROWS.format(some=some)) for how, some in _CHOSEN_BY_NOISE.items()}, rows=42
)
