"""From a source to a checked result; the plan and the rewrite are fakes."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import fakes
import pytest

import ddpify
from ddpify import DdpifyError, Options
from ddpify.conversion import convert
from ddpify.facts import origins
from ddpify.records import replace
from ddpify.report import terminal
from ddpify.report.rule import all_rules
from ddpify.resources import template_dir
from ddpify.rules.base import Change, Safety


def never(*_):
    raise AssertionError("must not be called")


# --- nothing to do comes first -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "exit_code"), [("nothing", 0), ("refuse", 2)])
def test_without_a_conversion_nothing_is_rewritten(monkeypatch, status: str, exit_code: int) -> None:
    fakes.install(monkeypatch, lambda p, o: fakes.FakePlan(status, (fakes.halve_batch(p),), reason="because"), never, never)
    done = convert(fakes.SCRIPT)
    assert (done.code, done.status, done.reason, done.exit_code) == (fakes.SCRIPT, status, "because", exit_code)
    assert (done.diff(), done.changes, done.changed) == ("", (), False)


def test_nothing_to_do_but_something_to_tell(monkeypatch) -> None:
    fakes.install(monkeypatch, lambda p, o: fakes.FakePlan("nothing", findings=(fakes.finding(),)), never, never)
    assert convert(fakes.SCRIPT).exit_code == 1


def test_no_change_keeps_the_original_not_the_mended_text(monkeypatch) -> None:
    fakes.install(monkeypatch, lambda p, o: fakes.FakePlan(findings=(fakes.finding(),)), never, never)
    done = convert("x.cuda(async=True)\n")
    assert (done.code, done.exit_code) == ("x.cuda(async=True)\n", 1)


# --- conversions ---------------------------------------------------------------------------------------------------------


def test_a_conversion(monkeypatch) -> None:
    fakes.install(monkeypatch)
    done = convert(fakes.SCRIPT)
    assert (done.code, done.original, done.status, done.exit_code) == (fakes.CONVERTED, fakes.SCRIPT, "convert", 0)
    assert [change.line for change in done.changes] == [2]
    assert done.bytes == fakes.CONVERTED.encode()


def test_str_bytes_and_path_agree(monkeypatch, tmp_path: Path) -> None:
    fakes.install(monkeypatch)
    path = tmp_path / "train.py"
    path.write_text(fakes.SCRIPT)
    for source in (fakes.SCRIPT, fakes.SCRIPT.encode(), path):
        assert convert(source).code == fakes.CONVERTED
    assert path.read_text() == fakes.SCRIPT


def test_local_modules_are_found_only_beside_a_path(monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("x = 1\n")
    (tmp_path / "train.py").write_text("import net\n")
    found = []
    fakes.install(monkeypatch, lambda p, o: found.append(p.module("net") is not None) or fakes.FakePlan("nothing"))
    convert(tmp_path / "train.py")
    convert("import net\n", path=tmp_path / "train.py")
    convert("import net\n")
    assert found == [True, True, False]


@pytest.mark.parametrize(
    ("change_level", "found", "exit_code"),
    [
        (Safety.SAFE, (), 0),
        (Safety.NOTE, (Safety.NOTE,), 0),
        (Safety.REVIEW, (), 1),
        (Safety.SAFE, (Safety.NOTE, Safety.REVIEW), 1),
        (Safety.SAFE, (Safety.MANUAL,), 1),
    ],
)
def test_exit_codes(monkeypatch, change_level: Safety, found: tuple[Safety, ...], exit_code: int) -> None:
    findings = tuple(map(fakes.finding, found))
    fakes.install(monkeypatch, lambda p, o: fakes.FakePlan(changes=(fakes.halve_batch(p, change_level),), findings=findings))
    assert convert(fakes.SCRIPT).exit_code == exit_code


def test_unapplied_changes_are_to_do_by_hand(monkeypatch) -> None:
    fakes.install(monkeypatch, rewrite=lambda text, tree, changes: (text, changes))
    done = convert(fakes.SCRIPT)
    assert (done.code, done.changes, done.exit_code) == (fakes.SCRIPT, (), 1)
    [told] = done.findings
    assert (told.level, told.code, told.line) == (Safety.MANUAL, "DDP303", 2)
    assert "each rank loads" in told.message


def crash(text, tree, changes):
    raise RuntimeError("lost the thread\nhere")


@pytest.mark.parametrize("rewrite", [crash, lambda text, tree, changes: ("x = (\n", ()), lambda text, tree, changes: None])
def test_a_failed_rewrite_costs_nothing_but_the_conversion(monkeypatch, rewrite) -> None:
    fakes.install(monkeypatch, rewrite=rewrite, check=never)
    done = convert(fakes.SCRIPT)
    assert (done.code, done.changes, done.exit_code) == (fakes.SCRIPT, (), 1)
    assert [(told.code, told.level) for told in done.findings] == [("DDP901", Safety.MANUAL)]
    assert "\n" not in done.findings[0].message


def fail(project, options, marks=(), unfinished=False):
    raise IndexError("out of range\nhere")


@pytest.mark.parametrize("stage", ["first", "make_plan"])
def test_a_failure_of_any_stage_is_told_in_one_line_and_keeps_the_file(monkeypatch, tmp_path, stage) -> None:
    fakes.install(monkeypatch)
    monkeypatch.setattr(sys.modules["ddpify.plan"], stage, fail)
    script = tmp_path / "train.py"
    script.write_text(fakes.SCRIPT)
    done = convert(script)
    assert (done.code, done.changes, done.exit_code) == (fakes.SCRIPT, (), 1)
    [told] = done.findings
    assert (told.code, told.level, told.file) == ("DDP901", Safety.MANUAL, str(script))
    assert re.fullmatch(r"ddpify failed \(IndexError: out of range, in conversion\.py:\d+\); the file is left as it was", told.message)


def test_a_script_that_cannot_be_taken_up_is_named(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("ddpify.conversion.load", lambda path: fail(None, None))
    with pytest.raises(DdpifyError, match=r"ddpify failed \(IndexError: out of range, in conversion.py:\d+\)") as told:
        convert(tmp_path / "train.py")
    assert told.value.where.path == str(tmp_path / "train.py")


def test_leaving_out_that_fails_names_the_script(monkeypatch) -> None:
    def without(self, ids):
        if ids:
            fail(None, None)
        return self

    fakes.install(monkeypatch)
    monkeypatch.setattr(fakes.FakePlan, "without", without)
    done = convert(fakes.SCRIPT)
    monkeypatch.setattr("ddpify.conversion.refuse", lambda changes: None)
    with pytest.raises(DdpifyError, match=r"ddpify failed \(IndexError: out of range") as told:
        done.without({"DDP303-1"})
    assert told.value.where.path == "<string>"


def test_the_output_is_checked(monkeypatch) -> None:
    def check(project, plan):
        assert project.entry.source.text == fakes.CONVERTED
        assert ast.unparse(project.entry.tree.body[1]) == "batch = 16"
        return (fakes.finding(Safety.REVIEW),)

    fakes.install(monkeypatch, check=check)
    assert [told.level for told in convert(fakes.SCRIPT).findings] == [Safety.REVIEW]


def test_an_output_that_cannot_be_checked_is_not_trusted(monkeypatch) -> None:
    fakes.install(monkeypatch, check=crash_check)
    done = convert(fakes.SCRIPT)
    assert done.code == fakes.CONVERTED
    assert (done.exit_code, [told.code for told in done.findings]) == (1, ["DDP901"])


def crash_check(project, plan):
    raise KeyError("model")


def test_options_reach_the_plan(monkeypatch) -> None:
    seen = []
    fakes.install(monkeypatch, lambda p, o: seen.append(o) or fakes.FakePlan("nothing"))
    convert("", Options(backend="gloo"))
    convert("")
    assert seen == [Options(backend="gloo"), Options()]


def test_unknown_option() -> None:
    with pytest.raises(DdpifyError, match="backend cannot be 'mpi'") as caught:
        Options(backend="mpi")
    assert "gloo" in caught.value.hint


def test_a_path_given_as_text_is_noticed() -> None:
    with pytest.raises(DdpifyError) as caught:
        convert("train.py")
    assert "Path" in caught.value.hint


def test_code_too_deep_for_the_analysis(monkeypatch) -> None:
    def deep(project, options):
        return deep(project, options)

    fakes.install(monkeypatch, deep)
    with pytest.raises(DdpifyError, match="nested too deeply"):
        convert("")


def test_run_command(monkeypatch) -> None:
    fakes.install(monkeypatch)
    assert convert(fakes.SCRIPT).run_command("out dir/train.py") == "torchrun --nproc-per-node 2 'out dir/train.py'"


def test_public_names() -> None:
    assert ddpify.convert is convert
    assert set(ddpify.__all__) <= set(dir(ddpify)) | set(ddpify._HOME)
    with pytest.raises(AttributeError):
        _ = ddpify.missing


def test_convert_never_imports_torch_and_libcst_only_to_rewrite() -> None:
    code = """
