"""What a failed property most likely comes from, and the rule that decides it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from ddpify.rehearse.compare import Pair, Parting, Row, apart, parting
from ddpify.rehearse.history import Rank, Step

Cause = tuple[str, str]  # a sentence, and a rule's code
_OF_THE_END = frozenset(("ranks_agree", "trajectory", "metrics", "checkpoints", "group"))  # rows that need a run to its end
Judge = Callable[[Pair, Row, dict[str, Row]], Cause]


def explained(pair: Pair, rows: list[Row]) -> list[Row]:
    """The rows, those that failed with their cause."""
    by_name = {row.name: row for row in rows}
    found: list[Row] = []
    for row in rows:
        cause, rule = "", ""
        if row.holds is False and row.name in _OF_THE_END and found and not found[0].holds:
            cause, rule = "it did not run to the end (see above)", found[0].rule
        elif row.holds is False and (judge := _JUDGES.get(row.name)):
            cause, rule = judge(pair, row, by_name)
        found.append(replace(row, cause=cause, rule=rule))
    return found


# --- failures -------------------------------------------------------------------------------------------------------------
_ERRORS: tuple[tuple[str, str, str], ...] = (
    (
        "on the same device",
        "a tensor is where the loader left it: inputs, targets and model belong on the rank's device",
        "DDP204",
    ),
    ("invalid device ordinal", "a device is named by a number that this rank does not have: use its local rank", "DDP204"),
    ("device_ids", "DistributedDataParallel gets one device, the rank's own, and only where the model is on it", "DDP201"),
    ("module must have its parameters", "the model is on another device than DataParallel computes on", "DDP202"),
    (
        "No backend type associated",
        "nccl moves tensors of GPUs only: use the rank's device, or the backend cpu:gloo,cuda:nccl",
        "DDP101",
    ),
    ("process group", "a collective, or a question about ranks, before init_process_group", "DDP101"),
    ("twice", "init_process_group is called a second time", "DDP101"),
    ("finished reduction", "some parameters got no gradient: find_unused_parameters=True, or all of them in the loss", "DDP201"),
    ("ready only once", "a part of the model is gone back through twice: static_graph=True, or checkpointing without reentry", "DDP201"),
    ("inplace operation", "two forwards before one backward change buffers in place: batch the two, or torch 2.12 and later", "DDP201"),
    ("requires a gradient", "a model that is not trained is wrapped", "DDP201"),
    ("has no attribute", "an attribute of the model is read from its wrapper: read it from .module", "DDP203"),
    ("Missing key(s)", "a checkpoint's keys have the prefix module. on one side only: load into and save .module", "DDP203"),
    ("sampler option is mutually exclusive", "shuffle=True stays on a loader that has a sampler", "DDP301"),
    ("unrecognized arguments: --local", "torch.distributed.launch passes --local-rank, which the parser does not know", "DDP101"),
    ("EADDRINUSE", "the port is taken: leave MASTER_PORT to the launcher", "DDP101"),
    ("address already in use", "the port is taken: leave MASTER_PORT to the launcher", "DDP101"),
    ("File exists", "every rank makes the same folder: exist_ok=True", "DDP503"),
    ("Can't pickle", "spawned processes get a copy of their arguments: no lambdas, local classes or open files among them", "DDP101"),
    ("Can't get attribute", "spawned processes look for it in the module: define it at its top level", "DDP101"),
    ("freeze_support", "spawned processes import the script again: start the training under if __name__ == '__main__'", "DDP101"),
    ("Timed out waiting", "another rank did not come to the same collective", "DDP403"),
    ("unscale_() has already been called", "the gradients of one step are unscaled twice", "DDP413"),
    (
        "Weights only load failed",
        "a checkpoint holds more than plain values: weights_only=False for files of your own",
        "DDP503",
    ),
    ("SyncBatchNorm", "SyncBatchNorm needs a GPU: convert only a model that is on one", "DDP201"),
    ("No such file", "it reads what another rank writes: a barrier between the two", "DDP504"),
)


def _ran(pair: Pair, row: Row, rows: dict[str, Row]) -> Cause:
    if "waited for each other" in row.seen or "had not ended" in row.seen:
        counts = {r: len(rank.steps) for r, rank in pair.ranks.ranks.items()}
        ended = [r for r, rank in pair.ranks.ranks.items() if rank.ended]
        if ended and len(ended) < len(counts):
            return f"rank {ended[0]} has ended, the others wait for it: all ranks must leave a loop together", "DDP403"
        if len(set(counts.values())) > 1:
            return f"the ranks took {counts} steps: a branch, a loop or a guard is not the same on all of them", "DDP403"
        return "a collective (a forward through DDP in training, a barrier, a reduction) that not all ranks come to", "DDP403"
    if "took part" in row.seen:
        return "the processes do not join one group: init_process_group before the training", "DDP101"
    if "was ended from outside" in row.seen:
        return "the system ended it, as it does when memory is short, or it ended itself with a signal or os._exit", ""
    if "waited for it" in row.seen:
        return "a rank leaves while the others go on: all ranks must leave a loop, and the script, together", "DDP403"
    for part, cause, rule in _ERRORS:
        if part in row.seen:
            return cause, rule
    return "", ""


# --- parameters -----------------------------------------------------------------------------------------------------------
def _agree(pair: Pair, row: Row, rows: dict[str, Row]) -> Cause:
    first = pair.ranks.first
    if "took optimizer steps" in row.seen or "no rank took" in row.seen:
        return "the ranks wait for what only rank 0 does, or train under a guard", "DDP501"
    if "plateau" in row.seen:
        return "each rank tells its scheduler a number of its own, so that the learning rates will differ: reduce it first", "DDP403"
    if "steps on the ranks" in row.seen:
        return "the ranks have shares of different length, or leave the loop by a decision of their own", "DDP403"
    for rank in list(pair.ranks.ranks.values())[1:]:
        start = [
            apart(first.optimizers[o]["parameters"], rank.optimizers[o]["parameters"], pair.tolerance)[0]
            for o in first.optimizers
            if o in rank.optimizers
        ]
        if any(by > pair.tolerance.relative for by in start):
            return "they start from different parameters: what is not wrapped, or changes after the wrap, is not made alike", "DDP201"
        step = next(
            (
                i
                for i, (a, b) in enumerate(zip(first.steps, rank.steps, strict=False))
                if apart(a.parameters, b.parameters, pair.tolerance)[0] > 1e-9
            ),
            0,
        )
        if step < min(len(first.steps), len(rank.steps)):
            a, b = first.steps[step], rank.steps[step]
            if a.rates != b.rates:
                return f"the learning rates differ: {a.rates} on rank 0, {b.rates} on rank {rank.number}", "DDP403"
            if _gradients_apart(a, b) <= 1e-9:
                return (
                    "the gradients agree, what the step makes of them does not: parameters are changed by hand",
                    "DDP205",
                )
        return (
            "gradients are not averaged: the forward does not go through DistributedDataParallel",
            "DDP201",
        )
    return "", ""


def _gradients_apart(a: Step, b: Step) -> float:
    pairs = [(x, y) for x, y in zip(a.gradients, b.gradients, strict=False) if x is not None and y is not None]
    scale = max((max(x[-1], y[-1]) for x, y in pairs), default=0.0) or 1.0
    return max((abs(p - q) / scale for x, y in pairs for p, q in zip(x, y, strict=True)), default=0.0)


def _trajectory(pair: Pair, row: Row, rows: dict[str, Row]) -> Cause:
    single, first = pair.single.first, pair.ranks.first
    found = parting(single, first, pair.tolerance)
    if found.step is None:
        if not first.steps:
            return "", ""
        if (batch := rows.get("batch_size")) and batch.holds is False:
            return "each rank loads the original's whole batch, so that an epoch has fewer steps", "DDP301"
        return "the loop runs another number of times: bounds, lengths or drop_last depend on a rank's share", "DDP301"
    if not rows["ranks_agree"].holds:
        return "the ranks do not train together (see above)", rows["ranks_agree"].rule
    if found.step == 0 or any(o not in first.optimizers for o in single.optimizers):
        for o, event in single.optimizers.items():
            other = first.optimizers.get(o)
            if other is None or event["shapes"] != other["shapes"]:
                return "an optimizer holds other parameters than the original's", "DDP201"
            if apart(event["parameters"], other["parameters"], pair.tolerance)[0] > pair.tolerance.relative:
                return (
                    "they start from different weights: drawn in another order, or with another seed",
                    "DDP103",
                )
    return _step_cause(pair, single, found)


def _step_cause(pair: Pair, single: Rank, found: Parting) -> Cause:
    """What differs in the step at which the two part."""
    assert found.step is not None
    one, ranks = single.steps[found.step], [rank.steps[found.step] for rank in pair.ranks.ranks.values() if found.step < len(rank.steps)]
    other = ranks[0]
    if one.rates and other.rates and not all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(one.rates, other.rates, strict=False)):
        return f"the learning rate is {other.rates[0]:g}, the original's {one.rates[0]:g}", "DDP407" if found.step == 0 else "DDP403"
    if one.samples and any(step.samples for step in ranks):
        wanted, got = Counter(one.samples), Counter(s for step in ranks for s in step.samples)
        if wanted != got:
            return _samples_cause(pair, wanted, got)
    ratio = _ratio(one, other)
    if ratio is not None and not math.isclose(ratio, 1.0, rel_tol=1e-3):
        n = pair.nproc
        if math.isclose(ratio, 1 / n, rel_tol=1e-3):
            return (
                f"the gradient is 1/{n} of the original's: multiply a loss that sums over the batch by {n}",
                "DDP402",
            )
        if math.isclose(ratio, n, rel_tol=1e-3):
            return f"the gradient is {n} times the original's: a sum over the ranks where an average is meant", "DDP402"
        return f"the gradient is {ratio:.4g} times the original's: clipped, scaled or accumulated differently", "DDP402"
    missing = [i for i, (a, b) in enumerate(zip(one.gradients, other.gradients, strict=False)) if (a is None) != (b is None)]
    if missing:
        names = single.optimizers[one.optimizer]["names"]
        return f"{names[missing[0]]} has a gradient on one side only", "DDP201"
    if one.gradients and other.gradients and _gradients_apart(one, other) <= pair.tolerance.relative:
        return "the gradients agree, what the step makes of them does not: the optimizers differ", "DDP201"
    if _without_rows(pair):
        return _NO_ROWS
    return (
        "the loss is not an average over equally many samples on every rank, or couples a batch's samples",
        "DDP402",
    )


def _samples_cause(pair: Pair, wanted: Counter[tuple[int, str]], got: Counter[tuple[int, str]]) -> Cause:
    if got.total() >= pair.nproc * wanted.total() and all(n >= pair.nproc for s, n in got.items() if s in wanted):
        return "every rank trains on the original's whole batch: the training data is not sharded", "DDP301"
    if got.total() == pair.nproc * wanted.total():
        return (
            f"a step sees {got.total()} samples, the original's {wanted.total()}: the batch size is not divided",
            "DDP303",
        )
    if got.total() > wanted.total() and not wanted - got:
        return f"the last batch repeats {got.total() - wanted.total()} samples so that all ranks have equally many", ""
    return (
        f"a step sees {got.total()} samples, the original's {wanted.total()}: order, shares or drop_last differ",
        "DDP301",
    )


def _ratio(one: Step, other: Step) -> float | None:
    """By what the original's gradient must be multiplied to be the ranks'; None where that is no number."""
    pairs = [(a, b) for a, b in zip(one.gradients, other.gradients, strict=False) if a is not None and b is not None]
    dot = math.fsum(x * y for a, b in pairs for x, y in zip(a[:-1], b[:-1], strict=True))
    own = math.fsum(x * x for a, _ in pairs for x in a[:-1])
    if not own or not math.isfinite(own) or not math.isfinite(dot):
        return None
    ratio = dot / own
    rest = math.fsum((y - ratio * x) ** 2 for a, b in pairs for x, y in zip(a[:-1], b[:-1], strict=True))
    return ratio if rest <= 1e-8 * max(own, 1e-300) * max(ratio * ratio, 1e-300) else None


# --- the rest -------------------------------------------------------------------------------------------------------------
def _samples(pair: Pair, row: Row, rows: dict[str, Row]) -> Cause:
    if "same samples" in row.seen or "repeated" in row.seen:
        return "the training loader has no DistributedSampler: every rank trains on the whole data set", "DDP301"
    return "samples are dropped: drop_last, a share that is cut short, or a loop that is left early", "DDP301"


def _divided(pair: Pair, row: Row, rows: dict[str, Row]) -> Cause:
    if row.name == "workers":
        return "num_workers is for each process: divide it by the number of ranks on a node", "DDP301"
    return "the batch size is for each process: divide it by the number of ranks, or ask for --batch-size per-rank", "DDP301"


def _devices(pair: Pair, row: Row, rows: dict[str, Row]) -> Cause:
    if "process that spawns" in row.seen:
        return "CUDA is used before the processes are spawned: it holds memory on that device for nothing, and cannot be forked", "DDP204"
    if "before it joins" in row.seen:
        return "CUDA is used before torch.cuda.set_device(local_rank): it opens a context on the first device", "DDP204"
    return "a device is named by a fixed number, or torch.cuda.set_device(local_rank) is missing; torch.load needs map_location", "DDP204"


_NO_ROWS = ("no loader deals out the batches, and numbers drawn for their rows cannot be made the same on both sides", "")


def _without_rows(pair: Pair) -> bool:
    """Whether numbers are drawn in the training for batches that no loader deals out."""
    return "no_rows" in pair.single.conditions() | pair.ranks.conditions()


def _metrics(pair: Pair, row: Row, rows: dict[str, Row]) -> Cause:
    if rows["trajectory"].holds is None and _without_rows(pair):
        return _NO_ROWS
    if rows["trajectory"].holds is False:
        return "the trainings differ (see above), so do their numbers", rows["trajectory"].rule
    if "is missing" in row.seen:
        return "rank 0 does not come to this line, or a guard is too wide", "DDP501"
    return "the number is of one rank's share: reduce it over all ranks", "DDP404"


def _checkpoints(pair: Pair, row: Row, rows: dict[str, Row]) -> Cause:
    if "DistributedDataParallel" in row.seen or "module." in row.seen:
        return "the wrapper is saved: save .module, whose keys are the original's", "DDP203"
    if "is not saved" in row.seen:
        return "no rank saves it: a guard is too wide, or the ranks never come there", "DDP503"
    if rows["trajectory"].holds is False:
        return "the trainings differ (see above), so do their checkpoints", rows["trajectory"].rule
    return "it holds a number or a buffer of one rank's share", "DDP404"


def _deprecated(pair: Pair, row: Row, rows: dict[str, Row]) -> Cause:
    rule = "DDP201" if "buffers" in row.seen else "DDP101" if "launch" in row.seen else "DDP410"
    return "a spelling that a later torch will not have", rule


def _always(cause: str, rule: str) -> Judge:
    return lambda pair, row, rows: (cause, rule)


_JUDGES: dict[str, Judge] = {
    "ran": _ran,
    "ranks_agree": _agree,
    "trajectory": _trajectory,
    "samples": _samples,
    "set_epoch": _always("the sampler's epoch is not set: loader.sampler.set_epoch(epoch) before each pass", "DDP401"),
    "batch_size": _divided,
    "workers": _divided,
    "devices": _devices,
    "prints": _always("a print, a log line or a bar without `if rank == 0:`", "DDP501"),
    "writes": _always("a file that every rank writes: `if rank == 0:` around it", "DDP503"),
    "metrics": _metrics,
    "checkpoints": _checkpoints,
    "own_noise": _always("the seed is the same on all ranks in the training: add the rank to it once the weights are made", "DDP103"),
    "group": _always("dist.destroy_process_group() is missing, or not reached", "DDP101"),
    "deprecated": _deprecated,
    "declared": _always("it is not what the project says of it: correct what is declared, or take it away", "DDP903"),
}
