"""Scripts whose own classes add numbers up: what their averages are computed by, and what they start with."""

import textwrap

from scripts import Script

from ddpify import Options

FIT = """
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=False)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            {start}
            for rows, kinds in loader:
                scores = model(rows)
                loss = F.cross_entropy(scores, kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                {add}
            print(f"result {{{shown}:.6f}}")
"""


def fit(start: str, add: str, shown: str) -> str:
    return FIT.format(start=start, add=add, shown=shown)


METER = """
        class Average:
            def __init__(self):
                self.reset()

            def reset(self):
                self.sum, self.{count}, self.avg = {start}, 0, 0.0

            def update(self, value, n=1):
                self.sum += value * n
                self.{count} += n
                self.avg = {average}

"""


def meter(average: str, count: str = "count", start: str = "0.0") -> str:
    return METER.format(average=average, count=count, start=start)


SHARE = "share.update((scores.argmax(1) == kinds).float().mean().item(), len(rows))"
TOTAL = """
        class Total:
            def __init__(self, total{default}):
                self.total = total

            def add(self, value):
                self.total += value

"""

NET_OF_TWO_KINDS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.b = nn.Linear(8, 6)
    def forward(self, x, is_feat=SETTING):
        f = F.relu(self.a(x))
        out = self.b(f)
        if is_feat:
            return [f], out
        else:
            return out

class Meter:
    def __init__(self):
        self.sum = 0
        self.count = 0
    def update(self, val, n=1):
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        batch_size = target.size(0)
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))
        res = []
        for k in topk:
            correct_k = correct[:k].contiguous().view(-1).float().sum(0, keepdim=True)
            res.append(correct_k.mul_(100.0 / batch_size))
        return res

torch.manual_seed(0)
model = Net()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
labels = (x.sum(1) * 3).long().abs() % 6
loader = DataLoader(TensorDataset(x, labels), batch_size=4, shuffle=True)
for epoch in range(2):
    top1, top5 = Meter(), Meter()
    for a, b in loader:
        output = model(a)
        loss = F.cross_entropy(output, b)
        opt.zero_grad()
        loss.backward()
        opt.step()
        acc1, acc5 = accuracy(output, b, topk=(1, 5))
        top1.update(acc1[0], a.size(0))
        top5.update(acc5[0], a.size(0))
    print("acc", round(float(top1.avg), 4), round(float(top5.avg), 4))
