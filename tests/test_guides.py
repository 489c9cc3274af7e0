"""README and the guides, followed by a new user: each command of a page is typed in, one after another, in a folder of its own."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from quick_python import python
from ranks import run_unless_aborted
from terminal import Terminal

ROOT = Path(__file__).parents[1]
GUIDES = sorted((ROOT / "examples" / "guides").glob("*.md"))
PAGES = [ROOT / "README.md", *GUIDES]
INSTALLS = ("-m venv", "pip install", "git clone")  # what the commands need is here already
ELSEWHERE = ("sbatch", "srun", "NNODES=2", "pytest", "tests/benchmark", "tests.generate")  # other machines, and what takes minutes
MOST = 150  # lines of README


def commands(page: str) -> list[tuple[str, int]]:
    """What a page says to type, and the exit code that it names: lines of `sh`, and of `console` those after a prompt."""
    found = []
    for kind, block in re.findall(r"^```(sh|console)\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE):
        lines = re.sub(r"\\\n\s*", "", block).splitlines()
        for line in (line for line in lines if line.startswith("$ ") or (kind == "sh" and line)):
            code = re.search(r"# .*\bexit code (\d)", line)
            found.append((line.removeprefix("$ ").split("  #")[0].strip(), int(code[1]) if code else 0))
    return found


def test_all_commands_are_found() -> None:
    page = "# a\n\n```sh\nls -l\nfoo \\\n  --bar  # why\n```\n\n```console\n$ false  # exit code 1\nsome output\n```\n"
    assert commands(page) == [("ls -l", 0), ("foo --bar", 0), ("false", 1)]


def is_typed(command: str) -> bool:
    return not command.startswith("#") and not any(word in command for word in (*INSTALLS, *ELSEWHERE))


@pytest.fixture(scope="module")
def bin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment in which ddpify is installed."""
    folder = tmp_path_factory.mktemp("bin")
    for name, module in (("ddpify", "-m ddpify"), ("python", ""), ("python3", ""), ("torchrun", "-m torch.distributed.run")):
        (folder / name).write_text(f'#!/bin/sh\nexec "{python()}" {module} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def typed(page: Path) -> list[tuple[str, int]]:
    return [(command, code) for command, code in commands(page.read_text()) if is_typed(command)]


@pytest.mark.parametrize("page", [page for page in PAGES if typed(page)], ids=lambda page: page.stem)
def test_the_commands_of_a_page_work(page: Path, bin_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("*.md", "__pycache__"))
    shutil.copy(ROOT / "examples" / "imagenet_style" / "train.py", tmp_path)
    environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    environment |= {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    for command, code in typed(page):
        if command.startswith("ddpify review") and "--html" not in command:
            assert reviewed(command, tmp_path, environment) == code, command
            continue
        done = run_unless_aborted(["bash", "-c", command], tmp_path, environment, limit=400)
        assert done.returncode == code or "SIGABRT" in done.stderr, f"{command}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"


def reviewed(command: str, folder: Path, environment: dict[str, str]) -> int:
    """The exit code of a review in which every change is taken."""
    with Terminal(shlex.split(command), folder, {"PYTHONPATH": environment["PYTHONPATH"]}) as terminal:
        terminal.sees("?")
        terminal.types("a")
        return terminal.ends()


def test_the_python_of_readme_runs(tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "imagenet_style" / "train.py", tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGES[0].read_text(), flags=re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([python(), "-c", block], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_its_links_lead_somewhere(page: Path) -> None:
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()) if not link.startswith("https://")]
    assert [link for link in links if link and not (page.parent / link).exists()] == []


def test_readme_is_short_and_leads_to_every_guide() -> None:
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) <= MOST
    assert [guide.name for guide in GUIDES if f"examples/guides/{guide.name}" not in readme] == []


def test_the_glossary_is_short_and_its_terms_are_in_use() -> None:
    terms = re.findall(r"^\| (?!term)([a-z ]+) \|", (ROOT / "examples" / "guides" / "glossary.md").read_text(), flags=re.MULTILINE)
    assert 0 < len(terms) <= 15
    pages = "".join(page.read_text() for page in PAGES if page.stem != "glossary")
    rules = "".join(path.read_text() for path in (ROOT / "ddpify" / "rules").rglob("*.py"))
    assert [term for term in terms if term not in pages + rules] == []


def test_readme_tests_as_continuous_integration_does() -> None:
    blocks = [command for command, _ in commands((ROOT / "README.md").read_text()) if "pytest" in command]
    assert len(blocks) == 1
    steps = (ROOT / ".ci" / "run").read_text()
    assert "pip install --quiet -e '.[test]'" in steps and "pip install -q -e '.[test]'" in blocks[0]
    assert "python -m pytest -q" in steps and blocks[0].endswith("python -m pytest -q")


def test_the_picture_shows_what_is_said() -> None:
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder, "terminal.svg")
        made_by = [sys.executable, ROOT / "examples" / "make_picture.py", picture]
        subprocess.run(made_by, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)
        shown, made = ((ROOT / "examples" / "terminal.svg").read_text(), picture.read_text())
    texts = ["".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg)).split() for svg in (shown, made)]
    assert texts[0] == texts[1] and texts[0]
    assert "url(http" not in shown  # it is shown without a network
