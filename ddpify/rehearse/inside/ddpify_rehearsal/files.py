"""What is written, by which rank; the user's own files are never written to: a link is made a copy first."""

from __future__ import annotations

import functools
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from ddpify_rehearsal import devices, neutral, record
from ddpify_rehearsal.stage import tensors
from ddpify_rehearsal.training import digest

_ROOT = os.environ.get("DDPIFY_SCRATCH", "")
_HOME = Path.home()
_QUIET = (record.FOLDER, "/dev", "/proc", "/sys", f"{_HOME}/.cache", f"{_HOME}/.config", os.environ.get("MPLCONFIGDIR", "/dev"))
_TEMPORARY = tuple(f"{tempfile.gettempdir()}/{name}" for name in ("pymp-", "torchelastic", "torchinductor", "pytorch-errorfile", "tmp"))
_CHANGES = {  # what changes a file, and which argument names it
    "os.chmod": 0, "os.chown": 0, "os.link": 1, "os.mkdir": 0, "os.remove": 0, "os.rename": 1, "os.rmdir": 0, "os.setxattr": 0,
    "os.symlink": 1, "os.truncate": 0, "os.utime": 0, "shutil.rmtree": 0,
}  # fmt: skip
_IN_FOLDERS = frozenset(("os.chmod", "os.chown", "os.mkdir", "os.remove", "os.rmdir", "os.utime"))  # these may have an open folder, last
_busy = False


def _own(path: Any) -> str | None:
    """A path that the record tells, absolute; None for those of Python and torch themselves."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        return None
    full = os.path.abspath(os.fsdecode(path))
    if (
        full.startswith(_QUIET)
        or full == tempfile.gettempdir()
        or "__pycache__" in full
        or (full.startswith(_TEMPORARY) and not full.startswith(_ROOT or "\0"))
    ):
        return None
    return full


def _unlinked(path: str) -> None:
    """Make the folders that lead to a path the rehearsal's own, and the file if it is a link to the user's."""
    if not _ROOT or not path.startswith(_ROOT + os.sep):
        return
    at = Path(_ROOT)
    for part in Path(path).relative_to(_ROOT).parts[:-1]:
        at = at / part
        if at.is_symlink() and at.is_dir():
            _own_folder(at)
    file = Path(path)
    if file.is_symlink():
        source = file.resolve()
        if source.is_dir():
            _own_folder(file)
            return
        file.unlink(missing_ok=True)
        if source.is_file():
            shutil.copy2(source, file)


def _own_folder(link: Path) -> None:
    """A folder of links in the place of a link to a folder; another rank may do the same at once."""
    real = link.resolve()
    own = Path(tempfile.mkdtemp(prefix=f".{link.name[:40]}-", dir=link.parent))
    try:
        for entry in os.scandir(real):
            (own / entry.name).symlink_to(entry.path)
        link.unlink()
        own.rename(link)
    except OSError:
        shutil.rmtree(own, ignore_errors=True)


def _made_own(path: Any) -> str | None:
    """A path that is the rehearsal's own from now on; None where there is nothing to tell."""
    global _busy
    full = None if _busy else _own(path)
    if full is not None:
        _busy = True
        try:
            _unlinked(full)
        finally:
            _busy = False
    return full


def _writes(path: Any, what: str) -> None:
    full = _made_own(path)
    if full is not None:
        record.emit("write", path=full, what=what)


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if event == "open":
        path, mode, flags = args
        writing = any(c in mode for c in "wax+") if isinstance(mode, str) else bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        if writing:
            _writes(path, "open")
    elif event in _CHANGES and (event not in _IN_FOLDERS or args[-1] == -1):
        _writes(args[_CHANGES[event]], event.partition(".")[2])
    elif event == "os.chdir":
        _made_own(args[0])  # in a link's folder, what is written would be the user's


# --- checkpoints ----------------------------------------------------------------------------------------------------------
def _flat(value: Any, key: str = "") -> dict[str, Any]:
    """A checkpoint as {path of keys: shape, digest and kind of a tensor, or a plain value}."""
    if isinstance(value, torch.nn.Module):
        return {f"{key}<{type(value).__name__}>": None, **_flat(value.state_dict(), key)}
    if isinstance(value, dict):
        return {k: v for name, part in value.items() for k, v in _flat(part, f"{key}/{name}" if key else str(name)).items()}
    if isinstance(value, (list, tuple)):
        return {k: v for i, part in enumerate(value) for k, v in _flat(part, f"{key}/{i}").items()}
    if isinstance(value, torch.Tensor):
        return {key: {"shape": list(value.shape), "digest": digest(value)}}
    if isinstance(value, (int, float, str, bool, type(None))):
        return {key: value}
    return {key: f"<{type(value).__name__}>"}


def _watch_checkpoints() -> None:
    save, load = torch.save, torch.load

    @functools.wraps(save)
    def saving(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        global _busy
        path = _own(f) if isinstance(f, (str, bytes, os.PathLike)) else _own(getattr(f, "name", None))
        if path is not None:
            _writes(path, "save")
            record.emit("save", path=path, values=_flat(obj))
            _note_device(path, obj)
        before, _busy = _busy, True
        try:
            with torch._C.DisableTorchFunction():
                return save(obj, f, *args, **kwargs)
        finally:
            _busy = before

    @functools.wraps(load)
    def loading(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        where = _noted_device(f)
        if devices.PLAYED:
            if isinstance(map_location, (str, torch.device)):
                where = devices._cuda(map_location) or str(map_location)
            elif isinstance(map_location, dict):
                where = map_location.get(where, where)
            elif map_location is not None:
                where = None
            elif where and where != "cpu":
                devices._use(devices.index_of(where))
            map_location = "cpu"
        kwargs.setdefault("weights_only", False)
        with torch._C.DisableTorchFunction():
            loaded = load(f, map_location, *args, **kwargs)
        loaded = neutral.widened(loaded) if not isinstance(loaded, torch.nn.Module) else loaded
        return devices.put(loaded, where) if where else loaded

    torch.save, torch.load = saving, loading


def _sidecar(path: Any) -> str | None:
    full = _own(path) if isinstance(path, (str, bytes, os.PathLike)) else None
    return None if full is None else f"{record.FOLDER}/device-{full.replace(os.sep, '_')[-150:]}"


def _note_device(path: str, obj: Any) -> None:
    parts = [obj.state_dict()] if isinstance(obj, torch.nn.Module) else obj
    where = {devices.mark_of(t) for t in tensors(parts)} - {None, "cpu"}
    if devices.PLAYED and where and (name := _sidecar(path)):
        Path(name).write_text(str(max(map(str, where))))


def _noted_device(path: Any) -> str | None:
    name = _sidecar(path)
    return Path(name).read_text() if devices.PLAYED and name and Path(name).exists() else None


def install() -> None:
    """Watch what is written and saved."""
    sys.addaudithook(_audit)
    _watch_checkpoints()
