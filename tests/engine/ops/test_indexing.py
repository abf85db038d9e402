"""Indexing, embedding tables and sorting: against NumPy, ties and NaN, every index dtype, and out of range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, TensorType, registry
from engine.compiler.plan import make_plan
from engine.ir.errors import IndexOutOfRange
from engine.ir.op import Array
from engine.ir.passes import optimise
from tests.engine.ops.run import EXECUTOR, error, grads, run

RNG = np.random.default_rng(11)
LIMITS = Builder(registry()).limits
INTEGERS = ["int8", "uint8", "int32", "int64"]


def gathered(x: Array, index: Array, axis: int) -> Array:
    """Gather entry by entry."""
    y = np.empty(index.shape, x.dtype)
    for position in np.ndindex(index.shape):
        source = list(position)
        source[axis] = index[position]
        y[position] = x[tuple(source)]
    return y


def scattered(x: Array, index: Array, updates: Array, axis: int) -> Array:
    """Scatter entry by entry."""
    y = x.copy()
    for position in np.ndindex(index.shape):
        target = list(position)
        target[axis] = index[position]
        y[tuple(target)] += updates[position]
    return y


CASES = [((4,), (6,), 0), ((4, 3), (6, 3), 0), ((4, 3), (2, 2), 0), ((3, 4), (2, 7), 1), ((2, 3, 4), (2, 5, 3), 1)]


@pytest.mark.parametrize(("shape", "indexed", "axis"), CASES)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_gather_and_scatter_add(shape: tuple[int, ...], indexed: tuple[int, ...], axis: int, dtype: str) -> None:
    x, updates = RNG.normal(size=shape), RNG.normal(size=indexed)
    index = RNG.integers(0, shape[axis], indexed).astype(dtype)
    value, (gradient,) = grads("gather", x, index, axis=axis, cotangent=updates)
    np.testing.assert_array_equal(value, gathered(x, index, axis))
    np.testing.assert_allclose(gradient, scattered(0 * x, index, updates, axis), 1e-14, 1e-15)
    weights = RNG.normal(size=shape)
    value, (first, third) = grads("scatter_add", x, index, updates, axis=axis, cotangent=weights)
    np.testing.assert_allclose(value, scattered(x, index, updates, axis), 1e-14, 1e-15)
    np.testing.assert_array_equal(first, weights)
    np.testing.assert_array_equal(third, gathered(weights, index, axis))


@pytest.mark.parametrize(("shape", "axis"), [((4, 3), 0), ((3, 4), 1), ((2, 4, 3), 1), ((4,), 0), ((4, 0), 0)])
def test_list_of_indices_gathers_slices(shape: tuple[int, ...], axis: int) -> None:
    """A broadcast list of indices takes a different path through the kernels."""
    listed = [2, 0, 2, 3, 2]
    x = RNG.normal(size=shape)
    column = np.reshape(listed, [5 if i == axis else 1 for i in range(len(shape))])
    index = np.broadcast_to(column, [5 if i == axis else n for i, n in enumerate(shape)])
    weights = RNG.normal(size=index.shape)
    value, (gradient,) = grads("gather", x, indices=listed, axis=axis, cotangent=weights)
    np.testing.assert_array_equal(value, x.take(listed, axis))
    np.testing.assert_allclose(gradient, scattered(0 * x, index, weights, axis), 1e-14, 1e-15)


def run_on_broadcast_index(op: str, x: Array, column: Array, width: int, *others: Array) -> Array:
    """Run the op with an index that the graph broadcasts along x's last axis."""
    builder = Builder(registry())
    arrays = [x, column, *others]
    first, index, *rest = [builder.leaf(TensorType.of(a), i) for i, a in enumerate(arrays)]
    rows = index.broadcast_to(shape=(column.shape[0], width))
    y = getattr(first, op)(rows, *rest, axis=0)
    return EXECUTOR.run(make_plan(optimise(builder.graph([y])), LIMITS), dict(enumerate(arrays)))[0]


@pytest.mark.parametrize("width", [3, 2, 1, 0])
def test_repeats_in_a_broadcast_index_accumulate(width: int) -> None:
    x, updates = RNG.normal(size=(4, 3)), RNG.normal(size=(5, width))
    column = np.array([[3], [1], [3], [3], [0]])
    index = np.broadcast_to(column, (5, width))
    np.testing.assert_array_equal(run_on_broadcast_index("gather", x, column, width), x[column[:, 0], :width])
    actual = run_on_broadcast_index("scatter_add", x, column, width, updates)
    np.testing.assert_allclose(actual, scattered(x, index, updates, 0), 1e-14, 1e-15)


