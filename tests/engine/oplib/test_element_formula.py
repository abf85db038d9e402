"""Scalars as what a formula takes, and the dtype that it computes in."""

from __future__ import annotations

import numpy as np
import pytest

from engine.loops.program import LoopBuilder
from engine.oplib.element_formula import PRIMITIVE_OF, number_dtype, read_as


@pytest.mark.parametrize(
    ("out", "computed"),
    [("float16", "float32"), ("bool", "float32"), ("float32", "float32"), ("float64", "float64"), ("int64", "int64")],
)
def test_where_results_are_rounded_once(out: str, computed: str) -> None:
    assert number_dtype(np.dtype(out)) == computed


def test_a_bool_counts_as_one_and_a_number_as_true() -> None:
    builder = LoopBuilder("float64")
    number, truth = builder.load(0, "float"), builder.load(1, "bool")
    assert read_as(number, "float") is number
    assert read_as(truth, "bool") is truth
    assert [read_as(number, "bool").type, read_as(truth, "float").type] == ["bool", "float"]


def test_every_primitive_that_is_a_ufunc_is_found_by_its_name() -> None:
    assert PRIMITIVE_OF["multiply"] == "mul"
    assert all(isinstance(getattr(np, name), np.ufunc) for name in PRIMITIVE_OF)
