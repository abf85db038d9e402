"""Elements of tensors as JSON of other protocols has them: flat, or in lists within lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from engine import HostArray
from service.errors import Refusal
from service.wire.json_codec import json_kind

_LEVELS: Final = 100  # of lists: more than a tensor has axes


def flattened(data: object, where: str) -> list[int | float]:
    """Elements, row by row; true and false as 1 and 0. Raises Refusal."""
    return list(_elements(data, where, _LEVELS))


def listed(array: HostArray, name: str) -> list[Any]:
    """A result as JSON has it, flat. Raises Refusal for what JSON has no numbers for."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "f" and not np.isfinite(flat).all():
        at = int(np.flatnonzero(~np.isfinite(flat))[0])
        detail = f"the output “{name}” is {flat[at]} at {at}, which JSON cannot say; ask for it as bytes"
        raise Refusal("invalid_field", detail, expected="finite numbers, or bytes", got=f"{flat[at]} at {at}")
    elements: list[Any] = flat.tolist()
    return elements


def _elements(data: object, where: str, levels: int) -> Iterator[int | float]:
    if not isinstance(data, list):
        got = json_kind(data)
        raise Refusal("bad_tensor", f"{where} must be a list of numbers, but is {got}", expected="a list", got=got)
    for one in data:
        if isinstance(one, list):
            if not levels:
                raise Refusal("bad_tensor", f"{where} is nested too deeply", expected="lists within lists", got="more")
            yield from _elements(one, where, levels - 1)
        elif isinstance(one, int | float):
            yield int(one) if isinstance(one, bool) else one
        else:
            got = json_kind(one)
            raise Refusal("bad_tensor", f"{where} must hold numbers, but has {got}", expected="numbers", got=got)
