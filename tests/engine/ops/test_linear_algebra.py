"""Matrix products and dense layers: all combinations of ranks, dtypes and memory layouts."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, Value, open_executor, registry
from engine.compiler.plan import make_plan
from engine.ir.passes import optimise
from engine.ir.tensor_type import INTEGERS
from engine.ops.nn.linear import ACTIVATIONS
from tests.engine.ops.planned import plan_of
from tests.engine.ops.run import Array, error, grads, run
from tests.sampling import together

RTOL, ATOL = 1e-12, 1e-13
RNG = np.random.default_rng(0)


def real(*shape: int) -> Array:
    return RNG.uniform(-2, 2, shape)


# ---------------------------------------------------------------- matmul

RANKS = [
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((3, 4), (4, 5)),
    ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (1, 4, 5)),
    ((6, 1, 3, 4), (2, 4, 5)),
    ((1, 1, 3, 4), (6, 2, 4, 5)),
    ((6, 2, 3, 4), (4, 5)),
    ((0, 4), (4, 2)),
    ((2, 0), (0, 3)),
    ((2, 3, 0), (0, 3)),
    ((0, 3, 4), (4, 5)),
    ((1, 1), (1, 1)),
]


def vjp_by_loops(a: Array, b: Array, g: Array) -> tuple[Array, Array]:
    """Adjoint of a @ b by definition, one coordinate at a time."""
    by_a, by_b = np.zeros_like(a), np.zeros_like(b)
    for gradient, product in ((by_a, lambda unit: unit @ b), (by_b, lambda unit: a @ unit)):
        for position in np.ndindex(gradient.shape):
            unit = np.zeros_like(gradient)
            unit[position] = 1
            gradient[position] = np.sum(product(unit) * g)
    return by_a, by_b


@pytest.mark.parametrize(("a", "b"), RANKS, ids=str)
def test_all_combinations_of_ranks(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    left, right = real(*a), real(*b)
    expected = np.matmul(left, right)
    g = real(*expected.shape)
    value, gradients = grads("matmul", left, right, cotangent=g)
    assert value.shape == expected.shape
    np.testing.assert_allclose(value, expected, RTOL, ATOL)
    for gradient, reference in zip(gradients, vjp_by_loops(left, right, g), strict=True):
        assert gradient.shape == reference.shape
        np.testing.assert_allclose(gradient, reference, RTOL, ATOL)


@together
@pytest.mark.parametrize("dtype", [*INTEGERS, "bool", "float16", "float32", "float64"])
@pytest.mark.parametrize("other", [*INTEGERS, "bool", "float16", "float32", "float64"])
def test_dtypes_match_numpy(dtype: str, other: str) -> None:
    a = RNG.integers(0, 3, (3, 4)).astype(dtype)
    b = RNG.integers(0, 3, (4, 2)).astype(other)
    expected = np.matmul(a, b)
    actual = run("matmul", a, b)
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)


def test_integers_wrap_like_numpy() -> None:
    a = np.full((1, 2), 100, "int8")
    np.testing.assert_array_equal(run("matmul", a, a.T), np.matmul(a, a.T))


def test_float16_is_accumulated_in_float32() -> None:
    a = np.ones((1, 4096), "float16")
    assert run("matmul", a, a.T) == 4096
    assert run("matmul", a[0] * 16, a[0] * 16) == np.inf
    assert run("matmul", np.array([[256.0, 256, 256]], "float16"), np.float16([256, 256, -256])) == np.inf
    assert run("matmul", np.float16([300, 300, 1]), np.float16([300, -300, 1])) == 1


def test_gradients_have_the_dtypes_of_their_operands() -> None:
    _, (by_a, by_b) = grads("matmul", real(2, 3).astype("float32"), real(3, 2))
    assert (by_a.dtype, by_b.dtype) == (np.float32, np.float64)
    _, (by_b,) = grads("matmul", RNG.integers(0, 5, (2, 3)), real(3, 2))
    assert by_b.shape == (3, 2)


def unreadable_layouts(x: Value) -> list[Value]:
    """Return x (square) in memory layouts that BLAS cannot read; some are broadcast sums of it."""
    return [
        x.transpose(),
        x.flip(axes=(0,)),
        x.flip(axes=(1,)),
        x.sum(axes=(0,)).broadcast_to(shape=x.shape),
        x.sum(axes=(1,), keepdims=True).broadcast_to(shape=x.shape),
        x.sum().broadcast_to(shape=x.shape),
    ]


@pytest.mark.parametrize("k", range(6))
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64"])
def test_results_do_not_depend_on_memory_layout(k: int, dtype: str) -> None:
    a, b = (RNG.integers(-3, 3, (3, 3)).astype(dtype) for _ in range(2))
    builder = Builder(registry())
    x, y = builder.leaf(TensorType.of(a), 0), builder.leaf(TensorType.of(b), 1)
    unreadable, transposed = unreadable_layouts(x)[k], y.transpose()
    graph = builder.graph([unreadable.identity(), unreadable @ transposed, transposed @ unreadable])
    copied, left, right = open_executor("cpu").run(make_plan(optimise(graph), Limits()), {0: a, 1: b})
    np.testing.assert_array_equal(left, copied @ b.T)
    np.testing.assert_array_equal(right, b.T @ copied)


def test_flops_are_two_per_multiplication() -> None:
    assert plan_of("matmul", (3, 4), (4, 5)).flops == 2 * 3 * 4 * 5
    assert plan_of("matmul", (7, 3, 4), (4, 5)).flops == 7 * 2 * 3 * 4 * 5
    assert plan_of("matmul", (4,), (4,)).flops == 2 * 4


def test_gradient_of_a_shared_matrix_is_one_product() -> None:
    """The gradient of a shared matrix is one product, not a sum over a batch of matrices."""
    plan = plan_of("matmul", (1000, 2, 50), (50, 50), wrt=[1])
    assert plan.peak_bytes < 8 * 1000 * 50 * 50 / 2


def test_mismatched_shapes_are_refused() -> None:
    refused = error("matmul", real(2, 3), real(4, 2))
    assert refused.code == "shape_mismatch"
    assert refused.detail == (
        "node 2 (matmul): operand 1 (b) must have extent 3 at axis -2, as operand 0 (a) of shape [2, 3] ends in 3, "
        "but has shape [4, 2]"
    )
    assert (refused.operand, refused.expected, refused.got) == (1, "extent 3 at axis -2", "[4, 2]")
    assert "extent 3 at axis -1" in error("matmul", real(2, 3), real(2)).detail
    assert error("matmul", real(), real(2)).detail == (
        "node 2 (matmul): operand 0 (a) must have at least 1 axis, but is 0-d"
    )
    assert error("matmul", real(2), real()).operand == 1
    assert error("matmul", real(2, 3, 4), real(5, 4, 3)).detail == (
        "node 2 (matmul): operand 1 (b) must have batch axes that broadcast with operand 0 (a) of shape [2, 3, 4], "
        "but has shape [5, 4, 3]"
    )


# ---------------------------------------------------------------- dense layers


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 2, 3), (0, 3)], ids=str)
def test_layers_match_their_decomposition(activation: str, shape: tuple[int, ...]) -> None:
    x, w, b = real(*shape), real(3, 2), real(2)
    parts = x @ w + b
    expected = parts if activation == "none" else run(activation, parts)
    np.testing.assert_allclose(run("linear", x, w, b, activation=activation), expected, RTOL, ATOL)
    np.testing.assert_allclose(run("mlp_layer", x, w.T, b, activation=activation), expected, RTOL, ATOL)


def test_gradients_of_layers_without_activation() -> None:
    x, w, b, g = real(4, 3), real(3, 2), real(2), real(4, 2)
    value, (by_x, by_w) = grads("linear", x, w, cotangent=g)
    np.testing.assert_allclose(value, x @ w, RTOL)
    np.testing.assert_allclose(by_x, g @ w.T, RTOL)
    np.testing.assert_allclose(by_w, x.T @ g, RTOL)
    _, (by_x, by_w, by_b) = grads("mlp_layer", x, w.T, b, cotangent=g)
    np.testing.assert_allclose(by_x, g @ w.T, RTOL)
    np.testing.assert_allclose(by_w, g.T @ x, RTOL)
    np.testing.assert_allclose(by_b, g.sum(axis=0), RTOL)


def test_integer_features() -> None:
    x, w = RNG.integers(0, 5, (4, 3)), real(3, 2)
    np.testing.assert_allclose(run("linear", x, w, activation="tanh"), np.tanh(x @ w), RTOL)
    assert run("linear", x, x.T, activation="relu").dtype == np.int64
    assert run("linear", x, x.T, activation="tanh").dtype == np.float64


WRONG_LAYERS = [
    (
        "linear",
        [(2, 3), (4, 2)],
        "operand 0 (x) must have extent 4 on its last axis, to match w of shape [4, 2], but has shape [2, 3]",
    ),
    (
        "mlp_layer",
        [(2, 3), (4, 2), (4,)],
        "operand 0 (x) must have extent 2 on its last axis, to match w of shape [4, 2], but has shape [2, 3]",
    ),
    (
        "linear",
        [(), (3, 2)],
        "operand 0 (x) must have extent 3 on its last axis, to match w of shape [3, 2], but has shape []",
    ),
    ("linear", [(2, 3), (3,)], "operand 1 (w) must have 2 axes, but has shape [3]"),
    ("linear", [(2, 3), (3, 2), (3,)], "operand 2 (b) must have a shape that broadcasts to [2, 2], but has [3]"),
    ("linear", [(3,), (3, 2), (5, 2)], "operand 2 (b) must have a shape that broadcasts to [2], but has [5, 2]"),
]


@pytest.mark.parametrize(("op", "shapes", "sentence"), WRONG_LAYERS)
def test_mismatched_layer_shapes_are_refused(op: str, shapes: list[tuple[int, ...]], sentence: str) -> None:
    refused = error(op, *(real(*shape) for shape in shapes))
    assert refused.code == "shape_mismatch"
    assert refused.detail == f"node {len(shapes)} ({op}): {sentence}"


def test_unknown_activation_is_refused() -> None:
    refused = error("linear", real(2, 3), real(3, 2), activation="swish")
    assert refused.code == "bad_attribute"
    assert "one of none, relu, tanh, sigmoid, gelu, silu, elu, selu, sin" in refused.detail
