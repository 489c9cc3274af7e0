"""Methods of a library's objects, and those that an object of the project inherits from a library.

`_OF_CLASS` has the rows of the methods of one class, `_OF_ANY` those that mean the same wherever they are found. A rule that gives None
leaves the method to the next row: its class's own, that of any class (or else its class's for all other methods, ""), what is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ddpify.facts import named, tensors
from ddpify.facts.library import containers, flow, modes, paths, torch_geometric
from ddpify.facts.library.constructors import construct
from ddpify.facts.library.generic import call_arguments, listing
from ddpify.facts.library.row import Rule, Use, row_of
from ddpify.facts.library.tensor_methods import OF_GIVEN_SIZES, call_tensor
from ddpify.facts.library.torch import drawn_of_size
from ddpify.facts.model import NOTHING, Call, Func, Lit, Method, New, Obj, Part, Tup, Value, join, just, ordered, origins_of, outermost
from ddpify.facts.origins import Origin, only, without

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

# ------------------------------------------------------------------------------------------------ of any object


def _constructed(use: Use) -> Value | None:
    """`super().__init__(...)`."""
    if not isinstance(use.of, New):
        return None
    construct(use.run, use.of, use.args, use.keywords)
    modes.begins(use)
    return NOTHING


def _called(use: Use) -> Value | None:
    """`layer.forward(x)`: what `layer(x)` gives; of a class derived from a sequence of layers, what those give."""
    if isinstance(use.of, New) and use.args and use.of.cls is not None and use.run.is_a(use.of, paths.SEQUENTIAL):
        return use.run.in_a_row(use.of, use.event, use.args[0])
    own = isinstance(use.of, New) and use.of.cls is not None and use.name != "__call__"
    if own or not isinstance(use.of, (New, Part)):
        return None
    return use.run.invoke(use.event, just(use.of), use.args, use.keywords)


def _itself(use: Use) -> Value:
    now = use.event.now
    return Value(frozenset((use.of,)), now.origins, now.scale, now.shape)


def _applied(use: Use) -> Value | None:
    """`model.apply(function)` calls it for each layer and gives the module back; `frame.apply(function)` gives what the function gives."""
    root = outermost(use.of)
    package = root.path if isinstance(root, New) and root.cls is None else ""
    if package and not package.startswith("torch."):
        return None
    functions = Value(frozenset(o for o in use.argument(0, "fn").objs if isinstance(o, Func)))
    modules = use.alike or frozenset((use.of,))
    if functions.objs:
        layers = frozenset(layer for of in modules for layer in _layers(use._replace(of=of), True) or (of,))
        use.run.invoke(use.event, functions, [Value(layers, frozenset(Origin("parameters", of) for of in modules))], {})
    return join([_itself(use._replace(of=of)) for of in ordered(modules)])


def _modules(use: Use) -> Value:
    """`model.children()`, and `model.modules()`, which begins with the model and goes on into the layers of layers."""
    origins, found = frozenset((Origin("parameters", use.of),)), _layers(use, use.name == "modules")
    if not found:
        return Value(frozenset(), origins)
    made = use.instance("list")
    use.run.memory[made, "[]"] = Value(frozenset(found), origins)
    return Value(frozenset((made,)), origins)


def _named_modules(use: Use) -> Value | None:
    """`model.named_children()`, `model.named_modules()`: the same, in pairs of a name and a module."""
    origins, found = frozenset((Origin("parameters", use.of),)), _layers(use, use.name == "named_modules")
    if not found:
        return None
    names = frozenset(Lit(name) for some in found.values() for name in some)
    made = use.instance("list")
    use.run.memory[made, "[]"] = just(Tup((Value(names, origins), Value(frozenset(found), origins))))
    return Value(frozenset((made,)), origins)


def _layers(use: Use, deep: bool) -> dict[Obj, set[str]]:
    """The layers of a model, each with the names that it has there; of a `deep` search, those of layers and the model itself, too.

    Empty where nothing is known of what is in it.
    """
    wraps = isinstance(use.of, New) and use.of.path in paths.WRAPPERS  # of which the module inside is asked
    roots = (use.run.memory.get((use.of, "module"), NOTHING).objs if wraps else ()) or (use.of,)
    found: dict[Obj, set[str]] = {o: {""} for o in roots} if deep else {}
    todo: list[tuple[Obj, str]] = [(o, "") for o in roots]
    while todo:
        owner, path = todo.pop()
        for name, value in use.run.memory.of(owner):
            for layer in value.objs:
                if containers.is_layer(use.run, layer):
                    new = layer not in found
                    found.setdefault(layer, set()).update({f"{path}{name}"} if name.isidentifier() else ())
                    todo += [(layer, f"{path}{name}.")] if new and deep else []
    single = isinstance(use.of, New) and use.of.path.startswith("torch.nn.")
    return found if len(found) > deep or single else {}


def _layer_at(use: Use) -> Value | None:
    """`model.get_submodule("block.first")`: the layer that has this name, or any where it is not known."""
    found, texts = _layers(use, True), {*flow.texts_of(use.argument(0, "target"))}
    return Value(frozenset(o for o, names in found.items() if names & texts) or frozenset(found)) if found else None


def _registered(use: Use) -> Value | None:
    """`add_module(name, module)`: an attribute; what holds its parts by name runs over them, too."""
    parts = [*use.args, *(use.keywords[k] for k in ("name", "module", "param") if k in use.keywords)]
    if len(parts) != 2:
        return None
    name, part = parts
    names = [str(o.value) for o in name.objs if isinstance(o, Lit)]
    for text in names:
        use.run.set_attribute(use.of, text, part, True)
    if not names and isinstance(use.of, New) and use.node.args:
        named.set_by_pattern(use.run, use.of, named.pattern(use.run, use.node.args[0]), part)
    if use.run.is_a(use.of, *paths.CONTAINERS):
        use.run.set_attribute(use.of, "[]", part, False)
    return NOTHING


def _buffer(use: Use) -> Value | None:
    """`register_buffer("centre", tensor)`: an attribute; `register_buffer(f"scale{i}", tensor)`: those whose names are put together."""
    tensor, names = use.argument(1, "tensor"), flow.texts_of(use.argument(0, "name"))
    tensor = Value(tensor.objs, without(tensor.origins, "sized"), tensor.scale, tensor.shape)  # a model's, and none of a batch
    for name in names if isinstance(use.of, New) else ():
        use.run.set_attribute(use.of, name, tensor, True)
    if isinstance(use.of, New) and use.args and not names:
        named.add_buffer(use.run, use.of, named.pattern(use.run, use.node.args[0]), tensor)
    return None


def _setting(use: Use) -> Value | None:
    """`cfg.get("batch_size", 4)`, `config.getint("train", "batch_size")`: what a configuration says, as an attribute of it would."""
    obj, run, keys = use.of, use.run, flow.texts_of(use.args[0]) if use.args else []
    if not isinstance(obj, (New, Part)) or use.event.now.origins or not keys:
        return None
    defaults = [v for k, v in use.keywords.items() if k in ("default", "fallback")]
    sectioned = isinstance(obj, New) and obj.path.startswith("configparser.")
    options = flow.texts_of(use.args[1]) if sectioned and len(use.args) > 1 else []
    if options:
        return join([*(just(run.objects.part(run.objects.part(obj, key), option)) for key in keys for option in options), *defaults])
    values = [run.attribute(just(obj), key) for key in keys]
    values = [Value(frozenset(o for o in v.objs if not isinstance(o, Method)), v.origins, v.scale, v.shape) for v in values]
    return join([*values, *use.args[1:2], *defaults])


def _stepped(use: Use) -> Value | None:
    """`optimizer.step(closure)`: what the closure gives."""
    return call_arguments(use) if any(isinstance(o, Func) for v in (*use.args, *use.keywords.values()) for o in v.objs) else None


def _hooked(use: Use) -> None:
    """`model.register_forward_hook(function)`: kept for when the module is called."""
    if use.args and isinstance(use.of, (New, Part)):
        use.run.hooks.setdefault(use.of, {})[use.node] = (use.name, use.args[0])
        use.run.memory.doubt()


def _cloned(use: Use) -> Value:
    """`metrics.clone(prefix="val/")`: another one, with all that it holds."""
    made = use.instance(use.of.path if isinstance(use.of, New) else "")
    for name, value in list(use.run.memory.of(use.of)):
        use.run.memory[made, name] = value
    return just(made)


# ------------------------------------------------------------------------------------------------ of one class


def _scaled(use: Use) -> Value | None:
    """`scaler.scale(loss)`."""
    if not use.args:
        return None
    (loss, *_) = use.args
    return Value(loss.objs, loss.origins | {Origin("scaled", use.of)}, loss.scale, loss.shape)


def _of_parameter(use: Use) -> Value | None:
    """A method of a weight: what it gives of a tensor."""
    if use.name not in tensors.KNOWN:
        return None
    now = use.event.now
    weight = Value(frozenset(), now.origins, None, now.shape)
    return tensors.function(use.run, use.name, use.node, [weight, *use.args], use.keywords, now.origins | use.mixed.origins)


def _parsed(use: Use) -> Value:
    """`parser.parse_args()`: what an option is has been said to the parser."""
    parsed = use.run.objects.new("argparse.Namespace", use.node, ())
    use.run.set_attribute(parsed, named.PARSER, just(use.of), False)
    return just(parsed)


def _option(use: Use) -> Value:
    """`parser.add_argument("--model", default="small", choices=["small", "large"])`: the texts that the option may be."""
    spelled = [text for value in use.args for text in flow.texts_of(value)]
    long = [text for text in spelled if text.startswith("--")] or spelled  # the first of these names it, `dest` before all
    names = flow.texts_of(use.keywords["dest"]) if "dest" in use.keywords else [text.lstrip("-").replace("-", "_") for text in long[:1]]
    choices = use.run.element(use.keywords["choices"]) if "choices" in use.keywords else NOTHING
    for name in names:
        use.run.set_attribute(use.of, f"{named.CHOICES} {name}", choices, False)
        use.run.set_attribute(use.of, f"{named.DEFAULT} {name}", use.keywords.get("default", NOTHING), False)
    return NOTHING


_PARSER: dict[str, Rule] = {
    "parse_args": _parsed,
    "parse_known_args": lambda use: just(Tup((_parsed(use), NOTHING))),
    "add_argument": _option,
    **dict.fromkeys(("add_argument_group", "add_mutually_exclusive_group", "add_subparsers"), lambda use: just(use.of)),
}
_OF_ANY: dict[str, Rule] = {
    "__init__": _constructed,
    **dict.fromkeys(("__call__", "forward"), _called),
    **dict.fromkeys(paths.SAME_METHODS, _itself),
    "apply": _applied,
    **dict.fromkeys(("train", "eval"), modes.switched),
    **dict.fromkeys(paths.PARAMETER_METHODS, lambda use: Value(frozenset(), frozenset((Origin("parameters", use.of),)))),
    **dict.fromkeys(("children", "modules"), _modules),
    **dict.fromkeys(("named_children", "named_modules"), _named_modules),
    **dict.fromkeys(("add_module", "register_module", "register_parameter"), _registered),
    "register_buffer": _buffer,
    "state_dict": lambda use: Value(frozenset(), frozenset((Origin("state", use.of),))),
    **dict.fromkeys(("next", "__next__"), lambda use: use.run.element(just(use.of)) if isinstance(use.of, New) else None),
    **dict.fromkeys(("get", "getint", "getfloat", "getboolean"), _setting),  # how a configuration is asked, beside by attribute and key
    **dict.fromkeys(paths.MODULE_HOOKS, _hooked),
    "step": _stepped,
}
_OF_LAYERS: dict[str, Rule] = {"values": _modules, "items": _named_modules, "get_submodule": _layer_at}  # of what `_modules` gives, too
_OF_LAYERS_INSIDE: dict[str, Rule] = {  # of what `_modules` of a part of a library's network gives
    "values": lambda use: Value(frozenset(), frozenset((Origin("parameters", use.of.of if isinstance(use.of, Part) else use.of),)))
}
_OF_CLASS: dict[str, Mapping[str, Rule]] = {
    **dict.fromkeys(paths.COLLECTIONS, containers.METHODS),
    "set": containers.SET_METHODS,
    **dict.fromkeys(paths.ATTRIBUTE_DICTS, containers.ATTRIBUTE_DICT_METHODS),
    **dict.fromkeys(paths.CONTAINERS, _OF_LAYERS | containers.MODULE_LIST_METHODS),
    **{scaler: {"scale": _scaled} for scaler in paths.SCALERS},
    "torch.Generator": {"manual_seed": _itself},
    "sqlite3.connect": dict.fromkeys(("cursor", "__enter__"), lambda use: just(use.of)),
    "pathlib.Path": {"open": lambda use: just(use.instance("open")), **dict.fromkeys(("iterdir", "glob", "rglob"), listing)},
    paths.PARAMETER: {"": _of_parameter},
    **{f"{package}.ArgumentParser": _PARSER for package in ("argparse", "configargparse", "jsonargparse", "simple_parsing")},
    "transformers.HfArgumentParser": _PARSER,
}


def _sampled(use: Use) -> Value:
    """`torch.distributions.Bernoulli(p).sample()`: of one of plain numbers, as many as are asked for."""
    made = use.of.node if isinstance(use.of, New) else None
    parameters = [*made.args, *(k.value for k in made.keywords)] if isinstance(made, ast.Call) else []
    numbers = [use.run.trace.values.get(node, NOTHING).objs for node in parameters]
    if use.args and all(objs and all(isinstance(o, Lit) for o in objs) for objs in numbers):
        drawn = drawn_of_size(use._replace(path="torch.randn"))
        of_sizes = any(o.path == "torch.Size" for o in use.args[0].instances())  # of so many dimensions as that has
        return Value(drawn.objs, drawn.origins, drawn.scale) if of_sizes else drawn
    given = _unknown(use)
    return Value(given.objs, given.origins | flow.drawn("torch", use.node), given.scale, given.shape)


_OF_PACKAGE: dict[str, Mapping[str, Rule]] = {  # of all classes of a package that have no row
    "torchmetrics": {"clone": _cloned},
    "torch.distributions": dict.fromkeys(("sample", "sample_n", "rsample"), _sampled),
}

# Objects of these give back nothing of a batch that they were handed but by what their methods return.
_KEEPS_NOTHING = dict.fromkeys(
    """
        torch tqdm argparse logging list dict range enumerate zip generator open os torchmetrics tensorboardX tensorboard_logger
        visdom wandb mlflow neptune comet_ml aim clearml loguru matplotlib diffusers transformers timm peft segmentation_models_pytorch
        monai kornia albumentations
    """.split(),
    True,
)


def call_method(
    run: Interpreter, event: Call, method: Method, args: list[Value], keywords: dict[str, Value], alike: frozenset[Obj] = frozenset()
) -> Value:
    """Call a method of a library's object, or one that an object of the project inherits from a library; of any of those `alike`."""
    obj, name, now = method.of, method.name, event.now
    use = Use(run, event, name, args, keywords, obj, alike)
    if isinstance(obj, Lit) and name == "format" and (like := named.filled_in(run, just(obj))):
        return Value(like, use.mixed.origins)
    if isinstance(obj, Lit):
        return call_tensor(run, event, args, keywords) if now.scale or now.origins else use.mixed
    if isinstance(obj, Part) and obj.name == named.SPACE:
        return named.call_space(run, event, obj, name, args, keywords)
    of_class = _rows_of_class(run, obj)
    for rule in (of_class.get(name), _OF_ANY.get(name, of_class.get(""))):
        if rule is not None and (result := rule(use)) is not None:
            return result
    if isinstance(obj, Part) and name in tensors.KNOWN and _is_tensor(use):
        return call_tensor(run, event, args, keywords)
    return _unknown(use)


