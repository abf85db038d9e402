"""Out-of-range indices: every execution tier raises the same error, with the same node, message and fields."""

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
from tests.contract.cases import Array, Case, feeds_of, sample
from tests.sampling import together

pytest.importorskip("llvmlite")
PLENTY = 1 << 40
STORE = KernelStore()


def reads_indices(case: Case) -> bool:
    return any(operand.kind == "int" and operand.shape != (0,) for operand in case.sample.operands)


def plans(case: Case, arrays: list[Array]) -> tuple[Plan, list[Plan]]:
    """Return the plan of results and gradients for NumPy, and compiled for one and three threads."""
    written = case.write(arrays)
    seeds = [(y, y.full_like(1.0)) for y in written.float_outputs]
    gradients = vjp_or_zeros(written.builder, seeds, written.float_operands)
    graph = optimise(written.builder.graph([*written.outputs, *gradients]))
    compiled = [compiled_within(graph, PLENTY, threads) for threads in (1, 3)]
    return make_plan(graph, Limits()), [each.plan for each in compiled if each is not None]


def lookup_program() -> tuple[Program, dict[Any, Array]]:
    """Return a program of four indexing ops in sequence, with elementwise ops between them, and its feeds."""
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
@pytest.mark.parametrize("indices", [1, 2, 3, 4])
@pytest.mark.parametrize("threads", [1, 3])
def test_region_error_names_failing_node(indices: int, threads: int) -> None:
    program, feeds = lookup_program()
    last = len(program.statements) - 1
    builder, values = program.build({node: TensorType.of(feed) for node, feed in feeds.items()}, [last])
    compiled = compiled_within(optimise(builder.graph([values[last]])), PLENTY, threads)
    assert compiled is not None
    plan = compiled.plan
    assert sum(step.op.recipe.checked for step in plan.steps if isinstance(step.op, MicrokernelOp)) == 4
    binder = Kernels(STORE, threads).compile(plan)
    assert binder is not None
    bound = PreparedPlan(plan, NumPyExecutor(), binder)
    feeds[indices].reshape(-1)[17] = 30
    error = error_fields(bound.run, feeds)
    assert error == error_fields(lambda feeds: NumPyExecutor().interpret(plan, feeds), feeds)
    assert error is not None
    assert error[0] == 4 + 2 * indices
    assert any(isinstance(function, Region) for segment in bound._segments for function, _ in segment.calls)


def feeds_with_index(arrays: list[Array], case: Case, index: int) -> dict[Any, Array] | None:
    """Return feeds with one index replaced, or None if there are no indices."""
    (operand_index, *_) = [i for i, operand in enumerate(case.sample.operands) if operand.kind == "int"]
    changed = [array.copy() for array in arrays]
    if not changed[operand_index].size:
        return None
    changed[operand_index].reshape(-1)[-1] = index
    return feeds_of(changed)


def error_fields(run: Any, feeds: dict[Any, Array]) -> tuple[Any, ...] | None:
    """Return the fields of the index error that `run` raises, or None."""
    try:
        run(feeds)
    except IndexOutOfRange as error:
        return error.node, error.detail, error.operand, error.expected, error.got
    return None


@together
@sample(reads_indices)
@pytest.mark.parametrize("small", [0, lifetimes.SMALL_BYTES], ids=["fed as it is", "copied"])
def test_out_of_range_index_error_is_same_in_every_tier(
    case: Case, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifetimes, "SMALL_BYTES", small)
    monkeypatch.setattr(indexing, "PICKED_AT_ONCE", 1)  # so that small samples get kernels
    arrays = case.arrays()
    plan, compiled = plans(case, arrays)
    runs: list[Any] = [lambda feeds: NumPyExecutor().run(plan, feeds)]
    for threads, compiled_plan in zip((1, 3), compiled, strict=False):
        binder = Kernels(STORE, threads).compile(compiled_plan)
        assert binder is not None
        runs.append(PreparedPlan(compiled_plan, NumPyExecutor(), binder).run)
    for determinism in ("bitwise", "fast"):
        executor = NumPyExecutor(2, determinism=determinism, compile="on", store=STORE)  # type: ignore[arg-type]
        for _ in range(3):
            executor.run(plan, feeds_of(arrays))
            executor.settle()
        runs.append(lambda feeds, executor=executor: executor.run(plan, feeds))
    for index in (-1, 1_000, np.iinfo(np.int64).min, np.iinfo(np.int64).max):
        invalid_feeds = feeds_with_index(arrays, case, index)
        if invalid_feeds is not None:
            expected = error_fields(lambda feeds: NumPyExecutor().interpret(plan, feeds), invalid_feeds)
            assert expected is None or expected[0] is not None
            assert [error_fields(run, invalid_feeds) for run in runs] == [expected] * len(runs)
    for run in runs:
        assert error_fields(run, feeds_of(arrays)) is None
