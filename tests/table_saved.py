"""Scripts that save whole objects with a model in them, and read them back: what is saved is the model, without a wrapper."""

from dataclasses import replace

from scripts import Script

NET = """
import copy
import pickle
from dataclasses import dataclass
from pathlib import Path


class Net(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.body = nn.Linear(8, width)
        self.head = nn.Linear(width, 2)

    def forward(self, rows):
        return self.head(self.body(rows).tanh())


def shown(net):
    return f"{type(net).__name__} {len(net.state_dict())} {sorted(net.state_dict())[0]}"


"""
MAKE = """
model = Net()
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
EPOCHS = """
for epoch in range(2):
    for data, target in loader:
        loss = F.cross_entropy(model(data), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def _script(head: str, each: str, end: str, make: str = MAKE) -> Script:
    """A training script with definitions, lines at the end of each epoch, and lines at its end."""
    indented = "".join(f"    {line}\n" if line else "\n" for line in each.strip("\n").split("\n"))
    return Script("\n".join((NET + head.strip("\n"), make.strip("\n"), EPOCHS.strip("\n"), indented + end.strip("\n"))), same=("kind",))


_TAKEN_OUT = """
        net = nn.Linear(8, 2)
        many = os.environ.get("MANY", "1") == "1"
        if many:
            net = nn.DataParallel(net)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
                loss = F.cross_entropy(net(rows), kinds)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
{taken}
            torch.save({{"net": inner.state_dict(), "round": epoch}}, "last.pt")
"""
SCRIPTS: dict[str, Script] = {
    "the model inside, or the model, by a condition": Script(
        _TAKEN_OUT.format(taken="            if many:\n                inner = net.module\n            else:\n                inner = net")
    ),
    "the model, and instead the model inside where a condition holds": Script(
        _TAKEN_OUT.format(taken="            inner = net\n            if many:\n                inner = net.module")
    ),
    "a model in the dict that is saved": _script(
        "",
        'torch.save({"model": model, "epoch": epoch}, "last.pt")',
        'back = torch.load("last.pt", weights_only=False)\nprint("kind", shown(back["model"]), back["epoch"])',
    ),
    "a model put into a dict that has a name": _script(
        "",
        'state = {"epoch": epoch}\nstate["net"] = model\ntorch.save(state, "last.pt")',
        'print("kind", shown(torch.load("last.pt", weights_only=False)["net"]))',
    ),
    "a model in a tuple that is pickled": _script(
        "",
        'with open("last.pkl", "wb") as f:\n    pickle.dump((epoch, model), f)',
        'with open("last.pkl", "rb") as f:\n    epoch, net = pickle.load(f)\nprint("kind", shown(net), epoch)',
    ),
    "a model in a record of the script's own": _script(
        "@dataclass\nclass Kept:\n    net: nn.Module\n    epoch: int\n\n",
        'torch.save(Kept(model, epoch), "last.pt")',
        'print("kind", shown(torch.load("last.pt", weights_only=False).net))',
    ),
    "a saver that holds the model": _script(
        """
class Saver:
    def __init__(self, net, path):
        self.net, self.path = net, path

    def save(self, epoch):
        torch.save({"net": self.net, "epoch": epoch}, self.path)


""",
        "saver.save(epoch)",
        'print("kind", shown(torch.load("last.pt", weights_only=False)["net"]))',
        MAKE + 'saver = Saver(model, "last.pt")\n',
    ),
    "a dict that a function saves": _script(
        "def keep(state, path):\n    torch.save(state, path)\n\n\n",
        'keep({"net": model, "optimizer": optimizer.state_dict()}, "last.pt")',
        'print("kind", shown(torch.load("last.pt", weights_only=False)["net"]))',
    ),
    "copies of the model kept in a list": _script(
        "kept = []\n",
        "kept.append(copy.deepcopy(model))",
        'torch.save({"nets": kept, "last": model}, "nets.pt")\nback = torch.load("nets.pt", weights_only=False)\n'
        'print("kind", [shown(net) for net in back["nets"]], shown(back["last"]))',
    ),
    "a model that is scripted and saved": _script(
        "",
        "pass",
        'scripted = torch.jit.script(model)\nscripted.save("net.pt")\n'
        'torch.jit.save(torch.jit.trace(model, x[:2]), "traced.pt")\nprint("kind", torch.jit.load("net.pt")(x).shape)',
    ),
    "a model that is read back and trained on": _script(
        "",
        'torch.save({"model": model, "epoch": epoch}, "last.pt")',
        'print("kind", shown(torch.load("last.pt", weights_only=False)["model"]))',
        """
torch.manual_seed(3)
torch.save({"model": Net(), "epoch": 0}, "first.pt")
model = torch.load("first.pt", weights_only=False)["model"]
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
""",
    ),
    **{
        f"a model out of a checkpoint that a name holds, {title}": _script(
            "",
            'torch.save({"model": model, "optimizer": optimizer}, "last.pt")',
            'print("kind", shown(torch.load("last.pt", weights_only=False)["model"]))',
            f"""
torch.manual_seed(3)
model = Net()
torch.save({{"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1)}}, "first.pt")
checkpoint = torch.load("first.pt", weights_only=False)
model = checkpoint["model"]
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
optimizer = {optimizer}
""",
        )
        for title, optimizer in {
            "with its optimizer": 'checkpoint["optimizer"]',
            "with a new optimizer": "torch.optim.SGD(model.parameters(), lr=0.1)",
        }.items()
    },
    "the best model and its optimizer read back where an epoch was no better": replace(
        _script(
            "",
            """
if epoch == 0:
    torch.save({"model": model, "optimizer": optimizer}, "last.pt")
else:
    checkpoint = torch.load("last.pt", weights_only=False)
    model, optimizer = checkpoint["model"], checkpoint["optimizer"]
""",
            "",
        ),
        told=("DDP201",),
    ),
    "a DataParallel in the dict that is saved": _script(
        "",
        'torch.save({"model": model, "epoch": epoch}, "last.pt")\ntorch.save(model, "net.pt")',
        """
for kept in (torch.load("last.pt", weights_only=False)["model"], torch.load("net.pt", weights_only=False)):
    print("kind", type(kept).__name__, type(kept.module).__name__, sorted(kept.state_dict()))
""",
        MAKE.replace("model = Net()", "model = nn.DataParallel(Net())"),
    ),
    **{
        f"a model that is in a DataParallel where {title}, saved as a whole": _script(
            "",
            'torch.save(model, "net.pt")',
            """
kept = torch.load("net.pt", weights_only=False)
print("kind", type(kept).__name__, sorted(kept.state_dict()))
""",
            MAKE.replace("model = Net()", f"model = Net()\nparallel = {test}\nif parallel:\n    model = nn.DataParallel(model)"),
        )
        for title, test in {"a setting asks for it": "len(x) > 8", "there are several GPUs": "torch.cuda.device_count() > 1"}.items()
    },
    "a DataParallel that is read back and trained on": replace(
        _script(
            "",
            'torch.save({"model": model, "epoch": epoch}, "last.pt")',
            "",
            """
torch.manual_seed(3)
torch.save({"model": Net(), "epoch": 0}, "first.pt")
model = nn.DataParallel(torch.load("first.pt", weights_only=False)["model"])
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
""",
        ),
        told=("DDP203",),
    ),
    **{
        f"a DataParallel that is read back, and put into another one, {title}": _script(
            "",
            'torch.save({"model": model, "epoch": epoch}, "last.pt")',
            """
kept = torch.load("last.pt", weights_only=False)["model"]
print("kind", type(kept).__name__, type(kept.module).__name__, sorted(kept.module.state_dict())[:1])
""",
            f"""
torch.manual_seed(3)
torch.save({{"model": Net(), "epoch": 0}}, "first.pt")
several = len(x) > 8
model = {made}
{wrapped}
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
""",
        )
        for title, made, wrapped in (
            ("always", 'torch.load("first.pt", weights_only=False)["model"]', "model = nn.DataParallel(model)"),
            (
                "on a condition",
                'torch.load("first.pt", weights_only=False)["model"] if several else Net()',
                "if several:\n    model = nn.DataParallel(model)",
            ),
        )
    },
    "the model inside where there was a wrapper, or else the model": _script(
        "",
        'torch.save({"net": model.module if parallel else model, "epoch": epoch}, "last.pt")',
        'print("kind", shown(torch.load("last.pt", weights_only=False)["net"]))',
        "parallel = torch.cuda.is_available()\n"
        + MAKE.replace("loader =", "model = nn.DataParallel(model) if parallel else model\nloader ="),
    ),
    "a wrapper that a setting asks for, and a keeper of the best that saves what it is handed": Script(
        NET
        + """
parser = argparse.ArgumentParser()
parser.add_argument("--several", action="store_true")
args = parser.parse_args()


class Keeper:
    def __init__(self):
        self.best = None

    def __call__(self, loss, net, path):
        if self.best is None or loss < self.best:
            self.best = loss
            self.keep(net, path)

    def keep(self, net, path):
        torch.save(net.state_dict(), path)


class Work:
    def __init__(self):
        self.net = self.make()
        self.loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)

    def make(self):
        net = Net()
        if args.several:
            net = nn.DataParallel(net)
        return net

    def run(self):
        keeper = Keeper()
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        for epoch in range(2):
            for data, target in self.loader:
                loss = F.cross_entropy(self.net(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            keeper(-epoch, self.net, "best.pt")
        self.net.load_state_dict(torch.load("best.pt"))
        print("keys", sorted(torch.load("best.pt")))


Work().run()
""",
        same=("keys",),
        args=("--several",),
    ),
    "a report that holds the model and saves itself": _script(
        """
class Report:
    def __init__(self, net, path):
        self.net, self.path, self.losses = net, path, []

    def keep(self, epoch):
        self.losses.append(epoch)
        torch.save(self, self.path)


""",
        "report.keep(epoch)",
        'print("kind", shown(torch.load("last.pt", weights_only=False).net))',
        MAKE + 'report = Report(model, "last.pt")\n',
    ),
    "a trainer that may put its model into a DataParallel, and saves it as a whole": Script(
        NET
        + """
class Trainer:
    def __init__(self, net, several):
        if several:
            net = nn.DataParallel(net)
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def train(self, loader):
        for epoch in range(2):
            for data, target in loader:
                self.optimizer.zero_grad()
                F.cross_entropy(self.net(data), target).backward()
                self.optimizer.step()
            torch.save(self.net, "net.pt")


parser = argparse.ArgumentParser()
parser.add_argument("--several", action="store_true")
trainer = Trainer(Net(), parser.parse_args().several)
trainer.train(DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True))
""",
    ),
    "a trainer that trains and saves itself": Script(
        NET
        + """
class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(self, rows, kinds):
        self.optimizer.zero_grad()
        F.cross_entropy(self.net(rows), kinds).backward()
        self.optimizer.step()


trainer = Trainer(Net())
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
for epoch in range(2):
    for data, target in loader:
        trainer.step(data, target)
    torch.save(trainer, "last.pt")
""",
        told=("DDP203",),
    ),
    "a file named after the device, read back by all ranks, and one that only rank 0 looks for": Script(
        """
        device = torch.device("cuda:2" if torch.cuda.is_available() else "cpu")
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in loader:
                loss = F.cross_entropy(model(rows.to(device)), kinds.to(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if os.path.isfile(f"model_{epoch - 1}_{device}.pt"):
                os.remove(f"model_{epoch - 1}_{device}.pt")
            torch.save(model.state_dict(), f"model_{epoch}_{device}.pt")
        model.load_state_dict(torch.load("model_2_%s.pt" % device))
        torch.save({"weights": model.state_dict()}, "again.pt")
        again = "again.pt"
        again = torch.load(again, map_location=device)
        model.load_state_dict(again["weights"])
        with torch.no_grad():
            print("again", F.cross_entropy(model(x.to(device)), y.to(device)).item())
        """,
        same=("again",),
    ),
    "a file named after the device that all ranks look for before they read it": Script(
        """
        device = torch.device("cuda:2" if torch.cuda.is_available() else "cpu")
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2).to(device)
        if os.path.isfile(f"model_{device}.pt"):
            model.load_state_dict(torch.load(f"model_{device}.pt"))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in loader:
                loss = F.cross_entropy(model(rows.to(device)), kinds.to(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            torch.save(model.state_dict(), f"model_{device}.pt")
        """,
        told=("DDP506",),
    ),
}

SCRIPTS |= {
    "a checkpoint loaded where only functions call the device by its name": Script(
        """
        def fit(model, loader, device):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(3):
                for rows, kinds in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(rows.to(device)), kinds.to(device)).backward()
                    optimizer.step()


        def main():
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            model = nn.Linear(8, 2).to(device)
            fit(model, DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True), device)
            return model


        if __name__ == "__main__":
            model = main()
            torch.save(model.state_dict(), "last.pt")
            model = nn.Linear(8, 2)
            model.load_state_dict(torch.load("last.pt"))
        """,
    ),
}

SCRIPTS |= {
    "one function that saves a model in a wrapper and one in none, both of DataParallel": Script(
        """
        def save(net, name):
            torch.save(net.state_dict(), name)


        painter, critic = nn.DataParallel(nn.Linear(8, 8)), nn.DataParallel(nn.Linear(8, 1))
        loader = DataLoader(TensorDataset(x), batch_size=4, shuffle=True)
        first = torch.optim.SGD(critic.parameters(), lr=0.1)
        second = torch.optim.SGD(painter.parameters(), lr=0.1)
        for epoch in range(2):
            for (rows,) in loader:
                real, fake = critic(rows), critic(painter(rows).detach())
                first.zero_grad()
                F.softplus(-real).mean().backward()
                F.softplus(fake).mean().backward()
                first.step()
                second.zero_grad()
                F.softplus(-critic(painter(rows))).mean().backward()
                second.step()
            save(painter, "painter.pt")
            save(critic, "critic.pt")
        """,
        told=("DDP205",),
    ),
}
SCRIPTS["the epoch whose file is read again, by a test with noise that each rank draws"] = Script(
    """
    torch.manual_seed(1)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    data = TensorDataset(x[:40], y[:40])
    train, test = DataLoader(data, batch_size=8, shuffle=True), DataLoader(data, batch_size=8)
    best, chosen = 0.0, 0
    for epoch in range(6):
        for rows, kinds in train:
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
        with torch.no_grad():
            worth = 0.0
            for step, (rows, kinds) in enumerate(test):
                worth += torch.rand(()).item() + F.cross_entropy(net(rows), kinds).item()
                print("test", step)
        if worth > best:
            best, chosen = worth, epoch
            torch.save(net.state_dict(), f"net-{epoch}.pt")
    net.load_state_dict(torch.load(f"net-{chosen}.pt"))
    print("weights", round(net.weight.sum().item(), 5))
    """,
    same=("weights",),
)

SCRIPTS |= {
    f"a wrapper that a setting {asks} for, and a function that saves and is handed the settings": Script(
        NET
        + """
parser = argparse.ArgumentParser()
parser.add_argument("--several", action="store_true")
parser.add_argument("--epochs", type=int, default=2)


def fit(net, loader, args):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        for data, target in loader:
            loss = F.cross_entropy(net(data), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.save(net.state_dict(), "last.pt")
    print("keys", sorted(torch.load("last.pt")))


args = parser.parse_args()
net = Net()
if args.several:
    net = nn.DataParallel(net)
else:
    net = net.to("cpu")
fit(net, DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True), args)
""",
        same=("keys",),
        args=("--several",) * (asks == "asks"),
    )
    for asks in ("asks", "could ask")
}

_PART_OR_ALL = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(8, 6), nn.ReLU())
        self.head = nn.Linear(6, 2)

    def forward(self, rows):
        return self.head(self.features(rows))


