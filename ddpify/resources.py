"""Where the templates lie."""

from __future__ import annotations

from pathlib import Path

from ddpify.errors import DdpifyError


def template_dir() -> Path:
    """The folder of the templates: inside the installed package, or beside it in a checkout. Raises DdpifyError without it."""
    package = Path(__file__).resolve().parent
    for folder in (package / "templates", package.parent / "templates"):
        if folder.is_dir():
            return folder
    raise DdpifyError("the templates are missing", "reinstall ddpify")
