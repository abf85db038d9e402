"""Derivatives past kinks and roots: at the kink, and elsewhere as by the chain rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine.autodiff.vjp import vjp
from engine.ir.graph import Value
from tests.engine.ops.matrices import evaluate


def _times_itself(x: Value) -> Value:
    return x * x


#: compositions, with their gradient and Hessian-vector product (or None) where the inner op has its kink or root
AT_ZERO: dict[str, tuple[Callable[[Value], Value], list[float], list[float], list[float] | None]] = {
    "square of norm": (lambda x: x.norm(axes=(0,)).square(), [0, 0], [0, 0], [2, 4]),
    "norm times itself": (lambda x: x.norm(axes=(0,)) * x.norm(axes=(0,)), [0, 0], [0, 0], None),
    "product of one norm": (lambda x: _times_itself(x.norm(axes=(0,))), [0, 0], [0, 0], [2, 4]),
    "square of abs": (lambda x: x.abs().square(), [0, 3], [0, 6], [2, 4]),
    "square of maximum": (lambda x: x.maximum(-x).square(), [0, -3], [0, -6], [2, 4]),
    "square of norms of rows": (
        lambda x: x.reshape(shape=(2, 1)).norm(axes=(1,), keepdims=True).square(), [0, 3], [0, 6], [2, 4],
    ),
    "exponential of a distance": (lambda x: (-x.norm(axes=(0,)).square()).exp(), [0, 0], [0, 0], [-2, -4]),
    "square of sqrt": (lambda x: x.sqrt().square(), [0, 4], [1, 1], [0, 0]),
    "exp of log": (lambda x: x.log().exp(), [0, 4], [1, 1], [0, 0]),
    "sqrt of square": (lambda x: x.square().sqrt(), [0, -3], [0, -1], None),
    "sqrt of a sum of squares": (lambda x: x.square().sum(axes=(0,)).sqrt(), [0, 0], [0, 0], None),
    "sqrt of a mean of squares": (lambda x: x.square().mean(axes=(0,)).sqrt(), [0, 0], [0, 0], None),
    "standard deviation": (lambda x: x.var(axes=(0,)).sqrt(), [5, 5], [0, 0], None),
}  # fmt: skip


def derivatives(write: Callable[[Value], Value], at: Any) -> tuple[Any, Any]:
    """Return the gradient of the sum, and the product of its Hessian with [1, 2, …]."""

    def both(x: Value) -> list[Value]:
        y = write(x).sum()
        (g,) = vjp(x.builder, [(y, y.full_like(1.0))], [x])
        assert g is not None
        z = (g * x.builder.constant(np.arange(1.0, 1.0 + len(at)))).sum()
        (h,) = vjp(x.builder, [(z, z.full_like(1.0))], [x])
        return [g, x.full_like(0.0) if h is None else h]

    with np.errstate(all="ignore"):
        gradient, product = evaluate(both, np.array(at, float))
    return gradient, product


@pytest.mark.parametrize("name", AT_ZERO)
def test_derivatives_at_the_kink(name: str) -> None:
    write, at, expected, second = AT_ZERO[name]
    gradient, product = derivatives(write, at)
    np.testing.assert_array_equal(gradient, expected)
    if second is not None:
        np.testing.assert_array_equal(product, second)


@pytest.mark.parametrize("name", AT_ZERO)
def test_derivatives_elsewhere_match_finite_differences(name: str) -> None:
    write, at = AT_ZERO[name][0], np.array([0.7, 1.9])

    def gradient(x: Any) -> Any:
        return derivatives(write, x)[0]

    def value(x: Any) -> float:
        return float(evaluate(lambda v: [write(v).sum()], x)[0])

    steps = 1e-6 * np.eye(2)
    slopes = [(value(at + step) - value(at - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(gradient(at), slopes, 1e-6)
    along = 1e-6 * np.array([1.0, 2.0])
    bend = (gradient(at + along) - gradient(at - along)) / 2e-6
    np.testing.assert_allclose(derivatives(write, at)[1], bend, 1e-5, 1e-8)


def test_nothing_goes_past_a_node_that_is_differentiated_by() -> None:
    def write(x: Value) -> list[Value]:
        n = x.norm(axes=(0,))
        y = n.square()
        by_norm, by_x = vjp(x.builder, [(y, y.full_like(1.0))], [n, x])
        assert by_norm is not None
        assert by_x is not None
        return [by_norm, by_x]

    by_norm, by_x = evaluate(write, np.array([3.0, 4.0]))
    assert by_norm == 10.0
    np.testing.assert_allclose(by_x, [6.0, 8.0])


def test_complex_size_squared() -> None:
    def write(z: Value) -> list[Value]:
        y = z.abs().square().sum()
        (g,) = vjp(z.builder, [(y, y.full_like(1.0))], [z])
        assert g is not None
        return [g]

    np.testing.assert_array_equal(evaluate(write, np.array([0j, 1 + 2j]))[0], [0, 2 + 4j])


def test_values_outside_of_the_domain_stay_nan() -> None:
    for write in (lambda x: x.sqrt().square(), lambda x: x.log().exp()):
        assert np.isnan(derivatives(write, [-1.0, 1.0])[0][0])
