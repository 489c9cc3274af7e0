"""Let all ranks take the same decisions.

What it does: a stop, a skipped step or a learning rate that depends on numbers of the evaluation follows rank 0's; one that depends on a
    rank's own batch is shown.
Why: a rank that leaves a loop, or steps with another learning rate, hangs the others or drifts away from them.
Safety: safe for numbers every rank computed from the whole evaluation set; MANUAL for a rank's own.
References: https://docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts.effects import effect
from ddpify.facts.model import Call, Decision, Method, New, Value
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context, own_statements

CODE = "DDP403"
TITLE = "decisions agree"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a condition on the epoch",
        "if epoch == 5:\n"
        "    break\n",
        frame="epoch",
    ),
    Example(
        "a condition on settings",
        "if args.epochs > 100:\n"
        "    raise SystemExit\n",
        frame="end",
    ),
    Example(
        "a scheduler that counts epochs",
        "torch.optim.lr_scheduler.StepLR(optimizer, 3).step()\n",
        frame="epoch",
    ),
    Example(
        "a number of the evaluation that steers nothing",
        "accuracy = evaluate()\n"
        "history = [accuracy]\n",
        frame="epoch",
    ),
    Example(
        "an early stop",
        "if evaluate() > 0.95:\n"
        "    break\n",
        "if from_rank_zero(evaluate() > 0.95):\n"
        "    break\n",
        frame="epoch",
    ),
    Example(
        "a learning rate",
        "scheduler.step(evaluate())\n",
        "scheduler.step(from_rank_zero(evaluate()))\n",
        frame="epoch",
    ),
)  # fmt: skip

_STEERS = frozenset(("backward", "step", "load_state_dict", "zero_grad", "train"))


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Agree on conditions and on what schedulers are told."""
    yield from _branches(context)
    yield from _schedulers(context)
    yield from _handlers(context)
    yield from _draws(context)
    yield from _rates(context)
    yield from _closures(context)
    yield from _kept(context)


def _draws(context: Context) -> Iterator[Finding]:
    """Steps that depend on a draw which the ranks do not share."""
    run = context.facts.after
    training = {loop.node for t in context.facts.loops for loop in t.backward.loops}
    seeds = {p for c in run.trace.calls for p in c.func.paths()}
    seen: set[ast.AST] = set()
    for d in run.trace.decisions:
        if d.node in seen or not isinstance(d.node, (ast.If, ast.While)) or not any(loop.node in training for loop in d.loops):
            continue
        roots = {str(r) for r in d.test.of_kind("random")}
        own = {r for r in roots if r == "torch" or {"numpy": "numpy.random.seed", "random": "random.seed"}.get(r) not in seeds}
        if own and steers(context, d.node):
            seen.add(d.node)
            yield context.manual(
                CODE,
                d.node,
                "this step depends on a draw, and every rank draws for itself",
                "draw it from a generator that is seeded alike on all ranks and used for nothing else",
            )


def _rates(context: Context) -> Iterator[Finding]:
    """Optimizer settings computed from a rank's own numbers."""
    seen: set[ast.AST] = set()
    for store in context.facts.after.trace.stores:
        node = store.node
        if (
            node in seen
            or not isinstance(node, ast.Subscript)
            or not isinstance(node.slice, ast.Constant)
            or node.slice.value not in ("lr", "momentum", "weight_decay", "betas")
        ):
            continue
        if _evaluated(context, store.value):
            seen.add(node)
            yield context.manual(
                CODE,
                node,
                "this setting would follow each rank's own numbers, and the ranks' parameters drift apart",
                "sum or average what it is computed from over the ranks first",
            )


def _closures(context: Context) -> Iterator[Finding]:
    """Optimizers that decide by the loss a closure returns."""
    for call in context.facts.after.trace.calls:
        if call.method == "step" and call.args and "torch.optim.LBFGS" in call.receiver.kinds():
            yield context.manual(
                CODE,
                call.node,
                "LBFGS decides by the loss that the closure returns, which is each rank's own",
                "let the closure return the average over ranks: dist.all_reduce(loss); loss /= dist.get_world_size()",
            )


def _kept(context: Context) -> Iterator[Finding]:
    """Files written inside the training loop on the strength of a rank's own numbers."""
    run = context.facts.after
    loaders = set(context.facts.loaders)
    loops = {t.batch.node for t in context.facts.loops if t.batch is not None}
    writing = {c.node for c in run.trace.calls if effect(c) == "file"}
    seen: set[ast.AST] = set()
    for d in run.trace.decisions:
        if not isinstance(d.node, ast.If) or d.node in seen or not any(loop.node in loops for loop in d.loops):
            continue
        if any(o.kind in ("batch", "decided") and o.of in loaders for o in d.test.origins) and any(
            n in writing for s in d.node.body for n in ast.walk(s)
        ):
            seen.add(d.node)
            yield context.manual(
                CODE,
                d.node,
                "what is written here is decided by rank 0's own batches, not by all of them",
                "sum or average the numbers over the ranks before they are compared",
            )


