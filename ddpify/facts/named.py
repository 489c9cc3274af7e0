"""What is looked up by a name that only the run tells: the classes of a module, modules of a package, targets of a configuration.

Such a name may mean any definition that could take the call, so all of them are called, and their results joined.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ddpify.facts.model import NOTHING, Call, Class, Ext, Func, Like, Lit, Method, Module, New, Obj, Part, Pick, Tup, Value, join, just
from ddpify.facts.names import canonical
from ddpify.facts.tree import Tree, last_name, walk
from ddpify.project import Project

if TYPE_CHECKING:
    from ddpify.facts.interpret.state import Interpreter

PARSER, DEFAULT, CHOICES = "[parser]", "[default]", "[choices]"  # what made the settings of a command line, and what it knows of one
PARTIAL, FUNCTION = "functools.partial", "[function]"  # a function with some of its arguments
TUPLE, FIELDS = "collections.namedtuple", "[fields]"
SPACE = "__dict__"  # what an object holds, as a dict
_KEY_OF, _UNDER_IT = "[key]", "[under key]"  # each of its names in turn, and what it holds under that
_BUFFER = "[buffer]"  # before the pattern of a name: what `register_buffer` was given
_DOTTED = re.compile(r"[\w.*]*\.[\w.*]*|[\w.]+")
_PLACE = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]|\{[^{}]*\}")
_OPENS = re.compile(r"^([A-Za-z_]\w*)\.")
_NAMING = re.compile(r"[\w.()=, \[\]'\"*]*")  # what a text that names something is made of
_TARGET = re.compile(r"^(\s*)(?:-\s*)?_target_\s*:\s*['\"]?([\w.]+)")
_PARTIAL = re.compile(r"^\s*_partial_\s*:\s*[Tt]rue")
_KEY = re.compile(r"^(\s*)(?:-\s*)?([\w-]+)\s*:\s*(?:#.*)?$")
_ACCESSORS = frozenset(("property", "setter", "getter", "deleter", "cached_property", "abstractproperty", "classproperty", "lazy_property"))
_FIELDS = frozenset(("dataclass", "pydantic_dataclass", "define", "frozen", "attrs", "attr"))
_FILES = 400


# ---------------------------------------------------------------------------------------------------- names


def text(run: Interpreter, parts: list[Value]) -> frozenset[Obj]:
    """The pattern of a local module's name, or of a GPU, that texts put together make, where some of them are not known."""
    pattern = ""
    for part in parts:
        only = next(iter(part.objs)) if len(part.objs) == 1 else None
        known = only.value if isinstance(only, Lit) else only.pattern if isinstance(only, Like) else None
        pattern += known if isinstance(known, str) else "*"
    if pattern.startswith("cuda:"):
        return frozenset((Like(pattern),))
    top, dot, _ = pattern.partition(".")
    local = dot and (not top or ("*" not in top and run.project.is_local(top)))
    return frozenset((Like(pattern),)) if local and "*" in pattern and _DOTTED.fullmatch(pattern) else frozenset()


def filled_in(run: Interpreter, form: Value) -> frozenset[Obj]:
    """The same of a text with places in it, as `%` and `format` fill them in: whatever stands there."""
    forms = [o.value for o in form.objs if isinstance(o, Lit) and isinstance(o.value, str)]
    if len(forms) != len(form.objs) or not forms:
        return frozenset()
    return frozenset().union(*(text(run, [just(Lit(p)) if p else NOTHING for p in _places(f)]) for f in forms))


def _places(form: str) -> list[str]:
    """The pieces of a text with places in it, in turn with empty ones for the places."""
    return [piece for i, part in enumerate(_PLACE.split(form)) for piece in (([""] if i else []) + ([part] if part else []))]


