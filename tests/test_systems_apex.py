"""Systems with apex that people describe, each as a script in `systems/`: converted, held against the committed result, and run."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from quick_python import python
from ranks import Case, Outcome, run_many
from scripts import APEX, told

import ddpify
from ddpify import Options
from ddpify.rules.base import Safety

ROOT = Path(__file__).parent / "systems"
NEEDS = "# Needs NVIDIA's apex"


@dataclass(frozen=True)
class System:
    """A script, the name of its conversion, and how it is converted; `same` is how lines begin whose numbers are the whole data set's."""

    script: str
    name: str
    options: Options
    same: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


SYSTEMS = {
    "two models, each with a loss and a scaler": System("s06", "apex_o1", Options(amp="apex-O1")),
    "apex's wrapper alone, gradients averaged at the end": System(
        "s13", "ddp_apex", Options(ddp="apex", find_unused_parameters="on"), ("epoch",)
    ),
    **{
        f"apex's precision {level} in torch's wrapper": System(
            "s13", f"{level}_torch", Options(amp=f"apex-{level}", ddp="torch"), ("epoch",)
        )
        for level in ("O1", "O2", "O3")
    },
    **{
        f"apex's precision {level} in apex's wrapper": System("s13", level, Options(amp=f"apex-{level}"), ("epoch",))
        for level in ("O0", "O1", "O2", "O3")
    },
    "a checkpoint that holds amp's state": System("s20_amp", "apex_o1", Options(amp="apex-O1"), ignore=("keys",)),
    "several models in one call, and a fixed scale": System(
        "s24", "apex_o1", Options(amp="apex-O1", loss_scale="128.0", fused_adam=True), ignore=("keys",)
    ),
    "apex's optimizer, as an option": System("s24", "fused", Options(fused_adam=True)),
}


def original(title: str) -> str:
    return (ROOT / f"{SYSTEMS[title].script}.py").read_text()


def committed(title: str) -> Path:
    return ROOT / f"{SYSTEMS[title].script}_{SYSTEMS[title].name.lower()}.py"


@pytest.mark.parametrize("title", SYSTEMS)
def test_the_conversion_is_the_committed_one(title: str, update_golden: bool) -> None:
    done = ddpify.convert(ROOT / f"{SYSTEMS[title].script}.py", SYSTEMS[title].options)
    assert (done.status, done.exit_code) == ("convert", 0)
    if update_golden:
        committed(title).write_bytes(done.bytes)
    assert done.code == committed(title).read_text()
    assert done.code.count(NEEDS) == 1
    assert "github.com/NVIDIA/apex" in done.install and "another project" in done.install
    again = ddpify.convert(committed(title), SYSTEMS[title].options)
    assert (again.code, again.exit_code) == (done.code, 0)


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    """The systems on two ranks beside their originals, with the double of apex."""
    cases = [Case(original(title), committed(title).read_text(), files=APEX) for title in SYSTEMS]
    return dict(zip(SYSTEMS, run_many(cases), strict=True))


@pytest.mark.parametrize("title", SYSTEMS)
def test_it_trains_as_the_original(title: str, outcomes: dict[str, Outcome]) -> None:
    outcome, system = outcomes[title], SYSTEMS[title]
    assert outcome.problems(system.ignore) == []
    before = told(outcome.single.stdout, system.same or ("nothing",))
    assert told(outcome.ranks[0].stdout, system.same or ("nothing",)) == before
    assert bool(before) == bool(system.same)


MISTAKES = {  # what the double refuses, as apex does
    "wrapped first": ("import apex.amp as amp, apex.parallel", "model = apex.parallel.DistributedDataParallel(model)\n", "O1", "AFTER"),
    "a level that is misspelled": ("from apex import amp", "", "01", "Unexpected optimization level"),
    "a tuple of models": ("from apex import amp", "model = (model,)\n", "O1", "single model or a list"),
    "initialised twice": ("from apex import amp", "amp.initialize(model, optimizer)\n", "O1", "only be called once"),
    "half weights": ("from apex import amp", "model.half()\n", "O1", "do not need to call .half()"),
    "a loss that nobody told of": ("from apex import amp", "", "O1", "loss_id 1 of 1"),
}


@pytest.fixture(scope="module")
def refused() -> dict[str, Outcome]:
    text = (
        "import torch, torch.distributed as dist\n{0}\nif not dist.is_initialized():\n"
        "    dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)\n"
        "model = torch.nn.Linear(4, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n{1}"
        "model, optimizer = amp.initialize(model, optimizer, opt_level='{2}')\n"
        "with amp.scale_loss(model(torch.ones(2, 4)).sum(), optimizer, loss_id=1) as loss:\n    loss.backward()\n"
    )
    cases = [Case(text.format(*mistake[:3]), "print(1)", files=APEX) for mistake in MISTAKES.values()]
    return dict(zip(MISTAKES, run_many(cases, 1), strict=True))


@pytest.mark.parametrize("title", MISTAKES)
def test_the_double_refuses_what_apex_refuses(title: str, refused: dict[str, Outcome]) -> None:
    assert MISTAKES[title][3] in refused[title].single.error


TWICE = """\
import torch
from apex import amp

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(model, optimizer, opt_level="{level}")
for _ in range(2):
    rows = torch.ones(2, 4)
    loss = (model(rows) - model(2 * rows)).mean() if {twice} else model(rows).mean()
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
print("trained")
"""
UTILS = "apex/amp/utils.py"
AS_IT_IS = APEX | {UTILS: APEX[UTILS].replace("next_functions[0][0]", "next_functions[1][0]")}


