"""The primitives of the loop language as NumPy and CuPy have them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

#: primitive → the ufunc of numpy and cupy that it is
UFUNCS: Final[Mapping[str, str]] = MappingProxyType(
    {name: name for name in ("sqrt", "floor", "ceil", "rint", "add", "minimum", "maximum", "copysign")}
    | {name: name for name in ("exp", "expm1", "log", "log1p", "log2", "tanh", "sin", "cos")}
    | {"neg": "negative", "abs": "absolute", "sub": "subtract", "mul": "multiply", "div": "divide", "mod": "remainder"}
    | {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}
    | {"and": "logical_and", "or": "logical_or", "not": "logical_not"}
)
#: reduction of a row → the ufunc that reduces
FOLDS: Final[Mapping[str, str]] = MappingProxyType(
    {"row_sum": "add", "row_prod": "multiply", "row_max": "maximum", "row_min": "minimum"}
)
#: those whose `out` NumPy wants by name
BY_NAME: Final = frozenset({"minimum", "maximum"})


def ufunc_of(xp: Any, op: str) -> Any:
    """The ufunc of `xp`, numpy or cupy, that a primitive is. Raises TypeError where it is none."""
    if op not in UFUNCS:
        raise TypeError(f"{op} is for compiled kernels")
    return getattr(xp, UFUNCS[op])
