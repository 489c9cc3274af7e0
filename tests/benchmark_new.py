"""How long a step of the image project takes beside the same training written with accelerate and with Lightning Fabric.

`python tests/benchmark_new.py [--python EXE] [--runs N]`: EXE has torch, tqdm, accelerate and lightning; ddpify itself runs elsewhere.
The environment is the same for all; run.sh of a project, for one, sets MALLOC_MMAP_THRESHOLD_=33554432 and
MALLOC_TRIM_THRESHOLD_=536870912, without which the history of the heap decides a tenth of a step.
The three take turns on two CPU ranks, with the same model, data, batch, clipping, schedule, progress bar and logging. A step is timed
from the start of one to the start of the next on rank 0, so that it holds loading and logging, too.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from ddpify.scaffold import Settings, render, write

OURS = """\
import time

import train

starts, step = [], train.train_step


def timed(*args):
    starts.append((time.perf_counter(), time.process_time()))
    return step(*args)


train.train_step = timed
arguments = train.parse_args()
train.distributed.init_distributed()
train.train(arguments)
"""
COMMON = """\
import argparse
import json
import math
import time
from pathlib import Path

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader
from tqdm import tqdm

from {package}.data import make_datasets
from {package}.model import make_model

parser = argparse.ArgumentParser()
parser.add_argument("--out", type=Path)
parser.add_argument("--batch-size", type=int)
parser.add_argument("--workers", type=int)
parser.add_argument("--max-steps", type=int)
parser.add_argument("--epochs", type=int)
args = parser.parse_args()
args.out.mkdir(exist_ok=True)


def factor(step):
    if step < 20:
        return (step + 1) / 20
    return (1 + math.cos(math.pi * (step - 20) / max(1, args.epochs * len(loader) - 20))) / 2


torch.manual_seed(0)
starts, step = [], 0
"""
ACCELERATE = """\
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
main, share = accelerator.is_main_process, args.batch_size // accelerator.num_processes
loader = DataLoader(make_datasets()[0], share, shuffle=True, drop_last=True, num_workers=args.workers // accelerator.num_processes)
model = make_model()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
file = (args.out / "metrics.jsonl").open("a")
for epoch in range(args.epochs):
    losses = []
    for images, labels in tqdm(loader, disable=None if main else True):
        starts.append((time.perf_counter(), time.process_time()))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.detach())
        step += 1
        if step % 10 == 0:
            mean = accelerator.reduce(torch.stack(losses).mean(), "mean").item()
            losses.clear()
            if main:
                tqdm.write(f"step {step}: loss {mean:.4g}")
                print(json.dumps({"step": step, "loss": mean}), file=file, flush=True)
        if step == args.max_steps:
            break
    if step == args.max_steps:
        break
accelerator.end_training()
"""
FABRIC = """\
from lightning.fabric import Fabric

fabric = Fabric(accelerator="cpu", strategy="ddp", devices=2)
fabric.launch()
main, share = fabric.is_global_zero, args.batch_size // fabric.world_size
loader = DataLoader(make_datasets()[0], share, shuffle=True, drop_last=True, num_workers=args.workers // fabric.world_size)
model = make_model()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
model, optimizer = fabric.setup(model, optimizer)
loader = fabric.setup_dataloaders(loader)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
file = (args.out / "metrics.jsonl").open("a")
for epoch in range(args.epochs):
    loader.sampler.set_epoch(epoch)
    losses = []
    for images, labels in tqdm(loader, disable=None if main else True):
        starts.append((time.perf_counter(), time.process_time()))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        fabric.backward(loss)
        fabric.clip_gradients(model, optimizer, max_norm=1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.detach())
        step += 1
        if step % 10 == 0:
            mean = fabric.all_reduce(torch.stack(losses).mean(), reduce_op="mean").item()
            losses.clear()
            if main:
                tqdm.write(f"step {step}: loss {mean:.4g}")
                print(json.dumps({"step": step, "loss": mean}), file=file, flush=True)
        if step == args.max_steps:
            break
    if step == args.max_steps:
        break
"""
END = """
import json
import os

if os.environ["RANK"] == "0":
    (arguments if "arguments" in globals() else args).out.joinpath("starts.json").write_text(json.dumps(starts))
"""
NAMES = {"ours": "plain DDP (ddpify new)", "accelerate": "accelerate", "fabric": "Lightning Fabric"}


def step_time(python: str, project: Path, name: str, args: argparse.Namespace) -> tuple[float, float]:
    """Milliseconds of a step, by the clock and of rank 0's CPU: medians from the tenth on, so that the ends of epochs do not count."""
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", f"timed_{name}.py", f"--out={folder}"]
        command += [f"--batch-size={args.batch_size}", f"--workers={args.workers}", f"--max-steps={args.steps}", "--epochs=100"]
        environment = {**os.environ, "PYTHONPATH": str(project), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        ran = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
        if not (written := Path(folder, "starts.json")).exists():
            raise RuntimeError(f"{name} did not run:\n{ran.stderr[-3000:]}")
        starts = json.loads(written.read_text())[10:]
    clock, cpu = ([1000 * (after[i] - before[i]) for before, after in pairwise(starts)] for i in (0, 1))
    return statistics.median(clock), statistics.median(cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="interpreter that has accelerate and lightning")
    parser.add_argument("--runs", type=int, default=7, help="turns that each of the three takes")
    parser.add_argument("--steps", type=int, default=110, help="steps of a run; the first ten do not count")
    parser.add_argument("--batch-size", type=int, default=64, help="samples of both ranks together")
    parser.add_argument("--workers", type=int, default=0, help="processes that load data, for both ranks together")
    args = parser.parse_args()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in NAMES}
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "project")
        write(project, render(Settings(name="pictures")))
        common = COMMON.format(package="pictures")
        for name, text in {"ours": OURS, "accelerate": common + ACCELERATE, "fabric": common + FABRIC}.items():
            (project / f"timed_{name}.py").write_text(text + END)
        for run in range(args.runs):
            for name in list(NAMES)[run % 3 :] + list(NAMES)[: run % 3]:
                times[name].append(step_time(args.python, project, name, args))
            shown = (f"{name} {clock:.2f} ms ({cpu:.2f} of the CPU)" for name in NAMES for clock, cpu in times[name][-1:])
            print(f"run {run}:", ", ".join(shown), file=sys.stderr, flush=True)
    print(f"{args.batch_size} samples in a step, 2 CPU ranks, medians of {args.runs} runs of {args.steps} steps in turn\n")
    print(f"{'':24}{'ms a step':>10}{'fastest':>10}{'slowest':>10}{'ours / it':>11}{'CPU ms':>10}{'ours / it':>11}")
    for name, title in NAMES.items():
        (clock, cpu), own = zip(*times[name], strict=True), list(zip(*times["ours"], strict=True))
        ratios = [statistics.median(a / b for a, b in zip(x, y, strict=True)) for x, y in zip(own, (clock, cpu), strict=True)]
        print(f"{title:24}{statistics.median(clock):10.2f}{min(clock):10.2f}{max(clock):10.2f}{ratios[0]:11.3f}", end="")
        print(f"{statistics.median(cpu):10.2f}{ratios[1]:11.3f}")


if __name__ == "__main__":
    main()
