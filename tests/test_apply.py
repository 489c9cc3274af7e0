"""Edits carried out on text: what must change changes, and nothing else."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import libcst as cst
import pytest

from ddpify.apply.pairing import pair_all
from ddpify.apply.rewrite import BrokenOutput, Rewritten, rewrite
from ddpify.edits import Drop, DropArgument, Edit, InsertAfter, InsertBefore, NameArgument, Replace, SetArgument, Under, Unwrap, Within
from ddpify.rules.base import Change

ROOT = Path(__file__).parent.parent
RANK0 = "if rank == 0"


class Script:
    """A parsed text in which nodes are found by how they are written."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)

    def expr(self, source: str, nth: int = 0) -> ast.expr:
        """The `nth` expression written as `source` (by structure: spaces do not count)."""
        wanted = ast.dump(ast.parse(source, mode="eval").body)
        found = [node for node in ast.walk(self.tree) if isinstance(node, ast.expr) and ast.dump(_loaded(node)) == wanted]
        return found[nth]

    def call(self, function: str, nth: int = 0) -> ast.Call:
        """The `nth` call of `function`."""
        calls = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(function)]
        return calls[nth]

    def stmt(self, start: str, nth: int = 0) -> ast.stmt:
        """The `nth` statement that starts with `start`, in the order of the text."""
        found = [node for node in ast.walk(self.tree) if isinstance(node, ast.stmt) and ast.unparse(node).startswith(start)]
        return sorted(found, key=lambda node: (node.lineno, node.col_offset))[nth]


def _loaded(node: ast.expr) -> ast.expr:
    return node if isinstance(getattr(node, "ctx", ast.Load()), ast.Load) else ast.Constant(None)


def change(*edits: Edit, imports: tuple[str, ...] = ()) -> Change:
    return Change("DDP999", "because", "train.py", edits[0].node if edits else ast.Module([], []), edits, imports)


def check(before: str, edit: Callable[[Script], list[Change]], after: str) -> None:
    before, after = _dedent(before), _dedent(after)
    script = Script(before)
    changes, known = edit(script), Rewritten()
    got, left_out = rewrite(before, script.tree, changes, known)
    assert left_out == ()
    assert got == after
    for each in [*changes, None]:  # lines that other changes leave as they were are not worked out again
        some = [change for change in changes if change is not each]
        assert rewrite(before, script.tree, some, known) == rewrite(before, script.tree, some)


def refused(before: str, edit: Callable[[Script], list[Change]], after: str) -> None:
    """All but the last change are made."""
    before, after = _dedent(before), _dedent(after)
    script = Script(before)
    changes = edit(script)
    got, left_out = rewrite(before, script.tree, changes)
    assert left_out == (changes[-1],)
    assert got == after


def _dedent(text: str) -> str:
    return textwrap.dedent(text[1:]) if text.startswith("\n") else text


# Pairing

SYNTAX = '''
from __future__ import annotations
import os, sys as system
from a.b import (c, d as e,)
from . import f
from .g import *
@dec
@dec.orated(1)
async def fun(a, /, b: int = 1, *args: str, c=2, d, **kw) -> dict[str, int]:
    global G
    async with a as b, c() as (d, e): pass
    async for x, *y in z: await x
    else: yield
    z = await f(x for x in y)
    return [i async for i in x if i if j for k in l]
def gen(*, k):
    nonlocal_ = yield from x
    x = yield
    def inner():
        nonlocal x; x = 1
    return
class A(B, *C, metaclass=M, **kw):
    x: int = 1; y: "str"
    z.a: int
class D: pass
x = y = z, = 1,
x[1], x[1:2], x[::], x[a:b:c, ...], x[a,], x[(1, 2)], x[*a], x[*a, 1]
a and b and c or d and not e
(a and b) and c
a and (b and c)
a or b or (c or d) or e
a < b <= c != d is not e not in f in g is h == i > j >= k
a + b - c * d / e // f % g ** h @ i << j >> k & l | m ^ ~n
-x ** -y
x += 1; x @= y; x //= z; x **= 2; x >>= 1
f(a, *b, c=d, *e, **g, h=1)
f(*a)(**b)
print("a" 'b' f"c{d}" rf"""{e!r:>{width}.{p:d}}""" f"{x = }" f"{{}} {a['b']}{ {1: 2}[1] }")
b"x" b"y", 1, 1.5, 2j, 0xff, ..., None, True, "\\u00e9" u"x", r"\\d"
lambda: 0; lambda x, *y, z=1, **k: (x, y)
{**a, b: c, "d": {e, *f}}, {a: b for a, b in c}, {a for a in b}, [*a, b], (), [], {}, (a,)
(y := f(x)), a if b else c, (yield_ := 1)
(((a)))(((b)).c)[((d))]
del a, (b, c), d[1]
del (e, f)
assert a, "b"
if a: b; c
elif d:
    e
elif f: g
else:
    h
while (a): break
else: continue_
for i, in x:
    continue
try:
    raise A from b
except (C, D) as e: raise
except E:
    pass
else:
    f
finally:
    g
try: pass
except* A as e: pass
try: pass
finally: pass
with (open(a) as b, c): d
with (a): pass
with (a, b): pass
with (yield_): pass
with a[0], b.c as d.e: pass
match a, b:
    case [1, 2, *_] if c: d
    case {"k": v, **rest} | A(b=1): pass
    case _: e
async def g(): return [await x async for x in y]
if x:\tpass;
def f(a=(1, 2), *, b=lambda: c): return a \\
    + b
x = (  # comment
    a  # b
    .c(  # d
        e
    ))
'''


def _checked(text: str) -> Iterator[tuple[ast.AST, str]]:
    """The abstract nodes that have a partner which is text of its own, and that text."""
    tree, module = ast.parse(text), cst.parse_module(text)
    for node, partner in pair_all(tree, module):
        if isinstance(node, (ast.stmt, ast.expr)) and not isinstance(node, ast.FormattedValue):
            yield node, module.code_for_node(partner)


def _as_ast(node: ast.AST, code: str) -> ast.AST:
    if isinstance(node, ast.stmt):
        return ast.parse(code.strip().rstrip(";")).body[0]
    if isinstance(node, (ast.Slice, ast.Starred)):  # what is an expression only inside another
        text = f"x[{code}]" if isinstance(node, ast.Slice) else f"[{code.rstrip().rstrip(',')}]"
        return next(below for below in ast.walk(ast.parse(text)) if isinstance(below, type(node)))
    return ast.parse(f"({code}\n)", mode="eval").body


