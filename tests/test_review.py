"""`ddpify review`: the choice by keys, lines that are edited, and the whole on a pseudo-terminal."""

from __future__ import annotations

import ast
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_python import python
from terminal import Terminal

from ddpify import reviewer_edits
from ddpify.attribution import attributed
from ddpify.conversion import Conversion, convert
from ddpify.errors import DdpifyError
from ddpify.review import Review, in_order
from ddpify.rules.base import Change, Safety

# --- the choice ----------------------------------------------------------------------------------------------------------


def change(id: str, file: str = "train.py", line: int = 1, without: str = "", level: Safety = Safety.SAFE) -> Change:
    return Change(id.partition("-")[0], "a reason", file, ast.Pass(lineno=line, col_offset=0), (), (), level, without, id)


OPTIONAL = "every rank prints or logs this"
CHANGES = (
    change("DDP101-a", line=1),
    change("DDP501-b", line=2, without=OPTIONAL),
    change("DDP304-c", line=3),
    change("DDP501-d", "engine.py", 1, OPTIONAL),
    change("DDP401-e", "engine.py", 2),
    change("DDP504-f", "engine.py", 3, OPTIONAL),
)
IDS = [one.id for one in CHANGES]
FREE = {one.id for one in CHANGES if one.without}


def after(keys: str, changes: tuple[Change, ...] = CHANGES) -> Review:
    """The review after keys; those after its end are not pressed."""
    review = Review(changes)
    for key in keys:
        if not review.ended:
            review = review.press(key)
    return review


def test_what_is_to_be_reviewed_comes_first() -> None:
    shown = in_order(
        [
            change("A", "engine.py", 1),
            change("B", "train.py", 9),
            change("C", "train.py", 2, level=Safety.NOTE),
            change("D", "engine.py", 5, level=Safety.REVIEW),
            change("E", "train.py", 7, level=Safety.REVIEW),
        ],
        ["train.py", "engine.py"],
    )
    assert [one.id for one in shown] == ["E", "D", "C", "B", "A"]
    assert [one.id for one in in_order(shown, ["train.py", "engine.py"], ["B"])] == ["E", "B", "D", "C", "A"]


@pytest.mark.parametrize(
    ("keys", "left", "decided", "ended"),
    [
        ("yyyyyy", [], 6, "done"),
        ("ynynyn", ["DDP501-b", "DDP501-d", "DDP504-f"], 6, "done"),
        ("aa", [], 6, "done"),
        ("dd", ["DDP501-b", "DDP501-d", "DDP504-f"], 6, "done"),
        ("yda", ["DDP501-b"], 6, "done"),  # each ends with its file
        ("ynkya", [], 3, ""),  # k takes a decision back
        ("jjyyynk", ["DDP504-f"], 4, ""),  # what was put off comes at the end
        ("jjyyynyy", ["DDP504-f"], 6, "done"),
        ("yjjjjjn", ["DDP501-b"], 2, ""),
        ("yyynq", ["DDP501-d"], 4, "quit"),
        ("q", [], 0, "quit"),
    ],
)
def test_keys(keys: str, left: list[str], decided: int, ended: str) -> None:
    review = after(keys)
    assert (list(review.left_out), len(review.decided), review.ended) == (left, decided, ended)


def test_the_core_is_not_left_out() -> None:
    review = after("n")
    assert (review.at, review.decided, review.ended) == (0, {}, "")
    assert "cannot be left out" in review.said
    assert "3 changes of DDP101, DDP304, DDP401" in review.said
    assert "--" not in review.said
    assert "--eval replicate" in after("yyn").said


def test_keys_that_do_something_are_named() -> None:
    assert after("").keys == "yadejq?"
    assert after("y").keys == "ynadejkq?"
    assert after("yyyyy").keys == "ynadekq?"
    assert after("jjjjj").keys == "ynadejkq?"


@pytest.mark.parametrize("key", ["x", "", "\n", "?", "k"])
def test_other_keys_decide_nothing(key: str) -> None:
    review = after("").press(key)
    assert (review.at, review.decided, review.ended) == (0, {}, "")
    assert review.said


def test_what_is_edited_is_taken() -> None:
    review = after("yeyyyy")
    assert [one.id for one in review.to_edit] == ["DDP501-b"]
    assert review.left_out == ()


