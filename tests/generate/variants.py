"""Variants of whole scripts that train as the script itself does, whose conversions must do so, too: `python -m tests.generate.variants`.

Each is a libcst transformer, or a function that puts two together; a script in which it finds nothing to do has no such variant.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import libcst as cst

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests import one another by their file names

from generate.compose import Generated, compose
from generate.names import assigned, read
from generate.report import written
from generate.runner import Kind, examine

EXAMPLES = {
    "dataparallel_toplevel": ("--epochs", "1"),
    "distillation": ("--teacher-epochs", "1", "--epochs", "1", "--batch-size", "64"),
    "gan": ("--pictures", "128", "--epochs", "2"),
    "imagenet_style": ("--epochs", "1", "--width", "4", "--batch-size", "50"),
    "trainer_class": ("--samples", "200", "--epochs", "3"),
}
"""Those of examples/ that a process trains in seconds, with what they are given."""


def _parameters(tree: ast.AST) -> set[str]:
    return {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}


def _top(tree: ast.Module) -> dict[str, ast.stmt]:
    """The functions and classes of a module."""
    return {n.name: n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


class _Renamed(cst.CSTTransformer):
    """Other expressions in the place of names; attributes, keywords, methods and what is imported keep theirs."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = {old: cst.parse_expression(new) for old, new in names.items()}

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        return self.names.get(original_node.value, updated_node)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        return updated_node.with_changes(name=original_node.name)

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:
        return original_node

    def leave_ImportAlias(self, original_node: cst.ImportAlias, updated_node: cst.ImportAlias) -> cst.ImportAlias:
        return original_node


def renamed(text: str) -> str:
    """Other names for what functions and the script itself assign, without parameters, which calls may pass by keyword."""
    tree = ast.parse(text)
    classes = {n for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for s in c.body for n in assigned(s)}
    imported = {n for s in ast.walk(tree) if isinstance(s, (ast.Import, ast.ImportFrom)) for n in assigned(s)}
    found = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    defined = {s.name for s in ast.walk(tree) if isinstance(s, (ast.FunctionDef, ast.ClassDef))}
    chosen = sorted(found - _parameters(tree) - classes - imported - defined)
    return cst.parse_module(text).visit(_Renamed({name: f"{name}_{i}" for i, name in enumerate(chosen)})).code


def aliased(text: str) -> str:
    """Other names for what is imported."""
    tree = ast.parse(text)
    taken = {"*"} | _parameters(tree) | {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names: dict[str, str] = {}
    statements = [s for s in tree.body if isinstance(s, (ast.Import, ast.ImportFrom))]
    for alias in (a for s in statements for a in s.names if "." not in (a.asname or a.name) and getattr(s, "module", "") != "__future__"):
        name = alias.asname or alias.name
        if name not in taken and not any(other.name.startswith(f"{name}.") and not other.asname for s in statements for other in s.names):
            names[name] = alias.asname = f"{name}_other"
    module = cst.parse_module(text)
    lines = iter(ast.unparse(s) for s in statements)
    imports = (cst.Import, cst.ImportFrom)
    body = [
        cst.parse_statement(next(lines)) if isinstance(s, cst.SimpleStatementLine) and isinstance(s.body[0], imports) else s
        for s in module.body
    ]
    return module.with_changes(body=body).visit(_Renamed(names)).code if names else text


def extracted(text: str) -> str:
    """The right side of the assignment before a backward call becomes a function."""
    tree = ast.parse(text)
    known = {n for s in tree.body if isinstance(s, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)) for n in assigned(s)}
    for node in (n for n in ast.walk(tree) if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)):
        name = node.targets[0].id
        inner = (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.DictComp, ast.NamedExpr)
        if "loss" not in name or not isinstance(node.value, ast.Call) or any(isinstance(n, inner) for n in ast.walk(node.value)):
            continue
        needed = sorted(read(node.value) - known - set(dir(builtins)))
        function = f"def computed_apart({', '.join(needed)}):\n    return {ast.unparse(node.value)}\n"
        node.value = ast.parse(f"computed_apart({', '.join(needed)})", mode="eval").body
        first = next(i for i, s in enumerate(tree.body) if not isinstance(s, (ast.Import, ast.ImportFrom, ast.Expr)))
        tree.body[first:first] = ast.parse(function).body
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    return text