@pytest.mark.parametrize("wrong", [-1, 4])
def test_broadcast_index_is_checked(wrong: int) -> None:
    x, column = np.zeros((4, 3)), np.array([[0], [wrong]])
    for op, others in (("gather", ()), ("scatter_add", (np.zeros((2, 3)),))):
        with pytest.raises(IndexOutOfRange, match=r"all must lie in \[0, 4\)"):
            run_on_broadcast_index(op, x, column, 3, *others)


def test_narrow_dtypes_are_accumulated_in_wider_ones() -> None:
    index = np.zeros(5000, "int64")
    total = run("scatter_add", np.zeros(1, "float16"), index, np.ones(5000, "float16"))
    assert total.dtype == np.float16
    assert total[0] == 5000  # float16 additions would stop at 2048
    wrapped = run("scatter_add", np.zeros(1, "int8"), index[:300], np.ones(300, "int8"))
    assert (wrapped.dtype, wrapped[0]) == (np.int8, 300 - 256)
    flags = run("scatter_add", np.zeros(2, "bool"), index[:4], np.ones(4, "bool"))
    np.testing.assert_array_equal(flags, [True, False])
    large = run("scatter_add", np.array([2**62]), index[:2], np.array([-(2**61), 3]))
    assert (large.dtype, large[0]) == (np.int64, 2**62 - 2**61 + 3)


def test_embedding() -> None:
    weight, indices = RNG.normal(size=(5, 2, 3)), np.array([[1, 4, 1], [0, 1, 1]], "uint8")
    weights = RNG.normal(size=(2, 3, 2, 3))
    value, (gradient,) = grads("embedding", weight, indices, cotangent=weights)
    np.testing.assert_array_equal(value, weight[indices])
    expected = np.zeros_like(weight)
    np.add.at(expected, indices, weights)
    np.testing.assert_allclose(gradient, expected, 1e-14, 1e-15)
    np.testing.assert_array_equal(run("embedding", weight, np.array(4)), weight[4])
    assert run("embedding", weight, np.zeros((2, 0), "int64")).shape == (2, 0, 2, 3)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float64"])
def test_one_hot(dtype: str) -> None:
    indices = np.array([[2, 0], [1, 2]], "uint8")
    actual = run("one_hot", indices, classes=4, dtype=dtype)
    assert actual.dtype == dtype
    np.testing.assert_array_equal(actual, np.eye(4, dtype=dtype)[indices])
    assert run("one_hot", np.array(1), classes=2).dtype == np.float64
    assert run("one_hot", np.zeros((0,), "int32"), classes=0).shape == (0, 0)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int64", "bool"])
def test_order_is_stable(axis: int, dtype: str) -> None:
    x = RNG.integers(0, 3, (40, 30)).astype(dtype)
    np.testing.assert_array_equal(run("argsort", x, axis=axis), np.argsort(x, axis, kind="stable"))
    np.testing.assert_array_equal(run("sort", x, axis=axis), np.sort(x, axis))


def test_nan_sorts_last_with_its_gradient() -> None:
    x = np.array([np.nan, 1.0, -np.inf, 1.0, np.inf, np.nan, -0.0, 0.0])
    order = [2, 6, 7, 1, 3, 4, 0, 5]
    np.testing.assert_array_equal(run("argsort", x, axis=0), order)
    value, (gradient,) = grads("sort", x, axis=0, cotangent=np.arange(8.0))
    np.testing.assert_array_equal(value, x[order])
    np.testing.assert_array_equal(np.signbit(value[1:3]), [True, False])
    np.testing.assert_array_equal(gradient[order], np.arange(8.0))


OUTSIDE = "operand {} holds an index outside the axis: all must lie in [0, {})"


@pytest.mark.parametrize(
    ("op", "operand", "build", "extent"),
    [
        ("gather", 1, lambda bad: (np.zeros((4, 3)), np.full((2, 3), bad)), 4),
        ("scatter_add", 1, lambda bad: (np.zeros((4, 3)), np.full((2, 2), bad), np.zeros((2, 2))), 4),
        ("one_hot", 0, lambda bad: (np.full(3, bad),), 4),
        ("gather", 1, lambda bad: (np.zeros(0), np.array([bad])), 0),
    ],
)
@pytest.mark.parametrize("bad", [np.int64(-1), np.int8(-128), np.uint8(255), np.int64(4), np.int64(2**62)])
def test_out_of_range_index_is_refused(op: str, operand: int, build: Any, extent: int, bad: np.integer[Any]) -> None:
    operands = build(bad)
    attrs = {"classes": extent} if op == "one_hot" else {}
    refused = error(op, *operands, **attrs)
    assert refused.code == "index_out_of_range"
    assert refused.detail == f"node {len(operands)} ({op}): {OUTSIDE.format(operand, extent)}"
    assert (refused.operand, refused.expected) == (operand, f"in [0, {extent})")


