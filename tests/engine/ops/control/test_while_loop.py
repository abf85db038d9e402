"""`while` matches the steps that run; its backward pass goes over these steps only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine import TensorType, Value, registry
from engine.autodiff.vmap import vmap_onto
from engine.ir.errors import IndexOutOfRange
from engine.ir.tensor_type import BOOL, FLOAT64
from engine.ops.control.while_loop import StackingWhile
from tests.engine.looping import (
    Write,
    Writer,
    agree,
    agree_in_batches,
    batch,
    everything,
    gradients,
    lost,
    random,
    same,
    scan_by_hand,
    values,
    written,
)
from tests.engine.ops.values import body_of, results_of

SCALAR = TensorType((), FLOAT64)


def grows(g: Writer, k: int, x: int) -> list[int]:
    """x + k·sin(x) + 0.3."""
    return [g.add(g.add(x, g.mul(k, g.sin(x))), g.number(0.3))]


def below(limit: float) -> Write:
    return lambda g, k, x: [g.less(g.sum(x), g.number(limit))]


def unrolled(steps: int, finished: bool = True, body: Write = grows) -> Write:
    """The unrolled steps, with the step count and the `finished` flag of a `while`."""

    def write(g: Writer, k: int, *carries: int) -> list[int]:
        state = scan_by_hand(g, body, [k], carries, length=steps) if steps else list(map(g.identity, carries))
        return [*state, g.number(steps, "int64"), g.number(finished, "bool")]

    return write


def looped(limit: float = 3.0, max_steps: int = 10) -> Write:
    return lambda g, k, x: g.while_(k, x, condition=below(limit), body=grows, carries=1, max_steps=max_steps)


def steps_of(k: float, x: float, limit: float = 3.0, max_steps: int = 10) -> int:
    steps = 0
    while x < limit and steps < max_steps:
        x, steps = x + k * np.sin(x) + 0.3, steps + 1
    return steps


@pytest.mark.parametrize(("k", "x"), [(0.4, 0.2), (0.9, 0.1), (0.1, 2.8)])
def test_while_matches_the_steps_that_run(k: float, x: float) -> None:
    steps = steps_of(k, x)
    assert 0 < steps < 10
    agree(looped(), unrolled(steps), k, x, floats=[0])


@pytest.mark.parametrize("most", [1, 3])
def test_max_steps_ends_the_loop_unfinished(most: int) -> None:
    agree(looped(max_steps=most), unrolled(most, finished=False), 0.4, 0.2, floats=[0])


def test_condition_is_checked_after_the_last_allowed_step() -> None:
    """A loop that needs exactly max_steps steps is finished."""
    steps = steps_of(0.4, 0.2)
    agree(looped(max_steps=steps), unrolled(steps), 0.4, 0.2, floats=[0])
    agree(looped(max_steps=steps - 1), unrolled(steps - 1, finished=False), 0.4, 0.2, floats=[0])


@pytest.mark.parametrize(("most", "x", "finished"), [(0, 0.2, False), (0, 3.5, True), (7, 3.5, True)])
def test_zero_steps_return_the_carries_unchanged(most: int, x: float, finished: bool) -> None:
    agree(looped(max_steps=most), unrolled(0, finished), 0.4, x, floats=[0])


def test_zero_steps_keep_the_gradient_of_an_overwritten_carry() -> None:
    def write(g: Writer, k: int, x: int) -> list[int]:
        return g.while_(
            k, x, condition=below(3.0), body=lambda g, k, x: [g.add_scalar(k, scalar=4.0)], carries=1, max_steps=5
        )

    same(gradients(write, 0.5, 3.5, floats=[0]), [np.zeros(()), np.cos(3.8)], 1e-15)
    same(gradients(write, 0.5, 2.5, floats=[0]), [np.cos(4.8), np.zeros(())], 1e-15)


def test_operand_read_only_by_the_condition_is_disconnected() -> None:
    def write(g: Writer, limit: int, x: int) -> list[int]:
        return g.while_(
            limit,
            x,
            condition=lambda g, limit, x: [g.less(x, limit)],
            body=lambda g, limit, x: [g.mul_scalar(x, scalar=2.0)],
            carries=1,
            max_steps=5,
        )

    assert lost(write, 3.0, 0.5, floats=[0]) == (0,)
    same(gradients(write, 3.0, 0.5, floats=[0]), [np.zeros(()), 8 * np.cos(4.3)], 1e-14)


def test_only_steps_and_finished_are_read() -> None:
    def write(g: Writer, k: int, x: int) -> list[int]:
        return looped()(g, k, x)[1:]

    assert [x.item() for x in values(write, 0.4, 0.2)] == [steps_of(0.4, 0.2), True]
    assert [x.item() for x in values(lambda g, k, x: write(g, k, x)[:1], 0.4, 0.2)] == [steps_of(0.4, 0.2)]


STARTS = np.array([0.2, 2.8, 3.5, 1.0])


@pytest.mark.parametrize("limit", [3.0, 100.0])
@pytest.mark.parametrize("mapped", [[0], [1], [0, 1]])
def test_batch_examples_stop_at_their_own_steps(mapped: list[int], limit: float) -> None:
    ks = np.array([0.4, 0.9, 0.1, 0.5])
    feeds = [ks if 0 in mapped else 0.4, STARTS if 1 in mapped else 0.2]
    many = written(looped(limit), *feeds, floats=[0])
    singles = []
    for i in range(4):
        k, x = (float(np.ravel(f)[i % np.size(f)]) for f in feeds)
        steps = steps_of(k, x, limit)
        one = written(unrolled(steps, finished=steps < 10), k, x, floats=[0])
        every = everything(one, [0])
        singles.append((every["values"], every["gradients"]))
    for differentiated in (False, True):
        expected = [np.stack(column) for column in zip(*[one[differentiated] for one in singles], strict=True)]
        same(batch(many, mapped, differentiated=differentiated), expected, 1e-12)


def pair(g: Writer, k: int, x: int, i: int, way: int) -> list[int]:
    """A vector, a step counter, and the previous vector."""
    new = g.mul(g.add(x, way), g.add_scalar(g.mul(k, g.cos(x)), scalar=1.0))
    return [new, g.add(i, g.number(1, "int64")), x]


def enough(limit: int) -> Write:
    return lambda g, k, x, i, way: [g.less(i, g.number(limit, "int64"))]


def test_several_carries_with_an_integer() -> None:
    arrays = (0.3, random(3), np.int64(2), random(3, seed=1))

    def write(g: Writer, *args: int) -> list[int]:
        return g.while_(*args, condition=enough(6), body=pair, carries=3, max_steps=9)

    agree(write, unrolled(4, body=pair), *arrays, floats=[0, 2])
    agree_in_batches(write, unrolled(4, body=pair), *arrays, mapped=[[0], [1], [3], [0, 1, 3]], floats=[0, 2])


def test_mapped_counter_gives_mapped_step_counts() -> None:
    arrays = [0.3, random(3), np.arange(4), random(3, seed=1)]

    def write(g: Writer, *args: int) -> list[int]:
        return g.while_(*args, condition=enough(3), body=pair, carries=3, max_steps=9)

    many = written(write, *arrays, floats=[0, 2])
    for differentiated, kind in ((False, "values"), (True, "gradients")):
        singles = []
        for i in range(4):
            one = written(unrolled(max(0, 3 - i), body=pair), arrays[0], arrays[1], i, arrays[3], floats=[0, 2])
            singles.append(everything(one, [0, 2])[kind])
        expected = [np.stack(column) for column in zip(*singles, strict=True)]
        same(batch(many, [2], differentiated=differentiated), expected, 1e-12)


def test_carry_read_only_by_the_condition_and_unread_carry() -> None:
    def body(g: Writer, k: int, x: int, i: int, unread: int) -> list[int]:
        return [g.mul(k, g.sin(x)), g.add(i, g.number(1, "int64")), g.mul(unread, unread)]

    def some(g: Writer, k: int, *carries: int) -> list[int]:
        return g.while_(
            k,
            *carries,
            condition=lambda g, k, x, i, unread: [g.less(i, g.number(3, "int64"))],
            body=body,
            carries=3,
            max_steps=5,
        )[:1]

    agree(
        some,
        lambda g, k, *carries: scan_by_hand(g, body, [k], carries, length=3)[:1],
        1.2,
        0.4,
        np.int64(0),
        0.9,
    )
    assert lost(some, 1.2, 0.4, np.int64(0), 0.9) == (3,)


def collatz(g: Writer, n: int) -> list[int]:
    even = g.equal(g.mod(n, g.number(2, "int64")), g.number(0, "int64"))
    odd = g.add(g.mul(n, g.number(3, "int64")), g.number(1, "int64"))
    half = g.cast(g.mul_scalar(g.cast(n, dtype="float64"), scalar=0.5), dtype="int64")
    return [g.where(even, half, odd)]


def test_integer_carries_only() -> None:
    def write(g: Writer, n: int) -> list[int]:
        return g.while_(
            n,
            condition=lambda g, n: [g.greater(n, g.number(1, "int64"))],
            body=collatz,
            carries=1,
            max_steps=200,
        )

    assert [x.item() for x in values(write, np.int64(27))] == [1, 111, True]
    many = batch(written(write, np.array([1, 2, 27, 97]), floats=()), [0], differentiated=False)
    assert [x.tolist() for x in many] == [[1] * 4, [0, 1, 111, 118], [True] * 4]


def test_while_without_carries() -> None:
    def write(g: Writer, flag: int) -> list[int]:
        return g.while_(flag, condition=lambda g, flag: [flag], body=lambda g, flag: [], carries=0, max_steps=4)

    assert [x.item() for x in values(write, np.bool_(True))] == [4, False]
    assert [x.item() for x in values(write, np.bool_(False))] == [0, True]
    many = batch(written(write, np.array([True, False, True]), floats=()), [0], differentiated=False)
    assert [x.tolist() for x in many] == [[4, 0, 4], [False, True, False]]


def test_empty_tensors() -> None:
    def write(g: Writer, k: int, x: int, i: int) -> list[int]:
        return g.while_(
            k,
            x,
            i,
            condition=lambda g, k, x, i: [g.less(i, g.number(3, "int64"))],
            body=lambda g, k, x, i: [g.mul(k, g.sin(x)), g.add(i, g.number(1, "int64"))],
            carries=2,
            max_steps=5,
        )

    actual = everything(written(write, 0.5, np.zeros((2, 0)), np.int64(0), floats=[0]), [0])
    same(actual["gradients"], [np.zeros(()), np.zeros(()), np.zeros((2, 0))], 0)
    assert actual["hvp"][-1].shape == (2, 0)


def descent(g: Writer, a: int, x: int) -> list[int]:
    """A gradient descent step, with the op `grad`."""
    f = g.square(g.sub(g.square(x), a))
    return [g.sub(x, g.mul_scalar(g.grad(f, x), scalar=0.02))]


@pytest.mark.slow
def test_grad_inside_a_step_and_around_the_loop() -> None:
    def write(g: Writer, run: Any, a: int, x: int) -> list[int]:
        y = run(g, a, x)[0]
        first = g.grad(y, a)
        return [y, first, g.grad(g.mul(first, first), x)]

    def loop(g: Writer, a: int, x: int) -> list[int]:
        return g.while_(
            a,
            x,
            condition=lambda g, a, x: [g.greater(g.abs(g.sub(g.square(x), a)), g.number(0.3))],
            body=descent,
            carries=1,
            max_steps=50,
        )

    steps = int(values(loop, 2.0, 0.8)[1])
    assert 2 < steps < 20
    agree(
        lambda g, a, x: write(g, loop, a, x),
        lambda g, a, x: write(g, unrolled(steps, body=descent), a, x),
        2.0,
        0.8,
        within=1e-11,
        exact=False,
    )


def three_deep(by_hand: bool, counts: Sequence[int] = ()) -> Write:
    """A while of scans of conds; `counts` holds the number of steps of the while."""

    def turn(g: Writer, k: int, y: int) -> list[int]:
        return [g.mul(k, g.sin(y))]

    def other(g: Writer, k: int, y: int) -> list[int]:
        return [g.add(k, g.cos(y))]

    def choose(g: Writer, k: int, y: int) -> list[int]:
        low = g.less(y, g.number(0.5))
        if by_hand:
            return [g.where(low, turn(g, k, y)[0], other(g, k, y)[0])]
        return list(g.cond(low, k, y, then=turn, otherwise=other))

    def step(g: Writer, k: int, y: int) -> list[int]:
        if by_hand:
            result = scan_by_hand(g, choose, [k], [y], length=2)
        else:
            result = g.scan(k, y, body=choose, carries=1, length=2)
        return [g.add_scalar(result[0], scalar=0.35)]

    def write(g: Writer, k: int, y: int) -> list[int]:
        if by_hand:
            return scan_by_hand(g, step, [k], [y], length=counts[0])
        return list(
            g.while_(
                k,
                y,
                condition=lambda g, k, y: [g.less(y, g.number(1.1))],
                body=step,
                carries=1,
                max_steps=8,
            )[:2]
        )

    return write


def test_while_of_scans_of_conds() -> None:
    arrays = (0.6, 0.1)
    steps = int(values(three_deep(False), *arrays)[1])
    assert 1 < steps < 8
    agree(lambda g, k, y: three_deep(False)(g, k, y)[:1], three_deep(True, [steps]), *arrays)


@pytest.mark.slow
def test_batch_of_whiles_of_scans_of_conds() -> None:
    ks, ys = np.array([0.6, 0.9, 0.5]), np.array([0.1, 1.2, 1.6])
    many = written(lambda g, k, y: three_deep(False)(g, k, y)[:1], ks, ys)
    single = [
        everything(written(lambda g, k, y: three_deep(False)(g, k, y)[:1], k, y)) for k, y in zip(ks, ys, strict=True)
    ]
    for differentiated, kind in ((False, "values"), (True, "gradients")):
        expected = [np.stack(column) for column in zip(*[one[kind] for one in single], strict=True)]
        same(batch(many, [0, 1], differentiated=differentiated), expected, 1e-12)


def test_zero_steps_check_no_index() -> None:
    def write(g: Writer, i: int, k: int, x: int) -> list[int]:
        return g.while_(
            i,
            k,
            x,
            condition=lambda g, i, k, x: [g.less(x, g.number(0.0))],
            body=lambda g, i, k, x: [g.add(x, g.sum(g.gather(k, i, axis=0)))],
            carries=1,
            max_steps=5,
        )

    assert [x.item() for x in values(write, np.array([9]), np.ones(2), 0.5)] == [0.5, 0, True]
    same(gradients(write, np.array([9]), np.ones(2), 0.5, floats=[0]), [np.zeros(2), np.asarray(np.cos(0.8))], 1e-15)
    with pytest.raises(IndexOutOfRange):
        values(write, np.array([9]), np.ones(2), -0.5)


def test_batched_stacks_are_zero_after_each_last_step() -> None:
    """x is halved while it is above 1: 8, 1 and 3 take three, zero and two steps."""
    above = body_of([SCALAR], lambda x: [x.greater(1.0)])
    halved = body_of([SCALAR], lambda x: [x * 0.5, x + 10.0])
    attrs = {"condition": above, "body": halved, "carries": 1, "max_steps": 5}

    def write(x: Value, many: Value) -> list[Value]:
        loop = x.builder.emit(StackingWhile(), (x,), attrs)
        return vmap_onto(x.builder, [loop.output(k) for k in range(4)], {x: many}, 3)

    last, steps, finished, stacked = results_of(write, np.zeros(()), np.array([8.0, 1.0, 3.0]))
    np.testing.assert_array_equal(last, [1.0, 1.0, 0.75])
    np.testing.assert_array_equal(steps, [3, 0, 2])
    np.testing.assert_array_equal(finished, [True] * 3)
    np.testing.assert_array_equal(stacked, [[18, 14, 12, 0, 0], [0] * 5, [13, 11.5, 0, 0, 0]])


def test_batch_with_a_constant_condition_runs_in_lockstep() -> None:
    always, halved = body_of([SCALAR], lambda x: [x.builder.full((), 1, BOOL)]), body_of([SCALAR], lambda x: [x * 0.5])
    attrs = {"condition": always, "body": halved, "carries": 1, "max_steps": 3}

    def write(x: Value, many: Value) -> list[Value]:
        loop = x.builder.emit(registry().ops["while"], (x,), attrs)
        return vmap_onto(x.builder, [loop.output(k) for k in range(3)], {x: many}, 2)

    last, steps, finished = results_of(write, np.zeros(()), np.array([8.0, 1.0]))
    np.testing.assert_array_equal(last, [1.0, 0.125])
    np.testing.assert_array_equal(steps, [3, 3])
    np.testing.assert_array_equal(finished, [False, False])
