"""The command line: what goes to which stream, what is written, and the exit codes. The plan is a fake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import fakes
import pytest

import ddpify as package
from ddpify import __version__, cli
from ddpify.rules.base import Safety


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, outside any repository, with a script in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "train.py").write_text(fakes.SCRIPT)
    return tmp_path


@pytest.fixture
def ddpify(monkeypatch, capfdbinary):
    """Run the command line; gives (exit code, standard output, standard error)."""
    fakes.install(monkeypatch)

    def run(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["ddpify", *arguments])
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(read=lambda: stdin)))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capfdbinary.readouterr()
        return ended.value.code or 0, out.decode(), err.decode()

    return run


def plan(monkeypatch, **fields) -> None:
    """Let every plan be this one; `changes=True` puts the usual change into it."""

    def make_plan(project, options):
        if fields.get("changes"):
            return fakes.FakePlan(**{**fields, "changes": (fakes.halve_batch(project),)})
        return fakes.FakePlan(**fields)

    fakes.install(monkeypatch, make_plan)


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts}


UNTOUCHED = {"train.py": fakes.SCRIPT}

# --- nothing is written --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [(), ("-w",), ("--check",)], ids=" ".join)
def test_nothing_to_do(folder, ddpify, monkeypatch, flags) -> None:
    plan(monkeypatch, status="nothing", reason="no training loop")
    assert ddpify("convert", "train.py", *flags) == (0, "", "nothing to do: no training loop\n")
    assert contents(folder) == UNTOUCHED


@pytest.mark.parametrize("flags", [(), ("-w",), ("--check",), ("-o", "out.py"), ("-o", "-")], ids=" ".join)
def test_refused(folder, ddpify, monkeypatch, flags) -> None:
    plan(monkeypatch, status="refuse", reason="Lightning drives this script")
    assert ddpify("convert", "train.py", *flags) == (2, "", "refused: Lightning drives this script\n")
    assert contents(folder) == UNTOUCHED


@pytest.mark.parametrize("flags", [(), ("-w",), ("--check",)], ids=" ".join)
def test_only_by_hand(folder, ddpify, monkeypatch, flags) -> None:
    plan(monkeypatch, findings=(fakes.finding(fix="x = 1"),))
    code, out, err = ddpify("convert", "train.py", *flags)
    assert (code, out) == (1, "")
    assert err == (
        "\nMANUAL DDP301: a manual thing\n  train.py:1: import torch\n    write: x = 1\n\n"
        "train.py: 0 changes, 1 to do by hand; nothing was converted. Change the lines above first, and convert again.\n"
    )
    assert contents(folder) == UNTOUCHED


def test_the_diff_is_shown(folder, ddpify) -> None:
    code, out, err = ddpify("convert", "train.py")
    assert code == 0
    assert out.startswith("--- a/train.py\n+++ b/train.py\n")
    assert "-batch = 32" in out
    assert err == (
        "DDP303  adjust what depends on the batch size: 2\n"
        "train.py: 1 change; nothing left to do. The analysis proves each change; the result has not been run.\n"
        "compare by running both: ddpify verify train.py\n"
        "once written, run it: torchrun --nproc-per-node 2 train.py\n"
    )
    assert contents(folder) == UNTOUCHED


def test_check(folder, ddpify) -> None:
    code, out, err = ddpify("convert", "train.py", "--check")
    assert (code, out) == (1, "")
    assert "DDP303" in err
    assert contents(folder) == UNTOUCHED


def test_the_diff_is_in_the_encoding_of_the_script(folder, monkeypatch, capfdbinary) -> None:
    (folder / "train.py").write_bytes(b"# coding: latin-1\nbatch = 32  # \xe9\n")
    fakes.install(monkeypatch)
    monkeypatch.setattr(sys, "argv", ["ddpify", "convert", "train.py"])
    with pytest.raises(SystemExit):
        cli.main()
    assert b"+batch = 16  # \xe9\n" in capfdbinary.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("convert",), "Missing argument"),
        (("convert", "train.py", "-w", "-o", "x.py"), "only one of"),
        (("convert", "train.py", "-w", "--check"), "only one of"),
        (("convert", "-", "-w"), "standard input"),
        (("review",), "Missing argument"),
        (("review", "-"), "standard input"),
        (("review", "train.py", "-w", "-o", "x.py"), "only one of"),
        (("convert", "train.py", "--launcher", "mpirun"), "mpirun"),
        (("convert", "train.py", "--frobnicate"), "--frobnicate"),
        (("frobnicate",), "frobnicate"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_usage(folder, ddpify, arguments, said) -> None:
    code, out, err = ddpify(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert contents(folder) == UNTOUCHED


# --- what is written -----------------------------------------------------------------------------------------------------


def test_in_place(folder, ddpify) -> None:
    code, out, err = ddpify("convert", "train.py", "-w")
    assert (code, out) == (0, "")
    assert err.endswith("\nrun it: torchrun --nproc-per-node 2 train.py\n")
    assert contents(folder) == {"train.py": fakes.CONVERTED}


def test_to_a_file(folder, ddpify) -> None:
    code, out, err = ddpify("convert", "train.py", "-o", "my ddp.py")
    assert (code, out) == (0, "")
    assert err.endswith("run it: torchrun --nproc-per-node 2 'my ddp.py'\n")
    assert contents(folder) == {**UNTOUCHED, "my ddp.py": fakes.CONVERTED}


@pytest.mark.parametrize("name", ["out", "out/", "out/sub/.."])
def test_to_a_folder(folder, ddpify, name) -> None:
    (folder / "out" / "sub").mkdir(parents=True)
    assert ddpify("convert", "train.py", "-o", name)[0] == 0
    assert contents(folder) == {**UNTOUCHED, "out/train.py": fakes.CONVERTED}


def test_to_a_file_with_nothing_to_do(folder, ddpify, monkeypatch) -> None:
    (folder / "train.py").write_bytes(b"\xef\xbb\xbfx = 1\r\n")
    plan(monkeypatch, status="nothing", reason="no training loop")
    assert ddpify("convert", "train.py", "-o", "out.py")[0] == 0
    assert (folder / "out.py").read_bytes() == b"\xef\xbb\xbfx = 1\r\n"


@pytest.mark.parametrize("name", ["missing/out.py", "missing/", ""])
def test_to_nowhere(folder, ddpify, name) -> None:
    code, out, err = ddpify("convert", "train.py", "-o", name)
    assert (code, out) == (2, "")
    assert "hint: " in err
    assert contents(folder) == UNTOUCHED


def test_several_lines_of_command(folder, ddpify, monkeypatch) -> None:
    plan(monkeypatch, changes=True, command="python prepare.py\ntorchrun {script}")
    assert ddpify("convert", "train.py", "-w")[2].endswith("run it:\n    python prepare.py\n    torchrun train.py\n")


def test_bom_and_windows_newlines_stay(folder, ddpify) -> None:
    (folder / "train.py").write_bytes(b"\xef\xbb\xbfimport torch\r\nbatch = 32")
    ddpify("convert", "train.py", "-w")
    assert (folder / "train.py").read_bytes() == b"\xef\xbb\xbfimport torch\r\nbatch = 16"


def test_uncommitted_changes(folder, ddpify) -> None:
    subprocess.run(["git", "init"], check=True, capture_output=True)
    for flags in (("-w",), ("-o", "train.py"), ("-o", ".")):
        code, out, err = ddpify("convert", "train.py", *flags)
        assert (code, out) == (2, "")
        assert "--allow-dirty" in err
        assert contents(folder) == UNTOUCHED
    assert ddpify("convert", "train.py", "-w", "--allow-dirty")[0] == 0
    assert contents(folder) == {"train.py": fakes.CONVERTED}


def test_uncommitted_changes_do_not_matter_with_nothing_to_write(folder, ddpify, monkeypatch) -> None:
    subprocess.run(["git", "init"], check=True, capture_output=True)
    plan(monkeypatch, status="nothing", reason="complete")
    assert ddpify("convert", "train.py", "-w")[0] == 0


# --- standard input ------------------------------------------------------------------------------------------------------


def test_filter(folder, ddpify) -> None:
    code, out, err = ddpify("convert", "-", stdin=fakes.SCRIPT.encode())
    assert (code, out) == (0, fakes.CONVERTED)
    assert err.splitlines()[0].endswith(": 2")
    assert "ddpify verify" not in err
    assert err.endswith("torchrun --nproc-per-node 2 train.py\n")


def test_filter_with_nothing_to_do_passes_the_script_on(folder, ddpify, monkeypatch) -> None:
    plan(monkeypatch, status="nothing", reason="no training loop")
    assert ddpify("convert", "-", stdin=b"x = 1\r\n") == (0, "x = 1\r\n", "nothing to do: no training loop\n")


def test_a_file_to_standard_output(folder, ddpify) -> None:
    assert ddpify("convert", "train.py", "-o", "-")[:2] == (0, fakes.CONVERTED)


def test_standard_input_to_a_file(folder, ddpify) -> None:
    assert ddpify("convert", "-", "-o", "out.py", stdin=fakes.SCRIPT.encode())[:2] == (0, "")
    assert (folder / "out.py").read_text() == fakes.CONVERTED


def test_standard_input_has_no_name(folder, ddpify) -> None:
    assert ddpify("convert", "-", "-o", ".", stdin=fakes.SCRIPT.encode())[0] == 2


# --- bad input -----------------------------------------------------------------------------------------------------------


def test_a_syntax_error(folder, ddpify) -> None:
    (folder / "train.py").write_text("x = 1\n\tif y\n")
    code, out, err = ddpify("convert", "train.py", "-w")
    assert (code, out) == (2, "")
    title, place, line, caret, hint = err.splitlines()
    assert (title, place, line) == ("error: unexpected indent", "  train.py:2:1", "    \tif y")
    assert caret.strip() == "^"
    assert hint.startswith("hint: ")


def test_the_caret_stands_below_the_place(folder, ddpify) -> None:
    (folder / "train.py").write_text("\tx = '" + "." * 300 + "' = = 2")
    line, caret = ddpify("convert", "train.py")[2].splitlines()[2:4]
    assert len(line) < 200
    (folder / "train.py").write_text("if x:\n\ty = = 2")
    line, caret = ddpify("convert", "train.py")[2].splitlines()[2:4]
    assert line[caret.index("^")] == "="
    assert line[: caret.index("^")].count("\t") == caret.count("\t")


@pytest.mark.parametrize("name", ["missing.py", "", ".", "/", "/dev/null", "a\tb.py"])
def test_no_script(folder, ddpify, name) -> None:
    code, out, err = ddpify("convert", name)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert "hint: " in err


@pytest.mark.parametrize("data", [b"\x00\x01", b"\xff\xfe\x00", b"print 'x'", b'{"cells": []}', b"x = '\xe9'", b"(" * 9999])
def test_garbage(folder, ddpify, data) -> None:
    (folder / "train.py").write_bytes(data)
    for flags in ((), ("-w",), ("-o", "out.py"), ("--check",), ("--format", "json")):
        code, out, err = ddpify("convert", "train.py", *flags)
        assert (code, out) == (2, "")
        assert "  train.py" in err
        assert "hint: " in err
        assert "Traceback" not in err
    assert (folder / "train.py").read_bytes() == data
    assert [path.name for path in folder.iterdir()] == ["train.py"]


def test_an_empty_file(folder, ddpify, monkeypatch) -> None:
    plan(monkeypatch, status="nothing", reason="no training loop")
    (folder / "train.py").write_bytes(b"")
    assert ddpify("convert", "train.py")[0] == 0
    assert ddpify("convert", "-", stdin=b"")[:2] == (0, "")


def test_interrupted(folder, ddpify, monkeypatch) -> None:
    def interrupt(project, options):
        raise KeyboardInterrupt

    fakes.install(monkeypatch, interrupt)
    assert ddpify("convert", "train.py", "-w") == (130, "", "")
    assert contents(folder) == UNTOUCHED


def test_a_failure_of_our_own(folder, ddpify, monkeypatch) -> None:
    def fail(project, options):
        raise KeyError("sampler")

    fakes.install(monkeypatch, fail)
    code, out, err = ddpify("convert", "train.py", "-w")
    assert (code, out) == (1, "")
    assert "KeyError: 'sampler'" in err
    assert "report" in err
    assert contents(folder) == UNTOUCHED


# --- reports -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [(), ("-o", "out.py"), ("--check",)], ids=" ".join)
def test_json(folder, ddpify, monkeypatch, flags) -> None:
    plan(monkeypatch, changes=True, findings=(fakes.finding(Safety.REVIEW),))
    code, out, err = ddpify("convert", "train.py", "--format", "json", *flags)
    report = json.loads(out)
    assert (code, report["exit_code"], report["version"], err) == (1, 1, 2, "")
    assert report["command"].endswith("out.py" if "-o" in flags else "train.py")


def test_each_change_with_its_reason(folder, ddpify) -> None:
    err = ddpify("convert", "train.py", "--verbose")[2]
    assert err.startswith("train.py:2:1: SAFE DDP303 each rank loads its part of the batch\ntrain.py: 1 change; nothing left")


def test_what_to_run_next(folder, ddpify, monkeypatch) -> None:
    assert "both: ddpify verify train.py --eval shard\nonce written" in ddpify("convert", "train.py", "--eval", "shard")[2]
    assert "both: ddpify verify train.py out.py\nrun it: " in ddpify("convert", "train.py", "-o", "out.py", "--eval", "shard")[2]
    assert "ddpify verify" not in ddpify("convert", "train.py", "-w")[2]
    (folder / "train.py").write_text(fakes.SCRIPT)
    plan(monkeypatch, changes=True, findings=(fakes.finding(),))
    err = ddpify("convert", "train.py")[2]
    assert "\nfinish it in a copy: ddpify convert train.py -o FILE\nonce finished, run it: torchrun" in err
    plan(monkeypatch, changes=True, findings=(fakes.finding(Safety.REVIEW),))
    assert "not proven to train like the original" in ddpify("convert", "train.py")[2]


def test_annotations_of_github(folder, ddpify, monkeypatch) -> None:
    (folder / "a, b").mkdir()
    (folder / "a, b" / "50%:x.py").write_text(fakes.SCRIPT)
    name = "a, b/50%:x.py"
    odd = fakes.finding(fix="x = 5 % 2, y\r\n# 1: done", file=name)
    plan(monkeypatch, changes=True, findings=(odd, fakes.finding(Safety.REVIEW, 3, file=name), fakes.finding(Safety.NOTE, 2, file=name)))
    code, out, err = ddpify("convert", name, "--format", "github")
    assert (code, err) == (1, "")
    at, title = "file=a%2C b/50%25%3Ax.py,line=", "DDP301 shard the training data"
    assert out.splitlines() == [
        f"::warning {at}1,title=MANUAL {title}::a manual thing%0Awrite: x = 5 %25 2, y%0D%0A# 1: done",
        f"::notice {at}2,title=NOTE {title}::a note thing",
        f"::warning {at}3,title=REVIEW {title}::a review thing",
    ]
    plan(monkeypatch, status="refuse", reason="Lightning drives this script")
    assert ddpify("convert", "train.py", "--format", "github")[:2] == (2, "::error title=refused::Lightning drives this script\n")


def test_options(folder, ddpify, monkeypatch) -> None:
    seen = []
    fakes.install(monkeypatch, lambda p, o: seen.append(o) or fakes.FakePlan("nothing"))
    flags = "--launcher torchrun --backend gloo --find-unused-parameters on --sync-bn off --guards quiet".split()
    ddpify("convert", "train.py", *flags)
    assert seen == [cli.Options("torchrun", "gloo", "quiet", "on", "off")]


def test_no_colour_off_a_terminal(folder, ddpify, monkeypatch) -> None:
    plan(monkeypatch, changes=True, findings=(fakes.finding(),))
    assert "\x1b" not in "".join(map(str, ddpify("convert", "train.py")))
    assert "\x1b" not in "".join(map(str, ddpify("convert", "missing.py")))


@pytest.mark.parametrize(("variable", "value", "coloured"), [("X", "1", True), ("NO_COLOR", "1", False), ("TERM", "dumb", False)])
def test_colour_on_a_terminal(monkeypatch, variable, value, coloured) -> None:
    from ddpify.report.terminal import wants_colour

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(variable, value)
    assert wants_colour(SimpleNamespace(isatty=lambda: True)) is coloured
    assert not wants_colour(SimpleNamespace(isatty=lambda: False))


EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*/train.py"))
TO_FINISH = """\
import rows
import torch
x, y = rows.read()
model = torch.nn.Linear(8, 8)
sgd = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(100):
    loss = (model(x) - y).abs().mean()
    sgd.zero_grad()
    loss.backward()  # \x1b[2J
    sgd.step()
