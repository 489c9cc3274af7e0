"""Scripts in which what the conversion adds must come before what uses it, and fit what it calls, whatever the script does in between."""

from scripts import Script

NET = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(8, 12)
            self.head = nn.Linear(12, 2)

        def forward(self, x):
            return self.head(torch.tanh(self.inner(x)))
"""
FIT = """
{0}for epoch in range(3):
{0}    lost = 0.0
{0}    for rows, labels in feed:
{0}        optimizer.zero_grad()
{0}        loss = F.cross_entropy(net(rows.to(device)), labels.to(device))
{0}        loss.backward()
{0}        optimizer.step()
{0}        lost += loss.item() * len(rows)
{0}    print(f"epoch {{epoch}} lost {{lost / len(feed.dataset):.6f}}")
"""
IN_MAIN = FIT.format("        ")
AT_TOP = FIT.format("    ")

SCRIPTS: dict[str, Script] = {
    "warnings that a function above all imports silences": Script(
        """
        loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6, shuffle=True)
        net = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in loader:
                loss = F.cross_entropy(net(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        above="def warn(*args, **kwargs):\n    pass\nimport warnings\nwarnings.warn = warn\n\n",
    ),
    "devices that are chosen below the loader": Script(
        f"""{NET}
    def main():
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=False)
        net = Net()
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        net.to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1){IN_MAIN}

    if __name__ == "__main__":
        main()
        """,
        same=("epoch",),
    ),
    "devices that are chosen above the loader, in a function": Script(
        f"""{NET}
    def main():
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=False)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        net = Net().to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1){IN_MAIN}

    main()
        """,
        same=("epoch",),
    ),
    "devices that are chosen below a file that rank 0 writes, and samples that are read from files": Script(
        f"""{NET}
    class Stored(Dataset):
        def __len__(self):
            return len(x)

        def __getitem__(self, i):
            row = torch.load("rows.pt")[i]
            return row, y[i]

    def main():
        torch.save(x, "rows.pt")
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"
        feed = DataLoader(Stored(), batch_size=4, shuffle=False)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        net = Net().to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1){IN_MAIN}

    if __name__ == "__main__":
        main()
        """,
        same=("epoch",),
    ),
    "devices that are chosen on a path that is not taken": Script(
        f"""{NET}
    def choose(devices):
        if devices:
            os.environ["CUDA_VISIBLE_DEVICES"] = devices

    def main():
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=False)
        choose("")
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        net = Net().to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1){IN_MAIN}

    if __name__ == "__main__":
        main()
        """,
        same=("epoch",),
    ),
    "devices that are chosen by a function called once a fold": Script(
        f"""{NET}
    def choose(devices):
        os.environ["CUDA_VISIBLE_DEVICES"] = devices
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def main():
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=False)
        device = choose("0")
        device = choose("0")
        net = Net().to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1){IN_MAIN}

    if __name__ == "__main__":
        main()
        """,
        same=("epoch",),
    ),
    "devices that are chosen in the main block, below the loader of the module": Script(
        f"""{NET}
    feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=False)

    if __name__ == "__main__":
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        net = Net().to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1){IN_MAIN}
        """,
        same=("epoch",),
    ),
    "a file that the module writes, which the main block reads first": Script(
        f"""
    import argparse
    {NET}
    args = argparse.ArgumentParser()
    args.add_argument("--lr", type=float, default=0.1)
    args = args.parse_args()
    with open("settings.txt", "w") as out:
        out.write(str(args.lr))

    if __name__ == "__main__":
        rate = float(open("settings.txt").read())
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=False)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        net = Net().to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=rate){IN_MAIN}
        """,
        same=("epoch",),
    ),
    "another thing that is called dist, and a module that sums over the ranks": Script(
        f"""
    import lost_rows
    {NET}
    def dist(a, b):
        return (a - b).pow(2).sum().item()

    if __name__ == "__main__":
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=False)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        net = Net().to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        print(f"apart {{dist(x[0], x[1]):.4f}}")
        for epoch in range(3):
            print(f"epoch {{epoch}} lost {{lost_rows.fit(net, feed, optimizer, device):.6f}}")
        """,
        files={
            "lost_rows.py": "import torch.nn.functional as F\n\n\n"
            "def fit(net, feed, optimizer, device):\n"
            "    lost = 0.0\n"
            "    for rows, labels in feed:\n"
            "        optimizer.zero_grad()\n"
            "        loss = F.cross_entropy(net(rows.to(device)), labels.to(device))\n"
            "        loss.backward()\n"
            "        optimizer.step()\n"
            "        lost += loss.item() * len(rows)\n"
            "    return lost / len(feed.dataset)\n"
        },
        same=("apart", "epoch"),
    ),
    "modules that know nothing of the entry's device": Script(
        f"""
    import engine
    {NET}
    if __name__ == "__main__":
        DEVICE = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=False)
        net = Net().to(DEVICE)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            print(f"epoch {{epoch}} lost {{engine.fit(net, feed, optimizer):.6f}}")
        """,
        files={
            "engine.py": "import torch\nimport torch.nn.functional as F\nfrom meters import Meter\n\n\n"
            "def fit(net, feed, optimizer):\n"
            "    losses = Meter()\n"
            "    for rows, labels in feed:\n"
            "        if torch.cuda.device_count() > 0:\n"
            "            rows, labels = rows.cuda(), labels.cuda()\n"
            "        optimizer.zero_grad()\n"
            "        loss = F.cross_entropy(net(rows), labels)\n"
            "        loss.backward()\n"
            "        optimizer.step()\n"
            "        losses.update(loss.item(), len(rows))\n"
            "    return losses.avg\n",
            "meters.py": "class Meter:\n"
            "    def __init__(self):\n"
            "        self.sum, self.count, self.avg = 0.0, 0, 0.0\n\n"
            "    def update(self, value, n=1):\n"
            "        self.sum += value * n\n"
            "        self.count += n\n"
            "        self.avg = self.sum / self.count\n",
        },
        same=("epoch",),
    ),
    "pictures that save themselves, and are looked at afterwards": Script(
        f"""
    from PIL import Image
    {NET}
    def save_images(rows, path):
        picture = Image.fromarray(rows)
        picture.convert("L").save(path)

    feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=False)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = Net().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1){AT_TOP}
        save_images(epoch, "rows.txt")
    with open("rows.txt") as rows:
        print("picture " + rows.read())
        """,
        same=("epoch", "picture"),
        stand_ins={
            "PIL.py": "class Picture:\n"
            "    def __init__(self, rows):\n"
            "        self.rows = rows\n\n"
            "    def convert(self, mode):\n"
            "        return self\n\n"
            "    def save(self, path):\n"
            "        with open(path, 'w') as out:\n"
            "            out.write(str(self.rows))\n\n\n"
            "class Image:\n"
            "    fromarray = Picture\n"
        },
    ),
    "a function of the project's own that is called mkdir": Script(
        f"""
    import folders
    {NET}
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    folders.mkdir("runs")
    feed = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=False)
    net = Net().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1){AT_TOP}
    torch.save(net.state_dict(), "runs/net.pt")
        """,
        same=("epoch",),
        files={"folders.py": 'import os\n\n\ndef mkdir(path):\n    if not os.path.isdir(path):\n        os.makedirs(path)\n'},
    ),
    "parameters and functions that are called as the set-up calls its own": Script(
        f"""{NET}
    def describe(rank, dist, device="none"):
        return f"{{rank}} {{dist}} {{device}}"

    def train(feed, world_size=1):
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        net = Net().to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1){IN_MAIN}
        local_rank = world_size
        print("epoch", describe(1, 2), local_rank)

    train(DataLoader(TensorDataset(x, y), batch_size=4, shuffle=False))
        """,
        same=("epoch",),
    ),
    "a sampler without an end, asked for its epoch by a module that others use, too": Script(
        """
    from trainer import train

    class Rows(Dataset):
        def __len__(self):
            return 44

        def __getitem__(self, i):
            return x[i], y[i]

    train(Rows())
        """,
        files={
            "trainer.py": """\
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Sampler


class Forever(Sampler):
    def __init__(self, dataset):
        self.count = len(dataset)

    def __len__(self):
        return self.count

    def __iter__(self):
        while True:
            yield from torch.randperm(self.count).tolist()


def train(dataset):
    net = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    feed = DataLoader(dataset, batch_size=4, sampler=Forever(dataset))
    batches = iter(feed)
    for step in range(24):
        try:
            rows, labels = next(batches)
        except StopIteration:
            batches = iter(feed)
            rows, labels = next(batches)
        optimizer.zero_grad()
        F.cross_entropy(net(rows), labels).backward()
        optimizer.step()
""",
            "other.py": "from trainer import train\n\nif __name__ == '__main__':\n    train([])\n",
        },
        apart=("trajectory",),
    ),
}  # fmt: skip
# Words whose order in a set differs from rank to rank, as that of strings does from process to process.
WORDS = """
import os


class Word(str):
    def __hash__(self):
        return hash((os.environ.get("RANK", "0"), str(self)))


def word_tokenize(text):
    return [Word(word) for word in text.split()]
"""
SETS = """
    from nltk import word_tokenize


    def numbered(words):
        out = []
        for word in words:
            out.append(word)
        return out


    kinds = word_tokenize("cat dog bird horse fish owl bee ant cat dog bird horse")
    row = {kind: i for i, kind in enumerate(kinds[:8])}
    %s
    loader = DataLoader(TensorDataset(torch.stack([x[row[name]] for name in names])), batch_size=8, shuffle=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(12):
        for (data,) in loader:
            loss = model(data).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
SCRIPTS |= {
    f"{way} gives the order of the samples": Script(SETS % line, stand_ins={"nltk.py": WORDS})
    for way, line in {
        "what joins two sets": "names = list(set(kinds[:5]) | set(kinds[5:]))",
        "the union of sets": "names = list(set(kinds[:5]).union(kinds[5:]))",
        "a comprehension of a set": "names = [*{kind for kind in kinds}]",
        "a loop over a set": "names = numbered(frozenset(kinds))",
        "a set sorted by a key": "names = sorted(set(kinds), key=lambda kind: len(kind) > 9)",
        "a set that a list goes on with": "names = []; names += set(kinds)",
        "a set that is zipped": "names = list(dict(zip(set(kinds), range(8))))",
    }.items()
}
SCRIPTS["a rate and a folder made of the epoch's number, handed to what trains an epoch"] = Script(
    """
    def learn(batches, number, rate, folder):
        os.makedirs(folder, exist_ok=True)
        for group in optimizer.param_groups:
            group["lr"] = rate
        for rows, kinds in batches:
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()


    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    batches = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    for epoch in range(3):
        learn(batches, epoch + 1, 0.1 * 0.9**epoch, os.path.join("out", "epoch-{}".format(epoch)))
    """
)
SCRIPTS["a rate made of the epoch's number, handed to what trains an epoch without it"] = Script(
    """
    def learn(batches, rate):
        for group in optimizer.param_groups:
            group["lr"] = rate
        for rows, kinds in batches:
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()


    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    batches = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
    for epoch in range(3):
        rate = 0.1 * 0.9**epoch
        learn(batches, rate)
    """
)
SCRIPTS["devices that are chosen among the imports"] = Script(
    """
    os.environ["CUDA_VISIBLE_DEVICES"] = "0"
    from nets import Net


    def train(gpu):
        torch.manual_seed(0)
        net = Net()
        net.cuda(gpu)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4):
                sgd.zero_grad()
                F.cross_entropy(net(rows.cuda(gpu)), kinds.cuda(gpu)).backward()
                sgd.step()


    if __name__ == "__main__":
        train(0)
    """,
    files={"nets.py": "from torch import nn\n\n\nclass Net(nn.Linear):\n    def __init__(self):\n        super().__init__(8, 2)\n"},
)
SCRIPTS["devices that are chosen and then counted"] = Script(
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", default="0,1")
    args = parser.parse_args([])
    os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu


    def main(args):
        number = len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))
        net = nn.Linear(8, 2)
        nn.init.zeros_(net.weight)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=2 * number):
                sgd.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                sgd.step()
        print("number", number)


    if __name__ == "__main__":
        main(args)
    """,
    same=("number",),
)
