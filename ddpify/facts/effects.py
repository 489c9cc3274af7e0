"""The side effects of calls: output (prints, logs, plots), files and folders; and which functions of the project have no others."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator

from ddpify.facts import exceptions, library
from ddpify.facts.collect import Facts
from ddpify.facts.fetched import fetches
from ddpify.facts.library import clips, files
from ddpify.facts.library import effects as rows
from ddpify.facts.library.row import row_of
from ddpify.facts.model import Call, Ext, Func, Lit, Method, New, Obj, Part, Store, Value, library_bases
from ddpify.facts.runs import Run
from ddpify.facts.tree import last_name, walk

_MODES = re.compile("[rwxabt+]{1,3}")


def is_bar(obj: object) -> bool:
    """Whether an object is a progress bar, which only shows what it is given; a copy of its library in the project is one, too."""
    return isinstance(obj, New) and (obj.path or f"{obj.cls.file}." if obj.cls is not None else obj.path).startswith(rows.BARS)


def effects(run: Run) -> list[tuple[Call, rows.Effect]]:
    """The calls of libraries in a run that are output, or make a file or a folder."""
    if effects not in run.known:
        found = [(call, kind) for call in run.trace.calls if (kind := effect(call)) is not None]
        read = any(_reads_picture(call) for call in run.trace.calls)
        run.known[effects] = [(call, kind) for call, kind in found if not (read and only_draws(call))]
    return run.known[effects]  # type: ignore[return-value]


def file_writes(run: Run) -> set[ast.AST]:
    """The calls of libraries in a run that write files."""
    if file_writes not in run.known:
        run.known[file_writes] = {call.node for call, kind in effects(run) if kind == "file"}
    return run.known[file_writes]  # type: ignore[return-value]


def effect(call: Call) -> rows.Effect | None:
    """The side effect of one call of a library, if it is output, a file or a folder."""
    if _writes_to_memory(call):
        return None
    of_functions = (_effect_of(o.path, call) for o in call.func.objs if isinstance(o, Ext))
    of_objects = () if _reads_tables(call) else (_effect_of_object(o) for o in call.func.objs if isinstance(o, (Method, Part)))
    found = next((each for each in (*of_functions, *of_objects) if each is not None), None)
    if found is not None or not isinstance(call.node.func, ast.Attribute):
        return found or ("file" if _sends(call) else None)
    return _effect_of_name(call)


def database(call: Call) -> New | None:
    """The database that a method is called on, itself or by a cursor."""
    makers = (maker(o) for o in call.func.objs if isinstance(o, (Method, Part)))
    return next((m for m in makers if m is not None and m.path in rows.DATABASES), None)


def _reads_tables(call: Call) -> bool:
    """Whether a call only asks a database for what is in its tables."""
    texts = [o.value for v in call.args[:1] for o in v.objs if isinstance(o, Lit)]
    return bool(texts) and all(rows.READS_TABLES.match(str(text)) for text in texts) and database(call) is not None


def _effect_of_object(func: Method | Part) -> rows.Effect | None:
    """What a method of a writer, a figure, a logger or a console does."""
    root = maker(func)
    if root is None:
        return None
    if is_writer(root) or root.path.startswith(rows.DRAWN) or func.name in rows.FILE_METHODS.get(root.path, ()):
        return "file"
    if isinstance(func, Part):
        return None
    logs = root.path.startswith(rows.LOGGERS) and func.name in rows.LOG_METHODS
    bar = root.path.startswith("tqdm.") and func.name == "write"
    console = any(root.path.startswith(package) and func.name in names for package, names in rows.CONSOLE_METHODS.items())
    return "print" if logs or bar or console else None


def _effect_of_name(call: Call) -> rows.Effect | None:
    """What a method does whose object is not known, by its name."""
    method, known = call.method, bool(call.func.paths())
    if method == "mkdir":
        return "folder"
    if opens_path(call) and writes(call):
        return "file"
    if method in rows.SHOWING_METHODS and not call.func.functions():
        return "print"
    literal = any(isinstance(o, Lit) for o in call.receiver.objs)
    compiled = method == "save" and any(isinstance(o, Method) and isinstance(o.of, New) and o.of.cls is not None for o in call.func.objs)
    moved = method in files.MOVING and of_path(call)
    named = method != "dump" or _is_text(call)  # numpy's arrays, not what shows or logs something
    rendered = method in files.RENDERED and bool(call.args or call.keywords.keys() & set(files.WRITTEN_BY))
    writes_itself = (rendered or (method in rows.WRITING_METHODS and named)) and not known and not literal
    # a network that was compiled by torch.jit: its class has no method `save`
    if writes_itself or compiled or saves_itself(call) or _sends(call) or (method in rows.PATH_METHODS and not known) or moved:
        return "file"
    return None


def _is_text(call: Call) -> bool:
    """Whether the first argument of a call is a text, such as the name of a file."""
    first = next(iter(call.node.args), None)
    joined = isinstance(first, ast.JoinedStr) or (isinstance(first, ast.Call) and last_name(first.func) == "join")
    return joined or any(isinstance(o, Lit) and isinstance(o.value, str) for v in call.args[:1] for o in v.objs)


def saves_itself(call: Call) -> bool:
    """Whether `x.save(path)`, `x.to_filename(path)` writes an image, a document or its like: a method of no class of the project."""
    saves = rows.SAVE_THEMSELVES.match(call.method) is not None and call.method not in rows.KEEPING
    saves = saves or (rows.WRITE_THEMSELVES.match(call.method) is not None and _is_text(call) and _of_library(call))
    given = saves and isinstance(call.node.func, ast.Attribute) and bool(call.args or call.keywords)
    return given and not call.func.paths() and not any(isinstance(o, (Func, Lit)) for o in (*call.func.objs, *call.receiver.objs))


def _of_library(call: Call) -> bool:
    """Whether a call is a method of a library's object that is no file open for writing."""
    made = [maker(o) for o in call.func.objs]
    return bool(made) and all(o is not None and o.cls is None and o.path and not o.path.startswith(rows.HANDLES) for o in made)


