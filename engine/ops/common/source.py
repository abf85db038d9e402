"""Base of the ops without operands, and the numbers that their attributes may be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np

from engine.ir.attributes import Attr
from engine.ir.dtypes import has_infinities, is_complex
from engine.ir.errors import BadAttribute, DtypeMismatch
from engine.ir.kinds.scalars import typed_number
from engine.ir.op import Array, Kernel, ResultTypes
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import DType, TensorType

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


class Source(Kernel):
    """Base of ops without operands: nothing to differentiate, nothing to batch."""

    operands: ClassVar[tuple[str, ...]] = ()
    gradient: ClassVar[str] = "none: there are no operands"

    def tensor(self, run: RunContext, type: TensorType, **attrs: Any) -> Array:
        """The result, to be read only: new memory, or some that holds it already."""
        out = run.xp.empty(type.shape, type.dtype)
        self.forward(run, out=out, **attrs)
        return out

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """None: memory is only filled."""
        return 0


def check_representable(fill: float, dtype: DType) -> None:
    """Raise BadAttribute unless the attribute `fill` is a number of `dtype`; floats round, whatever their size."""
    if not is_representable(fill, dtype):
        wanted = f"a whole number that {dtype.name} holds"
        raise BadAttribute(f"attribute fill must be {wanted}, but is {fill:g}", expected=wanted, got=f"{fill:g}")


def require_real(dtype: DType) -> None:
    """Raise DtypeMismatch for an attribute `dtype` that is complex."""
    if is_complex(dtype):
        wanted, got = "a dtype that is not complex", dtype.name
        raise DtypeMismatch(f"attribute dtype must be {wanted}, but is {got}", expected=wanted, got=got)


def is_representable(number: float, dtype: DType) -> bool:
    """Whether `number` is one of `dtype`; floats round, whatever their size."""
    if has_infinities(dtype):
        return True
    low, high = whole_limits(dtype)
    return is_integral(number) and low <= int(number) <= high


def is_integral(number: float) -> bool:
    """Whether it has no fraction."""
    return float(number).is_integer()


def whole_limits(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number of an integer dtype or bool."""
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


# Numbers around and everywhere: those that JSON has no word for are stated by one.


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
