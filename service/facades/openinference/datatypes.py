"""Datatypes of Open Inference, and which dtypes of ours they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine import printable
from engine.graph.dtypes import ELEMENT_TYPES
from service.errors import Refusal
from service.wire.json_codec import json_kind

#: by dtype: complex ones have none; BYTES, BF16 and whole numbers of 16 bits are no dtypes
DATATYPES: Final[Mapping[str, str]] = {
    element.name: f"FP{8 * element.width}" if element.kind == "floating" else element.name.upper()
    for element in ELEMENT_TYPES
    if element.kind != "complex"
}
_DTYPES: Final = {datatype: dtype for dtype, datatype in DATATYPES.items()}


def dtype_of_datatype(datatype: object, where: str) -> str:
    """The dtype that a datatype is. Raises Refusal."""
    if isinstance(datatype, str) and datatype in _DTYPES:
        return _DTYPES[datatype]
    expected = "one of " + ", ".join(_DTYPES)
    got = f"“{printable(datatype)}”" if isinstance(datatype, str) else json_kind(datatype)
    raise Refusal("bad_tensor", f"{where} must be {expected}, but is {got}", expected=expected, got=got)
