"""Find the batch size's other readers.

What it does: reports where the number given to a training loader as its batch size also shapes a tensor, divides a loss, or is compared
    with a batch's length: there it means this rank's batch, not the global one.
Why: left global, a comparison skips every batch and a shape does not fit.
Safety: MANUAL; intervals, schedules, names and messages rightly go on meaning the global batch.
References: https://docs.pytorch.org/docs/stable/notes/ddp.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Replace
from ddpify.facts.model import Call, Func, Lit, New, Obj, Part, Value
from ddpify.rules.base import Change, Example, Finding, Proof, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.process import cuda_visible_devices

CODE = "DDP303"
TITLE = "what else the batch size sizes"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a setting that is shown",
        'name = f"run_{args.batch_size}"\n',
        frame="end",
    ),
    Example(
        "a number of samples of the global batch",
        "seen = 100 * args.batch_size\n",
        frame="epoch",
    ),
    Example(
        "a shape of the model",
        "hidden = torch.zeros(8, 16)\n",
        frame="end",
    ),
    Example(
        "the loader's own argument, which another rule divides",
        "batches = DataLoader(test_set, batch_size=args.batch_size)\n",
        frame="end",
    ),
    Example(
        "a short batch that is skipped",
        "for x, y in loader:\n"
        "    if x.size(0) == args.batch_size:\n"
        "        update(x, y)\n",
        "loader.sampler.set_epoch(epoch)\n"
        "for x, y in loader:\n"
        "    if x.size(0) == per_rank(args.batch_size):\n"
        "        update(x, y)\n",
        frame="batches",
    ),
    Example(
        "noise for a batch",
        "noise = torch.randn(args.batch_size, 8)\n"
        "loss = criterion(model(x + noise), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        "noise = torch.randn(per_rank(args.batch_size), 8)\n"
        "loss = criterion(model(x + noise), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
    Example(
        "a total that is divided by the batch size",
        "loss = (model(x) ** 2).sum() / args.batch_size\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        "loss = (model(x) ** 2).sum() / per_rank(args.batch_size)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
    ),
)  # fmt: skip

SHAPES = frozenset(
    """
        zeros ones full empty rand randn randint normal arange view reshape expand repeat init_hidden initHidden FloatTensor
        LongTensor Tensor resize_ new_zeros new_ones uniform standard_normal split chunk
    """.split()
)


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Divide the batch size where it means this rank's batch."""
    run = context.facts.after
    sources: set[Obj] = set()
    arguments: set[ast.AST] = set()
    for loader in context.facts.feeding:
        size = run.held(loader, "batch_size")
        sources |= {o for o in size.objs if isinstance(o, Part) or (isinstance(o, Lit) and type(o.value) is int and o.value > 1)}
        sources |= {o for o in size.of_kind("from") if isinstance(o, (Part, Lit))}
        if loader.node in context.facts.cuts:
            arguments |= set(ast.walk(loader.node))
        elif isinstance(loader.node, ast.Call):
            given = argument(loader.node, 1, "batch_size")
            arguments |= set(ast.walk(given)) if given is not None else set()
    if not sources:
        return
    by_hand = [context.facts.cuts[o.node].size for o in context.facts.feeding if o.node in context.facts.cuts]
    computed = {ast.unparse(s) for s in by_hand if isinstance(s, ast.BinOp)}
    seen: set[ast.AST] = set()
    trained = set(context.facts.feeding)
    yield from _indivisible(context)
    for call in run.trace.calls:
        if (
            call.method in SHAPES
            and call.node not in arguments
            and call.node not in context.facts.cuts
            and not any(isinstance(o, Func) for o in call.func.objs)
            and not any(isinstance(o, New) and o.cls is not None and call.method[:1].isupper() for o in call.func.objs)
        ):
            for arg in [*call.node.args, *(k.value for k in call.node.keywords)]:
                for part in arg.elts if isinstance(arg, (ast.Tuple, ast.List)) else [arg]:
                    if part not in seen and ast.unparse(part) in computed and _in_training(context, call):
                        seen.add(part)
                        if not run.value(part).of_kind("world"):
                            yield from _divide(context, part, "a shape made with the batch size holds one rank's batch")
                    elif part not in seen and _derived(run.value(part), sources, bool(computed)) and _in_training(context, call):
                        seen.add(part)
                        yield context.manual(
                            CODE,
                            part,
                            "this shape is computed from the batch size, of which every rank now has its share",
                            f"use {context.names['per_rank']}(...) where the batch size is read",
                        )
                    elif part not in seen and arg is call.node.args[0] and _equal(run.value(part), sources) and _in_training(context, call):
                        seen.add(part)
                        yield context.manual(
                            CODE,
                            part,
                            "this number is the batch size written out once more, and every rank now has its share of a batch",
                            "take it from the batch: x.size(0)",
                        )
                    elif part not in seen and _reads(run.value(part), sources) and _in_training(context, call):
                        seen.add(part)
                        if not all(_in_training(context, other) for other in run.calls(call.node)):
                            yield context.manual(
                                CODE,
                                part,
                                "this shape is one rank's batch in training, and a whole batch elsewhere",
                                "take it from the batch: x.size(0)",
                            )
                            continue
                        yield from _divide(context, part, "a shape made with the batch size holds one rank's batch")
    for name, file in context.facts.trees.items():
        for node in file.nodes():
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                lengths = [run.value(s).of_kind("batch") for s in sides if run.value(s).scale == "count"]
                if lengths and all(n and n <= trained for n in lengths):
                    for side in sides:
                        if _reads(run.value(side), sources) and side not in arguments:
                            yield from _divide(context, side, "a batch's length is compared with one rank's batch size")
            elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.FloorDiv)) and name == "__main__":
                left, right = run.value(node.left), run.value(node.right)
                own = left.of_kind("batch")
                if (
                    left.scale in ("sum", "count", "total")
                    and own
                    and own <= trained
                    and _reads(right, sources)
                    and node.right not in arguments
                ):
                    yield from _divide(context, node.right, "a batch's total is divided by one rank's batch size")


