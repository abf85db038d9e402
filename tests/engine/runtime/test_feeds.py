"""The engine as a library: a plan runs on the feeds that it was made for, and its results are nobody's to overwrite."""

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
def test_a_feed_of_another_type_is_refused(feed: Any, code: str, detail: str) -> None:
    for run in (CPU.run, CPU.execute):
        with pytest.raises(EngineError) as caught:
            run(SQUARE, {0: feed})
        assert (caught.value.code, caught.value.node, str(caught.value)) == (code, 0, detail)


def test_a_missing_feed_is_named() -> None:
    for run in (CPU.run, CPU.execute):
        with pytest.raises(EngineError, match="the feed of node 0 is missing") as caught:
            run(SQUARE, {1: X})
        assert (caught.value.code, caught.value.node) == ("missing_feed", 0)


def test_what_is_fed_beside_leaves_is_named_by_its_role() -> None:
    program = Program(registry(), [line("parameter"), line("square", 0)])
    plan = Compiler(Limits()).gradients(program, {0: TensorType.of(X)}, cotangent=TensorType.of(X)).plan
    with pytest.raises(EngineError) as caught:
        CPU.run(plan, {0: X, (COTANGENTS, 1): X[0]})
    assert str(caught.value) == "the feed of node 1 under cotangents must have shape [2, 3], but has [3]"
    assert (caught.value.code, caught.value.node) == ("shape_mismatch", 1)


def test_a_result_that_is_a_feed_cannot_be_written_to() -> None:
    feed = X.copy()
    for plan in (planned(), planned(line("reshape", 0, shape=[3, 2]))):
        (result,) = CPU.run(plan, {0: feed})
        with pytest.raises(ValueError, match="read-only"):
            result[...] = 0
    assert feed.flags.writeable
    np.testing.assert_array_equal(feed, X)


def test_what_is_computed_may_be_written_to() -> None:
    constant = Program(registry(), [line("constant", value=X)])
    for plan in (SQUARE, planned(line("transpose", 0)), Compiler(Limits()).forward(constant, {}).plan):
        feeds: dict[Any, Any] = dict.fromkeys(plan.feeds, X)
        (first,) = CPU.run(plan, feeds)
        kept = first.copy()
        first[...] = np.nan
        np.testing.assert_array_equal(CPU.run(plan, feeds)[0], kept)


# ---------------------------------------------------------------- where feeds lie


def lying(x: Any) -> dict[str, Any]:
    """The same numbers in memory of other layouts, each beside others: transposed, apart, backwards, askew."""
    wide = np.full((2 * x.shape[0], 3 * x.shape[1]), np.nan, x.dtype)
    wide[1::2, ::3] = x
    found = {
        "columns first": np.asfortranarray(x),
        "apart": wide[1::2, ::3],
        "backwards": x[::-1, ::-1].copy()[::-1, ::-1],
    }
    for askew in (1, 3, x.itemsize, 8 * x.itemsize):
        whole = np.full(x.nbytes + 128, 0xFF, np.uint8)
        start = -whole.ctypes.data % 64 + askew
        place = whole[start : start + x.nbytes]
        place[...] = np.frombuffer(x.tobytes(), np.uint8)
        found[f"{askew} bytes askew"] = place.view(x.dtype).reshape(x.shape)
    return found


def of_all_kinds(x: Any, *, fused: bool = False) -> Plan:
    """Elements, a softmax, sums over rows, columns and all, a product, a view: and the feed itself."""
    leaf = Builder(registry()).leaf(TensorType.of(x), 0)
    y = (leaf * 1.5).tanh() + leaf.sin()
    sums = [y.sum(), y.sum(axes=(0,)), (leaf * leaf).mean(axes=(1,)), leaf.sum(axes=(0,)), leaf.cumsum(axis=0)]
    graph = y.builder.graph([y, leaf.softmax(axis=-1), *sums, leaf @ leaf.transpose(), leaf.transpose(), leaf])
    return make_plan(fuse(graph, 0, compiled=True) if fused else graph, Limits())


WAYS: list[tuple[Any, Any]] = [("fast", "off")]
if find_spec("llvmlite"):
    WAYS += [("fast", "on"), ("bitwise", "on")]


@pytest.mark.parametrize(("determinism", "compile"), WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(7, 5), (130, 260)], ids=["copied", "read as it is"])
def test_wherever_a_feed_lies_the_bits_are_the_same(
    determinism: Any, compile: Any, dtype: str, shape: tuple[int, int]
) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    plan = of_all_kinds(x, fused=determinism == "bitwise")
    executor = NumPyExecutor(2, determinism=determinism, compile=compile)
    for _ in range(3):
        executor.run(plan, {0: x})
        executor.settle()
    assert executor.kernels or compile == "off"
    wanted = [array.tobytes() for array in executor.run(plan, {0: x})]
    for name, fed in lying(x).items():
        for run in (executor.run, executor.execute):
            assert [np.asarray(array).tobytes() for array in run(plan, {0: fed})] == wanted, (name, run)
    interpreted = [array.tobytes() for array in executor.interpret(plan, {0: x})]
    for name, fed in lying(x).items():
        assert [array.tobytes() for array in executor.interpret(plan, {0: fed})] == interpreted, name


@pytest.mark.parametrize(("determinism", "compile"), WAYS)
def test_a_feed_that_repeats_one_number_is_read_as_often(determinism: Any, compile: Any) -> None:
    plan = of_all_kinds(np.empty((130, 260)))
    executor = NumPyExecutor(determinism=determinism, compile=compile)
    fed = np.broadcast_to(np.float64(0.3), (130, 260))
    for _ in range(3):
        for run in (executor.run, executor.execute):
            np.testing.assert_allclose(run(plan, {0: fed})[2], 130 * 260 * (np.tanh(0.45) + np.sin(0.3)), 1e-9)
        executor.settle()
