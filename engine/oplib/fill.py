"""Numbers around and everywhere: those that JSON has no word for are stated by one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from engine.graph.attributes import Attr
from engine.graph.errors import BadAttribute
from engine.graph.kinds.typed_number import typed_number
from engine.graph.tensor_type import DType
from engine.oplib.source import check_representable

_WORDS: Final[Mapping[str, float]] = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}

#: beside the attribute `fill`
FILL_AS: Final = Attr(
    "string",
    None,
    "an infinity or NaN, in place of `fill`; of a float dtype",
    choices=tuple(_WORDS),
    since=2,
    instead_of="fill",
)


def filled(attrs: Mapping[str, Any], dtype: DType) -> dict[str, Any]:
    """Attributes with `fill` as a number of `dtype`, and `fill_as` no longer there. Raises BadAttribute."""
    word = attrs["fill_as"]
    if word is None:
        check_representable(attrs["fill"], dtype)
        return {**attrs, "fill": typed_number(attrs["fill"], dtype)}
    if dtype.kind != "f":
        got = dtype.name
        raise BadAttribute(f"attribute fill_as needs a float dtype, but fills {got}", expected="a float dtype", got=got)
    return {**attrs, "fill": _WORDS[word], "fill_as": None}


def word_of(number: float) -> str | None:
    """The word of a number that JSON has none for; None of all others."""
    return None if math.isfinite(number) else str(float(number))
