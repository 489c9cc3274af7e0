"""The harness itself: a right conversion holds, and each wrong one is reported by the property it breaks."""

import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from quick_python import python
from ranks import Case, Outcome, launch, run_alone, run_many, run_unless_aborted

ORIGINAL = textwrap.dedent("""
    import sys

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(3)
    x = torch.randn(40, 5)
    y = x.sum(1, keepdim=True)
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 1)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(int(sys.argv[1])):
        for a, b in loader:
            loss = nn.functional.mse_loss(model(a.to("cuda")), b.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} done")
        print(f"{epoch}/{sys.argv[1]}", file=sys.stderr)
    torch.save({"model": model.state_dict(), "epochs": epoch + 1}, "last.pt")
""")

CONVERTED = textwrap.dedent("""
    import atexit
    import os
    import sys

    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.data.distributed import DistributedSampler

    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    atexit.register(dist.destroy_process_group)
    rank, world_size = dist.get_rank(), dist.get_world_size()

    torch.manual_seed(3)
    x = torch.randn(40, 5)
    y = x.sum(1, keepdim=True)
    dataset = TensorDataset(x, y)
    loader = DataLoader(dataset, batch_size=8 // world_size, sampler=DistributedSampler(dataset))
    model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 1))
    model = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(int(sys.argv[1])):
        loader.sampler.set_epoch(epoch)
        for a, b in loader:
            loss = nn.functional.mse_loss(model(a), b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} done")
            print(f"{epoch}/{sys.argv[1]}", file=sys.stderr)
    if rank == 0:
        torch.save({"model": model.module.state_dict(), "epochs": epoch + 1}, "last.pt")
""")

# what is wrong: (text of CONVERTED, what stands there instead, the properties that must be reported)
WRONG = {
    "no sampler": ("loader.sampler.set_epoch(epoch)", "loader = DataLoader(dataset, 4, shuffle=True)", {"steps", "trajectory", "values"}),
    "no set_epoch": ("loader.sampler.set_epoch(epoch)", "pass", {"epochs"}),
    "sampler in order": ("DistributedSampler(dataset)", "DistributedSampler(dataset, shuffle=False)", {"trajectory", "values"}),
    "batch size kept": ("8 // world_size", "8", {"steps", "trajectory", "values"}),
    "no wrap": ("DistributedDataParallel(model)", "nn.DataParallel(model)", {"ranks", "trajectory", "values"}),
    "gradients summed": ("loss.backward()", "(2 * loss).backward()", {"trajectory", "values"}),
    "all ranks print": ("    if rank == 0:\n        print", "    if True:\n        print", {"prints"}),
    "all ranks show progress": ('    print(f"{epoch}/', '    pass\n    print(f"{epoch}/', {"prints"}),
    "nobody prints": ("    if rank == 0:\n        print", "    if False:\n        print", {"output"}),
    "all ranks save": ("if rank == 0:\n    torch.save", "if True:\n    torch.save", {"writes"}),
    "prefixed keys": ("model.module.state_dict()", "model.state_dict()", {"keys"}),
    "another number saved": ("epoch + 1", "epoch + 2", {"values"}),
    "group left open": ("atexit.register(dist.destroy_process_group)", "pass", {"teardown"}),
    "one rank raises": ("for a, b in loader:", "for a, b in loader:\n        assert rank == 0, 'mine'", {"error"}),
}


def wrong(title: str) -> Case:
    old, new, _ = WRONG[title]
    converted = CONVERTED.replace(old, new)
    assert converted != CONVERTED, title
    return Case(ORIGINAL, converted, ["2"])


def unseeded(text: str) -> str:
    return text.replace("torch.manual_seed(3)\n", "")


