"""Attributes that are numbers, lists of numbers, booleans, names, dtypes or functions."""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable
from typing import Any, ClassVar, Final

import numpy as np

from engine.ir.kinds.kind import LONGEST_CACHED, AttributeKind, JsonSchema
from engine.ir.spellings import choice_hint
from engine.ir.tensor_type import DTYPES, DType, has_infinities

WHOLE: Final[JsonSchema] = {"type": "integer", "format": "int64"}
_INT64: Final = range(-(2**63), 2**63)


class FloatKind(AttributeKind):
    """A finite number, as a double."""

    name = "float"
    position = 2
    expected = "a finite number"
    roughly = "a number"
    forms: ClassVar[tuple[type, ...]] = (float,)
    samples: ClassVar[tuple[Any, ...]] = (0.0, -0.0, 1, 0.1, -1e308)

    def admits(self, stated: Any) -> bool:
        """Return whether it is a finite number."""
        is_number = isinstance(stated, (int, float)) and not isinstance(stated, bool)
        return is_number and (isinstance(stated, float) or abs(stated) <= 2**1023) and math.isfinite(stated)

    def bound(self, stated: Any) -> float:
        """Return the nearest double."""
        return float(stated)

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """Return the schema of a number."""
        return {"type": "number", "format": "double"}

    def canonical(self, value: Any) -> Any:
        """Return the 16 hexadecimal digits of the double, big-endian, which all languages write alike."""
        return struct.pack(">d", value).hex()

    def key(self, value: Any) -> Hashable:
        """Distinguish numbers by all of their bits: 0.0 is not -0.0."""
        return "float", value.hex()


def is_whole(stated: Any) -> bool:
    """Return whether a value is a 64-bit integer. Booleans are not."""
    return isinstance(stated, int) and not isinstance(stated, bool) and stated in _INT64


class IntKind(AttributeKind):
    """A 64-bit integer."""

    name = "int"
    position = 1
    expected = "a 64-bit integer"
    roughly = "a whole number"
    forms = (int,)
    samples: ClassVar[tuple[Any, ...]] = (0, -1, 2**63 - 1)

    def admits(self, stated: Any) -> bool:
        """Return whether it is a 64-bit integer."""
        return is_whole(stated)

    def bound(self, stated: Any) -> int:
        """Return a Python int, not a subclass."""
        return int(stated)

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """Return the schema of an integer."""
        return WHOLE


class NumberKind(FloatKind):
    """A finite number: a double, or an int if it is a 64-bit integer that no double equals.

    Each number has one form, so that 1 and 1.0 are the same. An op with a dtype attribute has it `typed`. Clients need
    not distinguish it from a float.
    """

    name = "number"
    forms = ()
    samples: ClassVar[tuple[Any, ...]] = (*FloatKind.samples, 2**53 + 1, 1 - 2**63)

    @property
    def spelling(self) -> str:
        """The name of the float kind."""
        return FloatKind.name

    def bound(self, stated: Any) -> float:
        """Return the number with all digits that an integer dtype holds."""
        return exact(stated)

    def is_bound(self, value: Any) -> bool:
        """Return whether it is a float, or an int that no float equals."""
        return type(value) is float or (type(value) is int and exact(value) is value)

    def typed(self, value: Any, dtype: DType) -> float:
        """Return `typed_number`."""
        return typed_number(value, dtype)

    def canonical(self, value: Any) -> Any:
        """Return the bits of a float; an int as it is."""
        return value if type(value) is int else super().canonical(value)


def exact(number: float) -> float:
    """Return a number as a float; as an int if it is a 64-bit integer that no float equals."""
    rounded = float(number)
    return number if is_whole(number) and rounded != number else rounded


def typed_number(number: float, dtype: DType) -> float:
    """Return a number for ops of `dtype`: for a float dtype the nearest double, which the op then rounds."""
    return exact(number) if not has_infinities(dtype) else weak_number(number)


def weak_number(number: float) -> float:
    """Return a number that does not widen operands, as a double: real, even with complex operands."""
    return float(number)


