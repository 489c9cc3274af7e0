"""`ddpify review` on a terminal: each change is shown with its reason and asked about, and the choice is printed."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ddpify import reviewer_edits
from ddpify.attribution import FileDiff, attributed
from ddpify.conversion import Conversion
from ddpify.errors import DdpifyError
from ddpify.report import terminal
from ddpify.report.annotated import of_change
from ddpify.report.terminal import LEVELS, paint
from ddpify.review import Review, in_order
from ddpify.rules.base import Finding, Safety


@dataclass(frozen=True)
class Outcome:
    """What was chosen: the conversion to write, the review that ended, and the ids of changes whose lines were edited."""

    conversion: Conversion
    review: Review
    edited: tuple[str, ...] = ()


def possible() -> bool:
    """Whether there is a terminal to ask on."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(conversion: Conversion) -> Outcome:
    """Ask about each change. Everything is shown on standard error; raises KeyboardInterrupt where the user wants none of it."""
    from ddpify import progress

    with progress.shown():
        files = attributed(conversion)
    beside, elsewhere = _findings(conversion, files)
    doubtful = [change for change, findings in beside.items() if any(finding.level >= Safety.REVIEW for finding in findings)]
    review = Review(in_order(conversion.changes, [file.shown for file in files], doubtful))
    try:
        _say(_beginning(conversion, review, elsewhere))
        shown = None
        with single_keys():
            while not review.ended:
                if review.at != shown:
                    _say(_step(review, files, beside[review.change.id]))
                shown = review.at
                _say(_bold(f"({review.at + 1}/{len(review.changes)}) take this change [{','.join(review.keys)}]? "))
                pressed = key()
                _say(f"{pressed}\n")
                review = review.press(pressed)
                _say(_wrapped(review.said))
        if review.ended == "quit":
            return Outcome(conversion, review)
        return _edited(conversion.without(review.left_out), review, files)
    except KeyboardInterrupt:
        _say("\nno file is changed\n")
        raise


def summary(outcome: Outcome, command: str) -> str:
    """What was decided, what is left to do by hand, and the command that does the same without asking."""
    review, chosen = outcome.review, outcome.conversion
    changes = {change.id: change for change in review.changes}
    left = [changes[i] for i in review.left_out]
    total = len(changes)
    if review.ended == "quit":
        text = f"{len(review.decided)} of {total} decided, {len(left)} left out; no file is changed\n"
        return "\n" + text + f"what was decided so far: {command}\n"
    text = f"\n{total} change{'s' if total != 1 else ''}: {total - len(left)} taken"
    text += f", {len(left)} left out" * bool(left) + f", {len(outcome.edited)} edited" * bool(outcome.edited) + "\n"
    for word, some in (("left out", left), ("edited", [changes[i] for i in outcome.edited])):
        for change in some:
            text += f"  {word} {change.id} {change.file}:{change.line}: {change.without if word == 'left out' else change.why}\n"
    undone = [finding for finding in chosen.findings if finding.level == Safety.MANUAL]
    text += "still to do by hand:\n" * bool(undone) + "".join(_finding_text(finding) for finding in undone)
    return text + f"the same without asking{', but for the edited lines' if outcome.edited else ''}: {command}\n"


def confirmed(question: str) -> bool:
    """Whether a question is answered with y."""
    with single_keys():
        _say(_bold(f"{question} [y,n]? "))
        while (pressed := key()) not in ("y", "n"):
            pass
    _say(f"{pressed}\n")
    return pressed == "y"


@contextmanager
def single_keys() -> Iterator[None]:
    """Let keys be read one by one, and not be shown by the terminal itself; afterwards it is as it was."""
    try:
        import termios
        import tty
    except ImportError:  # Windows
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin, termios.TCSADRAIN)  # what was typed ahead stays
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def key() -> str:
    """The key that is pressed, in lower case; the empty string for others than letters and `?`.

    Raises KeyboardInterrupt for Ctrl-C, Ctrl-D and a terminal that is gone.
    """
    if os.name != "posix":
        import typer

        return typer.getchar().lower()
    stdin = sys.stdin.fileno()
    try:
        with single_keys():  # the terminal may have been another program's meanwhile
            pressed = os.read(stdin, 1)
            if pressed in (b"", b"\x04"):
                raise KeyboardInterrupt
            if pressed == b"\x1b":  # an arrow, say: letters that follow it are no keys
                more = b"["
                while more and more in b"[O;0123456789" and select.select([stdin], [], [], 0)[0]:
                    more = os.read(stdin, 1)
    except OSError as error:
        raise KeyboardInterrupt from error
    return pressed.decode().lower() if pressed.isalnum() or pressed == b"?" else ""


# --- what is shown -------------------------------------------------------------------------------------------------------


def _colour() -> bool:
    return terminal.wants_colour(sys.stderr)