import sys, types
plan = types.ModuleType("ddpify.plan")
from types import SimpleNamespace
plan.first = lambda project, options: None
plan.make_plan = lambda *given: SimpleNamespace(status="nothing", changes=(), findings=(), command="", reason="")
sys.modules["ddpify.plan"] = plan
import ddpify
ddpify.convert("import torch")
print([name for name in ("torch", "numpy", "libcst", "jinja2", "rich", "typer") if name in sys.modules])
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


# --- the diff ------------------------------------------------------------------------------------------------------------

DIFFABLE = {
    "unix": fakes.SCRIPT.encode(),
    "windows": fakes.SCRIPT.replace("\n", "\r\n").encode(),
    "mixed newlines": b"import torch\r\nbatch = 32\nprint(batch)\r\n",
    "old mac": fakes.SCRIPT.replace("\n", "\r").encode(),
    "no newline at the end": b"import torch\nbatch = 32",
    "BOM": b"\xef\xbb\xbf" + fakes.SCRIPT.encode(),
    "form feed": b"import torch\n\x0c\nbatch = 32\n\x0c\nx = '\xe2\x80\xa8'\n",
    "latin-1": b"# coding: latin-1\nbatch = 32  # \xe9\n",
    "mended": b"x = batch = 32\nx.cuda(async=True)\n",
}


