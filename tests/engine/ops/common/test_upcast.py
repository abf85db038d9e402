"""Derivative rules compute in float32 on float16 operands, with results that were not rounded."""

from __future__ import annotations

import numpy as np

from engine import registry
from engine.ops.common.numerics import upcast, upcast_operands
from tests.engine.ops.values import written

EXP = registry().ops["exp"]


def test_only_float16_is_upcast() -> None:
    for dtype, expected in (("float16", "float32"), ("float32", "float32"), ("float64", "float64"), ("int8", "int8")):
        (value,), _ = written(upcast, np.ones(2, dtype))
        assert value.dtype == expected


def test_rounded_result_is_recomputed_in_float32() -> None:
    x = np.array([0.3, 1.7], np.float16)
    _, (y, rounded) = written(lambda x: [upcast_operands(EXP, x.exp(), [x], {})[0], x.exp()], x)
    assert (y.dtype, rounded.dtype) == ("float32", "float16")
    np.testing.assert_allclose(y, np.exp(x.astype("float64")), 1e-6)
    assert (y != rounded.astype("float32")).any()
    (unchanged, _), _ = written(lambda x: upcast_operands(EXP, x.exp(), [x], {}), x.astype("float64"))
    assert unchanged.node.op is EXP
