"""What all tests share: applications in this process, servers in processes of their own, Hypothesis without clocks.

The service is imported by the fixtures that need it: on a machine that has only the engine, its tests still run.
"""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from tests.engine.ir.verified import verified
from tests.engine.printers import PRINTER, printing
from tests.sampling import sample_of_product

if TYPE_CHECKING:
    import httpx

# What the tests compile is theirs: they neither read nor write the cache of the person who runs them.
os.environ["GRADSERVE_CACHE_DIR"] = "none"
# And so is what their servers keep.
os.environ["GRADSERVE_STATE"] = "memory"

# Hundreds of processes are started here: where the environment has this, each compiled all of its modules anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

ROOT = Path(__file__).parents[1]
ANNOUNCEMENT = "gradserve listening on "

# Shared machines stall for longer than any deadline that would catch a slow test. The examples are the same in every
# run, so that a change is judged by what it changes; `--hypothesis-profile=explore` draws new ones.
_SLOW = [HealthCheck.too_slow]
settings.register_profile("same", deadline=None, suppress_health_check=_SLOW, derandomize=True)
settings.register_profile("explore", deadline=None, suppress_health_check=_SLOW)
settings.load_profile("same")


# Plans are large and rarely garbage: at Python's own threshold the collector took an eighth of a run.
gc.set_threshold(100_000, 20, 100)

#: the line of a file whose tests are all slow
_ALL_SLOW = "\npytestmark = pytest.mark.slow\n"
#: `--fast` runs the first case of a test, and one in so many of the others
_ONE_OF = 32
#: `make test` runs a quarter of the cases of an engine's or client's test that has more than this
_MANY = 6


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose tests; without one, the fixed set of `make test` runs."""
    parser.addoption("--fast", action="store_true", help="run the set without smokes, and a sample of its cases")
    parser.addoption("--rooms", default="", help="run all tests of these folders too, such as 'store cluster'")
    parser.addoption("--slow", action="store_true", help="run slow tests too")
    parser.addoption("--all", action="store_true", help="run slow tests, all cases and the whole corpus of kernels")
    parser.addoption("--guarantees", action="store_true", help="run the timed tests of the guarantees, and no others")


def left_out(config: pytest.Config, path: Path) -> set[str]:
    """Return the marks of tests in this file that the options leave out; a test named on the command line runs."""
    rooms = {*config.getoption("--rooms").split()}
    named = any("::" in argument for argument in config.args)
    whole = named or config.getoption("--all") or config.getoption("--guarantees")
    if whole or rooms & {*path.parts[len(ROOT.parts) :]}:
        return set()
    return {"bounds", "exhaustive"} | (set() if config.getoption("--slow") else {"slow"})


def is_chosen(marks: set[str], out: set[str], fast: bool) -> bool:
    """Return whether a test with these marks runs. A smoke test is slow, and in the fixed set nevertheless."""
    return marks.isdisjoint(out - {"slow"} if "smoke" in marks and not fast else out)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file whose tests are all left out: collecting is a fifth of a run."""
    if collection_path.suffix != ".py" or "slow" not in left_out(config, collection_path):
        return None
    text = collection_path.read_text("utf-8")
    return True if _ALL_SLOW in text and ("mark.smoke" not in text or config.getoption("--fast")) else None


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None, object, object]:
    """Make no items of the cases that `make test` leaves out, by marks or by samples, nor of most with `--fast`."""
    result = yield
    out, fast = left_out(metafunc.config, Path(str(metafunc.module.__file__))), metafunc.config.getoption("--fast")
    cases = [case for case in metafunc._calls if is_chosen({mark.name for mark in case.marks}, out, fast)]
    if "slow" in out:
        sample = sample_of_product([tuple(case.indices.values()) for case in cases])
        cases = [case for case in cases if tuple(case.indices.values()) in sample]
        # The contract tests cover every op; the rooms of the engine and the client need not repeat that.
        if metafunc.definition.nodeid.startswith(("tests/engine/", "clients/python/")) and len(cases) > _MANY:
            cases = some_of(cases, 4)
    if fast:
        cases = some_of(cases, _ONE_OF)
    metafunc._calls[:] = cases or metafunc._calls[:1]
    return result


