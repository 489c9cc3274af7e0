"""Lines of a cell that are no Python: magics, shell commands and questions for help, turned into the Python that they stand for.

Which there are: https://ipython.readthedocs.io/en/stable/interactive/magics.html
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator

from ddpify.notebook.remark import Level, Remark

Said = tuple[Level, str] | tuple[Level, str, str]
"""How sure a remark is, the remark, and what to write."""

_ASSIGNED = re.compile(r"^(\s*)([A-Za-z_][\w., \[\]'\"]*?)\s*=\s*([%!])(.*)$", re.DOTALL)
_SPECIAL = re.compile(r"^(\s*)(%%?|!!?)\s*(.*)$", re.DOTALL)
_HELP = re.compile(r"^\s*(\?{1,2}\s*[\w.*%]+|%{0,2}[\w.*]+(\[[\w'\"]+\])*\?{1,2})\s*;?\s*$")
_CALLED = re.compile(r"^(\s*)get_ipython\(\)\s*\.\s*(run_line_magic|magic|system|getoutput)\((.*)\)\s*;?\s*$", re.DOTALL)
_QUOTES = re.compile(r"('''|\"\"\"|'|\")")

_FOR_NOTEBOOKS = frozenset(
    """alias autocall automagic autosave clear cls colors colors config connect_info debug doctest_mode edit gui hist history less lsmagic
    magic man matplotlib more notebook page pdb pdef pdoc pfile pinfo pinfo2 popd pprint precision prun psearch psource pwd pycat quickref
    recall rerun reset_selective save sc sx tb unalias unload_ext who who_ls whos xdel xmode autoreload reload_ext load_ext memit mprun
    lprun watermark ls ll lk lf ldir dir dhist dirs bookmark pastebin""".split()
)  # these change or show the notebook, not what it computes
_INSTALLS = frozenset(("pip", "pip3", "conda", "mamba", "micromamba", "uv", "apt", "apt-get", "brew", "poetry"))
_SHOWS = frozenset(
    "ls cat head tail pwd nvidia-smi which whoami date df du free lscpu uname wc tree echo top ps env printenv hostname".split()
)
_SHELL_SYNTAX = re.compile(r"[|&;<>*?~`$(){}\[\]]")
_KEPT = frozenset(("time", "capture", "prun", "memit", "matplotlib"))  # magics of a whole cell that runs as if they were not there
_SHELLS = frozenset(("bash", "sh", "shell", "script", "system", "sx", "!"))
_PAGES = frozenset(("html", "javascript", "js", "latex", "markdown", "svg"))


def translated(text: str, bound: Callable[[str], bool], exists: Callable[[str, str], bool]) -> tuple[list[tuple[int, str]], list[Remark]]:
    """The lines of a cell as Python, each with the number of the line that it comes from, and what is said of the others.

    `bound` says whether the notebook binds a name, `exists` whether a file with this text is there.
    """
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if lines and lines[first].startswith("%%"):
        return _of_cell(lines, first, bound, exists)
    out: list[tuple[int, str]] = []
    remarks: list[Remark] = []
    for number, statement, is_python in _split(lines):
        python, remark = (None, None) if is_python else _python(statement, bound)
        if python is None:
            out += [(number + i, line) for i, line in enumerate(statement.split("\n"))]
        elif python:
            out.append((number, python))
        if remark is not None:
            remarks.append(Remark(number, *remark))
    return out, remarks


def _of_cell(
    lines: list[str], first: int, bound: Callable[[str], bool], exists: Callable[[str, str], bool]
) -> tuple[list[tuple[int, str]], list[Remark]]:
    """A cell whose first line says what it is."""
    name, _, rest = lines[first][2:].strip().partition(" ")
    body = lines[first + 1 :]
    if name in _KEPT:
        inner, remarks = translated("\n".join(body), bound, exists)
        out = [(number + first + 1, line) for number, line in inner]
        if name == "time" and rest.strip():
            out.insert(0, (first, rest.strip()))
        return out, [Remark(r.line + first + 1, r.level, r.message, r.fix) for r in remarks]
    said: Said
    if name in _SHELLS and (name != "script" or rest.split()[:1] in (["bash"], ["sh"])):
        out, remarks = [], []
        for number, line in _joined(body):
            if line.strip() and not line.strip().startswith("#"):
                python, remark = _shell(line.strip(), bound)
                out.append((number + first + 1, python))
                remarks += [Remark(number + first + 1, *remark)] if remark else []
        return out, remarks
    if name == "writefile":
        file = rest.replace("-a ", "").strip().strip("'\"")
        if exists(file, "\n".join(body)):
            said = ("NOTE", f"{file}, which this cell writes, is there already, and the cell is left out")
        else:
            fix = f"copy the cell's text below %%writefile into {file}, beside the script"
            said = ("MANUAL", f"this cell writes the file {file}, and is left out: the script needs the file before it starts", fix)
    elif name == "timeit":
        said = ("NOTE", "this cell measures how long its code takes, and is left out")
    elif name in _PAGES:
        said = ("NOTE", f"this cell shows {name} in the notebook, and is left out")
    else:
        said = ("MANUAL", f"%%{name} is not known, and its cell is left out", "write in Python what the cell does")
    return [], [Remark(first, *said)]


def _python(line: str, bound: Callable[[str], bool]) -> tuple[str | None, Said | None]:
    """A statement as Python, None where it is that already, and what is said of it."""
    if found := _CALLED.match(line):
        return _called(found, bound)
    if found := _ASSIGNED.match(line):
        return _assigned(found, bound)
    if _HELP.match(line):
        return "", None
    found = _SPECIAL.match(line)
    if found is None:
        return None, None
    indent, mark, rest = found[1], found[2], found[3].strip()
    python, said = _shell(rest, bound) if mark.startswith("!") else _magic(rest, bound)
    return (indent + python if python else f"{indent}pass" if indent else ""), said


def _called(found: re.Match[str], bound: Callable[[str], bool]) -> tuple[str | None, Said | None]:
    """What nbconvert makes of a magic."""
    try:
        words = ast.literal_eval(f"({found[3]},)")
    except (ValueError, SyntaxError):
        return None, None
    mark = "!" if found[2] in ("system", "getoutput") else "%"
    return _python(f"{found[1]}{mark}{' '.join(map(str, words))}", bound)


def _assigned(found: re.Match[str], bound: Callable[[str], bool]) -> tuple[str | None, Said | None]:
    """`x = !command` and `x = %magic`."""
    indent, target, mark, rest = found[1], found[2], found[3], found[4].strip()
    if mark == "!":
        return f"{indent}{target} = os.popen({_quoted(rest, bound)}).read().splitlines()", None
    name = rest.split()[0] if rest.split() else ""
    if name == "pwd":
        return f"{indent}{target} = os.getcwd()", None
    if name == "env" and len(rest.split()) == 2:
        return f"{indent}{target} = os.environ[{_string(rest.split()[1])}]", None
    message = f"%{name} is not known, and {target} gets nothing"
    return f"{indent}pass", ("MANUAL", message, f"{target} = ...  # what %{name} gives in the notebook")


def _magic(text: str, bound: Callable[[str], bool]) -> tuple[str, Said | None]:
    """A line magic as Python; an empty text where nothing takes its place."""
    name, _, rest = text.partition(" ")
    rest = rest.strip()
    if name == "load_ext" or name in _FOR_NOTEBOOKS:
        return "", None
    if name == "time":
        return rest, None
    if name == "timeit":
        return "", ("NOTE", f"%timeit measures how long `{rest}` takes, and is left out")
    if name in _INSTALLS:
        return "", _install(f"{name} {rest}")
    if name in ("env", "set_env"):
        variable, value = [*re.split(r"\s*=\s*|\s+", rest, maxsplit=1), ""][:2]
        return (f"os.environ[{_string(variable)}] = {_quoted(value, bound)}" if value else ""), None
    if name in ("cd", "pushd"):
        folder = re.sub(r"^-q\s+|\s+-q$", "", rest).strip().strip("'\"")
        if folder in ("", "-"):
            return "", ("MANUAL", f"%{name} {folder} goes to a folder that the script does not know", 'os.chdir("...")')
        return f"os.chdir({_path(folder, bound)})", None
    if name in ("mkdir", "rm", "cp", "mv", "rmdir"):
        return _shell(text, bound)
    if name == "run" and re.fullmatch(r"(-i\s+)?[A-Za-z_]\w*(\.py)?", rest):
        return f"from {rest.split()[-1].removesuffix('.py')} import *", None
    if name == "pylab":
        return "import numpy as np; import matplotlib.pyplot as plt; from pylab import *", None
    if name == "tensorboard":
        return "", ("NOTE", f"%tensorboard shows a page, and is left out: run `tensorboard {rest}` in a shell")
    return "", ("MANUAL", f"%{name} is not known, and is left out", "write in Python what the line does")


def _shell(command: str, bound: Callable[[str], bool]) -> tuple[str, Said | None]:
    """A shell command as Python; an empty text where nothing takes its place."""
    command = command.strip()
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    words = words[1:] if words[:1] == ["sudo"] else words
    module = words[2:3] if words[:1] in (["python"], ["python3"], ["{sys.executable}"]) and words[1:2] == ["-m"] else []
    if not words:
        return "", None
    if words[0] in _INSTALLS or set(module) & _INSTALLS:
        return "", _install(command)
    plain = not _SHELL_SYNTAX.search(command)
    if words[0] == "cd" and plain:
        return "", None  # each command has a shell of its own
    if words[0] in _SHOWS and not re.search(r"[>;&]", command):
        return "", ("NOTE", f"`{command}` only shows something, and is left out")
    if words[0] == "mkdir" and plain:
        folders = [word for word in words[1:] if not word.startswith("-")]
        return "; ".join(f"os.makedirs({_string(folder)}, exist_ok=True)" for folder in folders), None
    return f"os.system({_quoted(command, bound)})", None


def _install(command: str) -> Said:
    return "NOTE", f"`{command.strip()}` is left out: install what the script needs before it is started"


def _path(text: str, bound: Callable[[str], bool]) -> str:
    return f"os.path.expanduser({_string(text)})" if text.startswith("~") else _quoted(text, bound)


def _quoted(text: str, bound: Callable[[str], bool]) -> str:
    """A text as Python; what is put in from Python's names, by `{expression}` or `$name`, goes into an f-string."""
    parts = re.split(r"(\{[^{}]*\}|\$\w+)", text)
    for i, part in enumerate(parts):
        inner = part[1:-1] if part.startswith("{") else part[1:]
        known = part.startswith("{") and _parses(inner) and not re.fullmatch(r"[\w.,-]*[.,][\w.,-]*|\d*", inner)
        if i % 2 and (known or (part.startswith("$") and bound(inner))):
            parts[i] = f"{{{inner}}}"
        else:
            parts[i] = part if i % 2 == 0 and "{" not in part and "}" not in part else re.sub(r"([{}])", r"\1\1", part)
    joined = "".join(parts)
    filled = any(i % 2 and not part.startswith(("{{", "$")) for i, part in enumerate(parts))
    return f"f{_string(joined)}" if filled else _string(text)


