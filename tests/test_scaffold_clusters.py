"""Projects for clusters: the manifest has the published form, and what it starts trains; the sbatch script is in test_scaffold_slurm.py."""

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from quick_python import python

from ddpify.options import Launcher, Task
from ddpify.scaffold import Settings, render, write

SCHEMA = yaml.safe_load((Path(__file__).parent / "pytorchjob_schema.yaml").read_text())
TYPES: dict[str, type | tuple[type, ...]] = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
CLUSTERED: tuple[Launcher, ...] = ("torchrun", "launch")


def faults(value: Any, schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """What a value has that its schema, in the words of OpenAPI, does not allow; a field that it does not name is a fault."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    if schema.get("x-kubernetes-int-or-string"):
        if not isinstance(value, (int, str)) or isinstance(value, bool):
            yield f"{path}: {value!r} is neither a number nor a string"
        return
    if not isinstance(value, TYPES[schema["type"]]) or (isinstance(value, bool) and schema["type"] != "boolean"):
        yield f"{path}: {value!r} is not of type {schema['type']}"
        return
    if value not in schema.get("enum", [value]) or (isinstance(value, str) and not re.fullmatch(schema.get("pattern", "(?s:.*)"), value)):
        yield f"{path}: cannot be {value!r}"
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        yield f"{path}: {value!r} is too long"
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        yield from (f"{path}: needs {name}" for name in schema.get("required", []) if name not in value)
        for name, below in value.items():
            if name not in known and others is None and (known or "required" in schema):
                yield f"{path}: has no field {name}"
            elif name in known or others:
                yield from faults(below, known.get(name, others), f"{path}.{name}")
    if isinstance(value, list):
        for i, below in enumerate(value):
            yield from faults(below, schema["items"], f"{path}[{i}]")


def differences(own: dict[str, Any], published: dict[str, Any], path: str = "") -> Iterator[str]:
    """Where a shortened schema says other than the published one."""
    if own.get("type") != published.get("type") or (
        own.get("x-kubernetes-int-or-string") and "x-kubernetes-int-or-string" not in published
    ):
        yield f"{path}: {own.get('type')} is {published.get('type')}"
    if path.count("."):  # the envelope is Kubernetes' own
        yield from (f"{path}: needs {name}" for name in published.get("required", []) if name not in own.get("required", []))
    for name, below in own.get("properties", {}).items():
        if path == ".metadata":
            continue
        if name not in published.get("properties", {}):
            yield f"{path}: has no field {name}"
        else:
            yield from differences(below, published["properties"][name], f"{path}.{name}")
    for part in ("items", "additionalProperties"):
        if isinstance(own.get(part), dict):
            yield from differences(own[part], published[part], f"{path}.{part}")


def documents(**choices: Any) -> dict[str, Any]:
    """The manifest's documents by their kinds."""
    text = render(Settings(cluster="kubernetes", **choices))["kubernetes/pytorchjob.yaml"].decode()
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


@pytest.mark.parametrize("name", ["my_project", "Run2", "a" * 70])
@pytest.mark.parametrize("launcher", CLUSTERED)
def test_the_manifest_has_the_form_of_a_pytorchjob(launcher: Launcher, name: str) -> None:
    job = documents(launcher=launcher, name=name)["PyTorchJob"]
    assert not list(faults(job, SCHEMA))
    if published := os.environ.get("PYTORCHJOB_CRD"):
        assert not list(faults(job, _published(published)))


def test_the_form_is_the_published_one() -> None:
    if not (path := os.environ.get("PYTORCHJOB_CRD")):
        pytest.skip("PYTORCHJOB_CRD names no kubeflow.org_pytorchjobs.yaml")
    assert not list(differences(SCHEMA, _published(path)))


def _published(path: str) -> dict[str, Any]:
    (version,) = [v for v in yaml.safe_load(Path(path).read_text())["spec"]["versions"] if v["name"] == "v1"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda job: job["spec"].update(nprocPerNode=1), "type string"),
        (lambda job: job["spec"].pop("pytorchReplicaSpecs"), "needs pytorchReplicaSpecs"),
        (lambda job: job["spec"].update(elasticPolicy={"rdzvbackend": "c10d"}), "no field rdzvbackend"),
        (lambda job: job["spec"]["pytorchReplicaSpecs"]["Worker"].update(replicas=True), "type integer"),
        (lambda job: job["spec"]["pytorchReplicaSpecs"]["Worker"].update(restartPolicy="Sometimes"), "cannot be"),
        (lambda job: job["metadata"].update(name="my_project"), "cannot be"),
    ],
)
def test_a_manifest_of_another_form_is_found_out(change: Any, fault: str) -> None:
    job = documents()["PyTorchJob"]
    change(job)
    assert any(fault in found for found in faults(job, SCHEMA))