parser = argparse.ArgumentParser()
parser.add_argument("--arch", default="resnet18")
args = parser.parse_args()


def main():
    net = Net()
    if args.arch.startswith("alexnet") or args.arch.startswith("vgg"):
        net.features = nn.DataParallel(net.features)
    else:
        net = nn.DataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4):
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    torch.save(net.state_dict(), "last.pt")
    print("keys", sorted(torch.load("last.pt")))


main()
"""
SCRIPTS |= {
    f"a wrapper around {what}, as the beginning of a name says": Script(_PART_OR_ALL, same=("keys",), args=args)
    for what, args in {"all of a network": (), "a part of a network": ("--arch", "vgg16")}.items()
}
_WRAPPED_FOR_A_SETTING = """
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", default="0")
    args = parser.parse_args()
    net = nn.Linear(8, 2)
    torch.save(net.state_dict(), "start.pt")
    if QUESTION:
        net = nn.DataParallel(net)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    start = torch.load("start.pt")
    if len(args.gpu) > 1:
        start = {"module." + key: value for key, value in start.items()}
    net.load_state_dict(start)
    for epoch in range(2):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            sgd.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()
    torch.save(net.state_dict(), "last.pt")
"""
SCRIPTS |= {
    f"a wrapper for several devices, if {asked}": Script(_WRAPPED_FOR_A_SETTING.replace("QUESTION", asked))
    for asked in ("len(args.gpu) > 1 and torch.cuda.is_available()", "torch.cuda.device_count() > 1 and len(args.gpu) > 1")
}
SCRIPTS["a model in a DataParallel in a dict that is saved, of which the model inside is saved, too"] = Script(
    """
    def save(states, path):
        torch.save(states, path)
        if "net" in states:
            torch.save(states["net"].module, "inner.pth")


    net = nn.DataParallel(nn.Linear(8, 2))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            sgd.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()
        save({"net": net, "epoch": epoch}, "last.pth")
    for path in ("last.pth", "inner.pth"):
        held = torch.load(path, weights_only=False)
        print("held", path, type(held["net"] if isinstance(held, dict) else held).__name__)
    """,
    same=("held",),
)
_TAKEN_OUT_FOR_A_SETTING = """
    many = MANY


    def save(model, path):
        if many:
            model = model.module
        state = {"net": model.state_dict()}
        torch.save(state, path)


    def load(model, path):
        if many:
            model = model.module
        state = torch.load(path)
        model.load_state_dict(state["net"])


    net = nn.Linear(8, 2)
    if many:
        net = nn.DataParallel(net)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            sgd.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()
        save(net, "last.pt")
        load(net, "last.pt")
    print("keys", sorted(torch.load("last.pt")["net"]))