ECHO = "import sys, shape\nprint(shape.SIZE, open('data.txt').read(), sys.argv[1:])\n"
OTHERS = {
    "right": Case(ORIGINAL, CONVERTED, ["2"]),
    "unseeded data": Case(unseeded(ORIGINAL), unseeded(CONVERTED), ["2"]),
    "failing original": Case("raise SystemExit('no data')", CONVERTED, ["1"]),
    "files": Case(ECHO, ECHO, ["-x"], {"shape.py": "SIZE = 'two'", "data.txt": "words"}, {"data.txt": b"others"}),
    "right after all": Case(ORIGINAL, CONVERTED, ["2"]),
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    cases = {title: wrong(title) for title in WRONG} | OTHERS
    return dict(zip(cases, run_many(list(cases.values())), strict=True))


def properties(outcome: Outcome) -> set[str]:
    return {text.split(":")[0] for text in outcome.problems()}


@pytest.mark.parametrize("title", ["right", "right after all"])
def test_a_right_conversion_holds(outcomes: dict[str, Outcome], title: str) -> None:
    outcome = outcomes[title]
    assert outcome.problems() == []
    assert len(outcome.single.steps) == 10
    assert [len(run.steps) for run in outcome.ranks] == [10, 10]
    assert outcome.ranks[0].stdout == outcome.single.stdout == "epoch 0 done\nepoch 1 done\n"
    assert list(outcome.ranks[0].files) == ["last.pt"]


@pytest.mark.parametrize("title", WRONG)
def test_a_wrong_conversion_is_reported(outcomes: dict[str, Outcome], title: str) -> None:
    assert properties(outcomes[title]) == WRONG[title][2]


def test_the_ranks_start_from_seeds_of_their_own(outcomes: dict[str, Outcome]) -> None:
    assert properties(outcomes["unseeded data"]) == {"trajectory", "values"}


def test_an_original_that_fails_is_not_a_pass(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["failing original"].problems() == ["error: original: exit no data"]


def test_files_local_modules_and_arguments_reach_both_sides(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["files"]
    assert outcome.single.stdout == "two words ['-x']\n"
    assert [run.stdout for run in outcome.ranks] == ["two others ['-x']\n"] * 2


def test_without_a_launcher_it_is_a_group_of_one() -> None:
    assert run_alone(OTHERS["right"]).problems() == []
    broken = CONVERTED.replace("rank=0, world_size=1", "rank=0, world_size=0")
    assert properties(run_alone(Case(ORIGINAL, broken, ["2"]))) == {"error"}


def test_a_group_that_hangs_is_killed_and_the_next_script_runs() -> None:
    hanging = CONVERTED.replace("for epoch in", "if rank == 1:\n    import time\n    time.sleep(3600)\nfor epoch in", 1)
    first, second = run_many([Case(ORIGINAL, hanging, ["1"]), Case(ORIGINAL, CONVERTED, ["1"])], limit=30)
    assert "nothing happened for 30 s" in "".join(first.problems())
    assert second.problems() == []


def test_torchrun_starts_a_script_as_a_user_would(tmp_path: Path) -> None:
    script = tmp_path / "train_ddp.py"
    script.write_text(CONVERTED)
    done = launch(script, ["1"])
    assert (done.stdout, (tmp_path / "last.pt").exists()) == ("epoch 0 done\n", True), done.stderr


@pytest.mark.parametrize("interpreter", [lambda: sys.executable, python], ids=["new", "forked"])
@pytest.mark.parametrize("where", ["work", "destroy_process_group"])
def test_a_command_that_does_not_end_shows_where_it_stands(where: str, interpreter: Callable[[], str], tmp_path: Path) -> None:
    """One that only leaves its group is given a second attempt, and fails with the same."""
    folder, seen = tmp_path / "run", tmp_path / "attempts"
    folder.mkdir()
    script = f"import time\n\nopen({str(seen)!r}, 'a').write('x')\n\n\ndef {where}():\n    time.sleep(999)\n\n\n{where}()\n"
    (folder / "train.py").write_text(script)
    with pytest.raises(AssertionError, match=f"in {where}"):
        run_unless_aborted([interpreter(), "train.py"], folder, dict(os.environ), limit=5)
    assert len(seen.read_text()) == (2 if where == "destroy_process_group" else 1)
