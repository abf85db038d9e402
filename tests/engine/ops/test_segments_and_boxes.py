"""Segment reductions, box updates, broadcast indices and topk: against NumPy, at ties and edges, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import DTYPES, Builder, Compiler, Program, Statement, TensorType, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.autodiff.vmap import vmap
from engine.compiler.plan import make_plan
from engine.ir.errors import BadAttribute, IndexOutOfRange
from engine.ir.passes import optimise
from engine.ir.tensor_type import REALS
from tests.engine.looping import batch, written
from tests.engine.ops.run import EXECUTOR, Array, error, grads, run

RNG = np.random.default_rng(12)
INTEGERS = ["int8", "uint8", "int32", "int64"]
LIMITS = Builder(registry()).limits


def outputs(op: str, x: Array, cotangent: Array | None = None, **attrs: Any) -> list[Array]:
    """Return both results of an op, and with a cotangent the gradient of sum(first · cotangent)."""
    builder = Builder(registry())
    leaf = builder.leaf(TensorType.of(x), 0)
    y = getattr(leaf, op)(**attrs)
    results = [y.output(0), y.output(1)]
    if cotangent is not None:
        results += vjp_or_zeros(builder, [(results[0], builder.constant(cotangent))], [leaf])
    return EXECUTOR.run(make_plan(optimise(builder.graph(results)), LIMITS), {0: x})


# ---------------------------------------------------------------- segment_sum


def segment_sums(x: Array, ids: Array, segments: int) -> Array:
    """Sum segment by segment."""
    rows = [x[ids == s].sum(0, dtype=x.dtype if x.dtype.kind == "f" else "int64") for s in range(segments)]
    return np.array(rows).reshape(segments, *x.shape[1:])


@pytest.mark.parametrize("shape", [(7,), (7, 3), (7, 2, 2), (1, 2), (7, 0)])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_segment_sum(shape: tuple[int, ...], dtype: str) -> None:
    x, ids = RNG.normal(size=shape), RNG.integers(0, 4, shape[0]).astype(dtype)
    weights = RNG.normal(size=(6, *shape[1:]))
    value, (gradient,) = grads("segment_sum", x, ids, segments=6, cotangent=weights)
    np.testing.assert_allclose(value, segment_sums(x, ids, 6), 1e-14, 1e-15)
    np.testing.assert_array_equal(gradient, weights[ids])


def test_empty_segments_and_no_segments() -> None:
    np.testing.assert_array_equal(run("segment_sum", np.ones((0, 2)), np.zeros(0, int), segments=3), np.zeros((3, 2)))
    assert run("segment_sum", np.ones((0, 2)), np.zeros(0, int), segments=0).shape == (0, 2)


def test_segment_sum_has_the_dtype_of_sum() -> None:
    ids = np.zeros(5000, "int64")
    total = run("segment_sum", np.ones(5000, "float16"), ids, segments=2)
    assert total.dtype == np.float16
    np.testing.assert_array_equal(total, [5000, 0])  # float16 additions would stop at 2048
    for dtype in ("bool", *INTEGERS):
        actual = run("segment_sum", np.ones(300, dtype), ids[:300], segments=1)
        assert (actual.dtype, actual[0]) == (np.int64, 300)
    assert run("segment_sum", np.ones(3, "float32"), ids[:3], segments=1).dtype == np.float32


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8"])
@pytest.mark.parametrize("mapped", [{0}, {1}, {0, 1}], ids=str)
def test_vmap_of_segment_sum(dtype: str, mapped: set[int]) -> None:
    xs, ids = RNG.integers(-9, 9, (3, 5, 2)).astype(dtype), RNG.integers(0, 4, (3, 5))
    arrays = [xs if 0 in mapped else xs[0], ids if 1 in mapped else ids[0]]
    actual = run_mapped(arrays, mapped, 3)
    assert actual.dtype == (dtype if dtype[0] == "f" else np.int64)
    for k in range(3):
        expected = segment_sums(xs[k if 0 in mapped else 0], ids[k if 1 in mapped else 0], 4)
        np.testing.assert_array_equal(actual[k], expected)


def run_mapped(arrays: list[Array], mapped: set[int], size: int) -> Array:
    """Run segment_sum into four segments, batched over some operands."""
    builder = Builder(registry())
    single = [a[0] if i in mapped else a for i, a in enumerate(arrays)]
    x, ids = (builder.leaf(TensorType.of(a), i) for i, a in enumerate(single))
    graph = vmap(builder.graph([x.segment_sum(ids, segments=4)]), mapped, size)
    return EXECUTOR.run(make_plan(optimise(graph), LIMITS), dict(enumerate(arrays)))[0]


def test_out_of_range_segment_does_not_reach_the_next_example() -> None:
    with pytest.raises(IndexOutOfRange, match=r"all must lie in \[0, 4\)"):
        run_mapped([np.ones((2, 3)), np.array([[0, 1, 4], [0, 1, 2]])], {0, 1}, 2)


# ---------------------------------------------------------------- update_slice


@pytest.mark.parametrize(
    ("shape", "box", "starts"),
    [
        ((4, 5), (2, 3), [1, 2]),
        ((4, 5), (4, 5), [0, 0]),
        ((4, 5), (1, 5), [3, -5]),
        ((4, 5), (2, 1), [-2, -1]),
        ((4, 5), (0, 2), [4, 1]),
        ((4, 0), (2, 0), [1, 0]),
        ((3,), (1,), [-3]),
        ((), (), []),
    ],
)
def test_update_slice(shape: tuple[int, ...], box: tuple[int, ...], starts: list[int]) -> None:
    x, update, weights = RNG.normal(size=shape), RNG.normal(size=box), RNG.normal(size=shape)
    first = [s % n if n else s for s, n in zip(starts, shape, strict=True)] if 0 not in box else starts
    region = tuple(slice(s, s + n) for s, n in zip(first, box, strict=True))
    expected, outside = x.copy(), weights.copy()
    expected[region], outside[region] = update, 0
    value, (dx, du) = grads("update_slice", x, update, starts=starts, cotangent=weights)
    np.testing.assert_array_equal(value, expected)
    np.testing.assert_array_equal(dx, outside)
    np.testing.assert_array_equal(du, weights[region])


def test_dtypes_of_update_slice_and_its_gradients() -> None:
    value = run("update_slice", np.zeros(3, "int8"), np.array([0.5], "float32"), starts=[1])
    assert value.dtype == np.float32
    np.testing.assert_array_equal(value, [0, 0.5, 0])
    for dtype in DTYPES:
        assert run("update_slice", np.zeros(3, dtype), np.ones(1, dtype), starts=[2]).dtype == dtype
    _, (dx, du) = grads("update_slice", np.zeros(3, "float32"), np.ones(2), starts=[0])
    assert (dx.dtype, du.dtype) == (np.float32, np.float64)


# ---------------------------------------------------------------- take_along

TAKE_ALONG_CASES = [
    ((4,), (6,), 0),
    ((4, 3), (6, 3), 0),
    ((3, 4), (3, 7), -1),
    ((3, 4), (1, 7), 1),
    ((1, 4), (3, 7), 1),
    ((1, 4, 3), (2, 5, 1), 1),
    ((4, 1), (2, 3), -2),
    ((4, 3), (0, 3), 0),
    ((4, 0), (2, 1), 0),
]


def take_along_axis(x: Array, index: Array, axis: int) -> Array:
    """NumPy's result, on operands broadcast off the axis."""
    return np.take_along_axis(x, index, axis)


