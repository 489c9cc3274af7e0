"""What a run of a script and its conversion says of the conversion's findings: those that it answers are closed, all others stay open.

A run answers a REVIEW that says which property would answer it (`answered_by`), and whose line the original came to before its last
optimizer step. What is not compared closes nothing: in float32, whose rounding hides small differences, and where all ranks had the
same losses, a run says nothing. Where something fails, what rules hand over as alternatives to it is converted and run as well.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ddpify import records
from ddpify.conversion import Conversion, Trial
from ddpify.rehearse import declared
from ddpify.rehearse.compare import Pair, apart, parting
from ddpify.rehearse.history import Digest, Rank, Step
from ddpify.rehearse.launch import Setting
from ddpify.rehearse.verify import Original, Progress, Verdict, verify
from ddpify.report import verdict as verdict_report
from ddpify.rules.base import (
    DIVIDED_BATCHES,
    SAME_GRADIENTS,
    SAME_GRADIENTS_OF_UNEQUAL_BATCHES,
    Alternative,
    Change,
    Finding,
    Observed,
    Safety,
)
from ddpify.rules.stage_findings import Believed

Place = tuple[Path, int]
Assumed = tuple[Alternative, ...]
"""What a conversion takes for granted beside what is proven."""
_DIFFERENT = 1e-6  # the relative difference from which on two ranks' losses are not of the same rows
_CONDITIONAL = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_MOST = 12  # conversions that are run


@dataclass(frozen=True)
class _Run:
    """A conversion that was run, what it takes for granted, the verdict, and the conversion with what this says of its findings."""

    assumed: Assumed
    conversion: Conversion
    verdict: Verdict
    judged: Conversion

    @property
    def reached(self) -> tuple[int, float, float, int]:
        """How far it is like the original: the property that fails first, the step at which they part, how far, and answers with yes."""
        failed = next((i for i, row in enumerate(self.verdict.rows) if row.holds is False), len(self.verdict.rows))
        pair, yes = self.verdict.pair, sum(_answered_no(f) is False for f in self.judged.findings)
        if pair is None:
            return failed, 0, -math.inf, yes
        one, other = pair.single.first, pair.ranks.first
        step = parting(one, other, pair.tolerance).step
        return (failed, math.inf, 0.0, yes) if step is None else (failed, step, -_distance(one.steps[step], other.steps[step]), yes)

    @property
    def summary(self) -> str:
        """What was tried, and what came of it."""
        what = " and ".join(each.said for each in self.assumed) or "as converted"
        failed = next((row.title for row in self.verdict.rows if row.holds is False), "")
        if failed:
            return f"{what}: fails: {failed}"
        no = any(map(_answered_no, self.judged.findings))
        return f"{what}: {'the gradients are not those of the original' if no else self.verdict.status}"


def prove(
    conversion: Conversion,
    original: Path,
    setting: Setting,
    launcher: str = "",
    args: Sequence[str] = (),
    progress: Progress = lambda run, steps: None,
    otherwise: Callable[[Assumed], Conversion] | None = None,
) -> tuple[Conversion, Verdict]:
    """Run a conversion beside its original: the conversion with what that says of its findings, and the verdict.

    Where a property fails that has alternatives, those are run, too, against the same record: `otherwise` converts the script with what
    they take for granted. One that brings the two closer is kept while others are tried. Where nothing holds, or nothing could be run,
    the conversion comes back without its changes.
    """
    made: dict[Assumed, Conversion] = {}

    def converted(assumed: Assumed) -> Conversion:
        if assumed not in made:
            assert otherwise is not None
            made[assumed] = otherwise(assumed)
        return made[assumed]

    said = [a for f in conversion.findings for a in f.alternatives if a.option == "placements"] if otherwise is not None else []
    first = {a.value[0]: a for a in reversed(said)}.values()  # what is said of one place is relied on at the same lines
    doubts = [_place(conversion, f) for f in conversion.findings if _is_asked(f)]
    doubts += [_place(other, f) for other in (converted((a,)) for a in first) for f in _believed(conversion, other)]
    watched = {place for each in (conversion, *made.values()) for place in declared.claims(each)}
    setting = replace(setting, lines=tuple(sorted({p for p in doubts if p is not None})), watched=tuple(sorted(watched)))
    with Original(original, args) as single:

        def run(assumed: Assumed, other: Conversion) -> _Run:
            verdict = verify(single, other, setting, launcher, args, progress)
            return _Run(assumed, other, verdict, judged(other, verdict, runs[0].verdict if runs else verdict))

        runs: list[_Run] = []
        runs.append(run((), conversion))
        best, known = runs[0], set[Assumed]()
        while otherwise is not None and len(runs) < _MOST and (assumed := _next(best, known)) is not None:
            known.add(assumed)
            other = converted(assumed)
            if any((other.bytes, other.edited) == (r.conversion.bytes, r.conversion.edited) for r in runs):
                continue
            runs.append(run(assumed, other))
            if (held := _held(conversion, runs[-1], runs[0].verdict)) is not None:
                return _telling(held, runs), runs[-1].verdict
            best = max(best, runs[-1], key=lambda r: r.reached)  # the first of equal ones
        return _telling(runs[0].judged, runs), runs[0].verdict


def judged(conversion: Conversion, verdict: Verdict, first: Verdict) -> Conversion:
    """A conversion with what its run says of it; `first` is that of another one, whose ranks had the same rows."""
    trial = _trial(verdict)
    if verdict.exit_code:
        return _withheld(conversion, trial)
    reached, answers = _reached(verdict), _answers(verdict, first)
    findings = (_observed(f, _place(conversion, f) if _is_asked(f) else None, reached, answers) for f in conversion.findings)
    return records.replace(conversion, findings=tuple(findings), trial=trial)


def _telling(conversion: Conversion, runs: Sequence[_Run]) -> Conversion:
    """A conversion that tells what was tried, where there was more than one."""
    if len(runs) < 2 or conversion.trial is None:
        return conversion
    return records.replace(conversion, trial=records.replace(conversion.trial, tried=tuple(r.summary for r in runs)))


# --- alternatives ---------------------------------------------------------------------------------------------------------
def _next(run: _Run, known: set[Assumed]) -> Assumed | None:
    """What a run that did not hold makes worth a trial, and was not tried; None where there is nothing."""
    taken = {_of(each) for each in run.assumed}
    candidates = ((*run.assumed, each) for _, each in _in_doubt(run) if _of(each) not in taken)
    return next((assumed for assumed in candidates if assumed not in known), None)


def _distance(one: Step, other: Step) -> float:
    """How far the gradients of two steps are apart."""
    pairs = ((a, b) for a, b in zip(one.gradients, other.gradients, strict=False) if a is not None and b is not None)
    return math.sqrt(math.fsum((x - y) ** 2 for a, b in pairs for x, y in zip(a, b, strict=True) if math.isfinite(x - y)))


def _of(alternative: Alternative) -> tuple[str, str]:
    """What an alternative is about, of which there can be no two."""
    return alternative.option, alternative.value[0] if isinstance(alternative.value, tuple) else ""


def _in_doubt(run: _Run) -> list[tuple[Change | Finding, Alternative]]:
    """The alternatives to what a run laid a failure to, or answered with no, and what hands them over."""
    items: list[Change | Finding] = [*run.conversion.findings, *run.conversion.changes]
    if run.verdict.exit_code:
        rule = next((row.rule for row in run.verdict.rows if row.holds is False), "")
        return [(item, a) for item in items for a in item.alternatives if rule in (a.answers or (item.code,))]
    return [(item, a) for item in run.judged.findings if _answered_no(item) for a in item.alternatives]


def _answered_no(finding: Finding) -> bool | None:
    """Whether a run says that what a finding doubts is not so; None where it says nothing."""
    if finding.observed is None or finding.observed.difference is None:
        return None
    return not finding.observed.held


def _held(conversion: Conversion, run: _Run, first: Verdict) -> Conversion | None:
    """The conversion by an alternative, where it answers what was in doubt: it held, and came to all that it rests on; else None."""
    if run.verdict.exit_code or any(map(_answered_no, run.judged.findings)):
        return None
    answers, believed = _answers(run.verdict, first), _believed(conversion, run.conversion)
    items: list[Change | Finding] = [*conversion.findings, *conversion.changes]
    doubts = [item for item in items if any(a in run.assumed for a in item.alternatives)]
    asked = [item for item in doubts if isinstance(item, Finding)]
    places = {*(_place(conversion, f) for f in asked), *(_place(run.conversion, f) for f in believed)}
    if not places <= _reached(run.verdict) or not all(answers[f.answered_by].held for f in asked):
        return None
    whole = _trial(run.verdict)
    held = Observed(True, f"held in {whole.steps} steps, largest relative difference {whole.difference:.1e}", whole.steps, whole.difference)
    closed = []
    for doubt in doubts:
        seen = answers[doubt.answered_by] if isinstance(doubt, Finding) else held
        by = [a for a in doubt.alternatives if a in run.assumed]
        said, keep = " and ".join(a.said for a in by), "; ".join(a.keep for a in by)
        message = f"what was converted first did not hold in the run; {said} did ({seen.said}); to keep it, {keep}"
        column = doubt.column if isinstance(doubt, Finding) else 1
        closed.append(Finding(doubt.code, Safety.NOTE, message, doubt.file, doubt.line, column, observed=seen))
    findings = tuple(f for f in run.judged.findings if not any((b.code, b.file, b.line) == (f.code, f.file, f.line) for b in believed))
    return records.replace(run.judged, findings=(*closed, *findings))


def _believed(conversion: Conversion, other: Conversion) -> list[Finding]:
    """What an alternative takes for granted that the conversion does not."""
    return [f for f in other.findings if f.code == Believed.CODE and f not in conversion.findings]


def _trial(verdict: Verdict) -> Trial:
    steps, difference, pair = 0, 0.0, verdict.pair
    if pair is not None and any(row.name == "trajectory" and row.holds for row in verdict.rows):
        steps = len(pair.single.first.steps)
        difference = parting(pair.single.first, pair.ranks.first, pair.tolerance).most
    return Trial(verdict.exit_code, steps, verdict.setting.nproc, difference, verdict_report.report(verdict))


def _withheld(conversion: Conversion, trial: Trial) -> Conversion:
    """A conversion none of whose changes is made."""
    modules = tuple(records.replace(m, code=m.source.original) for m in conversion.modules if not m.added)
    return records.replace(conversion, code=conversion.original, changes=(), modules=modules, again=None, trial=trial)


# --- which lines ran ------------------------------------------------------------------------------------------------------
def _is_asked(finding: Finding) -> bool:
    """Whether a run may answer a finding."""
    return finding.level is Safety.REVIEW and bool(finding.answered_by)


def _place(conversion: Conversion, finding: Finding) -> Place | None:
    """The line that must run for a finding to be answered; None where what it is about may not run with its line."""
    files = {conversion.shown: (conversion.path, conversion.source)} | {m.shown: (m.path, m.source) for m in conversion.modules}
    path, source = files.get(finding.file, (None, None))
    if path is None or source is None or not _runs_with_its_line(ast.parse(source.text), finding.line, finding.column - 1):
        return None
    return path.absolute(), finding.line


def _runs_with_its_line(tree: ast.Module, line: int, column: int) -> bool:
    """Whether the expression at a place is evaluated whenever its line runs: under no condition of its line, and in no second statement."""
    parent = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    here = [n for n in parent if isinstance(n, ast.expr) and (n.lineno, n.col_offset) == (line, column)]
    statements = [n for n in parent if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    if not here:
        return False
    node: ast.AST = here[0]
    while not isinstance(node, ast.stmt):
        if isinstance(node, _CONDITIONAL):
            return False
        node = parent[node]
    return not any(s is not node and s.lineno in (line, node.lineno) for s in statements)


def _reached(verdict: Verdict) -> set[Place]:
    """The places that the original came to before an optimizer step: what is done there shows in that step."""
    assert verdict.pair is not None
    events = verdict.pair.single.first.events
    last = max((at for at, event in enumerate(events) if event["kind"] == "step"), default=0)
    return {verdict.setting.lines[event["number"]] for event in events[:last] if event["kind"] == "line_ran"}


# --- what the run says ----------------------------------------------------------------------------------------------------
def _observed(finding: Finding, place: Place | None, reached: set[Place], answers: dict[str, Observed]) -> Finding:
    """A finding with what the run says of it; `place` is the line that must have been `reached`."""
    if finding.level is not Safety.REVIEW:
        return finding
    if not finding.answered_by:
        seen = Observed(False, "a run cannot show this")
    elif place is None:
        seen = Observed(False, "whether the run came to this is not seen: write it as a statement on a line of its own")
    elif place not in reached:
        seen = Observed(False, "the run did not come to this line")
    else:
        seen = answers[finding.answered_by]
    level = Safety.NOTE if seen.held else finding.level
    return records.replace(finding, level=level, message=f"{finding.message} ({seen.said})", observed=seen)


def _answers(verdict: Verdict, first: Verdict) -> dict[str, Observed]:
    """What a run that held says of each property that findings ask for; the first one shows whether the ranks' rows differ."""
    assert verdict.pair is not None
    differ = any(each.pair is not None and _differ(list(each.pair.ranks.ranks.values())) for each in (verdict, first))
    same = _same_gradients(verdict.pair, differ)
    return {
        SAME_GRADIENTS: same,
        SAME_GRADIENTS_OF_UNEQUAL_BATCHES: _of_unequal_batches(verdict.pair) or same,
        DIVIDED_BATCHES: _divided(verdict.pair),
    }


