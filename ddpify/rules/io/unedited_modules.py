"""What modules of the project that are not edited print, log and write: silenced where the entry can do it, reported where it cannot."""

from __future__ import annotations

import ast
import json
from collections.abc import Hashable, Iterator

from ddpify.edits import Replace, Under
from ddpify.facts.barriers import one_rank_ahead
from ddpify.facts.disk import to_nowhere
from ddpify.facts.effects import maker, only_draws
from ddpify.facts.library.effects import HANDLERS, Effect
from ddpify.facts.model import Call, Lit
from ddpify.facts.tree import calls_in, last_name, names_read, names_stored, structure, walk
from ddpify.rules.base import Change, Finding
from ddpify.rules.context import Context, argument
from ddpify.rules.data import prepare
from ddpify.rules.data.turns import calls_under, free
from ddpify.rules.io import writers
from ddpify.rules.io.output_statements import Guards
from ddpify.rules.io.unedited_output import has_own_guard, is_logged, logging_disabled, stdout_closed, unguarded_output

CODE = "DDP501"
_EXISTS = frozenset(("exists", "isfile", "isdir", "is_file", "is_dir", "_check_exists", "check_preprocess", "check_integrity"))


def silenced(context: Context, guards: Guards) -> Iterator[Change | Finding]:
    """Close what the entry can close for other ranks, and report files that other modules write."""
    yield from _files(context, guards)
    where = next((s for s in context.tree.root.body if isinstance(s, (ast.Import, ast.ImportFrom))), context.tree.root.body[0])
    shown = context.tree.shown
    if guards.quiet and not stdout_closed(context):
        why = "modules that are not edited print on every rank: the standard output of all but rank 0 is switched off"
        yield Change(CODE, why, shown, where, (), needs=("quiet",))
    logging = guards.quiet_logging and any(is_logged(c) for c in context.facts.after.trace.calls)
    if logging and not logging_disabled(context):
        why = "modules that are not edited log on every rank: the loggers of all but rank 0 are switched off"
        yield Change(CODE, why, shown, where, (), needs=("quiet_logging",))
    modules = {c.file: c.node for c in unguarded_output(context, guards) if any(p.startswith("loguru.") for p in c.func.paths())}
    for node in modules.values():
        fix = "from loguru import logger, and logger.remove() where the rank is not 0"
        yield context.manual(CODE, node, "every rank logs here", fix)


def _files(context: Context, guards: Guards) -> Iterator[Change | Finding]:
    """Files and folders that other modules make: what the entry can do about them, and one finding for each other function."""
    edited: dict[ast.AST, Change] = {}
    unguarded: dict[tuple[ast.AST, Effect], list[Call]] = {}
    for call in _made_by_all(context, guards):
        kind = guards.effects.at[call.node]
        changes = _in_entry(context, guards, call)
        if changes is not None:
            edited |= {change.node: change for change in changes if change.node not in edited}
        elif kind == "file" or not any(k.arg == "exist_ok" for k in call.node.keywords):
            unguarded.setdefault((context.facts.trees[call.file].function(call.node), kind), []).append(call)
    yield from edited.values()
    for (_, kind), calls in unguarded.items():
        names = ", ".join(dict.fromkeys(ast.unparse(c.node.func) for c in calls))
        if kind == "folder":
            message, fix = "every rank makes this folder, and all but one fail", "os.makedirs(path, exist_ok=True)"
        else:
            message, fix = f"every rank would write here ({names})", "if dist.get_rank() == 0:"
        yield context.manual(CODE, calls[0].node, message, fix)


def _made_by_all(context: Context, guards: Guards) -> list[Call]:
    """The calls by which other modules make files and folders on every rank, the first of each place."""
    alone, prepared = writers.alone(context, guards), prepare.preparation(context)
    calls: dict[tuple[ast.AST, Hashable], Call | None] = {}
    for call in context.facts.after.trace.calls:
        elsewhere, kind = call.file in context.facts.trees and not context.facts.is_edited(call.node), guards.effects.at.get(call.node)
        place = call.node, structure(call.stack[0]) if kind == "folder" and call.stack else None
        if not elsewhere or place in calls or kind not in ("file", "folder"):
            continue
        if prepared.covers(call):
            calls[place] = None  # a later call finds the files there
        elif not (_is_guarded(context, guards, call) or alone & set(call.stack) or _on_writer(guards, call) or only_draws(call)):
            calls[place] = call
    return [call for call in calls.values() if call is not None]


def _is_guarded(context: Context, guards: Guards, call: Call) -> bool:
    """Whether a call of another module is made by rank 0 alone, as the entry or that module has it."""
    return guards.guarded_call(call.node, call.stack) or has_own_guard(context, call.node)


