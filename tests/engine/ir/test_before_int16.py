"""Promotion of int8 with uint8: int32 in graphs of opset 1, int16 since opset 2, as in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import DTYPES, Compiler, EngineError, Limits, Program, Statement, TensorType, open_executor, registry
from engine.ir.tensor_type import INTEGERS, promote

SIGNED, UNSIGNED = np.array([[100, -100], [7, 127]], "int8"), np.array([[200, 3], [9, 255]], "uint8")
ROW = np.array([255, 1], "uint8")


def run(opset: int, op: str, *arrays: Any, **attrs: Any) -> np.ndarray[Any, Any]:
    ops, feeds = registry().ops, dict(enumerate(map(np.asarray, arrays)))
    statements = [*[Statement(ops["input"])] * len(feeds), Statement(ops[op], tuple(feeds), attrs)]
    program = Program(registry(), statements, opset=opset)
    plan = Compiler(Limits()).forward(program, {i: TensorType.of(a) for i, a in feeds.items()}).plan
    result: np.ndarray[Any, Any] = open_executor("cpu").run(plan, feeds)[0]
    return result


def test_int16_needs_opset_2() -> None:
    assert "int16" in INTEGERS
    assert promote(np.dtype("int8"), np.dtype("uint8")) == np.int16
    x = np.array([1, -2], "int16")
    assert run(2, "add", x, x).dtype == np.int16
    with pytest.raises(EngineError, match=r"node 0 \(input\): the feed is int16, which needs opset 2"):
        run(1, "add", x, x)
    with pytest.raises(EngineError, match=r"attribute dtype is int16, which needs opset 2"):
        run(1, "cast", SIGNED, dtype="int16")


@pytest.mark.parametrize("op", ["add", "sub", "mul", "maximum", "matmul"])
def test_arithmetic_uses_the_common_dtype(op: str) -> None:
    function = getattr(np, {"sub": "subtract", "mul": "multiply"}.get(op, op))
    first, second = run(1, op, SIGNED, UNSIGNED), run(2, op, SIGNED, UNSIGNED)
    assert (first.dtype, second.dtype) == (np.int32, np.int16)
    np.testing.assert_array_equal(first, function(SIGNED.astype("int32"), UNSIGNED.astype("int32")))
    np.testing.assert_array_equal(second, function(SIGNED, UNSIGNED))


def test_pow_wraps_only_since_opset_2() -> None:
    assert run(1, "pow", np.array([-100], "int8"), np.array([3], "uint8")).tolist() == [-1_000_000]
    wrapped = (-1_000_000 + 2**15) % 2**16 - 2**15
    assert run(2, "pow", np.array([-100], "int8"), np.array([3], "uint8")).tolist() == [wrapped]


@pytest.mark.parametrize(
    ("op", "operands", "attrs"),
    [
        ("cat", (SIGNED, UNSIGNED), {"axis": 0}),
        ("stack", (SIGNED, UNSIGNED), {"axis": 0}),
        ("where", (SIGNED > 0, SIGNED, UNSIGNED), {}),
        ("where", (SIGNED, SIGNED, UNSIGNED), {}),
        ("einsum", (SIGNED, UNSIGNED), {"equation": "ij,jk->ik"}),
        ("einsum", (SIGNED, SIGNED, UNSIGNED), {"equation": "ij,jk,kl->il"}),
        ("update_slice", (SIGNED, UNSIGNED[:1]), {"starts": [0, 0]}),
        ("scatter_add", (SIGNED, np.zeros((2, 2), "uint8"), UNSIGNED), {}),
    ],
)
def test_joining_ops_promote_their_operands(op: str, operands: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    first = run(1, op, *operands, **attrs)
    wide = [x.astype("int32") if x.dtype in (np.int8, np.uint8) else x for x in operands]
    assert (first.dtype, run(2, op, *operands, **attrs).dtype) == (np.int32, np.int16)
    np.testing.assert_array_equal(first, run(1, op, *wide, **attrs))


def test_linear_promotes_only_at_the_bias() -> None:
    """x w is int8 and wraps; adding the bias promotes it to int32."""
    product = np.matmul(SIGNED, SIGNED)
    assert product.dtype == np.int8
    result = run(1, "linear", SIGNED, SIGNED, ROW)
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, product.astype("int32") + ROW)
    assert run(1, "linear", SIGNED, UNSIGNED, ROW, activation="tanh").dtype == np.float64


def test_indexing_keeps_the_dtype() -> None:
    index = np.array([[1, 0]], "uint8")
    for opset in (1, 2):
        assert run(opset, "gather", SIGNED, index).dtype == np.int8
        assert run(opset, "scatter_add", SIGNED, index, SIGNED[:1]).dtype == np.int8
        assert run(opset, "equal", SIGNED, UNSIGNED).dtype == np.bool_


@pytest.mark.parametrize("dtype", DTYPES)
def test_int16_promotion_matches_numpy(dtype: str) -> None:
    assert promote(np.dtype("int16"), np.dtype(dtype)) == np.result_type(np.int16, np.dtype(dtype))
