"""Systems that people describe, each as a script of its own in `systems/`: converted, held against the committed result, and run."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from quick_python import python
from ranks import Case, Outcome, launch, run_many, run_unless_aborted

import ddpify
from ddpify import Options
from ddpify.rules.base import Safety

ROOT = Path(__file__).parent / "systems"


@dataclass(frozen=True)
class System:
    """A script and how it is converted; `same` is how lines begin whose numbers are the whole data set's."""

    script: str
    options: Options
    same: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


SYSTEMS = {
    "spawned, as many processes as GPUs are named": System("s01", Options("spawn"), ("patches",)),
    "launched, the local rank as an argument": System("s01", Options("launch"), ("patches",)),
    "a data set and a loop that want whole batches": System("s03", Options("torchrun"), ("epoch",)),
    "loader workers": System("s04", Options("launch"), ignore=("prints",)),  # torch warns of memory that no GPU pins
    "curves, pictures, texts and checkpoints": System("s05", Options("launch")),
    "spawned, float16, all of it in the main block": System("s07", Options("spawn", amp="torch"), ("epoch",)),
    "launched, float16, three chosen GPUs, gloo": System("s09", Options("launch", backend="gloo"), ("epoch",)),
    "torchrun and a meter": System("s10", Options("torchrun"), ("hits",)),
    "best and last checkpoints, read back": System("s11", Options("launch"), ("epoch", "better", "loaded")),
    "validation on every rank": System("s11", Options("torchrun", eval="replicate"), ("epoch", "better", "loaded")),
    "DataParallel with float16, labels of a batch's length": System("s16", Options("torchrun"), ("epoch",)),
    "a loader that works ahead": System("s17", Options("torchrun"), ("epoch",)),
    "the shortest script": System("s20", Options("launch")),
    "parts that rest, a sampler or none, a later start": System(
        "s22", Options("launch", find_unused_parameters="on"), ("epoch",), ("--start_epoch", "2")
    ),
}
SPAWNED = [title for title, system in SYSTEMS.items() if system.options.launcher == "spawn"]
STARTED = [title for title in SYSTEMS if title not in SPAWNED]


def original(title: str) -> str:
    return (ROOT / f"{SYSTEMS[title].script}.py").read_text()


def committed(title: str) -> Path:
    system = SYSTEMS[title]
    alike = [t for t, s in SYSTEMS.items() if (s.script, s.options.launcher) == (system.script, system.options.launcher)]
    assert alike == [title]
    return ROOT / f"{system.script}_{system.options.launcher}.py"


@pytest.mark.parametrize("title", SYSTEMS)
def test_the_conversion_is_the_committed_one(title: str, update_golden: bool) -> None:
    done = ddpify.convert(ROOT / f"{SYSTEMS[title].script}.py", SYSTEMS[title].options)
    assert (done.status, done.exit_code) == ("convert", 0)
    if update_golden:
        committed(title).write_bytes(done.bytes)
    assert done.code == committed(title).read_text()
    again = ddpify.convert(committed(title), SYSTEMS[title].options)
    assert (again.code, again.exit_code) == (done.code, 0)


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    """The systems that a launcher starts, on two ranks beside their originals."""
    cases = [Case(original(title), committed(title).read_text(), SYSTEMS[title].args) for title in STARTED]
    return dict(zip(STARTED, run_many(cases), strict=True))


@pytest.mark.parametrize("title", STARTED)
def test_it_trains_as_the_original(title: str, outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes[title]
    assert outcome.problems(SYSTEMS[title].ignore) == []
    before, after = (
        [line for line in run.stdout.splitlines() if line.startswith(SYSTEMS[title].same or "nothing")]
        for run in (outcome.single, outcome.ranks[0])
    )
    assert before == after
    assert bool(before) == bool(SYSTEMS[title].same)


def environment(**more: str) -> dict[str, str]:
    drop = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    return {k: v for k, v in os.environ.items() if k not in drop} | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""} | more


def run(script: Path, *args: str, **more: str) -> subprocess.CompletedProcess:
    """Run a script in its folder as `python script`."""
    return run_unless_aborted([python(), script.name, *args], script.parent, environment(**more), limit=180)


@pytest.mark.parametrize("title", SPAWNED)
def test_a_spawned_script_trains_as_the_original(title: str, tmp_path: Path) -> None:
    texts = {"one": original(title), "two": committed(title).read_text()}
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(text)
    single = run(tmp_path / "one" / "train.py")
    spawned = run(tmp_path / "two" / "train.py", WORLD_SIZE="2")
    assert (single.returncode, spawned.returncode) == (0, 0), single.stderr + spawned.stderr
    assert [line for line in spawned.stdout.splitlines() if line.startswith(SYSTEMS[title].same)] == [
        line for line in single.stdout.splitlines() if line.startswith(SYSTEMS[title].same)
    ]
    assert len(spawned.stdout.splitlines()) == len(single.stdout.splitlines())
    written = [{p.relative_to(tmp_path / name): p for p in (tmp_path / name).rglob("*.p*t*")} for name in texts]
    assert written[0].keys() == written[1].keys()
    assert written[0]
    for path, file in written[0].items():
        before, after = (torch.load(f, weights_only=False) if path.name != "reader.pt" else _pickled(f) for f in (file, written[1][path]))
        assert before.keys() == after.keys()
        for key, tensor in before.items():
            torch.testing.assert_close(after[key], tensor, rtol=1e-5, atol=1e-6)


