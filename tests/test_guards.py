"""Output of scripts with local modules: what the entry can do about modules that are not edited."""

import textwrap
from pathlib import Path

import pytest

import ddpify
from ddpify.options import Options

SCRIPT = """\
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
{head}
loader = DataLoader(TensorDataset(torch.ones(64, 8), torch.ones(64, 1)), batch_size=16, shuffle=True)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    {each}
"""
LOG = """\
import logging, os
def setup(folder):
    os.makedirs(folder, exist_ok=True)
    logger = logging.getLogger("run")
    logger.addHandler(logging.FileHandler(os.path.join(folder, "log.txt")))
    return logger
def at(path):
    logger = logging.getLogger("run")
    logger.addHandler(logging.FileHandler(path))
    return logger
def step(epoch):
    logging.getLogger("run").info("epoch %d", epoch)
    return epoch
"""
BOARD = """\
from torch.utils.tensorboard import SummaryWriter
class Board:
    def __init__(self, folder):
        self.writer = SummaryWriter(folder)
    def log(self, epoch):
        self.writer.add_scalar("epoch", epoch)
def board(folder):
    return SummaryWriter(folder)
def add(writer, epoch):
    writer.add_scalar("epoch", epoch)
    return epoch
"""
SAVE = """\
import json, shutil, torch
def save(model, epoch):
    torch.save(model.state_dict(), "last.pt")
    shutil.copy("last.pt", "best.pt")
    json.dump({}, open("a.json", "w"))
    return epoch
"""

# title: the local module, the head, what each epoch ends with, and lines of the result
TOLD: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "a log at a path": (
        LOG,
        'from local import at\nlogger = at("log.txt")',
        "logger.info(epoch)",
        ('logger = at("log.txt" if rank == 0 else os.devnull)', "        logger.info(epoch)"),
    ),
    "a log in a folder": (
        LOG,
        'from local import setup\nlogger = setup("logs")',
        "logger.info(epoch)",
        ('logger = setup("logs") if rank == 0 else logging.getLogger("run")',),
    ),
    "a module that logs": (LOG, "from local import step", "total = step(epoch)", ("    logging.disable(logging.CRITICAL)",)),
    "a class that holds a writer": (
        BOARD,
        'from local import Board\nboard = Board("runs")',
        "board.log(epoch)",
        ('board = Board("runs") if rank == 0 else None', "        board.log(epoch)"),
    ),
    "a function that makes a writer": (
        BOARD,
        'from local import board\nwriter = board("runs")',
        'writer.add_scalar("epoch", epoch)',
        ('writer = board("runs") if rank == 0 else None',),
    ),
    "a writer handed on": (
        BOARD,
        "from torch.utils.tensorboard import SummaryWriter\nfrom local import add\nwriter = SummaryWriter()",
        "add(writer, epoch)",
        ("writer = SummaryWriter() if rank == 0 else None", "        add(writer, epoch)"),
    ),
}


def _convert(folder: Path, module: str, head: str, each: str, guards: str = "explicit") -> ddpify.Conversion:
    (folder / "local.py").write_text(module)
    (folder / "train.py").write_text(SCRIPT.format(head=head, each=textwrap.indent(each, "    ").lstrip()))
    return ddpify.convert(folder / "train.py", Options(guards=guards))  # type: ignore[arg-type]


@pytest.mark.parametrize(("module", "head", "each", "lines"), TOLD.values(), ids=TOLD.keys())
def test_the_entry_sees_to_it(tmp_path: Path, module: str, head: str, each: str, lines: tuple[str, ...]) -> None:
    done = _convert(tmp_path, module, head, each)
    assert done.exit_code == 0, done.findings
    assert [line for line in lines if line not in done.code.splitlines()] == []


def test_a_function_of_another_module_that_writes_is_guarded_there(tmp_path: Path) -> None:
    done = _convert(tmp_path, SAVE, "from local import save", "total = save(model, epoch)")
    assert done.exit_code == 0, done.findings
    (local,) = (module for module in done.edited if not module.added)
    assert '    if get_rank() == 0:\n        torch.save(model.state_dict(), "last.pt")\n        shutil.copy(' in local.code
    assert "total = save(model.module, epoch)" in done.code


def test_functions_that_ask_for_the_rank_take_names_that_are_free(tmp_path: Path) -> None:
    own = "\n\ndef get_rank():\n    return 0\n"
    done = _convert(tmp_path, SAVE + own, "from local import save", "total = save(model, epoch)")
    assert done.exit_code == 0, done.findings
    (local,) = (module for module in done.edited if not module.added)
    assert "from ddp_utils import rank_of_process" in local.code and "    if rank_of_process() == 0:\n" in local.code and own in local.code


