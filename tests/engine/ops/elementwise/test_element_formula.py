"""Conversion of scalars for a formula, and the dtype that it computes in."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from engine.codegen.kernels.program import KernelBuilder, Scalars
from engine.ops.elementwise.base import PRIMITIVE_OF, compute_dtype, convert_scalar, primitive_of, scalar_type


@pytest.mark.parametrize(
    ("out", "computed"),
    [("float16", "float32"), ("bool", "float32"), ("float32", "float32"), ("float64", "float64"), ("int64", "int64")],
)
def test_compute_dtype(out: str, computed: str) -> None:
    assert compute_dtype(np.dtype(out)) == computed


def test_bools_and_floats_convert_to_each_other() -> None:
    builder = KernelBuilder("float64")
    number, truth = builder.load(0, "float"), builder.load(1, "bool")
    assert convert_scalar(number, "float") is number
    assert convert_scalar(truth, "bool") is truth
    assert [convert_scalar(number, "bool").type, convert_scalar(truth, "float").type] == ["bool", "float"]


class FakeScalar:
    """A scalar whose operations return their arguments."""

    def __init__(self, type: Scalars) -> None:
        self.type = type

    def ne(self, other: float) -> tuple[str, float]:
        return "ne", other

    def where(self, then: float, other: float) -> tuple[float, float]:
        return then, other


@pytest.mark.parametrize(
    ("type", "taken", "wanted"),
    [("float", "bool", ("ne", 0)), ("pair", "bool", ("ne", 0)), ("bool", "float", (1, 0)), ("bool", "pair", (1, 0))],
)
def test_nonzero_numbers_are_true(type: Scalars, taken: Scalars, wanted: Any) -> None:
    assert cast("Any", convert_scalar(cast("Any", FakeScalar(type)), taken)) == wanted


def test_complex_scalar_is_not_converted_to_float() -> None:
    x: Any = FakeScalar("pair")
    assert convert_scalar(x, "float") is x


@pytest.mark.parametrize(
    ("dtype", "scalar"),
    [("bool", "bool"), ("float32", "float"), ("int64", "float"), ("complex64", "pair"), ("complex128", "pair")],
)
def test_scalar_type_of_each_dtype(dtype: str, scalar: Scalars) -> None:
    assert scalar_type(np.dtype(dtype)) == scalar


def test_primitives_of_floats_and_pairs() -> None:
    """Complex numbers have no order, and real numbers have no conjugate."""
    names = "multiply", "maximum", "conjugate"
    assert [primitive_of(name, ["float", "float"]) for name in names] == ["mul", "maximum", None]
    assert [primitive_of(name, ["float", "pair"]) for name in names] == ["mul", None, "conj"]


def test_primitives_are_named_after_ufuncs() -> None:
    assert PRIMITIVE_OF["multiply"] == "mul"
    assert all(isinstance(getattr(np, name), np.ufunc) for name in PRIMITIVE_OF)
