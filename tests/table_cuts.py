"""Scripts that make their batches by hand: slices, splits, index lists, and what only looks like them."""

from scripts import Script

_NET = """
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
"""

SCRIPTS: dict[str, Script] = {
    "slices by the start of each batch": Script(
        _NET
        + """
    n, size = len(x), 4
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
    for epoch in range(4):
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
    parser.add_argument("--batch-size", type=int, default=4)
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
        for i in range(0, images.shape[0], 4):
            batch = torch.from_numpy(images[i : i + 4]).double()
            kinds = torch.from_numpy(labels[i : i + 4]).long()
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
        for i in range(0, len(samples), 4):
            part = samples[i : i + 4]
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
    size = 4
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
            print(f"loss {train(model, optimizer, x, y, 4):.6f}")


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
        for i in range(0, len(x), 4):
            pick = perm[i : i + 4]
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
        for k in range(0, len(indices), 4):
            mine = indices[k : k + 4]
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
        for idx in torch.randperm(len(x)).split(4):
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
        for step, (part, kinds) in enumerate(zip(torch.split(x, 4), torch.split(y, 4))):
            loss = F.cross_entropy(net(part), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            if step % 4 == 0:
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
    "a list of index lists": Script(
        _NET
        + """
    size = 4
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
        for data, target in batches(x, y, 4):
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
            for rows, kinds in iterate(x[32:], y[32:], 5):
                right += (net(rows).argmax(1) == kinds).sum().item()
        return right / 12


    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.5)
    best = 0.0
    for epoch in range(3):
        net.train()
        for rows, kinds in iterate(x[:32], y[:32], 4):
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
    SIZE = 4


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
    "evaluation in slices": Script(
        _NET
        + """
    for epoch in range(2):
        net.train()
        for i in range(0, 32, 4):
            loss = F.cross_entropy(net(x[i : i + 4]), y[i : i + 4])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        net.eval()
        lost, right = 0.0, 0
        with torch.no_grad():
            for i in range(32, 44, 5):
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
    test_loader = DataLoader(TensorDataset(x[32:], y[32:]), batch_size=6)
    for epoch in range(2):
        net.train()
        perm = torch.randperm(32)
        for i in range(0, 32, 4):
            rows = perm[i : i + 4]
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
    batch_size = 4
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
        for i in range(0, len(x), 4):
            loss = F.cross_entropy(net(x[i : i + 4]), y[i : i + 4])
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
    "a trainer class": Script(
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


    trainer = Trainer(x, y, 4)
    for epoch in range(2):
        trainer.epoch()
""",
    ),
    "a permutation from a generator of its own": Script(
        """
    rng = torch.Generator().manual_seed(3)
"""
        + _NET
        + """
    for epoch in range(2):
        perm = torch.randperm(len(x), generator=rng)
        for i in range(0, len(x), 4):
            loss = F.cross_entropy(net(x[perm[i : i + 4]]), y[perm[i : i + 4]])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
""",
    ),
    "batches collected before training": Script(
        _NET
        + """
    batches = []
    for i in range(0, len(x), 4):
        batches.append((x[i : i + 4], y[i : i + 4]))
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
    series = torch.sin(torch.arange(400.0)).view(-1, 1)
    lstm = nn.LSTM(1, 4)
    head = nn.Linear(4, 1)
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
    "columns that an lstm reads": Script(
        """
    def columns(tokens, size):
        rows = tokens.size(0) // size
        return tokens[: rows * size].view(size, -1).t().contiguous()


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.lstm, self.out = nn.Embedding(9, 6), nn.LSTM(6, 6), nn.Linear(6, 9)

        def forward(self, tokens, state):
            seen, state = self.lstm(self.table(tokens), state)
            return self.out(seen), state


    tokens = columns((torch.arange(400) * 7) % 9, 4)
    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        state = (torch.zeros(1, 4, 6), torch.zeros(1, 4, 6))
        for i in range(0, tokens.size(0) - 1, 8):
            span = min(8, tokens.size(0) - 1 - i)
            data, target = tokens[i : i + span], tokens[i + 1 : i + 1 + span].view(-1)
            state = tuple(s.detach() for s in state)
            out, state = net(data, state)
            loss = F.cross_entropy(out.view(-1, 9), target)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
""",
        told=("DDP402",),
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
        for i in range(0, 44, 4):
            rows = table.iloc[i : i + 4]
            loss = F.cross_entropy(net(torch.tensor(rows.values)), y[i : i + 4])
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
        for i in range(0, 44, 4):
            loss = F.cross_entropy(net(rows[i : i + 4]), y[i : i + 4])
            sgd.zero_grad()
            loss.backward()
            sgd.step()
""",
    ),
}
