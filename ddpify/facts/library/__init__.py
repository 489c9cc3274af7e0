"""What the libraries do: one file of rows for each library that training scripts call, and one for each question about all of them.

`row.py` says how a row is read and how one is added. Functions: `python.py`, `numpy.py`, `torch.py`, `distributed.py`, `apex.py`,
`packages.py`, and a file for each larger package (`transformers.py`, `timm.py`, ...); what objects keep of what they are made with:
`constructors.py`; methods: `methods.py`, `tensor_methods.py`; files and side effects: `files.py`, `effects.py`; what differs between
processes: `ranks.py`; what is asked for by its name: `paths.py`. Classes and functions of packages whose code says best how their results
depend on a batch stand as source in templates/library.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ddpify.facts.library import apex, distributed, numpy, packages, peft, python, torch, torch_geometric
from ddpify.facts.library.classifiers import output_shape
from ddpify.facts.library.compared import compared
from ddpify.facts.library.constructors import construct, construction, is_optimizer, optimizer_path
from ddpify.facts.library.containers import columns, grown, keys, put, shown_as_table
from ddpify.facts.library.effects import EFFECTS as EFFECTS
from ddpify.facts.library.flow import agreed, gradient_of, mixed, same_rows, share_of, weight, whole, with_entries
from ddpify.facts.library.generic import instance
from ddpify.facts.library.layers import allocates, bare, clips, has_parameters, may_have_bias
from ddpify.facts.library.methods import call_method
from ddpify.facts.library.ordering import drawn_by, with_order
from ddpify.facts.library.paths import *
from ddpify.facts.library.row import Rule, Use, row_of, rows_of
from ddpify.facts.library.tensor_methods import call_tensor, tensor_attribute
from ddpify.facts.library.torch_geometric import GRAPHS, RUN_BY, batch_of_graphs, seed_rows
from ddpify.facts.library.torch_geometric import layer as graph_layer
from ddpify.facts.library.torchvision import detector_losses
from ddpify.facts.library.transformers import Labelled, first_output_of, labelled, output_of
from ddpify.facts.model import Call, Value

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

_TABLES = (python, numpy, torch, distributed, apex, packages, peft, torch_geometric)
_ROWS: dict[str, Rule] = {path: rule for table in _TABLES for path, rule in table.ROWS.items()}


@lru_cache(maxsize=4096)
def _rules(path: str) -> tuple[Rule, ...]:
    """What is asked of a call by its path, the longest row first."""
    return (*rows_of(_ROWS, path, of_classes=False), instance)


def call(run: Interpreter, event: Call, path: str, args: list[Value], keywords: dict[str, Value]) -> Value:
    """Call a library's function or class by its canonical path."""
    use = Use(run, event, path, args, keywords)
    return next(result for rule in _rules(path) if (result := rule(use)) is not None)
