"""What was measured of a row, as the page reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from benchmarks.cluster.rows import Row
from benchmarks.record import ROOT
from benchmarks.turns import spread

KEPT: Final = ROOT / "build" / "benchmarks" / "cluster.json"


def measured(row: Row, rounds: int) -> dict[str, Any]:
    """The figures of both sides, and of their ratio: each the median over the rounds, and the quartiles.

    There is one round before that is not counted.
    """
    row.round(0)
    found = [row.round(number) for number in range(rounds)]
    return {
        "title": row.title, "sides": row.sides, "unit": row.unit, "bound": row.bound, "at_least": row.at_least,
        "first": vars(spread([first for first, _ in found])),
        "second": vars(spread([second for _, second in found])),
        "ratio": vars(spread([first / second for first, second in found])),
    }  # fmt: skip


def holds(kept: Mapping[str, Any]) -> bool:
    """Whether the median of the ratios is within the bound."""
    ratio, bound = kept["ratio"]["median"], kept["bound"]
    return bool(ratio >= bound if kept["at_least"] else ratio <= bound)
