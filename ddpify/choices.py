"""What a reviewer can leave out of a conversion, and what stands or falls together.

Most changes make one whole: without its sampler, wrap or guard a conversion hangs, or trains wrongly. This core is taken or not. A change
that says what is so `without` it can be left out alone: the training stays the same.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from ddpify.errors import DdpifyError, Where
from ddpify.records import replace
from ddpify.rules.base import Change

INSTEAD = {  # the option that decides what a rule does, where there is one
    "DDP106": "--launcher torchrun",
    "DDP303": "--batch-size per-rank",
    "DDP304": "--eval replicate",
    "DDP407": "--scale-lr none",
    "DDP411": "--amp keep",
    "DDP412": "--amp keep",
    "DDP413": "--amp keep",
    "DDP414": "--amp keep",
    "DDP415": "--amp keep",
    "DDP416": "--amp keep",
}


def identified(changes: Sequence[Change], files: Mapping[str, tuple[str, Sequence[str]]]) -> tuple[Change, ...]:
    """The changes, rule by rule and in the order of their places, each with its id: the rule and a hash of the line that it is about.

    `files` has, for each path shown, the module's name and its lines. Ids stay when other lines of a file come and go.
    """
    rules = {code: at for at, code in enumerate(dict.fromkeys(change.code for change in changes))}
    seen: Counter[str] = Counter()
    out = []
    for change in sorted(changes, key=lambda c: (rules[c.code], c.file, c.line, getattr(c.node, "col_offset", 0))):
        name, lines = files[change.file]
        line = lines[change.line - 1].strip() if change.line <= len(lines) else ""
        digest = format(zlib.crc32(f"{name}\n{line}".encode(errors="surrogatepass")), "08x")[:5]
        key = f"{change.code}-{digest}"
        seen[key] += 1
        out.append(replace(change, id=key if seen[key] == 1 else f"{key}.{seen[key]}"))
    return tuple(out)


def leaving_out(
    changes: Sequence[Change], skip: Collection[str] = (), select: Collection[str] = (), ignore: Collection[str] = ()
) -> frozenset[str]:
    """The ids of the changes that are left out: those of `skip`, and those of the rules that `ignore` names.

    Where `select` is given, what can be left out and is not of one of its rules is, too. Rules are named by their codes or how these
    begin. Raises DdpifyError for an id that there is not, and for a change that cannot be left out.
    """
    by_id = {change.id: change for change in changes}
    for given in skip:
        if given not in by_id:
            near = [i for i in by_id if i.partition("-")[0] == given.partition("-")[0]]
            hint = f"its rule's changes are {', '.join(near)}" if near else "ddpify convert --format json lists the changes"
            raise DdpifyError(f"there is no change {given}", hint)
    asked = [by_id[i] for i in dict.fromkeys(skip)]
    for code in ignore:
        asked += [c for c in changes if c.code.startswith(code)]
    refuse(asked)
    out = {c.id for c in asked}
    if select:
        out |= {c.id for c in changes if c.without and not c.code.startswith(tuple(select))}
    return frozenset(out)


def refuse(asked: Sequence[Change], hint: str = "take it with the rest") -> None:
    """Raises DdpifyError for the first of the changes that cannot be left out; `hint` says what to do."""
    for change in asked:
        if not change.without:
            instead = f", or convert with {INSTEAD[change.code]}" if change.code in INSTEAD else ""
            raise DdpifyError(
                f"{change.id} cannot be left out ({change.why}): without it the script would hang, fail or train wrongly",
                f"{hint}, or do not convert{instead}",
                Where(change.file, change.line),
            )
