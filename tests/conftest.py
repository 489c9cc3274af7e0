"""Options shared by all tests."""

import gc
import itertools
import os

import pytest

# What takes longest is started first, and what is shared out in small parts last, so that no process is left alone in the end.
_FIRST = """
    test_verify test_verify_ends test_combinations test_scaffold_runs test_scaffold_readme test_guides test_prove test_generate
    test_verify_forks test_review_page test_messages test_ranks test_scaffold_slurm test_rules test_losses test_apply
""".split()
_LAST = "test_tables"


_OFTEN = 100  # tests from one search for garbage to the next
_ended = itertools.count(1)


def pytest_configure() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes are started: none compiles what another one has


def pytest_xdist_auto_num_workers() -> int:
    return len(os.sched_getaffinity(0)) + 1  # some tests wait: for ranks that hang, and for what is to be ended


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    parts: dict[str, int] = {}
    for item in items:
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))  # a file's tests share what they made
        parts.setdefault(_part(item), len(parts))
    items.sort(key=lambda item: (_turn(item.path.stem), parts[_part(item)]))


def _part(item: pytest.Item) -> str:
    """What one process works on alone: its tests stand together, with one process, too."""
    marker = item.get_closest_marker("xdist_group")
    assert marker
    return str(marker.args[0])


def _turn(file: str) -> int:
    return _FIRST.index(file) if file in _FIRST else len(_FIRST) + (file == _LAST)


def pytest_collection_finish() -> None:
    _collect()
    gc.disable()


def pytest_runtest_logfinish() -> None:
    if next(_ended) % _OFTEN == 0:
        _collect()


def _collect() -> None:
    """What is left is kept to the end: thousands of tests and conversions, which need not be looked through again and again."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the expected outputs anew instead of comparing with them")
    parser.addoption("--all-mutants", action="store_true", help="rehearse every mutant, not one of each mistake")
    parser.addoption("--all-projects", action="store_true", help="check the types of and start every kind of new project, not some of each")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))
