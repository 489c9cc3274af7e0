"""Source to checked result: read, plan, rewrite, and prove the output by planning it once more."""

from __future__ import annotations

import ast
import copy
import gc
import shlex
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ddpify import comments
from ddpify.choices import refuse
from ddpify.errors import DdpifyError, Where
from ddpify.frame_memory import with_large_frame
from ddpify.options import Options
from ddpify.progress import doing
from ddpify.project import Project, load, of_source, shown
from ddpify.records import dataclass, field, replace
from ddpify.rules.base import Change, Finding, Safety
from ddpify.source import Source, from_bytes, from_text, is_notebook, script_path

if TYPE_CHECKING:
    from ddpify.apply.rewrite import Rewritten
    from ddpify.launchers.spawn import Spawned
    from ddpify.plan import Plan

_PLEASE = "please report this with the script"
Status = Literal["convert", "nothing", "refuse"]
Until = Literal["rewritten", "moved", "checked"]
"""How far a conversion is made anew: its texts as they are before mp.spawn takes them over, its texts, or these and their faults."""
Again = Callable[[frozenset[str], Until], "Conversion"]
"""Makes a conversion anew from its plan, without the changes of these ids."""


@dataclass(frozen=True)
class Module:
    """A local module that the script imports, or one that its conversion adds, and what became of it."""

    path: Path
    shown: str
    source: Source
    code: str
    added: bool = False

    @property
    def changed(self) -> bool:
        """Whether the module differs from what it was."""
        return self.added or self.code != self.source.original

    @property
    def bytes(self) -> bytes:
        """The module as it is written."""
        return self.source.encode(self.code)

    def diff(self) -> str:
        """A unified diff of the module."""
        from ddpify.report.diff import relative_name, unified

        bom = "\ufeff" if self.source.bom else ""
        name = relative_name(self.path, self.shown)
        return unified("" if self.added else bom + self.source.original, bom + self.code, name, self.added)


