"""What the emitted samplers give the ranks: together the original's batches, the same number on each, in the same order after a restart."""

import itertools
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import table_gradients
import table_loaders
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts import converted
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, Sampler, TensorDataset, WeightedRandomSampler
from torch.utils.data.distributed import DistributedSampler

from ddpify.resources import template_dir
from ddpify.rules.process.setup import _forked

SIZES, RANKS, SHARES, ENDS = st.integers(1, 60), st.integers(1, 5), st.integers(1, 4), st.booleans()


def emitted(piece: str, rank: int, world_size: int, *needs: str) -> Any:
    """The class or function of a piece of the runtime block, as it is on one rank."""
    text = (template_dir() / "runtime" / f"{piece}.py").read_text(encoding="utf-8")
    names: dict[str, Any] = {"torch": torch, "np": np, "random": random}
    names |= {"rank": rank, "world_size": world_size}
    before = set(names)
    exec(_forked(text, set(needs)), names)
    return next(value for name, value in names.items() if name not in before and name != "__builtins__")


class Drawn(Sampler[int]):
    """Indices in an order that one of the generators gives."""

    def __init__(self, number: int, root: str = "torch") -> None:
        self.number, self.root = number, root

    def __len__(self) -> int:
        return self.number

    def __iter__(self) -> Iterator[int]:
        if self.root == "numpy":
            return iter(np.random.permutation(self.number).tolist())
        if self.root == "random":
            return iter(random.sample(range(self.number), self.number))
        return iter(torch.randperm(self.number).tolist())


class Uneven(Sampler[list[int]]):
    """Batches of different sizes."""

    def __init__(self, number: int, most: int) -> None:
        self.number, self.most = number, most

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __iter__(self) -> Iterator[list[int]]:
        order, size = iter(torch.randperm(self.number).tolist()), itertools.cycle(range(self.most, 0, -1))
        while batch := list(itertools.islice(order, next(size))):
            yield batch


class Counted(IterableDataset[int]):
    """A stream of numbers, of which each worker reads its part."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __len__(self) -> int:
        return self.number

    def __iter__(self) -> Iterator[int]:
        info = torch.utils.data.get_worker_info()
        return iter(range(self.number) if info is None else range(info.id, self.number, info.num_workers))


def seeded(epoch: int, draw: Callable[[], Any]) -> Any:
    """What the original would draw in an epoch from generators in that state."""
    torch.manual_seed(epoch), np.random.seed(epoch), random.seed(epoch)
    return draw()


def batches(loader: DataLoader[Any]) -> list[list[int]]:
    return [batch.tolist() if torch.is_tensor(batch) else [int(i) for i in batch[0]] for batch in loader]


def data(number: int) -> TensorDataset:
    return TensorDataset(torch.arange(number))


def together(ranks: list[list[list[int]]]) -> list[list[int]]:
    """The global batches, the ranks' samples in turns."""
    assert len({len(one) for one in ranks}) == 1
    out = []
    for parts in zip(*ranks, strict=True):
        assert len({len(part) for part in parts}) == 1
        out.append([sample for turn in zip(*parts, strict=True) for sample in turn])
    return out


def check(found: list[list[int]], original: list[list[int]], world_size: int, anywhere: bool = False) -> None:
    """Global batch k is the original's batch k; what the ranks cannot divide is filled up, in the last batch or `anywhere`."""
    assert len(found) == len(original)
    for k, (mine, theirs) in enumerate(zip(found, original, strict=True)):
        assert mine[: len(theirs)] == theirs
        extra = mine[len(theirs) :]
        assert len(extra) < world_size
        assert not extra or k == len(original) - 1 or anywhere
        assert set(extra) <= {i for batch in original for i in batch}