def test_out_of_range_index_into_a_table_is_refused() -> None:
    refused = error("embedding", np.zeros((4, 2)), np.array([0, 4]))
    assert (refused.code, refused.node, refused.operand) == ("index_out_of_range", 2, 1)


WRONG = [
    ("gather", [np.zeros(3), np.zeros(3)], {}, "dtype_mismatch",
     "operand 1 (index) must be of dtype int8, uint8, int16, int32, uint32, int64, but is float64"),
    ("gather", [np.zeros(3), np.zeros(3, bool)], {}, "dtype_mismatch",
     "operand 1 (index) must be of dtype int8, uint8, int16, int32, uint32, int64, but is bool"),
    ("gather", [np.zeros((3, 2)), np.zeros((3, 3), int)], {}, "shape_mismatch",
     "operand 1 (index) must have rank 2 and at most shape [3, 2] except on axis 0, but has shape [3, 3]"),
    ("gather", [np.zeros((3, 2)), np.zeros(3, int)], {}, "shape_mismatch",
     "operand 1 (index) must have rank 2 and at most shape [3, 2] except on axis 0, but has shape [3]"),
    ("gather", [np.zeros(3)], {}, "operand_count",
     "needs an index operand or the attribute indices, but got neither"),
    ("gather", [np.zeros(3), np.zeros(3, int)], {"indices": [0]}, "bad_attribute",
     "takes an index operand or the attribute indices, but got both"),
    ("gather", [np.zeros(3)], {"indices": [-1]}, "bad_attribute",
     "attribute indices must lie in [0, 3), but holds -1"),
    ("gather", [np.zeros(3)], {"indices": [0], "axis": 1}, "bad_attribute",
     "axis must be between -1 and 0, but is 1"),
    ("scatter_add", [np.zeros(3), np.zeros(2, int), np.zeros(3)], {}, "shape_mismatch",
     "operand 2 (updates) must have the index's shape [2], but has [3]"),
    ("embedding", [np.zeros(()), np.zeros(2, int)], {}, "shape_mismatch",
     "needs at least 1 axis to look up rows, but the operand has 0"),
    ("embedding", [np.zeros((3, 2)), np.zeros(2)], {}, "dtype_mismatch",
     "operand 1 (indices) must be of dtype int8, uint8, int16, int32, uint32, int64, but is float64"),
    ("one_hot", [np.zeros(2, bool)], {"classes": 2}, "dtype_mismatch",
     "operand 0 (indices) must be of dtype int8, uint8, int16, int32, uint32, int64, but is bool"),
    ("one_hot", [np.zeros(2, int)], {}, "bad_attribute", "attribute classes is required"),
    ("one_hot", [np.zeros(2, int)], {"classes": -1}, "bad_attribute",
     "attribute classes must be a whole number of at least 0, but is -1"),
    ("sort", [np.zeros(2)], {}, "bad_attribute", "attribute axis is required"),
    ("argsort", [np.zeros(2)], {"axis": 1}, "bad_attribute", "axis must be between -1 and 0, but is 1"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "operands", "attrs", "code", "sentence"), WRONG)
def test_invalid_operands_are_refused(
    op: str, operands: list[Array], attrs: dict[str, Any], code: str, sentence: str
) -> None:
    refused = error(op, *operands, **attrs)
    assert (refused.code, refused.detail) == (code, f"node {len(operands)} ({op}): {sentence}")


def test_huge_number_of_classes_is_refused() -> None:
    assert error("one_hot", np.zeros(0, int), classes=2**62).code == "over_budget"


@pytest.mark.slow
def test_list_of_indices_is_limited_to_a_million() -> None:
    assert run("gather", np.zeros(1), indices=[0] * 10**6).shape == (10**6,)
    assert error("gather", np.zeros(1), indices=[0] * (10**6 + 1)).code == "over_budget"


def test_listed_index_out_of_range_is_refused() -> None:
    assert error("gather", np.zeros(3), indices=[3]).got == "3"
