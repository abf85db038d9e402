"""A `call` is its body in place; with a derivative of its own, that is what is differentiated, and nothing else."""

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


def several(g: Writer, a: int, b: int, _unread: int) -> list[int]:
    y = g.tanh(g.mul(a, b))
    return [y, g.sum(g.mul(y, a)), b, y]


ARRAYS = (random(3), random(3, seed=1), 0.5)


@pytest.mark.parametrize("recompute", [False, True])
def test_a_call_is_its_body(recompute: bool) -> None:
    agree(
        lambda g, *given: g.call(*given, body=several, recompute=recompute),
        lambda g, *given: list(map(g.identity, several(g, *given))),
        *ARRAYS,
    )
    agree_in_batches(
        lambda g, *given: g.call(*given, body=several, recompute=recompute),
        lambda g, *given: list(map(g.identity, several(g, *given))),
        *ARRAYS,
        mapped=[[0], [1], [2], [0, 1, 2]],
    )
    assert lost(lambda g, *given: g.call(*given, body=several, recompute=recompute), *ARRAYS) == (2,)


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("read", [[0], [1], [2], [1, 3]])
def test_results_that_nobody_reads(read: list[int], recompute: bool) -> None:
    def looped(g: Writer, *given: int) -> list[int]:
        found = g.call(*given, body=several, recompute=recompute)
        return [found[k] for k in read]

    agree(looped, lambda g, *given: [g.identity(several(g, *given)[k]) for k in read], *ARRAYS)


@pytest.mark.parametrize("recompute", [False, True])
def test_a_call_of_nothing(recompute: bool) -> None:
    (found,) = values(lambda g: g.call(body=lambda g: [g.number([1.0, 2.0])], recompute=recompute))
    same([found], [np.array([1.0, 2.0])], 0)


def straight_through(g: Writer, x: int) -> list[int]:
    """Rounded, and yet of slope 1."""
    return list(g.call(x, body=lambda g, x: [g.round(x)], derivative=lambda g, x, y, u: [g.identity(u)]))


def test_straight_through() -> None:
    x = np.array([0.3, 1.7, -2.4])
    found = everything(written(lambda g, x: straight_through(g, g.mul(x, x)), x))
    rounded = np.round(x * x)
    slope, bend = np.cos(rounded + 0.3), -np.sin(rounded + 0.3)
    same(found["values"], [rounded], 0)
    same(found["gradients"][1:], [slope * 2 * x], 1e-15)
    same(found["hessian"][2:], [np.diag(bend * 4 * x * x + slope * 2)], 1e-14)
    v = np.random.default_rng(0).standard_normal(3)
    same(found["jvp"][1:], [2 * x * v], 1e-15)
    same(found["hvp"][2:], [(bend * 4 * x * x + slope * 2) * v], 1e-14)
    many = batch(written(straight_through, np.stack([x, 2 * x])), [0], differentiated=True)
    same(many[1:], [np.stack([np.cos(np.round(x) + 0.3), np.cos(np.round(2 * x) + 0.3)])], 1e-15)


def own(g: Writer, a: int, n: int, b: int) -> list[int]:
    """Of a float, an integer and a float: their product, an integer, and one that is not read."""
    return [g.mul(a, b), g.add(n, n), g.sin(a)]


def lie(g: Writer, _a: int, _n: int, b: int, y: int, _m: int, _s: int, gy: int, gm: int, gs: int) -> list[int]:
    """In place of b and a: y·gy + gm, and 3·b²·gy + gs."""
    twice = g.add(g.mul(y, gy), gm)
    return [twice, g.add(g.mul(g.mul_scalar(g.square(b), scalar=3.0), gy), gs)]


