"""`scan` matches its unrolled steps, in values, derivatives and batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import TensorType, Value
from engine.autodiff.vjp import vjp
from engine.autodiff.vmap import vmap_onto
from engine.ir.errors import IndexOutOfRange, ShapeMismatch
from engine.ir.tensor_type import FLOAT64
from engine.ops.control.scan import CountedScan
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

PAIR = TensorType((2,), FLOAT64)


def euler(g: Writer, k: int, y: int) -> list[int]:
    """y' = −k·sin(y), in steps of 0.1; each y is stacked, too."""
    new = g.add(y, g.mul_scalar(g.mul(k, g.sin(y)), scalar=-0.1))
    return [new, g.exp(new)]


def recurrent(g: Writer, w: int, h: int, x: int) -> list[int]:
    """A step of a small network on one entry; a product with the previous state is stacked."""
    new = g.tanh(g.add(g.matmul(w, h), x))
    return [new, g.mul(h, x)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 2, 5])
def test_scan_matches_its_steps(length: int, reverse: bool) -> None:
    agree(
        lambda g, k, y: g.scan(k, y, body=euler, carries=1, length=length, reverse=reverse),
        lambda g, k, y: scan_by_hand(g, euler, [k], [y], length=length, reverse=reverse),
        1.3,
        0.7,
    )


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 4])
def test_scan_over_sequences(length: int, reverse: bool) -> None:
    agree(
        lambda g, w, h, x: g.scan(w, h, x, body=recurrent, carries=1, sequences=1, reverse=reverse),
        lambda g, w, h, x: scan_by_hand(g, recurrent, [w], [h], [x], length=length, reverse=reverse),
        random(2, 2),
        random(2, seed=1),
        random(length, 2, seed=2),
    )


@pytest.mark.parametrize("reverse", [False, True])
def test_batch_of_scans_matches_single_scans(reverse: bool) -> None:
    agree_in_batches(
        lambda g, w, h, x: g.scan(w, h, x, body=recurrent, carries=1, sequences=1, reverse=reverse),
        lambda g, w, h, x: scan_by_hand(g, recurrent, [w], [h], [x], length=4, reverse=reverse),
        random(2, 2),
        random(2, seed=1),
        random(4, 2, seed=2),
        mapped=[[0], [1], [2], [0, 2], [0, 1, 2]],
    )


def test_carry_mapped_after_a_step_is_mapped_from_the_start() -> None:
    """The second carry takes the value of the first, which depends on a mapped operand."""

    def body(g: Writer, k: int, a: int, b: int, c: int) -> list[int]:
        return [g.mul(g.sin(a), k), a, g.add(b, g.cos(c)), b]

    agree_in_batches(
        lambda g, k, a, b, c: g.scan(k, a, b, c, body=body, carries=3, length=4),
        lambda g, k, a, b, c: scan_by_hand(g, body, [k], [a, b, c], length=4),
        0.9,
        0.4,
        0.3,
        -0.2,
        mapped=[[0], [1], [2], [3]],
    )


def test_zero_steps_return_the_carries_unchanged() -> None:
    carry, empty = random(2, seed=1), random(0, 2)

    def write(g: Writer, w: int, h: int, x: int) -> list[int]:
        return g.scan(w, h, x, body=recurrent, carries=1, sequences=1)

    actual = everything(written(write, random(2, 2), carry, empty))
    same(actual["values"], [carry, empty], 0)
    same(actual["gradients"][1:], [np.zeros((2, 2)), np.cos(carry + 0.3), empty], 1e-15)
    same(actual["jvp"][2:3], [np.random.default_rng(1).standard_normal(2)], 0)
    assert actual["hvp"][-1].shape == (0, 2)


def test_zero_steps_keep_the_gradient_of_an_unread_carry() -> None:
    def write(g: Writer, x: int) -> list[int]:
        return g.scan(x, body=lambda g, x: [g.number([1.0, 2.0])], carries=1, length=0)

    x = random(2)
    same(gradients(write, x), [np.cos(x + 0.3)], 1e-15)


