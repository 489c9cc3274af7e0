"""Remove a mixed precision that is not the one asked for.

What it does: before anything else, with `--amp none`, `torch` or `torch-bf16`, all of apex's amp goes: `amp.initialize`, the blocks of
    `amp.scale_loss`, `amp.master_params`, its state in checkpoints, its imports. With a level of apex, torch's goes: autocasts, and what
    grad scalers do. What is asked for is then given to the plain script that is left.
Why: the two do not mix, and each wants other places in the training.
Safety: safe where every use was understood; numbers differ by what was asked for. A flag of the script's own that decided about mixed
    precision no longer does, and a NOTE says so. MANUAL for what has no equivalent, such as bfloat16 in apex.
References: https://nvidia.github.io/apex/amp.html, https://docs.pytorch.org/docs/stable/amp.html
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from ddpify.edits import Drop, DropArgument, DropEntry, Replace, Unwrap
from ddpify.facts import library, stepped
from ddpify.facts.model import Method, New, Value
from ddpify.facts.tree import inside, is_main, own_nodes, same, structure, walk
from ddpify.options import Options
from ddpify.rules.base import Change, Example, Finding, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.precision import apex_replacements, existing, switch
from ddpify.rules.precision.apex_replacements import Out

CODE = "DDP416"
TITLE = "remove another mixed precision"
_APEX = (
    "from apex import amp\n"
    "import torch\n"
    "from torch.utils.data import DataLoader\n"
    "\n"
    "model = torch.nn.Linear(8, 1)\n"
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    'model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n'
    'for x, y in DataLoader(torch.load("data.pt"), batch_size=32):\n'
    "    loss = torch.nn.functional.mse_loss(model(x), y)\n"
    "    optimizer.zero_grad()\n"
    "    with amp.scale_loss(loss, optimizer) as scaled_loss:\n"
    "        scaled_loss.backward()\n"
    "    optimizer.step()\n"
)
EXAMPLES: tuple[Example, ...] = (
    Example("a script of apex, as long as nothing else is asked for", _APEX),
    Example(
        "a script without mixed precision",
        "loss = criterion(model(x), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
        options=Options(amp="none"),
    ),
    Example(
        "an autocast",
        'with torch.autocast("cuda"):\n'
        "    loss = criterion(model(x), y)\n"
        "optimizer.zero_grad()\n"
        "loss.backward()\n"
        "optimizer.step()\n",
        "loss = criterion(model(x), y)\n"
        "optimizer.zero_grad()\n"
        "with amp.scale_loss(loss, optimizer) as scaled_loss:\n"
        "    scaled_loss.backward()\n"
        "optimizer.step()\n",
        frame="step",
        options=Options(amp="apex-O1"),
    ),
)  # fmt: skip


def changes(context: Context) -> Iterator[Change | Finding]:
    """One change for all of it."""
    out = Out()
    asked = context.options
    if asked.amp in ("none", "torch", "torch-bf16"):
        _apex(context, out)
    elif asked.level:
        _torch(context, out)
    if out.to_do:
        for node, why, fix in out.to_do:
            yield context.manual(CODE, node, why, fix)
        return
    if not out.edits and not out.gone:
        return
    for statement in _topmost(context, out.gone):
        out.edits.append(Drop(statement))
    place = min(out.places, key=lambda n: getattr(n, "lineno", 0))
    for node, why in out.notes:
        yield context.manual(CODE, node, why, level=Safety.NOTE)
    for flag in sorted(out.flags):
        why = f"`{flag}` no longer switches mixed precision: it is as --amp says, always"
        yield context.manual(CODE, place, why, level=Safety.NOTE)
    yield Change(CODE, f"asked for by --amp {asked.amp}", context.tree.shown, place, tuple(out.edits), tuple(out.imports))


# ------------------------------------------------------------------------------------------------------------------- apex


def _apex(context: Context, out: Out) -> None:
    tree, run = context.tree, context.facts.before
    for node in tree.of(ast.Call):
        paths = run.value(node.func).paths()
        name = next((p.removeprefix("apex.amp.") for p in paths if p.startswith("apex.amp.")), "")
        if not name:
            continue
        out.places.append(node)
        out.handled |= set(walk(node.func))
        if name == "initialize":
            _initialized(context, out, node)
        elif name == "scale_loss":
            _scaled(context, out, node)
        elif name == "master_params":
            out.edits.append(Replace(node, _parameters(context, node).replace("{", "{{").replace("}", "}}")))
        elif name == "state_dict":
            _saved(context, out, node)
        elif name == "load_state_dict":
            _dropped(context, out, node)
        else:
            out.to_do.append((node, f"amp.{name} has no equivalent in torch's mixed precision", "cast inside the function: x = x.float()"))
    apex_replacements.parts(context, out)
    if out.places:
        _collapsed(context, out)
        _imports(context, out, "apex")


def _initialized(context: Context, out: Out, node: ast.Call) -> None:
    statement = context.tree.statement(node)
    given = [a for a in (argument(node, 0, "models"), argument(node, 1, "optimizers")) if a is not None]
    if any(k.arg == "cast_model_outputs" for k in node.keywords):
        out.to_do.append((node, "torch does not cast the outputs of a model", "cast them where they are used"))
    half = context.options.amp in ("torch", "torch-bf16")
    if half and _is_constant(argument(node, 3, "opt_level"), "O3"):
        out.to_do.append((node, "torch has no equivalent of O3, which trains float16 weights", 'choose another level here: opt_level="O1"'))
    scale = argument(node, 8, "loss_scale")
    if context.options.amp == "torch" and scale is not None and not _is_constant(scale, "dynamic") and context.options.loss_scale == "auto":
        why = f"losses were scaled by {ast.unparse(scale)}; torch's scaler finds the scale by itself, unless --loss-scale says it"
        out.notes.append((node, why))
    if isinstance(statement, ast.Expr) and statement.value is node:
        out.gone.add(statement)
    elif isinstance(statement, ast.Assign) and statement.value is node and len(statement.targets) == 1:
        target = statement.targets[0]
        if _returned_in_place(target, given):
            out.gone.add(statement)
        else:
            text = "{0}" if len(given) == 1 else "{0}, {1}"
            out.edits.append(Replace(node, text, tuple(given)))
    else:
        out.to_do.append(
            (
                node,
                "the analysis could not tell how the result of amp.initialize is used, so that it cannot be removed",
                "remove it by hand",
            )
        )
    _flags(context, out, node)


def _is_constant(node: ast.expr | None, value: object) -> bool:
    """Whether an expression is this value, written out."""
    return isinstance(node, ast.Constant) and type(node.value) is type(value) and node.value == value


def _returned_in_place(target: ast.expr, given: list[ast.expr]) -> bool:
    """Whether what amp.initialize gives back is put where what it is given came from."""
    return _same_but_for_brackets(target, given[0] if len(given) == 1 else ast.Tuple(given, ast.Load()))


def _same_but_for_brackets(one: ast.expr, other: ast.expr) -> bool:
    """Whether two expressions say the same, lists and tuples taken for one another."""
    if isinstance(one, (ast.Tuple, ast.List)) and isinstance(other, (ast.Tuple, ast.List)):
        return len(one.elts) == len(other.elts) and all(map(_same_but_for_brackets, one.elts, other.elts))
    return same(one, other)


def _scaled(context: Context, out: Out, node: ast.Call) -> None:
    block = context.tree.statement(node)
    loss = argument(node, 0, "loss")
    item = block.items[0] if isinstance(block, ast.With) and len(block.items) == 1 else None
    if item is None or item.context_expr is not node or not isinstance(item.optional_vars, ast.Name) or loss is None:
        out.to_do.append((node, "the analysis could not tell what this block of amp.scale_loss does", "call backward on the loss itself"))
        return
    assert isinstance(block, ast.With)
    text = context.source(loss).replace("{", "{{").replace("}", "}}")
    for inner in (n for s in block.body for n in walk(s)):
        if isinstance(inner, ast.Name) and inner.id == item.optional_vars.id:
            out.edits.append(Replace(inner, text))
    out.edits.append(Unwrap(block))
    _flags(context, out, node)


def _parameters(context: Context, node: ast.Call) -> str:
    """The parameters of an optimizer: by its model, where that has a name here."""
    run, given = context.facts.before, argument(node, 0, "optimizer")
    assert given is not None
    owners = {p for o in run.value(given).instances() if run.is_optimizer(o) for p in stepped.owners(context.facts, o)}
    named = [n for n in own_nodes(context.tree.function(node)) if isinstance(n, (ast.Name, ast.Attribute, ast.arg))]
    mine = [n.arg if isinstance(n, ast.arg) else ast.unparse(n) for n in named if owners and run.unwrap(run.value(n)) == owners]
    if mine:
        return f"{min(mine, key=len)}.parameters()"
    return f'[p for group in {context.operand(given)}.param_groups for p in group["params"]]'


def _saved(context: Context, out: Out, node: ast.expr) -> None:
    """A state in a checkpoint."""
    tree = context.tree
    state: ast.AST = node
    choice = tree.parent[state]
    if isinstance(choice, ast.IfExp):  # `... if args.fp16 else None`
        state = choice
        _flag(out, choice.test)
    parent = tree.parent[state]
    if isinstance(parent, ast.Dict) and state in parent.values:
        out.edits.append(DropEntry(parent, parent.values.index(state)))
    elif isinstance(parent, ast.keyword) and parent.arg and isinstance(call := tree.parent[parent], ast.Call):
        out.edits.append(DropArgument(call, parent.arg))
    elif isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Subscript):
        out.gone.add(parent)
    else:
        out.to_do.append((node, "the analysis could not tell where this state is kept", "leave it out of the checkpoint"))


def _dropped(context: Context, out: Out, node: ast.Call) -> None:
    statement = context.tree.statement(node)
    if isinstance(statement, ast.Expr) and statement.value is node:
        out.gone.add(statement)
    else:
        out.to_do.append(
            (node, "the analysis could not tell how the result of this call is used, so that it cannot be removed", "remove it by hand")
        )


def _collapsed(context: Context, out: Out) -> None:
    """`if args.fp16:` with and without amp, both sides of which are now the same."""
    tree = context.tree
    for node in tree.of(ast.If):
        branch = {n for s in node.body for n in walk(s)} if node.orelse else set()
        if not any(e.node in branch for e in out.edits):
            continue
        copies = [_WithoutAmp(out, statement) for statement in node.body]
        ours = [s for plain in copies for s in _statements(plain.visit(plain.copy))]
        if list(map(structure, ours)) == list(map(structure, node.orelse)):
            out.edits.append(Unwrap(node))
            _flag(out, node.test)


def _statements(found: object) -> list[ast.stmt]:
    return found if isinstance(found, list) else [found] if isinstance(found, ast.stmt) else []


class _WithoutAmp(ast.NodeTransformer):
    """A copy of a statement without amp, as it is going to read."""

    def __init__(self, out: Out, statement: ast.stmt) -> None:
        self.copy = copy.deepcopy(statement)
        self.originals: dict[ast.AST, ast.AST] = dict(zip(walk(self.copy), walk(statement), strict=True))
        self.texts: dict[ast.AST | None, str] = {e.node: e.template for e in out.edits if isinstance(e, Replace) and not e.holes}
        self.blocks = {e.node for e in out.edits if isinstance(e, Unwrap)}

    def visit(self, node: ast.AST) -> object:
        original = self.originals.get(node)
        text = self.texts.get(original)
        if isinstance(node, ast.expr) and text is not None:
            return ast.parse(text.replace("{{", "{").replace("}}", "}"), mode="eval").body
        if isinstance(node, ast.With) and original in self.blocks:
            return [s for inner in node.body for s in _statements(self.visit(inner))]
        return super().visit(node)


def _imports(context: Context, out: Out, *homes: str) -> None:
    """Imports of some modules of which nothing is left."""
    tree, run = context.tree, context.facts.before
    removed: list[ast.AST] = [e.node for e in out.edits if isinstance(e, (Replace, DropArgument))]
    gone = out.handled.union(*map(walk, (*removed, *out.gone)))
    statements: list[ast.Import | ast.ImportFrom] = [*tree.of(ast.Import), *tree.of(ast.ImportFrom)]
    for statement in statements:
        bound = {(a.asname or a.name).partition(".")[0] for a in statement.names}
        reads = [n for n in tree.of(ast.Name) if isinstance(n.ctx, ast.Load) and n.id in bound]
        if reads and _is_of(statement, homes) and all(n in gone or not _is_path(run.value(n), homes) for n in reads):
            out.gone.add(statement)


def _is_path(value: Value, homes: tuple[str, ...]) -> bool:
    return any(path.startswith(homes) for path in value.paths())


def _is_of(statement: ast.Import | ast.ImportFrom, homes: tuple[str, ...]) -> bool:
    """Whether all that is imported comes from some modules."""
    home = statement.module or "" if isinstance(statement, ast.ImportFrom) else ""
    names = [f"{home}.{a.name}" if home else a.name for a in statement.names]
    return not getattr(statement, "level", 0) and all(any(f"{name}.".startswith(f"{h}.") for h in homes) for name in names)


# ------------------------------------------------------------------------------------------------------------------ torch


def _torch(context: Context, out: Out) -> None:
    casts, scalers = existing.autocasts(context), existing.scalers(context)
    for node in casts:
        if _is_removable(context, out, node, argument(node, 2, "enabled")):
            _uncast(context, out, node)
    for node in scalers:
        if _is_removable(context, out, node, argument(node, 5, "enabled")):
            _without_scaler(context, out, node)
    for call in context.tree.of(ast.Call) if scalers else ():
        names = {o.name for o in _methods(context, call)}
        if names:
            _method(context, out, call, names.pop())
            out.handled |= inside(call.func) - (inside(call.func.value) if isinstance(call.func, ast.Attribute) else frozenset())
    if out.places:
        out.handled |= {n for node in (*casts, *scalers) for n in walk(node.func)}
        _imports(context, out, "torch.amp", "torch.cuda.amp", "torch.cpu.amp", "torch.autocast")


def _is_removable(context: Context, out: Out, node: ast.Call, enabled: ast.expr | None) -> bool:
    """Whether what makes an autocast or a scaler can be taken out; notes why not, or the flag that `enabled` was."""
    out.places.append(node)
    if not context.facts.in_main(node):
        out.to_do.append((node, "mixed precision in another module is left as it is", "take it out there"))
        return False
    dtype = argument(node, 1, "dtype")
    if dtype is not None and "torch.bfloat16" in context.facts.before.value(dtype).paths():
        out.to_do.append((node, "apex has no bfloat16", "keep torch's: --amp torch-bf16"))
        return False
    if enabled is not None and not isinstance(enabled, ast.Constant) and not switch.asks_for_gpu(context, enabled):
        _flag(out, enabled)
    return True


def _uncast(context: Context, out: Out, node: ast.Call) -> None:
    """Take the block of an autocast apart; one that is off turns apex's casts off."""
    block = context.tree.statement(node)
    if not isinstance(block, ast.With) or [item.context_expr for item in block.items] != [node]:
        out.to_do.append((node, "this autocast is not a `with` statement, so that it cannot be removed", "remove it by hand"))
    elif context.options.level == "O1" and _is_constant(argument(node, 2, "enabled"), False):
        out.edits.append(Replace(node, "amp.disable_casts()"))
    else:
        out.edits.append(Unwrap(block))


