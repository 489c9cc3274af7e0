"""Who calls an entry function: hydra, click, typer, absl, fire and their like hand it what the command line or a file says."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ddpify.facts import named
from ddpify.facts.model import NOTHING, Call, Class, Func, Method, Module, New, Obj, Tup, Value, join, just
from ddpify.facts.tree import walk

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

_DECORATORS = ("hydra.", "click.", "typer.", "asyncclick.", "rich_click.", "draccus.", "pyrallis.", "argh.", "clize.")
_GROUPS = frozenset(("click.Group", "typer.Typer", "argh.ArghParser", "cyclopts.App"))
_SETTINGS = "omegaconf.settings"  # read from files and the command line, which all ranks share


def adopt(run: Interpreter, decorator: Value, value: Value) -> None:
    """A decorator that makes a command of a function: its parameters are settings, and its group runs it."""
    paths = {*decorator.paths(), *(o.path for o in decorator.instances())}
    groups = [o.of for o in decorator.objs if isinstance(o, Method) and isinstance(o.of, New) and o.of.path in _GROUPS]
    groups += [obj for obj, *_ in decorator.of_kind("method") if isinstance(obj, New) and obj.path in _GROUPS]
    for func in value.objs:
        if isinstance(func, Func) and (groups or any(p.startswith(_DECORATORS) for p in paths)):
            run.driven.add(func.node)
            for group in groups:
                run.set_attribute(group, "[]", just(func), False)
                run.commands.add(func.node)


def grouped(run: Interpreter, node: ast.AST, decorator: Value, value: Value) -> Value:
    """`@click.group()`: the group that a function becomes, which runs it and then its commands."""
    if not any(p.startswith("click.") and p.endswith(".group") for p in {*decorator.paths(), *(o.path for o in decorator.instances())}):
        return value
    instance = run.objects.new("click.Group", node, run.stack)
    run.set_attribute(instance, "[]", value, False)
    return just(instance)


def runs(obj: New) -> bool:
    """Whether calling an object runs commands."""
    return obj.path in _GROUPS


def run_group(run: Interpreter, node: ast.AST, group: New) -> Value:
    """Run the commands of a group."""
    held = run.memory.get((group, "[]"), NOTHING)
    for func in sorted((o for o in held.objs if isinstance(o, Func)), key=lambda f: getattr(f.node, "lineno", 0)):
        run.call_function(func, node, [], {})
    for inner in held.instances():
        if inner is not group and runs(inner):
            drive(run, node, inner)
    return NOTHING


def given(run: Interpreter, func: Func, names: list[str]) -> dict[str, Value]:
    """What a driver hands to the parameters of a function."""
    instance = run.objects.new(_SETTINGS, func.node, ())
    return {name: just(run.objects.part(instance, name)) for name in names}


def started(run: Interpreter, event: Call, path: str, args: list[Value], keywords: dict[str, Value]) -> Value:
    """`fire.Fire(main)`, `app.run(main)`, `tyro.cli(Config)`: what is run there."""
    asked = join([*args[:1], *(keywords[k] for k in ("component", "main") if k in keywords)])
    if not args and not keywords and path == "fire.Fire":
        asked = join([just(o) for o in named.definitions(run, Module(run.frame.file)) if not _called(run, o)])
    return join([drive(run, event.node, o) for o in sorted(asked.objs, key=lambda o: getattr(getattr(o, "node", None), "lineno", 0))])


def spawned(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value:
    """`mp.spawn(worker, args=(a, b))`: each process calls the worker with its number and the arguments."""
    worker = keywords.get("fn", args[0] if args else NOTHING)
    given = keywords.get("args", args[1] if len(args) > 1 else NOTHING)
    (only,) = given.objs if len(given.objs) == 1 else (None,)
    items = list(only.entries) if isinstance(only, Tup) else []
    for obj in worker.objs:
        if isinstance(obj, Func):
            run.call_function(obj, event.node, [NOTHING, *items], {})
    return NOTHING


def _called(run: Interpreter, obj: Obj) -> bool:
    """Whether the file calls a definition of its own by name: then it is a helper of others."""
    tree, name = run.file_of(run.frame.file).tree, getattr(getattr(obj, "node", None), "name", "")
    return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == name for n in walk(tree))


def drive(run: Interpreter, node: ast.AST, obj: Obj) -> Value:
    """Run something by the settings: a function, a class and its methods, or a dict of them."""
    if isinstance(obj, Func):
        run.driven.add(obj.node)
        return run.call_function(obj, node, [], {})
    if isinstance(obj, Class):
        return _constructed(run, node, obj)
    if isinstance(obj, New) and runs(obj):
        return run_group(run, node, obj)
    if isinstance(obj, New) and obj.path == "dict":
        return join([drive(run, node, o) for o in run.memory.get((obj, "[]"), NOTHING).objs])
    if isinstance(obj, New) and obj.cls is not None:
        _methods(run, node, obj, obj.cls)
    return just(obj)


def _constructed(run: Interpreter, node: ast.AST, cls: Class) -> Value:
    init = run.find(cls, "__init__")
    run.driven |= {f.node for f in (init or NOTHING).objs if isinstance(f, Func)}
    instance = run.construct(cls, node, [], {})
    for obj in instance.instances():
        if named.fields(run, cls):
            named.fill(run, obj, [], {}, asked=True)
        else:
            _methods(run, node, obj, cls)
    return instance


def _methods(run: Interpreter, node: ast.AST, obj: New, cls: Class) -> None:
    """The public methods of an object, any of which the command line may name."""
    names = [s.name for c in (*reversed(list(named.ancestors(cls))), cls) for s in c.node.body if isinstance(s, ast.FunctionDef)]
    for name in dict.fromkeys(n for n in names if not n.startswith("_")):
        for f in run.attribute(just(obj), name).objs:
            if isinstance(f, Func):
                run.driven.add(f.node)
                run.call_function(f, node, [], {})
