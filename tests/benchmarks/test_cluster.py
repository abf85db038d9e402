"""The page of `make bench-cluster`: medians of ratios, and which of them miss their bound."""

from __future__ import annotations

import pytest

from benchmarks.cluster.kept import holds, measured
from benchmarks.cluster.page import END, PAGE, START, line, sections
from benchmarks.cluster.rows import Row, rows
from benchmarks.cluster.stage import Stage


def row(bound: float, *, at_least: bool = False, second: str = "that") -> Row:
    """Ratios 9 (not counted), 1, 2, 3, 4, 5."""
    figures = iter([(9.0, 1.0), (2.0, 2.0), (4.0, 2.0), (6.0, 2.0), (8.0, 2.0), (10.0, 2.0)])
    return Row("a job", ("this", second), "ms", bound, lambda _: next(figures), at_least)


def test_a_figure_is_the_median_over_the_rounds_but_the_first() -> None:
    kept = measured(row(3), 5)
    assert [kept[what]["median"] for what in ("first", "second", "ratio")] == [6, 2, 3]


@pytest.mark.parametrize(
    ("bound", "at_least", "met"), [(3, False, True), (2.9, False, False), (3, True, True), (3.1, True, False)]
)
def test_a_bound_holds_from_its_own_side(bound: float, at_least: bool, met: bool) -> None:
    kept = measured(row(bound, at_least=at_least), 5)
    assert holds(kept) is met
    assert ("missed" in [*line(kept)][-1]) is not met


def test_a_line_says_both_sides_and_the_ratio() -> None:
    assert [*line(measured(row(3), 5))] == ["a job", "this: 6 ms", "that: 2 ms", "3 (2 to 4)", "≤ 3"]


def test_a_figure_of_its_own_has_no_other_side() -> None:
    assert [*line(measured(row(3, second=""), 5))][2] == ""


def test_the_page_has_a_place_and_says_where_nothing_was_measured() -> None:
    assert START in PAGE.read_text("utf-8")
    assert END in PAGE.read_text("utf-8")
    assert [*sections({})] == ["Nothing has been measured yet.\n"]


def test_nothing_is_started_before_a_row_is_made() -> None:
    stage = Stage()
    assert len(rows(stage, 1.0)) == 11
    assert not {"store", "shared", "apart", "alone"} & vars(stage).keys()
    stage.close()
