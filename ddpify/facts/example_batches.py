"""Where a script goes through the batches of an iterator of torchtext, and how the tensors of its fields lie."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ddpify.facts.batch_source import BatchSource, Layout
from ddpify.facts.model import Call, Func, Lit, New, Value, paths_of
from ddpify.facts.tree import Tree, argument, walk

if TYPE_CHECKING:
    from ddpify.facts.runs import Run

SHARES = ("examples_of_rank", "ddp_examples_of_rank")
"""What a converted script calls the function that takes a rank's rows of such batches."""
_ITERATOR = re.compile(r"torchtext\.(legacy\.)?data\.(iterator\.)?(Bucket)?Iterator(\.splits)?")
_FIELD = re.compile(r"torchtext\.(legacy\.)?data\.(\w+\.)?\w*Field")
_READ = re.compile(r"torchtext\.(legacy\.)?datasets\.(\w+)\.splits")
_NAMED = {  # the names of the fields that these data sets are given
    **dict.fromkeys(("IMDB", "SST", "TREC"), (("text",), ("label",))),
    **dict.fromkeys(("SNLI", "MultiNLI"), (("premise", "hypothesis"), ("label",))),
}
_GIVEN = ("text_field", "label_field")
_TRANSLATED = frozenset(("Multi30k", "IWSLT", "WMT14", "TranslationDataset"))  # `splits(exts, fields)`: of sources and of targets


def example_batches(run: Run, trees: list[Tree]) -> Iterator[BatchSource]:
    """The expressions that loops go through, and that are iterators of torchtext with batches whose layout is known."""
    layouts: tuple[tuple[str, Layout], ...] | None = None
    for tree in trees:
        loops: list[ast.For | ast.comprehension] = tree.of(ast.For, ast.comprehension)
        for part in (n for loop in loops for n in walk(loop.iter)):
            if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) and is_iterator(run.value(part)):
                layouts = tuple(sorted(_layouts(run, trees).items())) if layouts is None else layouts
                yield from _of_loop(tree, part, layouts) if layouts else ()


def _of_loop(tree: Tree, part: ast.expr, layouts: tuple[tuple[str, Layout], ...]) -> Iterator[BatchSource]:
    if getattr(tree.function(part), "name", "") in SHARES:
        return  # it takes the rows itself
    up = tree.parent.get(part)
    if isinstance(up, ast.Call) and isinstance(up.func, ast.Name) and up.func.id in SHARES:
        yield BatchSource("own_examples", up, None, layouts)
    elif not isinstance(up, (ast.Attribute, ast.Subscript)):
        yield BatchSource("examples", part, None, layouts)


def is_iterator(value: Value) -> bool:
    """Whether a value is an iterator of torchtext over examples, and nothing else."""
    paths = paths_of(value)
    return bool(paths) and all(_ITERATOR.fullmatch(path) for path in paths)


def _layouts(run: Run, trees: list[Tree]) -> dict[str, Layout]:
    """How the tensors of fields lie, by their names; of any name where all lie alike. Empty where that is not seen."""
    calls = [call for call in run.trace.calls if any(_FIELD.fullmatch(path) for path in call.func.paths())]
    raw = [call for call in calls if _is_raw(call)]
    of_fields = {call.node: _layout(call) for call in calls if call not in raw}
    sized = any("batch_size_fn" in call.keywords for call in run.trace.calls)  # batches of so many tokens, not samples
    known = {layout for layout in of_fields.values() if layout is not None}
    if sized or not known or None in of_fields.values():
        return {}
    if len(known) == 1 and not raw:
        return {"": known.pop()}
    found: dict[str, set[Layout | None]] = {}
    for name, field in (pair for tree in trees for pair in _named(run, tree)):
        fields = {of_fields.get(o.node) if isinstance(o, New) else None for o in run.value(field).objs}  # type: ignore[call-overload]
        found.setdefault(name, set()).update(fields or {None})
    return {name: layout for name, each in found.items() if len(each) == 1 and (layout := next(iter(each))) is not None}


def _named(run: Run, tree: Tree) -> Iterator[tuple[str, ast.expr]]:
    """The fields of data sets, with their names: `("text", TEXT)` in a list, and those of data sets whose names are known."""
    for pair in tree.of(ast.Tuple):
        match pair.elts:
            case [ast.Constant(value=str(name)), field] if any(_FIELD.fullmatch(p) for p in paths_of(run.value(field))):
                yield name, field
    for call in tree.of(ast.Call):
        of = next((m[2] for path in run.value(call.func).paths() if (m := _READ.fullmatch(path))), "")
        for place, names in enumerate(_NAMED.get(of, ())):
            given = argument(call, place, _GIVEN[place])
            yield from ((name, given) for name in names if given is not None)
        fields = argument(call, 1, "fields") if of in _TRANSLATED else None
        parts = fields.elts if isinstance(fields, (ast.Tuple, ast.List)) and len(fields.elts) == 2 else []
        yield from ((name, part) for name, part in zip(("src", "trg"), parts, strict=False) if not isinstance(part, (ast.Tuple, ast.List)))


def _is_raw(call: Call) -> bool:
    """Whether a field gives lists of whatever its examples hold, and no tensors."""
    given = {*call.keywords, "**"} & {"postprocessing", *(["**"] if any(k.arg is None for k in call.node.keywords) else [])}
    return all(path.endswith(".RawField") for path in call.func.paths()) and len(call.node.args) < 2 and not given


def _layout(call: Call) -> Layout | None:
    """How the tensors of a field lie; None where that is not seen."""
    kinds = {path.rpartition(".")[2] for path in call.func.paths()}
    if kinds == {"NestedField"} and len(call.node.args) <= 1 and all(k.arg is not None for k in call.node.keywords):
        return Layout(0, 3) if _flag(call, "include_lengths", False) is False else None  # samples, words and their letters
    if not kinds <= {"Field", "LabelField"} or any(k.arg is None for k in call.node.keywords) or len(call.node.args) > 1:
        return None
    first, lengths = _flag(call, "batch_first", False), _flag(call, "include_lengths", False)
    sequential = False if kinds == {"LabelField"} else _flag(call, "sequential", True)
    if call.args and kinds != {"LabelField"}:
        sequential = True if call.args[0].objs and all(isinstance(o, Func) for o in call.args[0].objs) else None  # which counts as true
    if first is None or lengths is None or sequential is None:
        return None
    return Layout(0 if first else 1, 2, lengths) if sequential else Layout(0, 1)


def _flag(call: Call, name: str, default: bool) -> bool | None:
    """A setting of a field; None where it is not known."""
    given = call.keywords.get(name)
    if given is None:
        return default
    values = {o.value for o in given.objs if isinstance(o, Lit) and isinstance(o.value, bool)}
    return values.pop() if len(values) == 1 == len(given.objs) else None