def test_overwritten_carry_has_no_gradient_for_its_initial_value() -> None:
    def body(g: Writer, k: int, x: int) -> list[int]:
        return [g.sin(k), x]

    agree(
        lambda g, k, x: g.scan(k, x, body=body, carries=1, length=3),
        lambda g, k, x: scan_by_hand(g, body, [k], [x], length=3),
        0.3,
        0.7,
    )
    assert lost(lambda g, k, x: g.scan(k, x, body=body, carries=1, length=3), 0.3, 0.7, floats=[0]) == (1,)


def tangled(g: Writer, a: int, _unread: int, x: int, y: int, z: int, s: int) -> list[int]:
    """Swapped carries, an unread const, inputs as results, and a repeated result."""
    new = g.mul(g.add(a, x), g.sin(y))
    return [y, new, g.mul(z, z), s, new, new, x]


@pytest.mark.slow
def test_swapped_carries_and_repeated_results() -> None:
    def looped(g: Writer, *args: int) -> list[int]:
        return g.scan(*args, body=tangled, carries=3, sequences=1)

    arrays = (0.3, 1.0, 0.5, -0.4, 0.8, random(4))
    agree(looped, lambda g, a, u, x, y, z, s: scan_by_hand(g, tangled, [a, u], [x, y, z], [s], length=4), *arrays)
    agree_in_batches(
        looped,
        lambda g, a, u, x, y, z, s: scan_by_hand(g, tangled, [a, u], [x, y, z], [s], length=4),
        *arrays,
        mapped=[[0], [1], [2], [3], [4], [5], [0, 1, 2, 3, 4, 5]],
    )
    assert lost(looped, *arrays) == (1,)


@pytest.mark.parametrize("read", [[0], [1], [2], [3], [4, 6], [5]])
def test_unread_results(read: list[int]) -> None:
    def looped(g: Writer, *args: int) -> list[int]:
        results = g.scan(*args, body=tangled, carries=3, sequences=1, reverse=True)
        return [results[k] for k in read]

    def plain(g: Writer, a: int, u: int, x: int, y: int, z: int, s: int) -> list[int]:
        results = scan_by_hand(g, tangled, [a, u], [x, y, z], [s], length=3, reverse=True)
        return [results[k] for k in read]

    agree(looped, plain, 0.3, 1.0, 0.5, -0.4, 0.8, random(3))


def counting(g: Writer, k: int, x: int, i: int, flag: int, bits: int) -> list[int]:
    """A float carry, updated by rules that an integer, a bool and an unsigned carry select."""
    even = g.equal(g.mod(i, g.number(2, "int64")), g.number(0, "int64"))
    scaled = g.mul(k, g.cast(i, dtype="float64"))
    new = g.where(g.not_equal(even, flag), g.sin(g.mul(x, scaled)), g.add(x, scaled))
    mixed = g.mul(bits, g.number(2654435761, "uint32"))
    return [new, g.add(i, g.number(1, "int64")), g.logical_not(flag), mixed, mixed, g.mul(i, i), even]


COUNTED = (0.6, 0.7, np.int64(1), np.bool_(True), np.uint32(7))


def test_non_float_carries_have_no_gradient() -> None:
    agree(
        lambda g, *args: g.scan(*args, body=counting, carries=4, length=5),
        lambda g, k, *carries: scan_by_hand(g, counting, [k], carries, length=5),
        *COUNTED,
        floats=[0],
    )


