"""How a result is started: the command that is shown, and the shell script that `--emit-launcher` writes."""

from __future__ import annotations

import posixpath
import shlex

from ddpify.options import Launcher

_LAUNCH = "--nnodes=1 --node-rank=0 --master-addr=localhost --master-port=29500"


def command(launcher: Launcher, devices: str | None = None, use_env: bool = False, module: str = "") -> str:
    """The command for one machine, with `{script}` for the script's path; `devices` is what CUDA_VISIBLE_DEVICES is to be.

    `use_env` keeps torch.distributed.launch from passing the local rank as an argument. A script that is run as a part of a package is
    named by its `module`, and started from the folder of that package.
    """
    script = f"-m {module}" if module else "{script}"
    if launcher == "spawn":  # the script sets its devices itself
        return f"python {script}"
    number = len(devices.split(",")) if devices else 2
    chosen = f"CUDA_VISIBLE_DEVICES={shlex.quote(devices)} " if devices else ""
    if launcher == "launch":
        return f"{chosen}python -m torch.distributed.launch --nproc-per-node={number} {_LAUNCH}{' --use-env' * use_env} {script}"
    return f"{chosen}torchrun --standalone --nproc-per-node={number} {script}"


_SCRIPT = """\
#!/bin/sh
# Starts {name} on all GPUs of this machine. For several machines, run this on each of them with NNODES, its NODE_RANK, and the
# MASTER_ADDR of the first; for a second job on one machine, set another MASTER_PORT.
{devices}NPROC_PER_NODE=${{NPROC_PER_NODE:-{number}}}
NNODES=${{NNODES:-1}}
NODE_RANK=${{NODE_RANK:-0}}
MASTER_ADDR=${{MASTER_ADDR:-localhost}}
MASTER_PORT=${{MASTER_PORT:-29500}}

exec {launcher} \\
    --nproc-per-node="$NPROC_PER_NODE" --nnodes="$NNODES" --node-rank="$NODE_RANK" \\
    --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT"{use_env} \\
    {script} "$@"
"""
_SPAWNED = """\
#!/bin/sh
# Starts {name}, which starts one process per GPU itself, or as many as WORLD_SIZE says; they meet at MASTER_ADDR:MASTER_PORT,
# by default at a free port of this machine.
{devices}exec python {script} "$@"
"""
_COUNT = '$(python -c "import torch; print(torch.cuda.device_count() or 1)")'


def script(command: str, script: str) -> str:
    """The shell script for a command as `command` gives it; `script` is the Python script's path as seen from the shell script."""
    words = shlex.split(command)
    chosen = words[0].partition("=")[2] if words[0].startswith("CUDA_VISIBLE_DEVICES=") else ""
    number = next((word.partition("=")[2] for word in words if word.startswith("--nproc-per-node=")), "")
    devices = f"export CUDA_VISIBLE_DEVICES=${{CUDA_VISIBLE_DEVICES:-{chosen}}}\n" if chosen else ""
    named = f'"$(dirname "$0")"/{shlex.quote(script)}'
    if words[-2] == "-m":  # from the folder of its package
        folders = words[-1].count(".") + script.endswith("__main__.py")
        top = posixpath.normpath(script + "/.." * (folders + 1))
        named, devices = " ".join(words[-2:]), f'cd "$(dirname "$0")"/{shlex.quote(top)}\n{devices}'
    fields = {"name": script.rpartition("/")[2], "script": named, "devices": devices, "number": number if chosen else _COUNT}
    if not number:
        return _SPAWNED.format(**fields)
    launcher = "python -m torch.distributed.launch" if "torch.distributed.launch" in words else "torchrun"
    return _SCRIPT.format(**fields, launcher=launcher, use_env=" --use-env" * ("--use-env" in words))
