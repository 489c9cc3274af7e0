"""A conversion as JSON, for editors and continuous integration; schema.json beside this file says what is where."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Any

from ddpify import __version__
from ddpify.choices import INSTEAD
from ddpify.report.rule import all_rules

if TYPE_CHECKING:
    from ddpify.attribution import FileDiff
    from ddpify.conversion import Conversion
    from ddpify.rules.base import Change, Finding, Observed

VERSION = 2


def report(conversion: Conversion, script: str) -> dict[str, Any]:
    """The conversion as plain data; `script` is the path that the run command names. Lines and columns count from 1."""
    from ddpify.attribution import attributed

    files = attributed(conversion)
    texts = texts_of(conversion)
    return {
        "version": VERSION,
        "ddpify": __version__,
        "path": conversion.shown,
        "status": conversion.status,
        "reason": conversion.reason,
        "exit_code": conversion.exit_code,
        "install": conversion.install,
        "command": conversion.run_command(script),
        "files": [{"path": file.shown, "name": file.name, "added": file.added} for file in files],
        "changes": [_change(change, files, texts) for change in conversion.changes],
        "left_out": sorted(conversion.left_out),
        "findings": [_finding(finding, texts) for finding in conversion.findings],
        "diff": conversion.diff(),
        **({"trial": {**conversion.trial.report, "tried": list(conversion.trial.tried)}} if conversion.trial is not None else {}),
    }


def render(conversion: Conversion, script: str) -> str:
    """The report as text: indented, ASCII only, so that any terminal and any pipe carries it."""
    return dumps(report(conversion, script), indent=2) + "\n"


def texts_of(conversion: Conversion) -> dict[str, list[str]]:
    """The lines before the conversion, by the path shown, of the script and the modules that it changes."""
    sources = {conversion.shown: conversion.source} | {m.shown: m.source for m in conversion.modules}
    return {shown: source.text.splitlines() for shown, source in sources.items()}


def region(item: Change | Finding, texts: dict[str, list[str]]) -> dict[str, int]:
    """Where a change or a finding is, before the conversion: columns count characters, and the end is behind the last one."""
    lines = texts.get(item.file, [])

    def column(line: int, bytes_before: int) -> int:
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        return len(text.encode(errors="surrogatepass")[:bytes_before].decode(errors="ignore")) + 1

    node = getattr(item, "node", None)
    if node is None:
        return {"line": item.line, "column": column(item.line, getattr(item, "column", 1) - 1)}
    first, last = getattr(item, "span", (item.line, item.line))
    last = min(last, max(len(lines), first))
    whole = last == getattr(node, "end_lineno", None)
    end = column(last, node.end_col_offset) if whole else len(lines[last - 1]) + 1 if last <= len(lines) else 1
    return {"line": first, "column": column(first, getattr(node, "col_offset", 0)), "end_line": last, "end_column": max(end, 1)}


def _change(change: Change, files: tuple[FileDiff, ...], texts: dict[str, list[str]]) -> dict[str, Any]:
    mine = [(file.shown, line) for file in files for line in file.lines if change.id in line.changes]
    return {
        "id": change.id,
        "code": change.code,
        "title": all_rules()[change.code].title,
        "level": change.level.name,
        "why": change.why,
        "group": change.group,
        "without": change.without,
        "instead": "" if change.without else INSTEAD.get(change.code, ""),
        "path": change.file,
        **region(change, texts),
        "before": [{"path": shown, "line": line.old, "text": line.text} for shown, line in mine if line.kind == "-"],
        "after": [{"path": shown, "line": line.new, "text": line.text} for shown, line in mine if line.kind == "+"],
    }


def _finding(finding: Finding, texts: dict[str, list[str]]) -> dict[str, Any]:
    return {
        "code": finding.code,
        "title": all_rules()[finding.code].title,
        "level": finding.level.name,
        "path": finding.file,
        **region(finding, texts),
        "message": finding.message,
        "fix": finding.fix,
        **({"observed": _observed(finding.observed)} if finding.observed is not None else {}),
    }


def _observed(seen: Observed) -> dict[str, Any]:
    return {"held": seen.held, "said": seen.said, "steps": seen.steps, "difference": seen.difference}