def _dump(node: ast.AST) -> str:
    return ast.dump(node).replace("Store()", "Load()").replace("Del()", "Load()")


FILES = sorted([*(ROOT / "ddpify").rglob("*.py"), *(ROOT / "examples").rglob("*.py"), Path(__file__)])


@pytest.mark.parametrize("text", [SYNTAX, *(path.read_text("utf-8") for path in FILES)], ids=["syntax", *(p.name for p in FILES)])
def test_every_pair_is_the_same_code(text: str) -> None:
    pairs = 0
    for node, code in _checked(text):
        assert _dump(_as_ast(node, code)) == _dump(node), code
        pairs += 1
    assert pairs or not ast.parse(text).body


def test_every_statement_and_nearly_every_expression_has_a_partner() -> None:
    tree = ast.parse(SYNTAX)
    found = dict(pair_all(tree, cst.parse_module(SYNTAX)))
    without = [node for node in ast.walk(tree) if isinstance(node, (ast.stmt, ast.expr)) and node not in found]
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in without:  # what is no node of the concrete tree: the tuple in `x[a, b]`, the text of an f-string, patterns
        parent = parents[node]
        written = isinstance(parent, (ast.Subscript, ast.JoinedStr, ast.FormattedValue, ast.pattern))
        assert written, ast.dump(node)


def test_other_trees_pair_to_nothing() -> None:
    for one, other in [("a.b", "a.c"), ("f(a=1)", "f(b=1)"), ("a + b", "a - b"), ("a < b", "a > b"), ("f(x)", "f(x, y)"), ("[a]", "(a,)")]:
        for text in (f"x = {one}", f"def f(x={one}): pass", f"if {one}: pass"):
            tree = ast.parse(text)
            assert tree.body[0] not in dict(pair_all(tree, cst.parse_module(text.replace(one, other))))


# Rewriting

UNTOUCHED = {
    "an empty file": "",
    "only a comment, no newline": "# a",
    "CRLF": "a = 1\r\nif a:\r\n\tb\r\n",
    "mixed newlines": "a = 1\r\nb = 2\nif a:\n    b\r\n",
    "tabs and other spaces": "if a:\n\tb  \n\tif c :\n\t  d=( 1,2 )\n",
    "no trailing newline": "a\n\nif b:\n    c",
    "blank lines with spaces": "def f():\n    a\n   \n\t\n    b\n\n",
    "a form feed on its own line": "a\n\x0c\nb\n",
    "not ASCII": "é = '\u2028ü'  # ∂\n",
    "a comment that is dedented": "def f():\n    a\n# b\n    c\n  # d\n",
}


@pytest.mark.parametrize("text", UNTOUCHED.values(), ids=UNTOUCHED.keys())
def test_text_outside_of_touched_statements_stays(text: str) -> None:
    assert rewrite(text, ast.parse(text), []) == (text, ())
    below = text + ("" if text.endswith("\n") or not text else "\n") + "last(0)"
    for more in (below, "last(0)\n" + text):
        script = Script(more)
        call = script.call("last")
        got, left_out = rewrite(more, script.tree, [change(Replace(call, "first({0})", (call.args[0],)))])
        assert (got, left_out) == (more.replace("last", "first"), ())


def test_spaces_behind_the_last_newline_stay() -> None:
    check(
        "def f():\n    a\n    b\n    ",
        lambda s: [change(Under(s.stmt("def"), RANK0))],
        "if rank == 0:\n    def f():\n        a\n        b\n    ",
    )


def test_text_that_libcst_does_not_give_back_is_left_alone() -> None:
    text = "\x0cdef f(): pass\na()\n"
    script = Script(text)
    changes = [change(Drop(script.stmt("a()")))]
    assert rewrite(text, script.tree, changes) == (text, tuple(changes))


def test_a_long_chain_of_operators_is_no_problem() -> None:
    check("x = " + "a + " * 800 + "b()\n", lambda s: [change(Replace(s.call("b"), "c"))], "x = " + "a + " * 800 + "c\n")


def _replace_call(function: str, template: str) -> Callable[[Script], list[Change]]:
    def edit(script: Script) -> list[Change]:
        call = script.call(function)
        holes = [call.func.value if isinstance(call.func, ast.Attribute) else call.func, *call.args]
        return [change(Replace(call, template, tuple(holes)))]

    return edit


