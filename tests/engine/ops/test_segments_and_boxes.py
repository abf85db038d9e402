"""Segments, boxes, broadcast indices and the largest entries: against NumPy, at ties and edges, and used wrongly."""

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
    """The results of an op that has two, and, where asked for, the gradient of sum(first · cotangent)."""
    builder = Builder(registry())
    leaf = builder.leaf(TensorType.of(x), 0)
    y = getattr(leaf, op)(**attrs)
    found = [y.output(0), y.output(1)]
    if cotangent is not None:
        found += vjp_or_zeros(builder, [(found[0], builder.constant(cotangent))], [leaf])
    return EXECUTOR.run(make_plan(optimise(builder.graph(found)), LIMITS), {0: x})


# ---------------------------------------------------------------- segment_sum


def summed(x: Array, ids: Array, segments: int) -> Array:
    """Segment by segment."""
    rows = [x[ids == s].sum(0, dtype=x.dtype if x.dtype.kind == "f" else "int64") for s in range(segments)]
    return np.array(rows).reshape(segments, *x.shape[1:])


@pytest.mark.parametrize("shape", [(7,), (7, 3), (7, 2, 2), (1, 2), (7, 0)])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_segment_sum(shape: tuple[int, ...], dtype: str) -> None:
    x, ids = RNG.normal(size=shape), RNG.integers(0, 4, shape[0]).astype(dtype)
    weights = RNG.normal(size=(6, *shape[1:]))
    value, (gradient,) = grads("segment_sum", x, ids, segments=6, cotangent=weights)
    np.testing.assert_allclose(value, summed(x, ids, 6), 1e-14, 1e-15)
    np.testing.assert_array_equal(gradient, weights[ids])


def test_segments_without_rows_and_rows_without_segments() -> None:
    np.testing.assert_array_equal(run("segment_sum", np.ones((0, 2)), np.zeros(0, int), segments=3), np.zeros((3, 2)))
    assert run("segment_sum", np.ones((0, 2)), np.zeros(0, int), segments=0).shape == (0, 2)


def test_sums_are_as_wide_as_those_of_sum() -> None:
    ids = np.zeros(5000, "int64")
    total = run("segment_sum", np.ones(5000, "float16"), ids, segments=2)
    assert total.dtype == np.float16
    np.testing.assert_array_equal(total, [5000, 0])  # one by one, float16 stays at 2048
    for dtype in ("bool", *INTEGERS):
        found = run("segment_sum", np.ones(300, dtype), ids[:300], segments=1)
        assert (found.dtype, found[0]) == (np.int64, 300)
    assert run("segment_sum", np.ones(3, "float32"), ids[:3], segments=1).dtype == np.float32


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8"])
@pytest.mark.parametrize("mapped", [{0}, {1}, {0, 1}], ids=str)
def test_segments_of_many_examples(dtype: str, mapped: set[int]) -> None:
    xs, ids = RNG.integers(-9, 9, (3, 5, 2)).astype(dtype), RNG.integers(0, 4, (3, 5))
    arrays = [xs if 0 in mapped else xs[0], ids if 1 in mapped else ids[0]]
    found = run_mapped(arrays, mapped, 3)
    assert found.dtype == (dtype if dtype[0] == "f" else np.int64)
    for k in range(3):
        expected = summed(xs[k if 0 in mapped else 0], ids[k if 1 in mapped else 0], 4)
        np.testing.assert_array_equal(found[k], expected)


def run_mapped(arrays: list[Array], mapped: set[int], size: int) -> Array:
    """segment_sum into four segments, batched over some operands."""
    builder = Builder(registry())
    single = [a[0] if i in mapped else a for i, a in enumerate(arrays)]
    x, ids = (builder.leaf(TensorType.of(a), i) for i, a in enumerate(single))
    graph = vmap(builder.graph([x.segment_sum(ids, segments=4)]), mapped, size)
    return EXECUTOR.run(make_plan(optimise(graph), LIMITS), dict(enumerate(arrays)))[0]


