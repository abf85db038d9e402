"""Base of the decompositions, and of what is made by them: one operand, matrices on its last two axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from engine.graph.dtypes import DTYPES, real_dtype
from engine.graph.errors import ShapeMismatch
from engine.graph.ir import Value
from engine.graph.op import Op
from engine.graph.tensor_type import TensorType, show_shape, to_average
from engine.oplib.factors import chunk_bytes
from engine.oplib.matrices import wide_dtype


class Decomposition(Op):
    """Base: matrices are answered one by one, and by LAPACK, which is not interrupted, and decides by elements."""

    is_captured = False
    operands: ClassVar[tuple[str, ...]] = ("x",)
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    since: ClassVar[int] = 2

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """Itself: N is one more batch axis."""
        return operands[0].builder.emit(self, operands, attrs)


def matrix_type(x: TensorType, operand: int = 0, name: str = "x") -> TensorType:
    """An operand as it is computed with: in float64 what is not float. Raises ShapeMismatch if it has no matrices."""
    if x.ndim < 2:
        wanted, got = "matrices on its last two axes", show_shape(x.shape)
        raise ShapeMismatch(
            f"operand {operand} ({name}) must hold {wanted}, but has shape {got}",
            operand=operand,
            expected=wanted,
            got=got,
        )
    return x.with_dtype(to_average(x.dtype))


def chunk_workspace(x: TensorType, each: int, once: int = 0) -> int:
    """Bytes for chunks that take so many numbers a matrix, and for what LAPACK takes, which is one at a time.

    They are doubles, or pairs of these.
    """
    return chunk_bytes(x.shape, each, x) + wide_dtype(x.dtype).itemsize * once if x.size else 0


def real_like(x: TensorType) -> TensorType:
    """x, of the dtype that sizes of its elements have."""
    return x.with_dtype(real_dtype(x.dtype))


def operations(x: TensorType, flops: int) -> int:
    """So many of the numbers of x, as FLOPs: a complex product with its sum takes four times those of a real one."""
    return 4 * flops if x.is_complex else flops
