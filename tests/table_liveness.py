"""Scripts about what outlives a loop: which reads a number reaches, on later passes, in other functions, and by other names."""

from scripts import Script, on_three

_HEAD = """
        model = nn.Linear(8, 2).double()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x.double(), y), batch_size=6, shuffle=True)
        """

SCRIPTS: dict[str, Script] = on_three(
    {
        # --- uses on the next pass of an outer loop -------------------------------------------------------------------------
        "a total saved at the top of the next epoch": Script(
            _HEAD
            + """
        total = 0.0
        for epoch in range(3):
            torch.save({"epoch": epoch, "loss": total}, f"state{epoch}.pt")
            total = 0.0
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item() * len(target)
        """,
        ),
        "a total printed at the top of the next epoch, in a function": Script(
            _HEAD
            + """
        def report(epoch, value):
            print(f"before epoch {epoch}: {value:.6f}")


        def main():
            total = 0.0
            for epoch in range(3):
                report(epoch, total)
                total = 0.0
                for data, target in loader:
                    loss = F.cross_entropy(model(data), target)
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                    total += loss.item() * len(target)


        main()
        """,
            same=("before",),
        ),
        "a total on an object, saved by a method at the top of the next epoch": Script(
            _HEAD
            + """
        class Work:
            def __init__(self):
                self.total = 0.0

            def keep(self, epoch):
                torch.save({"loss": self.total}, f"kept{epoch}.pt")

            def go(self):
                for epoch in range(3):
                    self.keep(epoch)
                    self.total = 0.0
                    for data, target in loader:
                        loss = F.cross_entropy(model(data), target)
                        opt.zero_grad()
                        loss.backward()
                        opt.step()
                        self.total += loss.item() * len(target)


        Work().go()
        """,
        ),
        "a global total, saved by a function at the top of the next epoch": Script(
            _HEAD
            + """
        total = 0.0


        def keep(epoch):
            torch.save({"loss": total}, f"kept{epoch}.pt")


        def one_epoch():
            global total
            total = 0.0
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item() * len(target)


        for epoch in range(3):
            keep(epoch)
            one_epoch()
        """,
        ),
        "an entry of a dictionary, saved at the top of the next epoch": Script(
            _HEAD
            + """
        state = {"loss": 0.0, "epoch": 0}
        for epoch in range(3):
            state["epoch"] = epoch
            torch.save(state, f"state{epoch}.pt")
            state["loss"] = 0.0
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                state["loss"] += loss.item() * len(target)
        """,
        ),
        "a total of nested loops, saved at the top of the next epoch": Script(
            _HEAD
            + """
        total = 0.0
        for epoch in range(3):
            torch.save({"loss": total}, f"state{epoch}.pt")
            total = 0.0
            for turn in range(2):
                for data, target in loader:
                    loss = F.cross_entropy(model(data), target)
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                    total += loss.item() * len(target)
        """,
        ),
        "a total that is only read when training is taken up again": Script(
            _HEAD
            + """
        import os

        start, total = 0, 0.0
        if os.path.exists("last.pt"):
            kept = torch.load("last.pt")
            start, total = kept["epoch"], kept["loss"]
            print(f"went on from {total:.4f}")
        for epoch in range(start, 3):
            total = 0.0
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item() * len(target)
            torch.save({"epoch": epoch + 1, "loss": total}, "last.pt")
        """,
        ),
        # --- names ------------------------------------------------------------------------------------------------------
        "the same name in another function is another one": Script(
            _HEAD
            + """
        def price(parts):
            total = 0
            for part in parts:
                total += part
            return total


        def one_epoch():
            total = 0.0
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item() * len(target)


        for epoch in range(2):
            one_epoch()
            print("price", price([1, 2, epoch]))
        """,
            same=("price",),
        ),
        "two functions with a total each, one of which returns it": Script(
            _HEAD
            + """
        def silent():
            total = 0.0
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item() * len(target)


        def loud():
            total = 0.0
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item() * len(target)
            return total


        silent()
        print(f"lost {loud():.6f}")
        """,
            same=("lost",),
        ),
        "a comprehension's variable has the same name": Script(
            _HEAD
            + """
        for epoch in range(2):
            total = 0.0
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item()
            print("squares", [total * total for total in range(4)])
        """,
            same=("squares",),
        ),
        "a total that is deleted after the loop": Script(
            _HEAD
            + """
        for epoch in range(2):
            total = 0.0
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item()
            del total
            total = epoch * 2
            print("twice", total)
        """,
            same=("twice",),
        ),
        "a list that is read by another name": Script(
            _HEAD
            + """
        for epoch in range(2):
            losses = []
            record = {"epoch": epoch, "losses": losses}
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                losses.append(loss.item())
            torch.save(record, f"record{epoch}.pt")
        """,
        ),
        # --- where it is read ---------------------------------------------------------------------------------------------
        "a total that is read in a finally": Script(
            _HEAD
            + """
        for epoch in range(2):
            total = 0.0
            try:
                for data, target in loader:
                    loss = F.cross_entropy(model(data), target)
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                    total += loss.item() * len(target)
            finally:
                print(f"lost {total:.6f}")
        """,
            same=("lost",),
        ),
        "a total that is read in a with, a branch later": Script(
            _HEAD
            + """
        for epoch in range(3):
            total = 0.0
            with torch.enable_grad():
                for data, target in loader:
                    loss = F.cross_entropy(model(data), target)
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                    total += loss.item() * len(target)
            if epoch % 2 == 0:
                total /= 36
            else:
                total = -1.0
            with torch.no_grad():
                print(f"lost {total:.6f}")
        """,
            same=("lost",),
        ),
        "a total that is only read inside its loop": Script(
            _HEAD
            + """
        for epoch in range(2):
            total = 0.0
            for step, (data, target) in enumerate(loader):
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item()
                if step == 2:
                    print("step", step, total / (step + 1))
        """,
        ),
        "a total on an object that is only read inside its loop": Script(
            _HEAD
            + """
        class Work:
            def __init__(self):
                self.total = 0.0

            def go(self):
                for data, target in loader:
                    loss = F.cross_entropy(model(data), target)
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                    self.total += loss.item()
                    print("so far", self.total)


        work = Work()
        for epoch in range(2):
            work.go()
        """,
        ),
        "a total that a method resets before each epoch": Script(
            _HEAD
            + """
        class Work:
            def __init__(self):
                self.begin()

            def begin(self):
                self.total, self.seen = 0.0, 0

            def go(self):
                for data, target in loader:
                    loss = F.cross_entropy(model(data), target)
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                    self.total += loss.item() * len(target)
                    self.seen += len(target)

            def average(self):
                return self.total / self.seen


        work = Work()
        for epoch in range(3):
            work.begin()
            work.go()
            print(f"average {work.average():.6f}")
        """,
            same=("average",),
        ),
        "a total that a method adds to, called in the loop": Script(
            _HEAD
            + """
        class Work:
            def __init__(self):
                self.total = 0.0

            def step(self, data, target):
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                self.total += loss.item() * len(target)

            def go(self):
                for epoch in range(3):
                    self.total = 0.0
                    for data, target in loader:
                        self.step(data, target)
                    print(f"lost {self.total:.6f}")


        Work().go()
        """,
            same=("lost",),
        ),
        "a global total that a function adds to, called in the loop": Script(
            _HEAD
            + """
        total = 0.0


        def step(data, target):
            global total
            loss = F.cross_entropy(model(data), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(target)


        for epoch in range(3):
            total = 0.0
            for data, target in loader:
                step(data, target)
            print(f"lost {total:.6f}")
        """,
            same=("lost",),
        ),
        "a list that is passed in and returned filled": Script(
            _HEAD
            + """
        def one_epoch(losses):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                losses.append(loss.item())


        for epoch in range(2):
            seen = []
            one_epoch(seen)
            print(f"mean {sum(seen) / len(seen):.6f}")
        """,
            same=("mean",),
        ),
        "guesses put into a list of the caller's": Script(
            _HEAD
            + """
        def one_epoch(guesses):
            for data, target in loader:
                scores = model(data)
                loss = F.cross_entropy(scores, target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                guesses.extend(scores.argmax(1).tolist())


        for epoch in range(2):
            mine = []
            one_epoch(mine)
            print("guesses", len(mine), sum(mine))
        """,
            same=("guesses",),
        ),
        "guesses in a list that a record holds": Script(
            _HEAD
            + """
        for epoch in range(2):
            guesses = []
            record = {"epoch": epoch, "guesses": guesses}
            for data, target in loader:
                scores = model(data)
                loss = F.cross_entropy(scores, target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                guesses.extend(scores.argmax(1).tolist())
            print("guesses", len(record["guesses"]), sum(record["guesses"]))
        """,
            same=("guesses",),
        ),
        "a record that each batch makes anew, collected in a list": Script(
            _HEAD
            + """
        for epoch in range(2):
            records = []
            for data, target in loader:
                scores = model(data)
                loss = F.cross_entropy(scores, target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                record = {"right": (scores.argmax(1) == target).double().mean().item()}
                record["loss"] = loss.item()
                records.append(record)
            means = {name: sum(each[name] for each in records) / len(records) for name in records[0]}
            print("means", " ".join(f"{name} {value:.6f}" for name, value in means.items()))
        """,
            same=("means",),
        ),
        "a total that a function reads when the program ends": Script(
            """
        import atexit
        """
            + _HEAD
            + """
        total = 0.0


        def goodbye():
            print(f"lost {total:.6f}")


        atexit.register(goodbye)
        for epoch in range(2):
            total = 0.0
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item() * len(target)
        """,
            same=("lost",),
        ),
        "a list that is passed in and never read": Script(
            _HEAD
            + """
        def one_epoch(losses):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                losses.append(loss.item())
                print("so far", len(losses))


        for epoch in range(2):
            one_epoch([])
        """,
        ),
        "a total that goes on over all epochs": Script(
            _HEAD
            + """
        total = 0.0
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item()
            print(f"so far {total:.6f}")
        """,
            same=("so far",),
        ),
        "the loss of the last batch, printed after the loop": Script(
            _HEAD
            + """
        for epoch in range(2):
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
            print("last", loss.item())
        """,
        ),
        "a largest loss of the last batch, printed after the loop": Script(
            _HEAD
            + """
        for epoch in range(2):
            for data, target in loader:
                each = F.cross_entropy(model(data), target, reduction="none")
                worst = each.max().item() ** 2
                loss = each.mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
            print("worst", worst)
        """,
        ),
        "guesses of the last batch, in a file after the loop": Script(
            _HEAD
            + """
        for epoch in range(2):
            for data, target in loader:
                scores = model(data)
                loss = F.cross_entropy(scores, target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                guesses = scores.detach().argmax(1)
            torch.save(guesses, f"guesses{epoch}.pt")
        """,
            apart=("values",),
        ),
        "a largest loss of all batches, printed after the loop": Script(
            _HEAD
            + """
        for epoch in range(2):
            worst = 0.0
            for data, target in loader:
                each = F.cross_entropy(model(data), target, reduction="none")
                worst = max(worst, each.max().item())
                loss = each.mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
            print("worst", round(worst, 6))
        """,
            same=("worst",),
        ),
        "a largest loss of the last batch, which decides": Script(
            _HEAD
            + """
        for epoch in range(2):
            for data, target in loader:
                each = F.cross_entropy(model(data), target, reduction="none")
                worst = each.max().item() ** 2
                loss = each.mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
            limit = worst
            print("limit", limit)
            if limit < 0.01:
                break
        """,
            told=("DDP404",),
        ),
        "the loss of the last batch, in a dictionary at the top of the next epoch": Script(
            _HEAD
            + """
        loss = torch.zeros(1)
        for epoch in range(3):
            print("last", loss.item())
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
        """,
        ),
    },
    rows=36,
)