def _local(context: Context, value: Value) -> bool:
    """Whether a value depends on a rank's own share of the training data, the clock, or nothing agreed."""
    loaders = set(context.facts.loaders)
    return any(o.kind in ("batch", "decided") and o.of in loaders for o in value.origins) or any(o.kind in ("time",) for o in value.origins)


def _evaluated(context: Context, value: Value) -> bool:
    return any(o.kind in ("batch", "decided") for o in value.origins)


def _branches(context: Context) -> Iterator[Change | Finding]:
    facts = context.facts
    tests: dict[ast.AST, tuple[Decision, Value]] = {}
    for d in facts.after.trace.decisions:
        if isinstance(d.node, (ast.If, ast.While)):
            tests[d.node] = (d, tests[d.node][1] | d.test) if d.node in tests else (d, d.test)
    agreed: set[ast.AST] = set()
    epochs = {loop.node for t in facts.loops for loop in t.backward.loops}
    for node, (decision, test) in tests.items():
        if not _evaluated(context, test) and not _local(context, test):
            continue
        tree = facts.tree_of(node)
        if any(up in agreed for up in tree.ancestors(node)) or not steers(context, node):
            continue
        if not any(loop.node in epochs for loop in decision.loops) and not isinstance(node, ast.While):
            continue
        assert isinstance(node, (ast.If, ast.While))
        agreed.add(node)
        if _local(context, test) or not facts.is_entry(node):
            what = "the clock or a rank's own numbers" if _local(context, test) else "the evaluation's numbers"
            yield context.manual(
                CODE,
                node,
                f"this condition depends on {what}, and what follows must happen on all ranks or on none",
                "agree on it first: flag = torch.tensor(float(condition), device=device); dist.all_reduce(flag, op=dist.ReduceOp.MAX)",
            )
        else:
            yield Change(
                CODE,
                "all ranks follow rank 0's decision",
                context.tree.shown,
                node,
                (Replace(node.test, f"{context.names['from_rank_zero']}({{0}})", (node.test,)),),
                needs=("from_rank_zero",),
            )


def steers(context: Context, node: ast.AST) -> bool:
    """Whether a branch leaves a loop or a function of the training, trains, or changes what trains."""
    for statement in own_statements(node):
        if isinstance(statement, (ast.Break, ast.Continue, ast.Return, ast.Raise)):
            return True
    for n in ast.walk(node):
        if isinstance(n, ast.Call):
            if n in context.training or context.facts.after.value(n.func).paths() & {"sys.exit", "exit", "quit"}:
                return True
            if isinstance(n.func, ast.Attribute) and n.func.attr in _STEERS:
                return True
        if isinstance(n, ast.Assign) and _loaded(context, n):
            return True
    return isinstance(node, ast.While)


def _loaded(context: Context, node: ast.Assign) -> bool:
    """Whether what a statement keeps is loaded into a model again."""
    names = {ast.unparse(t) for t in node.targets}
    return any(
        c.method == "load_state_dict" and any(ast.unparse(a).partition("[")[0] in names for a in c.node.args)
        for c in context.facts.after.trace.calls
    )


def _schedulers(context: Context) -> Iterator[Change | Finding]:
    run = context.facts.after
    seen: set[ast.AST] = set()
    for call in run.trace.calls:
        if call.method != "step" or not call.args or call.node in seen or not _is_scheduler(call):
            continue
        seen.add(call.node)
        value = call.args[0]
        if not call.node.args or not (_evaluated(context, value) or _local(context, value)):
            continue
        if not context.facts.is_entry(call.node) or _local(context, value):
            yield context.manual(
                CODE,
                call.node,
                "the learning rate would follow each rank's own number",
                "average it over the ranks first: dist.all_reduce(value); value /= dist.get_world_size()",
            )
            continue
        argument = call.node.args[0]
        yield Change(
            CODE,
            "all ranks follow rank 0's number, so that their learning rates stay equal",
            context.tree.shown,
            call.node,
            (Replace(argument, f"{context.names['from_rank_zero']}({{0}})", (argument,)),),
            needs=("from_rank_zero",),
        )


def _is_scheduler(call: Call) -> bool:
    return any(isinstance(o, Method) and isinstance(o.of, New) and "lr_scheduler" in o.of.path for o in call.func.objs)


def _handlers(context: Context) -> Iterator[Finding]:
    """`except` around training that goes on as if nothing had happened."""
    training = context.training
    for tree in context.facts.trees.values():
        for node in tree.nodes():
            if isinstance(node, ast.Try) and any(n in training for s in node.body for n in ast.walk(s)):
                for handler in node.handlers:
                    ends = handler.body[-1]
                    quits = isinstance(ends, ast.Raise) or (
                        isinstance(ends, ast.Expr)
                        and isinstance(ends.value, ast.Call)
                        and ast.unparse(ends.value.func) in ("sys.exit", "exit", "quit", "os._exit")
                    )
                    caught = ast.unparse(handler.type) if handler.type is not None else "everything"
                    if not quits and caught not in ("KeyboardInterrupt",) and tree.statement(node) in context.facts.after.trace.visited:
                        yield context.manual(
                            CODE,
                            handler,
                            f"an error caught here ({caught}) would stop one rank's step and hang the others",
                            "raise, or agree on a flag with all_reduce before going on",
                        )
