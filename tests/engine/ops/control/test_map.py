"""`map` matches its body on each entry, for every chunk size."""

from __future__ import annotations

import numpy as np
import pytest

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

LENGTH = 5
AT_ONCE = [None, 1, 2, 4, 5, 7]


def body(g: Writer, w: int, _unread: int, x: int, n: int, y: int) -> list[int]:
    """Body on two consts, and an entry each of floats, integers and floats."""
    scaled = g.mul(y, g.cast(n, dtype="float64"))
    new = g.tanh(g.add(g.matmul(w, x), scaled))
    return [new, g.sum(g.mul(new, x)), g.add(n, n), w, new, y]


ARRAYS = (random(2, 2), random(2), random(LENGTH, 2), np.arange(LENGTH), random(LENGTH, seed=3))


def mapped_body(at_once: int | None) -> Write:
    attrs = {} if at_once is None else {"at_once": at_once}
    return lambda g, *args: g.map(*args, body=body, sequences=3, **attrs)


def plain(g: Writer, w: int, unread: int, *sequences: int) -> list[int]:
    return scan_by_hand(g, body, [w, unread], [], sequences, length=LENGTH)


@pytest.mark.parametrize("at_once", AT_ONCE)
def test_map_matches_its_entries(at_once: int | None) -> None:
    agree(mapped_body(at_once), plain, *ARRAYS, floats=[0, 1, 3, 4, 5], exact=False)
    assert lost(mapped_body(at_once), *ARRAYS, floats=[0, 1]) == (1,)


@pytest.mark.parametrize("at_once", [None, 2])
@pytest.mark.parametrize("mapped", [[0], [2], [3], [4], [0, 1, 2, 3, 4]])
def test_batch_of_maps(mapped: list[int], at_once: int | None) -> None:
    agree_in_batches(mapped_body(at_once), plain, *ARRAYS, mapped=[mapped], floats=[0, 1, 3, 4, 5])


@pytest.mark.parametrize("at_once", [None, 2])
@pytest.mark.parametrize("read", [[0], [1], [2], [3], [5], [4, 1]])
def test_unread_results(read: list[int], at_once: int | None) -> None:
    floats = [i for i, k in enumerate(read) if k != 2]

    def some(write: Write) -> Write:
        def picked(g: Writer, *args: int) -> list[int]:
            results = write(g, *args)
            return [results[k] for k in read]

        return picked

    if floats:
        agree(some(mapped_body(at_once)), some(plain), *ARRAYS, floats=floats, exact=False)
    else:
        same(values(some(mapped_body(at_once)), *ARRAYS), values(some(plain), *ARRAYS), 0)


@pytest.mark.parametrize("at_once", [None, 1, 3])
@pytest.mark.parametrize("length", [0, 1])
def test_empty_and_single_entry(length: int, at_once: int | None) -> None:
    arrays = [x[:length] if i > 1 else x for i, x in enumerate(ARRAYS)]
    if length:
        agree(
            mapped_body(at_once),
            lambda g, w, u, *sequences: scan_by_hand(g, body, [w, u], [], sequences, length=1),
            *arrays,
            floats=[0, 1, 3, 4, 5],
            exact=False,
        )
        return
    actual = everything(written(mapped_body(at_once), *arrays, floats=[0, 1, 3]), [0, 1, 3])
    shapes = [(0, 2), (0,), (0,), (0, 2, 2), (0, 2), (0,)]
    assert [x.shape for x in actual["values"]] == shapes
    same(actual["gradients"][1:], [np.zeros_like(x) for x in arrays if x.dtype == float], 0)


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [None, 2, 3])
def test_while_and_cond_inside_map(at_once: int | None) -> None:
    """Each entry has its own number of steps and its own predicate."""

    def entry(g: Writer, k: int, x: int) -> list[int]:
        results = g.while_(
            k,
            x,
            condition=lambda g, k, x: [g.less(x, g.number(2.0))],
            body=lambda g, k, x: [g.add(x, g.mul(k, g.exp(g.neg(x))))],
            carries=1,
            max_steps=6,
        )
        chosen = g.cond(
            g.less(x, g.number(0.5)),
            results[0],
            k,
            then=lambda g, y, k: [g.mul(y, k)],
            otherwise=lambda g, y, k: [g.sqrt(g.sub(y, g.number(0.5)))],
        )
        return [chosen[0], results[1]]

    xs = np.array([-0.5, 0.2, 0.9, 1.8, 2.5])
    attrs = {} if at_once is None else {"at_once": at_once}
    actual = everything(written(lambda g, k, x: g.map(k, x, body=entry, sequences=1, **attrs)[:1], 0.7, xs))
    single = [
        everything(written(lambda g, k, x: [g.reshape(y, shape=[1]) for y in entry(g, k, x)[:1]], 0.7, x)) for x in xs
    ]
    same(actual["values"], [np.concatenate([one["values"][0] for one in single])], 1e-14)
    same(actual["gradients"][1:2], [sum(one["gradients"][1] for one in single)], 1e-12)
    same(actual["gradients"][2:], [np.array([one["gradients"][2] for one in single])], 1e-12)
    hessian = [np.array([one["hessian"][k] for one in single]) for k in range(3, 7)]
    expected = [hessian[0].sum(), hessian[1], hessian[2], np.diag(hessian[3])]
    same(actual["hessian"][3:], [np.asarray(x) for x in expected], 1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [None, 2])
