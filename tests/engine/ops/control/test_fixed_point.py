"""`fixed_point` stops when its carries no longer change; its gradient is the implicit one, at the last carries."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.looping import (
    Array,
    Write,
    Writer,
    batch,
    direction,
    everything,
    gradients,
    lost,
    random,
    same,
    scan_by_hand,
    values,
    written,
)


def kepler(g: Writer, e: int, m: int, x: int) -> list[int]:
    """x = m + e·sin(x)."""
    return [g.add(m, g.mul(e, g.sin(x)))]


def solved(tolerance: float = 1e-15, max_steps: int = 200) -> Write:
    return lambda g, e, m, x: g.fixed_point(e, m, x, body=kepler, carries=1, tolerance=tolerance, max_steps=max_steps)


def first_results(write: Write, count: int = 1) -> Write:
    return lambda g, *args: write(g, *args)[:count]


def anomaly(e: float, m: float) -> float:
    """The solution of Kepler's equation, by Newton's method."""
    x = m
    for _ in range(50):
        x -= (x - e * np.sin(x) - m) / (1 - e * np.cos(x))
    return x


E, M = 0.3, 1.1


def derivatives(e: float, m: float) -> tuple[float, Array, Array]:
    """x, its gradient and its Hessian with respect to e and m."""
    x = anomaly(e, m)
    s, c = np.sin(x), np.cos(x)
    d = 1 - e * c
    xe, xm = s / d, 1 / d
    row_e = np.array([(c * xe * d - s * (-c + e * s * xe)) / d**2, -(-c + e * s * xe) / d**2])
    h_mm = -(e * s * xm) / d**2
    h_ee, h_em = row_e
    return x, np.array([xe, xm]), np.array([[h_ee, h_em], [h_em, h_mm]])


def test_keplers_equation() -> None:
    """Value, gradient, Hessian and products against the implicit function theorem by hand."""
    actual = everything(written(first_results(solved()), E, M, 1.0))
    x, first, second = derivatives(E, M)
    u, du = np.cos(x + 0.3), -np.sin(x + 0.3)
    gradient = u * first
    hessian = u * second + du * np.outer(first, first)
    same(actual["values"], [np.array(x)], 1e-14)
    same(actual["gradients"][1:], [*map(np.asarray, gradient), np.zeros(())], 1e-13)
    blocks = np.zeros((3, 3))
    blocks[:2, :2] = hessian
    same(actual["hessian"][4:], [np.array(b) for b in blocks.ravel()], 1e-12)
    v = np.array([float(direction(np.zeros(()), node)) for node in range(3)])
    same(actual["hvp"][4:], [np.array(b) for b in blocks @ v], 1e-12)
    same(actual["jvp"][1:], [np.array(first @ v[:2])], 1e-13)


def test_nested_grad_nodes() -> None:
    def write(g: Writer, e: int, m: int, x: int) -> list[int]:
        y = first_results(solved())(g, e, m, x)[0]
        first = g.grad(y, e)
        return [first, g.grad(first, m), g.grad(g.grad(y, m), m)]

    _, first, second = derivatives(E, M)
    same(values(write, E, M, 1.0), [np.array(first[0]), np.array(second[0, 1]), np.array(second[1, 1])], 1e-12)


def test_initial_x_is_disconnected() -> None:
    assert lost(first_results(solved()), E, M, 1.0) == (2,)


def steps_of(e: float, m: float, x: float, tolerance: float, max_steps: int) -> tuple[int, bool]:
    for step in range(1, max_steps + 1):
        before, x = x, m + e * np.sin(x)
        if abs(x - before) <= tolerance * (1 + abs(x)):
            return step, True
    return max_steps, False


@pytest.mark.parametrize("tolerance", [1e-2, 1e-6, 0.0])
@pytest.mark.parametrize("most", [1, 4, 200])
def test_steps_and_finished(tolerance: float, most: int) -> None:
    x, steps, finished = values(solved(tolerance, most), E, M, 1.0)
    assert (steps.item(), finished.item()) == steps_of(E, M, 1.0, tolerance, most)
    by_hand = values(lambda g, e, m, x: scan_by_hand(g, kepler, [e, m], [x], length=int(steps)), E, M, 1.0)
    same([x], by_hand, 0)


def test_initial_fixed_point_takes_one_step() -> None:
    actual = values(
        lambda g, x: g.fixed_point(x, body=lambda g, x: [g.identity(x)], carries=1, tolerance=0.0, max_steps=9), 2.0
    )
    assert [x.item() for x in actual] == [2.0, 1, True]


def test_tolerance_is_relative_to_the_new_x() -> None:
    """Scale by the new x: from 0 to 10, 0.95 · (1 + 10) allows one step.

    From 10 to 0, 0.95 · (1 + 0) takes two; so does 9, but not 10.
    """

    def write(tolerance: float) -> Write:
        return lambda g, k, x: g.fixed_point(
            k, x, body=lambda g, k, x: [g.identity(k)], carries=1, tolerance=tolerance, max_steps=9
        )

    assert [x.item() for x in values(write(0.95), 10.0, 0.0)] == [10.0, 1, True]
    assert [x.item() for x in values(write(0.95), 0.0, 10.0)] == [0.0, 2, True]
    assert [x.item() for x in values(write(9.0), 0.0, 10.0)] == [0.0, 2, True]
    assert [x.item() for x in values(write(10.0), 0.0, 10.0)] == [0.0, 1, True]


@pytest.mark.parametrize("dtypes", [("float32", "float64"), ("float16", "float64"), ("float16", "float32")])
def test_change_of_mixed_dtypes_is_measured_in_the_wider_one(dtypes: tuple[str, str]) -> None:
    """1e30 and 1e300 are infinite in the narrower dtype, and a change that is not finite would end the loop."""
    narrow, wide = (np.ones((), dtype) for dtype in dtypes)
    large = wide * (1e300 if dtypes[1] == "float64" else 1e30)

    def write(g: Writer, x: int, y: int) -> list[int]:
        step = lambda g, x, y: [g.mul_scalar(x, scalar=0.0), g.mul_scalar(y, scalar=0.5)]
        return g.fixed_point(x, y, body=step, carries=2, tolerance=2.0, max_steps=9)[2:]

    assert [result.item() for result in values(write, narrow, large)] == [1, True]


def test_batch_without_consts() -> None:
    """cos(x) = x, from two initial values."""

    def write(g: Writer, x: int) -> list[int]:
        return g.fixed_point(x, body=lambda g, x: [g.cos(x)], carries=1, tolerance=1e-15, max_steps=200)[:1]

    actual = batch(written(write, np.array([0.2, 1.0])), [0], differentiated=False)
    same(actual, [np.full(2, 0.7390851332151607)], 1e-14)


def test_zero_steps_return_x_unfinished() -> None:
    actual = values(solved(max_steps=0), E, M, 1.0)
    assert [x.item() for x in actual] == [1.0, 0, False]


@pytest.mark.parametrize("most", [1, 2, 5])
def test_gradient_of_an_unfinished_loop_is_at_the_last_x(most: int) -> None:
    """u is iterated from g with the same bound: that many terms of the series, and one more."""
    x, _, finished = values(solved(1e-15, most), E, M, 1.0)
    assert not finished
    u, g0 = (np.cos(x + 0.3),) * 2
    for _ in range(most):
        u = g0 + E * np.cos(x) * u
    same(gradients(first_results(solved(1e-15, most)), E, M, 1.0)[:2], [u * np.sin(x), u], 1e-15)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_carry_ends_the_loop_unfinished(bad: float) -> None:
    def body(g: Writer, k: int, x: int) -> list[int]:
        return [g.where(g.less(x, g.number(3.0)), g.add_scalar(x, scalar=1.0), k)]

    actual = values(lambda g, k, x: g.fixed_point(k, x, body=body, carries=1, tolerance=0.0, max_steps=50), bad, 0.5)
    assert [actual[1].item(), actual[2].item()] == [4, False]
    assert not np.isfinite(actual[0])


def affine(g: Writer, a: int, b: int, x: int) -> list[int]:
    return [g.add(g.matmul(a, x), b)]


def linear(g: Writer, a: int, b: int, x: int) -> list[int]:
    return g.fixed_point(a, b, x, body=affine, carries=1, tolerance=1e-15, max_steps=300)[:1]


def test_linear_equation() -> None:
    a, b = 0.4 * random(3, 3), random(3, seed=1)
    actual = everything(written(linear, a, b, np.zeros(3)))
    inverse = np.linalg.inv(np.eye(3) - a)
    x = inverse @ b
    u = inverse.T @ np.cos(x + 0.3)
    same(actual["values"], [x], 1e-13)
    same(actual["gradients"][1:3], [np.outer(u, x), u], 1e-12)
    va, vb = direction(a, 0), direction(b, 1)
    dx = inverse @ (va @ x + vb)
    same(actual["jvp"][1:], [dx], 1e-12)
    du = inverse.T @ (va.T @ u - np.sin(x + 0.3) * dx)
    same(actual["hvp"][4:6], [np.outer(du, x) + np.outer(u, dx), du], 1e-12)


@pytest.mark.slow
def test_carries_of_several_shapes() -> None:
    """x = k·cos(y), y = sum(x)/4 + b·x: the larger change decides when the loop ends."""

    def body(g: Writer, k: int, b: int, x: int, y: int) -> list[int]:
        return [g.mul(k, g.cos(y)), g.add(g.mul_scalar(g.sum(x), scalar=0.25), g.mul(b, x))]

    def write(g: Writer, *args: int) -> list[int]:
        return g.fixed_point(*args, body=body, carries=2, tolerance=1e-15, max_steps=300)

    def by_hand(g: Writer, k: int, b: int, x: int, y: int) -> list[int]:
        return scan_by_hand(g, body, [k, b], [x, y], length=80)

    arrays = (np.array([0.3, 0.5]), 0.2, np.zeros(2), np.zeros(2))
    one, other = (everything(written(w, *arrays)) for w in (first_results(write, 2), by_hand))
    assert values(write, *arrays)[3]
    for kind in one:
        same(one[kind], other[kind], 1e-12, kind)


def test_mixed_dtypes_and_empty_tensors() -> None:
    def body(g: Writer, k: int, x: int, y: int, z: int) -> list[int]:
        half = g.cast(g.mul_scalar(y, scalar=0.5), dtype="float64")
        return [g.mul(k, g.cos(half)), g.cast(g.mul_scalar(x, scalar=0.5), dtype="float32"), g.sin(z)]

    def write(g: Writer, *args: int) -> list[int]:
        return g.fixed_point(*args, body=body, carries=3, tolerance=1e-6, max_steps=100)

    arrays = (0.5, np.array(0.0), np.array(0.0, "float32"), np.zeros((0, 2)))
    x, _, _, steps, finished = values(write, *arrays)
    assert finished
    assert steps > 2
    assert abs(x - 0.5 * np.cos(x / 4)) < 1e-6
    (grad_k, *_) = gradients(first_results(write), *arrays)
    expected = np.cos(x / 4) / (1 + 0.5 * np.sin(x / 4) / 4) * np.cos(x + 0.3)
    np.testing.assert_allclose(grad_k, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_narrow_floats(dtype: str) -> None:
    arrays = [np.asarray(x, dtype) for x in (E, M, 1.0)]
    tolerance = {"float16": 2e-3, "float32": 1e-6}[dtype]
    actual = values(solved(tolerance), *arrays)
    assert actual[0].dtype == dtype
    assert actual[2]
    x, first, _ = derivatives(E, M)
    np.testing.assert_allclose(actual[0], x, rtol=10 * tolerance)
    actual = gradients(first_results(solved(tolerance)), *arrays)
    np.testing.assert_allclose(actual[:2], first * np.cos(x + 0.3), rtol=20 * tolerance)


def test_batch_examples_stop_at_their_own_steps() -> None:
    es, ms = np.array([0.0, 0.3, 0.8, 0.5]), np.array([0.4, 1.1, 0.2, np.nan])
    for max_steps in (200, 12):
        many = batch(written(solved(1e-12, max_steps), es, ms, 1.0, floats=[0]), [0, 1], differentiated=False)
        singles = [values(solved(1e-12, max_steps), e, m, 1.0) for e, m in zip(es, ms, strict=True)]
        same(many, [np.stack(x) for x in zip(*singles, strict=True)], 0)
        assert len(set(many[1].tolist())) == 4
        actual = batch(written(first_results(solved(1e-12, max_steps)), es, ms, 1.0), [0, 1], differentiated=True)
        each = [gradients(first_results(solved(1e-12, max_steps)), e, m, 1.0) for e, m in zip(es, ms, strict=True)]
        same(actual[1:], [np.stack(x) for x in zip(*each, strict=True)], 1e-15)


@pytest.mark.parametrize("mapped", [[0], [1], [2]])
def test_batch_with_shared_operands(mapped: list[int]) -> None:
    feeds = [np.array([0.1, 0.6]) if i in mapped else x for i, x in enumerate((E, M, 1.0))]
    actual = batch(written(first_results(solved()), *feeds), mapped, differentiated=True)
    each = [
        gradients(first_results(solved()), *[x[k] if i in mapped else x for i, x in enumerate(feeds)]) for k in range(2)
    ]
    same(actual[1:], [np.stack(x) for x in zip(*each, strict=True)], 1e-14)


def test_second_derivatives_in_a_batch() -> None:
    def write(g: Writer, e: int, m: int, x: int) -> list[int]:
        y = first_results(solved(1e-14))(g, e, m, x)[0]
        first = g.grad(y, e)
        return [g.grad(first, e), g.grad(first, m)]

    es, ms = np.array([0.1, 0.3, 0.6]), np.array([0.4, 1.1, 0.2])
    actual = batch(written(write, es, ms, 1.0), [0, 1], differentiated=False)
    expected = np.array([derivatives(e, m)[2][0] for e, m in zip(es, ms, strict=True)])
    same(actual, list(expected.T), 1e-11)


def test_body_that_reads_no_const() -> None:
    """cos(x) = x has no const to differentiate with respect to."""

    def write(g: Writer, unread: int, x: int) -> list[int]:
        return g.fixed_point(unread, x, body=lambda g, k, x: [g.cos(x)], carries=1, tolerance=1e-15, max_steps=200)[:1]

    assert lost(write, 0.5, 1.0) == (0, 1)
    same(values(write, 0.5, 1.0), [np.array(0.7390851332151607)], 1e-14)


@pytest.mark.slow
def test_scan_inside_fixed_point_inside_scan() -> None:
    """The body is a scan of two steps; the equation is solved at each step of another."""

    def twice(g: Writer, k: int, x: int) -> list[int]:
        return list(g.scan(k, x, body=lambda g, k, x: [g.mul(k, g.cos(x))], carries=1, length=2))

    def step(g: Writer, k: int, y: int) -> list[int]:
        (x, _, _) = g.fixed_point(g.mul(k, y), g.number(0.1), body=twice, carries=1, tolerance=1e-15, max_steps=200)
        return [g.add(x, g.number(0.2))]

    def by_hand(g: Writer, k: int, y: int) -> list[int]:
        ky, x = g.mul(k, y), g.number(0.1)
        for _ in range(120):
            x = g.mul(ky, g.cos(x))
        return [g.add(x, g.number(0.2))]

    one = everything(written(lambda g, k, y: g.scan(k, y, body=step, carries=1, length=2), 0.9, 0.7))
    other = everything(written(lambda g, k, y: scan_by_hand(g, by_hand, [k], [y], length=2), 0.9, 0.7))
    for kind in one:
        same(one[kind], other[kind], 1e-12, kind)
