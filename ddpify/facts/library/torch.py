"""Rows of torch: functions of tensors, what they are made by, gradients, data, devices.

A function in lower case is followed by its name through the placement rules (`placement/rows.py`), a class makes an object; only what is
neither has a row here. Modules keep what `constructors.py` says, and their calls are followed by `placement/rows.py`, too.
"""

from __future__ import annotations

import ast
from functools import partial

from ddpify.facts import drawn_rows, drivers, tensors, uniform
from ddpify.facts.library import flow
from ddpify.facts.library.generic import array_function, called_later, cased, computed, drawn, first, fresh, instance, nothing, uncalled
from ddpify.facts.library.paths import AUTOCASTS, COLLECTIONS, DATAPARALLEL, DDPS, MAPPED, NO_GRAD, PARAMETER, PARTS
from ddpify.facts.library.row import Rule, Use
from ddpify.facts.model import NOTHING, Lit, New, Obj, Tup, Value, join, just
from ddpify.facts.origins import Origin, without
from ddpify.facts.tree import names_stored, scope_nodes
from ddpify.placement import rows
from ddpify.placement.shape import ROWS as SAMPLES
from ddpify.placement.shape import Scale, Shape
from ddpify.records import replace


def _distribution(use: Use) -> Value | None:
    """A distribution whose parameters come from a batch; None of any other."""
    known = use.mixed.scale is not None and use.name in rows.DISTRIBUTIONS
    return array_function(use, rows.DISTRIBUTIONS) if known else None


# ------------------------------------------------------------------------------------------------ new tensors


def of_size(use: Use, drawn: bool = False) -> Value:
    """A tensor of a size that is given, or of numbers."""
    origins = use.mixed.origins | (flow.drawn(use.path, use.node) if drawn else frozenset())
    trained = flow.is_literal(use.keywords.get("requires_grad", NOTHING), True)
    args, keywords = use.args, use.keywords
    if drawn and not trained:
        args = [drawn_rows.for_each_sample(use.run, a) for a in args]
        keywords = {k: drawn_rows.for_each_sample(use.run, a) for k, a in keywords.items()}
        origins = origins.union(*(v.origins for v in (*args, *keywords.values())))
    if args == use.args and keywords == use.keywords:  # of a size that is not seen to be the batch's
        origins |= {Origin("sized", use.node)}
    tensor = tensors.made(use.run, use.name, use.node, args, keywords, origins)
    anew = tensor.scale in SAMPLES and bool(use.run.loops)  # with a row for each sample of a batch, as a first state is
    if trained and not anew:
        return flow.weight(use.run, use.node, shape=tensor.shape)
    return uniform.drawn_alike(tensor, use.node, use.args, use.keywords) if drawn else tensor


drawn_of_size = partial(of_size, drawn=True)  # random numbers


def _tensor(use: Use) -> Value:
    """What gives its first argument back as a tensor, or compiled."""
    value = use.args[0] if use.args else NOTHING
    return value | Value(frozenset(), flow.mixed(use.args[1:], use.keywords).origins)


def _of_numbers(use: Use) -> Value | None:
    """`tensor(numbers, requires_grad=True)`: a weight, unless the numbers are a batch's."""
    made = array_function(use)
    trained = flow.is_literal(use.keywords.get("requires_grad", NOTHING), True) and not use.mixed.of_kind("batch")
    return flow.weight(use.run, use.node, shape=made.shape if made is not None else None) if trained else made


def _compiled(use: Use) -> Value:
    """What torch.jit gives: a module that has the parameters of the one it is given, and no wrapper, whatever that one is in."""
    value = _tensor(use)
    inside = {o: use.run.memory.get((o, "module"), NOTHING) for o in value.instances() if o.path in DDPS}
    return join([replace(value, objs=value.objs - inside.keys()), *inside.values()]) if inside else value


def _variable(use: Use) -> Value:
    """`Variable(x, requires_grad=True)`: a weight, unless it is a batch."""
    value = use.args[0] if use.args else NOTHING
    trained = flow.is_literal(use.keywords.get("requires_grad", NOTHING), True) and not value.of_kind("batch")
    return flow.weight(use.run, use.node, value.origins) if trained else _tensor(use)


def _computed_again(use: Use) -> Value:
    """`checkpoint(function, *args)`: what the function gives."""
    if not use.args:
        return computed(use)
    own = ("use_reentrant", "context_fn", "determinism_check", "debug", "preserve_rng_state", "early_stop")
    return use.run.invoke(use.event, use.args[0], use.args[1:], {k: v for k, v in use.keywords.items() if k not in own})


def _computed_in_parts(use: Use) -> Value:
    """`checkpoint_sequential(functions, segments, input)`: what the functions, or a Sequential's modules, give one after another."""
    functions, value = use.argument(0, "functions"), use.argument(2, "input")
    out = [use.run.in_a_row(o, use.event, value) for o in functions.instances()]
    return join([v for v in out if v is not None]) if out and None not in out else computed(use)


