"""The processes of `ranks.py`: run scripts one after another, as `python script` or as ranks, and write down what each did.

This one imports torch once, and takes a line of JSON from its standard input for each group of processes, which it forks: {jobs, nproc,
port, log}. It ends when its input does.

What legitimately differs between one process and N ranks is made equal on both sides:
  * samplers yield one global order, cut so that batch k of the ranks together is batch k of the single process;
  * dropout is off, batch norm uses its running statistics, numbers are float64, what is compiled runs as it is written;
  * rank 0 starts from the single process's seed. The other ranks start from their own, as they would in life.
"""

import atexit
import contextlib
import faulthandler
import functools
import gc
import io
import itertools
import json
import logging
import os
import pickle
import random
import runpy
import select
import signal
import socket
import sys
import threading
import traceback
import types
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.overrides import TorchFunctionMode
from torch.utils.data import DataLoader, RandomSampler, SubsetRandomSampler, WeightedRandomSampler
from torch.utils.data.distributed import DistributedSampler

RANK = 0
IS_RANK = False
now: SimpleNamespace | None = None  # the record of the script that runs at the moment


# --- one order of samples ---------------------------------------------------------------------------------------------
def _generator(sampler) -> torch.Generator:
    """The stream of one pass over one sampler: the same in every process."""
    sampler._pass = getattr(sampler, "_pass", -1) + 1
    return torch.Generator().manual_seed(20240 + sampler._pass)


def _random_iter(sampler):
    n, generator = len(sampler.data_source), _generator(sampler)
    if sampler.replacement:
        return iter(torch.randint(n, (sampler.num_samples,), generator=generator).tolist())
    order = []
    while len(order) < sampler.num_samples:
        order += torch.randperm(n, generator=generator).tolist()
    return iter(order[: sampler.num_samples])


def _subset_iter(sampler):
    return iter([sampler.indices[i] for i in torch.randperm(len(sampler.indices), generator=_generator(sampler)).tolist()])


def _weighted_iter(sampler):
    return iter(torch.multinomial(sampler.weights, sampler.num_samples, sampler.replacement, generator=_generator(sampler)).tolist())


def _distributed_iter(sampler):
    generator = _generator(sampler)
    if sampler.shuffle and now:
        if not sampler._pass:
            sampler._epochs = []
            now.epochs.append(sampler._epochs)
        sampler._epochs.append(sampler.epoch)
    n = len(sampler.dataset)
    order = torch.randperm(n, generator=generator).tolist() if sampler.shuffle else list(range(n))
    while len(order) < sampler.total_size:  # as torch pads: from the head again
        order += order[: sampler.total_size - len(order)]
    return iter(order[sampler.rank : sampler.total_size : sampler.num_replicas])


class Stream:
    """The random numbers of one pass over a sampler of the script's own: as those that the converted script gives it in that epoch."""

    def __init__(self, seed):
        with self:
            torch.default_generator.manual_seed(seed), np.random.seed(seed), random.seed(seed)

    def __enter__(self):
        self.outside = torch.get_rng_state(), np.random.get_state(), random.getstate()
        if hasattr(self, "inside"):
            self.put(self.inside)

    def __exit__(self, *args):
        self.inside = torch.get_rng_state(), np.random.get_state(), random.getstate()
        self.put(self.outside)

    @staticmethod
    def put(states):
        torch.set_rng_state(states[0]), np.random.set_state(states[1]), random.setstate(states[2])


def _own_iter(iterate):
    def iterated(sampler):
        sampler._turn = getattr(sampler, "_turn", -1) + 1
        stream, done = Stream(sampler._turn + 1000 * RANK), object()
        with stream:
            drawn = iter(iterate(sampler))
        while True:
            with stream:
                one = next(drawn, done)
            if one is done:
                return
            yield one

    iterated.of_tests = True
    return iterated


def _noted_iter(iterate):
    def iterated(sampler):
        if now and not hasattr(sampler, "_epochs"):
            sampler._epochs = []
            now.epochs.append(sampler._epochs)
        sampler._pass = getattr(sampler, "_pass", -1) + 1
        if now:
            sampler._epochs.append(sampler.epoch)
        epoch, sampler.epoch = sampler.epoch, sampler._pass
        drawn = iter(iterate(sampler))
        first = next(drawn, drawn)  # a generator reads its epoch now
        sampler.epoch = epoch
        return drawn if first is drawn else itertools.chain([first], drawn)

    iterated.of_tests = True
    return iterated


