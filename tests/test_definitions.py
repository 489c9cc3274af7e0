"""Which definitions reach which uses: through branches, loops, calls, attributes and globals."""

from __future__ import annotations

import ast
import re
import textwrap

import pytest

from ddpify.facts.runs import Run, run
from ddpify.project import of_source
from ddpify.source import from_text

# A comment `# x <- 2 5` says that `x`, read on its line, is reached by the definitions on lines 2 and 5 of the script.
CASES = {
    "what is written last": """
        x = 1
        x = 2
        print(x)  # x <- 2
        """,
    "both branches": """
        if flag():
            x = 1
        else:
            x = 2
        print(x)  # x <- 2 4
        """,
    "one branch, or before": """
        x = 1
        if flag():
            x = 2
        print(x)  # x <- 1 3
        """,
    "a branch that returns": """
        def f():
            x = 1
            if flag():
                x = 2
                return
            print(x)  # x <- 2
        f()
        """,
    "round a loop": """
        x = 1
        for i in things():
            print(x)  # x <- 1 4
            x = 2
        """,
    "round the loop inside a loop": """
        for i in things():
            x = 1
            for j in things():
                print(x)  # x <- 2 5
                x = 2
        """,
    "from an inner loop to the top of the next pass of the outer one": """
        x = 1
        for i in things():
            print(x)  # x <- 1 5
            for j in things():
                x = 2
        """,
    "started anew before the inner loop": """
        x = 1
        for i in things():
            x = 3
            for j in things():
                print(x)  # x <- 3 6
                x = 2
        """,
    "not from what `break` leaves": """
        x = 1
        for i in things():
            print(x)  # x <- 1
            if flag():
                x = 2
                break
        print(x)  # x <- 1 5
        """,
    "but from what `continue` leaves": """
        x = 1
        for i in things():
            print(x)  # x <- 1 5
            if flag():
                x = 2
                continue
            x = 7
            break
        """,
    "in a while loop's test": """
        x = 0
        while x < 3:  # x <- 1 3
            x += 1
        """,
    "a parameter is new in each call": """
        def f(x):
            print(x)  # x <- 1
            x = 2
        f(1)
        f(2)
        """,
    "a global, written by a function": """
        x = 1
        def f():
            global x
            x = 2
        print(x)  # x <- 1
        f()
        print(x)  # x <- 4
        """,
    "a global, read by a function at the top of a loop": """
        x = 1
        def f():
            print(x)  # x <- 1 6
        for i in things():
            f()
            x = 2
        """,
    "a name of the same spelling in a function": """
        x = 1
        def f():
            x = 2
            print(x)  # x <- 3
        f()
        print(x)  # x <- 1
        """,
    "a comprehension's own name": """
        x = 1
        y = [x for x in things()]
        print(x)  # x <- 1
        """,
    "a name of the function around": """
        def f():
            x = 1
            def g():
                print(x)  # x <- 2
            g()
        f()
        """,
    "after an exception, or without one": """
        x = 1
        try:
            x = call()
        except ValueError:
            print(x)  # x <- 1 3
            x = 2
        finally:
            print(x)  # x <- 3 6
        """,
    "an attribute of one object": """
        class C:
            def __init__(self):
                self.x = 1
            def set(self):
                self.x = 2
            def show(self):
                print(self.x)  # .x <- 3 5
        c, d = C(), C()
        c.show()
        c.set()
        c.show()
        """,
    "not of another object of the class": """
        class C:
            def __init__(self):
                self.x = 1
        c = C()
        d = C()
        d.x = 2
        print(c.x)  # .x <- 3
        """,
    "deleted": """
        x = 1
        del x
        x = 3
        print(x)  # x <- 3
        """,
    "a with statement's name": """
        x = 1
        with open("f") as x:
            print(x)  # x <- 2
        """,
    "an assignment inside an expression": """
        x = 1
        if (x := call()) > 2:
            print(x)  # x <- 2
        """,
    "unpacked": """
        x, y = 1, 2
        x, z = call()
        print(x, y)  # x <- 2
        """,
}


