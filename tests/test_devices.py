"""Every number of a GPU that reaches a device is this rank's after the conversion: the text for each spelling, and runs on played GPUs."""

import os
import subprocess
import textwrap
from pathlib import Path

import pytest
from quick_python import python

import ddpify
from ddpify import Conversion
from ddpify.rehearse.launch import Setting
from ddpify.rehearse.verify import Verdict, verify

HEAD = """\
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--card", type=int, default=0)
parser.add_argument("--gpu", default="0")
parser.add_argument("--device", default="cuda")
parser.add_argument("--width", type=int, default=8)
args = parser.parse_args()
x = torch.sin(torch.arange(256.0) ** 1.5).view(32, 8)
y = (x.sum(1) > 0).long()
"""
TRAINING = """\
model = nn.Linear(8, 2).to(here)
loader = DataLoader(TensorDataset(x, y), batch_size=8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for data, target in loader:
        loss = F.cross_entropy(model(data.to(here)), target.to(here))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
OWN = 'f"cuda:{local_rank}"'

PARSED = """\
def parse():
    opt = parser.parse_args()
    parts = opt.gpu.split(",")
    opt.gpu = []
    for part in parts:
        opt.gpu.append(int(part))
    return opt


"""

# What stands before the training, and lines of it afterwards.
SPELLINGS = {
    "set_device in an expression": (
        "torch.cuda.set_device(args.card) if args.card else None",
        "torch.cuda.set_device(local_rank) if args.card else None",
    ),
    "a block of a device beside another": (
        "with torch.no_grad(), torch.cuda.device(0):\n    w = torch.zeros(3)",
        "with torch.no_grad(), nullcontext():\n    w = torch.zeros(3)",
    ),
    "a block of a device that has a name": (
        "spot = torch.cuda.device(args.card)",
        "spot = torch.cuda.device(local_rank if torch.cuda.is_available() else -1)",
    ),
    "a device by a number that has a name": ("number = 1\nhost = torch.device(number)", f"number = 1\nhost = torch.device({OWN})"),
    "a device by a setting": ("host = torch.device(args.card)", f"host = torch.device({OWN})"),
    "a device by its kind and a setting": (
        'kind = "cuda"\nhost = torch.device(kind, args.card)',
        'kind = "cuda"\nhost = torch.device(kind, local_rank)',
    ),
    "a device of which nothing is known": (
        "import os\n\nname = os.popen('choose').read()\nhost = torch.device(name)",
        "name = os.popen('choose').read()\nhost = torch.device(torch.device(name).type)",
    ),
    "a setting that names a kind of device": ("host = torch.device(args.device)", "host = torch.device(args.device)"),
    "a number to move to": ("w = torch.zeros(3).to(args.card)", "w = torch.zeros(3).to(device)"),
    "a number of a list that is read from a text": (
        "cards = []\nfor part in args.gpu.split(','):\n    cards.append(int(part))\nw = torch.zeros(3).to(cards[0])",
        "cards = []\nfor part in args.gpu.split(','):\n    cards.append(int(part))\nw = torch.zeros(3).to(device)",
    ),
    "a number of a list that a setting becomes, read twice": (
        f"{PARSED}opt, other = parse(), parse()\nw = torch.zeros(3).to(opt.gpu[0])",
        f"{PARSED}opt, other = parse(), parse()\nw = torch.zeros(3).to(device)",
    ),
    "a number that is no device": ("w = torch.zeros(3).to(torch.float64).view(args.width - 7, 3)", None),
    "a number to move to, by name": ("w = torch.zeros(3).to(device=args.card)", "w = torch.zeros(3).to(device=device)"),
    "a number for .cuda": ("w = torch.zeros(3).cuda(args.card, non_blocking=True)", "w = torch.zeros(3).to(device, non_blocking=True)"),
    "numbers for new tensors": (
        "w = torch.zeros(3, device=0)\nv = x.new_zeros(3, device=args.card)",
        "w = torch.zeros(3, device=device)\nv = x.new_zeros(3, device=device)",
    ),
    "a generator": ('g = torch.Generator(device="cuda:0")', f"g = torch.Generator(device={OWN})"),
    "a stream": ("s = torch.cuda.Stream(device=1)", "s = torch.cuda.Stream(device=device)"),
    "a device for all new tensors": ('torch.set_default_device("cuda:1")', "torch.set_default_device(device)"),
    "a device for all new tensors, by a number": ("torch.set_default_device(args.card)", "torch.set_default_device(device)"),
    "each of the machine's devices": (
        "parts = [torch.zeros(1).to(i) for i in range(torch.cuda.device_count())]",
        "parts = [torch.zeros(1).to(device) for i in range(torch.cuda.device_count())]",
    ),
    "a table of places": (
        'state = torch.load("a.pt", map_location={"cuda:1": "cuda:0"})',
        'state = torch.load("a.pt", map_location=device)',
    ),
    "a table of places that has a name": (
        'places = {"cuda:1": "cuda:0"}\nstate = torch.load("a.pt", map_location=places)',
        'places = {"cuda:1": "cuda:0"}\nstate = torch.load("a.pt", map_location=device)',
    ),
    "a function of places": (
        'state = torch.load("a.pt", map_location=lambda storage, place: storage.cuda(args.card))',
        'state = torch.load("a.pt", map_location=device)',
    ),
    "a text put together": ('host = "cuda:" + str(args.card)', f"host = {OWN}"),
    "a text put together from names": ('kind = "cuda"\nhost = kind + ":" + str(args.card)', f'kind = "cuda"\nhost = {OWN}'),
    "a text with two holes": ('kind = "cuda"\nhost = f"{kind}:{args.card}"', f'kind = "cuda"\nhost = {OWN}'),
    "an entry of a table of settings": (
        'table = {"device": "cuda:1"}\nw = torch.zeros(3).to(table["device"])',
        'table = {"device": "cuda:1"}\nw = torch.zeros(3).to(device)',
    ),
}  # fmt: skip

# Whole scripts that name one GPU for all that they do.
WHOLE = {
    "the training in a block of a device": 'here = torch.device("cuda")\nwith torch.cuda.device(args.card):\n'
    + textwrap.indent(TRAINING.replace("(here)", ".cuda()").replace(".to.cuda()", ".cuda()"), "    "),
    "numbers by name, by setting and by default": "number = 0\nhere = number\ntorch.set_default_device(args.card)\n"
    "mask = torch.ones(8, device=number)\nwith torch.cuda.device(0):\n    scale = torch.ones(1).cuda()\n"
    + TRAINING.replace("model(data.to(here))", "model(data.to(here) * mask.to(number) * scale)"),
    "a checkpoint read through a table of places": 'here = torch.device("cuda", args.card)\n'
    'torch.save({"weight": torch.ones(2, 8)}, "start.pt")\n'
    + TRAINING.replace(
        "loader =",
        'model.weight.data.copy_(torch.load("start.pt", map_location={"cuda:1": "cuda:0"})["weight"].to(here))\nloader =',
    ),
    "batches that DataParallel moved, also in evaluation": 'here = "cuda"\n'
    + TRAINING.replace(".to(here)\nloader", "\nmodel = nn.DataParallel(model).cuda()\nloader").replace("data.to(here)", "data")
    + "    model.eval()\n    right = 0\n    with torch.no_grad():\n        for data, target in loader:\n"
    "            right += (model(data).argmax(1) == target.cuda()).sum().item()\n    print(right)\n",
    "batches that DataParallel moved where there is a GPU, also in evaluation": 'here = "cuda" if torch.cuda.is_available() else "cpu"\n'
    + TRAINING.replace(".to(here)\nloader", '\nif here == "cuda":\n    model = nn.DataParallel(model)\nmodel.to(here)\nloader').replace(
        "data.to(here)", "data"
    )
    + "    model.eval()\n    right = 0\n    with torch.no_grad():\n        for data, target in loader:\n"
    "            right += (model(data).argmax(1) == target.to(here)).sum().item()\n    print(right)\n",
    "batches that the DataParallel of a teacher moved, which is no model that is trained": 'here = "cuda"\n'
    "def made(taught):\n    net = nn.DataParallel(nn.Linear(8, 2)).cuda()\n    if not taught:\n"
    "        for weight in net.parameters():\n            weight.requires_grad_(False)\n    return net\n"
    + TRAINING.replace("model = nn.Linear(8, 2).to(here)", "model, teacher = made(True), made(False)").replace(
        "model(data.to(here)), target.to(here))", "model(data), target.cuda()) + F.mse_loss(model(data), teacher(data))"
    ),
    "a draw on the device that steers": 'here = "cuda" if torch.cuda.is_available() else "cpu"\n'
    + TRAINING.replace(
        "        optimizer.step()",
        "        if torch.rand(8, device=here).sum() < model.weight.detach().abs().sum() + 8:\n            optimizer.step()",
    ),
    "rows in objects, which no wrapper moves": """\
