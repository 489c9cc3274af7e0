"""One global order of the samples: what a sampler or a sample draws depends on the pass and on the sample, never on the process."""

from __future__ import annotations

import inspect
import weakref
from typing import Any

import torch
from torch.utils.data import DataLoader, RandomSampler, Subset, SubsetRandomSampler
from torch.utils.data.dataloader import _BaseDataLoaderIter
from torch.utils.data.distributed import DistributedSampler

from ddpify_rehearsal import devices, draws, neutral, record, training
from ddpify_rehearsal.stage import tensors

_LISTED = 4096  # samples of a batch that are recorded one by one
_SHAPES = 16  # tensors of a batch whose shapes are recorded
_made = 0
_now = [-1, -1, 0]
_pass = 0  # of the loader whose sampler draws


# --- samplers -------------------------------------------------------------------------------------------------------------
def _order(number: int) -> list[int]:
    """The permutation of this pass, the same for whatever draws one."""
    generator = torch.Generator().manual_seed(1000 + _pass)
    return torch.randperm(number, generator=generator).tolist()


def _one_order() -> None:
    random_iter, distributed_iter = RandomSampler.__iter__, DistributedSampler.__iter__

    def randomly(self: Any) -> Any:
        if not draws.inside() or self.replacement or self.num_samples != len(self.data_source):
            generator, self.generator = self.generator, None if draws.inside() else self.generator
            try:
                yield from random_iter(self)
            finally:
                self.generator = generator
        else:
            yield from _order(len(self.data_source))

    def of_subset(self: Any) -> Any:
        return (self.indices[i] for i in _order(len(self.indices)))

    def of_rank(self: Any) -> Any:
        if not self.shuffle or not draws.inside():
            return distributed_iter(self)
        indices = _order(len(self.dataset))
        while len(indices) < self.total_size:
            indices += indices[: self.total_size - len(indices)]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    RandomSampler.__iter__, SubsetRandomSampler.__iter__ = randomly, of_subset  # type: ignore[method-assign]
    DistributedSampler.__iter__ = of_rank  # type: ignore[method-assign]


# --- samples --------------------------------------------------------------------------------------------------------------
def _name(dataset: Any, index: Any) -> str:
    """Which sample an index means, whatever subsets it goes through."""
    while isinstance(dataset, Subset) and isinstance(index, int):
        dataset, index = dataset.dataset, dataset.indices[index]
    return str(index)