@pytest.mark.parametrize(("level", "twice"), [("O1", True), ("O1", False), ("O2", True)])
def test_apex_as_it_is_fails_at_o1_where_a_module_runs_twice(level: str, twice: bool) -> None:
    """The line is from torch older than 1.10, where a cast had two next functions: https://github.com/NVIDIA/apex/issues/1303."""
    text, fails = TWICE.format(level=level, twice=twice), level == "O1" and twice
    mended, unmended = (o.single for o in run_many([Case(text, "print(1)", files=files) for files in (APEX, AS_IT_IS)], 1))
    assert (mended.error, mended.stdout) == ("", "trained\n")
    assert ("IndexError: tuple index out of range" in unmended.error) == fails
    assert ("trained" in unmended.stdout) != fails


@pytest.mark.parametrize("options", [Options(amp="apex-O1"), Options(amp="apex-O2"), Options(ddp="apex")], ids=lambda o: o.command_line())
def test_the_run_instructions_mend_apex(options: Options, tmp_path: Path) -> None:
    done = ddpify.convert(ALONE, options)
    commands = [line for line in done.install.splitlines() if line.startswith("sed ")]
    assert len(commands) == (options.amp == "apex-O1") == done.code.count("next_functions[0][0]")
    utils = tmp_path / "apex" / UTILS
    utils.parent.mkdir(parents=True)
    utils.write_text(AS_IT_IS[UTILS])
    for command in commands:
        subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    assert utils.read_text() == (APEX if commands else AS_IT_IS)[UTILS]


# ----------------------------------------------------------------------------------------------------- away from apex, and to it

ALONE = """\
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.sin(torch.arange(320.0) ** 1.4).view(40, 8)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(8, 6), nn.LayerNorm(6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.0)
for epoch in range(2):
    for a, b in loader:
        loss = nn.functional.mse_loss(model(a), b)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.7)
        optimizer.step()
"""
TOGETHER = """\
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from apex import amp
from apex.normalization import FusedLayerNorm
from apex.optimizers import FusedAdam
from apex.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main():
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    x = torch.sin(torch.arange(320.0) ** 1.4).view(40, 8)
    dataset = TensorDataset(x, x.sum(1, keepdim=True))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=8 // dist.get_world_size(), sampler=sampler)
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 6), FusedLayerNorm(6), nn.Tanh(), nn.Linear(6, 1)).cuda()
    optimizer = FusedAdam(model.parameters(), lr=0.02)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    model = DDP(model)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for a, b in loader:
            loss = nn.functional.mse_loss(model(a.cuda()), b.cuda())
            optimizer.zero_grad()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            nn.utils.clip_grad_norm_(amp.master_params(optimizer), 0.7)
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
"""
MOVES = [Options(amp=amp) for amp in ("keep", "none", "torch", "apex-O2")]


@pytest.fixture(scope="module")
def moved() -> dict[Options, Outcome]:
    cases = [Case(ALONE, ddpify.convert(TOGETHER, options).code, files=APEX) for options in MOVES]
    return dict(zip(MOVES, run_many(cases), strict=True))


@pytest.mark.parametrize("options", MOVES, ids=lambda options: options.amp)
def test_a_distributed_script_is_given_another_precision(options: Options, moved: dict[Options, Outcome]) -> None:
    done = ddpify.convert(TOGETHER, options)
    assert done.exit_code == 0
    assert ("apex" in done.code) == (options.amp in ("keep", "apex-O2"))
    assert ddpify.convert(done.code, options).code == done.code
    assert moved[options].problems() == []


MISSING = {
    "O3": (TOGETHER.replace('"O1"', '"O3"'), "torch", "no equivalent of O3"),
    "another optimizer": (TOGETHER.replace("FusedAdam", "FusedLAMB"), "torch", "no equivalent of apex's FusedLAMB"),
    "no bias correction": (TOGETHER.replace("lr=0.02)", "lr=0.02, bias_correction=False)"), "torch", "without bias correction"),
    "bfloat16": (
        ALONE.replace("        loss =", '        with torch.autocast("cuda", dtype=torch.bfloat16):\n            loss ='),
        "apex-O1",
        "apex has no bfloat16",
    ),
    "amp once more": (ALONE.replace("range(2):", "range(2):\n    optimizer = torch.optim.SGD(model.parameters(), 0.1)"),
                      "apex-O1", "amp.initialize runs once"),
}  # fmt: skip


@pytest.mark.parametrize("title", MISSING)
def test_what_has_no_like_is_said(title: str) -> None:
    text, amp, why = MISSING[title]
    done = ddpify.convert(text, Options(amp=amp))
    assert done.exit_code == 1
    assert [f for f in done.findings if f.level is Safety.MANUAL and why in f.message]


def test_spawned_processes_with_apex(update_golden: bool) -> None:
    options = Options("spawn", amp="apex-O1")
    done, golden = ddpify.convert(ROOT / "s06.py", options), ROOT / "s06_spawn_apex_o1.py"
    if update_golden:
        golden.write_bytes(done.bytes)
    assert (done.code, done.exit_code) == (golden.read_text(), 0)
    path = os.pathsep.join([str(ROOT.parent / "apex_double"), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [python(), "-m", "ddpify", "verify", "s06.py", "s06_spawn_apex_o1.py", "--steps", "8"]
    told = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "under spawn" in told.stdout