@dataclass(frozen=True)
class Trial:
    """What a run of a conversion beside its original showed: `report` is the verdict as plain data, as `ddpify verify --json` gives it.

    `steps` optimizer steps were compared on `ranks` ranks; `difference` is the largest relative one of their parameters. `tried` tells
    what was run, a sentence for each conversion, where there was more than one.
    """

    exit_code: int
    steps: int
    ranks: int
    difference: float
    report: Mapping[str, object] = field(default_factory=dict, repr=False, compare=False)
    tried: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conversion:
    """A script, what became of it, and why.

    `shown` is the path as the user gave it, `command` the command that runs the result, with `{script}` for its path, `install` the
    commands that get what it needs beside torch, `modules` the local modules that the script needs, changed or not. `again` makes it
    anew, without some of its changes; `left_out` has the ids of those that it was made without. `trial` is what a run of it showed.
    """

    source: Source
    code: str
    status: Status
    shown: str
    path: Path | None = None
    changes: tuple[Change, ...] = ()
    findings: tuple[Finding, ...] = ()
    command: str = ""
    reason: str = ""
    modules: tuple[Module, ...] = ()
    install: str = ""
    again: Again | None = field(default=None, repr=False, compare=False)
    left_out: frozenset[str] = frozenset()
    trial: Trial | None = None

    def without(self, ids: Collection[str]) -> Conversion:
        """The conversion with some changes left out, from the same plan. Raises DdpifyError for changes that cannot be left out."""
        refuse([change for change in self.changes if change.id in ids])
        if not ids or self.again is None:
            return self
        converted, left_out = self.remade(ids, "checked"), self.left_out | frozenset(ids)
        known = (*converted.findings, *(f for f in self.findings if f.observed is None))  # what was run was another conversion
        return replace(converted, findings=tuple(dict.fromkeys(known)), again=self.again, left_out=left_out, trial=None)

    def remade(self, ids: Collection[str], until: Until) -> Conversion:
        """The conversion made anew without some changes, as far as `until` says: for its texts alone, or checked as well."""
        with _reported(self.shown):
            return self if self.again is None else self.again(self.left_out | frozenset(ids), until)

    @property
    def original(self) -> str:
        """The text before the conversion."""
        return self.source.original

    @property
    def changed(self) -> bool:
        """Whether the result differs from the original."""
        return self.code != self.original or bool(self.edited)

    @property
    def edited(self) -> tuple[Module, ...]:
        """The modules that are changed, or added."""
        return tuple(module for module in self.modules if module.changed)

    @property
    def patch(self) -> bytes:
        """The diff as it is piped: each file in its own encoding."""
        from ddpify.report.diff import encoded

        return b"".join(encoded(diff, source.encoding) for diff, source in self._diffs())

    @property
    def bytes(self) -> bytes:
        """The result as it is written: in the original's encoding, with its BOM."""
        return self.source.encode(self.code)

    @property
    def exit_code(self) -> int:
        """0 done or nothing to do, 1 something is left to review or to do by hand, or failed in a run, 2 refused or not run."""
        if self.status == "refuse":
            return 2
        if self.trial is not None and self.trial.exit_code:
            return self.trial.exit_code
        return int(any(level >= Safety.REVIEW for level in self.levels))

    @property
    def levels(self) -> tuple[Safety, ...]:
        """The level of every change, then of every finding."""
        return (*(change.level for change in self.changes), *(finding.level for finding in self.findings))

    def diff(self) -> str:
        """A unified diff for `git apply` and `patch -p1`, its paths relative to the current directory."""
        return "".join(diff for diff, _ in self._diffs())

    def _diffs(self) -> list[tuple[str, Source]]:
        from ddpify.report.diff import relative_name, unified

        bom = "\ufeff" if self.source.bom else ""
        new = bool(self.source.notebook)  # the notebook stays: the script is a new file
        script = unified("" if new else bom + self.original, bom + self.code, relative_name(self.path, self.shown), new)
        return [(script, self.source), *((module.diff(), module.source) for module in self.edited)]

    def run_command(self, script: str) -> str:
        """The command that runs the result when it lies at `script`."""
        return self.command.replace("{script}", shlex.quote(script))