@given(st.text("ynadejkq?x", max_size=60))
def test_any_keys_end_in_a_choice_that_is_allowed(keys: str) -> None:
    review = Review(CHANGES)
    for key in keys:
        before, review = review, review.press(key)
        assert 0 <= review.at < len(CHANGES)
        assert set(before.decided) <= set(review.decided) <= set(IDS)
        assert set(review.left_out) <= FREE
        assert (review.ended == "done") == (len(review.decided) == len(CHANGES))
        if review.ended:
            break
        assert set(review.keys) <= set("ynadejkq?")


@given(st.text("ynadej", min_size=6, max_size=6), st.integers(0, 5))
def test_it_always_comes_to_an_end(keys: str, more: int) -> None:
    assert after(keys + "j" * more + "a" * 12).ended == "done"


# --- lines that are edited -----------------------------------------------------------------------------------------------

SCRIPT = """import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    data = TensorDataset(torch.ones(64, 4), torch.ones(64, 1))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    model = nn.Linear(4, 1)
    print("größer")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        print("epoch", epoch)
    print("done")


if __name__ == "__main__":
    main()
"""


def sheet(done: Conversion, change: str) -> tuple[str, list[reviewer_edits.Place], dict[str, str]]:
    now = reviewer_edits.texts(done)
    where = reviewer_edits.places(attributed(done), change, now)
    return reviewer_edits.sheet(where, now, "why"), where, now


def edited(done: Conversion, change: str, old: str, new: str) -> Conversion:
    text, where, now = sheet(done, change)
    assert text.count(old) == 1
    return reviewer_edits.rewritten(done, reviewer_edits.put_back(text.replace(old, new), where, now, {done.shown: done.source}))


def prints(done: Conversion) -> dict[int, str]:
    """The ids of what can be left out, by line."""
    return {one.line: one.id for one in done.changes if one.without}


@pytest.mark.parametrize("ends", [("\n", "\n"), ("\r\n", "\r\n"), ("\n", "")], ids=["unix", "windows", "unended"])
def test_a_sheet_that_is_put_back_unchanged_changes_nothing(ends: tuple[str, str]) -> None:
    done = convert(SCRIPT.replace("\n", ends[0]).removesuffix(ends[0]) + ends[1])
    for one in done.changes:
        text, where, now = sheet(done, one.id)
        assert where
        assert reviewer_edits.put_back(text, where, now, {done.shown: done.source}) == now


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_edited_lines_have_the_ends_of_the_file(newline: str) -> None:
    done = convert(SCRIPT.replace("\n", newline))
    part = edited(done, prints(done)[18], 'print("epoch", epoch)', 'print("epoch", epoch)\n            print("more")')
    assert part.code == done.code.replace('print("epoch", epoch)', f'print("epoch", epoch){newline}            print("more")')


def test_edits_stay_where_other_changes_are_left_out() -> None:
    done = convert(SCRIPT)
    files, ids = attributed(done), prints(done)
    chosen = done.without([ids[10], ids[19]])
    now = reviewer_edits.texts(chosen)
    where = reviewer_edits.places(files, ids[18], now)
    text = reviewer_edits.sheet(where, now, "why").replace('"epoch"', '"Epoch"')
    assert reviewer_edits.put_back(text, where, now, {done.shown: done.source})[done.shown] == chosen.code.replace('"epoch"', '"Epoch"')


def test_lines_that_are_taken_away() -> None:
    done = convert(SCRIPT.removesuffix("\n"))
    part = edited(
        done, next(one.id for one in done.changes if one.code == "DDP101"), "    init_distributed()\n    main()\n", "    main()\n"
    )
    assert part.code == done.code.replace("    init_distributed()\n    main()", "    main()")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('print("größer")', 'print("größer"', "can then not be read"),
        ('print("größer")', 'print("größer")\n  x', "line 4[0-9]:   x|can then not be read"),
        ('print("größer")', 'print("大きい")', "cannot be written in latin-1"),
        ('print("größer")', "print('\0')", "can then not be read"),
        ("# >>> ddpify: <string>", "# <string>", "not those that were there"),
        ("# >>> ddpify: why\n", "x\n# >>> ddpify: why\n", "before the first"),
    ],
)
def test_edits_that_will_not_do(old: str, new: str, said: str) -> None:
    done = convert(f"# coding: latin-1\n{SCRIPT}".encode("latin-1"))
    with pytest.raises(DdpifyError, match=said):
        edited(done, prints(done)[11], old, new)


