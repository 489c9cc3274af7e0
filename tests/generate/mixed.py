"""Losses, metrics, kept state and choices of random lines, together in one training loop."""

from __future__ import annotations

import random

from .choices import choice_lines, script
from .compose import Generated
from .epoch_metrics import metric_lines
from .expressions import loss_lines
from .kept_state import state_lines


def mixed(seed: int) -> Generated:
    """The script of a seed with a random metric, and mostly a loss, kept state or a choice besides."""
    rng = random.Random(seed)
    lines, after, kept = ["loss = F.cross_entropy(out, kinds)"], list[str](), ""
    if rng.random() < 0.6:
        *other, last = loss_lines(rng, rng.randint(1, 3)) or lines
        added = rng.random() < 0.5
        lines = (
            [*other, last.replace("loss = ", "extra = ", 1), "loss = F.cross_entropy(out, kinds) + 0.1 * extra"]
            if added
            else [*other, last]
        )
    if rng.random() < 0.6:
        start, update, use = state_lines(rng)
        kept = f"{start}\n"
        (lines if rng.random() < 0.5 and "loss" not in update else after).append(update)
        lines.append(use)
    if rng.random() < 0.4:
        choice = choice_lines(rng)
        if rng.random() < 0.5:
            lines.append(choice)
        else:
            after.insert(0, choice)
    first, each, last_lines = metric_lines(rng)
    end = [line.replace("{loader}", "train_loader").replace("{data}", "train_set") for line in last_lines]
    return Generated(seed, script(lines, [*each, *after], end, first, kept), tuple(f"line: {x}" for x in (*lines, *after, *each, *end)))
