"""The page of `make bench-cluster`: medians of ratios, and which of them miss their bound; and the limits' figures."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.cluster import limits
from benchmarks.cluster.kept import holds, measured
from benchmarks.cluster.page import END, PAGE, START, line, sections
from benchmarks.cluster.rows import Row, rows
from benchmarks.cluster.stage import Stage


def row(bound: float, *, at_least: bool = False, second: str = "that") -> Row:
    """A row with the ratios 9 (the warm-up round), 1, 2, 3, 4, 5."""
    figures = iter([(9.0, 1.0), (2.0, 2.0), (4.0, 2.0), (6.0, 2.0), (8.0, 2.0), (10.0, 2.0)])
    return Row("a job", ("this", second), "ms", bound, lambda _: next(figures), at_least)


def test_median_excludes_the_first_round() -> None:
    result = measured(row(3), 5)
    assert [result[name]["median"] for name in ("first", "second", "ratio")] == [6, 2, 3]


@pytest.mark.parametrize(
    ("bound", "at_least", "met"), [(3, False, True), (2.9, False, False), (3, True, True), (3.1, True, False)]
)
def test_bound_is_an_upper_or_a_lower_limit(bound: float, at_least: bool, met: bool) -> None:
    result = measured(row(bound, at_least=at_least), 5)
    assert holds(result) is met
    assert ("missed" in [*line(result)][-1]) is not met


def test_line_has_both_sides_and_the_ratio() -> None:
    assert [*line(measured(row(3), 5))] == ["a job", "this: 6 ms", "that: 2 ms", "3 (2 to 4)", "≤ 3"]


def test_single_figure_has_no_second_side() -> None:
    assert [*line(measured(row(3, second=""), 5))][2] == ""


def test_page_has_markers_and_reports_missing_measurements() -> None:
    assert START in PAGE.read_text("utf-8")
    assert END in PAGE.read_text("utf-8")
    assert [*sections({})] == ["Nothing has been measured yet.\n"]


def test_creating_rows_starts_nothing() -> None:
    stage = Stage()
    assert len(rows(stage, 1.0)) == 13
    assert not {"store", "shared", "apart", "alone"} & vars(stage).keys()
    stage.close()


def test_limits_count_commits_and_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_SECONDS", 0.05)
    commits, writes, seconds = asyncio.run(limits._written(limits.MemoryFolders(), 0.0, 3, 8))
    assert 0 < commits <= writes
    assert seconds > 0


@pytest.mark.slow
def test_limits_count_requests_of_openings() -> None:
    objects = limits.SlowObjects(limits.MemoryFolders())
    _, _, threads = asyncio.run(limits._opened(objects, 5))
    assert objects.requests == 3 * 5, "a list, the opening, and a list of what is behind it"
    assert threads > 0
