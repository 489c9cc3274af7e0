"""Edits carried out on text: what must change changes, and nothing else."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import libcst as cst
import pytest

from ddpify.apply import rewrite
from ddpify.apply.pairing import pair_all
from ddpify.apply.rewrite import BrokenOutput
from ddpify.edits import Drop, DropArgument, Edit, InsertAfter, InsertBefore, NameArgument, Replace, SetArgument, Under, Unwrap
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
    got, left_out = rewrite(before, script.tree, edit(script))
    assert left_out == ()
    assert got == after


def refused(before: str, edit: Callable[[Script], list[Change]], after: str) -> None:
    """All but the last change are made."""
    before, after = _dedent(before), _dedent(after)
    script = Script(before)
    changes = edit(script)
    got, left_out = rewrite(before, script.tree, changes)
    assert left_out == (changes[-1],)
    assert got == after


def _dedent(text: str) -> str:
    return textwrap.dedent(text[1:] if text.startswith("\n") else text)


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
    if isinstance(node, ast.Slice):
        return ast.parse(f"x[{code}]", mode="eval").body.slice  # type: ignore[attr-defined]
    if isinstance(node, ast.Starred):
        return ast.parse(f"f({code.rstrip().rstrip(',')})", mode="eval").body.args[0]  # type: ignore[attr-defined]
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
        written = isinstance(parent, ast.Subscript) or isinstance(parent, (ast.JoinedStr, ast.FormattedValue, ast.pattern))
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
    more = text + ("" if text.endswith("\n") or not text else "\n") + "last(0)"
    script = Script(more)
    call = script.call("last")
    got, left_out = rewrite(more, script.tree, [change(Replace(call, "first({0})", (call.args[0],)))])
    assert (got, left_out) == (more.replace("last", "first"), ())


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
    "a starred hole": ("w(*a, b)\n", "w", "v({2}, {1})", "v(b, *a)\n"),
    "a generator in parentheses of its own": ("w(i for i in x)\n", "w", "v({1}, 1)", "v((i for i in x), 1)\n"),
    "braces in a template": ("w(a)\n", "w", '{{"k": {1}}}', '{"k": a}\n'),
    "in an f-string of the same quotes": ('f"{w(a)}"\n', "w", '{1}["k"]', "f\"{a['k']}\"\n"),
    "in the format of an f-string": ('f"{x:{w(a)}.3f}"\n', "w", "v({1})", 'f"{x:{v(a)}.3f}"\n'),
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


def test_a_node_of_another_tree_is_refused() -> None:
    refused("f(a)\n", lambda _: [change(Replace(Script("f(a)").call("f"), "g"))], "f(a)\n")


def test_a_broken_result_is_a_defect() -> None:
    with pytest.raises(BrokenOutput, match="line 1 .* repeated"):
        check("f()\n", lambda s: [change(InsertBefore(s.stmt("f"), "g(a=1, a=2)"))], "")
