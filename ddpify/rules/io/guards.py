"""Rank 0 prints and writes.

What it does: statements that print, log, draw, save or delete go under `if rank == 0:`; an `if` that holds nothing else gets the rank
    into its own condition. What all ranks must do inside such a statement (an evaluation, a draw) is taken out and put before it.
    Where another module of the project prints, the other ranks' standard output is closed instead.
Why: N ranks would print everything N times and write over each other's files.
Safety: a statement is guarded only if nothing else depends on it: no assignment, no collective, no draw from a loader. MANUAL where a
    file is written by another module.
References: https://docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit, InsertBefore, Replace, SetArgument, Under
from ddpify.facts.barriers import one_rank_ahead
from ddpify.facts.effects import maker, only_draws, opened
from ddpify.facts.library import NO_RETURN
from ddpify.facts.library.effects import TALKERS
from ddpify.facts.tree import calls_in, walk
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.data import prepare
from ddpify.rules.io import all_rank_calls, output, stored_losses, unedited_modules
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.io.harmless import harmless
from ddpify.rules.io.only_read import mode_of_read_file
from ddpify.rules.io.output_statements import OPENS, Guards, is_method_of_path

CODE = "DDP501"
TITLE = "print and write on rank 0 only"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "an assignment",
        'message = "starting".upper()\n',
        frame="end",
    ),
    Example(
        "a printing function that is not called",
        "def usage():\n"
        '    raise SystemExit("train.py --epochs N")\n',
        frame="end",
    ),
    Example(
        "text that is made and kept",
        "lines = []\n"
        'lines.append(f"epochs {args.epochs}")\n',
        frame="end",
    ),
    Example(
        "a file that is read",
        'with open("names.txt") as f:\n'
        "    names = f.read().split()\n",
        frame="end",
    ),
    Example(
        "an error that ends the script",
        "if args.epochs < 1:\n"
        '    raise ValueError("no epochs")\n',
        frame="start",
    ),
    Example(
        "an evaluation that nothing is said of",
        "accuracy = evaluate()\n",
        frame="epoch",
    ),
    Example(
        "a line of output",
        'print("epoch", epoch, "done")\n',
        "if rank == 0:\n"
        '    print("epoch", epoch, "done")\n',
        frame="epoch",
    ),
    Example(
        "a condition around nothing but output",
        "if epoch % 10 == 0:\n"
        '    print("epoch", epoch)\n',
        "if rank == 0 and epoch % 10 == 0:\n"
        '    print("epoch", epoch)\n',
        frame="epoch",
    ),
    Example(
        "output beside what every rank must do",
        "if epoch == 5:\n"
        '    print("enough")\n'
        "    break\n",
        "if epoch == 5:\n"
        "    if rank == 0:\n"
        '        print("enough")\n'
        "    break\n",
        frame="epoch",
    ),
    Example(
        "neighbours that share a block",
        'print("epoch", epoch)\n'
        "if epoch > 5:\n"
        '    print("late")\n',
        "if rank == 0:\n"
        '    print("epoch", epoch)\n'
        "    if epoch > 5:\n"
        '        print("late")\n',
        frame="epoch",
    ),
    Example(
        "an evaluation inside a line of output",
        'print("accuracy", evaluate())\n',
        "accuracy = evaluate()\n"
        "if rank == 0:\n"
        '    print("accuracy", accuracy)\n',
        frame="epoch",
    ),
)  # fmt: skip
_WHY = "only rank 0 prints or logs this; otherwise every rank would repeat it"


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Guard output and writes of the edited files; report what other modules write."""
    guards = guards_of(context)
    header = f"if {context.names['rank']} == 0"
    guarding = [c for file in context.tree.trees for c in _block(context, guards, file.root.body, header)]
    yield from guarding
    yield from _unguarded(context, guards, [c.node for c in guarding if isinstance(c, Change)])
    yield from stored_losses.averaged(context, [c for c in guarding if isinstance(c, Change)])
    yield from unedited_modules.silenced(context, guards)
    yield from _asked_to_print(context, guards)


def _asked_to_print(context: Context, guards: Guards) -> Iterator[Change]:
    """The calls of the libraries' functions that all ranks run, and that print only if an argument says so."""
    rank = context.names["rank"]
    for node, name in {c.node: TALKERS[p] for c in context.calls() for p in c.func.paths() & TALKERS.keys()}.items():
        given = argument(node, None, name)
        off = isinstance(given, ast.Constant) and not given.value
        if off or any(k.arg is None for k in node.keywords) or guards.guarded(node) or (given is not None and context.asks_for_rank(given)):
            continue
        holes = () if given is None or isinstance(given, ast.Constant) else (given,)
        edit = SetArgument(node, name, f"{rank} == 0 and {{0}}" if holes else f"{rank} == 0", holes)
        yield Change(CODE, _WHY, context.facts.tree_of(node).shown, node, (edit,), without="every rank prints or logs this")


def _block(context: Context, guards: Guards, body: list[ast.stmt], header: str) -> Iterator[Change]:
    """The changes of a body: neighbouring statements of output share one guard."""
    run: list[tuple[ast.stmt, tuple[Edit, ...]]] = []
    prepared = output.prepared(guards, body)
    for statement in body:
        lifted = _lifted(context, guards, statement)
        if lifted:
            yield from _together(guards, run, header)
            run = [(statement, lifted)]
        elif statement in prepared or _guardable(guards, statement):
            run.append((statement, ()))
        else:
            yield from _together(guards, run, header)
            run = []
            yield from _inside(context, guards, statement, header)
    yield from _together(guards, run, header)


