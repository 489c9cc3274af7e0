"""Let all ranks take the same decisions.

What it does: a stop, a skipped step or a number of rounds follows rank 0's where it depends on the clock, on an evaluation that every
    rank makes for itself, or on what is not known to be the same in every process (a file that appears, memory, a package nobody has
    described). One that depends on a rank's own batch is decided by the numbers of all ranks, or, where a number is none (NaN), by any
    rank; so is what the samples become by an average or an extreme of them, and how often a loop changes them. What `input` asks is asked
    by rank 0, whose answer all ranks get. An error that the script catches around a training step is raised when there are several ranks;
    an exception by which the script ends its training, as by `break`, is decided as that is.
Why: a rank that leaves a loop, or steps with another learning rate, hangs the others or drifts away from them.
Safety: safe where the condition is a comparison of averages, totals and counts, of time, or a test for NaN; a NOTE where rank 0 is
    followed in what is not known; REVIEW where it is followed in a decision about its own batch.
References: https://docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ddpify.edits import Edit, InsertBefore, Replace
from ddpify.facts import library
from ddpify.facts.effects import file_writes
from ddpify.facts.model import NOTHING, Decision, Lit, New, Tup, Value
from ddpify.facts.tree import calls_in, last_name, own_statements, same, walk
from ddpify.options import Options
from ddpify.placement.shape import EXTREMES, ROWS
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context
from ddpify.rules.io.guarded import guards_of
from ddpify.rules.loop import caught, questions, unknown
from ddpify.rules.loop.branches import ends_with_error, loop_around, parts_ranks
from ddpify.rules.loop.carried import chooses_for_loss
from ddpify.rules.loop.settings import evaluated
from ddpify.rules.loop.sharded_parts import over_ranks, sharded_parts

CODE = "DDP403"
TITLE = "take the same decision on all ranks"
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
        "a number of the evaluation that steers nothing",
        "accuracy = evaluate()\n"
        "history = [accuracy]\n",
        frame="epoch",
    ),
    Example(
        "a question that is only named",
        "ask = input\n",
        frame="epoch",
    ),
    Example(
        "the shape of a batch",
        "if x.dim() == 1:\n"
        "    x = x.unsqueeze(0)\n"
        "loss = criterion(model(x), y)\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
        options=Options(whole_batches="never"),
    ),
    Example(
        "an answer of a package that nobody has described",
        "import watchdog\n"
        "if watchdog.is_late():\n"
        "    break\n",
        "import watchdog\n"
        "if from_rank_zero(watchdog.is_late()):\n"
        "    break\n",
        frame="epoch",
    ),
    Example(
        "a limit of time",
        "if time.time() > 1e9:\n"
        "    break\n",
        "if from_rank_zero(time.time() > 1e9):\n"
        "    break\n",
        frame="epoch",
    ),
    Example(
        "an answer of whoever started the script",
        'if input("go on? ") == "n":\n'
        "    break\n",
        'if same_on_all_ranks(input("go on? ") if rank == 0 else None) == "n":\n'
        "    break\n",
        frame="epoch",
    ),
    Example(
        "a loss that is not a number",
        "loss = criterion(model(x), y)\n"
        "if torch.isnan(loss):\n"
        "    return 0.0\n"
        "loss.backward()\n"
        "optimizer.step()\n"
        "return loss.item()\n",
        "loss = criterion(model(x), y)\n"
        "if on_any_rank(torch.isnan(loss)):\n"
        "    return 0.0\n"
        "loss.backward()\n"
        "optimizer.step()\n"
        "return loss.item()\n",
        frame="step",
    ),
)  # fmt: skip


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Make answers, conditions and the metrics of schedulers the same on all ranks."""
    answers = list(questions.asked(context, CODE))
    yield from answers
    if any(isinstance(a, Change) for a in answers):
        return  # what follows from them is judged once they are the same
    yield from _branches(context)
    yield from _bounds(context)
    yield from _handlers(context)
    yield from _files_by_condition(context)


