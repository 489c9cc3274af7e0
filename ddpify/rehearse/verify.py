"""Both scripts run, what they did compared: the verdict."""

from __future__ import annotations

import contextlib
import functools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ddpify.errors import DdpifyError
from ddpify.project import load
from ddpify.rehearse import causes, compare, declared
from ddpify.rehearse.compare import DOUBLE, SINGLE, Pair, Row
from ddpify.rehearse.history import History, read
from ddpify.rehearse.launch import Command, Ended, Forks, Setting, bare, run
from ddpify.rehearse.scratch import Scratch, shown_in
from ddpify.rules.base import Safety
from ddpify.source import from_bytes, script_path

if TYPE_CHECKING:
    from ddpify.conversion import Conversion

Status = Literal["holds", "fails", "not run"]
Progress = Callable[[str, int], None]  # which run, optimizer steps so far

_ERROR = re.compile(r"^(?:\[rank\d+\]: )?(\S+: error: .*|(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Warning|Exit)\b.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Verdict:
    """What a rehearsal found: the rows, the conditions that it rests on by name, and both histories.

    `left` counts what the conversion leaves to review or to do by hand, `reason` says why nothing could be compared, `stacks` where the
    ranks stood when they had to be ended; `converted` is the path that ran under `launcher`, times are in seconds.
    """

    original: str
    converted: str
    launcher: str
    setting: Setting
    rows: tuple[Row, ...] = ()
    conditions: tuple[str, ...] = ()
    left: int = 0
    reason: str = ""
    stacks: str = ""
    output: str = ""
    seconds: tuple[float, float] = (0.0, 0.0)
    pair: Pair | None = None

    @property
    def status(self) -> Status:
        """Whether every row holds, one fails, or nothing could be compared."""
        if self.reason:
            return "not run"
        return "fails" if any(row.holds is False for row in self.rows) else "holds"

    @property
    def exit_code(self) -> int:
        """0 all hold, 1 something failed, 2 could not run."""
        return {"holds": 0, "fails": 1, "not run": 2}[self.status]


@dataclass(frozen=True)
class _Script:
    """A script to run: its path, what it is in the tree, what starts it, its arguments, and what it is forked from."""

    path: Path
    launcher: str
    texts: dict[Path, bytes]
    args: Sequence[str]
    forks: Forks

    def run(self, folder: Path, setting: Setting, progress: Progress, name: str) -> tuple[Ended, Scratch]:
        """Run it in a tree below `folder`."""
        cwd = Path.cwd()
        scratch = Scratch(folder / "tree", cwd, [self.path], self.texts)
        progress(name, 0)
        shown = functools.partial(progress, name)
        ended = run(self.command(scratch), scratch.path(cwd), folder / "record", setting, scratch, shown, self.forks)
        return ended, scratch

    def command(self, scratch: Scratch) -> Command:
        """What runs it in a tree."""
        module = load(self.path).runs if self.path.is_file() else ""
        return Command(self.launcher, ("-m", module) if module else (str(scratch.path(self.path)),), tuple(self.args))


class Original:
    """An original script, run as one process: once for each setting, however many conversions are held against it."""

    def __init__(self, path: Path, args: Sequence[str] = ()) -> None:
        if not path.is_file():
            raise DdpifyError(f"there is no file {str(path)!r}", "name a training script")
        self.given, self.path, self.args = path, script_path(path), args
        texts = {self.path: load(path).entry.source.unchanged} if path != self.path else {}  # of a notebook, the script of its cells
        self.forks = Forks()
        self._script = _Script(self.path, "", texts, args, self.forks)
        self._folder = tempfile.TemporaryDirectory(prefix="ddpify-", ignore_cleanup_errors=True)
        self._ended: dict[Setting, tuple[Ended, Scratch]] = {}

    def __enter__(self) -> Original:
        return self

    def __exit__(self, *_: object) -> None:
        self.forks.close()
        self._folder.cleanup()

    def run(self, setting: Setting, progress: Progress, once_more: bool = False) -> tuple[Ended, Scratch]:
        """How it ended, and the tree that it ran in; `once_more` for a second run, which shows what it does not repeat."""
        setting = replace(setting, clock=once_more)
        if setting not in self._ended:
            folder = Path(self._folder.name).resolve() / f"{len(self._ended)}"
            script = replace(self._script, texts={**self._script.texts, **_watching(self._script.texts, setting)})
            self._ended[setting] = script.run(folder, setting, progress, "original once more" if once_more else "original")
        return self._ended[setting]

    def why(self, setting: Setting) -> _CannotRun:
        """Why a run did not come to its end."""
        ended, scratch = self._ended[setting]
        return _why(ended, self._script, setting, scratch)


def _watching(texts: Mapping[Path, bytes], setting: Setting) -> dict[Path, bytes]:
    """The files of an original that tell what expressions give."""
    read = {p: texts[p] if p in texts else p.read_bytes() for p in {place.path for place in setting.watched} if p in texts or p.is_file()}
    sources = {path: from_bytes(data, str(path)) for path, data in read.items()}
    plain = {path: source.text for path, source in sources.items() if source.text == source.original}
    return {path: sources[path].encode(text) for path, text in declared.instrumented(plain, setting.watched).items()}


class _CannotRun(Exception):
    """One of the two does not run, for this reason; `output` is the end of what it printed."""

    def __init__(self, reason: str, output: str) -> None:
        super().__init__(reason)
        self.output = output


def verify(
    original: Path | Original,
    converted: Path | Conversion,
    setting: Setting,
    launcher: str = "",
    args: Sequence[str] = (),
    progress: Progress = lambda run, steps: None,
) -> Verdict:
    """Run a script and its conversion, a path or a `Conversion` of it, and compare what the two do.

    `launcher` is torchrun, launch or spawn; by default it is read off the converted script. Both run in scratch copies of the current
    folder, so that nothing of the user's is written to. Raises DdpifyError where there is nothing to run.
    """
    said: dict[declared.Place, tuple[str, str]] = {}
    with contextlib.ExitStack() as stack:
        single = original if isinstance(original, Original) else stack.enter_context(Original(original, args))
        if isinstance(converted, Path):
            if not converted.is_file():
                raise DdpifyError(f"there is no file {str(converted)!r}", "name the distributed script")
            text = converted.read_text(encoding="utf-8", errors="replace")
            script = _Script(converted, launcher or launcher_of(text), {}, single.args, single.forks)
        else:
            here = {single.path: converted.bytes} | {module.path: module.bytes for module in converted.edited}
            said = declared.claims(converted)
            setting = setting if setting.watched else replace(setting, watched=tuple(sorted(said)))
            here |= _watched(converted, setting)
            script = _Script(single.path, launcher or launcher_of(converted.code), here, single.args, single.forks)
        shown = str(converted) if isinstance(converted, Path) else f"{single.given} (converted)"
        unfinished = 0 if isinstance(converted, Path) else sum(level >= Safety.REVIEW for level in converted.levels)
        found = Verdict(str(single.given), shown, script.launcher, setting, left=unfinished)
        setting = replace(setting, python=_interpreter(setting))
        setting = replace(setting, gpus=gpus(setting.python) >= setting.nproc)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ddpify-", ignore_cleanup_errors=True))).resolve()
        try:
            claims = {number: said[place] for number, place in enumerate(setting.watched) if place in said}
            return _compared(folder, single, script, setting, found, progress, claims)
        except _CannotRun as error:
            return replace(found, reason=str(error), output=error.output)
        except OSError as error:
            raise DdpifyError(
                f"no copies of the project can be made in {folder}: {error.strerror}", "name a folder with room: TMPDIR"
            ) from error


def _watched(converted: Conversion, setting: Setting) -> dict[Path, bytes]:
    """The files of a result that tell what expressions give."""
    sources = {m.path: (m.source, m.code) for m in converted.modules if not m.added}
    if converted.path is not None:
        sources[converted.path] = converted.source, converted.code
    plain = {path.absolute(): (path, source, code) for path, (source, code) in sources.items() if source.text == source.original}
    before, after = {at: source.text for at, (_, source, _) in plain.items()}, {at: code for at, (_, _, code) in plain.items()}
    return {plain[at][0]: plain[at][1].encode(text) for at, text in declared.instrumented_result(before, after, setting.watched).items()}


def launcher_of(text: str) -> str:
    """What starts a distributed script: mp.spawn within it, launch for a --local_rank that is all it knows, else torchrun."""
    if re.search(r"\b(mp|multiprocessing)\.(spawn|start_processes)\s*\(|\bspawn\s*\(\s*\w+\s*,", text):
        return "spawn"
    if re.search(r"""['"]--local[_-]rank['"]""", text) and not re.search(r"""['"]LOCAL_RANK['"]""", text):
        return "launch"
    return "torchrun"


def _compared(
    folder: Path,
    original: Original,
    script: _Script,
    setting: Setting,
    found: Verdict,
    progress: Progress,
    claims: Mapping[int, tuple[str, str]],
) -> Verdict:
    attempts = [setting] if not setting.double else [setting, replace(setting, double=False)]
    for at, chosen in enumerate(attempts):
        last = at == len(attempts) - 1
        single, scratch = original.run(chosen, progress)
        if single.code != 0:
            if last:
                raise original.why(chosen)
            continue
        ranks, own = script.run(folder / f"ranks{at}", replace(chosen, lines=()), progress, f"{setting.nproc} ranks")
        pair = _pair(single, ranks, chosen, scratch, own)
        rows = _rows(pair, ranks)
        if rows[0].holds is False and (missing := re.search(r"No module named '([\w.]+)'", rows[0].seen)):
            needs = f"the converted script needs the module {missing[1]}, which {setting.python} does not have"
            raise _CannotRun(needs, shown_in(ranks.output, pair.shown))
        if not last and rows[0].holds is False and re.search(r"dtype|Double|scalar type|float|SIGKILL", rows[0].seen):
            continue  # float64 is not for this script, or needs more memory than there is
        break
    trained = all(row.holds is not False for row in rows if row.name in ("ran", "trajectory"))
    if trained and any(row.holds is False for row in rows if row.name in ("metrics", "checkpoints")):
        again, _ = original.run(chosen, progress, once_more=True)
        if again.code == 0:
            pair = replace(pair, again=read(again.record, 1))
            rows = _rows(pair, ranks)
    rows += [declared.row(pair, claims)] if claims else []
    conditions = pair.single.conditions() | pair.ranks.conditions() | ({"again"} if pair.again else set())
    conditions |= {"steps"} if pair.stopped else set()
    return replace(
        found,
        setting=chosen,
        rows=tuple(causes.explained(pair, rows)),
        conditions=tuple(sorted(conditions)),
        stacks=_named(shown_in(ranks.stacks, pair.shown), pair.ranks),
        output=shown_in(ranks.output, pair.shown) if ranks.code != 0 else "",
        seconds=(single.seconds, ranks.seconds),
        pair=pair,
    )


def _pair(single: Ended, ranks: Ended, setting: Setting, scratch: Scratch, own: Scratch) -> Pair:
    before, after = read(single.record, 1), read(ranks.record, setting.nproc)
    stopped = bool(setting.steps) and any(True for _ in before.first.of("enough"))

    def shown(path: str) -> str:
        return own.shown(path) if path.startswith(str(own.base)) else scratch.shown(path)

    return Pair(before, after, setting.nproc, DOUBLE if setting.double else SINGLE, shown, stopped=stopped)


def _rows(pair: Pair, ranks: Ended) -> list[Row]:
    rows = list(compare.rows(pair))
    if ranks.why:
        rows[0] = replace(rows[0], holds=False, seen=ranks.why)
    elif "from outside" in rows[0].seen:
        if killed := re.search(r"Root Cause.*?rank +: (\d+).*?exitcode +: -\d+ .*?\((SIG\w+)\)", ranks.output, re.DOTALL):
            memory = ": did the machine run out of memory?" if killed[2] == "SIGKILL" else ""
            rows[0] = replace(rows[0], seen=f"rank {killed[1]} was ended by {killed[2]}{memory}")
    elif ranks.code and rows[0].holds and not _gloo_aborted(ranks):
        rows[0] = replace(rows[0], holds=False, seen=f"exit code {ranks.code}: {_last_error(ranks.output)}")
    return rows


def _named(stacks: str, history: History) -> str:
    """The stacks with the ranks of their processes."""
    for rank in history.ranks.values():
        for pid in {event["pid"] for event in rank.events}:
            stacks = re.sub(rf"^process {pid}:$", f"rank {rank.number}, process {pid}:", stacks, flags=re.MULTILINE)
    return stacks


def _gloo_aborted(ranks: Ended) -> bool:
    """Whether the exit code comes from gloo's threads alone, which may abort a process that has come to its end (pytorch#190489)."""
    return bool(re.search(r"SIGABRT|exitcode:? *-6|terminate called without an active exception", ranks.output))


def _last_error(output: str) -> str:
    output = output.partition("ChildFailedError")[0]
    errors = [line for line in _ERROR.findall(output) if "distributed.elastic" not in line]
    return str((errors or [line for line in output.splitlines() if line.strip()] or ["(no output)"])[-1]).strip()[:300]


# --- why the original does not run ----------------------------------------------------------------------------------------
def _why(single: Ended, script: _Script, setting: Setting, scratch: Scratch) -> _CannotRun:
    """Why the original did not come to its end: the reason, and the output that shows it."""
    error = _last_error(single.output)
    if single.why:
        reason = f"the original did not come to {_goal(setting)}: {single.why}; ask for fewer --steps, or give it a longer --time-limit"
    elif missing := re.search(r"No module named '([\w.]+)'", error):
        reason = f"the original needs the module {missing[1]}, which {setting.python} does not have: install it, or name another --python"
    elif "FileNotFoundError" in error or "No such file" in error:
        reason = f"the original needs data that is not there: {error}"
    elif "unrecognized arguments" in single.output or "the following arguments are required" in single.output:
        reason = f"the original refuses its arguments: {error}; give them after --"
    else:
        return _alone(single, script, setting, scratch)
    return _CannotRun(reason, shown_in(single.stacks or single.output, scratch.shown))


def _alone(single: Ended, script: _Script, setting: Setting, scratch: Scratch) -> _CannotRun:
    """The original's own run decides whether it is the script that fails, or the way in which it is compared."""
    own = bare(script.command(scratch).line(setting), scratch.path(Path.cwd()), setting.limit)
    error, compared = _last_error(own.output), _last_error(single.output)
    there, here = shown_in(single.output, scratch.shown), shown_in(own.output, scratch.shown)
    if own.code is None or own.code == 0:
        return _CannotRun(f"the original runs by itself, but not in the way it must to be compared: {compared}", there)
    if re.search(r"CUDA|NVIDIA|cuda", error):
        return _CannotRun(f"the original needs CUDA, and fails with the CPU in its place: {compared}", there)
    return _CannotRun(f"the original itself fails: {error}", here)


def _goal(setting: Setting) -> str:
    return f"{setting.steps} optimizer steps" if setting.steps else "its end"


def _interpreter(setting: Setting) -> str:
    found = shutil.which(setting.python)
    if found is None:
        raise DdpifyError(f"there is no interpreter {setting.python!r}", "name one that has torch: --python EXE")
    return str(found)


def gpus(python: str) -> int:
    """How many GPUs torch sees there; 0 without a driver."""
    if shutil.which("nvidia-smi") is None:
        return 0
    code = "import torch; print(torch.cuda.device_count())"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip().isdigit() else 0


__all__ = ["History", "Original", "Setting", "Verdict", "gpus", "launcher_of", "verify"]
