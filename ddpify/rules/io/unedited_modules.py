"""What modules of the project that are not edited print, log and write: silenced where the entry can do it, reported where it cannot."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator

from ddpify.edits import Replace, Under
from ddpify.facts.barriers import one_rank_ahead
from ddpify.facts.disk import to_nowhere
from ddpify.facts.effects import HANDLERS, maker, only_draws
from ddpify.facts.model import Call, Func, Lit
from ddpify.facts.tree import last_name
from ddpify.rules.base import Change, Finding
from ddpify.rules.context import Context, argument
from ddpify.rules.data import prepare
from ddpify.rules.io import writers
from ddpify.rules.io.output_statements import Guards
from ddpify.rules.io.unedited_output import has_own_guard, is_logged, unguarded_output

CODE = "DDP501"
_EXISTS = frozenset(("exists", "isfile", "isdir", "is_file", "is_dir", "_check_exists", "check_preprocess", "check_integrity"))


def silenced(context: Context, guards: Guards) -> Iterator[Change | Finding]:
    """Close what the entry can close for other ranks, and report files that other modules write."""
    yield from _files(context, guards)
    where = next((s for s in context.tree.root.body if isinstance(s, (ast.Import, ast.ImportFrom))), context.tree.root.body[0])
    shown = context.tree.shown
    if guards.quiet and not _closes_stdout(context):
        why = "modules that are not edited print, too: only rank 0's standard output is shown"
        yield Change(CODE, why, shown, where, (), needs=("quiet",))
    logging = guards.quiet_logging and any(is_logged(c) for c in context.facts.after.trace.calls)
    if logging and not _disabled(context):
        why = "modules that are not edited log, too: only rank 0's loggers speak"
        yield Change(CODE, why, shown, where, (), needs=("quiet_logging",))
    modules = {c.file: c.node for c in unguarded_output(context, guards) if any(p.startswith("loguru.") for p in c.func.paths())}
    for node in modules.values():
        fix = "from loguru import logger, and logger.remove() where the rank is not 0"
        yield context.manual(CODE, node, "every rank logs here", fix)


def _closes_stdout(context: Context) -> bool:
    """Whether the script itself puts the null device in the place of standard output."""
    run = context.facts.after
    stores = [(node.targets[0], node.value) for node in context.tree.of(ast.Assign)]
    put = [v for t, v in stores if isinstance(t, ast.Attribute) and t.attr == "stdout" and "sys" in run.value(t.value).paths()]
    return any(to_nowhere(run, part) for value in put for part in ast.walk(value))


def _disabled(context: Context) -> bool:
    """Whether other ranks' logging is switched off already."""
    return any("logging.disable" in c.func.paths() and context.facts.is_edited(c.node) for c in context.facts.after.trace.calls)


def _files(context: Context, guards: Guards) -> Iterator[Change | Finding]:
    """Files and folders that other modules make: one finding for each of their functions."""
    seen: set[ast.AST] = set()
    alone = writers.alone(context, guards)
    told: dict[tuple[ast.AST, str], list[Call]] = {}
    edited: set[ast.AST] = set()
    for call in context.facts.after.trace.calls:
        kind = guards.effects.at.get(call.node)
        if (
            context.facts.is_edited(call.node)
            or call.node in seen
            or kind not in ("file", "folder")
            or call.file not in context.facts.trees
        ):
            continue
        if prepare.preparation(context).covers(call):
            seen.add(call.node)  # a later call finds the files there
            continue
        if guards.guarded_call(call.node, call.stack) or has_own_guard(context, call.node):
            continue
        if alone & set(call.stack) or _on_writer(guards, call) or only_draws(call):
            continue
        seen.add(call.node)
        place = _prepares(context, call) or _devnull(context, call)
        logger = _set_up(context, guards, call)
        if isinstance(place, ast.stmt):
            yield from _first(context, place, edited)
        elif place is not None:
            yield from _nowhere(context, place, edited)
        elif logger is not None:
            yield from _unconfigured_logger(context, *logger, edited)
        elif kind == "file" or not any(k.arg == "exist_ok" for k in call.node.keywords):
            told.setdefault((context.facts.trees[call.file].function(call.node), kind), []).append(call)
    for (_, what), calls in told.items():
        names = ", ".join(dict.fromkeys(ast.unparse(c.node.func) for c in calls))
        if what == "folder":
            message, fix = "every rank makes this folder, and all but one fail", "os.makedirs(path, exist_ok=True)"
        else:
            message, fix = f"every rank would write here ({names})", "if dist.get_rank() == 0:"
        yield context.manual(CODE, calls[0].node, message, fix)


