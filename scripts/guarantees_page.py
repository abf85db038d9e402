"""Write the measurements of docs/guarantees.md from build/guarantees.json, the output of `make guarantees`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from scripts.build_docs import table
from scripts.generated_part import replace_part

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "guarantees.md"
RESULTS: Final = ROOT / "build" / "guarantees.json"
START, END = "<!-- measured: written by `make guarantees` -->\n", "<!-- end of measured -->"

PROMISES: Final[Mapping[str, str]] = {
    "1": "No accepted request exceeds its declared bytes or FLOPs; a refusal costs under 50 ms and no memory. A graph "
    "whose gradients have too many nodes is refused within its caller's deadline, at bounded memory.",
    "2": "Every bad input gets a 4xx report that names the node; no input alone causes a 5xx.",
    "3": "Body, JSON depth, nodes and chunks are capped; the caps are settings, and documented.",
    "4": "`/health/live` answers within 100 ms under any load.",
    "5": "Surplus load gets 503 with `Retry-After` within 500 ms; what is accepted keeps 80 % of capacity.",
    "6": "No 200 begins after the deadline, unless what it tells was being written by then; a 504 is there a second "
    "after it at the latest.",
    "7": "Work stops within a second of a disconnect.",
    "8": "Half-open and trickling connections are closed within 10 s, an honest slow upload is not; slow readers hold "
    "no memory for ever.",
    "9": "What was acknowledged is there after `kill -9`, and whole: it is on disk, and so is its name, before the "
    "answer is sent.",
    "10": "On a full disk, writes get 507, the old values stand, and computing goes on.",
    "11": "On SIGTERM work in flight finishes, new work is refused, and the exit is within the grace.",
    "12": "A dead worker is replaced within 5 s, and no health check fails.",
    "13": "Memory does not grow.",
    "14": "Unauthenticated bytes are never parsed; keys are compared in constant time, and never logged.",
    "15": "A result never depends on what else is in flight.",
    "16": "What one caller does, nobody else notices: beside it, the slowest of a hundred calls takes at most three "
    "times as long as alone, none is refused, and nine of ten plans are still there.",
    "17": "Of clients that race to store one tensor through different servers, each version is from exactly one, and "
    "every other is told.",
    "18": "Servers that share a state, or take it from each other, are linearizable in each namespace, whatever "
    "is done to them; what one owned is kept again in 6 s.",
    "19": "Once `/health/ready` answers 200, no call waits for the start of a worker.",
    "20": "What an answer tells of a tensor is what was there when the call took effect, whoever else writes it.",
}
Row = Mapping[str, Any]
Results = Mapping[str, Mapping[str, Row]]


def sections(results: Results) -> Iterator[str]:
    """Yield a line with the conditions, and for each guarantee its promise and its figures."""
    yield conditions([row for rows in results.values() for row in rows.values()])
    for number, promise in PROMISES.items():
        yield f"## {number}. {promise.rstrip('.').replace('`', '')}\n"
        yield figures(number, results.get(number, {}))


def conditions(rows: list[Row]) -> str:
    """Return the machines, days and commits of the measurements."""
    if not rows:
        return "Nothing has been measured yet.\n"
    days = sorted({row["when"] for row in rows})
    machines = sorted({f"{row['where']['processor']}, {row['where']['cores']} cores" for row in rows})
    commits = sorted({row["where"]["commit"] for row in rows})
    period = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    held = sum(row["holds"] for row in rows)
    return f"{period}, on {'; '.join(machines)}; commit {', '.join(commits)}. {held} of {len(rows)} figures hold.\n"


def figures(number: str, rows: Mapping[str, Row]) -> str:
    """Return the table of a guarantee. That of health has a row per attack, the worst first."""
    if not rows:
        return "Not measured.\n"
    ordered = sorted(rows.items(), key=lambda item: -item[1]["value"]) if number == "4" else [*rows.items()]
    lines = [[name, test(row), amount(row["value"], row["unit"]), bound(row), verdict(row)] for name, row in ordered]
    return table(("what", "test", "measured", "bound", ""), lines)


def test(row: Row) -> str:
    """Return a link to the file of the test, with the test's name."""
    path, _, name = row["test"].partition("::")
    return f"[{name.partition('[')[0].removeprefix('test_')}](../{path})"


def amount(value: float, unit: str) -> str:
    """Format a figure."""
    text = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"
    return f"{text} {unit}".strip()


def bound(row: Row) -> str:
    """Return the bound with ≤ or ≥."""
    return f"{'≥' if row['least'] else '≤'} {amount(row['bound'], row['unit'])}"


def verdict(row: Row) -> str:
    """Return a mark if the figure missed its bound."""
    return "" if row["holds"] else "**missed**"


def written(text: str, parts: Iterator[str]) -> str:
    """Return the page with its sections replaced. Raises ValueError if the page has no place for them."""
    return replace_part(text, START, END, "\n".join(parts), "figures")


def main() -> None:
    """Write the page."""
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    PAGE.write_text(written(PAGE.read_text("utf-8"), sections(results)), "utf-8")
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
