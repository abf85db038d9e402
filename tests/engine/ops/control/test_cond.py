"""`cond` returns the results of one function; the other adds nothing, even if it would be NaN or infinite."""

from __future__ import annotations

import numpy as np
import pytest

from engine import EngineError
from tests.engine.looping import (
    Writer,
    agree,
    agree_in_batches,
    batch,
    everything,
    gradients,
    lost,
    random,
    same,
    values,
    written,
)


def product(g: Writer, a: int, b: int, _c: int) -> list[int]:
    y = g.mul(g.sin(a), b)
    return [y, b, g.number(3, "int64")]


def quotient(g: Writer, _a: int, b: int, c: int) -> list[int]:
    y = g.div(g.cos(b), g.exp(c))
    return [y, y, g.number(4, "int64")]


ARRAYS = (0.4, random(3), 0.7)


@pytest.mark.parametrize("taken", [True, False])
def test_cond_matches_the_taken_function(taken: bool) -> None:
    agree(
        lambda g, p, *args: g.cond(p, *args, then=product, otherwise=quotient),
        lambda g, p, *args: list(map(g.identity, (product if taken else quotient)(g, *args))),
        np.bool_(taken),
        *ARRAYS,
        floats=[0, 1],
    )


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("mapped", [[1], [2], [3], [1, 2, 3]])
def test_batch_with_a_shared_predicate(taken: bool, mapped: list[int]) -> None:
    agree_in_batches(
        lambda g, p, *args: g.cond(p, *args, then=product, otherwise=quotient),
        lambda g, p, *args: list(map(g.identity, (product if taken else quotient)(g, *args))),
        np.bool_(taken),
        *ARRAYS,
        mapped=[mapped],
        floats=[0, 1],
    )


@pytest.mark.parametrize("mapped", [[0], [0, 1], [0, 2, 3]])
def test_batch_with_a_predicate_per_example(mapped: list[int]) -> None:
    def plain(g: Writer, p: int, *args: int) -> list[int]:
        return [g.where(p, yes, no) for yes, no in zip(product(g, *args), quotient(g, *args), strict=True)]

    agree_in_batches(
        lambda g, p, *args: g.cond(p, *args, then=product, otherwise=quotient),
        plain,
        np.bool_(True),
        *ARRAYS,
        mapped=[mapped],
        floats=[0, 1],
    )


def root(g: Writer, x: int, k: int) -> list[int]:
    """√x·k: NaN below 0, of infinite slope at 0."""
    return [g.mul(g.sqrt(x), k)]


def line(g: Writer, x: int, k: int) -> list[int]:
    return [g.mul(g.mul_scalar(x, scalar=2.0), k)]


def safe_root(g: Writer, x: int, k: int) -> list[int]:
    return list(g.cond(g.greater(x, g.number(0.0)), x, k, then=root, otherwise=line))


@pytest.mark.parametrize("x", [-1.5, 0.0])
def test_untaken_function_adds_exact_zeros(x: float) -> None:
    agree(safe_root, lambda g, x, k: list(map(g.identity, line(g, x, k))), x, 0.8, within=1e-15)


def test_batched_untaken_function_adds_exact_zeros() -> None:
    xs, ks = np.array([-1.5, 0.0, 2.0]), np.array([0.8, 0.9, 1.1])
    many = written(safe_root, xs, ks)
    singles = [everything(written(safe_root, x, k)) for x, k in zip(xs, ks, strict=True)]
    for mapped in ([0, 1],):
        for differentiated, kind in ((False, "values"), (True, "gradients")):
            expected = [np.stack(column) for column in zip(*[one[kind] for one in singles], strict=True)]
            actual = batch(many, mapped, differentiated=differentiated)
            assert all(np.isfinite(x).all() for x in actual)
            same(actual, expected, 1e-15)


def test_second_derivatives_with_a_predicate_per_example() -> None:
    """Nested `grad` nodes in a batch."""

    def write(g: Writer, x: int, k: int) -> list[int]:
        (y,) = safe_root(g, x, k)
        first = g.grad(g.mul(y, y), x)
        return [first, g.grad(first, k), g.grad(first, x)]

    xs, ks = np.array([-1.5, 0.0, 2.0]), np.array([0.8, 0.9, 1.1])
    actual = batch(written(write, xs, ks), [0, 1], differentiated=False)
    y = [
        np.where(xs > 0, ks**2, 8 * xs * ks**2),
        np.where(xs > 0, 2 * ks, 16 * xs * ks),
        np.where(xs > 0, 0, 8 * ks**2),
    ]
    same(actual, y, 1e-14)


