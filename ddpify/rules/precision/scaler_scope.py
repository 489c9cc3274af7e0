"""Where the grad scaler is made, and by which name each function finds it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ddpify.edits import AddParameter, Edit, FreshName, InsertAfter, InsertBefore, SetArgument
from ddpify.facts.model import New
from ddpify.facts.tree import inside, is_main, walk
from ddpify.records import dataclass, field
from ddpify.rules.context import Context

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(eq=False)
class ScalerScope:
    """A scaler's name, the edits that make it and hand it on, and the functions that know it (a module: all of its functions).

    `owner` is the class whose instances hold it, if one does.
    """

    name: str
    edits: list[Edit] = field(default_factory=list)
    known: set[ast.AST] = field(default_factory=set)
    owner: ast.ClassDef | None = None

    def at(self, context: Context, node: ast.AST) -> str:
        """The scaler at a place; empty where it is out of reach."""
        if self.owner is not None:
            return f"{_self(context, node)}.{self.name}" if _class(context, node) is self.owner and _self(context, node) else ""
        around = {_function(context, node), *context.tree.ancestors(node)}
        return self.name if around & self.known else ""


def find_scope(
    context: Context, optimizers: Iterable[New], uses: list[ast.AST], wished: list[ast.AST], loops: list[ast.AST], name: FreshName
) -> ScalerScope | None:
    """A home from which all of `uses` can be reached, and as many of `wished` as may be; None where there is none.

    `loops` are the outermost ones of the training, `name` is what the scaler is called, where it is a variable.
    """
    scale = context.options.loss_scale
    fixed = "" if scale in ("auto", "dynamic") else f"init_scale={float(scale)}, growth_interval=2**31 - 1, "
    code = f"torch.amp.GradScaler({context.quoted('cuda')}, {fixed}enabled=torch.cuda.is_available())"
    statements = _bound(context, list(optimizers))
    owners = {_class(context, n) for n in uses}
    owner = owners.pop() if len(owners) == 1 else None
    if owner is not None and all(_self(context, n) for n in uses):
        for statement in reversed(statements):
            if _class(context, statement) is owner and any(_stores_attribute(n) for n in walk(statement)):
                attribute, at = _free_attribute(owner), _outer(context, statement)
                return ScalerScope(attribute, [InsertAfter(at, f"{_self(context, at)}.{attribute} = {code}")], owner=owner)
    for home, edit in _homes(context, statements, uses, loops, f"{name} = {code}", name):
        out = ScalerScope(str(name), [edit], {home})
        if all(out.at(context, n) or _pass_on(context, out, n) for n in uses):
            for n in wished:
                if not out.at(context, n):
                    _pass_on(context, out, n)
            return out
    return None


def _homes(
    context: Context, statements: list[ast.stmt], uses: list[ast.AST], loops: list[ast.AST], code: str, name: FreshName
) -> Iterator[tuple[ast.AST, Edit]]:
    """The functions or modules in which a scaler may be made, and how: behind the optimizer, before the training, or before all uses."""
    for home, statement in _behind_optimizers(context, statements, uses):
        yield home, InsertAfter(statement, code, (name,))
    for home, statement in _before_loops(context, loops):
        yield home, InsertBefore(statement, code, binds=(name,))
    roots = {context.facts.tree_of(n).root for n in uses}
    if len(roots) == 1:
        (root,) = roots
        first = next(s for s in root.body if not inside(s).isdisjoint(uses))
        yield root, InsertBefore(first, f"{code}\n\n", binds=(name,))


def _behind_optimizers(context: Context, statements: list[ast.stmt], uses: list[ast.AST]) -> Iterator[tuple[ast.AST, ast.stmt]]:
    """The last statement of each function that binds an optimizer before the training begins."""
    tree = context.tree
    for home in dict.fromkeys(_function(context, s) for s in statements):
        begins = _beginnings(context, home, uses)
        here = [_outer(context, s) for s in statements if _function(context, s) is home]
        before = [s for s in here if all(tree.after(b, s) for b in begins)]
        if before:
            yield home, tree.in_order(before)[-1]


def _before_loops(context: Context, loops: list[ast.AST]) -> Iterator[tuple[ast.AST, ast.stmt]]:
    """The statement that the training begins with, where one function holds all of its loops."""
    tree = context.tree
    homes = {_function(context, n) if n in tree.parent else None for n in loops}
    home = homes.pop() if len(homes) == 1 else None
    if home is None:
        return
    first = tree.in_order([tree.path(n)[-1] for n in loops])[0]
    while isinstance(first, (ast.If, ast.With, ast.Try)) and (holding := [s for s in first.body if not inside(s).isdisjoint(loops)]):
        first = holding[0]
    yield home, first


def _beginnings(context: Context, home: ast.AST, uses: list[ast.AST]) -> list[ast.stmt]:
    """The statements of a function under which the training runs."""
    calls = [c for n in uses for c in context.facts.after.calls(n)]
    anchors = [a for c in calls for a in (*c.stack, c.node) if a in context.tree.parent and _function(context, a) is home]
    return [context.tree.statement(a) for a in anchors]


def _function(context: Context, node: ast.AST) -> ast.AST:
    """The function around a node, or its module."""
    return context.facts.tree_of(node).function(node)


def _stores_attribute(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)


def _pass_on(context: Context, home: ScalerScope, node: ast.AST, depth: int = 0) -> bool:
    """Hand the scaler to the function that a node stands in, through the calls that lead there; False where that cannot be."""
    function = context.tree.function(node)
    if function in home.known:
        return True
    if depth > 4 or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or not is_only_called(context, function):
        return False
    sites = calls(context, function)
    if not sites:
        return False
    known, edits = set(home.known), list(home.edits)
    home.known.add(function)  # a function that calls itself has it by then
    for call in sites:
        if call not in context.tree.parent or not (home.at(context, call) or _pass_on(context, home, call, depth + 1)):
            home.known, home.edits = known, edits
            return False
        home.edits.append(SetArgument(call, home.name, home.name))
    home.edits.append(AddParameter(function, home.name))
    return True


def is_only_called(context: Context, function: Function) -> bool:
    """Whether a function is only called, and takes arguments as they come."""
    tree, name = context.facts.tree_of(function), context.facts.tree_of(function).name
    if function.decorator_list or not isinstance(tree.parent[function], (ast.Module, ast.If)):
        return False
    if name != "__main__" and context.facts.project.is_shared(name):
        return False
    called = {call.func for t in context.facts.trees.values() for call in t.of(ast.Call)}
    named = [n for n in tree.nodes() if isinstance(n, ast.Name) and n.id == function.name]
    return all(n in called for n in (*named, *_reads(context, function)))


def _reads(context: Context, function: Function) -> list[ast.expr]:
    """Where a function is named, in whichever file."""
    run = context.facts.after
    names = [n for t in context.facts.trees.values() for n in t.nodes() if isinstance(n, (ast.Name, ast.Attribute))]
    loads = [n for n in names if isinstance(n.ctx, ast.Load) and function in run.value(n).functions()]
    return list(loads)


def calls(context: Context, function: Function) -> list[ast.Call]:
    """The calls of a function, those of its own file that were not reached included."""
    reads = set(_reads(context, function))
    own = {n for n in context.facts.tree_of(function).nodes() if isinstance(n, ast.Name) and n.id == function.name}
    return [call for t in context.facts.trees.values() for call in t.of(ast.Call) if call.func in reads | own]


def _bound(context: Context, optimizers: list[New]) -> list[ast.stmt]:
    """The statements of the entry that bind an optimizer: where it is made, where a call returns it, where an object takes it."""
    tree, out = context.tree, list[ast.stmt]()
    for optimizer in optimizers:
        creations = [tree.statement(n) for n in (optimizer.node, *reversed(optimizer.stack)) if n in tree.parent]
        out += [s for s in creations if isinstance(s, (ast.Assign, ast.AnnAssign))]
        stored = [s.node for s in context.facts.after.trace.stores if optimizer in s.value.objs and s.node in tree.parent]
        out += [tree.statement(n) for n in stored]
    return list(dict.fromkeys(out))


def _outer(context: Context, statement: ast.stmt) -> ast.stmt:
    """The statement that holds all ways to make an optimizer: the outermost `if` around one."""
    for up in context.tree.path(statement)[1:]:
        if not isinstance(up, ast.If) or is_main(up):
            break
        statement = up
    return statement


def _class(context: Context, node: ast.AST) -> ast.ClassDef | None:
    """The class whose method a node stands in."""
    function = context.tree.function(node)
    parent = context.tree.parent.get(function)
    return parent if isinstance(parent, ast.ClassDef) else None


def _self(context: Context, node: ast.AST) -> str:
    """What a method calls its instance."""
    function = context.tree.function(node)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or function.decorator_list or not function.args.args:
        return ""
    return function.args.args[0].arg


def _free_attribute(owner: ast.ClassDef) -> str:
    used = {n.attr for n in walk(owner) if isinstance(n, ast.Attribute)}
    return next(n for n in ("scaler", "grad_scaler", "loss_scaler", "amp_scaler") if n not in used)
