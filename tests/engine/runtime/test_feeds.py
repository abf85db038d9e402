"""The engine as a library: feeds must match the plan, and results cannot overwrite feeds or constants."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from engine import (
    COTANGENTS,
    Builder,
    Compiler,
    EngineError,
    Limits,
    Plan,
    Program,
    Statement,
    TensorType,
    open_executor,
    registry,
)
from engine.compiler.fusion import fuse
from engine.compiler.plan import make_plan
from engine.runtime.numpy_backend import NumPyExecutor

CPU = open_executor("cpu")
X = np.arange(6.0).reshape(2, 3)


def line(op: str, *operands: int, **attrs: Any) -> Statement:
    return Statement(registry().ops[op], operands, attrs)


def planned(*nodes: Statement) -> Plan:
    return Compiler(Limits()).forward(Program(registry(), [line("input"), *nodes]), {0: TensorType.of(X)}).plan


SQUARE = planned(line("square", 0))

WRONG = {
    "another shape": (X[:1], "shape_mismatch", "the feed of node 0 must have shape [2, 3], but has [1, 3]"),
    "another rank": (X[0], "shape_mismatch", "the feed of node 0 must have shape [2, 3], but has [3]"),
    "another dtype": (X.astype("float32"), "dtype_mismatch", "the feed of node 0 must be float64, but is float32"),
    "whole numbers": (X.astype("int64"), "dtype_mismatch", "the feed of node 0 must be float64, but is int64"),
}


@pytest.mark.parametrize(("feed", "code", "detail"), WRONG.values(), ids=WRONG)
def test_feed_of_another_type_is_refused(feed: Any, code: str, detail: str) -> None:
    for run in (CPU.run, CPU.execute):
        with pytest.raises(EngineError) as caught:
            run(SQUARE, {0: feed})
        assert (caught.value.code, caught.value.node, str(caught.value)) == (code, 0, detail)


def test_missing_feed_is_named() -> None:
    for run in (CPU.run, CPU.execute):
        with pytest.raises(EngineError, match="the feed of node 0 is missing") as caught:
            run(SQUARE, {1: X})
        assert (caught.value.code, caught.value.node) == ("missing_feed", 0)


def test_error_names_the_role_of_a_cotangent_feed() -> None:
    program = Program(registry(), [line("parameter"), line("square", 0)])
    plan = Compiler(Limits()).gradients(program, {0: TensorType.of(X)}, cotangent=TensorType.of(X)).plan
    with pytest.raises(EngineError) as caught:
        CPU.run(plan, {0: X, (COTANGENTS, 1): X[0]})
    assert str(caught.value) == "the feed of node 1 under cotangents must have shape [2, 3], but has [3]"
    assert (caught.value.code, caught.value.node) == ("shape_mismatch", 1)


def test_result_that_is_a_feed_is_read_only() -> None:
    feed = X.copy()
    for plan in (planned(), planned(line("reshape", 0, shape=[3, 2]))):
        (result,) = CPU.run(plan, {0: feed})
        with pytest.raises(ValueError, match="read-only"):
            result[...] = 0
    assert feed.flags.writeable
    np.testing.assert_array_equal(feed, X)


def test_computed_result_is_writable() -> None:
    constant = Program(registry(), [line("constant", value=X)])
    for plan in (SQUARE, planned(line("transpose", 0)), Compiler(Limits()).forward(constant, {}).plan):
        feeds: dict[Any, Any] = dict.fromkeys(plan.feeds, X)
        (first,) = CPU.run(plan, feeds)
        copy = first.copy()
        first[...] = np.nan
        np.testing.assert_array_equal(CPU.run(plan, feeds)[0], copy)


# ---------------------------------------------------------------- memory layout of feeds


def layouts_of(x: Any) -> dict[str, Any]:
    """Return the same numbers in other memory layouts: transposed, strided, reversed, misaligned."""
    wide = np.full((2 * x.shape[0], 3 * x.shape[1]), np.nan, x.dtype)
    wide[1::2, ::3] = x
    layouts = {
        "columns first": np.asfortranarray(x),
        "apart": wide[1::2, ::3],
        "backwards": x[::-1, ::-1].copy()[::-1, ::-1],
    }
    for offset in (1, 3, x.itemsize, 8 * x.itemsize):
        whole = np.full(x.nbytes + 128, 0xFF, np.uint8)
        start = -whole.ctypes.data % 64 + offset
        unaligned = whole[start : start + x.nbytes]
        unaligned[...] = np.frombuffer(x.tobytes(), np.uint8)
        layouts[f"{offset} bytes askew"] = unaligned.view(x.dtype).reshape(x.shape)
    return layouts


def mixed_plan(x: Any, *, fused: bool = False) -> Plan:
    """Return a plan of elementwise ops, a softmax, sums over rows, columns and all, a product, a view and the feed."""
    leaf = Builder(registry()).leaf(TensorType.of(x), 0)
    y = (leaf * 1.5).tanh() + leaf.sin()
    sums = [y.sum(), y.sum(axes=(0,)), (leaf * leaf).mean(axes=(1,)), leaf.sum(axes=(0,)), leaf.cumsum(axis=0)]
    graph = y.builder.graph([y, leaf.softmax(axis=-1), *sums, leaf @ leaf.transpose(), leaf.transpose(), leaf])
    return make_plan(fuse(graph, 0, compiled=True) if fused else graph, Limits())


EXECUTORS: list[tuple[Any, Any]] = [("fast", "off")]
if find_spec("llvmlite"):
    EXECUTORS += [("fast", "on"), ("bitwise", "on")]


@pytest.mark.parametrize(("determinism", "compile"), EXECUTORS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(7, 5), (130, 260)], ids=["copied", "read as it is"])
def test_bits_do_not_depend_on_the_layout_of_feeds(
    determinism: Any, compile: Any, dtype: str, shape: tuple[int, int]
) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    plan = mixed_plan(x, fused=determinism == "bitwise")
    executor = NumPyExecutor(2, determinism=determinism, compile=compile)
    for _ in range(3):
        executor.run(plan, {0: x})
        executor.settle()
    assert executor.kernels or compile == "off"
    expected = [array.tobytes() for array in executor.run(plan, {0: x})]
    for name, feed in layouts_of(x).items():
        for run in (executor.run, executor.execute):
            assert [np.asarray(array).tobytes() for array in run(plan, {0: feed})] == expected, (name, run)
    interpreted = [array.tobytes() for array in executor.interpret(plan, {0: x})]
    for name, feed in layouts_of(x).items():
        assert [array.tobytes() for array in executor.interpret(plan, {0: feed})] == interpreted, name


@pytest.mark.parametrize(("determinism", "compile"), EXECUTORS)
def test_broadcast_feed_is_read_correctly(determinism: Any, compile: Any) -> None:
    plan = mixed_plan(np.empty((130, 260)))
    executor = NumPyExecutor(determinism=determinism, compile=compile)
    feed = np.broadcast_to(np.float64(0.3), (130, 260))
    for _ in range(3):
        for run in (executor.run, executor.execute):
            np.testing.assert_allclose(run(plan, {0: feed})[2], 130 * 260 * (np.tanh(0.45) + np.sin(0.3)), 1e-9)
        executor.settle()
