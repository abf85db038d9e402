"""Methods of `Routine`, each in a kernel of its own, against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codegen.microkernels.recipe import Recipe
from engine.codegen.microkernels.routine import Int64, Routine
from engine.codegen.microkernels.windows import deinterleaved, select_lanes
from tests.engine.codegen.microkernels.running import Array, run_recipe

pytest.importorskip("llvmlite")

LANES = 8
VECTOR = LANES * 4
numbers = st.integers(-(2**40), 2**40)
few = st.integers(-LANES - 3, 3 * LANES)


def random(*shape: int) -> Array:
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def run(write: Callable[[Routine, str, str], None], x: Array, size: int, items: int = 1) -> Array:
    """Run what `write` emits for x and a result of `size` numbers that are 7 at first."""
    ir = Routine("float32", LANES)
    operand, result = ir.place("operand", 0), ir.place("result", 0)
    for start in range(0, size, LANES):
        ir.store(ir.splat(7.0), ir.at(result, start * 4), ir.below(size - start))
    write(ir, operand, result)
    recipe = Recipe((ir.phase(items, 0),))
    return run_recipe(recipe, [x], (size,), "float32")


def run_integers(write: Callable[[Routine, Sequence[Int64]], Sequence[Int64]], *given_numbers: int) -> list[int]:
    """Compute integers from integers that are known only when the kernel runs."""
    ir = Routine("float64", 2)
    x, y = ir.place("operand", 0), ir.place("result", 0)
    inputs = [ir.assembly.value(f"load i64, ptr {ir.at(x, 8 * i)}") for i in range(len(given_numbers))]
    outputs = write(ir, inputs)
    for i, value in enumerate(outputs):
        ir.assembly.line(f"store i64 {value}, ptr {ir.at(y, 8 * i)}")
    recipe = Recipe((ir.phase(1, 0),))
    result = run_recipe(recipe, [np.array(given_numbers, "int64")], (len(outputs),), "int64")
    return [int(number) for number in result]


# ---------------------------------------------------------------- integers


@given(a=numbers, b=numbers)
def test_integers_match_at_run_time_and_when_written(a: int, b: int) -> None:
    def write(ir: Routine, inputs: Sequence[Int64]) -> list[Int64]:
        x, y = inputs
        return [ir.add(x, y), ir.sub(x, y), ir.mul(x, 12), ir.minimum(x, y), ir.maximum(x, y), ir.within(x, 1000)]

    expected = [a + b, a - b, 12 * a, min(a, b), max(a, b), int(0 <= a < 1000)]
    assert run_integers(write, a, b) == expected == write(Routine("float32", 8), [a, b])


@pytest.mark.slow
@given(a=st.integers(0, 2**40), b=st.integers(1, 2**20))
def test_divided_and_unravelled(a: int, b: int) -> None:
    def write(ir: Routine, inputs: Sequence[Int64]) -> list[Int64]:
        return [*ir.divided(inputs[0], b), *ir.unravelled(inputs[0], (2**50, 3, b, 1, 5))]

    (rest, last), (first, inner) = divmod(a, 5), divmod(a // 5, 3 * b)
    assert rest == first * 3 * b + inner
    expected = [*divmod(a, b), first, *divmod(inner, b), 0, last]
    assert run_integers(write, a) == expected == write(Routine("float32", 8), [a])
    assert Routine("float32", 8).unravelled("%a", ()) == []


@pytest.mark.parametrize("how", ["slt", "eq", "sge"])
@pytest.mark.parametrize("a", [-3, 4, 5])
def test_choose(how: str, a: int) -> None:
    holds = {"slt": a < 4, "eq": a == 4, "sge": a >= 4}[how]
    assert run_integers(lambda ir, inputs: [ir.choose(how, inputs[0], 4, inputs[0], 11)], a) == [a if holds else 11]


# ---------------------------------------------------------------- control


@pytest.mark.parametrize("how", ["slt", "eq", "sge"])
@pytest.mark.parametrize("a", [-3, 4, 5])
def test_conditional_store(how: str, a: int) -> None:
    def write(ir: Routine, x: str, y: str) -> None:
        with ir.loop(a, a + 1) as loop, ir.when(how, loop.index, 4):
            ir.store(ir.load(x), y)

    x = random(LANES)
    holds = {"slt": a < 4, "eq": a == 4, "sge": a >= 4}[how]
    np.testing.assert_array_equal(run(write, x, LANES), x if holds else np.full(LANES, 7))


@pytest.mark.parametrize(("first", "past", "step"), [(0, 5, 1), (2, 11, 3), (-4, 5, 2), (3, 3, 1), (4, 1, 1)])
def test_loop_carries_values(first: int, past: int, step: int) -> None:
    """Values are carried from each iteration to the next, past inner conditions and loops, and out of the last."""

    def write(ir: Routine, inputs: Sequence[Int64]) -> list[Int64]:
        with ir.loop(first, inputs[0], step, [("i64", "5"), ("i64", "0")]) as outer:
            total, inner_rounds = outer.carried
            with ir.when("eq", outer.index, 2):
                ir.sub(outer.index, 1)
            with ir.loop(0, outer.index, 1, [("i64", inner_rounds)]) as inner:
                inner.carry = [str(ir.add(inner.carried[0], 1))]
            outer.carry = [str(ir.add(ir.mul(total, 3), outer.index)), *inner.carried]
        return list(outer.carried)

    total, rounds = 5, 0
    for i in range(first, past, step):
        total, rounds = 3 * total + i, rounds + max(i, 0)
    assert run_integers(write, past) == [total, rounds]


def test_only_requested_items_run() -> None:
    def write(ir: Routine, x: str, y: str) -> None:
        with ir.loop("%first", "%past") as item:
            ir.store(ir.load(ir.at(x, ir.mul(item.index, VECTOR))), ir.at(y, ir.mul(item.index, VECTOR)))

    x = random(3 * LANES)
    actual = run(write, x, 3 * LANES, items=2)
    np.testing.assert_array_equal(actual[: 2 * LANES], x[: 2 * LANES])
    assert (actual[2 * LANES :] == 7).all()


# ---------------------------------------------------------------- masks


def lanes_of(mask: Callable[[Routine, Int64, Int64], str], first: int, past: int, *, known: bool) -> list[bool]:
    """Return the lanes of a mask whose numbers are known when the kernel is written, or only when it runs."""

    def write(ir: Routine, x: str, y: str) -> None:
        a, b = (ir.assembly.value(f"load i64, ptr {ir.at(x, 8 * i)}") for i in range(2)) if not known else (first, past)
        ir.store(ir.splat(1.0), y, mask(ir, a, b))

    return [bool(lane == 1) for lane in run(write, np.array([first, past], "int64"), LANES)]


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False])
@given(first=few, past=few, step=st.sampled_from([1, 2, 3]))
def test_masks(known: bool, first: int, past: int, step: int) -> None:
    lanes = lanes_of(lambda ir, a, b: ir.between(a, b, step), first, past, known=known)
    assert lanes == [first <= lane * step < past for lane in range(LANES)]
    lanes = lanes_of(lambda ir, _, count: ir.below(count), first, past, known=known)
    assert lanes == [lane < past for lane in range(LANES)]
    both = lanes_of(lambda ir, a, b: ir.both(ir.below(a), ir.between(a, b)), first, past, known=known)
    assert not any(both)


@pytest.mark.parametrize("flag", [0, 1])
def test_mask_of_all_or_no_lanes(flag: int) -> None:
    assert lanes_of(lambda ir, a, _: ir.all_or_none(a), flag, 0, known=False) == [bool(flag)] * LANES


def test_empty_mask_means_all_lanes() -> None:
    ir = Routine("float32", LANES)
    assert ir.below(LANES) == ir.between(-1, 99) == ir.between(0, 15, 2) == ir.both("", "") == ""
    assert ir.both("%a", "") == ir.both("", "%a") == "%a"
    assert not ir.assembly.lines


# ---------------------------------------------------------------- vectors


@given(count=few)
def test_lanes_outside_a_mask_are_not_accessed(count: int) -> None:
    def write(ir: Routine, x: str, y: str) -> None:
        mask = ir.below(count)
        ir.store(ir.load(x, mask), y)
        ir.store(ir.load(x, mask, ir.splat(-2.0)), ir.at(y, VECTOR))
        ir.store(ir.load(x), ir.at(y, 2 * VECTOR), mask)
        ir.store(ir.masked(ir.load(x), mask), ir.at(y, 3 * VECTOR))

    x = random(LANES)
    inside = np.arange(LANES) < count
    expected = [np.where(inside, x, outside) for outside in (0, -2, 7, 0)]
    np.testing.assert_array_equal(run(write, x, 4 * LANES).reshape(4, LANES), expected)


@pytest.mark.parametrize("step", [1, 2, 3, -2])
def test_strided_gather_and_scatter(step: int) -> None:
    """Lanes outside the mask are left alone."""

    def write(ir: Routine, x: str, y: str) -> None:
        start = 0 if step > 0 else -step * (LANES - 1) * 4
        every, some = ir.first(LANES), ir.first(5)
        ir.store(ir.gather(ir.at(x, start), 4 * step, every), y)
        ir.store(ir.gather(ir.at(x, start), 4 * step, some, ir.splat(3.0)), ir.at(y, VECTOR))
        ir.store(ir.load_strided(ir.at(x, start), 4 * step), ir.at(y, 2 * VECTOR))
        ir.scatter(ir.load(x), ir.at(y, 3 * VECTOR + start), 4 * step, some)

    x = random(4 * LANES)
    gathered = (x[::step] if step > 0 else x[-step * (LANES - 1) :: step])[:LANES]
    scattered = np.full(4 * LANES, 7, "float32")
    (scattered[::step] if step > 0 else scattered[-step * (LANES - 1) :: step])[:5] = x[:5]
    expected = [gathered, np.where(np.arange(LANES) < 5, gathered, 3), gathered, scattered]
    np.testing.assert_array_equal(run(write, x, 7 * LANES), np.concatenate(expected))


def test_transposed() -> None:
    def write(ir: Routine, x: str, y: str) -> None:
        rows = [ir.load(ir.at(x, r * VECTOR)) for r in range(LANES)]
        for r, row in enumerate(ir.transposed(rows)):
            ir.store(row, ir.at(y, r * VECTOR))

    x = random(LANES, LANES)
    np.testing.assert_array_equal(run(write, x, LANES**2).reshape(LANES, LANES), x.T)


def test_lanes_are_summed_by_halves() -> None:
    x = random(LANES)
    halves = x
    while len(halves) > 1:
        halves = halves[: len(halves) // 2] + halves[len(halves) // 2 :]
    assert run(lambda ir, x, y: ir.store_number(ir.halved(ir.load(x)), y), x, 1)[0] == halves[0]


def test_broadcast_and_fused_multiply_add() -> None:
    def write(ir: Routine, x: str, y: str) -> None:
        ir.store(ir.fma(ir.broadcast(x), ir.load(x), ir.sum(ir.load(ir.at(x, VECTOR)), ir.zero)), y)

    x = random(2 * LANES)
    expected = x[0].astype(float) * x[:LANES] + x[LANES:]
    np.testing.assert_array_equal(run(write, x, LANES), expected.astype("float32"))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_deinterleaved(count: int) -> None:
    def write(ir: Routine, x: str, y: str) -> None:
        parts = deinterleaved(ir, [ir.load(ir.at(x, k * VECTOR)) for k in range(count)])
        for k, part in enumerate(parts):
            ir.store(part, ir.at(y, k * VECTOR))

    x = random(LANES, count)
    np.testing.assert_array_equal(run(write, x, x.size).reshape(count, LANES), x.T)


@pytest.mark.slow
@given(lanes=st.lists(st.one_of(st.none(), st.integers(0, LANES - 1)), min_size=LANES, max_size=LANES))
def test_select_lanes(lanes: list[int | None]) -> None:
    x = random(LANES)
    selected = run(lambda ir, x, y: ir.store(select_lanes(ir, ir.load(x), lanes), y), x, LANES)
    np.testing.assert_array_equal(selected, [0 if lane is None else x[lane] for lane in lanes])