class IntsKind(AttributeKind):
    """A list of 64-bit integers; a tuple once it is bound."""

    name = "ints"
    position = 5
    expected = "a list of 64-bit integers"
    roughly = "a list of whole numbers"
    forms = (tuple,)
    samples: ClassVar[tuple[Any, ...]] = ([], [2, -1], [2**63 - 1])
    is_list = True

    def admits(self, stated: Any) -> bool:
        """Return whether it is a list of 64-bit integers."""
        return isinstance(stated, (list, tuple)) and all(map(is_whole, stated))

    def hint(self, stated: Any) -> str:
        """Write a single number as a list."""
        return f"write [{stated}]" if is_whole(stated) else ""

    def bound(self, stated: Any) -> tuple[int, ...]:
        """Return a tuple, which is immutable."""
        return tuple(stated)

    def is_bound(self, value: Any) -> bool:
        """Return whether it is a tuple of Python ints."""
        return type(value) is tuple and all(type(entry) is int for entry in value)

    def stated(self, value: Any) -> list[int]:
        """Return a list."""
        return list(value)

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """Return the schema of an array of integers."""
        return {"type": "array", "items": WHOLE}

    def key(self, value: Any) -> Hashable:
        """Return the integers themselves: there may be a million, and ints of one type compare correctly.

        For a tuple with other entries, return their reprs.
        """
        return ("ints", value) if set(map(type, value)) <= {int} else ("tuple", *map(repr, value))

    def is_cacheable(self, value: Any) -> bool:
        """Return whether the list is short."""
        return len(value) <= LONGEST_CACHED


class BoolKind(AttributeKind):
    """True or false."""

    name = "bool"
    position = 3
    expected = roughly = "true or false"
    forms = (bool,)
    samples: ClassVar[tuple[Any, ...]] = (True, False)

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """Return the schema of a boolean."""
        return {"type": "boolean"}


class StringKind(AttributeKind):
    """A string."""

    name = "string"
    position = 4
    expected = roughly = "a string"
    forms = (str,)
    samples: ClassVar[tuple[Any, ...]] = ("", "mean", "é→", "x" * 1000)

    def bound(self, stated: Any) -> str:
        """Return a Python str, not a subclass."""
        return str(stated)

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """Return the schema of a string."""
        return {"type": "string"}

    def is_cacheable(self, value: Any) -> bool:
        """Return whether the string is short."""
        return len(value) <= LONGEST_CACHED


class DtypeKind(AttributeKind):
    """The name of a dtype of the opset; a NumPy dtype once it is bound."""

    name = "dtype"
    position = 6
    expected = "one of " + ", ".join(DTYPES)
    roughly = "a dtype"
    forms: ClassVar[tuple[type, ...]] = tuple(dict.fromkeys(type(np.dtype(name)) for name in DTYPES))
    samples: ClassVar[tuple[Any, ...]] = DTYPES

    def admits(self, stated: Any) -> bool:
        """Return whether it names a dtype of the opset."""
        return isinstance(stated, str) and stated in DTYPES

    def hint(self, stated: Any) -> str:
        """Suggest our name of another system's dtype, or the closest name."""
        return choice_hint(stated, DTYPES) if isinstance(stated, str) else ""

    def bound(self, stated: Any) -> DType:
        """Return the dtype with this name."""
        dtype: DType = np.dtype(stated)
        return dtype

    def is_bound(self, value: Any) -> bool:
        """Return whether it is a dtype of the opset."""
        return isinstance(value, np.dtype) and value.name in DTYPES

    def dtype_of(self, value: Any) -> DType:
        """Return the dtype."""
        dtype: DType = value
        return dtype

    def stated(self, value: Any) -> str:
        """Return its name."""
        return str(value.name)

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """Return the schema of a string with an extensible enum, so that a new dtype breaks no generated client."""
        return {"type": "string", "x-extensible-enum": list(DTYPES)}


class Callee:
    """Function that an op may call, identified by a digest of its definition."""

    __slots__ = ("digest",)

    def __init__(self, digest: bytes) -> None:
        self.digest = digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Callee) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)


class FunctionKind(AttributeKind):
    """The index of a function in the graph; in a typed graph, the function typed for the operands."""

    name = "function"
    position = 8
    expected = roughly = "the index of a function"
    forms: ClassVar[tuple[type, ...]] = (Callee,)
    samples: ClassVar[tuple[Any, ...]] = (0, 3)

    def admits(self, stated: Any) -> bool:
        """Return whether it is a nonnegative integer. The program checks that the function exists."""
        return is_whole(stated) and stated >= 0

    def bound(self, stated: Any) -> int:
        """Return the index."""
        return int(stated)

    def is_bound(self, value: Any) -> bool:
        """Return whether it is a typed function."""
        return isinstance(value, Callee)

    def printed(self, value: Any) -> Any:
        """Return some digits of the digest: the function's text is that of another graph."""
        return value.digest.hex()[:16] if isinstance(value, Callee) else value

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """Return the schema of an index."""
        return WHOLE | {"minimum": 0}

    def key(self, value: Any) -> Hashable:
        """Return the digest."""
        return self.name, value.digest

    def is_cacheable(self, value: Any) -> bool:
        """Return False: results for a function are cached in the function."""
        return False
