"""The primitives of fused kernels as functions of NumPy and CuPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from engine.graph.op import Array, Namespace
from engine.loops.program import PAIRS
from engine.loops.threefry_arrays import threefry_bits, threefry_uniform, threefry_word

#: primitive → the ufunc of numpy and cupy that it is
UFUNCS: Final[Mapping[str, str]] = MappingProxyType(
    {name: name for name in ("sqrt", "floor", "ceil", "rint", "add", "minimum", "maximum", "copysign")}
    | {name: name for name in ("exp", "expm1", "log", "log1p", "log2", "tanh", "sin", "cos")}
    | {"neg": "negative", "abs": "absolute", "sub": "subtract", "mul": "multiply", "div": "divide", "mod": "remainder"}
    | {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}
    | {"and": "logical_and", "or": "logical_or", "not": "logical_not"}
)
#: the same of what complex numbers alone have
_COMPLEX_UFUNCS: Final = {"conj": "conjugate"} | {name: name for name in ("reciprocal", "sinh", "cosh")}
#: ufunc → the primitive of complex numbers that it is
COMPLEX_PRIMITIVE_OF: Final[Mapping[str, str]] = MappingProxyType(
    {name: op for op, name in {**UFUNCS, **_COMPLEX_UFUNCS}.items() if op in PAIRS}
)
#: reduction of a row → the ufunc that reduces
FOLDS: Final[Mapping[str, str]] = MappingProxyType(
    {"row_sum": "add", "row_prod": "multiply", "row_max": "maximum", "row_min": "minimum"}
)
#: those whose `out` NumPy wants by name
BY_NAME: Final = frozenset({"minimum", "maximum"})


def _pair(xp: Namespace, re: Array, im: Array, out: Array | None = None) -> Array:
    if out is None:
        out = xp.empty(np.broadcast_shapes(re.shape, im.shape), np.result_type(re.dtype, np.complex64))
    out.real[...] = re
    out.imag[...] = im
    return out


def _part(name: str, xp: Namespace, x: Array, out: Array | None = None) -> Array:
    part = getattr(x, name)
    if out is None:
        return part.copy()
    xp.copyto(out, part)
    return out


def _angle(xp: Namespace, x: Array, out: Array | None = None) -> Array:
    return xp.arctan2(x.imag, x.real, out=out)


#: primitives that neither module has: functions of it, and of what a ufunc takes
_OURS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {"threefry_uniform": threefry_uniform, "threefry_bits": threefry_bits, "threefry_word": threefry_word}
    | {"pair": _pair, "real": partial(_part, "real"), "imag": partial(_part, "imag"), "angle": _angle}
)


def ufunc_of(xp: Any, op: str) -> Any:
    """What computes a primitive, a ufunc of `xp`, numpy or cupy, or as one. Raises TypeError where there is nothing."""
    if op in _OURS:
        return partial(_OURS[op], xp)
    name = UFUNCS.get(op) or _COMPLEX_UFUNCS.get(op)
    if name is None:
        raise TypeError(f"{op} is for compiled kernels")
    return getattr(xp, name)
