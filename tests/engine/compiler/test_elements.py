"""Random draws in kernels have the same bits as draws alone: for every printer and shape, and in batches."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import product
from typing import Any

import numpy as np
import pytest

from engine import Batch, Compiler, Limits, Program, Statement, TensorType, registry
from engine.compiler.fused_kernel import Fused
from engine.compiler.plan import Plan
from engine.runtime.numpy_backend import NumPyExecutor
from tests.engine.printers import PRINTERS, printing, run_instead
from tests.sampling import sampled, together

KEY = np.array([2**32 - 1, 42], "uint32")
SHAPES = [(), (1,), (37,), (4, 3), (3, 1), (5, 1, 7), (300, 33)]


def draw(op: str, dtype: str, shape: Any, key: Any = KEY, kernel_threads: int = 1, **more: Any) -> tuple[Plan, bytes]:
    """The plan and the bits of a draw."""
    return run_op(op, [key], {"shape": list(shape), "dtype": dtype}, key.ndim > 1, kernel_threads, **more)


def run_op(
    op: str, arrays: list[Any], attrs: dict[str, Any], in_batch: bool = False, kernel_threads: int = 1, **more: Any
) -> tuple[Plan, bytes]:
    """The plan of an op on inputs, optionally with a leading batch axis, and the bits of its result."""
    ops = registry().ops
    statements = [*[Statement(ops["input"]) for _ in arrays], Statement(ops[op], tuple(range(len(arrays))), attrs)]
    program = Program(registry(), statements, opset=2)
    feeds = dict(enumerate(map(np.asarray, arrays)))
    types = {i: TensorType.of(x) for i, x in feeds.items()}
    call = Batch.of_program(program, types, list(types)) if in_batch else None
    compiler = Compiler(more.get("limits", Limits()), kernel_threads=kernel_threads)
    compiled = compiler.forward(program, types) if call is None else compiler.compile(program, types, call)
    (result,) = NumPyExecutor().run(compiled.plan, feeds)
    return compiled.plan, result.tobytes()


def covered_pairs(case: tuple[str, tuple[int, ...], str]) -> list[Hashable]:
    """Pair the printer of a case with its shape and with its dtype."""
    printer, shape, dtype = case
    return [(printer, shape), (printer, dtype)]


CASES = [*product(["none", *PRINTERS], SHAPES, ["float32", "float64"])]


@pytest.mark.parametrize(("printer", "shape", "dtype"), sampled(CASES, covered_pairs), ids=str)
def test_threefry_bits_do_not_depend_on_the_printer(printer: str, shape: tuple[int, ...], dtype: str) -> None:
    alone, expected = draw("random_uniform", dtype, shape, kernel_threads=0)
    assert [step.op.name for step in alone.steps] == ["random_uniform"]
    with printing(printer):
        plan, actual = draw("random_uniform", dtype, shape)
        assert actual == expected
        if printer != "none":
            assert any(isinstance(step.op, Fused) for step in run_instead(plan).steps)


@pytest.mark.parametrize("printer", PRINTERS)
def test_batched_threefry_bits_match_single_draws(printer: str) -> None:
    keys = np.arange(10, dtype="uint32").reshape(5, 2)
    with printing(printer):
        for dtype in ("float32", "float64"):
            _, actual = draw("random_uniform", dtype, (4, 6), keys)
            assert actual == b"".join(draw("random_uniform", dtype, (4, 6), key, kernel_threads=0)[1] for key in keys)


#: ops on words: random bits, split keys and folded-in numbers
WORDS: list[tuple[str, list[Any], dict[str, Any]]] = [
    *(("random_bits", [KEY], {"shape": list(shape)}) for shape in SHAPES),
    *(("random_split", [KEY], {"k": k}) for k in (1, 2, 7, 3000)),
    *(("random_fold_in", [KEY, np.array(number)], {}) for number in (0, 7, -3, 2**32 + 5, 2**31 - 1, 2**31, -(2**63))),
    *(("random_fold_in", [KEY, np.array(100, dtype)], {}) for dtype in ("int8", "uint8", "int32", "uint32")),
    ("random_fold_in", [KEY, np.array(-100, "int8")], {}),
    ("random_fold_in", [KEY, np.array(2**32 - 1, "uint32")], {}),
]


@together
@pytest.mark.parametrize(("op", "arrays", "attrs"), WORDS, ids=str)
@pytest.mark.parametrize("printer", ["none", *PRINTERS])
def test_word_bits_do_not_depend_on_the_printer(
    printer: str, op: str, arrays: list[Any], attrs: dict[str, Any]
) -> None:
    """Many words are NaN as floats: none may change on its way."""
    alone, expected = run_op(op, arrays, attrs, kernel_threads=0)
    assert [step.op.name for step in alone.steps] == [op]
    with printing(printer):
        plan, actual = run_op(op, arrays, attrs)
        assert actual == expected
        if printer != "none":
            assert any(isinstance(step.op, Fused) for step in run_instead(plan).steps)


@pytest.mark.parametrize("printer", PRINTERS)
def test_batched_words_match_single_words(printer: str) -> None:
    keys, numbers = np.arange(2**31 - 5, 2**31 + 5, dtype="uint32").reshape(5, 2), np.arange(-2, 3)
    cases: list[tuple[str, list[Any], dict[str, Any]]] = [
        ("random_bits", [keys], {"shape": []}),
        ("random_bits", [keys], {"shape": [3, 2]}),
        ("random_split", [keys], {"k": 3}),
        ("random_fold_in", [keys, numbers], {}),
        ("random_key", [numbers], {}),
    ]
    with printing(printer):
        for op, arrays, attrs in cases:
            plan, actual = run_op(op, arrays, attrs, in_batch=True)
            assert op == "random_key" or any(isinstance(step.op, Fused) for step in run_instead(plan).steps)
            alone = [run_op(op, list(each), attrs, kernel_threads=0)[1] for each in zip(*arrays, strict=True)]
            assert actual == b"".join(alone)


def test_random_key_bits_do_not_depend_on_kernels() -> None:
    for seed in (0, 42, -7, 2**33 + 5):
        assert run_op("random_key", [seed], {})[1] == run_op("random_key", [seed], {}, kernel_threads=0)[1]


def test_draws_are_fused_with_their_consumers() -> None:
    with printing("numpy"):
        plan, _ = draw("random_normal", "float32", (40, 50))
        kernels = [step.op for step in run_instead(plan).steps if isinstance(step.op, Fused)]
    assert len(kernels) == 1
    ops = {instruction.op for instruction in kernels[0].kernel.instructions}
    assert {"threefry_uniform", "erfinv"} <= ops


def test_draws_are_not_expanded_without_memory_for_counters() -> None:
    count = 10_000
    roomy, expected = draw("random_uniform", "float64", (count,))
    assert "uniform_element" in {step.op.name for step in roomy.steps}
    tight, actual = draw("random_uniform", "float64", (count,), limits=Limits(bytes=8 * count + 1000))
    assert [step.op.name for step in tight.steps] == ["random_uniform"]
    assert actual == expected


def test_counters_beyond_one_word_are_not_expanded() -> None:
    ops, attrs = registry().ops, {"shape": [2**16, 2**16], "dtype": "float32"}
    program = Program(registry(), [Statement(ops["input"]), Statement(ops["random_uniform"], (0,), attrs)], opset=2)
    plan = Compiler(Limits(bytes=1 << 40, flops=1 << 60)).forward(program, {0: TensorType.of(KEY)}).plan
    assert [step.op.name for step in plan.steps] == ["random_uniform"]
