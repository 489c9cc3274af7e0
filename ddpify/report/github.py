"""What is left of a conversion, and its notes, as annotations that GitHub Actions shows beside the lines.

References: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#setting-a-warning-message
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddpify.report.diff import relative_name
from ddpify.report.rule import all_rules
from ddpify.rules.base import Change, Finding, Safety

if TYPE_CHECKING:
    from ddpify.conversion import Conversion

_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


def commands(conversion: Conversion) -> str:
    """A workflow command for each finding, and for each change to review; paths are relative to the current directory."""
    paths = {conversion.shown: conversion.path} | {module.shown: module.path for module in conversion.modules}
    items: list[Change | Finding] = [*conversion.findings, *(change for change in conversion.changes if change.level >= Safety.REVIEW)]
    text = ""
    for item in sorted(items, key=lambda item: (item.file, item.line)):
        file = item.file.removesuffix(" (converted)")
        said, fix = (item.message, item.fix) if isinstance(item, Finding) else (item.why, "")
        properties = {
            "file": relative_name(paths.get(file), file),
            "line": str(item.line),
            "title": f"{item.level.name} {item.code} {all_rules()[item.code].title}",
        }
        given = ",".join(f"{name}={_escaped(value, _PROPERTY)}" for name, value in properties.items())
        message = _escaped(f"{said}\nwrite: {fix}" if fix else said, _DATA)
        text += f"::{'notice' if item.level is Safety.NOTE else 'warning'} {given}::{message}\n"
    if conversion.status == "refuse":
        text += f"::error title=refused::{_escaped(conversion.reason, _DATA)}\n"
    return text


def _escaped(text: str, characters: dict[str, str]) -> str:
    return "".join(characters.get(c, c) for c in text)
