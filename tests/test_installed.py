"""To a script that is a part of an installed library, other libraries are no modules of its project."""

from pathlib import Path

import pytest

from ddpify.project import load


@pytest.mark.parametrize("libraries", ["lib/python3.11", "env/lib/python3.11/site-packages"])
def test_only_the_folder_of_a_script_among_libraries_is_local(tmp_path: Path, libraries: str) -> None:
    folder = tmp_path / libraries
    for name in ("tool/__init__", "tool/run", "tool/part", "tool/inner/__init__", "other/__init__", "single"):
        (folder / f"{name}.py").parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text("import other, single\nfrom . import part\n" if name == "tool/run" else "")
    inside, single = load(folder / "tool" / "run.py"), load(folder / "single.py")
    names = ("tool", "tool.part", "tool.inner", "other", "single")
    assert [inside.is_local(name) for name in names] == [True, True, True, False, False]
    assert [single.is_local(name) for name in names] == [False] * 5


def test_modules_of_a_project_beside_an_environment_are_local(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import helper\n")
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "env" / "lib" / "python3.11" / "site-packages" / "other").mkdir(parents=True)
    project = load(tmp_path / "train.py")
    assert project.is_local("helper")
    assert not project.is_local("other")