def _guardable(guards: Guards, statement: ast.stmt) -> bool:
    """Whether a statement has no side effect but output, and is not guarded yet."""
    empty = isinstance(statement, ast.Pass) or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    if empty or not guards.only_outputs(statement) or guards.guarded(statement) or guards.done(statement):
        return False
    prepared = prepare.preparation(guards.context)
    return not prepared.writes(statement) and not (isinstance(statement, ast.Assign) and prepared.holds(statement))


def _inside(context: Context, guards: Guards, statement: ast.stmt, header: str) -> Iterator[Change]:
    """The changes of the bodies inside a statement that does more than output."""
    if statement in guards.muted or (guards.only_outputs(statement) and not isinstance(statement, ast.ClassDef)):
        return
    for name in ("body", "orelse", "finalbody"):
        inner = getattr(statement, name, None)
        if isinstance(inner, list):
            yield from _block(context, guards, inner, header)
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        if not _fails_to_import(context, part):
            yield from _block(context, guards, part.body, header)


def _fails_to_import(context: Context, part: ast.AST) -> bool:
    """Whether a module says here that it cannot be imported, and ends: no rank is known by then."""
    if not isinstance(part, ast.ExceptHandler):
        return False
    around = context.tree.parent[part]
    if not isinstance(context.tree.parent[around], ast.Module):
        return False
    last = part.body[-1]
    ends = isinstance(last, ast.Raise) or (
        isinstance(last, ast.Expr)
        and isinstance(last.value, ast.Call)
        and bool(context.facts.after.value(last.value.func).paths() & NO_RETURN)
    )
    return ends and any(isinstance(s, (ast.Import, ast.ImportFrom)) for s in getattr(around, "body", ()))


def _lifted(context: Context, guards: Guards, statement: ast.stmt) -> tuple[Edit, ...]:
    """The edits that take out of a line of output what all ranks must do."""
    top = guards.top(statement)
    if (
        not isinstance(statement, ast.Expr)
        or not isinstance(top, ast.Call)
        or not guards.is_output_statement(statement)
        or guards.guarded(statement)
    ):
        return ()
    return all_rank_calls.extracted(context, guards.required, statement, top) or ()


def _together(guards: Guards, run: list[tuple[ast.stmt, tuple[Edit, ...]]], header: str) -> Iterator[Change]:
    """The changes that guard neighbours: an `if` that stands alone gets the rank into its own condition."""
    context = guards.context
    anywhere = all(harmless(guards, statement) for statement, _ in run)  # else one may make ready what the next says
    for statement, lifted in run:
        edits: tuple[Edit, ...] = (*lifted, Under(statement, header))
        if len(run) == 1 and isinstance(statement, ast.If) and not statement.orelse:
            loose = isinstance(statement.test, (ast.IfExp, ast.Lambda, ast.NamedExpr)) or (
                isinstance(statement.test, ast.BoolOp) and isinstance(statement.test.op, ast.Or)
            )
            inner_text = "({0})" if loose else "{0}"
            edits = (Replace(statement.test, f"{context.names['rank']} == 0 and {inner_text}", (statement.test,)),)
        asks = any(isinstance(e, InsertBefore) and context.names["sum_over_ranks"] in e.code for e in lifted)
        without = "every rank prints or logs this" if anywhere and not lifted else ""
        writes = any(guards.effects.at.get(n) == "file" for n in calls_in(statement))
        why, needs = (
            "only rank 0 writes this; otherwise the ranks would overwrite one another" if writes else _WHY,
            ("sum_over_ranks",) if asks else (),
        )
        yield Change(CODE, why, context.tree.shown, statement, edits, needs=needs, without=without)


def _unguarded(context: Context, guards: Guards, changed: list[ast.AST]) -> Iterator[Finding]:
    """Output and writes that could not be guarded."""
    covered = {n for statement in changed for n in walk(statement)}
    reported: set[ast.AST] = set()
    for call in guards.run.trace.calls:
        kind = guards.effects.at.get(call.node)
        if not context.facts.is_edited(call.node) or kind not in ("print", "file") or call.node in covered or call.node in reported:
            continue
        if guards.guarded_call(call.node, call.stack) or guards.silenced(call.node) or _handled(guards, call.node):
            continue
        reported.add(call.node)
        if only_draws(call) or any(_fails_to_import(context, up) for up in context.tree.ancestors(call.node)):
            continue
        why = f"every rank {'prints this' if kind == 'print' else 'does this'} ({ast.unparse(call.node.func)})"
        fix = f"move what all ranks need out of it, and guard the rest with `if {context.names['rank']} == 0:`"
        if any(opened(path, call.node) == "change" for path in call.func.paths()):
            fix = "open it for reading where nothing is written to it, and write it on rank 0 alone"
        yield context.manual(CODE, call.node, why, fix, level=Safety.REVIEW)


def _handled(guards: Guards, node: ast.Call) -> bool:
    """Whether another rule sees to a call: handles are opened on the null device, writers made on rank 0, files prepared by one rank."""
    func = guards.run.value(node.func)
    tree, makers = guards.context.tree, {m for m in map(maker, func.objs) if m is not None and guards.effects.is_writer(m)}
    if mode_of_read_file(guards.context, node) is not None:
        return True
    if func.paths() & OPENS or is_method_of_path(guards, node):
        return True
    if any(guards.effects.is_writer(o) for o in guards.run.value(node).instances()):
        return True
    if makers and all(guards.context.facts.is_edited(m.node) and not guards.guarded(m.node) for m in makers):
        return True
    prepared = prepare.preparation(guards.context)
    return one_rank_ahead(guards.run, tree, node) or all(prepared.covers(c) for c in guards.run.calls(node))