REPLACE = {
    "an attribute call becomes another": ("net = Net().cuda()  # gpu\n", ".cuda", "{0}.to(device)", "net = Net().to(device)  # gpu\n"),
    "a hole that binds loosely gets parentheses": ("y = w(a + b)\n", "w", "{1}.item()", "y = (a + b).item()\n"),
    "a hole that is an argument needs none": ("y = w(a + b)\n", "w", "v({1})", "y = v(a + b)\n"),
    "a number gets parentheses before a dot": ("y = w(1)\n", "w", "{1}.real", "y = (1).real\n"),
    "a replacement that binds loosely gets parentheses": ("y = w(a).b\n", "w", "{1} or c", "y = (a or c).b\n"),
    "a replacement on its own gets none": ("y = w(a)\n", "w", "{1} or c", "y = a or c\n"),
    "a lambda as an argument gets none": ("f(w(a))\n", "w", "lambda: {1}", "f(lambda: a)\n"),
    "parentheses around the replaced stay": ("return_ = (w(a))\n", "w", "v({1})", "return_ = (v(a))\n"),
    "a keyword glued to a parenthesis": ("if(w(a)): pass\n", "w", "not {1}", "if(not a): pass\n"),
    "a hole of several lines": ("y = w(a +\n      b)\n", "w", "{1}", "y = (a +\n      b)\n"),
    "a hole of several lines in brackets": ("f(w(a +\n    b))\n", "w", "{1}", "f(a +\n    b)\n"),
    "a tuple keeps its parentheses": ("x = w((a, b))[0]\n", "w", "{1} + c", "x = ((a, b) + c)[0]\n"),
    "a starred hole": ("w(*a, b)\n", "w", "v({2}, {1})", "v(b, *a)\n"),
    "a generator in parentheses of its own": ("w(i for i in x)\n", "w", "v({1}, 1)", "v((i for i in x), 1)\n"),
    "braces in a template": ("w(a)\n", "w", '{{"k": {1}}}', '{"k": a}\n'),
    "in an f-string of the same quotes": ('f"{w(a)}"\n', "w", '{1}["k"]', "f\"{a['k']}\"\n"),
    "in the format of an f-string": ('f"{x:{w(a)}.3f}"\n', "w", "v({1})", 'f"{x:{v(a)}.3f}"\n'),
    "what an f-string prints of its own code stays": ('f"{ w(a) = } {w=}"\n', "w", "v({1})", 'f" w(a) = { v(a)!r} {w=}"\n'),
    "the format of such an f-string stays": ('f"{w(a)=:.2f}"\n', "w", "v({1})", 'f"w(a)={v(a):.2f}"\n'),
    "a display in an f-string": ("f'{w(a)}'\n", "w", "{{{1}}}", "f'{({a})}'\n"),
    "in a decorator": ("@w(a)\ndef f(): pass\n", "w", "v({1})", "@v(a)\ndef f(): pass\n"),
    "in a default": ("def f(x=w(a)): pass\n", "w", "v({1})", "def f(x=v(a)): pass\n"),
    "in an elif": ("if a: pass\nelif w(b): c\n", "w", "{1}", "if a: pass\nelif b: c\n"),
    "in a with": ("with w(a) as b, c: d\n", "w", "v({1})", "with v(a) as b, c: d\n"),
    "in a for": ("for i in w(a): b\n", "w", "v({1})", "for i in v(a): b\n"),
    "in an except": ("try: a\nexcept w(b): c\n", "w", "v({1})", "try: a\nexcept v(b): c\n"),
    "in a match": ("match w(a):\n  case 1 if x: b\n", "w", "v({1})", "match v(a):\n  case 1 if x: b\n"),
    "in a comprehension": ("[w(i) for i in a if b]\n", "w", "v({1})", "[v(i) for i in a if b]\n"),
    "in a subscript": ("a[w(i), 1:2]\n", "w", "{1}", "a[i, 1:2]\n"),
    "on a line with others": ("a; b = w(c); d  # e\n", "w", "v({1})", "a; b = v(c); d  # e\n"),
    "over a backslash": ("a = 1 + \\\n  w(b)\n", "w", "v({1})", "a = 1 + \\\n  v(b)\n"),
    "after a return that touches it": ("def f(): return(w(a))\n", "w", "{1} + 1", "def f(): return(a + 1)\n"),
}


@pytest.mark.parametrize(("before", "function", "template", "after"), REPLACE.values(), ids=REPLACE.keys())
def test_replace(before: str, function: str, template: str, after: str) -> None:
    check(before, _replace_call(function, template), after)


def test_the_node_itself_can_be_a_hole() -> None:
    def edit(s: Script) -> list[Change]:
        node = s.expr("a + b")
        return [change(Replace(node, "f({0})", (node,))), change(Replace(node, "g({0}, {0})", (node,)))]

    check("x = a + b\n", edit, "x = g(f(a + b), f(a + b))\n")
    check("x = (a +\n     b)\n", edit, "x = (g(f(a +\n     b), f(a +\n     b)))\n")


def test_a_hole_that_leads_keeps_its_parentheses() -> None:
    def edit(s: Script) -> list[Change]:
        return [change(Replace(s.expr("a + b"), "{0}.mean()", (s.expr("a + b"),)))]

    check("x = (a +\n     b)\n", edit, "x = (a +\n     b).mean()\n")


@pytest.mark.parametrize("display", ["()", "(a, b)", "(i for i in x)", "[a]"])
def test_the_parentheses_of_a_display_are_its_own(display: str) -> None:
    def edit(s: Script) -> list[Change]:
        return [change(Replace(s.expr(display), "f({0}, 1)", (s.expr(display),)))]

    check(f"x = {display}\n", edit, f"x = f({display}, 1)\n")


def test_an_edit_far_below_shows_through_a_hole() -> None:
    def edit(s: Script) -> list[Change]:
        outer, inner = s.call("DataParallel"), s.call(".cuda")
        assert isinstance(inner.func, ast.Attribute)
        return [change(Replace(outer, "{0}", (outer.args[0],))), change(Replace(inner, "{0}.to(device)", (inner.func.value,)))]

    check("model = nn.DataParallel(wrap(Net().cuda()), device_ids=[0])\n", edit, "model = wrap(Net().to(device))\n")
    check("model = nn.DataParallel(Net().cuda())\n", edit, "model = Net().to(device)\n")


def test_the_same_edit_of_two_changes_is_made_once() -> None:
    def edit(s: Script) -> list[Change]:
        call = s.call("f")
        return [change(Replace(call, "g({0})", (call,))), change(Replace(call, "g({0})", (call,)))]

    check("f(1)\n", edit, "g(f(1))\n")


def test_a_second_replacement_that_forgets_the_first_is_refused() -> None:
    def edit(s: Script) -> list[Change]:
        call = s.call("f")
        return [change(Replace(call, "g({0})", (call.args[0],))), change(Replace(call, "h({0})", (call.args[0],)), Drop(s.stmt("x")))]

    refused("f(1)\nx\n", edit, "g(1)\nx\n")


def test_a_replacement_that_forgets_an_edit_below_is_refused() -> None:
    def edit(s: Script) -> list[Change]:
        return [change(Replace(s.expr("a"), "b")), change(Replace(s.call("f"), "g({0})", (s.expr("c"),)))]

    refused("f(a, c)\n", edit, "f(b, c)\n")


def test_of_two_edits_that_exclude_each_other_the_later_is_refused() -> None:
    refused(
        "f(a, c)\n",
        lambda s: [change(Replace(s.call("f"), "g({0})", (s.expr("c"),))), change(Replace(s.expr("a"), "b"))],
        "g(c)\n",
    )


def test_an_argument_of_a_call_that_is_gone_is_refused() -> None:
    refused(
        "f(a)\n",
        lambda s: [change(Replace(s.call("f"), "g({0})", (s.expr("a"),))), change(SetArgument(s.call("f"), "k", "1"))],
        "g(a)\n",
    )


def test_an_argument_of_a_call_that_shows_through_is_set() -> None:
    check(
        "f(a)\n",
        lambda s: [change(Replace(s.call("f"), "g({0})", (s.call("f"),))), change(SetArgument(s.call("f"), "k", "1"))],
        "g(f(a, k=1))\n",
    )


