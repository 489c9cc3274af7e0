"""A call that makes a training loader, read once: its arguments, and the edits that samplers of all kinds have in common."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from ddpify.edits import Edit, InsertBefore, Replace, SetArgument, escaped
from ddpify.facts import library, named
from ddpify.facts.model import Lit, New, Tup
from ddpify.facts.tree import same, walk
from ddpify.records import dataclass
from ddpify.rules.base import Change, Finding, Obligation, Safety
from ddpify.rules.context import Context, argument
from ddpify.rules.data import short_batches

CODE = "DDP301"
POSITIONS = {
    "dataset": 0,
    "batch_size": 1,
    "shuffle": 2,
    "sampler": 3,
    "batch_sampler": 4,
    "num_workers": 5,
    "collate_fn": 6,
    "pin_memory": 7,
    "drop_last": 8,
}
_NAMED = dict.fromkeys(POSITIONS)
_PLACES: dict[str, Mapping[str, int | None]] = {library.NODE_LOADER: _NAMED, library.IMAGE_LOADER: _NAMED | {"dataset": 0, "batch_size": 2}}
WHY = "each rank loads a different part of each global batch; otherwise all ranks would train on the same samples"

SAMPLER_IMPORT = "from torch.utils.data.distributed import DistributedSampler"
JOINED = "dist.is_initialized()"  # in a module that other scripts import, which train in one process


def recipe(node: ast.AST) -> str:
    """What to write for a training loader that a call makes, with the names that it is given."""
    given = {name: argument(node, at, name) if isinstance(node, ast.Call) else None for name, at in POSITIONS.items()}
    text = {name: ast.unparse(value) for name, value in given.items() if isinstance(value, (ast.Name, ast.Attribute, ast.Constant))}
    data, size, shuffle = text.get("dataset", "dataset"), text.get("batch_size", "batch_size"), text.get("shuffle", "...")
    return (
        f"sampler = DistributedSampler({data}, shuffle={shuffle})  # for the training data alone\n"
        f"DataLoader({data}, batch_size={size} // dist.get_world_size(), sampler=sampler)\n"
        "sampler.set_epoch(epoch)  # before each epoch"
    )


def samples_around_nodes(context: Context, node: ast.Call) -> bool:
    """Whether a call makes a loader that samples around the nodes of a graph."""
    return library.NODE_LOADER in context.facts.after.value(node.func).paths()


def seeds(context: Context, node: ast.Call) -> ast.expr | None:
    """The tensor of nodes that such a loader samples around: numbers, or a mask; None of all nodes, and of those of one kind."""
    given = argument(node, 2, "input_nodes")
    objs = context.facts.after.value(given).objs if given is not None else ()
    return None if any(isinstance(o, (Lit, Tup)) for o in objs) else given


def places(path: str) -> Mapping[str, int | None]:
    """Where a class of loaders takes its arguments."""
    return _PLACES.get(path, POSITIONS)


def kind(context: Context, node: ast.Call) -> str:
    """Which of those that take their arguments elsewhere than torch's a loader is made by; empty for none."""
    return next((p for p in context.facts.after.value(node.func).paths() if p in _PLACES), "")


def preset(context: Context, node: ast.Call) -> dict[str, ast.expr]:
    """What a `functools.partial` of the same function passes to the class that makes a loader; nothing if that says the order, too."""
    objs = context.facts.after.value(node.func).objs
    made = next(iter(objs)) if len(objs) == 1 else None
    if not (isinstance(made, New) and made.path == named.PARTIAL and isinstance(made.node, ast.Call) and made.node in context.tree.parent):
        return {}
    given = {k.arg: k.value for k in made.node.keywords if k.arg is not None}
    whole = len(made.node.args) == 1 and len(given) == len(made.node.keywords)
    plain = whole and given.keys().isdisjoint(("dataset", "shuffle", "sampler", "batch_sampler"))
    return given if plain and context.tree.function(made.node) is context.tree.function(node) else {}