def _on_writer(guards: Guards, call: Call) -> bool:
    """Whether a call is a method of a writer: the finding is where that is made."""
    return any(guards.effects.is_writer(maker(o)) for o in call.func.objs)


def _first(context: Context, caller: ast.stmt, edited: set[ast.AST]) -> Iterator[Change]:
    """One rank of each node goes first, where a file is only made if it is not there yet."""
    if caller in edited or one_rank_ahead(context.facts.after, context.tree, caller):
        return
    edited.add(caller)
    yield Change(
        CODE,
        "one rank of each node prepares the files, the others then find them",
        context.tree.shown,
        caller,
        (Under(caller, f"with {context.names['first_on_node']}()"),),
        needs=("first_on_node",),
    )


def _prepares(context: Context, call: Call) -> ast.stmt | None:
    """The statement of the entry that leads to a write which is only made where the file is not there yet."""
    if not any(isinstance(n, ast.Call) and last_name(n.func) in _EXISTS for test, _ in call.tests for n in ast.walk(test)):
        return None
    above = [n for n in call.stack if context.facts.is_edited(n)]
    if not above or any(n in context.training for n in above):
        return None
    statement = context.tree.statement(above[-1])  # the nearest: what leads to it may also train
    together = not prepare.free(context, statement, prepare.calls_under(context, statement))
    return statement if isinstance(statement, (ast.Assign, ast.Expr, ast.AnnAssign)) and not together else None


def _devnull(context: Context, call: Call) -> ast.expr | None:
    """What the entry passes as the path of a log file that another module opens."""
    if not call.func.paths() & HANDLERS and "logging.basicConfig" not in call.func.paths():
        return None
    path = next((k.value for k in call.node.keywords if k.arg == "filename"), call.node.args[0] if call.node.args else None)
    function = context.facts.trees[call.file].function(call.node)
    if not isinstance(path, ast.Name) or not isinstance(function, ast.FunctionDef) or not context.facts.is_edited(call.stack[-1]):
        return None
    caller = call.stack[-1]
    called = context.facts.after.value(caller.func).objs if isinstance(caller, ast.Call) else frozenset()
    if not isinstance(caller, ast.Call) or not any(isinstance(o, Func) and o.node is function for o in called):
        return None
    names = [a.arg for a in function.args.args]
    stored = any(isinstance(n, ast.Name) and n.id == path.id and isinstance(n.ctx, ast.Store) for n in ast.walk(function))
    read = sum(isinstance(n, ast.Name) and n.id == path.id and isinstance(n.ctx, ast.Load) for n in ast.walk(function))
    if path.id not in names or stored or read > 1:
        return None
    return argument(caller, names.index(path.id), path.id)


def _nowhere(context: Context, path: ast.expr, edited: set[ast.AST]) -> Iterator[Change]:
    """Other ranks' log goes nowhere."""
    if path in edited or any(to_nowhere(context.facts.after, n) for n in ast.walk(path)):
        return
    edited.add(path)
    yield Change(
        CODE,
        "other ranks log to nowhere",
        context.tree.shown,
        path,
        (Replace(path, f"{{0}} if {context.names['rank']} == 0 else os.devnull", (path,)),),
        ("import os",),
    )


def _set_up(context: Context, guards: Guards, call: Call) -> tuple[ast.Call, str] | None:
    """The call of the entry that sets up a logger with a file and does nothing else, and the name of that logger."""
    above = [n for n in call.stack if context.facts.is_edited(n)]
    if not call.func.paths() & (HANDLERS | {"os.makedirs", "os.mkdir"}) or not above or not isinstance(above[-1], ast.Call):
        return None
    run, caller = context.facts.after, above[-1]
    for creation in run.calls(caller):
        loggers = creation.result.instances()
        if (
            len(creation.result.objs) != 1
            or not all(o.path == "logging.getLogger" for o in loggers)
            or guards.effects.has_side_effects(caller)
        ):
            return None
        for logger in loggers:
            names = {o.value for c in run.calls(logger.node) for o in (c.args[0].objs if c.args else {Lit(None)}) if isinstance(o, Lit)}
            if len(names) == 1 and caller in logger.stack:
                (name,) = names
                return caller, "" if name is None else json.dumps(name).replace("{", "{{").replace("}", "}}")
    return None


def _unconfigured_logger(context: Context, caller: ast.Call, name: str, edited: set[ast.AST]) -> Iterator[Change]:
    """Other ranks get the logger as it is without that set-up."""
    if caller not in edited:
        edited.add(caller)
        template = f"{{0}} if {context.names['rank']} == 0 else logging.getLogger({name})"
        why = "rank 0 alone sets up the log"
        yield Change(CODE, why, context.tree.shown, caller, (Replace(caller, template, (caller,)),), ("import logging",))
