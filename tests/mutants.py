"""Mistakes in right conversions, and what a rehearsal must say of each.

`python tests/mutants.py [WORD ...]` rehearses those whose titles or numbers hold a word, or all, and prints the table.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

from mutant_scripts import SCRIPTS
from quick_python import python as quick_python

from ddpify.rehearse.compare import Row
from ddpify.rehearse.launch import Setting
from ddpify.rehearse.verify import Original, Verdict, verify

EXAMPLES = Path(__file__).parents[1] / "examples"

MISTAKES = {
    1: "set_epoch is missing",
    2: "shuffle=True on a loader that has a sampler",
    3: "validation on rank 0 through the wrapper",
    4: "a collective on rank 0 alone",
    5: "shares of different length",
    6: "a batch skipped on one rank",
    7: "an early stop decided on each rank",
    8: "a plateau on a rank's own loss",
    9: "a metric of one rank's share",
    10: "padded samples in the validation",
    11: "all ranks save",
    12: "keys with module.",
    13: "a checkpoint loaded without map_location",
    14: "weights_only=True for what is more than weights",
    15: "a checkpoint loaded on rank 0 alone",
    16: "all ranks on one GPU",
    17: "the global rank as a device",
    18: "the batch size is not divided",
    19: "the workers are not divided",
    20: "parameters without gradients",
    21: "an attribute read from the wrapper",
    22: "training past the wrapper",
    23: "two forwards before a backward",
    24: "what spawned processes cannot be given",
    25: "no __main__ guard",
    26: "CUDA in the process that spawns",
    27: "a port in use",
    28: "all ranks prepare the data",
    29: "all ranks make a folder",
    30: "all ranks print, log and draw bars",
    31: "one seed for what is drawn in training",
    32: "one rank leaves early",
    33: "the group is not torn down",
    34: "SyncBatchNorm at the wrong place",
    35: "--local_rank alone",
    36: "no_sync at the wrong place",
    37: "clipping before unscaling",
    38: "steps counted by a rank's batch",
    39: "parameters that change after the wrap",
    40: "a barrier on one rank",
    41: "a loss that is not averaged over all ranks' samples",
    42: "data that is not dealt out",
    43: "no wrapper",
    44: "what torch will not have for long",
    45: "a learning rate that nobody asked for",
    46: "tensors of the CPU for nccl, or for a model elsewhere",
}

NOT_SEEN = {
    17: "rank and local rank are one number on a single machine",
    23: "right since torch 2.12; before, it ends in an error that is shown as such",
    34: "after the wrap it makes no difference, as parameters and buffers stay the same ones; on the CPU it is an error: see the table",
    36: "around the backward alone it costs time and nothing else, as the forward decides; around all backwards it is seen: see the table",
}


@dataclass(frozen=True)
class Base:
    """A right conversion: an example or a pair of scripts, the arguments, and how many steps are rehearsed (0: all)."""

    args: tuple[str, ...] = ()
    steps: int = 0

    @staticmethod
    def texts(name: str) -> tuple[str, str]:
        """The original and its conversion."""
        if name in SCRIPTS:
            return SCRIPTS[name]
        return (EXAMPLES / name / "train.py").read_text(), (EXAMPLES / name / "train_ddp.py").read_text()


BASES = {
    "dataparallel_toplevel": Base(("--epochs", "1")),
    "distillation": Base(("--teacher-epochs", "1", "--epochs", "1", "--batch-size", "64")),
    "gan": Base(("--pictures", "128", "--epochs", "2")),
    "imagenet_style": Base(("--epochs", "1", "--width", "4", "--batch-size", "50")),
    "language_model": Base(("--epochs", "1"), 8),
    "trainer_class": Base(("--samples", "200", "--epochs", "3")),
    "tagger": Base(),
    "throws": Base(),
    "waves": Base(),
    "dots": Base(),
}


@dataclass(frozen=True)
class Mutant:
    """A mistake: its number in MISTAKES, the base it is made in, by which edits, and what must be said of it.

    One of `rows` must fail, and its cause, with the rule, must hold `cause`. `launcher` is what must start it, where that is the point.
    """

    title: str
    mistake: int
    base: str
    edits: tuple[tuple[str, str], ...]
    rows: tuple[str, ...]
    cause: str
    launcher: str = ""

    def text(self) -> str:
        """The conversion with the mistake in it."""
        text = Base.texts(self.base)[1]
        for old, new in self.edits:
            assert text.count(old) == 1, f"{self.title}: {text.count(old)} times {old!r}"
            text = text.replace(old, new)
        compile(text, self.title, "exec")
        return text

    def caught_by(self, verdict: Verdict) -> Row | None:
        """The failed row that tells of it for the right reason."""
        failed = (row for row in verdict.rows if row.holds is False and row.name in self.rows)
        return next((row for row in failed if self.cause in f"{row.cause} {row.rule}"), None)


def _lines(text: str, *lines: str) -> tuple[str, str]:
    """An edit that puts other lines, if any, in the place of a line, with its indentation."""
    body = text.strip(" ")
    indent = text[: len(text) - len(body)]
    return f"\n{text}\n", "\n" + "".join(f"{indent}{line}\n" for line in lines)


_DIVIDE = "loader = DataLoader(words, args.batch_size // world_size, sampler=sampler)"
_UNSCALE = "                scaler.unscale_(optimizer)"
_CLIP = "                nn.utils.clip_grad_norm_(model.parameters(), args.clip)"
_LOCAL = (  # a validation of which each rank has its own result
    ("def evaluate(model, loader, device):", "def evaluate(model, loader, device, alone=False):"),
    ("    dist.all_reduce(both)\n", "    if not alone:\n        dist.all_reduce(both)\n"),
)

MUTANTS = (
    Mutant(
        "set_epoch is not called",
        1,
        "trainer_class",
        (_lines("        self.train_loader.sampler.set_epoch(epoch)"),),
        ("set_epoch",),
        "DDP401",
    ),
    Mutant(
        "set_epoch is told one epoch always", 1, "waves", (("sampler.set_epoch(epoch)", "sampler.set_epoch(0)"),), ("set_epoch",), "DDP401"
    ),
    Mutant("shuffle=True stays", 2, "tagger", ((_DIVIDE, _DIVIDE[:-1] + ", shuffle=True)"),), ("ran",), "shuffle=True"),
    Mutant(
        "rank 0 validates through the wrapper",
        3,
        "dots",
        (("(model.module(picture.cuda())", "(model(picture.cuda())"),),
        ("ran",),
        "DDP403",
    ),
    Mutant(
        "rank 0 alone reduces the loss",
        4,
        "tagger",
        (_lines("        dist.all_reduce(both)", "if rank == 0:", "    dist.all_reduce(both)"),),
        ("ran",),
        "DDP403",
    ),
    Mutant(
        "rank 0 alone sums a metric",
        4,
        "language_model",
        (("    total = sum_over_ranks(total) / world_size\n", "    if rank == 0:\n        total = sum_over_ranks(total) / world_size\n"),),
        ("ran",),
        "DDP403",
    ),
    Mutant(
        "one rank has a batch more",
        5,
        "dots",
        (
            ("sampler = DistributedSampler(train_set)", "sampler = SubsetRandomSampler(range(26) if rank == 0 else range(26, 50))"),
            ("import DataLoader, TensorDataset\n", "import DataLoader, SubsetRandomSampler, TensorDataset\n"),
            _lines("    sampler.set_epoch(epoch)"),
        ),
        ("ran", "ranks_agree"),
        "DDP403",
    ),
    Mutant(
        "a bad batch is skipped by its rank alone",
        6,
        "throws",
        (_lines("            dist.all_reduce(finite, dist.ReduceOp.MIN)"),),
        ("ran", "ranks_agree"),
        "DDP403",
    ),
    Mutant(
        "each rank stops by its own validation",
        7,
        "throws",
        (
            *_LOCAL,
            (
                "        if result < best:",
                "        result = evaluate(model.module, val_loader, device, alone=True)\n        if result < best:",
            ),
        ),
        ("ran", "ranks_agree"),
        "DDP403",
    ),
    Mutant(
        "a plateau by each rank's own validation",
        8,
        "throws",
        (*_LOCAL, ("        plateau.step(result)", "        plateau.step(evaluate(model.module, val_loader, device, alone=True))")),
        ("ranks_agree",),
        "learning rates",
    ),
    Mutant("the printed loss is of one rank's share", 9, "tagger", (_lines("        dist.all_reduce(both)"),), ("metrics",), "DDP404"),
    Mutant(
        "an accuracy is of one rank's share",
        9,
        "imagenet_style",
        (_lines("    right_mean.sum = sum_over_ranks(right_mean.sum)"), _lines("    right_mean.count = sum_over_ranks(right_mean.count)")),
        ("metrics",),
        "DDP404",
    ),
    Mutant(
        "a mean of the ranks' means",
        9,
        "throws",
        (("both = torch.tensor([total, count], device=device)", "both = torch.tensor([total / count, 1.0], device=device)"),),
        ("metrics",),
        "DDP404",
    ),
    Mutant(
        "a sum over the ranks is taken for a mean",
        9,
        "trainer_class",
        (("total_loss = sum_over_ranks(total_loss) / world_size", "total_loss = sum_over_ranks(total_loss)"),),
        ("metrics",),
        "DDP404",
    ),
    Mutant(
        "the validation is padded",
        10,
        "throws",
        (("sampler=range(rank, len(val), world_size)", "sampler=DistributedSampler(val, shuffle=False)"),),
        ("metrics",),
        "DDP404",
    ),
    Mutant(
        "all ranks save the checkpoint",
        11,
        "trainer_class",
        (('        if rank == 0:\n            torch.save({"epoch"', '        if True:\n            torch.save({"epoch"'),),
        ("writes",),
        "DDP503",
    ),
    Mutant(
        "rank 1 saves in the place of rank 0",
        11,
        "dots",
        (("if rank == 0:\n    torch.save", "if rank == 1:\n    torch.save"),),
        ("writes",),
        "DDP503",
    ),
    Mutant(
        "the wrapper's keys are saved",
        12,
        "tagger",
        (('{"model": model.module.state_dict()', '{"model": model.state_dict()'),),
        ("checkpoints",),
        "DDP203",
    ),
    Mutant(
        "the best weights are loaded onto the GPU they came from",
        13,
        "throws",
        ((", map_location=device", ""),),
        ("devices",),
        "map_location",
    ),
    Mutant(
        "weights_only=True for a checkpoint with arguments",
        14,
        "throws",
        (("weights_only=False", "weights_only=True"),),
        ("ran",),
        "weights_only",
    ),
    Mutant(
        "rank 0 alone loads the weights",
        15,
        "throws",
        (("    model.module.load_state_dict(start)", "    if rank == 0:\n        model.module.load_state_dict(start)"),),
        ("ranks_agree",),
        "different parameters",
    ),
    Mutant(
        "set_device is missing",
        16,
        "dots",
        (_lines("torch.cuda.set_device(args.local_rank)"), ("device_ids=[args.local_rank]", "device_ids=None")),
        ("devices",),
        "set_device",
    ),
    Mutant(
        "the device is cuda:0",
        16,
        "tagger",
        (('torch.device("cuda", local_rank)', 'torch.device("cuda:0")'), ("device_ids=[local_rank]", "device_ids=None")),
        ("devices",),
        "DDP204",
    ),
    Mutant("the wrapper gets device 0", 16, "waves", (("device_ids=[rank]", "device_ids=[0]"),), ("ran", "devices"), "DDP20"),
    Mutant(
        "the group is joined before a device is chosen",
        16,
        "waves",
        (_lines("    torch.cuda.set_device(rank)", "started = torch.zeros(1).cuda()", "torch.cuda.set_device(rank)"),),
        ("devices",),
        "set_device",
    ),
    Mutant(
        "each rank loads the whole batch", 18, "tagger", (("args.batch_size // world_size", "args.batch_size"),), ("batch_size",), "DDP301"
    ),
    Mutant(
        "the batch is divided twice",
        18,
        "dots",
        (("args.batch_size // world_size", "args.batch_size // world_size // world_size"),),
        ("batch_size",),
        "DDP301",
    ),
    Mutant("each rank starts all workers", 19, "throws", (("args.workers // world_size", "args.workers"),), ("workers",), "num_workers"),
    Mutant("a layer is not used", 20, "tagger", ((", find_unused_parameters=True", ""),), ("ran",), "find_unused_parameters"),
    Mutant("an attribute of the model", 21, "throws", (("model.module.width", "model.width"),), ("ran",), "DDP203"),
    Mutant("an attribute of a generator", 21, "gan", (("painter.module.latent", "painter.latent"),), ("ran",), "DDP203"),
    Mutant(
        "the student is called past its wrapper",
        22,
        "distillation",
        (("criterion(student(points)", "criterion(student.module(points)"),),
        ("ranks_agree",),
        "DDP201",
    ),
    Mutant(
        "a lambda for spawned processes",
        24,
        "waves",
        (
            ("def work(rank, world_size, port):", "def work(rank, world_size, port, change):"),
            ("args=(world_size, port)", "args=(world_size, port, lambda wave: wave)"),
        ),
        ("ran",),
        "lambda",
    ),
    Mutant(
        "the script spawns whenever it is imported",
        25,
        "waves",
        (('if __name__ == "__main__":\n    main()', "main()"),),
        ("ran",),
        "__main__",
    ),
    Mutant(
        "CUDA before the processes are spawned",
        26,
        "waves",
        (_lines("    world_size = torch.cuda.device_count()", "world_size = torch.cuda.device_count()", "probe = torch.zeros(1).cuda()"),),
        ("devices",),
        "DDP204",
    ),
    Mutant(
        "the port is taken",
        27,
        "waves",
        (("with socket.socket() as free:\n", "free = socket.socket()\n    if True:\n"), ("0))\n", "0))\n        free.listen()\n")),
        ("ran",),
        "port",
    ),
    Mutant(
        "all ranks prepare the data",
        28,
        "throws",
        (('if rank == 0 and not os.path.exists("throws.pt")', 'if not os.path.exists("throws.pt")'),),
        ("writes",),
        "DDP503",
    ),
    Mutant(
        "nobody waits for the data",
        28,
        "throws",
        (('        simulate("throws.pt")\n    dist.barrier()\n', '        simulate("throws.pt")\n'),),
        ("ran",),
        "DDP504",
    ),
    Mutant("all ranks make the folder", 29, "throws", ((", exist_ok=True", ""),), ("ran",), "exist_ok"),
    Mutant(
        "all ranks print",
        30,
        "throws",
        (('    if rank == 0:\n        print(f"width', '    if True:\n        print(f"width'),),
        ("prints",),
        "DDP501",
    ),
    Mutant(
        "all ranks log",
        30,
        "dots",
        (
            ("level=logging.INFO if rank == 0 else logging.ERROR", "level=logging.INFO"),
            ("    if rank == 0:\n        wrong", '    logging.info("epoch %d done", epoch)\n    if rank == 0:\n        wrong'),
            _lines('        logging.info("epoch %d done", epoch)'),
        ),
        ("prints",),
        "DDP501",
    ),
    Mutant("all ranks draw a bar", 30, "throws", (("tqdm(train_loader, disable=rank != 0)", "tqdm(train_loader)"),), ("prints",), "bar"),
    Mutant(
        "all ranks keep a log file",
        30,
        "throws",
        (
            _lines(
                '    best, waited = float("inf"), 0', 'best, waited = float("inf"), 0', 'log = open(os.path.join(args.out, "log.csv"), "a")'
            ),
        ),
        ("writes",),
        "DDP503",
    ),
    Mutant("all ranks drop the same units", 31, "throws", (_lines("    torch.manual_seed(rank)"),), ("own_noise",), "DDP103"),
    Mutant(
        "all ranks draw the same noise",
        31,
        "gan",
        (("if rank != 0:\n    torch.manual_seed(torch.initial_seed() + rank)\n", ""),),
        ("own_noise",),
        "DDP103",
    ),
    Mutant(
        "each rank splits the data in its own way",
        31,
        "trainer_class",
        (("set_seed(config.seed)", "set_seed(config.seed + rank)"),),
        ("trajectory", "samples"),
        "DDP",
    ),
    Mutant(
        "rank 1 returns from the training",
        32,
        "waves",
        (
            (
                "        sampler.set_epoch(epoch)\n",
                "        sampler.set_epoch(epoch)\n        if rank == 1 and epoch == 1:\n            return\n",
            ),
        ),
        ("ran",),
        "DDP403",
    ),
    Mutant("the group is left open", 33, "dots", (_lines("dist.destroy_process_group()"),), ("group",), "destroy_process_group"),
    Mutant(
        "SyncBatchNorm on the CPU",
        34,
        "dots",
        ((", nn.Linear(64, 1)).cuda()", ", nn.Linear(64, 1))"), (", device_ids=[args.local_rank]", "")),
        ("ran",),
        "SyncBatchNorm",
    ),
    Mutant(
        "--local-rank is not known", 35, "dots", (('"--local-rank", "--local_rank"', '"--local_rank"'),), ("ran",), "--local-rank", "launch"
    ),
    Mutant("--local_rank under torchrun", 35, "dots", (), ("devices",), "DDP204", "torchrun"),
    Mutant(
        "no backward is synchronised",
        36,
        "tagger",
        (("contextlib.nullcontext() if last else model.no_sync()", "model.no_sync()"),),
        ("ranks_agree",),
        "DDP201",
    ),
    Mutant("clipped before unscaled", 37, "tagger", ((f"{_UNSCALE}\n{_CLIP}\n", f"{_CLIP}\n{_UNSCALE}\n"),), ("trajectory",), "clipped"),
    Mutant("clipped without being unscaled", 37, "tagger", ((f"{_UNSCALE}\n", ""),), ("trajectory",), "clipped"),
    Mutant("unscaled twice", 37, "tagger", ((f"{_UNSCALE}\n", f"{_UNSCALE}\n{_UNSCALE}\n"),), ("ran",), "unscaled twice"),
    Mutant(
        "a schedule by a rank's batches",
        38,
        "tagger",
        (
            (
                "args.epochs * len(loader) // args.accumulate",
                "args.epochs * (len(words) * world_size // args.batch_size) // args.accumulate",
            ),
        ),
        ("trajectory",),
        "learning rate",
    ),
    Mutant(
        "layers thaw after the wrap",
        39,
        "throws",
        (_lines("            model = DDP(model.module, device_ids=[local_rank])"),),
        ("ranks_agree",),
        "DDP201",
    ),
    Mutant(
        "a layer is frozen after the wrap",
        39,
        "waves",
        (
            _lines(
                "    model = DDP(model, device_ids=[rank])",
                "model = DDP(model, device_ids=[rank])",
                "model.module[0].requires_grad_(False)",
            ),
        ),
        ("ran", "trajectory"),
        "DDP201",
    ),
    Mutant("a barrier for rank 0", 40, "dots", (_lines("    dist.barrier()", "if rank == 0:", "    dist.barrier()"),), ("ran",), "DDP403"),
    Mutant(
        "a barrier for all but rank 0",
        40,
        "throws",
        (("                break\n    dist.barrier()\n", "                break\n    if rank != 0:\n        dist.barrier()\n"),),
        ("ran",),
        "DDP403",
    ),
    Mutant(
        "a sum loss", 41, "throws", ((', reduction="sum") * world_size', ', reduction="sum")'),), ("trajectory",), "sums over the batch"
    ),
    Mutant(
        "a masked mean of each rank's own",
        41,
        "tagger",
        (_lines("                dist.all_reduce(tagged)"), ("summed * world_size / tagged", "summed / tagged")),
        ("trajectory",),
        "equally many",
    ),
    Mutant(
        "a mean loss divided by the number of ranks",
        41,
        "dots",
        (("dots.cuda())\n        optimizer", "dots.cuda()) / world_size\n        optimizer"),),
        ("trajectory",),
        "DDP402",
    ),
    Mutant(
        "gradients are averaged twice",
        41,
        "waves",
        (
            (
                "            loss.backward()\n",
                "            loss.backward()\n            for p in model.parameters():\n                p.grad /= world_size\n",
            ),
        ),
        ("trajectory",),
        "DDP402",
    ),
    Mutant(
        "each rank trains on all data",
        42,
        "dots",
        (("DistributedSampler(train_set)", "DistributedSampler(train_set, num_replicas=1, rank=0)"),),
        ("samples",),
        "DDP301",
    ),
    Mutant(
        "all ranks train on the same share",
        42,
        "dots",
        (("DistributedSampler(train_set)", "DistributedSampler(train_set, rank=0)"),),
        ("samples",),
        "DDP301",
    ),
    Mutant("no sampler", 42, "dots", (("sampler=sampler", "shuffle=True"), _lines("    sampler.set_epoch(epoch)")), ("samples",), "DDP301"),
    Mutant(
        "the model is not wrapped",
        43,
        "waves",
        (_lines("    model = DDP(model, device_ids=[rank])"), ("model.module", "model")),
        ("ranks_agree",),
        "DDP201",
    ),
    Mutant(
        "each process is a group of one",
        43,
        "waves",
        (("rank=rank, world_size=world_size)\n    torch", "rank=0, world_size=1)\n    torch"), ("str(port)", "str(port + rank)")),
        ("ran",),
        "DDP101",
    ),
    Mutant(
        "rank 0 alone steps",
        43,
        "dots",
        (_lines("        optimizer.step()", "if rank == 0:", "    optimizer.step()"),),
        ("ranks_agree",),
        "DDP501",
    ),
    Mutant(
        "broadcast_buffers is passed",
        44,
        "dots",
        (("device_ids=[args.local_rank])", "device_ids=[args.local_rank], broadcast_buffers=True)"),),
        ("deprecated",),
        "later torch",
    ),
    Mutant(
        "a scaler of torch.cuda.amp",
        44,
        "tagger",
        (('torch.amp.GradScaler("cuda")', "torch.cuda.amp.GradScaler()"),),
        ("deprecated",),
        "later torch",
    ),
    Mutant(
        "the learning rate is multiplied",
        45,
        "dots",
        (("SGD(model.parameters(), args.lr,", "SGD(model.parameters(), args.lr * world_size,"),),
        ("trajectory",),
        "DDP407",
    ),
    Mutant(
        "a sum of the CPU's for nccl",
        46,
        "throws",
        (("both = torch.tensor([total, count], device=device)", "both = torch.tensor([total, count])"),),
        ("ran",),
        "nccl",
    ),
    Mutant(
        "targets stay on the CPU", 46, "tagger", (("letters.to(device), tags.to(device)", "letters.to(device), tags"),), ("ran",), "DDP204"
    ),
)


def seen(verdict: Verdict) -> str:
    """What failed, in a line each."""
    if verdict.reason:
        return f"could not run: {verdict.reason}"
    rows = [row for row in verdict.rows if row.holds is False]
    return "\n".join(f"{row.name}: {' '.join(row.seen.split())[:110]} | {row.cause} {row.rule}" for row in rows) or "all hold"


def started() -> mock._patch[Any]:
    """Scripts are started anew, their ranks by a launcher: nothing is forked."""
    return mock.patch("ddpify.rehearse.launch.Forks.start", return_value=None)


class Rehearsals:
    """Rehearses bases and mutants of them in a folder; each original runs once, and no launcher starts ranks unless one is named."""

    def __init__(self, folder: Path, python: str = "", idle: float = 5.0) -> None:
        python = python or quick_python()
        self._folder, self._setting, self._stack = folder, Setting(python, 2, 0, 600.0, True, idle=idle), ExitStack()
        self._originals: dict[str, Original] = {}

    def __enter__(self) -> Rehearsals:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, base: str, text: str, launcher: str = "") -> Verdict:
        """A conversion held against the base's original."""
        folder = self._folder / base
        folder.mkdir(exist_ok=True)
        (folder / "train_ddp.py").write_text(text)
        here = Path.cwd()
        os.chdir(folder)
        try:
            if base not in self._originals:
                Path("train.py").write_text(Base.texts(base)[0])
                self._originals[base] = self._stack.enter_context(Original(Path("train.py"), BASES[base].args))
            setting = replace(self._setting, steps=BASES[base].steps)
            with started() if launcher else nullcontext():
                return verify(self._originals[base], Path("train_ddp.py"), setting, launcher)
        finally:
            os.chdir(here)