@dataclass(frozen=True, eq=False)
class LoaderCall:
    """One `DataLoader(...)` of the entry, or the `super().__init__(...)` of a class derived from it.

    `discharges` is what its change discharges; `only` the condition under which it makes a loader that trains, empty where it always does,
    and `passed` the edits that pass it on. `joined` says that other scripts make their loaders by it, too, without a process group.
    """

    context: Context
    node: ast.Call
    discharges: tuple[Obligation, ...]
    only: str = ""
    passed: tuple[Edit, ...] = ()
    joined: bool = False

    @property
    def when(self) -> str:
        """The condition under which it makes a loader that trains on several ranks; empty where it always does."""
        return " and ".join(filter(None, (JOINED if self.joined else "", self.only)))

    @property
    def loaders(self) -> set[New]:
        """The loaders it makes that train."""
        nodes = {o.about for o in self.discharges}
        return {o for o in self.context.facts.loaders if o.node in nodes}

    @property
    def kind(self) -> str:
        """Which of those that take their arguments elsewhere than torch's it is; empty for none."""
        return kind(self.context, self.node)

    @property
    def of_nodes(self) -> bool:
        """Whether it samples around the nodes of a graph."""
        return self.kind == library.NODE_LOADER

    @property
    def spread(self) -> list[ast.keyword]:
        """The dicts of options that it is passed as `**options`."""
        return [k for k in self.node.keywords if k.arg is None]

    def argument(self, name: str) -> ast.expr | None:
        """The expression passed as `name`, also by a `functools.partial` that is called."""
        passed = argument(self.node, places(self.kind)[name], name)
        return preset(self.context, self.node).get(name) if passed is None else passed

    def given(self, name: str) -> ast.expr | None:
        """The expression passed as `name`, unless it is None."""
        passed = self.argument(name)
        return None if passed is None or self.is_(passed, None) else passed

    def is_(self, node: ast.expr, what: object) -> bool:
        """Whether an expression is one literal."""
        if isinstance(node, ast.Constant):
            return node.value is what or (type(node.value) is type(what) and node.value == what)
        objs = self.context.facts.after.value(node).objs
        return len(objs) == 1 and all(isinstance(o, Lit) and o.value is what for o in objs)

    def is_sure(self, node: ast.expr) -> bool:
        """Whether what an expression is known to say is sure: settings may be filled later, and other scripts may pass others."""
        set_later = any(isinstance(part, (ast.Attribute, ast.Subscript)) for part in walk(node))
        return isinstance(node, ast.Constant) or not (set_later or self.joined)

    def name(self, key: str) -> str:
        """What a name of the runtime block is called in this file."""
        return self.context.names[key]

    def source(self, node: ast.expr) -> str:
        """The text of an expression, for a template."""
        return escaped(self.context.source(node))

    def dropping(self) -> str:
        """The argument that lets a sampler drop what the loader drops, or what training leaves out."""
        drop = self.argument("drop_last")
        if self.leaves_out and not self.only:
            return ", drop_last=True"
        if drop is None or (self.is_sure(drop) and self.is_(drop, False)):
            return ""
        return f", drop_last={'True' if self.same(drop) else self.source(drop)}"

    @property
    def leaves_out(self) -> bool:
        """Whether training leaves out batches that are short, and the loader is not asked to drop them."""
        drop = self.argument("drop_last")
        kept = drop is None or self.is_(drop, False)
        return kept and any(short_batches.are_left_out(self.context, o) for o in self.loaders)

    def same(self, node: ast.expr) -> bool:
        """Whether an expression is the condition under which the loader trains, or says True where it holds and False elsewhere."""
        if isinstance(node, ast.IfExp) and self.is_(node.body, True) and self.is_(node.orelse, False):
            return self.same(node.test)
        definitions = self.context.facts.after.definitions.reaching(node).definitions if self.only and isinstance(node, ast.Name) else ()
        for made in (self.context.tree.parent.get(d) for d in definitions if len(definitions) == 1):
            if isinstance(made, ast.Assign) and made.targets == [*definitions] and isinstance(made.value, ast.Compare):
                return self.same(made.value)  # train = split == "train"
        return bool(self.only) and same(node, ast.parse(self.only, mode="eval").body)

    def training(self, node: ast.expr) -> ast.expr:
        """The part of an expression that is read where the loader trains."""
        return node.body if isinstance(node, ast.IfExp) and self.same(node.test) else node

    def divided(self) -> tuple[list[Edit], list[str]]:
        """The edits that divide the batch and the workers, and what they need."""
        edits: list[Edit] = []
        needs: list[str] = []
        size, workers = self.argument("batch_size"), self.argument("num_workers")
        if size is not None:
            share = self.training(size)
            otherwise = f" if {escaped(self.only)} else {{0}}" if self.only and share is size else ""
            shared, need = self.context.divided(share, otherwise)
            edits += [self.overridden("batch_size", e) if isinstance(e, Replace) else e for e in shared]
            needs += need
        if self.context.options.batch_size == "per-rank":
            edits.append(InsertBefore(self.context.tree.statement(self.node), "# each rank loads batches of this size"))
        if workers is not None and not self.is_(workers, 0):
            edits.append(self.overridden("num_workers", Replace(workers, f"{self.name('workers_per_rank')}({{0}})", (workers,))))
            needs.append("workers_per_rank")
        return edits, needs

    def overridden(self, name: str, edit: Replace) -> Edit:
        """The edit of an argument; of one that a `functools.partial` passes, which may make other loaders, the call gets its own."""
        if edit.node is not preset(self.context, self.node).get(name):
            return edit
        return SetArgument(self.node, name, edit.template.format(self.source(edit.node)))

    @property
    def imports(self) -> tuple[str, ...]:
        """What the change of the loader must have imported."""
        return (SAMPLER_IMPORT, "import torch.distributed as dist") if self.joined else (SAMPLER_IMPORT,)

    @property
    def why(self) -> str:
        """What the change of the loader is for."""
        if self.context.options.batch_size == "per-rank":
            return "each rank loads full batches: the global batch is world_size times larger than the original's"
        if not self.only:
            return WHY
        return "each rank loads a different part of each training batch; in the other phases every rank loads all data"

    @property
    def level(self) -> Safety:
        """How sure the change is: with the batch as large as it was, it trains as it did."""
        return Safety.NOTE if self.context.options.batch_size == "per-rank" else Safety.SAFE

    def change(
        self, edits: Sequence[Edit], needs: Iterable[str] = (), imports: tuple[str, ...] = (), why: str = "", level: Safety | None = None
    ) -> Change:
        """The change that gives each rank its share of what the loader draws."""
        level = self.level if level is None else level
        shown, wanted, edits = self.context.tree.shown, tuple(needs), (*self.passed, *edits)
        return Change(CODE, why or self.why, shown, self.node, edits, imports, level, discharges=self.discharges, needs=wanted)

    def unbatched(self) -> Finding | None:
        """The finding for a loader without batches that could be divided."""
        size = self.argument("batch_size")
        if size is None and self.context.options.batch_size == "global":
            fix = "give the loader a batch size that the number of ranks divides, or convert with --batch-size per-rank"
            return self.refuse("batches of one sample cannot be divided among ranks", fix)
        if size is not None and self.is_(size, None):
            return self.refuse("this loader does not make batches, so that they cannot be divided among the ranks")
        return None

    def refuse(self, message: str, fix: str = "", at: ast.AST | None = None, level: Safety = Safety.MANUAL) -> Finding:
        """The finding that leaves the loader as it is."""
        return self.context.manual(CODE, at or self.node, message, fix or recipe(self.node), self.discharges, level)
