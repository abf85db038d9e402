"""Cholesky, systems, inverses and determinants: singular matrices, dtypes, layouts and invalid shapes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, Value, registry
from engine.compiler.plan import make_plan
from engine.ir.errors import ShapeMismatch
from engine.ir.passes import optimise
from engine.ir.run_context import RunContext
from engine.ops.linalg import matrices
from tests.contract.cases import EXECUTOR, assert_planned_peak_holds
from tests.engine.compiler.steps import steps_of
from tests.engine.ops.matrices import (
    ATOL,
    RNG,
    RTOL,
    close,
    definite,
    evaluate,
    gradient_of_sum,
    real,
    regular,
    slogdet,
    transposed,
)
from tests.engine.ops.planned import plan_of
from tests.engine.ops.run import ON_GPU, Array, error, grads, run

# ---------------------------------------------------------------- singular and indefinite matrices

SINGULAR = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]])
INDEFINITE = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
PLACES = [[0], [6], [3], [0, 1], [2, 4, 6], [0, 1, 2, 3, 4, 5, 6], []]
BAD = {"cholesky": INDEFINITE, "inv": SINGULAR, "solve": SINGULAR}


def spoiled_batch(op: str, positions: list[int]) -> tuple[Array, list[Array]]:
    x = definite(7, 3, 3)
    x[positions] = BAD[op]
    return x, [real(7, 3, 2)] if op == "solve" else []


def assert_same(actual: Array, expected: Array) -> None:
    """Compare bit for bit; on a GPU nearly, because its solvers for one and many matrices differ."""
    np.testing.assert_allclose(actual, expected, *((1e-13, 1e-15) if ON_GPU else (0, 0)))


@pytest.mark.parametrize("places", PLACES, ids=str)
@pytest.mark.parametrize("op", BAD)
def test_bad_matrices_do_not_affect_their_batch(op: str, places: list[int]) -> None:
    x, rest = spoiled_batch(op, places)
    value, gradients = grads(op, x, *rest)
    for i in range(7):
        alone, gradients_alone = grads(op, x[i], *(b[i] for b in rest))
        assert np.isnan(alone).all() == np.isnan(value[i]).all() == (i in places)
        assert_same(value[i], alone)
        for actual, expected in zip(gradients, gradients_alone, strict=True):
            np.testing.assert_allclose(actual[i], expected, RTOL, ATOL)
            assert np.isnan(actual[i]).any() == (i in places)


@pytest.mark.parametrize("op", BAD)
def test_bad_matrix_in_nested_batch_axes(op: str) -> None:
    x = definite(2, 3, 3, 3)
    x[1, 0] = BAD[op]
    rest = [real(3, 3, 2)] if op == "solve" else []
    bad = np.isnan(run(op, x, *rest))
    assert bad[1, 0].all()
    assert bad.sum() == bad[1, 0].size
    close(run(op, x, *rest)[0], run(op, x[0], *rest))


@pytest.mark.parametrize("op", BAD)
def test_single_bad_matrix_is_nan(op: str) -> None:
    y = run(op, BAD[op], *([real(3)] if op == "solve" else []))
    assert np.isnan(y).all()
    assert np.isnan(run(op, BAD[op].astype("float16"), *([real(3)] if op == "solve" else []))).all()


def test_shared_singular_matrix_is_nan() -> None:
    assert np.isnan(run("solve", SINGULAR, real(4, 3, 2))).all()


def test_slogdet_of_a_singular_matrix() -> None:
    x = definite(3, 3, 3)
    x[1] = SINGULAR
    sign, log = slogdet(x)
    assert list(sign) == [1, 0, 1]
    assert log[1] == -np.inf
    close(log[[0, 2]], np.log(np.linalg.det(x[[0, 2]])))
    actual = gradient_of_sum(lambda v: v.slogdet().output(1), x)
    assert np.isnan(actual[1]).all()
    close(actual[[0, 2]], transposed(np.linalg.inv(x[[0, 2]])))


@pytest.mark.parametrize("count", [1, 7, 8, 9, 16, 17, 65])
def test_bad_matrices_are_isolated_in_batches_of_any_size(count: int) -> None:
    x = definite(count, 2, 2)
    bad = RNG.random(count) < 0.4
    bad[-1] = True
    x[bad] *= -1
    assert list(np.isnan(run("cholesky", x)).all(axis=(1, 2))) == list(bad)
    assert list(np.isnan(run("cholesky", x[None, :, None])).all(axis=(3, 4))[0, :, 0]) == list(bad)
    np.testing.assert_array_equal(run("cholesky", x)[~bad], run("cholesky", x[~bad]))


@pytest.mark.parametrize("bad", ["one", "half", "all"])
@pytest.mark.parametrize("op", BAD)
def test_python_steps_do_not_grow_with_bad_matrices(op: str, bad: str) -> None:
    """A thousand matrices take as few Python steps as ten."""

    def work(count: int) -> int:
        x = np.broadcast_to(np.eye(3), (count, 3, 3)).copy()
        x[{"one": slice(1), "half": slice(0, None, 2), "all": slice(None)}[bad]] = BAD[op]
        operands = [x, x] if op == "solve" else [x]
        return steps_of(lambda: registry().ops[op].forward(RunContext(np), *operands, out=np.empty_like(x)))

    work(10)
    assert work(10) == work(1000)


@pytest.mark.parametrize("op", BAD)
def test_bad_matrix_does_not_change_the_bits_of_the_others(op: str) -> None:
    x = definite(9, 4, 4)
    rest = [real(9, 4, 2)] if op == "solve" else []
    expected = getattr(np.linalg, op)((x + transposed(x)) / 2 if op == "cholesky" else x, *rest)
    assert_same(run(op, x, *rest), expected)
    x[4] = 0
    assert_same(run(op, x, *rest)[[0, 8]], expected[[0, 8]])


def test_nan_does_not_affect_other_matrices() -> None:
    x = definite(3, 3, 3)
    x[1, 2, 0] = np.nan
    for op in ("cholesky", "inv"):
        y = run(op, x)
        assert np.isnan(y[1]).any()
        close(y[[0, 2]], run(op, x[[0, 2]]))


# ---------------------------------------------------------------- dtypes, layouts, cost

OPS: dict[str, tuple[int, ...]] = {"cholesky": (), "inv": (), "solve": (3, 2), "triangular_solve": (3, 2)}


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"])
def test_dtypes(op: str, dtype: str) -> None:
    """NumPy's dtypes, and float16, which NumPy refuses, computed in float32."""
    x = (5 * np.eye(3) + np.tri(3)).astype(dtype)
    rest = [np.ones(OPS[op], dtype)] if OPS[op] else []
    wide = x.astype(dtype if dtype.startswith("float") and dtype != "float16" else "float64")
    wide, *wider = (a.astype(wide.dtype) for a in (wide, *rest))
    actual = run(op, x, *rest)
    assert actual.dtype == (x.dtype if x.dtype.kind == "f" else np.float64)
    np.testing.assert_allclose(actual, run(op, wide, *wider), {"float16": 1e-3, "float32": 1e-6}.get(dtype, 1e-13))


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
def test_dtypes_of_slogdet(dtype: str) -> None:
    sign, log = slogdet(np.diag([100, 120, -90]).astype(dtype))
    expected = np.dtype("float64" if dtype == "int8" else dtype)
    assert (sign.dtype, log.dtype) == (expected, expected)
    assert sign == -1
    np.testing.assert_allclose(log, np.log(1.08e6), 1e-3 if dtype == "float16" else 1e-6)


