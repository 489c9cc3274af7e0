"""Faults put into rules on purpose, to see whether generated scripts find them: `python -m tests.generate.mutations`.

A fault changes what a rule yields, while the rule says that all is done. It is found where a script whose conversion it touches then ends
in any other way than whole and equal to the original.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests import one another by their file names

from ddpify.edits import Edit, SetArgument
from ddpify.records import replace
from ddpify.rules.base import Change
from ddpify.rules.data import batch_size, evaluation, loader, manual_batches
from ddpify.rules.io import guards
from ddpify.rules.loop import carried, decisions, loss, metrics, set_epoch, settings, steering
from ddpify.rules.model import dataparallel, device, input_gradients, names, wrap
from ddpify.rules.process import seed
from generate.compose import Generated, compose
from generate.runner import Converted, Kind, convert, judged

HANGS = 20.0  # seconds without a result after which a script is taken to hang, as faults make many


@dataclass(frozen=True)
class Fault:
    """What becomes of each change of a rule."""

    title: str
    rule: ModuleType
    becomes: Callable[[Change], Change]

    def put(self) -> mock._patch[Callable[..., Iterator[object]]]:
        """The rule with the fault in it."""
        right = self.rule.changes

        def changes(context: object) -> Iterator[object]:
            for item in right(context):
                yield self.becomes(item) if isinstance(item, Change) else item

        return mock.patch.object(self.rule, "changes", changes)

    def noted(self, altered: set[str]) -> mock._patch[Callable[..., Iterator[object]]]:
        """The rule without the fault, which adds the title to `altered` where the fault would alter a change."""
        right = self.rule.changes

        def changes(context: object) -> Iterator[object]:
            for item in right(context):
                if isinstance(item, Change) and self.becomes(item) != item:
                    altered.add(self.title)
                yield item

        return mock.patch.object(self.rule, "changes", changes)


def _without(change: Change) -> Change:
    """The change with no edits."""
    return replace(change, edits=())


def _without_need(word: str) -> Callable[[Change], Change]:
    return lambda change: replace(change, needs=tuple(n for n in change.needs if n != word))


def _with_text(old: str, new: str) -> Callable[[Change], Change]:
    """The change whose edits write something else."""

    def edited(edit: Edit) -> Edit:
        texts = {key: getattr(edit, key, None) for key in ("template", "code", "header")}
        return replace(edit, **{key: re.sub(old, new, text) for key, text in texts.items() if isinstance(text, str)})

    return lambda change: replace(change, edits=tuple(map(edited, change.edits)))


def _without_argument(keyword: str) -> Callable[[Change], Change]:
    def kept(edit: Edit) -> bool:
        return not (isinstance(edit, SetArgument) and edit.keyword == keyword)

    return lambda change: replace(change, edits=tuple(filter(kept, change.edits)))


FAULTS = (
    Fault("the sampler is left out", loader, _without_argument("sampler")),
    Fault("the sampler does not shuffle", loader, _with_text(r"(DistributedSampler\([^()]*)\)", r"\1, shuffle=False)")),
    Fault("the batch size is not divided", loader, _with_text(r"^per_rank\((.*)\)$", r"\1")),
    Fault("the batch size is divided twice", loader, _with_text(r"^(per_rank\(.*\))$", r"per_rank(\1)")),
    Fault("what follows the batch size is left", batch_size, _without),
    Fault("what follows the batch size is divided twice", batch_size, _with_text(r"^(per_rank\(.*\))$", r"per_rank(\1)")),
    Fault("the sampler is not told the epoch", set_epoch, _without),
    Fault("the sampler is told one epoch always", set_epoch, _with_text(r"set_epoch\(.*\)", "set_epoch(0)")),
    Fault("batches made by hand are not shared out", manual_batches, _without),
    Fault("orders are not shared", steering, _without),
    Fault("a validation's loader is not shared out", evaluation, _without),
    Fault("nothing agrees on a seed", seed, _without_need("agree_on_seed")),
    Fault("the model is not wrapped", wrap, _without),
    Fault("unused parameters are not looked for", wrap, _with_text(", find_unused_parameters=True", "")),
    Fault("names of the wrapper are left", names, _without),
    Fault("DataParallel is left", dataparallel, _without),
    Fault("the device is left", device, _without),
    Fault("gradients of inputs keep the ranks' factor", input_gradients, _without),
    Fault("the loss is a rank's own", loss, _without),
    Fault("the loss lacks the factor of the ranks", loss, _with_text(r" \* world_size", "")),
    Fault("what is carried over batches is a rank's own", carried, _without),
    Fault("reductions are dropped", metrics, _without),
    Fault("a divisor is left", metrics, _with_text(r" / world_size", "")),
    Fault("only the first of several reductions is made", metrics, _with_text(r"\n[^\n]*over_ranks[^\n]*", "")),
    Fault("decisions are each rank's own", decisions, _without),
    Fault("settings are each rank's own", settings, _without),
    Fault("guards are left out", guards, _without),
    Fault("guards are inverted", guards, _with_text(r"rank == 0", "rank != 0")),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.generate.mutations", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first script's seed")
    parser.add_argument("--count", type=int, default=240, help="look for touched conversions among so many scripts")
    parser.add_argument("--touched", type=int, default=8, help="run so many of them, until one finds the fault")
    parser.add_argument("--processes", type=int, default=2, help="convert in so many processes")
    parser.add_argument("words", nargs="*", help="only the faults whose titles hold one of these")
    given = parser.parse_args()
    scripts = [compose(seed) for seed in range(given.seed, given.seed + given.count)]
    chosen = [f for f in FAULTS if not given.words or any(word in f.title for word in given.words)]
    ends = outcomes(chosen, scripts, given.touched, given.processes)
    for fault in chosen:
        seen = ", ".join(f"{n} {kind.value}" for kind, n in ends[fault.title].most_common())
        print(f"{'found ' if is_found(ends[fault.title]) else 'MISSED'}  {fault.title}: {seen or 'no conversion is touched'}", flush=True)
    found = sum(map(is_found, ends.values()))
    print(f"{found} of {len(chosen)} faults found")
    return int(found < len(chosen) * 0.9)


def is_found(ends: Counter[Kind]) -> bool:
    """Whether a script with a fault ended in any other way than whole and equal to the original."""
    return bool(ends.keys() - {Kind.EQUAL})


def outcomes(faults: Sequence[Fault], scripts: Sequence[Generated], touched: int, processes: int = 2) -> dict[str, Counter[Kind]]:
    """How scripts end whose conversions the faults touch, by a fault's title: those of each until one finds it, at most `touched`.

    All scripts are converted once, which tells whose changes a fault would alter; a fault is then put into the conversions of these alone.
    """
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        right = dict(zip((s.seed for s in scripts), pool.map(_observed, scripts, 1), strict=True))
        left = {f: [s for s in scripts if f.title in right[s.seed][1] and not right[s.seed][0].exit_code] for f in faults}
        ends = {fault.title: Counter[Kind]() for fault in faults}
        while tries := [(f, left[f].pop(0)) for f in faults if left[f] and not is_found(ends[f.title]) and ends[f.title].total() < touched]:
            wrong = pool.starmap(_converted, [(FAULTS.index(fault), script) for fault, script in tries], 1)
            run = list[tuple[Fault, Generated, Converted]]()
            for (fault, script), made in zip(tries, wrong, strict=True):
                if made.error or made.exit_code:
                    ends[fault.title][Kind.CRASH if made.error else Kind.ASKED] += 1
                elif made != right[script.seed][0]:
                    run.append((fault, script, made))
            results = judged([script for _, script, _ in run], [made for *_, made in run], 2, HANGS) if run else []
            for (fault, *_), result in zip(run, results, strict=True):
                ends[fault.title][result.kind] += 1
    return ends


def _observed(script: Generated) -> tuple[Converted, frozenset[str]]:
    """The conversion of a script without a fault, and the titles of those that would alter one of its changes."""
    altered: set[str] = set()
    with contextlib.ExitStack() as observed:
        for fault in FAULTS:
            observed.enter_context(fault.noted(altered))
        return convert(script), frozenset(altered)


def _converted(fault: int, script: Generated) -> Converted:
    with FAULTS[fault].put():
        return convert(script)


if __name__ == "__main__":
    sys.exit(main())
