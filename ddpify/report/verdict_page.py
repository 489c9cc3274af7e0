"""A verdict as a page: the loss curves of both runs, how far apart they are, and who wrote what when."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ddpify.rehearse.verify import Verdict


def render(verdict: Verdict) -> str:
    """The page, self-contained."""
    raise NotImplementedError