def test_a_segment_of_one_example_is_not_one_of_the_next() -> None:
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
    place = tuple(slice(s, s + n) for s, n in zip(first, box, strict=True))
    expected, kept = x.copy(), weights.copy()
    expected[place], kept[place] = update, 0
    value, (dx, du) = grads("update_slice", x, update, starts=starts, cotangent=weights)
    np.testing.assert_array_equal(value, expected)
    np.testing.assert_array_equal(dx, kept)
    np.testing.assert_array_equal(du, weights[place])


def test_an_update_takes_the_common_dtype_and_its_gradient_its_own() -> None:
    value = run("update_slice", np.zeros(3, "int8"), np.array([0.5], "float32"), starts=[1])
    assert value.dtype == np.float32
    np.testing.assert_array_equal(value, [0, 0.5, 0])
    for dtype in DTYPES:
        assert run("update_slice", np.zeros(3, dtype), np.ones(1, dtype), starts=[2]).dtype == dtype
    _, (dx, du) = grads("update_slice", np.zeros(3, "float32"), np.ones(2), starts=[0])
    assert (dx.dtype, du.dtype) == (np.float32, np.float64)


# ---------------------------------------------------------------- take_along

TAKEN = [
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


def taken(x: Array, index: Array, axis: int) -> Array:
    """NumPy's, on operands broadcast off the axis."""
    return np.take_along_axis(x, index, axis)


@pytest.mark.parametrize(("shape", "indexed", "axis"), TAKEN)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_take_along(shape: tuple[int, ...], indexed: tuple[int, ...], axis: int, dtype: str) -> None:
    x, index = RNG.normal(size=shape), RNG.integers(0, 4, indexed).astype(dtype)
    expected = taken(x, index.astype("int64"), axis)
    weights = RNG.normal(size=expected.shape)
    value, (gradient,) = grads("take_along", x, index, axis=axis, cotangent=weights)
    np.testing.assert_array_equal(value, expected)
    read = [taken(np.eye(x.size)[i].reshape(shape), index.astype("int64"), axis) for i in range(x.size)]
    np.testing.assert_allclose(gradient.ravel(), [np.sum(r * weights) for r in read], 1e-13, 1e-14)


def test_take_along_moves_every_dtype() -> None:
    for dtype in DTYPES:
        x = RNG.integers(0, 2, (3, 4)).astype(dtype)
        found = run("take_along", x, np.array([[2, 0, 0, 1]]))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, x[[2, 0, 0, 1], range(4)][None])


# ---------------------------------------------------------------- topk


def first_of_equals(x: Array, k: int, axis: int) -> Array:
    """Positions by a sort of Python's on (larger first, NaN before all, lower index first)."""
    lines = np.moveaxis(x, axis, -1)
    found = np.empty((*lines.shape[:-1], k), "int64")
    for place in np.ndindex(*lines.shape[:-1]):
        line = [float(v) for v in lines[place]]
        order = sorted(range(len(line)), key=lambda i: (line[i] == line[i], -line[i] if line[i] == line[i] else 0, i))
        found[place] = order[:k]
    return np.moveaxis(found, -1, axis)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize(("k", "axis"), [(1, 0), (3, 0), (6, 0), (2, 1), (5, -1), (0, 0), (0, 1)])
def test_topk_is_stable(dtype: str, k: int, axis: int) -> None:
    x = RNG.integers(0, 3, (6, 5)).astype(dtype)
    values, indices = outputs("topk", x, k=k, axis=axis)
    expected = first_of_equals(x, k, axis)
    assert (values.dtype, indices.dtype) == (dtype, np.int64)
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, axis))


