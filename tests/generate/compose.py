"""A training script made of pieces, at random from a seed."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ddpify import Options

from .by_hand import BY_HAND
from .data import LOADERS, LOOPS, SEQUENCES
from .data_wrapped import WRAPPED
from .decisions import DECISIONS, REPORTS
from .domains import DOMAIN_MODELS, DOMAINS
from .files import FILES
from .losses import LOSSES
from .metrics import MORE, NO_VALIDATION, TRAIN_LOSS, VALIDATIONS
from .models import MODELS
from .models_beside import MODELS_BESIDE
from .models_more import MODELS_MORE
from .names import assigned, read, renamed
from .pieces import Piece
from .rates import OWN_STEPS
from .scores import MORE_SCORES, SCORES
from .steps import OPTIMIZERS, STEPS
from .structure import BESIDE, SETTINGS, SHAPES, Parts, Text, indented, step_apart

IMPORTS = (
    *("import argparse", "import copy", "import csv", "import itertools", "import json", "import logging", "import os", "import random"),
    *("import sys", "import time", "import math", "import yaml"),
    *("import shutil", "from collections import defaultdict, deque", "from dataclasses import dataclass", "from pathlib import Path"),
    *("from types import SimpleNamespace", "import numpy as np", "import torch", "import torch.nn as nn"),
    *("import torch.nn.functional as F", "import torch.optim as optim"),
)
_WAYS = {  # how a script names what every script has
    "inputs": ("inputs", "images", "x", "xb", "batch_x", "samples"),
    "targets": ("targets", "labels", "y", "yb", "batch_y", "target"),
    "outputs": ("outputs", "logits", "pred", "out", "y_hat"),
    "model": ("model", "net", "network"),
    "train_loader": ("train_loader", "trainloader", "train_dl", "dataloader"),
    "val_loader": ("val_loader", "test_loader", "valid_dl"),
    "optimizer": ("optimizer", "opt"),
    "criterion": ("criterion", "loss_fn", "loss_func"),
}
_TEXTS = ("setup", "train", "validate", "after", "finish", "step")
_EPOCHS = ("range(epochs)", "range(epochs)", "range(0, epochs)", "range(1, epochs + 1)")
MOVES = (
    Piece("device: none", weight=2),
    Piece(
        "device: to(device)",
        setup='device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n',
        batch="inputs, targets = inputs.to(device), targets.to(device)\n",
        values={"move": "{name} = {name}.to(device)\n"},
        tags=frozenset({"gpu"}),
        weight=4,
    ),
    Piece(
        "device: cuda()",
        batch="inputs = inputs.cuda()\ntargets = targets.cuda()\n",
        values={"move": "{name}.cuda()\n"},
        tags=frozenset({"gpu", "fake gpu"}),
        excludes=frozenset({"cpu batches"}),
        weight=2,
    ),
    Piece(
        "device: cuda() where there is one",
        setup="use_cuda = torch.cuda.is_available()\n",
        batch="if use_cuda:\n    inputs, targets = inputs.cuda(), targets.cuda()\n",
        values={"move": "if use_cuda:\n    {name} = {name}.cuda()\n"},
        tags=frozenset({"gpu"}),
    ),
)
SEEDS = (
    Piece("seed: none"),
    Piece("seed: manual_seed", settings={"seed": 42}, setup="torch.manual_seed(seed)\n", weight=2),
    Piece(
        "seed: function",
        settings={"seed": 1},
        imports=("import random", "import numpy as np"),
        definitions="""
def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
""",
        setup="set_seed(seed)\n",
    ),
)


@dataclass(frozen=True)
class Generated:
    """A script, the modules beside it, the features that it was made of, and what of it can be compared."""

    seed: int
    text: str
    features: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    apart: tuple[str, ...] = ()
    options: Options = field(default_factory=Options)
    args: tuple[str, ...] = ()


def compose(seed: int) -> Generated:
    """The script of a seed: always the same one."""
    rng = random.Random(seed)
    while True:
        pieces = _choose(rng)
        if _disjoint(list(pieces.values())):
            return _written(seed, pieces, rng)


def _one(rng: random.Random, options: Sequence[Piece], others: tuple[Piece, ...]) -> Piece:
    fitting = [p for p in options if p.fits(others)]
    return rng.choices(fitting, [p.weight for p in fitting])[0]


def _choose(rng: random.Random) -> dict[str, Piece]:
    chosen: dict[str, Piece] = {}

    def add(axis: str, options: Sequence[Piece]) -> None:
        chosen[axis] = _one(rng, options, tuple(chosen.values()))

    data, models = [*LOADERS, *WRAPPED, *BY_HAND, *DOMAINS, *SEQUENCES], [*MODELS, *MODELS_BESIDE, *MODELS_MORE, *DOMAIN_MODELS]
    steps = [*STEPS, *OWN_STEPS]
    for axis, options in (("data", data), ("model", models), ("move", MOVES), ("seed", SEEDS), ("step", steps), ("loss", LOSSES)):
        add(axis, options)
    add("train loss", TRAIN_LOSS)
    for i in range(rng.choice((0, 1, 1, 2))):
        add(f"metric {i}", [piece for piece in (*MORE, *MORE_SCORES) if piece not in chosen.values()])
    add("validation", [NO_VALIDATION] if rng.random() < 0.25 else [*VALIDATIONS, *SCORES])
    for axis, options in (("report", REPORTS), ("decision", DECISIONS), ("files", FILES)):
        add(axis, options)
    return chosen


def _disjoint(pieces: list[Piece]) -> bool:
    """Whether no two pieces keep different things under one name."""
    seen: set[str] = set()
    for piece in pieces:
        lasting = clean(piece.setup) + clean(piece.start) + clean(piece.end) + clean(piece.validation_start) + clean(piece.after)
        names = set(assigned(lasting)) - {"p", "f", "group", "c"}
        if names & seen:
            return False
        seen |= names
    return True


def clean(text: str) -> str:
    """A piece's text without empty lines around it."""
    text = text.strip("\n")
    return text + "\n" if text else ""


