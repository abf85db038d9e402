"""Numbers of the op's own dtype: an integer dtype is given every digit that was sent."""

from __future__ import annotations

from typing import Any, ClassVar

from engine.graph.dtypes import has_infinities
from engine.graph.kinds.number import FloatKind
from engine.graph.kinds.whole_number import is_whole
from engine.graph.tensor_type import DType


class NumberKind(FloatKind):
    """A finite number: a double, or an int where it is a whole number of 64 bits that no double is.

    Each number has one form, so that 1 and 1.0 are the same. An op that knows its dtype has it `typed`; clients need
    not tell it from a float.
    """

    name = "number"
    forms = ()
    samples: ClassVar[tuple[Any, ...]] = (*FloatKind.samples, 2**53 + 1, 1 - 2**63)

    @property
    def spelling(self) -> str:
        """A float."""
        return FloatKind.name

    def bound(self, stated: Any) -> float:
        """Return it with all of its digits, as far as an integer dtype has them."""
        return exact(stated)

    def is_bound(self, value: Any) -> bool:
        """A float, or an int where no float is that."""
        return type(value) is float or (type(value) is int and exact(value) is value)

    def typed(self, value: Any, dtype: DType) -> float:
        """Apply `typed_number`."""
        return typed_number(value, dtype)

    def canonical(self, value: Any) -> Any:
        """Write a float as its bits; an int as such."""
        return value if type(value) is int else super().canonical(value)


def exact(number: float) -> float:
    """The number as a float; or as it is, where it is a whole number of 64 bits that no float is."""
    rounded = float(number)
    return number if is_whole(number) and rounded != number else rounded


def typed_number(number: float, dtype: DType) -> float:
    """A number as ops of `dtype` have it: of a float dtype, the nearest double, which is rounded with it."""
    return exact(number) if not has_infinities(dtype) else weak_number(number)


def weak_number(number: float) -> float:
    """A number that does not widen operands, as a double: real beside complex operands, too."""
    return float(number)
