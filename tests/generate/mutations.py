"""Faults put into rules on purpose, to see whether generated scripts find them: `python -m tests.generate.mutations`.

A fault changes what a rule yields, while the rule says that all is done. It is found where a script whose conversion it touches then ends
in any other way than whole and equal to the original.
"""

from __future__ import annotations

import argparse
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
from ddpify.rules.loop import carried, decisions, loss, metrics, set_epoch, steering
from ddpify.rules.model import dataparallel, device, input_gradients, names, wrap
from ddpify.rules.process import seed
from generate.compose import Generated, compose
from generate.runner import Converted, Kind, convert, judged

AT_ONCE = 24


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
    Fault("the batch size is not divided", batch_size, _without),
    Fault("the batch size is divided twice", batch_size, _with_text(r"^(per_rank\(.*\))$", r"per_rank(\1)")),
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
    Fault("guards are left out", guards, _without),
    Fault("guards are inverted", guards, _with_text(r"rank == 0", "rank != 0")),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.generate.mutations", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first script's seed")
    parser.add_argument("--count", type=int, default=240, help="look for touched conversions among so many scripts")
    parser.add_argument("--touched", type=int, default=8, help="run so many of them")
    parser.add_argument("words", nargs="*", help="only the faults whose titles hold one of these")
    given = parser.parse_args()
    scripts = [compose(seed) for seed in range(given.seed, given.seed + given.count)]
    chosen = [f for f in FAULTS if not given.words or any(word in f.title for word in given.words)]
    right: list[Converted] = []
    found = 0
    for fault in chosen:
        ends = outcomes(fault, scripts, right, given.touched)
        found += (caught := bool(ends.keys() - {Kind.EQUAL}))
        seen = ", ".join(f"{n} {kind.value}" for kind, n in ends.most_common())
        print(f"{'found ' if caught else 'MISSED'}  {fault.title}: {seen or 'no conversion is touched'}", flush=True)
    print(f"{found} of {len(chosen)} faults found")
    return int(found < len(chosen) * 0.9)


def outcomes(fault: Fault, scripts: Sequence[Generated], right: list[Converted], touched: int) -> Counter[Kind]:
    """How scripts end whose conversions a fault touches; `right` are those without it, as far as they were asked for yet."""
    some: list[tuple[Generated, Converted]] = []
    for first in range(0, len(scripts), AT_ONCE):
        part = scripts[first : first + AT_ONCE]
        right += _converted(part) if len(right) <= first else []
        with fault.put():
            wrong = _converted(part)
        before = right[first : first + AT_ONCE]
        some += [(s, w) for s, b, w in zip(part, before, wrong, strict=True) if not b.exit_code and w != b]
        if len(some) >= touched:
            break
    some = some[:touched]
    run = [(s, c) for s, c in some if not c.error and not c.exit_code]
    results = judged([s for s, _ in run], [c for _, c in run], 2, 15.0) if run else []
    told = [Kind.CRASH if c.error else Kind.ASKED for _, c in some if c.error or c.exit_code]
    return Counter([*(result.kind for result in results), *told])


def _converted(scripts: Sequence[Generated]) -> list[Converted]:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(convert, scripts, 1)


if __name__ == "__main__":
    sys.exit(main())
