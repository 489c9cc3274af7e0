"""What batches of graphs hold, which lie side by side in one large graph, layers along their edges, and pooling over each graph.

Checked on torch_geometric 2.8.1.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ddpify.facts import graphs
from ddpify.facts.library import paths
from ddpify.facts.library.generic import call_arguments
from ddpify.facts.library.row import Rule, Use
from ddpify.facts.model import NOTHING, Func, Lit, New, Tup, Value, join, just
from ddpify.facts.origins import Origin, without
from ddpify.placement.shape import Base, Shape
from ddpify.records import replace

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

GRAPHS = "torch_geometric.data.Batch"
_OF_NODES = ("x", "pos", "z", "edge_index", "edge_attr", "edge_weight")  # rows of nodes or edges, of which graphs have different numbers
_LAYERS = frozenset(
    f"torch_geometric.nn.{home}{name}"
    for home in ("", "conv.")
    for name in """
        GCNConv SAGEConv GATConv GATv2Conv GraphConv ChebConv TAGConv SGConv TransformerConv ResGatedGraphConv GINConv GINEConv
        PNAConv NNConv GENConv CGConv ARMAConv LEConv MFConv ClusterGCNConv GatedGraphConv EdgeConv APPNP GCN2Conv FAConv
        GCN GraphSAGE GIN GAT PNA EdgeCNN
    """.split()
)
_OF_EACH = frozenset(f"torch_geometric.nn.{name}" for name in ("Linear", "dense.Linear", "BatchNorm", "norm.BatchNorm"))  # row by row
_OF_GRAPHS = frozenset(f"torch_geometric.nn.{home}{name}" for home in ("", "norm.") for name in ("GraphNorm", "InstanceNorm", "PairNorm"))
_READOUTS = frozenset(
    f"torch_geometric.nn.{home}{name}"
    for home in ("", "aggr.", "glob.")
    for name in """
        Set2Set AttentionalAggregation GlobalAttention SoftmaxAggregation SortAggregation MeanAggregation SumAggregation MaxAggregation
        MultiAggregation
    """.split()
)
_POOLING = frozenset(f"torch_geometric.nn.{home}{name}" for home in ("", "pool.") for name in ("TopKPooling", "SAGPooling"))
_SAME_NODES = """
    add_self_loops add_remaining_self_loops remove_self_loops to_undirected coalesce sort_edge_index dropout_edge dropout_adj
