"""A conversion as JSON, for editors and continuous integration."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ddpify.conversion import Conversion

VERSION = 1


def report(conversion: Conversion, script: str) -> dict[str, Any]:
    """The conversion as plain data; `script` is the path that the run command names. Lines and columns count from 1."""
    return {
        "version": VERSION,
        "path": conversion.shown,
        "status": conversion.status,
        "reason": conversion.reason,
        "exit_code": conversion.exit_code,
        "install": conversion.install,
        "command": conversion.run_command(script),
        "changes": [
            {"code": c.code, "level": c.level.name, "path": c.file, "line": c.line, "why": c.why, "group": c.group}
            for c in conversion.changes
        ],
        "findings": [
            {
                "code": f.code,
                "level": f.level.name,
                "path": f.file,
                "line": f.line,
                "column": f.column,
                "message": f.message,
                "fix": f.fix,
            }
            for f in conversion.findings
        ],
        "diff": conversion.diff(),
    }


def render(conversion: Conversion, script: str) -> str:
    """The report as text: indented, ASCII only, so that any terminal and any pipe carries it."""
    return dumps(report(conversion, script), indent=2) + "\n"
