"""Samples that lie in the order of numbers of their own, the largest first: as many as are larger than a number are the first of them."""

from __future__ import annotations

from functools import partial

from ddpify.placement import transfer
from ddpify.placement.shape import LENGTH, MASK, NUMBERED, Argument, Result, Use
from ddpify.placement.transfer import Rule, reduction

_KEEPS = (transfer.kept, transfer.rounded)


def kept(rule: Rule, use: Use, found: Result) -> Result:
    """What a rule gives, which is in such an order, or tells how many of them there are, only where the rule leaves it so."""
    if found.shape is not None and found.shape.falling != (how := _left(rule, use, found)):
        found = found._replace(shape=found.shape._replace(falling=how))
    return found._replace(parts=tuple(kept(rule, use, p) for p in found.parts)) if found.parts else found


def _left(rule: Rule, use: Use, found: Result) -> str:
    x = use.get(0, "input")
    given = x.shape.falling if x.shape is not None else ""
    if not given or rule in _KEEPS:
        return given
    if isinstance(rule, partial) and rule.func is reduction and rule.args == ("sum",):
        return LENGTH if given == MASK and found.scale == "sum" else ""
    moved = rule is transfer.added or (isinstance(rule, partial) and rule.func is transfer.added)
    return NUMBERED if given == NUMBERED and moved and _is_number(use.get(1, "other")) else ""


def _is_number(operand: Argument) -> bool:
    return operand.scale is None and type(operand.literal) in (int, float)
