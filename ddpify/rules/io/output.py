"""What is there for output alone: functions without another side effect, and assignments of what is then printed or drawn."""

from __future__ import annotations

import ast

from ddpify.facts.effects import maker
from ddpify.facts.library.effects import DRAWN
from ddpify.facts.tree import last_name, names_read, names_stored, outer_names, walk
from ddpify.rules.io.output_statements import Guards


def muted(guards: Guards) -> frozenset[ast.AST]:
    """The entry's functions that say more than one thing and nothing else, and are only called as statements: these are guarded."""
    calls = _calls(guards)
    found = {f for f, called in calls.items() if called and _could_be_muted(guards, f, called)}
    while True:
        kept = {f for f in found if all(_mutes(guards, c, found) for c in calls[f])}
        if kept == found:
            return frozenset(found)
        found = kept


def _could_be_muted(guards: Guards, function: ast.FunctionDef, calls: list[ast.AST]) -> bool:
    simple = all(guards.only_outputs(s) for s in function.body)
    return not simple and not function.decorator_list and all(guards.effects.output_only(c) for c in calls)


def _calls(guards: Guards) -> dict[ast.FunctionDef, list[ast.AST]]:
    """The calls of each function of the entry; none where it is also used in another way, or by another module."""
    functions = guards.context.tree.of(ast.FunctionDef)
    out: dict[ast.AST, dict[ast.AST, None]] = {f: {} for f in functions}
    for call in guards.run.trace.calls:
        for function in call.func.functions():
            if function in out:
                out[function][call.node] = None
    uses: dict[str, list[ast.AST]] = {}
    for node in guards.context.tree.nodes():
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            uses.setdefault(last_name(node), []).append(node)
    for function in functions:
        called = {getattr(c, "func", None) for c in out[function]}
        if not called.issuperset(uses.get(function.name, ())) or not all(map(guards.context.facts.is_edited, out[function])):
            out[function] = {}
    return {function: list(out[function]) for function in functions}


def _mutes(guards: Guards, call: ast.AST, functions: set[ast.FunctionDef]) -> bool:
    """Whether a call of such a function is a statement that can be guarded, or stands in such a function."""
    if any(up in functions for up in guards.context.tree.ancestors(call)):
        return True
    statement = guards.context.tree.statement(call)
    stuck = any(p.stuck for p in guards.required.parts(call, call))
    return guards.guarded(call) or (isinstance(statement, ast.Expr) and statement.value is call and not stuck)


def prepared(guards: Guards, body: list[ast.stmt]) -> set[ast.stmt]:
    """Assignments of a body that only make ready what is then drawn (`fig = plt.figure()`): every read is output behind them."""
    found = {s for s in body if _readies(guards, s)}
    while True:
        kept = {s for s in found if _read_by_output(guards, s, body, found)}
        if kept == found:
            return found
        found = kept


def _readies(guards: Guards, statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call) or guards.guarded(statement):
        return False
    names = all(isinstance(n, (ast.Name, ast.Tuple, ast.List, ast.Store)) for t in statement.targets for n in walk(t))
    call = statement.value
    return names and _draws(guards, call) and not guards.required.parts(call, call)


def _draws(guards: Guards, call: ast.Call) -> bool:
    """Whether a call goes to a library that draws."""
    func = guards.run.value(call.func)
    paths = [*func.paths(), *(m.path for o in func.objs if (m := maker(o)) is not None)]
    return bool(paths) and all(p.startswith(DRAWN) for p in paths)


def _read_by_output(guards: Guards, statement: ast.stmt, body: list[ast.stmt], found: set[ast.stmt]) -> bool:
    tree = guards.context.tree
    names = {n.id for n in names_stored(statement)}
    scope = tree.function(statement)
    if any(names & outer_names(file.root) for file in tree.trees):
        return False
    for n in names_read(scope):
        if n.id not in names:
            continue
        at = next((s for s in tree.path(n) if s in body), None)
        if at is None or tree.function(n) is not scope or body.index(at) <= body.index(statement):
            return False
        if at not in found and not guards.only_outputs(at):
            return False
    return True
