"""Scripts that make their batches by hand: slices, splits, index lists, and what only looks like them."""

from scripts import Script, on_three

from ddpify.options import Options

_NET = """
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
"""
_STEP = """
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""

SCRIPTS: dict[str, Script] = {
    "slices by the start of each batch": Script(
        _NET
        + """
    n, size = len(x), 6
    for epoch in range(2):
        total, hits = 0.0, 0
        for start in range(0, n, size):
            xb, yb = x[start : start + size], y[start : start + size]
            out = net(xb)
            loss = F.cross_entropy(out, yb)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            total += loss.item() * len(xb)
            hits += (out.argmax(1) == yb).sum().item()
        print(f"epoch {epoch} loss {total / n:.6f} hits {hits / n:.4f}")
""",
        same=("epoch",),
    ),
    "slices by the number of the batch": Script(
        _NET
        + """
    BATCH = 12
    for epoch in range(6):
        sums = 0.0
        for b in range(len(x) // BATCH):
            inputs = x[b * BATCH : (b + 1) * BATCH]
            targets = y[b * BATCH : (b + 1) * BATCH]
            sgd.zero_grad()
            loss = F.cross_entropy(net(inputs), targets)
            loss.backward()
            sgd.step()
            sums += loss.item()
        print("mean", round(sums / (len(x) // BATCH), 6))
""",
        same=("mean",),
    ),
    "slices between two names": Script(
        _NET
        + """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    args = parser.parse_args()
    count = x.shape[0]
    batches = count // args.batch_size
    for epoch in range(2):
        for k in range(batches):
            first = k * args.batch_size
            last = min(first + args.batch_size, count)
            data, label = x[first:last], y[first:last]
            loss = F.nll_loss(F.log_softmax(net(data), dim=1), label)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            if k % 5 == 0:
                print("step", k, loss.item())
""",
    ),
    "arrays that become tensors": Script(
        """
    import numpy as np

    images, labels = x.numpy(), y.numpy()
"""
        + _NET
        + """
    for epoch in range(2):
        losses = []
        for i in range(0, images.shape[0], 6):
            batch = torch.from_numpy(images[i : i + 6]).double()
            kinds = torch.from_numpy(labels[i : i + 6]).long()
            loss = F.cross_entropy(net(batch), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            losses.append(loss.item())
        print(f"average {np.mean(losses):.6f}")
""",
        same=("average",),
    ),
    "a list of samples": Script(
        """
    import random

    samples = [(x[i], int(y[i])) for i in range(len(x))]
"""
        + _NET
        + """
    for epoch in range(2):
        random.shuffle(samples)
        seen = 0
        for i in range(0, len(samples), 6):
            part = samples[i : i + 6]
            rows = torch.stack([s[0] for s in part])
            kinds = torch.tensor([s[1] for s in part])
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            seen += len(part)
        print("seen", seen)
""",
        same=("seen",),
    ),
    "a position that moves on": Script(
        _NET
        + """
    size = 6
    for epoch in range(2):
        at = 0
        while at < len(x):
            inputs, targets = x[at : at + size], y[at : at + size]
            loss = F.cross_entropy(net(inputs), targets)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            at += size
    print("done")
""",
        same=("done",),
    ),
    "an order of its own for each epoch": Script(
        """
    def train(model, optimizer, data, target, size):
        model.train()
        order = torch.randperm(len(data))
        total = 0.0
        for i in range(0, len(data), size):
            idx = order[i : i + size]
            optimizer.zero_grad()
            loss = F.cross_entropy(model(data[idx]), target[idx])
            loss.backward()
            optimizer.step()
            total += loss.item() * idx.size(0)
        return total / len(data)


    def main():
        torch.manual_seed(7)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for epoch in range(2):
            print(f"loss {train(model, optimizer, x, y, 6):.6f}")


    if __name__ == "__main__":
        main()
""",
        same=("loss",),
    ),
    "an order by numpy": Script(
        """
    import numpy as np

    np.random.seed(5)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = nn.Linear(8, 2).to(device)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        perm = np.random.permutation(len(x))
        acc = 0
        for i in range(0, len(x), 6):
            pick = perm[i : i + 6]
            xb, yb = x[pick].to(device), y[pick].to(device)
            out = net(xb)
            loss = F.cross_entropy(out, yb)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            acc += out.argmax(dim=1).eq(yb).sum().item()
        print(f"acc {acc / len(x):.4f}")
""",
        same=("acc",),
    ),
    "a list of indices shuffled in place": Script(
        """
    import random

    random.seed(2)
"""
        + _NET
        + """
    indices = list(range(len(x)))
    for epoch in range(2):
        random.shuffle(indices)
        for k in range(0, len(indices), 6):
            mine = indices[k : k + 6]
            loss = F.cross_entropy(net(x[mine]), y[mine])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
""",
    ),
    "an array of indices shuffled in place": Script(
        """
    import numpy as np
"""
        + _NET
        + """
    ids = np.arange(len(x))
    for epoch in range(2):
        np.random.shuffle(ids)
        for rows in np.array_split(ids, 11):
            loss = F.cross_entropy(net(x[rows]), y[rows])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
""",
        told=("DDP307",),
    ),
    "an order that is split": Script(
        _NET
        + """
    for epoch in range(2):
        total = 0.0
        for idx in torch.randperm(len(x)).split(6):
            loss = F.cross_entropy(net(x[idx]), y[idx])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            total += loss.item()
        print(f"total {total:.6f}")
""",
        same=(),
    ),
    "data that is split": Script(
        _NET
        + """
    for epoch in range(2):
        for step, (part, kinds) in enumerate(zip(torch.split(x, 6), torch.split(y, 6))):
            loss = F.cross_entropy(net(part), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            if step % 6 == 0:
                print(f"step {step}: {loss.item():.3f}")
""",
    ),
    "data in chunks that were made before": Script(
        _NET
        + """
    inputs, targets = x.chunk(11), y.chunk(11)
    for epoch in range(2):
        for xb, yb in zip(inputs, targets):
            loss = F.cross_entropy(net(xb), yb)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
""",
        told=("DDP307",),
    ),
    "points put into a list one by one, beside noise for all of them": Script(
        """
        import random

        SIZE = 6


        def points():
            made = []
            for _ in range(SIZE):
                made.append([random.random(), random.random()])
            return torch.tensor(made)


        model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(12):
            loss = model(points() + torch.randn(SIZE, 2)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        told=("DDP307",),
    ),
    "points that a generator draws one by one, beside noise for all of them": Script(
        """
        import numpy as np

        SIZE = 6


        def points():
            while True:
                made = []
                for _ in range(SIZE):
                    point = np.random.randn(2) * 0.1
                    made.append(point + 1)
                yield np.array(made)


        feed = points()
        model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(12):
            loss = model(torch.from_numpy(next(feed)) + torch.rand(SIZE, 2)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        told=("DDP307",),
    ),
    "a list of index lists": Script(
        _NET
        + """
    size = 6
    for epoch in range(2):
        perm = torch.randperm(len(x))
        for rows in [perm[k : k + size] for k in range(0, len(x), size)]:
            loss = F.cross_entropy(net(x[rows]), y[rows])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
""",
    ),
    "a generator of batches": Script(
        """
    def batches(data, target, size):
        order = torch.randperm(len(data))
        for i in range(0, len(data), size):
            rows = order[i : i + size]
            yield data[rows], target[rows]

"""
        + _NET
        + """
    for epoch in range(2):
        running = 0.0
        for data, target in batches(x, y, 6):
            loss = F.cross_entropy(net(data), target)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            running += loss.item()
        print(f"running {running / 11:.6f}")
""",
        same=("running",),
    ),
    "a generator of batches that evaluates, too": Script(
        """
    def iterate(inputs, targets, size):
        for at in range(0, len(inputs), size):
            yield inputs[at : at + size], targets[at : at + size]


    def accuracy(net):
        net.eval()
        right = 0
        with torch.no_grad():
            for rows, kinds in iterate(x[30:], y[30:], 5):
                right += (net(rows).argmax(1) == kinds).sum().item()
        return right / 12


    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.5)
    best = 0.0
    for epoch in range(3):
        net.train()
        for rows, kinds in iterate(x[:30], y[:30], 6):
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        now = accuracy(net)
        print(f"accuracy {now:.4f}")
        if now > best:
            best = now
            torch.save(net.state_dict(), "best.pt")
""",
        same=("accuracy",),
    ),
    "a function that gets a batch": Script(
        """
    SIZE = 6


    def get_batch(i):
        return x[i : i + SIZE], y[i : i + SIZE]

"""
        + _NET
        + """
    for epoch in range(2):
        for i in range(0, len(x), SIZE):
            data, target = get_batch(i)
            loss = F.cross_entropy(net(data), target)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
""",
    ),
    "objects of a dict that draw batches for training and for an evaluation": Script(
        """
    class Source:
        def __init__(self, rows, kinds, cfg):
            self.rows, self.kinds, self.cfg = rows, kinds, cfg

        def draw(self):
            ix = torch.randint(len(self.rows), (self.cfg["size"],))
            return self.rows[ix], self.kinds[ix]


    class Trainer:
        def __init__(self, cfg):
            self.sources = {"train": Source(x[:32], y[:32], cfg), "val": Source(x[32:], y[32:], cfg)}
            self.net = nn.Linear(8, 2)
            self.sgd = torch.optim.SGD(self.net.parameters(), lr=0.1)

        @torch.no_grad()
        def estimate(self):
            losses = []
            for _ in range(5):
                rows, kinds = self.sources["val"].draw()
                losses.append(F.cross_entropy(self.net(rows), kinds).item())
            return sum(losses) / len(losses)

        def run(self):
            for step in range(12):
                if step % 5 == 0:
                    print(f"estimate {self.estimate():.4f}")
                rows, kinds = self.sources["train"].draw()
                loss = F.cross_entropy(self.net(rows), kinds)
                self.sgd.zero_grad()
                loss.backward()
                self.sgd.step()


    torch.manual_seed(0)
    Trainer({"size": 6}).run()
""",
        apart=("trajectory",),
    ),
    "a function of the settings that draws batches for training and for an evaluation": Script(
        """
    from dataclasses import dataclass


    @dataclass
    class Settings:
        batch_size: int = 6
        device: str = "cpu"


    def get_batch(split, cfg):
        rows, kinds = (x[:32], y[:32]) if split == "train" else (x[32:], y[32:])
        ix = torch.randint(len(rows), (cfg.batch_size,))
        return torch.stack([rows[i] for i in ix]).to(cfg.device), torch.stack([kinds[i] for i in ix]).to(cfg.device)


    def main():
        cfg = Settings()
        torch.manual_seed(0)
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)

        @torch.no_grad()
        def estimate():
            losses = torch.zeros(5)
            for k in range(5):
                rows, kinds = get_batch("val", cfg)
                losses[k] = F.cross_entropy(net(rows), kinds).item()
            return losses.mean()

        step = 0
        while True:
            if step % 5 == 0:
                print(f"estimate {estimate():.4f}")
            rows, kinds = get_batch("train", cfg)
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            step += 1
            if step > 12:
                break


    main()
""",
        apart=("trajectory", "values"),
    ),
    "evaluation in slices": Script(
        _NET
        + """
    for epoch in range(3):
        net.train()
        for i in range(0, 30, 6):
            loss = F.cross_entropy(net(x[i : i + 6]), y[i : i + 6])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        net.eval()
        lost, right = 0.0, 0
        with torch.no_grad():
            for i in range(30, 36, 5):
                out = net(x[i : i + 5])
                lost += F.cross_entropy(out, y[i : i + 5], reduction="sum").item()
                right += (out.argmax(1) == y[i : i + 5]).sum().item()
        print(f"test {lost / 12:.6f} {right / 12:.4f}")
""",
        same=("test",),
    ),
    "evaluation by a loader": Script(
        _NET
        + """
    test_loader = DataLoader(TensorDataset(x[30:], y[30:]), batch_size=6)
    for epoch in range(3):
        net.train()
        perm = torch.randperm(30)
        for i in range(0, 30, 6):
            rows = perm[i : i + 6]
            loss = F.cross_entropy(net(x[rows]), y[rows])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        net.eval()
        right = 0
        with torch.no_grad():
            for data, target in test_loader:
                right += (net(data).argmax(1) == target).sum().item()
        print(f"right {right / 12:.4f}")
""",
        same=("right",),
    ),
    "a loss that is a total over the batch size": Script(
        _NET
        + """
    batch_size = 6
    for epoch in range(2):
        for i in range(0, len(x), batch_size):
            data, target = x[i : i + batch_size], y[i : i + batch_size]
            loss = F.cross_entropy(net(data), target, reduction="sum") / batch_size
            sgd.zero_grad()
            loss.backward()
            sgd.step()
""",
    ),
    "early stopping by the loss of the epoch": Script(
        _NET
        + """
    last = float("inf")
    for epoch in range(6):
        total = 0.0
        for i in range(0, len(x), 6):
            loss = F.cross_entropy(net(x[i : i + 6]), y[i : i + 6])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            total += loss.item()
        total = total / 11
        print(f"epoch {epoch} {total:.6f}")
        if total > last - 0.01:
            print("stop")
            break
        last = total
""",
        same=("epoch", "stop"),
    ),
    "a trainer class that slices an order": Script(
        """
    class Trainer:
        def __init__(self, data, target, size):
            self.data, self.target, self.size = data, target, size
            self.model = nn.Linear(8, 2)
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

        def epoch(self):
            order = torch.randperm(self.data.size(0))
            for i in range(0, self.data.size(0), self.size):
                rows = order[i : i + self.size]
                loss = F.cross_entropy(self.model(self.data[rows]), self.target[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()


    trainer = Trainer(x, y, 6)
    for epoch in range(2):
        trainer.epoch()
""",
    ),
    "batches that are the first of a new order each": Script(
        """
        import numpy as np

        class Graph:
            def __init__(self, row, kind):
                self.row, self.kind = row, kind


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.out = nn.Linear(8, 2)

            def forward(self, graphs):
                return self.out(torch.stack([graph.row for graph in graphs]))


        size = 6
        graphs = [Graph(x[i], int(y[i])) for i in range(len(x))]
        model = Net()
        criterion = nn.CrossEntropyLoss()
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        np.random.seed(0)
        for epoch in range(3):
            total = 0
            for step in range(5):
                chosen = np.random.permutation(len(graphs))[:size]
                batch = [graphs[i] for i in chosen]
                out = model(batch)
                loss = criterion(out, torch.LongTensor([graph.kind for graph in batch]))
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                total += loss.item()
            print(f"epoch {epoch} {total / 5:.6f}")
        """,
        same=("epoch",),
        ranks=(2, 3),
    ),
    "a permutation from a generator of its own": Script(
        """
    rng = torch.Generator().manual_seed(3)
"""
        + _NET
        + """
    for epoch in range(2):
        perm = torch.randperm(len(x), generator=rng)
        for i in range(0, len(x), 6):
            loss = F.cross_entropy(net(x[perm[i : i + 6]]), y[perm[i : i + 6]])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
""",
    ),
    "batches collected before training": Script(
        _NET
        + """
    batches = []
    for i in range(0, len(x), 6):
        batches.append((x[i : i + 6], y[i : i + 6]))
    for epoch in range(2):
        for data, target in batches:
            loss = F.cross_entropy(net(data), target)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
""",
    ),
    "toy data drawn before training": Script(
        """
    points = torch.normal(torch.zeros(48, 8), 1.0)
    values = points.pow(2).sum(1, keepdim=True)
    net = nn.Linear(8, 1)
    adam = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(2):
        perm = torch.randperm(48)
        for i in range(0, 48, 6):
            rows = perm[i : i + 6]
            loss = F.mse_loss(net(points[rows]), values[rows])
            adam.zero_grad()
            loss.backward()
            adam.step()
""",
    ),
    "windows of time": Script(
        """
    series = torch.sin(torch.arange(420.0)).view(-1, 1)
    lstm = nn.LSTM(1, 6)
    head = nn.Linear(6, 1)
    sgd = torch.optim.SGD([*lstm.parameters(), *head.parameters()], lr=0.1)
    for epoch in range(2):
        for i in range(0, 384, 16):
            seen, wanted = series[i : i + 16], series[i + 1 : i + 17]
            out, _ = lstm(seen.unsqueeze(1))
            loss = F.mse_loss(head(out.squeeze(1)), wanted)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
""",
        told=("DDP307",),
    ),
    "all of the data in each step": Script(
        _NET
        + """
    for step in range(12):
        loss = F.cross_entropy(net(x), y)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
""",
        told=("DDP402",),
    ),
    "a table of pandas": Script(
        """
    import pandas as pd

    table = pd.DataFrame(x.numpy())
"""
        + _NET
        + """
    for epoch in range(2):
        for i in range(0, 36, 6):
            rows = table.iloc[i : i + 6]
            loss = F.cross_entropy(net(torch.tensor(rows.values)), y[i : i + 6])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
""",
        told=("DDP307",),
    ),
    "windows that become rows": Script(
        """
    series = torch.sin(torch.arange(352.0))
    rows = torch.stack([series[i : i + 8] for i in range(0, 352, 8)])
"""
        + _NET
        + """
    for epoch in range(2):
        for i in range(0, 36, 6):
            loss = F.cross_entropy(net(rows[i : i + 6]), y[i : i + 6])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
""",
    ),
    "a split of the data by an order, then slices": Script(
        """
    keep = torch.randperm(len(x))[:30]
    some, kinds_of = x[keep], y[keep]
"""
        + _NET
        + """
    for epoch in range(3):
        for i in range(0, 30, 6):
            rows, kinds = some[i : i + 6], kinds_of[i : i + 6]
"""
        + _STEP,
    ),
    "an order that is sorted from draws": Script(
        _NET
        + """
    for epoch in range(3):
        order = torch.rand(len(x)).argsort()
        for i in range(0, 36, 6):
            rows, kinds = x[order[i : i + 6]], y[order[i : i + 6]]
"""
        + _STEP,
    ),
    "columns of one thing and rows of another": Script(
        """
    turned = x.t().contiguous()
"""
        + _NET
        + """
    for epoch in range(3):
        for i in range(0, 36, 6):
            rows, kinds = turned[:, i : i + 6].t(), y[i : i + 6]
"""
        + _STEP,
        told=("DDP307",),
    ),
    "a seed by a library": Script(
        """
    from toolbox import seed_all

    seed_all(3)
"""
        + _NET
        + """
    for epoch in range(3):
        for step in range(6):
            idx = torch.randint(0, 36, (6,))
            rows, kinds = x[idx], y[idx]
"""
        + _STEP,
        stand_ins={"toolbox.py": "import torch\n\n\ndef seed_all(seed):\n    torch.manual_seed(seed)\n"},
        apart=("trajectory",),
    ),
    "samples of a distribution beside noise": Script(
        """
    size = 12
    real = torch.distributions.Normal(torch.zeros(8), torch.ones(8))
    maker, judge = nn.Linear(3, 8), nn.Linear(8, 1)
    of_maker, of_judge = torch.optim.SGD(maker.parameters(), lr=0.1), torch.optim.SGD(judge.parameters(), lr=0.1)
    for step in range(12):
        seen = real.sample((size,)) * 0 + 0.5
        made = maker(torch.randn(size, 3) * 0 + 0.5)
        loss = F.softplus(judge(made.detach())).mean() + F.softplus(-judge(seen)).mean()
        of_judge.zero_grad()
        loss.backward()
        of_judge.step()
        loss = F.softplus(-judge(made)).mean()
        of_maker.zero_grad()
        loss.backward()
        of_maker.step()
""",
    ),
    "batches that are padded": Script(
        """
    texts = [torch.ones(1 + i % 7) for i in range(36)]
    net = nn.Linear(1, 1)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for i in range(0, 36, 6):
            part = nn.utils.rnn.pad_sequence(texts[i : i + 6], batch_first=True).unsqueeze(2)
            loss = F.mse_loss(net(part), part * 2)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
""",
        told=("DDP402",),
    ),
    "parts of a batch one after another": Script(
        _NET
        + """
    for epoch in range(3):
        for i in range(0, 32, 8):
            whole, kinds = x[i : i + 8], y[i : i + 8]
            sgd.zero_grad()
            for j in range(0, 8, 6):
                loss = F.cross_entropy(net(whole[j : j + 6]), kinds[j : j + 6]) / 2
                loss.backward()
            sgd.step()
""",
        told=("DDP402",),
    ),
    "a second model moved by hand": Script(
        """
    plain = nn.Linear(8, 2)
    rate = 0.1
"""
        + _NET
        + """
    for epoch in range(3):
        total = 0.0
        for i in range(0, 36, 6):
            rows, kinds = x[i : i + 6], y[i : i + 6]
"""
        + _STEP
        + """
            lost = F.cross_entropy(plain(rows), kinds)
            plain.zero_grad()
            lost.backward()
            with torch.no_grad():
                for p in plain.parameters():
                    p -= rate * p.grad
            total += lost.item()
        print(f"by hand {total / 11:.6f}")
        if total / 11 < 0.5:
            rate /= 2
""",
        same=("by hand",),
    ),
    "all of the data and a part of it": Script(
        _NET
        + """
    for epoch in range(2):
        for i in range(0, 36, 6):
            loss = F.cross_entropy(net(x), y) + F.cross_entropy(net(x[i : i + 6]), y[i : i + 6])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
""",
    ),
    "an object that is gone through": Script(
        """
    class Feed:
        def __init__(self, inputs, targets, size):
            self.inputs, self.targets, self.size = inputs, targets, size

        def __iter__(self):
            order = torch.randperm(len(self.inputs))
            for i in range(0, len(self.inputs), self.size):
                pick = order[i : i + self.size]
                yield self.inputs[pick], self.targets[pick]

        def __len__(self):
            return -(-len(self.inputs) // self.size)


    def right(net, feed):
        return sum((net(rows).argmax(1) == kinds).sum().item() for rows, kinds in feed)


    feed, check = Feed(x[:30], y[:30], 6), Feed(x[30:], y[30:], 6)
"""
        + _NET
        + """
    for epoch in range(3):
        total = 0.0
        for rows, kinds in feed:
"""
        + _STEP
        + """
            total += loss.item()
        print("right", right(net, check), round(total / len(feed), 6))
""",
        same=("right",),
    ),
    "a dictionary of arrays": Script(
        """
    data = {"inputs": x, "targets": y}
"""
        + _NET
        + """
    for epoch in range(2):
        for i in range(0, 36, 6):
            rows, kinds = data["inputs"][i : i + 6], data["targets"][i : i + 6]
"""
        + _STEP,
    ),
    "windows of tokens, and the same one later": Script(
        """
    tokens = torch.arange(300) % 5
    net = nn.Sequential(nn.Embedding(5, 6), nn.Linear(6, 5))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        at = int(os.environ.get("AT", 0))
        while at + 11 < 300:
            seen, wanted = tokens[at : at + 10], tokens[at + 1 : at + 11]
            loss = F.cross_entropy(net(seen), wanted)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            at += 10
""",
        told=("DDP307",),
    ),
    "arrays put into another order for each epoch": Script(
        """
    import numpy as np

    inputs, targets = x.numpy(), y.numpy()
"""
        + _NET
        + """
    for epoch in range(2):
        order = np.random.permutation(36)
        inputs, targets = inputs[order], targets[order]
        for i in range(0, 36, 6):
            rows, kinds = torch.tensor(inputs[i : i + 6]), torch.tensor(targets[i : i + 6])
"""
        + _STEP,
    ),
    "an iterator of torchtext": Script(
        """
    from torchtext.legacy import data

    train_iter = data.BucketIterator(x, batch_size=6)
"""
        + _NET
        + """
    for epoch in range(2):
        for batch in train_iter:
            loss = F.cross_entropy(net(batch.text), batch.label)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
""",
        told=("DDP402",),
    ),
    "noise of several sizes": Script(
        """
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    adam = torch.optim.Adam(net.parameters())
    for step in range(12):
        inside, edge = torch.rand(30, 2, requires_grad=True), torch.rand(16, 2)
        loss = net(inside).pow(2).mean() + (net(edge) - 1).pow(2).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
""",
        told=("DDP307",),
    ),
}

_COLUMNS = """
    SIZE = 6


    def columns(tokens, size):
        rows = tokens.size(0) // size
        tokens = tokens.narrow(0, 0, rows * size)
        return tokens.view(size, -1).t().contiguous()


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.lstm, self.out = nn.Embedding(9, 6), nn.LSTM(6, 6), nn.Linear(6, 9)

        def forward(self, tokens, state):
            seen, state = self.lstm(self.table(tokens), state)
            return self.out(seen).view(-1, 9), state

        def start(self, size):
            weight = next(self.parameters())
            return (weight.new_zeros(1, size, 6), weight.new_zeros(1, size, 6))


    def cut(source, i):
        span = min(8, len(source) - 1 - i)
        return source[i : i + span], source[i + 1 : i + 1 + span].view(-1)


    def free(state):
        if isinstance(state, torch.Tensor):
            return state.detach()
        return tuple(free(s) for s in state)


    def evaluate(source):
        net.eval()
        total = 0.0
        state = net.start(2)
        with torch.no_grad():
            for i in range(0, source.size(0) - 1, 8):
                data, target = cut(source, i)
                out, state = net(data, state)
                state = free(state)
                total += len(data) * F.cross_entropy(out, target).item()
        return total / (len(source) - 1)


    def train():
        net.train()
        total = 0.0
        state = net.start(SIZE)
        for batch, i in enumerate(range(0, data.size(0) - 1, 8)):
            inputs, target = cut(data, i)
            sgd.zero_grad()
            state = free(state)
            out, state = net(inputs, state)
            loss = F.cross_entropy(out, target)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.25)
            sgd.step()
            total += loss.item()
            if batch % 5 == 0 and batch > 0:
                print("batch", batch, total / 5)
                total = 0.0


    data = columns((torch.arange(420) * 7) % 9, SIZE)
    held_out = columns((torch.arange(90) * 5) % 9, 2)
    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.5)
    best = None
    for epoch in range(3):
        train()
        loss = evaluate(held_out)
        print(f"valid {loss:.6f}")
        if best is None or loss < best:
            best = loss
            torch.save(net.state_dict(), "best.pt")
        else:
            for group in sgd.param_groups:
                group["lr"] /= 4.0
"""
SCRIPTS |= {
    "columns that an lstm reads through time": Script(_COLUMNS, same=("valid",)),
    "columns of a number that is written twice": Script(_COLUMNS.replace("SIZE)", "6)"), told=("DDP307",)),
}
_LINES = """
    B = 6
    ids = ((torch.arange(420) * 7) % 9).view(B, -1)
    count = ids.size(1) // 8


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.lstm, self.out = nn.Embedding(9, 6), nn.LSTM(6, 6, batch_first=True), nn.Linear(6, 9)

        def forward(self, tokens, state):
            seen, state = self.lstm(self.table(tokens), state)
            return self.out(seen.reshape(-1, 6)), state


    net = Net()
    adam = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(2):
        states = (torch.zeros(1, B, 6), torch.zeros(1, B, 6))
        for i in range(0, ids.size(1) - 8, 8):
            inputs = ids[:, i : i + 8]
            targets = ids[:, (i + 1) : (i + 1) + 8]
            states = [s.detach() for s in states]
            out, states = net(inputs, states)
            loss = F.cross_entropy(out, targets.reshape(-1))
            adam.zero_grad()
            loss.backward()
            adam.step()
            if i % 40 == 0:
                print("at", i, loss.item())
"""
SCRIPTS |= {
    "rows that an lstm reads along": Script(_LINES),
    "rows that an lstm reads along, to tell the window after each": Script(
        _LINES.replace("(i + 1) : (i + 1) + 8", "i + 8 : i + 16").replace("ids.size(1) - 8, 8", "ids.size(1) - 16, 8")
    ),
    "rows that an lstm reads along, flattened by their lengths": Script(
        _LINES.replace("seen.reshape(-1, 6)", "seen.reshape(seen.size(0) * seen.size(1), seen.size(2))")
    ),
    "rows that an lstm reads along, less what they have in common": Script(
        _LINES.replace("seen.reshape(-1, 6)", "(seen - seen.mean(0)).reshape(-1, 6)"), told=("DDP402",)
    ),
    "rows that an lstm reads along, less their average through time": Script(
        _LINES.replace("seen.reshape(-1, 6)", "(seen - seen.mean(1, keepdim=True)).reshape(-1, 6)")
    ),
    "columns that an lstm reads through time, less their average through time": Script(
        _COLUMNS.replace("self.out(seen)", "self.out(seen - seen.mean(0))"), same=("valid",)
    ),
    "columns that an lstm reads through time, less what they have in common": Script(
        _COLUMNS.replace("self.out(seen)", "self.out(seen - seen.mean(1, keepdim=True))"), told=("DDP402",)
    ),
    "rows that a module lays out for training and for an evaluation, read along": Script(
        """
    from layout import lines, window

    B = 6
    ids = lines((torch.arange(420) * 7) % 9, B)
    held = lines((torch.arange(90) * 5) % 9, 2)
    net = nn.Sequential(nn.Embedding(9, 6), nn.Linear(6, 9))
    adam = torch.optim.Adam(net.parameters(), lr=0.01)


    def evaluate(source):
        total, count = 0.0, 0
        with torch.no_grad():
            for i in range(0, source.size(1) - 1, 8):
                inputs, targets = window(source, i)
                out = net(inputs)[:, 2:].contiguous().view(-1, 9)
                total += F.cross_entropy(out, targets[:, 2:].contiguous().view(-1)).item() * out.size(0)
                count += out.size(0)
        return total / count


    for epoch in range(2):
        for i in range(0, ids.size(1) - 1, 8):
            inputs, targets = window(ids, i)
            out = net(inputs)[:, 2:].contiguous().view(-1, 9)
            loss = F.cross_entropy(out, targets[:, 2:].contiguous().view(-1))
            adam.zero_grad()
            loss.backward()
            adam.step()
        print("held", round(evaluate(held), 6))
""",
        same=("held",),
        files={
            "layout.py": """
def lines(tokens, size):
    rows = tokens.size(0) // size
    return tokens.narrow(0, 0, rows * size).view(size, -1)


def window(source, i):
    span = min(8, source.size(1) - 1 - i)
    return source[:, i : i + span].contiguous(), source[:, i + 1 : i + 1 + span].contiguous()
"""
        },
    ),
    "rows that an lstm reads along, and the losses before": Script(
        _LINES.replace("    states = (torch", "    before = 1.0\n        states = (torch").replace(
            "            adam.zero_grad()",
            """            now, before = before, 0.9 * before + 0.1 * loss.item()
            loss = loss / now
            adam.zero_grad()""",
        ),
        told=("DDP402",),
    ),
}
SCRIPTS = on_three(SCRIPTS, 36)

SCRIPTS |= {
    "rows that are left for the last batch, of data drawn row by row": Script(
        """
        import numpy as np

        parser = argparse.ArgumentParser()
        parser.add_argument("--batch-size", type=int, default=6)
        args = parser.parse_args()
        size = args.batch_size


        def made(n):
            rows, wanted = torch.rand(n, 8), torch.zeros(n, 1)
            for i in range(n):
                places = np.random.choice(8, size=2, replace=False)
                wanted[i, 0] = rows[i, places[0]] + rows[i, places[1]]
            return rows, wanted


        torch.manual_seed(4)
        np.random.seed(4)
        rows, wanted = made(40)
        net = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 1))
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)


        def train():
            for i in range(0, rows.size(0), size):
                if i + size > rows.size(0):
                    a, b = rows[i:], wanted[i:]
                else:
                    a, b = rows[i : i + size], wanted[i : i + size]
                sgd.zero_grad()
                loss = F.mse_loss(net(a), b)
                loss.backward()
                sgd.step()


        for epoch in range(3):
            train()
        """,
    ),
}

SCRIPTS["batches and a rest that an object makes for training and for an evaluation, and a model made where it is passed"] = Script(
    """
    class Batches:
        def __init__(self, rows, batch_size, device):
            self.rows, self.batch_size, self.device = rows, batch_size, device
            self.whole = len(rows) // batch_size
            self.residue = len(rows) % batch_size != 0
            self.index = 0

        def to_tensors(self, rows):
            points = torch.tensor([row[0] for row in rows]).to(self.device)
            lengths = torch.tensor([row[2] for row in rows]).to(self.device)
            return (points, lengths), torch.tensor([row[1] for row in rows]).to(self.device)

        def __next__(self):
            if self.residue and self.index == self.whole:
                rows = self.rows[self.index * self.batch_size: len(self.rows)]
                self.index += 1
                return self.to_tensors(rows)
            elif self.index >= self.whole:
                self.index = 0
                raise StopIteration
            else:
                rows = self.rows[self.index * self.batch_size: (self.index + 1) * self.batch_size]
                self.index += 1
                return self.to_tensors(rows)

        def __iter__(self):
            return self

        def __len__(self):
            return self.whole + self.residue


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(8, 2)

        def forward(self, given):
            return self.inner(given[0])


    def build(rows):
        batches = Batches(rows, 8, "cpu")
        return batches


    def judge(net, batches):
        net.eval()
        right = 0
        with torch.no_grad():
            for given, kinds in batches:
                right += (net(given).argmax(1) == kinds).sum().item()
        return right


    def train(net, batches, held):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net.train()
        for epoch in range(3):
            for i, (given, kinds) in enumerate(batches):
                net.zero_grad()
                loss = F.cross_entropy(net(given), kinds)
                loss.backward()
                optimizer.step()
            print("right", judge(net, held))
            net.train()


    torch.manual_seed(0)
    data = [(row.tolist(), kind.item(), i) for i, (row, kind) in enumerate(zip(x, y))]
    train(Net(), build(data[:36]), build(data[30:]))
    """,
    same=("right",),
)
SCRIPTS["the rows of each part of a batch, kept in a tuple of as many"] = Script(
    """
    torch.manual_seed(0)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


    def given(rows, kinds):
        return rows, kinds, torch.arange(float(len(rows)))


    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            batch = tuple(part.contiguous().detach() for part in given(rows, kinds))
            loss = F.cross_entropy(net(batch[0]), batch[1])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
)
SCRIPTS["an order that a generator draws which the process seeds"] = Script(
    """
    import random

    order = list(range(40))
    shuffler = random.Random(os.getpid())
    shuffler.shuffle(order)
    parts = {"train": order[:32], "held": order[32:]}
    torch.manual_seed(0)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    numbered = TensorDataset(x[:40], y[:40], torch.arange(40))
    feed = DataLoader(numbered, batch_size=8, sampler=torch.utils.data.SubsetRandomSampler(parts["train"]))
    for epoch in range(3):
        times = torch.zeros(40)
        for rows, kinds, places in feed:
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            times += F.one_hot(places, 40).sum(0)
        print("once", int((times == 1).sum()))
    """,
    same=("once",),
    apart=("trajectory",),
)
SCRIPTS["batches of a generator, of arguments that have the names of what the loop takes up, for layers that go over time"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.over_time = nn.GRU(2, 4)
            self.out = nn.Linear(4, 2)

        def forward(self, given):
            steps = given.view(given.size(0), 4, 2).permute(1, 0, 2).contiguous()
            _, last = self.over_time(steps)
            return self.out(last.squeeze(0))


    def batches(rows, kinds, size, shuffle=True):
        count = len(rows)
        order = torch.randperm(count) if shuffle else torch.arange(count)
        start = 0
        while start < count:
            end = min(count, start + size)
            some = order[start:end]
            yield rows[some], kinds[some]
            start += size


    def train(rows, kinds, net, optimizer):
        net.train()
        total, count = 0, 0
        for rows, kinds in batches(rows, kinds, 8, True):
            net.zero_grad()
            loss = F.cross_entropy(net(rows), kinds)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
            count += len(rows)
        return total / count


    def judge(rows, kinds, net):
        net.eval()
        right = 0
        with torch.no_grad():
            for rows, kinds in batches(rows, kinds, 8, False):
                right += (net(rows).argmax(1) == kinds).sum().item()
        return right


    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        lost = train(x[:40], y[:40], net, optimizer)
        print("epoch", epoch, f"lost {lost:.9f}", "right", judge(x[20:], y[20:], net))
    """,
    same=("epoch",),
)
SCRIPTS["batches that a generator within a method cuts, shuffled before each epoch, for training and for an evaluation"] = Script(
    """
    import numpy as np


    class Feed:
        def __init__(self, rows, kinds, batch_size):
            self.rows, self.kinds, self.batch_size = rows, kinds, batch_size
            self.size = len(rows)
            self.count = int(self.size // batch_size)
            self.at = 0

        def shuffle(self):
            order = np.random.permutation(self.size)
            self.rows, self.kinds = self.rows[order], self.kinds[order]

        def batches(self):
            self.at = 0

            def cut():
                while self.at < self.count:
                    start = self.batch_size * self.at
                    end = min(self.size, self.batch_size * (self.at + 1))
                    yield self.rows[start:end, ...], self.kinds[start:end, ...]
                    self.at += 1

            return cut()


    np.random.seed(0)
    torch.manual_seed(0)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    feeds = {"train": Feed(x[:40].numpy(), y[:40].numpy(), 8), "held": Feed(x[28:].numpy(), y[28:].numpy(), 8)}
    for epoch in range(3):
        feeds["train"].shuffle()
        for i, (rows, kinds) in enumerate(feeds["train"].batches()):
            rows, kinds = torch.as_tensor(rows), torch.as_tensor(kinds)
            net.train()
            optimizer.zero_grad()
            loss = F.cross_entropy(net(rows), kinds)
            loss.backward()
            optimizer.step()
        right = 0
        net.eval()
        with torch.no_grad():
            for i, (rows, kinds) in enumerate(feeds["held"].batches()):
                right += (net(torch.as_tensor(rows)).argmax(1) == torch.as_tensor(kinds)).sum().item()
        print("right", right)
    """,
    same=("right",),
)
_DRAWN = """
import numpy as np

SIZE = 8
PLACES = np.vstack([np.linspace(-1, 1, 5) for _ in range(SIZE)])


def curves():
    tops = np.random.uniform(1, 2, size=SIZE)[:, np.newaxis]
    return torch.from_numpy(tops * np.power(PLACES, 2) + (tops - 1)).float()


torch.manual_seed(0)
net = nn.Linear(5, 1)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
{more}
for step in range(12):
    wanted = curves()
    loss = F.softplus(-net(wanted)).mean() + F.softplus(net(torch.randn(SIZE, 5))).mean()
    sgd.zero_grad()
    loss.backward()
    sgd.step()
print("first place %.2f" % PLACES[0][0])
"""
SCRIPTS["one row for each sample that is drawn, again and again"] = Script(
    _DRAWN.format(more=""), same=("first place",), apart=("trajectory",)
)
SCRIPTS["one row for each sample that is drawn, and for others"] = Script(
    _DRAWN.format(more="print(net(torch.from_numpy(PLACES).float()).shape)"), told=("DDP307",)
)
_PARTS = {f"part{i}.txt": " ".join(str((3 * i + j * j) % 7) for j in range(60)) for i in range(3)}
SCRIPTS["lists of numbers that a loop copies row by row, of files that are read in a drawn order"] = Script(
    """
    import random

    random.seed(5)
    net = nn.Sequential(nn.Embedding(7, 8), nn.Linear(8, 7))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    size = 4
    for epoch in range(2):
        order = list(range(3))
        random.shuffle(order)
        for part in order:
            with open("part{}.txt".format(part)) as file:
                tokens = [int(token) for token in file.read().split()]
            samples, start = [], 0
            while start < len(tokens) - 8:
                samples.append(tokens[start : start + 8])
                start += 5
            random.shuffle(samples)
            for step in range(len(samples) // size):
                batch = samples[step * size : (step + 1) * size]
                inputs = []
                targets = []
                for numbers in batch:
                    copied = [int(number) for number in numbers]
                    targets.append(copied)
                    inputs.append([int(number) for number in numbers])
                inputs = torch.tensor(inputs).long()
                targets = torch.tensor(targets).long()
                out = net(inputs)
                loss = F.cross_entropy(out[:, :-1].reshape(-1, 7), targets[:, 1:].reshape(-1))
                sgd.zero_grad()
                loss.backward()
                sgd.step()
    print("weights", round(sum(p.sum().item() for p in net.parameters()), 5))
""",
    same=("weights",),
    files=dict(_PARTS),
)
_LAID_OUT = """
class Feed:
    def __init__(self, B, T, name):
        self.B, self.T = B, T
        with open(name) as f:
            self.tokens = torch.tensor([ord(letter) % 12 for letter in f.read()])
        print(f"one epoch of {{name}}: {{len(self.tokens) // (B * T)}} batches")
        self.at = 0

    def next_batch(self):
        {cut}
        self.at += self.B * self.T
        if self.at + self.B * self.T + 1 > len(self.tokens):
            self.at = 0
        return x, y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(12, 6), nn.Linear(6, 12)

    def forward(self, ids, wanted=None):
        B, T = ids.size()
        scores = self.head(self.words(ids) + self.words.weight[:T].sum())
        loss = F.cross_entropy(scores.view(B * T, -1), wanted.view(-1)) if wanted is not None else None
        return scores, loss


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
feed, held = Feed(B=4, T=8, name="text.txt"), Feed(4, 8, "text.txt")
for step in range(12):
    optimizer.zero_grad()
    for part in range(2):
        x, y = feed.next_batch()
        _, loss = net(x, y)
        (loss / 2).backward()
    optimizer.step()
    {evaluation}
"""
_HELD = """if step % 4 == 3:
        net.eval()
        with torch.no_grad():
            _, loss = net(*held.next_batch())
        print(f"held {loss.item():.6f}")
        net.train()"""
_TEXT = {"text.txt": "".join(chr(97 + i * i % 23) for i in range(400))}
SCRIPTS |= {
    f"windows of a sequence in rows, {title}": Script(
        _LAID_OUT.format(cut=cut.replace("\n", "\n        "), evaluation=_HELD if evaluated else ""),
        ("held",) if evaluated else (),
        files=_TEXT,
    )
    for title, cut, evaluated in (
        (
            "cut with one more at its end",
            "B, T = self.B, self.T\nbuf = self.tokens[self.at : self.at + B * T + 1]\nx = (buf[:-1]).view(B, T)\ny = (buf[1:]).view(B, T)",
            False,
        ),
        (
            "cut twice, and evaluated",
            "start, end = self.at, self.at + self.B * self.T\nx = self.tokens[start:end].long().view(self.B, self.T)\n"
            "y = self.tokens[start + 1 : end + 1].reshape(self.B, self.T)",
            True,
        ),
    )
}
_SIDE_BY_SIDE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.fc = nn.Embedding(20, 8), nn.GRU(8, 8, batch_first={lines}), nn.Linear(8, 20)

    def forward(self, words, state):
        out, state = self.rnn(self.embed(words), state)
        return self.fc(out), state


def side_by_side(words, size):
    steps = words.size(0) // size
    return words[: steps * size].view(size, -1){turned}


SIZE = 6
words = side_by_side(torch.arange(610) * 7 % 20, SIZE)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    state = torch.zeros(1, SIZE, 8)
    for i in range(0, 90, 10):
        given, wanted = {slices}
        out, state = net(given, state.detach())
        loss = F.cross_entropy(out.reshape(-1, 20), wanted.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
SCRIPTS |= {
    f"sequences side by side, cut to a multiple of their number, {title}": Script(
        _SIDE_BY_SIDE.format(lines=lines, turned=turned, slices=slices)
    )
    for title, lines, turned, slices in (
        ("in columns", False, ".t().contiguous()", "words[i : i + 10], words[i + 1 : i + 11]"),
        ("in rows", True, "", "words[:, i : i + 10], words[:, i + 1 : i + 11]"),
    )
}

_ATTENDED = """
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps, self.kinds = nn.Embedding(8, 16), nn.Embedding(12, 16)
            self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))
            self.head = nn.Linear(16, 12)
            self.register_buffer("mask", torch.tril(torch.ones(8, 8)){view})

        def forward(self, tokens, targets):
            n, steps = tokens.shape
            rows = self.kinds(tokens) + self.steps(torch.arange(steps))
            weights = self.query(rows) @ self.key(rows).transpose(-2, -1) / 4
            weights = weights.masked_fill(self.mask[{cut}] == 0, float("-inf"))
            scores = self.head(F.softmax(weights, dim=-1) @ self.value(rows))
            return scores, F.cross_entropy(scores.view(n * steps, 12), targets.view(n * steps))


    numbers = {c: i for i, c in enumerate("abcdefghijkl")}
    data = torch.tensor([numbers[c] for c in "abcdefghijklabdegh" * 20], dtype=torch.long)


    def draw(data):
        starts = torch.randint(len(data) - 8, (6,))
        return torch.stack([data[i : i + 8] for i in starts]), torch.stack([data[i + 1 : i + 9] for i in starts])


    net = Attention()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(12):
        if step % 6 == 0:
            rows, kinds = draw(data[300:])
            _, loss = net(rows, kinds)
            print("held out", loss.item())
        rows, kinds = draw(data[:300])
        _, loss = net(rows, kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""
SCRIPTS |= {
    f"windows that are drawn, for attention whose mask {title}": Script(
        _ATTENDED.replace("{view}", view).replace("{cut}", cut), apart=("trajectory", "values")
    )
    for title, view, cut in (
        ("has as many rows as steps", "", ":steps, :steps"),
        ("has one entry for all samples", ".view(1, 8, 8)", ":, :steps, :steps"),
        ("has one more dimension", ".unsqueeze(0)", ":, :steps, :steps"),
        ("gets one more dimension", "", "None, :steps, :steps"),
    )
}

_OF_GENERATOR = """
    numbers = torch.Generator().manual_seed(3)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)


    def draw(rows, kinds, generator=None):
        chosen = torch.randint(len(rows), (6,), generator=generator)
        return rows[chosen], kinds[chosen]


    for step in range(12):
{held}        rows, kinds = draw(x, y, numbers)
        loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""
_HELD_OUT = """        if step % 4 == 0:
            rows, kinds = draw(x[30:], y[30:], numbers)
            with torch.no_grad():
                print("held out", F.cross_entropy(net(rows), kinds).item())
"""
SCRIPTS |= {
    f"batches that a generator of the script's own draws, {title}": Script(_OF_GENERATOR.replace("{held}", held), same=same)
    for title, held, same in (("for the training alone", "", ()), ("for an evaluation, too", _HELD_OUT, ("held out",)))
}

_IRIS = """
    from sklearn.datasets import load_iris

    data = load_iris()
    inputs, wanted = data.data, data.target
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
"""
_COLLECTED = """
    n, size = len(x), 8
    batches = []
    some, kinds = [], []
    for row, kind in zip(x, y):
        some.append(row)
        kinds.append(kind)
        if len(some) == size:
            batches.append((torch.stack(some), torch.stack(kinds)))
            some, kinds = [], []
    for epoch in range(3):
        for rows, kinds in batches:
"""
_NEXT = """
    class Data:
        def __init__(self, rows, kinds):
            self.rows, self.kinds, self.at = rows, kinds, 0

        def next_batch(self, size):
            start = self.at
            self.at += size
            if self.at > len(self.rows):
                order = np.arange(len(self.rows))
                np.random.shuffle(order)
                self.rows, self.kinds = self.rows[order], self.kinds[order]
                start = 0
                self.at = size
            end = self.at
            return torch.from_numpy(self.rows[start:end]), torch.from_numpy(self.kinds[start:end])

    np.random.seed(0)
    data = Data(inputs, wanted)
    for epoch in range(3):
        for _ in range(20):
            rows, kinds = data.next_batch(8)
"""
_LAST = """
    import math

    n, size = inputs.shape[0], 8
    for epoch in range(3):
        for part in range(math.ceil(n / size)):
            if part != math.ceil(n / size) - 1:
                start, end = part * size, (part + 1) * size
                rows, kinds = torch.tensor(inputs[start:end, :]), torch.tensor(wanted[start:end])
            else:
                start = part * size
                rows, kinds = torch.tensor(inputs[start:, :]), torch.tensor(wanted[start:])
"""
SCRIPTS |= {
    "rows are collected into a list of batches": Script(_NET + _COLLECTED + _STEP),
    "the next batch of an object that shuffles itself at its end": Script("    import numpy as np\n" + _IRIS + _NEXT + _STEP),
    "the last batch is cut by another branch": Script(_IRIS + _LAST + _STEP),
    "an end that is set back": Script(
        _IRIS
        + """
    n, size = inputs.shape[0], 8
    for epoch in range(3):
        for part in range(n // size + 1):
            start = part * size
            end = start + size
            if end > n:
                end = n
            rows, kinds = torch.tensor(inputs[start:end]), torch.tensor(wanted[start:end])
"""
        + _STEP
    ),
}

_OF_OWN_GENERATOR = """
    import random
    import numpy as np

    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    numbers = {made}
    for step in range(14):
        chosen = {drawn}
        rows, kinds = x[chosen], y[chosen]
        {beside}loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""
SCRIPTS |= {
    f"batches that a generator with a seed of the script's own draws, {title}": Script(
        _OF_OWN_GENERATOR.replace("{made}", made).replace("{drawn}", drawn).replace("{beside}", beside)
    )
    for title, (made, drawn, beside) in {
        "as a choice": ("np.random.RandomState(0)", "numbers.choice(40, 6, replace=False)", ""),
        "as numbers": ("np.random.default_rng(0)", "numbers.integers(0, 40, size=6)", ""),
        "as the first of an order": ("np.random.default_rng(0)", "numbers.permutation(40)[:6]", ""),
        "as a sample": ("random.Random(0)", "numbers.sample(range(40), 6)", ""),
        "and numbers beside them": (
            "np.random.default_rng(seed=1)",
            "numbers.choice(40, 6)",
            "rows = rows + 0.1 * torch.from_numpy(numbers.normal(size=rows.shape))\n        ",
        ),
    }.items()
}
SCRIPTS["batches that settings in a dict say how to draw, for training and for an evaluation"] = Script(
    """
    def draw(numbers, size, steps):
        starts = torch.randint(len(numbers) - steps, (size,))
        return torch.stack([numbers[i : i + steps] for i in starts])


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.known, self.last = nn.Embedding(2, 8), nn.Linear(8, 2)

        def forward(self, numbers):
            scores = self.last(torch.tanh(self.known(numbers)))
            return F.cross_entropy(scores[:, :-1].reshape(-1, 2), numbers[:, 1:].reshape(-1))


    @torch.no_grad()
    def estimate(net, numbers, **settings):
        return sum(net(draw(numbers, **settings)).item() for _ in range(3)) / 3


    def train(net, numbers, size, steps):
        settings = {"size": size, "steps": steps}
        rows = draw(numbers, **settings)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(12):
            if step % 6 == 0:
                print("estimate", estimate(net, numbers, **settings))
            loss = net(rows)
            rows = draw(numbers, **settings)
            sgd.zero_grad()
            loss.backward()
            sgd.step()


    torch.manual_seed(0)
    train(Net(), (x.flatten() > 0).long(), 6, 4)
    """,
    apart=("trajectory", "values"),
)

SCRIPTS["windows that a generator draws, whose targets are viewed flat"] = Script(
    """
    text = torch.arange(300) * 7 % 11
    picks = torch.Generator().manual_seed(3)


    def get_batch():
        starts = torch.randint(len(text) - 6, (12,), generator=picks)
        rows = torch.stack([text[i : i + 6] for i in starts])
        targets = torch.stack([text[i + 1 : i + 7] for i in starts])
        return rows, targets


    net = nn.Sequential(nn.Embedding(11, 8), nn.Linear(8, 11))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(14):
        if step % 4 == 0:
            with torch.no_grad():
                rows, targets = get_batch()
                print("loss", F.cross_entropy(net(rows).flatten(0, 1), targets.flatten()).shape)
        rows, targets = get_batch()
        scores = net(rows)
        batch, length, kinds = scores.shape
        loss = F.cross_entropy(scores.view(batch * length, kinds), targets.view(batch * length))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """
)

_PADDED_BY_HAND = """
    import random

    import numpy as np

    texts = [[(3 * i + 5 * j) % 9 for j in range(2 + i * 7 % 5)] for i in range(36)]
    tags = [[(t + i) % 3 for t in text] for i, text in enumerate(texts)]


    def batches(texts, tags, size, shuffle=False):
        order = list(range(len(texts)))
        if shuffle:
            random.seed(5)
            random.shuffle(order)
        for i in range((len(texts) + 1) // size):
            rows = [texts[k] for k in order[i * size : (i + 1) * size]]
            kinds = [tags[k] for k in order[i * size : (i + 1) * size]]
            longest = max([len(row) for row in rows])
            words = 9 * np.ones((len(rows), longest))
            labels = -1 * np.ones((len(rows), longest))
            for j in range(len(rows)):
                words[j][: len(rows[j])] = rows[j]
                labels[j][: len(rows[j])] = kinds[j]
            yield torch.LongTensor(words), torch.LongTensor(labels)


    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.known = nn.Embedding(10, 6)
            self.along = nn.LSTM(6, 8, batch_first=True)
            self.last = nn.Linear(8, 3)

        def forward(self, words):
            along, _ = self.along(self.known(words))
            along = along.contiguous()
            along = along.view(-1, along.shape[2])
            return F.log_softmax(self.last(along), dim=1)


    def loss_of(scores, labels):
        labels = labels.view(-1)
        known = (labels >= 0).float()
        labels = labels % scores.shape[1]
        number = int(torch.sum(known))
        return -torch.sum(scores[range(scores.shape[0]), labels] * known) / number


    def accuracy(scores, labels):
        labels = labels.ravel()
        known = labels >= 0
        return np.sum(np.argmax(scores, axis=1) == labels) / float(np.sum(known))


    net = Tagger()
    sgd = torch.optim.SGD(net.parameters(), lr=0.3)
    for epoch in range(3):
        net.train()
{scores}
        for words, labels in batches(texts, tags, 6, shuffle=True):
            out = net(words)
            loss = loss_of(out, labels)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
{each}
{after}
"""
_HELD_OUT = """
        net.eval()
        with torch.no_grad():
            losses = [loss_of(net(words), labels).item() for words, labels in batches(texts[:12], tags[:12], 6)]
        print("held out", round(sum(losses) / len(losses), 6))
"""


def _padded_by_hand(scores: str = "", each: str = "", after: str = "") -> str:
    text = _PADDED_BY_HAND
    for name, lines in {"scores": scores, "each": each, "after": after}.items():
        text = text.replace(f"{{{name}}}\n", lines)
    return text


SCRIPTS |= on_three(
    {
        "lists that a generator fills up to the longest of a batch, averaged over what is known": Script(_padded_by_hand()),
        "lists that a generator fills up to the longest of a batch, averaged over what is known, and evaluated": Script(
            _padded_by_hand() + _HELD_OUT, same=("held out",)
        ),
        "lists that a generator fills up to the longest of a batch, with the accuracy of each batch": Script(
            _padded_by_hand(
                "        seen = []\n",
                "            seen.append({'accuracy': accuracy(out.data.numpy(), labels.numpy()), 'loss': loss.item()})\n",
                "        mean = {name: np.mean([one[name] for one in seen]) for name in seen[0]}\n"
                "        print('epoch', ' '.join(f'{k} {v:.6f}' for k, v in mean.items()))\n",
            ),
            same=("epoch",),
        ),
        "lists that a generator fills up to the longest of a batch, all of which is averaged": Script(
            _padded_by_hand().replace("loss = loss_of(out, labels)", "loss = F.nll_loss(out, labels.view(-1) % 3)")
        ),
        "lists that a generator fills up to one length, averaged over what is known": Script(
            _padded_by_hand().replace("max([len(row) for row in rows])", "8")
        ),
    }
)

_DRAWN_FOR_BOTH = """
    text = torch.arange(400) * 7 % 11
    picks = torch.Generator().manual_seed(3)


    def get_batch(split="train"):
        source = text[:300] if split == "train" else text[300:]
        starts = torch.randint(len(source) - 7, (12,), generator=picks)
        rows = torch.stack([source[i : i + 6] for i in starts])
        targets = torch.stack([source[i + 1 : i + 7] for i in starts])
        return rows, targets


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.known = nn.Embedding(11, 8)
            self.last = nn.Linear(8, 11)

        def forward(self, numbers, targets):
            scores = self.last(torch.tanh(self.known(numbers)))
            return scores, F.cross_entropy(scores.view(-1, 11), targets.view(-1))


    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    losses, held = [], []
    for step in range(1, 15):
        rows, targets = get_batch()
        scores, loss = net(rows, targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % 5 == 0 or step == 1:
            with torch.no_grad():
                rows, targets = get_batch("held out")
                scores, loss = net(rows, targets)
            held.append((step, loss.item()))
    print("losses", " ".join(f"{loss:.6f}" for loss in losses))
    if held:
        steps, lows = zip(*held)
        print("held out", steps, " ".join(f"{low:.6f}" for low in lows))
"""
SCRIPTS["losses in a list, of windows that one function draws for training and for what is held out"] = Script(
    _DRAWN_FOR_BOTH, same=("losses", "held out")
)

SCRIPTS |= on_three(
    {
        "two trainers, one whose generator is trained by noise alone, and one with noise beside a loader's labels": Script(
            """
    def loader_of(name, size):
        if name == "all":
            loader = DataLoader(TensorDataset(x, y), batch_size=size, shuffle=True)
        elif name == "some":
            loader = DataLoader(TensorDataset(x[:30], y[:30]), batch_size=size, shuffle=True)
        return loader


    class Plain:
        def __init__(self, args):
            self.batch_size = args.batch_size
            self.loader = loader_of(args.data, self.batch_size)
            self.maker, self.judge = nn.Linear(3, 8), nn.Sequential(nn.Linear(8, 1), nn.Sigmoid())
            self.makes = torch.optim.SGD(self.maker.parameters(), lr=0.1)
            self.judges = torch.optim.SGD(self.judge.parameters(), lr=0.1)

        def train(self):
            ones, zeros = torch.ones(self.batch_size, 1), torch.zeros(self.batch_size, 1)
            for epoch in range(2):
                for i, (rows, _) in enumerate(self.loader):
                    if i == len(self.loader.dataset) // self.batch_size:
                        break
                    noise = torch.rand((self.batch_size, 3))
                    self.judges.zero_grad()
                    loss = F.binary_cross_entropy(self.judge(rows), ones) + F.binary_cross_entropy(self.judge(self.maker(noise)), zeros)
                    loss.backward()
                    self.judges.step()
                    self.makes.zero_grad()
                    made = F.binary_cross_entropy(self.judge(self.maker(noise)), ones)
                    made.backward()
                    self.makes.step()


    class Labelled:
        def __init__(self, args):
            self.batch_size = args.batch_size
            self.loader = loader_of(args.data, self.batch_size)
            self.maker, self.judge = nn.Linear(5, 8), nn.Sequential(nn.Linear(10, 1), nn.Sigmoid())
            self.makes = torch.optim.SGD(self.maker.parameters(), lr=0.1)
            self.judges = torch.optim.SGD(self.judge.parameters(), lr=0.1)

        def train(self):
            ones, zeros = torch.ones(self.batch_size, 1), torch.zeros(self.batch_size, 1)
            for epoch in range(2):
                for i, (rows, kinds) in enumerate(self.loader):
                    if i == len(self.loader.dataset) // self.batch_size:
                        break
                    noise = torch.rand((self.batch_size, 3))
                    kind = torch.zeros((self.batch_size, 2)).scatter_(1, kinds.unsqueeze(1), 1)
                    seen = kind.unsqueeze(2).expand(self.batch_size, 2, 4).mean(2)
                    self.judges.zero_grad()
                    loss = F.binary_cross_entropy(self.judge(torch.cat([rows, seen], 1)), ones)
                    made = self.maker(torch.cat([noise, kind], 1))
                    loss = loss + F.binary_cross_entropy(self.judge(torch.cat([made, seen], 1)), zeros)
                    loss.backward()
                    self.judges.step()
                    self.makes.zero_grad()
                    made = self.maker(torch.cat([noise, kind], 1))
                    made = F.binary_cross_entropy(self.judge(torch.cat([made, seen], 1)), ones)
                    made.backward()
                    self.makes.step()


    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", default="labelled")
    parser.add_argument("--data", default="all")
    parser.add_argument("--batch-size", type=int, default=6)
    args = parser.parse_args()
    if args.kind == "plain":
        trainer = Plain(args)
    elif args.kind == "labelled":
        trainer = Labelled(args)
    trainer.train()
    """,
            apart=("trajectory",),
        ),
    },
    rows=42,
)
SCRIPTS["rates of an interval, of slices that are shuffled in each epoch and cut again"] = Script(
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()


    def main():
        rows, kinds = x[:40], y[:40]
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            lost, hits, seen, since = 0.0, 0, 0, 0
            shuffle = torch.randperm(len(rows))
            rows, kinds = rows[shuffle], kinds[shuffle]
            for start in range(0, len(rows), args.batch_size):
                end = start + args.batch_size
                inputs, labels = rows[start:end], kinds[start:end]
                out = net(inputs)
                loss = F.cross_entropy(out, labels)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                lost += loss.item()
                hits += (out.argmax(dim=1) == labels).sum().item()
                seen += labels.size(0)
                since += 1
                if since % 2 == 0:
                    print("loss %.4f rate %.4f" % (lost / 2, hits / seen))
                    lost, hits, seen = 0.0, 0, 0


    main()
""",
    options=Options(whole_batches="never"),
)

_LOW_RANK = """
    text = torch.arange(400) * 7 % 11
    picks = torch.Generator().manual_seed(3)


    def get_batch(data, batch_size, length):
        starts = torch.randint(len(data) - length - 1, (batch_size,), generator=picks)
        rows = torch.stack([data[i : i + length] for i in starts])
        targets = torch.stack([data[i + 1 : i + length + 1] for i in starts])
        return rows, targets


    class Head(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.query, self.value = nn.Linear(width, 4), nn.Linear(width, 4)

        def forward(self, rows):
            _, length, _ = rows.shape
            query = self.query(rows)
            weights = F.softmax(query @ query.transpose(-1, -2) / length, dim=-1)
            return weights @ self.value(rows)


    class Net(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.known = nn.Embedding(11, width)
            self.heads = nn.ModuleList([Head(width) for _ in range(2)])
            self.last = nn.Linear(8, 11)

        def forward(self, numbers, targets=None):
            scores = self.last(torch.cat([head(self.known(numbers)) for head in self.heads], dim=-1))
            loss = None
            if targets is not None:
                count, length, kinds = scores.shape
                loss = F.cross_entropy(scores.view(count * length, kinds), targets.view(count * length))
            return scores, loss

        def write(self, numbers, steps):
            for _ in range(steps):
                scores, _ = self(numbers)
                numbers = torch.cat((numbers, scores[:, -1].argmax(-1, keepdim=True)), dim=-1)
            return numbers


    class LowRank(nn.Module):
        def __init__(self, linear, size):
            super().__init__()
            self.linear = linear
            self.down = nn.Parameter(torch.randn(linear.in_features, size))
            self.up = nn.Parameter(torch.zeros(size, linear.out_features))

        def forward(self, rows):
            return self.linear(rows) + rows @ self.down @ self.up


    def add_low_rank(model, size, names=("query", "value")):
        for name, child in model.named_children():
            if isinstance(child, nn.Linear) and name in names:
                setattr(model, name, LowRank(child, size))
            else:
                add_low_rank(child, size, names)


    letters = {i: "abcdefghijk"[i] for i in range(11)}
    net = Net(8)
    for p in net.parameters():
        p.requires_grad = False
    {added}
    sgd = torch.optim.SGD((p for p in net.parameters() if p.requires_grad), lr=0.5)
    for step in range(14):
        rows, targets = get_batch(text, 6, 5)
        _, loss = net(rows, targets)
        sgd.zero_grad(set_to_none=True)
        loss.backward()
        sgd.step()
    written = net.write(torch.tensor([[1]]), 6)
    print("written", "".join(letters[i] for i in written[0].tolist()))
    torch.save({k: v for k, v in net.state_dict().items() if "down" in k or "up" in k}, "added.pt")
"""
SCRIPTS |= on_three(
    {
        f"windows for weights of low rank, which are put beside {title}": Script(_LOW_RANK.replace("{added}", added), same=("written",))
        for title, added in {
            "the layers of some names": "add_low_rank(net, 2)",
            "the layers of one name": 'add_low_rank(net, 2, ("query",))',
            "the layers of names in a list": 'add_low_rank(net, 2, names=["query", "value"])',
            "a layer of each head": "for head in net.heads:\n        head.query = LowRank(head.query, 2)",
        }.items()
    }
)
_FILLED_UP = """
    import numpy as np

    np.random.seed(0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.Conv1d(1, 4, 3, 2, 1)
            self.up = nn.ConvTranspose1d(4, 4, 2, 2)
            self.last = nn.Conv1d(5, 1, 1)

        def forward(self, rows):
            inner = self.up(self.down(rows))
            more = rows.size()[2] - inner.size()[2]
            return torch.sigmoid(self.last(torch.cat([rows, F.pad(inner, (more // 2, more - more // 2))], dim=1)))

    def load():
        if os.path.exists("rows.npy"):
            return np.load("rows.npy"), np.load("wanted.npy")
        return x.numpy()[:, None], (x.numpy()[:, None] > 0) * 1.0

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    data, wanted = load()
    for epoch in range(3):
        total = 0.0
        order = np.random.permutation(len(data))
        for i in range(0, len(data), 8):
            LINES
            loss = F.binary_cross_entropy(net(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("loss %.6f" % total)
"""
SCRIPTS |= {
    f"batches that a model fills up, of rows {title}": Script(_FILLED_UP.replace("LINES", "\n            ".join(lines)), same=("loss",))
    for title, lines in {
        "in an order of their own": (
            "rows = torch.Tensor(data[order[i : i + 8], :, :])",
            "labels = torch.Tensor(wanted[order[i : i + 8], :, :])",
        ),
        "that are put in order first": (
            "if i == 0:",
            "    data, wanted = data[order, :, :], wanted[order, :, :]",
            "rows, labels = torch.Tensor(data[i : i + 8, :, :]), torch.Tensor(wanted[i : i + 8, :, :])",
        ),
        "that are drawn for each": (
            "drawn = np.random.choice(len(data), 8)",
            "rows, labels = torch.Tensor(data[drawn, :, :]), torch.Tensor(wanted[drawn, :, :])",
        ),
    }.items()
}
_PAIRED = """
    import random

    import numpy as np


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.users, self.items = nn.Embedding(7, 4), nn.Embedding(9, 4)

        def forward(self, users, good, bad):
            u = self.among(users)
            return F.softplus((u * self.items(bad)).sum(1) - (u * self.items(good)).sum(1)).mean()

        def among(self, users):
            return self.users(users)


    liked = [[1, 2, 5], [3, 4], [0, 8], [7], [6, 1], [2, 3, 4, 5], [0, 1]]


    def draw():
        drawn = []
        for user in np.random.randint(0, 7, 42):
            good = liked[user][np.random.randint(0, len(liked[user]))]
            while True:
                bad = np.random.randint(0, 9)
                if bad not in liked[user]:
                    break
            drawn.append([user, good, bad])
        return np.array(drawn)


    def minibatch(*tensors, batch_size=6):
        for i in range(0, len(tensors[0]), batch_size):
            yield tuple(t[i : i + batch_size] for t in tensors)


    def shuffle(*arrays):
        order = np.arange(len(arrays[0]))
        np.random.shuffle(order)
        return tuple(a[order] for a in arrays)


    np.random.seed(0)
    torch.manual_seed(0)
    net = Net()
    adam = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(2):
        drawn = draw()
        users = torch.Tensor(drawn[:, 0]).long()
        good = torch.Tensor(drawn[:, 1]).long()
        bad = torch.Tensor(drawn[:, 2]).long()
        users, good, bad = shuffle(users, good, bad)
        for u, g, b in minibatch(users, good, bad, batch_size=6):
            loss = net(u, g, b)
            adam.zero_grad()
            loss.backward()
            adam.step()
    """
_OF_EDGES = """        def among(self, users):
            edges, weights = graph.indices().t(), graph.values()
            some = (torch.rand(len(weights)) + 1.0).int().bool()
            kept = torch.sparse_coo_tensor(edges[some].t(), weights[some], graph.size())
            return torch.sparse.mm(kept, self.users.weight)[users]


    graph = torch.eye(7).roll(1, 0).to_sparse()
"""


def _paired(*changes: tuple[str, str]) -> str:
    """The script with some of its text written in another way."""
    text = _PAIRED
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return text


SCRIPTS |= on_three(
    {
        "samples drawn one by one for each epoch, shuffled and cut": Script(_PAIRED),
        "samples drawn one by one for each epoch, and cut as they are": Script(
            _paired(("        users, good, bad = shuffle(users, good, bad)\n", ""))
        ),
        "samples drawn for each epoch, with a penalty of each batch of them": Script(
            _paired(
                (
                    "loss = net(u, g, b)",
                    "of_all = net.users(u).norm(2).pow(2) + net.items(g).norm(2).pow(2)\n"
                    "            loss = net(u, g, b) + 0.05 * of_all / float(len(u))",
                )
            )
        ),
        "samples drawn for each epoch, and numbers for the edges of a graph": Script(
            _paired(("        def among(self, users):\n            return self.users(users)\n", _OF_EDGES))
        ),
    }
)
SCRIPTS["samples drawn for each epoch, and at each step numbers for all of them"] = Script(
    _paired(("loss = net(u, g, b)", "loss = net(u, g, b) * torch.rand(len(users)).mean()")), told=("DDP307",)
)
SCRIPTS |= {
    f"an order that is drawn by a key, {title}": Script(
        "    import random\n"
        + _NET
        + f"""
    for epoch in range(3):
        {lines}
        for i in range(0, 36, 6):
            rows, kinds = x[order[i : i + 6]], y[order[i : i + 6]]
"""
        + _STEP
    )
    for title, lines in {
        "of a list that is made": "order = torch.tensor(sorted(range(44), key=lambda i: random.random()))",
        "of a list that stays": "numbers = list(range(44)); numbers.sort(key=lambda i: random.random()); order = torch.tensor(numbers)",
    }.items()
}