# --- on a terminal -------------------------------------------------------------------------------------------------------

ENGINE = """from torch import nn


def fit(model, loader, optimizer, epochs):
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "is over")
"""
MAIN = """import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from engine import fit


def main():
    data = TensorDataset(torch.ones(64, 4), torch.ones(64, 1))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    model = nn.Linear(4, 1)
    print("größer")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    fit(model, loader, optimizer, 2)


if __name__ == "__main__":
    main()
"""
ASKED = "take this change"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    (place / "train.py").write_text(SCRIPT)
    return place


@pytest.fixture
def project(folder: Path) -> Path:
    """A script and the module that it trains with."""
    (folder / "train.py").write_text(MAIN)
    (folder / "engine.py").write_text(ENGINE)
    return folder


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts}


def results(done: Conversion) -> dict[str, str]:
    """What the files hold that a conversion changes."""
    return {done.shown: done.code} | {module.path.name: module.code for module in done.edited}


def whole(folder: Path) -> Conversion:
    there = Path.cwd()
    os.chdir(folder)
    try:
        return convert(Path("train.py"))
    finally:
        os.chdir(there)


def review(folder: Path, *flags: str, **how: object) -> Terminal:
    return Terminal(["ddpify", "review", "train.py", *flags], folder, **how)  # type: ignore[arg-type]


def by_rule(terminal: Terminal, decide: dict[str, str], other: str = "y") -> str:
    """Answers every question by the id of its change, until no more are asked; gives what came then."""
    seen = ""
    while True:
        seen += terminal.sees("]?")
        if ASKED not in seen.splitlines()[-1]:
            return seen
        change = next(word for word in reversed(seen.split()) if word.startswith("DDP") and "-" in word and word[6:7] == "-")
        terminal.types(decide.get(change, other))
        terminal.sees("\n")
        if int(seen.splitlines()[-1].partition("/")[0].strip("(")) == int(seen.splitlines()[-1].partition("/")[2].partition(")")[0]):
            return seen


def test_all_are_taken_and_written_in_place(folder: Path) -> None:
    done = whole(folder)
    with review(folder, "-w") as terminal:
        seen = terminal.sees(f"(1/{len(done.changes)}) {ASKED} [y,a,d,e,j,q,?]? ")
        assert "part of the core" in seen
        terminal.types("a")
        terminal.sees(f"{len(done.changes)} changes: {len(done.changes)} taken\n")
        terminal.sees("the same without asking: ddpify convert train.py -w\n")
        terminal.sees("run it: torchrun ")
        assert terminal.ends() == 0
    assert contents(folder) == {"train.py": done.code}


def test_some_are_left_out_into_another_file(folder: Path) -> None:
    done = whole(folder)
    ids = prints(done)
    out = {ids[10], ids[19]}
    with review(folder, "-o", "my ddp.py") as terminal:
        by_rule(terminal, dict.fromkeys(out, "n"))
        text = terminal.sees("run it: ")
        assert terminal.ends() == 0
    for one in out:
        assert f"left out {one} train.py:" in text
    command = next(line for line in text.splitlines() if line.startswith("the same")).partition(": ")[2]
    assert contents(folder) == {"train.py": SCRIPT, "my ddp.py": done.without(out).code}
    (folder / "my ddp.py").unlink()
    subprocess.run([python(), "-m", *shlex.split(command)], cwd=folder, check=True, capture_output=True)
    assert contents(folder) == {"train.py": SCRIPT, "my ddp.py": done.without(out).code}


def test_the_core_is_refused_with_what_decides_it(folder: Path) -> None:
    done = whole(folder)
    with review(folder, "-w") as terminal:
        terminal.sees(ASKED)
        terminal.types("n")
        said = terminal.sees(ASKED)
        assert "cannot be left out: without it the script would hang, fail or train" in said
        assert "It belongs to the core, changes that need one another: " in said
        terminal.types("d")  # the rest: what can be left out
        terminal.sees("left out in train.py")
        assert terminal.ends() == 0
    assert contents(folder) == {"train.py": done.without(prints(done).values()).code}