def _of_weights(use: Use) -> Value:
    """`Embedding.from_pretrained(weights)`: a layer of the class."""
    return just(use.instance(use.path.removesuffix(".from_pretrained")))


def _parameter(use: Use) -> Value:
    value = use.args[0] if use.args else NOTHING
    return flow.weight(use.run, use.node, value.origins, value.shape if value.scale is None else None)


def _as_joined(use: Use, rows_: Value, lengths: Value) -> bool:
    """Whether tensors that were put one after another are taken apart again: into as many rows as the batch has, or as many chunks."""
    if any(map(rows_.of_kind, ("parts", "reordered", "steps"))) or (rows_.shape is not None and rows_.shape.axis):
        return False
    if not use.name.endswith("chunk"):
        return lengths.scale == "count" and not any(map(lengths.of_kind, ("fraction", "divided", "offset", "multiple")))
    joined = rows_.of_kind("joined")
    return (len(lengths.objs) == 1 and all(_chunks(use, join_) == lengths.objs for join_ in joined)) or _counts(use, joined)


def _counts(use: Use, joined: frozenset[object]) -> bool:
    """Whether there are as many chunks as a list has tensors, all of which were put one after another: `cat(views).chunk(len(views))`."""
    function = use.run.frame.node
    if not isinstance(use.node, ast.Call) or not isinstance(function, ast.FunctionDef):
        return False
    given = use.node.args[use.run.trace.values.get(use.node.func, NOTHING).paths() == {"torch.chunk"} :]
    number: ast.AST | None = given[0] if given else None
    stored = list(names_stored(function))
    if isinstance(number, ast.Name):
        targets = [n for n in stored if n.id == number.id]
        bound = [n.value for n in scope_nodes(*function.body) if isinstance(n, ast.Assign) and n.targets == targets]
        number = bound[0] if bound else None
    match number:
        case ast.Call(func=ast.Name(), args=[ast.Name(listed)], keywords=[]):
            of_list = use.run.trace.values.get(number.func, NOTHING).paths() == {"len"}
            tree = use.run.file_of(use.run.frame.file).standing
            names = [n for n in stored if n.id == listed]
            joins = [n for n in joined if isinstance(n, ast.Call) and n.args and isinstance(n.args[0], ast.Name) and n.args[0].id == listed]
            inside = set(scope_nodes(*function.body))
            later = all(n in inside and all(tree.after(n, s) for s in names) for n in (number, *joins))
            return of_list and len(joins) == len(joined) and later
    return False


def _chunks(use: Use, joined: object) -> frozenset[Obj]:
    """How many chunks of a tensor `cat` puts one after another: `cat(x.chunk(n, 2), 0)`; nothing where it is given others."""
    match joined:
        case ast.Call(args=[ast.Call(func=ast.Attribute(value, "chunk"), args=[*given]), *_]):
            of_torch = use.run.trace.values.get(value, NOTHING).paths() == {"torch"}
            number = given[of_torch] if len(given) > of_torch else None
            return use.run.trace.values.get(number, NOTHING).objs if number is not None else frozenset()
    return frozenset()


def in_parts(use: Use, rows_: Value) -> Value | None:
    """A batch that is cut into parts of its rows: all of them together, or one after another where something goes through them."""
    lengths, along = use.argument(0, "split_size", "split_size_or_sections", "chunks"), use.argument(1, "dim")
    listed = any(isinstance(o, Tup) or (isinstance(o, New) and o.path in COLLECTIONS) for o in lengths.objs)
    if rows_.scale != "sample" or rows_.objs or not rows_.of_kind("batch") or listed or (along.objs and not flow.is_index(along, 0)):
        return None
    if rows_.of_kind("joined") and _as_joined(use, rows_, lengths):
        return Value(frozenset(), without(rows_.origins, "joined"), "sample", (rows_.shape or Shape(use.node))._replace(several=True))
    parts = use.instance(PARTS)
    use.run.memory[parts, "[]"] = Value(frozenset(), rows_.origins | {Origin("part", use.node)}, "sample")
    shared = use.name.endswith("chunk") or lengths.scale == "count" or tensors.is_batch_size(use.run, rows_, lengths)
    use.run.memory[parts, "whole"] = rows_ if shared else Value(frozenset(), rows_.origins, "other")  # as many rows on each rank
    return Value(frozenset((parts,)), rows_.origins, "sample")


# ------------------------------------------------------------------------------------------------ gradients and models


def _gradients(use: Use) -> Value:
    """`torch.autograd.grad(outputs, inputs)`: of a total over samples, or an average, by their rows: each sample's own."""
    given = use.mixed
    of, by = tensors.differentiated(use.run, use.args, use.keywords)
    own_rows = of.scale in ("sum", "mean") and by.scale == "sample" and len(use.args) < 3
    scale: Scale | None = "sample" if own_rows else given.scale
    shape = by.shape if by.shape is not None and not by.objs else Shape(use.node)
    through = without(given.origins, "forward") | {Origin("graded", of) for of in given.of_kind("forward")}
    return Value(frozenset(), through, scale, shape._replace(several=True) if scale else None)


