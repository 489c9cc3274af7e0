"""The folder that hydra makes for a run: named by the clock of the process that makes it, so that each rank may have its own."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from ddpify.rules.base import Finding, Safety
from ddpify.rules.context import Context

_CLOCK = re.compile(r"\$\{\s*now\s*:")
_FOLDER = re.compile(r"^hydra\s*:.*?^\s+dir\s*:\s*(\S+)", re.M | re.S)
_FILES = 200


def findings(context: Context, code: str) -> Iterator[Finding]:
    """Tell of each function that hydra calls, unless the project names one folder for all ranks."""
    for tree in context.facts.trees.values():
        functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = [*tree.of(ast.FunctionDef), *tree.of(ast.AsyncFunctionDef)]
        for function in (f for f in functions if f in context.facts.after.trace.visited):
            for call in function.decorator_list:
                if not isinstance(call, ast.Call) or "hydra.main" not in context.facts.after.value(call.func).paths() or _named(context):
                    continue
                if _moves(call):
                    why = "hydra names each rank's folder by that rank's clock: what one rank saves, another may not find"
                    level = Safety.REVIEW
                else:
                    why, level = "hydra writes its log and its copy of the settings once for each rank", Safety.NOTE
                yield context.manual(code, call, why, "run it with hydra.run.dir=FOLDER, the same for all ranks", level=level)


def _moves(call: ast.Call) -> bool:
    """Whether hydra changes the working directory of itself, as it did before version 1.2."""
    given = next((k.value for k in call.keywords if k.arg == "version_base"), None)
    return given is None or (isinstance(given, ast.Constant) and given.value is not None and str(given.value) < "1.2")


def _named(context: Context) -> bool:
    """Whether a configuration file of the project says which folder a run has, and not by the clock."""
    folder = context.facts.project.entry.path.parent
    for file in itertools.islice((p for end in ("yaml", "yml") for p in folder.rglob(f"*.{end}")), _FILES):
        try:
            found = _FOLDER.search(file.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue
        if found and not _CLOCK.search(found.group(1)):
            return True
    return False