@pytest.mark.parametrize("key", ["q", "\x03", "\x04"], ids=["q", "ctrl-c", "ctrl-d"])
def test_nothing_is_written_where_the_user_leaves(project: Path, key: str) -> None:
    with review(project, "-w") as terminal:
        terminal.sees(ASKED)
        terminal.types("y")
        terminal.sees(ASKED)
        terminal.types(key)
        terminal.sees("no file is changed\n")
        if key == "q":
            terminal.sees("what was decided so far: ddpify convert train.py -w\n")
        assert terminal.ends() == (1 if key == "q" else 130)
    assert contents(project) == {"train.py": MAIN, "engine.py": ENGINE}


def test_a_signal_at_any_time(project: Path) -> None:
    with review(project, "-w") as terminal:
        terminal.sees("changes")
        terminal.signals(signal.SIGINT)
        assert terminal.ends() == 130
    assert contents(project) == {"train.py": MAIN, "engine.py": ENGINE}


def test_several_files(project: Path) -> None:
    done = whole(project)
    spoken = next(one.id for one in done.changes if one.without and one.file == "engine.py")
    (project / "out").mkdir()
    with review(project, "-o", "out") as terminal:
        by_rule(terminal, {spoken: "n"})
        assert terminal.ends() == 0
        assert "ddp_utils.py, a new file\n" in terminal.text
    assert {name: text for name, text in contents(project).items() if name.startswith("out")} == {
        f"out/{name}": text for name, text in results(done.without([spoken])).items()
    }
    with review(project, "-o", "one.py") as terminal:  # told before anything is asked
        terminal.sees("error: one file cannot hold this: engine.py, ddp_utils.py changes, too")
        assert terminal.ends() == 2
        assert ASKED not in terminal.text


def test_the_rest_of_a_file(project: Path) -> None:
    done = whole(project)
    free = {one.file: one.id for one in done.changes if one.without}
    with review(project, "-w") as terminal:
        terminal.sees(f"{ASKED} ")
        terminal.types("a")
        terminal.sees("taken in train.py\n")
        assert "engine.py:" in terminal.sees(ASKED)
        terminal.types("d")
        terminal.sees("1 left out in engine.py")
        assert terminal.ends() == 0
    assert contents(project) == results(done.without([free["engine.py"]]))


def test_it_asks_whether_to_write(folder: Path) -> None:
    done = whole(folder)
    for key, expected, code in (("n", SCRIPT, 1), ("y", done.code, 0)):
        with review(folder) as terminal:
            terminal.sees(ASKED)
            terminal.types("a")
            terminal.sees("write train.py [y,n]? ")
            terminal.types(key)
            assert terminal.ends() == code
        assert contents(folder) == {"train.py": expected}


def test_uncommitted_changes(folder: Path) -> None:
    subprocess.run(["git", "init"], cwd=folder, check=True, capture_output=True)
    with review(folder, "-w") as terminal:
        terminal.sees("--allow-dirty")
        assert terminal.ends() == 2
    with review(folder) as terminal:
        terminal.sees(ASKED)
        terminal.types("a")
        terminal.sees("write train.py, though train.py has uncommitted changes [y,n]? ")
        terminal.types("n")
        assert terminal.ends() == 1
    assert contents(folder) == {"train.py": SCRIPT}


def test_the_patch_of_the_choice_goes_where_standard_output_goes(folder: Path, tmp_path: Path) -> None:
    done = whole(folder)
    with review(folder, stdout=tmp_path / "chosen.patch") as terminal:
        terminal.sees(ASKED)
        terminal.types("d")
        assert terminal.ends() == 0
    subprocess.run(["git", "apply", tmp_path / "chosen.patch"], cwd=folder, check=True)
    assert contents(folder) == {"train.py": done.without(prints(done).values()).code}


def editor(folder: Path, text: str) -> dict[str, str]:
    """An editor that does what a script of the shell does to the file $1."""
    (folder.parent / "editor.sh").write_text(text)
    return {"EDITOR": f"sh {folder.parent / 'editor.sh'}"}


