"""What a run of a script and its conversion says of the conversion's findings: those that it answers are closed, all others stay open.

A run answers a REVIEW that says which property would answer it (`answered_by`), and whose line the original came to before its last
optimizer step. What is not compared closes nothing: in float32, whose rounding hides small differences, and where all ranks had the
same losses, a run says nothing.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ddpify import records
from ddpify.conversion import Conversion, Trial
from ddpify.rehearse.compare import Pair, apart, parting
from ddpify.rehearse.history import Digest, Rank
from ddpify.rehearse.launch import Setting
from ddpify.rehearse.verify import Original, Progress, Verdict, verify
from ddpify.report import verdict as verdict_report
from ddpify.rules.base import SAME_GRADIENTS, Finding, Observed, Safety
from ddpify.rules.stage_findings import Believed

Place = tuple[Path, int]
Said = tuple[str, str]
"""A function's dotted path, and how what it gives differs between ranks."""
_DIFFERENT = 1e-6  # the relative difference from which on two ranks' losses are not of the same rows
_CONDITIONAL = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def prove(
    conversion: Conversion,
    original: Path,
    setting: Setting,
    launcher: str = "",
    args: Sequence[str] = (),
    progress: Progress = lambda run, steps: None,
    otherwise: Callable[[Said], Conversion] | None = None,
) -> tuple[Conversion, Verdict]:
    """Run a conversion beside its original: the conversion with what that says of its findings, and the verdict.

    Where a property fails that has alternatives, those are run, too, against the same record: what `otherwise` makes of the script where a
    function's placement is said. Where nothing holds, or nothing could be run, the conversion comes back without its changes.
    """
    said = dict.fromkeys(s for f in conversion.findings for s in f.alternatives) if otherwise is not None else {}
    others = {each: otherwise(each) for each in said} if otherwise is not None else {}
    doubts = [_place(conversion, f) for f in conversion.findings if _is_asked(f)]
    doubts += [_place(other, f) for other in others.values() for f in _believed(conversion, other)]
    setting = replace(setting, lines=tuple(sorted({place for place in doubts if place is not None})))
    with Original(original, args) as single:
        verdict = verify(single, conversion, setting, launcher, args, progress)
        proved = _judged(conversion, verdict)
        for each, other in others.items() if _in_doubt(proved, verdict) else ():
            again = verify(single, other, setting, launcher, args, progress)
            if (held := _held(conversion, other, each, again)) is not None:
                return held, again
    return proved, verdict


def _judged(conversion: Conversion, verdict: Verdict) -> Conversion:
    """A conversion with what its run says of it."""
    trial = _trial(verdict)
    if verdict.exit_code:
        return _withheld(conversion, trial)
    reached, answers = _reached(verdict), _answers(verdict)
    findings = (_observed(f, _place(conversion, f) if _is_asked(f) else None, reached, answers) for f in conversion.findings)
    return records.replace(conversion, findings=tuple(findings), trial=trial)


# --- alternatives ---------------------------------------------------------------------------------------------------------
def _in_doubt(proved: Conversion, verdict: Verdict) -> bool:
    """Whether what failed, or was not answered with yes, is what there are alternatives for."""
    doubts = [f for f in proved.findings if f.alternatives]
    failed = {row.rule for row in verdict.rows if row.holds is False}
    no = any(f.observed is not None and not f.observed.held and f.observed.difference is not None for f in doubts)
    return no or any(f.code in failed for f in doubts)


def _held(conversion: Conversion, other: Conversion, said: Said, verdict: Verdict) -> Conversion | None:
    """An alternative that answers what was in doubt: it held, and the run came to all that it rests on; else None."""
    if verdict.exit_code:
        return None
    reached, answers, believed = _reached(verdict), _answers(verdict), _believed(conversion, other)
    doubts = [f for f in conversion.findings if said in f.alternatives]
    places = {*(_place(conversion, f) for f in doubts), *(_place(other, f) for f in believed)}
    if not places <= reached or not all(answers[f.answered_by].held for f in doubts):
        return None
    known = f'to keep it, write "{said[0]}" = "{said[1]}" under [tool.ddpify.placements] in pyproject.toml'
    closed = []
    for doubt in doubts:
        answer = answers[doubt.answered_by]
        message = f"as a mean over its samples the loss did not hold; `{said[0]}` is taken as their {said[1]} ({answer.said}); {known}"
        closed.append(records.replace(doubt, level=Safety.NOTE, message=message, fix="", observed=answer))
    judged = _judged(records.replace(other, findings=tuple(f for f in other.findings if f not in believed)), verdict)
    return records.replace(judged, findings=(*closed, *judged.findings))


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


def _answers(verdict: Verdict) -> dict[str, Observed]:
    """What a run that held says of each property that findings ask for."""
    assert verdict.pair is not None
    return {SAME_GRADIENTS: _same_gradients(verdict.pair)}


def _same_gradients(pair: Pair) -> Observed:
    """Whether each step has the original's gradients, of losses that differ between the ranks."""
    single, ranks = pair.single.first, list(pair.ranks.ranks.values())
    steps = [(a, b) for a, b in zip(single.steps, ranks[0].steps, strict=False) if any(_size(g) for g in a.gradients)]
    if not pair.tolerance.exact:
        return Observed(False, "the run says nothing of it: it was computed in float32")
    if not steps or not _moved(single):
        return Observed(False, "the run says nothing of it: no gradients were seen")
    if not _differ(ranks):
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