def test_a_function_that_is_not_the_projects_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor" / "other.py").write_text(SAVE)
    head = 'import sys\nsys.path.append("vendor")\nfrom other import save'
    done = _convert(tmp_path, "", head, "total = save(model, epoch)")
    told = [f.message for f in done.findings if f.code == "DDP501"]
    assert told == ["every rank would write here (torch.save, shutil.copy, open, json.dump)"]


def test_a_writer_that_a_module_needs_is_used_by_rank_0_there(tmp_path: Path) -> None:
    head = "from torch.utils.tensorboard import SummaryWriter\nfrom local import add\nwriter = SummaryWriter()"
    done = _convert(tmp_path, BOARD, head, "total = add(writer, epoch)")
    assert done.exit_code == 0, done.findings
    (local,) = (module for module in done.edited if not module.added)
    assert '    if get_rank() == 0:\n        writer.add_scalar("epoch", epoch)\n' in local.code
    assert "writer = SummaryWriter() if rank == 0 else None" in done.code


def test_quiet_silences_loggers_as_it_does_print(tmp_path: Path) -> None:
    head = "import logging\nlogging.basicConfig(level=logging.INFO)"
    done = _convert(tmp_path, "", head, 'logging.info("epoch %d", epoch)\nprint(epoch)', "quiet")
    assert done.exit_code == 0, done.findings
    assert 'if rank != 0:\n    sys.stdout = open(os.devnull, "w")\n    logging.disable(logging.CRITICAL)\n' in done.code
    assert "if rank == 0:" not in done.code


def test_quiet_leaves_what_writes_a_file_to_rank_0(tmp_path: Path) -> None:
    head = "save = lambda path: torch.save(loader.batch_size, path)"
    done = _convert(tmp_path, "", head, 'save("last.pt")', "quiet")
    assert done.exit_code == 0, done.findings
    assert "    if rank == 0:\n        save(" in done.code


TIMER = """
import os
class Timer:
    def __init__(self, name):
        self.name = name
    def __enter__(self):
        return self
    def __exit__(self, *error):
        return None
"""
BLOCKS = {
    "a timer of a first phase": (TIMER, 'Timer("first phase")', False),
    "a barrier before the others": (
        "import os\nfrom contextlib import contextmanager\nimport torch.distributed as group\n@contextmanager\n"
        "def in_turn(rank):\n    if rank:\n        group.barrier()\n    yield\n    if not rank:\n        group.barrier()\n",
        'in_turn(int(os.environ.get("RANK", 0)))',
        True,
    ),
}


@pytest.mark.parametrize(("head", "block", "ordered"), BLOCKS.values(), ids=BLOCKS.keys())
def test_a_block_is_ordered_by_what_it_does_and_not_by_its_name(tmp_path: Path, head: str, block: str, ordered: bool) -> None:
    done = _convert(tmp_path, "", head, f'with {block}:\n    status = os.system("touch made.txt")')
    assert any(f.code == "DDP501" and "os.system" in f.message for f in done.findings) is not ordered


@pytest.mark.parametrize(("last", "alone"), [("plt.close(fig)", True), ("torch.manual_seed(int(fig.get_dpi()))", False)])
def test_a_figure_is_made_where_it_is_drawn_on_and_closed(tmp_path: Path, last: str, alone: bool) -> None:
    head = "import os\nimport matplotlib.pyplot as plt"
    draws = f'fig = plt.figure()\nif not os.path.exists("out"):\n    os.makedirs("out")\nplt.savefig("out/last.png")\n{last}'
    lines = _convert(tmp_path, "", head, draws).code.splitlines()
    made = next(i for i, line in enumerate(lines) if line.strip() == "fig = plt.figure()")
    assert (lines[made - 1].strip() == "if rank == 0:") is alone


def test_a_function_that_prints_beside_what_it_returns_is_asked_to_on_rank_zero(tmp_path: Path) -> None:
    head = "from thop import profile\nflops, params = profile(nn.Linear(8, 1), inputs=(torch.ones(1, 8),){})\n"
    (path := tmp_path / "train.py").write_text(SCRIPT.format(head=head.format(""), each="pass"))
    assert "(torch.ones(1, 8),), verbose=rank == 0)" in ddpify.convert(path).code
    path.write_text(SCRIPT.format(head=head.format(", verbose=False"), each="pass"))
    assert "(torch.ones(1, 8),), verbose=False)" in ddpify.convert(path).code


@pytest.mark.parametrize("test", ['kept == "all"', 'kept in ("all", "last")', 'kept in ["all"]'])
def test_what_another_setting_writes_is_guarded_too(tmp_path: Path, test: str) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.format(head='kept = "none"', each=f'if {test}: torch.save(model.state_dict(), "kept.pt")'))
    done = ddpify.convert(tmp_path / "train.py")
    assert done.exit_code == 0
    assert f"if rank == 0 and {test}: torch.save(model.module.state_dict(), " in done.code