def convert(source: str | bytes | Path, options: Options | None = None, *, path: Path | None = None, shown: str = "<string>") -> Conversion:
    """Convert a training script; nothing is written.

    A `Path` is read, and so are the local modules it imports; a notebook (.ipynb) stands for the script of its cells, beside it.
    A `str` or `bytes` is the script's text: `path` says where it lies, if its local modules matter, and `shown` what messages call it.
    Raises DdpifyError where there is no readable Python 3.
    """
    if isinstance(source, Path):
        path, shown = source, str(source)
    shown = str(path) if path is not None else shown
    with _reported(shown):
        project = load(source) if isinstance(source, Path) else of_source(_text(source, shown), path, shown)
    path, shown = script_path(path) if path is not None else None, project.entry.shown
    project.placements = dict(options.placements) if options is not None else {}
    line = comments.skips_file(project.entry.source.text)
    if line:
        reason = f"the comment on line {line} asks that the file stays as it is"
        return Conversion(project.entry.source, project.entry.source.original, "nothing", project.entry.shown, path, reason=reason)
    with _reported(shown), _uncollected():
        try:
            return _as_commented(_with_remarks(_in_steps(project, options or Options(), path), project), project)
        except (DdpifyError, RecursionError):
            raise
        except Exception as error:  # a failure of ours must not cost the user anything but the conversion
            found = (_internal(shown, "the file is left as it was", error),)
            return Conversion(project.entry.source, project.entry.source.original, "convert", shown, path, findings=found)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Lets no garbage be looked for: nearly all that is made is needed to the end, and the search takes a fifth of the time.

    What is kept of sets of origins is let go of then.
    """
    from ddpify.facts import origins

    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        origins.forget()
        if collected:
            gc.enable()


@contextmanager
def _reported(shown: str) -> Iterator[None]:
    """Makes a failure of ours one line that names the script."""
    try:
        yield
    except DdpifyError:
        raise
    except RecursionError as error:
        raise DdpifyError("the code is nested too deeply to be analysed", "take the deepest expression apart", Where(shown)) from error
    except Exception as error:
        raise DdpifyError(f"ddpify failed ({_failure(error)})", _PLEASE, Where(shown)) from error


def _with_remarks(done: Conversion, project: Project) -> Conversion:
    """The conversion with what there is to say of the notebook that the script was made from."""
    said = [Finding("DDP905", Safety[r.level], r.message, project.entry.shown, r.line, 1, r.fix) for r in project.entry.source.remarks]
    return replace(done, findings=(*said, *done.findings)) if said else done


def _as_marked(done: Conversion, texts: Mapping[str, str]) -> Conversion:
    """The conversion of a draft that is distributed, or half so: what the draft marks as to be done by hand."""
    if done.status == "convert":
        return done
    fix = "do it, then take the comment away"
    places = ((file, *place) for file, text in texts.items() for place in comments.marked(text))
    marks = [Finding(code, Safety.MANUAL, said, file, line, 1, fix) for file, line, code, said in places]
    if not marks:
        return done
    return replace(done, status="nothing", reason="it is a draft to be finished by hand", findings=(*done.findings, *marks))


def _as_commented(done: Conversion, project: Project) -> Conversion:
    """The conversion with what the comments in the script and its modules ask for."""
    texts = {file.shown: file.source.text for file in (project.entry, *project.files.values())}
    converted = _as_marked(done.without(comments.left_out(done.changes, texts)), texts)
    again = converted.again

    def known(finding: Finding) -> Finding:
        finding = finding.explained
        codes = comments.skips(texts.get(finding.file, ""), finding.file).get(finding.line)
        if codes is None or not comments.meant(codes, finding.code) or finding.level < Safety.REVIEW:
            return finding
        return replace(finding, level=Safety.NOTE, message=f"{finding.message} (accepted by a comment)")

    def with_comments(some: Conversion) -> Conversion:
        return replace(some, findings=tuple(map(known, some.findings)))

    return replace(with_comments(converted), again=None if again is None else lambda ids, until: with_comments(again(ids, until)))


def _text(source: str | bytes, shown: str) -> Source:
    if isinstance(source, bytes):
        if is_notebook(source.decode("utf-8", "replace").lstrip("\ufeff")):
            from ddpify.notebook.script import script

            return script(source, shown, Path())
        return from_bytes(source, shown)
    if source.endswith(".py") and "\n" not in source:
        raise DdpifyError(f"{source!r} is taken as a script's text", "to read a file, pass pathlib.Path(...)")
    return from_text(source, shown)


@with_large_frame
def _in_steps(project: Project, options: Options, path: Path | None, most: int = 4) -> Conversion:
    """The conversion, in several steps where something is done to the script first."""
    from ddpify.apply import names
    from ddpify.plan import first

    plan = first(project, options)
    if plan is None:
        return _converted(project, options, path)
    plan = replace(plan, changes=names.chosen(plan.changes, plan.bound))
    code, modules, unapplied = _rewritten(project, plan)
    with_comments = (*plan.findings, *map(_by_hand, unapplied))
    if unapplied or not plan.changes or not most:
        done = _converted(project, options, path, earlier=with_comments)
        return replace(done, findings=tuple(dict.fromkeys((*with_comments, *done.findings))))
    output = _output(project, path, code, modules)
    return _upon(project, plan, (*with_comments, *_faults(project, output)), _in_steps(output, options, path, most - 1))


def _upon(project: Project, plan: Plan, with_comments: tuple[Finding, ...], done: Conversion) -> Conversion:
    """What a step and the conversion after it make of a project together."""
    sources = {file.path: file.source for file in project.files.values()}
    line, again = _lines(project.entry.source.text, done.source.text), done.again
    return replace(
        done,
        source=project.entry.source,
        status="convert",
        reason="",
        changes=(*plan.changes, *(replace(c, node=_moved(c.node, line)) if c.file == done.shown else c for c in done.changes)),
        findings=(*with_comments, *(_moved_back(f, done.shown, line) for f in done.findings)),
        modules=tuple(replace(m, source=sources.get(m.path, m.source)) for m in done.modules),
        again=None if again is None else lambda ids, until: _upon(project, plan, with_comments, again(ids, until)),
    )


def _moved_back(finding: Finding, file: str, line: Callable[[int], int]) -> Finding:
    """A finding by the lines of a file before it was changed."""
    cause = finding.cause
    if cause is not None and cause.file == file:
        finding = replace(finding, cause=replace(cause, line=line(cause.line)))
    return replace(finding, line=line(finding.line), claim=None) if finding.file == file else finding


def _lines(before: str, after: str) -> Callable[[int], int]:
    """For each line of a text, the line of the text before that it stood on."""
    blocks = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False).get_opcodes()

    def line(number: int) -> int:
        start, begins = next(((i, j) for _, i, _, j, end in blocks if j < number <= end), (0, 0))
        return max(1, start + number - begins)

    return line


def line_after(before: str, after: str) -> Callable[[int], int]:
    """For each line of a text, the line of the text after that has taken its place, or is most like it; 0 where it is gone."""
    old, new = before.splitlines(), after.splitlines()
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()

    def line(number: int) -> int:
        kind, start, _, begins, end = next((block for block in blocks if block[1] < number <= block[2]), ("delete", 0, 0, 0, 0))
        if kind == "equal":
            return begins + number - start
        return max(range(begins + 1, end + 1), key=lambda at: SequenceMatcher(None, old[number - 1], new[at - 1]).ratio(), default=0)

    return line


def _moved(node: ast.AST, line: Callable[[int], int]) -> ast.AST:
    """A node by the line it stood on before."""
    out = copy.copy(node)
    if isinstance(out, (ast.stmt, ast.expr)):
        out.lineno, out.end_lineno = line(out.lineno), line(out.end_lineno or out.lineno)
    return out


def _output(project: Project, path: Path | None, code: str, modules: tuple[Module, ...]) -> Project:
    """A project as it is after edits."""
    entry = project.entry
    output = of_source(replace(entry.source, text=code, original=code, mended=()), path, entry.shown)
    output.placements = _moved_places(project, {entry.shown: code} | {m.shown: m.code for m in modules})
    for module in modules:
        output.overlay[module.path] = replace(module.source, text=module.code, original=module.code, mended=())
    unchanged = {m.path for m in modules if not m.changed and not m.source.mended}
    output.parsed = {(file.path, file.name): file for file in project.files.values() if file.path in unchanged}
    return output


def _moved_places(project: Project, texts: Mapping[str, str]) -> dict[str, str]:
    """What is said of functions and lines, the lines by their numbers in new texts of the files."""
    out = dict(project.placements)
    for file in (project.entry, *project.files.values()):
        if file.shown in texts and (said := project.said_of_lines(file.shown)):
            for line in said:
                del out[f"{file.shown}:{line}"]
            now = line_after(file.source.text, texts[file.shown])
            out |= {f"{file.shown}:{now(line)}": placement for line, placement in said.items()}
    return out


def _converted(
    project: Project,
    options: Options,
    path: Path | None,
    earlier: tuple[Finding, ...] = (),
    marks: tuple[Change, ...] = (),
    unfinished: bool = False,
) -> Conversion:
    """The conversion of a project, with `marks` where it is a draft; `earlier` is what a step before has found.

    It is `unfinished` where shares of the batches were tried, and the result would not do.
    """
    from ddpify.apply import names
    from ddpify.launchers import start
    from ddpify.plan import make_plan

    entry = project.entry
    plan = make_plan(project, options, marks, unfinished)
    kept = Conversion(entry.source, entry.source.original, plan.status, entry.shown, path, (), plan.findings, plan.command, plan.reason)
    if plan.status != "convert" or not plan.changes:
        return replace(kept, modules=tuple(Module(f.path, f.shown, f.source, f.source.original) for f in project.files.values()))
    plan, texts = replace(plan, changes=names.chosen(plan.changes, plan.bound)), Texts()
    try:
        code, modules, unapplied = _rewritten(project, plan, texts)
    except Exception as error:  # a failure of ours must not cost the user anything but the conversion
        return replace(kept, findings=(*plan.findings, _internal(entry.shown, "the file is left as it was", error)))
    changes = tuple(change for change in plan.changes if change not in unapplied)
    output = _output(project, path, code, modules)
    findings = (*plan.findings, *map(_by_hand, unapplied), *_checked(output, plan))
    done = replace(kept, code=code, changes=changes, findings=tuple(dict.fromkeys(findings)), modules=modules, install=plan.install)

    def again(ids: frozenset[str], until: Until) -> Conversion:
        part = plan.without(ids)
        code, modules, unapplied = _rewritten(project, part, texts)
        converted = replace(done, code=code, changes=tuple(c for c in part.changes if c not in unapplied), modules=modules)
        if until != "rewritten" and options.launcher == "spawn" and plan.spawned is not None:
            converted = _spawning(converted, plan.spawned, start.command("torchrun", module=project.runs))
        if until != "checked":
            return converted
        known = (converted.code, modules) == (done.code, done.modules)
        faults = _faults(project, output if known else _output(project, path, converted.code, modules))
        return replace(converted, findings=tuple(dict.fromkeys((*converted.findings, *faults))))

    whole = replace(again(frozenset(), "checked"), again=again)
    if whole.exit_code and not unfinished and options.whole_batches != "never" and all(f.level < Safety.REVIEW for f in plan.findings):
        instead = _converted(project, options, path, earlier, unfinished=True)
        whole = whole if instead.exit_code else instead
    found = () if marks or not options.draft else _marks(project, plan, whole, earlier)
    return _converted(project, options, path, earlier, found) if found else whole


def _marks(project: Project, plan: Plan, done: Conversion, earlier: tuple[Finding, ...]) -> tuple[Change, ...]:
    """The comments that mark what is to be done by hand."""
    from ddpify import draft

    files = {file.shown: file for file in (project.entry, *(project.files[name] for name in plan.edited if name in project.files))}
    texts = {done.shown: (done.source.text, done.code)} | {m.shown: (m.source.text, m.code) for m in done.modules}
    lines = {shown: _lines(*texts[shown]) for shown in files if shown in texts}
    return tuple(draft.marks(files, lines, (*earlier, *done.findings)))


def _spawning(done: Conversion, asked: Spawned, otherwise: str) -> Conversion:
    """The result moved under mp.spawn; where that cannot be done, it stays for torchrun, started by the command `otherwise`."""
    from ddpify.launchers import spawn

    try:
        code, late = spawn.moved(done.code, done.source.newline, asked, done.source.text)
        place, why = _lines(done.original, done.code), "mp.spawn's processes see the GPUs that were visible when they started"
        fix = "choose them in the shell: CUDA_VISIBLE_DEVICES=0,1 python ..."
        notes = [Finding("DDP106", Safety.NOTE, why, done.shown, place(line), 1, fix) for line in late]
        return replace(done, code=code, findings=(*done.findings, *notes))
    except spawn.Immovable as error:
        line = _lines(done.original, done.code)(error.line)
        why = f"not moved under mp.spawn, start it with torchrun: {error.reason}"
        with_comments = Finding("DDP106", Safety.MANUAL, why, done.shown, line, 1, error.fix)
        changes = tuple(change for change in done.changes if change.code != "DDP106")
        return replace(done, changes=changes, findings=(with_comments, *done.findings), command=otherwise)
    except Exception as error:  # a failure of ours leaves what torchrun starts
        with_comments = _internal(done.shown, "not moved under mp.spawn, start it with torchrun", error)
        return replace(done, findings=(with_comments, *done.findings), command=otherwise)


class Texts(dict[tuple[str, tuple[Change, ...]], tuple[str, tuple[Change, ...]]]):
    """What became of files: the path shown and the changes, to the new text and the changes that found no place.

    `files` has what was worked out of each file, by the path shown.
    """

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, Rewritten] = {}


def _rewritten(project: Project, plan: Plan, known: Texts | None = None) -> tuple[str, tuple[Module, ...], tuple[Change, ...]]:
    """The new texts of the script and its modules, and the changes that found no place in them; `known` ones are not made twice."""
    from ddpify.apply.rewrite import Rewritten, rewrite

    known = Texts() if known is None else known
    texts: list[str] = []
    unapplied: list[Change] = []
    files = sorted(project.files.values(), key=lambda file: file.path)
    for file in (project.entry, *files):
        here = tuple(change for change in plan.changes if change.file == file.shown)
        if here and (file.shown, here) not in known:
            doing(f"rewriting {file.shown}")
            first = file.shown not in known.files
            known[file.shown, here] = rewrite(file.source.text, file.tree, here, known.files.setdefault(file.shown, Rewritten()))
            if first:  # what Python cannot read is a failure of the rewrite, not of the user's file
                ast.parse(known[file.shown, here][0])
        as_it_was = file.source.original if file is project.entry else file.source.text  # a module is imported, and so must be readable
        code, left = known[file.shown, here] if here else (as_it_was, ())
        texts.append(code)
        unapplied += left
    modules = [Module(file.path, file.shown, file.source, code) for file, code in zip(files, texts[1:], strict=True)]
    if plan.added is not None:
        ast.parse(plan.added.text)
        modules.append(Module(plan.added.path, shown(plan.added.path), from_text(""), plan.added.text, True))
    return texts[0], tuple(modules), tuple(unapplied)


def _checked(output: Project, plan: Plan) -> tuple[Finding, ...]:
    """What is wrong with the output, were it the input."""
    from ddpify.plan import check

    try:
        return tuple(check(output, plan))
    except Exception as error:  # an unchecked output is not a proven one
        return (_internal(output.entry.shown, "the result is not checked; review every line", error),)


def _faults(project: Project, output: Project) -> tuple[Finding, ...]:
    """What keeps the output from running as it should, and did not keep the input from it."""
    from ddpify.checks import stage

    try:
        return tuple(stage.findings(project, output))
    except Exception as error:  # nor is it here
        return (_internal(output.entry.shown, "the result is not checked; review every line", error),)


def _by_hand(change: Change) -> Finding:
    column = getattr(change.node, "col_offset", 0) + 1
    return Finding(change.code, Safety.MANUAL, f"not applied here, so do it by hand: {change.why}", change.file, change.line, column)


def _internal(shown: str, consequence: str, error: Exception) -> Finding:
    return Finding("DDP901", Safety.MANUAL, f"ddpify failed ({_failure(error)}); {consequence}", shown, 1, 1, _PLEASE)


def _failure(error: Exception) -> str:
    """What failed, and where in ddpify, in one line."""
    frames = traceback.extract_tb(error.__traceback__)
    place = next((f for f in reversed(frames) if Path(__file__).parent in Path(f.filename).parents), frames[-1])
    return f"{f'{type(error).__name__}: {error}'.splitlines()[0]}, in {Path(place.filename).name}:{place.lineno}"