def test_a_hole_outside_the_node_is_refused() -> None:
    refused("f(a)\nb\n", lambda s: [change(Replace(s.call("f"), "g({0})", (s.expr("b"),)))], "f(a)\nb\n")


def test_code_that_is_not_python_is_refused() -> None:
    refused("f(a)\n", lambda s: [change(Replace(s.call("f"), "g({0}", (s.expr("a"),)))], "f(a)\n")
    refused("f(a)\n", lambda s: [change(InsertBefore(s.stmt("f"), "if x"))], "f(a)\n")
    refused("f(a, b)\n", lambda s: [change(NameArgument(s.call("f"), "x", 0))], "f(a, b)\n")
    refused("g(a['b'])\n", lambda s: [change(Replace(s.call("g"), "f'{{{0}}}'", (s.expr("a['b']"),)))], "g(a['b'])\n")


def test_a_node_of_another_tree_is_refused() -> None:
    refused("f(a)\n", lambda _: [change(Replace(Script("f(a)").call("f"), "g"))], "f(a)\n")


def test_a_broken_result_is_a_defect() -> None:
    with pytest.raises(BrokenOutput, match=r"line 2 .*unicode error"):
        check("try: a\nexcept b: c\n", lambda s: [change(Replace(s.expr("b"), r"'\x'"))], "")


# Arguments

DATA = """
loader = DataLoader(
    data,
    batch_size=8,  # images
    shuffle=True,
)
"""
ARGUMENTS: dict[str, tuple[str, list[tuple[str, str]], str]] = {
    "appended on one line": ("f(a, b=1)\n", [("k", "v")], "f(a, b=1, k=v)\n"),
    "appended to nothing": ("f()\n", [("k", "v")], "f(k=v)\n"),
    "appended behind a trailing comma": ("f(a,)\n", [("k", "v")], "f(a, k=v,)\n"),
    "appended inside spaces": ("f( a )\n", [("k", "v")], "f( a, k=v )\n"),
    "appended behind a generator": ("f(i for i in a)\n", [("k", "v")], "f((i for i in a), k=v)\n"),
    "appended behind stars": ("f(*a, **b)\n", [("k", "v")], "f(*a, **b, k=v)\n"),
    "replaced in place": ("f(a, k = 1, b=2)\n", [("k", "v")], "f(a, k = v, b=2)\n"),
    "a walrus in parentheses": ("f(k=1)\n", [("k", "(v := 1)")], "f(k=(v := 1))\n"),
    "one argument per line": (DATA, [("shuffle", "False"), ("sampler", "s")], DATA.replace("True,", "False,\n    sampler=s,")),
    "one per line without a trailing comma": ("f(\n    a,\n    b=1\n)\n", [("k", "v")], "f(\n    a,\n    b=1,\n    k=v\n)\n"),
    "aligned with the parenthesis": ("f(a,\n  b=1)  # c\n", [("k", "v")], "f(a,\n  b=1,\n  k=v)  # c\n"),
    "several on the last line": ("f(a,\n  b, c)\n", [("k", "v")], "f(a,\n  b, c, k=v)\n"),
    "the only argument on a line of its own": ("f(\n    a\n)\n", [("k", "v")], "f(\n    a,\n    k=v\n)\n"),
    "a comment behind the last argument stays there": (
        "f(\n    a,\n    b=1  # c\n)\n",
        [("k", "v")],
        "f(\n    a,\n    b=1,  # c\n    k=v\n)\n",
    ),
    "a comment above the closing parenthesis stays": (
        "f(\n    a,\n    b,  # c\n    # d\n)\n",
        [("k", "v")],
        "f(\n    a,\n    b,  # c\n    k=v,\n    # d\n)\n",
    ),
    "several on one call": ("f(a)\n", [("k", "v"), ("l", "w"), ("m", "x")], "f(a, k=v, l=w, m=x)\n"),
    "in the lines of a CRLF file": ("f(\r\n\ta,\r\n\tb,\r\n)\r\n", [("k", "v")], "f(\r\n\ta,\r\n\tb,\r\n\tk=v,\r\n)\r\n"),
}


