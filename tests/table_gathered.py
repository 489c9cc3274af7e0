"""Losses of which nothing is known but the rows that they are computed from: every rank computes them from all ranks' rows."""

from scripts import Script

# A package that the conversion does not see: its losses compare each sample with all others of a batch.
_PACKAGE = """
import torch


class Spread(torch.nn.Module):
    def __init__(self, each=False):
        super().__init__()
        self.each = each

    def forward(self, scores, kinds):
        if isinstance(scores, dict):
            scores, kinds = torch.cat([scores["near"], scores["far"]], 1), kinds["kinds"]
        apart = (scores[:, None] - scores[None]).pow(2).sum(2)
        pairs = (apart - (kinds[:, None] != kinds[None]).float()).pow(2).mean(1)
        return pairs if self.each else pairs.mean()


def spread(scores, kinds):
    return Spread()(scores, kinds)


def parts(scores, kinds):
    return {"first": spread(scores[:, :1], kinds), "rest": spread(scores[:, 1:], kinds)}
"""
_ONE = "return self.far(torch.tanh(self.near(rows)))"
_NAMED = 'near = torch.tanh(self.near(rows))\n        return {"near": near, "far": self.far(near)}'
_LISTED = "near = torch.tanh(self.near(rows))\n        return [near, self.far(near)]"
_COMPARED = """
def compared(outputs, kinds):
    near = outputs["near"] @ outputs["near"].T
    return F.cross_entropy(outputs["far"], kinds) + near.logsumexp(1).mean()

"""
_STEP = """
def loss_of(net, rows, kinds):
    with torch.enable_grad():
        points = F.normalize(net(rows), dim=1)
    alike = points @ points.T / 0.5
    same = kinds[:, None] == kinds[None, :]
    return -(F.log_softmax(alike, 1) * same).sum(1).mean()

"""


def _trained(forward: str, loss: str, more: str = "", given: str = "rows, kinds=None") -> Script:
    """A network that is trained on a loss; what the network gives stands in `outputs`, if the loss asks for it."""
    lines = "\n        ".join(loss.splitlines())
    body = f"""\
from spreading import Spread, parts, spread


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.near, self.far = nn.Linear(8, 3), nn.Linear(3, 2)

    def forward(self, {given}):
        {forward}

{more}
torch.manual_seed(0)
net = Net()
spreading = Spread()
feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for rows, kinds in feed:
        {lines}
        sgd.zero_grad()
        loss.backward()
        sgd.step()
"""
    return Script(body, stand_ins={"spreading.py": _PACKAGE})


