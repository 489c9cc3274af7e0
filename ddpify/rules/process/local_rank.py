"""Accept the local rank that torch.distributed.launch passes.

What it does: gives the parser that reads the command line an argument for the local rank, in both spellings: torch 2 passes
    `--local-rank`, torch 1 passed `--local_rank`. An argument that is there gets the spelling that it lacks.
Why: the launcher puts the argument before all others, and a parser that does not know it ends the script.
Safety: safe; the rank is read from the environment, which the launcher sets, too. Where arguments are not parsed by argparse, or in a
    module that is left as it is, the run command says `--use-env`: then nothing is passed.
References: https://docs.pytorch.org/docs/stable/distributed.html#launch-utility
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from ddpify.edits import AddFirst, Edit, InsertAfter
from ddpify.facts.tree import Tree, dotted, is_none, is_number, last_name, same, structure
from ddpify.options import Options
from ddpify.project import Project
from ddpify.rules.base import Change, Example, Finding, Proof
from ddpify.rules.context import Context

CODE = "DDP105"
TITLE = "accept the launcher's --local-rank"
_ASKED = Options(launcher="launch")
EXAMPLES: tuple[Example, ...] = (
    Example(
        "a parser of something else",
        'shapes = argparse.ArgumentParser()\nshapes.parse_args(["--x"])\n',
        frame="start",
        options=_ASKED,
    ),
    Example(
        "both spellings",
        'extra = argparse.ArgumentParser()\nextra.add_argument("--local-rank", "--local_rank", type=int)\nextra.parse_args()\n',
        frame="start",
        options=_ASKED,
    ),
    Example("another launcher", "extra = argparse.ArgumentParser()\nextra.parse_args()\n", frame="start"),
    Example(
        "a parser",
        'extra = argparse.ArgumentParser()\nextra.add_argument("--gain", type=float)\nextra.parse_args()\n',
        'extra = argparse.ArgumentParser()\nextra.add_argument("--gain", type=float)\n'
        'extra.add_argument("--local-rank", "--local_rank", type=int, help="set by torch.distributed.launch")\nextra.parse_args()\n',
        frame="start",
        options=_ASKED,
    ),
    Example(
        "an argument in one spelling",
        'extra = argparse.ArgumentParser()\nextra.add_argument("--local_rank", type=int)\nextra.parse_args()\n',
        'extra = argparse.ArgumentParser()\nextra.add_argument("--local-rank", "--local_rank", type=int)\nextra.parse_args()\n',
        frame="start",
        options=_ASKED,
    ),
)  # fmt: skip

_SPELLINGS = ("--local-rank", "--local_rank")
_ARGUMENTS = ast.parse("sys.argv[1:]", mode="eval").body
_OTHERS = ("click", "absl", "gflags", "hydra", "fire", "typer", "tyro", "docopt", "plac", "jsonargparse", "simple_parsing", "tap")


def changes(context: Context) -> Iterator[Change | Finding | Proof]:
    """Each parser that reads the command line."""
    if context.options.starts == "launch":
        for tree in context.tree.trees:
            yield from accepting(tree, context.facts.after.trace.visited)


def accepting(tree: Tree, visited: Collection[ast.AST] | None = None) -> Iterator[Change]:
    """The changes that make the parsers of one file accept the local rank; of those that are read in `visited` statements."""
    declared = known(tree)
    for statement in _parsers(tree, visited):
        parser = _target(statement)
        if declared:
            call = declared[0]
            lacking = [s for s in _SPELLINGS if s not in _strings(call)]
            edits: list[Edit] = [AddFirst(call, f'"{s}"') for s in lacking]
            node: ast.AST = call
        elif parser is None:
            continue
        else:
            last = _last_argument(tree, statement, parser)
            line = f'{ast.unparse(parser)}.add_argument("--local-rank", "--local_rank", type=int, help="set by torch.distributed.launch")\n'
            edits, node = [InsertAfter(last, line)], statement
        if edits:
            yield Change(CODE, "torch.distributed.launch passes the local rank as an argument", tree.shown, node, tuple(edits))


def needs_environment(project: Project, edited: Collection[str], visited: Collection[ast.AST] | None = None) -> bool:
    """Whether the launcher must not pass the argument: something else than a parser that is edited reads the command line."""
    for file in (project.entry, *project.files.values()):
        tree = file.standing
        imported = {a.name.partition(".")[0] for n in tree.of(ast.Import) for a in n.names}
        imported |= {(n.module or "").partition(".")[0] for n in tree.of(ast.ImportFrom) if not n.level}
        by_hand = any(_runs(tree, n, visited) for n in tree.of(ast.Subscript) if _reads_arguments(n))
        if imported & set(_OTHERS) or by_hand:
            return True
        reads = [n for n in tree.of(ast.Call) if _parses(n) and _runs(tree, n, visited)]
        mine = file is project.entry or file.name in edited
        if reads and not any(len(_strings(n)) > 1 for n in known(tree)[:1]) and not (mine and any(_parsers(tree, visited))):
            return True
    return False


def _reads_arguments(node: ast.AST) -> bool:
    """Whether sys.argv is taken apart by hand."""
    return isinstance(node, ast.Subscript) and dotted(node.value) == "sys.argv" and not is_number(node.slice, 0)


def _parses(node: ast.AST) -> bool:
    """Whether a node is a call that parses the command line."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "args")]
    named = node.func.attr in ("parse_args", "parse_known_args", "parse_intermixed_args")
    return named and all(is_none(g) or same(g, _ARGUMENTS) for g in given)


