"""What batches of graphs hold, which lie side by side in one large graph, layers along their edges, and pooling over each graph.

Checked on torch_geometric 2.8.1.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ddpify.facts.library import flow, paths
from ddpify.facts.library.generic import call_arguments
from ddpify.facts.library.row import Rule, Use
from ddpify.facts.model import NOTHING, Func, New, Tup, Value, join, just
from ddpify.facts.origins import Origin, without
from ddpify.placement.shape import Shape

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

GRAPHS = "torch_geometric.data.Batch"
_OF_NODES = ("x", "pos", "z", "edge_index", "edge_attr", "edge_weight")  # rows of nodes or edges, of which graphs have different numbers
_LAYERS = frozenset(
    f"torch_geometric.nn.{home}{name}"
    for home in ("", "conv.")
    for name in """
        GCNConv SAGEConv GATConv GATv2Conv GraphConv ChebConv TAGConv SGConv TransformerConv ResGatedGraphConv GINConv GINEConv
        PNAConv NNConv GENConv CGConv ARMAConv LEConv MFConv ClusterGCNConv GatedGraphConv EdgeConv APPNP
    """.split()
)
_OF_EACH = frozenset(f"torch_geometric.nn.{name}" for name in ("Linear", "dense.Linear", "BatchNorm", "norm.BatchNorm"))  # row by row
_POOLING = frozenset(f"torch_geometric.nn.{home}{name}" for home in ("", "pool.") for name in ("TopKPooling", "SAGPooling"))
MESSAGE_PASSING = tuple(f"torch_geometric.nn.{home}MessagePassing" for home in ("", "conv.", "conv.message_passing."))


def batch_of_graphs(run: Interpreter, loader: New) -> Value | None:
    """What a loader of graphs gives: rows of nodes and edges, and of `y` one for each graph; None of any other loader.

    One that samples around nodes gives those first, with a `y` for each of its nodes.
    """
    if loader.path not in (paths.GRAPH_LOADER, paths.NODE_LOADER):
        return None
    around, origins = loader.path == paths.NODE_LOADER, frozenset((Origin("batch", loader),))
    of_nodes = origins | {Origin("sampled", loader)} if around else origins  # other ranks may have some of these nodes, too
    graphs = run.objects.new(GRAPHS, loader.node, loader.stack)
    for name in (*_OF_NODES, *(("y", "n_id") if around else ())):
        run.memory[graphs, name] = Value(frozenset(), of_nodes, "chosen", Shape(loader.node, several=None))
    edges = run.memory[graphs, "edge_index"]
    run.memory[graphs, "edge_index"] = Value(edges.objs, of_nodes | {Origin("edges", loader)}, edges.scale, edges.shape)
    run.memory[graphs, paths.GIVEN] = Value(frozenset(), origins, "other")  # what else it holds may be of nodes or of graphs
    if around:
        run.memory[graphs, "batch_size"] = Value(frozenset(), origins | {Origin("seeds", loader)}, "count")
        return Value(frozenset((graphs,)), origins)
    run.memory[graphs, "batch"] = Value(frozenset(), origins | {Origin("graph", loader)}, "chosen", Shape(None, 1))
    run.memory[graphs, "y"] = Value(frozenset(), origins, "sample", Shape(loader.node, several=None))
    for name in ("num_graphs", "batch_size"):
        run.memory[graphs, name] = Value(frozenset(), origins, "count")
    return Value(frozenset((graphs,)), origins)


def seed_rows(run: Interpreter, base: Value, rows: ast.expr) -> Value | None:
    """`x[: batch.batch_size]` of the nodes of a batch: a row for each of those around which it was sampled; None of other entries."""
    if base.scale != "chosen" or not isinstance(rows, ast.Slice) or rows.lower is not None or rows.step is not None or rows.upper is None:
        return None
    count = run.trace.values.get(rows.upper, NOTHING)
    seeds = count.of_kind("seeds")
    known = count.scale == "count" and bool(seeds) and seeds == base.batches()
    return Value(frozenset(), without(base.origins, "sampled"), "sample", base.shape) if known else None


def _pooled(use: Use) -> Value | None:
    """A row for each graph, of those of its nodes."""
    nodes, graph, origins = use.argument(0, "x"), use.argument(1, "batch"), _without_marks(use.mixed)
    if nodes.scale != "chosen" or not graph.of_kind("graph") or not nodes.batches() >= graph.of_kind("graph"):
        return None
    call_arguments(use)
    return Value(frozenset(), origins, "sample", Shape(None, 2))


def _unfollowed(use: Use) -> Value | None:
    """A function of nodes and edges that has no row: it may join those of different graphs."""
    function = use.name[:1].islower() and use.mixed.scale is not None
    return Value(frozenset(), _without_marks(use.mixed), "other") if function else None


def _without_marks(given: Value) -> frozenset[Origin]:
    """What something is made of that no longer tells which nodes belong together."""
    return without(given.origins, "graph", "edges")


def _along_edges(nodes: Value, edges: Value, others: Sequence[Value]) -> bool:
    """Whether rows of nodes meet along the edges of their batch's own graphs only."""
    known = nodes.scale == edges.scale == "chosen" and bool(edges.of_kind("edges")) and edges.of_kind("edges") <= nodes.batches()
    return known and all(v.scale in (None, "chosen") for v in others)