@pytest.mark.parametrize("launcher", CLUSTERED)
def test_the_manifest_has_what_the_operator_asks_for(launcher: Launcher) -> None:
    found = documents(launcher=launcher)
    job, claim = found["PyTorchJob"], found["PersistentVolumeClaim"]
    replicas = job["spec"]["pytorchReplicaSpecs"]
    elastic = "elasticPolicy" in job["spec"]  # it goes with workers alone, the static rendezvous with one master
    assert elastic == (launcher == "torchrun") and set(replicas) == ({"Worker"} if elastic else {"Master", "Worker"})
    for replica in replicas.values():
        pod = replica["template"]["spec"]
        (container,) = pod["containers"]
        assert container["name"] == "pytorch"
        assert str(container["resources"]["limits"]["nvidia.com/gpu"]) == job["spec"]["nprocPerNode"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
        assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert replicas.get("Master", {"replicas": 1})["replicas"] == 1


@pytest.mark.parametrize("launcher", CLUSTERED)
def test_two_pods_train_together(launcher: Launcher, tmp_path: Path) -> None:
    """The command of each pod, with the variables that the operator gives it (pkg/controller.v1/pytorch/envvar.go), on this machine."""
    write(tmp_path / "run", render(Settings(launcher=launcher, cluster="kubernetes")))
    spec = documents(launcher=launcher)["PyTorchJob"]["spec"]
    port = _free_port()
    pods = []
    for kind, replica in spec["pytorchReplicaSpecs"].items():
        (container,) = replica["template"]["spec"]["containers"]
        for _ in range(replica["replicas"]):
            given = {"PET_NPROC_PER_NODE": spec["nprocPerNode"], "PET_NNODES": "2", "OMP_NUM_THREADS": "1"}
            if "elasticPolicy" in spec:
                policy = spec["elasticPolicy"]
                given |= {"PET_RDZV_BACKEND": policy["rdzvBackend"], "PET_RDZV_ENDPOINT": f"localhost:{port}", "PET_NNODES": "2:2"}
                given |= {"PET_RDZV_ID": policy["rdzvId"], "PET_MAX_RESTARTS": str(policy["maxRestarts"])}
            else:
                rank = "0" if kind == "Master" else "1"
                given |= {
                    "PET_MASTER_ADDR": "localhost",
                    "PET_MASTER_PORT": str(port),
                    "MASTER_ADDR": "localhost",
                    "MASTER_PORT": str(port),
                }
                given |= {"PET_NODE_RANK": rank, "RANK": rank, "WORLD_SIZE": "2"}
            command = [python(), *container["command"][1:], f"--out={tmp_path}/out", "--max-steps=3", "--workers=0"]
            environment = {**os.environ, **given}
            pods.append(
                subprocess.Popen(
                    command, cwd=tmp_path / "run", env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
                )
            )
    try:
        texts = [pod.communicate(timeout=200)[0] for pod in pods]
    finally:
        for pod in pods:
            pod.kill()
    assert [pod.returncode for pod in pods] == [0, 0], texts
    assert (tmp_path / "out" / "checkpoint.pt").exists()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        port: int = listener.getsockname()[1]
        return port


@pytest.mark.parametrize("task", ["image", "tabular"])
def test_the_image_is_made_of_files_that_are_there(task: Task) -> None:
    files = render(Settings(task=task, cluster="kubernetes"))
    copied = [words for line in files["Dockerfile"].decode().splitlines() if (words := line.split()) and words[0] == "COPY"]
    for source in (source for words in copied for source in words[1:-1] if source != "."):
        assert any(file == source or file.startswith(f"{source}/") for file in files), source


@pytest.mark.parametrize("launcher", CLUSTERED)
def test_the_sbatch_script_is_good_shell(launcher: Launcher) -> None:
    text = render(Settings(launcher=launcher, cluster="slurm"))["slurm/train.sbatch"]
    subprocess.run(["bash", "-n"], input=text, check=True)
    lines = text.decode().splitlines()
    first = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
    assert not any(line.startswith("#SBATCH") for line in lines[first:])  # sbatch reads no further