def test_nan_is_largest_and_zeros_are_equal() -> None:
    x = np.array([1.0, np.nan, -0.0, np.inf, 0.0, np.nan, -np.inf])
    values, indices, gradient = outputs("topk", x, np.arange(7.0), k=7)
    np.testing.assert_array_equal(indices, [1, 5, 3, 0, 2, 4, 6])
    np.testing.assert_array_equal(values, x[indices])
    np.testing.assert_array_equal(gradient[indices], np.arange(7.0))


@pytest.mark.parametrize(("k", "axis"), [(2, 0), (4, 1), (1, 1), (0, 0)])
def test_the_gradient_of_topk_goes_where_the_values_came_from(k: int, axis: int) -> None:
    x = RNG.normal(size=(3, 4))
    x[1] = x[0]
    places = first_of_equals(x, k, axis)
    weights = RNG.normal(size=places.shape)
    *_, gradient = outputs("topk", x, weights, k=k, axis=axis)
    expected = np.zeros_like(x)
    np.put_along_axis(expected, places, weights, axis)
    np.testing.assert_array_equal(gradient, expected)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("k", [1, 5, 12, 300])
def test_topk_among_the_least_numbers_there_are(dtype: str, axis: int, k: int) -> None:
    """Of which each stands for itself, and not for what was found already: as a sort has it, NaN first."""
    rng = np.random.default_rng(k)
    shape = (max(k, 12), 40)[:: 1 - 2 * axis]
    least = -np.inf if dtype.startswith("float") else False if dtype == "bool" else -128
    x = np.where(rng.random(shape) < 0.9, least, rng.integers(0, 3, shape)).astype(dtype)
    if dtype.startswith("float"):
        x[rng.random(shape) < 0.03] = np.nan
    values, indices = outputs("topk", x, k=k, axis=axis)
    wanted = first_of_equals(x, k, axis)
    np.testing.assert_array_equal(indices, wanted)
    np.testing.assert_array_equal(values, np.take_along_axis(x, wanted, axis))


def test_topk_of_nothing() -> None:
    values, indices = outputs("topk", np.zeros((0, 3)), k=0)
    assert values.shape == indices.shape == (0, 3)
    values, indices = outputs("topk", np.zeros((0, 3)), k=2, axis=1)
    assert values.shape == indices.shape == (0, 2)


# ---------------------------------------------------------------- wrong uses

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
def test_an_index_outside_is_refused(
    op: str, x: Array, count: tuple[int, ...], attrs: dict[str, Any], bad: np.integer[Any]
) -> None:
    found = error(op, x, np.full(count, bad), **attrs)
    assert (found.code, found.detail) == ("index_out_of_range", f"node 2 ({op}): {OUTSIDE}")


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
     "operand 1 (update) must have rank 2 and at most shape [3, 2], as x has, but has shape [2]"),
    ("update_slice", [np.zeros((3, 2)), np.zeros((1, 3))], {"starts": [0, 0]}, "shape_mismatch",
     "operand 1 (update) must have rank 2 and at most shape [3, 2], as x has, but has shape [1, 3]"),
    ("update_slice", [np.zeros((3, 2)), np.zeros((1, 1))], {"starts": [0]}, "bad_attribute",
     "attribute starts must have 2 entries, one for each axis, but has 1 entry"),
    ("update_slice", [np.zeros((3, 4)), np.zeros((1, 2))], {"starts": [0, 3]}, "bad_attribute",
     "attribute starts must be between -4 and 2 on axis 1, where 2 of 4 are replaced, but is 3"),
    ("update_slice", [np.zeros((3, 4)), np.zeros((1, 2))], {"starts": [-4, 0]}, "bad_attribute",
     "attribute starts must be between -3 and 2 on axis 0, where 1 of 3 are replaced, but is -4"),
    ("update_slice", [np.zeros((3, 4)), np.zeros((1, 2))], {"starts": [0, -1]}, "bad_attribute",
     "attribute starts must be between -4 and 2 on axis 1, where 2 of 4 are replaced, but is -1"),
    ("update_slice", [np.zeros(3), np.zeros(1)], {}, "bad_attribute", "attribute starts is required"),
    ("take_along", [np.zeros((3, 2)), np.zeros((3, 2))], {}, "dtype_mismatch",
     "operand 1 (index) must be of dtype int8, uint8, int16, int32, uint32, int64, but is float64"),
    ("take_along", [np.zeros((3, 2)), np.zeros(3, int)], {}, "shape_mismatch",
     "operand 1 (index) must have rank 2 and extents that broadcast with [3, 2] off axis 0, but has shape [3]"),
    ("take_along", [np.zeros((3, 2)), np.zeros(3, int)], {"axis": 1}, "shape_mismatch",
     "operand 1 (index) must have rank 2 and extents that broadcast with [3, 2] off axis 1, but has shape [3]"),
    ("take_along", [np.zeros((3, 2)), np.zeros((3, 3), int)], {}, "shape_mismatch",
     "operand 1 (index) must have rank 2 and extents that broadcast with [3, 2] off axis 0, but has shape [3, 3]"),
    ("take_along", [np.zeros(3), np.zeros(3, int)], {"axis": 1}, "bad_attribute",
     "axis must be between -1 and 0, but is 1"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "operands", "attrs", "code", "sentence"), WRONG)
