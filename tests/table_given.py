"""Training on tensors that no loader makes: each rank runs the models on its rows of them."""

import io
import textwrap
from dataclasses import replace

import numpy as np
from scripts import Script, on_three

_MODEL = "nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))"
_LOOP = """
torch.manual_seed(4)
{before}
model = {model}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(14):
    optimizer.zero_grad()
{loss}
    loss.backward()
    optimizer.step()
    print("loss", "%.6f" % loss.item())
{after}
torch.save(model.state_dict(), "model.pt")
"""
_NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.last = nn.Linear(16, 2)

    def forward(self, {given}):
        {out}


"""


def _table() -> bytes:
    """A table of 40 samples of eight numbers and a class, as NumPy writes it."""
    rows, written = np.sin(np.arange(360, dtype=np.float32) ** 1.5).reshape(40, 9), io.BytesIO()
    rows[:, -1] = rows[:, -1] > 0
    np.save(written, rows)
    return written.getvalue()


def _script(
    loss: str = "loss = F.cross_entropy(model(x), y)",
    model: str = _MODEL,
    before: str = "",
    after: str = "",
    told: tuple[str, ...] = (),
) -> Script:
    lines = "\n".join(" " * 4 + line for line in loss.splitlines())
    return Script(_LOOP.format(before=before, model=model, loss=lines, after=after), same=("loss", "right"), told=told)


def _net(out: str, given: str = "x", told: tuple[str, ...] = (), loss: str = "loss = F.cross_entropy(model(x), y)") -> Script:
    script = _script(loss, "Net()", told=told)
    script.text = _NET.format(given=given, out=out) + script.text
    return script


SCRIPTS = {
    **on_three(
        {
            "all data at once": _script(),
            "all data at once, and an average that is weighted": _script(
                "loss = F.cross_entropy(model(x), y, weight=torch.tensor([1.0, 3.0]))"
            ),
            "all data at once, and a loss over pairs": _script(
                "out = model(x)\nloss = ((out @ out.t()) - (x @ x.t())).pow(2).mean() + out.std(0).mean()"
            ),
        },
        rows=36,
    ),
    "all data at once, of which the ranks' parts are not equal": on_three({"": _script()}, rows=43)[""],
    "all data at once, written out as lists": _script(
        "loss = criterion(model(inputs), targets)",
        "nn.Sequential(nn.Embedding(6, 5), nn.Flatten(), nn.Linear(15, 3))",
        'sentences = ["a b c", "b c d", "c d e", "d e f", "a c e"]\n'
        'number = {word: i for i, word in enumerate("abcdef")}\n'
        "inputs = torch.LongTensor([[number[word] for word in s.split()] for s in sentences])\n"
        "targets = torch.LongTensor([0, 1, 2, 0, 1])\ncriterion = nn.CrossEntropyLoss()",
    ),
    "all data at once, batch norm, and an evaluation of the rest": _script(
        "loss = F.cross_entropy(model(x[:30]), y[:30])",
        "nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))",
        after='model.eval()\nwith torch.no_grad():\n    print("right", (model(x[30:]).argmax(1) == y[30:]).sum().item())',
    ),
    "all data at once, drawn without a seed": Script(
        """
        inputs = torch.randn(40, 8)
        targets = (inputs.sum(1) > 0).long()
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for step in range(40):
            loss = F.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("learned", loss.item() < 0.45)
        """,
        same=("learned",),
        apart=("trajectory",),
    ),
    "all data at once, in a closure that is run again": Script(
        """
        torch.manual_seed(4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.3, max_iter=4)
        for step in range(12):
            def closure():
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                return loss

            optimizer.step(closure)
        print("loss", "%.5f" % F.cross_entropy(model(x), y).item())
        """,
        same=("loss",),
    ),
    "two inputs of all data at once": _net(
        "return self.last(torch.relu(self.first(x) + scale))", "x, scale", loss="loss = F.cross_entropy(model(x, x[:, :1] * 2), y)"
    ),
    "an option beside all data at once": _net(
        "return self.last(torch.relu(self.first(x)) * (2 if double else 1))",
        "x, double=False",
        loss="loss = F.cross_entropy(model(x, double=True), y)",
    ),
    "one sample after another, each a batch": Script(
        """
        torch.manual_seed(4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for epoch in range(2):
            total = 0.0
            for i in range(20):
                row = torch.tensor([[float((i * j) % 5) for j in range(8)]])
                loss = F.cross_entropy(model(row), torch.tensor([i % 2]))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            print("loss", "%.6f" % total)
        """,
        same=("loss",),
    ),
    "all data at once, and rows that meet": _net(
        "h = torch.relu(self.first(x))\n        return self.last(h @ h.t() @ h)", told=("DDP402",)
    ),
    "all data at once, and a graph of its rows": _net(
        "return self.last(adjacent @ torch.relu(self.first(x)))",
        "x, adjacent",
        told=("DDP402",),
        loss="loss = F.cross_entropy(model(x, (x @ x.t()).softmax(1)), y)",
    ),
    "all data at once, with noise drawn for each step": _script(
        "loss = F.cross_entropy(model(x + 0.1 * torch.randn(x.shape)), y)", told=("DDP402",)
    ),
    "all data at once, with noise drawn for each loss": _script("loss = F.mse_loss(model(x), torch.randn(len(x), 2))", told=("DDP402",)),
    "one row, which is no batch": Script(
        """
        torch.manual_seed(4)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for i in range(20):
            loss = F.mse_loss(model(torch.tensor([float((i * j) % 5) for j in range(8)])), torch.tensor([0.0, 1.0]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        told=("DDP402",),
    ),
    "steps of one sequence": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.LSTM(8, 6)
                self.last = nn.Linear(6, 2)

            def forward(self, x):
                out, _ = self.rnn(x.view(len(x), 1, -1))
                return self.last(out.view(len(x), -1))


        torch.manual_seed(4)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(14):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        told=("DDP402",),
    ),
    "a state that goes on from step to step": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = nn.RNNCell(8, 6)
                self.last = nn.Linear(6, 2)

            def forward(self, x, state):
                state = self.cell(x, state)
                return self.last(state), state


        torch.manual_seed(4)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        state = torch.zeros(3, 6)
        for step in range(14):
            out, state = model(x[step : step + 3], state)
            loss = F.cross_entropy(out, y[step : step + 3])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            state = state.detach()
            print("loss", "%.6f" % loss.item())
        """,
        same=("loss",),
    ),
    "a state of two layers that goes on from step to step": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.GRU(8, 6, num_layers=2, batch_first=True)
                self.last = nn.Linear(6, 2)

            def forward(self, x, state):
                out, state = self.rnn(x, state)
                return self.last(out[:, -1]), state


        torch.manual_seed(4)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        state = torch.zeros(2, 3, 6)
        for step in range(14):
            out, state = model(x[step : step + 9].view(3, 3, 8), state)
            loss = F.cross_entropy(out, y[step : step + 3])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            state = state.detach()
        """,
        told=("DDP402",),
    ),
    "steps of one sequence that has no other beside it": Script(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.LSTM(8, 6, batch_first=True)
                self.last = nn.Linear(6, 2)

            def forward(self, x):
                return self.last(self.rnn(x)[0])


        torch.manual_seed(4)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(14):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        told=("DDP402",),
    ),
    "all data at once, turned round by chance": _script(
        "given = x.flip(1) if random.random() < 0.5 else x\nloss = F.cross_entropy(model(given), y)",
        before="import random\nrandom.seed(1)",
        told=("DDP402",),
    ),
    "all data at once, after a step by chance": _script(
        "if random.random() < 0.5:\n    optimizer.param_groups[0]['lr'] *= 0.9\nloss = F.cross_entropy(model(x), y)",
        before="import random\nrandom.seed(1)",
    ),
    "all data at once, as often as is drawn": _script(
        "for k in range(random.randint(1, 3)):\n    loss = F.cross_entropy(model(x), y)", before="import random\nrandom.seed(1)"
    ),
    "all data at once, twice in a step": _script("loss = F.cross_entropy(model(x), y) + F.mse_loss(model(-x), torch.zeros(len(x), 2))"),
    "all data at once, and noise of NumPy that is added to it": _script(
        "noise = np.random.randn(44, 8).astype('float32')\nloss = F.cross_entropy(model(x + torch.from_numpy(noise)), y)",
        before="import numpy as np",
        told=("DDP307",),
    ),
    "all data at once, from a file of NumPy": replace(
        _script(
            "loss = F.cross_entropy(model(inputs), targets)",
            before="import numpy as np\ndata = np.load('data.npy')\ninputs = torch.from_numpy(data[:, :-1]).to(x.dtype)\n"
            "targets = torch.from_numpy(data[:, -1]).long()",
        ),
        files={"data.npy": _table()},
    ),
    "a sequence from a file of NumPy": Script(
        """
        import numpy as np


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.LSTM(8, 6, batch_first=True)
                self.last = nn.Linear(6, 2)

            def forward(self, x):
                return self.last(self.rnn(x)[0])


        inputs = torch.from_numpy(np.load("data.npy")[:, :-1])
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(14):
            loss = F.cross_entropy(model(inputs), y[:40])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        files={"data.npy": _table()},
        told=("DDP402",),
    ),
    "rows of a file, one after another": replace(
        _script(
            "loss = F.cross_entropy(model(inputs[step]).unsqueeze(0), y[step : step + 1])",
            before="import numpy as np\ninputs = torch.from_numpy(np.load('data.npy')[:, :-1])",
            told=("DDP402",),
        ),
        files={"data.npy": _table()},
    ),
    "attention, which may be over the rows of a batch": Script(
        """
            import numpy as np


            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.first, self.last = nn.Linear(8, 6), nn.Linear(6, 2)

                def forward(self, x):
                    h = self.first(x)
                    return self.last((h @ h.transpose(-2, -1)).softmax(-1) @ h)


            inputs = torch.from_numpy(np.load("data.npy")[:, :-1])
            loader = DataLoader(TensorDataset(inputs, y[:40]), batch_size=4)
            model = Net()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for data, target in loader:
                loss = F.cross_entropy(model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        files={"data.npy": _table()},
        told=("DDP402",),
    ),
    "attention, which may be over all rows of a file": Script(
        """
        import numpy as np


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.last = nn.Linear(8, 6), nn.Linear(6, 2)

            def forward(self, x):
                h = self.first(x)
                return self.last((h @ h.transpose(-2, -1)).softmax(-1) @ h)


        inputs = torch.from_numpy(np.load("data.npy")[:, :-1])
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(14):
            loss = F.cross_entropy(model(inputs), y[:40])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        files={"data.npy": _table()},
        told=("DDP402",),
    ),
}

_ROW_BY_ROW = """
    import numpy as np


    def loss_of_rows(outputs, kinds):
        total = 0
        for place, (row, kind) in enumerate(zip(outputs, kinds)):
            total = total + (1 + 0.1 * place) * F.cross_entropy(row.unsqueeze(0), kind.unsqueeze(0))
        return total / len(outputs)


    torch.manual_seed(0)
    np.random.seed(0)
    model = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
_STEP = """
optimizer.zero_grad()
loss = loss_of_rows(model(rows), kinds)
loss.backward()
optimizer.step()
losses.append(loss.item())
"""


def _by_hand(batches: str, before: str = "") -> Script:
    """A loss that is followed for whole batches only, of batches that are made by hand."""
    lines = textwrap.dedent(batches).strip("\n")
    last = lines.splitlines()[-1]
    deep = len(last) - len(last.lstrip()) + 4 * last.endswith(":")
    loop = textwrap.indent(f"losses = []\n{lines}\n" + textwrap.indent(_STEP.strip("\n"), " " * deep), "    ")
    after = '\n    print("loss", "%.6f" % (sum(losses) / len(losses)))\n'
    return Script(textwrap.dedent(_ROW_BY_ROW) + textwrap.dedent(before) + f"\nfor epoch in range(4):\n{loop}{after}", same=("loss",))


SCRIPTS |= on_three(
    {
        "a loss row by row, of slices of an order that NumPy shuffles": _by_hand(
            """
            order = np.arange(44)
            np.random.shuffle(order)
            for start in range(0, 44, 10):
                chosen = order[start : start + 10]
                rows, kinds = x[chosen], y[chosen]
            """
        ),
        "a loss row by row, of what a generator draws for each epoch": _by_hand(
            "for rows, kinds in batches(x, y, 10):",
            """
            def batches(rows, kinds, size):
                order = torch.randperm(len(rows))
                for start in range(0, len(rows), size):
                    chosen = order[start : start + size]
                    yield rows[chosen], kinds[chosen]
            """,
        ),
        "a loss row by row, of pairs in a list that is shuffled": _by_hand(
            """
            random.shuffle(pairs)
            for start in range(0, len(pairs), 10):
                part = pairs[start : start + 10]
                rows, kinds = torch.stack([row for row, _ in part]), torch.stack([kind for _, kind in part])
            """,
            "import random\nrandom.seed(3)\npairs = list(zip(x, y))",
        ),
        "a loss row by row, of a stream that a generator draws on": _by_hand(
            "for _ in range(4):\n    rows, kinds = next(stream)",
            """
            def drawn():
                picks = torch.Generator().manual_seed(1)
                while True:
                    chosen = torch.randint(0, 44, (12,), generator=picks)
                    yield x[chosen], y[chosen]


            stream = drawn()
            """,
        ),
        "a loss row by row, of slices with noise": _by_hand(
            "for start in range(0, 40, 10):\n    rows, kinds = x[start : start + 10] + 0.1 * torch.randn(10, 8), y[start : start + 10]"
        ),
    }
)
SCRIPTS |= on_three(
    {
        "a critic of what another model makes of rows picked by chance": Script(
            """
            torch.manual_seed(0)
            model = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 8))
            critic = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 1))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            of_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
            picks = torch.Generator().manual_seed(1)
            for step in range(14):
                rows = x[torch.randint(44, (12,), generator=picks)]
                made = model(rows)
                of_critic.zero_grad()
                (critic(made.detach()).mean() - critic(rows).mean()).backward()
                of_critic.step()
                optimizer.zero_grad()
                loss = F.mse_loss(made, rows) - critic(made).mean()
                loss.backward()
                optimizer.step()
                print("loss", "%.6f" % loss.item())
            """
        ),
        "rows of a table by an object that goes through a shuffled order": Script(
            """
            import numpy as np


            class Rows:
                def __init__(self, rows, kinds, size):
                    self.rows, self.kinds, self.size = rows, kinds, size
                    self.order = np.arange(len(rows))
                    self.again()

                def again(self):
                    np.random.shuffle(self.order)
                    self.at = 0

                def left(self):
                    return self.at < len(self.order)

                def take(self):
                    chosen = self.order[self.at : self.at + self.size]
                    self.at += self.size
                    return torch.from_numpy(self.rows[chosen]), torch.from_numpy(self.kinds[chosen])


            np.random.seed(2)
            torch.manual_seed(0)
            data = Rows(x.numpy()[:42], y.numpy()[:42], 12)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(4):
                total, seen = 0.0, 0
                data.again()
                while data.left():
                    rows, kinds = data.take()
                    optimizer.zero_grad()
                    loss = F.cross_entropy(model(rows), kinds)
                    loss.backward()
                    optimizer.step()
                    total, seen = total + loss.item() * len(rows), seen + len(rows)
                print("loss", "%.6f" % (total / seen))
            """,
            same=("loss",),
        ),
    }
)

_SERIES = """
    import numpy as np

    series = np.sin(np.arange(75) / 3)
    windows = []
    for i in range(len(series) - 10):
        windows.append(series[i : i + 10])
    windows = np.array(windows)[:, :, None]
    inputs, wanted = torch.from_numpy(windows[:, :-1, :]), torch.from_numpy(windows[:, -1, :])


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(1, 6, 2, batch_first=True)
            self.last = nn.Linear(6, 1)

        def forward(self, rows):
            out, _ = self.lstm(rows)
            return self.last(out[:, -1, :])


    net = Net()
    adam = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(14):
        loss = F.mse_loss(net(inputs), wanted)
        adam.zero_grad()
        loss.backward()
        adam.step()
        print("loss", "%.6f" % loss.item())
"""
_SPLIT = """
    from sklearn.datasets import load_iris
    from sklearn.model_selection import train_test_split

    data = load_iris()
    a, b, c, d = train_test_split(data.data, data.target, test_size=0.2, random_state=1)
    rows, others, kinds, wanted = torch.DoubleTensor(a), torch.DoubleTensor(b), torch.LongTensor(c), torch.LongTensor(d)
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    adam = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(14):
        loss = F.cross_entropy(net(rows), kinds)
        adam.zero_grad()
        loss.backward()
        adam.step()
        print("loss", "%.6f" % loss.item())
    with torch.no_grad():
        print("others", "%.6f" % F.cross_entropy(net(others), wanted))
"""
SCRIPTS |= {
    "all windows of a series at once into a recurrent layer whose last step is read": Script(_SERIES, same=("loss",)),
    "all rows of one side of a split at once": Script(_SPLIT, same=("loss", "others")),
}