def put(template: str, **parts: str) -> str:
    """The template with texts in the place of `{name}`, each indented as its place is."""
    out = []
    for line in clean(template).splitlines():
        name = line.strip()[1:-1] if line.strip().startswith("{") and line.strip().endswith("}") else ""
        if name in parts:
            out.append(textwrap.indent(clean(parts[name]), line[: len(line) - len(line.lstrip())]).rstrip("\n"))
        else:
            for key, value in parts.items():
                line = line.replace("{" + key + "}", value)
            out.append(line)
    return "\n".join(line for line in out if line) + "\n"


def _written(seed: int, pieces: dict[str, Piece], rng: random.Random) -> Generated:
    parts, optimizer = _parts(pieces, rng)
    shape = rng.choice(list(SHAPES))
    way = rng.choice(list(SETTINGS))
    modules = rng.random() < 0.3
    parts = _named(parts, rng)
    config, settings, names = SETTINGS[way](parts.settings)
    apart_settings = BESIDE[way](parts.settings) if way in BESIDE else {}
    parts = replace(parts, **{key: renamed(getattr(parts, key), names) for key in (*_TEXTS, "epochs")})
    given = settings + "\n"
    parts = replace(parts, setup=given + parts.setup, given=given)
    step = rng.random() < 0.2
    parts = step_apart(parts) if step else parts
    text = SHAPES[shape](parts, rng)
    modules = modules or bool(text.modules)
    features = (*(p.feature for p in pieces.values()), f"optimizer: {optimizer}", f"structure: {shape}", f"settings: {way}")
    features += ("modules: definitions apart",) * modules + ("step: a function of its own",) * step
    apart = tuple(name for piece in pieces.values() for name in piece.apart)
    imports = [line for piece in pieces.values() for line in piece.imports] + ["import config"] * ("config.py" in apart_settings)
    beside = {"settings": config, **parts.definitions}
    files = _modules(text, beside if modules else {}, imports)
    definitions = "\n\n\n".join(d.strip("\n") for d in beside.values() if d.strip() and not modules)
    body = (definitions + "\n\n\n" if definitions else "") + text.definitions + text.body
    script = _head(body, imports, files) + body
    compile(script, f"<seed {seed}>", "exec")
    return Generated(seed, script, features, apart_settings | {f"{name}.py": content for name, content in files.items()}, apart)


