"""Scripts that are left as they are: those with nothing to do, and those that ddpify must not touch."""

from __future__ import annotations

from types import ModuleType

import ddpify.rules.refuse.distributed as distributed
import ddpify.rules.refuse.framework as framework
import ddpify.rules.refuse.full_graph as full_graph
import ddpify.rules.refuse.no_loop as no_loop
import ddpify.rules.refuse.processes as processes
import ddpify.rules.refuse.reinforcement as reinforcement
import ddpify.rules.refuse.unwrapped as unwrapped
from ddpify.project import Project
from ddpify.rules.refuse.verdict import Verdict

RULES: tuple[ModuleType, ...] = (distributed, framework, no_loop, processes, unwrapped, reinforcement, full_graph)
"""In order: the first that applies decides."""


def verdict(project: Project) -> Verdict | None:
    """Why the script is left as it is; None where it is to be converted."""
    for rule in RULES:
        spoken: Verdict | None = rule.check(project)
        if spoken:
            return spoken
    return None


__all__ = ["RULES", "Verdict", "verdict"]
