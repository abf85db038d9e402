"""Estimates tell calls of microseconds from calls of seconds; nothing here is timed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine import Compiler, Limits, Plan, Program, Statement, TensorType, registry
from engine.compiler import fused_kernel as estimate
from engine.compiler.fused_kernel import (
    DENSE_FLOP,
    RUN_SECONDS,
    STEP_SECONDS,
    measure_dense_flop,
    planning_seconds,
    run_seconds,
)
from engine.ir.tensor_type import FLOAT64

OPS = registry().ops


def plan(op: str, *shape: int, then: Sequence[str] = ()) -> Plan:
    """The values of an op on a square of this shape, and of others after it."""
    nodes = [Statement(OPS["input"]), Statement(OPS[op], (0, 0) if op == "matmul" else (0,))]
    nodes += [Statement(OPS[name], (i + 1,)) for i, name in enumerate(then)]
    program = Program(registry(), nodes)
    return Compiler(Limits(flops=10**18, bytes=1 << 50)).forward(program, {0: TensorType(shape, FLOAT64)}).plan


def test_a_small_run_takes_what_its_steps_cost() -> None:
    two = plan("exp", 4, then=["tanh"])
    assert run_seconds(two) == pytest.approx(RUN_SECONDS + 2 * STEP_SECONDS, rel=0.1)


def test_a_large_product_takes_its_arithmetic() -> None:
    """A processor of today makes some 5 · 10^10 products and sums in a second."""
    assert 0.01 < run_seconds(plan("matmul", 1000, 1000)) < 0.1
    assert run_seconds(plan("matmul", 2000, 2000)) == pytest.approx(
        8 * run_seconds(plan("matmul", 1000, 1000)), rel=0.1
    )


def test_a_product_goes_by_what_was_measured_and_nothing_else_does() -> None:
    product, moved = plan("matmul", 1000, 1000), plan("neg", 1000, 1000)
    assert run_seconds(product, 3 * DENSE_FLOP) == pytest.approx(3 * run_seconds(product), rel=0.1)
    assert run_seconds(moved, 3 * DENSE_FLOP) == run_seconds(moved)


@pytest.mark.parametrize(("took", "factor"), [(1e-9, 1 / 4), (1e9, 4)])
def test_a_measurement_is_believed_within_limits(took: float, factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that stood still meanwhile, or a clock that did."""
    moments = iter([0.0, took] * 24)
    monkeypatch.setattr(estimate.time, "perf_counter", lambda: next(moments))
    assert measure_dense_flop() == factor * DENSE_FLOP


def test_the_best_of_the_measurements_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = DENSE_FLOP * 2 * 384**3 * 4
    moments = iter([0.0, 3 * seconds] * 11 + [0.0, 2 * seconds] + [0.0, 5 * seconds] * 12)
    monkeypatch.setattr(estimate.time, "perf_counter", lambda: next(moments))
    assert measure_dense_flop() == pytest.approx(2 * DENSE_FLOP)


def test_a_machine_that_is_busy_measures_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([0.0, 0.02, 0.0, 0.02])
    monkeypatch.setattr(estimate.time, "perf_counter", lambda: next(moments))
    measure_dense_flop()
    assert not [*moments]


def test_what_only_moves_takes_its_bytes() -> None:
    """80 MB read and 80 MB written, at some 10^10 bytes a second."""
    assert 0.005 < run_seconds(plan("neg", 10_000_000)) < 0.05


def test_a_view_moves_nothing() -> None:
    alone, viewed = plan("neg", 1000, 1000), plan("transpose", 1000, 1000, then=["neg"])
    assert [step.op.name for step in viewed.steps if not step.places] == ["transpose"]
    assert run_seconds(viewed) == pytest.approx(run_seconds(alone) + STEP_SECONDS, rel=1e-9)


def test_planning_is_counted_by_nodes() -> None:
    assert planning_seconds(10) < 0.01
    assert planning_seconds(100_000) > 1