def test_int8_intermediates_do_not_overflow() -> None:
    close(run("cholesky", np.array([[100, 100], [100, 121]], "int8")), [[10, 0], [10, np.sqrt(21)]])


def test_float16_intermediates_do_not_overflow() -> None:
    """2 · 40,000 exceeds float16, and so does the determinant."""
    x = np.diag([40_000, 1, 40_000]).astype("float16")
    np.testing.assert_array_equal(run("cholesky", x), np.diag([200, 1, 200]))
    np.testing.assert_allclose(slogdet(x)[1], 2 * np.log(4e4), 1e-3)


def test_mixed_dtypes_are_promoted() -> None:
    a, b = regular(3, 3), real(3, 2)
    assert run("solve", a.astype("float32"), b).dtype == np.float64
    assert run("solve", a.astype("float32"), b.astype("float16")).dtype == np.float32
    assert run("solve", a.astype("float32"), np.ones((3, 2), "int8")).dtype == np.float64
    assert run("triangular_solve", (3 * np.eye(3)).astype(int), b.astype("float32")).dtype == np.float64
    _, (by_a, by_b) = grads("triangular_solve", a.astype("float32"), b)
    assert (by_a.dtype, by_b.dtype) == (np.float32, np.float64)


LAYOUTS: list[Callable[[Value], Value]] = [
    lambda v: v.transpose(),
    lambda v: v.flip(axes=(-1,)),
    lambda v: v.flip(axes=(-2, -1)),
    lambda v: v.sum(axes=(0,), keepdims=True).broadcast_to(shape=v.shape),
    lambda v: v.slice(starts=(0, 0, 0), stops=v.shape, steps=(2, 1, 1)),
]


@pytest.mark.parametrize("k", range(len(LAYOUTS)))
@pytest.mark.parametrize("op", OPS)
def test_results_do_not_depend_on_memory_layout(op: str, k: int) -> None:
    x, right = definite(3, 3, 3), real(3, 2)

    def write(v: Value, b: Value) -> list[Value]:
        strided = LAYOUTS[k](v)
        rest = [b.transpose().flip(axes=(0,)).transpose()] if OPS[op] else []
        return [strided.identity(), strided.builder.emit(registry().get(op), (strided, *rest), {})]

    copied, actual = evaluate(write, x, right)
    close(actual, run(op, copied, *([right[:, ::-1]] if OPS[op] else [])))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float16", "int64"])