def imported(run: Interpreter, name: Value, package: Value, top: bool) -> Value | None:
    """`importlib.import_module(name)`: the modules that it may be; None where nothing is known of the name."""
    names: list[str] = []
    for obj in (o for entry in name.objs for o in option(run, entry).objs):
        pattern = str(obj.value) if isinstance(obj, Lit) and isinstance(obj.value, str) else obj.pattern if isinstance(obj, Like) else ""
        if pattern.startswith("."):
            within = next((str(o.value) for o in package.objs if isinstance(o, Lit)), _package(run))
            pattern = f"{within}{pattern}" if within else pattern[1:]
        if not pattern:
            return None
        names += modules_like(run.project, pattern) if "*" in pattern else [pattern]
    return join([run.import_module(n, n.partition(".")[0] if top else n) for n in names]) if names else None


def option(run: Interpreter, obj: Obj, kinds: tuple[str, ...] = (DEFAULT, CHOICES)) -> Value:
    """What an option of the command line may be: its default and its choices; anything else is itself."""
    if not isinstance(obj, (Part, Method)) or not isinstance(obj.of, New):
        return just(obj)
    parsers = run.memory.get((obj.of, PARSER), NOTHING).objs
    return join([run.memory.get((p, f"{kind} {obj.name}"), NOTHING) for p in parsers for kind in kinds]) if parsers else just(obj)


def from_file(run: Interpreter, place: Value) -> Value | None:
    """A module that is read from a file of the project, where its path is known."""
    names: list[str] = []
    for obj in place.objs:
        path = obj.value if isinstance(obj, Lit) and isinstance(obj.value, str) and obj.value.endswith(".py") else ""
        name = path.removeprefix("./").removesuffix(".py").replace("/", ".")
        if not name or run.project.module(name) is None:
            return None
        names.append(name)
    return join([run.import_module(n, n) for n in names])


def _package(run: Interpreter) -> str:
    file = run.file_of(run.frame.file)
    return file.name if file.is_package else file.name.rpartition(".")[0]


def modules_like(project: Project, pattern: str) -> list[str]:
    """The modules of a project whose names fit a pattern: `models.*_model`."""
    shape = re.compile(pattern.replace(".", r"\.").replace("*", r"\w+"))
    found: set[str] = set()
    for root in project.roots:
        for path in itertools.islice(root.glob(f"{pattern.replace('.', '/').rstrip('*')}*"), _FILES):
            name = path.relative_to(root).with_suffix("" if path.suffix == ".py" else path.suffix).as_posix().replace("/", ".")
            if shape.fullmatch(name) and (path.suffix == ".py" or (path / "__init__.py").is_file()):
                found.add(name)
    return sorted(found - {"__main__"})


def space(run: Interpreter, value: Value) -> Value:
    """`vars(value)`, `value.__dict__`."""
    objs = [o for o in value.objs if isinstance(o, (Module, New, Part, Class))]
    return join([just(run.objects.part(o, SPACE)) for o in objs] + [just(Ext(f"{path}.{SPACE}")) for path in value.paths()])


def in_space(run: Interpreter, obj: Part, keys: list[str]) -> Value:
    """`vars(obj)[key]`: an attribute, or any where the key is not known."""
    if keys:
        return join([run.attribute(just(obj.of), key) for key in keys])
    return just(Pick(obj.of)) if isinstance(obj.of, Module) else join([v for (o, _), v in run.memory.items() if o is obj.of])


def each_of_space(run: Interpreter, obj: Part) -> tuple[Value, Value]:
    """A key of `vars(obj)`, whichever it is, and what is under it."""
    key = NOTHING if isinstance(obj.of, Module) else just(run.objects.part(obj, _KEY_OF))
    return key, under_each(run, key, obj.of) if key.objs else in_space(run, obj, [])


def under_each(run: Interpreter, key: Value, of: Obj) -> Value:
    """`getattr(obj, key)` with a key of `vars(obj)`, whichever it is; nothing with anything else."""
    (part,) = key.objs if len(key.objs) == 1 else (None,)
    if not isinstance(part, Part) or part.name != _KEY_OF or not isinstance(part.of, Part) or part.of.of is not of:
        return NOTHING
    return just(run.objects.part(part.of, _UNDER_IT)) | in_space(run, part.of, [])


