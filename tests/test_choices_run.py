"""Every choice that `ddpify review` offers for the examples is executed on two ranks: it trains as the whole conversion does."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ranks import Case, Run, apart, run_ranks
from test_examples import DRAWN, NAMES, ROOT

from ddpify.conversion import Conversion, convert

# what the examples do not have: a loss taken apart, a progress bar, a checkpoint that is loaded as it was saved, AMP's old words
OTHERS = """import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm


def main():
    torch.manual_seed(5)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rows = torch.arange(96.0).reshape(48, 2) / 96
    loader = DataLoader(TensorDataset(rows, rows.sum(1, keepdim=True)), batch_size=8, shuffle=True)
    model = nn.Linear(2, 1).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=torch.cuda.is_available())
    for epoch in range(3):
        if os.path.exists("last.pt"):
            model.load_state_dict(torch.load("last.pt"))
        for step, (x, y) in enumerate(tqdm(loader, desc=f"epoch {epoch}")):
            x, y = x.to(device), y.to(device)
            with torch.cuda.amp.autocast(enabled=torch.cuda.is_available()):
                loss = nn.functional.mse_loss(model(x), y) / 2
            scaler.scale(loss).backward()
            if (step + 1) % 2 == 0:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
        print("epoch", epoch, "is over")
        torch.save(model.state_dict(), "last.pt")
    print("done")


if __name__ == "__main__":
    main()
"""


def choices(done: Conversion) -> dict[str, list[str]]:
    """What may be left out: nothing, each change alone, all."""
    ids = [change.id for change in done.changes if change.without]
    return {"": [], **{one: [one] for one in ids}, "all": ids}


@pytest.fixture(scope="module")
def conversions() -> dict[str, Conversion]:
    return {name: convert(ROOT / name / "train.py") for name in NAMES} | {
        "others": convert(OTHERS, shown="train.py", path=Path("train.py"))
    }


@pytest.fixture(scope="module")
def runs(conversions: dict[str, Conversion]) -> dict[tuple[str, str], list[Run]]:
    """What the ranks did, by the script and what was left out."""
    cases = {}
    for name, done in conversions.items():
        drawn, fixed = DRAWN.get(name, ("", ""))
        for what, ids in choices(done).items():
            part = done.without(ids)
            ast.parse(part.code)
            cases[name, what] = Case("", part.code.replace(drawn, fixed) if drawn else part.code)
    return dict(zip(cases, run_ranks(list(cases.values())), strict=True))


def test_each_kind_of_choice_is_among_them(conversions: dict[str, Conversion]) -> None:
    left = {change.code for done in conversions.values() for change in done.changes if change.without}
    assert left >= {"DDP206", "DDP410", "DDP501", "DDP502", "DDP503"}


@pytest.mark.parametrize("name", [*NAMES, "others"])
def test_every_choice_trains_alike(runs: dict[tuple[str, str], list[Run]], name: str) -> None:
    whole = runs[name, ""]
    assert whole[0].steps
    for (script, what), ranks in runs.items():
        if script != name:
            continue
        for run, same in zip(ranks, whole, strict=True):
            assert (what, run.error, run.left_open) == (what, "", False)
            assert (what, len(run.steps)) == (what, len(same.steps))
            assert apart(run.steps, same.steps) <= 1e-9, what
            assert (what, sorted(run.files)) == (what, sorted(same.files))