@pytest.mark.parametrize(("shape", "indexed", "axis"), TAKE_ALONG_CASES)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_take_along(shape: tuple[int, ...], indexed: tuple[int, ...], axis: int, dtype: str) -> None:
    x, index = RNG.normal(size=shape), RNG.integers(0, 4, indexed).astype(dtype)
    expected = take_along_axis(x, index.astype("int64"), axis)
    weights = RNG.normal(size=expected.shape)
    value, (gradient,) = grads("take_along", x, index, axis=axis, cotangent=weights)
    np.testing.assert_array_equal(value, expected)
    read = [take_along_axis(np.eye(x.size)[i].reshape(shape), index.astype("int64"), axis) for i in range(x.size)]
    np.testing.assert_allclose(gradient.ravel(), [np.sum(r * weights) for r in read], 1e-13, 1e-14)


def test_take_along_of_every_dtype() -> None:
    for dtype in DTYPES:
        x = RNG.integers(0, 2, (3, 4)).astype(dtype)
        actual = run("take_along", x, np.array([[2, 0, 0, 1]]))
        assert actual.dtype == dtype
        np.testing.assert_array_equal(actual, x[[2, 0, 0, 1], range(4)][None])


# ---------------------------------------------------------------- topk


def stable_topk(x: Array, k: int, axis: int) -> Array:
    """Return positions of a Python sort: larger first, NaN before all, lower index first."""
    lines = np.moveaxis(x, axis, -1)
    result = np.empty((*lines.shape[:-1], k), "int64")
    for position in np.ndindex(*lines.shape[:-1]):
        line = [float(v) for v in lines[position]]
        order = sorted(range(len(line)), key=lambda i: (line[i] == line[i], -line[i] if line[i] == line[i] else 0, i))
        result[position] = order[:k]
    return np.moveaxis(result, -1, axis)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize(("k", "axis"), [(1, 0), (3, 0), (6, 0), (2, 1), (5, -1), (0, 0), (0, 1)])