@settings(max_examples=60, deadline=None)
@given(SIZES, SHARES, RANKS, ENDS, st.sampled_from(("torch", "numpy", "random")), st.integers(0, 3))
def test_ranks_share_what_a_sampler_draws(number: int, share: int, world_size: int, drop_last: bool, root: str, epoch: int) -> None:
    fork = {"numpy": ("fork:numpy:np.random",), "random": ("fork:random:random",)}.get(root, ())
    ranks = []
    for rank in range(world_size):
        torch.manual_seed(100 + rank), np.random.seed(100 + rank), random.seed(100 + rank)
        sampler = emitted("rank_sampler", rank, world_size, *fork)(Drawn(number, root), drop_last=drop_last)
        sampler.set_epoch(epoch)
        states = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
        loader = DataLoader(data(number), batch_size=share, sampler=sampler, drop_last=drop_last)
        assert len(list(iter(sampler))) == len(sampler)
        assert torch.equal(states[0], torch.get_rng_state())
        assert (np.random.get_state()[1].tolist(), random.getstate()) == states[1:]
        ranks.append(batches(loader))
        assert len(ranks[-1]) == len(loader)
    original = seeded(epoch, lambda: list(BatchSampler(Drawn(number, root), share * world_size, drop_last)))
    check(together(ranks), original, world_size)


@settings(max_examples=60, deadline=None)
@given(SIZES, SHARES, RANKS, ENDS, st.integers(0, 3))
def test_ranks_share_what_torchs_batch_sampler_draws(number: int, share: int, world_size: int, drop_last: bool, epoch: int) -> None:
    ranks = []
    for rank in range(world_size):
        torch.manual_seed(100 + rank)
        inner = emitted("rank_sampler", rank, world_size)(Drawn(number), drop_last=drop_last)
        loader = DataLoader(data(number), batch_sampler=BatchSampler(inner, share, drop_last))
        inner.set_epoch(epoch)
        ranks.append(batches(loader))
    original = seeded(epoch, lambda: list(BatchSampler(Drawn(number), share * world_size, drop_last)))
    check(together(ranks), original, world_size)


@settings(max_examples=60, deadline=None)
@given(SIZES, st.integers(1, 12), RANKS, st.integers(0, 3))
def test_ranks_share_each_batch_that_a_sampler_draws(number: int, most: int, world_size: int, epoch: int) -> None:
    ranks = []
    for rank in range(world_size):
        torch.manual_seed(100 + rank)
        sampler = emitted("rank_batch_sampler", rank, world_size)(Uneven(number, most))
        sampler.set_epoch(epoch)
        ranks.append(batches(DataLoader(data(number), batch_sampler=sampler)))
        assert len(ranks[-1]) == len(sampler)
    check(together(ranks), seeded(epoch, lambda: list(iter(Uneven(number, most)))), world_size, anywhere=True)


@settings(max_examples=60, deadline=None)
@given(SIZES, SHARES, RANKS, ENDS)
def test_ranks_share_a_stream(number: int, share: int, world_size: int, drop_last: bool) -> None:
    ranks = []
    for rank in range(world_size):
        stream = emitted("share_of_stream", rank, world_size)(Counted(number), drop_last)
        loader = DataLoader(stream, batch_size=share, drop_last=drop_last)
        ranks.append(batches(loader))
        assert len(ranks[-1]) == len(loader)
    original = [list(range(number))[i : i + share * world_size] for i in range(0, number, share * world_size)]
    check(together(ranks), [b for b in original if not drop_last or len(b) == share * world_size], world_size)


@pytest.mark.parametrize("drop_last", [False, True])
def test_ranks_share_a_stream_that_workers_share(drop_last: bool) -> None:
    ranks = []
    for rank in range(2):
        stream = emitted("share_of_stream", rank, 2)(Counted(29), drop_last)
        ranks.append(batches(DataLoader(stream, batch_size=3, num_workers=2, drop_last=drop_last)))
    original = batches(DataLoader(Counted(29), batch_size=6, num_workers=2, drop_last=drop_last))
    check(together(ranks), original, 2, anywhere=True)


