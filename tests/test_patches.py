"""The diff that `ddpify convert` pipes, taken by `git apply` and `patch -p1`: exactly the files that -o writes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from quick_python import python

ENGINE = """from torch import nn


def fit(model, loader, optimizer, epochs):
\tfor epoch in range(epochs):
\t\tfor x, y in loader:
\t\t\toptimizer.zero_grad()
\t\t\tloss = nn.functional.mse_loss(model(x), y)
\t\t\tloss.backward()
\t\t\toptimizer.step()
\t\tprint("époque", epoch)"""
MAIN = """import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from engine import fit


def main():
    data = TensorDataset(torch.ones(64, 4), torch.ones(64, 1))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    model = nn.Linear(4, 1)
    print("größer \x0c")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    fit(model, loader, optimizer, 2)


if __name__ == "__main__":
    main()
"""
LATIN = "# -*- coding: latin-1 -*-\n"
FILES = {  # the script and its module
    "unix": (MAIN.encode(), ENGINE.encode()),
    "windows": (MAIN.replace("\n", "\r\n").encode(), ENGINE.replace("\n", "\r\n").encode()),
    "mixed newlines": (MAIN.replace("()\n", "()\r\n").encode(), ENGINE.replace(":\n", ":\r\n").encode()),
    "BOMs": (b"\xef\xbb\xbf" + MAIN.encode(), b"\xef\xbb\xbf" + ENGINE.encode()),
    "two encodings": ((LATIN + MAIN).encode("latin-1"), ENGINE.encode()),
    "two encodings, the other way round": (MAIN.removesuffix("\n").encode(), (LATIN + ENGINE).encode("latin-1")),
}
PLACES = {  # where the script is, and from where it is named
    "here": (".", "."),
    "in a folder below": ("my größe/scripts", "."),
    "in the folder above": (".", "deep/er"),
}


def ddpify(cwd: Path, *arguments: str) -> bytes:
    done = subprocess.run([python(), "-m", "ddpify", "convert", *arguments], cwd=cwd, capture_output=True, check=False)
    assert done.returncode < 2, done.stderr
    return done.stdout


COMBINED = [(files, place) for files in FILES for place in PLACES if place == "here" or files in ("unix", "two encodings")]


@pytest.mark.parametrize(("files", "place"), [(FILES[f], PLACES[p]) for f, p in COMBINED], ids=[", ".join(pair) for pair in COMBINED])
def test_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: tuple[bytes, bytes], place: tuple[str, str]) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    folder, cwd, out = tmp_path / place[0], tmp_path / place[1], tmp_path / "out"
    before = dict(zip(("train.py", "engine.py"), files, strict=True))
    for one in (folder, cwd, out):
        one.mkdir(parents=True, exist_ok=True)
    for name, data in before.items():
        (folder / name).write_bytes(data)
    script = os.path.relpath(folder / "train.py", cwd)
    ddpify(cwd, script, "-o", str(out))
    patch = ddpify(cwd, script)
    expected = {path.name: path.read_bytes() for path in out.iterdir()}
    assert sorted(expected) == ["ddp_utils.py", "engine.py", "train.py"]
    assert expected["train.py"] != files[0]
    outside = script.startswith("..")  # such names are those of the whole system
    tools = {"git": ["git", "apply", *["--unsafe-paths", "--directory=/"] * outside, "-"], "patch": ["patch", "-p1"]}
    for command in (tools[tool] for tool in tools if shutil.which(tool)):
        subprocess.run(command, cwd="/" if outside else cwd, input=patch, check=True, capture_output=True)
        assert {name: (folder / name).read_bytes() for name in expected} == expected
        for name in expected:
            (folder / name).unlink()
        for name, data in before.items():
            (folder / name).write_bytes(data)
