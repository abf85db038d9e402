"""Mutation testing: does some test fail for every small mistake in the code?

The tests are collected once, by pytest in this process. Each is run once to see which functions it calls. Then each
mutant gets a fork of this process, in which the tests run that call what it changed, until one fails: those first
that noticed other mistakes in its file, for half of the time, then those in the file of tests about it, those that name
it or its op, those about its room, and the quick ones. Nothing is written: a mutant exists in the memory of its process
only.

Prints every mutant that no test noticed, and how many were killed. A survivor is no fault by itself: many are another
way to the same numbers.
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
from typing import Any, TextIO

import pytest
from hypothesis import Phase, settings

from engine import registry
from engine.ir.graph import RuleCache
from scripts.mutants_apply import FunctionKey, Live, NotApplied, alive, apply, changed, key_of
from scripts.mutants_find import KINDS, Mutant, find_mutants
from tests.contract.cases import forget

ROOT = Path(__file__).parents[1]
ROOMS = ("engine/autodiff", "engine/ops", "engine/compiler", "service/api", "service/store")
TESTS = (
    "tests/golden",
    "tests/contract",
    "tests/engine",
    "tests/spec/test_opset.py",
    "tests/service/api",
    "tests/service/store",
)
OPTIONS = ("-oaddopts=--import-mode=importlib", "--assert=plain", "-s", "-pno:cacheprovider", "-pno:terminal")
#: these hold the declarations of ops, and may call no function of theirs
DECLARATIONS = ("tests/spec/", "tests/golden/", "tests/contract/test_documentation.py")
MEMORY = 8 << 30
TOO_LONG = "(a process that ended or took too long)"
FORK = multiprocessing.get_context("fork")


@dataclass
class Measured:
    """What one test calls, and the processor time it takes in seconds."""

    called: set[FunctionKey]
    seconds: float


@dataclass
class Tally:
    """How the mutants fared."""

    tried: Counter[str] = field(default_factory=Counter)
    killed: Counter[str] = field(default_factory=Counter)
    survivors: list[Mutant] = field(default_factory=list)

    def add(self, mutant: Mutant, killer: str | None) -> None:
        """Count one mutant; `killer` is the test that noticed it."""
        self.tried[mutant.kind] += 1
        if killer is None:
            self.survivors.append(mutant)
        else:
            self.killed[mutant.kind] += 1

    @property
    def rate(self) -> float:
        """Killed of all, 0 to 1."""
        return self.killed.total() / max(self.tried.total(), 1)


def forked(works: Iterable[Callable[[], Any]], at_once: int) -> Iterator[tuple[int, Any]]:
    """What each of `works` returns or raises in a process of its own, with its number, as they end.

    EOFError where the process died. Takes the next of `works` when there is room for it.
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
    """A plugin of pytest that counts what failed."""

    count = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Setting up, running and tearing down report alike."""
        self.count += report.failed


def passes(item: pytest.Item) -> bool:
    """Run one test; whether it did not fail."""
    forget()  # what was made before the mistake was there
    failures, plugins = Failures(), item.config.pluginmanager
    plugins.register(failures)
    try:
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
    finally:
        plugins.unregister(failures)
    return not failures.count


def remembering(modules: Sequence[ModuleType]) -> list[Callable[[], None]]:
    """What lets go of what rules have made for tests before, so that a test calls them, and is known to.

    A rule's memory is the process's; a function of `modules` may have one of its own.
    """
    names = {module.__name__ for module in modules}
    objects = gc.get_objects()
    own = [o.cache_clear for o in objects if isinstance(o, type(cache(len))) and o.__module__ in names]
    return [*own, *(o.entries.clear for o in objects if isinstance(o, RuleCache))]


def measure(items: Sequence[pytest.Item], modules: Sequence[ModuleType]) -> list[Measured]:
    """Run each test once. Raises AssertionError that names those which fail without any mutant."""
    files = {module.__file__ for module in modules}
    key = cache(key_of)  # one object for all tests: a function is called by thousands
    found, failing = [], []
    gc.unfreeze()  # what is frozen is not told
    lets_go = remembering(modules)
    gc.freeze()
    for item in items:
        for let_go in lets_go:
            let_go()
        start = time.process_time()
        # written in C: a function of Python's that is told of each call takes longer than most of the calls
        with Profile(subcalls=False, builtins=False) as profile:
            passed = passes(item)
        if not passed:
            failing.append(item.nodeid)
        called = [entry.code for entry in profile.getstats() if isinstance(entry.code, CodeType)]
        keys = {key(code) for code in called if code.co_filename in files}
        found.append(Measured(keys, time.process_time() - start))
    if failing:
        raise AssertionError(f"{', '.join(failing)}: failing as it is")
    return found


def measure_all(items: Sequence[pytest.Item], modules: Sequence[ModuleType], at_once: int) -> list[Measured]:
    """The same in several processes. Raises what one of them raises."""
    found: list[Any] = [None] * len(items)
    for number, part in forked([partial(measure, items[i::at_once], modules) for i in range(at_once)], at_once):
        if isinstance(part, Exception):
            raise part
        found[number::at_once] = part
    return found


@dataclass
class Session:
    """The tests, what they call, and the modules that are mutated. A plugin of pytest: it runs them its own way."""

    chosen: argparse.Namespace
    stream: TextIO
    tally: Tally = field(default_factory=Tally)
    items: list[pytest.Item] = field(default_factory=list)
    #: the processor time of each test, in seconds
    seconds: list[float] = field(default_factory=list)
    live: Live = field(default_factory=dict)
    #: the numbers of the tests that call a function
    callers: dict[FunctionKey, list[int]] = field(default_factory=dict)
    #: how many mutants of a file a test noticed
    noticed: Counter[tuple[Path, str]] = field(default_factory=Counter)

    def pytest_collection(self) -> None:
        """Random tests draw the same examples each time, and need not look for the smallest that fails."""
        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("mutants", database=None, derandomize=True, deadline=None, phases=phases)
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of running each test once."""
        registry()  # loads all ops, whatever the tests have loaded
        packages = tuple(f"{room.strip('/').replace('/', '.')}." for room in self.chosen.rooms)
        modules = [module for name, module in sorted(sys.modules.items()) if name.startswith(packages)]
        paths = [Path(str(m.__file__)) for m in modules]
        self.items, self.live = session.items, alive(paths)
        gc.freeze()
        self.measure(measure_all(self.items, modules, self.chosen.jobs))
        self.say(f"{len(self.items)} tests, {sum(self.seconds):.0f} s")
        pairs = [(m, module) for module, path in zip(modules, paths, strict=True) for m in self.mutants(path)]
        works = (partial(self.killer, mutant, module) for mutant, module in pairs)
        for number, found in forked(works, self.chosen.jobs):
            self.note(pairs[number][0], found)
        return True

    def measure(self, measured: Sequence[Measured]) -> None:
        """Take over what each test calls, by what is called: every mutant asks."""
        callers = defaultdict(list)
        for number, each in enumerate(measured):
            for key in each.called:
                callers[key].append(number)
        self.callers, self.seconds = dict(callers), [each.seconds for each in measured]

    def mutants(self, path: Path) -> list[Mutant]:
        """Those of a file that were asked for."""
        return [m for m in find_mutants(path) if any(text in f"{m.kind} {m}" for text in self.chosen.only)]

    def note(self, mutant: Mutant, found: str | Exception | None) -> None:
        """Count one mutant, and say how it went. `found` is the test that failed, or how its process ended."""
        if isinstance(found, Exception) and not isinstance(found, EOFError):
            raise found
        killer = TOO_LONG if isinstance(found, EOFError) else found
        self.tally.add(mutant, killer)
        self.noticed[mutant.path, killer or ""] += 1
        if self.chosen.verbose or killer is None:
            self.say(f"{'SURVIVED' if killer is None else 'killed'} {mutant.kind} {mutant} {killer or ''}")

    def killer(self, mutant: Mutant, module: ModuleType) -> str | None:
        """The test that fails for it, or None. Run this in a process of its own."""
        tests = self.concerned(mutant)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
        try:
            apply(mutant, module, self.live)
        except NotApplied:
            raise
        except Exception as error:  # noqa: BLE001 - what a constant of the module makes of the mistake
            return f"(the module does not load: {error})"
        for seconds, item in tests:
            limit = ceil(time.process_time() + 10 + 10 * seconds)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
            if not passes(item):
                return item.nodeid
        return None

    def concerned(self, mutant: Mutant) -> list[tuple[float, pytest.Item]]:
        """The tests that call the function it changes, with their time; of a declaration, those of its module.

        A function that no test calls is part of one: its module makes a constant with it, as it loads. What others
        read there calls nothing of it: tests that name it count as well.
        """
        keys, path, names = list(changed(mutant)), mutant.path, [*_names(mutant)]
        called = self.callers.get(keys[-1]) if keys else None
        numbers = self.declaring(path, names) if called is None else called
        pairs = [(self.seconds[number], self.items[number]) for number in numbers]
        pairs.sort(key=lambda pair: (_distance(pair[1].nodeid, path, names), pair[0]))
        noticed = {name: times for (of, name), times in self.noticed.items() if of == path}
        sharp = sorted((pair for pair in pairs if pair[1].nodeid in noticed), key=lambda pair: -noticed[pair[1].nodeid])
        first = _within(sharp, self.chosen.seconds / 2)  # what is about it has its turn, whatever noticed others
        taken = {id(item) for _, item in first}
        return _within([*first, *(pair for pair in pairs if id(pair[1]) not in taken)], self.chosen.seconds)

    def declaring(self, path: Path, names: Sequence[str]) -> set[int]:
        """The tests that call anything of a file, that hold declarations, and that name it or one of its ops."""
        calling = {number for key, found in self.callers.items() if key.file == str(path) for number in found}
        ids = enumerate(item.nodeid for item in self.items)
        return calling | {i for i, name in ids if name.startswith(DECLARATIONS) or _distance(name, path, names) < 2}

    def say(self, line: str) -> None:
        """Print at once: a run takes long."""
        print(line, file=self.stream, flush=True)


