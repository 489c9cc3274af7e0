"""What every rule is given: the facts, the options, and the names the emitted code uses."""

from __future__ import annotations

import ast
import builtins
import io
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar

from ddpify.edits import Edit, Replace
from ddpify.facts import batch_source, library
from ddpify.facts.assumed import GATHERS, GRADED, READERS, AssumedEdits
from ddpify.facts.collect import Facts, training_calls
from ddpify.facts.example_batches import SHARES as EXAMPLES
from ddpify.facts.initialize import Nowhere, Site
from ddpify.facts.model import NOTHING, Call, Lit, New, Obj, Value
from ddpify.facts.names import canonical
from ddpify.facts.runs import run
from ddpify.facts.tree import Forest, calls_in, first_free, is_main, walk
from ddpify.facts.weight_writes import Write, weight_writes
from ddpify.facts.wrapper import apex_fails
from ddpify.options import Options
from ddpify.placement.lattice import REPLICATE, Placement
from ddpify.placement.values import placement
from ddpify.records import dataclass, field, replace
from ddpify.rules.base import Change, Finding, Obligation, Safety

T = TypeVar("T")

_PIECES = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Dict)  # of which something may be read without parentheses

NAMES = {
    "rank": ("rank", "global_rank", "ddp_rank"),
    "local_rank": ("local_rank", "ddp_local_rank"),
    "world_size": ("world_size", "num_ranks", "ddp_world_size"),
    "device": ("device", "rank_device", "ddp_device"),
    "init_distributed": ("init_distributed", "init_process", "ddp_init"),
    "per_rank": ("per_rank", "batch_per_rank"),
    "workers_per_rank": ("workers_per_rank", "num_workers_per_rank"),
    "own_seed": ("own_seed", "sampler_seed"),
    "sharded": ("sharded", "loader_options_per_rank"),
    "first_on_node": ("first_on_node", "local_rank_zero_first"),
    "drawn_by_rank_zero": ("drawn_by_rank_zero", "ddp_drawn_by_rank_zero"),
    "sum_over_ranks": ("sum_over_ranks", "ddp_sum"),
    "largest_over_ranks": ("largest_over_ranks", "ddp_max"),
    "smallest_over_ranks": ("smallest_over_ranks", "ddp_min"),
    "reduce_meter": ("reduce_meter", "ddp_reduce_meter"),
    "gather_over_ranks": ("gather_over_ranks", "ddp_gather"),
    "sampler_of_rank_zero": ("SamplerOfRankZero", "DDPSamplerOfRankZero"),
    "whole_batches": READERS,
    "packed": ("packed", "ddp_packed"),
    "rank_sampler": ("RankSampler", "DDPRankSampler"),
    "rank_batch_sampler": ("RankBatchSampler", "DDPRankBatchSampler"),
    "endless_rank_sampler": ("EndlessRankSampler", "DDPEndlessRankSampler"),
    "endless_rank_batch_sampler": ("EndlessRankBatchSampler", "DDPEndlessRankBatchSampler"),
    "share_of_stream": ("ShareOfStream", "DDPShareOfStream"),
    "seed_nodes": ("seed_nodes", "ddp_seed_nodes"),
    "without_repeats": ("without_repeats", "ddp_without_repeats"),
    "batches_of_rank": ("batches_of_rank", "ddp_batches_of_rank"),
    "mean_over_ranks": ("mean_over_ranks", "ddp_mean"),
    "from_all_ranks": ("from_all_ranks", "ddp_from_all_ranks"),
    "rows_of_all_ranks": GATHERS,
    "all_ranks_rows": ("AllRanksRows", "DDPAllRanksRows"),
    "average_of_all_ranks": ("average_of_all_ranks", "ddp_average_of_all_ranks"),
    "all_ranks_average": ("AllRanksAverage", "DDPAllRanksAverage"),
    "on_any_rank": ("on_any_rank", "ddp_any"),
    "from_rank_zero": ("from_rank_zero", "ddp_from_rank_zero"),
    "same_on_all_ranks": ("same_on_all_ranks", "ddp_same_on_all_ranks"),
    "rows_of_rank": ("rows_of_rank", "ddp_rows_of_rank"),
    "columns_of_rank": ("columns_of_rank", "ddp_columns_of_rank"),
    "examples_of_rank": EXAMPLES,
    "with_repeated": ("with_repeated", "ddp_with_repeated"),
    "size_on_all_ranks": ("size_on_all_ranks", "ddp_size_on_all_ranks"),
    "average_gradients": ("average_gradients", "ddp_average_gradients"),
    "training_loss": ("TrainingLoss", "DDPTrainingLoss"),
    "start_alike": ("start_alike", "ddp_start_alike"),
    "with_averaged_gradient": ("with_averaged_gradient", "ddp_with_averaged_gradient"),
    "averages_over_ranks": ("averages_over_ranks", "ddp_averages_over_ranks"),
    "agree_on_seed": ("agree_on_seed", "ddp_agree_on_seed"),
    "dist": ("dist", "torch_dist"),
    "get_rank": ("get_rank", "rank_of_process"),
    "get_world_size": ("get_world_size", "number_of_ranks"),
    "get_local_rank": ("get_local_rank", "local_rank_of_process"),
    "get_device": ("get_device", "device_of_process"),
}