@pytest.mark.parametrize("mapped", [[0], [1], [2], [3], [4], [0, 1, 2, 3, 4]])
def test_integer_carries_in_a_batch(mapped: list[int]) -> None:
    agree_in_batches(
        lambda g, *args: g.scan(*args, body=counting, carries=4, length=5),
        lambda g, k, *carries: scan_by_hand(g, counting, [k], carries, length=5),
        *COUNTED,
        mapped=[mapped],
        floats=[0],
    )


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_narrow_floats(dtype: str) -> None:
    def body(g: Writer, w: int, h: int, x: int) -> list[int]:
        new = g.add(g.mul(w, h), x)
        return [new, g.mul(new, new)]

    looped = written(
        lambda g, w, h, x: g.scan(w, h, x, body=body, carries=1, sequences=1),
        *(random(*shape, dtype=dtype, seed=s) for s, shape in enumerate([(2,), (2,), (5, 2)])),
    )
    plain = written(lambda g, w, h, x: scan_by_hand(g, body, [w], [h], [x], length=5), *looped.feeds.values())
    one, other = everything(looped), everything(plain)
    same(one["values"], other["values"], 0)
    within = {"float16": 2e-2, "float32": 1e-5}[dtype]
    for kind, actual in one.items():
        same(actual, other[kind], within, kind)


@pytest.mark.parametrize("shapes", [((0,), (3, 0)), ((0,), (0, 0)), ((2, 0), (1, 2, 0))])
def test_empty_tensors(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    def body(g: Writer, k: int, h: int, x: int) -> list[int]:
        new = g.mul(k, g.sin(g.add(h, x)))
        return [new, g.sum(new)]

    carry, through = map(np.zeros, shapes)
    actual = everything(
        written(lambda g, k, h, x: g.scan(k, h, x, body=body, carries=1, sequences=1), 0.5, carry, through)
    )
    same(actual["values"], [carry, np.zeros(len(through))], 0)
    same(actual["gradients"][1:], [np.array(0.0), carry, through], 0)


def test_draws_match_keys_split_by_hand() -> None:
    def body(g: Writer, scale: int, key: int, x: int) -> list[int]:
        both = g.random_split(key, k=2)
        noise = g.random_normal(g.select(both, index=1, axis=0), shape=[3], dtype="float64")
        new = g.add(x, g.mul(scale, noise))
        return [g.select(both, index=0, axis=0), new, noise]

    key = np.array([3, 5], "uint32")
    arrays = (0.5, key, random(3))
    agree(
        lambda g, *args: g.scan(*args, body=body, carries=2, length=4),
        lambda g, scale, *carries: scan_by_hand(g, body, [scale], carries, length=4),
        *arrays,
        floats=[1, 2],
    )
    agree_in_batches(
        lambda g, *args: g.scan(*args, body=body, carries=2, length=4),
        lambda g, scale, *carries: scan_by_hand(g, body, [scale], carries, length=4),
        *arrays,
        mapped=[[1], [0, 2], [0, 1, 2]],
        floats=[1, 2],
    )


def test_grad_inside_a_step() -> None:
    """Newton's method: each step divides by a derivative that the engine takes."""

    def body(g: Writer, a: int, x: int) -> list[int]:
        f = g.sub(g.mul(x, g.exp(x)), a)
        return [g.sub(x, g.div(f, g.grad(f, x)))]

    agree(
        lambda g, a, x: g.scan(a, x, body=body, carries=1, length=3),
        lambda g, a, x: scan_by_hand(g, body, [a], [x], length=3),
        1.7,
        0.6,
    )
    (root,) = values(lambda g, a, x: g.scan(a, x, body=body, carries=1, length=30), 1.7, 0.6)
    assert abs(root * np.exp(root) - 1.7) < 1e-14


@pytest.mark.slow
def test_nested_grads_around_a_scan() -> None:
    def nested(g: Writer, by_hand: bool, k: int, y: int) -> list[int]:
        def run(k: int, y: int) -> int:
            if by_hand:
                return int(scan_by_hand(g, euler, [k], [y], length=3)[0])
            return int(g.scan(k, y, body=euler, carries=1, length=3)[0])

        first = g.grad(run(k, y), k)
        second = g.grad(g.sin(first), y)
        return [first, second, g.grad(second, k)]

    agree(lambda g, k, y: nested(g, False, k, y), lambda g, k, y: nested(g, True, k, y), 1.3, 0.7, exact=False)


def test_scan_over_stacks_of_a_scan() -> None:
    def looped(g: Writer, w: int, h: int, x: int) -> list[int]:
        _, first = g.scan(w, h, x, body=recurrent, carries=1, sequences=1)
        return list(g.scan(w, h, first, body=recurrent, carries=1, sequences=1, reverse=True))

    def plain(g: Writer, w: int, h: int, x: int) -> list[int]:
        _, first = scan_by_hand(g, recurrent, [w], [h], [x], length=3)
        return scan_by_hand(g, recurrent, [w], [h], [first], length=3, reverse=True)

    agree(looped, plain, random(2, 2), random(2, seed=1), random(3, 2, seed=2))


@pytest.mark.slow
def test_nested_scans() -> None:
    def inner(g: Writer, k: int, y: int) -> list[int]:
        return [g.add(y, g.mul_scalar(g.mul(k, g.sin(y)), scalar=0.3))]

    def nested(depth: int, by_hand: bool):  # type: ignore[no-untyped-def]
        if depth == 0:
            return inner
        below = nested(depth - 1, by_hand)

        def body(g: Writer, k: int, y: int) -> list[int]:
            if by_hand:
                return scan_by_hand(g, below, [g.cos(k)], [y], length=2, reverse=depth == 2)
            return list(g.scan(g.cos(k), y, body=below, carries=1, length=2, reverse=depth == 2))

        return body

    looped, plain = (lambda g, k, y, hand=hand: nested(3, hand)(g, k, y) for hand in (False, True))
    agree(looped, plain, 0.8, 0.5)
    agree_in_batches(looped, plain, 0.8, 0.5, mapped=[[0], [1]])


def test_body_is_used_for_two_types() -> None:
    def write(g: Writer, by_hand: bool, k: int, y: int, z: int) -> list[int]:
        if by_hand:
            return [scan_by_hand(g, euler, [k], [x], length=2)[0] for x in (y, z)]
        body = g.function(euler, 2)
        return [g.scan(k, x, body=body, carries=1, length=2)[0] for x in (y, z)]

    agree(lambda g, *args: write(g, False, *args), lambda g, *args: write(g, True, *args), 0.4, random(2), random(3))


_UNARY = ("sin", "tanh", "exp", "neg", "cos", "sigmoid", "square")
_BINARY = ("add", "mul", "sub", "maximum")


@st.composite
def bodies(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    """Nodes on a const, two carries and an entry; each reads any that come before it."""
    nodes: list[tuple[str, int, int]] = []
    for count in range(4, 4 + draw(st.integers(1, 6))):
        op = draw(st.sampled_from(_UNARY + _BINARY))
        nodes.append((op, draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1))))
    return nodes


