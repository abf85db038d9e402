"""Higher-order derivatives through HTTP, against closed forms, hand-written jets, and complex steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from tests.conftest import Client
from tests.reference.client import Array, Graph, complex_step

pytestmark = pytest.mark.slow

CLOSE = {"rtol": 1e-7, "atol": 1e-9}
RNG = np.random.default_rng(20)


def draw(*shape: int) -> Array:
    return np.asarray(RNG.uniform(-1, 1, shape))


# ---------------------------------------------------------------- a differential equation


def network(g: Graph, x: int, weights: list[int]) -> int:
    """tanh(tanh(x W₁ + b₁) W₂ + b₂) w₃."""
    w1, b1, w2, b2, w3 = weights
    h = g.add("tanh", g.add("add", g.add("matmul", x, w1), b1))
    return g.add("matmul", g.add("tanh", g.add("add", g.add("matmul", h, w2), b2)), w3)


Jet = tuple[Any, Any, Any]


def tanh_jet(z: Jet) -> Jet:
    """Value, first and second derivative in x of tanh(z(x))."""
    t = np.tanh(z[0])
    slope = 1 - t * t
    return t, slope * z[1], slope * z[2] - 2 * t * slope * z[1] ** 2


def network_jet(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any) -> Jet:
    h = tanh_jet((x @ w1 + b1, np.ones_like(x) @ w1, np.zeros_like(x) @ w1))
    t = tanh_jet((h[0] @ w2 + b2, h[1] @ w2, h[2] @ w2))
    return t[0] @ w3, t[1] @ w3, t[2] @ w3


def residual_loss(x: Any, *weights: Any) -> Any:
    """mean((u″ + 4 u − sin x)²) + mean((u′)²)/10."""
    u, u1, u2 = network_jet(x, *weights)
    return np.mean((u2 + 4 * u - np.sin(x)) ** 2) + np.mean(u1**2) / 10


def test_physics_informed_loss_and_its_weight_gradients(client: Client) -> None:
    arrays = [draw(7, 1), draw(1, 5), draw(5), draw(5, 4), draw(4), draw(4, 1)]
    g = Graph(client)
    x, *weights = (g.leaf(a, "input" if i == 0 else "parameter") for i, a in enumerate(arrays))
    u = network(g, x, weights)
    slope = g.add("grad", u, x)
    curvature = g.add("grad", slope, x)
    left = g.add("add", curvature, g.add("mul_scalar", u, scalar=4.0))
    misfit = g.add("mean", g.add("square", g.add("sub", left, g.add("sin", x))))
    loss = g.add("add", misfit, g.add("div_scalar", g.add("mean", g.add("square", slope)), scalar=10.0))
    for actual, expected in zip(g.forward(u, slope, curvature), network_jet(*arrays), strict=True):
        np.testing.assert_allclose(actual, expected, **CLOSE)
    value, *actual = g.gradients(loss, [*weights, x])
    np.testing.assert_allclose(value, residual_loss(*arrays), **CLOSE)
    for index, gradient in zip([1, 2, 3, 4, 5, 0], actual, strict=True):
        np.testing.assert_allclose(gradient, complex_step(residual_loss, arrays, index), **CLOSE)


# ---------------------------------------------------------------- to higher orders


def tanh_derivative(order: int) -> Polynomial:
    """The derivative of tanh as a polynomial in t = tanh: pₙ₊₁ = pₙ′ · (1 − t²)."""
    p = Polynomial([0, 1])
    for _ in range(order):
        p = p.deriv() * Polynomial([1, 0, -1])
    return p


def nested(g: Graph, y: int, x: int, order: int) -> int:
    for _ in range(order):
        y = g.add("grad", y, x)
    return y


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 6])
def test_nested_gradients_are_higher_derivatives(client: Client, order: int) -> None:
    """y = tanh(a x): y⁽ⁿ⁾ = aⁿ pₙ(tanh(a x)), and its gradients with respect to a and x."""
    g, points, rate = Graph(client), draw(3, 2), 0.7
    x, a = g.leaf(points, "input"), g.leaf(rate)
    top = nested(g, g.add("tanh", g.add("mul", a, x)), x, order)
    t = np.tanh(rate * points)
    p, q = tanh_derivative(order)(t), tanh_derivative(order + 1)(t)
    value, grad_a, grad_x = g.gradients(top, [a, x], np.ones((3, 2)))
    np.testing.assert_allclose(value, rate**order * p, **CLOSE)
    np.testing.assert_allclose(grad_x, rate ** (order + 1) * q, **CLOSE)
    np.testing.assert_allclose(grad_a, np.sum(order * rate ** (order - 1) * p + rate**order * points * q), **CLOSE)


def test_fourth_derivative_of_a_product(client: Client) -> None:
    """(e⁻ˣ sin x)⁗ = −4 e⁻ˣ sin x."""
    g, points = Graph(client), draw(5)
    x = g.leaf(points)
    y = g.add("mul", g.add("exp", g.add("neg", x)), g.add("sin", x))
    (actual,) = g.forward(nested(g, y, x, 4))
    np.testing.assert_allclose(actual, -4 * np.exp(-points) * np.sin(points), **CLOSE)


def test_mixed_fourth_derivative(client: Client) -> None:
    """∂⁴/∂x²∂y² of sin(x y) = (x² y² − 2) sin(xy) − 4 x y cos(xy)."""
    g, (a, b) = Graph(client), (draw(4), draw(4))
    x, y = g.leaf(a), g.leaf(b)
    top = nested(g, nested(g, g.add("sin", g.add("mul", x, y)), x, 2), y, 2)
    s = a * b
    np.testing.assert_allclose(g.forward(top)[0], (s**2 - 2) * np.sin(s) - 4 * s * np.cos(s), **CLOSE)


# ---------------------------------------------------------------- gradient penalty, forces


def penalty(x: Any, w: Any, v: Any) -> Any:
    """mean((|∇ₓ D| − 1)²) of the critic D = tanh(x W) v, with ∇ₓ D in closed form."""
    slopes = ((1 - np.tanh(x @ w) ** 2) * v[:, 0]) @ w.T
    return np.mean((np.sqrt(np.sum(slopes**2, axis=1)) - 1) ** 2)


def test_gradient_penalty(client: Client) -> None:
    arrays = [draw(6, 3), draw(3, 5), draw(5, 1)]
    g = Graph(client)
    x, w, v = (g.leaf(a) for a in arrays)
    slopes = g.add("grad", g.add("matmul", g.add("tanh", g.add("matmul", x, w)), v), x)
    length = g.add("sqrt", g.add("sum", g.add("square", slopes), axes=[1]))
    loss = g.add("mean", g.add("square", g.add("add_scalar", length, scalar=-1.0)))
    value, *gradients = g.gradients(loss, [x, w, v])
    np.testing.assert_allclose(value, penalty(*arrays), **CLOSE)
    for index, gradient in enumerate(gradients):
        np.testing.assert_allclose(gradient, complex_step(penalty, arrays, index), **CLOSE)


def pair_forces(r: Any, depth: Any, width: Any) -> Any:
    """The forces of E = Σ_{i<j} depth · exp(−|rᵢ − rⱼ|² / width), pair by pair."""
    forces = np.zeros_like(r * depth * width)
    for i in range(len(r)):
        for j in range(len(r)):
            displacement = r[i] - r[j]
            forces[i] += 2 / width * depth * np.exp(-np.sum(displacement * displacement) / width) * displacement
    return forces


def test_forces_and_the_gradient_of_their_misfit(client: Client) -> None:
    arrays, observed = [draw(5, 3), np.array(1.3), np.array(0.8)], draw(5, 3)
    g = Graph(client)
    r, depth, width = (g.leaf(a) for a in arrays)
    displacement = g.add("sub", g.add("unsqueeze", r, axes=[1]), g.add("unsqueeze", r, axes=[0]))
    attraction = g.add("exp", g.add("neg", g.add("div", g.add("sum", g.add("square", displacement), axes=[-1]), width)))
    energy = g.add("mul_scalar", g.add("sum", g.add("mul", depth, attraction)), scalar=0.5)
    forces = g.add("neg", g.add("grad", energy, r))
    misfit = g.add("mse_loss", forces, g.add("constant", value=observed))
    np.testing.assert_allclose(g.forward(forces)[0], pair_forces(*arrays), **CLOSE)
    _, *gradients = g.gradients(misfit, [r, depth, width])
    for index, gradient in enumerate(gradients):
        expected = complex_step(lambda *a: np.mean((pair_forces(*a) - observed) ** 2), arrays, index)
        np.testing.assert_allclose(gradient, expected, **CLOSE)


# ---------------------------------------------------------------- uses of a grad node


def test_seeded_gradient_is_a_vector_jacobian_product(client: Client) -> None:
    g, (a, w, c, v) = Graph(client), (draw(4), draw(3, 4), draw(3), draw(4))
    x, seed = g.leaf(a), g.leaf(c)
    y = g.add("matmul", g.add("constant", value=w), g.add("tanh", x))
    pulled = g.add("grad", y, x, seed)
    jacobian = w * (1 - np.tanh(a) ** 2)
    value, grad_seed, grad_x = g.gradients(pulled, [seed, x], v)
    np.testing.assert_allclose(value, c @ jacobian, **CLOSE)
    np.testing.assert_allclose(grad_seed, jacobian @ v, **CLOSE)
    np.testing.assert_allclose(grad_x, -2 * np.tanh(a) * (1 - np.tanh(a) ** 2) * (c @ w) * v, **CLOSE)


def test_gradient_with_respect_to_an_inner_node(client: Client) -> None:
    g, (a, b) = Graph(client), (draw(3), draw(3))
    x, y = g.leaf(a), g.leaf(b)
    h = g.add("mul", x, y)
    z = g.add("sum", g.add("mul", g.add("sin", h), x))
    inner = g.add("grad", z, h)
    value, grad_h, grad_x = g.gradients(inner, [h, x], np.ones(3))
    np.testing.assert_allclose(value, a * np.cos(a * b), **CLOSE)
    np.testing.assert_allclose(grad_h, -a * np.sin(a * b), **CLOSE)
    np.testing.assert_allclose(grad_x, np.cos(a * b) - a * b * np.sin(a * b), **CLOSE)


def test_gradient_without_a_path_is_zero(client: Client) -> None:
    g, (a, b) = Graph(client), (draw(2, 3), draw(2))
    x, other = g.leaf(a), g.leaf(b)
    y = g.add("sum", g.add("square", x))
    zeros = g.add("grad", y, other)
    total = g.add("add", y, g.add("sum", g.add("exp", zeros)))
    for actual, expected in zip(g.gradients(total, [x, other]), (np.sum(a * a) + 2, 2 * a, 0 * b), strict=True):
        np.testing.assert_allclose(actual, expected, **CLOSE)
    assert g.disconnected(total, [x, other]) == [other]


def test_gradient_of_a_node_with_respect_to_itself_is_one(client: Client) -> None:
    g, a = Graph(client), draw(2, 2)
    x = g.leaf(a)
    assert np.array_equal(g.forward(g.add("grad", x, x))[0], np.ones((2, 2)))


# ---------------------------------------------------------------- size


def test_a_chain_of_5000_nodes(client: Client) -> None:
    """x ← sin x, 5,000 times: the derivative is the product of the cosines on the way."""
    g, value = Graph(client), draw(3)
    x = y = g.leaf(value)
    slope = np.ones(3)
    for _ in range(5_000):
        y = g.add("sin", y)
        slope, value = slope * np.cos(value), np.sin(value)
    actual, gradient = g.gradients(y, [x], np.ones(3))
    np.testing.assert_allclose(actual, value, **CLOSE)
    np.testing.assert_allclose(gradient, slope, rtol=1e-7)


def test_one_node_with_1000_consumers(client: Client) -> None:
    g, a, scales = Graph(client), draw(2), RNG.uniform(-1, 1, 1000)
    x = g.leaf(a)
    terms = [g.add("sin", g.add("mul_scalar", x, scalar=float(s))) for s in scales]
    y = g.add("cat", *terms)
    _, gradient = g.gradients(g.add("sum", y), [x])
    np.testing.assert_allclose(gradient, scales @ np.cos(np.outer(scales, a)), **CLOSE)
