"""Casts from real to complex dtypes, and refused casts."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, TensorType, registry
from tests.contract.cases import run_graph
from tests.engine.ops.run import error, run

REALS = ("float16", "float32", "float64", "int64", "bool")


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("source", REALS)
def test_real_to_complex_has_no_imaginary_part(source: str, dtype: str) -> None:
    x = np.array([1, 0, 3], source)
    actual = run("cast", x, dtype=dtype)
    assert actual.dtype == dtype
    np.testing.assert_array_equal(actual, x.astype(dtype))


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float64", "int64"])
@pytest.mark.parametrize("source", [*REALS, "complex64"])
def test_elementwise_form_matches_the_cast_if_it_exists(source: str, dtype: str) -> None:
    if source == "complex64" and not dtype.startswith("complex"):
        return
    x, builder = np.array([1, 0, 3], source), Builder(registry())
    leaf = builder.leaf(TensorType.of(x), 0)
    y = registry().ops["cast"].as_elementwise(leaf, dtype=np.dtype(dtype))  # type: ignore[attr-defined]
    assert (y is not None) == ((source, dtype) in {("float32", "complex64"), ("float64", "complex128")})
    if y is not None:
        (actual,) = run_graph(builder.graph([y]), {0: x})
        assert actual.dtype == dtype
        np.testing.assert_array_equal(actual, x.astype(dtype))


def test_complex_to_real_is_refused() -> None:
    refused = error("cast", np.array([1j]), dtype="float64")
    assert (refused.code, refused.operand) == ("dtype_mismatch", 0)
    assert "operand 0 (x) is complex128, which cast cannot convert to float64: use real, imag or abs" in refused.detail