_loader_init = DataLoader.__init__
_NOT_OWN = ("torch", "builtins", "numpy")  # whose samplers, or sequences of indices, are no script's own


def _init(loader, *args, **kwargs):
    """Gives samplers of the script's own the numbers that those of ranks are given, and notes the epochs of the latter."""
    _loader_init(loader, *args, **kwargs)
    for given in (loader.sampler, loader.batch_sampler, getattr(loader.batch_sampler, "sampler", None)):
        kind = type(given)
        if now is None or kind.__module__.split(".")[0] in _NOT_OWN or not hasattr(kind, "__iter__") or hasattr(kind.__iter__, "of_tests"):
            continue
        if kind.__name__ in ("RankSampler", "RankBatchSampler", "EndlessRankSampler", "EndlessRankBatchSampler"):
            kind.__iter__ = _noted_iter(kind.__iter__)
            inner = getattr(given, "sampler", None) or getattr(given, "batches", None)
            own = type(getattr(inner, "sampler", None))
            if type(inner).__name__ == "SamplerOfRankZero" and hasattr(own, "__iter__") and not hasattr(own.__iter__, "of_tests"):
                own.__iter__ = _own_iter(own.__iter__)
        else:
            kind.__iter__ = _own_iter(kind.__iter__)


DataLoader.__init__ = _init
RandomSampler.__iter__ = _random_iter
SubsetRandomSampler.__iter__ = _subset_iter
WeightedRandomSampler.__iter__ = _weighted_iter
DistributedSampler.__iter__ = _distributed_iter

# --- one arithmetic ---------------------------------------------------------------------------------------------------
_batch_norm = torch.nn.functional.batch_norm


def _frozen_batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    return _batch_norm(input, running_mean, running_var, weight, bias, training and running_mean is None, momentum, eps)


torch.nn.functional.batch_norm = _frozen_batch_norm
for _name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):
    setattr(torch.nn.functional, _name, lambda input, *args, **kwargs: input)
torch.Tensor.float = torch.Tensor.double  # `.float()` means "a floating-point number" in scripts
_unscale = torch.amp.GradScaler._unscale_grads_


def _unscale_by_float32(scaler, optimizer, inv_scale, *args):
    return _unscale(scaler, optimizer, inv_scale.to(torch.float32), *args)  # where torch itself says `.float()`


torch.amp.GradScaler._unscale_grads_ = _unscale_by_float32


class CudaIsTheCpu(TorchFunctionMode):
    """Lets an original that says `.cuda()` run here. A converted script has to run without this."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.cuda:
            return args[0]
        return func(*map(self.here, args), **{key: self.here(value) for key, value in (kwargs or {}).items()})

    @staticmethod
    def here(value):
        if isinstance(value, torch.device) or (isinstance(value, str) and value.startswith("cuda")):
            return torch.device("cpu") if torch.device(value).type == "cuda" else value
        return value


_wrapper_init = torch.nn.parallel.DistributedDataParallel.__init__


def _wrapped_on_the_cpu(wrapper, module, device_ids=None, *args, **kwargs):
    _wrapper_init(wrapper, module, None, *args, **kwargs)


# --- the record -------------------------------------------------------------------------------------------------------
def _after_step(optimizer, args, kwargs) -> None:
    if now is None:
        return
    if optimizer not in now.optimizers:
        now.optimizers.append(optimizer)
    parameters = [p.detach().reshape(-1).double() for group in optimizer.param_groups for p in group["params"]]
    now.steps.append((now.optimizers.index(optimizer), torch.cat(parameters)))


def _wrote(path: Any) -> str | None:
    """Notes a write inside the script's folder; returns the path relative to it."""
    if now is None or not isinstance(path, (str, bytes, os.PathLike)):
        return None
    full = os.path.realpath(os.fsdecode(path))
    if not full.startswith(now.folder + os.sep):
        return None
    relative = os.path.relpath(full, now.folder)
    now.writes.add(relative)
    return relative


def _audit(event: str, args: tuple) -> None:
    if now is None:
        return
    if event == "open":
        path, mode, flags = args
        if any(c in mode for c in "wax+") if mode else flags & (os.O_WRONLY | os.O_RDWR):
            _wrote(path)
    elif event in ("os.remove", "os.rmdir", "os.truncate", "shutil.rmtree"):
        _wrote(args[0])
    elif event in ("os.rename", "shutil.move", "os.link", "os.symlink"):
        _wrote(args[0]), _wrote(args[1])


