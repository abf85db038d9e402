"""Fixtures for the guarantees: a server for each file, a health probe during each attack, and recorded figures."""

from __future__ import annotations

import resource
from collections.abc import Callable, Generator, Iterator

import pytest

from tests.guarantees.figures import Figures
from tests.guarantees.probe import Seen, probing
from tests.guarantees.started import Started

HEALTH_MS = 100


@pytest.fixture(scope="session", autouse=True)
def _many_sockets() -> None:
    """Raise the limit of open files, to have room for five hundred clients."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 16384), most))


@pytest.fixture(scope="module")
def start() -> Iterator[Callable[..., Started]]:
    """A function that starts servers; they stop at the end of the module."""
    started: list[Started] = []

    def starting(*options: str) -> Started:
        started.append(Started(*options))
        return started[-1]

    yield starting
    for server in started:
        server.stop()


@pytest.fixture(scope="module")
def server(start: Callable[..., Started]) -> Started:
    """A server with default options."""
    return start()


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """The figures of this test, for the guarantee in its mark."""
    return Figures(_guarantee(request), request.node.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Function) -> Generator[None]:
    """Fail a test whose figures exceed their bounds, after it has measured all of them."""
    yield
    if "figures" in item.funcargs:
        item.funcargs["figures"].judge()


@pytest.fixture
def attacked(server: Started, request: pytest.FixtureRequest) -> Iterator[Started]:
    """A server whose health is probed until the test ends, and then checked."""
    with probing(server.address) as seen:
        yield server
    judge(seen, request.node.name.removeprefix("test_").replace("_", " "), request.node.nodeid)


def judge(seen: Seen, attack: str, test: str) -> None:
    """Check guarantee 4: `/health/live` responds within 100 ms under any load."""
    note = f"{seen.asked} requests, {seen.failed} failed {seen.reasons}; the probe itself woke {seen.late:.1f} ms late"
    note += f"; slow responses (second, ms): {sorted(seen.slow, key=lambda one: -one[1])[:8]}"
    figures = Figures(4, test)
    figures.at_most(attack, round(seen.worst, 1), HEALTH_MS, "ms", note)
    figures.judge()
    assert not seen.failed, note
    assert seen.asked, "the probe sent no request"


def _guarantee(request: pytest.FixtureRequest) -> int:
    mark = request.node.get_closest_marker("guarantee")
    assert mark is not None, "mark the test with the number of its guarantee"
    return int(mark.args[0])