def _files_by_condition(context: Context) -> Iterator[Finding]:
    """Files written inside the training loop under a condition that differs between ranks."""
    run = context.facts.after
    loops = {t.batch.node for t in context.facts.loops if t.batch is not None}
    writing = file_writes(run)
    seen: set[ast.AST] = set()
    for d in run.trace.decisions:
        if not isinstance(d.node, ast.If) or d.node in seen or not any(loop.node in loops for loop in d.loops):
            continue
        if any(o.kind in ("batch", "decided") and o.of in context.sharded_loaders for o in d.test.origins) and any(
            n in writing for s in d.node.body for n in walk(s)
        ):
            seen.add(d.node)
            why = "what is written here is decided by rank 0's part of the data, not by all of it"
            yield context.manual(CODE, d.node, why, "sum or average the numbers over the ranks before they are compared")


def _branches(context: Context) -> Iterator[Change | Finding]:
    facts = context.facts
    tests: dict[ast.If | ast.While, tuple[list[Decision], Value]] = {}
    for d in facts.after.trace.decisions:
        if isinstance(d.node, (ast.If, ast.While)):
            seen, test = tests.get(d.node, ([], NOTHING))
            seen.append(d)
            tests[d.node] = seen, test | d.test
    agreed: dict[ast.If | ast.While, Value] = {}
    for node, (decisions, test) in tests.items():
        if node in context.assumed.replicated_branches:
            continue
        if not needs_one_answer(context, node, decisions[0], test) or _by_rank_zero(context, decisions):
            continue
        if _chooses_rows(context, node) and not _is_agreed_elsewhere(context, node, decisions):
            why = "ranks may answer this test about their own part of the batch differently, and samples are changed by the answer"
            fix = "test each sample by itself: x = torch.where(test, changed, x)"
            yield context.manual(CODE, node, why, fix, level=Safety.REVIEW)
            continue
        agreed[node] = test
    found = {node: _same_branch(context, node, test) for node, test in agreed.items()}
    edited = [node for node, f in found.items() if isinstance(f, Change)]
    first = [n for n in edited if not agreed[n].of_kind("decided")] or [n for n in edited if not _follows(context, n, edited)] or [*found]
    for node in first:  # what follows from a branch, or is in it, is judged anew once ranks agree there
        if not any(up in first for up in facts.tree_of(node).ancestors(node)):
            yield found[node]


def _follows(context: Context, node: ast.If | ast.While, others: list[ast.If | ast.While]) -> bool:
    """Whether a test reads what the branches of others, which are not around it, assign."""
    around = set(context.facts.tree_of(node).ancestors(node))
    read = {n.id for n in walk(node.test) if isinstance(n, ast.Name)}
    inner = (n for other in others if other is not node and other not in around for s in (*other.body, *other.orelse) for n in walk(s))
    return any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id in read for n in inner)


def needs_one_answer(context: Context, node: ast.If | ast.While, decision: Decision, test: Value) -> bool:
    """Whether ranks may answer a test differently, and then take other steps or wait for each other for good."""
    around = any(loop.node in context.facts.training_loops for loop in decision.loops) or isinstance(node, ast.While)
    if not (around or test.of_kind("unknown")) or not (evaluated(test) or context.differs(test)):
        return False
    leads = parts_ranks(context, node) or any(chooses_for_loss(context, n) for n in walk(node)) or _chooses_rows(context, node)
    return leads and not (context.differs(test) and ends_with_error(context, node) and not _writes(context, node))


def _chooses_rows(context: Context, node: ast.If | ast.While) -> bool:
    """Whether an average or an extreme of the batch decides what its samples become: `if x.max() > 1: x = x / 255`.

    Or how often a loop changes them, which it leaves: `if loss < 0.1: break`.
    """
    value, own = context.facts.after.value, own_statements(node)
    left = {loop_around(context, s) for s in own if isinstance(s, ast.Break)} - context.facts.training_loops
    by = ("mean", "weighted", *EXTREMES, *(("sum", "count") if left else ()))
    tested = [value(n) for n in walk(node.test) if isinstance(n, ast.expr)]
    if not any(v.scale in by and context.from_sharded_data(v) and not v.of_kind("whole") for v in tested):
        return False
    changing = [*own, *(s for loop in left for s in own_statements(loop))]
    stored = [s.value for s in changing if isinstance(s, (ast.Assign, ast.AugAssign))]
    return any(value(n).scale in ROWS and context.from_sharded_data(value(n)) for n in stored)


