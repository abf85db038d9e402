"""Write the results of `make cluster-chaos`, build/cluster_chaos.json, into docs/guarantees.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from scripts.build_docs import table
from scripts.generated_part import replace_part
from scripts.guarantees_page import PAGE, ROOT

RESULTS: Final = ROOT / "build" / "cluster_chaos.json"
START, END = "<!-- chaos: written by `make cluster-chaos` -->\n", "<!-- end of chaos -->"
_HEAD: Final = (
    "fault", "writes", "longest gap, s", "stateless calls", "longest gap, s", "p99 of writes, ms",
    "503", "504", "507", "cut", "operations checked", "faults",
)  # fmt: skip


def section(results: Mapping[str, Any]) -> str:
    """Return a line with the conditions, and a row for each fault."""
    where = results["where"]
    conditions = f"{results['when']}, on {where['processor']}, {where['cores']} cores, at a load of {results['load']:g}"
    return f"{conditions}; commit {where['commit']}.\n\n{table(_HEAD, [cells(row) for row in results['rows']])}"


def cells(row: Mapping[str, Any]) -> list[str]:
    """Return the row of a fault."""
    statuses = [f"{row['statuses'].get(status, 0):,}" for status in ("503", "504", "507", "0")]
    times = " / ".join(f"{each:,.0f}" for each in row["p99_ms"])
    writes = [f"{row['writes']:,}", f"{row['without_writes']:g}"]
    computed = [f"{row['computed']:,}", f"{row['without_answers']:g}"]
    return [row["name"], *writes, *computed, times, *statuses, f"{row['operations']:,}", f"{len(row['faults'])}"]


def main() -> None:
    """Write the page."""
    results = json.loads(RESULTS.read_text("utf-8"))
    PAGE.write_text(replace_part(PAGE.read_text("utf-8"), START, END, section(results), "chaos"), "utf-8")
    print(f"wrote {Path(PAGE).name}")


if __name__ == "__main__":
    main()
