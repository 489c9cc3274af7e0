"""A conversion as SARIF 2.1.0, for code scanning: every change and every finding is a result.

References: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import re
from json import dumps
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ddpify import __version__
from ddpify.report.diff import relative_name
from ddpify.report.json import region, texts_of
from ddpify.report.rule import Rule, all_rules, explained
from ddpify.rules.base import Change, Finding, Safety

if TYPE_CHECKING:
    from ddpify.conversion import Conversion

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Safety.SAFE: "note", Safety.NOTE: "note", Safety.REVIEW: "warning", Safety.MANUAL: "error"}
_KEYS = {"line": "startLine", "column": "startColumn", "end_line": "endLine", "end_column": "endColumn"}


def log(conversion: Conversion) -> dict[str, Any]:
    """The conversion as a SARIF log; paths are relative to the current directory where they lie below it."""
    rules = all_rules()
    texts = texts_of(conversion)
    names = {conversion.shown: relative_name(conversion.path, conversion.shown)}
    names |= {module.shown: relative_name(module.path, module.shown) for module in conversion.modules}
    items: list[Change | Finding] = [*conversion.findings, *conversion.changes]
    codes = sorted({item.code for item in items})
    results = [_result(item, names, texts, codes) for item in items]
    driver = {
        "name": "ddpify",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(rules[code]) for code in codes],
    }
    notifications = [{"level": "error" if conversion.status == "refuse" else "note", "message": {"text": conversion.reason}}]
    invocation = {
        "executionSuccessful": conversion.status != "refuse",
        "exitCode": conversion.exit_code,
        **({"toolExecutionNotifications": notifications} if conversion.reason else {}),
    }
    run = {"tool": {"driver": driver}, "invocations": [invocation], "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def render(conversion: Conversion) -> str:
    """The log as text: indented, ASCII only."""
    return dumps(log(conversion), indent=2) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    links = re.findall(r"https://[^\s,]+", rule.text.partition("References:")[2])
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in re.findall(r"[A-Za-z0-9]+", rule.title)),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.text.partition("\n")[0]},
        "help": {"text": explained(rule)},
        **({"helpUri": links[0]} if links else {}),
    }


def _result(item: Change | Finding, names: dict[str, str], texts: dict[str, list[str]], codes: list[str]) -> dict[str, Any]:
    where = item.file.removesuffix(" (converted)")
    location = {"uri": quote(names.get(where, relative_name(None, where)))}
    physical = {"artifactLocation": location, "region": {_KEYS[key]: value for key, value in region(item, texts).items()}}
    if isinstance(item, Change):
        return {
            "ruleId": item.code,
            "ruleIndex": codes.index(item.code),
            "level": _LEVELS[item.level],
            "message": {"text": item.why},
            "locations": [{"physicalLocation": physical}],
            "partialFingerprints": {"ddpifyId/v1": item.id},
            "properties": {"safety": item.level.name, "group": item.group, "applied": True},
        }
    return {
        "ruleId": item.code,
        "ruleIndex": codes.index(item.code),
        "level": _LEVELS[item.level],
        "message": {"text": f"{item.message}. {item.fix}" if item.fix else item.message},
        "locations": [{"physicalLocation": physical}],
        "properties": {"safety": item.level.name, "applied": False},
    }
