"""Shrinks a script by deleting statements and simplifying expressions while its outcome stays."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import replace

from .compose import Generated
from .names import read
from .runner import Kind, Result, convert, examine

Place = tuple[str, int]
Edit = tuple[str, Place, int]
"""What is done, in which file to which node (by its number in a walk of the file), and with which of its parts."""


def reduced(result: Result, ranks: int = 2, rounds: int = 6) -> Generated:
    """A shorter script with the same outcome, by the same findings or properties."""
    script = result.script
    for kinds in (("delete", "unwrap"), ("simplify",), ("delete",)):
        for _ in range(rounds):
            edits = [edit for edit in _edits(script) if edit[0] in kinds]
            good = [edit for edit, same in zip(edits, _hold(script, [[e] for e in edits], result, ranks), strict=True) if same]
            shorter = _together(script, good, result, ranks)
            if shorter is None:
                break
            script = shorter
    return script


def _together(script: Generated, good: list[Edit], result: Result, ranks: int) -> Generated | None:
    """The script after as many of the edits at once as keep the outcome: all, or the best of some parts of them."""
    if not good:
        return None
    parts = [good]
    size = len(good)
    while size > 1:
        size = (size + 1) // 2
        parts += [good[i : i + size] for i in range(0, len(good), size)]
    for group in (parts[:1], parts[1:]):
        held = [part for part, same in zip(group, _hold(script, group, result, ranks), strict=True) if same]
        if held:
            return applied(script, max(held, key=len))
    return None


def _hold(script: Generated, sets: list[list[Edit]], result: Result, ranks: int) -> list[bool]:
    """Which sets of edits leave the outcome as it was."""
    variants = [applied(script, edits) for edits in sets]
    chosen = [i for i, variant in enumerate(variants) if variant and _promising(variant, result)]
    out = [False] * len(sets)
    if result.kind is Kind.CRASH:
        for i in chosen:
            out[i] = True
        return out
    for i, seen in zip(chosen, examine([v for i in chosen if (v := variants[i])], ranks) if chosen else [], strict=True):
        out[i] = _alike(seen, result)
    return out


def _alike(seen: Result, result: Result) -> bool:
    kind, codes, properties = seen.signature
    old_kind, old_codes, old_properties = result.signature
    return kind is old_kind and codes == old_codes and (not old_properties or bool(properties & old_properties))


def _promising(variant: Generated, result: Result) -> bool:
    """Whether a variant can have the outcome, as far as is known without running it."""
    for text in (variant.text, *variant.files.values()):
        tree = ast.parse(text)
        given = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        given |= {n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        given |= {a.asname or a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
        if read(tree) - given - {"__file__", "__name__"}:
            return False
    done = convert(variant)
    if result.kind is Kind.CRASH:
        return done.error.strip().split("\n")[-1] == result.converted.error.strip().split("\n")[-1]
    codes = frozenset(text.split()[0] for text in done.findings)
    return not done.error and codes == result.signature[1]


# --- edits ------------------------------------------------------------------------------------------------------------
def _texts(script: Generated) -> dict[str, str]:
    return {"train.py": script.text, **script.files}


def _edits(script: Generated) -> Iterator[Edit]:
    for name, text in _texts(script).items():
        for number, node in enumerate(ast.walk(ast.parse(text))):
            if isinstance(node, ast.stmt):
                yield "delete", (name, number), 0
                if isinstance(node, (ast.If, ast.With, ast.For, ast.While)):
                    yield "unwrap", (name, number), 0
            for i in range(len(_simpler(node))):
                yield "simplify", (name, number), i


def _simpler(node: ast.AST) -> list[Callable[[], ast.AST]]:
    """What an expression may be replaced by."""
    if isinstance(node, ast.BinOp):
        return [lambda: node.left, lambda: node.right]
    if isinstance(node, ast.Call) and node.keywords:
        keywords = node.keywords
        return [
            lambda k=keyword: ast.Call(node.func, node.args, [other for other in keywords if other is not k])  # type: ignore[misc]
            for keyword in keywords
        ]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        return [lambda: node.func.value]  # type: ignore[attr-defined]
    if isinstance(node, ast.IfExp):
        return [lambda: node.body, lambda: node.orelse]
    return []


class _Editor(ast.NodeTransformer):
    def __init__(self, edits: dict[int, tuple[str, int]]) -> None:
        self.edits = edits

    def visit(self, node: ast.AST) -> ast.AST | list[ast.AST] | None:
        kind, part = self.edits.get(id(node), ("", 0))
        if kind == "delete":
            return None
        simpler = _simpler(node)
        done = self.generic_visit(node)
        if kind == "unwrap":
            return list(node.body)  # type: ignore[attr-defined]
        return simpler[part]() if kind == "simplify" else done


def applied(script: Generated, edits: list[Edit]) -> Generated | None:
    """The script after these edits; nothing where it would be no Python."""
    texts = {}
    for name, text in _texts(script).items():
        tree = copy.deepcopy(ast.parse(text))
        nodes = list(ast.walk(tree))
        tree = _Editor({id(nodes[number]): (kind, part) for kind, (file, number), part in edits if file == name}).visit(tree)
        for node in ast.walk(tree):
            if getattr(node, "body", None) == [] and not isinstance(node, ast.Module):
                node.body = [ast.Pass()]
            if getattr(node, "names", None) == []:
                return None
        try:
            texts[name] = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
            compile(texts[name], name, "exec")
        except (SyntaxError, ValueError):
            return None
    files = {name: text for name, text in texts.items() if name != "train.py" and text.strip()}
    return replace(script, text=texts["train.py"], files=files)
