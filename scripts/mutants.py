"""Mutation testing: does some test fail for every small fault in the code?

pytest collects the tests once, in this process. Each test runs once, to record the functions that it calls. Then each
mutant gets a fork of this process, which runs the tests that call the changed function until one fails. Tests that
killed other mutants of the file come first, for half of the time, then those in the test file of the same name, those
that name the file or its op, those of its room, and quick ones. No file is written: a mutant exists only in the memory
of its process.

Prints every mutant that survived, and how many were killed. A survivor is not necessarily a fault: many mutants compute
the same numbers in another way.
"""

from __future__ import annotations

import argparse
import ast
import gc
import multiprocessing
import os
import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from cProfile import Profile
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from math import ceil
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TextIO, TypeVar

import pytest
from hypothesis import Phase, settings

from engine import registry
from engine.ir.graph import RuleCache
from scripts.mutants_apply import FunctionKey, Live, NotApplied, alive, apply, changed, key_of
from scripts.mutants_find import KINDS, Mutant, find_mutants
from tests.contract.cases import clear_caches

ROOT = Path(__file__).parents[1]
ROOMS = ("engine/autodiff", "engine/ops", "engine/compiler", "service/api", "service/store")
TESTS = (
    "tests/golden",
    "tests/contract",
    "tests/engine",
    "tests/spec/test_opset.py",
    "tests/service",
)
OPTIONS = ("-oaddopts=--import-mode=importlib", "--assert=plain", "-s", "-pno:cacheprovider", "-pno:terminal")
#: tests of the declarations of ops, which may call none of their functions
DECLARATIONS = ("tests/spec/", "tests/golden/", "tests/contract/test_documentation.py")
MEMORY = 8 << 30
TOO_LONG = "(a process that ended or took too long)"
T = TypeVar("T")
FORK = multiprocessing.get_context("fork")


@dataclass
class Measured:
    """Functions that a test calls, and its processor time in seconds."""

    called: set[FunctionKey]
    seconds: float


@dataclass
class Tally:
    """Counts of mutants, and the survivors."""

    tried: Counter[str] = field(default_factory=Counter)
    killed: Counter[str] = field(default_factory=Counter)
    survivors: list[Mutant] = field(default_factory=list)

    def add(self, mutant: Mutant, killer: str | None) -> None:
        """Count a mutant; `killer` is the test that failed for it, or None."""
        self.tried[mutant.kind] += 1
        if killer is None:
            self.survivors.append(mutant)
        else:
            self.killed[mutant.kind] += 1

    @property
    def rate(self) -> float:
        """Fraction of mutants that were killed."""
        return self.killed.total() / max(self.tried.total(), 1)


def forked(works: Iterable[Callable[[], Any]], at_once: int) -> Iterator[tuple[int, Any]]:
    """Run each of `works` in its own process, and yield its number with its result or exception, as they end.

    The result is EOFError if the process died. The next work starts when there is room for it.
    """
    running: dict[Connection, tuple[int, BaseProcess]] = {}
    waiting = enumerate(works)
    while True:
        for number, work in islice(waiting, at_once - len(running)):
            receiving, process = _start(work)
            running[receiving] = number, process
        if not running:
            return
        for receiving in [r for r in wait(list(running)) if isinstance(r, Connection)]:
            number, process = running.pop(receiving)
            yield number, _outcome(receiving, process)


def _start(work: Callable[[], Any]) -> tuple[Connection, BaseProcess]:
    receiving, sending = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_quietly, args=(work, sending))
    process.start()
    sending.close()
    return receiving, process


def _outcome(receiving: Connection, process: BaseProcess) -> Any:
    try:
        return receiving.recv()
    except EOFError as error:
        return error
    finally:
        process.join()
        receiving.close()


def _quietly(work: Callable[[], Any], sending: Connection) -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    try:
        sending.send(work())
    except Exception as error:  # noqa: BLE001 - the parent looks at it
        sending.send(error)
    os._exit(0)


