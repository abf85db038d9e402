"""Rules compute in float32 with what is float16, and with results that were not rounded."""

from __future__ import annotations

import numpy as np

from engine import registry
from engine.ops.common.numerics import upcast, upcast_operands
from tests.engine.ops.values import written

EXP = registry().ops["exp"]


def test_float16_alone_is_widened() -> None:
    for dtype, wanted in (("float16", "float32"), ("float32", "float32"), ("float64", "float64"), ("int8", "int8")):
        (made,), _ = written(upcast, np.ones(2, dtype))
        assert made.dtype == wanted


def test_a_rounded_result_is_found_once_more() -> None:
    x = np.array([0.3, 1.7], np.float16)
    _, (y, again) = written(lambda x: [upcast_operands(EXP, x.exp(), [x], {})[0], x.exp()], x)
    assert (y.dtype, again.dtype) == ("float32", "float16")
    np.testing.assert_allclose(y, np.exp(x.astype("float64")), 1e-6)
    assert (y != again.astype("float32")).any()
    (kept, _), _ = written(lambda x: upcast_operands(EXP, x.exp(), [x], {}), x.astype("float64"))
    assert kept.node.op is EXP
