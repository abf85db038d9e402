"""Measured figures, stored in build/guarantees.json by guarantee and name; docs/guarantees.md is generated from it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.record import machine

ROOT = Path(__file__).parents[2]
FIGURES_FILE = ROOT / "build" / "guarantees.json"


@dataclass(frozen=True)
class Figure:
    """A measured value and its bound, a lower bound if `least`."""

    value: float
    bound: float
    unit: str
    test: str
    least: bool = False
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the value is within the bound."""
        return bool(self.value >= self.bound if self.least else self.value <= self.bound)


class Figures:
    """The figures of one test, for one guarantee."""

    def __init__(self, guarantee: int, test: str) -> None:
        self.guarantee, self.test = guarantee, test
        self._broken: list[str] = []

    def at_most(self, name: str, value: float, bound: float, unit: str, note: str = "") -> None:
        """Record a value with an upper bound."""
        self._record(name, Figure(value, bound, unit, self.test, note=note))

    def at_least(self, name: str, value: float, bound: float, unit: str, note: str = "") -> None:
        """Record a value with a lower bound."""
        self._record(name, Figure(value, bound, unit, self.test, least=True, note=note))

    def judge(self) -> None:
        """Fail if a figure misses its bound. Called at the end, so that all figures of a test are recorded."""
        assert not self._broken, "\n".join(self._broken)

    def _record(self, name: str, figure: Figure) -> None:
        store(self.guarantee, name, figure)
        if not figure.holds:
            self._broken.append(f"{name}: {figure.value:.4g} {figure.unit}, bound {figure.bound:g}; {figure.note}")


def store(guarantee: int, name: str, figure: Figure) -> None:
    """Store the figure, replacing an older one."""
    figures = json.loads(FIGURES_FILE.read_text("utf-8")) if FIGURES_FILE.exists() else {}
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    row = {**asdict(figure), "holds": figure.holds, "when": when, "where": machine()}
    figures.setdefault(str(guarantee), {})[name] = row
    FIGURES_FILE.parent.mkdir(parents=True, exist_ok=True)
    FIGURES_FILE.write_text(json.dumps(figures, indent=1), "utf-8")
