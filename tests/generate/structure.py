"""The shape of a script: where its parts stand, and how names get from one to another."""

from __future__ import annotations

import ast
import json
import random
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from .names import assigned, read, renamed, wanted


@dataclass(frozen=True)
class Parts:
    """A script as statements of one scope: `train` and `validate` run in each epoch, then `after`; `setup` before, `finish` at the end.

    `definitions` are texts of classes and functions by the module in which they might stand, `given` makes the settings, and `step` is what
    `train` does with each batch.
    """

    settings: Mapping[str, object]
    definitions: Mapping[str, str]
    setup: str
    train: str
    validate: str
    after: str
    finish: str
    step: str = ""
    epochs: str = "range(epochs)"
    given: str = ""

    def later(self) -> str:
        """What runs after the setup."""
        return f"{self.epochs}\n" + self.train + self.validate + self.after + self.finish

    def epoch(self, train: str, validate: str) -> str:
        """The loop over epochs, with something in the place of its two parts."""
        return f"for epoch in {self.epochs}:\n" + indented(train + validate + self.after)


@dataclass
class Text:
    """A script: its definitions, then its body, and the modules beside it."""

    definitions: str
    body: str
    modules: dict[str, str] = field(default_factory=dict)


def indented(text: str, by: int = 1) -> str:
    return textwrap.indent(text, "    " * by)


def _needed(text: str, known: Iterable[str]) -> list[str]:
    """The known names that a text reads, in their order."""
    needed = wanted(text)
    return [name for name in dict.fromkeys(known) if name in needed]


def _results(text: str, before: str, later: str) -> list[str]:
    """The names that a text gives a value to, which others read: what comes after it, or the same text in the next epoch."""
    carried = set(assigned(before)) & wanted(text)
    return [name for name in assigned(text) if name in wanted(later) or name in carried]


def _function(name: str, parameters: list[str], body: str, results: list[str]) -> str:
    returned = f"    return {', '.join(results)}\n" if results else ""
    return f"def {name}({', '.join(parameters)}):\n{indented(body)}{returned}\n\n"


def _call(name: str, arguments: list[str], results: list[str]) -> str:
    return (f"{', '.join(results)} = " if results else "") + f"{name}({', '.join(arguments)})\n"


def top_level(parts: Parts, rng: random.Random) -> Text:
    return Text("", parts.setup + parts.epoch(parts.train, parts.validate) + parts.finish)


def main_function(parts: Parts, rng: random.Random) -> Text:
    body = parts.setup + parts.epoch(parts.train, parts.validate) + parts.finish
    return Text(f"def main():\n{indented(body)}\n\n", 'if __name__ == "__main__":\n    main()\n')


def several_runs(parts: Parts, rng: random.Random) -> Text:
    """Everything done twice, by a function or a loop, with settings made once."""
    setup = parts.setup.removeprefix(parts.given)
    body = setup + parts.epoch(parts.train, parts.validate) + parts.finish
    if rng.random() < 0.5:
        text = parts.given + 'for run in range(2):\n    print(f"run {run}")\n' + indented(body)
        return Text(f"def main():\n{indented(text)}\n\n", 'if __name__ == "__main__":\n    main()\n')
    needed = _needed(f"{parts.epochs}\n" + body, assigned(parts.given))
    text = _function("run_once", [*needed, "run"], 'print(f"run {run}")\n' + body, [])
    calls = parts.given + "for run in range(2):\n    " + _call("run_once", [*needed, "run"], [])
    return Text(text, 'if __name__ == "__main__":\n' + indented(calls))