@pytest.mark.parametrize(("before", "values", "after"), ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_set_argument(before: str, values: list[tuple[str, str]], after: str) -> None:
    def edit(s: Script) -> list[Change]:
        call = next(node for node in ast.walk(s.tree) if isinstance(node, ast.Call))
        return [change(SetArgument(call, name, value)) for name, value in values]

    check(before, edit, after)


def test_a_positional_argument_is_set_in_place() -> None:
    def edit(s: Script) -> list[Change]:
        call = s.call("DataLoader")
        return [change(SetArgument(call, "batch_size", "{0} // world_size", (call.args[1],), position=1))]

    check("DataLoader(data, 8 * k, True)\n", edit, "DataLoader(data, (8 * k) // world_size, True)\n")


def test_an_argument_behind_a_star_is_not_taken_for_the_position() -> None:
    check("f(*a, b)\n", lambda s: [change(SetArgument(s.call("f"), "k", "v", position=1))], "f(*a, b, k=v)\n")


def test_two_values_for_one_argument_conflict() -> None:
    refused("f(k=0)\n", lambda s: [change(SetArgument(s.call("f"), "k", v)) for v in "12"], "f(k=1)\n")
    refused("f()\n", lambda s: [change(SetArgument(s.call("f"), "k", v)) for v in "12"], "f(k=1)\n")
    refused("f(k=0)\n", lambda s: [change(SetArgument(s.call("f"), "k", "1")), change(DropArgument(s.call("f"), "k"))], "f(k=1)\n")
    check("f(k=0)\n", lambda s: [change(SetArgument(s.call("f"), "k", "1")) for _ in "12"], "f(k=1)\n")


DROPPED = {
    "the last": ("f(a, k=1)\n", "f(a)\n"),
    "the only one": ("f(\n    k=1,\n)\n", "f()\n"),
    "the first": ("f(k=1, **b)\n", "f(**b)\n"),
    "one line of several": ("f(\n    a,\n    k=1,  # gone\n    b=2,\n)\n", "f(\n    a,\n    b=2,\n)\n"),
    "the last line": ("f(\n    a,  # stays\n    k=1,  # gone\n)\n", "f(\n    a,  # stays\n)\n"),
    "the last line without a comma": ("f(\n    a,  # stays\n    k=1\n)\n", "f(\n    a  # stays\n)\n"),
    "one that is not there": ("f(a)\n", "f(a)\n"),
}


@pytest.mark.parametrize(("before", "after"), DROPPED.values(), ids=DROPPED.keys())
def test_drop_argument(before: str, after: str) -> None:
    check(before, lambda s: [change(DropArgument(s.call("f"), "k"))], after)


def test_a_positional_argument_is_dropped_only_from_the_end() -> None:
    check("f(a, b)\n", lambda s: [change(DropArgument(s.call("f"), "k", 1))], "f(a)\n")
    refused("f(a, b)\n", lambda s: [change(DropArgument(s.call("f"), "k", 0))], "f(a, b)\n")


def test_arguments_are_named_so_that_one_before_them_can_be_dropped() -> None:
    def edit(s: Script) -> list[Change]:
        f = s.call("f")
        return [change(NameArgument(f, "y", 2), NameArgument(f, "x", 1), DropArgument(f, "k", 0), SetArgument(f, "x", "0", position=1))]

    check("f(a, b, c)\n", edit, "f(x=0, y=c)\n")


# Statements


def _under(*starts: str, header: str = RANK0) -> Callable[[Script], list[Change]]:
    return lambda s: [change(Under(s.stmt(start), header)) for start in starts]


LINES_BEFORE = '''
for x in y:
    print("a",
          "b"  # c
    # d
          )
    print(
        """
  text
        """,
    )
'''
LINES_AFTER = '''
for x in y:
    if rank == 0:
        print("a",
              "b"  # c
        # d
              )
        print(
            """
  text
        """,
        )
'''
UNDER: dict[str, tuple[str, tuple[str, ...], str]] = {
    "one statement": ("a()\nb()\n", ("a",), "if rank == 0:\n    a()\nb()\n"),
    "neighbours share a block": ("a()\n\nb()\n", ("a", "b"), "if rank == 0:\n    a()\n\n    b()\n"),
    "not neighbours": ("a()\nb()\nc()\n", ("a", "c"), "if rank == 0:\n    a()\nb()\nif rank == 0:\n    c()\n"),
    "comments": (
        """
        def f():
            x

            # old

            # above
            a()  # behind
            # between
            b()
            # below
        # out
        c
        """,
        ("a", "b"),
        """
        def f():
            x

            # old

            # above
            if rank == 0:
                a()  # behind
                # between
                b()
            # below
        # out
        c
        """,
    ),
    "calls over several lines": (LINES_BEFORE, ("print('a'", "print('\\n"), LINES_AFTER),
    "a line that a backslash continues": (
        "if x:\n    assert a, \\\n        b\n",
        ("assert",),
        "if x:\n    if rank == 0:\n        assert a, \\\n            b\n",
    ),
    "a compound statement": (
        "for a in b:\n\n    # c\n    d\n\n    # e\nelse:\n    f\ng\n",
        ("for",),
        "if rank == 0:\n    for a in b:\n\n        # c\n        d\n\n        # e\n    else:\n        f\ng\n",
    ),
    "blank lines inside": (
        "try:\n    f(a,\n\n      b)\n\nexcept E:\n\n    pass\n",
        ("try",),
        "if rank == 0:\n    try:\n        f(a,\n\n          b)\n\n    except E:\n\n        pass\n",
    ),
    "a decorated definition": (
        "x\n\n# c\n@d\n# e\ndef f(): pass\n",
        ("@d",),
        "x\n\n# c\nif rank == 0:\n    @d\n    # e\n    def f(): pass\n",
    ),
    "the middle of a line": ("a; b; c  # d\n", ("b",), "a\nif rank == 0:\n    b\nc  # d\n"),
    "the end of a line": ("# x\na; b; c  # d\n", ("c",), "# x\na; b\nif rank == 0:\n    c  # d\n"),
    "a suite on the line of its header": (
        "if x: a; b  # c\nelse: d\n",
        ("b", "d"),
        "if x:\n    a\n    if rank == 0:\n        b  # c\nelse:\n    if rank == 0:\n        d\n",
    ),
    "a file with tabs": ("if x:\n\ta(1,\n\t  2)\n", ("a",), "if x:\n\tif rank == 0:\n\t\ta(1,\n\t\t  2)\n"),
    "a block with tabs in a file with spaces": (
        "if w:\n  v\nif x:\n\ta\n",
        ("a",),
        "if w:\n  v\nif x:\n\tif rank == 0:\n\t\ta\n",
    ),
    "a file with CRLF and two spaces": (
        "if x:\r\n  a\r\n  b\r\n",
        ("a", "b"),
        "if x:\r\n  if rank == 0:\r\n    a\r\n    b\r\n",
    ),
    "no newline at the end": ("a\nb", ("b",), "a\nif rank == 0:\n    b"),
    "in an elif, a handler, an else and a finally": (
        "if x: pass\nelif y:\n    a\ntry: pass\nexcept E:\n    b\nelse:\n    c\nfinally:\n    d\n",
        ("a", "b", "c", "d"),
        "if x: pass\nelif y:\n    {0}a\ntry: pass\nexcept E:\n    {0}b\nelse:\n    {0}c\nfinally:\n    {0}d\n".format(
            "if rank == 0:\n        "
        ),
    ),
}


@pytest.mark.parametrize(("before", "starts", "after"), UNDER.values(), ids=UNDER.keys())
def test_under(before: str, starts: tuple[str, ...], after: str) -> None:
    check(before, _under(*starts), after)


def test_under_a_with() -> None:
    check("a\n", _under("a", header="with main_first():"), "with main_first():\n    a\n")


def test_statements_under_different_headers_do_not_share_a_block() -> None:
    def edit(s: Script) -> list[Change]:
        return [change(Under(s.stmt("a"), RANK0)), change(Under(s.stmt("b"), "if x"))]

    check("a\nb\n", edit, "if rank == 0:\n    a\nif x:\n    b\n")


def test_two_headers_for_one_statement_conflict() -> None:
    refused("a\n", lambda s: [change(Under(s.stmt("a"), header)) for header in (RANK0, "if x")], "if rank == 0:\n    a\n")


def test_a_statement_and_what_is_in_it_are_edited_together() -> None:
    def edit(s: Script) -> list[Change]:
        return [change(Replace(s.call("f"), "g({0})", (s.expr("x"),))), change(Under(s.stmt("print"), RANK0))]

    check("print(f(x))\n", edit, "if rank == 0:\n    print(g(x))\n")


@pytest.mark.parametrize("edit", [Drop, lambda node: Under(node, RANK0), lambda node: InsertBefore(node, "x"), Unwrap])
def test_an_elif_cannot_be_moved(edit: Callable[[ast.stmt], Edit]) -> None:
    refused("if a: b\nelif c: d\n", lambda s: [change(edit(s.stmt("if c")))], "if a: b\nelif c: d\n")


DROP: dict[str, tuple[str, tuple[str, ...], str]] = {
    "with the comments that belong to it": ("a\n\n# old\n\n# own\nb  # too\n# next\nc\n", ("b",), "a\n\n# old\n\n# next\nc\n"),
    "blank lines do not add up": ("a\n\nb\n\nc\n", ("b",), "a\n\nc\n"),
    "definitions stay apart": ("def f(): pass\n\n\na\ndef g(): pass\n", ("a",), "def f(): pass\n\n\ndef g(): pass\n"),
    "a body left empty": ("if x:\n    # c\n    a\n    b\nelse:\n    c\n", ("a", "b"), "if x:\n    pass\nelse:\n    c\n"),
    "an else left empty": ("if x:\n    a\nelse:\n    b\nc\n", ("b",), "if x:\n    a\nc\n"),
    "an else left empty behind another test": ("if x:\n    a\nelif y:\n    b\nelse:\n    c\n", ("c",), "if x:\n    a\nelif y:\n    b\n"),
    "an else that a comment is left of": ("if x:\n    a\nelse:  # c\n    b\n", ("b",), "if x:\n    a\nelse:  # c\n    pass\n"),
    "the comments at the end of a body stay": (
        "def f():\n    a\n\n    b\n    # c\n\nd\n",
        ("b",),
        "def f():\n    a\n    # c\n\nd\n",
    ),
    "comments apart stay in a body left empty": ("def f():\n    # c\n\n    b\n", ("b",), "def f():\n    # c\n    pass\n"),
    "the first of a body": ("def f():\n    a\n\n    b\n", ("a",), "def f():\n    b\n"),
    "the first of a file": ("a\n\nb\n", ("a",), "b\n"),
    "below the heading of a file": ("# x\n\na\n\nb\n", ("a",), "# x\n\nb\n"),
    "the last of a file": ("a\n\n\nb\n", ("b",), "a\n"),
    "of a line": ("a; b; c  # d\n", ("b",), "a\nc  # d\n"),
    "the end of a line": ("a; b\n", ("b",), "a\n"),
    "a suite on the line of its header": ("if x: a\n", ("a",), "if x:\n    pass\n"),
    "everything": ("# x\na\nb\n", ("a", "b"), "# x\n"),
}


@pytest.mark.parametrize(("before", "starts", "after"), DROP.values(), ids=DROP.keys())
def test_drop(before: str, starts: tuple[str, ...], after: str) -> None:
    check(before, lambda s: [change(*(Drop(s.stmt(start)) for start in starts))], after)


def test_what_is_inside_a_dropped_statement_goes_with_it() -> None:
    def edit(s: Script) -> list[Change]:
        return [
            change(Drop(s.stmt("if"))),
            change(Replace(s.expr("x"), "y"), Under(s.stmt("a"), RANK0)),
            change(Under(s.stmt("if"), "if z")),
        ]

    check("if x:\n    a\nb\n", edit, "b\n")


UNWRAP = {
    "an if": (
        """
        # above
        if x:  # behind

            # first
            a
            b(1,
              2)

            # last
        c
        """,
        "if",
        """
        # above
        # behind
        # first
        a
        b(1,
          2)

        # last
        c
        """,
    ),
    "a with in a function": ("def f():\n\twith a as b:\n\t\tc \\\n\t\t\t+ d\n", "with", "def f():\n\tc \\\n\t\t+ d\n"),
    "a suite on the line of its header": ("# a\nif x: b; c  # d\ne\n", "if", "# a\nb; c  # d\ne\n"),
    "one with an else": ("if x:\n    a\nelse:\n    b\n", "if", "a\n"),
    "compound statements inside": ("if x:\n  for a in b:\n    c\n  d\n", "if", "for a in b:\n  c\nd\n"),
}


@pytest.mark.parametrize(("before", "start", "after"), UNWRAP.values(), ids=UNWRAP.keys())
def test_unwrap(before: str, start: str, after: str) -> None:
    def edit(s: Script) -> list[Change]:
        node = s.stmt(start)
        assert isinstance(node, (ast.If, ast.With))
        return [change(Unwrap(node))]

    check(before, edit, after)


def test_a_block_is_exchanged_for_another() -> None:
    def edit(s: Script) -> list[Change]:
        node = s.stmt("with")
        assert isinstance(node, ast.With)
        return [change(Unwrap(node), Under(node, RANK0), Drop(s.stmt("b")))]

    check("with x():\n    a\n    b\n    c\nd\n", edit, "if rank == 0:\n    a\n    c\nd\n")


BLOCK = """
def setup():
    # why
    if torch.cuda.is_available():
        init(
            a,
        )


local_rank = 0  # x

"""

INSERT: dict[str, tuple[str, str, str, str]] = {
    "below blank lines and above the comments": ("a\n\n# old\n\n# own\nb\n", "b", "x\n", "a\n\n# old\n\nx\n# own\nb\n"),
    "a blank line first": ("a\nb\n", "b", "\nx\n", "a\n\nx\nb\n"),
    "a blank line first where there is one": ("a\n\nb\n", "b", "\nx\n", "a\n\nx\nb\n"),
    "a blank line last": ("a\n# c\nb\n", "b", "x\n\n", "a\nx\n\n# c\nb\n"),
    "comments of its own": ("a\nb\n", "b", "# y\nx  # z\n# w\n", "a\n# y\nx  # z\n# w\nb\n"),
    "above decorators": ("# c\n\n@d\ndef f(): pass\n", "@d", "x\n\n\n", "# c\n\nx\n\n\n@d\ndef f(): pass\n"),
    "below the heading of a file": ("#!/usr/bin/env python\n# x\na\n", "a", "b\n", "#!/usr/bin/env python\n# x\nb\na\n"),
    "a blank line below a heading and another": ("# x\n\na\n", "a", "\nb\n", "# x\n\nb\na\n"),
    "in the middle of a line": ("a; b  # c\n", "b", "x\n", "a\nx\nb  # c\n"),
    "at the start of a line": ("a; b  # c\n", "a", "x\n", "x\na; b  # c\n"),
    "into a suite on the line of its header": ("if y: a; b\n", "a", "x", "if y:\n    x\n    a; b\n"),
    "a whole block": ("import torch\n\nmain()\n", "main", BLOCK, "import torch\n" + BLOCK + "main()\n"),
    "a whole block with tabs and CRLF": (
        "if a:\r\n\tb\r\nmain()\r\n",
        "main",
        BLOCK.strip(),
        "if a:\r\n\tb\r\n"
        "def setup():\r\n\t# why\r\n\tif torch.cuda.is_available():\r\n\t\tinit(\r\n\t\t    a,\r\n\t\t)\r\n\r\n\r\n"
        "local_rank = 0  # x\r\nmain()\r\n",
    ),
    "into a block with an indentation of its own": (
        "if a:\n    b\nif c:\n  d\n",
        "d",
        "if x:\n    y\n",
        "if a:\n    b\nif c:\n  if x:\n    y\n  d\n",
    ),
}


@pytest.mark.parametrize(("before", "start", "code", "after"), INSERT.values(), ids=INSERT.keys())
def test_insert_before(before: str, start: str, code: str, after: str) -> None:
    check(before, lambda s: [change(InsertBefore(s.stmt(start), code))], after)


AFTER: dict[str, tuple[str, str, str, str]] = {
    "a simple statement": ("a  # b\n\n# c\nd\n", "a", "x\n", "a  # b\nx\n\n# c\nd\n"),
    "a compound statement": ("if a:\n    b\n    # c\nd\n", "if", "\nx\n", "if a:\n    b\n    # c\n\nx\nd\n"),
    "the last of a body": ("if a:\n    b\n    # c\nd\n", "b", "x\n", "if a:\n    b\n    x\n    # c\nd\n"),
    "the last of a file without a newline": ("a", "a", "x\n", "a\nx"),
    "blank lines last": ("def f(): pass\n\na\n", "def", "\n\nx\n\n\n", "def f(): pass\n\n\nx\n\n\na\n"),
    "blank lines last, at the end": ("def f():\n    a\n", "a", "\nx\n\n", "def f():\n    a\n\n    x\n"),
    "in a line": ("a; b  # c\n", "a", "x\n", "a\nx\nb  # c\n"),
    "at the end of a line": ("a; b  # c\nd\n", "b", "x\n", "a; b  # c\nx\nd\n"),
}


@pytest.mark.parametrize(("before", "start", "code", "after"), AFTER.values(), ids=AFTER.keys())
def test_insert_after(before: str, start: str, code: str, after: str) -> None:
    check(before, lambda s: [change(InsertAfter(s.stmt(start), code))], after)


def test_inserts_keep_their_order_and_the_same_code_comes_once() -> None:
    def edit(s: Script) -> list[Change]:
        a = s.stmt("a")
        return [change(InsertBefore(a, "x\n"), InsertAfter(a, "v\n")), change(InsertBefore(a, "y\n")), change(InsertBefore(a, "x\n"))]

    check("# c\n\nb\n\na\n", edit, "# c\n\nb\n\nx\ny\na\nv\n")


def test_inserts_stand_outside_the_block_of_their_anchor() -> None:
    def edit(s: Script) -> list[Change]:
        return [change(InsertBefore(s.stmt("b"), "x")), *_under("a", "b", "c")(s)]

    check("a\nb\nc\n", edit, "if rank == 0:\n    a\nx\nif rank == 0:\n    b\n    c\n")


LIFTED: dict[str, tuple[str, str, str]] = {
    "an argument": ('print("n", f(model))\n', "f(model)", 'n = f(model.module)\nif rank == 0:\n    print("n", n)\n'),
    "on a line of its own": (
        "print(\n    1,\n    f(\n        model\n    )\n    .a,  # b\n)\n",
        "f(model).a",
        "n = (f(\n        model.module\n    )\n    .a)\nif rank == 0:\n    print(\n        1,\n        n,  # b\n    )\n",
    ),
    "of a statement behind a colon": (
        "if a: print(f(model))\n",
        "f(model)",
        "if a:\n    n = f(model.module)\n    if rank == 0:\n        print(n)\n",
    ),
    "inside a string": (
        'print(f"{f(model)}")\n',
        "f(model)",
        'n = f(model.module)\nif rank == 0:\n    print(f"{n}")\n',
    ),
}


@pytest.mark.parametrize(("before", "lifted", "after"), LIFTED.values(), ids=LIFTED.keys())
def test_an_expression_is_lifted_out_with_what_other_changes_make_of_it(before: str, lifted: str, after: str) -> None:
    def edit(s: Script) -> list[Change]:
        node, name, line = s.expr(lifted), s.expr("model"), s.stmt("print")
        inner = change(Replace(name, "{0}.module", (name,)))
        return [inner, change(InsertBefore(line, "n = {0}", (node,)), Replace(node, "n"), Under(line, RANK0))]

    check(before, edit, after)


def test_what_another_change_replaces_whole_is_lifted_as_it_is_then() -> None:
    def edit(s: Script) -> list[Change]:
        node, line = s.expr("f(a)"), s.stmt("print")
        return [change(Replace(node, "total({0})", (node,))), change(InsertBefore(line, "n = {0}", (node,)), Replace(node, "n"))]

    check("print(f(a))\n", edit, "n = total(f(a))\nprint(n)\n")


def test_a_statement_is_exchanged_for_others() -> None:
    def edit(s: Script) -> list[Change]:
        return [change(Drop(s.stmt("b")), InsertBefore(s.stmt("b"), "x\ny\n"))]

    check("a\n\nb\nc\n", edit, "a\n\nx\ny\nc\n")


# Imports

OS, DIST, TORCH = "import os", "import torch.distributed as dist", "import torch"
SAMPLER = "from torch.utils.data.distributed import DistributedSampler"
SUBSET = "from torch.utils.data import Subset"
MAIN = "\nmain()\n"

IMPORTS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "each to its kin": (
        "import sys\nimport torch\nimport numpy as np\nfrom a import b\n" + MAIN,
        (OS, DIST),
        "import sys\nimport os\nimport torch\nimport torch.distributed as dist\nimport numpy as np\nfrom a import b\n" + MAIN,
    ),
    "plain ones to plain ones": (
        "import torch\nfrom torch import nn\n" + MAIN,
        (SAMPLER, DIST),
        "import torch\nimport torch.distributed as dist\nfrom torch import nn\n" + SAMPLER + "\n" + MAIN,
    ),
    "standard library first": ("# x\nimport torch\n" + MAIN, (OS,), "# x\nimport os\n\nimport torch\n" + MAIN),
    "torch to the end where there is none": (
        "import os\nfrom . import a\n" + MAIN,
        (TORCH,),
        "import os\nfrom . import a\nimport torch\n" + MAIN,
    ),
    "what is there": ("import os.path\nimport torch\nfrom torch import distributed as dist\n" + MAIN, (OS, DIST, TORCH), ""),
    "what is there in a try": ("try:\n    import os\nexcept ImportError:\n    os = None\n" + MAIN, (OS,), ""),
    "what is there under another name": ("import torch.distributed\n" + MAIN, (DIST,), f"import torch.distributed\n{DIST}\n" + MAIN),
    "what is there too late": ("import sys\n" + MAIN + "import os\n", (OS,), "import sys\nimport os\n" + MAIN + "import os\n"),
    "into a statement that is there": (
        "from torch.utils.data import DataLoader  # x\n" + MAIN,
        (SUBSET,),
        "from torch.utils.data import DataLoader, Subset  # x\n" + MAIN,
    ),
    "into a statement in parentheses": (
        "from torch.utils.data import (\n    DataLoader,\n    Dataset,  # x\n)\n" + MAIN,
        (SUBSET,),
        "from torch.utils.data import (\n    DataLoader,\n    Dataset,  # x\n    Subset,\n)\n" + MAIN,
    ),
    "into a statement in parentheses on one line": (
        "from torch.utils.data import (DataLoader)\n" + MAIN,
        (SUBSET, "from torch.utils.data import random_split as split"),
        "from torch.utils.data import (DataLoader, Subset, random_split as split)\n" + MAIN,
    ),
    "not into a star": ("from torch.utils.data import *\n" + MAIN, (SUBSET,), f"from torch.utils.data import *\n{SUBSET}\n" + MAIN),
    "two of one module": (
        "import torch\n" + MAIN,
        (SUBSET, "from torch.utils.data import DataLoader"),
        "import torch\nfrom torch.utils.data import Subset, DataLoader\n" + MAIN,
    ),
    "below a docstring": ('"""Doc."""\nmain()\n', (OS, TORCH), '"""Doc."""\n\nimport os\nimport torch\n\nmain()\n'),
    "below a docstring and a blank line": ('"""Doc."""\n\nmain()\n', (OS,), '"""Doc."""\n\nimport os\n\nmain()\n'),
    "below a future": (
        "from __future__ import annotations\ndef main(): pass\nmain()\n",
        (OS,),
        "from __future__ import annotations\n\nimport os\n\n\ndef main(): pass\nmain()\n",
    ),
    "above a first definition": ("def f(): pass\nimport sys\nmain()\n", (OS,), "import os\n\n\ndef f(): pass\nimport sys\nmain()\n"),
    "between other statements": (
        "import os\nos.environ['A'] = '0'\nimport torch\nif x:\n    import y\n" + MAIN,
        ("import random", DIST),
        "import os\nimport random\nos.environ['A'] = '0'\nimport torch\nimport torch.distributed as dist\nif x:\n    import y\n" + MAIN,
    ),
    "on a line with others": ("import os; import torch\n" + MAIN, (DIST,), f"import os; import torch\n{DIST}\n" + MAIN),
    "in the newlines of the file": ("import torch\r\n\r\nmain()\r\n", (DIST,), f"import torch\r\n{DIST}\r\n\r\nmain()\r\n"),
}