def _runs(tree: Tree, node: ast.AST, visited: Collection[ast.AST] | None) -> bool:
    """Whether a node stands in a simple statement that runs, as far as it is known which do."""
    statement = tree.statement(node)
    return not hasattr(statement, "body") and (visited is None or statement in visited)


def known(tree: Tree) -> list[ast.Call]:
    """The calls that declare a local rank."""
    adding = (n for n in tree.of(ast.Call) if isinstance(n.func, ast.Attribute) and n.func.attr == "add_argument")
    return [n for n in adding if any(s in _SPELLINGS for s in _strings(n))]


def _strings(call: ast.Call) -> list[str]:
    return [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]


def _parsers(tree: Tree, visited: Collection[ast.AST] | None) -> Iterator[ast.stmt]:
    """The statements that make a parser which then reads the command line."""
    assigned: list[ast.Assign | ast.AnnAssign] = tree.of(ast.Assign, ast.AnnAssign)
    parsers = list(filter(_creates_parser, assigned))
    read = {structure(n.func.value) for n in tree.of(ast.Call) if _parses(n) and _runs(tree, n, visited)}  # type: ignore[attr-defined]
    named = [s for s in parsers if (target := _target(s)) is not None and structure(target) in read]
    # a parser that is read under another name: where there is one in all, that
    yield from named or (parsers if len(parsers) == 1 and read else [])


def _creates_parser(statement: ast.Assign | ast.AnnAssign) -> bool:
    kind = last_name(statement.value.func) if isinstance(statement.value, ast.Call) else ""
    return _target(statement) is not None and kind.endswith(("ArgumentParser", "ArgParser"))


def _target(statement: ast.stmt) -> ast.expr | None:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return targets[0] if len(targets) == 1 and isinstance(targets[0], (ast.Name, ast.Attribute)) else None


def _adds(node: ast.expr, parser: ast.expr) -> bool:
    """Whether an expression is `parser.add_argument(...)`."""
    func = node.func if isinstance(node, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr == "add_argument" and same(func.value, parser)


def _last_argument(tree: Tree, creation: ast.stmt, parser: ast.expr) -> ast.stmt:
    """The statement after which an argument is added: the parser's last in the block that makes it."""
    block = tree.block(creation)
    adds = [s for s in block[block.index(creation) :] if isinstance(s, ast.Expr) and _adds(s.value, parser)]
    return adds[-1] if adds else creation
