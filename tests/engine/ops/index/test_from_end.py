"""Negative indices count from the end: NumPy is the reference, for every op with `from_end`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import LATEST, Builder, Compiler, EngineError, Limits, Program, Statement, TensorType, registry
from engine.ir.errors import BadAttribute, IndexOutOfRange
from engine.ops.index.indices import list_from_front, make_non_negative, within_extent
from engine.runtime.numpy_backend import NumPyExecutor
from tests.contract.cases import run_graph

Array = np.ndarray[Any, Any]
X = np.arange(12.0).reshape(4, 3)


def run_op(op: str, *operands: Array, opset: int = LATEST, **attrs: Any) -> Array:
    """The value of one node on inputs."""
    ops, n = registry().ops, len(operands)
    statements = [*[Statement(ops["input"])] * n, Statement(ops[op], tuple(range(n)), attrs)]
    types = {i: TensorType.of(x) for i, x in enumerate(operands)}
    plan = Compiler(Limits()).forward(Program(registry(), statements, opset=opset), types, [n]).plan
    return NumPyExecutor().run(plan, dict(enumerate(operands)))[0]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_every_index_dtype_matches_numpy(dtype: str) -> None:
    index = np.array([3, 0, 1], dtype) if dtype == "uint8" else np.array([-1, -4, 1], dtype)
    rows = np.arange(200.0)  # int8 counts to 127
    np.testing.assert_array_equal(run_op("embedding", rows, index, from_end=True), rows[index])


def test_every_op_matches_numpy() -> None:
    index = np.array([[-1, -4, 2], [0, -2, -3]])
    expected = np.take_along_axis(X, index, 0)
    np.testing.assert_array_equal(run_op("gather", X, index, from_end=True), expected)
    np.testing.assert_array_equal(run_op("take_along", X, index, from_end=True), expected)
    np.testing.assert_array_equal(run_op("gather", X, indices=[-1, 1], axis=1, from_end=True), X[:, [-1, 1]])
    added = X.copy()
    np.add.at(added, (index, np.arange(3)), 1.0)
    np.testing.assert_array_equal(run_op("scatter_add", X, index, np.ones((2, 3)), from_end=True), added)


@pytest.mark.parametrize("entry", [-5, 4, -(2**63), 2**63 - 1])
def test_out_of_range_index_is_refused(entry: int) -> None:
    with pytest.raises(IndexOutOfRange, match=r"operand 1 holds .* in \[-4, 4\)") as caught:
        run_op("embedding", X, np.array([0, entry]), from_end=True)
    assert (caught.value.node, caught.value.operand) == (2, 1)


def test_out_of_range_index_list_is_refused_at_compile_time() -> None:
    with pytest.raises(BadAttribute, match=r"indices must lie in \[-4, 4\), but holds -5"):
        run_op("gather", X, indices=[-5], from_end=True)
    with pytest.raises(BadAttribute, match=r"indices must lie in \[0, 4\), but holds -1"):
        run_op("gather", X, indices=[-1])


@pytest.mark.parametrize("op", ["gather", "take_along", "embedding", "scatter_add"])
def test_from_end_is_refused_in_opset_1(op: str) -> None:
    operands = [np.zeros(3), np.array([0]), np.zeros(1)][: len(registry().ops[op].operands)]
    with pytest.raises(BadAttribute, match=r'the attribute from_end needs opset 2: add "opset": 2') as caught:
        run_op(op, *operands, opset=1, from_end=True)
    assert caught.value.node == len(operands)
    assert isinstance(caught.value, EngineError)


def test_list_from_front() -> None:
    assert list_from_front([-1, 0, 2, -4, -5, 4], 4) == (3, 0, 2, 0, -5, 4)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
@pytest.mark.parametrize("from_end", [False, True])
def test_within_extent_matches_its_decomposition(dtype: str, from_end: bool) -> None:
    """Covers 0, the last index, and negative ones, which are refused unless they count from the end."""
    has_negative = from_end and dtype != "uint8"
    index = np.array([0, 3, -1, -4] if has_negative else [0, 3, 1, 2], dtype)
    builder = Builder(registry())
    x = builder.leaf(TensorType.of(index), 0)
    checked = within_extent(x, 4, 1, from_end)
    (decomposed,) = checked.node.op.written_out(x, **checked.node.attrs)
    for actual in run_graph(builder.graph([checked, decomposed]), {0: index}):
        assert actual.dtype == "int64"
        np.testing.assert_array_equal(actual, np.arange(4)[index])
    if dtype != "uint8" and not from_end:
        with pytest.raises(IndexOutOfRange, match=r"in \[0, 4\)"):
            run_graph(builder.graph([checked]), {0: np.array([0, 3, -1, 2], dtype)})


def test_make_non_negative_skips_non_negative_indices() -> None:
    builder = Builder(registry())
    x, y = (builder.leaf(TensorType((2,), np.dtype(dtype)), dtype) for dtype in ("int64", "uint8"))
    assert make_non_negative(x, 4, 1, False) is x
    assert make_non_negative(y, 4, 1, True) is y
    assert make_non_negative(y, 4, 1, False) is y
    assert make_non_negative(x, 4, 1, True).node.op.name == "from_end"
