"""Formulas of elementwise ops: what they are made of, and the dtype that their kernels compute in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from engine.graph.dtypes import is_complex
from engine.graph.tensor_type import BOOL, FLOAT16, FLOAT32, DType
from engine.loops.program import Scalar, Scalars
from engine.loops.ufuncs import COMPLEX_PRIMITIVE_OF, UFUNCS

#: one element of a result: `formula(*operands, **attrs)`; None where the attributes leave it opaque
ScalarFormula = Callable[..., Scalar | None]
#: name of a ufunc → the primitive that it is
PRIMITIVE_OF: Final[Mapping[str, str]] = {ufunc: op for op, ufunc in UFUNCS.items()}


def primitive_of(ufunc: str, types: Sequence[Scalars]) -> str | None:
    """The primitive that a ufunc is of scalars of these types; None where there is none."""
    return (COMPLEX_PRIMITIVE_OF if "pair" in types else PRIMITIVE_OF).get(ufunc)


def scalars_of(dtype: DType) -> Scalars:
    """As what a loop of its floats has the elements of a dtype."""
    return "bool" if dtype == BOOL else "pair" if is_complex(dtype) else "float"


def read_as(x: Scalar, type: Scalars) -> Scalar:
    """x as a bool, true where it is not 0, or as a number, 1 where it is true; a complex number remains one."""
    if x.type == type or (x.type, type) == ("pair", "float"):
        return x
    return x.ne(0.0) if type == "bool" else x.where(1.0, 0.0)


def number_dtype(out: DType) -> DType:
    """The dtype to compute in: float32 for float16 results, which are rounded once; else the result's own."""
    return FLOAT32 if out in (FLOAT16, BOOL) else out
