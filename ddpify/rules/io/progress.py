"""One progress bar.

What it does: `tqdm(...)`, `rich`'s and `alive_progress`'s bars get `disable=rank != 0`, beside the condition that the script gives itself;
    those whose count is read, and those of the package `progress`, are drawn to nowhere on other ranks. A bar that is moved on by a
    rank's samples counts those of all.
Why: N bars write over each other.
Safety: safe; a disabled bar's methods do nothing, and it counts nothing. REVIEW for a bar that cannot be disabled.
References: https://tqdm.github.io/docs/tqdm/
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace, SetArgument
from ddpify.facts.effects import is_bar, maker
from ddpify.facts.library.effects import BARS_TO_A_FILE, BARS_TO_DISPLAY, BARS_WITH_SWITCH, BARS_WITHOUT_SWITCH
from ddpify.facts.tree import Tree
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.io.guarded import guards_of

CODE = "DDP502"
TITLE = "show one progress bar"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a function of that name",
        "def progress(items):\n"
        "    return items\n"
        "\n"
        "\n"
        "for item in progress([1, 2]):\n"
        "    value = item\n",
        frame="end",
    ),
    Example(
        "a bar that is never shown",
        "for item in tqdm(range(9), disable=True):\n"
        "    value = item\n",
        frame="end",
    ),
    Example(
        "a list with a bar's name",
        "tqdm_bars = [range(9)]\n",
        frame="end",
    ),
    Example(
        "a bar that is moved on by one for each batch",
        "bar = tqdm(total=9, disable=True)\n"
        "for item in range(9):\n"
        "    bar.update()\n",
        frame="end",
    ),
    Example(
        "a bar that is never shown, and whose count is read",
        "bar = tqdm(total=9, disable=True)\n"
        "seen = bar.n\n",
        frame="end",
    ),
    Example(
        "a bar of fastprogress that is never displayed",
        "from fastprogress import progress_bar\n"
        "for item in progress_bar(range(9), display=False):\n"
        "    value = item\n",
        frame="end",
    ),
    Example(
        "a loop without a bar",
        "for item in range(9):\n"
        "    value = item\n",
        frame="end",
    ),
    Example(
        "a bar over the batches",
        'for x, y in tqdm(loader, desc="train"):\n'
        "    update(x, y)\n",
        "loader.sampler.set_epoch(epoch)\n"
        'for x, y in tqdm(loader, desc="train", disable=rank != 0):\n'
        "    update(x, y)\n",
        frame="batches",
    ),
    Example(
        "a bar over the epochs",
        "for epoch in trange(args.epochs):\n"
        "    train(epoch)\n",
        "for epoch in trange(args.epochs, disable=rank != 0):\n"
        "    train(epoch)\n",
        frame="loop",
    ),
    Example(
        "a bar that is switched by the script itself",
        "for item in tqdm(range(9), disable=args.epochs > 9):\n"
        "    value = item\n",
        "for item in tqdm(range(9), disable=rank != 0 or args.epochs > 9):\n"
        "    value = item\n",
        frame="end",
    ),
    Example(
        "a bar of fastprogress over the batches",
        "from fastprogress import progress_bar\n"
        "for x, y in progress_bar(loader, leave=False):\n"
        "    update(x, y)\n",
        "from fastprogress import progress_bar\n"
        "loader.sampler.set_epoch(epoch)\n"
        "for x, y in progress_bar(loader, leave=False, display=rank == 0):\n"
        "    update(x, y)\n",
        frame="batches",
    ),
    Example(
        "a bar whose count is read",
        "bar = tqdm(total=9)\n"
        "for x, y in loader:\n"
        "    update(x, y)\n"
        "    bar.update()\n"
        "    if bar.n == 9:\n"
        "        break\n",
        'bar = tqdm(total=9, file=sys.stderr if rank == 0 else open(os.devnull, "w"))\n'
        "loader.sampler.set_epoch(epoch)\n"
        "for x, y in loader:\n"
        "    update(x, y)\n"
        "    bar.update()\n"
        "    if bar.n == 9:\n"
        "        break\n",
        frame="batches",
    ),
    Example(
        "a bar that is moved on by the samples of each batch",
        "bar = tqdm(total=len(train_set))\n"
        "for x, y in loader:\n"
        "    update(x, y)\n"
        "    bar.update(len(x))\n",
        "bar = tqdm(total=len(train_set), disable=rank != 0)\n"
        "loader.sampler.set_epoch(epoch)\n"
        "for x, y in loader:\n"
        "    update(x, y)\n"
        "    bar.update(len(x) * world_size)\n",
        frame="batches",
    ),
)  # fmt: skip

_ADVANCING = {"update": (0, ("n", "advance")), "advance": (1, ("advance",))}  # of bars: the parameter that says by how much
_COUNTS = frozenset(("n", "last_print_n", "format_dict"))  # what a bar of tqdm holds of its count, which a disabled one leaves as it was
_LOOSE = (ast.BinOp, ast.IfExp, ast.BoolOp, ast.Lambda, ast.NamedExpr, ast.Compare, ast.UnaryOp)


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Disable bars on other ranks; report bars in other modules."""
    run, rank = context.facts.after, context.names["rank"]
    for tree in context.facts.trees.values():
        for node in tree.of(ast.Call):
            if not run.calls(node):
                continue
            paths = run.value(node.func).paths()
            if any(p.startswith(BARS_WITHOUT_SWITCH) for p in paths) and not _drawn_by_output(context, node):
                yield from _fixed(context, tree, node, paths)
            if not paths & BARS_WITH_SWITCH:
                continue
            given, where = argument(node, None, "disable"), argument(node, None, "file")
            if where is not None and context.asks_for_rank(where):
                continue
            if tree not in context.tree.trees:
                if given is None:
                    yield context.manual(CODE, node, "every rank draws this progress bar", "disable=dist.get_rank() != 0")
                continue
            several = [k.value for k in node.keywords if k.arg is None]
            if several and given is None:
                yield from _among_settings(context, tree, node, several)
            elif not _disabled(context, given) and not _drawn_by_output(context, node):
                if _count_is_read(context, node):
                    yield _to_nowhere(tree, node, rank)
                else:
                    yield _shown_by_rank_zero(tree, node, SetArgument(node, "disable", *_condition(given, rank)))
    yield from _counted(context)


