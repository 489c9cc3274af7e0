"""Let one rank of each node download, the others wait.

What it does: a statement that makes a data set with `download=True` goes under `with first_on_node():`.
Why: all ranks would write the same files at once, and read them half-written.
Safety: safe; the barrier is passed once by every rank.
References: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.barrier
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpify.edits import Edit, Under
from ddpify.facts.model import Class, Func
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context, argument

CODE = "DDP302"
TITLE = "download once per node"
EXAMPLES: tuple[Example, ...] = (
    Example(
        "nothing to download",
        'digits = datasets.MNIST("data", train=True)\n',
        frame="start",
    ),
    Example(
        "a download that is switched off",
        'digits = datasets.MNIST("data", train=True, download=False)\n',
        frame="start",
    ),
    Example(
        "a download in a function that is not called",
        "def prepare():\n"
        '    return datasets.MNIST("data", download=True)\n',
        frame="start",
    ),
    Example(
        "a download",
        'digits = datasets.MNIST("data", train=True, download=True)\n',
        "with first_on_node():\n"
        '    digits = datasets.MNIST("data", train=True, download=True)\n',
        frame="start",
    ),
)  # fmt: skip


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Guard downloads in the entry, report them elsewhere."""
    header = f"with {context.names['first_on_node']}()"
    done: set[ast.stmt] = set()
    extracted = {
        n
        for loader in context.facts.loaders
        if isinstance(loader.node, ast.Call)
        for n in ast.walk(argument(loader.node, 0, "dataset") or loader.node)
        if n is not loader.node
    }
    for tree in context.facts.trees.values():
        for node in tree.of(ast.Call):
            if not _downloads(node) or node in extracted or tree.statement(node) not in context.facts.after.trace.visited:
                continue
            statement = tree.statement(node)
            own = [o for o in context.facts.after.value(node.func).objs if isinstance(o, (Class, Func))]
            if own and not all(_hands_on(context, o) for o in own):
                continue  # the project's own: the call inside it is the one to guard
            if any(_guarded(up) for up in tree.ancestors(node)) or any(
                _guarded(up)
                for c in context.facts.after.calls(node)
                for n in c.stack
                if context.facts.is_edited(n)
                for up in context.tree.ancestors(n)
            ):
                continue
            if tree.name != "__main__":
                callers = _callers(context, node)
                for caller in callers:
                    if caller not in done:
                        done.add(caller)
                        yield Change(
                            CODE,
                            "one rank of each node downloads, the others wait for it",
                            context.tree.shown,
                            caller,
                            (Under(caller, header),),
                            needs=("first_on_node",),
                        )
                if callers:
                    continue
                if tree not in context.tree.trees:
                    fix = "if dist.get_rank() != 0: dist.barrier()   # before, and on rank 0 the barrier after it"
                    yield context.manual(CODE, node, "every rank would download these files at once", fix)
                    continue
            if statement not in done:
                done.add(statement)
                edits: tuple[Edit, ...] = (Under(statement, header),)
                if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr)):
                    yield context.manual(
                        CODE,
                        node,
                        "every rank would download these files at once",
                        f"move it into a statement of its own under `{header}:`",
                    )
                    continue
                yield Change(
                    CODE, "one rank of each node downloads, the others wait for it", tree.shown, statement, edits, needs=("first_on_node",)
                )


def _downloads(node: ast.Call) -> bool:
    value = argument(node, None, "download")
    return value is not None and not (isinstance(value, ast.Constant) and not value.value)


def _hands_on(context: Context, own: Class | Func) -> bool:
    """Whether a class of the project is a data set of a library, and hands `download` on by its place, so that none stands in it."""
    if not isinstance(own, Class) or any(_downloads(n) for n in ast.walk(own.node) if isinstance(n, ast.Call)):
        return False
    return any(".datasets." in base for base in context.facts.after.interpreter.library_bases(own))


def downloads(node: ast.expr) -> bool:
    """Whether evaluating an expression may download."""
    return any(isinstance(n, ast.Call) and _downloads(n) for n in ast.walk(node))


def _callers(context: Context, node: ast.AST) -> list[ast.stmt]:
    """The statements of the entry that lead to a download in another module and do nothing that all ranks must do together."""
    statements: dict[ast.stmt, None] = {}
    for call in context.facts.after.calls(node):
        calls = [n for n in call.stack if context.facts.is_edited(n)]
        if not calls or calls[-1] in context.training or _wraps(context, calls[-1]):
            return []
        statements[context.tree.statement(calls[-1])] = None
    plain = all(isinstance(s, (ast.Assign, ast.Expr, ast.AnnAssign)) for s in statements)
    guarded = any(_guarded(up) for s in statements for up in context.tree.ancestors(s))
    return list(statements) if plain and not guarded else []


def _wraps(context: Context, node: ast.AST) -> bool:
    """Whether a model is wrapped in what a call runs: that is a collective, which all ranks must reach."""
    functions = {context.facts.tree_of(s).function(s) for s in context.facts.wraps}
    for call in context.facts.after.trace.calls:
        if call.node is node or node in call.stack:
            for obj in call.func.objs:
                if isinstance(obj, Func) and obj.node in functions:
                    return True
                if isinstance(obj, Class) and functions & set(obj.node.body):
                    return True
    return False


def _guarded(up: ast.AST) -> bool:
    return isinstance(up, ast.With) and any(
        isinstance(i.context_expr, ast.Call) and isinstance(i.context_expr.func, ast.Name) and "first" in i.context_expr.func.id
        for i in up.items
    )