def _is_agreed_elsewhere(context: Context, node: ast.If | ast.While, decisions: list[Decision]) -> bool:
    """Whether all ranks come to a test outside the training, too, and what they agree on there is what each sees of whole batches."""
    guards, training = guards_of(context), context.facts.training_loops
    outside = [d for d in decisions if training.isdisjoint(loop.node for loop in d.loops)]
    if any(d.stack and guards.guarded_call(d.node, d.stack) for d in outside):
        return False
    test, value = node.test, context.facts.after.value
    zero = isinstance(test, ast.Compare) and all(isinstance(c, ast.Constant) and c.value == 0 for c in test.comparators)
    parts = sharded_parts(context, test) or []
    return not outside or zero or _is_of_any(context, test) or (bool(parts) and all(value(part).scale == "mean" for part in parts))


def _is_of_any(context: Context, test: ast.expr) -> bool:
    """Whether a test holds for the whole batch as soon as it does for one rank's part: `x.max() > 1`, `mask.any()`."""
    if isinstance(test, ast.Call) and last_name(test.func) == "any":
        return context.facts.after.value(test).scale == "largest"
    if not isinstance(test, ast.Compare) or len(test.ops) > 1 or context.differs(context.facts.after.value(test.comparators[0])):
        return False
    scale, op = context.facts.after.value(test.left).scale, test.ops[0]
    return (scale == "largest" and isinstance(op, (ast.Gt, ast.GtE))) or (scale == "smallest" and isinstance(op, (ast.Lt, ast.LtE)))


def _writes(context: Context, node: ast.If | ast.While) -> bool:
    """Whether files are written before a branch ends: by a rank that comes to it, while another one ends the run."""
    effects = guards_of(context).effects
    return any("file" in effects.kinds(n) for s in node.body for n in calls_in(s))


def _bounds(context: Context) -> Iterator[Change | Finding]:
    """How often loops around the training run, where the processes may count differently."""
    run, seen = context.facts.after, set[ast.AST]()
    for trained in context.facts.loops:
        for loop in trained.backward.loops:
            names = sorted({name for over in run.iterated(loop.over) for name in unknown.names(context, over)})
            if not isinstance(loop.node, ast.For) or loop.node in seen or not names:
                continue
            seen.add(loop.node)
            bound = loop.node.iter
            counts = isinstance(bound, ast.Call) and run.value(bound.func).paths() <= {"range", "tqdm.trange"}
            own = [a for a in bound.args if unknown.names(context, run.value(a))] if counts and isinstance(bound, ast.Call) else []
            if not own or not context.facts.is_edited(loop.node):
                why = f"this loop's length depends on {unknown.listed(names)}, which may differ between ranks: they would hang"
                yield context.manual(CODE, loop.node, why, unknown.say(names))
                continue
            edits = tuple(Replace(a, f"{context.names['same_on_all_ranks']}({{0}})", (a,)) for a in own)
            yield Change(
                CODE, unknown.followed(names), context.tree.shown, loop.node, edits, level=Safety.NOTE, needs=("same_on_all_ranks",)
            )


def _by_rank_zero(context: Context, decisions: list[Decision]) -> bool:
    """Whether a condition is only evaluated in calls of output or files, which rank 0 alone will make."""
    return all(d.stack for d in decisions) and all(guards_of(context).guarded_call(d.node, d.stack) for d in decisions)


