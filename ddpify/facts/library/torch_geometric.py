"""What batches of graphs hold, which lie side by side in one large graph, and pooling over each. Checked on torch_geometric 2.8.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddpify.facts.library import paths
from ddpify.facts.library.generic import call_arguments
from ddpify.facts.library.row import Rule, Use
from ddpify.facts.model import New, Origin, Value
from ddpify.placement.shape import Shape

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

_OF_NODES = ("x", "pos", "z", "edge_index", "edge_attr", "edge_weight")  # rows of nodes or edges, of which graphs have different numbers


def batch_of_graphs(run: Interpreter, loader: New) -> Value | None:
    """What a loader of graphs gives: rows of nodes and edges, and of `y` one for each graph; None of any other loader."""
    if loader.path != paths.GRAPH_LOADER:
        return None
    origins = frozenset((Origin("batch", loader),))
    graphs = run.objects.new("torch_geometric.data.Batch", loader.node, loader.stack)
    for name in _OF_NODES:
        run.memory[graphs, name] = Value(frozenset(), origins, "chosen", Shape(loader.node, several=None))
    run.memory[graphs, "batch"] = Value(frozenset(), origins | {Origin("graph", loader)}, "chosen", Shape(None, 1))
    run.memory[graphs, "y"] = Value(frozenset(), origins, "sample", Shape(loader.node, several=None))
    for name in ("num_graphs", "batch_size"):
        run.memory[graphs, name] = Value(frozenset(), origins, "count")
    run.memory[graphs, paths.GIVEN] = Value(frozenset(), origins, "other")  # what else it holds may be of nodes or of graphs
    return Value(frozenset((graphs,)), origins)


def _pooled(use: Use) -> Value | None:
    """A row for each graph, of those of its nodes."""
    nodes, graph = use.argument(0, "x"), use.argument(1, "batch")
    if nodes.scale != "chosen" or not graph.of_kind("graph") or not nodes.batches() >= graph.of_kind("graph"):
        return None
    call_arguments(use)
    return Value(frozenset(), frozenset(o for o in use.mixed.origins if o.kind != "graph"), "sample", Shape(None, 2))


ROWS: dict[str, Rule] = {
    f"torch_geometric.nn.{home}global_{how}_pool": _pooled for home in ("", "pool.", "glob.") for how in ("mean", "add", "max", "sum")
}
