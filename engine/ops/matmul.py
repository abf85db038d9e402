"""Products of matrices, and Einstein summation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.op import Array, KernelCall, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import TensorType
from engine.oplib import batching
from engine.oplib.accumulate import accumulator, wide_out_bytes
from engine.oplib.conjugates import adjoint
from engine.oplib.elementwise import unbroadcast
from engine.oplib.permutation import shaped
from engine.oplib.product import is_readable, product_shape, product_type


class MatMul(Op):
    """y = a @ b, as NumPy: y[…, i, j] = Σₖ a[…, i, k] · b[…, k, j], and the axes before broadcast.

    A 1-d operand counts as a row on the left and as a column on the right, and that axis is dropped from the result.
    float16 adds up in float32; integers and bool are multiplied in their own dtype, as NumPy does.
    """

    name = "matmul"
    section = "matmul"
    aliases = {"MatMulOp": "born", "MatMul": "born, cjc, minima", "BatchMatMulOp": "born", "BatchMatMul": "born"}
    operands = ("a", "b")
    dtypes = DTYPES
    gradient = "da = g @ bᴴ, db = aᴴ @ g, summed over batch axes that were broadcast"
    samples = (
        Sample(Real(2, 3), Real(3, 4)),
        Sample(Real(3), Real(3)),
        Sample(Real(3), Real(3, 2)),
        Sample(Real(2, 3), Real(3)),
        Sample(Real(2, 2, 3), Real(3, 4)),
        Sample(Real(2, 3), Real(2, 3, 4)),
        Sample(Real(2, 1, 2, 3), Real(3, 3, 2)),
        Sample(Real(3), Real(2, 3, 4)),
        Sample(Real(2, 2, 3), Real(3)),
        Sample(Real(2, 0), Real(0, 3)),
        Sample(Ints(2, 3, high=5), Ints(3, 2, high=5)),
    )

    def infer(self, a: TensorType, b: TensorType) -> ResultTypes:
        """NumPy's shape and dtype. Raises ShapeMismatch."""
        return product_type(a, b)

    def compose(self, a: Value, b: Value) -> Value | None:
        """1-d operands as matrices, and many matrices times one as one tall matrix times it."""
        columns = b if b.ndim > 1 else b.reshape(shape=(*b.shape, 1))
        flat = a.ndim == 1 or columns.ndim == 2
        rows = shaped(a, (math.prod(a.shape[:-1]), a.shape[-1])) if flat else a
        if rows is a and columns is b:
            return None
        return shaped(rows.matmul(columns), product_shape(a.shape, b.shape))

    def forward(self, run: RunContext, a: Array, b: Array, *, out: Array) -> None:
        """BLAS, where it knows the dtype."""
        xp = run.xp
        dtype = accumulator(out)
        operands = [x if is_readable(x, dtype) else xp.ascontiguousarray(x, dtype=dtype) for x in (a, b)]
        if dtype == out.dtype:
            xp.matmul(*operands, out=out)
        else:
            out[...] = xp.matmul(*operands)

    def bind(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """BLAS itself, where it can read the operands and write the result."""
        dtype = accumulator(out)
        if dtype == out.dtype and all(is_readable(x, dtype) for x in operands):
            return run.xp.matmul, (*operands, out)
        return super().bind(run, operands, out, attrs)

    def vjp(self, g: Value, y: Value, a: Value, b: Value) -> Sequence[Value | None]:
        """The textbook's, for matrices; `compose` leaves no others."""
        return unbroadcast(g @ adjoint(b), a), unbroadcast(adjoint(a) @ g, b)

    def batch(self, mapped: Sequence[bool], *operands: Value) -> Value:
        """N is one more batch axis, once the ranks agree."""
        a, b = batching.align(mapped, operands)
        return a @ b

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """2 m n k for each pair of matrices: a product and a sum."""
        return 2 * super().flops(out) * types[0].shape[-1]

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """Copies of what BLAS cannot read as it lies, and the result in float32 where it is float16."""
        dtype = accumulator(out)
        copies = sum(x.size for x in types if not is_readable(x, dtype))
        return dtype.itemsize * copies + wide_out_bytes(out)