class _Inlined(ast.NodeTransformer):
    def __init__(self, function: ast.FunctionDef) -> None:
        self.function, self.done = function, False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        return None if node is self.function else self.generic_visit(node)

    def _put(self, node: ast.Assign | ast.Expr) -> ast.AST | list[ast.stmt]:
        call = node.value
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == self.function.name):
            return node
        parameters = [a.arg for a in self.function.args.args]
        given = dict(zip(parameters, call.args, strict=False)) | {k.arg: k.value for k in call.keywords}
        if set(given) != set(parameters):
            return node
        names = {n: f"{n}_inside" for n in {*parameters, *(n for s in self.function.body for n in _stored(s))}}
        inside = ast.parse(cst.parse_module("\n".join(map(ast.unparse, self.function.body)) + "\n").visit(_Renamed(names)).code).body
        end = inside.pop() if isinstance(inside[-1], ast.Return) else None
        self.done = True
        out: list[ast.stmt] = [ast.Assign([ast.Name(names[p], ast.Store())], value) for p, value in given.items()]
        out += inside
        if end is not None and end.value is not None:
            out.append(ast.Assign(node.targets, end.value) if isinstance(node, ast.Assign) else ast.Expr(end.value))
        return out

    visit_Assign = visit_Expr = _put


def _stored(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def inlined(text: str) -> str:
    """The body of a function stands where it is called, once."""
    for function in [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)]:
        returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)]
        uses = sum(isinstance(n, ast.Name) and n.id == function.name for n in ast.walk(ast.parse(text)))
        odd = (ast.Global, ast.Yield, ast.YieldFrom, ast.FunctionDef, ast.Lambda, ast.ClassDef)
        plain = not any(isinstance(n, odd) for s in function.body for n in ast.walk(s)) and not function.decorator_list
        if uses != 1 or not plain or not function.args.args or any(r is not function.body[-1] for r in returns) or function.args.defaults:
            continue
        tree = ast.parse(text)
        edit = _Inlined(next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function.name))
        tree = edit.visit(tree)
        if edit.done:
            return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    return text


def in_a_class(text: str) -> str:
    """The module's functions become static methods."""
    module, names = cst.parse_module(text), dict[str, str]()
    for s in module.body:
        if isinstance(s, cst.FunctionDef) and not s.decorators and s.name.value != "main":
            names[s.name.value] = f"Of_{s.name.value}.{s.name.value}"
    body: list[cst.BaseStatement | cst.SimpleStatementLine] = []
    for s in module.body:
        if isinstance(s, cst.FunctionDef) and s.name.value in names:
            changed = s.body.visit(_Renamed(names))
            made = cst.ensure_type(cst.parse_statement(f"class Of_{s.name.value}:\n    pass\n"), cst.ClassDef)
            method = s.with_changes(body=changed, decorators=[cst.Decorator(cst.Name("staticmethod"))], leading_lines=())
            body.append(made.with_changes(body=cst.IndentedBlock([method]), leading_lines=s.leading_lines))
        else:
            body.append(cst.ensure_type(s.visit(_Renamed(names)), cst.CSTNode))  # type: ignore[arg-type]
    return module.with_changes(body=body).code if names else text


def in_a_module(text: str) -> tuple[str, dict[str, str]]:
    """Functions and classes that need nothing of the script but its imports go into a module."""
    tree = ast.parse(text)
    imports = [s for s in tree.body if isinstance(s, (ast.Import, ast.ImportFrom))]
    imported, moved = {n for s in imports for n in assigned(s)}, _top(tree)
    while left := [n for n, s in moved.items() if n == "main" or _free(s) - imported - moved.keys()]:
        moved = {n: s for n, s in moved.items() if n not in left}
    if not moved or any(isinstance(s, ast.ImportFrom) and s.module == "__future__" for s in imports):
        return text, {}
    module = [*imports, *moved.values()]
    rest = [s for s in tree.body if s not in moved.values()]
    rest[rest.index(imports[-1]) + 1 : rest.index(imports[-1]) + 1] = ast.parse(f"from moved_parts import {', '.join(moved)}").body
    entry, apart = (ast.unparse(ast.Module(body, [])) + "\n" for body in (rest, module))
    return entry, {"moved_parts.py": apart}


