"""Whatever the sizes: all ranks take the steps of the original, and see every sample once, up to the repeats that fill the last turn."""

import ast
import collections
import importlib
import io
import pickle
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import table_whole
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ranks import Case, run_many
from scripts import Script, converted, text

import ddpify

ROOT = Path(__file__).parents[1]
WITNESS = """
import os

def saw(epoch, samples):
    with open(os.path.join(FOLDER, os.environ.get("RANK", "alone")), "a") as file:
        file.write(repr((epoch, samples)) + "\\n")
"""
SCRIPT = """
    import witness


    class Numbered(Dataset):
        def __len__(self):
            return {size}

        def __getitem__(self, index):
            return x[index % 44], y[index % 44], index


    numbered = Numbered()
    loader = {loader}
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for i, (data, target, index) in enumerate(loader):
            witness.saw(epoch, index.tolist())
            loss = F.cross_entropy(model(data), target) / {every}
            loss.backward()
            if (i + 1) % {every} == 0 or i + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
"""
LOADERS = {
    "shuffled": "DataLoader(numbered, batch_size={batch}, shuffle=True, drop_last={drop_last})",
    "in order": "DataLoader(numbered, batch_size={batch}, drop_last={drop_last})",
    "a subset": "DataLoader(numbered, {batch}, sampler=torch.utils.data.SubsetRandomSampler(range({size})), drop_last={drop_last})",
}


@dataclass(frozen=True)
class Sizes:
    """A data set, the batches made of it, and after how many of them a step is taken."""

    kind: str
    size: int
    batch: int
    drop_last: bool
    every: int

    @property
    def script(self) -> Script:
        loader = LOADERS[self.kind].format(**vars(self))
        return Script(SCRIPT.format(loader=loader, size=self.size, every=self.every))


def sizes(world: int) -> st.SearchStrategy[list[Sizes]]:
    one = st.builds(
        Sizes, st.sampled_from(sorted(LOADERS)), st.integers(1, 40), st.integers(1, 5).map(world.__mul__), st.booleans(), st.integers(1, 3)
    )
    return st.lists(one.filter(lambda s: not s.drop_last or s.size >= s.batch), min_size=12, max_size=12, unique=True)


@pytest.mark.parametrize("world", [2, 3])
def test_every_rank_takes_the_same_steps_and_every_sample_is_seen(world: int) -> None:
    @settings(max_examples=2, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(sizes(world))
    def holds(chosen: list[Sizes]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            cases = []
            for number, one in enumerate(chosen):
                seen = Path(folder, str(number))
                seen.mkdir()
                done = ddpify.convert(text(one.script))
                assert (done.status, done.exit_code) == ("convert", 0)
                cases.append(Case(text(one.script), done.code, (), {"witness.py": WITNESS.replace("FOLDER", repr(str(seen)))}))
            for number, (one, outcome) in enumerate(zip(chosen, run_many(cases, world), strict=True)):
                assert outcome.problems(ignore=("trajectory",)) == [], one
                _covers(one, world, Path(folder, str(number)))

    holds()


def _covers(one: Sizes, world: int, folder: Path) -> None:
    alone, *ranks = (
        [ast.literal_eval(line) for line in (folder / name).read_text().splitlines()] for name in ("alone", *map(str, range(world)))
    )
    assert [len(batches) for batches in ranks] == [len(alone)] * world, one
    for epoch in range(2):
        count = collections.Counter(i for batches in ranks for at, samples in batches if at == epoch for i in samples)
        original = {i for at, samples in alone if at == epoch for i in samples}
        if one.drop_last:
            assert set(count.values()) == {1} and len(count) == len(original), one
        else:
            assert set(count) == original == set(range(one.size)), one
            assert sum(count.values()) - one.size <= world - 1, one
            assert max(count.values()) <= -(-world // one.size) if one.size < world else max(count.values()) <= 2, one
    lengths = [[len(samples) for _, samples in batches] for batches in ranks]
    assert all(other == lengths[0] for other in lengths), one


def test_a_call_that_makes_a_loader_that_trains_and_one_that_does_not_is_converted_alike_each_time(tmp_path: Path) -> None:
    script = table_whole.SCRIPTS["loaders of two phases in a dict, one of which trains on what a collate function keeps"]
    codes = {converted(script, tmp_path).code for _ in range(9)}  # their order in sets is by chance
    assert len(codes) == 1
    assert 'shared=name == "train"' in codes.pop()


def test_whole_batches_send_a_row_and_not_what_it_is_a_view_of() -> None:
    names: dict[str, Any] = {name: importlib.import_module(name) for name in ("copyreg", "functools", "pickle", "torch")}
    names["BytesIO"] = io.BytesIO
    template = (ROOT / "templates/runtime/whole_batches.py").read_text()
    exec(template.partition("class WholeBatches")[0], names)
    rows = torch.arange(4e4).reshape(400, 100)
    sent = [rows[3], rows[5, 7], rows[1].to(torch.bfloat16), {"target": (rows[2].int(), 3.5)}, torch.eye(3).to_sparse()]
    text = names["packed"](sent)
    assert len(text) < 5000
    torch.testing.assert_close(pickle.loads(text), sent, rtol=0, atol=0)
