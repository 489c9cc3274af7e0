"""Options shared by all tests."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the expected outputs anew instead of comparing with them")
    parser.addoption("--all-mutants", action="store_true", help="rehearse every mutant, not one of each mistake")
    parser.addoption("--all-projects", action="store_true", help="check the types of and start every kind of new project, not some of each")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))
