"""What the rows of a tensor are once some of their entries are written: still each sample's own, or not."""

from __future__ import annotations

import ast

from ddpify.facts import prefixes, tensor_entries, tensors
from ddpify.facts.aliases import Holder
from ddpify.facts.interpret import views
from ddpify.facts.interpret.state import Frame, Interpreter
from ddpify.facts.model import NOTHING, Value
from ddpify.facts.operands import argument
from ddpify.facts.origins import Origin, without
from ddpify.facts.tree import same
from ddpify.placement.shape import COUPLED, PLACES, ROWS, Use
from ddpify.placement.transfer import together


def write(run: Interpreter, target: ast.Subscript, value: Value) -> bool:
    """Carry out `rows[index] = value`, where the rows are not each sample's own from here on; whether that is so.

    They are where all samples are written to, or those that a mask chooses, each with a constant or with what is its own.
    """
    parts = list[ast.Subscript]()
    node: ast.expr = target
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "data"):
        parts += [node] if isinstance(node, ast.Subscript) else []
        node = node.value
    rows = run.expression(node) if isinstance(node, (ast.Name, ast.Attribute)) else NOTHING
    if rows.scale not in ROWS or rows.objs or rows.shape is None or rows.shape.several or _may_be_list(rows, parts[-1]):
        return False
    taken = rows
    for part in reversed(parts):
        taken = tensor_entries.entries(run, taken, run.trace.values.get(part.slice, NOTHING), part)
    given = argument(run, value)
    found = together(Use((), {}), (argument(run, taken), given)) if taken.scale in ROWS and given.literal != PLACES else COUPLED
    needs = frozenset(o for o in taken.origins if o.kind == "needs")
    if found.scale in ROWS and not value.of_kind("coupled") and not tensors.uneven([rows, value]):
        in_step = prefixes.written_in_step(run, target, bool(taken.of_kind(prefixes.FIRST)))
        kept = without(rows.origins, prefixes.BLANK, *([] if in_step else [prefixes.ZEROS]))
        hold(run, node, Value(rows.objs, kept | needs, rows.scale, rows.shape._replace(falling="")))
        return False
    coupled = {Origin(mark, target) for mark in found.marks} if taken.scale in ROWS else set()
    hold(run, node, Value(rows.objs, rows.origins | value.origins | coupled, "other", rows.shape))
    return True


def _may_be_list(rows: Value, part: ast.Subscript) -> bool:
    """Whether `x[0] = ...` may replace one of several tensors."""
    return rows.shape is not None and rows.shape.several is None and not isinstance(part.slice, (ast.Tuple, ast.Slice, ast.Compare))


def hold(run: Interpreter, node: ast.expr, value: Value, alone: bool = False) -> None:
    """Let a name or an attribute hold what its tensor is, in which entries have changed, from here on; `alone`: and nothing of before."""
    if isinstance(node, ast.Name):
        run.change(node.id, value)
    elif isinstance(node, ast.Attribute):
        owners = run.expression(node.value).objs
        for obj in owners:
            run.set_attribute(obj, node.attr, value, alone and len(owners) == 1)
        run.change_others([(obj, node.attr) for obj in owners], value)


def name_again(run: Interpreter, target: ast.expr, node: ast.expr) -> None:
    """`self.centers = centers`, `row = centers[0]`: another name of a tensor or of a part of it; of a tuple, each entry's."""
    if isinstance(target, (ast.Tuple, ast.List)):
        given = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node] * len(target.elts)
        for part, of in zip(target.elts, given, strict=False):
            (name_again if of is not node else name_part)(run, part, of)
        return
    if isinstance(target, ast.Name) and run.aliases.together:
        _forget(run, run.holder_of(target.id))
    value = run.trace.values.get(node, NOTHING)
    held = views.viewed(run, node)
    if held is not None and not value.objs and (value.shape is not None or held.part):
        _name(run, target, held)


def name_part(run: Interpreter, target: ast.expr, node: ast.expr) -> None:
    """`for row in centers:`, `a, b = x.chunk(2)`: names of the parts of a tensor."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            name_part(run, part, node)
        return
    if isinstance(target, ast.Name) and run.aliases.together:
        _forget(run, run.holder_of(target.id))
    held = views.viewed(run, node)
    if held is not None and run.trace.values.get(node, NOTHING).shape is not None:
        _name(run, target, held._replace(part=True))


def name_entries(run: Interpreter, target: ast.expr, over: ast.expr) -> None:
    """`for k, row in enumerate(centers):`: names of the entries of what a loop runs over."""
    paths = run.trace.values.get(over.func, NOTHING).paths() if isinstance(over, ast.Call) else frozenset()
    if isinstance(over, ast.Call) and isinstance(target, (ast.Tuple, ast.List)) and paths and paths <= {"enumerate", "zip"}:
        parts = target.elts[1:] if paths == {"enumerate"} else target.elts
        for part, of in zip(parts, over.args, strict=False):
            name_entries(run, part, of)
        return
    name_part(run, target, over)


def _name(run: Interpreter, target: ast.expr, held: views.Viewed) -> None:
    """Let a name or an attribute hold a tensor that another holds, or a part of it."""
    some = _holders(run, target)
    if isinstance(target, ast.Name) and not same(target, held.tensor):
        run.trace.views[target] = held.tensor
    part = held.part and not same(target, held.tensor)
    for aliases in run.all_aliases():
        aliases.share(some, _holders(run, held.tensor))
        aliases.parts |= dict.fromkeys(some, held.sure) if part else {}


def part_changed(run: Interpreter, node: ast.expr, value: Value) -> None:
    """Let what holds a tensor be made of what a view of it holds from here on, as of `x` where `x.view(-1)[:8]` is written to."""
    held = views.viewed(run, node)
    if held is None:
        return
    now = run.lookup(held.tensor.id) if isinstance(held.tensor, ast.Name) else run.expression(held.tensor)
    if not now.objs:
        hold(run, held.tensor, now.changed(value) if held.part else value)


def _holders(run: Interpreter, node: ast.expr) -> dict[Holder, ast.expr]:
    """What holds the tensor that a name or an attribute is, each with the expression that names it."""
    if isinstance(node, ast.Name):
        return {run.holder_of(node.id): node}
    if isinstance(node, ast.Attribute):
        return {(obj, node.attr): node for obj in run.trace.values.get(node.value, NOTHING).objs}
    return {}


def _forget(run: Interpreter, holder: Holder) -> None:
    """A name holds another tensor from here on."""
    if holder[0] is not run.frame and holder in run.aliases.together:
        run.memory.doubt()
    for aliases in run.all_aliases():
        aliases.forget(holder)


def handed(run: Interpreter, frame: Frame, name: str, given: ast.expr) -> None:
    """After a call: what holds a parameter's tensor holds that of what was given."""
    holders = _holders(run, given)
    for aliases in run.all_aliases():
        aliases.hand(frame, name, holders)
