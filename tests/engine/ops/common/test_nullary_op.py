"""Ops without operands: the numbers that a dtype can represent."""

from __future__ import annotations

import numpy as np
import pytest

from engine import registry
from engine.ir.errors import BadAttribute, DtypeMismatch
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import TensorType
from engine.ops.common.numerics import (
    NullaryOp,
    check_representable,
    integer_limits,
    is_integral,
    is_representable,
    require_real,
)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64"])
def test_integer_limits(dtype: str) -> None:
    kind = np.dtype(dtype)
    low, high = integer_limits(kind)
    assert np.array([low, high]).astype(kind).tolist() == ([False, True] if dtype == "bool" else [low, high])
    assert is_representable(low, kind)
    assert is_representable(high, kind)
    assert not is_representable(high + 1, kind)
    assert not is_representable(low - 1 if low > -(2**60) else -(2.0**64), kind)
    assert not is_representable(0.5, kind)
    with pytest.raises(BadAttribute, match=rf"fill must be a whole number that {dtype} can represent, but is 0\.5"):
        check_representable(0.5, kind)


def test_bool_limits() -> None:
    assert integer_limits(np.dtype("bool")) == (0, 1)


def test_require_real_refuses_complex() -> None:
    for dtype in ("float64", "int8", "bool"):
        require_real(np.dtype(dtype))
    with pytest.raises(DtypeMismatch, match="dtype must be a dtype that is not complex, but is complex64"):
        require_real(np.dtype("complex64"))


def test_any_number_is_representable_as_a_float() -> None:
    assert is_representable(1e300, np.dtype("float16"))
    assert [is_integral(x) for x in (2.0, 2.5, -0.0)] == [True, False, True]


@pytest.mark.parametrize("device", ["cpu", "new"])
def test_dense_constant_is_not_copied_on_the_cpu(device: str) -> None:
    constant = registry().ops["constant"]
    assert isinstance(constant, NullaryOp)
    run = RunContext(np, device=device)
    for value in (np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2).T, np.array(3)):
        actual = constant.tensor(run, TensorType.of(value), value=value)
        assert actual.flags.c_contiguous
        np.testing.assert_array_equal(actual, value)
        assert np.shares_memory(actual, value) == (device == "cpu" and value.flags.c_contiguous)