class _Augmented:
    """A data set whose samples draw on their own account."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __getitem__(self, index: Any) -> Any:
        with draws.on_account_of("sample", _name(self.dataset, index)):
            return self.dataset[index]


def _fetch_by_sample() -> None:
    def fetch(self: Any, possibly_batched_index: Any) -> Any:
        dataset = _Augmented(self.dataset)
        if not self.auto_collation:
            return self.collate_fn(dataset[possibly_batched_index])
        if hasattr(self.dataset, "__getitems__") and self.dataset.__getitems__ and not isinstance(self.dataset, Subset):
            return self.collate_fn(self.dataset.__getitems__(possibly_batched_index))
        return self.collate_fn([dataset[i] for i in possibly_batched_index])

    torch.utils.data._utils.fetch._MapDatasetFetcher.fetch = fetch  # type: ignore[method-assign]


# --- loaders --------------------------------------------------------------------------------------------------------------
_loader_init = DataLoader.__init__
_arguments = inspect.signature(_loader_init)


def batch_now() -> list[int]:
    """The batch that was handed out last: its loader, the pass, and its rows."""
    return _now


def _make(self: Any, *args: Any, **kwargs: Any) -> None:
    global _made
    bound = _arguments.bind(self, *args, **kwargs)
    given = bound.arguments
    if devices.PLAYED:
        given["pin_memory"] = False
    _loader_init(*bound.args, **bound.kwargs)
    if draws.inside():
        return
    self._rehearsed, self._rehearsed_passes, _made = _made, 0, _made + 1
    size = self.batch_size or getattr(self.batch_sampler, "batch_size", None)
    size = size if isinstance(size, int) else None
    record.emit("loader", loader=self._rehearsed, batch_size=size, num_workers=self.num_workers)


def _shuffled(loader: Any) -> DistributedSampler[Any] | None:
    for sampler in (loader.sampler, getattr(loader.batch_sampler, "sampler", None)):
        if isinstance(sampler, DistributedSampler) and sampler.shuffle:
            return sampler
    return None


_iter_init, _iter_reset = _BaseDataLoaderIter.__init__, _BaseDataLoaderIter._reset
_iter_next, _iter_index = _BaseDataLoaderIter.__next__, _BaseDataLoaderIter._next_index


def _begin(iterator: Any, loader: Any) -> None:
    number = loader.__dict__.setdefault("_rehearsed_passes", 0)
    loader._rehearsed_passes += 1
    iterator._rehearsed_pass, iterator._rehearsed_queue = number, []
    iterator._rehearsed_account = draws.Account("sampler", number)
    iterator._rehearsed_id, iterator._rehearsed_data = loader.__dict__.get("_rehearsed", -1), loader.dataset
    training.began_pass(iterator._rehearsed_id)
    sampler = _shuffled(loader)
    epoch = [sampler.seed, sampler.epoch] if sampler is not None else None
    iterator._rehearsed_ended = [False]
    record.emit("pass", loader=iterator._rehearsed_id, number=number, epoch=epoch)
    weakref.finalize(iterator, _ended, iterator._rehearsed_id, number, iterator._rehearsed_ended, False).atexit = False


def _ended(loader: int, number: int, reported: list[bool], whole: bool) -> None:
    if not reported[0]:
        reported[0] = True
        record.emit("pass_end", loader=loader, number=number, whole=whole)


def _on_account(self: Any, function: Any, *args: Any) -> Any:
    global _pass
    before, _pass = _pass, self._rehearsed_pass
    try:
        with self._rehearsed_account:
            return function(self, *args)
    finally:
        _pass = before


def _init(self: Any, loader: Any) -> None:
    _begin(self, loader)
    _on_account(self, _iter_init, loader)


def _reset(self: Any, loader: Any, first_iter: bool = False) -> None:
    if not first_iter:  # one iterator serves all passes
        _begin(self, loader)
    _on_account(self, _iter_reset, loader, first_iter)


def _index(self: Any) -> Any:
    index = _on_account(self, _iter_index)
    several = isinstance(index, (list, tuple))
    mapped = not hasattr(type(self._rehearsed_data), "__iter__") or hasattr(type(self._rehearsed_data), "__getitem__")
    self._rehearsed_queue.append([_name(self._rehearsed_data, i) for i in (index if several else [index])] if mapped else None)
    return index


def _next(self: Any) -> Any:
    training.asked_for_batch(self._rehearsed_id, self._rehearsed_pass)
    try:
        data = _iter_next(self)
    except StopIteration:
        _ended(self._rehearsed_id, self._rehearsed_pass, self._rehearsed_ended, True)
        raise
    data = devices.put(neutral.widened(data), "cpu")
    queue = self._rehearsed_queue
    samples = queue.pop(0) if queue else None
    rows = next((len(t) for t in tensors(data) if t.dim()), 0)
    if samples is None:
        samples = []
    draws.batch(samples if len(samples) == rows else [str(i) for i in range(rows)])
    shapes = [list(t.shape[1:]) for t in tensors(data)][:_SHAPES]
    record.emit("batch", loader=self._rehearsed_id, number=self._rehearsed_pass, samples=samples[:_LISTED], rows=rows, shapes=shapes)
    training.got_batch(self._rehearsed_id)
    _now[:] = self._rehearsed_id, self._rehearsed_pass, rows
    return data


def install() -> None:
    """Let loaders deal out one order, and tell what they deal out."""
    _one_order()
    _fetch_by_sample()
    DataLoader.__init__ = _make  # type: ignore[method-assign]
    base: Any = _BaseDataLoaderIter
    base.__init__, base._reset, base._next_index, base.__next__ = _init, _reset, _index, _next