class Failures:
    """pytest plugin that counts failures."""

    count = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a failure of setup, call or teardown."""
        self.count += report.failed


def passes(item: pytest.Item) -> bool:
    """Run one test, and return whether it passed."""
    clear_caches()  # drop caches from before the mutation
    failures, plugins = Failures(), item.config.pluginmanager
    plugins.register(failures)
    try:
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
    finally:
        plugins.unregister(failures)
    return not failures.count


def cache_clearers(modules: Sequence[ModuleType]) -> list[Callable[[], None]]:
    """Return functions that clear the caches of rules, so that each test calls the rules itself and is recorded.

    The rule caches belong to the process; a function of `modules` may have a cache of its own.
    """
    names = {module.__name__ for module in modules}
    objects = gc.get_objects()
    own = [o.cache_clear for o in objects if isinstance(o, type(cache(len))) and o.__module__ in names]
    return [*own, *(o.entries.clear for o in objects if isinstance(o, RuleCache))]


def measure(items: Sequence[pytest.Item], modules: Sequence[ModuleType]) -> list[Measured]:
    """Run each test once. Raises AssertionError with the tests that fail without a mutant."""
    files = {module.__file__ for module in modules}
    key = cache(key_of)  # share key objects: thousands of tests call the same function
    measurements, failing = [], []
    gc.unfreeze()  # get_objects leaves out frozen objects
    clearers = cache_clearers(modules)
    gc.freeze()
    for item in items:
        for clear in clearers:
            clear()
        start = time.process_time()
        # cProfile is written in C: a profile function in Python would take longer than most calls
        with Profile(subcalls=False, builtins=False) as profile:
            passed = passes(item)
        if not passed:
            failing.append(item.nodeid)
        called = [entry.code for entry in profile.getstats() if isinstance(entry.code, CodeType)]
        keys = {key(code) for code in called if code.co_filename in files}
        measurements.append(Measured(keys, time.process_time() - start))
    if failing:
        raise AssertionError(f"{', '.join(failing)}: failing as it is")
    return measurements


def measure_all(items: Sequence[pytest.Item], modules: Sequence[ModuleType], at_once: int) -> list[Measured]:
    """Measure in several processes. Raises any exception of theirs."""
    measurements: list[Any] = [None] * len(items)
    for number, part in forked([partial(measure, items[i::at_once], modules) for i in range(at_once)], at_once):
        if isinstance(part, Exception):
            raise part
        measurements[number::at_once] = part
    return measurements


@dataclass
class Session:
    """The tests, the functions that they call, and the mutated modules. A pytest plugin that replaces the test loop."""

    chosen: argparse.Namespace
    stream: TextIO
    tally: Tally = field(default_factory=Tally)
    items: list[pytest.Item] = field(default_factory=list)
    #: processor time of each test, in seconds
    seconds: list[float] = field(default_factory=list)
    live: Live = field(default_factory=dict)
    #: numbers of the tests that call each function
    callers: dict[FunctionKey, list[int]] = field(default_factory=dict)
    #: number of mutants that a test killed, by file and test
    noticed: Counter[tuple[Path, str]] = field(default_factory=Counter)

    def pytest_collection(self) -> None:
        """Make random tests draw the same examples each time, and skip shrinking."""
        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("mutants", database=None, derandomize=True, deadline=None, phases=phases)
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Measure the tests and run the mutants, in place of running each test once."""
        registry()  # loads all ops, whatever the tests have loaded
        packages = tuple(f"{room.strip('/').replace('/', '.')}." for room in self.chosen.rooms)
        modules = [module for name, module in sorted(sys.modules.items()) if name.startswith(packages)]
        paths = [Path(str(m.__file__)) for m in modules]
        self.items, self.live = session.items, alive(paths)
        gc.freeze()
        self.measure(measure_all(self.items, modules, self.chosen.jobs))
        self.say(f"{len(self.items)} tests, {sum(self.seconds):.0f} s")
        pairs = [(m, module) for module, path in zip(modules, paths, strict=True) for m in self.mutants(path)]
        pairs = spread(pairs, self.chosen.sample)
        works = (partial(self.killer, mutant, module) for mutant, module in pairs)
        for number, result in forked(works, self.chosen.jobs):
            self.note(pairs[number][0], result)
        return True

    def measure(self, measured: Sequence[Measured]) -> None:
        """Index the measurements by function, since every mutant looks its callers up."""
        callers = defaultdict(list)
        for number, each in enumerate(measured):
            for key in each.called:
                callers[key].append(number)
        self.callers, self.seconds = dict(callers), [each.seconds for each in measured]

    def mutants(self, path: Path) -> list[Mutant]:
        """Return the selected mutants of a file."""
        return [m for m in find_mutants(path) if any(text in f"{m.kind} {m}" for text in self.chosen.only)]

    def note(self, mutant: Mutant, result: str | Exception | None) -> None:
        """Count a mutant, and print its result.

        `result` is the failed test, or the exception that ended its process.
        """
        if isinstance(result, Exception) and not isinstance(result, EOFError):
            raise result
        killer = TOO_LONG if isinstance(result, EOFError) else result
        self.tally.add(mutant, killer)
        self.noticed[mutant.path, killer or ""] += 1
        if self.chosen.verbose or killer is None:
            self.say(f"{'SURVIVED' if killer is None else 'killed'} {mutant.kind} {mutant} {killer or ''}")

    def killer(self, mutant: Mutant, module: ModuleType) -> str | None:
        """Return the test that fails for the mutant, or None. Must run in a process of its own."""
        tests = self.concerned(mutant)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
        try:
            apply(mutant, module, self.live)
        except NotApplied:
            raise
        except Exception as error:  # noqa: BLE001 - a module constant may fail in any way with the mutation
            return f"(the module does not load: {error})"
        for seconds, item in tests:
            limit = ceil(time.process_time() + 10 + 10 * seconds)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
            if not passes(item):
                return item.nodeid
        return None

    def concerned(self, mutant: Mutant) -> list[tuple[float, pytest.Item]]:
        """Return the tests that call the mutated function, with their time; for a declaration, the tests of its module.

        If no test calls the function, it only runs when the module is loaded, to compute a constant. Tests that read
        the constant do not call the function, so tests that name the module count as well.
        """
        keys, path, names = list(changed(mutant)), mutant.path, [*_names(mutant)]
        called = self.callers.get(keys[-1]) if keys else None
        numbers = self.declaring(path, names) if called is None else called
        pairs = [(self.seconds[number], self.items[number]) for number in numbers]
        pairs.sort(key=lambda pair: (_distance(pair[1].nodeid, path, names), pair[0]))
        noticed = {name: times for (file, name), times in self.noticed.items() if file == path}
        killers = sorted(
            (pair for pair in pairs if pair[1].nodeid in noticed), key=lambda pair: -noticed[pair[1].nodeid]
        )
        first = _within(killers, self.chosen.seconds / 2)  # leave half of the time to the tests about the file
        chosen_ids = {id(item) for _, item in first}
        return _within([*first, *(pair for pair in pairs if id(pair[1]) not in chosen_ids)], self.chosen.seconds)

    def declaring(self, path: Path, names: Sequence[str]) -> set[int]:
        """Return the tests that call anything in a file, test declarations, or name the file or one of its ops."""
        calling = {number for key, numbers in self.callers.items() if key.file == str(path) for number in numbers}
        ids = enumerate(item.nodeid for item in self.items)
        return calling | {i for i, name in ids if name.startswith(DECLARATIONS) or _distance(name, path, names) < 2}

    def say(self, line: str) -> None:
        """Print a line at once, since a run takes long."""
        print(line, file=self.stream, flush=True)


