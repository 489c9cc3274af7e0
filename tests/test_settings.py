"""What a project and its scripts ask for: `[tool.ddpify]`, and comments beside the lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpify import convert
from ddpify.cli import app
from ddpify.errors import DdpifyError
from ddpify.options import Options
from ddpify.settings import settings

SCRIPT = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

data = TensorDataset(torch.ones(64, 8), torch.ones(64, 1))
loader = DataLoader(data, batch_size=16, shuffle=True)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in tqdm(loader):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch", epoch)
"""


def commented(line: str, comment: str) -> str:
    assert SCRIPT.count(line) == 1
    return SCRIPT.replace(line, f"{line}  # {comment}")


@pytest.fixture
def project(tmp_path: Path, monkeypatch):
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)

    def write(table: str) -> Path:
        (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "x"\n\n[tool.ddpify]\n{table}\n')
        return tmp_path / "train.py"

    return write


def run(capsys, *args: str) -> tuple[int, str, str]:
    try:
        app(args)
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def test_settings_are_the_defaults_of_the_command_line(project, capsys) -> None:
    project('amp = "torch-bf16"\nlauncher = "launch"\nignore = ["DDP502"]')
    _, out, err = run(capsys, "convert", "train.py")
    assert "dtype=torch.bfloat16" in out
    assert "python -m torch.distributed.launch" in err
    assert "disable=" not in out
    _, out, err = run(capsys, "convert", "train.py", "--launcher", "torchrun", "--amp", "keep", "--ignore", "DDP501")
    assert "bfloat16" not in out
    assert "torchrun" in err
    assert "disable=" in out


def test_the_nearest_table_counts(project, tmp_path: Path) -> None:
    project('amp = "torch"')
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text('[project]\nname = "y"\n')
    assert settings(inner / "train.py").options == {"amp": "torch"}
    (inner / "pyproject.toml").write_text('[tool.ddpify]\neval = "replicate"\nfused-adam = true\nselect = ["DDP5"]\n')
    found = settings(inner / "train.py")
    assert (found.options, found.select) == ({"eval": "replicate", "fused_adam": True}, ("DDP5",))


@pytest.mark.parametrize(
    ("table", "title", "hint"),
    [
        ('am = "torch"', "there is no setting 'am'", "did you mean amp?"),
        ('batch_size = "global"', "there is no setting 'batch_size'", "did you mean batch-size?"),
        ("nonsense = 1", "there is no setting 'nonsense'", "there are launcher"),
        ('amp = "troch"', "amp cannot be 'troch'", "choose one of"),
        ("amp = 3", "amp must be a text in quotes", ""),
        ('fused-adam = "yes"', "fused-adam must be true or false", ""),
        ('loss-scale = "big"', "loss_scale cannot be 'big'", "choose dynamic"),
        ('ignore = "DDP501"', "ignore must be a list", "DDP501"),
        ('select = ["E501"]', "select must be a list", "DDP501"),
    ],
)
def test_what_cannot_be_set(project, table: str, title: str, hint: str) -> None:
    with pytest.raises(DdpifyError) as refused:
        settings(project(table))
    assert refused.value.title.startswith(title)
    assert hint in refused.value.hint
    assert str(refused.value.where).endswith("pyproject.toml:5")


@pytest.mark.parametrize("text", ["[tool.ddpify", "tool = 3\nx = [", "\udcff"])
def test_what_is_no_toml(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(DdpifyError) as refused:
        settings(tmp_path / "train.py")
    assert refused.value.where is not None


@pytest.mark.parametrize("text", ["", "[tool.black]\nx = 1\n", "tool = 3\n", "[project]\nname = 'x'\n"])
def test_a_file_without_the_table_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert settings(tmp_path / "train.py").options == {}


@pytest.mark.parametrize(
    "comment", ["ddpify: skip", "ddpify: skip[DDP501]", "ddpify:skip [DDP401, DDP5]  a reason", "noqa  # ddpify: skip"]
)
def test_a_comment_leaves_a_change_out(comment: str) -> None:
    text = commented('    print("epoch", epoch)', comment)
    whole, part = convert(SCRIPT), convert(text)
    assert "if rank == 0" in whole.code
    assert "if rank == 0" not in part.code
    assert f'    print("epoch", epoch)  # {comment}\n' in part.code
    assert len(part.changes) == len(whole.changes) - 1
    assert convert(part.code).status == "nothing"


def test_other_codes_leave_it() -> None:
    assert "if rank == 0" in convert(commented('    print("epoch", epoch)', "ddpify: skip[DDP502]")).code


def test_a_comment_in_a_string_is_none() -> None:
    assert "if rank == 0" in convert(SCRIPT.replace('"epoch"', '"# ddpify: skip"')).code


def test_what_stands_together_is_not_left_out() -> None:
    line = "loader = DataLoader(data, batch_size=16, shuffle=True)"
    with pytest.raises(DdpifyError, match=r"DDP301.* cannot be left out") as refused:
        convert(commented(line, "ddpify: skip"))
    assert "take the comment away" in refused.value.hint
    assert refused.value.where is not None and refused.value.where.line == 6


def test_a_comment_names_a_rule() -> None:
    with pytest.raises(DdpifyError, match="E501 is not a rule's code") as refused:
        convert(commented('    print("epoch", epoch)', "ddpify: skip[E501]"))
    assert refused.value.where is not None and refused.value.where.line == 15


def test_a_comment_accepts_what_is_told() -> None:
    told = SCRIPT.replace("tqdm(loader)", "tqdm(loader, **vars(torch)['bar'])")
    done = convert(told)
    assert done.exit_code == 1
    (finding,) = (f for f in done.findings if f.level >= 2)
    lines = told.splitlines()
    lines[finding.line - 1] += f"  # ddpify: skip[{finding.code}]"
    accepted = convert("\n".join(lines) + "\n")
    assert accepted.exit_code == 0
    assert any(f.message.endswith("(accepted by a comment)") for f in accepted.findings)
    part = accepted.without([change.id for change in accepted.changes if change.without])
    assert (part.exit_code, part.findings) == (0, accepted.findings)


def test_a_file_stays_as_it_is(tmp_path: Path) -> None:
    done = convert("# ddpify: skip-file\n" + SCRIPT)
    assert (done.status, done.exit_code, done.changed) == ("nothing", 0, False)
    (tmp_path / ".git").mkdir()
    (tmp_path / "loaders.py").write_text(
        "# ddpify: skip-file\nfrom torch.utils.data import DataLoader\n\n\ndef made(data):\n    return DataLoader(data, 16)\n"
    )
    (tmp_path / "train.py").write_text(
        SCRIPT.replace("loader = DataLoader(data, batch_size=16, shuffle=True)", "from loaders import made\nloader = made(data)")
    )
    done = convert(tmp_path / "train.py", Options())
    assert [m.path.name for m in done.edited] == []
    assert done.exit_code == 1


UNKNOWN = SCRIPT.replace("import torch\n", "import torch\nimport policies\n").replace(
    "        optimizer.step()\n", "        optimizer.step()\n        if policies.should_stop():\n            break\n"
)


def test_rank_zero_is_followed_in_what_is_not_known() -> None:
    done = convert(UNKNOWN)
    assert "if from_rank_zero(policies.should_stop()):" in done.code
    assert [c.level.name for c in done.changes if c.code == "DDP403"] == ["NOTE"]
    assert done.exit_code == 0


def test_what_a_project_says_of_a_function_is_believed_and_listed(project, capsys) -> None:
    script = project('[tool.ddpify.placements]\n"policies.should_stop" = "replicate"')
    script.write_text(UNKNOWN)
    code, out, err = run(capsys, "convert", str(script))
    assert (code, "from_rank_zero" in out) == (0, False)
    assert "DDP903" in err and "`policies.should_stop` is replicate" in err


def test_what_a_comment_says_of_a_line_is_believed_and_listed() -> None:
    done = convert(UNKNOWN.replace("should_stop():", "should_stop():  # ddpify: replicate"))
    assert "from_rank_zero" not in done.code
    assert [f.line for f in done.findings if f.code == "DDP903"] == [16]


@pytest.mark.parametrize(("said", "code"), [("", 1), ("  # ddpify: mean", 0), ("  # ddpify: sum", 0)])
def test_what_a_comment_says_of_what_is_added_up_is_believed(said: str, code: int) -> None:
    added = f"        optimizer.step()\n        total += float(x.sort(0).values.mean()){said}\n"
    text = SCRIPT.replace("        optimizer.step()\n", added).replace("in range(3):", "in range(3):\n    total = 0.0")
    text = text.replace('"epoch", epoch', '"epoch", epoch, total')
    done = convert(text, Options(whole_batches="never"))
    assert (done.exit_code, "total = sum_over_ranks(total) / world_size" in done.code) == (code, "sum" not in said), done.code


OF_PACKAGE = SCRIPT.replace("import torch\n", "import torch\nimport losses\n").replace(
    "torch.nn.functional.mse_loss(model(x), y)", "losses.margin(model(x), y)"
)
OF_LISTS = OF_PACKAGE.replace("losses.margin(model(x), y)", "losses.margin(model(x), [float(v) for v in y])")


@pytest.mark.parametrize(("said", "code"), [("mean", 0), ("sum", 0), ("coupled", 0), ("shard", 1)])
def test_a_loss_of_an_unknown_package_is_what_the_project_says(said: str, code: int) -> None:
    assert convert(OF_LISTS, Options(whole_batches="never")).exit_code == 1
    given = Options(whole_batches="never", placements=(("losses.margin", said),))
    done = convert(OF_LISTS if said != "coupled" else OF_PACKAGE, given)
    assert (done.exit_code, "(loss * world_size).backward()" in done.code) == (code, said == "sum")
    assert ("losses.margin(from_all_ranks(model(x)), from_all_ranks(y))" in done.code) == (said == "coupled")


OF_SCRIPT = SCRIPT.replace("for epoch", "def margin(a, b):\n    far = (a - b).abs()\n    return far.quantile(0.9)\n\n\nfor epoch", 1)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (OF_LISTS, "loss.backward()"),
        (OF_LISTS, "loss = losses.margin(model(x), [float(v) for v in y])"),
        (OF_SCRIPT.replace("torch.nn.functional.mse_loss", "margin"), "loss = margin(model(x), y)"),
        (OF_SCRIPT.replace("torch.nn.functional.mse_loss", "margin"), "return far.quantile(0.9)"),
    ],
    ids=["a backward call", "a package's function", "a function of the script", "what a function returns"],
)
def test_what_is_said_of_a_loss_may_stand_where_it_is_made_or_used(text: str, line: str) -> None:
    said = text.replace(f"{line}\n", f"{line}  # ddpify: sum\n")
    number = said[: said.index("# ddpify")].count("\n") + 1
    for done in (convert(said), convert(text, Options(placements=((f"<string>:{number}", "sum"),)))):
        assert done.exit_code == 0
        assert "(loss * world_size).backward()" in done.code
        assert [f.line for f in done.findings if f.code == "DDP903"] == [number]


def test_what_cannot_be_said_is_an_error(project) -> None:
    with pytest.raises(DdpifyError, match="cannot be 'same'"):
        settings(project('[tool.ddpify.placements]\n"policies.should_stop" = "same"'))
    with pytest.raises(DdpifyError, match="not a table"):
        settings(project("placements = 3"))
