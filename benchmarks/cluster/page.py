"""Write the measured part of docs/scale.md, from what `make bench-cluster` left."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from benchmarks.cluster.kept import KEPT, holds
from benchmarks.page import conditions
from benchmarks.record import ROOT
from scripts.build_docs import table
from scripts.generated_part import replace_part

PAGE: Final = ROOT / "docs" / "scale.md"
START, END = "<!-- cluster: written by `make bench-cluster` -->\n", "<!-- end of cluster -->"
Rows = Mapping[str, Mapping[str, Any]]

INTRODUCTION: Final = """\
The two sides of a row take turns, five rounds of some seconds; each begins with the other one. Figures are medians over
the rounds, of ratios the median of the rounds' own, in brackets their quartiles. Servers, HAProxy, store (moto, each
request behind a lock) and load share the machine: where it was busy, what has more processes waits more often.
"""


def sections(rows: Rows) -> Iterator[str]:
    """Conditions, and the table."""
    if not rows:
        yield "Nothing has been measured yet.\n"
        return
    yield conditions({"cluster": rows}).replace("`make bench PEERS=1`", "`make bench-cluster`")
    yield INTRODUCTION
    yield table(("what", "first", "beside", "ratio", "bound"), [[*line(row)] for row in rows.values()])


def line(row: Mapping[str, Any]) -> Iterator[str]:
    """What is compared, both figures, their ratio and the bound."""
    first, second = row["sides"]
    yield row["title"]
    yield f"{first}: {number(row['first']['median'])} {row['unit']}"
    yield f"{second}: {number(row['second']['median'])} {row['unit']}" if second else ""
    ratio = row["ratio"]
    yield f"{number(ratio['median'])} ({number(ratio['lower'])} to {number(ratio['upper'])})"
    yield f"{'≥' if row['at_least'] else '≤'} {row['bound']:g}{'' if holds(row) else ', **missed**'}"


def number(value: float) -> str:
    """Three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    """Write the page."""
    rows = json.loads(KEPT.read_text("utf-8")).get("cluster", {})
    text = replace_part(PAGE.read_text("utf-8"), START, END, "\n".join(sections(rows)), "what was measured")
    PAGE.write_text(text, "utf-8")
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