def table(mutants: Iterable[Mutant], rehearse: Callable[[Mutant], Verdict]) -> list[str]:
    """Rehearse mutants and print a line of each; the titles of those that were not caught."""
    missed = []
    for mutant in mutants:
        verdict = rehearse(mutant)
        row = mutant.caught_by(verdict)
        missed += [] if row else [mutant.title]
        print(f"{'caught' if row else 'MISSED'}  {mutant.mistake:2}  {mutant.title} [{mutant.base}]", flush=True)
        print(f"            expected {' or '.join(mutant.rows)}, because of {mutant.cause!r}")
        print("".join(f"            {line}\n" for line in seen(verdict).splitlines()), end="", flush=True)
    return missed


def main(words: list[str]) -> int:
    """Print the table; the number of those that were not caught."""
    chosen = [m for m in MUTANTS if not words or any(w == str(m.mistake) or w in m.title or w == m.base for w in words)]
    with tempfile.TemporaryDirectory(prefix="mutants-") as name, Rehearsals(Path(name).resolve()) as rehearsals:
        missed = table(chosen, lambda m: rehearsals.of(m.base, m.text(), m.launcher))
    print(f"\n{len(chosen) - len(missed)} of {len(chosen)} caught" + "".join(f"\n  missed: {title}" for title in missed))
    for number, why in () if words else NOT_SEEN.items():
        print(f"not rehearsed: {number} {MISTAKES[number]}: {why}")
    return len(missed)


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = os.pathsep.join([str(EXAMPLES.parent), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    sys.exit(1 if main(sys.argv[1:]) else 0)
