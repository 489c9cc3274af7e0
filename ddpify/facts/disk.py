"""Which calls touch which files, and whether two paths may name one file."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from itertools import product

from ddpify.facts import effects
from ddpify.facts.collect import Facts
from ddpify.facts.library import files
from ddpify.facts.library.effects import DATABASES, DESCRIBED, IN_MEMORY, OPENS, STORES
from ddpify.facts.library.files import Kind
from ddpify.facts.model import Call, Class, Ext, Func, Lit, New, Tup
from ddpify.facts.runs import Run
from ddpify.facts.tree import walk
from ddpify.records import dataclass

ANY = "\0"  # in a pattern: text that is not known
_COMMANDS = frozenset(("os.system", "subprocess.call", "subprocess.check_call", "subprocess.run"))
_ASKING = _COMMANDS.union("os.popen subprocess.check_output subprocess.getoutput subprocess.getstatusoutput subprocess.Popen".split())
"""What runs a command, and gives what it prints: all ranks run it where anything reads that."""
_READ_NOTHING = DESCRIBED.union(dir(builtins))
_MOST = 8  # patterns of one path that are kept apart


@dataclass(frozen=True)
class Touch:
    """One call on one path; `path` is the expression, `ending` what the library adds where the path lacks it.

    Of a command, the expression is its text, or its last word; what it may read, one of its words.
    """

    kind: Kind
    call: Call
    path: ast.expr
    ending: str = ""
    is_command: bool = False


def to_nowhere(run: Run, node: ast.AST) -> bool:
    """Whether an expression is the null device."""
    value = run.value(node)
    return "os.devnull" in value.paths() or any(isinstance(o, Lit) and o.value == "/dev/null" for o in value.objs)


def touched(run: Run) -> list[Touch]:
    """What a run does to files, in its order."""
    if touched not in run.known:
        run.known[touched] = [touch for call in run.trace.calls for touch in touches(call)]
    return run.known[touched]  # type: ignore[return-value]


def touches(call: Call) -> Iterator[Touch]:
    """What a call does to files whose path it is given."""
    for path in sorted(call.func.paths()):
        if any("os.devnull" in a.paths() for a in call.args[:1]):
            continue  # nobody reads it
        if path in OPENS:
            yield from _argument_touch(call, "write" if effects.writes(call) else "read", 0, "file")
        if path in STORES:
            yield from _argument_touch(call, "write" if effects.opened(path, call.node) else "read", 0, STORES[path].path)
        for row in files.FUNCTIONS.get(path, ()):
            yield from _argument_touch(call, *row)
        if path in _COMMANDS and call.node.args:
            text = call.node.args[0]
            yield Touch("write", call, text.elts[-1] if isinstance(text, (ast.List, ast.Tuple)) and text.elts else text, is_command=True)
    function = call.node.func
    opened = effects.database(call)
    if opened is not None and isinstance(opened.node, ast.Call) and effects.effect(call) is not None:
        given = (k.value for k in opened.node.keywords if k.arg == DATABASES[opened.path])
        yield from (Touch("write", call, path) for path in (*opened.node.args[:1], *given))
    if not call.func.paths() and isinstance(function, ast.Attribute):
        if effects.opens_path(call):
            yield Touch("write" if effects.writes(call) else "read", call, function.value)
        elif function.attr in files.OF_PATHS:
            yield Touch(files.OF_PATHS[function.attr], call, function.value)
        elif function.attr in files.MOVING and effects.of_path(call):
            yield Touch("remove", call, function.value)
            yield from _argument_touch(call, "write", 0, "target")
        elif function.attr in files.WRITTEN_TO_PATHS | files.RENDERED:
            yield from _argument_touch(call, "write", 0, next((k for k in files.WRITTEN_BY if k in call.keywords), ""))
        elif effects.saves_itself(call):
            yield from _argument_touch(call, "write", 0, next((k for k in files.SAVED_TO if k in call.keywords), ""))


def handed(run: Run) -> list[Touch]:
    """The texts that are given to what nobody has described, in the run's order: it may read the files that they name."""
    if handed not in run.known:
        run.known[handed] = [touch for call in run.trace.calls for touch in _named_by(call)]
    return run.known[handed]  # type: ignore[return-value]