def step_apart(parts: Parts) -> Parts:
    """The parts with a function of its own for what is done with each batch, where that can be one."""
    found = [by for by in range(1, 5) if indented(parts.step, by) in parts.train]
    if not found or {"continue", "break"} & set(parts.step.split()):
        return parts
    place = indented(parts.step, found[0])
    rest = parts.train.replace(place, indented("pass\n", found[0]))
    needed = _needed(parts.step, [*assigned(parts.setup), *assigned(rest), "epoch"])
    results = _results(parts.step, parts.setup + rest, rest + parts.validate + parts.after + parts.finish)
    text = _function("train_step", needed, parts.step, results).rstrip() + "\n"
    definitions = {**parts.definitions, "utils": (parts.definitions.get("utils", "") + "\n\n" + text).strip("\n") + "\n"}
    call = indented(_call("train_step", needed, results), found[0])
    return replace(parts, definitions=definitions, train=parts.train.replace(place, call))


def _functions(parts: Parts, parameters: bool) -> tuple[str, str, str]:
    """Functions that train and validate for an epoch, and their calls; what they need is given to them, or global."""
    known = [*assigned(parts.setup), "epoch"]
    texts, calls = [], []
    for name, body, later in (
        ("train_one_epoch", parts.train, parts.validate + parts.after + parts.finish),
        ("validate", parts.validate, parts.after + parts.finish),
    ):
        if not body:
            continue
        needed = _needed(body, known)
        results = _results(body, parts.setup, later)
        if not parameters:
            written = [n for n in assigned(body) if n in assigned(parts.setup)]
            body = (f"global {', '.join(written)}\n" if written else "") + body
            needed = ["epoch"] if "epoch" in needed else []
            results = [n for n in results if n not in written]
        texts.append(_function(name, needed, body, results))
        calls.append(_call(name, needed, results))
    return "".join(texts), calls[0], "".join(calls[1:])


def functions(parts: Parts, rng: random.Random) -> Text:
    """Functions with parameters, called from `main`, which may stand in a module of their own."""
    texts, train, validate = _functions(parts, True)
    body = parts.setup + parts.epoch(train, validate) + parts.finish
    main = f"def main():\n{indented(body)}\n\n"
    start = 'if __name__ == "__main__":\n    main()\n'
    if rng.random() < 0.4:
        return Text(main, start, {"engine": texts})
    return Text(texts + main, start)


def functions_with_globals(parts: Parts, rng: random.Random) -> Text:
    """Functions that read what the script has made at its top level."""
    texts, train, validate = _functions(parts, False)
    if rng.random() < 0.5:
        return Text("", parts.setup + "\n\n" + texts + parts.epoch(train, validate) + parts.finish)
    return Text(texts, 'if __name__ == "__main__":\n' + indented(parts.setup + parts.epoch(train, validate) + parts.finish))


def closures(parts: Parts, rng: random.Random) -> Text:
    """Functions inside `main` that read its names."""
    texts, train, validate = _functions(parts, False)
    texts = texts.replace("    global ", "    nonlocal ").replace("\n\n\n", "\n\n")
    body = parts.setup + "\n" + texts + parts.epoch(train, validate) + parts.finish
    return Text(f"def main():\n{indented(body)}\n\n", 'if __name__ == "__main__":\n    main()\n')


def trainer_class(parts: Parts, rng: random.Random) -> Text:
    """A class that makes everything in its constructor, or is given it."""
    kept = [n for n in assigned(parts.setup) if n in wanted(parts.later())]
    own = {name: f"self.{name}" for name in kept}
    train, validate, after, finish = (renamed(t, own) for t in (parts.train, parts.validate, parts.after, parts.finish))
    methods, calls = "", ["", ""]
    for i, (name, body, later) in enumerate(
        (("train_epoch", train, validate + after + finish), ("validate", validate, after + finish)),
    ):
        if body:
            results = [n for n in assigned(body) if n in wanted(later)]
            needed = ["epoch"] if "epoch" in read(body) else []
            methods += indented(_function(name, ["self", *needed], body, results).rstrip() + "\n\n")
            calls[i] = _call(f"self.{name}", needed, results)
    loop = f"for epoch in {renamed(parts.epochs, own)}:\n" + indented(calls[0] + calls[1] + after)
    methods += indented(_function("fit", ["self"], loop + finish, []).rstrip() + "\n")
    start = 'if __name__ == "__main__":\n    main()\n'
    if rng.random() < 0.4:
        init = "    def __init__(self):\n" + indented(renamed(parts.setup, own), 2)
        return Text(f"class Trainer:\n{init}\n{methods}\n\n", 'if __name__ == "__main__":\n    trainer = Trainer()\n    trainer.fit()\n')
    init = f"    def __init__(self, {', '.join(kept)}):\n" + "".join(f"        self.{name} = {name}\n" for name in kept)
    arguments = ", ".join(f"{name}={name}" if i > 2 else name for i, name in enumerate(kept))
    main = f"def main():\n{indented(parts.setup)}    trainer = Trainer({arguments})\n    trainer.fit()\n\n\n"
    text = f"class Trainer:\n{init}\n{methods}\n\n"
    return Text(main, start, {"trainer": text}) if rng.random() < 0.5 else Text(text + main, start)


