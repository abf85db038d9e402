"""From an op's formula for one element to the kernel that computes it, once for each dtype and attributes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Protocol

import numpy as np

from engine.graph.tensor_type import BOOL, FLOAT16, FLOAT32, DType
from engine.loops.elements import ElementKernel
from engine.loops.program import Level, LoopBuilder, Scalar, Scalars
from engine.loops.ufuncs import UFUNCS

#: one element of a result: `formula(*operands, **attrs)`; None where the attributes leave it opaque
ScalarFormula = Callable[..., Scalar | None]
#: name of a ufunc → the primitive that it is
PRIMITIVE_OF: Final[Mapping[str, str]] = {ufunc: op for op, ufunc in UFUNCS.items()}


class Formulated(Hashable, Protocol):
    """What has a formula for one element."""

    def reads(self, *types: Scalars) -> Sequence[Scalars]:
        """As what the formula takes operands of these types."""
        ...

    def scalar_of(self, operands: Sequence[Scalar], attrs: Mapping[str, Any]) -> Scalar | None:
        """One element of the result."""
        ...


def read_as(x: Scalar, type: Scalars) -> Scalar:
    """x as a bool, true where it is not 0, or as a number, 1 where it is true."""
    if x.type == type:
        return x
    return x.ne(0.0) if type == "bool" else x.where(1.0, 0.0)


def number_dtype(out: DType) -> DType:
    """The dtype to compute in: float32 for float16 results, which are rounded once; else the result's own."""
    return FLOAT32 if out in (FLOAT16, BOOL) else out


def element_kernel(
    op: Formulated, number: DType, dtypes: Sequence[DType], attrs: Mapping[str, Any]
) -> ElementKernel | None:
    """The kernel of a formula on operands of `dtypes`, its numbers of dtype `number`; None where it is opaque."""
    return _element_kernel(op, number.char, "".join([dtype.char for dtype in dtypes]), _Attributes.of(attrs))


class _Attributes(str):
    """Attributes, told apart by how they are written: 0.0 == -0.0, but their kernels differ."""

    __slots__ = ("values",)
    values: Mapping[str, Any]

    @classmethod
    def of(cls, attrs: Mapping[str, Any]) -> _Attributes:
        made = cls(attrs or "")
        made.values = attrs
        return made


@lru_cache(maxsize=4096)
def _element_kernel(op: Formulated, number: str, dtypes: str, attrs: _Attributes) -> ElementKernel | None:
    builder = LoopBuilder("float32" if number == FLOAT32.char else "float64")
    types: list[Scalars] = ["bool" if dtype == BOOL.char else "float" for dtype in dtypes]
    operands = [builder.load(Level.ELEMENT, type) for type in op.reads(*types)]
    found = op.scalar_of(operands, attrs.values)
    if found is None:
        return None
    builder.store("element", found)
    return ElementKernel(builder.loop(), np.dtype(number))