def _rows_of_class(run: Interpreter, obj: object) -> Mapping[str, Rule]:
    if isinstance(obj, Part) and obj.name == "_modules":
        return _OF_LAYERS_INSIDE
    if not isinstance(obj, New):
        return {}
    if obj.cls is None:
        return _OF_CLASS.get(obj.path) or row_of(_OF_PACKAGE, obj.path) or {}
    if run.is_a(obj, *torch_geometric.MESSAGE_PASSING):
        return torch_geometric.METHODS
    return containers.ATTRIBUTE_DICT_METHODS if run.is_a(obj, *paths.DICTS) else _OF_LAYERS if run.is_module(obj) else {}


def _is_tensor(use: Use) -> bool:
    """Whether an attribute that no statement sets, as a buffer, is a tensor: it is known as one, or makes another for the samples."""
    now = use.event.now
    return (now.scale is not None and now.shape is not None) or (use.name in OF_GIVEN_SIZES and use.mixed.scale == "count")


def _unknown(use: Use) -> Value:
    """What is not known calls the functions it is given, may keep what it is handed, and gives something of all of that."""
    called, obj = call_arguments(use, left_out=use.run.commands), use.of
    given = flow.mixed([*use.args, called], use.keywords) if called.origins else use.mixed
    unknown = isinstance(obj, New) and obj.cls is None and obj.path and row_of(_KEEPS_NOTHING, obj.path) is None
    if unknown and given.of_kind("batch"):
        use.run.set_attribute(use.of, paths.GIVEN, Value(frozenset(), given.origins, "other"), False)
    held = origins_of(value for _, value in use.run.memory.of(obj)) if unknown else frozenset()  # what was drawn into a column of a frame
    origins = given.origins | use.event.now.origins | only(held, "random", "drawn") | {Origin("method", (obj, use.name))}
    scale = tensors.any_function([use.event.now, given])
    return Value(frozenset(), origins, scale, given.shape if scale == given.scale else None)