print(loss.item())
"""


def converting(folder: Path, script: str, *flags: str) -> tuple[int, str]:
    """The exit code of a real conversion in `folder`, and what it says on a pipe."""
    (folder / "train.py").write_text(script)
    command = [sys.executable, "-m", "ddpify", "convert", "train.py", "-o", "out.py", *flags]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "FORCE_COLOR": "1"})
    return done.returncode, done.stderr


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.parent.name)
def test_a_finished_conversion_takes_twelve_lines(folder, example) -> None:
    code, said = converting(folder, example.read_text())
    assert code == 0
    *rows, closing, compare, run = said.splitlines()
    assert len(rows) <= 9
    assert {row[:3] for row in rows} == {"DDP"}
    assert "; nothing left to do. " in closing
    assert compare == "compare by running both: ddpify verify train.py out.py"
    assert run.startswith("run it: ")
    listed = converting(folder, example.read_text(), "-v")[1].splitlines()
    assert listed[-3:] == [closing, compare, run]
    assert len(listed) - 3 == len(package.convert(example).levels)


def test_what_is_left_stands_last(folder) -> None:
    code, said = converting(folder, TO_FINISH)
    assert code == 1
    done, *left, end = said.split("\n\n")
    assert all(row.startswith("DDP") for row in done.splitlines())
    (block,) = left
    first, place, write = block.splitlines()
    assert first.startswith("MANUAL DDP402: ")
    assert place == "  train.py:9: loss.backward()  # ?[2J"
    assert write.startswith("    write: ")
    assert "; not finished. Until the lines above are changed by hand" in end
    assert end.splitlines()[-1].startswith("once finished, run it: torchrun")


# --- the rest ------------------------------------------------------------------------------------------------------------


def test_rules(ddpify) -> None:
    code, listed, err = ddpify("rules")
    assert (code, err) == (0, "")
    assert listed.splitlines() == sorted(listed.splitlines())
    assert "DDP301  shard the training data\n" in listed
    assert "DDP912  driven by another framework\n" in listed
    assert ddpify("rules", "DDP3")[1] == "".join(line for line in listed.splitlines(keepends=True) if line.startswith("DDP3"))
    code, out, err = ddpify("rules", "ddp502")
    assert (code, err) == (0, "")
    assert out.startswith("DDP502  show one progress bar\n\nOne progress bar.\n\nWhat it does: ")
    assert ddpify("rules", "DDP999")[:2] == (2, "")


def test_version(ddpify) -> None:
    assert ddpify("--version") == (0, f"ddpify {__version__}\n", "")


def test_help(ddpify) -> None:
    assert "convert" in ddpify("--help")[1]
    shown = ddpify("convert", "--help")[1]
    assert "ddpify convert train.py -w  " in shown
    assert "\b" not in shown


def test_python_m(folder) -> None:
    done = subprocess.run([sys.executable, "-m", "ddpify", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"ddpify {__version__}\n"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["convert", "--help"], ["review", "--help"], ["--version"], ["convert", "missing.py"]], ids=" ".join
)
def test_quick_answers_import_nothing_heavy(arguments) -> None:
    code = f"""
