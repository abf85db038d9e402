"""Dtypes of results."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from engine.graph.dtypes import DTYPES
from engine.graph.kinds.kind import AttributeKind, JsonSchema
from engine.graph.tensor_type import DType


class DtypeKind(AttributeKind):
    """One of the opset's dtypes, by its name; NumPy's own, once it is bound."""

    name = "dtype"
    position = 6
    wanted = "one of " + ", ".join(DTYPES)
    roughly = "a dtype"
    forms: ClassVar[tuple[type, ...]] = tuple(dict.fromkeys(type(np.dtype(name)) for name in DTYPES))
    samples: ClassVar[tuple[Any, ...]] = DTYPES

    def admits(self, stated: Any) -> bool:
        """Whether it is one's name."""
        return isinstance(stated, str) and stated in DTYPES

    def bound(self, stated: Any) -> DType:
        """The dtype of that name."""
        named: DType = np.dtype(stated)
        return named

    def is_bound(self, value: Any) -> bool:
        """A dtype of the opset."""
        return isinstance(value, np.dtype) and value.name in DTYPES

    def dtype_of(self, value: Any) -> DType:
        """Return the dtype."""
        named: DType = value
        return named

    def stated(self, value: Any) -> str:
        """Its name."""
        return str(value.name)

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """A string, with those there are: that a later opset has others breaks no client that was generated today."""
        return {"type": "string", "x-extensible-enum": list(DTYPES)}
