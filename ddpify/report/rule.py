"""What a rule says of itself, for the terminal and for pages."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
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
    """Everything that has a code, by its code: what changes scripts, what refuses them, and what is reported besides."""
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


def pages(rules: Iterable[Rule]) -> str:
    """Rules as Markdown, each under a heading of its own."""
    return "\n".join(map(_page, rules))


def _page(rule: Rule) -> str:
    first, _, rest = rule.text.partition("\n")
    sections = re.split(r"^(?=[A-Z][a-z ]+: )", rest.strip(), flags=re.MULTILINE)
    parts = [f"## {rule.code}: {rule.title}", first]
    for section in filter(None, sections):
        name, _, text = section.partition(": ")
        plain = " ".join(text.split())
        plain = plain[:1].upper() + plain[1:]
        parts.append(f"**{name}.** " + (re.sub(r"https://[^\s,]+", r"<\g<0>>", plain) if name == "References" else plain))
    for example in sorted(rule.examples, key=lambda example: example.after is None):
        asked = example.options.command_line()
        parts += [f"### {example.title[0].upper()}{example.title[1:]}{f', with `{asked}`' if asked else ''}", _fenced(example.before)]
        parts += ["becomes", _fenced(example.after)] if example.after is not None else ["stays as it is."]
    return "\n\n".join(parts) + "\n"


def _fenced(code: str) -> str:
    return f"```python\n{textwrap.dedent(code).rstrip()}\n```"
