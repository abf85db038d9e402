"""Datatypes of Open Inference, and which dtypes of ours they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine import printable
from service.errors import Refusal
from service.wire.json_codec import json_kind

#: by dtype; BYTES, BF16 and unsigned numbers of more than 8 bits are none
DATATYPES: Final[Mapping[str, str]] = {
    "bool": "BOOL",
    "int8": "INT8",
    "uint8": "UINT8",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
}
_DTYPES: Final = {datatype: dtype for dtype, datatype in DATATYPES.items()}


def dtype_of(datatype: object, where: str) -> str:
    """The dtype that a datatype is. Raises Refusal."""
    if isinstance(datatype, str) and datatype in _DTYPES:
        return _DTYPES[datatype]
    expected = "one of " + ", ".join(_DTYPES)
    got = f"“{printable(datatype)}”" if isinstance(datatype, str) else json_kind(datatype)
    raise Refusal("bad_tensor", f"{where} must be {expected}, but is {got}", expected=expected, got=got)
