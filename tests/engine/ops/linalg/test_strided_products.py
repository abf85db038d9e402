"""Strided products on NumPy: placement of the parts, rounding, and workspace."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ir.run_context import RunContext
from engine.ir.tensor_type import HostArray, TensorType
from engine.ops.linalg.layouts import StridedProduct, StridedProducts
from tests.engine.ops.values import allocated


def computed(shape: tuple[int, ...], parts: list[StridedProduct], *arrays: HostArray) -> HostArray:
    out = np.full(shape, 77, arrays[0].dtype)
    StridedProducts(TensorType.of(out), parts).forward(RunContext(np), *arrays, out=out)
    return out


def whole(*shape: int, dtype: str = "float64", seed: int = 0) -> HostArray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_parts_are_written_side_by_side(dtype: str) -> None:
    a, b, c, d, bias = (whole(*shape, dtype=dtype) for shape in ((5, 3), (3, 2), (5, 4), (4, 6), (1, 6)))
    parts = [StridedProduct((5, 2), 6, (8, 1)), StridedProduct((5, 6), 0, (8, 1), has_bias=True)]
    actual = computed((5, 8), parts, a, b, c, d, bias)
    np.testing.assert_array_equal(actual, np.concatenate([c @ d + bias, a @ b], axis=1))


def test_heads_are_written_side_by_side() -> None:
    a, b = whole(2, 3, 5, 4), whole(2, 3, 4, 6)
    actual = computed((2, 5, 3, 6), [StridedProduct((2, 3, 5, 6), 0, (90, 6, 18, 1))], a, b)
    np.testing.assert_array_equal(actual, (a @ b).swapaxes(1, 2))


def test_float16_sum_with_bias_is_rounded_once() -> None:
    """2049 is not a float16, but 2049 + 1 is."""
    a, b = np.array([[2048, 1]], "float16"), np.array([[1], [1]], "float16")
    actual = computed((1, 1), [StridedProduct((1, 1), 0, (1, 1), has_bias=True)], a, b, np.ones(1, "float16"))
    assert actual == 2050


@pytest.mark.parametrize(
    ("dtype", "strides", "expected"),
    [
        ("float64", (6, 1), 0),
        ("float64", (8, 1), 8 * 30),
        ("float16", (6, 1), 4 * (30 + 15 + 18)),
    ],
    ids=["in place", "at strides", "in float32"],
)
def test_workspace_is_stated(dtype: str, strides: tuple[int, int], expected: int) -> None:
    a, b, type = (TensorType(shape, np.dtype(dtype)) for shape in ((5, 3), (3, 6), (5, 8)))
    op = StridedProducts(type, [StridedProduct((5, 6), 0, strides, has_bias=True)])
    assert op.workspace(type, a, b, TensorType((6,), a.dtype)) == expected
    assert op.flops(type, a, b) == 30 * (2 * 3 + 1)


@pytest.mark.parametrize("step", [1, 2])
def test_memory_stays_within_stated_workspace(step: int) -> None:
    """No workspace if the product is written in place."""
    a, b, out = whole(300, 200), whole(200, 300), np.zeros((300, 300 * step))
    op = StridedProducts(TensorType.of(out), [StridedProduct((300, 300), 0, (300 * step, step))])
    assert op.internal
    stated = op.workspace(TensorType.of(out), TensorType.of(a), TensorType.of(b))
    assert stated == (step - 1) * 8 * 300 * 300
    assert allocated(lambda: op.forward(RunContext(np), a, b, out=out)) <= stated + 20_000
    np.testing.assert_array_equal(out[:, ::step], a @ b)
