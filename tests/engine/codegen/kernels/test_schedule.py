"""Sweeps: as few as possible, with costly elements saved and cheap ones recomputed."""

from __future__ import annotations

from engine.codegen.kernels.program import KernelBuilder, Level, schedule


def test_softmax_takes_three_sweeps_and_saves_the_exponential() -> None:
    builder = KernelBuilder("float32")
    x = builder.load(Level.ELEMENT)
    largest = x.row_max()
    shifted = x - largest
    risen = shifted.exp()
    total = risen.row_sum()
    share = risen / total
    builder.store("element", share)
    first, second, third = schedule(builder.build()).sweeps
    assert (first.computed, first.reductions, first.saved) == ((x.number,), (largest.number,), ())
    assert second.computed == (x.number, shifted.number, risen.number)
    assert (second.saved, second.reductions, second.results) == ((risen.number,), (total.number,), ())
    assert (third.fetched, third.computed, third.results) == ((risen.number,), (share.number,), (0,))
    assert schedule(builder.build()).scratch == (risen.number,)


def test_cheap_scalar_is_recomputed() -> None:
    builder = KernelBuilder("float32")
    x = builder.load(Level.ELEMENT)
    centred = x - x.row_sum()
    builder.store("row", (centred * centred).row_sum())
    builder.store("element", centred * centred.mul(centred).row_sum())
    plan = schedule(builder.build())
    assert plan.scratch == ()
    assert centred.number in plan.sweeps[1].computed
    assert centred.number in plan.sweeps[2].computed


def test_costly_scalar_is_saved_instead_of_its_cheap_successor() -> None:
    builder = KernelBuilder("float32")
    root = builder.load(Level.ELEMENT).sqrt()
    more = root + 1.0
    builder.store("element", root * root.row_sum())
    builder.store("element", more * more.row_sum())
    assert schedule(builder.build()).scratch == (root.number,)


def test_scalar_is_not_computed_before_its_first_use() -> None:
    builder = KernelBuilder("float32")
    x, y = builder.load(Level.ELEMENT), builder.load(Level.ELEMENT)
    root = y.sqrt()
    builder.store("element", root * x.row_sum())
    first, second = schedule(builder.build()).sweeps
    assert (first.computed, first.saved) == ((x.number,), ())
    assert root.number in second.computed


def test_results_are_stored_in_the_earliest_sweep() -> None:
    builder = KernelBuilder("float32")
    x = builder.load(Level.ELEMENT)
    builder.store("element", x * 2.0)
    builder.store("columns", x - x.row_sum())
    assert [sweep.results for sweep in schedule(builder.build()).sweeps] == [(0,), (1,)]


def test_unneeded_scalars_are_left_out() -> None:
    builder = KernelBuilder("float32")
    x, row = builder.load(Level.ELEMENT), builder.load(Level.ROW)
    (x - x.row_max()).exp()
    row.sqrt()
    builder.store("element", x)
    (sweep,) = schedule(builder.build()).sweeps
    assert (sweep.before, sweep.computed, sweep.reductions) == ((), (x.number,), ())


def test_row_scalars_are_computed_between_sweeps() -> None:
    builder = KernelBuilder("float32")
    x, row = builder.load(Level.ELEMENT), builder.load(Level.ROW)
    mean = x.row_sum() * 0.5
    scale = (x - mean).row_sum().sqrt()
    builder.store("row", scale + row)
    plan = schedule(builder.build())
    assert [sweep.before for sweep in plan.sweeps] == [(row.number,), (mean.number,)]
    assert plan.after == (scale.number, scale.number + 1)


def test_loop_of_row_scalars_has_no_sweeps() -> None:
    builder = KernelBuilder("float32")
    row = builder.load(Level.ROW)
    builder.store("row", row + 1.0)
    plan = schedule(builder.build())
    assert (plan.sweeps, plan.after) == ((), (row.number, row.number + 2))