def _flat(value: Any, key: str = "") -> dict[str, Any]:
    """A checkpoint as {path of keys: tensor or plain value}."""
    if isinstance(value, torch.nn.Module):
        return {f"{key}<{type(value).__name__}>": None, **_flat(value.state_dict(), key)}
    if isinstance(value, dict):
        return {k: v for name, part in value.items() for k, v in _flat(part, f"{key}/{name}").items()}
    if isinstance(value, (list, tuple)):
        return {k: v for i, part in enumerate(value) for k, v in _flat(part, f"{key}/{i}").items()}
    if isinstance(value, torch.Tensor):
        return {key: value.detach().cpu().clone()}
    if isinstance(value, (int, float, str, type(None))):
        return {key: value}
    return {key: f"<{type(value).__name__}>"}


_torch_save = torch.save


def _save(obj, f, *args, **kwargs):
    if (path := _wrote(f)) is not None:
        now.saves[path] = _flat(obj)
    return _torch_save(obj, f, *args, **kwargs)


_atexit_register = atexit.register


def _at_exit(function, *args, **kwargs):
    """Keeps what the script itself registers, to run it when the script ends."""
    if now is not None and sys._getframe(1).f_globals.get("__file__", "").startswith(now.folder):
        now.at_exit.append((function, args, kwargs))
        return function
    return _atexit_register(function, *args, **kwargs)


_groups = []  # kept for good: freeing a gloo group waits for its threads, which may wait for the interpreter (pytorch#190489)


@functools.cache
def _device() -> Any:
    """The device of all groups. Its thread polls without a pause while another one has a pair's lock: it gives way to that one."""
    device = dist.ProcessGroupGloo.create_default_device()
    for thread in Path("/proc/self/task").glob("*/comm"):
        if thread.read_text().strip() == "gloo_tcp_loop":
            os.sched_setscheduler(int(thread.parent.name), os.SCHED_IDLE, os.sched_param(0))
    return device


class _Gloo(dist.ProcessGroupGloo):
    """A group on the process's one device, with one thread of its own: as groups are kept, their threads would add up."""

    def __init__(self, store, rank, size, timeout=dist.default_pg_timeout, **more):  # which later versions of torch give
        options = dist.ProcessGroupGloo._Options()
        options._devices, options._threads, options._timeout = [_device()], 1, timeout
        super().__init__(store, rank, size, options)


dist.distributed_c10d.ProcessGroupGloo = _Gloo


def _keeping(make):
    def made(*args, **kwargs):
        result = make(*args, **kwargs)
        _groups.append(result or dist.group.WORLD)
        return result

    return made


_init_process_group = dist.init_process_group
_agent: Any = None  # the store of `ranks.py`


def _init_in_the_launchers_store(*args, **kwargs):
    """What `env://` does, without the time that a server of each script's own takes to start."""
    if IS_RANK and len(args) < 2 and not {"init_method", "store", "world_size"} & kwargs.keys():
        store = dist.PrefixStore(f"{now and now.folder}/{len(_groups)}", _agent)
        kwargs |= {"store": store, "rank": RANK, "world_size": int(os.environ["WORLD_SIZE"])}
    return _init_process_group(*args, **kwargs)


for _module in (dist, dist.distributed_c10d):
    _module.init_process_group = _keeping(_init_in_the_launchers_store)
    _module.new_group = _keeping(_module.new_group)

register_optimizer_step_post_hook(_after_step)
sys.addaudithook(_audit)
torch.save = _save
atexit.register = _at_exit


