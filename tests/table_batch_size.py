"""Scripts that read the batch size elsewhere than in their loader, or train in folds."""

from scripts import Script, on_three

SCRIPTS: dict[str, Script] = {
    "derived shape": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    train = TensorDataset(x[:42], y[:42])
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)

    for epoch in range(2):
        for data, target in loader:
            ones = torch.ones(2 * args.batch_size, 2)
            out = model(torch.cat([data, -data]))
            loss = F.mse_loss(out, ones)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    ),
    "a row for each sample, repeated by a tuple": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    args = parser.parse_args()
    train = TensorDataset(x[:42], y[:42])
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for epoch in range(2):
        for data, target in loader:
            weights = torch.linspace(0.5, 1.5, 8).repeat((args.batch_size, 1))
            loss = F.cross_entropy(model(data * weights), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    ),
    "a size of one by default, another by the arguments": Script(
        """
        SIZE = 1
        parser = argparse.ArgumentParser()
        parser.add_argument("-b", "--batch-size", type=int, default=SIZE)
        args = parser.parse_args()
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x, y.float()), batch_size=args.batch_size, shuffle=True, drop_last=True)
        for epoch in range(2):
            for features, labels in loader:
                loss = F.binary_cross_entropy_with_logits(model(features).squeeze(1), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        args=("--batch-size", "6"),
    ),
    "a size of one, which no argument changes": Script(
        """
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x, y.float()), batch_size=1, shuffle=True)
        for epoch in range(2):
            for features, labels in loader:
                loss = F.binary_cross_entropy_with_logits(model(features).squeeze(1), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        told=("DDP303",),
    ),
    "half the batch": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    train = TensorDataset(x[:42], y[:42])
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)

    for epoch in range(2):
        for data, target in loader:
            out = model(data)
            first, second = out[: args.batch_size // 2], out[args.batch_size // 2 :]
            loss = F.cross_entropy(out, target) + (first ** 2).mean() + (second ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    ),
    "labels made once, outside": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    train = TensorDataset(x[:42], y[:42])
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)

    real = torch.ones(args.batch_size, 2)
    for epoch in range(2):
        for data, target in loader:
            out = model(data)
            loss = F.mse_loss(out, real)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    ),
    "view by the batch size": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    train = TensorDataset(x[:42], y[:42])
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)

    for epoch in range(2):
        for data, target in loader:
            out = model(data.view(args.batch_size, 2, 4).reshape(args.batch_size, -1))
            loss = F.cross_entropy(out, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    ),
    "short batches skipped by a name": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    train = TensorDataset(x[:42], y[:42])
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)

    B = args.batch_size
    for epoch in range(2):
        for data, target in loader:
            if data.shape[0] < B:
                continue
            if len(target) != B:
                break
            loss = F.cross_entropy(model(data), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    ),
    "asserted": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    train = TensorDataset(x[:42], y[:42])
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)

    for epoch in range(2):
        for data, target in loader:
            assert data.size(0) == args.batch_size
            loss = F.cross_entropy(model(data), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    ),
    "progress and schedules": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    train = TensorDataset(x[:42], y[:42])
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)

    steps = len(train) // args.batch_size
    lr = args.lr * args.batch_size / 6
    done = 0
    for epoch in range(2):
        for i, (data, target) in enumerate(loader):
            done += args.batch_size
            for group in optimizer.param_groups:
                group["lr"] = lr * (1 - (epoch * steps + i) / (2 * steps))
            loss = F.cross_entropy(model(data), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if i % (12 // args.batch_size) == 0:
                print(f"[{i * args.batch_size}/{len(train)}] {done} seen")
        print("epoch", epoch, "seen", done, "steps", steps, "name", f"run_b{args.batch_size}")
""",
        same=("epoch", "["),
    ),
    "divided by the batch size": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    train = TensorDataset(x[:42], y[:42])
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)

    for epoch in range(2):
        for data, target in loader:
            loss = F.cross_entropy(model(data), target, reduction="sum") / args.batch_size
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    ),
    "total over the loader times the batch": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    train = TensorDataset(x[:42], y[:42])
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)

    for epoch in range(2):
        total = 0.0
        for data, target in loader:
            loss = F.cross_entropy(model(data), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * args.batch_size
        print(f"loss {total / len(train):.6f} {total / (len(loader) * args.batch_size):.6f}")
""",
        same=("loss",),
    ),
    "accuracy by the batch size": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    train = TensorDataset(x[:42], y[:42])
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)

    for epoch in range(2):
        hits = 0
        for data, target in loader:
            out = model(data)
            loss = F.cross_entropy(out, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += (out.argmax(1) == target).sum().item()
        print(f"acc {hits / (len(loader) * args.batch_size):.6f}")
""",
        same=("acc",),
    ),
    "a recurrent state by the batch size": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    train = TensorDataset(x[:42], y[:42])
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(2, 5, batch_first=True)
            self.out = nn.Linear(5, 2)
        def init_hidden(self, batch_size):
            return torch.zeros(1, batch_size, 5)
        def forward(self, rows, hidden):
            seen, hidden = self.rnn(rows, hidden)
            return self.out(seen[:, -1]), hidden
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    for epoch in range(2):
        for data, target in loader:
            hidden = model.init_hidden(args.batch_size)
            out, hidden = model(data.view(-1, 4, 2), hidden)
            loss = F.cross_entropy(out, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    ),
    "a recurrent state for training and evaluation": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    train = TensorDataset(x[:42], y[:42])
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(2, 5, batch_first=True)
            self.out = nn.Linear(5, 2)
        def init_hidden(self, batch_size):
            return torch.zeros(1, batch_size, 5)
        def forward(self, rows, hidden):
            seen, hidden = self.rnn(rows, hidden)
            return self.out(seen[:, -1]), hidden
    check = DataLoader(TensorDataset(x[:24], y[:24]), batch_size=args.batch_size)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    for epoch in range(2):
        for data, target in loader:
            hidden = model.init_hidden(args.batch_size)
            out, hidden = model(data.view(-1, 4, 2), hidden)
            loss = F.cross_entropy(out, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total = 0.0
        with torch.no_grad():
            for data, target in check:
                out, _ = model(data.view(-1, 4, 2), model.init_hidden(args.batch_size))
                total += F.cross_entropy(out, target).item()
        print(f"check {total / len(check):.6f}")
""",
        same=("check",),
    ),
    "the model is given the batch size": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    train = TensorDataset(x[:42], y[:42])
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)

    class Net(nn.Module):
        def __init__(self, batch_size):
            super().__init__()
            self.batch_size = batch_size
            self.rnn = nn.GRU(2, 5, batch_first=True)
            self.out = nn.Linear(5, 2)
        def forward(self, rows):
            hidden = torch.zeros(1, self.batch_size, 5)
            seen, hidden = self.rnn(rows.view(self.batch_size, 4, 2), hidden)
            return self.out(seen[:, -1])
    model = Net(args.batch_size)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    for epoch in range(2):
        for data, target in loader:
            out = model(data)
            loss = F.cross_entropy(out, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    ),
    "fixed noise for pictures and noise for batches": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    train = TensorDataset(x[:42], y[:42])
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)

    fixed = torch.randn(4, 8)
    for epoch in range(2):
        for data, target in loader:
            noise = torch.randn(args.batch_size, 8) * 0
            loss = F.cross_entropy(model(data + noise), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
    ),
    "batch size from the loader": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    train = TensorDataset(x[:42], y[:42])
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)

    for epoch in range(2):
        for data, target in loader:
            loss = F.cross_entropy(model(data), target, reduction="sum") / loader.batch_size
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            assert len(data) == loader.batch_size
""",
    ),
    "a constant of the module": Script(
        """
    BATCH_SIZE = 6
    loader = DataLoader(TensorDataset(x[:42], y[:42]), BATCH_SIZE, shuffle=True, drop_last=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def step(data, target):
        ones = torch.ones((BATCH_SIZE,), dtype=torch.long)
        out = model(data)
        loss = F.cross_entropy(out, target) + 0.1 * F.cross_entropy(out, ones)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for epoch in range(2):
        for data, target in loader:
            step(data, target)
""",
    ),
    "a rate and a schedule by the loader's own number": Script(
        """
    rows = TensorDataset(x[:42], y[:42])
    loader = DataLoader(rows, batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * loader.batch_size)
    last = 2 * (len(rows) // loader.batch_size)
    done = 0
    for epoch in range(2):
        total = 0.0
        for data, target in loader:
            optimizer.param_groups[0]["lr"] = 0.06 * (1 - done / (2 * last))
            optimizer.zero_grad()
            loss = F.cross_entropy(model(data), target, reduction="sum") / loader.batch_size
            loss.backward()
            optimizer.step()
            total += loss.item()
            done += 1
        print(f"loss {total / len(loader):.6f}, batches of {loader.batch_size}")
""",
        same=("loss",),
    ),
    "short batches told by a number": Script(
        """
    loader = DataLoader(TensorDataset(x[:39], y[:39]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for data, target in loader:
            if data.shape[0] < 6:
                continue
            if len(target) == 1:
                break
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
""",
    ),
    "a collate function that leaves samples out": Script(
        """
    def kept(samples):
        chosen = [s for s in samples if s[0].sum() > -0.5]
        return torch.stack([s[0] for s in chosen]), torch.stack([s[1] for s in chosen])


    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True, collate_fn=kept)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
""",
        told=("DDP402",),
    ),
    "a model that norms by the batch itself": Script(
        """
    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(8, 5)
            self.second = nn.Linear(5, 2)

        def forward(self, rows):
            inner = self.first(rows)
            inner = inner - inner.mean(0)
            return self.second(torch.relu(inner))


    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    model = Normed()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
""",
    ),
    "gradients clipped by the loss": Script(
        """
    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in loader:
            loss = F.cross_entropy(model(data), target)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.1 * loss.item())
            optimizer.step()
""",
    ),
    "total with a factor from the loader": Script("""
    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(data + torch.zeros(loader.batch_size, 8)), target, reduction="sum")
            loss.backward()
            optimizer.step()
"""),
    "total times the loader's number": Script("""
    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for data, target in loader:
            optimizer.zero_grad()
            loss = 0.01 * F.cross_entropy(model(data), target, reduction="sum") * loader.batch_size
            loss.backward()
            optimizer.step()
"""),
    "threshold on the loader's number": Script(
        """
    loader = DataLoader(TensorDataset(x[:42], y[:42]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rate = 0.2 if loader.batch_size > 4 else 0.01
    if loader.batch_size >= 6:
        optimizer.param_groups[0]["lr"] = rate
    for epoch in range(2):
        for data, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
    print("rate", rate)
""",
        same=("rate",),
    ),
    "even batches": Script(
        """
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for data, target in loader:
            if len(data) % 4 == 0:
                continue
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
""",
        told=("DDP303",),
    ),
    "how many parts a batch has": Script(
        """
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for batch in loader:
            if len(batch) == 3:
                data, target, _ = batch
            else:
                data, target = batch
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
""",
    ),
    "how many outputs a model has": Script(
        """
    class TwoHeads(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(8, 2), nn.Linear(8, 2)

        def forward(self, x):
            return self.first(x), self.second(x)

    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    model = TwoHeads()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for step, batch in enumerate(loader):
            assert len(batch) == 2
            out = model(batch[0])
            assert len(out) == 2
            logits, extra = out
            optimizer.zero_grad()
            (F.cross_entropy(logits, batch[1]) + F.cross_entropy(extra, batch[1])).backward()
            optimizer.step()
""",
    ),
    "labels that number a batch's rows": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    args = parser.parse_args()
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=args.batch_size, shuffle=True)
    net = nn.Linear(8, 9)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for a, _ in loader:
            places = torch.arange(args.batch_size)
            loss = F.cross_entropy(net(a), places)
            opt.zero_grad()
            loss.backward()
            opt.step()
"""
    ),
    "numbers of all rows, where a loss compares them all": Script(
        """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=6)
    args = parser.parse_args()
    loader = DataLoader(TensorDataset(x[:36], torch.cos(x[:36])), batch_size=args.batch_size, shuffle=True)
    net = nn.Linear(8, 6)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for left, right in loader:
            one, other = F.normalize(net(left), dim=1), F.normalize(net(right), dim=1)
            logits = one @ other.t() / 0.5
            own = torch.arange(args.batch_size)
            loss = F.cross_entropy(logits, own)
            opt.zero_grad()
            loss.backward()
            opt.step()
"""
    ),
}
_SHORT = """
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=6)
args = parser.parse_args()
net = nn.Linear(8, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
%s
for epoch in range(2):
    %s
        %s
            continue
        loss = F.cross_entropy(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
_DRAWN = "loader = DataLoader(TensorDataset(x[:41], y[:41]), batch_size=args.batch_size, %s)"
_LOOPED = "for a, b in loader:"
SCRIPTS |= {
    "short batches that are left out": Script(_SHORT % (_DRAWN % "shuffle=False", _LOOPED, "if a.size(0) != args.batch_size:")),
    "short batches that are left out of those of a sampler": Script(
        _SHORT % (_DRAWN % "sampler=torch.utils.data.SequentialSampler(x[:41])", _LOOPED, "if a is None or len(b) < args.batch_size:")
    ),
    "short batches that are left out, of a loader with options": Script(
        _SHORT
        % (
            "options = {'num_workers': 0}\n" + _DRAWN % "**options" + "\nprint('batches', len(loader))",
            _LOOPED,
            "if args.batch_size != len(a):",
        ),
        same=("batches",),
    ),
    "short batches, cut by hand, that are left out": Script(
        _SHORT
        % (
            "rows, kinds = x[:41], y[:41]",
            "for i in range(0, len(rows), args.batch_size):\n        a, b = rows[i : i + args.batch_size], kinds[i : i + args.batch_size]",
            "if len(a) < args.batch_size:",
        )
    ),
    "batches that are trained on where they are whole": Script(
        """
    net = nn.Linear(8, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for a, b in DataLoader(TensorDataset(x[:41], y[:41]), batch_size=6):
            if a.shape[0] == 6:
                opt.zero_grad()
                F.cross_entropy(net(a), b).backward()
                opt.step()
"""
    ),
}
SCRIPTS["a width that equals the batch size, of a dict in which a file is named after it"] = Script(
    """
    class Near(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.centre = torch.zeros(width)

        def forward(self, points):
            return (points - self.centre).pow(2).mean()


    def train(config, width):
        torch.manual_seed(0)
        net = nn.Linear(8, width)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        near = Near(width)
        for epoch in range(2):
            for a, _ in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=config["batch_size"]):
                loss = near(net(a))
                opt.zero_grad()
                loss.backward()
                opt.step()
        torch.save(net.state_dict(), config["file"])


    config = {"batch_size": 6, "widths": [6]}
    for width in config["widths"]:
        config["file"] = f"{width}.pt"
        train(config, width)
"""
)
SCRIPTS = on_three(SCRIPTS)

_OF_SETTINGS = """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()

    class Config:
        def __init__(self, **given):
            for key, value in given.items():
                setattr(self, key, value)

    def train({parameters}):
        feed = DataLoader(TensorDataset(x), batch_size={size}, shuffle=True, drop_last=True)
        critic = nn.Sequential(nn.Linear(8, 1), nn.Sigmoid())
        real = torch.ones(({size}, 1))
        fake = torch.zeros(({size}, 1))
        sgd = torch.optim.SGD(critic.parameters(), lr=args.lr)
        for epoch in range(2):
            for (rows,) in feed:
                loss = F.binary_cross_entropy(critic(rows), real) + F.binary_cross_entropy(critic(-rows), fake)
                sgd.zero_grad()
                loss.backward()
                sgd.step()

    {made}
    """
_COPIES = {
    "in a loop over their names": "config = dict()\n    for name in vars(args):\n        config[name] = getattr(args, name)",
    "in a loop over what they hold": "config = {}\n    for name in args.__dict__:\n        config[name] = args.__dict__[name]",
    "in a loop over pairs": "config = {}\n    for key, value in vars(args).items():\n        config[key] = value",
    "in a comprehension": "config = {k: v for k, v in vars(args).items() if v is not None}",
    "beside another": 'config = {**vars(args), "path": 1}',
    "by a call": 'config = dict(vars(args), path="x")',
}
SCRIPTS |= {
    f"settings of the command line that are copied {where}": Script(
        _OF_SETTINGS.replace("{parameters}", "config")
        .replace("{size}", 'config["batch_size"]')
        .replace("{made}", f"{code}\n    train(config)")
    )
    for where, code in _COPIES.items()
}
SCRIPTS |= {
    "settings of the command line that are handed on by name": Script(
        _OF_SETTINGS.replace("{parameters}", "batch_size, lr").replace("{size}", "batch_size").replace("{made}", "train(**vars(args))")
    ),
    "settings of the command line that an object takes": Script(
        _OF_SETTINGS.replace("{parameters}", "config")
        .replace("{size}", "config.batch_size")
        .replace("{made}", "train(Config(**vars(args)))")
    ),
}

_ONE_HOT = """
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=4)
    args = parser.parse_args()
    feed = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True, drop_last=True)
    net = nn.Linear(10, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in feed:
            hot = {zeros}.scatter_(1, kinds.unsqueeze(1), 1)
            loss = F.cross_entropy(net(torch.cat([rows, hot], 1)), 1 - kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """
SCRIPTS |= {
    f"labels that are scattered into zeros as long as a batch, {where}": Script(_ONE_HOT.replace("{zeros}", zeros))
    for where, zeros in {
        "of two numbers": "torch.zeros(args.batch_size, 2)",
        "of a tuple": "torch.zeros((args.batch_size, 2))",
        "emptied": "torch.FloatTensor(args.batch_size, 2).zero_()",
    }.items()
}

_DRAWN = """
    import numpy as np

    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=4)
    args = parser.parse_args()
    feed = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True, drop_last=True)
    net = nn.Linear(11, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in feed:
            noise = torch.from_numpy({drawn}).float()
            loss = F.cross_entropy(net(torch.cat([rows, noise], 1)), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """
SCRIPTS |= {
    f"numbers of numpy as many as a batch is long, {where}": Script(_DRAWN.replace("{drawn}", drawn), apart=("trajectory",))
    for where, drawn in {
        "from a multinomial distribution": "np.random.multinomial(1, 3 * [1 / 3], size=[args.batch_size])",
        "from a binomial distribution": "np.random.binomial(1, 0.5, (args.batch_size, 3))",
        "from an exponential distribution": "np.random.exponential(1, size=(args.batch_size, 3))",
        "from the unit interval": "np.random.random((args.batch_size, 3))",
        "as rows of a table": "np.eye(3)[np.random.choice(3, args.batch_size)]",
    }.items()
}
SCRIPTS["numbers of numpy as many as a batch is long, from a distribution that has no row"] = Script(
    _DRAWN.replace("{drawn}", "np.random.vonmises(0, 1, (args.batch_size, 3))"), told=("DDP303",)
)

_OF_THE_RUN = (
    _OF_SETTINGS[_OF_SETTINGS.index("    def train") :].replace("{parameters}", "").replace("args.lr", "0.1").replace("{made}", "train()")
)
SCRIPTS |= {
    f"a batch size of {where}": Script("\n    import sys\n\n" + _OF_THE_RUN.replace("{size}", size), args=("4",))
    for where, size in {
        "the command line, read by hand": "int(sys.argv[1])",
        "a variable of the environment": 'int(os.environ.get("BATCH_OF_A_TEST", 4))',
    }.items()
}

SCRIPTS |= {
    f"a batch size that is computed {where}": Script(f"\n    SIZE = {size}\n\n" + _OF_THE_RUN.replace("{size}", "SIZE"))
    for where, size in {
        "of numbers": "2 ** 2",
        "by the number of devices": "4 * max(1, torch.cuda.device_count())",
        "by the length of the data": "len(x) // 11",
    }.items()
}
SCRIPTS["a batch size that a file has"] = Script(
    '\n    SIZE = int(open("size").read())\n\n' + _OF_THE_RUN.replace("{size}", "SIZE"), files={"size": "4"}, told=("DDP303",)
)

_PLACES = """
    import numpy as np

    SIZE = 12
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=SIZE, shuffle=True, drop_last=True)
    net = nn.Linear(8, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    {once}
    for epoch in range(4):
        for rows, kinds in loader:
            {each}
            loss = F.cross_entropy(net(rows + 0.3 * other), kinds)
            opt.zero_grad()
            loss.backward()
            opt.step()
"""
SCRIPTS |= on_three(
    {
        f"rows of a batch that have something of their places, {title}": Script(_PLACES.replace("{once}", once).replace("{each}", each))
        for title, (once, each) in {
            "drawn once": ("noise = torch.randn(SIZE, 8)", "other = noise"),
            "drawn once by numpy": ("noise = torch.from_numpy(np.random.normal(0, 1, (SIZE, 8)))", "other = noise"),
            "drawn once for some steps": ("noise = torch.randn(3, SIZE, 8)", "other = noise.sum(0)"),
            "drawn once in one row": ("noise = torch.randn(SIZE * 8)", "other = noise.view(SIZE, 8)"),
            "drawn once, for as many as a first batch has": (
                "first = next(iter(loader))[0]\n    noise = torch.randn(len(first), 8)",
                "other = noise",
            ),
            "summed up from row to row": ("", "other = rows * (torch.ones(SIZE, 1).cumsum(0) / SIZE)"),
            "summed up from row to row by a function": ("ones = torch.ones(SIZE, 1)", "other = rows * torch.cumsum(ones, dim=0) / SIZE"),
            "their numbers": ("", "other = rows * (torch.arange(SIZE).unsqueeze(1) / SIZE)"),
            "by two parts": ("", "other = rows * torch.cat([torch.ones(SIZE // 2, 1), torch.zeros(SIZE // 2, 1)])"),
            "by two parts of a list": ("", "other = rows * torch.tensor([1.0] * (SIZE // 2) + [0.0] * (SIZE // 2)).unsqueeze(1)"),
            "written at some places": ("mask = torch.ones(SIZE, 1)\n    mask[: SIZE // 2] = 0", "other = rows * mask"),
            "written at one place": ("", "mask = torch.zeros(SIZE, 1)\n            mask[0] = 1\n            other = rows * mask"),
        }.items()
    },
    36,
)
SCRIPTS |= on_three(
    {
        f"rows of a batch mixed in an order {title}": Script(_PLACES.replace("{once}", once).replace("{each}", f"other = rows[{order}]"))
        for title, (once, order) in {
            "drawn for as many as are written out": ("", "np.random.permutation(12)"),
            "drawn once by a generator": ("order = np.random.RandomState(0).permutation(SIZE)", "order"),
            "that a generator draws for a whole batch": ("numbers = np.random.default_rng(0)", "numbers.permutation(SIZE)"),
            "of one row that a generator draws": ("numbers = np.random.default_rng(0)", "numbers.integers(SIZE)"),
        }.items()
    },
    36,
)
SCRIPTS["settings that names of arguments overwrite, one of which is a size"] = Script(
    """
    from types import SimpleNamespace

    config = SimpleNamespace(width=6, batch_size=4, epochs=2)


    def parse():
        parser = argparse.ArgumentParser()
        parser.add_argument("--batch_size", type=int, default=config.batch_size)
        parser.add_argument("--width", type=int, default=config.width)
        for name, value in vars(parser.parse_args()).items():
            setattr(config, name, value)


    parse()
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(config.epochs):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=config.batch_size, shuffle=True):
            loss = (F.cross_entropy(model(rows), kinds, reduction="none") * torch.full((config.width,), 2.0).sum()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    torch.save(model.state_dict(), "model.pt")
""",
)

_MOVED_TOO = """
    SIZE = 4
    feed = DataLoader(TensorDataset(x, y), batch_size=SIZE)
    net = nn.Linear(8, 2)
    {made}
    sgd = torch.optim.SGD([{"params": net.parameters()}, {"params": [extra]}], lr=0.1)
    for epoch in range(2):
        for i, (rows, kinds) in enumerate(feed):
            loss = F.cross_entropy(net({given}), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """
SCRIPTS |= {
    f"a trained tensor with a row for each place of a batch, {how}": Script(
        _MOVED_TOO.replace("{made}", made).replace("{given}", "rows + extra"), told=("DDP303",)
    )
    for how, made in {
        "of the size that the loader is given": "extra = nn.Parameter(torch.zeros(SIZE, 8))",
        "of the loader's size": "extra = torch.zeros(feed.batch_size, 8, requires_grad=True)",
        "of a number that is the same": "extra = torch.zeros(4, 8, requires_grad=True)",
        "of a first batch's size": "extra = torch.zeros(next(iter(feed))[0].size(0), 8, requires_grad=True)",
        "as large as a first batch": "extra = torch.zeros_like(next(iter(feed))[0]).requires_grad_()",
    }.items()
}
SCRIPTS |= {
    f"a trained tensor of {what}": Script(_MOVED_TOO.replace("{made}", f"extra = {made}").replace("{given}", given))
    for what, made, given in (
        ("one row that is added to each sample", "torch.zeros(1, 8, requires_grad=True)", "rows + extra"),
        (
            "as many rows as a batch has, which multiplies each sample",
            "nn.Parameter(torch.eye(8)[:, [1, 0, 2, 3, 4, 5, 6, 7]])",
            "rows @ extra",
        ),
    )
}
SCRIPTS["a trained tensor with a row for each sample, cut by the number of the batch"] = Script(
    _MOVED_TOO.replace("{made}", "extra = torch.zeros(44, 8, requires_grad=True)").replace(
        "{given}", "rows + extra[i * SIZE : (i + 1) * SIZE]"
    ),
    told=("DDP402",),
)
SCRIPTS["a trained state with a row for each place of a batch, in a network"] = Script(
    """
    class Net(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.start = nn.Parameter(torch.zeros(1, size, 6))
            self.over_time = nn.GRU(2, 6, batch_first=True)
            self.last = nn.Linear(6, 2)

        def forward(self, rows):
            return self.last(self.over_time(rows.view(-1, 4, 2), self.start)[0][:, -1])

    SIZE = 4
    feed = DataLoader(TensorDataset(x, y), batch_size=SIZE)
    net = Net(SIZE)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in feed:
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """,
    told=("DDP303",),
)
SCRIPTS |= {
    f"targets kept for each sample, cut by the number of the batch, of {of}": Script(
        """
    SIZE = 4
    feed = DataLoader(TensorDataset(x, y), batch_size=SIZE)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    total, targets, seen = torch.zeros(44, 2), torch.zeros(44, 2), torch.zeros(44, 2)
    for epoch in range(3):
        for i, (rows, kinds) in enumerate(feed):
            out = net(rows)
            loss = F.cross_entropy(out, kinds) + 0.3 * F.mse_loss(out, targets[i * SIZE : (i + 1) * SIZE])
            seen[i * SIZE : (i + 1) * SIZE] = out.detach()
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        total = 0.6 * total + 0.4 * seen
        targets = total / (1 - 0.6 ** (epoch + 1))
        print("targets", "%.4f" % targets.pow(2).sum().item())
    """.replace("* SIZE", f"* {size}"),
        same=("targets",),
    )
    for of, size in {"a setting's size": "SIZE", "the loader's size": "feed.batch_size", "a size that is written out": "4"}.items()
}
SCRIPTS |= on_three(
    {
        f"targets kept for each sample, chosen by {by}": Script(
            f"""
    import numpy as np
    SIZE = 6
    feed = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=SIZE)
    net, soft = nn.Linear(8, 2), torch.softmax(torch.sin(torch.arange(72.0).view(36, 2)), 1)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        total = 0.0
        for i, (rows, kinds) in enumerate(feed):
            targets = soft[{index}]
            loss = F.kl_div(F.log_softmax(net(rows), 1), targets, reduction="batchmean")
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            total += loss.item()
        print("loss", f"{{total / len(feed):.6f}}")
    """,
            same=("loss",),
        )
        for by, index in {
            "numbers that torch counts": "torch.arange(i * SIZE, (i + 1) * SIZE)",
            "numbers that numpy counts": "np.arange(SIZE * i, SIZE * i + SIZE)",
        }.items()
    }
)

_BUT_ONE_SAMPLE = """
    feed = DataLoader(TensorDataset(x[:37], y[:37]), batch_size=6)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)


    def train({given}):
        steps = 0
        for {names} in {over}:
            if {length}:
                {leave}
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            steps += 1
        return steps


    for epoch in range(3):
        print("steps", train(feed))
"""


def _but_one_sample(length: str, given: str = "data", over: str = "data", names: str = "rows, kinds", leave: str = "continue") -> Script:
    """Training that leaves out a batch of one sample."""
    text = _BUT_ONE_SAMPLE.format(length=length, given=given, over=over, names=names, leave=leave)
    return Script(text, same=("steps",))


SCRIPTS |= on_three(
    {
        "batches of one sample are left out": _but_one_sample("rows.size(0) == 1"),
        "batches of less than two samples are left out": _but_one_sample("len(rows) < 2"),
        "an epoch ends at a batch of one sample": _but_one_sample("rows.shape[0] <= 1", leave="break"),
        "batches of one sample are left out, and all are numbered": _but_one_sample(
            "len(kinds) == 1", over="enumerate(data)", names="i, (rows, kinds)"
        ),
        "batches of one sample are left out, of a loader that everybody knows": _but_one_sample(
            "rows.size(0) == 1", given="_", over="feed"
        ),
    }
)
SCRIPTS["batches of one sample are left out, of an iterator that is made anew"] = Script(
    """
    feed = DataLoader(TensorDataset(x[:37], y[:37]), batch_size=6)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    batches = iter(feed)
    for step in range(19):
        try:
            rows, kinds = next(batches)
        except StopIteration:
            batches = iter(feed)
            rows, kinds = next(batches)
        if rows.size(0) == 1:
            continue
        loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    """
)

_SHOWN = """
    feed = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=SIZE, shuffle=True)
    net, names = nn.Linear(8, 2), ("one", "two")
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    BEFORE
    for epoch in range(4):
        total = 0.0
        for rows, kinds in feed:
            scores = net(rows)
            loss = F.cross_entropy(scores, kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            total += loss.item()
        print("loss", f"{total / len(feed):.6f}")
        AFTER
"""
SCRIPTS |= on_three(
    {
        f"{title} of a training batch that is shown": Script(
            _SHOWN.replace("BEFORE", before or "pass").replace("AFTER", after or "pass").replace("SIZE", "12"), same=("loss",)
        )
        for title, before, after in (
            ("the kind of each of the first rows", "rows, kinds = next(iter(feed)); print([names[kinds[j]] for j in range(9)])", ""),
            ("each of the first rows", "", "for i in range(9):\n            print(len(rows[i]))"),
            ("each row of a grid", "", "for i in range(3):\n            for j in range(3):\n                print(len(scores[i * 3 + j]))"),
            ("one row, by its number,", "", "print(len(rows[8]))"),
            ("the first row, and the last one,", "", "print(len(rows[0]), len(rows[-1]))"),
            ("one number of each row", "", "print(rows[:, 7].dim())"),
        )
    }
)
_SQUEEZED = """
    import numpy as np

    class Rows(Dataset):
        def __len__(self):
            return 42

        def __getitem__(self, i):
            return READ, float(y[i])

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 1))

        def forward(self, rows):
            return self.layers(rows)INSIDE

    feed, loss_of = DataLoader(Rows(), batch_size=8, shuffle=True), nn.BCEWithLogitsLoss()
    net = Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in feed:
            scores = net(rows.float())OUTSIDE
            loss = loss_of(scores, kinds.float())
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    net.eval()
    with torch.no_grad():
        print("right", sum(((net(r.float())OUTSIDE > 0) == (k > 0)).sum().item() for r, k in DataLoader(Rows(), batch_size=6)))
"""
SCRIPTS |= {
    f"a last batch of two samples, squeezed {where}, {of}": Script(
        _SQUEEZED.replace("INSIDE", inside).replace("OUTSIDE", outside).replace("READ", read), same=("right",)
    )
    for where, inside, outside in (
        ("inside the model", ".squeeze()", ""),
        ("after the model", "", ".squeeze()"),
        ("after a view", ".view(-1, 1).squeeze()", ""),
    )
    for of, read in (("of tensors", "x[i]"), ("of arrays that a file may hold", "np.asarray(x[i].tolist(), dtype=np.float32)"))
}
SCRIPTS |= {
    "a last batch of two samples, whose kinds are squeezed for a score": Script(
        """
        from sklearn.metrics import accuracy_score

        feed = DataLoader(TensorDataset(x[:42], y[:42].view(-1, 1)), batch_size=8, shuffle=True)
        first, second = nn.Linear(8, 6), nn.Linear(6, 2)
        sgd = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)

        def train(models):
            one, two = models
            scores = []
            for rows, kinds in feed:
                kinds = kinds.view(-1, )
                found = two(one(rows))
                right = torch.max(found, 1)[1]
                scores.append(accuracy_score(kinds.cpu().data.squeeze().numpy(), right.cpu().data.squeeze().numpy()))
                loss = F.cross_entropy(found, kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
            return scores

        for epoch in range(3):
            shown = sum(train([first, second])[:5])
            print("right", shown)
        """,
        same=("right",),
    )
}
SCRIPTS["weights of a penalty that are drawn for a batch, and made as wide as its rows"] = Script(
    """
    class Critic:
        def __init__(self):
            self.net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1, bias=False))
            self.size = 6
            self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)

        def penalty(self, real, fake):
            parts = torch.FloatTensor(self.size, 1, 1).uniform_(0.5, 0.5)
            parts = parts.expand(self.size, real.size(1), real.size(2))
            mixed = (parts * real + (1 - parts) * fake).requires_grad_(True)
            out = self.net(mixed)
            ones = torch.ones(out.size())
            slopes = torch.autograd.grad(out, mixed, grad_outputs=ones, create_graph=True, retain_graph=True)[0]
            return ((slopes.view(slopes.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()

        def fit(self, loader):
            for epoch in range(3):
                for (rows,) in loader:
                    if rows.size(0) != self.size:
                        continue
                    real, fake = rows.view(-1, 2, 4), torch.randn(self.size, 2, 4) * 0 + 0.3
                    loss = self.net(fake).mean() - self.net(real).mean() + self.penalty(real, fake)
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()


    torch.manual_seed(0)
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=6)
    args = parser.parse_args()
    Critic().fit(DataLoader(TensorDataset(x[:36]), batch_size=args.batch_size, shuffle=True))
    """
)
SCRIPTS["weights of a penalty that are drawn for a batch, beside what two other backward calls are made of"] = Script(
    """
    class Critic:
        def __init__(self):
            self.net = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 1, bias=False))
            self.size = 6
            self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)

        def penalty(self, real, fake):
            parts = torch.FloatTensor(self.size, 1).uniform_(0.5, 0.5)
            parts = parts.expand(self.size, real.size(1))
            mixed = (parts * real + (1 - parts) * fake).requires_grad_(True)
            out = self.net(mixed)
            slopes = torch.autograd.grad(out, mixed, grad_outputs=torch.ones(out.size()), create_graph=True)[0]
            return ((slopes.view(slopes.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()

        def fit(self, loader):
            for epoch in range(3):
                for (real,) in loader:
                    if real.size(0) != self.size:
                        continue
                    self.optimizer.zero_grad()
                    self.net(real).mean().mul(-1).backward()
                    fake = torch.randn(self.size, 8) * 0 + 0.3
                    self.net(fake).mean().backward()
                    self.penalty(real, fake).backward()
                    self.optimizer.step()


    torch.manual_seed(0)
    Critic().fit(DataLoader(TensorDataset(x[:36]), batch_size=6, shuffle=True))
    """
)