@pytest.mark.slow
@settings(max_examples=12)
@given(
    nodes=bodies(),
    outputs=st.lists(st.integers(0, 9), min_size=4, max_size=4),
    length=st.integers(1, 3),
    reverse=st.booleans(),
)
def test_random_bodies_match_their_steps(
    nodes: list[tuple[str, int, int]], outputs: list[int], length: int, reverse: bool
) -> None:
    def body(g: Writer, *args: int) -> list[int]:
        computed = list(args)
        for op, a, b in nodes:
            computed.append(getattr(g, op)(*([computed[a]] if op in _UNARY else [computed[a], computed[b]])))
        damped = [g.tanh(computed[k % len(computed)]) for k in outputs[:2]]
        return [*damped, *[computed[k % len(computed)] for k in outputs[2:]]]

    agree(
        lambda g, *args: g.scan(*args, body=body, carries=2, sequences=1, reverse=reverse),
        lambda g, k, a, b, x: scan_by_hand(g, body, [k], [a, b], [x], length=length, reverse=reverse),
        0.31,
        -0.42,
        0.53,
        random(length, seed=7) * 0.5,
        within=1e-10,
    )


def test_stop_gradient_inside_a_step() -> None:
    """To second order, for consts and for carries."""

    def body(g: Writer, k: int, x: int) -> list[int]:
        still = g.stop_gradient(g.mul(k, x))
        return [g.mul(g.sin(still), x), g.add(x, g.stop_gradient(g.exp(k)))]

    agree(
        lambda g, k, x: g.scan(k, x, body=body, carries=1, length=3),
        lambda g, k, x: scan_by_hand(g, body, [k], [x], length=3),
        0.7,
        0.4,
    )