def test_an_own_derivative_is_what_is_differentiated_to_second_order() -> None:
    """Its own derivatives go through the operands, through the results, and through the cotangents."""

    def write(g: Writer, a: int, n: int, b: int) -> list[int]:
        return [g.call(a, n, b, body=own, derivative=lie)[0]]

    a, b = 0.6, 0.9
    y = a * b
    u, du = np.cos(y + 0.3), -np.sin(y + 0.3)
    by_a, by_b = y, 3 * b * b  # what the lie says ∂y/∂a and ∂y/∂b are
    found = everything(written(write, a, np.int64(3), b))
    same(found["gradients"][1:], [np.array(by_a * u), np.array(by_b * u)], 1e-15)
    # ∂(y·u) = (u + y·du)·∂y, where ∂y is again what the lie says; and ∂(3b²·u) = 6b·u·∂b + 3b²·du·∂y
    rows = [
        np.array((u + y * du) * by_a),
        np.array((u + y * du) * by_b),
        np.array(by_b * du * by_a),
        np.array(6 * b * u + by_b * du * by_b),
    ]
    same(found["hessian"][3:], rows, 1e-14)
    va, vb = (np.random.default_rng(node).standard_normal(()) for node in (0, 2))
    same(found["jvp"][1:], [np.array(by_a * va + by_b * vb)], 1e-15)
    same(found["hvp"][3:], [rows[0] * va + rows[1] * vb, rows[2] * va + rows[3] * vb], 1e-14)


def test_cotangents_of_results_that_are_not_read_and_of_integers_are_zeros() -> None:
    def derivative(g: Writer, *given: int) -> list[int]:
        *_, gy, gm, gs = given
        return [g.add(g.add(gy, g.sin(gm)), g.mul_scalar(gs, scalar=5.0))]

    def write(g: Writer, a: int, n: int) -> list[int]:
        found = g.call(a, n, body=lambda g, a, n: [g.mul(a, a), g.add(n, n), g.sin(a)], derivative=derivative)
        return found[:2]

    a, n = random(3), np.array([1, 2, 3])
    found = everything(written(write, a, n, floats=[0]), [0])
    same(found["gradients"][1:], [np.cos(a * a + 0.3)], 1e-15)
    same(found["values"][1:], [2 * n], 0)
    many = batch(written(write, np.stack([a, a]), n, floats=[0]), [0], differentiated=True)
    same(many[1:], [np.stack([np.cos(a * a + 0.3)] * 2)], 1e-15)


def test_cotangents_of_integers_and_bools_are_float64() -> None:
    """They are given on as those of a float64 operand, and so would be refused were they of another dtype."""

    def write(g: Writer, a: int) -> list[int]:
        found = g.call(
            a,
            body=lambda g, a: [g.cast(a, dtype="int64"), g.greater(a, g.number(0.0))],
            derivative=lambda g, a, n, p, gn, gp: [g.add(gn, gp)],
        )
        return [g.add(a, g.cast(found[0], dtype="float64"))]

    same(gradients(write, 1.5), [np.asarray(np.cos(2.8))], 1e-15)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_derivative_in_narrow_floats(dtype: str) -> None:
    def derivative(g: Writer, _x: int, y: int, _n: int, u: int, un: int) -> list[int]:
        """The cotangent of the integer result is float64, whatever x is."""
        return [g.add(g.mul(y, u), g.cast(un, dtype=dtype))]

    def write(g: Writer, x: int) -> list[int]:
        return g.call(x, body=lambda g, x: [g.exp(x), g.cast(x, dtype="int64")], derivative=derivative)[:1]

    x = np.array([0.5, 1.0], dtype)
    y = np.exp(x)
    (found,) = gradients(write, x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, y * np.cos(y.astype(float) + 0.3), rtol=2e-2 if dtype == "float16" else 1e-5)


def test_a_derivative_of_no_float_operand() -> None:
    def write(g: Writer, n: int, x: int) -> list[int]:
        (y,) = g.call(n, body=lambda g, n: [g.cast(n, dtype="float64")], derivative=lambda g, n, y, u: [])
        return [g.mul(x, y)]

    same(gradients(write, np.int64(3), 0.5), [np.array(3 * np.cos(1.8))], 1e-15)


