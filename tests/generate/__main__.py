"""Generates scripts, converts and runs them, and prints what came of them: `python -m tests.generate --seed 1 --count 100`."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests import one another by their file names

from ddpify import Options
from generate.choices import chosen
from generate.compose import compose
from generate.epoch_metrics import metric
from generate.expressions import forward, loss
from generate.gradients import gradients
from generate.kept_state import kept
from generate.mixed import mixed
from generate.of_ranks import of_ranks
from generate.reduce import reduced
from generate.report import common_features, written
from generate.runner import Kind, Result, examine

GRAMMARS = {
    "scripts": compose,
    "losses": loss,
    "forwards": forward,
    "metrics": metric,
    "states": kept,
    "choices": chosen,
    "mixed": mixed,
    "gradients": gradients,
    "ranks": of_ranks,
}
AT_ONCE = 60
BAD = (Kind.SILENT, Kind.CRASH, Kind.FALSE_ALARM, Kind.INVALID)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.generate", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first script's seed; each script has the next one")
    parser.add_argument("--count", type=int, default=60, help="how many scripts")
    parser.add_argument("--of", choices=GRAMMARS, default="scripts", help="whole scripts, or random lines in one place of a script")
    parser.add_argument("--ranks", type=int, default=2, choices=(2, 3))
    parser.add_argument("--feature", default="", help="only scripts of which a feature holds this, as `data: own sampler`")
    parser.add_argument("--reduce", type=int, default=3, metavar="N", help="reduce so many of the bad outcomes of each kind")
    parser.add_argument("--out", type=Path, help="write the scripts of bad outcomes, their conversions and problems here")
    parser.add_argument("--launcher", default="torchrun", help="what starts the conversions: torchrun, launch or spawn")
    parser.add_argument("--amp", default="keep", help="the mixed precision that is asked for, as `torch` or `apex-O2`")
    given = parser.parse_args()
    options = Options(given.launcher, amp=given.amp)
    since, results = time.monotonic(), list[Result]()
    scripts = (replace(GRAMMARS[given.of](seed), options=options) for seed in itertools.count(given.seed))
    scripts = itertools.islice((s for s in scripts if any(given.feature in feature for feature in s.features)), given.count)
    while chosen := list(itertools.islice(scripts, AT_ONCE)):
        results += (some := examine(chosen, given.ranks))
        for result in some:
            if result.kind in BAD and given.out:
                written(result, given.out)
            if result.kind in (Kind.SILENT, Kind.CRASH, Kind.INVALID):
                print(f"{result.kind.name} seed {result.script.seed}: {result.problems[0].strip().splitlines()[-1][:200]}", flush=True)
    minutes = (time.monotonic() - since) / 60
    counts = Counter(result.kind for result in results)
    print(f"{len(results)} scripts on {given.ranks} ranks, {len(results) / minutes:.0f} a minute")
    for kind in Kind:
        print(f"{counts[kind]:5}  {kind.value}")
    for kind in (Kind.SILENT, Kind.CRASH, Kind.FALSE_ALARM, Kind.ASKED):
        print(common_features(results, kind), end="")
    for kind in (Kind.SILENT, Kind.CRASH, Kind.FALSE_ALARM):
        for result in [r for r in results if r.kind is kind][: given.reduce]:
            print(f"\n# {kind.value}, seed {result.script.seed}: {'; '.join(result.problems or result.converted.findings)[:300]}")
            print(reduced(result, given.ranks).text)
    return int(bool(counts[Kind.SILENT] + counts[Kind.CRASH]))


if __name__ == "__main__":
    sys.exit(main())