@pytest.mark.parametrize(("before", "imports", "after"), IMPORTS.values(), ids=IMPORTS.keys())
def test_imports(before: str, imports: tuple[str, ...], after: str) -> None:
    def edit(s: Script) -> list[Change]:
        call = s.call("main")
        return [change(Replace(call, "run({0})", (call,)), imports=imports)]

    check(before, edit, (after or before).replace("\nmain()", "\nrun(main())"))


def test_an_import_is_never_below_its_use() -> None:
    code = "x = os.environ\ndist.init()\n"

    def edit(s: Script) -> list[Change]:
        return [change(InsertBefore(s.stmt("import torch"), code), imports=(DIST, OS))]

    after = f"import sys\n{OS}\n{DIST}\n{code}import torch\nimport a\n"
    check("import sys\nimport torch\nimport a\n", edit, after)
    check("import torch\nimport a\n", edit, f"{OS}\n{DIST}\n\n{code}import torch\nimport a\n")


def test_an_import_stands_above_what_is_inserted_at_the_same_place() -> None:
    def edit(s: Script) -> list[Change]:
        return [change(InsertAfter(s.stmt("import torch"), "\ndist.init()\n"), imports=(DIST,))]

    check("import torch\nmain()\n", edit, f"import torch\n{DIST}\n\ndist.init()\nmain()\n")