@pytest.mark.parametrize("op", [*OPS, "slogdet"])
def test_memory_of_a_large_batch_stays_within_plan(op: str, dtype: str) -> None:
    """With one bad matrix, in a layout that LAPACK cannot read."""
    x = (definite(20, 80, 80) * 9).astype(dtype)
    x[1] = -np.eye(80) if op == "cholesky" else 0
    feeds = {0: x, 1: np.ones((80, 60), dtype)}
    builder = Builder(registry())
    a, b = (builder.leaf(TensorType.of(feed), i) for i, feed in feeds.items())
    flipped = a.flip(axes=(-1, -2))
    y = builder.emit(registry().get(op), (flipped, b) if OPS.get(op) else (flipped,), {})
    plan = make_plan(optimise(builder.graph([y.output(1) if op == "slogdet" else y])), Limits())
    needed_feeds = {i: feeds[i] for i in plan.feeds}
    EXECUTOR.run(plan, needed_feeds)  # the first run loads SciPy's LAPACK
    assert_planned_peak_holds(plan, needed_feeds)


def test_flops() -> None:
    n, m = 6, 4
    assert plan_of("cholesky", (n, n)).flops == n**3 // 3
    assert plan_of("triangular_solve", (n, n), (n, m)).flops == n * n * m
    assert plan_of("solve", (n, n), (n, m)).flops == 2 * n**3 // 3 + 2 * n * n * m
    assert plan_of("inv", (5, n, n)).flops == 5 * 2 * n**3
    assert plan_of("solve", (5, n, n), (n, m)).flops == 5 * (2 * n**3 // 3 + 2 * n * n * m)
    assert plan_of("cholesky", (0, n, n)).flops == plan_of("inv", (0, 0)).flops == 0
    matrices = TensorType((5, n, n), np.dtype(float))
    assert registry().get("slogdet").flops((), matrices) == 5 * 2 * n**3 // 3


# ---------------------------------------------------------------- errors

WRONG = [
    ("cholesky", [(2, 3)], "operand 0 (x) must hold square matrices on its last two axes, but has shape [2, 3]"),
    ("inv", [(3,)], "operand 0 (x) must hold square matrices on its last two axes, but has shape [3]"),
    ("inv", [()], "operand 0 (x) must hold square matrices on its last two axes, but has shape []"),
    ("solve", [(2, 3), (3,)], "operand 0 (a) must hold square matrices on its last two axes, but has shape [2, 3]"),
    (
        "triangular_solve",
        [(3, 3, 2), (3,)],
        "operand 0 (a) must hold square matrices on its last two axes, but has shape [3, 3, 2]",
    ),
    ("solve", [(3, 3), ()], "operand 1 (b) must have at least 1 axis, but is 0-d"),
    (
        "solve",
        [(3, 3), (2, 3)],
        "operand 1 (b) must have extent 3 at axis -2, as operand 0 (a) of shape [3, 3] ends in 3, but has shape [2, 3]",
    ),
    (
        "triangular_solve",
        [(2, 3, 3), (2,)],
        "operand 1 (b) must have extent 3 at axis -1, as operand 0 (a) of shape [2, 3, 3] ends in 3, but has shape [2]",
    ),
]


@pytest.mark.parametrize(("op", "shapes", "sentence"), WRONG)
def test_mismatched_shapes_are_refused(op: str, shapes: list[tuple[int, ...]], sentence: str) -> None:
    refused = error(op, *(real(*shape) for shape in shapes))
    assert refused.code == "shape_mismatch"
    assert refused.detail == f"node {len(shapes)} ({op}): {sentence}"
    assert refused.operand == (1 if "(b)" in sentence else 0)
    assert refused.expected
    assert refused.got


def test_error_states_expected_and_actual_shape() -> None:
    refused = error("inv", real(2, 3))
    assert (refused.expected, refused.got) == ("square matrices on its last two axes", "[2, 3]")


def test_slogdet_of_non_square_matrices_is_refused() -> None:
    with pytest.raises(ShapeMismatch, match=r"operand 0 \(x\) must hold square matrices .* has shape \[2, 3, 4\]"):
        slogdet(real(2, 3, 4))


@pytest.mark.parametrize("op", ["solve", "triangular_solve"])
def test_mismatched_batch_axes_are_refused(op: str) -> None:
    refused = error(op, real(2, 3, 3), real(4, 3, 1))
    assert refused.detail == (
        f"node 2 ({op}): operand 1 (b) must have batch axes that broadcast with operand 0 (a) of shape [2, 3, 3], "
        "but has shape [4, 3, 1]"
    )
    assert refused.operand == 1


@pytest.mark.parametrize("op", ["cholesky", "inv"])
def test_results_do_not_depend_on_private_gufuncs(monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    batch = np.stack([2.0 * np.eye(2), np.zeros((2, 2)) - np.eye(2)[::-1] if op == "cholesky" else np.zeros((2, 2))])
    before = run(op, batch)
    monkeypatch.setattr(matrices, "_GUFUNCS", None)
    np.testing.assert_array_equal(run(op, batch), before)