def _sends(call: Call) -> bool:
    """Whether `x.send_message(text)` sends a text: a method, or a function, of a package that nobody described."""
    return rows.SENDS.match(call.method) is not None and _undescribed(call)


def _undescribed(call: Call) -> bool:
    """Whether a method, or a function, of a package that nobody described is given something, and nothing of what is trained or loaded."""
    given = (*call.args, *call.keywords.values())
    return bool(given) and _of_undescribed(call) and all(v.scale is None and v.shape is None and not v.batches() for v in given)


def _of_undescribed(call: Call) -> bool:
    """Whether what is called is of a package that nobody described; an object that is called has the script's name, not the package's."""
    made = [o if isinstance(o, Ext) else maker(o) for o in call.func.objs if not isinstance(o, New)]
    roots = {o.path.partition(".")[0] for o in made if isinstance(o, Ext) or (o is not None and o.cls is None)} - {""}
    return bool(roots) and not roots & (rows.DESCRIBED | sys.stdlib_module_names | {"mpi4py"} | vars(builtins).keys())


def only_draws(call: Call) -> bool:
    """Whether a call only draws on a figure, which stays in memory."""
    paths = [o.path for o in call.func.objs if isinstance(o, Ext)]
    paths += [m.path for o in call.func.objs if (m := maker(o)) is not None]
    return any(p.startswith(rows.DRAWN) for p in paths) and call.method not in ("savefig", "imsave", "show", "pause")


def _writes_to_memory(call: Call) -> bool:
    """Whether a call is given a buffer in memory, which a rank that did not write into it would find empty."""
    return any(o.path in rows.IN_MEMORY for given in (*call.args, *call.keywords.values()) for o in given.instances())