def some_of(cases: list[Any], one_of: int) -> list[Any]:
    """Return the first case, and one in so many of the others."""
    return cases[:1] + [case for case in cases[1:] if in_sample(case.id, one_of)]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Pause the collector: all that is collected stays, and looking for garbage in it took a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that the options leave out."""
    measured, fast = config.getoption("--guarantees"), config.getoption("--fast")
    seen: set[str] = set()
    chosen: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        runs = ("guarantee" in marks) == measured and (measured or is_chosen(marks, left_out(config, item.path), fast))
        (chosen if runs and not (fast and not is_quick(item, seen)) else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = chosen


def is_quick(item: pytest.Item, seen: set[str]) -> bool:
    """Return whether `--fast` runs it, given the tests that have run a case. The sample is the same every time."""
    test, _, case = item.nodeid.removesuffix("]").partition("[")
    if test in seen:
        return in_sample(case, _ONE_OF)
    seen.add(test)
    return True


def in_sample(case: str, one_of: int) -> bool:
    """Return whether a case is among the one of so many that run, given its id inside the brackets."""
    return crc32(case.encode()) % one_of == 0


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Verify graphs as they are built, and run plans by the printer that the environment names.

    Freeze the tens of thousands of tests and their modules: a full collection that visits them takes longer than most
    tests that ask for one. All of this is done once, because a fixture for every test costs each of them something.
    """
    gc.collect()
    gc.freeze()
    with verified(all_graphs="slow" not in left_out(session.config, ROOT)), printing(PRINTER):
        return (yield)


@pytest.fixture
def own_garbage() -> None:
    """Collections that the test asks for look at what it makes itself: all that was there before is left out."""
    gc.freeze()


class Client:
    """Requests to an application in this process, one after the other."""

    def __init__(self, app: Any) -> None:
        import httpx

        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._http = httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60)
        self._runner = asyncio.Runner()

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send one request, and wait for the answer."""
        return self._runner.run(self._http.request(method, path, **options))

    def get(self, path: str, **options: Any) -> httpx.Response:
        """GET."""
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        """POST."""
        return self.request("POST", path, **options)

    def close(self) -> None:
        """End the event loop."""
        self._runner.run(self._http.aclose())
        self._runner.close()


@pytest.fixture(scope="session")
def make_client() -> Iterator[Callable[..., Client]]:
    """Makes clients of applications in this process, with settings of one's own.

    Unless a test asks for them, nothing is compiled behind their backs: a plan that the tests together made hot would
    change its last bits between two answers that one of them compares.
    """
    from service.core.settings import Settings
    from tests.service.application import create_app

    made: list[Client] = []

    def make(**stated: Any) -> Client:
        made.append(Client(create_app(Settings(**{"device": "cpu", "compile": "off", **stated}))))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture(scope="session")
def client(make_client: Callable[..., Client]) -> Client:
    """A client of an application with the default settings, in this process."""
    return make_client()


@dataclass
class RunningServer:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    url: str

    @property
    def address(self) -> tuple[str, int]:
        """Host and port, for sockets."""
        parsed = urlsplit(self.url)
        return parsed.hostname or "", parsed.port or 80


@contextmanager
def servers() -> Iterator[Callable[..., RunningServer]]:
    """Starts servers on free ports, and stops them at the end of the block."""
    started: list[subprocess.Popen[str]] = []

    def start(*options: str) -> RunningServer:
        command = [sys.executable, "-m", "service", "--port", "0", "--device", "cpu", *options]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "GRADSERVE_LOG_LEVEL": "error"}
        )
        started.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(ANNOUNCEMENT), line
        return RunningServer(process, line.removeprefix(ANNOUNCEMENT).strip())

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture(scope="module")
def start_server() -> Iterator[Callable[..., RunningServer]]:
    """Starts servers on free ports, and stops them at the end of the module."""
    with servers() as start:
        yield start


@pytest.fixture(scope="module")
def server(start_server: Callable[..., RunningServer]) -> RunningServer:
    """A server with the default settings."""
    return start_server()