def _among_settings(context: Context, tree: Tree, node: ast.Call, several: list[ast.expr]) -> Iterator[Change | Finding]:
    """A bar whose settings are in a dict: what they say of showing it holds on rank 0."""
    rank, settings = context.names["rank"], several[0]
    if isinstance(settings, ast.Dict) and any(
        isinstance(k, ast.Constant) and k.value == "disable" and context.asks_for_rank(v)
        for k, v in zip(settings.keys, settings.values, strict=True)
    ):
        return
    if len(several) > 1 or not isinstance(settings, (ast.Name, ast.Attribute)) or _drawn_by_output(context, node):
        yield context.manual(CODE, node, "every rank draws this progress bar", f"disable={rank} != 0 among its settings")
        return
    text = f'{{{{**{{0}}, "disable": {rank} != 0 or {{0}}.get("disable", False)}}}}'
    why = "only rank 0 shows the progress bar; otherwise every rank would"
    yield Change(CODE, why, tree.shown, node, (Replace(settings, text, (settings,)),), without="every rank draws this bar")


def _counted(context: Context) -> Iterator[Change]:
    """The samples of one rank that a bar is moved on by are those of all ranks."""
    seen: set[ast.AST] = set()
    for call in context.calls():
        if call.node in seen or call.method not in _ADVANCING or not any(map(is_bar, map(maker, call.receiver.objs))):
            continue
        seen.add(call.node)
        position, names = _ADVANCING[call.method]
        steps = next((given for name in names if (given := argument(call.node, position, name)) is not None), None)
        value = context.facts.after.value(steps) if steps is not None else None
        if steps is None or value is None or value.of_kind("world") or getattr(context.placement(value), "op", "") != "count":
            continue
        text = f"({{0}}) * {context.names['world_size']}" if isinstance(steps, _LOOSE) else f"{{0}} * {context.names['world_size']}"
        why = "the bar counts the samples of all ranks; rank 0 has only its part of each batch"
        yield Change(CODE, why, context.tree.shown, steps, (Replace(steps, text, (steps,)),), without="the bar stops before its end")