def _reads_picture(call: Call) -> bool:
    """Whether a call reads what was drawn on a figure: into a buffer, or as an array."""
    return call.method in rows.READ_PICTURES or (call.method in ("savefig", "imsave") and _writes_to_memory(call))


def _effect_of(path: str, call: Call) -> rows.Effect | None:
    """What a library's function does."""
    if path == "logging.basicConfig":
        return "file" if "filename" in call.keywords else None
    if path.startswith("subprocess.") and call.keywords.keys() & {"capture_output", "stdout"}:
        return None  # it is run for what it prints
    if _makes_writer(path) or (path in rows.OPENS and writes(call)) or opened(path, call.node):
        return "file"
    row = row_of(rows.EFFECTS, path)
    unknown = row is None and path.partition(".")[0] not in rows.DESCRIBED and bool(call.args or call.keywords)
    return "file" if unknown and rows.SAVES.match(path.rpartition(".")[2]) else row


def maker(obj: Obj) -> New | None:
    """What an object is, a part or a method of, outermost."""
    while isinstance(obj, (Part, Method)):
        obj = obj.of
    return obj if isinstance(obj, New) else None


def _makes_writer(path: str) -> bool:
    """Whether a library's class, or function, makes an object that writes files."""
    return path.endswith(rows.WRITERS) or rows.WRITER_CLASSES.fullmatch(path) is not None


def is_writer(obj: object) -> bool:
    """Whether an object writes an event file or talks to a board."""
    if not isinstance(obj, New):
        return False
    derived = obj.cls is not None and any(map(_makes_writer, library_bases(obj.cls)))
    made = _makes_writer(obj.path) or obj.path in rows.SWITCHES or obj.path == "neptune.init"
    return made or derived or opened(obj.path, obj.node) == "make"


def fills_file(call: Call) -> bool:
    """Whether a call writes into a file that is open: `file.write(text)`, `json.dump(numbers, file)`."""
    handles = call.method in rows.HANDLE_METHODS and any(o.path.startswith(rows.HANDLES) for o in call.receiver.instances())
    return handles or not rows.DUMPS.isdisjoint(call.func.paths())


def writes(call: Call) -> bool:
    """Whether an `open` call opens for writing; unknown modes count as reading."""
    mode = call.argument(0 if opens_path(call) else 1, "mode")
    if mode is None:
        return False
    return any(isinstance(o, Lit) and isinstance(o.value, str) and any(c in o.value for c in "wax+") for o in mode.objs)


def opens_path(call: Call) -> bool:
    """Whether a call is `path.open("w")`, the method of a path."""
    if call.method != "open" or call.func.paths() or call.func.functions():
        return False
    mode = call.node.args[0] if call.node.args else None
    return mode is None or (isinstance(mode, ast.Constant) and isinstance(mode.value, str) and _MODES.fullmatch(mode.value) is not None)


def of_path(call: Call) -> bool:
    """Whether a call is a method of a path, and not one of its name's in a text."""
    return any(p.startswith("pathlib.") for p in call.receiver.kinds())


def opened(path: str, node: ast.AST) -> str:
    """Whether a call opens a file of a library's own to "make" or to "change" it; a mode that is not written out counts as reading."""
    opening = rows.STORES.get(path)
    if opening is None or not isinstance(node, ast.Call):
        return ""
    mode = next((k.value for k in node.keywords if k.arg == opening.mode), None)
    if mode is None and opening.position is not None and opening.position < len(node.args):
        mode = node.args[opening.position]
    if not opening.make + opening.change:
        return "change" if mode is not None else ""
    text = str(mode.value) if isinstance(mode, ast.Constant) else ""
    return "make" if any(c in text for c in opening.make) else "change" if any(c in text for c in opening.change) else ""


