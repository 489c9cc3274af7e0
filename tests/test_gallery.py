"""The gallery: its pages are made, and the scripts that stand in it alone train on two ranks as on one."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ranks import Case, Outcome, run_many

import ddpify

ROOT = Path(__file__).parents[1]
NEEDS = {"text_classifier": "transformers", "graphs": "torch_geometric"}  # what runs them; to convert them, nothing is needed
SCRIPTS = [
    path
    for path in sorted((ROOT / "examples" / "gallery").glob("*.py"))
    if path.stem not in NEEDS or importlib.util.find_spec(NEEDS[path.stem])
]
DRAWN = {  # what each rank draws for itself, and what takes its place on both sides
    "torch.randint(STEPS, (len(x),), device=device)": "(x[:, 0].abs() * (STEPS - 1)).long()",
    "torch.randn_like(x)": "torch.cos(9 * x)",
}


def fixed(text: str) -> str:
    for drawn, instead in DRAWN.items():
        text = text.replace(drawn, instead)
    return text


@pytest.fixture(scope="module")
def outcomes() -> dict[Path, Outcome]:
    done = {path: ddpify.convert(path) for path in SCRIPTS}
    assert {one.exit_code for one in done.values()} == {0}
    cases = [Case(fixed(one.original), fixed(one.code)) for one in done.values()]
    return dict(zip(SCRIPTS, run_many(cases), strict=True))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_ranks_do_what_the_script_does(outcomes: dict[Path, Outcome], path: Path) -> None:
    outcome = outcomes[path]
    assert [p for p in outcome.problems() if "FutureWarning" not in p] == []  # importing torch_geometric may print one, on every rank
    assert len(outcome.single.steps) >= 20
    assert outcome.ranks[0].stdout == outcome.single.stdout


def test_the_gallery_is_made_by_one_command(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "examples" / "make_gallery.py", tmp_path / "gallery"], cwd=ROOT, check=True)
    index = (tmp_path / "gallery" / "index.html").read_text()
    pages = re.findall(r'href="([^"]+)"', index)
    assert len(pages) == len(set(pages)) >= 13
    assert index.count("exit code 0") == len(pages)
    for page in pages:
        text = (tmp_path / "gallery" / page).read_text()
        assert "DistributedDataParallel" in text
        assert not re.search(r'(src|href)="https?://[^"]+\.(js|css|woff2?)"', text)
