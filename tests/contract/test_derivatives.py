"""First order, second order and forward mode of every op, against central differences in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine import COTANGENTS, Graph, Plan, TensorType, Value
from engine.autodiff.jvp import jvp
from engine.autodiff.vjp import vjp_or_zeros
from engine.compiler.plan import make_plan
from engine.ir.passes import optimise
from tests.contract.cases import EXECUTOR, LIMITS, ONCE, Array, Case, Written, each, feeds_of, has_rule, kept, run_graph
from tests.sampling import together

RTOL, ATOL = 1e-7, 1e-9


def slope(of: Graph, at: Sequence[Array], along: Sequence[Array]) -> Array:
    """The derivative of a graph's output at `at` along a direction, by the five-point rule: error O(h⁴)."""
    h, plan = 1e-4, make_plan(optimise(of), LIMITS)

    def shifted(t: float) -> Array:
        moved = [a + t * h * d if a.dtype.kind in "fc" else a for a, d in zip(at, along, strict=True)]
        return EXECUTOR.run(plan, feeds_of(moved))[0]

    return (8 * (shifted(1) - shifted(-1)) - (shifted(2) - shifted(-2))) / (12 * h)


def directions(arrays: Sequence[Array], seed: int = 1) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [like(a.dtype, lambda shape=a.shape: rng.uniform(-1, 1, shape)) for a in arrays]


def like(dtype: np.dtype[Any], draw: Callable[[], Any]) -> Array:
    """What is drawn, for both parts where the dtype is complex."""
    return np.asarray(draw() + 1j * draw() if dtype.kind == "c" else draw())


def weighted(written: Written, weights: Sequence[Array]) -> Value:
    """Σ sum(output · weight): a real scalar that depends on every element of every float output, and on both parts."""
    builder = written.builder
    terms = [summed(y * builder.constant(w)) for y, w in zip(written.float_outputs, weights, strict=True)]
    return sum(terms[1:], start=terms[0])


def summed(y: Value) -> Value:
    return (y.real() if y.type.is_complex else y).sum()


def weights_for(written: Written) -> list[Array]:
    rng = np.random.default_rng(2)
    return [like(y.dtype, lambda shape=y.shape: rng.uniform(0.5, 1.5, shape)) for y in written.float_outputs]


def inner(gradients: Sequence[Array], arrays: Sequence[Array], along: Sequence[Array]) -> float:
    floats = [d for a, d in zip(arrays, along, strict=True) if a.dtype.kind in "fc"]
    return float(sum(np.sum((g.conj() * d).real) for g, d in zip(gradients, floats, strict=True)))


@kept
def gradient_of(case: Case, dtype: str = "float64") -> Graph:
    """The gradient of the weighted sum of a case's results by its float operands."""
    written = case.write(case.arrays(dtype))
    loss = weighted(written, weights_for(written))
    return written.builder.graph(vjp_or_zeros(written.builder, [(loss, loss.full_like(1.0))], written.float_operands))


@together
@each(has_rule)
def test_gradient_is_the_slope(case: Case) -> None:
    arrays = case.arrays()
    gradients = run_graph(gradient_of(case), feeds_of(arrays))
    written = case.write(arrays)
    for gradient, operand in zip(gradients, written.float_operands, strict=True):
        assert TensorType.of(gradient) == operand.type
    along = directions(arrays)
    value = written.builder.graph([weighted(written, weights_for(written))])
    np.testing.assert_allclose(inner(gradients, arrays, along), slope(value, arrays, along), RTOL, ATOL)


def gradient_along(case: Case, at: Sequence[Array], weights: Sequence[Array], along: Sequence[Array]) -> Written:
    """A graph whose one output is the gradient of the weighted sum, times `along`: by what it can be taken twice."""
    written = case.write(at)
    loss = weighted(written, weights)
    twice = [i for i, a in enumerate(at) if a.dtype.kind in "fc" and i not in ONCE.get(case.op.name, ())]
    gradients = vjp_or_zeros(written.builder, [(loss, loss.full_like(1.0))], [written.operands[i] for i in twice])
    terms = [summed(g * written.builder.constant(along[i])) for g, i in zip(gradients, twice, strict=True)]
    return Written(written.builder, written.operands, [sum(terms[1:], start=terms[0])])


@together
@each(has_rule)
def test_second_gradient_is_the_slope_of_the_first(case: Case) -> None:
    arrays = case.arrays()
    weights = weights_for(case.write(arrays))
    first, second = directions(arrays, 3), directions(arrays, 4)
    written = gradient_along(case, arrays, weights, first)
    (slope_along,) = written.outputs
    value = written.builder.graph(written.outputs)
    gradients = vjp_or_zeros(written.builder, [(slope_along, slope_along.full_like(1.0))], written.float_operands)
    found = run_graph(written.builder.graph(gradients), feeds_of(arrays))
    np.testing.assert_allclose(inner(found, arrays, second), slope(value, arrays, second), RTOL, 10 * ATOL)


@together
@each(has_rule)
def test_forward_mode_is_the_slope_and_leaves_no_dummy(case: Case) -> None:
    arrays = case.arrays()
    written = case.write(arrays)
    along = directions(arrays)
    chosen = [d for a, d in zip(arrays, along, strict=True) if a.dtype.kind in "fc"]
    pairs = [(x, written.builder.constant(d)) for x, d in zip(written.float_operands, chosen, strict=True)]
    tangents = jvp(written.builder, written.float_outputs, pairs)
    outputs = [y.full_like(0.0) if t is None else t for y, t in zip(written.float_outputs, tangents, strict=True)]
    graph = written.builder.graph(outputs)
    assert set(optimise(graph).feeds) <= set(range(len(arrays))), "a dummy cotangent is left in the tangent"
    found = run_graph(graph, feeds_of(arrays))

    again = case.write(arrays)
    for y, tangent in zip(again.float_outputs, found, strict=True):
        value = again.builder.graph([y])
        np.testing.assert_allclose(tangent, slope(value, arrays, along), 1e-6, 1e-8)


@together
@each(has_rule)
def test_gradient_is_linear_in_its_cotangent(case: Case) -> None:
    arrays = case.arrays()
    for k, output in enumerate(case.write(arrays).float_outputs):
        rng = np.random.default_rng(5)
        first, second = (like(output.dtype, lambda: rng.uniform(-1, 1, output.shape)) for _ in range(2))  # noqa: B023

        written = case.write(arrays)
        leaf = written.builder.leaf(output.type, COTANGENTS)
        asked = vjp_or_zeros(written.builder, [(written.float_outputs[k], leaf)], written.float_operands)
        plan = make_plan(optimise(written.builder.graph(asked)), LIMITS)

        def pulled(cotangent: Array, plan: Plan = plan) -> list[Array]:
            return EXECUTOR.run(plan, {**feeds_of(arrays), COTANGENTS: cotangent})

        for a, b, both in zip(pulled(first), pulled(second), pulled(2 * first - 3 * second), strict=True):
            np.testing.assert_allclose(both, 2 * a - 3 * b, 1e-9, 1e-11)
