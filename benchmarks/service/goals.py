"""What the service is to reach on two cores, and the sentence that says whether it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Goal:
    """A bound on `what` of the first side; against another, on the ratio. `most`: the less, the better."""

    what: str
    bound: float
    against: str | None = None
    most: bool = False


GOALS: Final[Mapping[str, tuple[Goal, ...]]] = {
    "registered-8": (
        Goal("rate", 30_000),
        Goal("rate", 25, "FastAPI + PyTorch"),
        Goal("rate", 40, "tesseract-core"),
    ),
    "stateless-8": (Goal("rate", 12_000),),
    "binary-8": (Goal("rate", 3, "tesseract-core, base64"),),
    "large-1": (Goal("p50", 1.3, "echo", most=True),),
    "keys-8": (Goal("rate", 0.9, "without"),),
}


def verdict(name: str, sides: Mapping[str, Any]) -> str:
    """Met, or what is missed by how much; empty where there is no goal, or nothing to compare with."""
    first = next(iter(sides))
    found = [said for goal in GOALS.get(name, ()) if (said := _said(goal, sides, first))]
    return "; ".join(found)


def _said(goal: Goal, sides: Mapping[str, Any], ours: str) -> str:
    if goal.against is not None and goal.against not in sides:
        return ""
    value = sides[ours][goal.what]["median"]
    value = value if goal.against is None else value / sides[goal.against][goal.what]["median"]
    holds = value <= goal.bound if goal.most else value >= goal.bound
    beside = f" × {goal.against}" if goal.against else "/s"
    sign = "≤" if goal.most else "≥"
    return f"{'met' if holds else '**missed**'}: {value:,.3g}{beside}, {sign} {goal.bound:,g}"
