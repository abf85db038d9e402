"""Run reports of a deadline: the tier, and the coarsest precision used for float32."""

from __future__ import annotations

from itertools import permutations

import pytest

from engine.ir.run_context import NO_DEADLINE, Deadline
from engine.ir.run_report import PRECISIONS, Precision, RunReport, coarsest


@pytest.mark.parametrize("used", [*permutations(PRECISIONS, 2)])
def test_coarsest_precision_is_reported_in_any_order(used: tuple[Precision, ...]) -> None:
    deadline = Deadline(60.0)
    deadline.begin_run("compiled", reads_float32=True)
    for each in used:
        deadline.record_precision(each)
    assert deadline.report == RunReport("compiled", coarsest(*used))
    assert deadline.precision is not None
    assert PRECISIONS.index(deadline.precision) == max(map(PRECISIONS.index, used))


def test_run_without_float32_products_reports_no_precision() -> None:
    deadline = Deadline(60.0)
    deadline.begin_run("uncompiled", reads_float32=False)
    deadline.record_precision("bfloat16")
    assert deadline.report == RunReport("uncompiled", None)


def test_new_run_resets_the_report() -> None:
    deadline = Deadline(60.0)
    deadline.begin_run("compiled", reads_float32=True)
    deadline.record_precision("bfloat16")
    deadline.begin_run("uncompiled", reads_float32=True)
    assert deadline.report == RunReport("uncompiled", "float32")


def test_shared_no_deadline_records_no_precision() -> None:
    NO_DEADLINE.record_precision("bfloat16")
    assert NO_DEADLINE.report == RunReport()
