"""One request, run every way: what is not as it should be."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from engine import EngineError, certify
from engine.codegen.native.machine_code import KernelStore
from engine.compiler.plan import Plan
from engine.runtime.interpreter import Executor
from service.core.errors import Refusal
from tests.fuzz.asking import Other, Planned, Refused, planned, refused
from tests.fuzz.differing import Feeds, Tolerated, first_difference
from tests.fuzz.drawing import LIMITS
from tests.fuzz.graphs import Request
from tests.fuzz.tiers import Way, ways
from tests.fuzz.values import Array

#: elements of results that are kept with a request
FEW: Final = 64


@dataclass(frozen=True)
class Raised:
    """What no caller should see, and where it comes from."""

    said: str
    places: str = field(compare=False)


Answer = list[Array] | Refused | Raised


class Finding(NamedTuple):
    """The way that went wrong, and how."""

    way: str
    said: str


@dataclass
class Tried:
    """What came of a request: findings, which ops were run which way, and what it was refused with.

    `results` are those of NumPy step by step, where they are few.
    """

    findings: list[Finding] = field(default_factory=list)
    ran: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: Refused | None = None
    results: list[Array] = field(default_factory=list)


def try_request(request: Request, chosen: Iterable[Way], store: KernelStore, results: Sequence[Array] = ()) -> Tried:
    """Plan it, and run it these ways beside NumPy step by step; which is to give these results, where there are any."""
    try:
        asked = planned(request)
    except (EngineError, Refusal) as error:
        return Tried(refused=refused(error))
    except Exception as error:  # noqa: BLE001 - as below
        return Tried([Finding("planning", f"{_raised(error)}")])
    trial = _Trial(asked, store)
    trial.hold_to(results)
    for way in chosen:
        trial.run(way)
    return trial.tried


class _Trial:
    """The ways of one plan, one after the other."""

    def __init__(self, asked: Planned, store: KernelStore) -> None:
        self.tried = Tried()
        self._asked, self._store = asked, store
        first = ways()[0]
        self._expected = _answer(first.executor(store), asked.plan, asked.feeds)
        self._families: dict[str, Answer] = {}
        self._tolerated = None
        if isinstance(self._expected, Raised):
            self._hold(first.name, str(self._expected))
        elif isinstance(self._expected, Refused):
            self.tried.refused = self._expected
        elif isinstance(self._expected, list):
            self._tolerated = Tolerated(asked.plan, asked.feeds, self._expected)
            if sum(array.size for array in self._expected) <= FEW:
                self.tried.results = self._expected
            for name, other in asked.others.items():
                self._hold(name, self._beside(_answer(first.executor(store), other.plan, other.feeds), other))

    def hold_to(self, results: Sequence[Array]) -> None:
        """See that NumPy's results are these, if any are given."""
        if self._tolerated is not None and results:
            self._hold(ways()[0].name, self._tolerated.difference(results))

    def run(self, way: Way) -> None:
        """One way: as often as it says, each time alike, but for what changes while kernels arrive."""
        instead = way.instead(self._asked.plan)
        if instead is None:
            return
        self.tried.ran.update((step.origin.op, way.name) for step in self._asked.plan.steps if step.origin)
        executor = way.executor(self._store)
        try:
            answers = [_answer(executor, instead, self._asked.feeds) for _ in range(way.runs // 2 or 1)]
            executor.settle()
            later = [_answer(executor, instead, self._asked.feeds) for _ in range(way.runs - len(answers))]
            if self._asked.check is not None:
                _certificate(executor, self._asked)
        finally:
            executor.close()
        for answer in (*answers[:1], *later[:1]):
            self._hold(way.name, self._apart(answer, way.likeness))
        same = later if way.family.startswith("fast") else [*answers, *later]
        self._hold(way.name, _unlike(same))
        self._hold(way.name, _unlike([self._families.setdefault(way.family, answers[0]), answers[0]]))

    def _apart(self, answer: Answer, likeness: str) -> str | None:
        """How an answer differs from what it should be."""
        expected = self._expected
        if not isinstance(answer, list) or not isinstance(expected, list):
            return None if answer == expected else f"{_said(answer)}, and not {_said(expected)}"
        if likeness == "bits":
            return first_difference(answer, expected)
        assert self._tolerated is not None
        return self._tolerated.difference(answer)

    def _beside(self, answer: Answer, other: Other) -> str | None:
        """How a plan that says the same differs from what is expected."""
        assert isinstance(self._expected, list)
        if not isinstance(answer, list):
            return None if other.finite else self._apart(answer, "close")
        found = answer if other.at is None else [answer[k] for k in other.at]
        if other.finite:
            found = [_where_finite(x, y) for x, y in zip(found, self._expected, strict=True)]
        return self._apart(found, "close")

    def _hold(self, way: str, *said: str | None) -> None:
        found = [Finding(way, each) for each in said if each is not None]
        self.tried.findings += [finding for finding in found if finding not in self.tried.findings]


def _answer(executor: Executor, plan: Plan, feeds: Feeds) -> Answer:
    try:
        return [array.copy() for array in executor.run(plan, feeds)]
    except EngineError as error:
        return refused(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        return _raised(error)


def _where_finite(found: Array, expected: Array) -> Array:
    """What was found; what is expected, where that is not finite."""
    if found.dtype.kind not in "fc" or found.shape != expected.shape:
        return found
    return np.where(np.isfinite(found), found, expected).astype(found.dtype)


def _raised(error: Exception) -> Raised:
    places = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)[-4:]]
    return Raised(f"{type(error).__name__}: {error}", ", ".join(places))


def _certificate(executor: Executor, asked: Planned) -> None:
    assert asked.check is not None
    task = asked.check
    with suppress(EngineError):  # an index that is computed in wider floats is another
        certify(executor, task.program, task.feeds, task.call, task.directions, task.tolerance, LIMITS)


def _unlike(answers: Sequence[Answer]) -> str | None:
    """Where answers that should be the same to the last bit are not."""
    for one, other in pairwise(answers):
        if not isinstance(one, list) or not isinstance(other, list):
            if one != other:
                return f"again: {_said(other)}, and not {_said(one)}"
        elif (difference := first_difference(other, one)) is not None:
            return f"again: {difference}"
    return None


def _said(answer: Answer) -> str:
    return "an answer" if isinstance(answer, list) else str(answer)
