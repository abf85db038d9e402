"""Pseudoinverse and least squares: ranks, equal singular values, closed forms, shapes, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.ops.linalg.test_svd import finite_differences, with_singular_values
from tests.engine.ops.matrices import real
from tests.engine.ops.run import Array, error, grads, run

SHAPES = [(4, 4), (5, 3), (3, 5), (2, 3, 2, 4), (1, 1), (0, 0), (0, 3), (3, 0), (2, 0, 3), (0, 3, 3), (70, 66)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_pinv_matches_numpy(shape: tuple[int, ...]) -> None:
    x = real(*shape)
    expected = np.linalg.pinv(x) if x.size else np.zeros((*shape[:-2], shape[-1], shape[-2]))
    np.testing.assert_allclose(run("pinv", x), expected, 1e-8, 1e-8)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3)], ids=str)
@pytest.mark.parametrize("values", [[2.0, 2.0, 1.0], [2.0, 2.0, 2.0], [3.0, 2.0, 1.0]], ids=str)
def test_gradient_at_equal_singular_values(shape: tuple[int, int], values: list[float]) -> None:
    x = with_singular_values(values, *shape)
    g = real(*shape[::-1])
    _, (actual,) = grads("pinv", x, cotangent=g)
    np.testing.assert_allclose(
        actual, finite_differences(lambda a: float((np.linalg.pinv(a) * g).sum()), x), 1e-8, 1e-8
    )


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3)], ids=str)
def test_gradient_at_lower_rank_is_along_matrices_of_that_rank(shape: tuple[int, int]) -> None:
    x, g = with_singular_values([2.0, 1.0, 0.0], *shape), real(*shape[::-1])
    actual, (slope,) = grads("pinv", x, cotangent=g)
    np.testing.assert_allclose(actual, np.linalg.pinv(x, rcond=1e-12), 1e-12, 1e-12)
    left, right, h = real(shape[0], shape[0]), real(shape[1], shape[1]), 1e-5

    def moved(t: float) -> Array:
        return (np.eye(shape[0]) + t * left) @ x @ (np.eye(shape[1]) + t * right)

    along = left @ x + x @ right
    ends = [float((np.linalg.pinv(moved(t), rcond=1e-9) * g).sum()) for t in (h, -h)]
    np.testing.assert_allclose((slope * along).sum(), (ends[0] - ends[1]) / (2 * h), 1e-7)


def test_rcond_cuts_small_singular_values() -> None:
    x = np.diag([4.0, 2.0, 1.0])
    for rcond, rank in ((0.0, 3), (0.2, 3), (0.25, 2), (0.4, 2), (0.5, 1), (1.0, 0)):
        expected = np.diag([0.25, 0.5, 1.0] * (np.arange(3) < rank))
        np.testing.assert_array_equal(run("pinv", x, rcond=rcond), expected)
    eps = np.finfo(float).eps
    for ratio, rank in ((2.5 * eps, 1), (4 * eps, 2)):
        tall = np.eye(3, 2) * [1.0, ratio]
        assert np.count_nonzero(run("pinv", tall)) == np.count_nonzero(run("pinv", tall.T)) == rank
    assert not run("pinv", np.zeros((2, 3))).any()


def test_nan_matrix_does_not_affect_the_others() -> None:
    batch = np.stack([real(3, 2), np.full((3, 2), np.nan), real(3, 2)])
    actual, (slope,) = grads("pinv", batch)
    for y in (actual, slope):
        assert np.isnan(y[1]).all()
        assert np.isfinite(y[[0, 2]]).all()


SYSTEMS = [
    ((4, 2), (4,)),
    ((4, 2), (4, 3)),
    ((2, 4, 2), (4,)),
    ((2, 4, 2), (2, 4)),
    ((2, 4, 2), (4, 3)),
    ((4, 2), (5, 4, 1)),
    ((3, 1, 4, 2), (2, 4, 1)),
    ((4, 4), (4,)),
    ((4, 0), (4, 2)),
    ((0, 0), (0,)),
    ((0, 3, 2), (3, 1)),
    ((4, 4, 2), (4, 4)),
]


@pytest.mark.parametrize("rcond", [None, 1e-10])
@pytest.mark.parametrize(("a", "b"), SYSTEMS, ids=str)
def test_least_squares(a: tuple[int, ...], b: tuple[int, ...], rcond: float | None) -> None:
    """Compared with the pseudoinverse, in values and gradients; a b of shape [4, 4] is a matrix."""
    left, right = real(*a), real(*b)
    is_vectors = len(b) > 1 and b == a[:-1] and b[-2] != a[-2]
    columns = right[..., None] if is_vectors or len(b) == 1 else right
    pseudo = np.linalg.pinv(left) if left.size else np.zeros((*a[:-2], a[-1], a[-2]))
    expected = pseudo @ columns
    expected = expected[..., 0] if is_vectors or len(b) == 1 else expected
    attrs = {} if rcond is None else {"rcond": rcond}
    actual, gradients = grads("lstsq", left, right, **attrs)
    np.testing.assert_allclose(actual, expected, 1e-9, 1e-9)
    for x, slope in zip((left, right), gradients, strict=True):
        assert slope.shape == x.shape
    if left.ndim == 2 and left.size and right.ndim == 1:
        np.testing.assert_allclose(gradients[1], pseudo.sum(axis=0), 1e-9, 1e-9)
        by_a = finite_differences(lambda x: float(np.linalg.lstsq(x, right, rcond=None)[0].sum()), left)
        np.testing.assert_allclose(gradients[0], by_a, 1e-7, 1e-7)


def test_least_squares_with_dependent_columns() -> None:
    a = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    actual, gradients = grads("lstsq", a, [1.0, 2.0, 4.0], rcond=1e-10)
    np.testing.assert_allclose(actual, np.linalg.lstsq(a, np.array([1.0, 2, 4]), rcond=1e-10)[0], 1e-12)
    assert all(np.isfinite(g).all() for g in gradients)


@pytest.mark.parametrize(
    ("op", "shapes", "attrs", "code", "sentence"),
    [
        ("lstsq", [(2, 3), (2,)], {}, "shape_mismatch", "operand 0 (a) must have at least as many rows as columns"),
        ("lstsq", [(3, 2), (2,)], {}, "shape_mismatch", "operand 1 (b) must have vectors or columns of 3 entries"),
        ("lstsq", [(3, 2), ()], {}, "shape_mismatch", "operand 1 (b) must have vectors or columns of 3 entries"),
        ("lstsq", [(3,), (3,)], {}, "shape_mismatch", "operand 0 (a) must hold matrices on its last two axes"),
        ("pinv", [(3,)], {}, "shape_mismatch", "operand 0 (x) must hold matrices on its last two axes"),
        ("pinv", [(3, 2)], {"rcond": -0.5}, "bad_attribute", "attribute rcond must be at least 0, but is -0.5"),
        ("lstsq", [(3, 2), (3,)], {"rcond": -1.0}, "bad_attribute", "attribute rcond must be at least 0, but is -1"),
    ],
)
def test_invalid_operands_are_refused(
    op: str, shapes: list[tuple[int, ...]], attrs: dict[str, float], code: str, sentence: str
) -> None:
    refused = error(op, *(real(*shape) for shape in shapes), **attrs)
    assert refused.code == code
    assert refused.detail.startswith(f"node {len(shapes)} ({op}): {sentence}")


def test_dtypes() -> None:
    assert run("pinv", np.eye(2, 3, dtype="float16")).dtype == np.float16
    assert run("pinv", np.eye(2, 3, dtype="int8")).dtype == np.float64
    assert run("lstsq", np.eye(3, 2, dtype="float16"), np.ones(3, "float16")).dtype == np.float16
    assert run("lstsq", np.eye(3, 2, dtype="float32"), np.ones(3, "float16")).dtype == np.float32
    assert run("lstsq", np.eye(3, 2, dtype="float32"), np.ones(3, "int64")).dtype == np.float64