_SEEN = """
    def fit(model, optimizer, loader):
        seen, steps, lost = 0, -1, 0.0
        marks, losses = [], []
        for epoch in range(3):
            for rows, kinds in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(rows), kinds)
                loss.backward()
                optimizer.step()
                seen += rows.numel()
                lost += loss.item() * len(rows)
                steps += 1
                if steps % 2 == 0:
                    marks.append(seen)
                    losses.append(loss.item())
            print("epoch", epoch)
        return marks, losses, 0


    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=False, drop_last=True)
    marks, losses, last = fit(model, optimizer, loader)
    print("marks", marks)
    print("losses", [f"{value:.6f}" for value in losses])
    print("last", f"{last:.6f}")
    """
_RESET = _SEEN.replace(
    "            for rows, kinds in loader:\n", "            seen, lost = 0, 0.0\n            for rows, kinds in loader:\n"
)

SCRIPTS |= {
    "a count over all epochs that is put into a list at times": Script(_SEEN, same=("marks", "losses")),
    "a count over all epochs that is put into a list at times, and returned": Script(
        _SEEN.replace("losses, 0\n", "losses, seen\n"), same=("marks", "losses", "last")
    ),
    "a total over all epochs that is put into two lists": Script(
        _SEEN.replace("marks.append(seen)", "marks.append(lost)\n                    losses.append(lost)").replace(
            '"marks", marks', '"marks", [f"{value:.6f}" for value in marks]'
        ),
        same=("marks", "losses"),
    ),
    "a count of each epoch that is put into a list at times": Script(_RESET, same=("marks", "losses")),
    "a total of each epoch that is put into a list at times, and shown after it": Script(
        _RESET.replace("marks.append(seen)", "marks.append(lost)")
        .replace('print("epoch", epoch)', 'print("epoch", epoch, f"{lost:.6f}", seen)')
        .replace('"marks", marks', '"marks", [f"{value:.6f}" for value in marks]'),
        same=("marks", "losses", "epoch"),
    ),
    "a count of what a rank's own batch chooses that is put into a list": Script(
        _SEEN.replace(
            "                seen += rows.numel()\n", "                if rows[0, 0] > 0.1:\n                    seen += rows.numel()\n"
        ),
        told=("DDP404",),
    ),
    "a largest count that is put into a list": Script(
        _SEEN.replace("seen += rows.numel()", "seen = max(seen, rows[:, 0].sum().item())"), same=("",)
    ),
}
SCRIPTS["endless batches that an object keeps, under a name that tensors have, too"] = Script(
    """
    import time


    class Trainer:
        def __init__(self):
            self.critic, self.net = nn.Linear(8, 1), nn.Linear(3, 8)
            self.critics = torch.optim.SGD(self.critic.parameters(), lr=0.05)
            self.nets = torch.optim.SGD(self.net.parameters(), lr=0.05)
            self.size = 6

        def save(self):
            torch.save(self.net.state_dict(), "net.pt")

        def endless(self, loader):
            while True:
                for i, (rows, _) in enumerate(loader):
                    yield rows

        def sample(self):
            made = self.net(torch.randn(self.size, 3))
            made = made.data.cpu()
            print("made")

        def fit(self, loader):
            self.began = time.time()
            self.data = self.endless(loader)
            for step in range(6):
                for part in range(2):
                    rows = next(self.data)
                    self.critic.zero_grad()
                    loss = self.critic(rows).mean()
                    loss.backward()
                    noise = torch.randn(self.size, 3) * 0 + 0.3
                    loss = self.critic(self.net(noise).detach()).mean().mul(-1)
                    loss.backward()
                    self.critics.step()
                self.net.zero_grad()
                noise = torch.randn(self.size, 3) * 0 + 0.2
                self.critic(self.net(noise)).mean().backward()
                self.nets.step()
                if step % 3 == 0:
                    self.save()
            self.end = time.time()
            print(f"took {self.end - self.began}"[:4])
            self.save()


    def main():
        trainer = Trainer()
        trainer.fit(DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True))
        trainer.sample()


    torch.manual_seed(0)
    main()
    """
)
