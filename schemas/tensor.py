"""A tensor on the wire."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import FailFast, Field, WithJsonSchema, with_config
from typing_extensions import TypedDict

from schemas.scalars import OPEN, OPEN_IN_DOCUMENT, Int64

# Millions of elements: they are checked by the array library, never one by one by pydantic.
_Elements = Annotated[
    Any,
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "number", "format": "double"},
            "description": "the elements, row-major and flat; bool as 0 and 1, complex numbers as the real part "
            "and the imaginary one behind it",
        }
    ),
]
_Bytes = Annotated[
    Any,
    WithJsonSchema(
        {
            "type": "string",
            "format": "byte",
            "description": "the elements as base64 of their little-endian bytes, row-major; lossless for every value",
        }
    ),
]


Dtype = Annotated[str, Field(json_schema_extra={OPEN: "dtypes"})]
Shape = Annotated[
    list[Int64], FailFast(), Field(description="extents of the axes; [] is a 0-d tensor with one element")
]


@with_config(OPEN_IN_DOCUMENT)
class Tensor(TypedDict):
    """A dense array. Exactly one of `data` and `data_b64` holds its elements; neither is needed when it has none."""

    dtype: Dtype
    shape: Shape
    data: NotRequired[_Elements]
    data_b64: NotRequired[_Bytes]