@pytest.mark.parametrize("tool", ["git", "patch"])
@pytest.mark.parametrize("name", ["train.py", "my scripts/train me.py", "src/tr\u00e4in.py", '@@/"a\\b"\t.py', "new\nline.py", b"r\xe9.py"])
@pytest.mark.parametrize("data", DIFFABLE.values(), ids=DIFFABLE)
def test_the_diff_applies(monkeypatch, tmp_path: Path, data: bytes, name: str | bytes, tool: str) -> None:
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    path = Path(os.fsdecode(name))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    fakes.install(monkeypatch, lambda p, o: fakes.FakePlan(changes=(fakes.Change("DDP303", "", p.entry.shown, p.entry.tree.body[0], ()),)))
    done = convert(path)
    assert done.changed
    command = ["git", "apply", "-"] if tool == "git" else ["patch", "-p1"]
    subprocess.run(command, input=done.patch, check=True, capture_output=True)
    assert path.read_bytes() == done.bytes
    assert path.read_bytes() != data


def test_names_in_the_diff(monkeypatch, tmp_path: Path) -> None:
    fakes.install(monkeypatch)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    for path in (Path("train.py"), tmp_path / "outside.py"):
        path.write_text(fakes.SCRIPT)
    assert convert(Path("train.py")).diff().startswith("--- a/train.py\n+++ b/train.py\n@@ ")
    assert convert(Path.cwd() / "train.py").diff().startswith("--- a/train.py\n")
    assert convert(Path("../outside.py")).diff().startswith(f"--- a{tmp_path.as_posix()}/outside.py\n")


