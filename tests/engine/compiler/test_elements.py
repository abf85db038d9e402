"""What is drawn within a loop has the bits of what is drawn alone: by every printer, in every shape, in a batch."""

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


def drawn(op: str, dtype: str, shape: Any, key: Any = KEY, loops: int = 1, **more: Any) -> tuple[Plan, bytes]:
    """The plan, and the bits of what is drawn."""
    return made(op, [key], {"shape": list(shape), "dtype": dtype}, key.ndim > 1, loops, **more)


def made(
    op: str, arrays: list[Any], attrs: dict[str, Any], in_batch: bool = False, loops: int = 1, **more: Any
) -> tuple[Plan, bytes]:
    """The plan of an op on inputs, each of which may have a batch's axis in front, and the bits of its result."""
    ops = registry().ops
    statements = [*[Statement(ops["input"]) for _ in arrays], Statement(ops[op], tuple(range(len(arrays))), attrs)]
    program = Program(registry(), statements, opset=2)
    feeds = dict(enumerate(map(np.asarray, arrays)))
    types = {i: TensorType.of(x) for i, x in feeds.items()}
    call = Batch.of_program(program, types, list(types)) if in_batch else None
    compiler = Compiler(more.get("limits", Limits()), kernel_threads=loops)
    compiled = compiler.forward(program, types) if call is None else compiler.compile(program, types, call)
    (found,) = NumPyExecutor().run(compiled.plan, feeds)
    return compiled.plan, found.tobytes()


def printed(case: tuple[str, tuple[int, ...], str]) -> list[Hashable]:
    """A printer with each shape, and each dtype."""
    printer, shape, dtype = case
    return [(printer, shape), (printer, dtype)]


PRINTED = [*product(["none", *PRINTERS], SHAPES, ["float32", "float64"])]


@pytest.mark.parametrize(("printer", "shape", "dtype"), sampled(PRINTED, printed), ids=str)
def test_threefry_has_the_same_bits_by_every_printer(printer: str, shape: tuple[int, ...], dtype: str) -> None:
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


#: what is made of words: bits in rows and alone, keys that are split off, and numbers that are folded in
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
def test_words_have_the_same_bits_by_every_printer(
    printer: str, op: str, arrays: list[Any], attrs: dict[str, Any]
) -> None:
    """Many of them are no number as a float: none may be changed on its way."""
    alone, wanted = made(op, arrays, attrs, loops=0)
    assert [step.op.name for step in alone.steps] == [op]
    with printing(printer):
        plan, found = made(op, arrays, attrs)
        assert found == wanted
        if printer != "none":
            assert any(isinstance(step.op, Fused) for step in run_instead(plan).steps)


@pytest.mark.parametrize("printer", PRINTERS)
def test_words_of_a_batch_are_those_of_each(printer: str) -> None:
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
            plan, found = made(op, arrays, attrs, in_batch=True)
            assert op == "random_key" or any(isinstance(step.op, Fused) for step in run_instead(plan).steps)
            alone = [made(op, list(each), attrs, loops=0)[1] for each in zip(*arrays, strict=True)]
            assert found == b"".join(alone)


def test_a_key_is_the_words_of_its_seed() -> None:
    for seed in (0, 42, -7, 2**33 + 5):
        assert made("random_key", [seed], {})[1] == made("random_key", [seed], {}, loops=0)[1]


def test_draws_join_the_loop_that_computes_with_them() -> None:
    with printing("numpy"):
        plan, _ = drawn("random_normal", "float32", (40, 50))
        loops = [step.op for step in run_instead(plan).steps if isinstance(step.op, Fused)]
    assert len(loops) == 1
    ops = {instruction.op for instruction in loops[0].kernel.instructions}
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
