"""The sbatch script on a real SLURM, which this file starts on this machine: two nodes of one host, as root or as anybody else."""

import getpass
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from quick_python import python

from ddpify.scaffold import Settings, render, write

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "scancel")
SEARCHED = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"  # daemons are no user's commands
SHORT = ("--epochs=2", "--workers=0", "--save-every=2", "--log-every=1")
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}({address})
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=5
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=5
NodeName={host} NodeHostname={host} NodeAddr={address} Port={ports[1]} CPUs=2
NodeName=localhost NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""


class Slurm:
    """The commands of a cluster of two nodes, one of them called localhost."""

    def __init__(self, configuration: Path) -> None:
        self.environment = {
            **os.environ,
            "PATH": SEARCHED,
            "SLURM_CONF": str(configuration),
            "PYTHON": python(),
            "OMP_NUM_THREADS": "1",
        }

    def ask(self, *command: str, folder: Path | None = None, **more: str) -> str:
        """What a command says. Raises RuntimeError where it fails."""
        environment = self.environment | more
        ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
        if ran.returncode:
            raise RuntimeError(f"{' '.join(command)}: {ran.stderr}")
        return ran.stdout

    def state(self, job: str) -> str:
        """What has become of a job, such as RUNNING."""
        return self.ask("scontrol", "-o", "show", "job", job).split("JobState=")[1].split()[0]


