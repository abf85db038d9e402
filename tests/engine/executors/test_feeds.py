"""The engine as a library: a plan runs on the feeds that it was made for, and its results are nobody's to overwrite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import (
    COTANGENTS,
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
