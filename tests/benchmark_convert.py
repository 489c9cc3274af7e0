"""How long `ddpify convert` takes: `python tests/benchmark_convert.py [--runs N]`.

First the whole process on a 300-line script beside its floor (start Python, import libcst, parse, generate), taken in turn.
Then `convert` alone on generated scripts of 100 to 10000 lines: the time for 100 lines must not grow.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def process(command: list[str]) -> float:
    """The seconds of one whole process; exit codes over 1 are failures."""
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode > 1:
        raise SystemExit(f"{command} failed\n{done.stderr}")
    return seconds


def whole_process(folder: Path, runs: int) -> None:
    """Prints the medians of `ddpify convert` and of its floor."""
    path = folder / "train.py"
    path.write_text(script(300))
    commands = {
        "floor": [sys.executable, "-c", FLOOR, str(path)],
        "ddpify convert": [sys.executable, "-m", "ddpify", "convert", str(path)],
        "ddpify --help": [sys.executable, "-m", "ddpify", "--help"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(runs + 1):
        for name, command in commands.items():
            taken = process(command)
            if turn:  # the first turn warms the caches
                seconds[name].append(taken)
    floor = statistics.median(seconds["floor"])
    print(f"whole process, {len(path.read_text().splitlines())} lines, {runs} runs each in turn")
    print(f"{'':16}{'median ms':>10}{'min':>8}{'max':>8}{'/ floor':>9}")
    for name, values in seconds.items():
        median = statistics.median(values)
        print(f"{name:16}{1e3 * median:10.0f}{1e3 * min(values):8.0f}{1e3 * max(values):8.0f}{median / floor:9.2f}")


def by_lines(runs: int) -> None:
    """Prints the time of `convert` inside a warm process, for growing scripts."""
    import ddpify

    ddpify.convert(script(100))
    print(f"\n{'lines':>6}{'ms':>9}{'ms per 100 lines':>18}{'changes':>9}")
    for lines in (100, 300, 1000, 3000, 10000):
        text = script(lines)
        taken = []
        for _ in range(max(3, runs * 300 // lines) if lines > 300 else runs):
            start = time.perf_counter()
            done = ddpify.convert(text)
            taken.append(time.perf_counter() - start)
        count, milliseconds = len(text.splitlines()), 1e3 * statistics.median(taken)
        print(f"{count:6}{milliseconds:9.1f}{100 * milliseconds / count:18.2f}{len(done.changes):9}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        whole_process(Path(name), arguments.runs)
    by_lines(arguments.runs)