def _free(node: ast.stmt) -> set[str]:
    """The names that a definition reads from its module."""
    own = _parameters(node) | _stored(node) | {n.name for n in ast.walk(node) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    declared = {name for n in ast.walk(node) if isinstance(n, ast.Global) for name in n.names}
    return ({n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - own - set(dir(builtins))) | declared


_KNOWN = {"DataLoader": ("dataset", "batch_size", "shuffle"), "SGD": ("params", "lr"), "Adam": ("params", "lr"), "AdamW": ("params", "lr")}


def by_keyword(text: str) -> str:
    """What is passed by its position is passed by its name."""
    tree = ast.parse(text)
    names = dict(_KNOWN)
    for name, s in _top(tree).items():
        if isinstance(s, ast.FunctionDef) and not s.args.vararg and not s.args.posonlyargs:
            names[name] = tuple(a.arg for a in s.args.args)
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        called = call.func.id if isinstance(call.func, ast.Name) else call.func.attr if isinstance(call.func, ast.Attribute) else ""
        known = called in names and (called in _KNOWN or isinstance(call.func, ast.Name)) and len(call.args) <= len(names[called])
        if known and not any(isinstance(a, ast.Starred) for a in call.args):
            call.keywords = [*(ast.keyword(k, a) for k, a in zip(names[called], call.args, strict=False)), *call.keywords]
            call.args = []
    return ast.unparse(tree) + "\n"


class _Iterated(cst.CSTTransformer):
    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> cst.For | cst.FlattenSentinel[cst.BaseStatement]:
        code = cst.Module([original_node]).code
        if (
            ".backward(" not in code
            or code.count("for ") > 1
            or original_node.orelse
            or not isinstance(updated_node.body, cst.IndentedBlock)
        ):
            return updated_node
        made = cst.parse_module("drawn_batches = iter(0)\nwhile True:\n    try:\n        pass\n    except StopIteration:\n        break\n")
        first, loop = made.body
        first = cst.ensure_type(first.with_deep_changes(first.body[0].value.args[0], value=updated_node.iter), cst.SimpleStatementLine)  # type: ignore[union-attr]
        loop = cst.ensure_type(loop, cst.While)
        taken = cst.SimpleStatementLine(
            [cst.Assign([cst.AssignTarget(updated_node.target)], cst.ensure_type(cst.parse_expression("next(drawn_batches)"), cst.Call))]
        )
        attempt = cst.ensure_type(loop.body.body[0], cst.Try).with_changes(body=cst.IndentedBlock([taken]))
        return cst.FlattenSentinel([first, loop.with_changes(body=updated_node.body.with_changes(body=[attempt, *updated_node.body.body]))])


def iterated(text: str) -> str:
    """The innermost loop over batches draws them from an iterator."""
    return cst.parse_module(text).visit(_Iterated()).code


VARIANTS: dict[str, Callable[[str], str | tuple[str, dict[str, str]]]] = {
    "renamed": renamed,
    "imports aliased": aliased,
    "a function extracted": extracted,
    "a function inlined": inlined,
    "functions in a class": in_a_class,
    "definitions in a module": in_a_module,
    "positional to keyword": by_keyword,
    "loop to iterator": iterated,
}


def variants(script: Generated) -> dict[str, Generated]:
    """The variants of a script, by what was done."""
    out = {}
    for name, change in VARIANTS.items():
        made = change(script.text)
        text, files = made if isinstance(made, tuple) else (made, {})
        if ast.dump(ast.parse(text)) != ast.dump(ast.parse(script.text)):
            out[name] = replace(script, text=text, files=script.files | files, features=(*script.features, f"variant: {name}"))
    return out


def example(name: str) -> Generated:
    """A script of examples/."""
    text = (Path(__file__).parents[2] / "examples" / name / "train.py").read_text()
    return Generated(0, text, (f"example: {name}",), args=EXAMPLES[name])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.generate.variants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first script's seed")
    parser.add_argument("--count", type=int, default=20, help="how many generated scripts")
    parser.add_argument("--examples", action="store_true", help="those of examples/, too")
    parser.add_argument("--out", type=Path, help="write what ends badly here")
    given = parser.parse_args()
    scripts = [compose(seed) for seed in range(given.seed, given.seed + given.count)]
    scripts += [example(name) for name in EXAMPLES] if given.examples else []
    originals = examine(scripts, limit=120.0)
    whole = [r.script for r in originals if r.kind is Kind.EQUAL]
    pairs = [(name, variant) for script in whole for name, variant in variants(script).items()]
    results = examine([variant for _, variant in pairs], limit=120.0)
    print(f"{len(scripts)} scripts, of which {len(whole)} are converted whole and equal; {len(pairs)} variants of these")
    for name in VARIANTS:
        counts = Counter(r.kind for (done, _), r in zip(pairs, results, strict=True) if done == name)
        print(f"{name:24} " + ", ".join(f"{n} {kind.value}" for kind, n in counts.most_common()))
    bad = [r for r in results if r.kind is not Kind.EQUAL]
    for r in bad:
        print(f"{r.kind.name} {r.script.seed} {r.script.features[-1]}: {'; '.join(r.problems or r.converted.findings)[-300:]}")
        if given.out:
            written(replace(r, script=replace(r.script, seed=len(list(given.out.glob("*"))))), given.out)
    return int(any(r.kind in (Kind.SILENT, Kind.CRASH, Kind.INVALID) for r in bad))


if __name__ == "__main__":
    sys.exit(main())