def _named_by(call: Call) -> Iterator[Touch]:
    if _asks(call):
        yield from _asked(call)
    elif _undescribed(call):
        yield from _handed(call)


def _asks(call: Call) -> bool:
    """Whether a call runs a command on all ranks, for what it prints."""
    return bool(call.func.paths() & _ASKING) and effects.effect(call) is None


def _asked(call: Call) -> Iterator[Touch]:
    """The words of a command."""
    text = call.node.args[0] if call.node.args else next((k.value for k in call.node.keywords if k.arg == "args"), None)
    if isinstance(text, (ast.List, ast.Tuple)):
        yield from (Touch("handed", call, word) for word in text.elts if not isinstance(word, ast.Starred))
    elif text is not None:
        yield Touch("handed", call, text, is_command=True)


def _undescribed(call: Call) -> bool:
    """Whether a call is one of a library that may read files in ways that no row tells, or a method of something unknown."""
    objs = (*call.func.objs, *call.receiver.objs)
    if (
        any(isinstance(o, (Func, Class, Lit, Tup)) for o in objs)
        or call.receiver.scale is not None
        or next(touches(call), None) is not None
    ):
        return False
    roots = {_path(o).partition(".")[0] for o in objs} - {""}
    return bool(roots or isinstance(call.node.func, ast.Attribute)) and roots.isdisjoint(_READ_NOTHING) and effects.effect(call) is None


def _path(obj: object) -> str:
    """The library's path of a function, or of what a method or a part is of."""
    return str(getattr(obj if isinstance(obj, Ext) else effects.maker(obj), "path", ""))  # type: ignore[arg-type]


def _handed(call: Call) -> Iterator[Touch]:
    """The arguments of a call that may be paths."""
    given = [*zip(call.node.args, call.args, strict=False)] if not any(isinstance(a, ast.Starred) for a in call.node.args) else []
    given += [(k.value, call.keywords[k.arg]) for k in call.node.keywords if k.arg is not None and k.arg in call.keywords]
    for node, value in given:
        other = isinstance(node, (ast.Lambda, ast.List, ast.Tuple, ast.Dict)) or value.scale is not None or value.shape is not None
        if not other and not (isinstance(node, ast.Constant) and not isinstance(node.value, str)):
            yield Touch("handed", call, node)


def names(given: frozenset[str], written: frozenset[str]) -> bool:
    """Whether a text surely names a file, or a folder above it, that a path is of: what is known of both is alike."""
    known = [p for p in written if p.strip(f"{ANY}/")]
    return any(p == q or p.startswith(f"{q}/") for p in known for q in given if q.strip(f"{ANY}/."))


def _argument_touch(call: Call, kind: Kind, position: int | None, keyword: str, ending: str = "") -> Iterator[Touch]:
    """The touch of a path that is an argument; a handle's path is where it was opened."""
    path = next((k.value for k in call.node.keywords if k.arg == keyword), None)
    if path is None and position is not None and position < len(call.node.args):
        path = call.node.args[position]
    value = call.argument(-1 if position is None else position, keyword)
    if path is None or isinstance(path, ast.Starred):
        return
    if value is not None and any(isinstance(o, New) and (o.path == "open" or o.path in IN_MEMORY) for o in value.objs):
        return
    yield Touch(kind, call, path, ending)