# --- processes that a script spawns ------------------------------------------------------------------------------------
def _spawn(function, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Tells the other ranks what processes are spawned with, is the first of them, and waits for the others."""
    assert nprocs == int(os.environ["WORLD_SIZE"]) and join and start_method == "spawn"
    _agent.set(f"{now.folder}/spawned", pickle.dumps((dict(os.environ), pickle.dumps((function, args)))))
    kept = sys.modules["__main__"], now.at_exit
    _spawned()
    sys.modules["__main__"], now.at_exit = kept
    _agent.wait([f"{now.folder}/ended {rank}" for rank in range(1, nprocs)])


def _spawned() -> None:
    """Does as a spawned process: imports the script anew, under another name, and calls the function with copies of the arguments."""
    told = _agent.get(f"{now.folder}/spawned")
    if not told:
        return
    environ, given = pickle.loads(told)
    os.environ.clear(), os.environ.update(environ)
    _forget_modules(now.folder)
    _seed()
    main = types.ModuleType("__mp_main__")
    main.__file__, now.at_exit = str(Path(now.folder, sys.argv[0])), []
    sys.modules["__main__"] = sys.modules["__mp_main__"] = main
    exec(compile(Path(main.__file__).read_text(), main.__file__, "exec"), main.__dict__)
    function, args = pickle.loads(given)
    function(RANK, *args)
    if error := _at_its_end():
        raise RuntimeError(error)
    _agent.set(f"{now.folder}/ended {RANK}", "")


def _forget_modules(folder: str, but: frozenset[str] = frozenset()) -> None:
    for name in set(sys.modules) - but:
        module = sys.modules[name]
        folders = getattr(module, "__dict__", {}).get("__path__") or ()  # a folder without __init__.py has no file
        if name != "__main__" and any(str(place or "").startswith(folder) for place in (getattr(module, "__file__", None), *folders)):
            del sys.modules[name]


@contextlib.contextmanager
def _own_modules(folder: str) -> Iterator[None]:
    """Without those of this process's modules that have the name of a module or a package in a folder."""
    own = {path.stem for path in Path(folder).iterdir() if path.suffix == ".py" or any(path.glob("*.py"))} & sys.modules.keys()
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] in own} if own else {}
    try:
        yield
    finally:
        sys.modules.update(hidden)


# --- running ----------------------------------------------------------------------------------------------------------
def _execute(script: str, spawns: bool) -> str:
    """Runs the script and what it left for its exit; returns the traceback of a failure."""
    error = ""
    try:
        if spawns and RANK:
            _spawned()
        else:
            runpy.run_path(script, run_name="__main__")
            if spawns and not _agent.check([f"{now.folder}/spawned"]):
                _agent.set(f"{now.folder}/spawned", "")
    except SystemExit as stop:
        error = f"exit {stop.code}" if stop.code else ""
    except BaseException:
        error = traceback.format_exc()
    return error or _at_its_end()


def _at_its_end() -> str:
    """Runs what a script left for its exit; returns the traceback of a failure."""
    error = ""
    for function, args, kwargs in reversed(now.at_exit):
        try:
            function(*args, **kwargs)
        except Exception:
            error = error or "at exit: " + traceback.format_exc()
    now.at_exit = []
    return error


def _seed() -> None:
    torch.default_generator.manual_seed(1000 * RANK), random.seed(1000 * RANK), np.random.seed(1000 * RANK)