import numpy as np


class Graph:
    def __init__(self, rows, label):
        self.rows, self.label = rows, int(label)


class Net(nn.Linear):
    def forward(self, graphs):
        return super().forward(torch.stack([graph.rows for graph in graphs]).cuda())


graphs = [Graph(rows, label) for rows, label in zip(x, y)]
model = Net(8, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
np.random.seed(0)
for step in range(6):
    chosen = [graphs[i] for i in np.random.permutation(len(graphs))[:8]]
    loss = F.cross_entropy(model(chosen), torch.LongTensor([graph.label for graph in chosen]).cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(torch.stack([graph.rows for graph in graphs]).sum().item())
""",
}

MOVED = """\
here = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))
loader = DataLoader(TensorDataset(x, y), batch_size=8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    model.to(here)
    for data, target in loader:
        loss = F.cross_entropy(model(data.to(here)), target.to(here))
        optimizer.zero_grad()
        loss.backward({how})
        optimizer.step()
"""


def _converted(folder: Path, text: str) -> Conversion:
    (folder / "train.py").write_text(HEAD + text)
    return ddpify.convert(folder / "train.py")


@pytest.mark.parametrize("title", SPELLINGS)
def test_a_number_becomes_this_ranks(tmp_path: Path, title: str) -> None:
    before, after = SPELLINGS[title]
    done = _converted(tmp_path, f'{before}\nhere = "cuda" if torch.cuda.is_available() else "cpu"\n{TRAINING}')
    assert f"{after or before}\nhere = " in done.code, done.code[-1500:]
    assert done.exit_code == 0, done.findings


@pytest.mark.parametrize(("how", "after"), [("", "model = DistributedDataParallel(model"), ("retain_graph=True", "start_alike(model.")])
def test_a_model_that_the_loop_moves_is_moved_before(tmp_path: Path, how: str, after: str) -> None:
    done = _converted(tmp_path, MOVED.format(how=how))
    synced = "if next(model.parameters()).is_cuda:\n    model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)\n"
    assert f"model.to(here)\n{synced}{after}" in done.code
    assert done.exit_code == 0, done.findings


def test_a_device_has_a_name_where_it_is_used(tmp_path: Path) -> None:
    done = _converted(tmp_path, 'w = torch.zeros(3).cuda()\nhere = torch.device("cuda")\nv = torch.zeros(3).cuda()\n' + TRAINING)
    early = 'torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")'
    assert f"w = torch.zeros(3).to({early})\n" in done.code
    assert "v = torch.zeros(3).to(here)\n" in done.code


def test_the_cpu_is_not_taken_for_this_ranks_device(tmp_path: Path) -> None:
    done = _converted(tmp_path, 'host = torch.device("cpu")\nhere = 0\n' + TRAINING)
    assert "model = nn.Linear(8, 2).to(device)\n" in done.code


def _verified(folder: Path, text: str) -> Verdict:
    done, here = _converted(folder, text), Path.cwd()
    os.chdir(folder)
    try:
        return verify(Path("train.py"), done, Setting(python(), 2, 0, 120.0, True, idle=5.0))
    finally:
        os.chdir(here)


@pytest.mark.parametrize("title", WHOLE)
def test_each_rank_computes_on_its_own_device(tmp_path: Path, title: str) -> None:
    verdict = _verified(tmp_path, WHOLE[title])
    assert not verdict.reason, verdict.output
    assert [row for row in verdict.rows if row.holds is False] == [], verdict.output
    (row,) = (row for row in verdict.rows if row.name == "devices")
    assert row.holds is True, row


def test_what_is_placed_before_the_ranks_choose_is_on_their_own_devices(tmp_path: Path) -> None:
    chosen = 'here = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
    (tmp_path / "scaling.py").write_text(f"import torch\n\n{chosen}half = torch.full((1,), 0.5).to(here)\n")
    train = textwrap.indent(TRAINING.replace("data.to(here)", "data.to(here) * half * twice"), "    ")
    early = f"from scaling import half\n{chosen}twice = torch.full((1,), 2.0).to(here)\n"
    done = _converted(tmp_path, f"{early}\n\ndef main():\n{train}\n\nif __name__ == '__main__':\n    main()\n")
    assert done.exit_code == 0, done.findings
    assert done.code.index("\ninit_distributed()\n") < done.code.index("twice = ")
    (module,) = (module for module in done.edited if module.path.name == "scaling.py")
    assert 'torch.device(f"cuda:{get_local_rank()}" if torch.cuda.is_available() else "cpu")' in module.code


_AT_IMPORT = {
    "by cuda()": ("half = torch.full((1,), 0.5).cuda()\n", "half = torch.full((1,), 0.5).to(get_device())\n"),
    "by a name": ('here = "cuda"\nhalf = torch.full((1,), 0.5).to(here)\n', "half = torch.full((1,), 0.5).to(get_device())\n"),
    "as it is made": ('half = torch.full((1,), 0.5, device="cuda")\n', "half = torch.full((1,), 0.5, device=get_device())\n"),
    "where there is a GPU": (
        "half = torch.full((1,), 0.5)\nif torch.cuda.is_available():\n    half = half.cuda()\n",
        "    half = half.to(get_device())\n",
    ),
    "in a function": (
        "def on_gpu(x):\n    return x.cuda()\n\n\nhalf = on_gpu(torch.full((1,), 0.5))\n",
        "    return x.to(get_device())\n",
    ),
}


@pytest.mark.parametrize("title", _AT_IMPORT)
def test_what_a_module_places_as_it_is_imported_is_on_this_ranks_device(tmp_path: Path, title: str) -> None:
    before, after = _AT_IMPORT[title]
    (tmp_path / "scaling.py").write_text(f"import torch\n\n{before}")
    train = textwrap.indent(TRAINING.replace("data.to(here)", "data.to(here) * half").replace("(here)", '("cuda")'), "    ")
    text = f"from scaling import half\n\n\ndef main():\n{train}\n\nif __name__ == '__main__':\n    main()\n"
    done = _converted(tmp_path, text)
    assert done.exit_code == 0, done.findings
    (module,) = (module for module in done.edited if module.path.name == "scaling.py")
    assert after in module.code
    verdict = _verified(tmp_path, text)
    assert [row for row in verdict.rows if row.holds is False] == [], verdict.output


CHOSEN = """\
import os

import torch
import torch.nn.functional as F
import watched
from torch.utils.data import DataLoader, TensorDataset

x = torch.sin(torch.arange(256.0) ** 1.5).view(32, 8)
{module}

def main():
    {function}
    model = torch.nn.Linear(8, 2).cuda()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    for rows, kinds in DataLoader(TensorDataset(x, (x.sum(1) > 0).long()), batch_size=8):
        sgd.zero_grad()
        F.cross_entropy(model(rows.cuda()), kinds.cuda()).backward()
        sgd.step()


if __name__ == "__main__":
    main()
"""
WATCHED = """\
import os

import torch


def asked():
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "7", "the devices are asked for before they are chosen"
    return False


torch.cuda.is_available = asked
"""


@pytest.mark.parametrize("place", ["module", "function"])
def test_a_choice_of_devices_is_made_before_they_are_asked_for_or_told(tmp_path: Path, place: str) -> None:
    """CUDA reads the choice once, when it is first asked for its devices: `torch.cuda.is_available()` is such a question."""
    choice = {"module": "", "function": "pass", place: 'os.environ["CUDA_VISIBLE_DEVICES"] = "7"'}
    (tmp_path / "watched.py").write_text(WATCHED)
    script = tmp_path / "train.py"
    script.write_text(CHOSEN.format(**choice))
    done = ddpify.convert(script)
    assert done.exit_code == 0
    told = any("make the choice that comes later in the shell" in change.why for change in done.changes)
    assert told is (place == "function")
    script.write_text(done.code)
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "CUDA_VISIBLE_DEVICES")}
    ran = subprocess.run([python(), "train.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert (ran.returncode == 0) is not told, ran.stderr


def test_a_model_that_is_made_and_moved_for_each_fold_is_moved_once(tmp_path: Path) -> None:
    each = textwrap.indent(TRAINING, "    ")
    done = _converted(tmp_path, f'here = torch.device("cuda" if torch.cuda.is_available() else "cpu")\nfor fold in range(2):\n{each}')
    assert done.code.count("model.to(") == 0
    assert "    model = nn.Linear(8, 2).to(here)\n    model = DistributedDataParallel(model" in done.code
    assert done.exit_code == 0, done.findings


def test_a_model_that_is_trained_by_its_methods_and_moved_where_it_is_made_stays_there(tmp_path: Path) -> None:
    text = HEAD + textwrap.dedent("""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(8, 6), nn.Linear(6, 2)

        def encode(self, rows):
            return self.first(rows)

        def project(self, rows):
            return self.last(rows)

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = Net().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for rows, labels in DataLoader(TensorDataset(x, y), batch_size=4):
        loss = F.cross_entropy(net.project(net.encode(rows.to(device))), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """)
    (tmp_path / "train.py").write_text(text)
    code = ddpify.convert(tmp_path / "train.py").code
    assert "average_gradients(optimizer)" in code and "net.to(" not in code
