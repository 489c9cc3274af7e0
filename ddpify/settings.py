"""`[tool.ddpify]` of the nearest pyproject.toml: what a project asks of every conversion, unless the command line asks otherwise."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ddpify.errors import DdpifyError, Where
from ddpify.options import PLACEMENTS, Options

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_CODES = ("select", "ignore")


@dataclass(frozen=True)
class Settings:
    """Options by the names of their fields, and the rules that `select` and `ignore` name."""

    options: Mapping[str, Any] = field(default_factory=dict)
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    placements: tuple[tuple[str, str], ...] = ()


def settings(script: Path) -> Settings:
    """The settings for a script: those of the first pyproject.toml above it that has the table.

    Raises DdpifyError for a file that cannot be read, an unknown key and a value that cannot be.
    """
    for folder in script.absolute().parents:
        path = folder / "pyproject.toml"
        table = _table(path) if path.is_file() else None
        if table is not None:
            return _read(table, path)
    return Settings()


def _table(path: Path) -> dict[str, Any] | None:
    """The table `tool.ddpify`; None where there is none."""
    try:
        text = path.read_text(encoding="utf-8")
        whole = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise DdpifyError("this file cannot be read", "make it readable, and UTF-8", Where(str(path))) from error
    except tomllib.TOMLDecodeError as error:
        raise DdpifyError(f"this is not TOML: {error}", "correct it", Where(str(path))) from error
    tool = whole.get("tool")
    table = tool.get("ddpify") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise DdpifyError("tool.ddpify is not a table", "write [tool.ddpify], and a setting on each line below", Where(str(path)))
    return table


def _read(table: dict[str, Any], path: Path) -> Settings:
    known = {f.name.replace("_", "-"): f for f in fields(Options) if f.name != "placements"}
    options: dict[str, Any] = {}
    for key, value in table.items():
        where = Where(str(path), _line(path, key))
        if key == "placements":
            _placements(value, path)
            continue
        if key not in known and key not in _CODES:
            near = get_close_matches(key.replace("_", "-"), [*known, *_CODES], 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join([*known, *_CODES])}"
            raise DdpifyError(f"there is no setting {key!r}", hint, where)
        if key in _CODES:
            if not isinstance(value, list) or not all(isinstance(code, str) and re.fullmatch(r"DDP\d{1,3}", code) for code in value):
                raise DdpifyError(f"{key} must be a list of rules' codes", f'such as {key} = ["DDP501"]; see `ddpify rules`', where)
            continue
        kind = bool if isinstance(known[key].default, bool) else str
        if not isinstance(value, kind) and not (key == "loss-scale" and isinstance(value, (int, float)) and not isinstance(value, bool)):
            raise DdpifyError(f"{key} must be {'true or false' if kind is bool else 'a text in quotes'}", "correct it", where)
        options[known[key].name] = value if kind is bool else str(value)
        try:
            Options(**({"amp": "torch"} if key == "loss-scale" else {}) | {known[key].name: options[known[key].name]})
        except DdpifyError as error:
            if "does not go with" not in error.title:
                raise DdpifyError(error.title, error.hint, where) from error
    said = tuple(table.get("placements", {}).items())
    return Settings(options, tuple(table.get("select", ())), tuple(table.get("ignore", ())), said)


def _placements(table: object, path: Path) -> None:
    """Check what is said of functions. Raises DdpifyError for what is no table of known words."""
    if not isinstance(table, dict):
        hint = 'write [tool.ddpify.placements], and "package.function" = "replicate" below'
        raise DdpifyError("placements is not a table", hint, Where(str(path)))
    for name, said in table.items():
        if said not in PLACEMENTS:
            where = Where(str(path), _line(path, name))
            raise DdpifyError(f"{name} cannot be {said!r}", f"choose one of {', '.join(PLACEMENTS)}", where)


def _line(path: Path, key: str) -> int:
    """The line that sets a key, below the table's head; 0 where it is not found."""
    lines = path.read_text(encoding="utf-8").splitlines()
    head = next((i for i, line in enumerate(lines) if re.match(r"\s*\[\s*tool\s*\.\s*ddpify\s*\]", line)), 0)
    return next((i + 1 for i, line in enumerate(lines) if i >= head and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line)), 0)