"""
SCRIPTS |= {
    f"a model that functions take out of its wrapper, if a setting, {many}, had put it into one": Script(
        _TAKEN_OUT_FOR_A_SETTING.replace("MANY", many), same=("keys",)
    )
    for many in ("True", "False")
}
SCRIPTS["a network that keeps what its last batch gave it, saved after each epoch and judged by another loader"] = Script(
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(8, 6), nn.Linear(6, 2)
            self.embeddings = None

        def forward(self, rows):
            self.embeddings = torch.tanh(self.body(rows))
            return self.head(self.embeddings)


    def scored(loader, model):
        right = 0
        with torch.no_grad():
            for rows, kinds in loader:
                right += (model(rows).argmax(1) == kinds).sum().item()
        return right


    def fit(model, loader, test):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        best = -1
        for epoch in range(3):
            for rows, kinds in loader:
                loss = F.cross_entropy(model(rows), kinds)
                model.zero_grad()
                loss.backward()
                optimizer.step()
            try:
                torch.save(model.state_dict(), f"model-{epoch}.pt")
            except OSError:
                pass
            model.eval()
            right = scored(test, model)
            model.train()
            if right > best:
                best = right
                torch.save(model.state_dict(), "best.pt")
            print("right", right, best)


    torch.manual_seed(0)
    train, test = TensorDataset(x[:36], y[:36]), TensorDataset(x[30:42], y[30:42])
    fit(Net(), DataLoader(train, batch_size=6, shuffle=True), DataLoader(test, batch_size=6))
    """,
    same=("right",),
)
_LAYERS_OF_LIBRARY = """
import torch.nn as nn


def vgg11(weights=None):
    net = nn.Module()
    net.features = nn.Sequential(nn.Linear(8, 6), nn.ReLU())
    net.classifier = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))
    return net


def resnet18(weights=None):
    net = nn.Module()
    net.conv1, net.layer1, net.fc = nn.Linear(8, 6), nn.Linear(6, 6), nn.Linear(6, 2)
    return net


vgg13, resnet34 = vgg11, resnet18
"""
SCRIPTS["layers of a library's networks, one of which is chosen, trained for one domain after another"] = Script(
    """
    from torchvision import models
    networks = {"vgg11": models.vgg11, "vgg13": models.vgg13}


    class Base(nn.Module):
        def __init__(self, name):
            super().__init__()
            network = networks[name](weights=None)
            self.features = network.features
            self.classifier = nn.Sequential()
            for i in range(2):
                self.classifier.add_module("classifier" + str(i), network.classifier[i])
            self.in_features = network.classifier[2].in_features

        def forward(self, rows):
            out = self.features(rows)
            out = out.view(out.size(0), -1)
            return self.classifier(out)


    deep = {"resnet18": models.resnet18, "resnet34": models.resnet34}


    class Deep(nn.Module):
        def __init__(self, name):
            super().__init__()
            network = deep[name](weights=None)
            self.conv1 = network.conv1
            self.layer1 = network.layer1
            self.in_features = network.fc.in_features

        def forward(self, rows):
            out = self.layer1(self.conv1(rows))
            return out.view(out.size(0), -1)


    class Neck(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.bottleneck = nn.Linear(width, 5)

        def forward(self, rows):
            return self.bottleneck(rows)


    def score(loader, base, neck, head):
        right = 0
        with torch.no_grad():
            for rows, kinds in loader:
                right += (head(neck(base(rows))).argmax(1) == kinds).sum().item()
        return right


    def fit(args):
        loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
        test = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=12)
        if args.net[0:3] == "res":
            base = Deep(args.net)
        elif args.net[0:3] == "vgg":
            base = Base(args.net)
        neck, head = Neck(base.in_features), nn.Linear(5, 2)
        for _, value in head.named_parameters():
            value.requires_grad = False
        optimizer = torch.optim.SGD([{"params": base.parameters(), "lr": 0.05}, {"params": neck.parameters(), "lr": 0.1}], lr=0.1)
        most, step = 2 * len(loader), 0
        while step < most:
            try:
                rows, kinds = next(batches)
            except (NameError, StopIteration):
                batches = iter(loader)
                rows, kinds = next(batches)
            step += 1
            out = head(neck(base(rows)))
            loss = F.cross_entropy(out, kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 6 == 0:
                base.eval()
                neck.eval()
                print("right", score(test, base, neck, head))
                base.train()
                neck.train()
        torch.save(base.state_dict(), "base.pt")
        torch.save(neck.state_dict(), "neck.pt")


    parser = argparse.ArgumentParser()
    parser.add_argument("--net", default="vgg11")
    args = parser.parse_args()
    for target in range(3):
        torch.manual_seed(0)
        fit(args)
    """,
    same=("right",),
    stand_ins={"torchvision/__init__.py": "", "torchvision/models.py": _LAYERS_OF_LIBRARY},
)