""".split()  # make other edges among the nodes
MESSAGE_PASSING = tuple(f"torch_geometric.nn.{home}MessagePassing" for home in ("", "conv.", "conv.message_passing."))

RUN_BY = {"propagate": ("message", "aggregate", "update")}  # methods of the script's own class that one of the library's calls


def batch_of_graphs(run: Interpreter, loader: New) -> Value | None:
    """What a loader of graphs gives: rows of nodes and edges, and of `y` one for each graph; None of any other loader.

    One that samples around nodes gives those first, with a `y` for each of its nodes.
    """
    if loader.path not in (paths.GRAPH_LOADER, paths.NODE_LOADER):
        return None
    around, origins = loader.path == paths.NODE_LOADER, frozenset((Origin("batch", loader),))
    of_nodes = origins | {Origin("sampled", loader)} if around else origins  # other ranks may have some of these nodes, too
    batch = run.objects.new(GRAPHS, loader.node, loader.stack)
    for name in (*_OF_NODES, *(("y", "n_id") if around else ())):
        run.memory[batch, name] = Value(frozenset(), of_nodes, "chosen", Shape(Base((loader.node, name)), several=None))
    run.memory[batch, "edge_index"] = Value(frozenset(), of_nodes | {Origin("edges", loader)}, "chosen", Shape(None, 2, axis=1))
    run.memory[batch, "pos"] = Value(frozenset(), of_nodes, "chosen", Shape(None, 2))
    for name in ("num_nodes", "num_edges"):
        run.memory[batch, name] = Value(frozenset(), of_nodes | {Origin("rows")}, "sum")
    run.memory[batch, paths.GIVEN] = Value(frozenset(), origins, "other")  # what else it holds may be of nodes or of graphs
    if around:
        run.memory[batch, "batch_size"] = Value(frozenset(), origins | {Origin("seeds", loader)}, "count")
        return Value(frozenset((batch,)), origins)
    run.memory[batch, "batch"] = Value(frozenset(), origins | {Origin("graph", loader)}, "chosen", Shape(None, 1))
    run.memory[batch, "y"] = Value(frozenset(), origins, "sample", Shape(Base((loader.node, "y")), several=None))
    for name in ("num_graphs", "batch_size"):
        run.memory[batch, name] = Value(frozenset(), origins, "count")
    return Value(frozenset((batch,)), origins)


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
    found = graphs.added_up(use.node, use.argument(1, "batch"), use.argument(0, "x"))
    if found is None or found.scale != "sample":
        return None
    call_arguments(use)
    return Value(frozenset(), found.origins, "sample", Shape(None, 2))


def _scattered(use: Use) -> Value | None:
    """`scatter(x, index, dim=0)`: the rows of each node's edges, or of each graph's nodes, made one; of extremes, with their places."""
    rows, dim = use.argument(0, "src"), use.argument(2, "dim")
    found = graphs.added_up(use.node, use.argument(1, "index"), rows)
    first = rows.shape is not None and rows.shape.ndim == 1 if not dim.objs else {getattr(o, "value", None) for o in dim.objs} == {0}
    if found is None or not (first or (not dim.objs and use.path == "torch_geometric.utils.scatter")):
        return None
    found = Value(frozenset(), found.origins, found.scale, rows.shape)
    return just(Tup((found, Value(frozenset(), found.origins, "other")))) if use.name in ("scatter_max", "scatter_min") else found


def _degree(use: Use) -> Value | None:
    """How many edges each node has, or how many nodes each graph."""
    found = graphs.added_up(use.node, use.argument(0, "index"))
    return Value(frozenset(), found.origins, found.scale, Shape(None, 1)) if found is not None else None


def _softmax(use: Use) -> Value | None:
    """A softmax over the edges of each node, or the nodes of each graph."""
    rows = use.argument(0, "src")
    found = graphs.added_up(use.node, use.argument(1, "index"), rows)
    return Value(frozenset(), found.origins, "chosen", rows.shape) if found is not None and rows.scale == "chosen" else None


def _edges(use: Use) -> Value | None:
    """Other edges among the nodes of the same graphs, and what belongs to each: a tuple, or the edges where it is used as such."""
    edges, attributes = use.argument(0, "edge_index"), use.argument(1, "edge_attr", "edge_weight")
    if graphs.numbers_of(edges)[0] != "edges" or any(v.scale not in (None, "chosen", "sum") for v in (*use.args, *use.keywords.values())):
        return None
    of_edges = attributes if attributes.scale == "chosen" else Value(frozenset(), graphs.unnumbered(edges), "chosen", Shape(None, 1))
    if use.name == "to_undirected" and attributes.scale is None:
        return edges
    return Value(frozenset((Tup((edges, of_edges)),)), edges.origins, edges.scale, edges.shape)


def _near(use: Use) -> Value | None:
    """`knn_graph(x, k, batch)`: edges between points of one graph."""
    points, graph = use.argument(0, "x"), use.argument(2, "batch")
    kind, loaders = graphs.numbers_of(graph)
    if kind != "graph" or points.scale != "chosen" or not loaders <= points.batches():
        return None
    return Value(frozenset(), graphs.unnumbered(points, graph) | {Origin("edges", of) for of in loaders}, "chosen", Shape(None, 2, axis=1))


def _dense(use: Use) -> Value | None:
    """`to_dense_batch(x, batch)`, `to_dense_adj(edge_index, batch)`: the rows of each graph, filled up to the most that one of them has."""
    rows, graph = use.argument(0, "x", "edge_index"), use.argument(1, "batch")
    kind, loaders = graphs.numbers_of(graph)
    if kind != "graph" or rows.scale != "chosen" or not loaders <= rows.batches():
        return None
    filled = Value(frozenset(), graphs.unnumbered(rows, graph), "sample", Shape(None, 3))
    if use.name == "to_dense_adj":
        return Value(filled.objs, filled.origins, "sample", Shape(use.node)) if use.argument(2, "edge_attr").scale else filled
    return just(Tup((filled, Value(frozenset(), filled.origins, "sample", Shape(None, 2)))))


def _unfollowed(use: Use) -> Value | None:
    """A function of nodes and edges that has no row: it may join those of different graphs."""
    function = use.name[:1].islower() and use.mixed.scale is not None
    return Value(frozenset(), graphs.unnumbered(use.mixed), "other") if function else None


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
    if obj.path in _OF_GRAPHS | _READOUTS:
        return _of_each_graph(obj, args, keywords)
    if obj.path not in _LAYERS | _POOLING:
        return None
    nodes = args[0] if args else keywords.get("x", NOTHING)
    edges = args[1] if len(args) > 1 else keywords.get("edge_index", NOTHING)
    own = any(o.cls is not None for _, v in run.memory.of(obj) for o in v.instances())  # as the `nn` of a GINConv
    if own or not _along_edges(nodes, edges, given):
        return None
    found = Value(frozenset(), graphs.unnumbered(*given), "chosen", Shape(None, 2))
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


def _of_each_graph(obj: New, args: Sequence[Value], keywords: Mapping[str, Value]) -> Value | None:
    """What is computed of the nodes of each graph on its own: a row for each node, or for each graph; None without its number."""
    rows = args[0] if args else keywords.get("x", NOTHING)
    index = args[1] if len(args) > 1 else keywords.get("batch", keywords.get("index", NOTHING))
    found = graphs.added_up(obj.node, index, rows)
    if found is None or found.scale != "sample" or rows.scale != "chosen":
        return None
    return Value(frozenset(), found.origins, "sample", Shape(None, 2)) if obj.path in _READOUTS else replace(rows, origins=found.origins)


def _propagated(use: Use) -> Value | None:
    """`self.propagate(edge_index, x=x)`: the messages that reach the nodes along edges, by the script's own `message` and `update`."""
    run, of, texts = use.run, use.of, [v for v in use.args[:1] if any(isinstance(o, Lit) for o in v.objs)]  # how they are added up
    edges = use.argument(len(texts), "edge_index")
    given = {k: v for k, v in use.keywords.items() if k not in ("edge_index", "size")}
    if not isinstance(of, New) or of.cls is None or not use.mixed.scale:
        return None
    nodes, unknown = given.get("x", NOTHING), Value(frozenset(), use.mixed.origins, "other")
    if run.find(of.cls, "aggregate") is not None or not _along_edges(nodes, edges, [*given.values()]):
        return unknown
    messages = nodes
    index = Value(edges.objs, edges.origins, edges.scale, Shape(None, 1))  # the end that each edge leads to
    rows = Value(frozenset(), graphs.unnumbered(nodes) | {Origin("rows")}, "sum")
    asked = {"index": index, "edge_index": edges, **dict.fromkeys(("size_i", "size_j", "dim_size"), rows)}
    for name, more in (("message", asked), ("update", {})):
        found = run.find(of.cls, name) or NOTHING
        parts = [_called(use, f, {**given, **more}, messages, name == "update") for f in found.objs if isinstance(f, Func)]
        messages = join(parts) if parts else messages
        if messages.scale != "chosen":
            return unknown
    return Value(frozenset(), messages.origins | graphs.unnumbered(use.mixed), "chosen", messages.shape)


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
    **{f"torch_geometric.nn.{home}{name}": _near for home in ("", "pool.") for name in ("knn_graph", "radius_graph")},
    **dict.fromkeys(("torch_cluster.knn_graph", "torch_cluster.radius_graph"), _near),
    **{f"torch_geometric.utils.{name}": _dense for name in ("to_dense_batch", "to_dense_adj")},
    **{f"torch_geometric.utils.{home}softmax": _softmax for home in ("", "softmax.")},
    **{f"torch_geometric.utils.{home}degree": _degree for home in ("", "degree.")},
    **{f"torch_geometric.utils.{name}": _edges for name in _SAME_NODES},
    "torch_geometric.utils.scatter": _scattered,
    **{f"torch_scatter.{name}": _scattered for name in "scatter scatter_add scatter_sum scatter_mean scatter_max scatter_min".split()},
}
