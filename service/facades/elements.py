"""Elements of tensors in the JSON of other protocols: as a flat list or as nested lists."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
import orjson
import pybase64

from engine import HostArray, TensorType, printable
from engine.ir.tensor_type import BOOL, FLOAT64
from service.api.json_codec import json_kind
from service.api.tensors import Location, encoded_bytes
from service.core.errors import Refusal, pointer

#: maximum number of extents of a shape in an error message
_SHOWN: Final = 16


def flat_or_nested(data: object, shape: Sequence[int], where: str, place: Location) -> list[int | float]:
    """Return the row-major elements of a flat list, or of lists nested according to the shape; booleans as 1 and 0.

    `where` names the list in error messages, and `place` is its location. Raises Refusal.
    """
    if not isinstance(data, list):
        got = json_kind(data)
        raise bad_tensor(f"{where} must be a list of numbers, but is {got}", place, "a list of numbers", got)
    if len(shape) > 1 and list in map(type, data):
        return nested(data, shape, where, place)
    numbers, count = nested(data, (len(data),), where, place), math.prod(shape)
    if len(numbers) != count:
        holds = f"must hold {count} elements to be of the shape {shown_shape(shape)}, but holds {len(numbers)}"
        raise bad_tensor(f"{where} {holds}", place, f"{count} elements", str(len(numbers)))
    return numbers


def nested(data: object, shape: Sequence[int], where: str, place: Location) -> list[int | float]:
    """Return the row-major elements of lists nested according to the shape; booleans as 1 and 0.

    Raises Refusal that points to the first list or element that does not fit.
    """
    rows: list[Any] = [data]
    for axis, extent in enumerate(shape):
        if not ({list}.issuperset(map(type, rows)) and {extent}.issuperset(map(len, rows))):
            row = next(i for i, row in enumerate(rows) if not isinstance(row, list) or len(row) != extent)
            got = f"a list of {len(rows[row])}" if isinstance(rows[row], list) else json_kind(rows[row])
            raise _misfit(row, shape[:axis], where, place, f"a list of {extent}", got)
        rows = list(chain.from_iterable(rows))
    if not {int, float}.issuperset(map(type, rows)):
        if not {int, float, bool}.issuperset(map(type, rows)):
            i = next(i for i, element in enumerate(rows) if not isinstance(element, int | float))
            raise _misfit(i, shape, where, place, "a number", json_kind(rows[i]))
        return [int(element) if element is True or element is False else element for element in rows]
    return rows


def _misfit(i: int, shape: Sequence[int], where: str, place: Location, expected: str, got: str) -> Refusal:
    """Return the refusal of the element with row-major index `i` in lists of this shape."""
    indices: list[int] = []
    for extent in reversed(shape):
        i, index = divmod(i, extent)
        indices.insert(0, index)
    position = "".join(f"[{index}]" for index in indices)
    if expected == "a number":
        detail = f"{where} must hold numbers, but has {got}{position and f' at {position}'}"
    else:
        detail = f"{where}{position} must be {expected}, but is {got}; all rows must have the same length"
    return bad_tensor(detail, (*place, *indices), expected, got)


def bad_tensor(detail: str, place: Location, expected: str, got: str, code: str = "bad_tensor") -> Refusal:
    """Return the refusal of a tensor at this location."""
    return Refusal(code, detail, expected=expected, got=got, pointer=pointer(place))


def shown_shape(shape: Sequence[int]) -> str:
    """Format a shape for an error message, whatever its rank and extents."""
    return printable(f"{list(shape[:_SHOWN])}")


def base64_tensor(array: HostArray, dtype: str) -> dict[str, Any]:
    """Encode an array as a tensor of a request, in this dtype."""
    little = np.ascontiguousarray(array, np.dtype(dtype).newbyteorder("<"))
    return {"dtype": dtype, "shape": list(array.shape), "data_b64": pybase64.b64encode_as_string(little.tobytes())}


def text_bytes(array: HostArray, name: str, *, nested: bool = False) -> int:
    """Return an upper bound of the bytes of a result as JSON, with floats as Python writes them.

    Each inner list takes three more bytes, and `false` four more than 0.
    """
    type = TensorType.of(array)
    numbers = encoded_bytes([type.with_dtype(FLOAT64) if type.is_float else type], "json")
    words = 4 * type.size if type.dtype == BOOL else 0
    lists = sum(math.prod(type.shape[:axis]) for axis in range(1, type.ndim)) if nested else 0
    return len(orjson.dumps(name)) + numbers + words + 3 * lists


def require_finite(array: HostArray, name: str) -> None:
    """Raise Refusal if a result has non-finite elements, which JSON cannot represent."""
    flat = array.reshape(-1)
    if flat.dtype.kind == "f" and not np.isfinite(flat).all():
        index = int(np.flatnonzero(~np.isfinite(flat))[0])
        detail = (
            f"the output “{name}” is {flat[index]} at {index}, which JSON cannot represent; ask for a binary encoding"
        )
        raise Refusal(
            "invalid_field", detail, expected="finite numbers, or a binary encoding", got=f"{flat[index]} at {index}"
        )
