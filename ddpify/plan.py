"""From facts to a plan: the rules' changes and findings, and the ledger of what must hold for every training loop."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Literal

from ddpify.choices import identified
from ddpify.facts import averaged, collect, initialize, library, wrap_places, written_batches
from ddpify.facts.assumed import AS_WRITTEN, AssumedEdits
from ddpify.facts.collect import Facts
from ddpify.facts.tree import value_of_line
from ddpify.facts.unnamed import unnamed
from ddpify.launchers import start
from ddpify.launchers.spawn import Spawned
from ddpify.options import Options
from ddpify.progress import doing
from ddpify.project import Project
from ddpify.records import dataclass, field, replace
from ddpify.rules import registry
from ddpify.rules.base import Change, Claim, Finding, Obligation, Proof, Safety
from ddpify.rules.context import Context
from ddpify.rules.data import batch_size, evaluation, whole_batches
from ddpify.rules.loop import carried, decisions, loss, metrics, padding, settings
from ddpify.rules.model import weight_gradients, wrap, writes
from ddpify.rules.precision import apex_version, removal
from ddpify.rules.process import local_rank, relaunch, runtime_module, setup, spawn
from ddpify.rules.process.runtime_module import NewFile
from ddpify.rules.refuse import verdict

_LEDGER = {
    "gradients": "nothing was found that averages the gradients of this backward call over the ranks: their parameters would drift apart",
    "inputs": "nothing was found that gives each rank a different part of this loader's data: all ranks may train on the same samples",
    "loss": "this loss may not be a mean over the samples of all ranks: the gradients may differ from the original's",
    "epoch": "nothing was found that sets the epoch of this loader's sampler: every epoch may have the same order",
}


@dataclass(frozen=True)
class Plan:
    """What to do with a script: nothing, refuse, or the changes; `command` runs the result, with `{script}` for its path.

    `set_up` makes the set-up that a part of the changes needs.
    """

    status: Literal["convert", "nothing", "refuse"]
    changes: tuple[Change, ...] = ()
    findings: tuple[Finding, ...] = ()
    command: str = ""
    reason: str = ""
    options: Options = field(default_factory=Options)
    added: NewFile | None = None
    edited: tuple[str, ...] = ()  # the modules that may be edited beside the entry
    spawned: Spawned | None = None  # how the result is to be moved under mp.spawn
    distributed: bool = False  # the script was distributed before
    install: str = ""  # the commands that get what the result needs
    set_up: Callable[[Sequence[Change]], tuple[list[Change], NewFile | None]] | None = None
    bound: frozenset[str] = frozenset()  # the names that the edited files and the runtime block bind

    def without(self, ids: Collection[str]) -> Plan:
        """The plan with fewer changes."""
        changes = tuple(change for change in self.changes if change.id not in ids)
        if self.set_up is None or len(changes) == len(self.changes):
            return replace(self, changes=changes)
        before = next(change for change in self.changes if change.code == setup.CODE)
        first, added = self.set_up([change for change in changes if change.code != setup.CODE])
        first = [before if _alike(c, before) else replace(c, id=before.id) for c in first if before.id not in ids]
        return replace(self, changes=(*(c for c in changes if c.code != setup.CODE), *first), added=added)


ASKED: Sequence[ModuleType] = registry.PLANNING
"""The rules in the order in which they are asked; any order gives the same plan."""


def make_plan(project: Project, options: Options, marks: Sequence[Change] = (), unfinished: bool = False) -> Plan:
    """Decide what becomes of a project's entry; `marks` are made beside what is decided.

    Whole batches are planned where something is left to do without them, or where what is planned was found to be `unfinished`.
    """
    refusal = verdict(project)
    if refusal is not None and refusal.code == "DDP911" and options.launcher is not None:
        if (made := relaunch.move(project, options.launcher)) is not None:
            return _moved(project, made, options)
        how = " with --use-env" * (options.launcher == "launch" and local_rank.needs_environment(project, ()))
        refusal = replace(refusal, reason=f"{refusal.reason}; {options.launcher} starts it as it is{how}")
    if refusal is not None:
        asked = f"; --amp {options.amp} is carried out where a script is converted" if options.amp != "keep" else ""
        return Plan(refusal.status, reason=refusal.reason + asked * (refusal.status == "nothing"))
    context, changes, findings = _planned(project, options)
    left = _left(changes, findings)
    if options.whole_batches != "never" and (unfinished or left):
        start = whole_batches.given(context)
        base = whole_batches.assumed(_context(project, options, context.facts.edited, start), (*changes, *findings))
        base = base and whole_batches.with_shares(_context(project, options, context.facts.edited, base))
        instead = _planned(project, options, base) if base is not None else None
        less = instead is not None and (not (then := _left(*instead[1:])) or then < left)
        if instead is not None and less and whole_batches.computes_alike(instead[0]):
            context, changes, findings = instead
    entry, findings = project.entry, [loss.explained(context, f) for f in findings]
    findings += [Finding("DDP204", Safety.NOTE, sentence, entry.shown, line) for line, sentence in entry.source.mended]
    if _blocked(context, findings) and not (options.draft and _trains(context, findings)):
        return Plan("convert", (), tuple(sorted(findings, key=_rank)), "", "")
    changes, place = runtime_module.by_file(context, changes)
    set_up = functools.partial(setup.change, context, place=place)
    first, added = set_up(changes)
    of_the_start = (*runtime_module.apart(context, changes), *spawn.one_by_default(context), *spawn.read_too_early(context))
    findings = sorted([*findings, *of_the_start], key=_rank)
    return Plan(
        "convert",
        _identified((*changes, *first, *spawn.change(context), *marks), project),
        tuple(findings),
        command(context),
        options=options,
        added=added,
        edited=context.facts.edited,
        spawned=spawn.asked(context, added) if options.starts == "spawn" else None,
        install=apex_version.install(context, changes),
        set_up=set_up,
        bound=_bound(context),
    )


def _planned(project: Project, options: Options, base: AssumedEdits = AS_WRITTEN) -> tuple[Context, list[Change], list[Finding]]:
    """What the rules decide of a script, with all modules edited that they need to edit."""
    first = _context(project, options, base=base)
    if wanted := {name for node in (*base.read_whole, *base.redistributed) if (name := first.facts.tree_of(node).name) != "__main__"}:
        edited = dict.fromkeys((*first.facts.edited, *sorted(wanted)))
        first = _context(project, options, tuple(edited), base)
    context, changes, findings = _decide(first)
    while further := _concerned(context, findings):
        first = _context(project, options, (*context.facts.edited, *further), base)
        context, changes, findings = _decide(first)
    return context, changes, findings


def _left(changes: Sequence[Change], findings: Sequence[Finding]) -> frozenset[tuple[str, str, int]]:
    """What is left to do, by the rule and the place."""
    left: list[Change | Finding] = [*changes, *findings]
    return frozenset((each.code, each.file, each.line) for each in left if each.level >= Safety.REVIEW)


def _bound(context: Context) -> frozenset[str]:
    return context.bound | frozenset(context.names.values())


def _identified(changes: Sequence[Change], project: Project) -> tuple[Change, ...]:
    files = {"__main__": project.entry, **project.analysed}
    return identified(changes, {file.shown: (name, file.source.text.splitlines()) for name, file in files.items()})


def _alike(one: Change, other: Change) -> bool:
    """Whether two changes do the same."""
    return _signature(one) == _signature(other) and one.imports == other.imports


def _moved(project: Project, made: relaunch.Move, options: Options) -> Plan:
    """The plan that moves a distributed script to another launcher."""
    changes, stuck = tuple(made.changes), any(f.level is Safety.MANUAL for f in made.findings)
    entry = project.entry
    if made.spawned is not None:
        why = "the script starts its processes itself; each runs the worker"
        changes = (*changes, Change("DDP106", why, entry.shown, entry.tree.body[-1], ()))
    return Plan(
        "convert",
        () if stuck else _identified(changes, project),
        tuple(made.findings),
        made.command,
        options=options,
        spawned=made.spawned,
        distributed=True,
    )


def first(project: Project, options: Options) -> Plan | None:
    """What is done to a script before it is converted, each step on what the one before has made of it; None where nothing is left.

    A mixed precision that is not the one asked for is taken out; what is distributed already is given the one that is.
    """
    if options.amp == "keep":
        return None
    said = verdict(project)
    distributed = said is not None and said.code == "DDP911"
    if said is not None and not distributed:
        return None
    found, bound = list[Change | Finding](), frozenset[str]()
    facts = collect.collect(project)  # which reads the modules
    words = ("autocast", "GradScaler") if options.level else ("apex",)
    if any(word in file.source.text for file in (project.entry, *project.files.values()) for word in words):
        found += removal.changes(_with_sharded_evaluation(Context(facts, options)))
    if distributed and not found:
        context = replace(_context(project, options), distributed=True)
        bound = _bound(context)
        found += [item for rule in registry.PRECISION for item in rule.changes(context)]
    changes = tuple(c for c in found if isinstance(c, Change))
    findings = tuple(f for f in found if isinstance(f, Finding))
    return Plan("convert", _identified(changes, project), findings, options=options, bound=bound) if found else None


def _rank(finding: Finding) -> tuple[int, str, int, int, str, str]:
    return -finding.level, finding.file, finding.line, finding.column, finding.code, finding.message


def _context(project: Project, options: Options, edited: tuple[str, ...] | None = None, base: AssumedEdits = AS_WRITTEN) -> Context:
    facts = collect.collect(project, base)
    written_batches.feed(facts)
    facts.edited = facts.edited if edited is None else edited
    amp = initialize.place(facts) if options.level else None
    facts.wrap_after = amp.event if isinstance(amp, initialize.Site) else None
    wrap_places.place_wraps(facts)
    averaged.fill(facts)
    return _with_sharded_evaluation(Context(facts, options, amp=amp))


def _with_sharded_evaluation(context: Context) -> Context:
    return replace(context, sharded_evaluation=evaluation.sharded_loaders(context))


def _concerned(context: Context, findings: Sequence[Finding]) -> tuple[str, ...]:
    """The modules that could be edited, and are not yet, in which something is left to do."""
    project, left = context.facts.project, [f for f in findings if f.level >= Safety.REVIEW]
    names = {n for f in left for n in f.needs_edits_in}
    names |= {n for n, file in project.files.items() if any(file.shown == f.file for f in left)}
    return tuple(n for n in project.files if n in names and n not in context.facts.edited and project.may_edit(n))


def _decide(context: Context) -> tuple[Context, list[Change], list[Finding]]:
    """The changes and findings of all rules, and the context of the script as it is once values are replicated."""
    if context.facts.before.trace.exhausted:
        why = "the script is too large to be analysed to its end, so that nothing is known of the rest"
        return context, [], [context.manual("DDP900", context.tree.root.body[0], why)]
    changes: list[Change] = []
    findings: list[Finding] = []
    done: set[Obligation] = set()
    context, first = _replicate(context)
    answers: dict[ModuleType, list[Change | Finding | Proof]] = {}
    for rule in ASKED:
        doing("planning")
        answers[rule] = first[rule] if rule in first else list(rule.changes(context))
    for rule in registry.PLANNING:  # what several put at one place stands in this order, whoever was asked first
        for item in answers[rule]:
            if isinstance(item, Change):
                changes.append(item)
                done.update(item.discharges)
            elif isinstance(item, Finding):
                findings.append(item)
                done.update(item.discharges)
            else:
                done.add(item.of)
    for owed in _owed(context.facts):
        if owed not in done:
            findings.append(
                context.manual(
                    "DDP900",
                    owed.about,
                    _LEDGER[owed.kind],
                    "make sure of it by hand, and compare with `ddpify verify`; `ddpify rules DDP900` lists what each training loop needs",
                )
            )
    findings += _unreached(context)
    findings += _unread(context)
    findings += _believed(context)
    return context, changes, list(dict.fromkeys(findings))


def _replicate(context: Context) -> tuple[Context, dict[ModuleType, list[Change | Finding | Proof]]]:
    """Ask the rules that reduce values and broadcast decisions, until they add no change.

    Each is asked in the context that holds once the changes before it are made: what is replicated there already needs no change. Returns
    the last context, and what these rules answer.
    """
    items: dict[ModuleType, list[Change | Finding | Proof]] = {}
    gradients = [c for c in weight_gradients.averages(context) if isinstance(c, Change)]
    context = start = _with_effects(context, gradients)
    for rule in (carried, loss):  # each judges what the one before it has made of the script
        items[rule] = list(rule.changes(context))
        context = _with_effects(context, items[rule])
    if items[carried] and any(isinstance(i, Change) and i.redistributes for i in items[loss]):
        context = _with_effects(start, items[loss])
        items[carried] = list(carried.changes(context))  # what is kept may be of all ranks' rows now
        context = _with_effects(context, items[carried])
    closures = [c for c in settings.changes(context) if isinstance(c, Change) and c.redistributes]
    context = _with_effects(context, closures)
    weights = [c for c in writes.changes(context) if isinstance(c, Change) and c.redistributes]
    context = _with_effects(context, weights)
    base, of_batches, changes = context, list[Change](), {metrics: list[Change](), decisions: list[Change]()}
    for _ in range(6):
        agreeing: list[Change] = []
        for rule, known in changes.items():  # reductions first: decisions are about what they give
            found = list(rule.changes(context))
            before = {_signature(c) for c in known}
            new = [c for c in found if isinstance(c, Change) and _signature(c) not in before]
            if rule is metrics:
                reduced = [c for c in new if c.replicates]
                sure = [c for c in reduced if c.level < Safety.REVIEW]
                if not sure and (numbers := list(metrics.by_batch(context, base))):  # rather than what is doubtful
                    of_batches += numbers
                    context, agreeing = base, of_batches  # what is computed from these needs no reduction after its loop
                    changes = {metrics: [*of_batches], decisions: []}
                    break
                new = [*(c for c in new if not c.replicates), *(sure or reduced)]
            known += new
            items[rule] = [*(i for i in found if not isinstance(i, Change)), *known]
            agreeing = [c for c in new if c.replicates or c.replicated_branches or c.redistributes]
            if agreeing:
                break
        if not agreeing:
            break
        context = context.after_changes(agreeing)
    items[settings] = [*closures, *settings.changes(context)]
    items[writes] = [*weights, *writes.changes(context)]
    for rule in (carried, loss):
        items[rule] = _still_said(context, rule, items[rule])
    if gradients:
        items[wrap] = [*gradients, *wrap.changes(context)]
    return context, items


def _still_said(context: Context, rule: ModuleType, items: list[Change | Finding | Proof]) -> list[Change | Finding | Proof]:
    """What a rule answered, without the findings that hold no more once what the other rules reduce is reduced."""
    if not any(isinstance(item, Finding) for item in items):
        return items
    left, known = list(rule.changes(context)), {_signature(item) for item in items if isinstance(item, Change)}
    if any(_signature(item) not in known if isinstance(item, Change) else isinstance(item, Finding) and item not in items for item in left):
        return items  # what is to be done there is another thing by now
    proofs = [item for item in left if isinstance(item, Proof) and item not in items]
    return [item for item in items if not isinstance(item, Finding) or item in left] + proofs


def _with_effects(context: Context, items: Iterable[Change | Finding | Proof]) -> Context:
    """The context once those changes are made that tell how values differ between ranks."""
    made = [c for c in items if isinstance(c, Change) and (c.replicates or c.redistributes)]
    return context.after_changes(made) if made else context


def _signature(change: Change) -> tuple[object, ...]:
    """What a change does, so that it is not done twice."""
    return change.node, *((type(e), e.node, getattr(e, "template", getattr(e, "code", ""))) for e in change.edits)


def _unreached(context: Context) -> list[Finding]:
    """Backward calls in code that the analysis did not reach."""
    facts = context.facts
    reached = {loop.backward.node for loop in facts.loops}
    out = []
    idle = unnamed(facts.trees["__main__"], facts.trees.values()) if reached else frozenset()
    for tree in facts.trees.values() if not reached else [facts.trees["__main__"]]:
        for node in tree.nodes():
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "backward"
                and node not in reached
                and tree.statement(node) not in facts.before.trace.visited
                and node.func.value is not None
            ):
                unused = next((up for up in tree.ancestors(node) if up in idle), None)
                if unused is not None:
                    why = "nothing runs what this is defined in, so that it is left as it is"
                    out.append(context.manual("DDP900", unused, why, level=Safety.NOTE))
                    continue
                out.append(
                    context.manual(
                        "DDP900",
                        node,
                        "the analysis did not find what calls this backward, so that nothing is known of what it trains",
                        "call the training from the script, not through names that only exist at run time",
                    )
                )
    if not reached and not out:
        out.append(
            context.manual(
                "DDP900",
                facts.entry.root.body[0],
                "the analysis found no backward call that this script runs, so that nothing is known of its training",
            )
        )
    return out


def _believed(context: Context) -> Iterator[Finding]:
    """The placements that the user declared, where the analysis relied on them."""
    for node, (path, said) in context.facts.after.trace.believed.items():
        if context.facts.is_edited(node):
            what = f"`{path}`" if path else "what this line computes"
            why = f"taken as declared by the project: {what} is {said} (`ddpify verify` checks it)"
            yield replace(context.manual("DDP903", node, why, level=Safety.NOTE), claim=_claim(node, path, said))


def _claim(node: ast.AST, path: str, said: str) -> Claim | None:
    """What is said of the value of a call, or of a statement."""
    value = value_of_line(node) if isinstance(node, ast.stmt) else node
    if not isinstance(value, ast.expr):
        return None
    return Claim(path, said, (value.lineno, value.col_offset), (value.end_lineno or value.lineno, value.end_col_offset or 0))


def _unread(context: Context) -> Iterator[Finding]:
    """Modules that cannot be read. Raises DdpifyError where the script would fail by that, too."""
    facts = context.facts
    for tree in facts.trees.values():
        imports: list[ast.Import | ast.ImportFrom] = tree.of(ast.Import, ast.ImportFrom)
        for node in imports:
            if node not in facts.after.trace.visited:
                continue
            for name in facts.project.broken.keys() & facts.after.interpreter.imports(node, tree.name):
                if all(isinstance(up, ast.Module) for up in tree.ancestors(node)):
                    raise facts.project.broken[name]
                why = f"{name} cannot be read, so that it is not known what it does: {facts.project.broken[name]}"
                yield context.manual("DDP900", node, why, "fix that module first, or remove the import")


def _owed(facts: Facts) -> list[Obligation]:
    """What must hold for every training loop."""
    out = []
    for loop in facts.loops:
        out += [Obligation("gradients", loop.backward.node), Obligation("loss", loop.backward.node)]
        for loader in loop.loaders:
            node = getattr(loader, "node", loop.backward.node)
            out += [Obligation("inputs", node), Obligation("epoch", node)]
    return list(dict.fromkeys(out))


def _trains(context: Context, findings: list[Finding]) -> bool:
    """Whether anything was found of the training."""
    return bool(context.facts.loops) or any(f.level is Safety.MANUAL and f.code == "DDP201" for f in findings)


def _blocked(context: Context, findings: list[Finding]) -> bool:
    """Whether the core of a conversion is missing: then no edit is made, since half of one would train wrongly."""
    facts = context.facts
    return (
        (not facts.models and not facts.averaged_optimizers)
        or (bool(facts.models) and not any(m.wraps or m.wrapped or m in facts.needs_no_wrapper for m in facts.models))
        or any(f.level is Safety.MANUAL and f.code in ("DDP201",) for f in findings)
    )


def command(context: Context) -> str:
    """The command that runs the result."""
    facts = context.facts
    use_env = local_rank.needs_environment(facts.project, facts.edited, facts.after.trace.visited)
    return start.command(context.options.starts, batch_size.devices(context), use_env, facts.project.runs)


def check(project: Project, plan: Plan) -> tuple[Finding, ...]:
    """Plan the output once more: whatever a rule would still change was not carried out."""
    if plan.distributed:
        again = relaunch.move(project, plan.options.starts) if plan.spawned is None else None
        return () if again is None else tuple(replace(f, level=Safety.MANUAL) for f in again.findings)
    context, changes, findings = _decide(_context(project, plan.options, plan.edited))
    changes, _ = runtime_module.by_file(context, changes)
    known = [(f.code, f.message) for f in plan.findings]
    prefixed = any(f.code == "DDP203" and f.level in (Safety.NOTE, Safety.REVIEW) for f in plan.findings)
    if prefixed:  # keys and names keep the original's prefix: the wrapper's own are meant
        kept = library.STATE_METHODS | library.NAMING_METHODS
        mine = (c for c in changes if c.code == "DDP203")
        meant = {c for c in mine if c.node in context.facts.unwrapped_arguments or getattr(c.node, "attr", "") in kept}
        changes = [c for c in changes if c not in meant]
    if any(f.code == "DDP414" and f.level is Safety.MANUAL for f in plan.findings):  # what stood in the way may be gone
        changes = [c for c in changes if c.code not in ("DDP414", "DDP415")]
        findings = [f for f in findings if f.code != "DDP414"]
    left = [
        context.manual("DDP902", c.node, f"the conversion is incomplete here, {c.code} would still change this line: {c.why}")
        for c in changes
    ]
    findings += [*metrics.unreduced_numbers(context), *padding.waiting(context)]
    left += [f for f in findings if f.level >= Safety.REVIEW and not any(f.code == c and said.startswith(f.message) for c, said in known)]
    edited = {tree.shown for tree in context.tree.trees}
    return tuple(dict.fromkeys(replace(f, file=f"{f.file} (converted)") if f.file in edited else f for f in left))
