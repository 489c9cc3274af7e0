"""What code draws at random: which of the generators that a process has, or numbers that no seed makes the same on all ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ddpify.edits import Under
from ddpify.facts import library
from ddpify.facts.collect import batches_of
from ddpify.facts.model import NOTHING, Call, Class, Ext, Func, Module, New, Obj
from ddpify.facts.names import canonical
from ddpify.records import dataclass, field
from ddpify.rules.base import Change
from ddpify.rules.context import Context

_OWN = frozenset(("RandomState", "default_rng", "Generator", "PCG64", "MT19937", "SeedSequence", "Random", "bit_generator"))
_TORCH = frozenset(
    """
        rand randn randint randperm normal bernoulli multinomial rand_like randn_like randint_like poisson random_split
        RandomSampler SubsetRandomSampler WeightedRandomSampler
    """.split()
)
_SEEDING = frozenset(("numpy.random.seed", "random.seed", "torch.seed", *(f"numpy.random.{n}" for n in _OWN), "random.Random"))
_UNSHARED = ("time.", "datetime.", "secrets.", "uuid.", "os.urandom", "os.getpid", "random.SystemRandom", "torch.seed", "socket.")
_USUAL = {"numpy": ("np", "numpy", "numpy_package"), "random": ("random", "random_package")}
BESIDE_TORCH = frozenset(_USUAL)
GENERATOR_OF = {"sklearn": "numpy"}  # whose generator a library draws from
SEEDING = frozenset(("torch.manual_seed", "numpy.random.seed", "random.seed"))
_GENERATORS = frozenset(("torch", "numpy", "random", "sklearn"))  # packages whose generators are seeded one by one
_COMPUTES = (
    *(f"sklearn.{n}." for n in ("preprocessing", "metrics", "feature_extraction", "base", "utils.class_weight")),
    *(f"scipy.{n}." for n in ("io", "signal", "ndimage", "special", "spatial", "interpolate", "linalg", "fft", "misc", "integrate")),
)


@dataclass
class Draws:
    """What objects draw: `generators` of numpy, random and torch; `unshared` what differs from process to process; `workers` asked for."""

    context: Context
    generators: set[str] = field(default_factory=set)
    unshared: list[ast.AST] = field(default_factory=list)
    workers: bool = False
    seen: set[object] = field(default_factory=set)

    def instance(self, obj: Obj) -> None:
        """Follow an object: its class, and the objects that it holds."""
        if obj in self.seen:
            return
        self.seen.add(obj)
        if isinstance(obj, (Class, Func)):
            self._definition(obj)
        elif isinstance(obj, New):
            if obj.cls is not None:
                self._definition(obj.cls)
            elif obj.path == "generator" and isinstance(obj.node, ast.Call):
                for func in self.context.facts.after.value(obj.node.func).objs:
                    self.instance(func)
            else:
                self._path(obj.path, obj.node)
            for value in self.context.facts.after.of(obj).values():
                for inner in value.objs:
                    self.instance(inner)

    def _definition(self, code: Class | Func) -> None:
        if code.node in self.seen:
            return
        self.seen.add(code.node)
        self.code(code.node, code.file)
        for base in (o for value in code.bases for o in value.objs) if isinstance(code, Class) else ():
            if isinstance(base, Class):
                self._definition(base)

    def code(self, root: ast.AST, file: str) -> None:
        """Follow a piece of code: what it names, and the project's own that it names."""
        inner: set[ast.AST] = set()
        for node in _outermost(root):
            if isinstance(node, ast.Attribute) and node.attr in library.FILLS:
                self.generators.add("torch")
            if not isinstance(node, (ast.Name, ast.Attribute)) or node in inner:
                continue
            part: ast.expr = node
            while isinstance(part, ast.Attribute):
                part = part.value
                inner.add(part)
            for obj in self._named(node, file):
                if isinstance(obj, Ext):
                    self._path(obj.path, node)
                elif isinstance(obj, (Class, Func)):
                    self.instance(obj)

    def _named(self, node: ast.expr, file: str) -> frozenset[Obj]:
        """What a dotted name of a module is."""
        if isinstance(node, ast.Attribute):
            out: set[Obj] = set()
            for obj in self._named(node.value, file):
                if isinstance(obj, Ext):
                    out.add(Ext(canonical(f"{obj.path}.{node.attr}")))
                elif isinstance(obj, Module):
                    out |= self.context.facts.after.memory.get((obj.name, node.attr), NOTHING).objs
            return frozenset(out)
        if isinstance(node, ast.Name):
            objs = self.context.facts.after.value(node).objs or self.context.facts.after.memory.get((file, node.id), NOTHING).objs
            return frozenset(o for o in objs if isinstance(o, (Ext, Class, Func, Module)))
        return frozenset()

    def _path(self, path: str, node: ast.AST) -> None:
        root, last = path.partition(".")[0], path.rpartition(".")[2]
        if path.startswith(_UNSHARED) or (path in _SEEDING and self._seeds_from_nothing(node)):
            self.unshared.append(node)
        elif path.startswith("numpy.random") and last not in _OWN:
            self.generators.add("numpy")
        elif root == "random" and last not in _OWN:
            self.generators.add("random")
        elif root in ("sklearn", "scipy") and not path.startswith(_COMPUTES):
            self.generators.add("numpy")
        elif root == "torch" and last in _TORCH and not self._seeded(node):
            self.generators.add("torch")
        elif path == "torch.utils.data.get_worker_info":
            self.workers = True

    def _seeds_from_nothing(self, node: ast.AST) -> bool:
        """Whether a call that seeds is given nothing."""
        call = self._call(node)
        return call is not None and not call.args and not call.keywords

    def _seeded(self, node: ast.AST) -> bool:
        call = self._call(node)
        return call is not None and any(k.arg == "generator" for k in call.keywords)

    def _call(self, node: ast.AST) -> ast.Call | None:
        if isinstance(node, ast.Call):
            return node
        tree = self.context.facts.after.scopes.tree(node)
        up = tree.parent.get(node) if tree is not None else None
        return up if isinstance(up, ast.Call) and up.func is node else None