def _of_unequal_batches(pair: Pair) -> Observed | None:
    """Why it says nothing that gradients are the same: the ranks' batches were alike but for their samples; None where they were not."""
    for steps in zip(*(rank.steps for rank in pair.ranks.ranks.values()), strict=False):
        if any(step.shapes != steps[0].shapes for step in steps):
            return None
    return Observed(False, "the run says nothing of it: the batches of all ranks had the same shapes")


def _divided(pair: Pair) -> Observed:
    """Whether the ranks shared the original's batches equally."""
    sizes = [loader["batch_size"] for loader in pair.single.first.loaders]
    shares = [loader["batch_size"] for loader in pair.ranks.first.loaders]
    if not sizes or any(size is None or size % pair.nproc for size in sizes) or [s // pair.nproc for s in sizes] != shares:
        return Observed(False, "the run says nothing of it: no training loader's batches were seen to be divided")
    said = ", ".join(f"batches of {size} were divided into {pair.nproc} of {size // pair.nproc}" for size in dict.fromkeys(sizes))
    return Observed(True, f"held with the arguments of the run: {said}", len(pair.single.first.steps), 0.0)


def _same_gradients(pair: Pair, differ: bool) -> Observed:
    """Whether each step has the original's gradients; `differ` says whether the ranks computed them of different rows."""
    single, ranks = pair.single.first, list(pair.ranks.ranks.values())
    steps = [(a, b) for a, b in zip(single.steps, ranks[0].steps, strict=False) if any(_size(g) for g in a.gradients)]
    if not pair.tolerance.exact:
        return Observed(False, "the run says nothing of it: it was computed in float32")
    if not steps or not _moved(single):
        return Observed(False, "the run says nothing of it: no gradients were seen")
    if not differ:
        return Observed(False, "the run says nothing of it: all ranks had the same losses")
    most = max(_apart(pair, a.gradients, b.gradients) for a, b in steps)
    if most > pair.tolerance.relative:
        by = most if math.isfinite(most) else None
        return Observed(False, f"in the run the gradients were not the original's: relative difference {most:.1e}", len(steps), by)
    most = max(most, parting(single, ranks[0], pair.tolerance).most)
    said = f"held in {len(steps)} steps: gradients and parameters are the original's, largest relative difference {most:.1e}"
    return Observed(True, said, len(steps), most)


def _size(gradient: Digest | None) -> float:
    return gradient[-1] if gradient is not None else 0.0


def _moved(single: Rank) -> bool:
    """Whether a step changes the original's parameters."""
    return any(step.parameters != single.optimizers.get(step.optimizer, {}).get("parameters") for step in single.steps)


def _apart(pair: Pair, one: Sequence[Digest | None], other: Sequence[Digest | None]) -> float:
    if [g is None for g in one] != [g is None for g in other]:
        return math.inf
    return apart([g for g in one if g is not None], [g for g in other if g is not None], pair.tolerance)[0]


def _differ(ranks: Sequence[Rank]) -> bool:
    """Whether two ranks have different losses in some step, so that their rows were different ones."""
    for steps in zip(*(rank.steps for rank in ranks), strict=False):
        for values in zip(*(step.losses for step in steps), strict=False):
            if max(values) - min(values) > _DIFFERENT * max(map(abs, values)):
                return True
    return False