def _without_scaler(context: Context, out: Out, node: ast.Call) -> None:
    """Take the statement out that makes a grad scaler; None is passed on in its place where it is passed on."""
    statement = context.tree.statement(node)
    if not isinstance(statement, ast.Assign) or statement.value is not node:
        out.to_do.append(
            (node, "the analysis could not tell how this grad scaler is used, so that it cannot be removed", "remove it by hand")
        )
    elif _passed_on(context, node):
        out.edits.append(Replace(node, "None"))
    else:
        out.gone.add(statement)


def _methods(context: Context, node: ast.Call) -> list[Method]:
    """The methods of grad scalers that a call may run."""
    objs = context.facts.before.value(node.func).objs
    return [o for o in objs if isinstance(o, Method) and isinstance(o.of, New) and o.of.path in library.SCALERS]


def _method(context: Context, out: Out, node: ast.Call, name: str) -> None:
    """`scaler.scale(loss)` is the loss, `scaler.step(optimizer)` a step; the rest goes."""
    if name == "scale" and node.args:
        out.edits.append(Replace(node, "{0}", (node.args[0],)))
    elif name == "step" and node.args:
        out.edits.append(Replace(node, "{0}.step()", (node.args[0],)))
    elif name in ("unscale_", "update", "load_state_dict"):
        _dropped(context, out, node)
    elif name == "state_dict":
        _saved(context, out, node)
    else:
        out.to_do.append((node, f"apex has no equivalent of a grad scaler's `{name}`", "remove it by hand"))


