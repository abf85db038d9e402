"""`call` runs its body in place; a custom derivative replaces the differentiation of the body."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Batch, Compiler
from engine.ir.errors import NotDifferentiable
from tests.engine.looping import (
    Writer,
    agree,
    agree_in_batches,
    batch,
    everything,
    gradients,
    hvp,
    jvp,
    lost,
    random,
    same,
    values,
    written,
)


def several_results(g: Writer, a: int, b: int, _unread: int) -> list[int]:
    y = g.tanh(g.mul(a, b))
    return [y, g.sum(g.mul(y, a)), b, y]


ARRAYS = (random(3), random(3, seed=1), 0.5)


@pytest.mark.parametrize("recompute", [False, True])
def test_call_matches_its_body(recompute: bool) -> None:
    agree(
        lambda g, *args: g.call(*args, body=several_results, recompute=recompute),
        lambda g, *args: list(map(g.identity, several_results(g, *args))),
        *ARRAYS,
    )
    agree_in_batches(
        lambda g, *args: g.call(*args, body=several_results, recompute=recompute),
        lambda g, *args: list(map(g.identity, several_results(g, *args))),
        *ARRAYS,
        mapped=[[0], [1], [2], [0, 1, 2]],
    )
    assert lost(lambda g, *args: g.call(*args, body=several_results, recompute=recompute), *ARRAYS) == (2,)


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("read", [[0], [1], [2], [1, 3]])
def test_unread_results(read: list[int], recompute: bool) -> None:
    def looped(g: Writer, *args: int) -> list[int]:
        results = g.call(*args, body=several_results, recompute=recompute)
        return [results[k] for k in read]

    agree(looped, lambda g, *args: [g.identity(several_results(g, *args)[k]) for k in read], *ARRAYS)


@pytest.mark.parametrize("recompute", [False, True])
def test_call_without_operands(recompute: bool) -> None:
    (actual,) = values(lambda g: g.call(body=lambda g: [g.number([1.0, 2.0])], recompute=recompute))
    same([actual], [np.array([1.0, 2.0])], 0)


def straight_through(g: Writer, x: int) -> list[int]:
    """Rounding with a slope of 1."""
    return list(g.call(x, body=lambda g, x: [g.round(x)], derivative=lambda g, x, y, u: [g.identity(u)]))


def test_straight_through() -> None:
    x = np.array([0.3, 1.7, -2.4])
    actual = everything(written(lambda g, x: straight_through(g, g.mul(x, x)), x))
    rounded = np.round(x * x)
    slope, bend = np.cos(rounded + 0.3), -np.sin(rounded + 0.3)
    same(actual["values"], [rounded], 0)
    same(actual["gradients"][1:], [slope * 2 * x], 1e-15)
    same(actual["hessian"][2:], [np.diag(bend * 4 * x * x + slope * 2)], 1e-14)
    v = np.random.default_rng(0).standard_normal(3)
    same(actual["jvp"][1:], [2 * x * v], 1e-15)
    same(actual["hvp"][2:], [(bend * 4 * x * x + slope * 2) * v], 1e-14)
    many = batch(written(straight_through, np.stack([x, 2 * x])), [0], differentiated=True)
    same(many[1:], [np.stack([np.cos(np.round(x) + 0.3), np.cos(np.round(2 * x) + 0.3)])], 1e-15)


def product_body(g: Writer, a: int, n: int, b: int) -> list[int]:
    """Body on a float, an integer and a float: a product, an integer, and an unread result."""
    return [g.mul(a, b), g.add(n, n), g.sin(a)]


def false_derivative(
    g: Writer, _a: int, _n: int, b: int, y: int, _m: int, _s: int, gy: int, gm: int, gs: int
) -> list[int]:
    """Gradients y·gy + gm in place of b·gy, and 3·b²·gy + gs in place of a·gy."""
    twice = g.add(g.mul(y, gy), gm)
    return [twice, g.add(g.mul(g.mul_scalar(g.square(b), scalar=3.0), gy), gs)]


def test_custom_derivative_to_second_order() -> None:
    """Second derivatives go through the operands, the results and the cotangents."""

    def write(g: Writer, a: int, n: int, b: int) -> list[int]:
        return [g.call(a, n, b, body=product_body, derivative=false_derivative)[0]]

    a, b = 0.6, 0.9
    y = a * b
    u, du = np.cos(y + 0.3), -np.sin(y + 0.3)
    grad_a, grad_b = y, 3 * b * b  # ∂y/∂a and ∂y/∂b by the false derivative
    actual = everything(written(write, a, np.int64(3), b))
    same(actual["gradients"][1:], [np.array(grad_a * u), np.array(grad_b * u)], 1e-15)
    # ∂(y·u) = (u + y·du)·∂y, where ∂y is again the false one; and ∂(3b²·u) = 6b·u·∂b + 3b²·du·∂y
    rows = [
        np.array((u + y * du) * grad_a),
        np.array((u + y * du) * grad_b),
        np.array(grad_b * du * grad_a),
        np.array(6 * b * u + grad_b * du * grad_b),
    ]
    same(actual["hessian"][3:], rows, 1e-14)
    va, vb = (np.random.default_rng(node).standard_normal(()) for node in (0, 2))
    same(actual["jvp"][1:], [np.array(grad_a * va + grad_b * vb)], 1e-15)
    same(actual["hvp"][3:], [rows[0] * va + rows[1] * vb, rows[2] * va + rows[3] * vb], 1e-14)


def test_unread_and_integer_results_get_zero_cotangents() -> None:
    def derivative(g: Writer, *args: int) -> list[int]:
        *_, gy, gm, gs = args
        return [g.add(g.add(gy, g.sin(gm)), g.mul_scalar(gs, scalar=5.0))]

    def write(g: Writer, a: int, n: int) -> list[int]:
        results = g.call(a, n, body=lambda g, a, n: [g.mul(a, a), g.add(n, n), g.sin(a)], derivative=derivative)
        return results[:2]

    a, n = random(3), np.array([1, 2, 3])
    actual = everything(written(write, a, n, floats=[0]), [0])
    same(actual["gradients"][1:], [np.cos(a * a + 0.3)], 1e-15)
    same(actual["values"][1:], [2 * n], 0)
    many = batch(written(write, np.stack([a, a]), n, floats=[0]), [0], differentiated=True)
    same(many[1:], [np.stack([np.cos(a * a + 0.3)] * 2)], 1e-15)


def test_cotangents_of_integers_and_bools_are_float64() -> None:
    """They are returned for a float64 operand, which refuses cotangents of another dtype."""

    def write(g: Writer, a: int) -> list[int]:
        results = g.call(
            a,
            body=lambda g, a: [g.cast(a, dtype="int64"), g.greater(a, g.number(0.0))],
            derivative=lambda g, a, n, p, gn, gp: [g.add(gn, gp)],
        )
        return [g.add(a, g.cast(results[0], dtype="float64"))]

    same(gradients(write, 1.5), [np.asarray(np.cos(2.8))], 1e-15)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_custom_derivative_in_narrow_floats(dtype: str) -> None:
    def derivative(g: Writer, _x: int, y: int, _n: int, u: int, un: int) -> list[int]:
        """The cotangent of the integer result is float64, whatever x is."""
        return [g.add(g.mul(y, u), g.cast(un, dtype=dtype))]

    def write(g: Writer, x: int) -> list[int]:
        return g.call(x, body=lambda g, x: [g.exp(x), g.cast(x, dtype="int64")], derivative=derivative)[:1]

    x = np.array([0.5, 1.0], dtype)
    y = np.exp(x)
    (actual,) = gradients(write, x)
    assert actual.dtype == dtype
    np.testing.assert_allclose(actual, y * np.cos(y.astype(float) + 0.3), rtol=2e-2 if dtype == "float16" else 1e-5)


def test_custom_derivative_without_float_operands() -> None:
    def write(g: Writer, n: int, x: int) -> list[int]:
        (y,) = g.call(n, body=lambda g, n: [g.cast(n, dtype="float64")], derivative=lambda g, n, y, u: [])
        return [g.mul(x, y)]

    same(gradients(write, np.int64(3), 0.5), [np.array(3 * np.cos(1.8))], 1e-15)


def test_custom_derivative_inside_scan_and_cond() -> None:
    """The straight-through estimator, at each step."""

    def body(g: Writer, k: int, x: int) -> list[int]:
        (y,) = g.cond(
            g.less(x, g.number(100.0)),
            g.mul(k, x),
            then=straight_through,
            otherwise=lambda g, x: [x],
        )
        return [y]

    k, x, length = 1.6, 2.0, 3
    actual = everything(written(lambda g, k, x: g.scan(k, x, body=body, carries=1, length=length), k, x))
    states, grad_k, grad_x = [x], 0.0, 1.0
    for _ in range(length):
        grad_k, grad_x = states[-1] + k * grad_k, k * grad_x
        states.append(np.round(k * states[-1]))
    slope = np.cos(states[-1] + 0.3)
    same(actual["values"], [np.array(states[-1])], 0)
    same(actual["gradients"][1:], [np.array(slope * grad_k), np.array(slope * grad_x)], 1e-13)
    vk, vx = (np.random.default_rng(node).standard_normal(()) for node in (0, 1))
    same(actual["jvp"][1:], [np.array(grad_k * vk + grad_x * vx)], 1e-13)


def test_non_float_results_of_float_operands() -> None:
    def body(g: Writer, x: int) -> list[int]:
        return [g.greater(x, g.number(0.0)), g.cast(x, dtype="int64")]

    x = np.array([-1.5, 2.5])
    for recompute in (False, True):
        actual = values(lambda g, x: g.call(x, body=body, recompute=recompute), x)  # noqa: B023
        same(actual, [np.array([False, True]), np.array([-1, 2])], 0)


def test_nested_calls() -> None:
    def nested(depth: int, recompute: bool):  # type: ignore[no-untyped-def]
        if depth == 0:
            return lambda g, x: [g.sin(x)]
        return lambda g, x: g.call(g.mul(x, x), body=nested(depth - 1, recompute), recompute=recompute)

    for recompute in (False, True):
        agree(
            nested(3, recompute),
            lambda g, x: [g.sin(g.mul(g.mul(g.mul(x, x), g.mul(x, x)), g.mul(g.mul(x, x), g.mul(x, x))))],
            random(2),
            exact=False,
        )


def test_empty_tensors() -> None:
    x = np.zeros((2, 0))
    actual = everything(written(straight_through, x))
    same(actual["gradients"][1:], [x], 0)


def test_nonlinear_derivative_has_no_forward_mode() -> None:
    """Gradient clipping works in reverse mode, but defines no tangent."""

    def clipped(g: Writer, x: int) -> list[int]:
        return g.call(x, body=lambda g, x: [g.exp(x)], derivative=lambda g, x, y, u: [g.tanh(g.mul(u, y))])

    asked = written(clipped, 0.3)
    expected = np.tanh(np.cos(np.exp(0.3) + 0.3) * np.exp(0.3))
    same(gradients(clipped, 0.3), [expected], 1e-14)
    with pytest.raises(NotDifferentiable, match=r"node 1 \(call\): function 1, .* linear in its cotangents") as caught:
        jvp(asked, list(asked.results))
    assert caught.value.node == 1
    with pytest.raises(NotDifferentiable):
        hvp(asked)


def test_function_weight_counts_every_call() -> None:
    """A cond does not count its functions again."""
    g = Writer()
    body = g.function(lambda g, x: [g.sin(g.sin(x))], 1)
    twice = g.function(lambda g, x: g.call(*g.call(x, body=body), body=body), 1)
    either = g.function(lambda g, p, x: g.cond(p, x, then=body, otherwise=body), 2)
    inputs, calls, gets = 1, 2, 2
    assert g.functions[body].weight == inputs + 2
    assert g.functions[twice].weight == inputs + calls + gets + 2 * g.functions[body].weight
    assert g.functions[either].weight == 2 + 1 + 1


def test_batched_cond_inlines_both_functions() -> None:
    """With one predicate per example, both functions run, without a call."""

    def write(g: Writer, p: int, x: int) -> list[int]:
        return g.cond(p, x, then=lambda g, x: [g.sort(x, axis=0)], otherwise=lambda g, x: [g.cumsum(x, axis=0)])

    asked = written(write, np.array([True, False]), random(3), floats=())
    call = Batch.of_program(asked.program, asked.types, [0], outputs=asked.results)
    steps = Compiler(asked.program.limits).compile(asked.program, asked.types, call).plan.steps
    names = {step.op.name for step in steps}
    assert {"sort", "cumsum"} <= names
    assert "call" not in names
