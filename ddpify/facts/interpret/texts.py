"""What a text is computed from: of a container what it holds, of an object of the project what its class says of it."""

from __future__ import annotations

import ast

from ddpify.facts.interpret.state import Interpreter
from ddpify.facts.library import COLLECTIONS
from ddpify.facts.model import New, Tup, Value, ordered

_AS_TEXT = ("__format__", "__str__", "__repr__")
_DEPTH = 3  # of containers in one another


def as_texts(run: Interpreter, value: Value, node: ast.AST, depth: int = _DEPTH) -> list[Value]:
    """What is in the text of a value, beside itself."""
    out: list[Value] = []
    for obj in ordered(value.objs) if depth else ():
        held = list(obj.entries) if isinstance(obj, Tup) else []
        if isinstance(obj, New) and obj.path in COLLECTIONS:
            held = [v for _, v in run.memory.of(obj)]
        elif isinstance(obj, New) and obj.cls is not None and not run.is_module(obj):
            text = next((t for name in _AS_TEXT if (t := run.invoke_named(obj, name, node)) is not None), None)
            out += [text] if text is not None else []
        out += [text for part in held for text in (part, *as_texts(run, part, node, depth - 1))]
    return out