def _within(pairs: Iterable[tuple[float, pytest.Item]], most: float) -> list[tuple[float, pytest.Item]]:
    """Tests, as they come, that fit into this time of one mutant."""
    total, kept = 0.0, []
    for pair in pairs:
        if total + pair[0] <= most:
            total += pair[0]
            kept.append(pair)
    return kept


def _names(mutant: Mutant) -> Iterator[str]:
    """What a test about it has in its name: its file, or the op that the mutated class is; outside of one, any op."""
    yield mutant.path.stem
    classes = [statement for statement in mutant.tree.body if isinstance(statement, ast.ClassDef)]
    inside = [statement for statement in classes if statement.name in mutant.slot.scope[:1]]
    for line in (line for statement in inside or classes for line in statement.body):
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "name":
            yield str(ast.literal_eval(line.value))


def _distance(test: str, path: Path, names: Sequence[str]) -> int:
    """0 of a test in the file that is about a mutant's, 1 where its name is about it, 2 about its room, 3 of others."""
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
    """What the command line takes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    only = "mutants whose line has one of these: “ops/sum”, “sign ”"
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help=only)
    parser.add_argument("--rooms", nargs="+", default=ROOMS, metavar="PATH", help="folders whose files are changed")
    parser.add_argument("--tests", nargs="+", default=TESTS, metavar="PATH", help="what to run; all that call the ops")
    parser.add_argument("--seconds", type=int, default=30, help="processor time of tests that one mutant may take")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time; one for each core")
    parser.add_argument("--verbose", action="store_true", help="print killed mutants, too, with the test")
    return parser


def main() -> int:
    """Return status 0, or 2 if the tests cannot run."""
    chosen = options().parse_args()
    session = Session(chosen, sys.stdout)
    status = pytest.main([*OPTIONS, *(str(ROOT / path) for path in chosen.tests)], plugins=[session])
    if status != pytest.ExitCode.OK or not session.tally.tried:
        print("no mutant was tried; do the tests pass as they are?")
        return 2
    print(*report(session.tally), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
