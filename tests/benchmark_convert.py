"""How long `ddpify convert` takes: `python tests/benchmark_convert.py [--runs N]`.

First the whole process on a 300-line script beside its floor (start Python, import libcst, parse, generate), taken in turn; modules
are compiled ahead, as an installer compiles them. Then how often the interpreter runs in it, and for how much of the time.
Then on a project of 30 modules and 6000 lines, beside its entry with all that it needs written into it and no modules, and beside one
file of as many lines. Then `convert` alone on generated scripts of 100 to 10000 lines and projects of 1500 to 24000: the time for 100
lines must not grow.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import big_project

HEAD = """\
import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
"""
BLOCK = """

class Block{i}(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, 4 * width)
        self.outer = nn.Linear(4 * width, width)

    def forward(self, x):
        # a residual block
        return x + self.outer(torch.relu(self.inner(x)))


def augment{i}(batch, strength=0.1):
    noise = [strength * value for value in range(len(batch))]
    if len(noise) > {i}:
        noise = noise[:{i}]
    for k, value in enumerate(noise):
        batch[k] = batch[k] + value * {i}
    return batch
"""
TAIL = """

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dataset = TensorDataset(torch.randn(256, 8), torch.randn(256, 8))
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True)
    model = nn.Sequential({blocks}).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {{epoch}}")
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
"""
FLOOR = "import sys, libcst; print(libcst.parse_module(open(sys.argv[1]).read()).code)"


def script(lines: int) -> str:
    """A training script of about so many lines."""
    size = BLOCK.count("\n")
    count = max(1, round((lines - HEAD.count("\n") - TAIL.count("\n")) / size))
    return HEAD + "".join(BLOCK.format(i=i) for i in range(count)) + TAIL.format(blocks=", ".join(f"Block{i}(8)" for i in range(count)))


def process(command: list[str], compiled: str) -> float:
    """The seconds of one whole process; `compiled` is where it keeps compiled modules. Exit codes over 1 are failures."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=kept | {"PYTHONPYCACHEPREFIX": compiled})
    seconds = time.perf_counter() - start
    if done.returncode > 1:
        raise SystemExit(f"{command} failed\n{done.stderr}")
    return seconds


def in_turn(commands: dict[str, list[str]], runs: int) -> None:
    """Prints the medians of whole processes, and their ratios to the first."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as compiled:
        for turn in range(runs + 1):
            for name, command in commands.items():
                taken = process(command, compiled)
                if turn:  # the first turn warms the caches
                    seconds[name].append(taken)
    first = statistics.median(next(iter(seconds.values())))
    print(f"{'':24}{'median ms':>10}{'min':>8}{'max':>8}{'ratio':>9}")
    for name, values in seconds.items():
        median = statistics.median(values)
        print(f"{name:24}{1e3 * median:10.0f}{1e3 * min(values):8.0f}{1e3 * max(values):8.0f}{median / first:9.2f}")


def convert(path: Path) -> list[str]:
    """The command that converts a script."""
    return [sys.executable, "-m", "ddpify", "convert", str(path)]


def whole_process(folder: Path, runs: int) -> None:
    """Prints the medians of `ddpify convert` and of its floor."""
    path = folder / "train.py"
    path.write_text(script(300))
    print(f"whole process, {len(path.read_text().splitlines())} lines, {runs} runs each in turn")
    commands = {
        "floor": [sys.executable, "-c", FLOOR, str(path)],
        "ddpify convert": convert(path),
        "ddpify --help": [sys.executable, "-m", "ddpify", "--help"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    in_turn(commands, runs)


def project(folder: Path, runs: int) -> None:
    """Prints the medians for a project, its entry alone and one file of as many lines."""
    entry, alone, single = big_project.write(folder / "project"), folder / "alone" / "train.py", folder / "single" / "train.py"
    lines = [len(text.splitlines()) for text in big_project.files().values()]
    for path, text in ((alone, big_project.ALONE), (single, script(sum(lines)))):
        path.parent.mkdir()
        path.write_text(text)
    print(f"\nwhole process, {sum(1 for n in lines if n) - 1} modules and {sum(lines)} lines, {runs} runs each in turn")
    in_turn({"entry alone": convert(alone), "project": convert(entry), "one file as long": convert(single)}, runs)


def interpreter(sources: dict[str, Path]) -> None:
    """Prints how often the interpreter runs in a conversion, how many statements in all, and its share of the time."""
    import ddpify
    from ddpify.facts.interpret.machine import Machine

    taken: list[tuple[float, int]] = []
    run = Machine.run

    def timed(self: Machine) -> object:
        start = time.perf_counter()
        trace = run(self)
        taken.append((time.perf_counter() - start, self.spent))
        return trace

    Machine.run = timed  # type: ignore[assignment, method-assign]
    print(f"\n{'the interpreter':24}{'runs':>6}{'statements':>12}{'share':>8}")
    for name, path in sources.items():
        ddpify.convert(path)
        taken.clear()
        start = time.perf_counter()
        ddpify.convert(path)
        whole = time.perf_counter() - start
        share = sum(seconds for seconds, _ in taken) / whole
        print(f"{name:24}{len(taken):6}{sum(statements for _, statements in taken):12}{share:8.0%}")
    Machine.run = run  # type: ignore[method-assign]


def by_lines(folder: Path, runs: int) -> None:
    """Prints the time of `convert` inside a warm process, for growing scripts and growing projects."""
    import ddpify

    ddpify.convert(script(100))
    for of, sizes in (("one file", (100, 300, 1000, 3000, 10000)), ("project", (1500, 3000, 6000, 12000, 24000))):
        print(f"\n{of:>8} lines{'ms':>9}{'ms per 100 lines':>18}{'changes':>9}")
        for lines in sizes:
            if of == "project":
                source: str | Path = big_project.write(folder / f"project{lines}", lines)
                count = sum(len(text.splitlines()) for text in big_project.files(lines).values())
            else:
                source = script(lines)
                count = len(source.splitlines())
            taken = []
            for _ in range(max(3, runs * 300 // lines) if lines > 300 else runs):
                start = time.perf_counter()
                done = ddpify.convert(source)
                taken.append(time.perf_counter() - start)
            milliseconds = 1e3 * statistics.median(taken)
            print(f"{count:14}{milliseconds:9.1f}{100 * milliseconds / count:18.2f}{len(done.changes):9}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        whole_process(Path(name), arguments.runs)
        examples = Path(__file__).parent.parent / "examples"
        interpreter({"300 lines": Path(name) / "train.py"} | {p.parent.name: p for p in sorted(examples.glob("*/train.py"))})
        project(Path(name), arguments.runs)
        by_lines(Path(name), arguments.runs)