def wait_for(what: str, condition: Callable[[], bool], seconds: float = 1200, log: Path | None = None) -> None:
    """Raises TimeoutError, with the log, where it does not come to be."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not come\n{log.read_text() if log and log.exists() else ''}")
        time.sleep(0.2)


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    if absent := [name for name in PROGRAMS if not shutil.which(name, path=SEARCHED)]:
        pytest.skip(f"there is no {absent[0]}: apt-get install slurm-wlm munge")
    host = socket.gethostname().split(".")[0]
    try:
        address = socket.gethostbyname(host)
    except OSError:
        pytest.skip(f"this machine's name {host} has no address")
    if host == "localhost":
        pytest.skip("this machine has no name of its own")
    folder = Path(tempfile.mkdtemp(prefix="slurm"))  # not pytest's: munge wants a path that all can go along
    folder.chmod(0o755)
    (folder / "state").mkdir()
    key = folder / "key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    configuration = folder / "slurm.conf"
    text = CONFIGURATION.format(host=host, address=address, user=getpass.getuser(), folder=folder, ports=_free_ports(3))
    configuration.write_text(text)
    cluster, daemons = Slurm(configuration), []
    places = {"socket": "munge.sock", "key-file": "key", "log-file": "munge.log", "pid-file": "munge.pid", "seed-file": "seed"}
    commands = [["munged", "--foreground", *(f"--{option}={folder / name}" for option, name in places.items())], ["slurmctld", "-D"]]
    commands += [["slurmd", "-D", "-N", node] for node in (host, "localhost")]
    try:
        for i, command in enumerate(commands):
            with (folder / f"{i}.out").open("w") as out:
                daemons.append(subprocess.Popen(command, env=cluster.environment, stdout=out, stderr=out))
            if i == 0:
                wait_for("munge's socket", (folder / "munge.sock").exists, 120, folder / "0.out")
        try:
            wait_for("a node", lambda: cluster.ask("sinfo", "-h", "-N", "-o", "%T").split() == ["idle", "idle"], 240, folder / "1.out")
        except (TimeoutError, RuntimeError) as error:
            told = "\n".join(f"{command[0]}: {(folder / f'{i}.out').read_text()[-800:]}" for i, command in enumerate(commands))
            raise RuntimeError(f"SLURM does not start: {error}\n{told}") from error
        yield cluster
    finally:
        for daemon in reversed(daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(60)
            except subprocess.TimeoutExpired:
                daemon.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _free_ports(number: int) -> list[int]:
    sockets = [socket.create_server(("localhost", 0)) for _ in range(number)]
    ports = [listener.getsockname()[1] for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("slurm") / "run"
    write(folder, render(Settings(cluster="slurm")))
    return folder


def submit(slurm: Slurm, project: Path, *options: str, arguments: tuple[str, ...], **more: str) -> tuple[str, Path]:
    """The number of a new job and its log."""
    asked = ["sbatch", "--parsable", "--gpus-per-node=0", "--cpus-per-task=1", *options, "slurm/train.sbatch", *SHORT, *arguments]
    job = slurm.ask(*asked, folder=project, **more).strip()
    return job, project / f"slurm-{job}.log"


def finished(slurm: Slurm, job: str, log: Path) -> None:
    ended = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
    try:
        wait_for("the end of the job", lambda: slurm.state(job) in ended, log=log)
    finally:
        if slurm.state(job) not in ended:
            slurm.ask("scancel", job)
    assert slurm.state(job) == "COMPLETED", log.read_text()


def steps(out: Path) -> list[int]:
    """The steps that were logged, in the order in which they were."""
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [line["step"] for line in lines if "train/loss" in line]


def test_a_job_that_is_stopped_ends_as_one_that_is_not(slurm: Slurm, project: Path) -> None:
    environment = slurm.environment | {"NPROC_PER_NODE": "2"}
    whole = subprocess.run(["./run.sh", "--out=runs/whole", *SHORT], cwd=project, env=environment, capture_output=True, text=True)
    assert whole.returncode == 0, whole.stderr
    out = project / "runs" / "stopped"
    job, log = submit(slurm, project, arguments=("--out=runs/stopped",), NPROC_PER_NODE="2")
    try:
        wait_for("the first steps", lambda: (out / "checkpoint.pt").exists() and len(steps(out)) > 4, log=log)
        slurm.ask("scancel", "--batch", "--signal=USR1", job)  # what SLURM does before the time is up
        wait_for("the second start", lambda: "restart 1" in log.read_text(), log=log)
    except BaseException:
        slurm.ask("scancel", job)
        raise
    finished(slurm, job, log)
    told = log.read_text()
    assert "has no time left and goes back" in told and "restart 2" not in told, told
    assert steps(out).count(1) == 1  # it never began anew
    once, twice = (torch.load(project / "runs" / name / "checkpoint.pt", weights_only=True) for name in ("whole", "stopped"))
    assert once["step"] == twice["step"] == steps(out)[-1]
    for name, value in once["parts"]["model"].items():
        assert torch.equal(value, twice["parts"]["model"][name]), name


def test_a_job_whose_time_is_up_before_it_saved_anything_does_not_begin_again(slurm: Slurm, project: Path) -> None:
    job, log = submit(slurm, project, arguments=("--out", "runs/late", "--save-every=1000", "--max-steps=31"))
    wait_for("the first steps", lambda: (project / "runs" / "late" / "metrics.jsonl").exists(), log=log)
    slurm.ask("scancel", "--batch", "--signal=USR1", job)
    finished(slurm, job, log)
    assert "has saved nothing" in log.read_text() and "restart 1" not in log.read_text()
    assert steps(project / "runs" / "late") == list(range(1, 32))


def test_two_nodes_train_together(slurm: Slurm, project: Path) -> None:
    job, log = submit(slurm, project, "--nodes=2", arguments=("--out=runs/nodes", "--max-steps=4"))
    finished(slurm, job, log)
    state = torch.load(project / "runs" / "nodes" / "checkpoint.pt", weights_only=True)
    assert state["step"] == 4 and len(state["random"]["cpu"]) == 2  # one for each rank


def test_a_job_that_fails_is_not_queued_again(slurm: Slurm, project: Path) -> None:
    job, log = submit(slurm, project, arguments=("--out=runs/wrong", "--no-such-argument"), MAX_RESTARTS="0")
    with pytest.raises(AssertionError, match="no-such-argument"):
        finished(slurm, job, log)
    assert slurm.state(job) == "FAILED"