@pytest.mark.parametrize(
    "step",
    [
        lambda g, k, x: g.add(g.sin(x), g.mul_scalar(k, scalar=0.0)),
        lambda g, k, x: g.add(g.sin(x), g.sub(k, k)),
        lambda g, k, x: g.mul(k, g.relu(g.relu(g.sub(x, x)))),
        lambda g, k, x: g.add(x, g.mul(k, g.abs(g.neg(g.sub(x, x))))),
        lambda g, k, x: g.maximum(g.mul(k, x), g.mul(k, x)),
        lambda g, k, x: g.add(x, g.mul(k, g.sqrt(g.square(g.add_scalar(x, scalar=1.0))))),
        lambda g, k, x: g.mul(x, g.div(k, k)),
        lambda g, k, x: g.add(x, g.cast(g.cast(k, dtype="int64"), dtype="float64")),
        lambda g, k, x: g.add(x, g.logsumexp(g.mul(k, g.stacked([x, k])))),
        lambda g, k, x: g.add(x, g.mul(k, g.max(g.stacked([x, x])))),
    ],
)
def test_simplified_bodies_keep_their_gradients(step: Write) -> None:
    """A body is simplified before it is differentiated; kinks, ties and connectedness stay the same."""

    def body(g: Writer, k: int, x: int) -> list[int]:
        return [step(g, k, x)]  # type: ignore[list-item]

    def looped(g: Writer, k: int, x: int) -> list[int]:
        return list(g.scan(k, x, body=body, carries=1, length=3))

    def plain(g: Writer, k: int, x: int) -> list[int]:
        return scan_by_hand(g, body, [k], [x], length=3)

    agree(looped, plain, 0.7, 0.4, exact=False)
    assert lost(looped, 0.7, 0.4) == lost(plain, 0.7, 0.4)


def test_zero_steps_check_no_index() -> None:
    def write(length: int) -> Write:
        return lambda g, i, k, x: g.scan(
            i, k, x, body=lambda g, i, k, x: [g.add(x, g.sum(g.gather(k, i, axis=0)))], carries=1, length=length
        )

    assert values(write(0), np.array([9]), np.ones(2), 0.5) == [0.5]
    with pytest.raises(IndexOutOfRange):
        values(write(1), np.array([9]), np.ones(2), 0.5)


def test_explicit_zero_carries_or_sequences() -> None:
    x = np.array([0.2, 0.5])
    through = values(lambda g, x: g.scan(x, body=lambda g, x: [g.exp(x)], carries=0, sequences=1), x)
    same(through, [np.exp(x)], 1e-15)
    twice = values(lambda g, x: g.scan(x, body=lambda g, x: [g.add(x, x)], carries=1, sequences=0, length=2), x)
    same(twice, [4 * x], 0)


def test_batch_of_entries_with_several_axes() -> None:
    x = random(2, 3, 2, 4)
    through = written(lambda g, x: g.scan(x, body=lambda g, x: [g.exp(x)], carries=0, sequences=1), x)
    same(batch(through, [0], differentiated=False), [np.exp(x)], 1e-15)