import sys
sys.argv = ["ddpify", *{arguments!r}]
from ddpify.cli import main
try:
    main()
except SystemExit:
    pass
heavy = ("libcst", "jinja2", "rich", "torch", "numpy", "ddpify.plan", "ddpify.facts")
print([name for name in heavy if name in sys.modules])
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.endswith("\n[]\n") or out == "[]\n"


def test_a_reader_that_leaves_early(folder) -> None:
    code = """
import sys, types
from dataclasses import make_dataclass
plan, apply = types.ModuleType("ddpify.plan"), types.ModuleType("ddpify.apply.rewrite")
from ddpify.rules.base import Change
change = lambda p: Change("DDP303", "", p.entry.shown, p.entry.tree, ())
plan.first = lambda p, o: None
told = dict(findings=(), command="", reason="", added=None, install="", bound=frozenset())
made = make_dataclass("Made", ["changes"], namespace=dict(status="convert", without=lambda self, ids: self, **told))
plan.make_plan = lambda p, o, marks, unfinished: made((change(p),))
plan.check = lambda p, plan: ()
apply.rewrite = lambda text, tree, changes, known: (text + "# more\\n" * 500_000, ())
apply.Rewritten = object
sys.modules["ddpify.plan"], sys.modules["ddpify.apply.rewrite"] = plan, apply
sys.argv = ["ddpify", "convert", "train.py", "-o", "-"]
from ddpify.cli import main
main()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert b"Error" not in process.stderr.read()
    assert process.returncode == 1


def test_the_readme_shows_what_is_said(folder) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    shown = readme.partition("$ ddpify convert examples/trainer_class -o train_ddp.py\n")[2].partition("```")[0]
    said = converting(folder, next(e for e in EXAMPLES if e.parent.name == "trainer_class").read_text())[1]
    assert shown.replace("examples/trainer_class/", "").replace("train_ddp.py", "out.py") == said
