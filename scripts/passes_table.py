"""Write the table of docs/passes.md: how many nodes passes remove from every graph of the tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.ir.passes import PASSES
from scripts.build_docs import table
from scripts.generated_part import replace_part
from tests.passes.compare import ALL_ON, Compared, compare
from tests.passes.corpus import FAMILIES

PAGE = Path(__file__).parents[1] / "docs" / "passes.md"
START, END = "<!-- table: written by `make docs` -->\n", "<!-- end of table -->"
HEAD = ("graphs", "number", "nodes without passes", "nodes with passes", "left", "largest difference")


def cells(family: str, comparisons: Sequence[Compared]) -> list[str]:
    """Return the row of a family."""
    before, after = sum(c.before for c in comparisons), sum(c.after for c in comparisons)
    difference = max(c.differences[ALL_ON] for c in comparisons)
    return [family, f"{len(comparisons):,}", f"{before:,}", f"{after:,}", f"{after / before:.0%}", f"{difference:.1g}"]


def written(text: str, rows: Sequence[Sequence[str]]) -> str:
    """Return the page with its table replaced. Raises ValueError if the page has no place for it."""
    return replace_part(text, START, END, table(HEAD, rows), "the table")


def main() -> None:
    """Run every graph with and without passes, and write the table."""
    rows = []
    for family, questions in FAMILIES.items():
        rows.append(cells(family, [compare(question, {ALL_ON: PASSES}) for question in questions()]))
        print(*rows[-1], sep="  ", flush=True)
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
