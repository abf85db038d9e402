"""Shapes and dtypes: the static type of every value, and the promotion rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from operator import mul
from typing import Any, Final, Literal

import numpy as np

from engine.ir.errors import BadAttribute, DtypeMismatch, ShapeMismatch

ElementKind = Literal["boolean", "integer", "floating", "complex"]


@dataclass(frozen=True, slots=True)
class ElementType:
    """Properties of a dtype.

    `name` is NumPy's, also used in JSON and graphs; `width` is in bytes. `is_differentiable` says whether derivatives
    of and with respect to its numbers exist, `has_kernels` whether kernels and microkernels are generated for it.
    `safetensors` is the name in binary bodies, empty if that format lacks the dtype. An element takes at most
    `json_characters` in JSON, including its comma; integers beyond 2⁵³ are never written there. Graphs may use it
    `since` an opset. A complex number is two of the dtype `parts`, the real one first.
    """

    name: str
    kind: ElementKind
    width: int
    is_differentiable: bool
    safetensors: str
    json_characters: int
    has_kernels: bool = False
    since: int = 1
    parts: str = ""


#: in the order of messages; within a kind, the narrowest first
ELEMENT_TYPES: Final = (
    ElementType("bool", "boolean", 1, False, "BOOL", 2),
    ElementType("int8", "integer", 1, False, "I8", 5),
    ElementType("uint8", "integer", 1, False, "U8", 4),
    ElementType("int16", "integer", 2, False, "I16", 7, since=2),
    ElementType("int32", "integer", 4, False, "I32", 12),
    ElementType("uint32", "integer", 4, False, "U32", 11, since=2),
    ElementType("int64", "integer", 8, False, "I64", 18),
    ElementType("float16", "floating", 2, True, "F16", 16),
    ElementType("float32", "floating", 4, True, "F32", 17, has_kernels=True),
    ElementType("float64", "floating", 8, True, "F64", 26, has_kernels=True),
    ElementType("complex64", "complex", 8, True, "C64", 34, since=2, parts="float32"),
    ElementType("complex128", "complex", 16, True, "", 52, since=2, parts="float64"),
)


def _names(*kinds: ElementKind) -> tuple[str, ...]:
    return tuple(element.name for element in ELEMENT_TYPES if element.kind in kinds)


DTYPES: Final = tuple(element.name for element in ELEMENT_TYPES)
INTEGERS: Final = _names("integer")
FLOATS: Final = _names("floating")
NUMBERS: Final = _names("integer", "floating")
COMPLEX: Final = _names("complex")
#: default dtypes of an op: all ordered ones
REALS: Final = _names("boolean", "integer", "floating")

_BY_NAME: Final = {element.name: element for element in ELEMENT_TYPES}


@lru_cache(maxsize=1024)
def element_type(dtype: np.dtype[Any]) -> ElementType | None:
    """Return the properties of a dtype, in either byte order; None if the opset has no such dtype."""
    return _BY_NAME.get(dtype.name)


def is_differentiable(dtype: np.dtype[Any]) -> bool:
    """Return whether derivatives of and with respect to numbers of this dtype exist."""
    element = element_type(dtype)
    return element is not None and element.is_differentiable


def is_complex(dtype: np.dtype[Any]) -> bool:
    """Return whether numbers of this dtype have a real and an imaginary part."""
    return dtype.kind == "c"


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the parts of a complex dtype; other dtypes unchanged."""
    element = element_type(dtype)
    return np.dtype(element.parts) if element is not None and element.parts else dtype


def has_kernels(dtype: np.dtype[Any]) -> bool:
    """Return whether kernels and microkernels are generated for this dtype; NumPy computes the others.

    Kernels support complex numbers as pairs of real ones, under the dtype of the parts.
    """
    element = element_type(dtype)
    return element is not None and element.has_kernels


@lru_cache(maxsize=1024)
def has_infinities(dtype: np.dtype[Any]) -> bool:
    """Return whether numbers of this dtype may be infinite or NaN: all but booleans and integers."""
    element = element_type(dtype)
    return dtype.kind not in "biu" if element is None else element.kind not in ("boolean", "integer")