class Paths:
    """The names that path expressions may stand for."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.run = facts.after
        self._known: dict[tuple[ast.expr, tuple[ast.AST, ...], str, bool | str], frozenset[str]] = {}

    def of(self, touch: Touch) -> frozenset[str]:
        """The patterns of a path that is touched."""
        key = touch.path, touch.call.stack, touch.ending, touch.is_command and touch.kind
        if key not in self._known:
            self._known[key] = self._of(touch)
        return self._known[key]

    def _of(self, touch: Touch) -> frozenset[str]:
        texts = self._text(touch.path, touch.call.stack, 0)
        words = _read_by if touch.kind == "handed" else _written_by
        found = {_normal(p) for text in texts for p in (words(text) if touch.is_command else (text,))}
        return frozenset(p if not touch.ending or p.endswith((touch.ending, ANY)) else p + touch.ending for p in found)

    def _text(self, node: ast.expr, stack: tuple[ast.AST, ...], depth: int) -> frozenset[str]:
        """What text an expression may be, with ANY for what is not known."""
        if depth > 8:
            return frozenset((ANY,))
        if isinstance(node, ast.Constant):
            return frozenset((str(node.value),))
        if isinstance(node, ast.JoinedStr):
            return self._joined(list(node.values), "", stack, depth)
        if isinstance(node, ast.FormattedValue):
            return self._text(node.value, stack, depth + 1) if node.format_spec is None else frozenset((ANY,))
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
            return self._joined([node.left, node.right], "/" if isinstance(node.op, ast.Div) else "", stack, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            given = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
            return self._filled(r"%[-+ #0-9.]*[a-zA-Z]", self._text(node.left, stack, depth + 1), given, stack, depth)
        if isinstance(node, (ast.BoolOp, ast.IfExp)):
            ways = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
            return frozenset().union(*(self._text(way, stack, depth + 1) for way in ways))
        if isinstance(node, ast.Call):
            return self._called(node, stack, depth)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._named(node, stack, depth)
        return frozenset((ANY,))

    def _joined(self, parts: list[ast.expr], by: str, stack: tuple[ast.AST, ...], depth: int) -> frozenset[str]:
        texts = [self._text(p, stack, depth + 1) for p in parts]
        combined = frozenset(by.join(c) for c in product(*texts))
        return combined if len(combined) <= _MOST else frozenset((ANY,))

    def _called(self, node: ast.Call, stack: tuple[ast.AST, ...], depth: int) -> frozenset[str]:
        paths = self.run.value(node.func).paths()
        if paths & {"os.path.join", "pathlib.Path"} and not any(isinstance(a, ast.Starred) for a in node.args):
            return self._joined(list(node.args), "/", stack, depth)
        if paths & {"str", "os.path.abspath", "os.path.expanduser", "os.fspath"} and len(node.args) == 1:
            return self._text(node.args[0], stack, depth + 1)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            given = [] if node.keywords else node.args
            return self._filled(r"\{[^{}]*\}", self._text(node.func.value, stack, depth + 1), given, stack, depth)
        return frozenset((ANY,))

    def _filled(self, place: str, texts: frozenset[str], given: list[ast.expr], stack: tuple[ast.AST, ...], depth: int) -> frozenset[str]:
        """Texts with places for others, in which those stand that are given, one for each place as it is: `%s`, `{}`."""
        values = [self._text(v, stack, depth + 1) for v in given]
        out = set[str]()
        for text in texts:
            parts, places = re.split(place, text), re.findall(place, text)
            plain = len(places) == len(values) and set(places) <= {"%s", "{}"}
            for chosen in product(*values) if plain else [(ANY,) * len(places)]:
                out.add("".join(part + fill for part, fill in zip(parts, (*chosen, ""), strict=True)))
        return frozenset(out) if len(out) <= _MOST else frozenset((ANY,))

    def _named(self, node: ast.Name | ast.Attribute, stack: tuple[ast.AST, ...], depth: int) -> frozenset[str]:
        tree, objs = self.facts.tree_of(node), self.run.value(node).objs
        function, names = tree.function(node), list[str]()
        if isinstance(node, ast.Name) and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
            while stack and isinstance(stack[-1], ast.expr) and not isinstance(stack[-1], ast.Call):
                stack = stack[:-1]  # an entry of what a loop goes through one by one
            given = passed(stack[-1] if stack else None, names, node.id) if node.id in names else None
            if given is not None:
                return self._text(given, stack[:-1], depth + 1)
        if objs and all(isinstance(o, Lit) and isinstance(o.value, str) for o in objs):
            return frozenset(str(o.value) for o in objs if isinstance(o, Lit))
        if isinstance(node, ast.Name) and node.id in names:
            return frozenset((ANY,))
        scopes = [function] if isinstance(node, ast.Name) else [tree.root]
        for scope in (*scopes, tree.root):
            stored = self._stores(scope).get((type(node), node.id if isinstance(node, ast.Name) else node.attr), [])
            if stored:
                statement = tree.parent[stored[0]]
                alone = len(stored) == 1 and isinstance(statement, ast.Assign) and stored[0] in statement.targets
                return self._text(statement.value, stack, depth + 1) if alone else frozenset((ANY,))  # type: ignore[attr-defined]
        return frozenset((ANY,))

    def _stores(self, scope: ast.AST) -> dict[tuple[type, str], list[ast.AST]]:
        """The stores into names, and into attributes, anywhere inside."""
        key, memo = ("stores", scope), self.facts.project.memo
        if key not in memo:
            found: dict[tuple[type, str], list[ast.AST]] = {}
            for n in walk(scope):
                if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Store):
                    found.setdefault((type(n), n.id if isinstance(n, ast.Name) else n.attr), []).append(n)
            memo[key] = found
        return memo[key]  # type: ignore[return-value]


def _written_by(command: str) -> list[str]:
    """The files that a command may write: those it sends its output to, or else its last word."""
    return re.findall(r">\s*([^\s>&|;]+)", command) or command.split()[-1:]


def _read_by(command: str) -> list[str]:
    """The words of a command, of which each may be a file that it reads."""
    return re.findall(r"[^\s<>|&;\"']+", command)


def passed(call: ast.AST | None, names: list[str], name: str) -> ast.expr | None:
    """The argument that a call passes as a parameter."""
    if not isinstance(call, ast.Call) or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    at = names.index(name) - (1 if names[0] in ("self", "cls") else 0)
    return next((k.value for k in call.keywords if k.arg == name), call.args[at] if 0 <= at < len(call.args) else None)


def _normal(pattern: str) -> str:
    pattern = re.sub(r"/+", "/", pattern.replace("\\", "/"))
    return re.sub(f"{ANY}+", ANY, pattern.removeprefix("./").rstrip("/"))


def one_format(written: Touch, read: Touch) -> bool:
    """Whether what one call writes another one can read: torch and numpy read what they wrote themselves, or what was copied."""
    reader = read.call.func.paths() & files.ONLY_THEIR_OWN
    if not reader:
        return True
    root = min(reader).partition(".")[0]
    for path in written.call.func.paths() or {"shutil."}:
        if path in OPENS:
            mode = written.call.argument(1, "mode")
            if mode is None or any(not isinstance(o, Lit) or "b" in str(o.value) for o in mode.objs) or not mode.objs:
                return True
        elif path.startswith((f"{root}.", "shutil.", "os.")):
            return True
    return False


def may_be_one(one: frozenset[str], two: frozenset[str]) -> bool:
    """Whether two paths may name the same file: no pair of their patterns contradicts."""
    return any(_patterns_overlap(p, q) for p in one for q in two)


def may_hold(folder: frozenset[str], path: frozenset[str]) -> bool:
    """Whether a path may lie in a folder, or be it."""
    return any(_patterns_overlap(f, p) or _patterns_overlap(f + "/" + ANY, p) for f in folder for p in path)


def _patterns_overlap(one: str, two: str) -> bool:
    if ANY not in one and ANY not in two:
        return one == two
    if ANY not in one or ANY not in two:
        fixed, open_ = (one, two) if ANY not in one else (two, one)
        return re.fullmatch(".*".join(re.escape(part) for part in open_.split(ANY)), fixed, re.DOTALL) is not None
    (head, other), (tail, end) = ((p.split(ANY)[0] for p in (one, two)), (p.split(ANY)[-1] for p in (one, two)))
    return (head.startswith(other) or other.startswith(head)) and (tail.endswith(end) or end.endswith(tail))
