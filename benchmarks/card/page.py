"""The measured part of docs/gpu.md, from the figures: `python3 -m benchmarks.card.page`, which `make docs` runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from benchmarks.card.figures import KEPT
from benchmarks.card.phases import BENCHED, PEERS, PHASES
from benchmarks.goals import card_verdict
from benchmarks.page import NAMES
from benchmarks.record import ROOT
from scripts.build_docs import table
from scripts.generated_part import replace_part

PAGE: Final = ROOT / "docs" / "gpu.md"
START, END = "<!-- measured: written by `make docs` from what `make card-report` left -->\n", "<!-- end of measured -->"

Row = Mapping[str, Any]
Rows = Mapping[str, Row]
Figures = Mapping[str, Rows]


def measured(figures: Figures) -> str:
    """The sections, as Markdown."""
    written = {
        "tests": ("Tests", _tests),
        "sanitizer": ("compute-sanitizer", _sanitizer),
        "bench": ("Value and all gradients", _bench),
        "requests": ("Requests", _requests),
        "compile": ("Machine code, with nothing kept", _compile),
    }
    parts = [_conditions(figures)]
    for phase, (title, write) in written.items():
        rows = {name: row for name, row in figures.get(phase, {}).items() if "not_run" not in row}
        if rows:
            parts.append(f"### {title}\n\n{write(rows)}")
    return "\n".join([*parts, *_not_run(figures)])


def _conditions(figures: Figures) -> str:
    """On what, when and with which versions, from the rows themselves: all that occur."""
    rows = [row for rows in figures.values() for row in rows.values() if "not_run" not in row]
    if not rows:
        return "Nothing has been measured by `make card-report` yet.\n"
    days = sorted({row["when"] for row in rows})
    cards = sorted({", ".join(row["where"]["card"].values()) for row in rows})
    cores = sorted({f"{row['where']['processor']}, {row['where']['cores']} cores" for row in rows})
    versions = sorted({f"{name} {number}" for row in rows for name, number in row["where"]["versions"].items()})
    commits = sorted({row["where"]["commit"] for row in rows})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return (
        f"`make card-report`, {when}, on {'; '.join(cards)}, beside {'; '.join(cores)}, with {', '.join(versions)};"
        f" commit {', '.join(commits)}.\n"
    )


def _tests(rows: Rows) -> str:
    head = ("what", "passed", "failed", "skipped", "seconds", "card", "day")
    return table(head, [[name, *_counted(row), *_where(row)] for name, row in rows.items()])


def _sanitizer(rows: Rows) -> str:
    head = ("tool", "errors", "tests passed", "failed", "skipped", "seconds", "card", "day")
    return table(head, [[name, f"{row['errors']:,}", *_counted(row), *_where(row)] for name, row in rows.items()])


def _counted(row: Row) -> Iterator[str]:
    yield from (f"{row[outcome]:,}" for outcome in ("passed", "failed", "skipped"))
    yield f"{row['seconds']:.0f}"


def _bench(rows: Rows) -> str:
    head = ("workload", "ours, ms", *(f"over {NAMES[peer]}" for peer in PEERS), "target", "card", "day")
    lines = [[*_beside(name, rows[name])] for name in BENCHED if name in rows]
    read = "all in float32, or as a title says"
    return f"Medians, the sides taking turns, {read}; ratios are our time over theirs.\n\n{table(head, lines)}"


def _beside(name: str, row: Row) -> Iterator[str]:
    yield row["title"]
    yield f"{row['sides']['gradserve']['median']:.3f}"
    for peer in PEERS:
        yield f"{row['sides'][peer]['ratio']:.2f}" if peer in row["sides"] else "–"
    yield card_verdict(name, row)
    yield from _where(row)


def _requests(rows: Rows) -> str:
    head = ("workload", "clients", "a second", "median ms", "99 % ms", "card", "day")
    ordered = sorted(rows.values(), key=lambda row: (row["workload"], row["clients"]))
    return table(head, [[*_served(row), *_where(row)] for row in ordered])


def _served(row: Row) -> Iterator[str]:
    yield from (row["workload"], str(row["clients"]), f"{row['rate']:,.0f}")
    yield from (f"{row['p50']:.2f}", f"{row['p99']:.2f}")


def _compile(rows: Rows) -> str:
    head = ("workload", "seconds", "kernels", "cores", "card", "day")
    lines = [
        [name, f"{row['seconds']:.2f}", str(row["kernels"]), str(row["cores"]), *_where(row)]
        for name, row in rows.items()
    ]
    return table(head, lines)


def _where(row: Row) -> tuple[str, str]:
    return row["where"]["card"].get("name", "–"), row["when"]


def _not_run(figures: Figures) -> Iterator[str]:
    """What was not, with the reason; of what nobody has tried, that it was not."""
    lines = [
        f"- {phase}{'' if name == 'all' else f', {name}'}: {row['not_run']}"
        for phase in PHASES
        for name, row in figures.get(phase, {}).items()
        if "not_run" in row
    ]
    lines += [f"- {phase}" for phase in PHASES if not figures.get(phase)]
    if lines:
        yield "Not run:\n"
        yield "\n".join(lines) + "\n"


def written(text: str, figures: Figures) -> str:
    """The page with these in place of its own. Raises ValueError where it has no place for them."""
    return replace_part(text, START, END, measured(figures), "figures of a card")


def main() -> None:
    """Write the page."""
    figures = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    PAGE.write_text(written(PAGE.read_text("utf-8"), figures), "utf-8")


if __name__ == "__main__":
    main()
