"""What a check finds wrong with the texts of a conversion."""

from __future__ import annotations

import ast

from ddpify.records import dataclass


@dataclass(frozen=True, eq=False)
class Problem:
    """One thing that is wrong: in which module, where, and what.

    `key` is the same for the same problem of the script before its conversion, which is then no fault of the conversion.
    """

    module: str
    node: ast.AST
    message: str
    key: tuple[object, ...]
    fix: str = ""
