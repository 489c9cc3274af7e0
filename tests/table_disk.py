"""Scripts whose ranks share files: locks around downloads, samples that are files, files that an exception leaves behind."""

import io
import tarfile

import torch
from scripts import Script

WAVES = """\
import os

import torch
from torch.utils.data import TensorDataset


class MNIST(TensorDataset):
    def __init__(self, root, train=True, download=False):
        path = os.path.join(root, f"train-{train}.pt")
        if download and not os.path.exists(path):
            os.makedirs(root, exist_ok=True)
            x = torch.sin(torch.arange(352.0) ** 1.5).view(44, 8)
            torch.save((x, (x.sum(1) > 0).long()), path)
        super().__init__(*torch.load(path))
"""
TORCHVISION = {"torchvision/__init__.py": "from . import datasets\n", "torchvision/datasets.py": WAVES}
FIT = """
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in loader:
                loss = F.cross_entropy(model(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
"""

TABLES_OF_WORDS = """\
import os
import time


class Words:
    def __init__(self, words=()):
        self.words = list(words)

    def save_words(self, path):
        with open(path, "w") as file:
            time.sleep(0.5)
            file.write(" ".join(self.words))

    @classmethod
    def of_lines(cls, folder, name):
        return cls(open(os.path.join(folder, name)).read().split())


def save_counts(words, path):
    time.sleep(0.5)
    with open(path, "w") as file:
        file.write(str(len(words.words)))


def counted(path):
    return int(open(path).read())


def last_of(folder):
    return Words.of_lines(folder, "second.txt")
"""


def _row(i: int) -> bytes:
    """The file of one of the rows of `x`."""
    written = io.BytesIO()
    torch.save(torch.sin(torch.arange(352.0) ** 1.5).view(44, 8)[i].clone(), written)
    return written.getvalue()