def test_calls_with_a_derivative_within_scans_and_conds() -> None:
    """Straight through, at each step."""

    def body(g: Writer, k: int, x: int) -> list[int]:
        (y,) = g.cond(
            g.less(x, g.number(100.0)),
            g.mul(k, x),
            then=straight_through,
            otherwise=lambda g, x: [x],
        )
        return [y]

    k, x, length = 1.6, 2.0, 3
    found = everything(written(lambda g, k, x: g.scan(k, x, body=body, carries=1, length=length), k, x))
    states, by_k, by_x = [x], 0.0, 1.0
    for _ in range(length):
        by_k, by_x = states[-1] + k * by_k, k * by_x
        states.append(np.round(k * states[-1]))
    slope = np.cos(states[-1] + 0.3)
    same(found["values"], [np.array(states[-1])], 0)
    same(found["gradients"][1:], [np.array(slope * by_k), np.array(slope * by_x)], 1e-13)
    vk, vx = (np.random.default_rng(node).standard_normal(()) for node in (0, 1))
    same(found["jvp"][1:], [np.array(by_k * vk + by_x * vx)], 1e-13)


def test_results_that_are_no_floats_of_operands_that_are() -> None:
    def body(g: Writer, x: int) -> list[int]:
        return [g.greater(x, g.number(0.0)), g.cast(x, dtype="int64")]

    x = np.array([-1.5, 2.5])
    for recompute in (False, True):
        found = values(lambda g, x: g.call(x, body=body, recompute=recompute), x)  # noqa: B023
        same(found, [np.array([False, True]), np.array([-1, 2])], 0)


def test_calls_within_calls() -> None:
    def at(depth: int, recompute: bool):  # type: ignore[no-untyped-def]
        if depth == 0:
            return lambda g, x: [g.sin(x)]
        return lambda g, x: g.call(g.mul(x, x), body=at(depth - 1, recompute), recompute=recompute)

    for recompute in (False, True):
        agree(
            at(3, recompute),
            lambda g, x: [g.sin(g.mul(g.mul(g.mul(x, x), g.mul(x, x)), g.mul(g.mul(x, x), g.mul(x, x))))],
            random(2),
            exact=False,
        )


def test_tensors_without_elements() -> None:
    x = np.zeros((2, 0))
    found = everything(written(straight_through, x))
    same(found["gradients"][1:], [x], 0)


def test_a_derivative_that_is_not_linear_has_no_forward_mode() -> None:
    """Clipped gradients go back; what a tangent would be, nobody has said."""

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


def test_the_nodes_of_a_body_count_wherever_it_is_called() -> None:
    """Of a cond, they count once."""
    g = Writer()
    body = g.function(lambda g, x: [g.sin(g.sin(x))], 1)
    twice = g.function(lambda g, x: g.call(*g.call(x, body=body), body=body), 1)
    either = g.function(lambda g, p, x: g.cond(p, x, then=body, otherwise=body), 2)
    inputs, calls, gets = 1, 2, 2
    assert g.functions[body].weight == inputs + 2
    assert g.functions[twice].weight == inputs + calls + gets + 2 * g.functions[body].weight
    assert g.functions[either].weight == 2 + 1 + 1


def test_what_the_engine_calls_stands_in_its_place() -> None:
    """As both functions of a cond whose examples choose for themselves."""

    def write(g: Writer, p: int, x: int) -> list[int]:
        return g.cond(p, x, then=lambda g, x: [g.sort(x, axis=0)], otherwise=lambda g, x: [g.cumsum(x, axis=0)])

    asked = written(write, np.array([True, False]), random(3), floats=())
    call = Batch.of_program(asked.program, asked.types, [0], outputs=asked.results)
    steps = Compiler(asked.program.limits).compile(asked.program, asked.types, call).plan.steps
    names = {step.op.name for step in steps}
    assert {"sort", "cumsum"} <= names
    assert "call" not in names
