"""Run-time estimates tell calls of microseconds from calls of seconds; no test measures time."""

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
    """The plan of an op on an input of this shape, followed by others."""
    nodes = [Statement(OPS["input"]), Statement(OPS[op], (0, 0) if op == "matmul" else (0,))]
    nodes += [Statement(OPS[name], (i + 1,)) for i, name in enumerate(then)]
    program = Program(registry(), nodes)
    return Compiler(Limits(flops=10**18, bytes=1 << 50)).forward(program, {0: TensorType(shape, FLOAT64)}).plan


def test_small_run_costs_its_steps() -> None:
    two = plan("exp", 4, then=["tanh"])
    assert run_seconds(two) == pytest.approx(RUN_SECONDS + 2 * STEP_SECONDS, rel=0.1)


def test_large_matmul_costs_its_flops() -> None:
    """A current processor does about 5 · 10^10 multiply-adds per second."""
    assert 0.01 < run_seconds(plan("matmul", 1000, 1000)) < 0.1
    assert run_seconds(plan("matmul", 2000, 2000)) == pytest.approx(
        8 * run_seconds(plan("matmul", 1000, 1000)), rel=0.1
    )


def test_only_matmul_depends_on_the_measured_speed() -> None:
    product, moved = plan("matmul", 1000, 1000), plan("neg", 1000, 1000)
    assert run_seconds(product, 3 * DENSE_FLOP) == pytest.approx(3 * run_seconds(product), rel=0.1)
    assert run_seconds(moved, 3 * DENSE_FLOP) == run_seconds(moved)


@pytest.mark.parametrize(("took", "factor"), [(1e-9, 1 / 4), (1e9, 4)])
def test_measured_speed_is_clamped(took: float, factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine or its clock may have been stopped during the measurement."""
    moments = iter([0.0, took] * 24)
    monkeypatch.setattr(estimate.time, "perf_counter", lambda: next(moments))
    assert measure_dense_flop() == factor * DENSE_FLOP


def test_best_measurement_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = DENSE_FLOP * 2 * 384**3 * 4
    moments = iter([0.0, 3 * seconds] * 11 + [0.0, 2 * seconds] + [0.0, 5 * seconds] * 12)
    monkeypatch.setattr(estimate.time, "perf_counter", lambda: next(moments))
    assert measure_dense_flop() == pytest.approx(2 * DENSE_FLOP)


def test_slow_measurements_stop_early(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([0.0, 0.02, 0.0, 0.02])
    monkeypatch.setattr(estimate.time, "perf_counter", lambda: next(moments))
    measure_dense_flop()
    assert not [*moments]


def test_memory_bound_op_costs_its_bytes() -> None:
    """80 MB read and 80 MB written, at about 10^10 bytes per second."""
    assert 0.005 < run_seconds(plan("neg", 10_000_000)) < 0.05


def test_view_costs_no_bytes() -> None:
    alone, viewed = plan("neg", 1000, 1000), plan("transpose", 1000, 1000, then=["neg"])
    assert [step.op.name for step in viewed.steps if not step.places] == ["transpose"]
    assert run_seconds(viewed) == pytest.approx(run_seconds(alone) + STEP_SECONDS, rel=1e-9)


def test_planning_time_grows_with_the_nodes() -> None:
    assert planning_seconds(10) < 0.01
    assert planning_seconds(100_000) > 1
