"""Scripts of recurrent networks whose states go on from batch to batch, and are made for as many samples as a batch has."""

from scripts import Script, on_three

_NET = """
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.width = 2, 6
        self.words = nn.Embedding(20, 5)
        self.lstm = nn.LSTM(5, self.width, self.layers, batch_first=True)
        self.last = nn.Linear(self.width, 1)

    def forward(self, words, state):
        samples = words.size(0)
        out, state = self.lstm(self.words(words), state)
        out = torch.sigmoid(self.last(out.contiguous().view(-1, self.width)))
        return out.view(samples, -1)[:, -1], state

    def start(self, samples):
        weight = next(self.parameters()).data
        return (START, START)


batch_size = 6
words, wanted = (x.abs() * 100).long() % 20, y.double()
loader = DataLoader(TensorDataset(words, wanted), batch_size=batch_size, shuffle=True)
held_out = DataLoader(TensorDataset(words[:24], wanted[:24]), batch_size=batch_size)
net = Reader()
adam = torch.optim.Adam(net.parameters(), lr=0.01)
criterion = nn.BCELoss()
"""
_STEP = """
        net.zero_grad()
        scores, state = net(rows, state)
        loss = criterion(scores.squeeze(), kinds)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5)
        adam.step()
"""
_WITHIN = (
    """
steps = 0
for epoch in range(3):
    state = net.start(batch_size)
    for rows, kinds in loader:
        steps += 1
        state = tuple([part.data for part in state])
"""
    + _STEP
    + """
        if steps % 5 == 0:
            held_state, losses = net.start(batch_size), []
            net.eval()
            for rows, kinds in held_out:
                held_state = tuple([part.data for part in held_state])
                scores, held_state = net(rows, held_state)
                losses.append(criterion(scores.squeeze(), kinds).item())
            net.train()
            print("held out", round(sum(losses) / len(losses), 6))
right = 0
state = net.start(batch_size)
for rows, kinds in held_out:
    state = tuple([part.data for part in state])
    scores, state = net(rows, state)
    right += (torch.round(scores.squeeze()) == kinds).sum().item()
print("right", right)
"""
)
_AFTER = (
    """
def judged(net, loader):
    total, state = 0.0, net.start(batch_size)
    with torch.no_grad():
        for rows, kinds in loader:
            scores, state = net(rows, state)
            total += criterion(scores.squeeze(), kinds).item()
    return total / len(loader)


for epoch in range(3):
    state = net.start(batch_size)
    for rows, kinds in loader:
        state = [part.detach() for part in state]
"""
    + _STEP
    + """
    print("held out", round(judged(net, held_out), 6))
"""
)
_WINDOWS = """
import numpy as np


class Writer(nn.Module):
    def __init__(self, kinds):
        super().__init__()
        self.kinds, self.width = kinds, 6
        self.lstm = nn.LSTM(kinds, self.width, 2, batch_first=True)
        self.last = nn.Linear(self.width, kinds)

    def forward(self, windows, state):
        out, state = self.lstm(windows, state)
        return self.last(out.contiguous().view(-1, self.width)), state

    def start(self, samples):
        weight = next(self.parameters()).data
        return (weight.new(2, samples, self.width).zero_(), weight.new(2, samples, self.width).zero_())


def one_hot(numbers, kinds):
    marked = np.zeros((numbers.size, kinds), dtype=np.float64)
    marked[np.arange(marked.shape[0]), numbers.flatten()] = 1.0
    return marked.reshape((*numbers.shape, kinds))


def windows_of(numbers, samples, length):
    whole = samples * length
    numbers = numbers[: len(numbers) // whole * whole].reshape((samples, -1))
    for at in range(0, numbers.shape[1], length):
        seen = numbers[:, at : at + length]
        wanted = np.zeros_like(seen)
        try:
            wanted[:, :-1], wanted[:, -1] = seen[:, 1:], numbers[:, at + length]
        except IndexError:
            wanted[:, :-1], wanted[:, -1] = seen[:, 1:], numbers[:, 0]
        yield seen, wanted


def train(net, numbers, held_out, epochs, samples=6, length=5):
    adam = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(epochs):
        state = net.start(samples)
        for seen, wanted in windows_of(numbers, samples, length):
            inputs, targets = torch.from_numpy(one_hot(seen, net.kinds)), torch.from_numpy(wanted)
            state = tuple([part.data for part in state])
            net.zero_grad()
            out, state = net(inputs, state)
            loss = F.cross_entropy(out, targets.view(samples * length).long())
            loss.backward()
            adam.step()
        state, losses = net.start(samples), []
        for seen, wanted in windows_of(held_out, samples, length):
            inputs, targets = torch.from_numpy(one_hot(seen, net.kinds)), torch.from_numpy(wanted)
            with torch.no_grad():
                out, state = net(inputs, state)
            losses.append(F.cross_entropy(out, targets.view(samples * length).long()).item())
        print("held out", round(sum(losses) / len(losses), 6))


text = np.array([(i * i + 3 * i) % 11 for i in range(400)])
train(Writer(11), text[:300], text[300:], 3)
"""
_EITHER = """
class OfOne(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.last = nn.GRU(2, 6, 2, batch_first=True), nn.Linear(6, 1)

    def forward(self, rows, state):
        out, state = self.cell(rows, state)
        return self.last(out[:, -1]), state

    def start(self, samples):
        return next(self.parameters()).data.new(2, samples, 6).zero_()


class OfTwo(OfOne):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(2, 6, 2, batch_first=True)

    def start(self, samples):
        weight = next(self.parameters()).data
        return (weight.new(2, samples, 6).zero_(), weight.new(2, samples, 6).zero_())


batch_size = 6
loader = DataLoader(TensorDataset(x.view(-1, 4, 2), x.sum(1, keepdim=True)), batch_size=batch_size, shuffle=True)


def train(kind, epochs=2):
    net = OfOne() if kind == "one" else OfTwo()
    adam = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(epochs):
        state = net.start(batch_size)
        for rows, wanted in loader:
            state = state.data if kind == "one" else tuple([part.data for part in state])
            net.zero_grad()
            out, state = net(rows, state)
            loss = F.mse_loss(out, wanted)
            loss.backward()
            adam.step()
    return net


def judge(net, parts):
    for name, rows in parts.items():
        out, _ = net(rows, net.start(rows.shape[0]))
        print("judged", name, round(out.mean().item(), 6))


one, two = train("one"), train("two")
judge(one, {"first": x[:10].view(-1, 4, 2), "last": x[30:].view(-1, 4, 2)})
"""
_CUT = """
class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.last = nn.GRU(2, 6, batch_first=True), nn.Linear(6, 2)

    def forward(self, rows, state):
        out, state = self.cells(rows.view(-1, 4, 2), state)
        return self.last(out[:, -1]), state


batch_size = 6
net = Cells()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)
for epoch in range(2):
    state = torch.zeros(1, batch_size, 6)
    for rows, kinds in loader:
        scores, state = net(rows, state[:, : rows.size(0), :].contiguous())
        loss = F.cross_entropy(scores, kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        state = state.detach()
"""

