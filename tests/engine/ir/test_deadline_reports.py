"""What a deadline remembers of a run: its tier, and the coarsest way in which it has read float32."""

from __future__ import annotations

from itertools import permutations

import pytest

from engine.ir.run_context import NO_DEADLINE, Deadline
from engine.ir.run_report import PRECISIONS, Precision, RunReport, coarsest


@pytest.mark.parametrize("used", [*permutations(PRECISIONS, 2)])
def test_the_coarsest_counts_whatever_comes_first(used: tuple[Precision, ...]) -> None:
    deadline = Deadline(60.0)
    deadline.begin_run("compiled")
    for each in used:
        deadline.record_precision(each)
    assert deadline.report == RunReport("compiled", coarsest(*used))
    assert PRECISIONS.index(deadline.precision) == max(map(PRECISIONS.index, used))


def test_of_a_run_that_multiplies_nothing_float32_is_told() -> None:
    deadline = Deadline(60.0)
    deadline.begin_run("uncompiled")
    assert deadline.report == RunReport("uncompiled", "float32")


def test_a_run_begins_anew() -> None:
    deadline = Deadline(60.0)
    deadline.begin_run("compiled")
    deadline.record_precision("bfloat16")
    deadline.begin_run("uncompiled")
    assert deadline.report == RunReport("uncompiled", "float32")


def test_the_deadline_of_all_that_have_none_remembers_nothing() -> None:
    NO_DEADLINE.record_precision("bfloat16")
    assert NO_DEADLINE.report == RunReport()
