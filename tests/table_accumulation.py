"""Scripts that accumulate gradients over several batches before a step, in the ways that people write it."""

from scripts import Script, on_three

SCRIPTS: dict[str, Script] = on_three(
    {
        "a step after every second batch": Script(
            """
            accumulate = 2
            loader = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True)
            model = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 2))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
            criterion = nn.CrossEntropyLoss()
            optimizer.zero_grad()
            for epoch in range(4):
                running = 0.0
                for i, (data, target) in enumerate(loader):
                    loss = criterion(model(data), target) / accumulate
                    loss.backward()
                    running += loss.item() * accumulate
                    if (i + 1) % accumulate == 0:
                        optimizer.step()
                        optimizer.zero_grad()
                print(f"epoch {epoch}: {running / len(loader):.6f}")
            """,
            same=("epoch",),
        ),
        "the remainder mod the window, with the last batch": Script(
            """
            def practise(net, batches, sgd, miss, hold_for):
                net.train()
                for at, (rows, kinds) in enumerate(batches):
                    with torch.set_grad_enabled(True):
                        loss = miss(net(rows), kinds)
                        loss = loss / hold_for
                        loss.backward()
                        if at + 1 == len(batches) or (at + 1) % hold_for == 0:
                            sgd.step()
                            sgd.zero_grad()


            def main():
                parser = argparse.ArgumentParser()
                parser.add_argument("--batch-size", type=int, default=6)
                parser.add_argument("--hold-for", type=int, default=3)
                args = parser.parse_args()
                net = nn.Linear(8, 2)
                batches = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True)
                sgd = torch.optim.Adam(net.parameters(), lr=0.02)
                for _ in range(5):
                    practise(net, batches, sgd, nn.CrossEntropyLoss(), args.hold_for)


            if __name__ == "__main__":
                main()
            """,
        ),
        "zeroed at the window's first batch, stepped at its last": Script(
            """
            K = 2
            batches = DataLoader(TensorDataset(x, y.float()), batch_size=6, shuffle=True, drop_last=True)
            net = nn.Linear(8, 1)
            opt = torch.optim.RMSprop(net.parameters(), lr=0.01)
            for epoch in range(5):
                for i, (a, b) in enumerate(batches):
                    if i % K == 0:
                        opt.zero_grad()
                    out = net(a).squeeze(1)
                    loss = F.binary_cross_entropy_with_logits(out, b)
                    (loss / K).backward()
                    if i % K == K - 1:
                        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
                        opt.step()
            """,
        ),
        "a counter of batches that is set back": Script(
            """
            class Trainer:
                def __init__(self, model, loader, every=2):
                    self.model, self.loader, self.every = model, loader, every
                    self.optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
                    self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 3, 0.7)
                    self.pending = 0
                    self.updates = 0

                def step(self, batch):
                    data, target = batch
                    loss = F.cross_entropy(self.model(data), target) / self.every
                    loss.backward()
                    self.pending += 1
                    if self.pending == self.every:
                        torch.nn.utils.clip_grad_norm_(self.model.parameters(), max_norm=1.0)
                        self.optimizer.step()
                        self.scheduler.step()
                        self.optimizer.zero_grad(set_to_none=True)
                        self.pending = 0
                        self.updates += 1
                    return loss.item() * self.every

                def fit(self, epochs):
                    for epoch in range(epochs):
                        total = 0.0
                        for batch in self.loader:
                            total += self.step(batch)
                        print(f"epoch {epoch} loss {total / len(self.loader):.6f} after {self.updates} updates")


            torch.manual_seed(3)
            layers = nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2)
            trainer = Trainer(nn.Sequential(*layers), DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True))
            trainer.fit(4)
            """,
            same=("epoch",),
        ),
        "micro-batches by chunks of a large batch": Script(
            """
            chunks = 2
            loader = DataLoader(TensorDataset(x, y), batch_size=12, shuffle=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
            for epoch in range(4):
                for data, target in loader:
                    optimizer.zero_grad()
                    for part, labels in zip(data.chunk(chunks), target.chunk(chunks)):
                        loss = F.cross_entropy(model(part), labels) / chunks
                        loss.backward()
                    optimizer.step()
            """,
            told=("DDP402",),
        ),
        "micro-batches by splits of so many rows": Script(
            """
            parser = argparse.ArgumentParser()
            parser.add_argument("--batch", type=int, default=12)
            parser.add_argument("--micro", type=int, default=6)
            opt = parser.parse_args()
            loader = DataLoader(TensorDataset(x, y), batch_size=opt.batch, shuffle=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
            for epoch in range(4):
                for data, target in loader:
                    optimizer.zero_grad()
                    xs, ys = data.split(opt.micro), target.split(opt.micro)
                    for part, labels in zip(xs, ys):
                        loss = F.cross_entropy(model(part), labels) / len(xs)
                        loss.backward()
                    optimizer.step()
            """,
        ),
        "micro-batches that are sliced, each with its part of the rows": Script(
            """
            def update(model, data, target, size):
                total = 0.0
                for start in range(0, data.size(0), size):
                    part, labels = data[start:start + size], target[start:start + size]
                    loss = F.cross_entropy(model(part), labels) * part.size(0) / data.size(0)
                    loss.backward()
                    total += loss.item()
                return total


            loader = DataLoader(TensorDataset(x, y), batch_size=12, shuffle=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
            for epoch in range(4):
                for data, target in loader:
                    optimizer.zero_grad()
                    update(model, data, target, 6)
                    optimizer.step()
            """,
        ),
        "subdivisions of a virtual batch": Script(
            """
            parser = argparse.ArgumentParser()
            parser.add_argument("--virtual-batch", type=int, default=24)
            parser.add_argument("--batch-size", type=int, default=6)
            args = parser.parse_args()
            iter_size = args.virtual_batch // args.batch_size
            loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
            step = 0
            for epoch in range(8):
                for data, target in loader:
                    loss = F.cross_entropy(model(data), target) / iter_size
                    loss.backward()
                    step += 1
                    if step % iter_size == 0:
                        optimizer.step()
                        optimizer.zero_grad()
            """,
        ),
        "micro-batches that are sliced, of equal weight": Script(
            """
            class Step:
                def __init__(self, net, rate, micro_batch_size):
                    self.net, self.size = net, micro_batch_size
                    self.sgd = torch.optim.SGD(net.parameters(), lr=rate)

                def __call__(self, rows, labels):
                    self.sgd.zero_grad()
                    for i in range(0, len(rows), self.size):
                        part = rows[i : i + self.size], labels[i : i + self.size]
                        loss = F.cross_entropy(self.net(part[0]), part[1])
                        (loss * 0.5).backward()
                    self.sgd.step()


            loader = DataLoader(TensorDataset(x, y), batch_size=12, shuffle=True)
            model = nn.Linear(8, 2)
            step = Step(model, 0.2, 6)
            for epoch in range(4):
                for rows, labels in loader:
                    step(rows, labels)
            """,
        ),
        "micro-batches by chunks, each with its part of the rows": Script(
            """
            loader = DataLoader(TensorDataset(x, y), batch_size=12, shuffle=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
            for epoch in range(4):
                for data, target in loader:
                    optimizer.zero_grad()
                    for part, labels in zip(torch.chunk(data, 4), torch.chunk(target, 4)):
                        loss = F.cross_entropy(model(part), labels, reduction="sum") / len(data)
                        loss.backward()
                    optimizer.step()
            """,
        ),
        "batches that are drawn, several for each step": Script(
            """
            def endless(loader):
                while True:
                    for batch in loader:
                        yield batch


            loader = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True, drop_last=True)
            feed = endless(loader)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
            micro_steps = 3
            for step in range(14):
                optimizer.zero_grad(set_to_none=True)
                seen = 0.0
                for _ in range(micro_steps):
                    data, target = next(feed)
                    loss = F.cross_entropy(model(data), target)
                    loss = loss / micro_steps
                    seen += loss.detach()
                    loss.backward()
                optimizer.step()
            """,
        ),
        "batches drawn from an iterator that is made anew when it ends": Script(
            """
            loader = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
            it = iter(loader)
            for step in range(14):
                optimizer.zero_grad()
                for micro in range(2):
                    try:
                        data, target = next(it)
                    except StopIteration:
                        it = iter(loader)
                        data, target = next(it)
                    loss = F.cross_entropy(model(data), target) / 2
                    loss.backward()
                optimizer.step()
            """,
        ),
        "losses that are summed, with one backward for all": Script(
            """
            loader = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True)
            model = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
            for epoch in range(5):
                pending, count = 0, 0
                for data, target in loader:
                    pending = pending + F.cross_entropy(model(data), target)
                    count += 1
                    if count == 2:
                        optimizer.zero_grad()
                        (pending / count).backward()
                        optimizer.step()
                        pending, count = 0, 0
            """,
        ),
        "several loaders, one step for all": Script(
            """
            first = DataLoader(TensorDataset(x[:24], y[:24]), batch_size=6, shuffle=True)
            second = DataLoader(TensorDataset(x[24:36], y[24:36]), batch_size=6, shuffle=True)


            class Tasks(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.trunk, self.heads = nn.Linear(8, 6), nn.ModuleList([nn.Linear(6, 2), nn.Linear(6, 2)])

                def forward(self, rows, task):
                    return self.heads[task](self.trunk(rows).relu())


            model = Tasks()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(6):
                for (a, b), (c, d) in zip(first, second):
                    optimizer.zero_grad()
                    F.cross_entropy(model(a, 0), b).backward()
                    F.cross_entropy(model(c, 1), d).backward()
                    optimizer.step()
            """,
        ),
        "an argument that is 1 unless told, with a scheduler inside": Script(
            """
            def get_args():
                parser = argparse.ArgumentParser()
                parser.add_argument("--batches_a_step", default=1, type=int)
                parser.add_argument("--longest_gradient", default=1.0, type=float)
                parser.add_argument("--batch", default=6, type=int)
                return parser.parse_args()


            def main():
                args = get_args()
                args.batch = args.batch // args.batches_a_step
                loader = DataLoader(TensorDataset(x, y), batch_size=args.batch, shuffle=True)
                model = nn.Linear(8, 2)
                steps = len(loader) // args.batches_a_step * 3
                optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
                scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / steps))
                updates, summed = 0, 0.0
                model.zero_grad()
                for epoch in range(3):
                    for step, batch in enumerate(loader):
                        data, target = batch
                        loss = F.cross_entropy(model(data), target)
                        if args.batches_a_step > 1:
                            loss = loss / args.batches_a_step
                        loss.backward()
                        summed += loss.item()
                        if (step + 1) % args.batches_a_step == 0:
                            torch.nn.utils.clip_grad_norm_(model.parameters(), args.longest_gradient)
                            optimizer.step()
                            scheduler.step()
                            model.zero_grad()
                            updates += 1
                print(f"trained {updates} steps, average {summed / updates:.6f}")


            if __name__ == "__main__":
                main()
            """,
            same=("trained",),
        ),
        "the same argument, told": Script(
            """
            parser = argparse.ArgumentParser()
            parser.add_argument("--accumulate", default=1, type=int)
            opt = parser.parse_args()
            loader = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            for epoch in range(5):
                for number, (data, target) in enumerate(loader, start=1):
                    loss = F.cross_entropy(model(data), target)
                    (loss / opt.accumulate).backward()
                    if number % opt.accumulate:
                        continue
                    optimizer.step()
                    optimizer.zero_grad()
            """,
            args=("--accumulate", "2"),
        ),
        "totals over a window, divided by the samples in it": Script(
            """
            loader = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            window = 2
            for epoch in range(5):
                samples = 0
                for i, (data, target) in enumerate(loader):
                    loss = F.cross_entropy(model(data), target, reduction="sum")
                    loss.backward()
                    samples += data.size(0)
                    if (i + 1) % window == 0 or i == len(loader) - 1:
                        for p in model.parameters():
                            p.grad /= samples
                        optimizer.step()
                        optimizer.zero_grad()
                        samples = 0
            """,
            told=("DDP207",),
        ),
        "gradients never divided, a step each so many samples": Script(
            """
            loader = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
            for epoch in range(5):
                for i, batch in enumerate(loader):
                    F.cross_entropy(model(batch[0]), batch[1]).backward()
                    if i % 2 == 1:
                        optimizer.step()
                        optimizer.zero_grad()
                else:
                    optimizer.step()
                    optimizer.zero_grad()
            """,
        ),
        "windows of batches from a function": Script(
            """
            def every(loader, size):
                window = []
                for batch in loader:
                    window.append(batch)
                    if len(window) == size:
                        yield window
                        window = []
                if window:
                    yield window


            loader = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(4):
                for window in every(loader, 2):
                    optimizer.zero_grad()
                    for data, target in window:
                        loss = F.cross_entropy(model(data), target)
                        (loss / 2).backward()
                    optimizer.step()
            """,
        ),
        "a scaler that is switched off, and autocast": Script(
            """
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            scaler = torch.amp.GradScaler("cuda", enabled=device.type == "cuda")
            loader = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True)
            model = nn.Linear(8, 2).to(device)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            hold = 2
            for epoch in range(5):
                for i, (data, target) in enumerate(loader):
                    data, target = data.to(device), target.to(device)
                    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
                        loss = F.cross_entropy(model(data), target)
                        loss = loss / hold
                    scaler.scale(loss).backward()
                    if (i + 1) % hold == 0:
                        scaler.unscale_(optimizer)
                        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                        scaler.step(optimizer)
                        scaler.update()
                        optimizer.zero_grad()
            """,
        ),
        "a window that grows with the epochs": Script(
            """
            schedule = {0: 1, 2: 2, 4: 3}
            loader = DataLoader(TensorDataset(x, y), batch_size=6, shuffle=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            accumulate = 1
            done = 0
            for epoch in range(6):
                accumulate = schedule.get(epoch, accumulate)
                for data, target in loader:
                    loss = F.cross_entropy(model(data), target) / accumulate
                    loss.backward()
                    done += 1
                    if done >= accumulate:
                        optimizer.step()
                        optimizer.zero_grad()
                        done = 0
            """,
        ),
        "warm-up and logs by optimizer steps": Script(
            """
            wanted = 24
            batch_size = 6
            accumulate = max(round(wanted / batch_size), 1)
            weight_decay = 0.0005 * batch_size * accumulate / wanted
            loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=weight_decay)
            length = len(loader)
            moved = -1
            for epoch in range(9):
                for i, (data, target) in enumerate(loader):
                    now = i + length * epoch
                    if now <= 10:
                        accumulate = max(1, round(1 + (wanted / batch_size - 1) * now / 10))
                        for group in optimizer.param_groups:
                            group["lr"] = 0.1 * now / 10
                    loss = F.cross_entropy(model(data), target) * batch_size
                    loss.backward()
                    if now - moved >= accumulate:
                        optimizer.step()
                        optimizer.zero_grad()
                        moved = now
            """,
        ),
        "row by row": Script(
            """
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, labels in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True):
                optimizer.zero_grad()
                for row, label in zip(rows.split(1), labels.split(1)):
                    (F.cross_entropy(model(row), label) / 6).backward()
                optimizer.step()
        """,
            told=("DDP402",),
        ),
    },
    rows=42,
)

_GROUPS = """
    def groups(batches, size):
        group = []
        for batch in batches:
            group.append(batch)
            if len(group) == size:
                yield group
                group = []
        if group:
            yield group

    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    for epoch in range(4):
        {around}
            sgd.zero_grad()
            for rows, kinds in group:
                (F.cross_entropy(net(rows), kinds) / len(group)).backward()
            sgd.step()
"""
_DRAWN = """batches = iter(loader)
        while group := list(itertools.islice(batches, 3)):"""
SCRIPTS |= {
    "batches in groups of a generator, which the losses are divided by": Script(_GROUPS.format(around="for group in groups(loader, 3):")),
    "batches of an iterator in groups, which the losses are divided by": Script("    import itertools\n" + _GROUPS.format(around=_DRAWN)),
}