def _passed_on(context: Context, creation: ast.Call) -> bool:
    """Whether a grad scaler is read other than for its methods."""
    run = context.facts.before
    reads = [n for n in context.tree.nodes() if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load)]
    mine = [n for n in reads if any(isinstance(o, New) and o.node is creation for o in run.value(n).objs)]
    return any(not (isinstance(up := context.tree.parent[n], ast.Attribute) and up.value is n) for n in mine)


# ---------------------------------------------------------------------------------------------------------------- what else


def _flags(context: Context, out: Out, node: ast.AST) -> None:
    """The settings under which a call stood, such as `if args.fp16:`."""
    for up in context.tree.ancestors(node):
        if isinstance(up, ast.If) and not is_main(up) and isinstance(up.test, (ast.Attribute, ast.Name)):
            _flag(out, up.test)


def _flag(out: Out, test: ast.expr) -> None:
    out.flags.add(ast.unparse(test))


def _topmost(context: Context, gone: set[ast.stmt]) -> list[ast.stmt]:
    """The statements that go, with the branches and attempts that held nothing else."""
    tree = context.tree
    out = set(gone)
    while True:
        more = set()
        for statement in out:
            parent = tree.parent.get(statement)
            if parent in out or not isinstance(parent, (ast.If, ast.Try)) or (isinstance(parent, ast.If) and is_main(parent)):
                continue
            rest = [*parent.body, *parent.orelse] if isinstance(parent, ast.If) else [*parent.body, *parent.orelse, *parent.finalbody]
            if all(s in out for s in rest):
                more.add(parent)
        if not more:
            break
        out |= more
    inside = [s for s in out if not any(up in out for up in tree.ancestors(s))]
    return sorted(inside, key=lambda s: s.lineno)