def _in_entry(context: Context, guards: Guards, call: Call) -> list[Change] | None:
    """What the entry does about a file that another module makes: nothing where it has seen to it; None where it cannot."""
    statement = _prepares(context, call)
    if statement is not None:
        return _first(context, statement)
    path = _passed_path(context, call)
    if path is not None:
        return _nowhere(context, path)
    caller = _set_up(context, guards, call)
    return [_unconfigured_logger(context, *caller)] if caller is not None else None


def _on_writer(guards: Guards, call: Call) -> bool:
    """Whether a call is a method of a writer: the finding is where that is made."""
    return any(guards.effects.is_writer(maker(o)) for o in call.func.objs)


def _first(context: Context, caller: ast.stmt) -> list[Change]:
    """One rank of each node goes first, where a file is only made if it is not there yet."""
    if one_rank_ahead(context.facts.after, context.tree, caller):
        return []
    why = "one rank of each node prepares the files while the others wait, and then find them"
    edit = Under(caller, f"with {context.names['first_on_node']}()")
    return [Change(CODE, why, context.tree.shown, caller, (edit,), needs=("first_on_node",))]


def _prepares(context: Context, call: Call) -> ast.stmt | None:
    """The statement of the entry that leads to a write which is only made where the file is not there yet."""
    if not any(last_name(asked.func) in _EXISTS for test, _ in call.tests for asked in calls_in(test)):
        return None
    above = [n for n in call.stack if context.facts.is_edited(n)]
    if not above or any(n in context.training for n in above):
        return None
    statement = context.tree.statement(above[-1])  # the nearest: what leads to it may also train
    together = not free(context, statement, calls_under(context, statement))
    return statement if isinstance(statement, (ast.Assign, ast.Expr, ast.AnnAssign)) and not together else None


def _passed_path(context: Context, call: Call) -> ast.expr | None:
    """What the entry passes as the path of a log file that another module opens, and does nothing else with."""
    path = argument(call.node, 0, "filename") if call.func.paths() & (HANDLERS | {"logging.basicConfig"}) else None
    function = context.facts.trees[call.file].function(call.node)
    if not isinstance(path, ast.Name) or not isinstance(function, ast.FunctionDef) or not _only_passes(function, path.id):
        return None
    caller = call.stack[-1]
    if not isinstance(caller, ast.Call) or not context.facts.is_edited(caller):
        return None
    called = context.facts.after.value(caller.func).functions()
    return argument(caller, [a.arg for a in function.args.args].index(path.id), path.id) if function in called else None


def _only_passes(function: ast.FunctionDef, name: str) -> bool:
    """Whether a function reads a parameter once, and never binds it anew."""
    stored = any(n.id == name for n in names_stored(function))
    return any(a.arg == name for a in function.args.args) and not stored and sum(n.id == name for n in names_read(function)) < 2


def _nowhere(context: Context, path: ast.expr) -> list[Change]:
    """Other ranks' log goes nowhere."""
    if any(to_nowhere(context.facts.after, n) for n in walk(path)):
        return []
    edit = Replace(path, f"{{0}} if {context.names['rank']} == 0 else os.devnull", (path,))
    return [Change(CODE, "only rank 0 writes this log: the others write to os.devnull", context.tree.shown, path, (edit,), ("import os",))]


def _set_up(context: Context, guards: Guards, call: Call) -> tuple[ast.Call, str] | None:
    """The call of the entry that sets up a logger with a file and does nothing else, and the name of that logger."""
    run, above = context.facts.after, [n for n in call.stack if context.facts.is_edited(n)]
    caller = above[-1] if above else None
    if not call.func.paths() & (HANDLERS | {"os.makedirs", "os.mkdir"}) or not isinstance(caller, ast.Call):
        return None
    for creation in run.calls(caller):
        loggers = creation.result.instances()
        only_logger = len(creation.result.objs) == 1 and all(o.path == "logging.getLogger" for o in loggers)
        if not only_logger or guards.effects.has_side_effects(caller):
            return None
        for logger in loggers:
            names = {o.value for c in run.calls(logger.node) for o in (c.args[0].objs if c.args else {Lit(None)}) if isinstance(o, Lit)}
            if len(names) == 1 and caller in logger.stack:
                (name,) = names
                return caller, "" if name is None else json.dumps(name).replace("{", "{{").replace("}", "}}")
    return None


def _unconfigured_logger(context: Context, caller: ast.Call, name: str) -> Change:
    """Other ranks get the logger as it is without that set-up."""
    edit = Replace(caller, f"{{0}} if {context.names['rank']} == 0 else logging.getLogger({name})", (caller,))
    return Change(CODE, "only rank 0 sets up this log", context.tree.shown, caller, (edit,), ("import logging",))
