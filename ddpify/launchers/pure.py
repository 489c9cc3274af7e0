"""What a statement does to the process that runs it: nothing that counts, or something that each process must do for itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cached_property

from ddpify.facts.tree import arguments, walk
from ddpify.records import dataclass, field

_BUILTINS = frozenset(
    "abs all any bool callable dict divmod enumerate filter float frozenset getattr hasattr int isinstance len list map max min pow range "
    "repr reversed round set slice sorted str sum tuple type vars zip".split()
)
_USING = frozenset("all any dict frozenset list max min set sorted sum tuple".split())  # what they are given is used up
READS = frozenset(
    "split rsplit strip lstrip rstrip lower upper title replace format join items keys values get copy index count "
    "startswith endswith isdigit islower isupper isalpha isidentifier partition rpartition splitlines removeprefix "
    "removesuffix zfill as_posix _get_kwargs _get_args".split()
)  # methods that leave their object as it is
_METHODS = READS | frozenset("append extend sort update pop setdefault".split())
_CALLS = re.compile(
    r"(torch\.(device|cuda\.is_available|cuda\.device_count|nn\.\w*Loss|nn\.(modules\.)?loss\.\w+|Size|finfo)|os\.(getcwd|getenv|cpu_count)"
    r"|os\.environ\.get|os\.path\.(join|basename|dirname|abspath|realpath|expanduser|splitext|normpath)|pathlib\.\w+|math\.\w+|re\.compile"
    r"|collections\.\w+|argparse\.(ArgumentParser|Namespace|ArgumentTypeError)|logging\.getLogger|torchvision\.transforms\.[\w.]+"
    r"|easydict\.EasyDict|types\.SimpleNamespace|functools\.partial)"
)
_SETTINGS = re.compile(
    r"(warnings\.\w+|sys\.path\.\w+|site\.addsitedir|matplotlib\.use|matplotlib\.pyplot\.switch_backend|os\.environ\.\w+|torch\.backends\.[\w.]+"
    r"|torch\.set_(num_threads|num_interop_threads|printoptions|float32_matmul_precision|default_dtype|default_tensor_type)"
    r"|numpy\.(set_printoptions|seterr)|torch\.multiprocessing\.set_sharing_strategy|cv2\.\w+)"
)
_PARSERS = re.compile(r"(.*\.)?(ArgumentParser|ArgParser)")
_RANKS = re.compile(r"['\"](RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|GROUP_RANK|NODE_RANK|SLURM_\w+|OMPI_\w+)['\"]")
PARSES = ("parse_args", "parse_known_args", "parse_intermixed_args")


@dataclass
class Purity:
    """What is known of one file; `tainted` are the names whose values differ from process to process."""

    tree: ast.Module
    tainted: set[str] = field(default_factory=set)

    @cached_property
    def imports(self) -> dict[str, str]:
        """The dotted thing behind each imported name."""
        out: dict[str, str] = {}
        for node in walk(self.tree):
            if isinstance(node, ast.Import):
                out |= {a.asname or a.name.partition(".")[0]: a.name if a.asname else a.name.partition(".")[0] for a in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                out |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        return out

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        """The functions of the module, by name."""
        return {s.name: s for s in self.tree.body if isinstance(s, ast.FunctionDef)}

    @cached_property
    def parsers(self) -> set[str]:
        """How the parsers of arguments, and their groups, are called."""
        out: set[str] = set()
        for _ in range(3):
            for node in walk(self.tree):
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                    func = node.value.func
                    group = isinstance(func, ast.Attribute) and ast.unparse(func.value) in out and func.attr.startswith("add_")
                    if group or _PARSERS.fullmatch(self.path(func)):
                        out |= {ast.unparse(t) for t in node.targets}
        return out

    def path(self, node: ast.expr) -> str:
        """The dotted name of an expression, by what was imported; empty where it has none."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        return ".".join([self.imports.get(node.id, node.id), *reversed(parts)]) if isinstance(node, ast.Name) else ""

    def parses(self, node: ast.stmt) -> bool:
        """Whether a statement binds what was parsed from the command line, and does nothing else."""
        value = getattr(node, "value", None)
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not isinstance(value, ast.Call) or not self.statement(node):
            return False
        if isinstance(value.func, ast.Attribute):
            return value.func.attr in PARSES
        function = self.functions.get(value.func.id) if isinstance(value.func, ast.Name) else None
        return function is not None and any(isinstance(n, ast.Attribute) and n.attr in PARSES for n in walk(function))

    def expression(self, node: ast.AST | None, seen: frozenset[str] = frozenset()) -> bool:
        """Whether an expression can be computed in any process, with the same value and no effect."""
        if node is None:
            return True
        if _RANKS.search(ast.unparse(node)):
            return False
        for inner in walk(node):
            if isinstance(inner, ast.Name) and inner.id in self.tainted:
                return False
            if isinstance(inner, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
                return False
            if isinstance(inner, ast.Call) and not self._call(inner, seen):
                return False
        return True

    def _call(self, call: ast.Call, seen: frozenset[str]) -> bool:
        path = self.path(call.func)
        if path in _BUILTINS or _CALLS.fullmatch(path) or _PARSERS.fullmatch(path):
            return True
        if isinstance(call.func, ast.Attribute):
            return call.func.attr in (*_METHODS, *PARSES) or ast.unparse(call.func.value) in self.parsers
        return path in self.functions and path not in seen and self._function(self.functions[path], seen | {path})

    def _function(self, node: ast.FunctionDef, seen: frozenset[str]) -> bool:
        return not node.decorator_list and all(isinstance(s, ast.Return) or self.statement(s, seen) for s in node.body)

    def statement(self, node: ast.stmt, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a statement only computes: no effect beyond its names and what they hold."""
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return all(map(self._target, targets)) and self.expression(node.value, seen) and not self._unpicklable(node.value)
        if isinstance(node, ast.Expr):
            return self.expression(node.value, seen)
        if isinstance(node, (ast.If, ast.For)):
            head = node.test if isinstance(node, ast.If) else node.iter
            return self.expression(head, seen) and all(self._inner(s, seen) for s in [*node.body, *node.orelse])
        if isinstance(node, (ast.Assert, ast.Raise)):
            return all(self.expression(n, seen) for n in ast.iter_child_nodes(node) if not isinstance(node, ast.Raise))
        return isinstance(node, (ast.Pass, ast.Global))

    def _unpicklable(self, value: ast.expr | None) -> bool:
        """Whether a value may hold a function without a name, or a generator, which no process can be handed."""
        if value is None or self._of_parser(value):
            return False
        used = {a for n in walk(value) if isinstance(n, ast.Call) and self.path(n.func) in _USING for a in arguments(n)}
        return any(isinstance(n, (ast.Lambda, ast.GeneratorExp)) and n not in used for n in walk(value))

    def calls(self, call: ast.Call) -> bool:
        """Whether a call only computes."""
        return self._call(call, frozenset())

    def _inner(self, node: ast.stmt, seen: frozenset[str]) -> bool:
        return isinstance(node, (ast.Return, ast.Break, ast.Continue)) or self.statement(node, seen)

    def _of_parser(self, value: ast.expr | None) -> bool:
        return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and ast.unparse(value.func.value) in self.parsers

    def _target(self, target: ast.expr) -> bool:
        """Whether an assignment's target is a name, or a part of a value that the script has made."""
        if isinstance(target, (ast.Tuple, ast.List)):
            return all(map(self._target, target.elts))
        root = target
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
        return isinstance(root, ast.Name) and (root is target or root.id not in self.imports) and root.id not in self.tainted

    def setting(self, node: ast.stmt) -> bool:
        """Whether a statement sets up its own process alone, and may do so whenever the module is imported."""
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            roots = [t.value for t in targets if isinstance(t, (ast.Attribute, ast.Subscript))]
            of_module = len(roots) == len(targets) and all(self.path(r).partition(".")[0] in _roots(self.imports.values()) for r in roots)
            return of_module and self.expression(node.value)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            inputs = [*node.value.args, *(k.value for k in node.value.keywords)]
            return bool(_SETTINGS.fullmatch(self.path(node.value.func))) and all(map(self.expression, inputs))
        if isinstance(node, (ast.If, ast.Try)):
            bodies = [*node.body, *node.orelse, *(s for h in getattr(node, "handlers", ()) for s in h.body)]
            test = self.expression(node.test) if isinstance(node, ast.If) else True
            return test and all(
                isinstance(s, (ast.Import, ast.ImportFrom, ast.Pass)) or self.setting(s) or self.statement(s) for s in bodies
            )
        return False

    def chooses_devices(self, node: ast.stmt) -> bool:
        """Whether a statement sets CUDA_VISIBLE_DEVICES, or a part of the environment, to a value that is known to all processes."""
        return (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Subscript)
            and self.path(node.targets[0].value) == "os.environ"
            and self.expression(node.value)
        )


def _roots(paths: Iterable[str]) -> set[str]:
    return {path.partition(".")[0] for path in paths}
