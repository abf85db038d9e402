"""An index outside its axis is the same error whichever way a plan runs: its node, its sentence, its fields."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import LATEST, Limits, Plan, Program, Statement, TensorType, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.codegen.native.machine_code import KernelStore
from engine.codegen.native.native_call import IS_SUPPORTED
from engine.compiler import recipes as indexing
from engine.compiler.fit_memory import compiled_within
from engine.compiler.fused_kernel import MicrokernelOp
from engine.compiler.plan import make_plan
from engine.ir.errors import IndexOutOfRange
from engine.ir.passes import optimise
from engine.runtime import memory_layout as lifetimes
from engine.runtime.numpy_backend import Kernels, NumPyExecutor
from engine.runtime.prepared_plan import PreparedPlan, Region
from tests.contract.cases import Array, Case, each, feeds_of
from tests.sampling import together

pytest.importorskip("llvmlite")
PLENTY = 1 << 40
STORE = KernelStore()


def reads_indices(case: Case) -> bool:
    return any(operand.kind == "int" and operand.shape != (0,) for operand in case.sample.operands)


def plans(case: Case, arrays: list[Array]) -> tuple[Plan, list[Plan]]:
    """The results, and the gradients that there are: as NumPy runs them, and compiled for one thread and for three."""
    written = case.write(arrays)
    seeds = [(y, y.full_like(1.0)) for y in written.float_outputs]
    gradients = vjp_or_zeros(written.builder, seeds, written.float_operands)
    graph = optimise(written.builder.graph([*written.outputs, *gradients]))
    compiled = [compiled_within(graph, PLENTY, threads) for threads in (1, 3)]
    return make_plan(graph, Limits()), [each.plan for each in compiled if each is not None]


def looked_up() -> tuple[Program, dict[Any, Array]]:
    """Rows, and indices with which four ops read or add, one after the other, with loops between them."""
    rng, names = np.random.default_rng(0), registry().ops
    feeds: dict[Any, Array] = {0: rng.normal(size=(40, 30))}
    feeds |= {k: rng.integers(0, 30, (40, 30)) for k in (1, 2, 3)} | {4: rng.integers(0, 30, 40)}
    statements = [Statement(names["input"])] * 5
    for k, op in enumerate(("gather", "scatter_add", "take_along", "cross_entropy"), 1):
        last = len(statements)
        statements.append(Statement(names["tanh"], (last - 1 if k > 1 else 0,)))
        attrs = {} if op == "cross_entropy" else {"axis": 1}
        statements.append(Statement(names[op], (last, k, 0) if op == "scatter_add" else (last, k), attrs))
    return Program(registry(), statements, opset=LATEST), feeds


@pytest.mark.skipif(not IS_SUPPORTED, reason="there is no runner for this system")
@pytest.mark.parametrize("which", [1, 2, 3, 4])
@pytest.mark.parametrize("threads", [1, 3])
def test_of_several_kernels_in_a_region_the_one_that_errs_is_named(which: int, threads: int) -> None:
    program, feeds = looked_up()
    last = len(program.statements) - 1
    builder, values = program.build({node: TensorType.of(feed) for node, feed in feeds.items()}, [last])
    within = compiled_within(optimise(builder.graph([values[last]])), PLENTY, threads)
    assert within is not None
    plan = within.plan
    assert sum(step.op.recipe.checked for step in plan.steps if isinstance(step.op, MicrokernelOp)) == 4
    binder = Kernels(STORE, threads).compile(plan)
    assert binder is not None
    bound = PreparedPlan(plan, NumPyExecutor(), binder)
    feeds[which].reshape(-1)[17] = 30
    error = said(bound.run, feeds)
    assert error == said(lambda feeds: NumPyExecutor().interpret(plan, feeds), feeds)
    assert error is not None
    assert error[0] == 4 + 2 * which
    assert any(isinstance(function, Region) for segment in bound._segments for function, _ in segment.calls)


def outside(arrays: list[Array], case: Case, index: int) -> dict[Any, Array] | None:
    """Feeds of which an operand of indices has one entry that no axis has; None where it has no entry at all."""
    (which, *_) = [i for i, operand in enumerate(case.sample.operands) if operand.kind == "int"]
    wrong = [array.copy() for array in arrays]
    if not wrong[which].size:
        return None
    wrong[which].reshape(-1)[-1] = index
    return feeds_of(wrong)


def said(run: Any, feeds: dict[Any, Array]) -> tuple[Any, ...] | None:
    """What an error says, and where; None where there is none."""
    try:
        run(feeds)
    except IndexOutOfRange as error:
        return error.node, error.detail, error.operand, error.expected, error.got
    return None


@together
@each(reads_indices)
@pytest.mark.parametrize("small", [0, lifetimes.SMALL_BYTES], ids=["fed as it is", "copied"])
def test_an_index_outside_is_the_same_error_in_every_tier(
    case: Case, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifetimes, "SMALL_BYTES", small)
    monkeypatch.setattr(indexing, "PICKED_AT_ONCE", 1)  # so that samples, which are small, have kernels
    arrays = case.arrays()
    plan, compiled = plans(case, arrays)
    ways: list[Any] = [lambda feeds: NumPyExecutor().run(plan, feeds)]
    for threads, made in zip((1, 3), compiled, strict=False):
        binder = Kernels(STORE, threads).compile(made)
        assert binder is not None
        ways.append(PreparedPlan(made, NumPyExecutor(), binder).run)
    for determinism in ("bitwise", "fast"):
        executor = NumPyExecutor(2, determinism=determinism, compile="on", store=STORE)  # type: ignore[arg-type]
        for _ in range(3):
            executor.run(plan, feeds_of(arrays))
            executor.settle()
        ways.append(lambda feeds, executor=executor: executor.run(plan, feeds))
    for index in (-1, 1_000, np.iinfo(np.int64).min, np.iinfo(np.int64).max):
        wrong = outside(arrays, case, index)
        if wrong is not None:
            expected = said(lambda feeds: NumPyExecutor().interpret(plan, feeds), wrong)
            assert expected is None or expected[0] is not None
            assert [said(way, wrong) for way in ways] == [expected] * len(ways)
    for way in ways:
        assert said(way, feeds_of(arrays)) is None
