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
    "1": "No accepted request exceeds its declared bytes or FLOPs; a rejection takes under 50 ms and no memory. A "
    "graph whose gradients have too many nodes is rejected within its caller's deadline, at bounded memory.",
    "2": "Every bad input gets a 4xx problem report that names the node; no input alone causes a 5xx.",
    "3": "Body size, JSON depth, nodes and chunks have limits, which are documented settings.",
    "4": "`/health/live` responds within 100 ms under any load.",
    "5": "Excess load gets 503 with `Retry-After` within 500 ms; accepted requests get 80 % of capacity.",
    "6": "No 200 begins after the deadline, unless its result was being written by then; a 504 arrives at most a "
    "second after the deadline.",
    "7": "Work stops within a second of a disconnect.",
    "8": "Half-open and trickling connections are closed within 10 s, an honest slow upload is not; slow readers "
    "cannot hold memory forever.",
    "9": "An acknowledged write survives `kill -9` completely: the data and its file name are on disk before the "
    "response is sent.",
    "10": "On a full disk, writes get 507, the old values remain, and computing continues.",
    "11": "After SIGTERM, running work finishes, new work is rejected, and the server exits within the grace period.",
    "12": "A dead worker is replaced within 5 s, and no health check fails.",
    "13": "Memory does not grow.",
    "14": "Unauthenticated bytes are never parsed; keys are compared in constant time, and never logged.",
    "15": "A result never depends on other requests in progress.",
    "16": "One caller does not affect another: beside it, the slowest of a hundred calls takes at most three times as "
    "long as alone, none is rejected, and nine of ten plans are still cached.",
    "17": "If clients race to store one tensor through different servers, each version is from exactly one of them, "
    "and every other client gets a 412.",
    "18": "Servers that share state, or take it over from each other, are linearizable in each namespace, whatever "
    "happens to them; after a takeover, writes succeed again within 6 s.",
    "19": "Once `/health/ready` returns 200, no call waits for a worker to start.",
    "20": "A response describes a tensor as it was when the call took effect, no matter which other clients write it.",
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
    return table(("figure", "test", "measured", "bound", ""), lines)


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
