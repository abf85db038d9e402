"""Write what `make cluster-chaos` left in build/cluster_chaos.json into docs/guarantees.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from scripts.build_docs import table
from scripts.guarantees_page import PAGE, ROOT
from scripts.written_part import rewritten

KEPT: Final = ROOT / "build" / "cluster_chaos.json"
START, END = "<!-- chaos: written by `make cluster-chaos` -->\n", "<!-- end of chaos -->"
_HEAD: Final = (
    "what happens", "writes", "s without", "calls that keep nothing", "s without", "p99 of writes, ms",
    "503", "504", "507", "cut", "operations checked", "faults",
)  # fmt: skip


def section(found: Mapping[str, Any]) -> str:
    """When and where, and a row for each fault."""
    where = found["where"]
    said = f"{found['when']}, on {where['processor']}, {where['cores']} cores, at a load of {found['load']:g}"
    return f"{said}; commit {where['commit']}.\n\n{table(_HEAD, [cells(row) for row in found['rows']])}"


def cells(row: Mapping[str, Any]) -> list[str]:
    """Those of one fault."""
    statuses = [f"{row['statuses'].get(status, 0):,}" for status in ("503", "504", "507", "0")]
    times = " / ".join(f"{each:,.0f}" for each in row["p99_ms"])
    writes = [f"{row['writes']:,}", f"{row['without_writes']:g}"]
    computed = [f"{row['computed']:,}", f"{row['without_answers']:g}"]
    return [row["name"], *writes, *computed, times, *statuses, f"{row['operations']:,}", f"{len(row['faults'])}"]


def main() -> None:
    """Write the page."""
    found = json.loads(KEPT.read_text("utf-8"))
    PAGE.write_text(rewritten(PAGE.read_text("utf-8"), START, END, section(found), "chaos"), "utf-8")
    print(f"wrote {Path(PAGE).name}")


if __name__ == "__main__":
    main()
