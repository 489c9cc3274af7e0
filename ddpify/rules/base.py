"""What a rule yields: changes, which carry edits, and findings, which report what the user must know."""

from __future__ import annotations

import ast
import enum

from ddpify.edits import Edit
from ddpify.options import Options
from ddpify.records import dataclass, field, replace


class Safety(enum.IntEnum):
    """How sure a change is; REVIEW and MANUAL make the exit code 1."""

    SAFE = 0
    NOTE = 1
    REVIEW = 2
    MANUAL = 3


@dataclass(frozen=True)
class Alternative:
    """What else may be so of what a change or a finding takes for granted, tried where a run shows that it is not.

    `option` is a field of `Options` and `value` what it is then: the script is converted anew with it. Of `placements` it is one entry: a
    function's dotted path or a line, `train.py:31`, and how what it gives differs between ranks. `answers` are the codes of the rules that
    a failure must be laid to for this to be tried; without any, the code of what hands it over.
    """

    option: str
    value: str | tuple[str, str]
    answers: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """What is taken for granted, as a message names it."""
        return f"`{self.value[0]}` as `{self.value[1]}`" if isinstance(self.value, tuple) else f"{self.flag} {self.value}"

    @property
    def keep(self) -> str:
        """How the user keeps it."""
        if not isinstance(self.value, tuple):
            return f"convert with {self.flag} {self.value}"
        path, said = self.value
        file, _, line = path.rpartition(":")
        here = f"`# ddpify: {said}` on line {line} of {file}"
        return f"write {here}" if file else f'write "{path}" = "{said}" under [tool.ddpify.placements] in pyproject.toml'

    @property
    def flag(self) -> str:
        """The option of the command line."""
        return f"--{self.option.replace('_', '-')}"


@dataclass(frozen=True)
class Obligation:
    """Something that must hold for one training loop; `about` is the node it is about, shown where nothing discharges it."""

    kind: str
    about: ast.AST


@dataclass(frozen=True)
class Proof:
    """A fact of the script that discharges an obligation without any edit."""

    of: Obligation


@dataclass(frozen=True, eq=False)
class Change:
    """One decision carried out in one file: the edits that belong together, and one sentence why.

    `file` is the path as the user gave it, `node` the place shown. `imports` are import statements that the edits need,
    `needs` the pieces of the runtime block (templates/runtime) that they call. `without` says what is so where the change is left out,
    of those that can be; the others stand or fall together. `id` is the same whenever the same script is converted.

    What holds once the edits are made, for the analysis of the other rules: each pair of `replicates` is a statement and an expression that
    is the same on all ranks after it; all ranks take the same way through `replicated_branches`; each pair of `redistributes` is an
    expression and what it becomes: all ranks' rows ("whole"), this rank's of these ("share"), or a number whose average over ranks is that
    of all samples ("mean").

    `alternatives` are tried, in this order, where a run shows that the change is wrong.
    """

    code: str
    why: str
    file: str
    node: ast.AST
    edits: tuple[Edit, ...]
    imports: tuple[str, ...] = ()
    level: Safety = Safety.SAFE
    without: str = ""
    id: str = ""
    discharges: tuple[Obligation, ...] = ()
    needs: tuple[str, ...] = ()
    replicates: tuple[tuple[ast.stmt, ast.expr], ...] = ()
    replicated_branches: tuple[ast.AST, ...] = ()
    redistributes: tuple[tuple[ast.expr, str], ...] = ()
    alternatives: tuple[Alternative, ...] = ()

    @property
    def line(self) -> int:
        """The 1-based line of the place shown."""
        return getattr(self.node, "lineno", 1)

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last line of the place shown: of a block, the head."""
        return span(self.node)

    @property
    def group(self) -> str:
        """What the change stands or falls with: the core of the conversion, or nothing but itself."""
        return self.id if self.without else "core"


def span(node: ast.AST) -> tuple[int, int]:
    """The first and the last line of a node; of a block, the head."""
    first, body = getattr(node, "lineno", 1), getattr(node, "body", None)
    last = body[0].lineno - 1 if isinstance(body, list) and body else getattr(node, "end_lineno", None) or first
    return int(first), max(int(first), int(last))


SAME_GRADIENTS = "gradients"
"""A run answers it that shows, after each step, the original's gradients and parameters, of losses that differ between the ranks."""
SAME_GRADIENTS_OF_UNEQUAL_BATCHES = "gradients of unequal batches"
"""A run answers it that shows the same, and ranks' batches of different shapes beside their numbers of rows."""
DIVIDED_BATCHES = "batches"
"""A run answers it in which each of the original's training batches has as many rows as the ranks can share."""
ANSWERED = (SAME_GRADIENTS, SAME_GRADIENTS_OF_UNEQUAL_BATCHES, DIVIDED_BATCHES)


@dataclass(frozen=True)
class Observed:
    """What a run of both scripts says of a finding: whether the property that it doubts `held`, in a sentence and in numbers.

    `difference` is the largest relative one in `steps` optimizer steps; None where the run says nothing of it.
    """

    held: bool
    said: str
    steps: int = 0
    difference: float | None = None


@dataclass(frozen=True)
class Claim:
    """How an expression's value is said to differ between ranks, and where the expression begins and ends, as `ast` counts.

    `of` is the dotted path of the function of which it is said; empty where it is said of a line.
    """

    of: str
    said: str
    start: tuple[int, int]
    end: tuple[int, int]


@dataclass(frozen=True)
class Cause:
    """The expression that a finding doubts, what it does, and where it stands."""

    code: str
    why: str
    file: str
    line: int


@dataclass(frozen=True)
class Finding:
    """What the user must know, or do: `fix` is what to write, for MANUAL.

    `answered_by` names what a run must show so that a REVIEW needs no reader. Without it no run can: it is about other data, other numbers
    of samples or ranks, several machines, time, or files of other programs. `alternatives` are what else may be so, to be tried in this
    order where the property fails. `observed` is what a run has shown. `cause` becomes a part
    of the message in the end: its line may change on the way. `claim` is what is said of a value, for a run to check. `needs_edits_in` are
    the modules, not edited yet, in which an edit would answer it.
    """

    code: str
    level: Safety
    message: str
    file: str
    line: int
    column: int = 1
    fix: str = ""
    discharges: tuple[Obligation, ...] = ()
    answered_by: str = ""
    alternatives: tuple[Alternative, ...] = ()
    observed: Observed | None = None
    cause: Cause | None = None
    claim: Claim | None = None
    needs_edits_in: frozenset[str] = frozenset()

    @property
    def explained(self) -> Finding:
        """The same with its cause in its message."""
        if self.cause is None:
            return self
        at = f"line {self.cause.line}" if self.cause.file == self.file else f"{self.cause.file}:{self.cause.line}"
        return replace(self, message=f"{self.message}; `{self.cause.code}` ({at}) {self.cause.why}", cause=None)


@dataclass(frozen=True)
class Example:
    """A piece of a script before and after; `after` None means that the rule leaves it alone.

    `frame` says where in a script the piece stands (tests/rule_examples.py); a piece without one is a whole script.
    `options` are what the conversion is asked for.
    """

    title: str
    before: str
    after: str | None = None
    frame: str = ""
    options: Options = field(default_factory=Options)
