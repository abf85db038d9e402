"""Running sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph.attributes import Attr
from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.op import Array, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import FLOAT16, INT64, TensorType
from engine.oplib.accumulate import accumulator
from engine.oplib.running import running_bytes, running_sums
from engine.oplib.running_op import Running


class CumSum(Running):
    """y[i] = x[0] + … + x[i] along `axis`; with `reverse`, x[i] + … + x[n − 1].

    Integers and bool add up in int64, float16 in float32. PyTorch's and NumPy's `cumsum`; `reverse` is that of JAX's
    `lax.cumsum`.
    """

    name = "cumsum"
    section = "cumsum"
    dtypes = DTYPES
    attrs = {**Running.attrs, "axis": Attr("int", doc="the axis to add up along")}
    gradient = "g, added up from the end"
    samples = (
        Sample(Real(4), axis=0),
        Sample(Real(2, 3), axis=-1),
        Sample(Real(2, 3, 2), axis=1),
        Sample(Real(0, 2), axis=0),
        Sample(Ints(2, 3, high=9), axis=0),
        Sample(Real(2, 3), axis=1, reverse=True),
    )

    def infer(self, x: TensorType, **attrs: Any) -> ResultTypes:
        """x's shape; int64 for what is not float."""
        return x if x.is_differentiable else x.with_dtype(INT64)

    def forward(self, run: RunContext, x: Array, *, out: Array, axis: int, **attrs: Any) -> None:
        """Rounded once."""
        if out.dtype == FLOAT16:
            out[...] = run.xp.cumsum(x, axis=axis, dtype=accumulator(out))
        else:
            running_sums(run, x, out, axis)

    def vjp(self, g: Value, y: Value, x: Value, *, axis: int, **attrs: Any) -> Sequence[Value | None]:
        """x[i] counts in y[i] and in all that follow."""
        return (g.flip(axes=(axis,)).cumsum(axis=axis).flip(axes=(axis,)),)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """x in the dtype that is added up in, and the sums in float32 where the result is float16; parts of both."""
        dtype, (x,) = accumulator(out), types
        if x.dtype == out.dtype == dtype:
            return running_bytes(x, dtype, attrs["axis"])
        arrays = (x.dtype != dtype) + (out.dtype != dtype)
        return int(arrays * dtype.itemsize * x.size)