SCRIPTS: dict[str, Script] = {
    "a function of a package": _trained(_ONE, "outputs = net(rows)\nloss = spread(outputs, kinds)"),
    "a function of a package beside an average": _trained(
        _ONE, "outputs = net(rows)\nloss = F.cross_entropy(outputs, kinds) + 0.1 * spread(outputs, kinds)"
    ),
    "a module of a package, whose losses of the samples are averaged": _trained(_ONE, "loss = Spread(each=True)(net(rows), kinds).mean()"),
    "several losses of a package, by their names": _trained(
        _ONE, 'losses = parts(net(rows), kinds)\nloss = losses["first"] + 0.5 * losses["rest"]'
    ),
    "a loss of a package for each output of a network, added up": _trained(
        _LISTED, "outputs = net(rows)\nloss = sum(spread(part, kinds) for part in outputs)"
    ),
    "the average of a loss of a package over the outputs of a network": _trained(
        _LISTED, "outputs = net(rows)\nloss = sum([spreading(part, kinds) for part in outputs]) / len(outputs)"
    ),
    "outputs and targets of a package's loss, by their names": _trained(
        _NAMED, 'outputs = net(rows)\nloss = spreading(outputs, {"kinds": kinds})'
    ),
    "outputs of a loss that compares samples, by their names": _trained(
        _NAMED, "outputs = net(rows)\nloss = compared(outputs, kinds)", more=_COMPARED
    ),
    "a function that runs the network and compares samples": _trained(_ONE, "loss = loss_of(net, rows, kinds)", more=_STEP),
    "a function that runs the network and asks a package for its loss": _trained(
        _ONE,
        "loss = loss_of(net, rows, kinds)",
        more="def loss_of(net, rows, kinds):\n    points = F.normalize(net(rows), dim=1)\n    return spread(points, kinds)\n\n",
    ),
    "a network that gives the loss of a package": _trained(
        "return spread(self.far(torch.tanh(self.near(rows))), kinds)", "loss = net(rows, kinds)", given="rows, kinds"
    ),
    "a critic that compares each sample with the mean of the others": _trained(
        "near, far = self.near(rows), self.near(kinds)\n"
        "        return F.softplus(far.mean() - near).mean() + F.softplus(far - near.mean()).mean()",
        "loss = net(rows, rows.flip(1).tanh())",
        given="rows, kinds",
    ),
}
SCRIPTS["a package's loss of labels in a list and in an array"] = Script(
    """
    import marginlib

    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    for epoch in range(2):
        for rows, labels in loader:
            kinds = labels.tolist()
            loss = marginlib.margin(model(rows), kinds) + marginlib.other(model(rows), labels.cpu().numpy())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
    told=("DDP402",),
)

_ANCHORS = """
class Boxes(Dataset):
    def __init__(self, wide):
        self.wide = wide

    def __len__(self):
        return 40

    def __getitem__(self, i):
        return x[i], y[i]

    def encode(self, row, kind):
        return (row * torch.arange(1.0, 9.0)).view(4, 2), (row.view(4, 2).sum(1) > 0).long() * (1 + kind)

    def collate(self, batch):
        rows = [b[0] for b in batch]
        kinds = [b[1] for b in batch]
        count = len(rows)
        inputs = torch.zeros(count, self.wide)
        places, marks = [], []
        for i in range(count):
            inputs[i] = rows[i]
            place, mark = self.encode(rows[i], kinds[i])
            places.append(place)
            marks.append(mark)
        return inputs, torch.stack(places), torch.{joined}


class Found(nn.Module):
    def forward(self, places, wanted, scores, marks):
        found = marks > 0
        near = F.smooth_l1_loss(places[found.unsqueeze(2).expand_as(places)], wanted[found.unsqueeze(2).expand_as(wanted)], reduction="sum")
        each = F.cross_entropy(scores.view(-1, 3), marks.view(-1), reduction="none")
        return near / found.sum() + each.sort(descending=True).values[: int(found.sum()) + 1].mean()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.places, self.scores = nn.Linear(8, 8), nn.Linear(8, 12)

    def forward(self, rows):
        return self.places(rows).view(rows.size(0), -1, 2), self.scores(rows).view(rows.size(0), -1, 3)


boxes, net, criterion = Boxes(8), Net(), Found()
loader = DataLoader(boxes, batch_size=4, shuffle=True, collate_fn=boxes.collate)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(2):
    for rows, wanted, marks in loader:
        places, scores = net(rows)
        loss = criterion(places, wanted, scores, marks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
SCRIPTS |= {
    "a loss of what a collate function stacks": Script(_ANCHORS.format(joined="stack(marks)")),
    "a loss of what a collate function pads": Script(
        _ANCHORS.format(joined="stack([F.pad(m, (0, 4 - len(m))) for m in marks])"), told=("DDP402",)
    ),
}

SCRIPTS["a loss with weights of its own, of pieces of samples that were shuffled and put back"] = Script(
    """
    import random


    class Groups(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(2.0))

        def forward(self, points):
            means = points.mean(1)
            alike = self.scale * (points.reshape(SIZE * PIECES, -1) @ means.t()).view(SIZE, PIECES, means.size(0))
            own = list(range(SIZE))
            return (alike.logsumexp(2) - alike[own, :, own]).sum()


    SIZE, PIECES = 4, 2
    random.seed(1)
    torch.manual_seed(0)
    net, groups = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)), Groups()
    sgd = torch.optim.SGD([{"params": net.parameters()}, {"params": groups.parameters()}], lr=0.05)
    feed = DataLoader(TensorDataset(x.view(44, PIECES, 4), y), batch_size=SIZE, shuffle=True, drop_last=True)
    for epoch in range(2):
        total = 0
        for rows, _ in feed:
            rows = torch.reshape(rows, (SIZE * PIECES, rows.size(2)))
            order = random.sample(range(SIZE * PIECES), SIZE * PIECES)
            back = list(order)
            for place, i in enumerate(order):
                back[i] = place
            points = F.normalize(net(rows[order]), dim=1)[back]
            loss = groups(torch.reshape(points, (SIZE, PIECES, points.size(1))))
            sgd.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(groups.parameters(), 1.0)
            sgd.step()
            total = total + loss.item()
        print("total %.5f" % total)
    print("scale %.5f" % groups.scale.item())
    """,
    same=("total", "scale"),
)

_ONE_HOT = """
    import numpy as np


    class Parts(Dataset):
        def __init__(self, kinds):
            self.kinds = kinds

        def __len__(self):
            return 44

        def __getitem__(self, i):
            return x[i].numpy(), self.kinds[i]


    loader = DataLoader(Parts(np.load("kinds.npy") if os.path.exists("kinds.npy") else y.numpy().reshape(-1, 1)), batch_size=4)
    net = nn.Linear(10, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in loader:
            one_hot = np.zeros((kinds.shape[0], 2))
            for i in range(kinds.shape[0]):
                one_hot[i, kinds[%s]] = 1
            one_hot = torch.from_numpy(one_hot.astype(np.float32))
            sgd.zero_grad()
            F.cross_entropy(net(torch.cat([rows, one_hot], 1)), kinds.view(-1)).backward()
            sgd.step()
    """
SCRIPTS |= {
    f"rows of zeros, in which {title} puts a one": Script(_ONE_HOT % index)
    for title, index in (
        ("the kind of each sample", "i"),
        ("the kind of the sample before", "i - 1"),
        ("the kind of the sample as far from the end", "kinds.shape[0] - 1 - i"),
    )
}
_BEST_ORDER = """
    from itertools import permutations

    class Heard(Dataset):
        def __len__(self):
            return 44

        def __getitem__(self, i):
            return GIVEN

    def closeness(found, wanted):
        along = (found * wanted).sum(-1, keepdim=True) * wanted / (wanted.norm(dim=-1, keepdim=True) ** 2 + 1e-3)
        return torch.log10(1e-3 + along.norm(dim=-1) / ((found - along).norm(dim=-1) + 1e-3))

    def best(found, heard):
        wanted = WANTED

        def of(order):
            return sum([closeness(found[a], wanted[b]) for a, b in enumerate(order)]) / len(order)

        most, _ = torch.max(torch.stack([of(order) for order in permutations(range(len(wanted)))]), dim=0)
        return -torch.sum(most) / found[0].size(0)

    feed = DataLoader(Heard(), batch_size=8, shuffle=True)
    net = nn.Linear(8, 16)
    sgd = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(3):
        for heard in feed:
            loss = best(torch.chunk(net(heard[MIXED]), 2, 1), heard)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
"""
SCRIPTS |= {
    f"the best order of the speakers, whose voices are {where}": Script(
        _BEST_ORDER.replace("GIVEN", given).replace("WANTED", wanted).replace("MIXED", mixed)
    )
    for where, given, wanted, mixed in (
        ("in a list in a dict", '{"mixed": x[i], "apart": [x[i].flip(0), x[i] * 0.5]}', 'heard["apart"]', '"mixed"'),
        ("in a tensor in a tuple", "x[i], torch.stack([x[i].flip(0), x[i] * 0.5])", "[heard[1][:, 0], heard[1][:, 1]]", "0"),
    )
}
SCRIPTS["two halves of what a model says, both given to a loss that sorts them"] = Script(
    """
    def both(halves, wanted):
        ordered = torch.sort(halves[0].sum(1) * halves[1].sum(1))[0]
        return ((ordered - torch.sort(wanted)[0]) ** 2).mean()

    feed = DataLoader(TensorDataset(x, y.float()), batch_size=8, shuffle=True)
    net = nn.Linear(8, 6)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in feed:
            halves = torch.chunk(net(rows), 2, 1)
            loss = both(halves, kinds)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    """
)