def test_topk_is_stable(dtype: str, k: int, axis: int) -> None:
    x = RNG.integers(0, 3, (6, 5)).astype(dtype)
    values, indices = outputs("topk", x, k=k, axis=axis)
    expected = stable_topk(x, k, axis)
    assert (values.dtype, indices.dtype) == (dtype, np.int64)
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, axis))


def test_topk_treats_nan_as_largest_and_zeros_as_equal() -> None:
    x = np.array([1.0, np.nan, -0.0, np.inf, 0.0, np.nan, -np.inf])
    values, indices, gradient = outputs("topk", x, np.arange(7.0), k=7)
    np.testing.assert_array_equal(indices, [1, 5, 3, 0, 2, 4, 6])
    np.testing.assert_array_equal(values, x[indices])
    np.testing.assert_array_equal(gradient[indices], np.arange(7.0))


@pytest.mark.parametrize(("k", "axis"), [(2, 0), (4, 1), (1, 1), (0, 0)])
def test_gradient_of_topk_goes_to_the_selected_entries(k: int, axis: int) -> None:
    x = RNG.normal(size=(3, 4))
    x[1] = x[0]
    indices = stable_topk(x, k, axis)
    weights = RNG.normal(size=indices.shape)
    *_, gradient = outputs("topk", x, weights, k=k, axis=axis)
    expected = np.zeros_like(x)
    np.put_along_axis(expected, indices, weights, axis)
    np.testing.assert_array_equal(gradient, expected)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("k", [1, 5, 12, 300])
def test_topk_among_the_smallest_values_of_a_dtype(dtype: str, axis: int, k: int) -> None:
    """Smallest values must not be taken for entries already selected: as in a sort, NaN first."""
    rng = np.random.default_rng(k)
    shape = (max(k, 12), 40)[:: 1 - 2 * axis]
    smallest = -np.inf if dtype.startswith("float") else False if dtype == "bool" else -128
    x = np.where(rng.random(shape) < 0.9, smallest, rng.integers(0, 3, shape)).astype(dtype)
    if dtype.startswith("float"):
        x[rng.random(shape) < 0.03] = np.nan
    values, indices = outputs("topk", x, k=k, axis=axis)
    expected = stable_topk(x, k, axis)
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, axis))


def test_topk_of_empty_tensors() -> None:
    values, indices = outputs("topk", np.zeros((0, 3)), k=0)
    assert values.shape == indices.shape == (0, 3)
    values, indices = outputs("topk", np.zeros((0, 3)), k=2, axis=1)
    assert values.shape == indices.shape == (0, 2)


# ---------------------------------------------------------------- errors

OUTSIDE = "operand 1 holds an index outside the axis: all must lie in [0, 4)"


