"""Which expressions name one GPU by its number, whatever the rank: `0`, `"cuda:1"`, `args.gpu`, `f"cuda:{args.gpu}"`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpify.facts.collect import Facts
from ddpify.facts.model import Class, Func, Like, Lit, Method, New, Part, Value
from ddpify.facts.tree import argument, is_none, last_name, walk

INDEXED = re.compile(r"^(cuda|gpu):\d+$")
_TEXT = re.compile(r"^cuda:(\d+|\*)$")
_SETTING = re.compile(r"gpu|cuda|device_?(id|index|num|ordinal)|ordinal", re.IGNORECASE)
_BEFORE = ("cuda:", "cuda:{}", "cuda:{0}", "cuda:%d", "cuda:%s")
_THIS = "torch.cuda.current_device"
_TAKERS = ("torch.", "transformers.")  # the libraries whose `device=` may be a number
# where each function of torch takes a device, by position and by name
_DEVICE_ARGUMENTS: dict[str, tuple[int, str]] = {
    "torch.device": (0, "type"),
    "torch.cuda.device": (0, "device"),
    "torch.cuda.set_device": (0, "device"),
    "torch.set_default_device": (0, "device"),
    "torch.cuda.Stream": (0, "device"),
    "torch.Generator": (0, "device"),
    "torch.load": (1, "map_location"),
}


class Devices:
    """The numbers of GPUs in a script."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.run = facts.after
        self._settings: dict[str, bool] = {}

    def is_of_rank(self, node: ast.AST) -> bool:
        """Whether an expression is computed from the rank, or asks which device is this rank's."""
        values = [self.run.at_end(n) for n in walk(node) if isinstance(n, ast.expr)]
        return any(v.of_kind("rank") or v.of_kind("local") or _THIS in v.paths() for v in values)

    def named(self, node: ast.expr) -> bool:
        """Whether an expression is a number of a GPU, or a text that holds one, which is the same on every rank."""
        known = self._by_value(self.run.value(node)) or _pieced(node) or self._computed(node) or self._is_listed(node)
        return known and not self.is_of_rank(node)

    def built(self, node: ast.AST) -> bool:
        """Whether an expression puts the text of one device together."""
        if not isinstance(node, (ast.BinOp, ast.JoinedStr, ast.Call)):
            return False
        texts = [o.pattern if isinstance(o, Like) else o.value for o in self.run.value(node).objs if isinstance(o, (Like, Lit))]
        put_together = not isinstance(node, ast.Call) and any(isinstance(t, str) and _TEXT.match(t) for t in texts)
        return (put_together or _pieced(node)) and not self.is_of_rank(node)

    def written(self, node: ast.expr) -> bool:
        """Whether an expression holds a text of a device that stands in a table of settings: it is not this rank's there."""
        tables = {id(v) for tree in self.facts.trees.values() for d in tree.of(ast.Dict) for v in d.values}
        return any(isinstance(o, Lit) and _indexed(o) and o.node in tables for o in self.run.value(node).objs)

    def _by_value(self, value: Value) -> bool:
        if not value.objs and any(self._is_of_setting(o.of[0]) for o in value.origins if o.kind == "method"):  # type: ignore[index]
            return True
        return any(
            (isinstance(o, Lit) and type(o.value) is int) or (isinstance(o, Part) and self._is_setting(o.name)) for o in value.objs
        ) or (not value.objs and bool(value.of_kind("index")) and value.scale is None and {k.kind for k in value.origins} == {"index"})

    def _is_listed(self, node: ast.expr) -> bool:
        """Whether an expression is an element of a list that is named for GPUs, of which nothing else is known: `opt.gpu_ids[0]`."""
        named = isinstance(node, ast.Subscript) and isinstance(node.value, (ast.Name, ast.Attribute)) and last_name(node.value)
        value = self.run.value(node)
        listed = all(isinstance(o, Part) and isinstance(o.of, New) and o.of.path == "list" for o in value.objs)
        return bool(named and _SETTING.search(named)) and bool(value.objs) and listed

    @staticmethod
    def _is_of_setting(obj: object) -> bool:
        """Whether a method, such as `args.gpu_ids.split`, is of a setting that names GPUs: so does what it gives."""
        while isinstance(obj, (Part, Method)):
            if isinstance(obj, Part) and _SETTING.search(obj.name):
                return True
            obj = obj.of
        return False

    def _computed(self, node: ast.expr) -> bool:
        """Whether an expression is arithmetic, or a call of `int`."""
        if isinstance(node, ast.Call):
            return "int" in self.run.value(node.func).paths()
        return isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Sub, ast.Mult, ast.FloorDiv)) and not self.run.value(node).objs

    def _is_setting(self, name: str) -> bool:
        """Whether a setting is a number of a GPU: by how the command line declares it, or else by its name."""
        if name not in self._settings:
            declared = [d for call in self._declarations(name) if (d := _declared(call)) is not None]
            self._settings[name] = declared[0] if declared else bool(_SETTING.search(name))
        return self._settings[name]

    def _declarations(self, name: str) -> Iterator[ast.Call]:
        for tree in self.facts.trees.values():
            for call in tree.of(ast.Call):
                spelled = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                if last_name(call.func) == "add_argument" and any(s.lstrip("-").replace("-", "_") == name for s in spelled):
                    yield call

    def given(self, call: ast.Call) -> ast.expr | None:
        """What a call is given as the device that it shall use."""
        func = self.run.value(call.func)
        for path in func.paths() & _DEVICE_ARGUMENTS.keys():
            position, name = _DEVICE_ARGUMENTS[path]
            return _argument(call, position, name)
        moved = isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cuda")
        if any(isinstance(o, (Func, Class)) for o in func.objs):
            return None
        if moved:
            return _argument(call, 0, "device")
        known = all(isinstance(o, Method) or str(getattr(o, "path", "")).startswith(_TAKERS) for o in func.objs)
        return _argument(call, None, "device") if known else None


def _declared(call: ast.Call) -> bool | None:
    """Whether the declaration of a setting makes it a number; None where it does not say."""
    given = {k.arg: k.value for k in call.keywords}
    if "type" in given:
        return last_name(given["type"]) == "int" or (None if last_name(given["type"]) == "str" else False)
    default = given.get("default")
    if "action" in given:
        return False
    return type(default.value) is int if isinstance(default, ast.Constant) and not is_none(default) else None


def _indexed(literal: Lit) -> bool:
    return isinstance(literal.value, str) and bool(INDEXED.match(literal.value))


def _pieced(node: ast.AST) -> bool:
    """Whether an expression builds "cuda:N" from a number, by its looks."""
    first: ast.expr | None = None
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
        first = node.left
    elif isinstance(node, ast.JoinedStr):
        first = node.values[0] if len(node.values) == 2 else None
    elif isinstance(node, ast.Call):
        first = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "format" else None
    return isinstance(first, ast.Constant) and first.value in _BEFORE


def _argument(call: ast.Call, position: int | None, name: str) -> ast.expr | None:
    """What a call is given, where none of what stands before it is unpacked."""
    starred = any(isinstance(a, ast.Starred) for a in call.args[: (position or 0) + 1])
    return argument(call, None if starred else position, name)