def test_a_dropped_import_does_not_count() -> None:
    def edit(s: Script) -> list[Change]:
        return [change(Drop(s.stmt("import os"))), change(SetArgument(s.call("main"), "a", "os.x"), imports=(OS,))]

    check("import os\nimport sys\nmain()\n", edit, "import sys\nimport os\nmain(a=os.x)\n")


def test_the_imports_of_a_refused_change_are_not_added() -> None:
    refused("import sys\nmain()\n", lambda s: [change(Replace(s.call("main"), "f("), imports=(OS,))], "import sys\nmain()\n")


def test_an_import_alone() -> None:
    script = Script("import torch\na\n")
    got = rewrite(script.text, script.tree, [change(imports=(DIST,))])
    assert got == (f"import torch\n{DIST}\na\n", ())


def test_blocks_around_statements_lie_in_one_another() -> None:
    text = "a\nb\nc  # last\nd\n"
    script = Script(text)
    around = [(script.stmt("a"), script.stmt("b"), "with x"), (script.stmt("a"), script.stmt("c"), "with y")]
    changes = [change(Within(first, last, header)) for first, last, header in around]
    after, refused_ = rewrite(text, script.tree, changes)
    assert (after, refused_) == ("with y:\n    with x:\n        a\n        b\n    c  # last\nd\n", ())