_FIXED = """
class Cells(nn.Module):
    def __init__(self, samples):
        super().__init__()
        self.samples = samples
        self.cells = nn.LSTM(2, 6)
        self.last = nn.Linear(6, 2)

    def forward(self, rows, alone=None):
        if alone is None:
            state = torch.zeros(1, self.samples, 6), torch.zeros(1, self.samples, 6)
        else:
            state = torch.zeros(1, alone, 6), torch.zeros(1, alone, 6)
        steps = rows.view(-1, 4, 2)
        _, (last, _) = self.cells(steps.permute(1, 0, 2), state)
        return self.last(last[-1])


batch_size = 6
net = Cells(SIZE)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True, drop_last=True)
held_out = DataLoader(TensorDataset(x[:24], y[:24]), batch_size=batch_size)
for epoch in range(2):
    for rows, kinds in loader:
        loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    with torch.no_grad():
        losses = [F.cross_entropy(net(rows), kinds).item() for rows, kinds in held_out]
    print("held out", round(sum(losses) / len(losses), 6))
print("right, alone:", net(x[:1], 1).argmax().item())
"""

_BEGUN = """
class Cells(nn.Module):
    def __init__(self, samples):
        super().__init__()
        self.samples = samples
        self.cells = nn.LSTM(2, 6)
        self.last = nn.Linear(6, 2)
        self.state = self.begin()

    def begin(self):
        return torch.zeros(1, self.samples, 6), torch.zeros(1, self.samples, 6)

    def forward(self, steps):
        out, self.state = self.cells(steps.view(4, self.samples, -1), self.state)
        return self.last(out[-1])


batch_size = 6
net = Cells(batch_size)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True, drop_last=True)
held_out = DataLoader(TensorDataset(x[:24], y[:24]), batch_size=batch_size)
for epoch in range(2):
    for rows, kinds in loader:
        net.state = net.begin()
        loss = F.cross_entropy(net(rows.view(-1, 4, 2).permute(1, 0, 2).contiguous()), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    losses = []
    with torch.no_grad():
        for rows, kinds in held_out:
            net.state = net.begin()
            losses.append(F.cross_entropy(net(rows.view(-1, 4, 2).permute(1, 0, 2).contiguous()), kinds).item())
    print("held out", round(sum(losses) / len(losses), 6))
"""


def _script(text: str, start: str) -> Script:
    return Script(_NET.replace("START", start) + text, same=("held out", "right"))


SCRIPTS: dict[str, Script] = on_three(
    {
        "states like a weight, in training and in a test within it": _script(
            _WITHIN, "weight.new(self.layers, samples, self.width).zero_()"
        ),
        "states of zeros, in training and in a test within it": _script(_WITHIN, "torch.zeros(self.layers, samples, self.width)"),
        "states like a weight, in training and in a test after each epoch": _script(
            _AFTER, "weight.new_zeros(self.layers, samples, self.width)"
        ),
        "states of zeros, in training and in a test after each epoch": _script(_AFTER, "torch.zeros(self.layers, samples, self.width)"),
        "states of either of two networks, one of which is judged by other rows": Script(_EITHER, same=("judged",)),
        "states that are cut to as many samples as a batch has": Script(_CUT),
        "states of as many samples as a network is told, which is run in a test, too": Script(
            _FIXED.replace("SIZE", "batch_size"), same=("held out", "right")
        ),
        "states of as many samples as a network is told, in another place than the loader": Script(
            _FIXED.replace("SIZE", "6"), same=("held out", "right")
        ),
        "states that a network begins itself, in training and in a test": Script(_BEGUN, same=("held out",)),
        "windows of rows of numbers, with what follows in each": Script(_WINDOWS, same=("held out",)),
    },
    rows=42,
)