def _shown_by_rank_zero(tree: Tree, node: ast.Call, edit: SetArgument, imports: tuple[str, ...] = ()) -> Change:
    why = "only rank 0 shows the progress bar; otherwise every rank would"
    return Change(CODE, why, tree.shown, node, (edit,), imports, without="every rank draws this bar")


def _to_nowhere(tree: Tree, node: ast.Call, rank: str) -> Change:
    """A bar that moves on on all ranks, and is drawn where the script says on rank 0 alone."""
    given = argument(node, None, "file")
    text, parts = ("sys.stderr", ()) if given is None else ("({0})" if isinstance(given, _LOOSE) else "{0}", (given,))
    edit = SetArgument(node, "file", f'{text} if {rank} == 0 else open(os.devnull, "w")', parts)
    return _shown_by_rank_zero(tree, node, edit, ("import os", "import sys") if given is None else ("import os",))


def _count_is_read(context: Context, node: ast.Call) -> bool:
    """Whether the script reads how far a bar has come, of which a disabled bar knows nothing."""
    run, reads = context.facts.after, (n for tree in context.facts.trees.values() for n in tree.of(ast.Attribute) if n.attr in _COUNTS)
    return any(made is not None and made.node is node for n in reads for made in map(maker, run.value(n.value).objs))


def _fixed(context: Context, tree: Tree, node: ast.Call, paths: frozenset[str]) -> Iterator[Change | Finding]:
    """A bar without an argument `disable`: on other ranks it is not displayed, or drawn to nowhere."""
    rank = context.names["rank"]
    switch = "display" if paths <= BARS_TO_DISPLAY else "file"
    where = argument(node, None, switch)
    if where is not None and (context.asks_for_rank(where) or (isinstance(where, ast.Constant) and where.value is False)):
        return
    plain = where is None and tree in context.tree.trees and not any(k.arg is None for k in node.keywords)
    if plain and switch == "display":
        yield _shown_by_rank_zero(tree, node, SetArgument(node, switch, f"{rank} == 0"))
        return
    if plain and any(p.startswith(BARS_TO_A_FILE) for p in paths):
        yield _to_nowhere(tree, node, rank)
        return
    fix = f"wrap it only if rank is 0, as in `bar(items) if {rank} == 0 else items`"
    yield context.manual(CODE, node, "every rank draws this progress bar", fix, level=Safety.REVIEW)


def _drawn_by_output(context: Context, node: ast.Call) -> bool:
    """Whether a bar is only drawn where rank 0 alone comes by."""
    return all(guards_of(context).guarded_call(c.node, c.stack) for c in context.facts.after.calls(node))


def _disabled(context: Context, given: ast.expr | None) -> bool:
    """Whether a bar is never shown, or on rank 0 alone already."""
    if given is None:
        return False
    if isinstance(given, ast.Constant) and given.value is True:
        return True
    return context.asks_for_rank(given)


def _condition(given: ast.expr | None, rank: str) -> tuple[str, tuple[ast.expr, ...]]:
    """When to disable a bar: on other ranks, and when the script says so (None: where there is no terminal)."""
    if given is None or (isinstance(given, ast.Constant) and not given.value and given.value is not None):
        return f"{rank} != 0", ()
    if isinstance(given, ast.Constant) and given.value is None:
        return f"None if {rank} == 0 else True", ()
    return f"{rank} != 0 or {{0}}", (given,)