def test_operand_of_the_untaken_function_has_a_zero_gradient() -> None:
    def write(g: Writer, p: int, *args: int) -> list[int]:
        return g.cond(p, *args, then=product, otherwise=quotient)[:1]

    assert lost(write, np.bool_(True), *ARRAYS) == ()
    same(gradients(write, np.bool_(True), *ARRAYS)[2:], [np.zeros(())], 0)

    def neither(g: Writer, p: int, a: int, b: int) -> list[int]:
        return g.cond(p, a, b, then=lambda g, a, b: [g.sin(a)], otherwise=lambda g, a, b: [g.cos(a)])

    assert lost(neither, np.bool_(True), 0.3, 0.4) == (2,)


def test_predicate_has_no_gradient() -> None:
    def write(g: Writer, x: int, y: int) -> list[int]:
        return g.cond(g.less(x, y), y, then=lambda g, y: [g.sin(y)], otherwise=lambda g, y: [g.cos(y)])

    assert lost(write, 0.1, 0.2) == (0,)


def test_only_the_taken_function_runs() -> None:
    """The untaken function would read an index out of range."""

    def write(g: Writer, p: int, x: int, i: int) -> list[int]:
        return g.cond(
            p, x, i, then=lambda g, x, i: [g.sum(g.gather(x, i, axis=0))], otherwise=lambda g, x, i: [g.sum(x)]
        )

    (actual,) = values(write, np.bool_(False), np.ones(3), np.array([7]))
    assert actual == 3.0
    assert gradients(write, np.bool_(False), np.ones(3), np.array([7]))[0].shape == (3,)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "bool", "uint32"])
def test_dtypes(dtype: str) -> None:
    one, other = np.array([1, 0, 1], dtype), np.array([0, 0, 1], dtype)
    for taken in (True, False):
        actual = values(
            lambda g, p, x, y: g.cond(p, x, y, then=lambda g, x, y: [x, x], otherwise=lambda g, x, y: [y, x]),
            np.bool_(taken),
            one,
            other,
        )
        same(actual, [one if taken else other, one], 0)


def test_functions_without_operands() -> None:
    def write(g: Writer, p: int) -> list[int]:
        return g.cond(p, then=lambda g: [g.number(2.0)], otherwise=lambda g: [g.number(3.0)])

    assert [values(write, np.bool_(p))[0].item() for p in (True, False)] == [2.0, 3.0]
    many = batch(written(write, np.array([True, False]), floats=()), [0], differentiated=False)
    same(many, [np.array([2.0, 3.0])], 0)


def test_empty_tensors() -> None:
    x = np.zeros((0, 2))
    write = lambda g, p, x: g.cond(p, x, then=lambda g, x: [g.sin(x)], otherwise=lambda g, x: [x])
    actual = everything(written(write, np.bool_(True), x))
    same(actual["gradients"][1:], [x], 0)


@pytest.mark.slow
def test_nested_conds() -> None:
    def nested(depth: int):  # type: ignore[no-untyped-def]
        if depth == 0:
            return lambda g, x, k: [g.mul(g.sin(x), k)]

        def body(g: Writer, x: int, k: int) -> list[int]:
            low = g.less(x, g.number(0.2 * depth))
            new = g.add_scalar(x, scalar=0.15)
            return list(g.cond(low, new, k, then=nested(depth - 1), otherwise=lambda g, x, k: [g.exp(g.mul(x, k))]))

        return body

    def plain(g: Writer, x: int, k: int, depth: int = 3) -> list[int]:
        if depth == 0:
            return [g.mul(g.sin(x), k)]
        low, new = g.less(x, g.number(0.2 * depth)), g.add_scalar(x, scalar=0.15)
        return [g.where(low, plain(g, new, k, depth - 1)[0], g.exp(g.mul(new, k)))]

    for x in (-0.5, 0.15, 0.35, 0.9):
        agree(nested(3), plain, x, 0.7)
    agree_in_batches(nested(3), plain, 0.3, 0.7, mapped=[[0], [1], [0, 1]])


@pytest.mark.parametrize(
    ("predicate", "code"),
    [(np.float64(1), "dtype_mismatch"), (np.array([True]), "shape_mismatch")],
    ids=["a number", "an axis"],
)
def test_predicate_must_be_a_bool_scalar(predicate: np.ndarray, code: str) -> None:
    with pytest.raises(EngineError) as caught:
        values(lambda g, p: g.cond(p, then=lambda g: [g.number(2.0)], otherwise=lambda g: [g.number(3.0)]), predicate)
    assert (caught.value.code, caught.value.operand) == (code, 0)
