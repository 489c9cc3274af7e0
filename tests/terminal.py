"""A program on a pseudo-terminal, driven as a user drives it.

with Terminal(["ddpify", "review", "train.py"], cwd=folder) as terminal:
    terminal.sees("take this change")
    terminal.types("y")
    assert terminal.ends() == 0
"""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

LIMIT = 60.0  # seconds that anything may take


class Terminal:
    """`python -m` this, with standard input and error on a terminal; standard output, too, unless it goes to `stdout`."""

    def __init__(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None, columns: int = 80, stdout: Path | None = None
    ) -> None:
        environ = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "VISUAL", "EDITOR", "COLUMNS", "LINES")}
        environ |= {"TERM": "xterm", "GIT_CEILING_DIRECTORIES": str(cwd.parent), **(env or {})}
        self._raw, self._seen, self.status = "", 0, None
        self._pid, self._file = pty.fork()
        if not self._pid:
            try:
                os.chdir(cwd)
                signal.signal(signal.SIGINT, signal.SIG_DFL)  # what is started in the background ignores it, and so do its children
                if stdout is not None:
                    os.dup2(os.open(stdout, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
                os.execve(sys.executable, [sys.executable, "-m", *command], environ)
            finally:
                os._exit(127)
        self.resize(columns)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.status is None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._file)

    @property
    def raw(self) -> str:
        """All that came, with its colours and links."""
        return self._raw

    @property
    def text(self) -> str:
        """All that came, without colours and links, and without lines that were taken back."""
        plain = re.sub(r"\x1b\[[0-9;]*m|\x1b]8;;[^\x1b]*\x1b\\", "", self._raw).replace("\r\n", "\n")
        return re.sub(r"[^\n]*\r\x1b\[K", "", plain)

    def resize(self, columns: int, rows: int = 24) -> None:
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))  # the system tells the program

    def types(self, keys: str) -> None:
        os.write(self._file, keys.encode())

    def signals(self, number: int) -> None:
        os.kill(self._pid, number)

    def sees(self, text: str) -> str:
        """What came since it was last asked, up to and with a text."""
        until = time.monotonic() + LIMIT
        while (at := self.text.find(text, self._seen)) < 0:
            if not self._read(until):
                raise AssertionError(f"{text!r} does not come; this did:\n{self.text[self._seen :]}")
        start, self._seen = self._seen, at + len(text)
        return self.text[start : self._seen]

    def ends(self) -> int:
        """The exit code, when the program has ended; negative for a signal."""
        while self._read(time.monotonic() + LIMIT):
            pass
        self.status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self.status

    def _read(self, until: float) -> bool:
        if not select.select([self._file], [], [], max(until - time.monotonic(), 0))[0]:
            raise AssertionError(f"nothing more comes; this did:\n{self.text}")
        data = b""
        with contextlib.suppress(OSError):  # Linux's way to say that the other end is closed
            data = os.read(self._file, 65536)
        self._raw += data.decode(errors="replace")
        return bool(data)
