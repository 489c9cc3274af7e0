"""Notebooks of different kinds, made of their cells: `MD:` begins a cell of text."""

import json
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_HEAD = """
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    from torch.utils.data import DataLoader, TensorDataset

    x = torch.sin(torch.arange(320.0) ** 1.5).view(40, 8)
    y = (x.sum(1) > 0).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
"""
_MODEL = """
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
_LOOP = """
    for epoch in range(2):
        total = 0.0
        for a, b in loader:
            loss = F.cross_entropy(model(a.to(device)), b.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.6f}")
"""


@dataclass
class Notebook:
    """The cells, what the script must have and must not have, and how lines begin whose numbers must be the original's.

    `counts` are the numbers of the cells' runs, `told` what is left to do by hand: words of its message.
    """

    cells: tuple[str, ...]
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    same: tuple[str, ...] = ("epoch",)
    files: tuple[str, ...] = ()
    counts: tuple[int | None, ...] = ()
    values: dict[int, str] = field(default_factory=dict)
    told: tuple[str, ...] = ()


def written(notebook: Notebook, path: Path, **fields: Any) -> Path:
    """The notebook as a file of format 4."""
    cells, count = [], 0
    for text in notebook.cells:
        source = textwrap.dedent(text).strip("\n")
        if source.startswith("MD:"):
            cells.append({"cell_type": "markdown", "metadata": {}, "source": source[3:]})
            continue
        run = notebook.counts[count] if notebook.counts else count + 1
        value = notebook.values.get(count)
        shown = {"output_type": "execute_result", "metadata": {}, "execution_count": run, "data": {"text/plain": value}}
        outputs = [] if value is None else [shown]
        cells.append({"cell_type": "code", "metadata": {}, "source": source, "execution_count": run, "outputs": outputs})
        count += 1
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": metadata, "cells": cells} | fields))
    return path


NOTEBOOKS = {
    "a classifier with figures": Notebook(
        (
            "MD:# A classifier",
            "%matplotlib inline\nimport matplotlib.pyplot as plt" + _HEAD.replace("\n    ", "\n"),
            "plt.hist(y.numpy())",
            _MODEL + "    losses = []\n",
            _LOOP + "        losses.append(total / len(loader))\n",
            'plt.plot(losses)\nplt.title("loss")\nplt.show()',
            'fig, ax = plt.subplots()\nax.plot(losses)\nfig.savefig("own.png")\nplt.show()',
        ),
        ("# A classifier\n", 'plt.savefig("figure_1.png")', 'plt.savefig("figure_2.png")\n    plt.close()'),
        ("plt.show", "%matplotlib", "figure_3"),
        files=("figure_1.png", "figure_2.png", "own.png"),
    ),
    "figures in a loop and in a function": Notebook(
        (
            "from IPython.display import clear_output, display\nimport matplotlib.pyplot as plt",
            _HEAD,
            _MODEL + "    losses = []\n",
            "def draw(values):\n    plt.plot(values)\n    plt.show()",
            _LOOP + "        losses.append(total / len(loader))\n        clear_output(wait=True)\n        draw(losses)\n",
            "def only_draws(values):\n    plt.plot(values)\n\nonly_draws(losses)",
            "display(len(losses), losses[-1])",
        ),
        ("figure_numbers = itertools.count(1)",),
        ("IPython", "clear_output", "plt.show"),
        files=("figure_1.png", "figure_2.png", "figure_3.png"),
    ),
    "magics": Notebook(
        (
            "%load_ext autoreload\n%autoreload 2\n%config InlineBackend.figure_format = 'retina'\n%env GREETING=hello world",
            _HEAD,
            "import os\n%time model_size = 16\n%timeit x.sum()\n?torch\ntorch.nn?\nif model_size:\n    %who",
            _MODEL,
            "%%time\n" + textwrap.dedent(_LOOP),
            'get_ipython().run_line_magic("matplotlib", "inline")\nprint("epoch of", os.environ["GREETING"])',
            "%%capture\nz = 1",
        ),
        ('os.environ["GREETING"] = "hello world"', "model_size = 16", "z = 1"),
        ("%", "get_ipython", "autoreload", "timeit"),
    ),
    "shell lines": Notebook(
        (
            "!pip install -q torch\n%pip install numpy\n!nvidia-smi",
            _HEAD,
            "!mkdir -p runs/first\nname = 'note'\n!echo hello > runs/{name}.txt\n!ls runs | head\nlines = !echo one && echo two",
            _MODEL,
            _LOOP,
            'print("epoch lines", lines, open("runs/note.txt").read())',
        ),
        ('os.makedirs("runs/first", exist_ok=True)', 'os.system(f"echo hello > runs/{name}.txt")'),
        ("pip", "nvidia"),
    ),
    "a class in cells": Notebook(
        (
            _HEAD,
            """
            class Net(nn.Module):
                def __init__(self, hidden=16):
                    super().__init__()
                    self.first = nn.Linear(8, hidden)
                    self.last = nn.Linear(hidden, 2)

                def forward(self, x):
                    return self.last(torch.relu(self.first(x)))
            """,
            "torch.manual_seed(0)\nmodel = Net().to(device)\nmodel",
            "optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)",
            _LOOP,
            'torch.save(model.state_dict(), "model.pt")',
        ),
        ("print(model",),
        files=("model.pt",),
    ),
    "progress bars of notebooks": Notebook(
        (
            "from tqdm.notebook import tqdm, trange\nimport tqdm.notebook as bars" + _HEAD.replace("\n    ", "\n"),
            _MODEL,
            _LOOP.replace("range(2)", "trange(2)").replace("in loader", "in tqdm(loader, leave=False)"),
            "for _ in bars.tqdm(range(2)):\n    pass",
        ),
        ("from tqdm import tqdm, trange", "import tqdm as bars"),
        ("tqdm.notebook",),
    ),
    "functions that train and evaluate": Notebook(
        (
            _HEAD + "    test_loader = DataLoader(TensorDataset(x[:20], y[:20]), batch_size=4)\n",
            """
            def train(model, loader, optimizer):
                model.train()
                for a, b in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(a.to(device)), b.to(device)).backward()
                    optimizer.step()
            """,
            """
            @torch.no_grad()
            def evaluate(model, loader):
                model.eval()
                right = 0
                for a, b in loader:
                    right += (model(a.to(device)).argmax(1).cpu() == b).sum().item()
                return right / len(loader.dataset)
            """,
            _MODEL,
            'for epoch in range(2):\n    train(model, loader, optimizer)\n    print("epoch", epoch, evaluate(model, test_loader))',
            "evaluate(model, test_loader)",
            "train(model, loader, optimizer)",
        ),
        ("print(evaluate(",),
        ("print(train(",),
        same=("epoch", "0.", "1."),
    ),
    "a GAN": Notebook(
        (
            _HEAD,
            """
            torch.manual_seed(0)
            G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8)).to(device)
            D = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)).to(device)
            g_opt = torch.optim.SGD(G.parameters(), lr=0.05)
            d_opt = torch.optim.SGD(D.parameters(), lr=0.05)
            bce = nn.BCEWithLogitsLoss()
            """,
            """
            for epoch in range(2):
                g_total = 0.0
                for real, _ in loader:
                    real = real.to(device)
                    noise = torch.cos(9 * real[:, :4])
                    fake = G(noise)
                    ones, zeros = torch.ones(len(real), 1, device=device), torch.zeros(len(real), 1, device=device)
                    d_loss = bce(D(real), ones) + bce(D(fake.detach()), zeros)
                    d_opt.zero_grad()
                    d_loss.backward()
                    d_opt.step()
                    g_loss = bce(D(fake), ones)
                    g_opt.zero_grad()
                    g_loss.backward()
                    g_opt.step()
                    g_total += g_loss.item()
                print(f"epoch {epoch} generator {g_total / len(loader):.6f}")
            """,
        ),
    ),
    "a language model": Notebook(
        (
            """
            import torch
            import torch.nn as nn
            import torch.nn.functional as F
            from torch.utils.data import DataLoader, Dataset

            text = "the quick brown fox jumps over the lazy dog " * 4
            letters = sorted(set(text))
            len(letters)
            """,
            """
            class Windows(Dataset):
                def __init__(self, text, size=8):
                    self.codes = torch.tensor([letters.index(c) for c in text])
                    self.size = size

                def __len__(self):
                    return 40

                def __getitem__(self, i):
                    piece = self.codes[i : i + self.size + 1]
                    return piece[:-1], piece[1:]
            """,
            """
            class Model(nn.Module):
                def __init__(self, count, width=16):
                    super().__init__()
                    self.embed = nn.Embedding(count, width)
                    self.lstm = nn.LSTM(width, width, batch_first=True)
                    self.head = nn.Linear(width, count)

                def forward(self, codes):
                    return self.head(self.lstm(self.embed(codes))[0])
            """,
            """
            device = "cuda" if torch.cuda.is_available() else "cpu"
            torch.manual_seed(0)
            model = Model(len(letters)).to(device)
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
            loader = DataLoader(Windows(text), batch_size=4, shuffle=True)
            for epoch in range(2):
                total = 0.0
                for codes, after in loader:
                    codes, after = codes.to(device), after.to(device)
                    loss = F.cross_entropy(model(codes).flatten(0, 1), after.flatten())
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    total += loss.item()
                print("epoch", epoch, round(total / len(loader), 6))
            """,
        ),
        ("print(len(letters))",),
    ),
    "values that cells show": Notebook(
        (
            _HEAD,
            "x.shape, len(loader)",
            "x.mean()",
            "x.max();",
            "torch.manual_seed(0)",
            _MODEL,
            _LOOP,
            '"a text that is a comment"\nNone',
            "losses = [total]\nlosses.append(total)",
            "round(total / len(loader), 6)",
        ),
        ("print(x.shape, len(loader))", "print(x.mean())", "print(round(total / len(loader), 6))"),
        ("print(x.max", "print(torch.manual", "print(losses", "print(None"),
        same=("epoch", "torch.Size", "tensor", "0.", "1."),
        values={2: "tensor(0.01)", 3: "tensor(0.9)", 4: "<torch._C.Generator at 0x7f>"},
    ),
    "cells that were run in another order": Notebook(
        (_HEAD, _MODEL, _LOOP),
        counts=(1, 5, 3),
        told=("the notebook ran this cell before cell 2",),
    ),
}