def _packed(name: str, text: str) -> bytes:
    """An archive that holds one file."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(text.encode())
        archive.addfile(entry, io.BytesIO(text.encode()))
    return held.getvalue()


SCRIPTS: dict[str, Script] = {
    "an archive that each rank unpacks into a folder of its own where there is no folder yet": Script(
        """
        from names import read

        model = nn.Linear(8, len(read("names.tgz")))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
                loss = F.cross_entropy(model(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print("names", read("names.tgz"))
        """,
        same=("names",),
        files={
            "names.tgz": _packed("names.txt", "cat dog"),
            "names.py": """\
import os
import shutil
import tarfile
import tempfile


def read(path):
    unpacked = None
    if os.path.isdir(path):
        folder = path
    else:
        unpacked = tempfile.mkdtemp()
        with tarfile.open(path, "r:gz") as archive:
            archive.extractall(unpacked, filter="data")
        folder = unpacked
    with open(os.path.join(folder, "names.txt")) as file:
        names = file.read().split()
    if unpacked:
        shutil.rmtree(unpacked)
    return names
""",
        },
    ),
    "files that a package writes in ways nobody described, and reads again": Script(
        """
        import words_of_others as others

        parser = argparse.ArgumentParser()
        parser.add_argument("--counts", required=True)
        args = parser.parse_args()
        os.makedirs("parts", exist_ok=True)
        with open("parts/raw.txt", "w") as file:
            for i in range(44):
                file.write("plus " if y[i] else "minus ")
        table = others.Words.of_lines("parts", name="raw.txt")
        table.save_words(path="words.txt")
        others.save_counts(table, args.counts)
        again = others.Words.of_lines(".", "words.txt")
        count = others.counted(args.counts)
        print("read", count, len(again.words))
        loader = DataLoader(TensorDataset(x[:40], y[:40] * (count > 3)), batch_size=8, shuffle=True)
        """
        + FIT,
        args=("--counts", "counts.txt"),
        stand_ins={"words_of_others.py": TABLES_OF_WORDS},
        same=("read",),
    ),
    "files of several names, of whose folder a package then reads one": Script(
        """
        import words_of_others as others


        def prepare(folder):
            for name in ("first.txt", "second.txt"):
                path = os.path.join(folder, name)
                others.Words(["plus", "minus", name]).save_words(path=path)
            return others.last_of(folder)


        where = os.path.join("parts", "raw")
        os.makedirs(where, exist_ok=True)
        words = prepare(where)
        print("read", len(words.words))
        loader = DataLoader(TensorDataset(x[:40], y[:40] * (len(words.words) > 2)), batch_size=8, shuffle=True)
        """
        + FIT,
        stand_ins={"words_of_others.py": TABLES_OF_WORDS},
        same=("read",),
    ),
    "a log that one branch starts, and the other goes on with": Script(
        """
        class Log:
            def __init__(self, path, resume=False):
                if resume:
                    self.file = open(path, "r")
                    self.names = self.file.readline().split()
                    self.file.close()
                    self.file = open(path, "a")
                else:
                    self.file = open(path, "w")

            def add(self, *words):
                self.file.write("\\t".join(words) + "\\n")
                self.file.flush()


        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        if not os.path.isfile("last.pt"):
            log = Log("log.txt")
            log.add("epoch", "scale")
        else:
            model.load_state_dict(torch.load("last.pt"))
            log = Log("log.txt", resume=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for rows, kinds in loader:
                loss = F.cross_entropy(model(rows), kinds)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            log.add(str(epoch), "%.5f" % model.weight.abs().sum().item())
            torch.save(model.state_dict(), "last.pt")
        """
    ),
    "a download under the lock of a file": Script(
        """
        from filelock import FileLock
        from torchvision import datasets

        with FileLock("waves.lock"):
            waves = datasets.MNIST("waves", train=True, download=True)
        loader = DataLoader(waves, batch_size=8, shuffle=True)
        """
        + FIT,
        stand_ins=TORCHVISION,
        apart=("writes",),  # each rank opens the file of the lock
    ),
    "downloads by a function that is called under the lock of a file": Script(
        """
        from filelock import FileLock
        from torchvision import datasets


        def fetch(train):
            return datasets.MNIST("waves", train=train, download=True)


        def fetch_both():
            with FileLock("waves.lock"):
                first = fetch(True)
                second = fetch(False)
            return first, second


        waves, _ = fetch_both()
        loader = DataLoader(waves, batch_size=8, shuffle=True)
        """
        + FIT,
        stand_ins=TORCHVISION,
        apart=("writes",),  # each rank opens the file of the lock
    ),
    "a loader of what is downloaded, made under a lock that a generator holds": Script(
        """
        from contextlib import contextmanager

        from filelock import FileLock
        from torchvision.datasets import MNIST


        @contextmanager
        def one_at_a_time(name):
            lock = FileLock(name + ".lock")
            lock.acquire()
            try:
                yield
            finally:
                lock.release()


        with one_at_a_time("waves"):
            loader = DataLoader(MNIST("waves", download=True), batch_size=8, shuffle=True)
        """
        + FIT,
        stand_ins=TORCHVISION,
        apart=("writes",),  # each rank opens the file of the lock
    ),
    "a file made where it is missing, under the lock of another": Script(
        """
        from filelock import FileLock

        with FileLock("rows.lock"):
            if not os.path.exists("rows.pt"):
                torch.save(x, "rows.pt")
            rows = torch.load("rows.pt")
        loader = DataLoader(TensorDataset(rows, y), batch_size=8, shuffle=True)
        """
        + FIT,
        apart=("writes",),
    ),
    "samples that a method of the data set reads": Script(
        """
        class Rows(Dataset):
            def __len__(self):
                return len(x)

            def load(self, i):
                return torch.load(f"rows/{i}.pt")

            def __getitem__(self, i):
                return self.load(i), y[i]


        os.makedirs("rows", exist_ok=True)
        for i, row in enumerate(x):
            torch.save(row.clone(), f"rows/{i}.pt")
        loader = DataLoader(Rows(), batch_size=8, shuffle=True)
        """
        + FIT,
    ),
    "numbers written into files that are packed": Script(
        """
        import bz2
        import gzip
        import lzma

        loader = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8)
        """
        + FIT
        + """
            for package, ending in ((bz2, "bz2"), (gzip, "gz"), (lzma, "xz")):
                with package.open(f"loss.{ending}", "wt") as file:
                    file.write(str(epoch))
            with bz2.BZ2File("packed.bz2", "w") as file:
                file.write(b"packed")
            with lzma.open("loss.lzma", "wt") as file:
                file.write(str(epoch))
        """,
    ),
    "a checkpoint when training is interrupted or ended": Script(
        """
        loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        try:
            for epoch in range(4):
                for rows, kinds in loader:
                    loss = F.cross_entropy(model(rows), kinds)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                if epoch == 2:
                    raise SystemExit
        except (KeyboardInterrupt, SystemExit):
            torch.save(model.state_dict(), "interrupted.pt")
            print("interrupted in", epoch)
        """,
        same=("interrupted",),
    ),
    "a data set that asks a method of its own whether its files are there, made beside the main block": Script(
        """
        class Waves(Dataset):
            def __init__(self, folder, train):
                self.folder = folder
                self.make()
                self.rows, self.kinds = torch.load(os.path.join(folder, f"{train}.pt"))

            def is_made(self):
                return os.path.exists(os.path.join(self.folder, "True.pt")) and os.path.exists(os.path.join(self.folder, "False.pt"))

            def make(self):
                if self.is_made():
                    return
                os.makedirs(self.folder, exist_ok=True)
                torch.save((x[:36], y[:36]), os.path.join(self.folder, "raw.pt"))
                rows, kinds = torch.load(os.path.join(self.folder, "raw.pt"))
                torch.save((rows, kinds), os.path.join(self.folder, "True.pt"))
                torch.save((x[36:], y[36:]), os.path.join(self.folder, "False.pt"))
                os.remove(os.path.join(self.folder, "raw.pt"))

            def __len__(self):
                return len(self.rows)

            def __getitem__(self, i):
                return self.rows[i], self.kinds[i]


        waves = Waves("waves", True)
        held_out = Waves("waves", False)


        def main():
            loader = DataLoader(waves, batch_size=6, shuffle=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(3):
                for rows, kinds in loader:
                    loss = F.cross_entropy(model(rows), kinds)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                with torch.no_grad():
                    print("held out", sum(F.cross_entropy(model(r[None]), k[None]).item() for r, k in held_out))


        if __name__ == "__main__":
            main()
        """,
        same=("held out",),
    ),
    "checkpoints that an evaluation saves too, beside samples that are files": Script(
        """
        parser = argparse.ArgumentParser()
        parser.add_argument("--only-test", action="store_true")


        class Rows(Dataset):
            def __len__(self):
                return len(x)

            def __getitem__(self, i):
                return torch.load(f"rows/{i}.pt").to(x), y[i]


        class Trainer:
            def __init__(self):
                self.loader = DataLoader(Rows(), batch_size=8, shuffle=True)
                self.model = nn.Linear(8, 2)
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

            def fit(self):
                for epoch in range(3):
                    for rows, kinds in self.loader:
                        loss = F.cross_entropy(self.model(rows), kinds)
                        self.optimizer.zero_grad()
                        loss.backward()
                        self.optimizer.step()
                    self.test(epoch)

            def test(self, epoch):
                with torch.no_grad():
                    print(f"loss {epoch} {F.cross_entropy(self.model(x), y).item():.6f}")
                keep(self.model, epoch)


        def keep(model, epoch):
            os.makedirs("out", exist_ok=True)
            torch.save(model.state_dict(), f"out/{epoch}.pt")


        if __name__ == "__main__":
            args = parser.parse_args()
            trainer = Trainer()
            if args.only_test:
                trainer.test(0)
            else:
                trainer.fit()
        """,
        same=("loss",),
        files={f"rows/{i}.pt": _row(i) for i in range(44)},
    ),
    "a log that a module begins where it is imported, beside samples that are files": Script(
        """
        from notes import note


        class Rows(Dataset):
            def __len__(self):
                return len(x)

            def __getitem__(self, i):
                return torch.load(f"rows/{i}.pt").to(x), y[i]


        def main():
            loader = DataLoader(Rows(), batch_size=8, shuffle=True)
            model = nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(3):
                for rows, kinds in loader:
                    loss = F.cross_entropy(model(rows), kinds)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                note(f"epoch {epoch}")


        if __name__ == "__main__":
            main()
        """,
        files={
            **{f"rows/{i}.pt": _row(i) for i in range(44)},
            "notes.py": (
                "def begin():\n    with open('notes.csv', 'w') as f:\n        f.write('what\\n')\n\n\nbegin()\n\n\n"
                "def note(text):\n    with open('notes.csv', 'a') as f:\n        f.write(text + '\\n')\n"
            ),
        },
    ),
}
SCRIPTS["a file whose name has a number, or a word in another call, which is read back by a name that is written out"] = Script(
    """
    import numpy as np

    os.makedirs("out", exist_ok=True)
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


    def store(name):
        np.savetxt("out/rows_" + str(name) + ".txt", np.array([[1.0, 2.0], [3.0, 4.0]]))


    def scale(epoch):
        if epoch == 1:
            rows = np.loadtxt("out/rows_1.txt")
        else:
            rows = np.loadtxt("out/rows_" + str(epoch) + ".txt")
        return rows.mean()


    for epoch in range(1, 4):
        store(epoch)
        optimizer.param_groups[0]["lr"] = 0.04 * scale(epoch)
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    store("last")
    """
)
SLOW = """
import os
import time


def start():
    time.sleep(int(os.environ.get("RANK", 0)) / 2)
"""
SCRIPTS["a folder that is made, or emptied and made again, as a rank comes late"] = Script(
    """
    import shutil

    import slow

    slow.start()
    fresh = not os.path.isfile("resume.pt")
    if fresh and not os.path.exists("out"):
        os.makedirs("out")
    elif fresh and os.path.exists("out"):
        shutil.rmtree("out")
        os.makedirs("out")
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
        torch.save(net.state_dict(), os.path.join("out", f"net-{epoch}.pt"))
    """,
    stand_ins={"slow.py": SLOW},
)
_FAKE_DIGITS = """
import os

import torch


class FakeDigits(torch.utils.data.TensorDataset):
    def __init__(self, root, download=False):
        if download:
            os.makedirs(root, exist_ok=True)
        rows = torch.sin(torch.arange(320.0) ** 1.5).view(40, 8)
        super().__init__(rows, (rows.sum(1) > 0).long())
"""
_SLOW_RETRIEVE = """
import time


def urlretrieve(url, name):
    with open(name, "w") as file:
        file.write("cat")
        time.sleep(0.5)
        file.write(" dog")
"""
SCRIPTS["a data set that is downloaded where its folder is not there, as a rank comes late"] = Script(
    """
    import slow
    from torchvision import datasets

    slow.start()
    if not os.path.exists("digits"):
        digits = datasets.FakeDigits("digits", download=True)
    else:
        digits = datasets.FakeDigits("digits")
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(digits, batch_size=8, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
    """,
    stand_ins={
        "slow.py": SLOW,
        "torchvision/__init__.py": "",
        "torchvision/datasets.py": _FAKE_DIGITS,
    },
)
SCRIPTS["files that packages fetch where they are not there"] = Script(
    """
    import six.moves.urllib.request
    from git import Repo

    if not os.path.exists("pictures"):
        Repo.clone_from("https://example.com/pictures", "pictures")
    if not os.path.exists("labels.txt"):
        six.moves.urllib.request.urlretrieve("https://example.com/labels.txt", "labels.txt")
    names = sorted(os.listdir("pictures"))
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            optimizer.step()
    print("pictures", names, open("labels.txt").read())
    """,
    same=("pictures",),
    stand_ins={
        "git.py": """
import os
import time


class Repo:
    @classmethod
    def clone_from(cls, url, folder):
        os.mkdir(folder)
        time.sleep(0.5)
        open(os.path.join(folder, "cat.png"), "w").close()
""",
        "six/__init__.py": "",
        "six/moves/__init__.py": "",
        "six/moves/urllib/__init__.py": "",
        "six/moves/urllib/request.py": _SLOW_RETRIEVE,
    },
)

SCRIPTS["data sets that a library downloads, or a class of the project, by one function"] = Script(
    """
    from sets import data_set

    digits = data_set("digits")
    words = data_set("words")
    net = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for (rows, kinds), (other, others) in zip(DataLoader(digits, batch_size=8), DataLoader(words, batch_size=8)):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(rows), kinds) + F.cross_entropy(net(other), others)
            loss.backward()
            optimizer.step()
    """,
    files={
        "sets.py": """
import os

import six.moves.urllib.request
import torch
from torch.utils.data import Dataset
from torchvision import datasets


class Words(Dataset):
    def __init__(self, root):
        self.name = os.path.join(root, "words.txt")
        self.fetch()
        rows = torch.cos(torch.arange(320.0) ** 1.5).view(40, 8)
        self.rows, self.kinds = rows, (rows.sum(1) > 0).long() if open(self.name).read() == "cat dog" else None

    def fetch(self):
        os.makedirs(os.path.dirname(self.name), exist_ok=True)
        if os.path.isfile(self.name):
            return
        six.moves.urllib.request.urlretrieve("https://example.com/words.txt", self.name)
        print("done")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index], self.kinds[index]


def data_set(name):
    return datasets.FakeDigits("digits", download=True) if name == "digits" else Words("texts")
"""
    },
    stand_ins={
        "torchvision/__init__.py": "",
        "torchvision/datasets.py": _FAKE_DIGITS,
        "six/__init__.py": "",
        "six/moves/__init__.py": "",
        "six/moves/urllib/__init__.py": "",
        "six/moves/urllib/request.py": _SLOW_RETRIEVE,
    },
)

SCRIPTS["a folder that another module makes, of which the files are listed"] = Script(
    """
    from folders import make

    make("states")
    names = sorted(os.listdir("states"))
    net = nn.Linear(8, 2)
    if names:
        net.load_state_dict(torch.load(os.path.join("states", names[-1])))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for rows, kinds in DataLoader(TensorDataset(x[:40], y[:40]), batch_size=8, shuffle=True):
            sgd.zero_grad()
            F.cross_entropy(net(rows), kinds).backward()
            sgd.step()
        torch.save(net.state_dict(), os.path.join("states", f"{epoch}.pt"))
    print("states", names)
    """,
    same=("states",),
    files={
        "folders.py": """
import os
import time


def make(path):
    time.sleep(0.5)
    if not os.path.exists(path):
        os.makedirs(path)
"""
    },
)

SCRIPTS["a number after those of the folders that are there, found by the module for its main block"] = Script(
    """
    import glob

    folders = sorted(glob.glob(os.path.join("runs", "run_*")))
    if folders:
        number = int(folders[-1].split("_")[-1]) + 1
    else:
        number = 0
    folder = os.path.join("runs", "run_" + str(number))


    def train(folder=folder):
        net = nn.Linear(8, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        os.makedirs(folder)
        feed = DataLoader(TensorDataset(x, y), batch_size=4)
        for epoch in range(2):
            for rows, kinds in feed:
                sgd.zero_grad()
                F.cross_entropy(net(rows), kinds).backward()
                sgd.step()
            torch.save(net.state_dict(), os.path.join(folder, "net.pt"))
        net.load_state_dict(torch.load(os.path.join(folder, "net.pt")))
        print("weights", "%.5f" % sum(p.sum() for p in net.parameters()))


    if __name__ == "__main__":
        train()
    """,
    same=("weights",),
    files={"runs/run_4/notes.txt": "kept"},
)

SCRIPTS |= {
    f"lists that {how} joins before a data set reads the whole": Script(
        """
        from lists import Listed

        for part in range(2):
            with open(f"part{part}.txt", "w") as file:
                file.writelines(f"{i}\\n" for i in range(part, 36, 2))
        model = nn.Linear(8, 2)
        loader = DataLoader(Listed(x, y, ["part0.txt", "part1.txt"]), batch_size=6, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for rows, labels in loader:
                loss = F.cross_entropy(model(rows), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        files={
            "lists.py": f"""\
import os
import subprocess

from torch.utils.data import Dataset


class Listed(Dataset):
    def __init__(self, rows, labels, names):
        if isinstance(names, list):
            merged = "merged.txt"
            {command}
            names = merged
        with open(names) as file:
            self.kept = [int(line) for line in file]
        self.rows, self.labels = rows, labels

    def __len__(self):
        return len(self.kept)

    def __getitem__(self, i):
        return self.rows[self.kept[i]], self.labels[self.kept[i]]
"""
        },
    )
    for how, command in (
        ("a shell", 'os.system("sleep 1; cat %s > %s" % (" ".join(names), merged))'),
        ("another program", 'subprocess.call(["sh", "-c", "sleep 1; sort -n part*.txt > " + merged])'),
    )
}
PAIRS = """\
import random

from torch.utils.data import DataLoader, Dataset
from torchvision import datasets


class Drawn(Dataset):
    def __init__(self, waves):
        self.waves = waves
        self.places = [random.randrange(44) for _ in range(40)]

    def __len__(self):
        return 40

    def __getitem__(self, i):
        return self.waves[self.places[i]]


def loader_of(size):
    waves = datasets.MNIST("waves", download=True)
    return DataLoader(Drawn(waves), batch_size=size, shuffle=True)
"""
SCRIPTS["rows that are drawn for each epoch of what is downloaded then"] = Script(
    """
    import random

    from pairs import loader_of

    random.seed(0)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        loader = loader_of(4)
        for rows, kinds in loader:
            loss = F.cross_entropy(model(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
    files={"pairs.py": PAIRS},
    stand_ins=TORCHVISION,
)


_NAMED_ANEW = """
import time
from pathlib import Path

torch.manual_seed(0)
base = Path("runs")
base.mkdir(exist_ok=True)
{named}
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for rows, kinds in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=False):
        loss = F.cross_entropy(model(rows), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(model.state_dict(), folder / f"{{epoch}}.pt")
print("folders", len(os.listdir("runs")))
"""
SCRIPTS |= {
    f"a folder of paths that is made anew, {title}": Script(_NAMED_ANEW.format(named=named), same=("folders",))
    for title, named in (
        ("named by the clock", 'folder = base / Path(f"net-{time.time_ns()}")\nfolder.mkdir()'),
        ("with one beside it", 'folder, other = base / Path(f"a{time.time_ns()}"), base / "b"\nfor f in (folder, other):\n    f.mkdir()'),
        ("above a file's", 'folder = Path(f"runs/net-{time.time_ns()}/log.txt").parent\nfolder.mkdir()'),
        ("by how many there are", 'folder = base / f"net-{len(list(base.iterdir()))}"\nfolder.mkdir()'),
        ("by how many are counted", 'folder = base / f"net-{sum(1 for name in os.listdir(base))}"\nfolder.mkdir()'),
        ("by how many are folders", 'folder = base / f"net-{sum(1 for f in base.iterdir() if f.is_dir())}"\nfolder.mkdir()'),
        ("by how many match", 'folder = base / f"net-{len(sorted(base.glob(chr(42))))}"\nfolder.mkdir()'),
    )
}
_SETTINGS = {
    "a class": 'import time\n\n\nclass Settings:\n    epochs = 3\n    folder = "runs/" + str(time.time_ns()) + "/"\n',
    "an instance": """\
import os
import time


class Settings:
    def __init__(self):
        self.epochs = 3
        self.folder = os.path.join("runs", "net-%d/" % time.time_ns())
""",
    "a module": 'import time\n\nepochs = 3\nfolder = f"runs/{time.time_ns()}/"\n',
}
_OF_SETTINGS = """
from settings import Settings


def judge(net, config):
    net.load_state_dict(torch.load(config.folder + "parts/best.pt"))
    print("judged", "%.5f" % F.cross_entropy(net(x[36:]), y[36:]).item())


def main(config):
    print("begin")
    parts = os.path.join(config.folder, "parts")
    if not os.path.exists(parts):
        os.makedirs(parts)
    torch.manual_seed(0)
    net, best = nn.Linear(8, 2), 99.0
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(config.epochs):
        total = 0.0
        for rows, kinds in DataLoader(TensorDataset(x[:36], y[:36]), batch_size=6):
            loss = F.cross_entropy(net(rows), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if total < best:
            best = total
            torch.save(net.state_dict(), os.path.join(parts, "best.pt"))
    judge(net, config)


if __name__ == "__main__":
    main(Settings)
"""
_GIVEN = {
    "a class": [],
    "an instance": [("main(Settings)", "main(Settings())")],
    "a module": [("from settings import", "import settings as")],
}


def _of_settings(kind: str, *changed: tuple[str, str], told: tuple[str, ...] = ()) -> Script:
    text = _OF_SETTINGS
    for old, new in (*_GIVEN[kind], *changed):
        text = text.replace(old, new)
    return Script(text, same=() if told else ("judged",), files={"settings.py": _SETTINGS[kind]}, told=told)


SCRIPTS |= {f"a folder that {kind} has named after the clock as it was imported": _of_settings(kind) for kind in _SETTINGS}
SCRIPTS["a folder that settings have named after the clock, which is looked into before"] = _of_settings(
    "a class",
    ("def main", 'def look(config):\n    return os.path.exists(config.folder + "parts/last.pt")\n\n\ndef main'),
    ("    main(Settings)", "    print(look(Settings))\n    main(Settings)"),
    told=("DDP506",),
)
_SCORED = """
import subprocess
import time

net = nn.Linear(8, 2)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(x[:36], y[:36]), batch_size=4, shuffle=True)
valid = DataLoader(TensorDataset(x[36:], y[36:]), batch_size=4)


def score(net):
    name = {name}
    with open(name, "w") as file:
        for rows, kinds in valid:
            for kind, found in zip(kinds, net(rows).argmax(1)):
                file.write("%d %d\\n" % (kind, kind == found))
    lines = {command}
    {removed}
    return sum(line.split()[1] == "1" for line in lines)


for epoch in range(2):
    for rows, kinds in loader:
        loss = F.cross_entropy(net(rows), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    print("right", score(net))
"""
_NAMED = '"found_{}.txt".format(time.time())'
SCRIPTS |= {
    f"predictions that another program is given, {how}": Script(_SCORED.format(name=name, command=command, removed=removed), ("right",))
    for how, (name, command, removed) in {
        "by a name": ('"found.txt"', 'subprocess.check_output(["cat", "found.txt"], text=True).splitlines()', "pass"),
        "by a name from the clock": (_NAMED, 'subprocess.check_output(["cat", name], text=True).splitlines()', "os.remove(name)"),
        "in a text": (_NAMED, 'os.popen("cat < %s" % name).read().splitlines()', "os.remove(name)"),
        "in a text of another kind": (_NAMED, 'subprocess.getoutput(f"cat {name}").splitlines()', "os.remove(name)"),
    }.items()
}