def _pickled(file: Path) -> dict[str, torch.Tensor]:
    """The parameters of a model that was pickled whole, read by a script that has its classes as the original has."""
    script = file.with_name("read.py")
    head = original("spawned, float16, all of it in the main block").partition('if __name__ == "__main__"')[0]
    script.write_text(head + f'\ntorch.save(torch.load("{file.name}", weights_only=False).state_dict(), "read.out")\n')
    assert (done := run(script)).returncode == 0, done.stderr
    return torch.load(file.with_name("read.out"))


@pytest.mark.parametrize("title", ["launched, the local rank as an argument"])
def test_the_launcher_starts_it(title: str, tmp_path: Path) -> None:
    """torch.distributed.launch passes the local rank as an argument, in the spelling of its time."""
    (tmp_path / "train.py").write_text(committed(title).read_text())
    (tmp_path / "ranks.py").write_text(
        "import runpy\nimport sys\n\nsys.argv[1:2] = ['--local_rank', '0']\n" + "runpy.run_path('train.py')\n"
    )
    done = launch(tmp_path / "train.py", ["--local-rank=0", "--epochs", "1"])
    assert done.returncode == 0 or "SIGABRT" in done.stderr, done.stderr
    done = launch(tmp_path / "train.py", ["--local_rank=0", "--epochs", "1"])
    assert done.returncode == 0 or "SIGABRT" in done.stderr, done.stderr


def test_one_script_for_both(tmp_path: Path) -> None:
    """Not launched, it is a group of one and does what the original did."""
    title = "torchrun and a meter"
    outcome = run_many([Case(original(title), committed(title).read_text())], 1)[0]
    assert outcome.problems() == []


def test_three_chosen_devices_are_three_processes() -> None:
    done = ddpify.convert(ROOT / "s09.py", Options("launch"))
    assert done.command.startswith("CUDA_VISIBLE_DEVICES=0,1,3 python -m torch.distributed.launch --nproc-per-node=3 ")
    for option in ("--nnodes=1", "--node-rank=0", "--master-addr=localhost", "--master-port=29500"):
        assert f" {option} " in done.command


def test_the_ten_points() -> None:
    """Placement, sampler, batch and workers divided, world size, saving, validation, logging: all in one conversion."""
    done = ddpify.convert(ROOT / "s11.py", Options("launch"))
    workers = ddpify.convert(ROOT / "s04.py", Options("launch")).code
    for text in (
        '"--local-rank", "--local_rank"',
        "torch.cuda.set_device(local_rank)",
        "device_ids=[local_rank]",
        "DistributedSampler(",
        'world_size = int(os.environ.get("WORLD_SIZE", 1))',
        "batch_size=per_rank(10)",
        "dist.barrier()",
        "model.module.state_dict()",
        "if rank == 0:",
    ):
        assert text in done.code, text
    assert "workers_per_rank(args.workers)" in workers
    assert "--master-port=" in done.command


EXAMPLES = sorted(path.parent for path in (Path(__file__).parents[1] / "examples").glob("*/train.py"))


@pytest.mark.parametrize(
    "example", [path for path in EXAMPLES if path.name in ("dataparallel_toplevel", "trainer_class")], ids=lambda p: p.name
)
def test_examples_under_spawn_say_what_the_originals_say(example: Path, tmp_path: Path) -> None:
    done = ddpify.convert(example / "train.py", Options("spawn"))
    said = []
    for name, text, processes in (("one", done.original, "1"), ("two", done.code, "2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(text)
        ran = run(tmp_path / name / "train.py", WORLD_SIZE=processes)
        assert ran.returncode == 0, ran.stderr
        said.append([re.sub(r"[\d.]+(e[-+]?\d+)?", "0", line) for line in ran.stdout.splitlines()])
    assert said[0] == said[1]


_LISTED = """\
import argparse
{imports}
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--gpus", default="{default}")
args = parser.parse_args()
ids = [int(i) for i in args.gpus.split(",")]
model = nn.DataParallel(nn.Linear(8, 1).cuda(), device_ids=ids)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(TensorDataset(torch.ones(64, 8), torch.ones(64, 1)), batch_size=16):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("default", "told"), [("0", ["DDP106"]), ("0,1", [])])
def test_a_list_of_one_gpu_is_told(default: str, told: list[str]) -> None:
    done = ddpify.convert(_LISTED.format(imports="", default=default), Options("spawn"))
    assert [finding.code for finding in done.findings if finding.level >= Safety.REVIEW] == told
    assert "nprocs=prepare_spawn(len(ids) or 1)" in done.code


def test_imports_of_all_names_stay_at_the_top() -> None:
    stars = "try:\n    from math import *\nexcept ImportError:\n    pass"
    done = ddpify.convert(_LISTED.format(imports=stars, default="0,1"), Options("spawn"))
    compile(done.code, "train.py", "exec")
    assert done.exit_code == 0
    assert done.code.index("from math import *") < done.code.index("def worker(")
