"""Notebooks become scripts, and these are converted, executed on two ranks, and compared with the script on one process."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from notebooks import NOTEBOOKS, Notebook, written
from quick_python import python
from ranks import Case, Outcome, run_many
from scripts import told

import ddpify
from ddpify import Conversion
from ddpify.errors import DdpifyError
from ddpify.rules.base import Safety

TRAINED = [title for title, notebook in NOTEBOOKS.items() if not notebook.told]


@pytest.fixture(scope="module")
def conversions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Conversion]:
    folder = tmp_path_factory.mktemp("notebooks")
    return {t: ddpify.convert(written(n, folder / f"n{i}.ipynb")) for i, (t, n) in enumerate(NOTEBOOKS.items())}


@pytest.fixture(scope="module")
def outcomes(conversions: dict[str, Conversion]) -> dict[str, Outcome]:
    cases = [Case(conversions[title].original, conversions[title].code) for title in NOTEBOOKS]
    return dict(zip(NOTEBOOKS, run_many(cases), strict=True))


@pytest.mark.parametrize("title", NOTEBOOKS)
def test_what_is_left_to_do_is_told(conversions: dict[str, Conversion], title: str) -> None:
    done, notebook = conversions[title], NOTEBOOKS[title]
    left = [(f.code, f.line, f.message) for f in done.findings if f.level >= Safety.REVIEW]
    assert [code for code, _, _ in left] == ["DDP905"] * len(notebook.told), left
    assert all(words in message for words, (_, _, message) in zip(notebook.told, left, strict=True))
    assert (done.status, done.exit_code) == ("convert", int(bool(notebook.told)))


@pytest.mark.parametrize("title", NOTEBOOKS)
def test_cells_become_the_lines_that_an_expert_would_write(conversions: dict[str, Conversion], title: str) -> None:
    original = conversions[title].original
    ast.parse(original)
    assert [text for text in NOTEBOOKS[title].has if text.replace("\n    ", "\n") not in original] == [], original
    assert [text for text in NOTEBOOKS[title].lacks if text in original] == [], original


@pytest.mark.parametrize("title", NOTEBOOKS)
def test_ranks_do_what_the_script_of_the_cells_does(outcomes: dict[str, Outcome], title: str) -> None:
    outcome, notebook = outcomes[title], NOTEBOOKS[title]
    assert outcome.problems() == []
    assert len(outcome.single.steps) >= 20
    assert told(outcome.single.stdout, notebook.same)
    assert told(outcome.ranks[0].stdout, notebook.same) == told(outcome.single.stdout, notebook.same)
    assert set(notebook.files) <= set(outcome.ranks[0].files)


@pytest.mark.parametrize("title", TRAINED)
def test_converting_the_result_again_changes_nothing(conversions: dict[str, Conversion], title: str) -> None:
    again = ddpify.convert(conversions[title].code)
    assert (again.code, again.exit_code) == (conversions[title].code, 0)


# --- what cells become -------------------------------------------------------------------------------------------------

PLT, SAVED = "import matplotlib.pyplot as plt\n", 'plt.savefig("figure_1.png")\nplt.close()\n'
TEXTS = {
    "a text that looks like magics": ('a = """\n%matplotlib inline\n!ls\n"""\nb = (10\n    % 3)', None),
    "a quote in a comment": ("# don't\n%matplotlib inline\na = 1", "# don't\na = 1\n"),
    "a magic in a block": ("if True:\n    %matplotlib inline", "if True:\n    pass\n"),
    "a line that goes on": ("!pip install a \\\n    b\na = 1", "a = 1\n"),
    "a cell of a shell": (
        "%%bash\nmkdir -p data\n# why\ncd data && touch x",
        'import os\n\nos.makedirs("data", exist_ok=True)\nos.system("cd data && touch x")\n',
    ),
    "a setting": ("%env A=b c\nd = %env HOME", 'import os\n\nos.environ["A"] = "b c"\nd = os.environ["HOME"]\n'),
    "a folder": ("%cd ~/x\nhere = %pwd", 'import os\n\nos.chdir(os.path.expanduser("~/x"))\nhere = os.getcwd()\n'),
    "an import of the future": (
        "from __future__ import annotations\nimport sys\n%env A=1",
        'from __future__ import annotations\nimport os\nimport sys\nos.environ["A"] = "1"\n',
    ),
    "values in a command": ("n = 3\n!touch {n}.txt $n $HOME", 'import os\n\nn = 3\nos.system(f"touch {n}.txt {n} $HOME")\n'),
    "a module that is run": ("%run helper.py", "from helper import *\n"),
    "a figure at a cell's end": (PLT + "plt.plot([1])", PLT + "plt.plot([1])\n" + SAVED),
    "a figure that is saved": (PLT + 'plt.plot([1])\nplt.savefig("a.png")', PLT + 'plt.plot([1])\nplt.savefig("a.png")\nplt.close()\n'),
    "a figure that is saved, then shown": (
        PLT + 'plt.plot([1]); plt.savefig("a.png"); plt.show()',
        PLT + 'plt.plot([1]); plt.savefig("a.png"); plt.close()\n',
    ),
    "a figure by its name": (
        PLT + "fig, ax = plt.subplots()\nax.plot([1])\nfig",
        PLT + 'fig, ax = plt.subplots()\nax.plot([1])\nfig.savefig("figure_1.png")\nplt.close(fig)\n',
    ),
    "a figure of a table": (
        "import pandas as pd\npd.DataFrame([1]).plot()",
        "import matplotlib.pyplot as plt\nimport pandas as pd\npd.DataFrame([1]).plot()\n" + SAVED,
    ),
    "what only a notebook shows": (
        "from IPython.display import HTML, display\nimport os\na = 1\ndisplay(HTML('<b>')); display(a, 2)",
        "import os\na = 1\npass; print(a); print(2)\n",
    ),
    "a value": ("a = [1]\na[0], 2", "a = [1]\nprint(a[0], 2)\n"),
    "a value that is not shown": ("a = [1]\na;", "a = [1]\na;\n"),
    "a function that returns nothing": ("def f():\n    pass\n\nf()", "def f():\n    pass\n\nf()\n"),
}


@pytest.mark.parametrize(("cell", "text"), TEXTS.values(), ids=TEXTS)
def test_a_cell_becomes_this(cell: str, text: str | None, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("")
    done = ddpify.convert(written(Notebook((cell,)), tmp_path / "train.ipynb"))
    assert done.original == (cell + "\n" if text is None else text)


# --- what a script cannot do ---------------------------------------------------------------------------------------------

TRAINING = NOTEBOOKS["a class in cells"].cells
LEFT = {
    "a name that no cell binds": ("a = missing + 1", "MANUAL", "no cell binds missing", "a = missing + 1"),
    "a name that a cell below binds": ("print(later)", "MANUAL", "no cell above binds later", "print(later)"),
    "the notebook itself": ("shell = get_ipython()", "MANUAL", "there is no get_ipython() in a script", "shell = get_ipython()"),
    "a magic that is not known": ("a = 1\n%frobnicate b\nc = 2", "MANUAL", "%frobnicate is not known", "c = 2"),
    "a cell of another language": ("%%R\nplot(x)", "MANUAL", "%%R is not known", "later = 1"),
    "a file that a cell writes": ("%%writefile nets.py\nx = 1", "MANUAL", "writes the file nets.py", "later = 1"),
    "what Colab has": (
        'from google.colab import drive\ndrive.mount("/content/drive")',
        "MANUAL",
        "drive is for notebooks",
        "from google.colab import drive",
    ),
    "a package that is installed": ("a = 1\n!pip install x\nb = 2", "NOTE", "`pip install x` is left out", "b = 2"),
    "a picture": (
        "from IPython.display import Image, display\na = 1\ndisplay(Image('x.png'))\nb = 2",
        "NOTE",
        "shows something in the notebook",
        "b = 2",
    ),
}


@pytest.mark.parametrize(("cell", "level", "message", "line"), LEFT.values(), ids=LEFT)
def test_what_is_left_out_is_told_with_its_line(cell: str, level: str, message: str, line: str, tmp_path: Path) -> None:
    done = ddpify.convert(written(Notebook((*TRAINING, cell, "later = 1")), tmp_path / "train.ipynb"))
    (found,) = [f for f in done.findings if f.code == "DDP905"]
    assert (found.level.name, found.file) == (level, str(tmp_path / "train.py"))
    assert message in found.message
    assert done.original.splitlines()[found.line - 1] == line
    assert bool(found.fix) == (level != "NOTE")


def test_a_cell_that_was_not_run_is_told(tmp_path: Path) -> None:
    done = ddpify.convert(written(Notebook((*TRAINING, "a = 1"), counts=(1, 2, 3, 4, 5, 6, None)), tmp_path / "train.ipynb"))
    (found,) = [f for f in done.findings if f.code == "DDP905"]
    assert (found.level.name, "without a run" in found.message) == ("NOTE", True)


def test_a_file_that_is_there_already_is_imported(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text("import torch.nn as nn\n\n\ndef net():\n    return nn.Linear(8, 2)\n")
    cells = (TRAINING[0], "%%writefile nets.py\n" + (tmp_path / "nets.py").read_text(), "from nets import net\nmodel = net().to(device)")
    done = ddpify.convert(written(Notebook((*cells, *TRAINING[3:])), tmp_path / "train.ipynb"))
    assert done.exit_code == 0
    assert [f.level.name for f in done.findings if f.code == "DDP905"] == ["NOTE"]
    assert [module.path.name for module in done.modules] == ["nets.py"]


# --- what is no notebook of Python ---------------------------------------------------------------------------------------

CELL = {"cell_type": "code", "metadata": {}, "source": "x = 1", "execution_count": 1, "outputs": []}
BAD = {
    "no JSON": ("x = 1\n", "not the JSON"),
    "JSON of something else": ('{"a": 1}', "not the JSON"),
    "format 3": (json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": []}), "format 3"),
    "no code": (json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": []}), "no code"),
    "another language": (
        json.dumps(
            {"nbformat": 4, "nbformat_minor": 4, "metadata": {"kernelspec": {"name": "ir", "display_name": "R", "language": "R"}}}
            | {"cells": [CELL]}
        ),
        "language of this notebook is R",
    ),
    "not valid": (json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [{"cell_type": "pie"}]}), "not a valid"),
    "a cell that is no Python": (
        json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [CELL | {"source": "%time\nx = = 2"}]}),
        "invalid syntax",
    ),
    "an await outside a function": (
        json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [CELL | {"source": "await x"}]}),
        "outside function",
    ),
}


@pytest.mark.parametrize("flags", [(), ("-w",), ("-o", "out.py")], ids=" ".join)
@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
def test_a_bad_notebook_is_one_error(text: str, said: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "train.ipynb").write_text(text)
    done = command(tmp_path, "convert", "train.ipynb", *flags)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr and done.stderr.count("error:") == 1 and "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["train.ipynb"]


def test_an_error_in_a_cell_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(DdpifyError) as caught:
        ddpify.convert(written(Notebook(("a = 1", "%matplotlib inline\nb = 2\nc = = 3")), tmp_path / "train.ipynb"))
    assert str(caught.value.where).endswith("train.ipynb, cell 2:3:5")
    assert caught.value.where is not None and caught.value.where.text == "c = = 3"


def test_nbformat_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nbformat", None)
    with pytest.raises(DdpifyError) as caught:
        ddpify.convert(written(NOTEBOOKS["magics"], tmp_path / "train.ipynb"))
    assert caught.value.hint == "pip install nbformat"


# --- the command line ----------------------------------------------------------------------------------------------------


def command(folder: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
    path = f"{Path(ddpify.__file__).parents[1]}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    environment |= {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
    done = subprocess.run([python(), "-m", "ddpify", *arguments], cwd=folder, env=environment, input=stdin, capture_output=True)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    written(NOTEBOOKS["a class in cells"], tmp_path / "train.ipynb")
    return tmp_path


def test_the_script_is_written_beside_the_notebook(folder: Path) -> None:
    before = (folder / "train.ipynb").read_bytes()
    done = command(folder, "convert", "train.ipynb", "-w")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith("run it: torchrun --standalone --nproc-per-node=2 train.py\n")
    assert "compare by running both: ddpify verify train.ipynb train.py\n" in done.stderr
    assert (folder / "train.ipynb").read_bytes() == before
    written_once = (folder / "train.py").read_text()
    assert "DistributedDataParallel" in written_once
    again = command(folder, "convert", "train.ipynb", "-w")
    assert again.returncode == 2 and "train.py is there already" in again.stderr
    assert command(folder, "convert", "train.ipynb", "-o", "train.py").returncode == 0
    assert (folder / "train.py").read_text() == written_once


def test_a_folder_that_holds_only_a_notebook_stands_for_it(folder: Path) -> None:
    done = command(folder.parent, "convert", folder.name)
    assert done.returncode == 0 and done.stdout == command(folder.parent, "convert", f"{folder.name}/train.ipynb").stdout != ""


def test_the_diff_makes_the_script(folder: Path) -> None:
    patch = command(folder, "convert", "train.ipynb").stdout
    assert patch.startswith("--- /dev/null\n+++ b/train.py\n")
    assert [path.name for path in folder.iterdir()] == ["train.ipynb"]
    subprocess.run(
        ["git", "apply"], cwd=folder, input=patch.encode(), check=True, env=os.environ | {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
    )
    assert (folder / "train.py").read_text() == command(folder, "convert", "train.ipynb", "-o", "-").stdout
    assert command(folder, "convert", "-", stdin=(folder / "train.ipynb").read_bytes()).stdout == (folder / "train.py").read_text()


def test_what_starts_it_names_the_script(folder: Path) -> None:
    done = command(folder, "convert", "train.ipynb", "--format", "json", "--emit-launcher", "run.sh")
    assert json.loads(done.stdout)["command"].endswith(" train.py")
    assert "/train.py" in (folder / "run.sh").read_text()


def test_no_notebook_is_written(folder: Path) -> None:
    before = (folder / "train.ipynb").read_bytes()
    done = command(folder, "convert", "train.ipynb", "-o", "train.ipynb")
    assert done.returncode == 2 and "no notebook is written" in done.stderr
    assert (folder / "train.ipynb").read_bytes() == before


def test_its_modules_are_converted_with_it(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text('def say(text):\n    print("step", text)\n')
    cells = (*TRAINING, "from steps import say\nsay(1)")
    written(Notebook(cells), tmp_path / "train.ipynb")
    (tmp_path / "out").mkdir()
    assert command(tmp_path, "convert", "train.ipynb", "-o", "out/").returncode == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir())[-2:] == ["steps.py", "train.py"]
    assert command(tmp_path, "convert", "train.ipynb", "-w").returncode == 0
    assert (tmp_path / "train.py").read_text() == (tmp_path / "out" / "train.py").read_text()


def test_it_is_moved_under_spawn(folder: Path) -> None:
    done = command(folder, "convert", "train.ipynb", "--launcher", "spawn", "-o", "-")
    assert done.returncode == 0
    assert 'if __name__ == "__main__":' in done.stdout


def test_a_page_shows_what_the_conversion_changes(folder: Path) -> None:
    assert command(folder, "review", "train.ipynb", "--html", "page.html").returncode == 0
    assert "train.py" in (folder / "page.html").read_text()


def test_it_is_verified(folder: Path) -> None:
    done = command(folder, "verify", "train.ipynb", "--steps", "4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["train.ipynb"]