def test_errors(op: str, operands: list[Array], attrs: dict[str, Any], code: str, sentence: str) -> None:
    found = error(op, *operands, **attrs)
    assert (found.code, found.detail) == (code, f"node {len(operands)} ({op}): {sentence}")


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
def test_errors_of_topk(x: Array, attrs: dict[str, Any], sentence: str) -> None:
    ops = registry().ops
    read = Statement(ops["get_output"], (1,), {"index": 0})
    nodes = [Statement(ops["input"]), Statement(ops["topk"], (0,), attrs), read]
    with pytest.raises(BadAttribute) as caught:
        forward(nodes, x)
    assert caught.value.detail == f"node 1 (topk): {sentence}"


def test_a_huge_number_of_segments_is_refused_before_it_is_made() -> None:
    assert error("segment_sum", np.zeros(0), np.zeros(0, int), segments=2**62).code == "over_budget"


# ---------------------------------------------------------------- segment_max, segment_min, segment_prod, segment_mean

REDUCTIONS = ["segment_max", "segment_min", "segment_prod", "segment_mean"]


@pytest.mark.parametrize("op", REDUCTIONS)
def test_there_may_be_no_segment(op: str) -> None:
    assert run(op, np.ones((0, 2)), np.zeros(0, int), segments=0).shape == (0, 2)
    assert error(op, np.ones(2), np.zeros(2, int), segments=-1).code == "bad_attribute"


@pytest.mark.parametrize("op", REDUCTIONS)
def test_segment_ids_are_the_second_operand(op: str) -> None:
    refused = error(op, np.ones(2), np.array([0, 2]), segments=2)
    assert (refused.code, refused.operand) == ("index_out_of_range", 1)
    refused = error(op, np.ones((2, 3)), np.zeros(3, int), segments=2)
    assert (refused.code, refused.operand) == ("shape_mismatch", 1)


@pytest.mark.parametrize("op", REDUCTIONS[:3])
def test_segment_ids_outside_in_a_batch_are_the_second_operand(op: str) -> None:
    x, ids = np.ones(2), np.array([[0, 1], [2, 0]])
    graph = written(lambda g, x, ids: [getattr(g, op)(x, ids, segments=2)], x, ids)
    with pytest.raises(IndexOutOfRange) as caught:
        batch(graph, [1], differentiated=False)
    assert caught.value.operand == 1


def test_means_of_integers_are_those_of_floats() -> None:
    """2⁶² + 2⁶² is no int64, and 200 rows are no int8."""
    assert run("segment_mean", np.full(2, 2**62), np.zeros(2, int), segments=1).tolist() == [2.0**62]
    assert run("segment_mean", np.full(200, 100, "int8"), np.zeros(200, int), segments=1).tolist() == [100.0]