@settings(max_examples=40, deadline=None)
@given(SIZES, SHARES, RANKS, st.integers(0, 3))
def test_ranks_share_what_has_no_end(number: int, share: int, world_size: int, epoch: int) -> None:
    def forever() -> Iterator[int]:
        while True:
            yield from torch.randperm(number).tolist()

    ranks, in_batches = [], []
    for rank in range(world_size):
        torch.manual_seed(100 + rank)
        sampler = emitted("endless_rank_sampler", rank, world_size)(forever())
        sampler.set_epoch(epoch)
        drawn = [i for i, _ in zip(sampler, torch.rand(5 * share), strict=False)]
        ranks.append([drawn[i : i + share] for i in range(0, 5 * share, share)])
        batched = emitted("endless_rank_batch_sampler", rank, world_size)(BatchSampler(forever(), share * world_size, False))  # type: ignore[arg-type]
        batched.set_epoch(epoch)
        in_batches.append(list(itertools.islice(batched, 5)))
    original = seeded(epoch, lambda: list(itertools.islice(forever(), 5 * share * world_size)))
    expected = [original[i : i + share * world_size] for i in range(0, len(original), share * world_size)]
    assert together(ranks) == expected
    assert together(in_batches) == expected


@settings(max_examples=40, deadline=None)
@given(SIZES, SHARES, RANKS, ENDS, st.integers(1, 4))
def test_all_kinds_take_as_many_steps_as_the_original(number: int, share: int, world_size: int, drop_last: bool, window: int) -> None:
    batch = share * world_size
    original = number // batch if drop_last else -(-number // batch)
    for rank in range(world_size):
        kinds = [
            DistributedSampler(data(number), world_size, rank, drop_last=drop_last),
            emitted("rank_sampler", rank, world_size)(Drawn(number), drop_last=drop_last),
            emitted("rank_sampler", rank, world_size)(WeightedRandomSampler([1.0] * number, number), drop_last=drop_last),
            emitted("rank_sampler", rank, world_size)(list(range(number)), drop_last=drop_last),
        ]
        for sampler in kinds:
            loader = DataLoader(data(number), batch_size=share, sampler=sampler, drop_last=drop_last)
            steps = [i for i, _ in enumerate(loader)]
            assert len(steps) == len(loader) == original
            assert sum((i + 1) % window == 0 for i in steps) == original // window


@pytest.mark.parametrize("kind", ["rank_sampler", "rank_batch_sampler", "endless_rank_sampler", "endless_rank_batch_sampler"])
def test_an_epoch_has_an_order_of_its_own_that_all_ranks_draw(kind: str) -> None:
    inner: Any = Drawn(60) if "batch" not in kind else BatchSampler(Drawn(60), 6, False)

    def drawn(rank: int, epoch: int) -> list[Any]:
        sampler = emitted(kind, rank, 2)(inner)
        sampler.set_epoch(epoch)
        return list(itertools.islice(sampler, 5))

    first, second = drawn(0, 0), drawn(0, 1)
    assert first != second
    assert (drawn(0, 0), drawn(0, 1)) == (first, second)
    flat = [i for part in (first, drawn(1, 0)) for b in part for i in (b if isinstance(b, list) else [b])]
    assert len(set(flat)) == len(flat)


def test_the_epoch_moves_on_before_a_thread_draws_ahead(tmp_path: Path) -> None:
    done = converted(table_loaders.SCRIPTS["a thread that draws ahead, in a bar with a name"], tmp_path)
    body = done.code[done.code.index("def one_pass") :]
    assert body.index(".set_epoch(turn)") < body.index("BackgroundGenerator(")


def test_a_loader_made_again_in_each_round_goes_on_with_new_orders(tmp_path: Path) -> None:
    title = "a loader made again in each round of one training"
    done = converted(table_loaders.SCRIPTS[title], tmp_path)
    (tmp_path / "converted.py").write_text(done.code)
    ran = subprocess.run([sys.executable, "converted.py"], cwd=tmp_path, capture_output=True, text=True)
    assert "more orders than a round has True" in ran.stdout, ran.stderr


@pytest.mark.parametrize(
    "title",
    [
        "gates moved by batches of their own, beside those of the weights",
        "gates moved by batches of their own, one fetched for each of the weights'",
        "gates moved by batches of their own, after those of the weights",
        "weights that shrink by the loss of batches that train nothing else",
    ],
)
def test_batches_that_weights_are_moved_by_are_shared_out_where_each_rank_would_draw_others(title: str, tmp_path: Path) -> None:
    assert converted(table_gradients.SCRIPTS[title], tmp_path).code.count("batch_size=per_rank(6)") == 2
