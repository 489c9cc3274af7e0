"""The edits a rule may ask for, as data.

An edit is keyed to a node of the file's `ast` tree and is carried out on the *updated* concrete node: several
edits of one node, or of nodes inside one another, compose. A template is Python text in which `{0}`, `{1}`, ...
stand for the updated code of the edit's `holes` (nodes at or below the edited node); literal braces are doubled.
"""

from __future__ import annotations

import ast

from ddpify.records import dataclass


@dataclass(frozen=True)
class FreshName:
    """A name that is chosen once all edits are known: the first of `preferred` that nothing else binds, and that is not in `avoid`.

    `at` is the node that it is introduced for: equal ones are one name. With `scope`, a function, other functions may bind it, too. In the
    text of edits `str(name)` stands for it; one of them says that it `binds` it.
    """

    preferred: tuple[str, ...]
    at: ast.AST
    scope: ast.AST | None = None
    avoid: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{FRESH}{id(self.at):x}_{'_'.join(self.preferred)}{FRESH_END}"


FRESH, FRESH_END = "__fresh_", "_fresh__"
"""What the text that stands for a fresh name begins and ends with."""


@dataclass(frozen=True, eq=False)
class Replace:
    """Put the expression `template` where `node` stands. A hole may be `node` itself: then the edits before it show through."""

    node: ast.expr
    template: str
    holes: tuple[ast.expr, ...] = ()
    binds: tuple[FreshName, ...] = ()


@dataclass(frozen=True, eq=False)
class SetArgument:
    """Give `node` the argument `keyword`: in place where it is passed by keyword or at `position`, else appended as a keyword."""

    node: ast.Call
    keyword: str
    template: str
    holes: tuple[ast.expr, ...] = ()
    position: int | None = None


@dataclass(frozen=True, eq=False)
class DropArgument:
    """Take the argument `keyword` away from `node`, whether it is passed by keyword or at `position`.

    A positional argument is dropped only if no positional argument follows it; those that follow must be turned into keywords
    first (see `NameArgument`).
    """

    node: ast.Call
    keyword: str
    position: int | None = None


@dataclass(frozen=True, eq=False)
class AddFirst:
    """Give `node` one more positional argument, before all others."""

    node: ast.Call
    template: str


@dataclass(frozen=True, eq=False)
class AddEntry:
    """Give the dict display `node` one more entry, at its end."""

    node: ast.Dict
    key: str
    value: str


@dataclass(frozen=True, eq=False)
class DropEntry:
    """Take the entry at `index` away from the dict display `node`."""

    node: ast.Dict
    index: int


@dataclass(frozen=True, eq=False)
class AddParameter:
    """Give the function `node` one more parameter, behind its positional ones, unless another edit does.

    `default` is used where they end with defaults, and where it may be left out: `optional`.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef
    name: str
    default: str = "None"
    optional: bool = False
    binds: tuple[FreshName, ...] = ()


@dataclass(frozen=True, eq=False)
class NameArgument:
    """Turn the positional argument at `position` into the keyword argument `keyword`."""

    node: ast.Call
    keyword: str
    position: int


@dataclass(frozen=True, eq=False)
class InsertBefore:
    """Put the statements `code` before the statement `node`, at its indentation.

    With `holes`, expressions inside `node`, `code` is a template; where the same change replaces a hole, what stood there is filled in.
    `first` puts them before what other changes put there.
    """

    node: ast.stmt
    code: str
    holes: tuple[ast.expr, ...] = ()
    binds: tuple[FreshName, ...] = ()
    first: bool = False


@dataclass(frozen=True, eq=False)
class InsertAfter:
    """Put the statements `code` after the statement `node`, at its indentation.

    `inside` says that they go into the block that another edit puts the statement into.
    """

    node: ast.stmt
    code: str
    binds: tuple[FreshName, ...] = ()
    inside: bool = False


@dataclass(frozen=True, eq=False)
class Drop:
    """Take the statement `node` away (a body left empty gets `pass`)."""

    node: ast.stmt


@dataclass(frozen=True, eq=False)
class Under:
    """Put the statement `node` into a block `header:` (such as `if rank == 0`); neighbours under the same header share one block.

    With `holes`, expressions inside `node`, `header` is a template, filled as that of `InsertBefore`, and the block is shared with none.
    `along` says that what other edits insert before the statement goes into the block, too, but for what they put first. `inner` says that
    a `with` goes inside of another edit's `with`: `with outer(), inner()`.
    """

    node: ast.stmt
    header: str
    holes: tuple[ast.expr, ...] = ()
    binds: tuple[FreshName, ...] = ()
    along: bool = False
    inner: bool = False


@dataclass(frozen=True, eq=False)
class Within:
    """Put the statements from `node` to `last`, of one block, into one new block `header:`; what is inserted between them goes along."""

    node: ast.stmt
    last: ast.stmt
    header: str


@dataclass(frozen=True, eq=False)
class Unwrap:
    """Put the body of the compound statement `node` in its place, one level out."""

    node: ast.If | ast.With


Edit = (
    Replace
    | SetArgument
    | DropArgument
    | NameArgument
    | AddFirst
    | AddEntry
    | DropEntry
    | AddParameter
    | InsertBefore
    | InsertAfter
    | Drop
    | Under
    | Within
    | Unwrap
)


def escaped(text: str) -> str:
    """A text as a part of a template."""
    return text.replace("{", "{{").replace("}", "}}")
