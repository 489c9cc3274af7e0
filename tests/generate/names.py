"""Names of a text of Python: which it assigns, which it reads, and the same text with others."""

from __future__ import annotations

import ast
import builtins
import io
import re
import tokenize
from collections.abc import Iterator, Mapping

_SCOPES = (ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope, without those of the scopes in it."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, _SCOPES):
            yield from _own(child)


def _tree(text: str | ast.AST) -> ast.AST:
    return ast.parse(text) if isinstance(text, str) else ast.Module([text], []) if isinstance(text, ast.stmt) else text


def assigned(text: str | ast.AST) -> list[str]:
    """The names that the statements themselves give a value to, in order."""
    found: dict[str, None] = {}
    for node in _own(_tree(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = None
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = None
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(dict.fromkeys((alias.asname or alias.name).split(".")[0] for alias in node.names))
    return list(found)


def read(text: str | ast.AST) -> set[str]:
    """The names that are read, in inner scopes too, without those that only inner scopes know and those of Python itself."""
    tree = _tree(text)
    inner = {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    for comprehension in (n for n in ast.walk(tree) if isinstance(n, ast.comprehension)):
        inner |= {n.id for n in ast.walk(comprehension.target) if isinstance(n, ast.Name)}
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    names |= {n.target.id for n in ast.walk(tree) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}
    return names - inner - set(dir(builtins))


def wanted(text: str) -> set[str]:
    """The names that are read where the text itself need not have given them a value before."""
    return _wanted(ast.parse(text).body, set())


def _wanted(statements: list[ast.stmt], known: set[str]) -> set[str]:
    """The same of statements in order; `known` gets the names that all of them surely assign."""
    found: set[str] = set()
    for node in statements:
        if isinstance(node, (ast.For, ast.With, ast.If, ast.While, ast.Try)):
            heads = [child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.expr, ast.withitem))]
            found |= {name for head in heads for name in read(head)} - known
            inner = known | {n.id for head in heads for n in ast.walk(head) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            if isinstance(node, ast.With):
                known |= inner
            bodies = [node.body, getattr(node, "orelse", []), *(handler.body for handler in getattr(node, "handlers", []))]
            for body in bodies:
                found |= _wanted(body, known if isinstance(node, ast.With) else set(inner))
        else:
            found |= read(node) - known
            known |= set(assigned(node))
    return found


def renamed(text: str, names: Mapping[str, str]) -> str:
    """The text with other expressions in the place of names; keywords of calls and attributes stay."""
    if not names:
        return text
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    out, at, depth = [], 0, 0
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in (tokenize.NL, tokenize.COMMENT)]
    for i, token in enumerate(tokens):
        depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
        keyword = depth > 0 and tokens[i + 1].string == "=" if token.type == tokenize.NAME else False
        new = None
        if token.type == tokenize.NAME and token.string in names and not keyword and tokens[i - 1].string != ".":
            new = names[token.string]
        elif token.type == tokenize.STRING and token.string[0] == "f":
            new = re.sub(r"\{[^{}]+\}", lambda match: _renamed_inside(match[0], names), token.string)
        if new is not None:
            start = starts[token.start[0] - 1] + token.start[1]
            out += [text[at:start], new]
            at = starts[token.end[0] - 1] + token.end[1]
    return "".join([*out, text[at:]])


def _renamed_inside(field: str, names: Mapping[str, str]) -> str:
    """The same inside the braces of an f-string, whose quotes are double."""
    value, colon, form = field.partition(":")
    return re.sub(r"(?<![\w.'\"])[a-z_A-Z]\w*(?!['\"])", lambda m: names.get(m[0], m[0]).replace('"', "'"), value) + colon + form