_BASE = """class BaseTrainer:
    def __init__(self, model, optimizer, epochs):
        self.model = model
        self.optimizer = optimizer
        self.epochs = epochs
        self.results = []

    def train_epoch(self, epoch):
        raise NotImplementedError

    def fit(self):
        for epoch in self.epochs:
            result = self.train_epoch(epoch)
            self.results.append(result)
            if not self.goes_on(epoch, result):
                break
        self.finish()

    def goes_on(self, epoch, result):
        return True

    def finish(self):
        pass
"""


def derived_trainer(parts: Parts, rng: random.Random) -> Text:
    """A class that is derived from one of another module, which holds the loop over epochs."""
    kept = [n for n in assigned(parts.setup) if n in wanted(parts.later())]
    base = ("model", "optimizer")
    names = [next((new for new, old in parts.settings.items() if old is name), name) for name in base]
    if not all(name in kept for name in names) or "epochs" in kept or "break" in parts.after:
        return trainer_class(parts, rng)
    own = {name: f"self.{name}" for name in kept}
    train, validate, after, finish = (renamed(t, own) for t in (parts.train, parts.validate, parts.after, parts.finish))
    epoch = train + validate + after + "return train_loss\n"
    others = [name for name in kept if name not in names]
    init = f"def __init__(self, model, optimizer, epochs, {', '.join(others)}):\n    super().__init__(model, optimizer, epochs)\n"
    init += "".join(f"    self.{name} = {name}\n" for name in others)
    methods = init + "\n" + _function("train_epoch", ["self", "epoch"], epoch, []).rstrip() + "\n"
    methods += "\n" + _function("finish", ["self"], finish, []).rstrip() + "\n" if finish else ""
    given = ", ".join([*names, parts.epochs, *(f"{name}={name}" for name in others)])
    main = f"def main():\n{indented(parts.setup)}    trainer = Trainer({given})\n    trainer.fit()\n\n\n"
    text = f"class Trainer(BaseTrainer):\n{indented(methods)}\n\n"
    return Text(text + main, 'if __name__ == "__main__":\n    main()\n', {"base_trainer": _BASE})


def solver(parts: Parts, rng: random.Random) -> Text:
    """A class whose constructor calls methods that make the data, the model and the optimizer."""
    made = parts.setup.removeprefix(parts.given)
    kept = [n for n in assigned(parts.setup) if n in wanted(parts.later()) | _crossing(made) | set(assigned(parts.given))]
    own = {name: f"self.{name}" for name in kept}
    pieces = [renamed(piece, own) for piece in _thirds(made)]
    names = ("build_data", "build_model", "build_training")[: len(pieces)]
    calls = "".join(f"self.{name}()\n" for name in names)
    methods = _function("__init__", ["self"], renamed(parts.given, own) + calls, []).rstrip() + "\n\n"
    for name, piece in zip(names, pieces, strict=True):
        methods += _function(name, ["self"], piece, []).rstrip() + "\n\n"
    train, validate, after, finish = (renamed(t, own) for t in (parts.train, parts.validate, parts.after, parts.finish))
    loop = f"for epoch in {renamed(parts.epochs, own)}:\n" + indented(train + validate + after)
    methods += _function("train", ["self"], loop + finish, []).rstrip() + "\n"
    return Text(f"class Solver:\n{indented(methods)}\n\n", 'if __name__ == "__main__":\n    Solver().train()\n')


