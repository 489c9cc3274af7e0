"""The checks of what a conversion emits, on texts that are wrong on purpose, each beside the text that it would be made from."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import fakes
import pytest
import torch

from ddpify.checks import signatures, stage
from ddpify.checks.binding import Binding
from ddpify.checks.kinds import misfits
from ddpify.conversion import convert
from ddpify.facts.model import New, just
from ddpify.project import of_source
from ddpify.source import from_text

HEAD = """\
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torch.utils.data.distributed import DistributedSampler

"""
JOIN = """\
def init_distributed():
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


"""
HELPERS = """\
def sum_over_ranks(value):
    parts = [None] * dist.get_world_size()
    dist.all_gather_object(parts, value)
    return sum(parts)


def from_all_ranks(rows):
    return rows.contiguous()


"""


def found(after: str, before: str = "", modules: dict[str, tuple[str, str]] | None = None) -> list[str]:
    """What the checks tell of a text made from another, and of modules beside it (name: text before, text after)."""
    projects = []
    for i, text in enumerate((before, after)):
        project = of_source(from_text(text), Path("/nowhere/train.py"), "train.py")
        project.overlay |= {Path(f"/nowhere/{name}.py"): from_text(texts[i]) for name, texts in (modules or {}).items()}
        projects.append(project)
    return [f"{Path(f.file).name}:{f.line} {f.message}" for f in stage.findings(*projects)]


# --- names ---------------------------------------------------------------------------------------------------------------

UNBOUND = {
    "bound nowhere": ("print(rank)\n", "1 rank is bound nowhere"),
    "in a function": ("def f():\n    return torch_dist.get_rank()\n", "2 torch_dist is bound nowhere"),
    "bound below": ("print(rank)\nrank = 0\n", "1 rank is not bound yet"),
    "on one path only": ("import os\nif os.environ:\n    rank = 0\nprint(rank)\n", "4 rank is not bound on every path"),
    "in a loop that may not run": ("for i in range(3):\n    last = i\nprint(last)\n", "3 last is not bound on every path"),
    "in the body of a try": ("try:\n    rank = int('0')\nexcept ValueError:\n    pass\nprint(rank)\n", "5 rank is not bound on every path"),
    "deleted before": ("rank = 0\ndel rank\nprint(rank)\n", "3 rank is not bound yet"),
    "a name of another function": ("def f():\n    rank = 0\n\n\ndef g():\n    return rank\n", "6 rank is bound nowhere"),
    "of a class, in its method": ("class A:\n    rank = 0\n    def f(self):\n        return rank\n", "4 rank is bound nowhere"),
    "of a class, in a comprehension": ("class A:\n    rank = 0\n    all = [rank for _ in (1, 2)]\n", "3 rank is bound nowhere"),
    "in a default argument": ("def f(x=rank):\n    return x\n\n\nrank = 0\n", "1 rank is not bound yet"),
    "in a decorator": ("@guard\ndef f():\n    pass\n\n\ndef guard(f):\n    return f\n", "1 guard is not bound yet"),
    "when a function is called": ("def f():\n    return rank\n\n\nf()\nrank = 0\n", "5 rank is not bound yet where this call runs"),
    "by what a function calls": (
        "def g():\n    return rank\ndef f():\n    return g()\nf()\nrank = 0\n",
        "5 rank is not bound yet where this",
    ),
    "when a class is made": (
        "class A:\n    def __init__(self):\n        self.f()\n    def f(self):\n        return rank\nA()\nrank = 0\n",
        "6 rank is not bound yet where this call",
    ),
    "when a method is called": (
        "class A:\n    def f(self):\n        return rank\nA().f()\nrank = 0\n",
        "4 rank is not bound yet where this",
    ),
    "when an instance is called": (
        "class A:\n    def __call__(self):\n        return rank\na = A()\na()\nrank = 0\n",
        "5 rank is not bound yet where this",
    ),
    "when a class is made whose base may call any method": (
        "from other import Base\nclass A(Base):\n    def f(self):\n        return rank\nA()\nrank = 0\n",
        "5 rank is not bound yet where this call",
    ),
    "when an instance is called by what it is given to": (
        "from other import summary\nclass A:\n    def forward(self):\n        return rank\na = A()\nsummary(a)\nrank = 0\n",
        "6 rank is not bound yet where this",
    ),
    "when an instance is called by a builtin": (
        "class A:\n    def __call__(self, x):\n        return rank\na = A()\nlist(map(a, (1, 2)))\nrank = 0\n",
        "5 rank is not bound yet where this",
    ),
    "of a handler, after it": ("try:\n    pass\nexcept OSError as error:\n    pass\nprint(error)\n", "5 error is not bound yet"),
    "local by a later assignment": ("rank = 0\n\n\ndef f():\n    print(rank)\n    rank = 1\n", "5 rank is not bound yet"),
    "of a comprehension, after it": ("rows = [i for i in range(3)]\nprint(i)\n", "2 i is bound nowhere"),
}  # fmt: skip
BOUND = {
    "a builtin": "print(len('ab'))\n",
    "on both paths": "import os\nif os.environ:\n    rank = 0\nelse:\n    rank = 1\nprint(rank)\n",
    "on the only path that comes out": "import os\nimport sys\nif os.environ:\n    rank = 0\nelse:\n    sys.exit(1)\nprint(rank)\n",
    "by a loop without an end": "while True:\n    rank = 0\n    if rank:\n        break\nprint(rank)\n",
    "a global of a method that is called later": (
        "class A:\n    def __init__(self):\n        super(A, self).__init__()\n    def f(self):\n        return net\nnet = A()\nnet.f()\n"
    ),
    "a global of a forward, by what is made of the instance": (
        "from torch.nn.parallel import DistributedDataParallel\nclass A:\n    def parameters(self):\n        yield 1\n"
        "    def forward(self):\n        return rank\na = A()\nif next(a.parameters()):\n"
        "    a = DistributedDataParallel(a)\nrank = 0\na()\n"
    ),
    "a global of a function that is called later": "def f():\n    return rank\n\n\nrank = 0\nf()\n",
    "declared global": "def f():\n    global rank\n    rank = 1\n    g()\n\n\ndef g():\n    return rank\n\n\nf()\n",
    "of the function around": "def f():\n    rank = 0\n    def g():\n        nonlocal rank\n        rank += 1\n    return g\n",
    "a walrus in a comprehension": "rows = [last := i for i in range(3)]\n\n\ndef f():\n    return [n := 1 for _ in rows] and n\n",
    "of a class, in its body": "rank = 1\n\n\nclass A:\n    other = rank\n    rank = 0\n    third = rank\n",
    "in a match": "import os\nmatch os.sep:\n    case '/':\n        rank = 0\n    case other:\n        rank = len(other)\nprint(rank)\n",
    "a parameter of the same name": "def f(rank, *dist, **more):\n    return lambda device: (rank, dist, more, device)\n",
    "by an import in a try": "try:\n    import json as reader\nexcept ImportError:\n    reader = None\nprint(reader)\n",
    "by a with, in its body and after": "with open('x') as file:\n    text = file.read()\nprint(file, text)\n",
    "in a finally": "rank = 0\ntry:\n    other = 1\nfinally:\n    print(rank)\nprint(other)\n",
}  # fmt: skip


@pytest.mark.parametrize("title", UNBOUND)
def test_a_name_that_is_not_bound_is_told(title: str) -> None:
    text, message = UNBOUND[title]
    assert [m for m in found(text) if m.startswith(f"train.py (converted):{message}")] != []


@pytest.mark.parametrize("title", BOUND)
def test_a_name_that_is_bound_is_not(title: str) -> None:
    assert [(use.name, use.how) for use in Binding(ast.parse(BOUND[title])).uses if use.name not in ("last", "n")] == []


@pytest.mark.parametrize("title", UNBOUND)
def test_what_was_so_before_is_the_scripts_own(title: str) -> None:
    text, _ = UNBOUND[title]
    assert found(f"{text}\nadded = 1\n", text) == []


def test_a_name_of_a_module_is_told_with_its_file() -> None:
    texts = {"rows": ("def f():\n    return 1\n", "def f():\n    return get_rank()\n")}
    assert found("from rows import f\nf()\n", "from rows import f\nf()\n", texts) == ["rows.py (converted):2 get_rank is bound nowhere"]


# --- signatures ----------------------------------------------------------------------------------------------------------

MISFITS = {
    "an unknown keyword": ("mkdir(name)", "mkdir('a', exist_ok=True)", "it has no parameter exist_ok"),
    "given twice": ("f(a, b=1)", "f(1, 2, b=3)", "b is given twice"),
    "too many": ("f(a)", "f(1, 2)", "2 arguments by position where it takes 1"),
    "missing": ("f(a, b, *, c)", "f(1)", "b, c is missing"),
    "by name where only by position": ("f(a, /)", "f(a=1)", "it has no parameter a"),
}
FITS = {
    "all by position": ("f(a, b=1)", "f(1, 2)"),
    "the rest": ("f(a, *rest, **more)", "f(1, 2, 3, c=4)"),
    "opened": ("f(a, b, c)", "f(*x, **y)"),
    "keyword only": ("f(a, *, c=1)", "f(1, c=2)"),
    "the same name in the rest": ("f(a, /, **more)", "f(1, a=2)"),
}


def misfit(signature: str, call: str) -> str:
    (function,) = ast.parse(f"def {signature}: pass").body
    node = ast.parse(call, mode="eval").body
    assert isinstance(function, ast.FunctionDef)
    assert isinstance(node, ast.Call)
    return signatures.misfit(function.args, node)


@pytest.mark.parametrize("title", MISFITS)
def test_a_call_that_does_not_fit_is_told(title: str) -> None:
    signature, call, why = MISFITS[title]
    assert misfit(signature, call) == why
    text = f"def {signature}:\n    return 1\n\n\nx, y = (1,), {{}}\n"
    assert [m.rpartition(": ")[2] for m in found(f"{text}{call}\n", text)] == [why]


@pytest.mark.parametrize("title", FITS)
def test_a_call_that_fits_is_not(title: str) -> None:
    assert misfit(*FITS[title]) == ""


def test_calls_of_methods_classes_and_libraries_are_bound_as_they_run() -> None:
    text = HEAD + "class A:\n    def __init__(self, n):\n        self.n = n\n    def step(self, k=1):\n        return self.n + k\n\n\n"
    assert found(text + "A(1).step(2)\nA(n=1).step(k=2)\nos.makedirs('a', exist_ok=True)\n", text) == []
    wrong = text + "A().step()\nA(1).step(1, 2)\nos.makedirs('a', exists=True)\nDataLoader([1], sampler=None, shufle=True)\n"
    assert [m.rpartition(": ")[2] for m in found(wrong, text)] == [
        "n is missing",
        "2 arguments by position where it takes 1",
        "it has no parameter exists",
        "it has no parameter shufle",
    ]


def test_a_function_that_is_handed_more_than_the_call_shows_is_not_bound() -> None:
    text = HEAD + "class Rows(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, rows):\n        return rows\n\n\n"
    assert found(text + "Rows.apply(torch.ones(2))\n", text) == []


@pytest.mark.parametrize("path", signatures.LIBRARY)
def test_the_signatures_of_libraries_are_theirs(path: str) -> None:
    """Every parameter that a library has is listed, in its place; other versions may have fewer."""
    thing = {"os": __import__("os"), "torch": torch}[path.partition(".")[0]]
    for part in path.split(".")[1:]:
        thing = getattr(thing, part)
    theirs = list(inspect.signature(thing).parameters.values())
    spec = signatures.LIBRARY[path]
    listed = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    names = [p.name for p in theirs if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    assert [n for n in listed if n in names] == names
    keywords = {p.name for p in theirs if p.kind is p.KEYWORD_ONLY}
    assert keywords <= {a.arg for a in spec.kwonlyargs} | set(listed)


# --- the order of the group and of what asks for it ----------------------------------------------------------------------

WORK = "dataset = TensorDataset(torch.ones(8, 2))\nsampler = DistributedSampler(dataset)\n"
EARLY = {
    "a sampler above the join": (WORK + "init_distributed()\n", "DistributedSampler runs before"),
    "a wrapper above the join": (
        "net = DistributedDataParallel(torch.nn.Linear(2, 1))\ninit_distributed()\n",
        "DistributedDataParallel runs",
    ),
    "a collective above the join": ("dist.barrier()\ninit_distributed()\n", "dist.barrier runs before"),
    "a join on one path": ("if os.environ:\n    init_distributed()\n" + WORK, "DistributedSampler runs before"),
    "a join in a function that is called below": (
        "def main():\n    sampler = DistributedSampler(TensorDataset(torch.ones(8, 2)))\n    init_distributed()\n\n\nmain()\n",
        "DistributedSampler runs before",
    ),
    "in a default argument": ("def f(n=dist.get_world_size()):\n    return n\n\n\ninit_distributed()\nf()\n", "dist.get_world_size runs"),
    "in a class body": ("class A:\n    n = dist.get_rank()\n\n\ninit_distributed()\n", "dist.get_rank runs before"),
    "in a decorator": (
        "def on(n):\n    return lambda f: f\n\n\n@on(dist.get_rank())\ndef f():\n    pass\n\n\ninit_distributed()\n",
        "dist.get_rank runs before",
    ),
    "through a helper": ("total = sum_over_ranks(1)\ninit_distributed()\n", "dist.get_world_size runs before"),
    "in a loop that may not run": ("for _ in range(int('3')):\n    init_distributed()\ndist.barrier()\n", "dist.barrier runs before"),
}  # fmt: skip
LATE = {
    "below": "init_distributed()\n" + WORK,
    "in a function that is called below": "def main():\n    dist.barrier()\n\n\ninit_distributed()\nmain()\n",
    "by a function that joins": "def start():\n    init_distributed()\n    return 1\n\n\nstart()\ndist.barrier()\n",
    "on both paths": "if os.environ:\n    init_distributed()\nelse:\n    dist.init_process_group('gloo')\ndist.barrier()\n",
    "by a method": "class A:\n    def __init__(self):\n        init_distributed()\n\n\nA()\ndist.barrier()\n",
}


@pytest.mark.parametrize("title", EARLY)
def test_what_asks_for_the_group_too_early_is_told(title: str) -> None:
    text, message = EARLY[title]
    assert [m for m in found(HEAD + JOIN + HELPERS + text) if f" {message}" in m] != []


@pytest.mark.parametrize("title", LATE)
def test_what_asks_for_the_group_in_time_is_not(title: str) -> None:
    assert [m for m in found(HEAD + JOIN + HELPERS + LATE[title]) if "process group" in m] == []


def test_a_module_that_asks_when_it_is_imported_is_told() -> None:
    texts = {"rows": ("", "import torch.distributed as dist\n\nsize = dist.get_world_size()\n")}
    early = found(HEAD + JOIN + "import rows\ninit_distributed()\n", "", texts)
    assert early == ["rows.py (converted):3 dist.get_world_size runs before the process group is joined"]
    assert found(HEAD + JOIN + "init_distributed()\nimport rows\n", "", texts) == []
    texts["sets"] = ("", "import rows\n")
    assert found(HEAD + JOIN + "import sets\ninit_distributed()\n", "", texts) == early
    assert found(HEAD + JOIN + "init_distributed()\nimport sets\n", "", texts) == []


# --- processes beside the ranks ------------------------------------------------------------------------------------------

ROWS = "class Rows(Dataset):\n    def __len__(self):\n        return 8\n    def __getitem__(self, i):\n        {0}\n        return i\n\n\n"
CHILDREN = {
    "a process": "def work():\n    dist.barrier()\n\n\nmp.Process(target=work).start()\n",
    "what a process calls": "def inner():\n    return sum_over_ranks(1)\ndef work():\n    inner()\n\n\nmp.Process(target=work).start()\n",
    "a pool": "def work(n):\n    return sum_over_ranks(n)\n\n\nmp.Pool(2).map(work, [1, 2])\n",
    "an executor": "def work(n):\n    return sum_over_ranks(n)\n\n\nwith ProcessPoolExecutor() as pool:\n    pool.submit(work, 1)\n",
    "a process of a class": "class Work(mp.Process):\n    def run(self):\n        dist.barrier()\n\n\nWork().start()\n",
    "a data set": ROWS.format("dist.barrier()") + "DataLoader(Rows(), num_workers=2)\n",
    "a collate function": "def put(rows):\n    dist.barrier()\n    return rows\n\n\nDataLoader([1], num_workers=2, collate_fn=put)\n",
    "the start of a worker": "def start(i):\n    dist.barrier()\n\n\nDataLoader([1], num_workers=2, worker_init_fn=start)\n",
}
RANKS_OWN = {
    "a loader without workers": ROWS.format("dist.barrier()") + "DataLoader(Rows(), num_workers=0)\n",
    "a process that does not ask": "def work():\n    return 1\n\n\nmp.Process(target=work).start()\ndist.barrier()\n",
    "a thread": "import threading\ndef work():\n    dist.barrier()\n\n\nthreading.Thread(target=work).start()\n",
}
STARTED = (
    HEAD
    + "import torch.multiprocessing as mp\nfrom concurrent.futures import ProcessPoolExecutor\n"
    + JOIN
    + HELPERS
    + "init_distributed()\n"
)


@pytest.mark.parametrize("title", CHILDREN)
def test_a_process_that_never_joined_is_told(title: str) -> None:
    assert [m for m in found(STARTED + CHILDREN[title]) if "never joined" in m] != []


@pytest.mark.parametrize("title", RANKS_OWN)
def test_a_rank_of_the_group_is_not(title: str) -> None:
    assert [m for m in found(STARTED + RANKS_OWN[title]) if "never joined" in m] == []


# --- ranks that go in turn -----------------------------------------------------------------------------------------------

TURNS = (
    "from contextlib import contextmanager\n"
    + HEAD
    + JOIN
    + HELPERS
    + "@contextmanager\ndef first_on_node():\n"
    + "    if rank != 0:\n        dist.barrier()\n    yield\n    if rank == 0:\n        dist.barrier()\n\n\n"
    + "def inner():\n    return sum_over_ranks(1)\n\n\ninit_distributed()\nrank = dist.get_rank()\n"
)
IN_TURN = {
    "a collective": "with first_on_node():\n    dist.barrier()\n",
    "what leads to a collective": "with first_on_node():\n    if True:\n        n = inner()\n",
}
NOT_IN_TURN = {
    "before and after": "inner()\nwith first_on_node():\n    print(1)\ninner()\n",
    "turns within turns": "with first_on_node():\n    with first_on_node():\n        print(1)\n",
}


@pytest.mark.parametrize("title", IN_TURN)
def test_a_collective_where_ranks_go_in_turn_is_told(title: str) -> None:
    assert len([m for m in found(TURNS + IN_TURN[title]) if "in turn" in m]) == 1


@pytest.mark.parametrize("title", NOT_IN_TURN)
def test_a_collective_beside_turns_is_not(title: str) -> None:
    assert [m for m in found(TURNS + NOT_IN_TURN[title]) if "in turn" in m] == []


# --- kinds ---------------------------------------------------------------------------------------------------------------

KINDS = {
    "a tuple of rows": ("from_all_ranks((torch.ones(2), torch.ones(2)))", "from_all_ranks takes a tensor, and is given a tuple here"),
    "a list of numbers": ("sum_over_ranks([1, 2])", "takes an array or a number or a tensor, and is given a list here"),
    "a dict": ("sum_over_ranks({'a': 1})", "and is given a dict here"),
    "a text": ("sum_over_ranks('1')", "and is given a text here"),
    "None": ("sum_over_ranks(None)", "and is given None here"),
    "a function": ("sum_over_ranks(len)", "and is given a function here"),
    "what a model gives": ("from_all_ranks(Two()(torch.ones(2, 2)))", "and is given a tuple here"),
}
TWO = "class Two(torch.nn.Module):\n    def forward(self, x):\n        return x, x + 1\n\n\n"


@pytest.mark.parametrize("title", KINDS)
def test_an_argument_of_another_kind_is_told(title: str) -> None:
    call, message = KINDS[title]
    assert [m for m in found(HEAD + JOIN + HELPERS + TWO + f"init_distributed()\n{call}\n") if message in m] != []


@pytest.mark.parametrize(
    "call", ["sum_over_ranks(1)", "sum_over_ranks(torch.ones(2))", "from_all_ranks(torch.ones(2))", "sum_over_ranks(0.5 * 2)"]
)
def test_an_argument_of_its_kind_is_not(call: str) -> None:
    assert found(HEAD + JOIN + HELPERS + TWO + f"init_distributed()\n{call}\n", HEAD) == []


def test_a_list_or_a_dict_is_no_dict_alone() -> None:
    list_, dict_ = (just(New(path, ast.Constant(0), ())) for path in ("list", "dict"))
    assert misfits(dict_, frozenset(("list", "tensor"))) == ["dict"]
    assert misfits(list_ | dict_, frozenset(("list", "tensor"))) == []
    assert misfits(list_ | dict_, frozenset(("tensor",))) == ["dict", "list"]


# --- all of it, of every conversion --------------------------------------------------------------------------------------


def test_a_conversion_whose_text_cannot_run_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.install(monkeypatch, rewrite=lambda text, tree, changes: (text.replace("32", "per_rank(32)"), ()))
    done = convert(fakes.SCRIPT)
    assert done.exit_code == 1
    assert [(f.code, f.message) for f in done.findings] == [("DDP904", "per_rank is bound nowhere")]
    (part,) = [done.without([c.id]) for c in done.changes if c.without] or [done]
    assert part.exit_code == 1
