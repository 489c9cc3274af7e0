"""What a rule says of itself, for the terminal and for pages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from inspect import cleandoc

from ddpify.rules.base import Example


@dataclass(frozen=True)
class Rule:
    """A rule as it is explained; `text` has what it does, why, how safe it is, and references."""

    code: str
    title: str
    text: str
    examples: tuple[Example, ...]


@cache
def all_rules() -> dict[str, Rule]:
    """Everything that has a code, by its code: what changes scripts, what refuses them, and what is told besides."""
    from ddpify.rules import refuse
    from ddpify.rules.registry import RULES
    from ddpify.rules.stage_findings import STAGE_FINDINGS

    rules = [Rule(r.CODE, r.TITLE, cleandoc(r.__doc__ or ""), r.EXAMPLES) for r in (*RULES, *refuse.RULES)]
    rules += [Rule(t.CODE, t.TITLE, cleandoc(t.__doc__ or ""), ()) for t in STAGE_FINDINGS]
    return {rule.code: rule for rule in sorted(rules, key=lambda rule: rule.code)}


def explained(rule: Rule) -> str:
    """Code, title and text, then the examples: first what is changed, then what is left alone."""
    text = f"{rule.code}  {rule.title}\n\n{rule.text}\n"
    for example in sorted(rule.examples, key=lambda example: example.after is None):
        asked = example.options.command_line()
        text += f"\n--- {example.title}{', with ' + asked if asked else ''}\n{example.before.rstrip()}\n"
        text += f"--- becomes\n{example.after.rstrip()}\n" if example.after is not None else "--- stays as it is\n"
    return text
