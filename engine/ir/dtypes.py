"""The dtypes of the opset: one table, and what types, attributes, ops, messages and bodies read in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

import numpy as np

ElementKind = Literal["boolean", "integer", "floating", "complex"]


@dataclass(frozen=True, slots=True)
class ElementType:
    """Properties of one dtype.

    `name` is NumPy's, which JSON and graphs have, too, and `width` counts bytes. `is_differentiable` says whether
    derivatives of and in its numbers exist, `has_loops` whether loops and microkernels are written for them. Bodies
    call it what `safetensors` does, if that has the dtype, and an element takes at most `json_characters` in JSON, with
    its comma; integers beyond 2⁵³ are never written there. Graphs have it `since` an opset. A complex number is two of
    the dtype `parts`, the real one first.
    """

    name: str
    kind: ElementKind
    width: int
    is_differentiable: bool
    safetensors: str
    json_characters: int
    has_loops: bool = False
    since: int = 1
    parts: str = ""


#: in the order in which messages list them; of a kind, the narrowest first
ELEMENT_TYPES: Final = (
    ElementType("bool", "boolean", 1, False, "BOOL", 2),
    ElementType("int8", "integer", 1, False, "I8", 5),
    ElementType("uint8", "integer", 1, False, "U8", 4),
    ElementType("int16", "integer", 2, False, "I16", 7, since=2),
    ElementType("int32", "integer", 4, False, "I32", 12),
    ElementType("uint32", "integer", 4, False, "U32", 11, since=2),
    ElementType("int64", "integer", 8, False, "I64", 18),
    ElementType("float16", "floating", 2, True, "F16", 16),
    ElementType("float32", "floating", 4, True, "F32", 17, has_loops=True),
    ElementType("float64", "floating", 8, True, "F64", 26, has_loops=True),
    ElementType("complex64", "complex", 8, True, "C64", 34, since=2, parts="float32"),
    ElementType("complex128", "complex", 16, True, "", 52, since=2, parts="float64"),
)


def _names(*kinds: ElementKind) -> tuple[str, ...]:
    return tuple(element.name for element in ELEMENT_TYPES if element.kind in kinds)


DTYPES: Final = tuple(element.name for element in ELEMENT_TYPES)
INTEGERS: Final = _names("integer")
FLOATS: Final = _names("floating")
NUMBERS: Final = _names("integer", "floating")
COMPLEX: Final = _names("complex")
#: what an op takes that does not say more: all that is ordered
REALS: Final = _names("boolean", "integer", "floating")

_BY_NAME: Final = {element.name: element for element in ELEMENT_TYPES}


@lru_cache(maxsize=1024)
def element_type(dtype: np.dtype[Any]) -> ElementType | None:
    """Return the properties of a dtype, in either byte order; None if the opset has no such dtype."""
    return _BY_NAME.get(dtype.name)


def is_differentiable(dtype: np.dtype[Any]) -> bool:
    """Whether derivatives of and in numbers of this dtype exist."""
    element = element_type(dtype)
    return element is not None and element.is_differentiable


def is_complex(dtype: np.dtype[Any]) -> bool:
    """Whether numbers of this dtype have a real and an imaginary part."""
    return dtype.kind == "c"


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the parts of a complex one; of all others, itself."""
    element = element_type(dtype)
    return np.dtype(element.parts) if element is not None and element.parts else dtype


def has_loops(dtype: np.dtype[Any]) -> bool:
    """Whether loops and microkernels are written for numbers of this dtype; others are computed by NumPy.

    Loops have complex numbers, too, whose parts are such: they are said to be of the dtype of these.
    """
    element = element_type(dtype)
    return element is not None and element.has_loops


@lru_cache(maxsize=1024)
def has_infinities(dtype: np.dtype[Any]) -> bool:
    """Whether numbers of this dtype may be infinite, or NaN: all but those that are counted."""
    element = element_type(dtype)
    return dtype.kind not in "biu" if element is None else element.kind not in ("boolean", "integer")


@lru_cache(maxsize=1024)
def in_opset(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """`dtype`; of integers that the opset lacks, the narrowest that holds them, or else the widest that there is.

    NumPy's promotion leaves the opset with sums of unsigned integers; and opset 1 with int8 and uint8.
    """
    if dtype.kind not in "iu" or element_type(dtype) is not None:
        return dtype
    known = [np.dtype(name) for name in INTEGERS]
    return next((wider for wider in known if np.can_cast(dtype, wider, "safe")), known[-1])
