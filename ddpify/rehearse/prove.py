"""What a run of a script and its conversion says of the conversion's findings: those that it answers are closed, all others stay open.

A run answers a REVIEW that says which property would answer it (`answered_by`), and whose line the original came to before its last
optimizer step. What is not compared closes nothing: in float32, whose rounding hides small differences, and where all ranks had the
same losses, a run says nothing. Where something fails, what rules hand over as alternatives to it is converted and run as well.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ddpify import records
from ddpify.conversion import Again, Conversion, Trial
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
Relied = Mapping[str, tuple[declared.Place, ...]]
"""Of each function or line of which something may be said, the places whose values that is about."""
_DIFFERENT = 1e-6  # the relative difference from which on two ranks' losses are not of the same rows
_CONDITIONAL = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_MOST = 12  # conversions that are run; twice as many are made


@dataclass(frozen=True)
class _Run:
    """A conversion that was run, what it takes for granted, the verdict, and the conversion with what this says of its findings."""

    assumed: Assumed
    conversion: Conversion
    verdict: Verdict
    judged: Conversion

    @functools.cached_property
    def _measured(self) -> dict[int, frozenset[str]]:
        return declared.measured(self.verdict.pair) if self.verdict.pair is not None else {}

    def shows(self, alternative: Alternative, relied: Relied) -> bool | None:
        """Whether values were what an alternative says of them; None where the run does not tell."""
        numbers = {place: number for number, place in enumerate(self.verdict.setting.watched)}
        seen = [self._measured.get(numbers[place]) for place in relied.get(_of(alternative)[1], ())]
        known = [words for words in seen if words is not None]
        if not known or len(known) < len(seen):
            return None
        holds = frozenset.intersection(*known)
        if alternative.value[1] == "coupled":  # what ranks have of it is no part of the original's: rows that are gathered make it so
            return None if holds else True
        return alternative.value[1] in holds

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
    last: Assumed = (),
) -> tuple[Conversion, Verdict]:
    """Run a conversion beside its original: the conversion with what that says of its findings, and the verdict.

    Where a property fails that has alternatives, those are run, too, against the same record: `otherwise` converts the script with what
    they take for granted. One that brings the two closer is kept while others are tried. Where none holds, or something stays open, the
    conversion by `last` is run, if that leaves nothing open. Where nothing holds, or nothing could be run, the conversion comes back
    without its changes.
    """
    made: dict[Assumed, Conversion] = {(): conversion}

    def converted(assumed: Assumed) -> Conversion:
        if assumed not in made:
            assert otherwise is not None
            made[assumed] = records.replace(otherwise(assumed), again=None)  # which holds all that the analysis knows
        return made[assumed]

    relied = _relied_on(converted) if otherwise is not None else {}
    watched = {*declared.claims(conversion), *(place for places in relied.values() for place in places)}
    doubts = {_place(each, f) for each in made.values() for f in each.findings if _is_asked(f)}
    lines = {p for p in (*doubts, *(_line(conversion, place) for place in watched)) if p is not None}
    setting = replace(setting, lines=tuple(sorted(lines)), watched=tuple(sorted(watched)))
    with Original(original, args) as single:
        verdict = verify(single, conversion, setting, launcher, args, progress)
        runs = [_Run((), conversion, verdict, judged(conversion, verdict, verdict))]
        tried, known = [runs[0].summary], {frozenset[Alternative]()}
        while otherwise is not None and len(tried) < _MOST > len(known) // 2 and (assumed := _next(runs, known, relied, converted)):
            known.add(frozenset(assumed))
            other = converted(assumed)
            same = next((r for r in runs if (r.conversion.bytes, r.conversion.edited) == (other.bytes, other.edited)), None)
            verdict = same.verdict if same is not None else verify(single, other, setting, launcher, args, progress)
            runs.append(_Run(assumed, other, verdict, judged(other, verdict, runs[0].verdict)))
            tried += [runs[-1].summary] if same is None else []
            if (held := _held(made, runs[-1], runs[0].verdict, relied)) is not None:
                return _telling(records.replace(held, again=_remaking(otherwise, assumed)), tried), verdict
        is_open = runs[0].judged.exit_code and runs[0].verdict.pair is not None
        if otherwise is not None and last and is_open and not converted(last).exit_code:
            verdict = verify(single, converted(last), setting, launcher, args, progress)
            run = _Run(last, converted(last), verdict, judged(converted(last), verdict, verdict))
            tried.append(run.summary)
            if not run.judged.exit_code:
                return _telling(records.replace(run.judged, again=_remaking(otherwise, last)), tried), verdict
        return _telling(runs[0].judged, tried), runs[0].verdict


def _remaking(otherwise: Callable[[Assumed], Conversion], assumed: Assumed) -> Again:
    """What makes a conversion anew without some of its changes: from a plan that is made once more, as none was kept."""
    whole = functools.cache(lambda: otherwise(assumed))
    return lambda ids, until: whole().remade(ids, until)


def judged(conversion: Conversion, verdict: Verdict, first: Verdict) -> Conversion:
    """A conversion with what its run says of it; `first` is that of another one, whose ranks had the same rows."""
    trial = _trial(verdict)
    if verdict.exit_code:
        return _withheld(conversion, trial)
    reached, answers = _reached(verdict), _answers(verdict, first)
    findings = (_observed(f, _place(conversion, f) if _is_asked(f) else None, reached, answers) for f in conversion.findings)
    return records.replace(conversion, findings=tuple(findings), trial=trial)


def _telling(conversion: Conversion, tried: Sequence[str]) -> Conversion:
    """A conversion that tells what was tried, where there was more than one."""
    if len(tried) < 2 or conversion.trial is None:
        return conversion
    return records.replace(conversion, trial=records.replace(conversion.trial, tried=tuple(tried)))


# --- alternatives ---------------------------------------------------------------------------------------------------------
def _relied_on(converted: Callable[[Assumed], Conversion]) -> Relied:
    """The places that alternatives rely on: those of lines as the script has them, those of functions as a conversion with them says.

    What is taken for granted of one function may leave another in doubt.
    """
    found: dict[str, tuple[declared.Place, ...]] = {}
    assumed: Assumed = ()
    while True:
        conversion, files = converted(assumed), _files(converted(assumed))
        found |= {a.value[0]: declared.places_of(conversion, a.value[0]) for a in assumed}
        said = [a for item in _items(conversion) for a in item.alternatives if a.option == "placements" and a.value[0] not in found]
        functions = list[Alternative]()
        for of, alternative in {a.value[0]: a for a in reversed(said)}.items():
            file, _, line = of.rpartition(":")
            place = declared.place_of_line(*files[file], int(line)) if file in files else None
            found[of] = (place,) if place is not None else ()
            functions += [] if file else [alternative]
        if not functions:
            return found
        assumed = (*assumed, *functions)


def _next(
    runs: Sequence[_Run], known: Collection[frozenset[Alternative]], relied: Relied, converted: Callable[[Assumed], Conversion]
) -> Assumed:
    """What one of the runs that came closest makes worth a trial, and was not tried; nothing where there is nothing.

    First comes all that values in the run were measured to be, then each doubt by itself. What changes no line by itself may do so
    together with something else.
    """
    closest = max(run.reached for run in runs)
    for run in (r for r in runs if r.reached == closest):
        doubts = [a for a in _in_doubt(run, relied) if not _is_about(a, run.assumed) and run.shows(a, relied) is not False]
        for assumed in (_as_measured(run, relied, converted) if doubts else (), *((*run.assumed, each) for each in doubts)):
            if assumed and frozenset(assumed) not in known:
                return assumed
    return ()


def _as_measured(run: _Run, relied: Relied, converted: Callable[[Assumed], Conversion]) -> Assumed:
    """What a run takes for granted, and all that values in it were measured to be."""
    assumed = run.assumed
    while True:
        open_ = (item for item in _items(converted(assumed)) if item.level > Safety.NOTE)
        shown = [a for item in open_ for a in item.alternatives if not _is_about(a, assumed) and run.shows(a, relied)]
        if not shown:
            return assumed
        assumed = (*assumed, *{a.value[0]: a for a in reversed(shown)}.values())


def _is_about(alternative: Alternative, assumed: Assumed) -> bool:
    """Whether something is taken for granted already of what an alternative is about."""
    return any(_of(alternative) == _of(each) for each in assumed)


def _distance(one: Step, other: Step) -> float:
    """How far the gradients of two steps are apart."""
    pairs = ((a, b) for a, b in zip(one.gradients, other.gradients, strict=False) if a is not None and b is not None)
    return math.sqrt(math.fsum((x - y) ** 2 for a, b in pairs for x, y in zip(a, b, strict=True) if math.isfinite(x - y)))


def _of(alternative: Alternative) -> tuple[str, str]:
    """What an alternative is about, of which there can be no two."""
    return alternative.option, alternative.value[0] if isinstance(alternative.value, tuple) else ""


def _in_doubt(run: _Run, relied: Relied) -> list[Alternative]:
    """The alternatives to what a run laid a failure to, answered with no, or cannot answer."""
    if run.verdict.pair is None:
        return []
    came = {e["number"] for e in run.verdict.pair.single.first.of("value")}
    values = {place for number, place in enumerate(run.verdict.setting.watched) if number in came}
    failed = next((row.rule for row in run.verdict.rows if row.holds is False), "")

    def is_open(item: Change | Finding, alternative: Alternative) -> bool:
        if run.verdict.exit_code and failed not in (alternative.answers or (item.code,)):
            return False
        if isinstance(item, Change) and item.level < Safety.REVIEW:
            return bool(run.verdict.exit_code)
        if _is_of_values(item):
            return not values.isdisjoint(relied.get(alternative.value[0], ()))
        assert isinstance(item, Finding)
        return _place(run.conversion, item) in _reached(run.verdict) and bool(run.verdict.exit_code or _answered_no(item))

    items: list[Change | Finding] = [*run.judged.findings, *run.conversion.changes]
    return [a for item in items for a in item.alternatives if is_open(item, a)]


def _items(conversion: Conversion) -> list[Change | Finding]:
    """All that a conversion says: what may hand over alternatives."""
    return [*conversion.findings, *conversion.changes]


def _is_of_values(item: Change | Finding) -> bool:
    """Whether values tell if an alternative is so: of what is not made, or not proven, no other property is compared."""
    return item.level >= Safety.REVIEW and not (isinstance(item, Finding) and item.answered_by)


def _answered_no(finding: Finding) -> bool | None:
    """Whether a run says that what a finding doubts is not so; None where it says nothing."""
    if finding.observed is None or finding.observed.difference is None:
        return None
    return not finding.observed.held


def _held(made: Mapping[Assumed, Conversion], run: _Run, first: Verdict, relied: Relied) -> Conversion | None:
    """The conversion by an alternative, where it answers what was in doubt: it held, and came to all that it rests on; else None."""
    if run.verdict.exit_code or any(map(_answered_no, run.judged.findings)):
        return None
    conversion, answers = made[()], _answers(run.verdict, first)
    doubts = _handed_over([each for assumed, each in made.items() if set(assumed) < set(run.assumed)], run.assumed)
    asked = [item for items in doubts.values() for item in items if isinstance(item, Finding)]
    places = declared.claims(run.conversion).keys() - declared.claims(conversion).keys()
    lines = {*(_place(conversion, f) for f in asked if f.answered_by), *(_line(run.conversion, place) for place in places)}
    if not lines <= _reached(run.verdict) or not all(answers[f.answered_by].held for f in asked if f.answered_by):
        return None
    of_values = [item for items in doubts.values() for item in items if _is_of_values(item)]
    if not all(run.shows(a, relied) for item in of_values for a in item.alternatives if a in run.assumed):
        return None
    whole = _trial(run.verdict)
    held = Observed(True, f"held in {whole.steps} steps, largest relative difference {whole.difference:.1e}", whole.steps, whole.difference)
    closed = []
    for items in doubts.values():
        item, by = items[0], [a for a in run.assumed if any(a in each.alternatives for each in items)]
        answered_by = item.answered_by if isinstance(item, Finding) else ""
        seen, said, keep = answers.get(answered_by, held), " and ".join(a.said for a in by), "; ".join(a.keep for a in by)
        why = f"what was converted first did not hold in the run; {said} did"
        why = f"converted with {said}, as its values were" if _is_of_values(item) else why
        column = item.column if isinstance(item, Finding) else 1
        message = f"{why} ({seen.said}); to keep it, {keep}"
        closed.append(Finding(item.code, Safety.NOTE, message, item.file, item.line, column, observed=seen))
    believed = _believed(conversion, run.conversion)
    findings = tuple(f for f in run.judged.findings if not any((b.code, b.file, b.line) == (f.code, f.file, f.line) for b in believed))
    return records.replace(run.judged, findings=(*closed, *findings))


def _handed_over(conversions: Sequence[Conversion], assumed: Assumed) -> dict[tuple[str, str, int], list[Change | Finding]]:
    """The changes and findings of conversions that have alternatives of those taken for granted, by their rules and places."""
    found: dict[tuple[str, str, int], list[Change | Finding]] = {}
    for each in conversions:
        for item in _items(each):
            if any(a in assumed for a in item.alternatives):
                found.setdefault((item.code, item.file, item.line), []).append(item)
    return found


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
    files, start = _files(conversion), (finding.line, finding.column - 1)
    return _line(conversion, declared.Place(files[finding.file][0], start, start)) if finding.file in files else None


def _line(conversion: Conversion, place: declared.Place) -> Place | None:
    """The line that must run for an expression to be evaluated; None where it may not run with its line."""
    texts = {path.absolute(): text for path, text in _files(conversion).values()}
    line, column = place.start
    text = texts.get(place.path.absolute())
    return (place.path.absolute(), line) if text is not None and _runs_with_its_line(ast.parse(text), line, column) else None


def _files(conversion: Conversion) -> dict[str, tuple[Path, str]]:
    """The files of the original, each with its text, by the names that they are shown under."""
    found = [(conversion.shown, conversion.path, conversion.source), *((m.shown, m.path, m.source) for m in conversion.modules)]
    return {shown: (path, source.text) for shown, path, source in found if path is not None}


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