def copied(run: Interpreter, key: Value, value: Value) -> Value:
    """The `vars(obj)` of which a value is what stands under a key, whichever it is: a dict that it is put into becomes a copy."""
    spaces = [o.of for o in value.objs if isinstance(o, Part) and o.name == _UNDER_IT and o.of is not None]
    return just(spaces[0]) if len(spaces) == 1 and key.objs == {run.objects.part(spaces[0], _KEY_OF)} else NOTHING


def set_in_space(run: Interpreter, obj: Part, index: Value, value: Value, strong: bool) -> None:
    """`vars(obj)[key] = value`."""
    keys = [str(o.value) for o in index.objs if isinstance(o, Lit)]
    for key in keys:
        run.set_attribute(obj.of, key, value, strong and len(keys) == 1)
    if not keys:
        unsettled(run, obj.of, value)


def call_space(run: Interpreter, event: Call, obj: Part, name: str, args: list[Value], keywords: dict[str, Value]) -> Value:
    """A method of `vars(obj)`."""
    if name == "update":
        mappings = [*args, *(value for key, value in keywords.items() if key == "**")]
        for value in mappings:
            known = {key: held for o in value.objs for key, held in entries(run, o)}
            for key, held in known.items():
                run.set_attribute(obj.of, key, held, len(mappings) == 1)
            if not known or len(known) > len(value.objs) > 1:
                unsettled(run, obj.of, NOTHING)
        for key, held in keywords.items():
            if key != "**":
                run.set_attribute(obj.of, key, held, True)
        return NOTHING
    if name == "get" and args:
        return join([in_space(run, obj, [str(o.value) for o in args[0].objs if isinstance(o, Lit)]), *args[1:]])
    if name in ("items", "values", "keys"):
        instance = run.objects.new("list", event.node, run.stack)
        names, inner = each_of_space(run, obj)
        run.set_attribute(instance, "[]", {"items": just(Tup((names, inner))), "values": inner, "keys": names}[name], False)
        return just(instance)
    if name == "copy":
        return just(obj)
    return NOTHING


def entries(run: Interpreter, obj: Obj) -> list[tuple[str, Value]]:
    """What a mapping holds by name; in `vars(settings)`, the options of a command line, too."""
    held = [(key, value) for key, value in run.memory.of(obj) if not key.startswith("[")]
    of = obj.of if isinstance(obj, Part) and obj.name == SPACE else None
    parsers = run.memory.get((of, PARSER), NOTHING).objs if isinstance(of, New) else ()
    options = [key.removeprefix(f"{DEFAULT} ") for p in parsers for key, _ in run.memory.of(p) if key.startswith(f"{DEFAULT} ")]
    return [*((name, run.attribute(just(of), name)) for name in options if of is not None), *held]


def unsettled(run: Interpreter, obj: Obj, value: Value, pattern: str = "*") -> None:
    """`setattr(obj, name, value)` by a name that is not known: what it held may be something else now."""
    for (owner, name), held in run.memory.items():
        if owner is obj and not name.startswith("[") and like(name, pattern):
            run.memory[obj, name] = held | value | just(run.objects.part(obj, name))


def set_by_pattern(run: Interpreter, obj: New, pattern: str, value: Value) -> None:
    """`setattr(obj, f"layer{i}", value)`: held by the pattern of the name, and by each name of an object of settings."""
    module = run.is_module(obj)
    if not module:
        unsettled(run, obj, value, pattern)
    if module or pattern != "*":
        run.set_attribute(obj, pattern, value, False)


def add_buffer(run: Interpreter, obj: New, pattern: str, tensor: Value) -> None:
    """Let a module have buffers whose names were put together."""
    run.set_attribute(obj, f"{_BUFFER} {pattern}", Value(shape=tensor.shape), False)


