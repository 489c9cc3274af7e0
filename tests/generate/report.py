"""What bad outcomes have in common, and their files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from .runner import Kind, Result


def common_features(results: Sequence[Result], kind: Kind) -> str:
    """The features that are met more often in the scripts of an outcome than in all, with how often."""
    chosen = [r for r in results if r.kind is kind]
    if not chosen:
        return ""
    all_of, some = (Counter(f for r in rs for f in r.script.features) for rs in (results, chosen))
    share = len(chosen) / len(results)
    lifts = sorted(((some[f] / all_of[f] / share, some[f], f) for f in some if some[f] > 1), reverse=True)
    lines = [f"\n{kind.value}: {len(chosen)}"]
    lines += [f"    {n} of {all_of[f]} with {f}" for lift, n, f in lifts[:10] if lift > 1.5]
    codes = Counter(code for r in chosen for code in {text.split()[0] for text in r.converted.findings})
    lines += [f"    {n} with {code}" for code, n in codes.most_common(6)]
    return "\n".join(lines) + "\n"


def written(result: Result, folder: Path) -> None:
    """Writes a script, its conversion and what was seen into a folder."""
    place = folder / f"{result.kind.name.lower()}_{result.script.seed}"
    place.mkdir(parents=True, exist_ok=True)
    files = {"train.py": result.script.text, **result.script.files, "converted_train.py": result.converted.code}
    files |= {f"converted_{name}": text for name, text in result.converted.modules}
    seen = [*result.problems, "", *result.converted.findings, "", *result.script.features]
    for name, text in {**files, "seen.txt": "\n".join(seen) + "\n"}.items():
        (place / name).write_text(text)
