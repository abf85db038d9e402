"""The guarantees page: measured figures, missed bounds and unmeasured sections."""

from __future__ import annotations

import pytest

from scripts.guarantees_page import END, START, sections, written

WHERE = {"processor": "A processor", "cores": 2, "commit": "abc"}


def row(value: float, bound: float, *, least: bool = False) -> dict[str, object]:
    holds = value >= bound if least else value <= bound
    test = "tests/guarantees/test_overload.py::test_excess[interruptible]"
    return {"value": value, "bound": bound, "unit": "ms", "test": test, "least": least, "holds": holds,
            "when": "2026-01-02", "where": WHERE, "note": ""}  # fmt: skip


def page() -> str:
    results = {
        "5": {"refusal": row(12.5, 500), "throughput": row(0.7, 0.8, least=True)},
        "4": {"a": row(5, 100), "b": row(50, 100)},
    }
    return "\n".join(sections(results))


def test_rows_show_bounds_and_misses() -> None:
    assert "| refusal | [excess](../tests/guarantees/test_overload.py) | 12.5 ms | ≤ 500 ms |  |" in page()
    assert "| throughput | [excess](../tests/guarantees/test_overload.py) | 0.7 ms | ≥ 0.8 ms | **missed** |" in page()
    assert "2026-01-02, on A processor, 2 cores; commit abc. 3 of 4 figures hold." in page()


def test_health_rows_are_sorted_worst_first() -> None:
    section = page().partition("\n## 4. ")[2]
    assert section.index("| b |") < section.index("| a |")


def test_unmeasured_section_is_reported() -> None:
    assert "Not measured." in page().partition("\n## 7. ")[2].partition("\n## ")[0]
    assert "Nothing has been measured yet." in "\n".join(sections({}))


def test_only_measured_section_is_rewritten() -> None:
    text = written(f"before\n{START}old\n{END}\nafter\n", iter(["new"]))
    assert text == f"before\n{START}\nnew\n{END}\nafter\n"
    with pytest.raises(ValueError, match="no place"):
        written("a page", iter(["new"]))