def of_run(facts: Facts) -> Effects:
    """The side effects of the script's calls, those of trackers included."""
    key, known = ("effects", facts.edited), facts.after.known
    if key not in known:
        known[key] = Effects(facts)
    return known[key]  # type: ignore[return-value]


class Effects:
    """The side effects of a run's calls; `switched` are the trackers (`wandb.`) that a setting of theirs turns off on other ranks."""

    def __init__(self, facts: Facts, switched: tuple[str, ...] = ()) -> None:
        self.facts = facts
        self.switched = switched
        self.under: dict[ast.AST, list[Call]] = defaultdict(list)
        self.stores_under: dict[ast.AST, list[Store]] = defaultdict(list)
        self.at = {call.node: kind for call, kind in effects(facts.after) if not self._is_switched(call.func)}
        self._with_side_effects: dict[tuple[ast.AST, bool], bool] = {}
        self._nodes_under: dict[ast.AST, frozenset[ast.AST]] = {}
        for call in facts.after.trace.calls:
            for above in dict.fromkeys(call.stack):
                self.under[above].append(call)
        for store in facts.after.trace.stores:
            for above in dict.fromkeys(store.stack):
                self.stores_under[above].append(store)
        self.at |= dict.fromkeys((c.node for c in facts.after.trace.calls if self._may_log(c) and self._unanswered(c)), "file")
        self.boards = frozenset(self._boards())
        self._databases = {
            d for c in facts.after.trace.calls if c.node in self.at and (d := database(c)) is not None
        }  # that are written to

    def _boards(self) -> Iterator[New]:
        """The instances of classes in unedited modules whose constructor opens files or writers, and has no other side effect."""
        for call in self.facts.after.trace.calls:
            for obj in call.result.instances() if self.facts.is_edited(call.node) else ():
                elsewhere = obj.cls is not None and not self.facts.is_edited(obj.cls.node)
                if obj.node is call.node and elsewhere and "file" in self.kinds(call.node) and not self.has_side_effects(call.node):
                    yield obj

    def _may_log(self, call: Call) -> bool:
        """Whether a call keeps or writes something, or asks for it: known by its name, where nobody waits for what it gives."""
        if call.func.paths() & rows.ASKS:
            return True
        given = (*call.args, *call.keywords.values())
        if self._is_switched(call.func) or any(self.facts.after.interpreter.is_module(o) for v in given for o in v.instances()):
            return False
        written = bool(given) and rows.WRITE_THEMSELVES.match(call.method) is not None and _of_library(call) and _of_undescribed(call)
        return written or (rows.LOGS.match(call.method) is not None and _undescribed(call))

    def _unanswered(self, call: Call) -> bool:
        """Whether nobody waits for what a call gives, or for what the function gives that it is made in, and does nothing else."""
        tree = self.facts.tree_of(call.node)
        if isinstance(tree.parent[call.node], ast.Expr):
            return True
        function = tree.function(call.node)
        callers = self.facts.after.calls_to(function)
        dropped = all(isinstance(self.facts.tree_of(c.node).parent.get(c.node), ast.Expr) for c in callers)
        return bool(callers) and dropped and not any(self.has_side_effects(c.node) for c in callers)

    def _is_switched(self, func: Value) -> bool:
        """Whether what is called belongs to a tracker that does nothing on other ranks; logging in to it is not part of a run."""
        if not self.switched or any(p.endswith(".login") for p in func.paths()):
            return False
        made = {m.path for m in map(maker, func.objs) if m is not None}
        return any(p.startswith(self.switched) for p in (*func.paths(), *made))

    def is_writer(self, obj: object) -> bool:
        """Whether an object is a writer that would write on every rank."""
        return (
            obj in self.boards
            or obj in self._databases
            or (is_writer(obj) and isinstance(obj, New) and not obj.path.startswith(self.switched or ("\0",)))
        )

    def kinds(self, node: ast.AST) -> set[rows.Effect]:
        """The effects of a call and of all that runs under it."""
        own = {self.at[node]} if node in self.at else set()
        return own | {self.at[n] for n in self.nodes_under(node) if n in self.at}

    def nodes_under(self, node: ast.AST) -> frozenset[ast.AST]:
        """The calls that run under a call, each once."""
        if node not in self._nodes_under:
            self._nodes_under[node] = frozenset(c.node for c in self.under.get(node, ()))
        return self._nodes_under[node]

    def output_only(self, node: ast.AST) -> bool:
        """Whether output and files are all that a call of a project's function has as side effects."""
        return bool(self.kinds(node)) and not self.has_side_effects(node)

    # ------------------------------------------------------------------------------------------------ side effects beside output

    def has_side_effects(self, node: ast.AST, samples: bool = False) -> bool:
        """Whether a call has side effects beside output: it trains, draws, communicates, fetches, or changes an older object.

        `samples`: a call that runs networks without gradients, or draws random numbers for what it gives, has none for that.
        """
        key = node, samples
        if key not in self._with_side_effects:
            calls = [*self.facts.after.calls(node), *self.under.get(node, ())]
            self._with_side_effects[key] = (
                any(self._call_has_side_effects(c, node, samples) for c in calls)
                or any(self._changes(s.receiver, s.node, node) for s in self.stores_under.get(node, ()))
                or any(self._binds_global_that_is_read(f) or exceptions.leaves(self.facts, f) for f in self._functions(calls))
            )
        return self._with_side_effects[key]

    def changed(self, node: ast.AST) -> set[Obj]:
        """The objects from before that a call changes."""
        values = [s.receiver for s in self.stores_under.get(node, ())]
        calls = [*self.facts.after.calls(node), *self.under.get(node, ())]
        values += [c.receiver for c in calls if c.method in rows.CHANGING or c.method in ("train", "eval")]
        return {o for v in values for o in v.objs if self._outer(o, node)}

    def changed_names(self, node: ast.AST) -> set[str]:
        """The global names that a call binds."""
        calls = [*self.facts.after.calls(node), *self.under.get(node, ())]
        return {n for f in self._functions(calls) for g in walk(f) if isinstance(g, (ast.Global, ast.Nonlocal)) for n in g.names}

    def _outer(self, obj: Obj, node: ast.AST) -> bool:
        """Whether an object was there before a call."""
        root = maker(obj)
        return root is not None and node not in root.stack and root.node is not node

    def _call_has_side_effects(self, call: Call, root: ast.AST, samples: bool = False) -> bool:
        paths, run = call.func.paths(), self.facts.after
        drawn = any(_draws_or_communicates(p) for p in paths if not samples or p.startswith("torch.distributed."))
        if paths & library.NO_RETURN and exceptions.exits(call.node):
            return True
        if paths & {"next", "input"} or drawn or self._draws_batches(call, root) or fetches(call):
            return True
        if any(clips(p) or (p.endswith("_") and not p.endswith("__")) for p in paths):  # in place, by torch's names
            return True
        if paths & {"setattr", "delattr"} and call.args and self._changes(call.args[0], call.node.args[0], root):
            return True
        if samples and call.no_grad:
            return self._method_has_side_effects(call, root)
        if self.facts.wrapped(call.func) is not False or self.facts.model_of(call.func) is not None:
            return True
        if any(run.interpreter.is_module(o) and run.interpreter.is_network(o) for o in call.func.instances()):
            return True
        return self._method_has_side_effects(call, root)

    def _draws_batches(self, call: Call, root: ast.AST) -> bool:
        """Whether a call, under `root`, iterates over a loader, or runs in a loop that does."""
        run = self.facts.after
        outside = {loop.node for c in run.calls(root) for loop in c.loops}
        if any(run.feeds(loop.over) for loop in call.loops if loop.node not in outside):
            return True
        return bool(call.func.paths() & {"iter", "list", "tuple", "sorted", "sum"}) and any(map(run.feeds, call.args))

    def _method_has_side_effects(self, call: Call, root: ast.AST) -> bool:
        """Whether a method of a library's object changes the object."""
        func = call.node.func
        if not isinstance(func, ast.Attribute) or call.func.paths() or self._functions((call,)):
            return False
        if call.method in rows.ADVANCING:
            return True
        if call.method in ("train", "eval"):
            return any(self._outer(o, root) for o in call.receiver.objs)
        roots = [m for m in map(maker, call.receiver.objs) if m is not None]
        dropped = isinstance(self.facts.tree_of(call.node).parent.get(call.node), ast.Expr) and call.node not in self.at
        if call.method not in rows.CHANGING and not dropped:
            return False  # what is called for nothing it returns is called for what it does
        if not roots:
            ambiguous = not dropped and call.method in ("add", "update", "sort")
            return not ambiguous and not call.receiver.objs and not self._is_local(func.value)
        passive = rows.PASSIVE if call.method in rows.CHANGING else (*rows.PASSIVE, *rows.HANDLES)
        return any(self._outer(m, root) and not m.path.startswith(passive) and not is_writer(m) for m in roots)

    def _changes(self, receiver: Value, node: ast.expr, root: ast.AST) -> bool:
        """Whether an attribute or element that is stored changes what was there before a call."""
        if not receiver.objs:
            return not self._is_local(node)
        drawn = any(p.startswith(rows.DRAWN) for p in receiver.paths())
        return not drawn and any(not is_writer(maker(o)) and (maker(o) is None or self._outer(o, root)) for o in receiver.objs)

    def _is_local(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
        """Whether the name at the root of an expression is made by the function it stands in, and is no element of something older."""
        while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
            node = node.func if isinstance(node, ast.Call) else node.value
        if not isinstance(node, ast.Name) or node.id in seen:
            return isinstance(node, ast.Name)
        function = self.facts.tree_of(node).function(node)
        bound = [n for n in walk(function) if isinstance(n, ast.Name) and n.id == node.id and isinstance(n.ctx, ast.Store)]
        loops = [n for n in walk(function) if isinstance(n, (ast.For, ast.AsyncFor)) and any(b in walk(n.target) for b in bound)]
        return bool(bound) and all(self._is_local(over, seen | {node.id}) for loop in loops for over in _iterated(loop.iter))

    def _functions(self, calls: Iterable[Call]) -> set[ast.AST]:
        """The project's functions that run in these calls."""
        return {o.node for c in calls for o in c.func.objs if isinstance(o, Func)}

    def _binds_global_that_is_read(self, function: ast.AST) -> bool:
        """Whether a function assigns a global variable that is read by functions that do not assign it."""
        tree = self.facts.tree_of(function)
        for statement in walk(function):
            if isinstance(statement, ast.Nonlocal):
                return True
            if isinstance(statement, ast.Global) and any(self._read_elsewhere(name, tree.root) for name in statement.names):
                return True
        return False

    def _read_elsewhere(self, name: str, root: ast.AST) -> bool:
        tree = self.facts.tree_of(root)
        return any(
            isinstance(n, ast.Name)
            and n.id == name
            and isinstance(n.ctx, ast.Load)
            and not any(isinstance(g, ast.Global) and name in g.names for g in walk(tree.function(n)))
            for n in tree.nodes()
        )


def _iterated(over: ast.expr) -> list[ast.expr]:
    """What a loop takes its elements from, behind `enumerate(...)` and its like; nothing where they are written out or counted."""
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Name):
        return [part for argument in over.args for part in _iterated(argument)]
    return [over] if isinstance(over, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) else []


def _draws_or_communicates(path: str) -> bool:
    """Whether a library's function draws random numbers, or talks to other ranks."""
    return path.startswith(rows.COMMUNICATES) and path.rpartition(".")[2] not in rows.SAME_FOR_ALL
