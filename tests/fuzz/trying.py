"""One request, run every way, and its findings."""

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

#: most elements of results that are stored with a request
FEW: Final = 64


@dataclass(frozen=True)
class Raised:
    """An unexpected exception, and where it was raised."""

    message: str
    places: str = field(compare=False)


Answer = list[Array] | Refused | Raised


class Finding(NamedTuple):
    """A way with a wrong outcome, and its description."""

    way: str
    message: str


@dataclass
class Tried:
    """The outcome of a request: findings, the ops that ran each way, and the refusal, if any.

    `results` are those of NumPy step by step, if they are few.
    """

    findings: list[Finding] = field(default_factory=list)
    ran: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: Refused | None = None
    results: list[Array] = field(default_factory=list)


def try_request(request: Request, chosen: Iterable[Way], store: KernelStore, results: Sequence[Array] = ()) -> Tried:
    """Plan a request, and run it these ways and by NumPy step by step, which must give these results, if any."""
    try:
        target = planned(request)
    except (EngineError, Refusal) as error:
        return Tried(refused=refused(error))
    except Exception as error:  # noqa: BLE001 - any exception is a finding
        return Tried([Finding("planning", f"{_raised(error)}")])
    trial = _Trial(target, store)
    trial.hold_to(results)
    for way in chosen:
        trial.run(way)
    return trial.tried


class _Trial:
    """Runs the ways of one plan."""

    def __init__(self, target: Planned, store: KernelStore) -> None:
        self.tried = Tried()
        self._target, self._store = target, store
        first = ways()[0]
        self._expected = _answer(first.executor(store), target.plan, target.feeds)
        self._families: dict[str, Answer] = {}
        self._tolerated = None
        if isinstance(self._expected, Raised):
            self._add_findings(first.name, str(self._expected))
        elif isinstance(self._expected, Refused):
            self.tried.refused = self._expected
        elif isinstance(self._expected, list):
            self._tolerated = Tolerated(target.plan, target.feeds, self._expected)
            if sum(array.size for array in self._expected) <= FEW:
                self.tried.results = self._expected
            for name, other in target.others.items():
                self._add_findings(
                    name, self._difference_of_equivalent(_answer(first.executor(store), other.plan, other.feeds), other)
                )

    def hold_to(self, results: Sequence[Array]) -> None:
        """Check that NumPy gives these results, if any."""
        if self._tolerated is not None and results:
            self._add_findings(ways()[0].name, self._tolerated.difference(results))

    def run(self, way: Way) -> None:
        """Run one way repeatedly, and check that the results stay the same, except while kernels arrive."""
        instead = way.instead(self._target.plan)
        if instead is None:
            return
        self.tried.ran.update((step.origin.op, way.name) for step in self._target.plan.steps if step.origin)
        executor = way.executor(self._store)
        try:
            answers = [_answer(executor, instead, self._target.feeds) for _ in range(way.runs // 2 or 1)]
            executor.settle()
            later = [_answer(executor, instead, self._target.feeds) for _ in range(way.runs - len(answers))]
            if self._target.check is not None:
                _certificate(executor, self._target)
        finally:
            executor.close()
        for answer in (*answers[:1], *later[:1]):
            self._add_findings(way.name, self._difference(answer, way.likeness))
        same = later if way.family.startswith("fast") else [*answers, *later]
        self._add_findings(way.name, _bit_difference(same))
        self._add_findings(way.name, _bit_difference([self._families.setdefault(way.family, answers[0]), answers[0]]))

    def _difference(self, answer: Answer, likeness: str) -> str | None:
        """Describe how an answer differs from the expected one, or return None."""
        expected = self._expected
        if not isinstance(answer, list) or not isinstance(expected, list):
            return None if answer == expected else f"{_described(answer)}, and not {_described(expected)}"
        if likeness == "bits":
            return first_difference(answer, expected)
        assert self._tolerated is not None
        return self._tolerated.difference(answer)

    def _difference_of_equivalent(self, answer: Answer, other: Other) -> str | None:
        """Describe how the answer of an equivalent plan differs from the expected one, or return None."""
        assert isinstance(self._expected, list)
        if not isinstance(answer, list):
            return None if other.finite else self._difference(answer, "close")
        actual = answer if other.at is None else [answer[k] for k in other.at]
        if other.finite:
            actual = [
                _finite_or_expected(x, y, nan_passes=other.differentiates)
                for x, y in zip(actual, self._expected, strict=True)
            ]
        return self._difference(actual, "close")

    def _add_findings(self, way: str, *messages: str | None) -> None:
        findings = [Finding(way, each) for each in messages if each is not None]
        self.tried.findings += [finding for finding in findings if finding not in self.tried.findings]


def _answer(executor: Executor, plan: Plan, feeds: Feeds) -> Answer:
    try:
        return [array.copy() for array in executor.run(plan, feeds)]
    except EngineError as error:
        return refused(error)
    except Exception as error:  # noqa: BLE001 - any exception is a finding
        return _raised(error)


def _finite_or_expected(actual: Array, expected: Array, *, nan_passes: bool) -> Array:
    """The actual elements where they are finite, and the expected ones elsewhere, or where those are NaN."""
    if actual.dtype.kind not in "fc" or actual.shape != expected.shape:
        return actual
    compared = np.isfinite(actual) & ~np.isnan(expected) if nan_passes else np.isfinite(actual)
    return np.where(compared, actual, expected).astype(actual.dtype)


def _raised(error: Exception) -> Raised:
    places = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)[-4:]]
    return Raised(f"{type(error).__name__}: {error}", ", ".join(places))


def _certificate(executor: Executor, target: Planned) -> None:
    assert target.check is not None
    task = target.check
    with suppress(EngineError):  # an index computed in wider floats may differ
        certify(executor, task.program, task.feeds, task.call, task.directions, task.tolerance, LIMITS)


def _bit_difference(answers: Sequence[Answer]) -> str | None:
    """Describe where answers that must be bit-identical are not, or return None."""
    for one, other in pairwise(answers):
        if not isinstance(one, list) or not isinstance(other, list):
            if one != other:
                return f"again: {_described(other)}, and not {_described(one)}"
        elif (difference := first_difference(other, one)) is not None:
            return f"again: {difference}"
    return None


def _described(answer: Answer) -> str:
    return "an answer" if isinstance(answer, list) else str(answer)