@lru_cache(maxsize=1024)
def in_opset(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return `dtype`; for integers that the opset lacks, the narrowest dtype that holds them, or else the widest.

    NumPy's promotion leaves the opset for sums of unsigned integers, and in opset 1 for int8 with uint8.
    """
    if dtype.kind not in "iu" or element_type(dtype) is not None:
        return dtype
    integers = [np.dtype(name) for name in INTEGERS]
    return next((wider for wider in integers if np.can_cast(dtype, wider, "safe")), integers[-1])


Shape = tuple[int, ...]
DType = np.dtype[Any]
HostArray = np.ndarray[Any, Any]

FLOAT16 = np.dtype("float16")
FLOAT32 = np.dtype("float32")
FLOAT64 = np.dtype("float64")
COMPLEX64 = np.dtype("complex64")
COMPLEX128 = np.dtype("complex128")
INT8 = np.dtype("int8")
INT16 = np.dtype("int16")
INT32 = np.dtype("int32")
INT64 = np.dtype("int64")
UINT8 = np.dtype("uint8")
UINT32 = np.dtype("uint32")
BOOL = np.dtype("bool")


@dataclass(frozen=True, slots=True)
class TensorType:
    """The static type of a tensor: `shape`, each extent ≥ 0, and `dtype`. Derived properties are computed once.

    `size` is the number of elements, `nbytes` the size of a dense tensor. `span` is `nbytes` with zero extents counted
    as one: NumPy rejects [0, 2**70] for the same reason as [2**70]. `is_differentiable` says whether derivatives of and
    with respect to it exist, `is_float` whether its elements are real floating-point numbers, which are ordered and
    round, and `is_complex` whether they are pairs of these, which are not ordered.
    """

    shape: Shape
    dtype: DType
    size: int = field(init=False, repr=False, compare=False)
    nbytes: int = field(init=False, repr=False, compare=False)
    span: int = field(init=False, repr=False, compare=False)
    is_differentiable: bool = field(init=False, repr=False, compare=False)
    is_float: bool = field(init=False, repr=False, compare=False)
    is_complex: bool = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        size, (itemsize, differentiable, is_float, has_parts) = math.prod(self.shape), _traits(self.dtype)
        set_field = object.__setattr__  # bypasses `frozen`
        set_field(self, "size", size)
        set_field(self, "nbytes", size * itemsize)
        set_field(self, "span", (size or math.prod(extent or 1 for extent in self.shape)) * itemsize)
        set_field(self, "is_differentiable", differentiable)
        set_field(self, "is_float", is_float)
        set_field(self, "is_complex", has_parts)
        set_field(self, "_hash", hash((self.shape, self.dtype)))

    def __hash__(self) -> int:
        return self._hash

    @classmethod
    def of(cls, array: Any) -> TensorType:
        """Return the type of a NumPy or CuPy array."""
        return cls(tuple(array.shape), array.dtype)

    @property
    def strides(self) -> tuple[int, ...]:
        """Byte strides along each axis, as NumPy defines them: here, of a dense row-major array."""
        extents = (extent or 1 for extent in self.shape[:0:-1])
        return tuple(accumulate(extents, mul, initial=self.dtype.itemsize))[::-1] if self.shape else ()

    @property
    def is_dense(self) -> bool:
        """Whether `strides` are those of a dense array."""
        return True

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def with_shape(self, shape: Sequence[int]) -> TensorType:
        """Return the type with another shape."""
        return TensorType(tuple(shape), self.dtype)

    def with_dtype(self, dtype: DType | str) -> TensorType:
        """Return the type with another dtype."""
        return TensorType(self.shape, np.dtype(dtype))

    def __str__(self) -> str:
        return f"{dtype_name(self.dtype)}[{','.join(map(str, self.shape))}]"


class Strided(TensorType):
    """Type of a tensor that is not dense, with `strides` as NumPy defines them."""

    __slots__ = ("_strides",)
    _strides: tuple[int, ...]

    def __init__(self, type: TensorType, strides: Sequence[int]) -> None:
        super().__init__(type.shape, type.dtype)
        object.__setattr__(self, "_strides", tuple(strides))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Strided) and super().__eq__(other) and self._strides == other._strides

    def __hash__(self) -> int:
        return hash((self._hash, self._strides))

    @property
    def strides(self) -> tuple[int, ...]:
        """The given strides."""
        return self._strides

    @property
    def is_dense(self) -> bool:
        """Whether they are those of a dense array; axes of extent one do not count, and an empty array is dense."""
        dense = TensorType(self.shape, self.dtype).strides
        steps = zip(self.shape, self.strides, dense, strict=True)
        return not self.size or all(extent == 1 or stride == dense_stride for extent, stride, dense_stride in steps)


@lru_cache(maxsize=1024)
def _traits(dtype: DType) -> tuple[int, bool, bool, bool]:
    """Return the size of an element, and whether the dtype is differentiable, float, and complex."""
    element = element_type(dtype)
    is_float = element is not None and element.kind == "floating"
    return dtype.itemsize, is_differentiable(dtype), is_float, is_complex(dtype)


@lru_cache(maxsize=1024)
def dtype_name(dtype: DType) -> str:
    """Return NumPy's name of a dtype. Cached, since NumPy takes as long for it as for adding two small arrays."""
    return dtype.name


def read_only_copy(array: HostArray) -> HostArray:
    """Return a dense, read-only copy that owns its memory."""
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy


@lru_cache(maxsize=1024)
def promote(*dtypes: DType) -> DType:
    """Return the common dtype of operands, by NumPy 2's promotion rules, within the opset."""
    return in_opset(np.result_type(*dtypes))


@lru_cache(maxsize=1024)
def float_dtype(*dtypes: DType) -> DType:
    """Return the dtype in which a function with real results computes, as NumPy's ufuncs choose (int32 → float64)."""
    return promote(np.dtype("float16"), *dtypes)


def sum_dtype(dtype: DType) -> DType:
    """Return the dtype of sums and products over many elements: a differentiable dtype itself, else int64."""
    return dtype if is_differentiable(dtype) else INT64


def mean_dtype(dtype: DType) -> DType:
    """Return the dtype of means, norms and matrix factors: a differentiable dtype itself, else float64."""
    return dtype if is_differentiable(dtype) else FLOAT64


def complex_dtype(*dtypes: DType) -> DType:
    """Return the dtype of spectra: complex, as wide as the operands' `mean_dtype`, at least complex64."""
    return promote(*map(mean_dtype, dtypes), COMPLEX64)


def reduced_shape(shape: Shape, axes: Sequence[int], keepdims: bool) -> Shape:
    """Return `shape` with `axes` reduced."""
    if keepdims:
        return tuple(1 if i in axes else e for i, e in enumerate(shape))
    return tuple(e for i, e in enumerate(shape) if i not in axes)


def broadcast(*shapes: Shape) -> Shape:
    """Return the broadcast of `shapes` by NumPy's rule. Raises ShapeMismatch with both shapes and the axis."""
    if all(s == shapes[0] for s in shapes):
        return shapes[0]
    rank = max(len(s) for s in shapes)
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    result = []
    for axis, extents in enumerate(zip(*padded, strict=True)):
        sizes = {e for e in extents if e != 1}
        if len(sizes) > 1:
            raise _unbroadcastable(shapes, axis - rank)
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def _unbroadcastable(shapes: Sequence[Shape], axis: int) -> ShapeMismatch:
    names = " and ".join(show_shape(s) for s in shapes)
    return ShapeMismatch(
        f"shapes {names} do not broadcast: their extents at axis {axis} differ and none of them is 1",
        expected="shapes that broadcast",
        got=names,
    )


def show_shape(shape: Sequence[int]) -> str:
    """Return a shape as messages write it, `[2, 3]`; a list that is too long for a shape is cut."""
    extents = [str(extent) for extent in shape[:64]]
    return "[" + ", ".join(extents if len(shape) <= 64 else [*extents, "…"]) + "]"


def normalise_axis(axis: int, ndim: int, attribute: str = "axis") -> int:
    """Return `axis` counted from the front. Raises BadAttribute if a tensor of `ndim` axes has no such axis."""
    if not -ndim <= axis < ndim:
        span = f"between {-ndim} and {ndim - 1}" if ndim else "absent (a 0-d tensor has no axes)"
        raise BadAttribute(
            f"{attribute} must be {span}, but is {axis}", attribute=attribute, expected=span, got=str(axis)
        )
    return axis % ndim


def normalise_axes(axes: Sequence[int] | None, ndim: int, attribute: str = "axes") -> tuple[int, ...]:
    """Return `axes` counted from the front, in the given order; all axes if None or empty.

    Raises BadAttribute for an axis that does not exist or is repeated.
    """
    if not axes:
        return tuple(range(ndim))
    normalised = tuple(normalise_axis(a, ndim, attribute) for a in axes)
    if len(set(normalised)) != len(normalised):
        received = show_shape(axes)
        raise BadAttribute(
            f"{attribute} names an axis twice: {received}", attribute=attribute, expected="distinct axes", got=received
        )
    return normalised


def require_type(received: TensorType, expected: TensorType, subject: str, operand: int | None = None) -> None:
    """Raise ShapeMismatch or DtypeMismatch, naming `subject`, unless the types are equal."""
    if received.shape != expected.shape:
        expected_text, received_text = show_shape(expected.shape), show_shape(received.shape)
        raise ShapeMismatch(
            f"{subject} must have shape {expected_text}, but has {received_text}",
            operand=operand,
            expected=expected_text,
            got=received_text,
        )
    if received.dtype != expected.dtype:
        expected_text, received_text = expected.dtype.name, received.dtype.name
        raise DtypeMismatch(
            f"{subject} must be {expected_text}, but is {received_text}",
            operand=operand,
            expected=expected_text,
            got=received_text,
        )
