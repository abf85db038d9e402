"""Batch norm with given or running statistics: NumPy's formula, and errors that name the operand."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ir.errors import ShapeMismatch
from tests.engine.ops.matrices import evaluate
from tests.engine.ops.run import Array, run

RNG = np.random.default_rng(0)
X = RNG.normal(3, 2, (2, 3, 4))


def along_axis(numbers: Array, axis: int) -> Array:
    """Reshape one number per feature to broadcast along the axis of X."""
    return numbers.reshape([len(numbers) if i == axis % 3 else 1 for i in range(3)])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_given_statistics_match_the_formula(axis: int) -> None:
    mean, variance, weight, bias = RNG.uniform(1, 2, (4, X.shape[axis]))
    expected = (X - along_axis(mean, axis)) / np.sqrt(along_axis(variance, axis) + 0.1) * along_axis(
        weight, axis
    ) + along_axis(bias, axis)
    actual = run("batch_norm_given", X, mean, variance, weight, bias, axis=axis, eps=0.1)
    np.testing.assert_allclose(actual, expected, 1e-12)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_running_statistics_move_towards_the_batch(axis: int) -> None:
    """The batch variance has n − 1 in the denominator."""
    mean, variance = RNG.uniform(1, 2, (2, X.shape[axis]))
    others = tuple(i for i in range(3) if i != axis)
    actual = evaluate(
        lambda *xs: [xs[0].batch_norm_running(*xs[1:], axis=axis, eps=0.1, momentum=0.3).output(k) for k in range(3)],
        *(X, mean, variance),
    )
    y = (X - X.mean(others, keepdims=True)) / np.sqrt(X.var(others, keepdims=True) + 0.1)
    expected = y, 0.7 * mean + 0.3 * X.mean(others), 0.7 * variance + 0.3 * X.var(others, ddof=1)
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, 1e-12)


def test_running_statistics_of_one_example() -> None:
    """A single example has variance 0."""
    x, mean, variance = RNG.uniform(1, 2, (3, 4))
    y, moved, spread = evaluate(
        lambda *xs: [xs[0].batch_norm_running(*xs[1:], axis=0, eps=0.1, momentum=0.3).output(k) for k in range(3)],
        *(x, mean, variance),
    )
    np.testing.assert_array_equal(y, np.zeros(4))
    np.testing.assert_allclose(moved, 0.7 * mean + 0.3 * x, 1e-12)
    np.testing.assert_allclose(spread, 0.7 * variance, 1e-12)


@pytest.mark.parametrize("op", ["batch_norm_given", "batch_norm_running"])
@pytest.mark.parametrize(("place", "name"), [(1, "mean"), (2, "variance"), (3, "weight"), (4, "bias")])
def test_error_names_the_mismatched_operand(op: str, place: int, name: str) -> None:
    operands = [X, *np.ones((4, 3))]
    operands[place] = np.ones(2)
    with pytest.raises(ShapeMismatch) as caught:
        evaluate(lambda x, *others: [getattr(x, op)(*others)], *operands)
    assert caught.value.operand == place
    assert f"operand {place} ({name}) must have shape [3], that of x on axis 1, but has shape [2]" in str(caught.value)
