"""`ddpify new`: settings and templates become the files of a project, and these are written or not at all."""

from __future__ import annotations

import keyword
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from ddpify.errors import DdpifyError, Where
from ddpify.options import Cluster, Ddp, Launcher, Precision, Task, Tracker, check_choices
from ddpify.resources import template_dir
from ddpify.source import write_all

if TYPE_CHECKING:
    from jinja2 import Environment

TITLES: dict[Task, str] = {
    "image": "image classification",
    "pix2pix": "image-to-image translation with a GAN",
    "language-model": "a language model",
    "distillation": "knowledge distillation",
    "tabular": "regression on a table",
    "transformers": "text classification with transformers",
}
DEFAULTS: dict[Task, dict[str, Any]] = {
    "image": {"epochs": 5, "batch_size": 64, "lr": 2e-3},
    "pix2pix": {"epochs": 5, "batch_size": 32, "lr": 1e-3},
    "language-model": {"epochs": 3, "batch_size": 32, "lr": 2e-3},
    "distillation": {"epochs": 5, "batch_size": 128, "lr": 3e-3},
    "tabular": {"epochs": 10, "batch_size": 128, "lr": 3e-3},
    "transformers": {"epochs": 5, "batch_size": 64, "lr": 1e-3},
}
CHOICES: dict[str, tuple[str, ...]] = {
    "task": get_args(Task),
    "launcher": get_args(Launcher),
    "amp": get_args(Precision),
    "ddp": get_args(Ddp),
    "tracker": get_args(Tracker),
    "cluster": get_args(Cluster),
}
_PACKAGE = "__package__"  # the name in the templates of what is named after the project
_TAKEN = frozenset(
    "train test tests runs slurm kubernetes benchmark ddpify "
    "torch torchvision numpy tqdm tensorboard wandb apex matplotlib pytest yaml transformers".split()
)


@dataclass(frozen=True)
class Settings:
    """What a project is to be. Raises DdpifyError for a name that no package can have and for choices that do not go together."""

    name: str = "my_project"
    task: Task = "image"
    launcher: Launcher = "torchrun"
    amp: Precision = "none"
    ddp: Ddp = "auto"
    tracker: Tracker = "none"
    cluster: Cluster = "none"

    def __post_init__(self) -> None:
        check_choices({name: getattr(self, name) for name in CHOICES}, CHOICES)
        if (better := package_name(self.name)) != self.name:
            raise DdpifyError(f"{self.name!r} cannot be the name of a package of the project's own", f"call it {better}")
        if self.launcher == "spawn" and self.cluster != "none":
            raise DdpifyError("processes that a script spawns are on one machine", "choose --launcher torchrun for a cluster")

    @property
    def title(self) -> str:
        """What the project does, in words."""
        return TITLES[self.task]

    @property
    def level(self) -> str:
        """The optimisation level of apex.amp, such as O1; empty without one."""
        return self.amp.removeprefix("apex-") if self.amp.startswith("apex-") else ""

    def variables(self) -> dict[str, Any]:
        """What templates know, besides the function `runtime`."""
        ddp = ("apex" if self.level else "torch") if self.ddp == "auto" else self.ddp
        return {
            "package": self.name,
            "task": self.task,
            "title": self.title,
            "defaults": DEFAULTS[self.task],
            "launcher": self.launcher,
            "amp": self.amp,
            "level": self.level,
            "ddp": ddp,
            "judged": "net_g" if self.task == "pix2pix" else "net",  # the model that is validated
            "trained": "net_g, net_d" if self.task == "pix2pix" else "net",
            "overlaps": ddp == "torch" and not self.level,  # gradients wait for the last part of a batch, then all are averaged
            "tracker": self.tracker,
            "cluster": self.cluster,
        }


def package_name(name: str) -> str:
    """The name itself where a package of a project can be called so, else one that is like it."""
    like = name if name.isidentifier() and name.isascii() else re.sub(r"\W+", "_", name, flags=re.ASCII).lower()
    like = like.strip("_") or "my_project"  # pip and Kubernetes have no names with a line at an end
    like = like if not like[0].isdigit() else f"run_{like}"
    taken = keyword.iskeyword(like) or like.lower() in sys.stdlib_module_names | _TAKEN
    return f"{like}_project" if taken else like


