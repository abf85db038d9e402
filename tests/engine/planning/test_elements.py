"""What is drawn within a loop has the bits of what is drawn alone: by every printer, in every shape, in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Batch, Compiler, Limits, Program, Statement, TensorType, registry
from engine.executors.numpy_backend import NumPyExecutor
from engine.planning.fused import Fused
from engine.planning.plan import Plan
from tests.engine.printers import PRINTERS, printing, run_instead

KEY = np.array([2**32 - 1, 42], "uint32")
SHAPES = [(), (1,), (37,), (4, 3), (3, 1), (5, 1, 7), (300, 33)]


def drawn(op: str, dtype: str, shape: Any, key: Any = KEY, loops: int = 1, **more: Any) -> tuple[Plan, bytes]:
    """The plan, and the bits of what is drawn and of its sum with 1, which any loop would take in."""
    ops, attrs = registry().ops, {"shape": list(shape), "dtype": dtype}
    statements = [Statement(ops["input"]), Statement(ops[op], (0,), attrs)]
    program = Program(registry(), statements, opset=2)
    types = {0: TensorType.of(key)}
    call = Batch.of_program(program, types, [0]) if key.ndim > 1 else None
    compiler = Compiler(more.get("limits", Limits()), loop_threads=loops)
    compiled = compiler.forward(program, types) if call is None else compiler.compile(program, types, call)
    (found,) = NumPyExecutor().run(compiled.plan, {0: key})
    return compiled.plan, found.tobytes()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("printer", ["none", *PRINTERS])
def test_threefry_has_the_same_bits_by_every_printer(printer: str, dtype: str, shape: tuple[int, ...]) -> None:
    alone, wanted = drawn("random_uniform", dtype, shape, loops=0)
    assert [step.op.name for step in alone.steps] == ["random_uniform"]
    with printing(printer):
        plan, found = drawn("random_uniform", dtype, shape)
        assert found == wanted
        if printer != "none":
            assert any(isinstance(step.op, Fused) for step in run_instead(plan).steps)


@pytest.mark.parametrize("printer", PRINTERS)
def test_threefry_has_the_same_bits_in_a_batch_by_every_printer(printer: str) -> None:
    keys = np.arange(10, dtype="uint32").reshape(5, 2)
    with printing(printer):
        for dtype in ("float32", "float64"):
            _, found = drawn("random_uniform", dtype, (4, 6), keys)
            assert found == b"".join(drawn("random_uniform", dtype, (4, 6), key, loops=0)[1] for key in keys)


def test_draws_join_the_loop_that_computes_with_them() -> None:
    with printing("numpy"):
        plan, _ = drawn("random_normal", "float32", (40, 50))
        loops = [step.op for step in run_instead(plan).steps if isinstance(step.op, Fused)]
    assert len(loops) == 1
    ops = {instruction.op for instruction in loops[0].loop.instructions}
    assert {"threefry_uniform", "erfinv"} <= ops


def test_where_there_is_no_memory_for_counters_it_is_drawn_alone() -> None:
    count = 10_000
    roomy, wanted = drawn("random_uniform", "float64", (count,))
    assert "uniform_element" in {step.op.name for step in roomy.steps}
    tight, found = drawn("random_uniform", "float64", (count,), limits=Limits(bytes=8 * count + 1000))
    assert [step.op.name for step in tight.steps] == ["random_uniform"]
    assert found == wanted


def test_counters_beyond_one_word_are_not_written_in_elements() -> None:
    ops, attrs = registry().ops, {"shape": [2**16, 2**16], "dtype": "float32"}
    program = Program(registry(), [Statement(ops["input"]), Statement(ops["random_uniform"], (0,), attrs)], opset=2)
    plan = Compiler(Limits(bytes=1 << 40, flops=1 << 60)).forward(program, {0: TensorType.of(KEY)}).plan
    assert [step.op.name for step in plan.steps] == ["random_uniform"]