def _string(text: str) -> str:
    """A text as Python, in double quotes where that needs no backslash."""
    return f'"{text}"' if repr(text) == f"'{text}'" and '"' not in text else repr(text)


def _parses(text: str) -> bool:
    try:
        ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return False
    return True


# --- statements -------------------------------------------------------------------------------------------------------


def _split(lines: list[str]) -> Iterator[tuple[int, str, bool]]:
    """The lines of a cell with their numbers, and whether they are Python; others with the lines that they go on in."""
    state = _State()
    number = 0
    while number < len(lines):
        line, start = lines[number], number
        special = not state.inside and any(form.match(line) for form in (_SPECIAL, _ASSIGNED, _HELP, _CALLED))
        if special:
            while line.endswith("\\") and number + 1 < len(lines):
                number += 1
                line = line[:-1].rstrip() + " " + lines[number].strip()
        else:
            state.read(line)
        yield start, line, not special
        number += 1


def _joined(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Shell lines, each with those that it goes on in."""
    number = 0
    while number < len(lines):
        start, line = number, lines[number]
        while line.endswith("\\") and number + 1 < len(lines):
            number += 1
            line = line[:-1].rstrip() + " " + lines[number].strip()
        yield start, line
        number += 1


class _State:
    """Whether a line goes on with what the lines before have begun: a bracket, a long string, or a backslash."""

    def __init__(self) -> None:
        self._quote = ""
        self._depth = 0
        self._continued = False

    @property
    def inside(self) -> bool:
        """Whether the next line is a part of a statement that has begun."""
        return bool(self._quote or self._depth > 0 or self._continued)

    def read(self, line: str) -> None:
        """Go on by one line of Python."""
        at = 0
        self._continued = False
        while at < len(line):
            if self._quote:
                at = self._ended(line, at)
                continue
            found = _QUOTES.match(line, at)
            if found:
                self._quote, at = found[1], found.end()
                continue
            if line[at] == "#":
                break
            self._depth += (line[at] in "([{") - (line[at] in ")]}")
            at += 1
        if len(self._quote) == 1:
            self._quote = self._quote if line.endswith("\\") else ""
        self._continued = not self._quote and line.endswith("\\") and "#" not in line

    def _ended(self, line: str, at: int) -> int:
        """Where the search goes on inside a string."""
        if line[at] == "\\":
            return at + 2
        if line.startswith(self._quote, at):
            end, self._quote = at + len(self._quote), ""
            return end
        return at + 1
