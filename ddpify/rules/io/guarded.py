"""What rank 0 alone says and does, of the whole script: found out in stages, each from the one before."""

from __future__ import annotations

from ddpify.facts.effects import Effects, of_run
from ddpify.records import replace
from ddpify.rules.context import Context
from ddpify.rules.io import output, trackers, unedited_output, windows
from ddpify.rules.io.output_statements import Guards


def guards_of(context: Context) -> Guards:
    """Which statements have no side effect but output and files."""
    return context.once(_guards)


def _guards(context: Context) -> Guards:
    quiet = context.options.guards == "quiet"
    guards = Guards(context, of_run(context.facts), quiet, quiet)
    switched = trackers.switched(context, guards)
    guards = replace(guards, effects=Effects(context.facts, switched)) if switched else guards
    guards = replace(guards, quiet=quiet or unedited_output.prints(context, guards))
    guards = replace(guards, quiet_logging=quiet or unedited_output.logs(context, guards))
    guards = windows.kept(guards)
    return replace(guards, muted=output.muted(guards))
