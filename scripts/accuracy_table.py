"""Write the table of docs/accuracy.md: the largest error found in each function of compiled kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from scripts.build_docs import table
from scripts.generated_part import replace_part
from tests.engine.codegen.kernels.accuracy import CASES, DTYPES, NAMES, farthest

PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
START, END = "<!-- table: written by `make docs` -->\n", "<!-- end of table -->"
HEAD = ("function", "float32", "float64")
#: number of points of each of four kinds
POINTS: Final = {"float32": 3_000_000, "float64": 60_000}


def figure(ulps: float) -> str:
    """Round up to a hundredth."""
    return f"{math.ceil(ulps * 100) / 100:.2f}"


def written(text: str, rows: Sequence[Sequence[str]]) -> str:
    """Return the page with its table replaced. Raises ValueError if the page has no place for it."""
    return replace_part(text, START, END, table(HEAD, rows), "the table")


def main() -> None:
    """Search for the largest errors, and write the table."""
    rows = []
    for name in NAMES:
        known = [dtype for dtype in DTYPES if (name, dtype) in CASES]
        errors = {dtype: figure(farthest(name, dtype, POINTS[dtype]).ulps) for dtype in known}
        rows.append([f"`{name}`", *(errors.get(dtype, "–") for dtype in DTYPES)])
        print(*rows[-1], sep="  ", flush=True)
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")


if __name__ == "__main__":
    main()
