"""Gradients, second gradients and forward mode of every op against central differences in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine import COTANGENTS, Graph, Plan, TensorType, Value
from engine.autodiff.jvp import jvp
from engine.autodiff.vjp import vjp_or_zeros
from engine.compiler.plan import make_plan
from engine.ir.passes import optimise
from tests.contract.cases import (
    EXECUTOR,
    LIMITS,
    ONCE,
    Array,
    Case,
    Written,
    cached_result,
    each,
    feeds_of,
    has_rule,
    run_graph,
    sample,
)
from tests.sampling import together

RTOL, ATOL = 1e-7, 1e-9


def directional_derivative(graph: Graph, arrays: Sequence[Array], direction: Sequence[Array]) -> Array:
    """Return the derivative of the output in a direction by the five-point rule, with error O(h⁴)."""
    h, plan = 1e-4, make_plan(optimise(graph), LIMITS)

    def shifted(t: float) -> Array:
        moved = [a + t * h * d if a.dtype.kind in "fc" else a for a, d in zip(arrays, direction, strict=True)]
        return EXECUTOR.run(plan, feeds_of(moved))[0]

    return (8 * (shifted(1) - shifted(-1)) - (shifted(2) - shifted(-2))) / (12 * h)


def directions(arrays: Sequence[Array], seed: int = 1) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [draw_with_dtype(a.dtype, lambda shape=a.shape: rng.uniform(-1, 1, shape)) for a in arrays]


def draw_with_dtype(dtype: np.dtype[Any], draw: Callable[[], Any]) -> Array:
    """Draw an array, with an imaginary part if the dtype is complex."""
    return np.asarray(draw() + 1j * draw() if dtype.kind == "c" else draw())


def weighted_sum(written: Written, weights: Sequence[Array]) -> Value:
    """Return Σ sum(output · weight), a real scalar that depends on every element and part of every float output."""
    builder = written.builder
    terms = [real_sum(y * builder.constant(w)) for y, w in zip(written.float_outputs, weights, strict=True)]
    return sum(terms[1:], start=terms[0])


def real_sum(y: Value) -> Value:
    return (y.real() if y.type.is_complex else y).sum()


def weights_for(written: Written) -> list[Array]:
    rng = np.random.default_rng(2)
    return [draw_with_dtype(y.dtype, lambda shape=y.shape: rng.uniform(0.5, 1.5, shape)) for y in written.float_outputs]


def inner_product(gradients: Sequence[Array], arrays: Sequence[Array], direction: Sequence[Array]) -> float:
    floats = [d for a, d in zip(arrays, direction, strict=True) if a.dtype.kind in "fc"]
    return float(sum(np.sum((g.conj() * d).real) for g, d in zip(gradients, floats, strict=True)))


@cached_result
def gradient_of(case: Case, dtype: str = "float64") -> Graph:
    """Return the gradient of the weighted sum of the results with respect to the float operands."""
    written = case.write(case.arrays(dtype))
    loss = weighted_sum(written, weights_for(written))
    return written.builder.graph(vjp_or_zeros(written.builder, [(loss, loss.full_like(1.0))], written.float_operands))


@together
@each(has_rule)
def test_gradient_matches_finite_differences(case: Case) -> None:
    arrays = case.arrays()
    gradients = run_graph(gradient_of(case), feeds_of(arrays))
    written = case.write(arrays)
    for gradient, operand in zip(gradients, written.float_operands, strict=True):
        assert TensorType.of(gradient) == operand.type
    direction = directions(arrays)
    value = written.builder.graph([weighted_sum(written, weights_for(written))])
    np.testing.assert_allclose(
        inner_product(gradients, arrays, direction), directional_derivative(value, arrays, direction), RTOL, ATOL
    )


def directional_gradient(
    case: Case, arrays: Sequence[Array], weights: Sequence[Array], direction: Sequence[Array]
) -> Written:
    """Return a graph of the gradient of the weighted sum, times `direction`, for twice differentiable operands."""
    written = case.write(arrays)
    loss = weighted_sum(written, weights)
    differentiated = [i for i, a in enumerate(arrays) if a.dtype.kind in "fc" and i not in ONCE.get(case.op.name, ())]
    gradients = vjp_or_zeros(
        written.builder, [(loss, loss.full_like(1.0))], [written.operands[i] for i in differentiated]
    )
    terms = [
        real_sum(g * written.builder.constant(direction[i])) for g, i in zip(gradients, differentiated, strict=True)
    ]
    return Written(written.builder, written.operands, [sum(terms[1:], start=terms[0])])


@together
@sample(has_rule)
def test_second_gradient_matches_finite_differences(case: Case) -> None:
    arrays = case.arrays()
    weights = weights_for(case.write(arrays))
    first, second = directions(arrays, 3), directions(arrays, 4)
    written = directional_gradient(case, arrays, weights, first)
    (slope_along,) = written.outputs
    value = written.builder.graph(written.outputs)
    gradients = vjp_or_zeros(written.builder, [(slope_along, slope_along.full_like(1.0))], written.float_operands)
    second_gradients = run_graph(written.builder.graph(gradients), feeds_of(arrays))
    np.testing.assert_allclose(
        inner_product(second_gradients, arrays, second), directional_derivative(value, arrays, second), RTOL, 10 * ATOL
    )


@together
@sample(has_rule)
def test_jvp_matches_finite_differences_without_dummy_leaves(case: Case) -> None:
    arrays = case.arrays()
    written = case.write(arrays)
    direction = directions(arrays)
    chosen = [d for a, d in zip(arrays, direction, strict=True) if a.dtype.kind in "fc"]
    pairs = [(x, written.builder.constant(d)) for x, d in zip(written.float_operands, chosen, strict=True)]
    tangents = jvp(written.builder, written.float_outputs, pairs)
    outputs = [y.full_like(0.0) if t is None else t for y, t in zip(written.float_outputs, tangents, strict=True)]
    graph = written.builder.graph(outputs)
    assert set(optimise(graph).feeds) <= set(range(len(arrays))), "a dummy cotangent is left in the tangent"
    tangent_arrays = run_graph(graph, feeds_of(arrays))

    fresh = case.write(arrays)
    for y, tangent in zip(fresh.float_outputs, tangent_arrays, strict=True):
        value = fresh.builder.graph([y])
        np.testing.assert_allclose(tangent, directional_derivative(value, arrays, direction), 1e-6, 1e-8)


@together
@sample(has_rule)
def test_gradient_is_linear_in_cotangent(case: Case) -> None:
    arrays = case.arrays()
    for k, output in enumerate(case.write(arrays).float_outputs):
        rng = np.random.default_rng(5)
        first, second = (draw_with_dtype(output.dtype, lambda: rng.uniform(-1, 1, output.shape)) for _ in range(2))  # noqa: B023

        written = case.write(arrays)
        leaf = written.builder.leaf(output.type, COTANGENTS)
        gradients = vjp_or_zeros(written.builder, [(written.float_outputs[k], leaf)], written.float_operands)
        plan = make_plan(optimise(written.builder.graph(gradients)), LIMITS)

        def run_vjp(cotangent: Array, plan: Plan = plan) -> list[Array]:
            return EXECUTOR.run(plan, {**feeds_of(arrays), COTANGENTS: cotangent})

        for a, b, both in zip(run_vjp(first), run_vjp(second), run_vjp(2 * first - 3 * second), strict=True):
            np.testing.assert_allclose(both, 2 * a - 3 * b, 1e-9, 1e-11)