def render(settings: Settings, template: Path | None = None) -> dict[str, bytes]:
    """The files of a project, by their paths in it. `template` is a folder of the user's own. Raises DdpifyError for faulty templates."""
    base = template or template_dir() / "project"
    if not base.is_dir():
        raise DdpifyError(f"there is no folder {base}", "name a folder of templates")
    environment = _environment(base, settings)
    files: dict[str, bytes] = {}
    for root in _roots(base, settings):
        for path in sorted(p for p in root.rglob("*") if p.is_file()):
            parts = path.relative_to(root).parts
            if parts[-1].startswith("_") and parts[-1].endswith(".j2") and not parts[-1].startswith("__"):
                continue  # what other templates include
            name = "/".join(settings.name if part == _PACKAGE else part for part in parts)
            try:
                if name.endswith(".j2"):
                    files[name.removesuffix(".j2")] = _rendered(environment, path, base).encode()
                else:
                    files[name] = path.read_bytes()
            except OSError as error:
                raise DdpifyError(f"cannot be read: {error.strerror}", "make it readable", Where(str(path))) from error
    if not files:
        raise DdpifyError(f"{base} holds no files", "name a folder of templates")
    return dict(sorted(files.items()))


def _roots(base: Path, settings: Settings) -> list[Path]:
    """The folders that make a project; a file of a later one takes the place of an earlier one's."""
    if not (base / "common").is_dir():
        return [base]
    parts = [base / "common", base / "tasks" / settings.task, base / "clusters" / settings.cluster]
    return [part for part in parts if part.is_dir()]


def _environment(base: Path, settings: Settings) -> Environment:
    from jinja2 import FileSystemLoader, StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    options = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    environment = ImmutableSandboxedEnvironment(loader=FileSystemLoader(base), **options)
    environment.globals |= settings.variables() | {"runtime": _runtime}
    return environment


def _runtime(name: str) -> str:
    """One of the texts that `ddpify convert` puts into scripts, without its last newline."""
    path = template_dir() / "runtime" / f"{name}.py"
    if not name.isidentifier() or not path.is_file():
        raise DdpifyError(f"there is no runtime text {name!r}", "see templates/runtime")
    return path.read_text(encoding="utf-8").rstrip("\n")


def _rendered(environment: Environment, path: Path, base: Path) -> str:
    from jinja2 import TemplateError, TemplateSyntaxError

    try:
        return environment.get_template(path.relative_to(base).as_posix()).render()
    except TemplateSyntaxError as error:
        where = Where(str(base / (error.name or path)), error.lineno)
        raise DdpifyError(f"faulty template: {error.message}", "correct it", where) from error
    except (TemplateError, UnicodeError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise DdpifyError(f"faulty template: {error}", "correct it", Where(str(path), _line(error, path))) from error


def _line(error: BaseException, path: Path) -> int:
    """The line of a template that an error came from, as jinja2 puts it into the traceback; 0 where it is in none."""
    line, at = 0, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == str(path):
            line = at.tb_lineno
        at = at.tb_next
    return line


def write(folder: Path, files: dict[str, bytes]) -> None:
    """Put the files into a folder that is empty or does not exist yet, all or none. Raises DdpifyError."""
    check(folder)
    made: list[Path] = []
    try:
        top = folder.resolve()
        for name in files:
            target = top / name
            if not target.resolve().is_relative_to(top) or target == top:
                raise DdpifyError(f"{name} leads out of the project", "correct the name in the templates")
            for parent in [p for p in reversed(target.parents) if not p.exists()]:
                parent.mkdir()
                made.append(parent)
        write_all({top / name: data for name, data in files.items()})
        for name in (name for name, data in files.items() if data.startswith(b"#!")):
            (top / name).chmod(0o755)
    except BaseException as error:
        for path in reversed(made):
            shutil.rmtree(path, ignore_errors=True)
        if isinstance(error, OSError):
            where = Where(str(error.filename or folder))
            raise DdpifyError(f"cannot be written: {error.strerror}", "nothing was written", where) from error
        raise


def check(folder: Path) -> None:
    """Raises DdpifyError where there is something already that is not an empty folder."""
    try:
        if folder.is_dir() and not any(folder.iterdir()):
            return
        if folder.exists() or folder.is_symlink():
            what = "is not empty" if folder.is_dir() else "is a file"
            raise DdpifyError(f"{folder} {what}", "name a folder that does not exist yet; nothing is overwritten")
    except OSError as error:
        raise DdpifyError(f"{folder} cannot be read: {error.strerror}", "name another folder") from error
