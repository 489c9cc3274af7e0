"""Distributed scripts that are moved to another launcher: run before and after, they train alike."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import torch
from quick_python import python
from ranks import run_unless_aborted
from test_systems import environment

import ddpify
from ddpify import Options

OLD = {name: (Path(__file__).parent / "systems" / f"old_{name}.py").read_text() for name in ("launch", "spawn", "torchrun")}
MOVES = [(old, new) for old in OLD for new in OLD if old != new]
RUN = [("launch", "torchrun"), ("launch", "spawn"), ("spawn", "torchrun"), ("torchrun", "spawn")]


def moved(old: str, new: str) -> ddpify.Conversion:
    return ddpify.convert(OLD[old], Options(new))  # type: ignore[arg-type]


def train(folder: Path, text: str, launcher: str) -> tuple[str, dict[str, torch.Tensor]]:
    """What a script prints and saves on two processes."""
    folder.mkdir()
    (folder / "train.py").write_text(text)
    module = {"launch": ["-m", "torch.distributed.launch"], "torchrun": ["-m", "torch.distributed.run"], "spawn": []}[launcher]
    command = [python(), *module, *(["--standalone", "--nproc-per-node=2"] if module else []), "train.py"]
    env = environment(WORLD_SIZE="2") if launcher == "spawn" else environment()
    done = run_unless_aborted(command, folder, env, limit=180)
    assert done.returncode == 0 or "SIGABRT" in done.stderr, done.stderr
    return done.stdout, torch.load(folder / "line.pt")


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, torch.Tensor]]:
    """The three train alike."""
    return train(tmp_path_factory.mktemp("old") / "run", OLD["torchrun"], "torchrun")


@pytest.mark.parametrize(("old", "new"), RUN, ids="-".join)
def test_a_moved_script_trains_as_before(old: str, new: str, before, tmp_path: Path) -> None:
    done = moved(old, new)
    assert done.exit_code == 0
    stdout, parameters = train(tmp_path / "run", done.code, new)
    assert stdout == before[0] == "epoch 0 on 2\nepoch 1 on 2\n"
    for key, tensor in before[1].items():
        torch.testing.assert_close(parameters[key], tensor, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("old", "new"), MOVES, ids="-".join)
def test_a_moved_script_stays_where_it_is(old: str, new: str) -> None:
    done = moved(old, new)
    again = ddpify.convert(done.code, Options(new))  # type: ignore[arg-type]
    assert (again.status, again.code, again.exit_code) == ("nothing", done.code, 0)


@pytest.mark.parametrize("old", OLD)
def test_without_being_asked_nothing_is_moved(old: str) -> None:
    done = ddpify.convert(OLD[old])
    assert (done.status, done.code, done.exit_code) == ("nothing", OLD[old], 0)


def test_little_else_changes() -> None:
    changed = {pair: sum(line[:1] == "+" for line in moved(*pair).diff().splitlines()[3:]) for pair in MOVES if pair[1] != "spawn"}
    assert changed == {
        ("launch", "torchrun"): 2,
        ("spawn", "launch"): 4,
        ("spawn", "torchrun"): 4,
        ("torchrun", "launch"): 0,
    }


CALL = "mp.spawn(train, args=(processes, 2), nprocs=processes, join=True)"
LEFT = {
    "a rank computed by hand": (
        'init_process_group("gloo", rank=rank,',
        'init_process_group("gloo", rank=rank + 2 * node,',
        "is computed here",
    ),
    "a worker from elsewhere": ("mp.spawn(train,", "mp.spawn(train if processes else None,", "not a function of this file"),
    "two spawns": (CALL, f"{CALL}\n    {CALL}", "several places"),
    "processes made one by one": (CALL, "mp.Process(target=train, args=(0, 2, 2)).start()", "a way of its own"),
}


@pytest.mark.parametrize("title", LEFT)
def test_what_is_not_understood_is_left_and_said(title: str) -> None:
    old, new, why = LEFT[title]
    text = OLD["spawn"].replace(old, new)
    done = ddpify.convert(text, Options("torchrun"))
    assert (done.code, done.exit_code) == (text, 1)
    assert why in done.findings[0].message


# --- what a script under mp.spawn is like ----------------------------------------------------------------------------------

HEAD = """\
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.sin(torch.arange(320.0)).view(64, 5)
"""
LOOP = """\
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for a, b in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(a), b).backward()
    optimizer.step()