def buffers(run: Interpreter, obj: New, pattern: str) -> Value | None:
    """Such buffers, which the module's methods may have changed in place."""
    held = run.memory.get((obj, f"{_BUFFER} {pattern}"))
    return None if held is None else Value(frozenset((run.objects.part(obj, pattern),)), shape=held.shape)


def held_like(run: Interpreter, obj: New, name: str) -> Value | None:
    """What an object holds by names that were put together and may be this one."""
    held = [v for pattern, v in run.memory.of(obj) if "*" in pattern and like(name, pattern)]
    return join(held) if held else None


# ---------------------------------------------------------------------------------------------------- calls


def call(run: Interpreter, event: Call, pick: Pick, args: list[Value], keywords: dict[str, Value]) -> Value:
    """Call what a name picks from a module or an object: each definition that could take the call."""
    given = keywords.keys() - {"**"}
    opens = "**" in keywords or any(isinstance(a, ast.Starred) for a in event.node.args)
    found = definitions(run, pick.of) if isinstance(pick.of, Module) else _methods(run, pick.of)
    found = [o for o in found if like(_name(o), pick.pattern)]
    return either(run, event, [o for o in found if _takes(run, o, len(args), given, opens)], args, keywords)


def either(run: Interpreter, event: Call, found: list[Obj], args: list[Value], keywords: dict[str, Value]) -> Value:
    """Call each of some definitions; where some of them make modules, these are meant."""
    modules = [o for o in found if isinstance(o, Class) and _is_module(run, o)]
    running = {f.node for f in run.frames}
    run.memory.doubt()
    results: list[Value] = []
    for obj in found:
        if isinstance(obj, Func) and (obj.node in running or (modules and not _returns(obj))):
            continue
        results.append(run.invoke_one(event, obj, args, keywords))
    networks = [v for v in results if any(run.is_module(o) or (isinstance(o, New) and o.path.startswith("torch.nn.")) for o in v.objs)]
    return join(networks or results)


def like(name: str, pattern: str) -> bool:
    """Whether a name fits a pattern: `run_*`."""
    return pattern == "*" or re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), name) is not None


def _name(obj: Obj) -> str:
    return obj.path.rpartition(".")[2] if isinstance(obj, Ext) else str(getattr(getattr(obj, "node", None), "name", ""))


def _methods(run: Interpreter, obj: New) -> list[Obj]:
    """The methods of an object of the project's own."""
    if obj.cls is None:
        return []
    names = [s.name for c in (obj.cls, *ancestors(obj.cls)) for s in c.node.body if isinstance(s, ast.FunctionDef)]
    found = [run.attribute(just(obj), n) for n in dict.fromkeys(names) if not n.startswith("__") and not _read_only(obj.cls, n)]
    return [o for v in found for o in v.objs if isinstance(o, Func)]


def _read_only(cls: Class, name: str) -> bool:
    """Whether a name of a class is a property, which would run when it is looked at."""
    defined = [s for c in (cls, *ancestors(cls)) for s in c.node.body if isinstance(s, ast.FunctionDef) and s.name == name]
    return any(last_name(d) in _ACCESSORS for s in defined for d in s.decorator_list)


def attribute(run: Interpreter, pick: Pick, name: str) -> Value:
    """An attribute of what a name picks from a module, or a module of a package."""
    if not isinstance(pick.of, Module):
        return NOTHING
    held: list[Obj] = []
    for (owner, _), v in run.memory.items():
        if owner == pick.of.name:
            held += [o for o in v.objs if isinstance(o, (Class, Module))]
        elif isinstance(owner, str) and owner.rpartition(".")[0] == pick.of.name:
            held.append(Module(owner))
    return join([run.attribute(just(o), name) for o in dict.fromkeys(held) if not isinstance(o, Module) or (o.name, name) in run.memory])