@dataclass(frozen=True, eq=False)
class Context:
    """The facts of one script and what was asked for.

    It is about one run of the interpreter, and what was found out about that run is kept here: a context is never changed.
    """

    facts: Facts
    options: Options
    sharded_evaluation: frozenset[New] = frozenset()  # the loaders of evaluation whose batches are sharded over the ranks
    amp: Site | Nowhere | None = None  # where apex.amp is to be initialised, if it was asked for
    distributed: bool = False  # the script is so already: it gets no runtime block
    _known: dict[object, object] = field(default_factory=dict, init=False)

    def once(self, answer: Callable[[Context], T]) -> T:
        """What a function says of this context; it is asked once."""
        if answer not in self._known:
            self._known[answer] = answer(self)
        return self._known[answer]  # type: ignore[return-value]

    @property
    def tree(self) -> Forest:
        """The files that are edited, the entry first."""
        return self.facts.entry

    @cached_property
    def bound(self) -> frozenset[str]:
        """Every name that an edited file binds, also by an import of all names of a module."""
        held = (name for module in ("__main__", *self.facts.edited) for name in self.facts.after.of(module))
        return self.tree.bound.union(held)

    def free_name(self, preferred: Sequence[str], place: ast.AST | None) -> str:
        """The first of some names that the file of a place, by default the entry, does not bind."""
        tree = self.facts.trees["__main__"] if place is None else self.facts.tree_of(place)
        return first_free(preferred, tree.bound.union(self.facts.after.of(tree.name)))

    @cached_property
    def names(self) -> dict[str, str]:
        """For each name of the runtime block: what it is called in this file, where the usual one may be taken."""
        chosen = {key: first_free(options, self.bound) for key, options in NAMES.items()}
        if self._dist_imported():
            chosen["dist"] = "dist"
        own = self.own_device
        if own is not None:
            chosen["device"] = own
        return chosen

    def _dist_imported(self) -> bool:
        """Whether the file's own `dist` is torch.distributed, and nothing else."""
        bound = [
            n
            for n in self.tree.nodes()
            if (isinstance(n, ast.alias) and (n.asname or n.name) == "dist")
            or (isinstance(n, ast.arg) and n.arg == "dist")
            or (isinstance(n, ast.Name) and n.id == "dist" and isinstance(n.ctx, ast.Store))
        ]
        return bool(bound) and all(
            isinstance(n, ast.alias)
            and (n.name == "torch.distributed" or (n.name == "distributed" and getattr(self.tree.parent[n], "module", "") == "torch"))
            for n in bound
        )

    @cached_property
    def own_device(self) -> str | None:
        """The script's own name for its device, where it is bound once, at module level, to a torch.device."""
        return next((name for name, value in self._bound_once() if self._is_torch_device(value)), None)

    def _is_torch_device(self, node: ast.expr) -> bool:
        """Whether an expression may be a torch.device that is not the CPU."""
        return any(o.path == "torch.device" and not self.is_cpu(o) for o in self.facts.after.value(node).instances())

    def device_at(self, node: ast.AST) -> tuple[str, tuple[str, ...]]:
        """This rank's device by its name at a place, the script's own where it has one, and what the runtime block needs for it."""
        away = self.facts.tree_of(node).name != "__main__"
        if not away and self.is_early(node):  # the script's own device has no name yet
            return f'torch.device("cuda", {self.names["local_rank"]}) if torch.cuda.is_available() else torch.device("cpu")', ()
        local = self._local_device(node, away) if self.own_device is None or away else ""
        if local:
            return local, ()
        return (f"{self.names['get_device']}()" if away and self.own_device is not None else self.names["device"]), ("device",)

    def _local_device(self, node: ast.AST, away: bool) -> str:
        """What this rank's device is called at a place: a name that is bound before it, or a parameter; empty where it has no name."""
        function = self.tree.function(node)
        bound = [pair for up in self.tree.path(node) for s in self._earlier(up) for pair in _binding(s)]
        if not away and function is not self.tree.root:
            bound += self._bound_once()
        parameters = {a.arg for a in walk(getattr(function, "args", ast.Pass())) if isinstance(a, ast.arg)}
        bound += [(n.id, n) for n in walk(function) if isinstance(n, ast.Name) and n.id in parameters]
        return next((name for name, value in bound if self._is_device(value)), "")

    def is_early(self, node: ast.AST) -> bool:
        """Whether a place of the module comes before the script's own device is bound."""
        if self.own_device is None or not self.facts.in_main(node) or not isinstance(self.tree.function(node), ast.Module):
            return False
        bound = (s for s in self.main_body() for name, _ in _binding(s) if name == self.own_device)
        return not any(self.tree.after(node, statement) for statement in bound)

    def _earlier(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements before another one in its block, nearest first."""
        block = self.tree.block(statement)
        return block[: block.index(statement)][::-1]

    def _bound_once(self) -> list[tuple[str, ast.expr]]:
        """The names that the module binds, and that are bound nowhere else, with what they are bound to."""
        stores = Counter(n.id for n in self.tree.of(ast.Name) if isinstance(n.ctx, ast.Store))
        return [(name, value) for s in self.main_body() for name, value in _binding(s) if stores[name] == 1]

    def _is_device(self, node: ast.expr) -> bool:
        """Whether an expression is this rank's device: torch.device(...) or its name, that of a GPU where there is one."""
        objs = self.facts.after.value(node).objs
        plain = ("cuda", "cpu", node.value) if isinstance(node, ast.Constant) else ("cuda", "cpu")
        named = [o for o in objs if isinstance(o, Lit) and isinstance(o.value, str) and o.value.partition(":")[0] in ("cuda", "cpu")]
        known = [o for o in objs if (isinstance(o, New) and o.path == "torch.device") or (o in named and getattr(o, "value", "") in plain)]
        return bool(objs) and len(known) == len(objs) and not all(self.is_cpu(o) for o in objs)

    def is_cpu(self, obj: Obj) -> bool:
        """Whether something is the CPU by its name, or a `torch.device` made of it."""
        if isinstance(obj, Lit):
            return obj.value == "cpu"
        given = argument(obj.node, 0, "type") if isinstance(obj, New) and isinstance(obj.node, ast.Call) else None
        objs = self.facts.after.value(given).objs if given is not None else frozenset()
        return bool(objs) and all(isinstance(o, Lit) and o.value == "cpu" for o in objs)

    def main_body(self) -> list[ast.stmt]:
        """The module's statements, those of its main block included."""
        out = []
        for statement in self.tree.root.body:
            out.append(statement)
            if is_main(statement):
                out += statement.body  # type: ignore[attr-defined]
        return out

    @cached_property
    def main_block(self) -> ast.If | None:
        """The main block."""
        return next((s for s in self.tree.root.body if is_main(s)), None)  # type: ignore[return-value]

    # ------------------------------------------------------------------------------------------------ questions

    @cached_property
    def sharded_loaders(self) -> frozenset[New]:
        """The loaders that give each rank its own batches, or whose batches are whole and each rank runs its own rows of them."""
        return self.facts.whole_loaders.union(self.facts.feeding, self.sharded_evaluation)

    @property
    def assumed(self) -> AssumedEdits:
        """The edits that the run assumes to have been made, with those that take nn.DataParallel out."""
        return replace(self.facts.after.interpreter.assumed, ignore_dp=True, shares=self.sharded_loaders)

    def assuming(self, edits: AssumedEdits) -> Context:
        """The context of the script once some edits are made."""
        return replace(self, facts=replace(self.facts, after=run(self.facts.project, edits)))

    def after_changes(self, changes: Collection[Change]) -> Context:
        """The context of the script as it is once some changes are made."""
        known = self.assumed
        replicated_after, redistributed = dict(known.replicated_after), dict(known.redistributed)
        branches = known.replicated_branches.union(*(change.replicated_branches for change in changes))
        for change in changes:
            for statement, target in change.replicates:
                replicated_after[statement] = (*replicated_after.get(statement, ()), target)
            redistributed |= dict(change.redistributes)
        edits = replace(known, replicated_after=replicated_after, replicated_branches=branches, redistributed=redistributed)
        return self.assuming(edits)

    def placement(self, value: Value) -> Placement:
        """How a value differs between ranks."""
        return placement(value, self.sharded_loaders)

    def from_sharded_data(self, value: Value) -> bool:
        """Whether a value is computed from a batch of a sharded loader."""
        return any(o.kind == "batch" and o.of in self.sharded_loaders for o in value.origins)

    def chosen_by_own_batch(self, value: Value) -> bool:
        """Whether a value was set, added to or left as it was under a condition that a batch of a sharded loader decides."""
        return any(o.kind == "decided" and o.of in self.sharded_loaders for o in value.origins)

    def broadcasts(self, node: ast.AST) -> bool:
        """Whether a function of the project, or a call of one, broadcasts an object: ranks agree on what it is about."""
        run = self.facts.after
        functions = run.value(node.func).functions() if isinstance(node, ast.Call) else {node}
        calls = (call for f in functions if isinstance(f, ast.FunctionDef) for call in calls_in(f))
        return any("torch.distributed.broadcast_object_list" in run.value(call.func).paths() for call in calls)

    def asks_for_rank(self, node: ast.AST) -> bool:
        """Whether an expression is computed from the rank, in one of its parts."""
        return any(self.facts.after.value(n).of_kind("rank") for n in walk(node))

    def library_path(self, file: str, node: ast.expr) -> str:
        """The function of a library that an expression names in a file, in functions that were not run, too; empty for anything else."""
        paths = self.facts.after.value(node).paths()
        if isinstance(node, ast.Attribute) and not paths:
            base = self.library_path(file, node.value)
            return canonical(f"{base}.{node.attr}") if base else ""
        if isinstance(node, ast.Name) and not paths:
            paths = self.facts.after.attribute(file, node.id).paths()  # type: ignore[arg-type]
            return next(iter(paths), node.id if hasattr(builtins, node.id) and node.id not in self.facts.trees[file].bound else "")
        return next(iter(paths), "")

    def differs(self, value: Value) -> bool:
        """Whether a value is not replicated: it, or the choice of it, may differ between ranks."""
        return self.placement(value) != REPLICATE

    def manual(
        self,
        code: str,
        node: ast.AST,
        message: str,
        fix: str = "",
        discharges: tuple[Obligation, ...] = (),
        level: Safety = Safety.MANUAL,
        answered_by: str = "",
    ) -> Finding:
        """A finding at a node, wherever it stands."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
        return Finding(code, level, message, self.facts.tree_of(node).shown, line, column, fix, discharges, answered_by)

    @cached_property
    def training(self) -> set[ast.AST]:
        """The calls under which a training forward runs, the forwards included."""
        return training_calls(self.facts)

    @cached_property
    def forwards(self) -> frozenset[ast.AST]:
        """The functions of the project that run inside a training forward."""
        return self.inside(n for m in self.facts.models for n in m.forwards)

    def inside(self, forwards: Iterable[ast.AST]) -> frozenset[ast.AST]:
        """The functions of the project that run inside some forwards of trained models."""
        nodes = frozenset(forwards)
        called = (c for c in self.facts.after.trace.calls if not c.no_grad and not nodes.isdisjoint(c.stack))
        inside = {node for c in called for node in c.func.functions()}
        models = (m for m in self.facts.models if not nodes.isdisjoint(m.forwards))
        return frozenset(inside | {f for m in models for o in m.objs for f in self._forwards_of(o)})

    def _forwards_of(self, obj: Obj) -> frozenset[ast.AST]:
        forward = self.facts.after.interpreter.find(obj.cls, "forward") if isinstance(obj, New) and obj.cls is not None else None
        return forward.functions() if forward is not None else frozenset()

    @cached_property
    def backwards(self) -> frozenset[ast.AST]:
        """The calls under which a backward runs, or a collective of the script's own: each rank must make as many."""
        run = self.facts.after
        sites = [call for call in run.trace.calls if call.func.paths() & library.COLLECTIVES]
        return frozenset(n for loop in self.facts.loops for n in (loop.backward.node, *loop.backward.stack)) | {c.node for c in sites}

    @cached_property
    def collective_call_sites(self) -> set[ast.AST]:
        """The calls and tests under which a collective runs, of the script or of the conversion: ranks wait for one another there."""
        run = self.facts.after
        loops = [loop for loop in self.tree.of(ast.For) if run.value(loop).batches() & self.sharded_loaders]
        inside = {call for loop in loops for statement in loop.body for call in calls_in(statement)}
        out = set(self.training)
        reduced = {self.facts.tree_of(n).function(n) for n in self.assumed.redistributed}
        for call in run.trace.calls:
            if self._is_collective(call) or not reduced.isdisjoint(call.func.functions()):
                out |= {call.node, *call.stack}
            elif call.node in inside:
                out |= set(call.stack)
        if self.facts.whole_loaders:
            out.update(self._reads_of_whole_loaders())
        agreed = self.assumed.replicated_branches
        for decision in (d for d in run.trace.decisions if d.node in agreed):
            out |= {decision.node, *decision.stack}
        return out

    def holds_whole_loader(self, node: ast.expr) -> bool:
        """Whether an expression is a loader whose batches all ranks get whole, or goes through one."""
        if not self.facts.whole_loaders:
            return False
        return any(over.objs & self.facts.whole_loaders for over in self.facts.after.iterated(self.facts.after.value(node)))

    def _reads_of_whole_loaders(self) -> Iterator[ast.AST]:
        """The calls under which such a loader is read."""
        functions: set[ast.AST] = set()
        for tree in self.facts.trees.values():
            loops: list[ast.For | ast.comprehension] = tree.of(ast.For, ast.comprehension)
            functions |= {tree.function(loop) for loop in loops if self.holds_whole_loader(loop.iter)}
        for call in self.facts.after.trace.calls:
            iterates = "iter" in call.func.paths() and any(map(self.holds_whole_loader, call.node.args))
            if iterates or not functions.isdisjoint(call.func.functions()):
                yield from (call.node, *call.stack)

    def _is_collective(self, call: Call) -> bool:
        """Whether ranks wait for one another in a call: a collective, a metric over all ranks, an order that is broadcast, a step."""
        paths = call.func.paths()
        if call.method in library.METRIC_RESULTS:
            return any(o.path.startswith(library.METRICS) for o in call.receiver.instances()) or bool(paths & library.COLLECTIVES)
        if call.method == "step" and any(o in self.facts.averaged for v in (call.receiver, *call.args) for o in v.objs):
            return True
        ordered = call.loops and paths & (batch_source.ORDERS | library.SHUFFLES)
        cut = ordered and any(o.path == batch_source.SLICE for o in self.facts.feeding)  # then the order is broadcast
        return bool(cut or paths & library.COLLECTIVES)

    @property
    def whole_batch_calls(self) -> set[ast.AST]:
        """The calls whose operands are all ranks' rows, and the calls that made these operands: there, a batch is the whole batch."""
        out: set[ast.AST] = set()
        for call in self.facts.after.trace.calls:
            given = [call.receiver, *call.args, *call.keywords.values()]
            if any(v.of_kind("whole") for v in given) and not any(self.differs(v) for v in given):
                called = self.facts.after.unwrap(call.func)
                out |= {call.node, *(o.node for o in called if isinstance(o, New) and o.cls is not None)}
                out |= {n for v in given for n in v.of_kind("sized") if isinstance(n, ast.AST)}
        gathered = [self.facts.after.value(node) for node, how in self.assumed.redistributed.items() if how in ("whole", GRADED["whole"])]
        return out - {n for rows in gathered for n in rows.of_kind("sized")}  # a rank's own rows are as many as its share

    @cached_property
    def weight_writes(self) -> list[Write]:
        """What the training writes into weights and gradients by itself."""
        return weight_writes(self.facts)

    @cached_property
    def rates(self) -> frozenset[str]:
        """The names by which the script itself moves parameters along their gradients, such as a learning rate."""
        run, out = self.facts.after, set[str]()
        for call in run.trace.calls:
            if call.in_place and call.receiver.of_kind("parameters") and any(loop for loop in call.loops):
                given = [*call.node.args, *(k.value for k in call.node.keywords)]
                parts = [n for g in given for n in walk(g)]
                if any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in parts):
                    out |= {n.id for n in parts if isinstance(n, ast.Name)}
        return frozenset(out)

    def divided(self, size: ast.expr, otherwise: str = "") -> tuple[list[Edit], tuple[str, ...]]:
        """The edits that make a batch size this rank's share of it, and what they need; none where it has one already."""
        if self.options.batch_size == "per-rank" or self.facts.after.value(size).of_kind("world"):
            return [], ()
        return [Replace(size, f"{self.names['per_rank']}({{0}}){otherwise}", (size,))], ("per_rank",)

    def sizes_a_batch(self, size: ast.expr) -> bool:
        """Whether a number is the batch size of a loader that feeds training."""
        run = self.facts.after
        sizes = {o for loader in self.facts.feeding for o in run.attribute(loader, "batch_size").objs}
        return bool(sizes & run.value(size).objs)

    @cached_property
    def begins_group(self) -> bool:
        """Whether the script begins a process group, as a converted one does."""
        return bool(self.facts.after.calls_of("torch.distributed.init_process_group"))

    @cached_property
    def apex_ddp(self) -> bool:
        """Whether models are wrapped in apex's DistributedDataParallel: where only its precision was asked for, only if it serves all."""
        asked = self.options.apex_ddp
        return asked and (self.options.ddp == "apex" or not any(apex_fails(self.facts, m)[1] for m in self.facts.models))

    def wrapper(self, inner: str, model: str, unused: str = "") -> str:
        """The expression that wraps `inner`, a module whose device is that of `model`; with `unused` it may leave out parameters."""
        if self.apex_ddp:
            return f"DistributedDataParallel({inner}{', delay_allreduce=True' if unused else ''})"
        if self.options.level:
            return f"DistributedDataParallel({inner}, device_ids=[{self.names['local_rank']}]{unused})"
        devices = f"[{self.names['local_rank']}] if next({model}.parameters()).is_cuda else None"
        return f"DistributedDataParallel({inner}, device_ids={devices}{unused})"

    @property
    def wrapper_imports(self) -> tuple[str, ...]:
        """The imports that a wrapper needs."""
        if self.apex_ddp:
            return ("from apex.parallel import DistributedDataParallel",)
        return ("import torch", "from torch.nn.parallel import DistributedDataParallel")

    def calls(self) -> list[Call]:
        """All calls of the entry."""
        return [c for c in self.facts.after.trace.calls if self.facts.is_edited(c.node)]

    def quoted(self, text: str) -> str:
        """A string as the file would write it."""
        written = self.facts.project.entry.source.text
        return repr(text) if written.count("'") > written.count('"') else f'"{text}"'

    def source(self, node: ast.expr) -> str:
        """The text of an expression as its file has it, its further lines moved to the left with its statement."""
        name = self.facts.tree_of(node).name
        file = self.facts.project.file(name)
        key, memo = ("lines", file.tree), self.facts.project.memo
        if key not in memo:
            memo[key] = list(io.StringIO(file.source.text, newline=""))  # as Python counts lines, which str.splitlines does not
        lines: list[str] = memo[key]  # type: ignore[assignment]
        part = [line.encode() for line in lines[node.lineno - 1 : node.end_lineno]]
        part[-1] = part[-1][: node.end_col_offset]
        text = b"".join((part[0][node.col_offset :], *part[1:])).decode()
        first, *rest = text.replace("\r\n", "\n").split("\n")
        line = lines[node.lineno - 1]
        indent = len(line) - len(line.lstrip())
        return "\n".join([first, *(part[indent:] if not part[:indent].strip() else part.lstrip() for part in rest)])

    def operand(self, node: ast.expr) -> str:
        """The text of an expression, as something may be read of it or stand beside an operator: in parentheses unless it is one piece."""
        text = self.source(node)
        return text if isinstance(node, _PIECES) else f"({text})"


def _binding(statement: ast.stmt) -> list[tuple[str, ast.expr]]:
    """The name that a statement `name = value` binds, with its value; empty for other statements."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return [(statement.targets[0].id, statement.value)]
    return []


def argument(call: ast.Call, position: int | None, keyword: str) -> ast.expr | None:
    """The expression passed at `position` or as `keyword`; None where there is none or a `*args` hides it."""
    for k in call.keywords:
        if k.arg == keyword:
            return k.value
    if position is not None and position < len(call.args) and not any(isinstance(a, ast.Starred) for a in call.args[: position + 1]):
        return call.args[position]
    return None


__all__ = ["NOTHING", "Context", "argument"]