def of(context: Context, objs: frozenset[Obj] | frozenset[New]) -> Draws:
    """What the code of some objects draws."""
    draws = Draws(context)
    for obj in objs:
        draws.instance(obj)
    return draws


def seed_of(call: Call) -> ast.expr | None:
    """What a call that seeds is given."""
    return next(iter(call.node.args), None) or next((k.value for k in call.node.keywords if k.arg == "seed"), None)


def seeding_calls(context: Context) -> list[Call]:
    """The calls that give a generator that all use a seed."""
    calls = (c for c in context.facts.after.trace.calls if seed_of(c) is not None)
    return [c for c in calls if c.func.paths() & SEEDING or seeds_all(c)]


def seeds_all(call: Call) -> bool:
    """Whether a function of another library seeds all generators, as is known or as its name says."""
    paths = [p for p in call.func.paths() if p.partition(".")[0] not in _GENERATORS]
    return any(p in library.SEEDS_ALL or "seed" in p.rpartition(".")[2] for p in paths)


def made_apart(context: Context, objs: Iterable[New]) -> bool:
    """Whether objects are made from a clock, or from what differs from process to process: then each rank has others."""
    calls = (c for o in objs for c in context.facts.after.calls(o.node))
    return any(v.of_kind("time") or v.of_kind("process") for c in calls for v in (*c.args, *c.keywords.values()))


def _outermost(root: ast.AST) -> Iterator[ast.AST]:
    """All nodes, those around others first."""
    todo = [root]
    for node in todo:
        yield node
        todo += ast.iter_child_nodes(node)


def generator_name(context: Context, root: str, place: ast.AST | None = None) -> str:
    """What names a library's generator in the file of a place, by default the entry: its own import, or else that of `import_of`."""
    own = "torch" if root == "torch" else _imported(context, root, place) or _held(context, root, place)
    return (own or context.free_name(_USUAL[root], place)) + (".random" if root == "numpy" else "")


def import_of(context: Context, root: str, place: ast.AST | None = None) -> tuple[str, ...]:
    """The import of a library's generator by its name in the file of a place; none where that has its own."""
    if root == "torch" or _imported(context, root, place):
        return ()
    name = generator_name(context, root, place).removesuffix(".random")
    return (f"import {root}" + (f" as {name}" if name != root else ""),)


def _imported(context: Context, root: str, place: ast.AST | None) -> str:
    """The name under which the file of a place imports numpy or random; empty where it does not."""
    tree = context.facts.trees["__main__"] if place is None else context.facts.tree_of(place)
    for node in tree.of(ast.alias):
        if isinstance(tree.parent[node], ast.Import) and node.name == root and isinstance(tree.function(node), ast.Module):
            return node.asname or node.name
    return ""


def _held(context: Context, root: str, place: ast.AST | None) -> str:
    """The name under which the file of a place has numpy or random by an import of all names of a module; empty where it has not."""
    held = context.facts.after.of((context.facts.trees["__main__"] if place is None else context.facts.tree_of(place)).name)
    return next((name for name in _USUAL[root] if name in held and held[name].paths() == {root}), "")


def by_rank_zero(context: Context, nodes: Iterable[ast.AST]) -> bool:
    """Whether all ranks draw what rank 0 draws where one of some calls, each of which is made by the one before, stands."""
    for node in nodes:
        for up in context.facts.tree_of(node).ancestors(node):
            heads = [item.context_expr for item in up.items] if isinstance(up, ast.With) else []
            if any(map(context.broadcasts, heads)):
                return True
    return False


def under_rank_zero(context: Context, code: str, why: str, statement: ast.stmt, roots: Iterable[str]) -> Change:
    """Let all ranks draw in a statement what rank 0 draws, by generators of some libraries."""
    needs, imports = ["drawn_by_rank_zero"], list[str]()
    for root in sorted(GENERATOR_OF.get(root, root) for root in roots):
        needs.append(f"draws:{root}:{generator_name(context, root)}")
        imports += import_of(context, root)
    edit = Under(statement, f"with {context.names['drawn_by_rank_zero']}()", along=True)
    return Change(code, why, context.tree.shown, statement, (edit,), tuple(imports), needs=tuple(needs))


def drawn_from(context: Context) -> set[New]:
    """The data sets and samplers of the loaders."""
    run = context.facts.after
    return {o for x in context.facts.loaders for n in ("dataset", "sampler", "batch_sampler") for o in run.attribute(x, n).instances()}


def redrawn(context: Context) -> dict[ast.Call, Draws]:
    """Calls of a data set's or sampler's methods between epochs that draw, with what they draw."""
    run, training = context.facts.after, context.facts.training_loops
    batches = {t.batch.node for t in context.facts.loops if t.batch is not None and batches_of(run, t.batch.element)}
    objects = drawn_from(context)
    out: dict[ast.Call, Draws] = {}
    for call in run.trace.calls:
        around = {loop.node for loop in call.loops}
        methods = frozenset(
            o for o in call.func.objs if isinstance(o, Func) and o.owner in objects and getattr(o.owner, "node", None) not in call.stack
        )  # not those that the making of the object runs
        if call.node not in out and around & training and not around & batches and methods:
            drawn = of(context, methods)
            if drawn.generators and not by_rank_zero(context, [call.node]):
                out[call.node] = drawn
    return out