def _bold(text: str) -> str:
    return paint(text, "1", _colour())


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _width() -> int:
    """The columns that prose may take, as wide as the terminal is now."""
    try:
        return max(min(os.get_terminal_size(sys.stderr.fileno()).columns or 80, 100), 30)
    except OSError:
        return 80


def _wrapped(text: str, indent: str = "") -> str:
    """The text with its lines broken where they are too long."""
    wrapper = textwrap.TextWrapper(_width(), indent, indent, break_long_words=False, break_on_hyphens=False)
    return "".join(f"{row.rstrip()}\n" for line in text.splitlines() for row in wrapper.wrap(line))


def _beginning(conversion: Conversion, review: Review, elsewhere: Sequence[Finding]) -> str:
    core = len(review.core)
    text = terminal.summary(conversion)
    if core == len(review.changes):
        text += _wrapped("These changes need one another: take them all, or do not convert the script (q).")
    elif core:
        text += _wrapped(f"{core} need one another (the core): take them all, or do not convert the script (q). The rest is your choice.")
    return text + "".join(_finding_text(finding) for finding in elsewhere)


def _step(review: Review, files: Sequence[FileDiff], findings: Sequence[Finding]) -> str:
    """One change: where, what and why, then its hunks, then what else there is to know of these lines."""
    change, colour = review.change, _colour()
    level = paint(change.level.name, LEVELS[change.level], colour)
    text = f"\n{_bold(f'{change.file}:{change.line}')}  {level} {change.id}\n" + _wrapped(change.why, "  ")
    text += _wrapped(f"without it: {change.without}" if change.without else "part of the core", "  ")
    if was := review.decided.get(change.id):
        text += _wrapped({"take": "taken so far", "leave": "left out so far", "edit": "to be edited"}[was], "  ")
    name = change.file
    for file in files:
        for _, hunk in of_change(file, change.id, colour):
            if file.shown != name:
                name = file.shown
                text += _bold(f"{name}{', a new file' if file.added else ''}") + "\n"
            text += hunk
    return text + "".join(_finding_text(finding) for finding in findings)


def _finding_text(finding: Finding) -> str:
    return terminal.finding(finding, f"  {terminal.place(finding.file, finding.line, _colour())}\n", _colour())


def _findings(conversion: Conversion, files: Sequence[FileDiff]) -> tuple[defaultdict[str, list[Finding]], list[Finding]]:
    """The findings beside the change whose hunk they are in, the nearest where there are several; and those that are in none."""
    beside: defaultdict[str, list[Finding]] = defaultdict(list)
    elsewhere = []
    spans = {
        change.id: [(file.shown, {line.old for line in hunk}) for file in files for hunk in file.hunks(change=change.id)]
        for change in conversion.changes
    }
    for finding in sorted(conversion.findings, key=lambda f: (-f.level, f.file, f.line)):
        near = [c for c in conversion.changes if any(shown == finding.file and finding.line in lines for shown, lines in spans[c.id])]
        if near:
            beside[min(near, key=lambda c: (c.file != finding.file, abs(c.line - finding.line))).id].append(finding)
        else:
            elsewhere.append(finding)
    return beside, elsewhere


# --- editing -------------------------------------------------------------------------------------------------------------


def _edited(chosen: Conversion, review: Review, files: Sequence[FileDiff]) -> Outcome:
    """What was chosen, with the lines that the user writes in the place of some."""
    now = before = reviewer_edits.texts(chosen)
    sources = {chosen.shown: chosen.source} | {module.shown: module.source for module in chosen.modules}
    edited = []
    for change in review.to_edit:
        where = reviewer_edits.places(files, change.id, now)
        written = reviewer_edits.sheet(where, now, f"{change.id}: {change.why}")
        again = bool(where)
        while again:
            try:
                written = in_editor(written)
                after = reviewer_edits.put_back(written, where, now, sources)
                edited += [change.id] * (after != now)
                now, again = after, False
            except DdpifyError as error:
                _say(terminal.error(error, _colour()))
                again = confirmed(f"edit {change.id} again; n leaves its lines as they were converted")
    return Outcome(reviewer_edits.rewritten(chosen, now) if now != before else chosen, review, tuple(edited))


def in_editor(text: str) -> str:
    """A text as the user's editor leaves it. Raises DdpifyError where there is no editor, or it fails."""
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory(prefix="ddpify-") as folder:
        file = Path(folder, "change.py")
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        interrupts = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is the editor's while it runs
        try:
            done = subprocess.run([*command, str(file)], stdout=sys.stderr, check=False)
            if done.returncode:
                raise DdpifyError(f"the editor {command[0]} ended with {done.returncode}", "nothing is edited")
            return file.read_bytes().decode("utf-8", "surrogatepass")
        except (OSError, UnicodeDecodeError) as error:
            raise DdpifyError(f"the editor {command[0]} did not work: {error}", "set EDITOR to one that does") from error
        finally:
            signal.signal(signal.SIGINT, interrupts)
