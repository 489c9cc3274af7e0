"""Scripts that ask the same settings again and again: what one value of a setting makes is used where the setting has that value."""

import textwrap

from scripts import Script

NETS = """
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(8, 6)
        self.head = nn.Linear(6, 2)

    def forward(self, rows, state):
        state = self.cell(rows, state)
        return self.head(state), state

    def begin(self, count):
        return torch.zeros(count, 6)


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = None
        self.head = nn.Linear(8, 2)

    def forward(self, rows, mask=True):
        if mask:
            if self.mask is None or self.mask.size(0) != rows.size(1):
                self.mask = torch.arange(1.0, rows.size(1) + 1) / 8
        else:
            self.mask = None
        return self.head(rows if self.mask is None else rows * self.mask)


parser = argparse.ArgumentParser()
parser.add_argument("--net", default="masked")
parser.add_argument("--batch-size", type=int, default=4)
args = parser.parse_args()
torch.manual_seed(0)
"""
TRAINED = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=args.batch_size, shuffle=True)
test_loader = DataLoader(TensorDataset(x[36:], y[36:]), batch_size=args.batch_size)


def evaluate():
    model.eval()
    total = 0.0
    with torch.no_grad():
        for rows, labels in test_loader:
            {used}
            total += F.cross_entropy(out, labels, reduction="sum").item()
    return total / len(test_loader.dataset)


best = None
rate = 0.1
for epoch in range(3):
    model.train()
    for rows, labels in train_loader:
        {used}
        loss = F.cross_entropy(out, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    held = evaluate()
    print("held", held)
    if best is None or held < best:
        torch.save(model.state_dict(), "best.pt")
        best = held
    else:
        rate /= 4.0
        optimizer.param_groups[0]["lr"] = rate
"""
BRANCHES = """if args.net == "masked":
{0}    out = model(rows)
{0}else:
{0}    out, state = model(rows, model.begin(rows.size(0)))"""


def _trained(built: str) -> str:
    used = {8: BRANCHES.format(" " * 8), 12: BRANCHES.format(" " * 12)}
    evaluated, trained = TRAINED.split("{used}", 1)
    return NETS + built + evaluated + used[12] + trained.replace("{used}", used[8])


SAME = ("held",)
SCRIPTS: dict[str, Script] = {
    "networks of two signatures, by one setting": Script(
        _trained(
            """
if args.net == "masked":
    model = Masked()
else:
    model = Recurrent()
"""
        ),
        SAME,
    ),
    "networks of two signatures, by the negated setting": Script(
        _trained("model = Recurrent() if args.net != 'masked' else Masked()\n"), SAME, args=("--net", "other")
    ),
    "networks of two signatures, from a function that returns early": Script(
        _trained(
            """
def build(name):
    if args.net == "masked":
        return Masked()
    return Recurrent()


model = build(args.net)
"""
        ),
        SAME,
    ),
    "a network of a list of which another takes more": Script(
        """
class Single(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, rows):
        return self.layers(rows)


class Pair(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.head = nn.Linear(8, width)

    def forward(self, rows, others):
        return self.head(rows) @ self.head(others).t()


class Scaled(Single):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, rows):
        return self.factor * super().forward(rows / rows.mean())


NETS = {"single": Single, "pair": Pair, "scaled": Scaled}
parser = argparse.ArgumentParser()
parser.add_argument("--net", default="single")
args = parser.parse_args()
torch.manual_seed(0)
model = NETS[args.net]()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
for epoch in range(3):
    for rows, labels in train_loader:
        loss = F.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
torch.save(model.state_dict(), "last.pt")
"""
    ),
    "networks of two signatures, by a setting that changes between": Script(
        _trained(
            """
if args.net == "masked":
    model = Recurrent()
    args.net = "other"
else:
    model = Recurrent()
"""
        ),
        SAME,
    ),
}
SCRIPTS |= {
    f"data in the order that a file asks for, of settings that {title}": Script(
        f"""
{textwrap.indent(fills, " " * 8)}

        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train_set = TensorDataset(x[:39], y[:39])
        loader = DataLoader(train_set, batch_size=4, shuffle={name("mixed")}, drop_last={name("even")})
        for epoch in range(2):
            for rows, labels in loader:
                loss = F.cross_entropy(model(rows), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        files={"settings.json": '{"mixed": false, "even": true}'},
    )
    for title, name, fills in (
        (
            "a dict holds",
            "settings[{!r}]".format,
            """
import json

settings = {"mixed": True, "even": False}
with open("settings.json") as f:
    settings.update(json.load(f))
""",
        ),
        (
            "are set by name",
            "settings.{}".format,
            """
import json

class Settings:
    mixed = True
    even = False

settings = Settings()
with open("settings.json") as f:
    for name, value in json.load(f).items():
        setattr(settings, name, value)
""",
        ),
    )
}
SCRIPTS["settings of a file, one of which is put in where there is none"] = Script(
    """
    import json


    def loader_of(settings):
        return DataLoader(TensorDataset(x, y), batch_size=settings["batch_size"], shuffle=settings["mixed"] == "yes")


    with open("settings.json") as f:
        settings = json.load(f)
    if "mixed" not in settings:
        settings["mixed"] = "yes"
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=settings["rate"])
    loader = loader_of(settings)
    for epoch in range(settings["epochs"]):
        for rows, labels in loader:
            loss = F.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    torch.save(model.state_dict(), "last.pt")
    """,
    files={"settings.json": '{"batch_size": 4, "rate": 0.1, "epochs": 2}'},
)