def spread(mutants: Sequence[T], count: int) -> list[T]:
    """Return so many mutants, evenly spaced: the same ones for any set of tests."""
    return [mutants[i * len(mutants) // count] for i in range(count)] if count < len(mutants) else [*mutants]


def _within(pairs: Iterable[tuple[float, pytest.Item]], limit: float) -> list[tuple[float, pytest.Item]]:
    """Return tests, in order, that fit into the time of one mutant."""
    total, selected = 0.0, []
    for pair in pairs:
        if total + pair[0] <= limit:
            total += pair[0]
            selected.append(pair)
    return selected


def _names(mutant: Mutant) -> Iterator[str]:
    """Yield the names that tests about a mutant contain: its file, and the op of its class.

    Outside of a class, every op of the file counts.
    """
    yield mutant.path.stem
    classes = [statement for statement in mutant.tree.body if isinstance(statement, ast.ClassDef)]
    inside = [statement for statement in classes if statement.name in mutant.slot.scope[:1]]
    for line in (line for statement in inside or classes for line in statement.body):
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "name":
            yield str(ast.literal_eval(line.value))


def _distance(test: str, path: Path, names: Sequence[str]) -> int:
    """Return 0 for a test in the mutant's test file, 1 if its name matches, 2 if it is of its room, else 3."""
    if f"/test_{path.stem}.py::" in test:
        return 0
    if any(name in test for name in names):
        return 1
    return 2 if f"/{path.parent.name}/" in test else 3


def report(tally: Tally) -> list[str]:
    """Return the lines of the summary."""
    lines = [f"{'kind':<12}{'mutants':>8}{'killed':>8}"]
    lines += [f"{kind:<12}{tally.tried[kind]:>8}{tally.killed[kind]:>8}" for kind in KINDS]
    lines.append(f"{'all':<12}{tally.tried.total():>8}{tally.killed.total():>8}   {tally.rate:.1%}")
    return lines


def options() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    only = "mutants whose line has one of these: “ops/sum”, “sign ”"
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help=only)
    parser.add_argument("--rooms", nargs="+", default=ROOMS, metavar="PATH", help="folders whose files are changed")
    parser.add_argument("--tests", nargs="+", default=TESTS, metavar="PATH", help="what to run; all that call the ops")
    parser.add_argument("--sample", type=int, default=sys.maxsize, help="how many mutants to try")
    parser.add_argument("--all", action="store_true", help="run the tests of make test-all, and not those of make test")
    parser.add_argument("--seconds", type=int, default=30, help="processor time of tests that one mutant may take")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time; one for each core")
    parser.add_argument("--verbose", action="store_true", help="print killed mutants, too, with the test")
    return parser


def main() -> int:
    """Return status 0, or 2 if the tests cannot run."""
    chosen = options().parse_args()
    session = Session(chosen, sys.stdout)
    paths = [str(ROOT / path) for path in chosen.tests]
    status = pytest.main([*OPTIONS, *["--all"] * chosen.all, *paths], plugins=[session])
    if status != pytest.ExitCode.OK or not session.tally.tried:
        print("no mutant was tried; do the tests pass as they are?")
        return 2
    print(*report(session.tally), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