def layer(run: Interpreter, obj: New, args: Sequence[Value], keywords: Mapping[str, Value]) -> Value | None:
    """What a layer of the library gives for nodes and the edges between them: a row for each node; None of what is not known.

    Of one that pools, a tuple: the nodes that it keeps of each graph, their edges and what belongs to those, and the graph of each node.
    """
    given = [*args, *keywords.values()]
    if obj.path in _OF_EACH and len(given) == 1 and given[0].scale in ("sample", "chosen"):
        return Value(frozenset(), given[0].origins, given[0].scale, given[0].shape)
    if obj.path not in _LAYERS | _POOLING:
        return None
    nodes = args[0] if args else keywords.get("x", NOTHING)
    edges = args[1] if len(args) > 1 else keywords.get("edge_index", NOTHING)
    own = any(o.cls is not None for _, v in run.memory.of(obj) for o in v.instances())  # as the `nn` of a GINConv
    if own or not _along_edges(nodes, edges, given):
        return None
    found = Value(frozenset(), _without_marks(flow.mixed(given, {})), "chosen", Shape(None, 2))
    if obj.path in _LAYERS:
        return found
    attributes, batch = (
        args[2] if len(args) > 2 else keywords.get("edge_attr", NOTHING),
        args[3] if len(args) > 3 else keywords.get("batch", NOTHING),
    )
    if not batch.of_kind("graph"):
        return None
    kept = [Value(frozenset(), v.origins | found.origins, v.scale, v.shape) for v in (edges, attributes, batch)]
    return just(Tup((found, *kept, found, found)))


def _propagated(use: Use) -> Value | None:
    """`self.propagate(edge_index, x=x)`: the messages that reach the nodes along edges, by the script's own `message` and `update`."""
    edges, run, of = use.argument(0, "edge_index"), use.run, use.of
    given = {k: v for k, v in use.keywords.items() if k not in ("edge_index", "size")}
    if not isinstance(of, New) or of.cls is None or not use.mixed.scale:
        return None
    nodes, unknown = given.get("x", NOTHING), Value(frozenset(), use.mixed.origins, "other")
    other = any(run.find(of.cls, name) is not None for name in ("aggregate", "message_and_aggregate"))
    if other or not _along_edges(nodes, edges, [*given.values()]):
        return unknown
    messages = nodes
    for name, more in (("message", {"index": edges}), ("update", {})):
        found = run.find(of.cls, name) or NOTHING
        parts = [_called(use, f, {**given, **more}, messages, name == "update") for f in found.objs if isinstance(f, Func)]
        messages = join(parts) if parts else messages
        if messages.scale != "chosen":
            return unknown
    return Value(frozenset(), messages.origins | _without_marks(use.mixed), "chosen", messages.shape)


def _called(use: Use, function: Func, given: Mapping[str, Value], messages: Value, after: bool) -> Value:
    """What `message(x_i, x_j, weight)` gives for the rows of each edge's ends, or `update(messages, x)`."""
    names = [p.arg for p in function.node.args.args[1:]]
    first = {names[0]: messages} if names and after else {}
    ends = {n: given[n[:-2]] for n in names if n.endswith(("_i", "_j")) and n[:-2] in given}
    unknown = {n: Value(frozenset(), messages.origins, "other") for n in names}
    values = {**unknown, **{n: given[n] for n in names if n in given}, **ends, **first}
    return use.run.call_function(use.run.objects.bound(function, use.of, function.cls), use.node, [], values)


METHODS: dict[str, Rule] = {"propagate": _propagated}
ROWS: dict[str, Rule] = {
    **dict.fromkeys("torch_geometric.nn torch_geometric.utils torch_scatter torch_cluster torch_sparse".split(), _unfollowed),
    **{f"torch_geometric.nn.{home}global_{how}_pool": _pooled for home in ("", "pool.", "glob.") for how in ("mean", "add", "max", "sum")},
}