def _gradient_mode(use: Use) -> Value:
    """`with set_grad_enabled(mode):`."""
    context = use.instance()
    use.run.memory[context, "mode"] = use.args[0] if use.args else NOTHING
    return just(context)


def _random_split(use: Use) -> Value:
    parts = uncalled(use)
    if "generator" in use.keywords:
        return parts
    return Value(parts.objs, parts.origins | flow.drawn(use.path, use.node), parts.scale)


def _spawned(use: Use) -> Value:
    return drivers.spawned(use.run, use.event, use.args, use.keywords)


def _quantized(use: Use) -> Value:
    """A module made of another one, with other layers in place of some: a copy, or the same in place."""
    same = use.keywords.get("inplace", NOTHING).objs
    return first(use) if same and all(isinstance(o, Lit) and o.value for o in same) else uncalled(use)


_QUANTIZED = {
    **dict.fromkeys(("quantization", "ao.quantization"), "prepare prepare_qat convert quantize quantize_dynamic quantize_qat".split()),
    **dict.fromkeys(("quantization.quantize_fx", "ao.quantization.quantize_fx"), "prepare_fx prepare_qat_fx convert_fx fuse_fx".split()),
}
_SIZED = "zeros ones full empty arange linspace logspace eye Tensor".split()
_TYPES = "FloatTensor LongTensor DoubleTensor IntTensor ByteTensor BoolTensor HalfTensor".split()
_DRAWN_SIZED = "rand randn randint normal rand_like randn_like randint_like".split()

ROWS: dict[str, Rule] = {
    "torch": cased(array_function, instance),
    "torch.nn.functional": partial(array_function, particular=rows.FUNCTIONAL),
    "torch.linalg": partial(array_function, particular=rows.LINALG),
    "torch.distributions": _distribution,
    **dict.fromkeys(("torch.is_tensor", "torch.manual_seed"), nothing),
    # new tensors
    **{f"torch.{name}": of_size for name in (*_SIZED, *_TYPES)},
    **{f"torch.{place}.{name}": of_size for name in _TYPES for place in ("cuda", "sparse")},
    **{f"torch.{name}": drawn_of_size for name in _DRAWN_SIZED},
    **{f"torch.{name}": drawn for name in ("bernoulli", "multinomial", "poisson")},
    "torch.randperm": lambda use: Value(frozenset(), drawn(use).origins, None, Shape(None, 1)),
    "torch.as_tensor": _tensor,
    "torch.tensor": _of_numbers,
    **dict.fromkeys(("torch.split", "torch.chunk"), lambda use: in_parts(use._replace(args=use.args[1:]), use.argument(0))),
    # weights, gradients and precision
    PARAMETER: _parameter,
    "torch.autograd.Variable": _variable,
    **dict.fromkeys(MAPPED, instance),
    "torch.autograd.grad": _gradients,
    "torch.enable_grad": fresh,
    "torch.set_grad_enabled": _gradient_mode,
    **dict.fromkeys(NO_GRAD | AUTOCASTS, fresh),
    # models
    DATAPARALLEL: lambda use: first(use) if use.run.ignore_dp else None,  # the model, where the wrapper is left out
    "torch.nn.parallel.data_parallel": lambda use: use.run.invoke(use.event, use.args[0], use.args[1:2], {}) if use.args else None,
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm": first,
    **{f"torch.nn.utils.{name}": first for name in ("weight_norm", "spectral_norm", "parametrizations")},
    **{f"torch.nn.utils.{name}": first for name in ("remove_weight_norm", "remove_spectral_norm")},
    "torch.compile": _tensor,
    **{f"torch.jit.{name}": _compiled for name in ("script", "trace", "freeze", "optimize_for_inference")},
    **{f"torch.{module}.{name}": _quantized for module, names in _QUANTIZED.items() for name in names},
    # data, files, devices and processes
    "torch.utils": computed,
    "torch.utils.checkpoint.checkpoint": _computed_again,
    "torch.utils.checkpoint.checkpoint_sequential": _computed_in_parts,
    "torch.utils.data": uncalled,
    "torch.utils.data.random_split": _random_split,
    **{f"torch.nn.{name}.from_pretrained": _of_weights for name in ("Embedding", "EmbeddingBag")},
    **dict.fromkeys(("torch.load", "torch.device", "torch.hub", "torch.optim", "torch.profiler"), instance),
    **dict.fromkeys(("torch.cuda", "torch.backends"), computed),
    "torch.multiprocessing": cased(array_function, called_later),
    **{f"torch.multiprocessing.{name}": _spawned for name in ("spawn", "spawn.spawn", "start_processes")},
}