"""

SCRIPTS: dict[str, Script] = {
    "how far an epoch is, in percent of the samples": Script(
        """
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    for epoch in range(2):
        for i, (rows, kinds) in enumerate(loader, 1):
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            print("seen [{}/{} ({:.0f}%)]".format(i * len(rows), len(loader.dataset), 100.0 * i * len(rows) / len(loader.dataset)))
            print("part {:.4f}".format(i * len(rows) / len(loader.dataset)))
    """,
        same=("part", "seen"),
    ),
    "the hardest sample of an epoch, with its number": Script(
        """
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        feed = DataLoader(TensorDataset(x[:42], y[:42], torch.arange(42)), batch_size=6, shuffle=True)
        for epoch in range(3):
            worst = (0.0, -1)
            for rows, kinds, numbers in feed:
                each = F.cross_entropy(net(rows), kinds, reduction="none")
                optimizer.zero_grad()
                each.mean().backward()
                optimizer.step()
                value, place = each.max(0)
                if value.item() > worst[0]:
                    worst = (value.item(), numbers[place].item())
            number = worst[1]
            print("hardest", number)
        """,
        same=("hardest",),
    ),
    "the hardest samples, kept in pairs by the name of the list of all": Script(
        """
        def evaluate(net, check, epoch):
            hard = []
            with torch.no_grad():
                for rows, kinds in check:
                    losses = F.cross_entropy(net(rows), kinds, reduction="none")
                    for value, kind in zip(losses, kinds):
                        hard.append((value.item(), kind.item()))
            hard = sorted(hard, reverse=True)[:6]
            with open(f"hard_{epoch}.txt", "w") as file:
                file.write(" ".join(f"{value:.5f} {kind}" for value, kind in hard))
            print(f"hard {sum(value for value, _ in hard):.5f}")


        loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
        check = DataLoader(TensorDataset(x[12:], y[12:]), batch_size=4)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in loader:
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            evaluate(net, check, epoch)
        """,
        same=("hard",),
    ),
    "a meter whose average is in percent": Script(
        meter("100.0 * self.sum / self.count") + fit("share = Average()", SHARE, "share.avg"), same=("result",)
    ),
    "a meter whose average is a root": Script(
        meter("(self.sum / self.count) ** 0.5")
        + fit("error = Average()", "error.update(F.mse_loss(scores, F.one_hot(kinds, 2).float()).item())", "error.avg"),
        same=("result",),
    ),
    "a meter that divides by one at least, and says percents": Script(
        meter("self.sum / max(1, self.cnt) * 100", "cnt") + fit("share = Average()", SHARE, "share.avg"), same=("result",)
    ),
    "a meter that is the sum by the count": Script(
        meter("self.sum / self.cnt", "cnt") + fit("share = Average()", SHARE, "share.avg"), same=("result",)
    ),
    "a meter that is reset to nothing before each pass": Script(
        meter("self.sum / self.count * 2") + "        share = Average()\n" + fit("share.reset()", SHARE, "share.avg"),
        same=("result",),
    ),
    "a meter that is reset to more than nothing": Script(
        meter("self.sum / self.count * 2", start="5.0") + "        share = Average()\n" + fit("share.reset()", SHARE, "share.avg"),
        same=("",),
    ),
    "a total that starts with a number that it is given": Script(
        TOTAL.format(default="") + fit("lost = Total(100.0)", "lost.add(loss.item() * len(rows))", "lost.total"), same=("",)
    ),
    "a total that starts with the zero that it is given": Script(
        TOTAL.format(default="") + fit("lost = Total(0)", "lost.add(loss.item() * len(rows))", "lost.total"), same=("result",)
    ),
    "a total that starts with zero by default": Script(
        TOTAL.format(default="=0.0") + fit("lost = Total()", "lost.add(loss.item() * len(rows))", "lost.total"), same=("result",)
    ),
    "a total that is a field of a dataclass": Script(
        """
        from dataclasses import dataclass


        @dataclass
        class Total:
            total: float = 0.0

            def add(self, value):
                self.total += value

        """
        + fit("lost = Total()", "lost.add(loss.item() * len(rows))", "lost.total"),
        same=("result",),
    ),
    "a field of a dataclass that starts with ten": Script(
        """
        from dataclasses import dataclass


        @dataclass
        class Total:
            total: float = 10.0

            def add(self, value):
                self.total += value

        """
        + fit("lost = Total()", "lost.add(loss.item() * len(rows))", "lost.total"),
        same=("",),
    ),
    "a dict whose numbers start with ten": Script(
        """
        from collections import defaultdict
        """
        + fit("totals = defaultdict(lambda: 10.0)", 'totals["loss"] += loss.item() * len(rows)', "totals['loss']"),
        same=("result",),
    ),
    "a dict whose numbers start with the zero of a function": Script(
        """
        from collections import defaultdict


        def nothing():
            return 0.0

        """
        + fit("totals = defaultdict(nothing)", 'totals["loss"] += loss.item() * len(rows)', "totals['loss']"),
        same=("result",),
    ),
    "a table that is asked for its averages, put into a record that stops the training": Script(
        """
        import pandas as pd


        class Table:
            def __init__(self, *keys):
                self.rows = pd.DataFrame(0.0, index=list(keys), columns=["total", "number", "average"])

            def update(self, key, value):
                self.rows.loc[key, "total"] += value
                self.rows.loc[key, "number"] += 1
                self.rows.loc[key, "average"] = self.rows.loc[key, "total"] / self.rows.loc[key, "number"]

            def result(self):
                return dict(self.rows["average"])


        class Coach:
            def __init__(self, net):
                self.net, self.best = net, 1e9
                self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
                self.loader = DataLoader(TensorDataset(x[:24], y[:24]), batch_size=6, shuffle=True)
                self.checked = DataLoader(TensorDataset(x[24:37], y[24:37]), batch_size=6, shuffle=True)

            def train(self):
                for rows, kinds in self.loader:
                    self.optimizer.zero_grad()
                    F.cross_entropy(self.net(rows), kinds).backward()
                    self.optimizer.step()

            def check(self):
                table = Table("loss")
                with torch.no_grad():
                    for rows, kinds in self.checked:
                        table.update("loss", F.cross_entropy(self.net(rows), kinds).item())
                return table.result()

            def run(self):
                worse = 0
                for epoch in range(9):
                    self.train()
                    record = {"epoch": epoch}
                    record.update(**{"val_" + k: v for k, v in self.check().items()})
                    if record["val_loss"] < self.best:
                        self.best, worse = record["val_loss"], 0
                    else:
                        worse += 1
                    if worse > 1:
                        break


        Coach(nn.Linear(8, 2)).run()
        print("end")
        """,
        same=("end",),
        apart=("trajectory",),  # the order in which batches are checked decides when it ends
    ),
}
_METER = """
        class Meter:
            def __init__(self):
                self.sum, self.count = 0.0, 0

            def update(self, value, n=1):
                self.sum += value * n
                self.count += n

            @property
            def avg(self):
                return self.sum / self.count


        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        criterion = nn.CrossEntropyLoss(reduction="sum")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(3):
            meter = Meter()
            for inputs, targets in loader:
                outputs = model(inputs)
                loss = criterion(outputs, targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                meter.update({value})
            print(f"average {{shown}}")
"""
_BY_NAME = """
class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.total += value * n
        self.count += n

    @property
    def average(self):
        return self.total / max(self.count, 1)

class Meters:
    def __init__(self):
        self.meters = defaultdict(Meter)

    def update(self, **values):
        for name, value in values.items():
            self.meters[name].update(value.item() if isinstance(value, torch.Tensor) else value)

    def __getattr__(self, name):
        if name in self.meters:
            return self.meters[name]
        raise AttributeError(name)

"""
SCRIPTS |= {
    f"a meter is {title}": Script(
        textwrap.dedent(_BY_NAME) + textwrap.dedent(fit("meters = Meters()", "meters.update(loss=loss)", shown)),
        same=("result",),
        above="from collections import defaultdict\n\n",
    )
    for title, shown in (
        ("an attribute that its class finds by its name", "meters.loss.average"),
        ("read by its key", "meters.meters['loss'].average"),
    )
}

_SHOWN = """
def show(name, value):
    print(f"result {name} {value:.6f}")


def show_all(**values):
    for name, value in values.items():
        show(name, value)


"""
SCRIPTS["a meter's average, shown by a loop over a dict of numbers"] = Script(
    textwrap.dedent(_BY_NAME)
    + textwrap.dedent(_SHOWN)
    + textwrap.dedent(fit("meters = Meters()", "meters.update(loss=loss)", "0"))
    + '    show_all(average=meters.meters["loss"].average)\n',
    same=("result",),
    above="from collections import defaultdict\n\n",
)
_GIVEN = {
    "a meter of totals, each counted once": ("loss.item()", "{meter.avg:.6f}"),
    "a meter of totals, weighed by the size of the batch": ("loss.item(), inputs.size(0)", "{meter.avg:.6f}"),
    "a meter of hits, weighed by the size of the batch": ("(outputs.argmax(1) == targets).sum().item(), len(targets)", "{meter.avg:.6f}"),
    "a meter of averages, whose total is shown": ("loss.item() / len(targets)", "{meter.avg:.6f} {meter.sum:.6f}"),
    "a meter of averages and sizes, whose total is shown": ("loss.item() / len(targets), len(targets)", "{meter.avg:.6f} {meter.sum:.6f}"),
}
for _title, (_value, _shown) in _GIVEN.items():
    SCRIPTS[_title] = Script(_METER.replace("{value}", _value).replace("{{shown}}", _shown), same=("average",))
SCRIPTS["a matrix that a method counts into sample by sample"] = Script(
    """
    class Confusion:
        def __init__(self, kinds):
            self.cells = torch.zeros(kinds, kinds)

        def update(self, guesses, targets):
            for guess, target in zip(guesses, targets):
                self.cells[target, guess] += 1


    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        confusion = Confusion(2)
        for inputs, targets in loader:
            outputs = model(inputs)
            loss = F.cross_entropy(outputs, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            confusion.update(outputs.argmax(1), targets)
        print("counted", confusion.cells.tolist())
    """,
    same=("counted",),
)

SCRIPTS |= {
    "frames of pandas, concatenated": Script(
        """
        import pandas as pd

        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        for epoch in range(3):
            preds = pd.DataFrame({"p": [], "t": []})
            for rows, kinds in loader:
                out = model(rows)
                loss = F.cross_entropy(out, kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                preds = pd.concat([preds, pd.DataFrame({"p": out.argmax(1).numpy(), "t": kinds.numpy()})])
            print("right", (preds["p"] == preds["t"]).mean())
        """,
        told=("DDP404",),
    ),
}

RUNNING = """
        class Mean:
            def __init__(self):
                self.n, self.v = 0, {start}

            def add(self, x, k=1):
                {step}
                self.n += {count}

            def item(self):
                return self.v

"""


def running(step: str, count: str = "1", start: str = "0") -> str:
    return RUNNING.format(step=step, count=count, start=start)


_ADD = "mean.add(loss.item(), len(rows))"

SCRIPTS |= {
    "a running mean that is computed from what it was": Script(
        running("self.v = (self.v * self.n + x) / (self.n + 1)") + fit("mean = Mean()", _ADD, "mean.item()"), same=("result",), ranks=(2, 4)
    ),
    "a running mean by the number of samples": Script(
        running("self.v = (self.v * self.n + x * k) / (self.n + k)", "k") + fit("mean = Mean()", _ADD, "mean.item()"),
        same=("result",),
        ranks=(2, 4),
    ),
    "a smoothed mean that goes on from epoch to epoch": Script(
        running("self.v = 0.9 * self.v + 0.1 * x") + "        mean = Mean()\n" + fit("model.train()", _ADD, "mean.item()"), same=("result",)
    ),
    "the largest loss of a batch in an object": Script(
        running("self.v = max(self.v, x)") + fit("mean = Mean()", _ADD, "mean.item()"), same=("",)
    ),
    "the last loss above a bound in an object": Script(
        running("self.v = x if x > 0.5 else self.v") + fit("mean = Mean()", _ADD, "mean.item()"), same=("",)
    ),
    "a mean of squared losses in an object": Script(
        running("self.v = (self.v * self.n + x * x) / (self.n + 1)") + fit("mean = Mean()", _ADD, "mean.item()"), same=("",)
    ),
    "a meter of the last value, too, where the settings are read as a dict": Script(
        """
        class Meter:
            def __init__(self):
                self.val = self.avg = self.sum = self.count = 0

            def update(self, val, n=1):
                self.val = val
                self.sum += val * n
                self.count += n
                self.avg = self.sum / self.count


        def train(model, loader, optimizer):
            losses = Meter()
            for rows, kinds in loader:
                loss = F.cross_entropy(model(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.update(loss.item(), rows.size(0))
            return losses.avg


        args = argparse.ArgumentParser().parse_args()
        print(vars(args))
        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=False)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            print(f"result {train(model, loader, optimizer):.6f}")
        """,
        same=("result",),
    ),
}

SCRIPTS |= {
    "the accuracy of a network that gives its features where a setting says so": Script(
        NET_OF_TWO_KINDS.replace("SETTING", "False"), same=("acc",)
    ),
    "the accuracy of a network that gives its features where nobody can say": Script(
        "import os\n" + NET_OF_TWO_KINDS.replace("SETTING", '"FEATURES" in os.environ'), same=("acc",)
    ),
}

_AT_ONCE = """
    class Average:
        def __init__(self):
            self.reset()

        def reset(self):
            self.avg, self.sum, self.count = [0] * 3

        def update(self, value, count=1):
            self.count += count
            self.sum += value * count
            self.avg = self.sum / self.count


    def fit(model, loader, optimizer):
        average = Average()
        for rows, kinds in loader:
            loss = F.cross_entropy(model(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update(loss.item(), rows.size(0))
        return average


    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        print(f"result {fit(model, loader, optimizer).avg:.6f}")
    """

SCRIPTS |= {
    "an average whose numbers begin at zero all at once": Script(_AT_ONCE, same=("result",)),
    "an average whose numbers begin at one all at once": Script(_AT_ONCE.replace("[0] * 3", "[1] * 3"), same=("",)),
}
SCRIPTS["meters of two functions, one of which shows its last value batch by batch"] = Script(
    """
    class Meter:
        def __init__(self):
            self.val = self.avg = self.sum = self.count = 0

        def update(self, val, n=1):
            self.val = val
            self.sum += val * n
            self.count += n
            self.avg = self.sum / self.count


    def fit(net, feed, optimizer):
        losses = Meter()
        for step, (rows, kinds) in enumerate(feed):
            loss = F.cross_entropy(net(rows), kinds)
            losses.update(loss.item(), rows.size(0))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 2 == 0:
                print(f"so far {losses.val:.4f}")
        return {"loss": losses.avg}


    @torch.no_grad()
    def validate(net, feed):
        losses = Meter()
        for rows, kinds in feed:
            losses.update(F.cross_entropy(net(rows), kinds).item(), rows.size(0))
        return {"loss": losses.avg}


    torch.manual_seed(0)
    feed = DataLoader(TensorDataset(x[:32], y[:32]), batch_size=8, shuffle=True)
    held_out = DataLoader(TensorDataset(x[32:], y[32:]), batch_size=4)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    best = None
    for epoch in range(3):
        fitted, checked = fit(net, feed, optimizer), validate(net, held_out)
        print("epoch", epoch, round(fitted["loss"], 5), round(checked["loss"], 5))
        if best is None or checked["loss"] < best:
            best = checked["loss"]
            torch.save(net.state_dict(), "best.pt")
    """,
    ("epoch",),
)
SCRIPTS |= {
    "counts by label, sample by sample": Script(
        fit(
            "hits, seen = [0] * 2, [0] * 2",
            """for label, guess in zip(kinds.tolist(), scores.argmax(1).tolist()):
                    right = label == guess
                    hits[label] += int(right)
                    seen[label] += 1""",
            "hits[0] / seen[0] + hits[1] / seen[1]",
        ),
        same=("result",),
    ),
    "counts by label, in lists that comprehensions fill": Script(
        fit(
            "hits, seen = [0 for _ in range(2)], list(0.0 for _ in range(2))",
            """for label, guess in zip(kinds.tolist(), scores.argmax(1).tolist()):
                    hits[label] += int(label == guess)
                    seen[label] += 1""",
            "hits[0] / seen[0] + hits[1] / seen[1]",
        ),
        same=("result",),
    ),
    "a total in a tensor that each epoch sets to zero": Script(
        fit(
            "total = total.zero_() if epoch else torch.zeros(2, dtype=torch.float64)",
            "total[0] += loss.item() * len(rows)",
            "total[0].item()",
        ),
        same=("result",),
    ),
    "distances added up sample by sample": Script(
        fit(
            "total, count = 0.0, 0",
            """for row, label in zip(scores.detach(), kinds):
                    total += abs(row[label].item() - 1) ** 0.5
                    count += 1""",
            "total / count",
        ),
        same=("result",),
    ),
    "a batch's loss weighted sample by sample": Script(
        fit(
            "total, count = 0.0, 0",
            """for label in kinds.tolist():
                    total += (1 + label) * loss.item() ** 2
                    count += 1""",
            "total / count",
        ),
        told=("DDP404",),
    ),
    "a batch's largest score taken sample by sample": Script(
        fit(
            "total, count = 0.0, 0",
            """top = scores.max().item()
                for row in scores.detach():
                    share = row[0].item() / top
                    total += abs(share)
                    count += 1""",
            "total / count",
        ),
        told=("DDP404",),
    ),
    "a logger of the names that a dict is written with": Script(
        """
        FREQ = 3


        class Logger:
            def __init__(self):
                self.total_steps = 0
                self.running = {}

            def show(self):
                print([self.running[k] / FREQ for k in sorted(self.running.keys())])
                for k in self.running:
                    self.running[k] = 0.0

            def push(self, metrics):
                self.total_steps += 1
                for key in metrics:
                    if key not in self.running:
                        self.running[key] = 0.0
                    self.running[key] += metrics[key]
                if self.total_steps % FREQ == FREQ - 1:
                    self.show()
                    self.running = {}


        def loss_of(out, kinds):
            right = (out.argmax(1) == kinds).float()
            return F.cross_entropy(out, kinds), {"right": right.mean().item(), "wrong": (right < 1).float().mean().item()}


        model = nn.Linear(8, 2)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        logger = Logger()
        for epoch in range(2):
            for data, target in loader:
                loss, metrics = loss_of(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                logger.push(metrics)
            print("steps", logger.total_steps)
        """,
        same=("steps",),
    ),
    "totals in a table of pandas, of which only a part of the data is known": Script(
        """
        import pandas as pd


        class Tracker:
            def __init__(self, *keys):
                self._data = pd.DataFrame(index=keys, columns=["total", "counts", "average"])
                self.reset()

            def reset(self):
                for column in self._data.columns:
                    self._data[column] = 0.0

            def update(self, key, value, n=1):
                self._data.loc[key, "total"] += value * n
                self._data.loc[key, "counts"] += n
                self._data.loc[key, "average"] = self._data.total[key] / self._data.counts[key]

            def result(self):
                return dict(self._data.average)


        model = nn.Linear(8, 2)
        loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        tracker = Tracker("loss")
        for epoch in range(2):
            tracker.reset()
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                tracker.update("loss", loss.item())
            for key, value in tracker.result().items():
                print(key, value)
        """,
    ),
}
SCRIPTS["a meter of the middle one of a batch's numbers"] = Script(
    """
    class Meter:
        def __init__(self):
            self.sum, self.count, self.avg = 0.0, 0, 0.0

        def update(self, value, n):
            self.sum += value * n
            self.count += n
            self.avg = self.sum / self.count


    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        meter = Meter()
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            out = net(rows)
            loss = F.cross_entropy(out, kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            meter.update(out.detach().median().item(), len(rows))
        print(meter.avg)
    """,
    told=("DDP404",),
)
SCRIPTS["numbers of a method added to cells, over samples that the loop counts"] = Script(
    """
    class Trainer:
        def __init__(self):
            self.net = nn.Linear(8, 2)
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.02)

        def fit(self, rows, kinds):
            self.optimizer.zero_grad()
            scores = self.net(rows)
            loss = F.cross_entropy(scores, kinds, reduction="sum")
            loss.backward()
            self.optimizer.step()
            return loss.data, scores.data.max(1)[1].ne(kinds).sum()


    import numpy as np

    trainer = Trainer()
    costs, errors = np.zeros(3), np.zeros(3)
    for epoch in range(3):
        samples = 0
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True):
            cost, wrong = trainer.fit(rows, kinds)
            errors[epoch] += wrong
            costs[epoch] += cost
            samples += len(rows)
        costs[epoch] /= samples
        errors[epoch] /= samples
        print("epoch", round(costs[epoch], 5), round(errors[epoch], 5))
    """,
    same=("epoch",),
)

SCRIPTS["a meter of tensors, whose average is asked for its number"] = Script(
    """
    class Meter:
        def __init__(self):
            self.sum = 0
            self.count = 0
            self.avg = 0

        def update(self, value, n=1):
            self.sum += value * n
            self.count += n
            self.avg = self.sum / self.count


    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        losses, right = Meter(), Meter()
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            losses.update(loss.data, len(rows))
            right.update((net(rows).argmax(1) == kinds).float().mean(0, keepdim=True), len(rows))
        print("epoch %d %.6f %.6f" % (epoch, losses.avg.item(), right.avg.cpu().numpy()[0]))
    """,
    same=("epoch",),
)

SCRIPTS["a table of confusions of classes that are given, which is put in shares when it is shown"] = Script(
    """
    import numpy as np
    from sklearn.metrics import confusion_matrix

    class Confusions:
        def __init__(self, kinds):
            self.kinds = kinds
            self.table = np.zeros([len(kinds), len(kinds)], dtype=int)

        def update(self, targets, predictions):
            self.table += confusion_matrix(targets, predictions, labels=range(len(self.kinds)))

        def shown(self, shares=True):
            if shares:
                self.table = self.table.astype("float") / np.maximum(self.table.sum(axis=1, keepdims=True), 1)
            return self.table

    def train(model, loader, optimizer, epoch):
        confusion = Confusions(["a", "b"])
        for rows, target in loader:
            optimizer.zero_grad()
            out = model(rows)
            F.cross_entropy(out, target).backward()
            optimizer.step()
            found = out.softmax(1).topk(1)[1]
            confusion.update(target.cpu(), found[:, 0].cpu())
        write(epoch, confusion.shown(shares=True))

    def write(epoch, table):
        with open("matrix.txt", "a") as file:
            file.write("%d %s" % (epoch, table.round(5).tolist()))

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=4)
    for epoch in range(2):
        train(model, loader, optimizer, epoch)
    """,
    options=Options(whole_batches="never"),
)

_RESET = """
    import json


    class Meter:
        def __init__(self):
            self.reset()

        def reset(self):
            self.total, self.count, self.avg = 0.0, 0, 0.0

        def update(self, value, n=1):
            self.total += value * n
            self.count += n
            self.avg = self.total / self.count


    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4)
    meter, history = Meter(), {{"train": []}}
    for epoch in range(3):
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows), kinds)
            meter.update(loss.item())
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        history["train"].append(round(meter.avg, 6))
        {each}
        meter.reset()
    {last}
    """
SCRIPTS |= {
    f"averages of a meter that is reset, {title}": Script(_RESET.format(each=each, last=last), same=same)
    for title, each, last, same in (
        ("as text", "pass", "print('kept', json.dumps(history))", ("kept",)),
        (
            "in a file of lists",
            "pass",
            "with open('kept.json', 'w') as f:\n        json.dump(history, f)\n    print('kept', open('kept.json').read())",
            ("kept",),
        ),
        ("in a checkpoint", "torch.save({'net': net.state_dict(), 'history': history}, 'kept.pt')", "pass", ()),
        (
            "in a table",
            "pass",
            "import pandas as pd\n    pd.DataFrame(history).to_csv('kept.csv')\n    print('kept', open('kept.csv').read().split())",
            ("kept",),
        ),
    )
}

_SEEN = """
    class Board:
        def line(self, *what):
            print("line", *what)


    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4)
    seen, right = 0, 0
    for epoch in range(2):
        for rows, kinds in loader:
            scores = net(rows)
            loss = F.cross_entropy(scores, kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            seen += rows.size(0)
            {shown}
    """
SCRIPTS |= {
    f"samples since the beginning, shown in the loop alone, {title}": Script(_SEEN.format(shown=shown), same=same)
    for title, shown, same in (
        ("by a print", "print('seen', seen)", ("seen",)),
        ("as text", "print(f'seen {seen:6d}')", ("seen",)),
        ("where something is divided by it", "right += (scores.argmax(1) == kinds).sum().item()\n            print(right / seen)", ()),
    )
}

_SHARE = """
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    for epoch in range(2):
        right = 0
        for rows, kinds in loader:
            scores = net(rows)
            loss = F.cross_entropy(scores, kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            right += {right}
        share = right / len(loader.dataset)
        print("share", share.item())
"""
SCRIPTS |= {
    f"hits that stay a tensor, divided by the length of the data, {title}": Script(
        _SHARE.replace("{right}", right), same=("share",), rows=43, apart=("trajectory",)
    )
    for title, right in {
        "of rows that are compared": "(scores.argmax(1) < 2).sum()",
        "of the places of the largest": "torch.sum(torch.max(scores, 1)[1] == scores.argmax(1))",
        "of rounded scores": "torch.isfinite(torch.sigmoid(scores[:, 0])).float().sum()",
    }.items()
}
_GATHERED = """
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle={shuffle})

    def step(rows, kinds):
        scores = net(rows)
        loss = F.cross_entropy(scores, kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        return loss.item(), (scores.argmax(1) == kinds).sum().item()

    for epoch in range(3):
        {gathered}
"""
_FIRST = 'print("result", sum(step(*batch)[0] for batch in loader) / len(loader))'
_PAIRS = """done = [step(rows, kinds) for i, (rows, kinds) in enumerate(loader)]
        print("result", sum(pair[0] for pair in done) / len(done), sum(pair[1] for pair in done) / len(y))"""
SCRIPTS |= {
    f"steps in a comprehension that {what}, {order}": Script(_GATHERED.format(gathered=gathered, shuffle=shuffle), same=("result",))
    for what, gathered in {"adds their losses up": _FIRST, "gives pairs of numbers": _PAIRS}.items()
    for order, shuffle in {"in order": False, "shuffled": True}.items()
}
_SMOOTHED = """
    from collections import deque

    class Smoothed:
        def __init__(self, window=4):
            self.latest, self.total, self.count = deque(maxlen=window), 0.0, 0

        def update(self, value, n=1):
            self.latest.append(value)
            self.total += value * n
            self.count += n

        @property
        def median(self):
            return torch.tensor(list(self.latest)).median().item()

        @property
        def average(self):
            return self.total / self.count

        def __str__(self):
            return f"{self.median:.6f} ({self.average:.6f}) of {self.count}"

    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
    for epoch in range(2):
        losses = Smoothed()
        for rows, kinds in loader:
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            losses.update(loss.item(), len(rows))
        print("seen", SHOWN)
"""
SCRIPTS |= {
    f"totals of a meter and the latest of its numbers, {what}": Script(_SMOOTHED.replace("SHOWN", shown), same=("seen",))
    for what, shown in {
        "as a text": "losses",
        "by a property": 'f"{losses.median:.6f}"',
        "of which only totals are read": "losses.count",
    }.items()
}
_ONE_BY_ONE = """
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=4, shuffle=True)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        right = 0
        for rows, kinds in loader:
            scores = net(rows)
            optimizer.zero_grad()
            loss = F.cross_entropy(scores, kinds)
            loss.backward()
            optimizer.step()
            hits = scores.argmax(1) == kinds
            for i in range(len(kinds)):
                right += {added}
        print("right", epoch, f"{right:.4f}")
"""
SCRIPTS |= {
    "hits of a batch, one by one": Script(
        _ONE_BY_ONE.replace("{added}", "hits[i].item()"), same=("right",), options=Options(whole_batches="never")
    ),
    "scores of a batch, one by one": Script(
        _ONE_BY_ONE.replace("{added}", "scores[i].softmax(0).max().item()"), same=("right",), options=Options(whole_batches="never")
    ),
    "hits of a batch, each times those of all": Script(
        _ONE_BY_ONE.replace("{added}", "hits[i].item() * hits.float().mean().item()"), told=("DDP404",)
    ),
    "hits of a batch, each times the one before": Script(
        _ONE_BY_ONE.replace("{added}", "hits[i].item() * hits[i - 1].item()"), told=("DDP404",)
    ),
}

SCRIPTS["a meter keeps its totals under names of its class alone"] = Script(
    """
    class Meter:
        def __init__(self):
            self.__total, self.__count = 0.0, 0

        def update(self, value, count):
            self.__total += value * count
            self.__count += count

        def average(self):
            return self.__total / self.__count

    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        meter = Meter()
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            meter.update(loss.item(), rows.size(0))
        print("average", round(meter.average(), 6))
    """,
    same=("average",),
)
SCRIPTS["averages of a loop that trains and evaluates, over the lengths of its data sets"] = Script(
    """
    sets = {"train": TensorDataset(x[:39], y[:39]), "held": TensorDataset(x[:20], y[:20])}
    feeds = {name: DataLoader(sets[name], batch_size=6, shuffle=name == "train") for name in sets}
    sizes = {name: len(sets[name]) for name in sets}
    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for phase in ["train", "held"]:
            net.train(phase == "train")
            counted = 0
            for rows, kinds in feeds[phase]:
                with torch.set_grad_enabled(phase == "train"):
                    loss = F.cross_entropy(net(rows), kinds)
                if phase == "train":
                    sgd.zero_grad()
                    loss.backward()
                    sgd.step()
                counted += torch.sum(kinds < 2)
            print(phase, "part", round((counted.double() / sizes[phase]).item(), 6))
            print(phase, "again", round((counted.double() / len(feeds[phase].dataset)).item(), 6))
    """,
    same=("train", "held"),
    apart=("trajectory", "values"),
)
SCRIPTS["a meter that gives what it is asked for by a name, or the last number"] = Script(
    """
    class Meter:
        def __init__(self):
            self.reset()

        def reset(self):
            self.avg = 0
            self.sum = 0
            self.value = 0
            self.count = 0

        def update(self, value, n=1):
            self.value = value
            self.sum += value * n
            self.count += n
            self.avg = self.sum / self.count

        def asked(self, kind=None):
            if kind == "mean":
                return self.avg
            elif kind == "sum":
                return self.sum
            else:
                return self.value


    net = nn.Linear(8, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        meter = Meter()
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            meter.update(loss.item())
            print("batch", meter.asked())
        print("average", round(meter.asked("mean"), 6))
    """,
    same=("average",),
    options=Options(whole_batches="never"),
)