def test_gradients_inside_and_around_a_map(at_once: int | None) -> None:
    def slope(g: Writer, k: int, x: int) -> list[int]:
        return [g.grad(g.sin(g.mul(k, g.mul(x, x))), x)]

    def write(g: Writer, by_hand: bool, k: int, x: int) -> list[int]:
        if by_hand:
            (y,) = scan_by_hand(g, slope, [k], [], [x], length=3)
        else:
            (y,) = g.map(k, x, body=slope, sequences=1, **({} if at_once is None else {"at_once": at_once}))
        first = g.grad(g.sum(g.mul(y, y)), k)
        return [y, first, g.grad(first, x)]

    agree(
        lambda g, *args: write(g, False, *args),
        lambda g, *args: write(g, True, *args),
        0.8,
        random(3),
        exact=False,
    )


@pytest.mark.parametrize("at_once", [None, 2])
def test_map_inside_scan_inside_map(at_once: int | None) -> None:
    attrs = {} if at_once is None else {"at_once": at_once}

    def innermost(g: Writer, k: int, x: int) -> list[int]:
        return [g.mul(k, g.sin(x))]

    def step(by_hand: bool) -> Write:
        def write(g: Writer, k: int, h: int) -> list[int]:
            if by_hand:
                return scan_by_hand(g, innermost, [k], [], [h], length=3)
            return list(g.map(k, h, body=innermost, sequences=1, **attrs))

        return write

    def entry(by_hand: bool) -> Write:
        def write(g: Writer, k: int, h: int) -> list[int]:
            if by_hand:
                return scan_by_hand(g, step(True), [k], [h], length=2)
            return list(g.scan(k, h, body=step(False), carries=1, length=2))

        return write

    agree(
        lambda g, k, x: g.map(k, x, body=entry(False), sequences=1, **attrs),
        lambda g, k, x: scan_by_hand(g, entry(True), [k], [], [x], length=3),
        0.8,
        random(3, 3),
        exact=False,
    )


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("at_once", [None, 2])
def test_narrow_floats(dtype: str, at_once: int | None) -> None:
    attrs = {} if at_once is None else {"at_once": at_once}
    k, x = np.asarray(0.5, dtype), random(5, dtype=dtype)
    actual = gradients(lambda g, k, x: g.map(k, x, body=lambda g, k, x: [g.mul(k, x)], sequences=1, **attrs), k, x)
    slope = np.cos((k * x).astype(float) + 0.3)
    within = {"float16": 5e-3, "float32": 1e-6}[dtype]
    same(actual, [np.asarray((slope * x).sum(), dtype), (slope * k).astype(dtype)], within)


def test_batched_gradients_with_an_integer_sequence() -> None:
    n = np.arange(4)

    def write(g: Writer, k: int, n: int) -> list[int]:
        return g.map(k, n, body=lambda g, k, n: [g.mul(k, g.cast(n, dtype="float64"))], sequences=1, at_once=3)

    ks = np.array([0.2, 0.5])
    actual = batch(written(write, ks, n), [0], differentiated=True)
    same(actual[1:], [(np.cos(ks[:, None] * n + 0.3) * n).sum(1)], 1e-14)


def test_unread_sequence_sets_the_length() -> None:
    def write(g: Writer, k: int, x: int) -> list[int]:
        return g.map(k, x, body=lambda g, k, x: [g.sin(k)], sequences=1, at_once=2)

    same(values(write, 0.4, np.zeros(5)), [np.full(5, np.sin(0.4))], 0)
    same(gradients(write, 0.4, np.zeros(5)), [5 * np.cos(0.4) * np.cos(np.sin(0.4) + 0.3), np.zeros(5)], 1e-14)
    assert lost(write, 0.4, np.zeros(5)) == (1,)


@pytest.mark.parametrize("at_once", [None, 1, 2])
def test_forward_mode_through_maps_with_unread_entries(at_once: int | None) -> None:
    """The backward map goes over the cotangents and the unread entries only."""
    attrs = {} if at_once is None else {"at_once": at_once}

    def inner(g: Writer, k: int, x: int) -> list[int]:
        return g.map(k, x, body=lambda g, k, x: [g.sin(k)], sequences=1, **attrs)

    def looped(g: Writer, k: int, x: int) -> list[int]:
        return g.map(k, x, body=inner, sequences=1, **attrs)

    def plain(g: Writer, k: int, _: int) -> list[int]:
        return [g.broadcast_to(g.sin(k), shape=[3, 2])]

    agree(looped, plain, 0.4, np.zeros((3, 2)))