def _thirds(text: str) -> list[str]:
    """The statements of a text in at most three parts, in order."""
    lines, tree = text.splitlines(keepends=True), ast.parse(text)
    ends = [node.end_lineno or 0 for node in tree.body]
    cuts = sorted({ends[len(ends) * i // 3 - 1] for i in (1, 2, 3) if len(ends) * i // 3})
    return ["".join(lines[a:b]) for a, b in zip([0, *cuts], cuts, strict=False) if "".join(lines[a:b]).strip()]


def _crossing(text: str) -> set[str]:
    """The names that one of the parts gives a value to and a later one reads."""
    parts = _thirds(text)
    return {name for i, part in enumerate(parts) for name in assigned(part) if any(name in read(later) for later in parts[i + 1 :])}


def phases(parts: Parts, rng: random.Random) -> Text:
    """A loop over the two phases of an epoch."""
    if not parts.validate:
        return main_function(parts, rng)
    both = 'for phase in ["train", "val"]:\n    if phase == "train":\n' + indented(parts.train, 2)
    body = parts.setup + parts.epoch(both + "    else:\n" + indented(parts.validate, 2), "") + parts.finish
    return Text(f"def main():\n{indented(body)}\n\n", 'if __name__ == "__main__":\n    main()\n')


def fit_function(parts: Parts, rng: random.Random) -> Text:
    """One function that trains for all epochs, which is given what `main` makes."""
    later = parts.epoch(parts.train, parts.validate)
    needed, results = _needed(f"{parts.epochs}\n" + later, assigned(parts.setup)), _results(later, parts.setup, parts.finish)
    text = _function("fit", needed, later, results)
    called = [name if i < 3 else f"{name}={name}" for i, name in enumerate(needed)]
    body = parts.setup + _call("fit", called, results) + parts.finish
    return Text(text + f"def main():\n{indented(body)}\n\n", 'if __name__ == "__main__":\n    main()\n')


SHAPES = {
    "phases": phases,
    "a function for all epochs": fit_function,
    "top level": top_level,
    "main function": main_function,
    "functions with parameters": functions,
    "functions with globals": functions_with_globals,
    "closures": closures,
    "trainer class": trainer_class,
    "class derived from a trainer": derived_trainer,
    "solver that builds its parts": solver,
    "several runs": several_runs,
}


# --- settings: their definitions, the statements that make them, and how each is read -----------------------------------
Settings = tuple[str, str, dict[str, str]]


def constants(values: Mapping[str, object]) -> Settings:
    return "", "".join(f"{name} = {value!r}\n" for name, value in values.items()), {}


def capitals(values: Mapping[str, object]) -> Settings:
    return "", "".join(f"{name.upper()} = {value!r}\n" for name, value in values.items()), {name: name.upper() for name in values}


def dictionary(values: Mapping[str, object]) -> Settings:
    lines = "".join(f'    "{name}": {value!r},\n' for name, value in values.items())
    return "", f"config = {{\n{lines}}}\n", {name: f'config["{name}"]' for name in values}


def arguments(values: Mapping[str, object]) -> Settings:
    lines = [f'parser.add_argument("--{name.replace("_", "-")}", type={type(v).__name__}, default={v!r})\n' for name, v in values.items()]
    text = "parser = argparse.ArgumentParser()\n" + "".join(lines) + "args = parser.parse_args()\n"
    return "", text, {name: f"args.{name}" for name in values}


def namespace(values: Mapping[str, object]) -> Settings:
    given = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return "", f"cfg = SimpleNamespace({given})\n", {name: f"cfg.{name}" for name in values}


def data_class(values: Mapping[str, object]) -> Settings:
    fields = "".join(f"    {name}: {type(value).__name__} = {value!r}\n" for name, value in values.items())
    return f"@dataclass\nclass Config:\n{fields}", "config = Config()\n", {name: f"config.{name}" for name in values}


def module(values: Mapping[str, object]) -> Settings:
    return "", "", {name: f"config.{name}" for name in values}


def json_file(values: Mapping[str, object]) -> Settings:
    return "", 'with open("config.json") as f:\n    config = json.load(f)\n', {name: f'config["{name}"]' for name in values}


def class_of_constants(values: Mapping[str, object]) -> Settings:
    fields = "".join(f"    {name} = {value!r}\n" for name, value in values.items())
    return f"class Config:\n{fields}", "", {name: f"Config.{name}" for name in values}


def function_of_arguments(values: Mapping[str, object]) -> Settings:
    lines = [f'    parser.add_argument("--{name}", default={v!r}, type={type(v).__name__})\n' for name, v in values.items()]
    text = "def parse_args():\n    parser = argparse.ArgumentParser()\n" + "".join(lines) + "    return parser.parse_args()\n"
    return text, "opt_args = parse_args()\n", {name: f"opt_args.{name}" for name in values}


def attributes(values: Mapping[str, object]) -> Settings:
    lines = "".join(f"        self.{name} = {value!r}\n" for name, value in values.items())
    return f"class Options:\n    def __init__(self):\n{lines}", "options = Options()\n", {name: f"options.{name}" for name in values}


def yaml_file(values: Mapping[str, object]) -> Settings:
    text = 'with open("config.yaml") as f:\n    config = yaml.safe_load(f)\n'
    return "", text, {name: f'config["train"]["{name}"]' for name in values}


def attribute_dict(values: Mapping[str, object]) -> Settings:
    definition = """
class AttrDict(dict):
    def __getattr__(self, name):
        return self[name]

    def __setattr__(self, name, value):
        self[name] = value
"""
    lines = "".join(f"    {name}={value!r},\n" for name, value in values.items())
    return definition, f"hparams = AttrDict(\n{lines})\n", {name: f"hparams.{name}" for name in values}


def arguments_and_file(values: Mapping[str, object]) -> Settings:
    """What a file says, over what the command line says."""
    lines = [f'parser.add_argument("--{name}", type={type(v).__name__}, default={v!r})\n' for name, v in values.items()]
    text = 'parser = argparse.ArgumentParser()\nparser.add_argument("--config", default="config.json")\n' + "".join(lines)
    text += "args = parser.parse_args()\nwith open(args.config) as f:\n    for key, value in json.load(f).items():\n"
    return "", text + "        setattr(args, key, value)\n", {name: f"args.{name}" for name in values}


BESIDE = {
    "module": lambda values: {"config.py": "".join(f"{name} = {value!r}\n" for name, value in values.items())},
    "JSON file": lambda values: {"config.json": json.dumps(dict(values), indent=4) + "\n"},
    "arguments and a file": lambda values: {"config.json": json.dumps(dict(values), indent=4) + "\n"},
    "YAML file": lambda values: {"config.yaml": "train:\n" + "".join(f"  {name}: {json.dumps(v)}\n" for name, v in values.items())},
}
"""What lies beside a script whose settings stand in another file."""
SETTINGS = {
    "constants": constants,
    "capital constants": capitals,
    "dict": dictionary,
    "argparse": arguments,
    "namespace": namespace,
    "dataclass": data_class,
    "module": module,
    "JSON file": json_file,
    "class": class_of_constants,
    "argparse in a function": function_of_arguments,
    "attributes": attributes,
    "YAML file": yaml_file,
    "attribute dict": attribute_dict,
    "arguments and a file": arguments_and_file,
}