@pytest.mark.parametrize("bad", [np.int64(-1), np.int8(-128), np.uint8(255), np.int64(4), np.int64(2**62)])
@pytest.mark.parametrize(
    ("op", "x", "count", "attrs"),
    [
        ("segment_sum", np.ones((3, 2)), (3,), {"segments": 4}),
        ("take_along", np.ones((4, 2)), (3, 2), {}),
        ("take_along", np.ones((2, 4)), (1, 3), {"axis": 1}),
    ],
)
def test_out_of_range_index_is_refused(
    op: str, x: Array, count: tuple[int, ...], attrs: dict[str, Any], bad: np.integer[Any]
) -> None:
    refused = error(op, x, np.full(count, bad), **attrs)
    assert (refused.code, refused.detail) == ("index_out_of_range", f"node 2 ({op}): {OUTSIDE}")


WRONG = [
    ("segment_sum", [np.zeros(3), np.zeros(3)], {"segments": 2}, "dtype_mismatch",
     "operand 1 (segment_ids) must be of dtype int8, uint8, int16, int32, uint32, int64, but is float64"),
    ("segment_sum", [np.zeros(()), np.zeros(0, int)], {"segments": 2}, "shape_mismatch",
     "needs at least 1 axis to add up over, but the operand has 0"),
    ("segment_sum", [np.zeros((3, 2)), np.zeros(2, int)], {"segments": 2}, "shape_mismatch",
     "operand 1 (segment_ids) must have shape [3], one for each entry of x's first axis, but has shape [2]"),
    ("segment_sum", [np.zeros((3, 2)), np.zeros((3, 2), int)], {"segments": 2}, "shape_mismatch",
     "operand 1 (segment_ids) must have shape [3], one for each entry of x's first axis, but has shape [3, 2]"),
    ("segment_sum", [np.zeros(3), np.zeros(3, int)], {}, "bad_attribute", "attribute segments is required"),
    ("segment_sum", [np.zeros(3), np.zeros(3, int)], {"segments": -1}, "bad_attribute",
     "attribute segments must be a whole number of at least 0, but is -1"),
    ("update_slice", [np.zeros((3, 2)), np.zeros(2)], {"starts": [0, 0]}, "shape_mismatch",
     "operand 1 (update) must have rank 2 and at most shape [3, 2], like x, but has shape [2]"),
    ("update_slice", [np.zeros((3, 2)), np.zeros((1, 3))], {"starts": [0, 0]}, "shape_mismatch",
     "operand 1 (update) must have rank 2 and at most shape [3, 2], like x, but has shape [1, 3]"),
    ("update_slice", [np.zeros((3, 2)), np.zeros((1, 1))], {"starts": [0]}, "bad_attribute",
     "attribute starts must have 2 entries, one for each axis, but has 1 entry"),
    ("update_slice", [np.zeros((3, 4)), np.zeros((1, 2))], {"starts": [0, 3]}, "bad_attribute",
     "attribute starts must be between -4 and 2 on axis 1, where 2 of 4 entries are replaced, but is 3"),
    ("update_slice", [np.zeros((3, 4)), np.zeros((1, 2))], {"starts": [-4, 0]}, "bad_attribute",
     "attribute starts must be between -3 and 2 on axis 0, where 1 of 3 entries are replaced, but is -4"),
    ("update_slice", [np.zeros((3, 4)), np.zeros((1, 2))], {"starts": [0, -1]}, "bad_attribute",
     "attribute starts must be between -4 and 2 on axis 1, where 2 of 4 entries are replaced, but is -1"),
    ("update_slice", [np.zeros(3), np.zeros(1)], {}, "bad_attribute", "attribute starts is required"),
    ("take_along", [np.zeros((3, 2)), np.zeros((3, 2))], {}, "dtype_mismatch",
     "operand 1 (index) must be of dtype int8, uint8, int16, int32, uint32, int64, but is float64"),
    ("take_along", [np.zeros((3, 2)), np.zeros(3, int)], {}, "shape_mismatch",
     "operand 1 (index) must have rank 2 and extents that broadcast with [3, 2] except on axis 0, but has shape [3]"),
    ("take_along", [np.zeros((3, 2)), np.zeros(3, int)], {"axis": 1}, "shape_mismatch",
     "operand 1 (index) must have rank 2 and extents that broadcast with [3, 2] except on axis 1, but has shape [3]"),
    ("take_along", [np.zeros((3, 2)), np.zeros((3, 3), int)], {}, "shape_mismatch",
     ("operand 1 (index) must have rank 2 and extents that broadcast with [3, 2] except on axis 0, but has shape "
     "[3, 3]")),
    ("take_along", [np.zeros(3), np.zeros(3, int)], {"axis": 1}, "bad_attribute",
     "axis must be between -1 and 0, but is 1"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "operands", "attrs", "code", "sentence"), WRONG)
