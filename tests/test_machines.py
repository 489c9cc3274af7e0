"""What programs read: reports as JSON and as SARIF, against their schemas."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from sarif_pydantic import Sarif

from ddpify.conversion import Conversion, convert
from ddpify.options import Options
from ddpify.report import json as report
from ddpify.report import sarif

HERE = Path(__file__).parent
SCHEMA = json.loads((Path(report.__file__).parent / "schema.json").read_text())
CASES: dict[str, tuple[Path | str, Options]] = {
    **{p.parent.name: (p, Options()) for p in sorted((HERE.parent / "examples").glob("*/train.py"))},
    "spawn": (HERE.parent / "examples/gan/train.py", Options(launcher="spawn")),
    "apex": (HERE.parent / "examples/language_model/train.py", Options(amp="apex-O2")),
    "several files": (HERE / "project/tools/train.py", Options()),
    "nothing to do": ("print(1)\n", Options()),
    "refused": ("import pytorch_lightning as pl\n\npl.Trainer().fit(None)\n", Options()),
    "empty": ("", Options()),
}


@pytest.fixture(scope="module", params=CASES, ids=lambda name: name)
def conversion(request: pytest.FixtureRequest) -> Conversion:
    return convert(*CASES[request.param])


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_json(conversion: Conversion) -> None:
    said = json.loads(report.render(conversion, "out.py"))
    jsonschema.Draft202012Validator(SCHEMA).validate(said)
    assert said["version"] == report.VERSION == SCHEMA["properties"]["version"]["const"]
    assert [c["id"] for c in said["changes"]] == [c.id for c in conversion.changes]
    assert said["diff"] == conversion.diff()
    added = {f"+{line['text']}" for c in said["changes"] for line in c["after"]}
    taken = {f"-{line['text']}" for c in said["changes"] for line in c["before"]}
    body = {line for line in said["diff"].splitlines(keepends=True) if not line.startswith(("+++", "---"))}
    assert {line for line in body if line[0] == "+"} == added
    assert {line for line in body if line[0] == "-"} == taken


def test_sarif(conversion: Conversion) -> None:
    said = json.loads(sarif.render(conversion))
    Sarif.model_validate(said)
    run = said["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(run["results"]) == len(conversion.changes) + len(conversion.findings)
    assert [rules[r["ruleIndex"]] for r in run["results"]] == [r["ruleId"] for r in run["results"]]
    assert all(r["locations"][0]["physicalLocation"]["region"]["startLine"] >= 1 for r in run["results"])
    assert run["invocations"][0]["exitCode"] == conversion.exit_code


@pytest.mark.skipif("SARIF_SCHEMA" not in os.environ, reason="SARIF_SCHEMA names no sarif-schema-2.1.0.json")
def test_sarif_against_the_official_schema(conversion: Conversion) -> None:
    official = json.loads(Path(os.environ["SARIF_SCHEMA"]).read_text())
    jsonschema.Draft4Validator(official, format_checker=jsonschema.FormatChecker()).validate(sarif.log(conversion))


def test_ranges_count_characters() -> None:
    text = (HERE.parent / "examples/gan/train.py").read_text()
    lines = text.splitlines()
    number = next(i for i, line in enumerate(lines) if line.lstrip().startswith("print("))
    lines[number] = lines[number].replace("print(", 'print("größer als 1 €", ', 1)
    done = convert("\n".join(lines) + "\n")
    told = report.report(done, "x.py")
    (change,) = (c for c in told["changes"] if c["code"] == "DDP501" and c["line"] == number + 1)
    assert change["column"] == len(lines[number]) - len(lines[number].lstrip()) + 1
    last: Any = lines[change["end_line"] - 1]
    assert last[: change["end_column"] - 1].endswith(")")