def run(job: dict[str, Any]) -> None:
    """Runs one script in its folder and writes its record to `<out>.<rank>.pt`."""
    global now
    out = Path(f"{job['out']}.{RANK}")
    out.with_name(out.name + ".started").touch()
    _seed()
    torch.set_default_dtype(torch.float64)
    kept = dict(os.environ), list(sys.path), sys.argv, sys.stdout, sys.stderr, frozenset(sys.modules), Path.cwd()
    record = SimpleNamespace(folder=os.path.realpath(job["cwd"]), steps=[], optimizers=[], writes=set(), saves={}, epochs=[], at_exit=[])
    stdout, stderr = io.StringIO(), io.StringIO()
    os.chdir(job["cwd"])
    sys.path.insert(0, record.folder)
    sys.argv = [job["script"], *job["args"]]
    if IS_RANK:  # every script gets a store of its own
        os.environ.update(MASTER_PORT=str(job["port"]), TORCHELASTIC_USE_AGENT_STORE="False")
    spawns = IS_RANK and ".spawn(" in Path(job["script"]).read_text(errors="ignore")
    for name in ("RANK", "LOCAL_RANK", "GROUP_RANK", "TORCHELASTIC_RUN_ID") if spawns else ():
        del os.environ[name]  # a launcher's
    sys.stdout, sys.stderr = stdout, stderr
    with contextlib.ExitStack() as stack:
        stack.enter_context(_own_modules(record.folder))
        for module, name in ((threading, "Event"), (socket, "gethostname"), (os, "getloadavg"), (os.path, "exists")):
            stack.enter_context(mock.patch.object(module, name, getattr(module, name)))  # what a script puts there goes with it
        if job["fake_cuda"]:
            stack.enter_context(CudaIsTheCpu())
            for name in ("set_device", "synchronize"):
                stack.enter_context(mock.patch.object(torch.cuda, name, lambda *args: None))
            stack.enter_context(mock.patch.object(torch.nn.parallel.DistributedDataParallel, "__init__", _wrapped_on_the_cpu))
            stack.enter_context(mock.patch.object(torch.nn.SyncBatchNorm, "convert_sync_batchnorm", lambda module: module))
        if "compile" in Path(job["script"]).read_text(errors="ignore"):
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        if spawns:
            stack.enter_context(mock.patch.object(torch.multiprocessing, "spawn", _spawn))
        now = record
        error = _execute(f"{record.folder}/{job['script']}", spawns)
        now = None
    left_open = dist.is_initialized()
    environ, sys.path[:], sys.argv, sys.stdout, sys.stderr, modules, cwd = kept
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(cwd)
    _forget_modules(record.folder, modules)
    sys.modules.pop("__mp_main__", None)
    logging.root.handlers.clear()
    if logging.root.level != logging.WARNING:
        logging.root.setLevel(logging.WARNING)
    if logging.root.manager.disable != logging.NOTSET:
        logging.disable(logging.NOTSET)
    fields = {"rank": RANK, "stdout": stdout.getvalue(), "stderr": stderr.getvalue(), "error": error, "left_open": left_open}
    fields |= {name: getattr(record, name) for name in ("writes", "saves", "epochs")}
    numbers, parameters = [number for number, _ in record.steps], [values for _, values in record.steps]
    fields |= {"steps": (numbers, [*map(len, parameters)], torch.cat(parameters) if parameters else None)}  # one tensor, soon written
    _torch_save(fields, out.with_name(out.name + ".part"))
    os.replace(out.with_name(out.name + ".part"), out.with_name(out.name + ".pt"))
    if error and IS_RANK:  # the others may wait for this rank: the group ends here
        os._exit(3)
    record.optimizers.clear()
    if left_open:
        dist.destroy_process_group()
    gc.collect()
    gc.freeze()  # what is left is not looked through again


# --- groups of processes ----------------------------------------------------------------------------------------------
def _fork(group: dict[str, Any], rank: int) -> int:
    """Starts a process of a group, which runs all its jobs; returns its number."""
    global RANK, IS_RANK, _agent
    child = os.fork()
    if child:
        return child
    log = os.open(group["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        RANK, IS_RANK = rank, group["nproc"] > 1
        if IS_RANK:
            named = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": group["nproc"], "LOCAL_WORLD_SIZE": group["nproc"], "GROUP_RANK": 0}
            os.environ.update({name: str(value) for name, value in named.items()}, MASTER_ADDR="localhost", TORCHELASTIC_RUN_ID="none")
            _agent = dist.TCPStore("localhost", group["port"], is_master=False)
        for one in json.loads(Path(group["jobs"]).read_text()):
            run(one)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(4)
    sys.stdout.flush()
    os._exit(0)  # gloo may abort while the interpreter shuts down (pytorch#190489)


def _serve() -> None:
    """Forks the groups that standard input asks for, and writes down how their processes end: `<jobs>.<rank>.code`."""
    running: dict[int, Path] = {}
    poll = select.poll()
    poll.register(0, select.POLLIN)
    told = b""
    while True:
        if poll.poll(10 if running else None):
            some = os.read(0, 65536)
            if not some:
                break
            *lines, told = (told + some).split(b"\n")
            for group in map(json.loads, lines):
                for rank in range(group["nproc"]):
                    child = _fork(group, rank)
                    Path(f"{group['jobs']}.{rank}.pid").write_text(str(child))
                    running[child] = Path(f"{group['jobs']}.{rank}.code")
        for child in list(running):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = running.pop(child)
                with contextlib.suppress(FileNotFoundError):  # nobody waits for it
                    code.with_name(code.name + ".part").write_text(str(os.waitstatus_to_exitcode(status)))
                    os.replace(code.with_name(code.name + ".part"), code)
    for child in running:
        os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    torch.set_num_threads(1)
    faulthandler.register(signal.SIGUSR1, file=sys.__stderr__)  # asked by `ranks.py` before it ends a group that hangs
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1).step()  # what torch imports when it is first used
    import matplotlib.pyplot  # noqa: F401
    import sklearn.metrics  # noqa: F401, with pandas: they take longer than most scripts
    gc.collect()
    gc.freeze()
    _serve()
    os._exit(0)
