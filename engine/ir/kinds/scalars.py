"""Attributes that are numbers, lists of numbers, truth values, names or dtypes."""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable
from typing import Any, ClassVar, Final

import numpy as np

from engine.ir.kinds.kind import LONGEST_REMEMBERED, AttributeKind, JsonSchema
from engine.ir.tensor_type import DTYPES, DType, has_infinities

WHOLE: Final[JsonSchema] = {"type": "integer", "format": "int64"}
_INT64: Final = range(-(2**63), 2**63)


class FloatKind(AttributeKind):
    """A finite number, as a double."""

    name = "float"
    position = 2
    wanted = "a finite number"
    roughly = "a number"
    forms: ClassVar[tuple[type, ...]] = (float,)
    samples: ClassVar[tuple[Any, ...]] = (0.0, -0.0, 1, 0.1, -1e308)

    def admits(self, stated: Any) -> bool:
        """Whether it is one."""
        number = isinstance(stated, (int, float)) and not isinstance(stated, bool)
        return number and (isinstance(stated, float) or abs(stated) <= 2**1023) and math.isfinite(stated)

    def bound(self, stated: Any) -> float:
        """The nearest double."""
        return float(stated)

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """A number."""
        return {"type": "number", "format": "double"}

    def canonical(self, value: Any) -> Any:
        """The 16 hexadecimal digits of the double, big-endian, so that no two languages write it differently."""
        return struct.pack(">d", value).hex()

    def key(self, value: Any) -> Hashable:
        """Tell numbers apart by all of their bits: 0.0 is not -0.0."""
        return "float", value.hex()


def is_whole(stated: Any) -> bool:
    """Whether it is a whole number of 64 bits; true and false are none."""
    return isinstance(stated, int) and not isinstance(stated, bool) and stated in _INT64


class IntKind(AttributeKind):
    """A whole number of 64 bits."""

    name = "int"
    position = 1
    wanted = "a whole number of 64 bits"
    roughly = "a whole number"
    forms = (int,)
    samples: ClassVar[tuple[Any, ...]] = (0, -1, 2**63 - 1)

    def admits(self, stated: Any) -> bool:
        """Whether it is one."""
        return is_whole(stated)

    def bound(self, stated: Any) -> int:
        """Return Python's own type, and no subclass of it."""
        return int(stated)

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """An integer."""
        return WHOLE


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


class IntsKind(AttributeKind):
    """A list of whole numbers of 64 bits; a tuple, once it is bound."""

    name = "ints"
    position = 5
    wanted = "a list of whole numbers of 64 bits"
    roughly = "a list of whole numbers"
    forms = (tuple,)
    samples: ClassVar[tuple[Any, ...]] = ([], [2, -1], [2**63 - 1])
    is_list = True

    def admits(self, stated: Any) -> bool:
        """Whether it is one."""
        return isinstance(stated, (list, tuple)) and all(map(is_whole, stated))

    def bound(self, stated: Any) -> tuple[int, ...]:
        """Return a tuple, which nobody can change."""
        return tuple(stated)

    def is_bound(self, value: Any) -> bool:
        """A tuple of Python's own numbers."""
        return type(value) is tuple and all(type(entry) is int for entry in value)

    def stated(self, value: Any) -> list[int]:
        """Return a list."""
        return list(value)

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """An array of integers."""
        return {"type": "array", "items": WHOLE}

    def key(self, value: Any) -> Hashable:
        """The numbers themselves: there may be a million, and they tell types and bits apart as they are.

        Of tuples with anything else in them, what Python shows of it.
        """
        return ("ints", value) if set(map(type, value)) <= {int} else ("tuple", *map(repr, value))

    def is_remembered(self, value: Any) -> bool:
        """Remember lists of few entries."""
        return len(value) <= LONGEST_REMEMBERED


class BoolKind(AttributeKind):
    """True or false."""

    name = "bool"
    position = 3
    wanted = roughly = "true or false"
    forms = (bool,)
    samples: ClassVar[tuple[Any, ...]] = (True, False)

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """A boolean."""
        return {"type": "boolean"}


class StringKind(AttributeKind):
    """A string."""

    name = "string"
    position = 4
    wanted = roughly = "a string"
    forms = (str,)
    samples: ClassVar[tuple[Any, ...]] = ("", "mean", "é→", "x" * 1000)

    def bound(self, stated: Any) -> str:
        """Return Python's own type, and no subclass of it."""
        return str(stated)

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """A string."""
        return {"type": "string"}

    def is_remembered(self, value: Any) -> bool:
        """Remember strings of few characters."""
        return len(value) <= LONGEST_REMEMBERED


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


class Callee:
    """Function that an op may run, told from others by a digest of all that it says."""

    __slots__ = ("digest",)

    def __init__(self, digest: bytes) -> None:
        self.digest = digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Callee) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)


class FunctionKind(AttributeKind):
    """The index of a function among those of the graph; in a typed graph, what that function is for these operands."""

    name = "function"
    position = 8
    wanted = roughly = "the index of a function"
    forms: ClassVar[tuple[type, ...]] = (Callee,)
    samples: ClassVar[tuple[Any, ...]] = (0, 3)

    def admits(self, stated: Any) -> bool:
        """Whether it is a whole number, which is not negative; a program knows how many functions there are."""
        return is_whole(stated) and stated >= 0

    def bound(self, stated: Any) -> int:
        """The index."""
        return int(stated)

    def is_bound(self, value: Any) -> bool:
        """A typed function."""
        return isinstance(value, Callee)

    def printed(self, value: Any) -> Any:
        """Some digits of the digest: its text is another graph's."""
        return value.digest.hex()[:16] if isinstance(value, Callee) else value

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """An integer."""
        return WHOLE | {"minimum": 0}

    def key(self, value: Any) -> Hashable:
        """The digest."""
        return self.name, value.digest

    def is_remembered(self, value: Any) -> bool:
        """Never: what is made of a function is kept with it."""
        return False
