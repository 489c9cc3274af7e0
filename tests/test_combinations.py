"""Every launcher, precision and wrapper, over the examples: converted, compiled, and run on two ranks where the CPU can.

With torchrun every precision is met with every wrapper in half of the examples, with the others in a third, another for each example.
"""

import functools
import itertools
from pathlib import Path

import pytest
from ranks import Case, Outcome, run_many
from scripts import APEX
from test_examples import DRAWN, NAMES, ROOT

import ddpify
from ddpify import Conversion, Options
from ddpify.rules.base import Safety

LAUNCHERS = ("torchrun", "launch", "spawn")
PRECISIONS = ("keep", "none", "torch", "torch-bf16", "apex-O0", "apex-O1", "apex-O2", "apex-O3")
WRAPPERS = ("torch", "apex")
ASKED = [Options(launcher, amp=amp, ddp=ddp) for launcher, amp, ddp in itertools.product(LAUNCHERS, PRECISIONS, WRAPPERS)]  # type: ignore[arg-type]
# amp is initialised once, and this script makes an optimizer while it trains
REFUSED = {("distillation", amp) for amp in PRECISIONS if amp.startswith("apex")}


def asked(name: str, launcher: str) -> list[Options]:
    """What is asked for in an example."""
    every = 2 if launcher == "torchrun" else 3
    return [o for i, o in enumerate(ASKED) if o.launcher == launcher and (i + i // 2) % every == NAMES.index(name) % every]


@functools.cache
def converted(name: str, options: Options) -> Conversion:
    return ddpify.convert(ROOT / name / "train.py", options)


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("name", NAMES)
def test_every_combination_is_whole_or_says_what_is_missing(name: str, launcher: str) -> None:
    for options in asked(name, launcher):
        done = converted(name, options)
        compile(done.code, "train.py", "exec")
        assert (done.status, done.exit_code) == ("convert", int((name, options.amp) in REFUSED)), options.command_line()
        assert not [f for f in done.findings if f.level >= Safety.REVIEW and (name, options.amp) not in REFUSED]


@pytest.mark.parametrize("name", NAMES)
def test_a_conversion_stays_as_it_is(name: str, tmp_path: Path) -> None:
    for options in (o for i, o in enumerate(asked(name, "torchrun")) if i % 4 == 1 and (name, o.amp) not in REFUSED):
        done = converted(name, options)
        again = ddpify.convert(done.code, options)
        assert (again.code, again.exit_code) == (done.code, 0), options.command_line()


def cases() -> dict[tuple[str, str, str], Case]:
    """The conversions that differ, with the double of apex beside them, and no noise that depends on the rank."""
    found: dict[tuple[str, str, str], Case] = {}
    for name in NAMES:
        texts: dict[str, tuple[str, str, str]] = {}
        for options in asked(name, "torchrun"):
            amp, ddp = options.amp, options.ddp
            if (name, amp) not in REFUSED and (ddp == "torch" or amp in ("keep", "apex-O0", "apex-O1", "apex-O3")):
                texts.setdefault(converted(name, options).code, (name, amp, ddp))
        drawn, fixed = DRAWN.get(name, ("\0", ""))
        original = (ROOT / name / "train.py").read_text().replace(drawn, fixed)
        found |= {key: Case(original, text.replace(drawn, fixed), files=APEX) for text, key in texts.items()}
    return found


@pytest.fixture(scope="module")
def outcomes() -> dict[tuple[str, str, str], Outcome]:
    wanted = cases()
    return dict(zip(wanted, run_many(list(wanted.values())), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_combinations_train_as_the_original(name: str, outcomes: dict[tuple[str, str, str], Outcome]) -> None:
    found = {key: outcome for key, outcome in outcomes.items() if key[0] == name}
    assert len(found) > 1
    for key, outcome in found.items():
        rounded = ("trajectory", "values", "output") if key[1] == "torch-bf16" else ()  # the CPU has bfloat16, too
        saved = ("keys",) if key[1].startswith("apex") else ()  # checkpoints hold amp's state
        assert outcome.problems((*rounded, *saved)) == [], key
