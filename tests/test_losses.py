"""Every third of the losses of the table once more, on three ranks: the parameters are the original's to the last digits."""

from dataclasses import replace
from pathlib import Path

import table_losses
from ranks import Case, apart, run_many
from scripts import Script, converted, modules, text

WHOLE = [title for title, script in table_losses.SCRIPTS.items() if not script.told and "trajectory" not in script.apart]


def _shared_by_six(script: Script) -> Script:
    """The script with batches that three ranks can share, none of them short."""
    sizes = (
        script.text.replace("batch_size=4", "batch_size=6")
        .replace("batch_size=8", "batch_size=12")
        .replace("batch_size=2", "batch_size=6")
        .replace("default=8", "default=12")
    )
    lines = (line if "drop_last" in line else line.replace("shuffle=True", "shuffle=True, drop_last=True") for line in sizes.split("\n"))
    return replace(script, text="\n".join(lines))


def test_parameters_are_the_originals(tmp_path: Path) -> None:
    scripts = {title: _shared_by_six(table_losses.SCRIPTS[title]) for title in WHOLE[::3]}
    done = [converted(s, tmp_path / str(i)) for i, s in enumerate(scripts.values())]
    cases = [Case(text(s), d.code, s.args, s.files | s.stand_ins, modules(d)) for s, d in zip(scripts.values(), done, strict=True)]
    outcomes = dict(zip(scripts, run_many(cases, 3), strict=True))
    assert {title: outcome.problems() for title, outcome in outcomes.items() if outcome.problems()} == {}
    distances = {title: apart(outcome.single.steps, outcome.ranks[0].steps) for title, outcome in outcomes.items()}
    assert {title: distance for title, distance in distances.items() if distance > 1e-12} == {}