def test_invalid_operands_are_refused(
    op: str, operands: list[Array], attrs: dict[str, Any], code: str, sentence: str
) -> None:
    refused = error(op, *operands, **attrs)
    assert (refused.code, refused.detail) == (code, f"node {len(operands)} ({op}): {sentence}")


WRONG_K = [
    (np.zeros((3, 2)), {"k": 4}, "attribute k must be at most 3, the extent of axis 0, but is 4"),
    (np.zeros((3, 2)), {"k": 3, "axis": -1}, "attribute k must be at most 2, the extent of axis 1, but is 3"),
    (np.zeros(3), {"k": -1}, "attribute k must be a whole number of at least 0, but is -1"),
    (np.zeros(3), {}, "attribute k is required"),
    (np.zeros(3), {"k": 1, "axis": 1}, "axis must be between -1 and 0, but is 1"),
]  # fmt: skip


def forward(nodes: list[Statement], x: Array) -> None:
    Compiler(LIMITS).forward(Program(registry(), nodes), {0: TensorType.of(x)})


@pytest.mark.parametrize(("x", "attrs", "sentence"), WRONG_K)
def test_invalid_attributes_of_topk_are_refused(x: Array, attrs: dict[str, Any], sentence: str) -> None:
    ops = registry().ops
    read = Statement(ops["get_output"], (1,), {"index": 0})
    nodes = [Statement(ops["input"]), Statement(ops["topk"], (0,), attrs), read]
    with pytest.raises(BadAttribute) as caught:
        forward(nodes, x)
    assert caught.value.detail == f"node 1 (topk): {sentence}"


def test_huge_number_of_segments_is_refused() -> None:
    assert error("segment_sum", np.zeros(0), np.zeros(0, int), segments=2**62).code == "over_budget"


# ---------------------------------------------------------------- segment_max, segment_min, segment_prod, segment_mean

REDUCTIONS = ["segment_max", "segment_min", "segment_prod", "segment_mean"]


@pytest.mark.parametrize("op", REDUCTIONS)
def test_zero_segments_are_allowed(op: str) -> None:
    assert run(op, np.ones((0, 2)), np.zeros(0, int), segments=0).shape == (0, 2)
    assert error(op, np.ones(2), np.zeros(2, int), segments=-1).code == "bad_attribute"


@pytest.mark.parametrize("op", REDUCTIONS)
def test_errors_name_segment_ids_as_operand_1(op: str) -> None:
    refused = error(op, np.ones(2), np.array([0, 2]), segments=2)
    assert (refused.code, refused.operand) == ("index_out_of_range", 1)
    refused = error(op, np.ones((2, 3)), np.zeros(3, int), segments=2)
    assert (refused.code, refused.operand) == ("shape_mismatch", 1)


@pytest.mark.parametrize("op", REDUCTIONS[:3])
def test_batched_errors_name_segment_ids_as_operand_1(op: str) -> None:
    x, ids = np.ones(2), np.array([[0, 1], [2, 0]])
    graph = written(lambda g, x, ids: [getattr(g, op)(x, ids, segments=2)], x, ids)
    with pytest.raises(IndexOutOfRange) as caught:
        batch(graph, [1], differentiated=False)
    assert caught.value.operand == 1


def test_segment_means_of_integers_do_not_overflow() -> None:
    """2⁶² + 2⁶² exceeds int64, and 200 rows exceed int8."""
    assert run("segment_mean", np.full(2, 2**62), np.zeros(2, int), segments=1).tolist() == [2.0**62]
    assert run("segment_mean", np.full(200, 100, "int8"), np.zeros(200, int), segments=1).tolist() == [100.0]