def test_lines_are_edited(project: Path) -> None:
    done = whole(project)
    spoken = next(one.id for one in done.changes if one.without and one.file == "engine.py")
    with review(project, "-w", env=editor(project, 'sed -i "s/is over/is finished/" "$1"')) as terminal:
        by_rule(terminal, {spoken: "e"}, "y")
        terminal.sees("1 edited")
        terminal.sees(f"edited {spoken} engine.py:")
        terminal.sees("the same without asking, but for the edited lines: ddpify convert train.py -w\n")
        assert terminal.ends() == 0
    assert contents(project) == {name: text.replace("is over", "is finished") for name, text in results(done).items()}


def test_a_broken_edit_is_asked_about(folder: Path) -> None:
    done = whole(folder)
    breaks = 'if [ -e tried ]; then sed -i "s/(((/(/" "$1"; else touch tried; sed -i "s/print(/print(((/" "$1"; fi'
    for again, code in (("y", done.code), ("n", done.code)):
        (folder / "train.py").write_text(SCRIPT)
        with review(folder, "-w", env=editor(folder, breaks)) as terminal:
            by_rule(terminal, {prints(done)[18]: "e"})
            terminal.sees("error: train.py can then not be read: ")
            terminal.sees("[y,n]? ")
            terminal.types(again)
            terminal.sees("taken\n")
            assert terminal.ends() == 0
        (folder / "tried").unlink()
        assert contents(folder) == {"train.py": code}


@pytest.mark.parametrize(("command", "said"), [("false", "ended with 1"), ("/no/such/editor", "did not work")])
def test_an_editor_that_does_not_work(folder: Path, command: str, said: str) -> None:
    done = whole(folder)
    with review(folder, "-w", env={"VISUAL": command}) as terminal:
        by_rule(terminal, {prints(done)[18]: "e"})
        terminal.sees(said)
        terminal.sees("[y,n]? ")
        terminal.types("\x03")
        assert terminal.ends() == 130
    assert contents(folder) == {"train.py": SCRIPT}


def test_the_window_is_resized(folder: Path) -> None:
    done = whole(folder)
    with review(folder, "-w", columns=40) as terminal:
        terminal.sees(ASKED)
        terminal.resize(100)
        terminal.types("n")
        wide = terminal.sees(ASKED)
        terminal.resize(40)
        terminal.types("n")
        narrow = terminal.sees(ASKED)
        assert len(narrow.splitlines()) > len(wide.splitlines())
        assert max(map(len, narrow.splitlines()[1:-1])) <= 40
        terminal.types("a")
        assert terminal.ends() == 0
    assert contents(folder) == {"train.py": done.code}


def test_keys_that_are_typed_ahead_or_unknown(folder: Path) -> None:
    with review(folder, "-w") as terminal:
        terminal.types("y")
        terminal.sees(f"(2/{len(whole(folder).changes)}) {ASKED}")
        terminal.types("\x1b[A\x1bOB\x1b[3~y\x1by")
        terminal.sees("no such key")
        terminal.sees("(3/")
        terminal.sees("no such key")
        terminal.types("q")
        assert terminal.ends() == 1
    assert contents(folder) == {"train.py": SCRIPT}


@pytest.mark.parametrize(("env", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)], ids=str)
def test_colours(folder: Path, env: dict[str, str], coloured: bool) -> None:
    with review(folder, env=env) as terminal:
        terminal.sees(ASKED)
        terminal.types("q")
        terminal.ends()
        assert ("\x1b[" in terminal.raw.replace("\x1b[K", "")) is coloured


def test_without_a_terminal_it_names_what_to_type(folder: Path) -> None:
    command = [sys.executable, "-m", "ddpify", "review", "train.py", "-w", "--amp", "torch"]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "ddpify convert train.py --amp torch, or ddpify review train.py --amp torch --html page.html" in done.stderr
    assert contents(folder) == {"train.py": SCRIPT}


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [("x = 1\n", 0, "nothing to do"), ("import lightning\nlightning.Trainer().fit(None)\n", 2, "refused"), ("x = (\n", 2, "error")],
)
def test_there_is_nothing_to_choose(folder: Path, text: str, code: int, said: str) -> None:
    (folder / "train.py").write_text(text)
    with review(folder, "-w") as terminal:
        terminal.sees(said)
        assert terminal.ends() == code
    assert contents(folder) == {"train.py": text}