def _reads(value: Value, sources: set[Obj]) -> bool:
    if value.scale is not None or any(o.kind == "world" for o in value.origins):
        return False
    return bool(sources & value.objs)


def _in_training(context: Context, call: Call) -> bool:
    """Whether what a call makes meets a training batch: it runs in a loop over training data, or reaches a loss."""
    loaders = set(context.facts.feeding)
    feeding = [loop for loop in call.loops if loop.element.batches()]
    if feeding:
        return bool(feeding[-1].element.batches() & loaders)
    return any(call.node in loop.loss.of_kind("sized") for loop in context.facts.loops)


def _equal(value: Value, sources: set[Obj]) -> bool:
    """Whether a literal equals the loader's literal batch size."""
    sizes = {o.value for o in sources if isinstance(o, Lit)}
    return (
        bool(sizes)
        and not sources & value.objs
        and len(value.objs) == 1
        and any(isinstance(o, Lit) and type(o.value) is int and o.value in sizes for o in value.objs)
    )


def _derived(value: Value, sources: set[Obj], literals: bool) -> bool:
    """Whether a number is computed from the batch size rather than being it; `literals`: or from what the batch size is computed from."""
    if value.scale is not None or any(o.kind == "world" for o in value.origins) or sources & value.objs:
        return False
    return bool(sources & {o for o in value.of_kind("from") if literals or isinstance(o, Part)})


def _indivisible(context: Context) -> Iterator[Finding]:
    """Literal or default batch sizes that the ranks of the usual command cannot share."""
    run = context.facts.after
    devices = cuda_visible_devices.devices(context)
    ranks = len(devices.split(",")) if devices else 2
    for loader in context.facts.feeding:
        for obj in run.held(loader, "batch_size").objs:
            size = obj.value if isinstance(obj, Lit) else _default(context, obj.name) if isinstance(obj, Part) else None
            if type(size) is int and size % ranks:
                yield context.manual(
                    CODE,
                    loader.node,
                    f"a batch of {size} cannot be divided among {'two' if ranks == 2 else ranks} ranks; the script says so when it starts",
                    "train with a batch size that the number of ranks divides",
                    level=Safety.REVIEW if size == 1 or ranks != 2 else Safety.NOTE,
                )


def _default(context: Context, name: str) -> object:
    """The literal default of a command-line option."""
    for tree in context.facts.trees.values():
        for node in tree.nodes():
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "add_argument"
                and any(isinstance(a, ast.Constant) and str(a.value).lstrip("-").replace("-", "_") == name for a in node.args)
            ):
                default = argument(node, None, "default")
                if isinstance(default, ast.Constant):
                    return default.value
    return None


def _divide(context: Context, node: ast.expr, why: str) -> Iterator[Change | Finding]:
    while isinstance(node, ast.Call) and ast.unparse(node.func) in ("float", "int") and node.args:
        node = node.args[0]
    if not context.facts.is_entry(node):
        yield context.manual(CODE, node, f"{why}, and every rank now has its share of it", f"{ast.unparse(node)} // dist.get_world_size()")
        return
    yield Change(CODE, why, context.tree.shown, node, (Replace(node, f"{context.names['per_rank']}({{0}})", (node,)),), needs=("per_rank",))
