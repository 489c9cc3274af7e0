"""The signatures of a project's functions and classes, and whether calls fit them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ddpify.facts.interpret.state import Interpreter
from ddpify.facts.model import Class, Func, New, Obj

Callee = tuple[str, ast.arguments, int]
"""What a call may call: its name, its signature, and how many of its positional parameters are bound already."""
_TRANSPARENT = frozenset(("staticmethod", "classmethod", "no_grad", "inference_mode", "contextmanager", "abstractmethod", "override"))


def callees(run: Interpreter, node: ast.Call, obj: Obj) -> Iterator[Callee]:
    """What of the project is called where an object is called; nothing where its signature may be another."""
    if isinstance(obj, Func) and _by_its_name(node, obj):
        yield from _function_signature(obj)
    elif isinstance(obj, Class):
        yield from _method_signatures(run, obj, "__init__")
    elif isinstance(obj, New) and obj.cls is not None:
        yield from _method_signatures(run, obj.cls, "__call__" if run.find(obj.cls, "__call__") is not None else "forward")


def fitting(run: Interpreter, node: ast.Call, objs: Iterable[Obj]) -> list[Obj]:
    """Those of several objects that a call fits: the others are not what it calls. All, where it fits none."""
    several = list(objs)
    if len(several) < 2:
        return several
    return [o for o in several if not any(misfit(spec, node, bound) for _, spec, bound in callees(run, node, o))] or several


def _method_signatures(run: Interpreter, cls: Class, name: str) -> Iterator[Callee]:
    """The signatures of a method of a class, as it is called on an instance."""
    found = run.find(cls, name)
    for func in found.objs if found is not None else ():
        if isinstance(func, Func) and _keeps_signature(func.node):
            yield cls.node.name, func.node.args, 1


def _by_its_name(node: ast.Call, func: Func) -> bool:
    """Whether a function is called itself, and not through what hands it more, such as `Function.apply`."""
    return not isinstance(node.func, ast.Attribute) or node.func.attr == getattr(func.node, "name", "")


def _function_signature(func: Func) -> Iterator[Callee]:
    if _keeps_signature(func.node):
        static = "staticmethod" in set(_decorated(func.node))
        of_class = func.cls is not None and "classmethod" in set(_decorated(func.node))
        yield getattr(func.node, "name", ""), func.node.args, int((func.owner is not None and not static) or of_class)


def _keeps_signature(node: ast.AST) -> bool:
    """Whether nothing but what keeps its signature decorates a function."""
    return set(_decorated(node)) <= _TRANSPARENT


def _decorated(node: ast.AST) -> Iterator[str]:
    for decorator in getattr(node, "decorator_list", ()):
        inner = decorator.func if isinstance(decorator, ast.Call) else decorator
        yield inner.attr if isinstance(inner, ast.Attribute) else inner.id if isinstance(inner, ast.Name) else ""


def misfit(spec: ast.arguments, call: ast.Call, bound: int = 0) -> str:
    """Why a call does not fit a signature whose first `bound` positional parameters have their values; empty where it fits."""
    positional = [a.arg for a in (*spec.posonlyargs, *spec.args)][bound:]
    by_position_only = {a.arg for a in spec.posonlyargs}
    names = {*positional, *(a.arg for a in spec.kwonlyargs)} - by_position_only
    opens, spread = any(isinstance(a, ast.Starred) for a in call.args), any(k.arg is None for k in call.keywords)
    given = len(call.args) - opens
    if given > len(positional) and spec.vararg is None:
        return f"{given} arguments by position where it takes {len(positional)}"
    keywords = [k.arg for k in call.keywords if k.arg is not None]
    for keyword in keywords:
        if keyword not in names and spec.kwarg is None:
            return f"it has no parameter {keyword}"
        if keyword in positional[:given] and not opens and keyword in names:
            return f"{keyword} is given twice"
    if opens or spread:
        return ""
    optional = set(positional[len(positional) - len(spec.defaults) :]) if spec.defaults else set()
    optional |= {a.arg for a, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if default is not None}
    missing = [n for n in (*positional[given:], *(a.arg for a in spec.kwonlyargs)) if n not in optional and n not in keywords]
    return f"{', '.join(missing)} is missing" if missing else ""