def _parts(pieces: dict[str, Piece], rng: random.Random) -> tuple[Parts, str]:
    """The pieces' code put together, and which optimizer they train with."""
    data, model, move, step, loss = (pieces[axis] for axis in ("data", "model", "move", "step", "loss"))
    settings = {name: value for piece in pieces.values() for name, value in piece.settings.items()}
    rounding = any("zero gradients" in piece.tags for piece in pieces.values())  # of which Adam would make steps
    optimizer = rng.choice([name for name in OPTIMIZERS if not rounding or "Adam" not in name])
    if optimizer == "by name":
        settings["optimizer_name"] = "SGD"
    parameters = model.values.get("parameters", "model.parameters()")
    modules = model.values.get("modules", "model ema_model" if "ema" in model.tags else "model").split()
    moved = "".join(put(move.values["move"], name=name) for name in modules if "move" in move.values)
    setup = [pieces["seed"].setup, move.setup, data.setup, model.setup, moved, model.values.get("set up late", ""), loss.setup]
    setup += [put(OPTIMIZERS[optimizer], parameters=parameters), step.setup]
    setup += [p.setup for axis, p in pieces.items() if axis not in ("seed", "move", "data", "model", "loss", "step")]
    forward = clean(model.batch or "outputs = model(inputs)\n") + clean(loss.batch) + model.values.get("extra loss", "")
    metrics = [p for axis, p in pieces.items() if axis.startswith(("train loss", "metric", "files"))]
    also = "".join(put(move.values["move"], name=name) for name in data.values.get("also moved", "").split() if "move" in move.values)
    one_step = put(step.batch, forward=forward) + model.values.get("after step", "")
    batch = clean(move.batch) + also + one_step + "".join(clean(p.batch) for p in metrics)
    start = "".join(f"{name}.train()\n" for name in modules if name not in ("teacher", "ema_model"))
    start += "".join(clean(p.start) for p in (model, step, *metrics))
    train = start + put(data.loop or rng.choice(LOOPS), body=batch) + "".join(clean(p.end) for p in metrics)
    validation = pieces["validation"]
    validate = ""
    if validation.validation_batch:
        predict = model.values.get("predict", "outputs = model(inputs)\n")
        header = "for inputs, targets in val_loader:\n    {body}\n"
        if "dict batches" in data.tags:
            header = 'for batch in val_loader:\n    inputs, targets = batch["features"], batch["labels"]\n    {body}\n'
        inside = put(header, body=clean(move.batch) + predict + clean(validation.validation_batch))
        evaluated = "".join(f"{name}.eval()\n" for name in modules if name != "teacher")
        validate = evaluated + model.values.get("before validation", "") + clean(validation.validation_start)
        validate += "with torch.no_grad():\n" + indented(inside) + clean(validation.validation_end)
        validate += model.values.get("after validation", "")
    after = "".join(clean(p.after) for p in sorted(pieces.values(), key=lambda p: "break" in p.after))
    finish = "".join(clean(p.finish) for p in pieces.values())
    others = [clean(p.definitions) for axis, p in pieces.items() if axis not in ("data", "model") and p.definitions]
    definitions = {"dataset": data.definitions, "models": model.definitions, "utils": "\n\n".join(dict.fromkeys(others))}
    first = next((p.values["first epoch"] + ", " for p in pieces.values() if "first epoch" in p.values), "")
    before = "\n".join(filter(None, map(clean, setup))) + "\n"
    epochs = f"range({first}epochs)" if first else rng.choice(_EPOCHS)
    return Parts(settings, definitions, before, train, validate, after, finish, one_step, epochs), optimizer


def _named(parts: Parts, rng: random.Random) -> Parts:
    """The parts with other names for what every script has, and only the settings that they read."""
    everything = parts.setup + parts.train + parts.validate + parts.after + parts.finish
    known = read(everything) | set(assigned(everything))
    names = {old: rng.choice(ways) for old, ways in _WAYS.items()}
    names = {old: new for old, new in names.items() if new not in known}
    texts = {key: renamed(getattr(parts, key), names) for key in _TEXTS}
    settings = {name: value for name, value in parts.settings.items() if name in read(everything) or name == "epochs"}
    return replace(parts, settings=settings, **texts)


def _modules(text: Text, definitions: dict[str, str], imports: list[str]) -> dict[str, str]:
    """The modules beside the script, with their imports."""
    texts = {name: clean(content) for name, content in {**definitions, **text.modules}.items() if content.strip()}
    return {name: _head(content, imports, {n: t for n, t in texts.items() if n != name}) + content for name, content in texts.items()}


def _head(body: str, imports: list[str], modules: dict[str, str]) -> str:
    """The import statements that a text needs: of packages, then of the modules beside it."""
    wanted, out = read(body), []
    for line in dict.fromkeys((*IMPORTS, *imports)):
        given = [name for name in assigned(line) if name in wanted]
        if given and line.startswith("from"):
            out.append(line.split(" import ")[0] + " import " + ", ".join(given))
        elif given:
            out.append(line)
    merged: dict[str, list[str]] = {}
    for line in out:
        if line.startswith("from"):
            module, names = line.split(" import ")
            merged.setdefault(module, []).extend(names.split(", "))
        else:
            merged[line] = []
    lines = [f"{key} import {', '.join(sorted(set(names)))}" if names else key for key, names in merged.items()]
    own = []
    for module, content in modules.items():
        if names := [n for n in assigned(content) if n in wanted and n in _defined(content)]:
            own.append(f"from {module} import {', '.join(names)}")
    return "\n".join(lines) + "\n" + ("\n" + "\n".join(own) + "\n" if own else "") + "\n\n"


def _defined(text: str) -> list[str]:
    """The names of a module that others may import: not those that it has imported itself."""
    imported = {name for line in text.splitlines() if line.startswith(("import ", "from ")) for name in assigned(line)}
    return [name for name in assigned(text) if name not in imported]