# --- the reports ---------------------------------------------------------------------------------------------------------


FINDINGS = (
    fakes.finding(Safety.NOTE, 1),
    fakes.finding(Safety.MANUAL, 9, "a = 1\nb = 2\n"),
    fakes.finding(Safety.MANUAL, 2),
    fakes.finding(Safety.MANUAL, 3),
    fakes.finding(Safety.REVIEW, 3),
)
LEFT = """
REVIEW DDP301: a review thing
  train.py:3: print(batch)

MANUAL DDP301: a manual thing
  train.py:2: batch = 32  # per process
  train.py:3: print(batch)

MANUAL DDP301: a manual thing
  train.py:9:
    write: a = 1
           b = 2

train.py: 1 change, 3 to do by hand, 1 to review, 1 note; not finished. \
Until the lines above are changed by hand, the result may fail, hang or train wrongly.
next
"""


def test_what_is_left_comes_after_what_was_done(monkeypatch) -> None:
    fakes.install(monkeypatch, lambda p, o: fakes.FakePlan(changes=(fakes.halve_batch(p),), findings=FINDINGS))
    done = convert(fakes.SCRIPT, shown="train.py")
    assert terminal.report(done, "next\n") == ("DDP301  note on 1: a note thing\n" + f"DDP303  {all_rules()['DDP303'].title}: 2\n" + LEFT)
    assert terminal.report(done, "next\n", verbose=True) == (
        "train.py:1:3: NOTE DDP301 a note thing\ntrain.py:2:1: SAFE DDP303 each rank loads its part of the batch\n" + LEFT
    )


def test_a_line_for_each_rule_and_no_more_than_twelve() -> None:
    def change(code: str, line: int, file: str = "train.py", level: Safety = Safety.SAFE) -> Change:
        return Change(code, "as it must be", file, ast.Pass(lineno=line, col_offset=0), (), level=level)

    done = convert(fakes.SCRIPT, shown="train.py", options=Options())
    lines = [change("DDP204", line) for line in (231, 71, 229, 110, 180, 179, 230, 71)]
    drawn = change("DDP103", 5, level=Safety.NOTE)
    title = all_rules()["DDP204"].title
    assert terminal.report(replace(done, changes=(*lines, drawn)), "").splitlines()[:-1] == [
        f"DDP103  {all_rules()['DDP103'].title}: 5; note: as it must be",
        f"DDP204  {title}: 71, 110, 179-180, 229-231",
    ]
    two = (*lines[1:4], change("DDP204", 3, "data/sets.py"))
    assert terminal.report(replace(done, changes=two), "").splitlines()[0] == f"DDP204  {title}: data/sets.py:3; train.py:71, 110, 229"
    every = [change(code, at) for at, code in enumerate(all_rules(), 1)]
    shown = terminal.report(replace(done, changes=tuple(every)), "compare\nrun\n").splitlines()
    assert len(shown) == 12
    assert all(f"{c.code}  {all_rules()[c.code].title}: {c.line}" in "\n".join(shown) for c in every)


def test_the_templates_are_found() -> None:
    assert template_dir().is_dir()


def test_nothing_is_kept_of_a_conversion() -> None:
    trained = """\
import torch

net = torch.nn.Linear(2, 1)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for rows in torch.utils.data.DataLoader(torch.ones(8, 2), batch_size=2, shuffle=True):
        net(rows).mean().backward()
        sgd.step()
"""
    assert ddpify.convert(trained).changes
    assert not any((origins._KINDS, origins._UNIONS, origins._PARTS))