def _run(text: str) -> tuple[ast.Module, Run]:
    project = of_source(from_text(text), None, "train.py")
    return project.entry.tree, run(project)


@pytest.mark.parametrize("title", CASES)
def test_definitions_that_reach_a_use(title: str) -> None:
    text = textwrap.dedent(CASES[title]).lstrip()
    tree, ran = _run(text)
    asked = [(i, m) for i, line in enumerate(text.splitlines(), 1) if (m := re.search(r"# ([.]?)(\w+) <- ([\d ]+)", line))]
    assert asked
    for line, found in asked:
        kind = ast.Attribute if found[1] else ast.Name
        uses = [n for n in ast.walk(tree) if isinstance(n, kind) and n.lineno == line and isinstance(n.ctx, ast.Load)]
        (use,) = [n for n in uses if (n.attr if isinstance(n, ast.Attribute) else n.id) == found[2]]
        reaching = ran.definitions.reaching(use)
        assert {n.lineno for n in reaching.definitions} == {int(n) for n in found[3].split()}
        assert not reaching.changes


@pytest.mark.parametrize("title", CASES)
def test_uses_are_the_other_way_round(title: str) -> None:
    tree, ran = _run(textwrap.dedent(CASES[title]).lstrip())
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    written = {n.value for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    reads = [n for n in names if isinstance(n.ctx, ast.Load) and n not in written]
    there = {(d, n) for n in reads for d in ran.definitions.reaching(n).definitions if isinstance(d, ast.Name)}
    back = {(d, n) for d in names if isinstance(d.ctx, ast.Store) for n in ran.definitions.uses(d) if n in reads}
    assert there == back


LOOPS = {
    "read below the loop": ("for i in things():\n    x = 1\nprint(x)\n", "x", [3], False),
    "read nowhere": ("x = 0\nfor i in things():\n    x += 1\n", "x", [], True),
    "read inside only": ("x = 0\nfor i in things():\n    x += 1\n    print(x)\n", "x", [], True),
    "read above the loop, on the next pass": (
        "x = 0\nfor e in things():\n    print(x)\n    x = 0\n    for i in things():\n        x += 1\n",
        "x",
        [3],
        True,
    ),
    "written anew first": ("for e in things():\n    for i in things():\n        x = i\n    x = 1\n    print(x)\n", "x", [], False),
    "added to below": ("x = 0\nfor i in things():\n    x += 1\nx += 2\n", "x", [4], True),
}


@pytest.mark.parametrize("title", LOOPS)
def test_what_a_loop_defines_is_live_after_it(title: str) -> None:
    text, name, lines, exposed = LOOPS[title]
    tree, ran = _run(text)
    loop = [n for n in ast.walk(tree) if isinstance(n, ast.For)][-1]
    target = next(n for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store))
    places = ran.definitions.variable(target)
    assert sorted({n.lineno for n in ran.definitions.after(loop, places).values()}) == lines
    assert ran.definitions.exposed(loop, places) is exposed


def test_a_list_is_live_by_another_name() -> None:
    tree, ran = _run("x = []\nd = {'a': x}\nfor i in things():\n    x.append(i)\nprint(d['a'])\nx = []\nprint(x)\n")
    (loop,) = [n for n in ast.walk(tree) if isinstance(n, ast.For)]
    (target,) = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == "x"]
    after = ran.definitions.after(loop, ran.definitions.content(target))
    assert {n.lineno for n in after.values()} == {5}


def test_a_list_made_anew_is_another() -> None:
    tree, ran = _run("for e in things():\n    x = []\n    for i in things():\n        x.append(i)\n    print(x)\n")
    loop = [n for n in ast.walk(tree) if isinstance(n, ast.For)][-1]
    (target,) = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == "x"]
    before = ran.definitions.before(loop, ran.definitions.content(target))
    assert [type(n) for n in before.definitions] == [ast.List]
    assert not before.changes