def definitions(run: Interpreter, module: Module) -> list[Obj]:
    """The classes and functions that a module holds, those left out that it imports for its own use."""
    held = [(name, v) for (owner, name), v in run.memory.items() if owner == module.name and not name.startswith("__")]
    found: dict[Obj, str] = {o: name for name, v in held for o in v.objs if isinstance(o, (Class, Func)) or _builds(o)}
    foreign = _imported_for_use(run, module, found)
    return [o for o in found if o not in foreign and not (isinstance(o, Class) and _abstract(run, o))]


def _imported_for_use(run: Interpreter, module: Module, found: Mapping[Obj, str]) -> set[Obj]:
    """What a module imports for its own classes and functions: what they descend from, and what its code reads, but for networks."""
    bases = {b for o in found if isinstance(o, Class) and o.file == module.name for b in ancestors(o)}
    foreign = [o for o in found if isinstance(o, (Class, Func)) and o.file != module.name]
    used = _used(run, module)
    return {o for o in foreign if o in bases or (found[o] in used and not (isinstance(o, Class) and _is_module(run, o)))}


def _used(run: Interpreter, module: Module) -> frozenset[str]:
    """The names that a module's own code reads."""
    if not run.project.has_file(module.name):
        return frozenset()
    tree = run.file_of(module.name).tree
    key = ("names read", tree)
    if key not in run.project.memo:
        run.project.memo[key] = frozenset(n.id for n in walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return run.project.memo[key]  # type: ignore[return-value]


def _builds(obj: Obj) -> bool:
    """Whether something of a library is a model's class or maker."""
    return isinstance(obj, Ext) and obj.path.startswith(("torchvision.models.", "timm.")) and not obj.path.endswith("__")


def ancestors(cls: Class) -> Iterator[Class]:
    """The classes of the project that a class descends from."""
    for base in cls.bases:
        for b in base.objs:
            if isinstance(b, Class) and b is not cls:
                yield b
                yield from ancestors(b)


def _abstract(run: Interpreter, cls: Class) -> bool:
    """Whether a class is not meant to be made: methods are abstract, or its forward only raises."""
    for name in {n for (owner, n), v in run.memory.items() if owner in (cls, *ancestors(cls))}:
        for f in (run.find(cls, name) or NOTHING).objs:
            node = f.node if isinstance(f, Func) else None
            if node is None or isinstance(node, ast.Lambda):
                continue
            body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
            if any(last_name(d) == "abstractmethod" for d in node.decorator_list):
                return True
            if name == "forward" and body and isinstance(body[0], ast.Raise):
                return True
    return False


def _is_module(run: Interpreter, cls: Class) -> bool:
    return any(path.startswith("torch.nn.") for path in run.library_bases(cls))


def _returns(func: Func) -> bool:
    if isinstance(func.node, ast.Lambda):
        return True
    return any(isinstance(n, ast.Return) and n.value is not None for n in walk(func.node))


def _takes(run: Interpreter, obj: Obj, positional: int, names: set[str], opens: bool) -> bool:
    """Whether a definition could be called with so many arguments, and these names; `opens`: and others."""
    if isinstance(obj, Ext):
        return True
    inits = run.find(obj, "__init__") if isinstance(obj, Class) else just(obj)
    funcs = [o for o in inits.objs if isinstance(o, Func)] if inits is not None else []
    bound = isinstance(obj, Class) or (isinstance(obj, Func) and obj.owner is not None)
    return not funcs or any(_fits(f, positional + bound, names, opens) for f in funcs)


def _fits(func: Func, positional: int, names: set[str], opens: bool) -> bool:
    spec = func.node.args
    places = [p.arg for p in (*spec.posonlyargs, *spec.args)]
    if positional > len(places) and spec.vararg is None and not opens:
        return False
    if spec.kwarg is None and not names <= {*places[positional:], *(p.arg for p in spec.kwonlyargs)}:
        return False
    needed = {*places[positional : len(places) - len(spec.defaults)]}
    needed |= {p.arg for p, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is None}
    return opens or needed <= names


def evaluated(run: Interpreter, event: Call) -> Value | None:
    """`eval(text)`: what the text names among what is seen here, called where the text calls it; None where it is no name."""
    pieces = [p or "" for p in _pieces(run, event.node.args[0])] if event.node.args else []
    if not pieces or not all(map(_NAMING.fullmatch, pieces)):
        return None
    first, calls = pieces[0], any("(" in p for p in pieces)
    opens = _OPENS.match(first)
    scope = run.lookup(opens.group(1)) if opens else just(Module(run.frame.file))
    if opens and scope.paths():
        path = just(Ext(canonical(first.rpartition(".")[0] + ".*")))
        return run.invoke(event, path, [], {"**": NOTHING}) if calls else path
    modules = [o for o in scope.objs if isinstance(o, Module)]
    steps = "".join(p or "*" for p in _pieces(run, event.node.args[0], written=True)).split(".")[1:]
    if opens and len(steps) > 1 and steps[-1].isidentifier():  # `models.*.get_net`
        return functools.reduce(lambda of, step: _any_of(of) if "*" in step else run.attribute(of, step), steps, scope)
    return (_any_called(run, event, modules) if calls else join([just(Pick(m)) for m in modules])) if modules else None


def _any_of(value: Value) -> Value:
    """What a module holds under whatever name."""
    return join([just(Pick(o)) for o in value.objs if isinstance(o, Module)])


def _any_called(run: Interpreter, event: Call, modules: list[Module]) -> Value | None:
    """What any of the definitions of some modules gives, called with arguments that nobody knows; None where they have none."""
    found = [o for m in modules for o in definitions(run, m)]
    return either(run, event, [o for o in found if _takes(run, o, 0, set(), True)], [], {"**": NOTHING}) if found else None


def pattern(run: Interpreter, node: ast.expr) -> str:
    """What is known of a text that is put together: `run_*`."""
    return "".join(piece or "*" for piece in _pieces(run, node))


def _pieces(run: Interpreter, node: ast.expr, written: bool = False) -> list[str | None]:
    """The texts that an expression is put together from; None for one that is not known, or not `written` there."""
    match node:
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return [*_pieces(run, left, written), *_pieces(run, right, written)]
        case ast.JoinedStr(values=values):
            return [p for v in values for p in _pieces(run, v, written)]
        case ast.BinOp(op=ast.Mod(), left=inner) | ast.Call(func=ast.Attribute(attr="format", value=inner)):
            return _pieces(run, inner, written)
        case ast.Constant(value=str() as text):
            return [p or None for p in _PLACE.split(text)] or [None]
    held = run.trace.values.get(node, NOTHING).objs if not written else ()
    texts = [o.value for o in held if isinstance(o, Lit) and isinstance(o.value, str)]
    return [texts[0]] if len(texts) == len(held) == 1 else [None]


def partial(run: Interpreter, node: ast.AST, func: Value, args: list[Value], keywords: dict[str, Value]) -> Value:
    """A function with some of its arguments."""
    instance = run.objects.new(PARTIAL, node, run.stack)
    run.memory[instance, FUNCTION] = _beside(run, func, instance)
    run.memory[instance, "[args]"] = just(Tup(tuple(args)))
    for name, value in keywords.items():
        run.memory[instance, name] = value
    return just(instance)


def _beside(run: Interpreter, func: Value, instance: New) -> Value:
    """The functions that a value may be, without those that call an object itself: `f = partial(f, 1)`, in a loop."""
    inner = {o: run.memory.get((o, FUNCTION), NOTHING) for o in func.instances() if o.path == PARTIAL and o is not instance}
    kept = [o for o in func.objs if o is not instance and not (o in inner and _calls(run, inner[o], instance))]
    return join([Value(frozenset(kept), func.origins), *(_beside(run, v, instance) for o, v in inner.items() if o not in kept)])


def _calls(run: Interpreter, func: Value, instance: New) -> bool:
    """Whether a value may be a partial function, or one that calls it."""
    held = [o for o in func.instances() if o.path == PARTIAL]
    return instance in held or any(_calls(run, run.memory.get((o, FUNCTION), NOTHING), instance) for o in held)


def bound(run: Interpreter, instance: New) -> tuple[list[Value], dict[str, Value]]:
    """The arguments that a partial function was given before."""
    args = [i for o in run.memory.get((instance, "[args]"), NOTHING).objs if isinstance(o, Tup) for i in o.items]
    return args, {name: v for name, v in run.memory.of(instance) if not name.startswith("[")}


def without_settings(run: Interpreter, value: Value) -> Value:
    """The functions that partial ones call, where these were given others of its arguments by their names alone."""
    partials = [o for o in value.instances() if o.path == PARTIAL and not bound(run, o)[0]]
    if not partials or len(partials) != len(value.objs):
        return value
    return join([without_settings(run, run.memory.get((o, FUNCTION), NOTHING)) for o in partials])


def declare_tuple(run: Interpreter, kind: New, names: Value) -> None:
    """Remember the fields of a class that `collections.namedtuple` makes, where they are spelled out."""
    entries = [names]
    for obj in names.objs:
        if isinstance(obj, New) and isinstance(obj.node, ast.List):
            entries = [run.memory.get((obj, str(i)), NOTHING) for i in range(len(obj.node.elts))]
        elif isinstance(obj, Tup):
            entries = list(obj.items)
    texts = [o.value for e in entries if len(e.objs) == 1 for o in e.objs if isinstance(o, Lit) and isinstance(o.value, str)]
    if len(texts) == len(entries) and len(names.objs) == 1:
        run.memory[kind, FIELDS] = just(Lit(" ".join(texts).replace(",", " ")))


def fields_of_tuple(run: Interpreter, kind: New) -> tuple[str, ...]:
    """The fields of a class that `collections.namedtuple` made, as far as they are spelled out."""
    (entry,) = run.memory.get((kind, FIELDS), just(Lit(""))).objs
    return tuple(str(entry.value).split()) if isinstance(entry, Lit) else ()


def tuple_of(run: Interpreter, kind: New, args: list[Value], keywords: dict[str, Value]) -> Value | None:
    """What calling a class that `collections.namedtuple` made gives; None where not all of its fields are seen to be given."""
    names = fields_of_tuple(run, kind)
    given = {**dict(zip(names, args, strict=False)), **keywords}
    return just(Tup(tuple(given[n] for n in names), names)) if names and given.keys() == set(names) else None


# ---------------------------------------------------------------------------------------------------- settings


def fields(run: Interpreter, cls: Class) -> list[str]:
    """The names of the fields that a class without a constructor declares, in order: a data class, a named tuple, a model of settings."""
    declared = any(last_name(d.func if isinstance(d, ast.Call) else d) in _FIELDS for d in cls.node.decorator_list)
    own = [s.target.id for s in cls.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
    above = [name for base in cls.bases for b in base.objs if isinstance(b, Class) and b is not cls for name in fields(run, b)]
    named = any(path.rpartition(".")[2] in ("NamedTuple", "BaseModel", "BaseSettings") for path in run.library_bases(cls))
    return [*above, *(n for n in own if n not in above)] if declared or named or above else []


def fill(run: Interpreter, instance: New, args: list[Value], keywords: dict[str, Value], asked: bool = False) -> None:
    """Set the fields of an instance of a data class; `asked`: the command line may set all of them."""
    names = fields(run, instance.cls) if instance.cls is not None else []
    for name, value in zip(names, args, strict=False):
        run.memory[instance, name] = value
    for name in names:
        if name in keywords:
            run.memory[instance, name] = keywords[name]
        elif asked or ("**" in keywords and name not in names[: len(args)]):
            run.memory[instance, name] = just(run.objects.part(instance, name))


def instantiated(run: Interpreter, event: Call, args: list[Value], keywords: dict[str, Value]) -> Value | None:
    """`hydra.utils.instantiate(cfg.model, ...)`: what the project's configuration files name as targets there."""
    parts = [o.name for o in args[0].objs if isinstance(o, Part)] if args else []
    targets = _targets(run)
    at = [t for t in targets if t[0] in parts] or targets
    results: list[Value] = []
    for late in (False, True):
        found: dict[Obj, None] = {}
        for _, path, later in at:
            if later is late:
                found.update(dict.fromkeys(_resolved(run, path).objs))
        rest = keywords.keys() - {"**"}
        fitting = [o for o in found if _takes(run, o, len(args) - 1, rest, True)]
        if late:
            results += [partial(run, event.node, just(o), args[1:], {**keywords, "**": NOTHING}) for o in fitting]
        elif fitting:
            results.append(either(run, event, fitting, args[1:], {**keywords, "**": NOTHING}))
    return join(results) if results else None


def _resolved(run: Interpreter, path: str) -> Value:
    place, _, name = path.rpartition(".")
    if not run.project.is_local(path.partition(".")[0]):
        return just(Ext(canonical(path)))
    return run.attribute(run.import_module(place, place), name)


def _targets(run: Interpreter) -> list[tuple[str, str, bool]]:
    """The key, the path and whether it is to be called later, of each target that the project names, in a configuration file or in code."""
    key = ("targets", run.project.entry.tree)
    if key not in run.project.memo:
        folder = run.project.entry.path.parent
        files = itertools.islice((p for end in ("yaml", "yml") for p in sorted(folder.rglob(f"*.{end}"))), _FILES)
        written = [t for f in (run.project.entry, *run.project.files.values()) for t in _targets_in_code(f.standing)]
        run.project.memo[key] = [t for file in files if ".hydra" not in file.parts for t in _targets_in(file)] + written
    return run.project.memo[key]  # type: ignore[return-value]


def _targets_in(file: Path) -> Iterator[tuple[str, str, bool]]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    above: list[tuple[int, str]] = []
    for i, line in enumerate(lines):
        target, key = _TARGET.match(line), _KEY.match(line)
        if key:
            above = [(n, k) for n, k in above if n < len(key.group(1))] + [(len(key.group(1)), key.group(2))]
        if target:
            around = [k for n, k in above if n < len(target.group(1))]
            block = itertools.takewhile(lambda later: not _KEY.match(later), lines[i + 1 : i + 20])
            yield around[-1] if around else file.parent.name, target.group(2), any(_PARTIAL.match(later) for later in block)


def _targets_in_code(tree: Tree) -> Iterator[tuple[str, str, bool]]:
    """The targets of dicts, `{"_target_": "torch.optim.SGD"}`, and of settings' classes, `_target_: str = "torch.optim.SGD"`."""
    dicts = [(n, zip(n.keys, n.values, strict=True)) for n in tree.of(ast.Dict)]
    for node, pairs in (*dicts, *((n, _fields(n)) for n in tree.of(ast.ClassDef))):
        given = {k.value: v.value for k, v in pairs if isinstance(k, ast.Constant) and isinstance(v, ast.Constant)}
        if isinstance(target := given.get("_target_"), str):
            yield _key_above(tree, node), target, given.get("_partial_") is True


def _fields(node: ast.ClassDef) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    for line in node.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            yield ast.Constant(line.target.id), line.value


def _key_above(tree: Tree, node: ast.AST) -> str:
    """The key, or the name, that something written in code is given; empty where it has none."""
    for below, up in itertools.pairwise((node, *tree.ancestors(node))):
        if isinstance(up, ast.Dict):
            return next((str(k.value) for k, v in zip(up.keys, up.values, strict=True) if v is below and isinstance(k, ast.Constant)), "")
        if isinstance(up, (ast.AnnAssign, ast.Assign)):
            target = up.target if isinstance(up, ast.AnnAssign) else up.targets[0]
            return target.id if isinstance(target, ast.Name) else ""
    return ""