def _same_branch(context: Context, node: ast.If | ast.While, test: Value) -> Change | Finding:
    """What makes all ranks take the same branch: rank 0's answer, that of any rank, or a reduced number."""
    local = context.differs(test)
    if not context.facts.is_edited(node):
        what = "the clock or values that differ between ranks" if local else "the evaluation's numbers"
        why = f"this condition depends on {what}: if it is true on some ranks only, they wait for the others forever"
        fix = "agree on it first: flag = torch.tensor(float(condition), device=device); dist.all_reduce(flag, op=dist.ReduceOp.MAX)"
        return context.manual(CODE, node, why, fix)
    if functions := unknown.names(context, test):
        return _agreed(context, node, unknown.followed(functions), level=Safety.NOTE)
    if not local or not (context.from_sharded_data(test) or context.chosen_by_own_batch(test)):
        return _agreed(
            context,
            node,
            f"all ranks follow rank 0's {'clock' if local else 'decision'}; otherwise they would wait for one another forever",
        )
    if _broken(node.test):
        return _agreed(
            context,
            node,
            "what fails on one rank is skipped or ended on all; otherwise the others would wait for it forever",
            "on_any_rank",
        )
    if _is_of_any(context, node.test):
        return _agreed(context, node, "the test holds for the whole batch as soon as it does on one rank", "on_any_rank")
    if parts := sharded_parts(context, node.test):
        edits = [over_ranks(context, part) for part in parts]
        return _agreed(
            context,
            node,
            "the numbers are combined over all ranks first, so that all ranks take the same decision",
            "sum_over_ranks",
            edits,
        )
    why = "all ranks decide by rank 0's part of the batch, where the original decided by the full batch"
    return _agreed(context, node, why, level=Safety.REVIEW)


def _agreed(
    context: Context,
    node: ast.If | ast.While,
    why: str,
    helper: str = "from_rank_zero",
    edits: Sequence[Edit] = (),
    level: Safety = Safety.SAFE,
) -> Change:
    """The change by which all ranks answer a test alike: a helper is asked, if the numbers that it reads are not reduced."""
    asked = "bool({0})" if _may_be_held(context, node.test) else "{0}"
    by_helper = (Replace(node.test, f"{context.names[helper]}({asked})", (node.test,)),)
    return Change(CODE, why, context.tree.shown, node, tuple(edits) or by_helper, level=level, needs=(helper,), replicated_branches=(node,))


def _may_be_held(context: Context, test: ast.expr) -> bool:
    """Whether a test may be something else than a number or a flag, of which it asks whether anything is in it."""
    run, parts = context.facts.after, test.values if isinstance(test, ast.BoolOp) else [test]
    objs = [o for part in parts if not isinstance(part, (ast.Compare, ast.UnaryOp)) for o in run.value(part).objs]
    held = (isinstance(o, Tup) or (isinstance(o, New) and o.path in library.COLLECTIONS) for o in objs)
    return any(held) or any(isinstance(o, Lit) and not isinstance(o.value, (bool, int, float)) for o in objs)


def _broken(test: ast.expr) -> bool:
    """Whether a test holds where some number is none: then it holds for all ranks as soon as it does for one.

    `not isnan(loss)` holds where no number is, so it is about the numbers of all ranks, as any other comparison.
    """
    return set(_nan_tests(test, False)) == {True}


def _nan_tests(node: ast.expr, negated: bool) -> Iterator[bool]:
    """For each question whether something is a number: True where the test holds if it is none."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from _nan_tests(node.operand, not negated)
    elif isinstance(node, ast.Call) and (name := last_name(node.func)) in ("isnan", "isinf", "isfinite"):
        yield (name == "isfinite") == negated
    elif isinstance(node, ast.Compare) and same(node.left, node.comparators[0]):
        yield isinstance(node.ops[0], ast.NotEq) != negated
    else:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _nan_tests(child, negated)


def _handlers(context: Context) -> Iterator[Change | Finding]:
    """`except` around training that goes on as if nothing had happened."""
    for tree, handler in caught.handlers(context):
        if caught.ends_loop(context, handler):
            continue
        kind = ast.unparse(handler.type) if handler.type is not None else "everything"
        if tree not in context.tree.trees:
            why = f"an error caught here ({kind}) would end the step of one rank and leave the others waiting forever"
            yield context.manual(CODE, handler, why, "raise, or agree on a flag with all_reduce before going on")
            continue
        why = f"a rank that goes on after an error ({kind}) would leave the others waiting: with several ranks it is raised"
        edit = InsertBefore(handler.body[0], f"if {context.names['world_size']} > 1:\n    raise")
        yield Change(CODE, why, tree.shown, handler, (edit,), level=Safety.NOTE)
