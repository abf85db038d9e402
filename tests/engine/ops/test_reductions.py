"""Reductions where formulas break: ties, zeros, infinities, extreme magnitudes, and empty axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import COTANGENTS, Compiler, EngineError, Limits, Program, Statement, TensorType, open_executor, registry
from engine.ir.op import Kernel
from engine.ir.run_context import RunContext
from tests.engine.ops.run import ON_GPU, Array, error, grads, run
from tests.sampling import together

RTOL, ATOL = 1e-12, 1e-14
REDUCTIONS = ("sum", "mean", "max", "min", "prod", "var", "norm", "logsumexp", "any", "all")


def gradient(op: str, x: Any, **attrs: Any) -> Array:
    """Return the gradient of sum(op(x))."""
    return grads(op, np.asarray(x, dtype=float), **attrs)[1][0]


def hessian(op: str, x: Any, **attrs: Any) -> Array:
    """Return the second derivatives of sum(op(x)) at a vector, with the op `grad`."""
    ops, point = registry().ops, np.asarray(x, dtype=float)
    statement = Statement
    program = Program(
        registry(), [statement(ops["input"]), statement(ops[op], (0,), attrs), statement(ops["grad"], (1, 0))]
    )
    compiler, types = Compiler(Limits()), {0: TensorType.of(point)}
    compiled = compiler.gradients(program, types, wrt=[0], cotangent=TensorType.of(point))
    executor = open_executor("cpu")
    return np.stack([executor.run(compiled.plan, {0: point, (COTANGENTS, 2): row})[1] for row in np.eye(point.size)])


# ---------------------------------------------------------------- shapes and dtypes


@together
@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("axes", [None, [], [0], [-1], [2, 0], [1, -1, 0]], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes_and_keepdims_match_numpy(op: str, axes: list[int] | None, keepdims: bool) -> None:
    x = np.random.default_rng(0).uniform(0.5, 2, (2, 3, 4))
    along = tuple(axes) if axes else None
    references = {
        "norm": lambda a, **kw: np.sqrt(np.sum(a**2, **kw)),
        "logsumexp": lambda a, **kw: np.log(np.sum(np.exp(a), **kw)),
    }
    expected = np.asarray(references.get(op, getattr(np, op, None))(x, axis=along, keepdims=keepdims))
    stated = {} if axes is None else {"axes": axes}
    actual = run(op, x, keepdims=keepdims, **stated)
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(actual, expected, RTOL)


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions_of_0d_tensors(op: str) -> None:
    expected = {"var": 0.0, "norm": 1.5, "any": True, "all": True}.get(op, -1.5)
    actual = run(op, np.array(-1.5), keepdims=True)
    assert actual.shape == ()
    assert actual == expected


RESULT_DTYPES = {
    "sum": ("int64", "int64", "int64", "float16", "float32"),
    "prod": ("int64", "int64", "int64", "float16", "float32"),
    "mean": ("float64", "float64", "float64", "float16", "float32"),
    "var": ("float64", "float64", "float64", "float16", "float32"),
    "norm": ("float64", "float64", "float64", "float16", "float32"),
    "logsumexp": ("float64", "float64", "float64", "float16", "float32"),
    "max": ("bool", "uint8", "int32", "float16", "float32"),
    "min": ("bool", "uint8", "int32", "float16", "float32"),
    "any": ("bool",) * 5,
    "all": ("bool",) * 5,
}


@pytest.mark.parametrize("op", REDUCTIONS)
def test_dtypes(op: str) -> None:
    x = np.array([[1, 0, 3], [1, 1, 1]])
    given = ("bool", "uint8", "int32", "float16", "float32")
    assert tuple(run(op, x.astype(dtype), axes=[1]).dtype.name for dtype in given) == RESULT_DTYPES[op]


@pytest.mark.parametrize("op", ["sum", "mean", "prod", "var", "norm", "logsumexp"])
def test_integers_and_bool_are_converted_to_floats(op: str) -> None:
    x = np.array([[1, 0, 3], [1, 1, 1]])
    expected = run(op, x.astype(float), axes=[0])
    np.testing.assert_allclose(run(op, x.astype("int8"), axes=[0]), expected, RTOL)
    np.testing.assert_allclose(run(op, x > 0, axes=[0]), run(op, (x > 0).astype(float), axes=[0]), RTOL)


@pytest.mark.parametrize("op", ["any", "all"])
def test_any_and_all_test_for_nonzero(op: str) -> None:
    x = np.array([[0.0, -0.0, 0.0], [0.0, 1e-320, np.nan], [-1.0, 2.0, np.inf]])
    np.testing.assert_array_equal(run(op, x, axes=[1]), getattr(np, op)(x != 0, axis=1))


# ---------------------------------------------------------------- empty axes


NEUTRAL_ELEMENTS = {"sum": 0.0, "prod": 1.0, "norm": 0.0, "logsumexp": -np.inf, "any": False, "all": True}


@pytest.mark.parametrize(("op", "expected"), NEUTRAL_ELEMENTS.items())
def test_reduction_of_an_empty_axis_is_the_neutral_element(op: str, expected: float) -> None:
    np.testing.assert_array_equal(run(op, np.zeros((2, 0)), axes=[1]), np.full(2, expected))


@pytest.mark.parametrize("op", ["mean", "var"])
def test_averages_of_an_empty_axis_are_nan(op: str) -> None:
    np.testing.assert_array_equal(run(op, np.zeros((2, 0)), axes=[1]), [np.nan, np.nan])


@pytest.mark.parametrize("op", ["sum", "mean", "prod", "var", "norm", "logsumexp", "max", "min"])
def test_reductions_of_no_rows(op: str) -> None:
    value, (by_x,) = grads(op, np.zeros((0, 3)), axes=[1])
    assert value.shape == (0,)
    assert by_x.shape == (0, 3)


@pytest.mark.parametrize("op", ["sum", "mean", "prod", "var", "norm", "logsumexp"])
def test_gradient_of_an_empty_axis_is_empty(op: str) -> None:
    assert gradient(op, np.zeros((2, 0)), axes=[1]).shape == (2, 0)


@pytest.mark.parametrize("op", ["max", "min"])
def test_max_of_an_empty_axis_is_refused(op: str) -> None:
    refused = error(op, np.zeros((2, 0)), axes=[1])
    assert refused.code == "shape_mismatch"
    assert refused.detail == (
        f"node 1 ({op}): operand 0 (x) must have at least one element over axes [1] to choose from, "
        "but has shape [2, 0]"
    )
    assert (refused.operand, refused.got) == (0, "[2, 0]")


# ---------------------------------------------------------------- invalid axes


@pytest.mark.parametrize("op", REDUCTIONS)
def test_axis_out_of_range_is_refused(op: str) -> None:
    refused = error(op, np.ones((2, 3)), axes=[2])
    assert refused.code == "bad_attribute"
    assert refused.detail == f"node 1 ({op}): axes must be between -2 and 1, but is 2"
    assert error(op, np.ones(()), axes=[0]).code == "bad_attribute"
    assert error(op, np.ones((2, 3)), axes=[0, -2]).detail == f"node 1 ({op}): axes names an axis twice: [0, -2]"


@pytest.mark.parametrize("op", ["argmax", "argmin", "cumsum"])
def test_missing_or_invalid_axis_is_refused(op: str) -> None:
    assert error(op, np.ones(3)).detail == f"node 1 ({op}): attribute axis is required"
    assert error(op, np.ones(3), axis=1).detail == f"node 1 ({op}): axis must be between -1 and 0, but is 1"
    assert error(op, np.ones(()), axis=0).code == "bad_attribute"


def test_negative_ddof_is_refused() -> None:
    assert error("var", np.ones(3), ddof=-1).code == "bad_attribute"


# ---------------------------------------------------------------- extrema


@pytest.mark.parametrize(("op", "sign"), [("max", 1), ("min", -1)])
def test_ties_share_the_gradient_equally(op: str, sign: int) -> None:
    x = sign * np.array([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0], [5.0, 5.0, 5.0]])
    by_rows = [[0, 1 / 2, 1 / 2], [1, 0, 0], [1 / 3, 1 / 3, 1 / 3]]
    np.testing.assert_allclose(gradient(op, x, axes=[1]), by_rows, RTOL)
    np.testing.assert_allclose(gradient(op, x), [[0, 0, 0], [0, 0, 0], [1 / 3, 1 / 3, 1 / 3]], RTOL)


def test_ties_share_second_derivatives_equally() -> None:
    """For f = (max x)³ at a tie of two: the Hessian of y³ along the shared direction."""
    ops = registry().ops
    statement = Statement
    cube = [
        statement(ops["input"]),
        statement(ops["max"], (0,)),
        statement(ops["mul"], (1, 1)),
        statement(ops["mul"], (2, 1)),
    ]
    program = Program(registry(), [*cube, statement(ops["grad"], (3, 0))])
    x, seed = np.array([2.0, 1.0, 2.0]), np.array([1.0, 0.0, 0.0])
    compiled = Compiler(Limits()).gradients(program, {0: TensorType.of(x)}, cotangent=TensorType.of(seed), wrt=[0])
    first, second = open_executor("cpu").run(compiled.plan, {0: x, (COTANGENTS, 4): seed})
    np.testing.assert_allclose(first, [6, 0, 6], RTOL)
    np.testing.assert_allclose(second, [3, 0, 3], RTOL)


def test_float16_gradient_of_very_many_ties() -> None:
    """More ties than float16 can count."""
    _, (by_x,) = grads("max", np.ones(100_000, "float16"), cotangent=1024)
    np.testing.assert_allclose(by_x.astype(float), 1024 / 100_000, 1e-3)


@pytest.mark.parametrize("op", ["max", "min"])
def test_nan_is_the_extremum(op: str) -> None:
    np.testing.assert_array_equal(run(op, np.array([[1.0, np.nan], [1.0, 2.0]]), axes=[1])[:1], [np.nan])


def test_infinities_can_be_extrema() -> None:
    x = [[-np.inf, -np.inf], [np.inf, 0.0]]
    np.testing.assert_array_equal(run("max", np.array(x), axes=[1]), [-np.inf, np.inf])
    np.testing.assert_array_equal(gradient("max", x, axes=[1]), [[0.5, 0.5], [1, 0]])


def test_argmax_returns_the_first_of_ties() -> None:
    x = np.array([[1, 3, 3, 0, 0], [2, 2, 2, 2, 2]])
    for actual, expected in ((run("argmax", x, axis=1), [1, 0]), (run("argmin", x, axis=-1), [3, 0])):
        assert actual.dtype == np.int64
        np.testing.assert_array_equal(actual, expected)
    assert run("argmax", x, axis=0, keepdims=True).shape == (1, 5)
    assert run("argmin", x == 2, axis=0).dtype == np.int64


@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_argmax_of_an_empty_axis_is_refused(op: str) -> None:
    assert error(op, np.zeros((2, 0)), axis=1).code == "shape_mismatch"
    assert run(op, np.zeros((0, 2)), axis=1).shape == (0,)


def test_argmax_is_not_differentiable() -> None:
    x = np.array([1.0, 2.0])
    ops = registry().ops
    program = Program(registry(), [Statement(ops["input"]), Statement(ops["argmax"], (0,), {"axis": 0})])
    with pytest.raises(EngineError, match="int64 has no derivatives") as refused:
        Compiler(Limits()).gradients(program, {0: TensorType.of(x)}, wrt=[0])
    assert refused.value.code == "not_differentiable"


# ---------------------------------------------------------------- products


def product_derivatives(x: Array) -> tuple[Array, Array]:
    """Gradient and Hessian of Π x, by definition."""
    n = range(len(x))
    first = [np.prod([x[k] for k in n if k != i]) for i in n]
    second = [[0 if i == j else np.prod([x[k] for k in n if k not in (i, j)]) for j in n] for i in n]
    return np.array(first), np.array(second)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 9])
@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
def test_derivatives_of_a_product_with_zeros(n: int, zeros: int) -> None:
    x = np.random.default_rng(n).uniform(-2, 2, n)
    x[np.random.default_rng(zeros).permutation(n)[:zeros]] = 0
    first, second = product_derivatives(x)
    np.testing.assert_allclose(gradient("prod", x), first, RTOL, ATOL)
    np.testing.assert_allclose(hessian("prod", x), second, RTOL, ATOL)


def test_gradient_of_a_product_over_several_axes() -> None:
    x = np.random.default_rng(0).uniform(0.5, 2, (3, 2, 5))
    x[1, 0, 2] = 0
    actual = gradient("prod", x, axes=[2, 0])
    for j in range(2):
        np.testing.assert_allclose(actual[:, j].ravel(), product_derivatives(x[:, j].ravel())[0], RTOL)


def test_gradient_of_an_overflowing_product() -> None:
    np.testing.assert_array_equal(gradient("prod", [1e200, 1e200, 0.0]), [0, 0, np.inf])
    np.testing.assert_allclose(gradient("prod", [1e-200, 1e-200, 1e100]), [1e-100, 1e-100, 0], RTOL)


def test_products_of_integers_are_int64() -> None:
    assert run("prod", np.full(40, 2, "int8")) == 2**40


# ---------------------------------------------------------------- sums, means, variances


@pytest.mark.parametrize("shape", [(1000, 1), (1000, 7), (3, 128), (3, 129), (2, 3, 4000)], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_sums_and_means_of_rows_of_any_length(shape: tuple[int, ...], dtype: str) -> None:
    x = (100 * np.random.default_rng(0).normal(size=shape)).astype(dtype)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    for axes in ([-1], [0], [0, -1], list(range(x.ndim))):
        expected = x.astype("longdouble").sum(axis=tuple(axes)).astype("float64")
        np.testing.assert_allclose(run("sum", x, axes=axes), expected, tolerance, tolerance * 1e3)
        mean = run("mean", x, axes=axes, keepdims=True)
        np.testing.assert_allclose(mean.ravel(), np.ravel(expected) * mean.size / x.size, tolerance, tolerance)


def test_infinities_and_nan_do_not_affect_other_rows() -> None:
    x = np.array([[np.inf, 1.0], [np.inf, -np.inf], [np.nan, 1.0], [1.0, 2.0]])
    np.testing.assert_array_equal(run("sum", x, axes=[1]), [np.inf, np.nan, np.nan, 3])


def test_float16_is_accumulated_in_float32() -> None:
    ones = np.ones((70_000, 2), "float16")
    assert run("mean", ones, axes=[0]).tolist() == [1, 1]
    assert run("mean", np.full((2, 100), 1000, "float16"), axes=[1]).tolist() == [1000, 1000]  # the sum exceeds 65504
    assert run("sum", np.concatenate([ones * 1024, -ones * 1024]), axes=[0]).tolist() == [0, 0]
    assert run("var", np.array([60_000.0, -60_000.0, 100, 0] * 2, "float16"), ddof=0) == np.inf
    assert run("var", np.float16([300.0, 301.0] * 40_000)) == 0.25
    np.testing.assert_array_equal(run("cumsum", np.ones(4096, "float16"), axis=0)[-1], 4096)
    large_and_small = np.array([[1e4], [1e4], [1e-4], [1e-4]], "float16").repeat(2, axis=1)
    np.testing.assert_allclose(run("prod", large_and_small, axes=[0]), 1, 1e-2)


def test_bound_sum_accumulates_float16_in_float32() -> None:
    op, x, out = registry().ops["sum"], np.ones((4096, 100), "float16"), np.empty(100, "float16")
    assert isinstance(op, Kernel)
    call, arguments = op.bind(RunContext(np), [x], out, {"axes": (0,), "keepdims": False})
    call(*arguments)
    assert set(out.tolist()) == {4096}


def test_gradient_of_a_long_float16_mean_does_not_underflow() -> None:
    _, (by_x,) = grads("mean", np.ones(70_000, "float16"), cotangent=1024)
    np.testing.assert_allclose(by_x.astype(float), 1024 / 70_000, 1e-3)


def test_variance_is_accurate_for_large_means() -> None:
    x = 1e9 + np.array([4.0, 7.0, 13.0, 16.0])
    assert run("var", x, ddof=1) == 30
    assert run("var", x) == 22.5
    np.testing.assert_array_equal(gradient("var", x), 2 * np.array([-6, -3, 3, 6]) / 4)
    np.testing.assert_allclose(hessian("var", x), 2 * (np.eye(4) - 1 / 4) / 4, RTOL)


def test_variance_without_degrees_of_freedom_matches_numpy() -> None:
    assert np.isnan(run("var", np.array([3.0]), ddof=1))
    assert np.isinf(run("var", np.array([3.0, 4.0]), ddof=2))
    np.testing.assert_array_equal(gradient("var", [3.0], ddof=1), [np.nan])
    np.testing.assert_array_equal(gradient("var", [3.0, 4.0], ddof=3), [-np.inf, np.inf])


def test_cumsum_and_its_gradient() -> None:
    x = np.arange(6.0).reshape(2, 3)
    for axis in (0, 1, -1):
        np.testing.assert_array_equal(run("cumsum", x, axis=axis), np.cumsum(x, axis))
    weights = np.array([[1.0, 10, 100], [1, 10, 100]])
    _, (by_x,) = grads("cumsum", x, cotangent=weights, axis=1)
    np.testing.assert_array_equal(by_x, [[111, 110, 100], [111, 110, 100]])
    assert run("cumsum", np.array([100, 100], "int8"), axis=0).tolist() == [100, 200]
    assert run("cumsum", np.array([True, True]), axis=0).dtype == np.int64


# ---------------------------------------------------------------- norm


def test_pythagorean_norms_are_exact() -> None:
    assert run("norm", np.array([[3.0, 4, 0], [2, 3, 6], [4, 4, 7]]), axes=[1]).tolist() == [5, 7, 9]


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-10, 1, 1e10, 1e200, 1e307])
def test_norms_of_any_magnitude(size: float) -> None:
    x = np.array([3 * size, -4 * size])
    tolerance = 1e-3 if size < 1e-307 else RTOL  # subnormal numbers have few digits
    np.testing.assert_allclose(run("norm", x), 5 * size, tolerance)
    np.testing.assert_allclose(gradient("norm", x), [0.6, -0.8], tolerance)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_norms_at_the_limits_of_the_range(dtype: str) -> None:
    """A scale of twice or half the magnitude does not exist there. CuPy has no subnormal float32."""
    ends = np.finfo(dtype)
    for size in (ends.max, ends.tiny if ON_GPU else ends.smallest_subnormal):
        np.testing.assert_array_equal(run("norm", np.array([size, 0, -0.0], dtype)), size)


@pytest.mark.skipif(ON_GPU, reason="CuPy has no subnormal float32")
@pytest.mark.parametrize(("dtype", "least", "most"), [("float32", -130, 110), ("float64", -1040, 1000)])
def test_norms_of_pythagorean_triples_are_exact_at_any_scale(dtype: str, least: int, most: int) -> None:
    """Squares overflow, underflow, or are subnormal: scaling must not round."""
    triples = np.array([[3, 4, 5], [20, 21, 29], [119, 120, 169], [696, 697, 985]], dtype)
    sizes = np.arange(least, most, 5)[:, None, None]
    rows = np.ldexp(triples, sizes).astype(dtype)
    np.testing.assert_array_equal(run("norm", rows[..., :2], axes=[-1]), rows[..., 2])
    columns = np.ascontiguousarray(np.moveaxis(rows, -1, 0))
    np.testing.assert_array_equal(run("norm", columns[:2], axes=[0]), columns[2])


@pytest.mark.parametrize(("op", "wanted"), [("norm", 0.0), ("logsumexp", -np.inf)])
def test_norm_and_logsumexp_of_no_elements(op: str, wanted: float) -> None:
    np.testing.assert_array_equal(run(op, np.zeros((0, 3)), axes=[0]), np.full(3, wanted))


def test_norms_in_narrow_dtypes() -> None:
    np.testing.assert_allclose(run("norm", np.float16([300, 400])), 500)
    np.testing.assert_allclose(run("norm", np.float32([3e30, 4e30])), np.float32(5e30))
    np.testing.assert_allclose(run("norm", np.full(4, -128, "int8")), 256)


def test_derivatives_of_norm_at_zero_are_zero() -> None:
    np.testing.assert_array_equal(gradient("norm", [0.0, 0.0]), [0, 0])
    np.testing.assert_array_equal(hessian("norm", [0.0, 0.0]), np.zeros((2, 2)))
    np.testing.assert_array_equal(gradient("norm", [[0.0, 0.0], [3.0, 4.0]], axes=[1]), [[0, 0], [0.6, 0.8]])


def test_second_derivatives_of_norm() -> None:
    x = np.array([1.0, -2.0, 2.0])
    np.testing.assert_allclose(hessian("norm", x), (np.eye(3) - np.outer(x, x) / 9) / 3, RTOL, ATOL)


def test_norms_with_infinities_and_nan() -> None:
    x = np.array([[np.inf, 1.0], [-np.inf, np.inf], [np.nan, 1.0], [np.nan, np.inf]])
    np.testing.assert_array_equal(run("norm", x, axes=[1])[:3], [np.inf, np.inf, np.nan])


# ---------------------------------------------------------------- logsumexp


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4, 1e15, -1e15])
def test_logsumexp_is_accurate_far_from_zero(shift: float) -> None:
    x = np.array([0.0, 1.0, 3.0]) + shift
    exact = np.log(np.sum(np.exp(x - shift)))
    np.testing.assert_allclose(
        run("logsumexp", x) - shift, exact, 1e-12 if abs(shift) < 1e9 else 0.1, abs(shift) * 1e-16
    )
    if abs(shift) < 1e9:
        softmax = np.exp(x - shift) / np.sum(np.exp(x - shift))
        np.testing.assert_allclose(gradient("logsumexp", x), softmax, 1e-11)


def test_logsumexp_of_extreme_magnitudes() -> None:
    x = [1e4, -1e4, 0.0]
    assert run("logsumexp", np.array(x)) == 1e4
    np.testing.assert_array_equal(gradient("logsumexp", x), [1, 0, 0])


def test_logsumexp_of_rows_with_infinities() -> None:
    x = np.array([[-np.inf, -np.inf], [-np.inf, 2.0], [np.inf, 2.0], [np.inf, -np.inf], [np.nan, 1.0]])
    np.testing.assert_array_equal(run("logsumexp", x, axes=[1]), [-np.inf, 2, np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(gradient("logsumexp", x[:2], axes=[1]), [[0, 0], [0, 1]])
    np.testing.assert_array_equal(hessian("logsumexp", [-np.inf, -np.inf]), np.zeros((2, 2)))


def test_second_derivatives_of_logsumexp() -> None:
    x = np.array([1.0, 2.0, 4.0]) + 1e4
    p = np.exp(x - 1e4) / np.sum(np.exp(x - 1e4))
    np.testing.assert_allclose(hessian("logsumexp", x), np.diag(p) - np.outer(p, p), 1e-10)