"""


def spawned(text: str, **options: str) -> ddpify.Conversion:
    return ddpify.convert(text, Options("spawn", **options))  # type: ignore[arg-type]


def indented(text: str) -> str:
    return re.sub("(?m)^(?=.)", "    ", text)


def test_text_in_strings_stays_where_it_is() -> None:
    done = spawned(HEAD + 'note = """\nfirst\n  second\n"""\nprint(note)\n' + LOOP + 'print(f"""{len(x)}\nend""")\n')
    assert done.exit_code == 0
    assert '"""\nfirst\n  second\n"""' in done.code
    assert '{len(x)}\nend""")' in done.code


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
@pytest.mark.parametrize("indent", ["\t", "  ", "    "])
def test_layout_is_kept(indent: str, newline: str) -> None:
    text = HEAD + "\n\ndef main():\n" + indented(LOOP) + '\n\nif __name__ == "__main__":\n    main()\n'
    done = spawned(text.replace("    ", indent).replace("\n", newline))
    assert done.exit_code == 0
    assert set(re.findall("\r?\n", done.code)) == {newline}
    compile(done.code, "train.py", "exec")


def test_names_that_functions_read_are_global() -> None:
    loss = "nn.functional.mse_loss(model(a), b)"
    done = spawned(HEAD + f"\n\ndef loss_of(a, b):\n    return {loss}\n\n\n" + LOOP.replace(loss, "loss_of(a, b)"))
    assert done.exit_code == 0
    assert "    global model\n" in done.code


def test_what_definitions_need_stays_in_front_of_them() -> None:
    text = (
        HEAD + "print('start')\nwidth = 5\n\n\nclass Net(nn.Linear):\n    size = width\n\n\n" + LOOP.replace("nn.Linear(5, 1)", "Net(5, 1)")
    )
    done = spawned(text)
    assert done.exit_code == 0
    assert done.code.index("\nwidth = 5") < done.code.index("class Net") < done.code.index("def worker(")
    assert "print('start')" in done.code.partition("def worker(")[2]


def test_a_question_is_left_and_said() -> None:
    done = spawned(HEAD + "name = input()\n" + LOOP)
    assert done.exit_code == 1
    assert "input() cannot ask" in done.findings[0].message
    assert done.command.startswith("torchrun")
    assert "mp.spawn" not in done.code


def test_the_script_is_written_for_its_launcher(tmp_path: Path) -> None:
    """The launcher's shell script has nodes, rank, address and port as variables."""
    (tmp_path / "train.py").write_text(HEAD + LOOP)
    command = [python(), "-m", "ddpify", "convert", str(tmp_path / "train.py"), "-o", str(tmp_path / "ddp.py")]
    texts = {}
    for launcher in ("torchrun", "launch", "spawn"):
        shell = tmp_path / f"{launcher}.sh"
        done = subprocess.run([*command, "--launcher", launcher, "--emit-launcher", str(shell)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert os.access(shell, os.X_OK)
        assert subprocess.run(["sh", "-n", str(shell)]).returncode == 0
        texts[launcher] = shell.read_text()
    for launcher, word in (("torchrun", "torchrun"), ("launch", "python -m torch.distributed.launch")):
        assert f"exec {word} " in texts[launcher]
        for name in ("NPROC_PER_NODE", "NNODES", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"):
            assert f"{name}=${{{name}:-" in texts[launcher]
    assert 'exec python "$(dirname "$0")"/ddp.py "$@"' in texts["spawn"]


def test_arguments_that_a_library_parses_are_handed_over() -> None:
    body = "\n\n@click.command()\n@click.option('--lr', default=0.1)\ndef main(lr):\n" + indented(LOOP.replace("lr=0.1", "lr=lr"))
    done = spawned("import click\n" + HEAD + body + '\n\nif __name__ == "__main__":\n    main()\n')
    assert done.exit_code == 0
    assert "def main(lr):\n    mp.spawn(worker, args=(lr,), nprocs=" in done.code
    assert "def worker(process, lr):\n" in done.code


GLOBALS = (
    HEAD.replace("import torch\n", "import os\nimport torch\n", 1)
    + """

def main():
    global args, best
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", default="0,1")
    args = parser.parse_args()
    os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu
"""
    + indented(LOOP)
    + '    best = 1\n    print(chosen())\n\n\ndef chosen():\n    return args.gpu\n\n\nif __name__ == "__main__":\n    main()\n'
)


def test_devices_are_chosen_before_the_processes_start() -> None:
    done = spawned(GLOBALS)
    assert done.exit_code == 0
    parent, _, worker = done.code.partition("def worker(process, parsed_args):")
    assert 'os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu\n    mp.spawn(worker, args=(args,)' in parent
    assert "    global args, best\n    args = parsed_args\n    init_distributed(process)\n" in worker
    late = spawned(GLOBALS.replace("    args = parser", '    print("start")\n    args = parser'))
    assert late.exit_code == 0
    assert '    if "WORLD_SIZE" not in os.environ:\n        os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu\n' in late.code
    (note,) = [f for f in late.findings if f.code == "DDP106"]
    assert "visible when they started" in note.message and 'os.environ["CUDA' in GLOBALS.splitlines()[note.line - 2]