@pytest.mark.parametrize("mapped", [0, 1, 2, 3])
def test_batched_backward_pass_through_a_while(mapped: int) -> None:
    """x becomes kⁿx in the n steps from i to 3; the reference is the gradient of sin(zkⁿx + 0.3) by hand."""

    def write(g: Writer, k: int, i: int, x: int, z: int) -> list[int]:
        y = g.while_(
            k,
            i,
            x,
            condition=lambda g, k, i, x: [g.less(i, g.number(3.0))],
            body=lambda g, k, i, x: [g.add_scalar(i, scalar=1.0), g.mul(k, x)],
            carries=2,
            max_steps=6,
        )[1]
        return [g.mul(z, y)]

    examples = [np.array([0.4, 1.2]), np.array([0.0, 2.0]), np.array([[0.3, 0.7], [-0.5, 0.9]]), np.array([0.5, 2.0])]
    single = [np.array(0.8), np.array(1.0), np.array([0.3, 0.7]), np.array(1.5)]
    feeds = [examples[j] if j == mapped else single[j] for j in range(4)]
    actual = batch(written(write, *feeds), [mapped], differentiated=True)
    for e in range(2):
        k, i, x, z = (feeds[j][e] if j == mapped else feeds[j] for j in range(4))
        n = 3 - i
        slope = np.cos(z * k**n * x + 0.3)
        grad_k, grad_z = np.sum(slope * z * n * k ** (n - 1) * x), np.sum(slope * k**n * x)
        same([y[e] for y in actual[1:]], [grad_k, np.zeros(()), slope * z * k**n, grad_z], 1e-13)


def test_sequence_length_mismatch_names_the_operand() -> None:
    def write(g: Writer, *args: int) -> list[int]:
        return g.scan(*args, body=lambda g, k, h, x, z: [g.add(h, g.mul(k, g.mul(x, z)))], carries=1, sequences=2)

    with pytest.raises(ShapeMismatch, match=r"operand 3, .* 2 entries, like operand 2") as caught:
        values(write, 0.3, 0.5, np.zeros(2), np.zeros(3))
    assert caught.value.operand == 3


def test_counted_scan_is_internal() -> None:
    assert CountedScan.internal


@pytest.mark.parametrize(("count", "wanted"), [(0, [1.0, 1.0]), (2, [0.0, 0.0])])
def test_overwritten_carry_has_a_gradient_only_at_count_0(count: int, wanted: list[float]) -> None:
    overwrite = body_of([PAIR, PAIR], lambda k, h: [k.sin()])
    attrs = {"body": overwrite, "carries": 1, "sequences": 0, "length": 3, "reverse": False}

    def write(k: Value, h: Value, n: Value) -> Sequence[Value]:
        last = k.builder.emit(CountedScan(), (k, h, n), attrs).output(0)
        return [g for g in vjp(k.builder, [(last, last.full_like(1.0))], [h]) if g is not None]

    same, other = np.array([0.5, -2.0]), np.array([3.0, 4.0])
    np.testing.assert_array_equal(results_of(write, same, other, np.array(count)), [wanted])


@pytest.mark.parametrize("reverse", [False, True])
def test_batched_stacks_are_zero_beyond_each_count(reverse: bool) -> None:
    step = body_of([PAIR], lambda x: [x.exp(), x.greater(0.0)])
    attrs = {"body": step, "carries": 0, "sequences": 1, "length": 4, "reverse": reverse}

    def write(x: Value, one: Value, counts: Value, x_batch: Value) -> Sequence[Value]:
        loop = x.builder.emit(CountedScan(), (x, one), attrs)
        return vmap_onto(x.builder, [loop.output(0), loop.output(1)], {one: counts, x: x_batch}, 3)

    batch_x, counts = np.random.default_rng(0).normal(size=(3, 4, 2)), np.array([2, 0, 4])
    within = (np.arange(4) < counts[:, None])[..., None]
    exponentials, positive = results_of(write, batch_x[0], np.array(0), counts, batch_x)
    np.testing.assert_allclose(exponentials, np.where(within, np.exp(batch_x), 0.0), 1e-15)
    np.testing.assert_array_equal(positive, within & (batch_x > 0))
