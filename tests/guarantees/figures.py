"""What was measured, kept in build/guarantees.json by guarantee and name; docs/guarantees.md is written from it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.record import machine

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "guarantees.json"


@dataclass(frozen=True)
class Figure:
    """A measured value and its bound; `least` says that the bound is the least, and not the most."""

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
        """The value is not to be more."""
        self._keep(name, Figure(value, bound, unit, self.test, note=note))

    def at_least(self, name: str, value: float, bound: float, unit: str, note: str = "") -> None:
        """The value is not to be less."""
        self._keep(name, Figure(value, bound, unit, self.test, least=True, note=note))

    def judge(self) -> None:
        """Fail where one is beyond its bound: at the end, so that all of a test are kept."""
        assert not self._broken, "\n".join(self._broken)

    def _keep(self, name: str, figure: Figure) -> None:
        keep(self.guarantee, name, figure)
        if not figure.holds:
            self._broken.append(f"{name}: {figure.value:.4g} {figure.unit}, bound {figure.bound:g}; {figure.note}")


def keep(guarantee: int, name: str, figure: Figure) -> None:
    """Write it in place of an older one."""
    kept = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    row = {**asdict(figure), "holds": figure.holds, "when": when, "where": machine()}
    kept.setdefault(str(guarantee), {})[name] = row
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    KEPT.write_text(json.dumps(kept, indent=1), "utf-8")
