"""The array that recorded functions compute with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final, NoReturn, Self

from gradserve_client.recording import elementwise, namespace, products
from gradserve_client.recording.indexing import getitem, setitem
from gradserve_client.recording.info import DEVICE
from gradserve_client.recording.lines import RecordingError, locates_errors, users_line
from gradserve_client.recording.manipulation import matrix_transpose, permute_dims
from gradserve_client.recording.recorder import Traced

#: supported versions of the Array API standard
VERSIONS: Final = ("2021.12", "2022.12", "2023.12", "2024.12")


def _operator(function: Callable[[Any, Any], Traced]) -> Callable[[RecordedArray, Any], Any]:
    def operate(array: RecordedArray, other: Any) -> Any:
        return function(array, other) if _is_operand(other) else NotImplemented

    return operate


def _reflected(function: Callable[[Any, Any], Traced]) -> Callable[[RecordedArray, Any], Any]:
    def operate(array: RecordedArray, other: Any) -> Any:
        return function(other, array) if _is_operand(other) else NotImplemented

    return operate


def _in_place(function: Callable[[Any, Any], Traced]) -> Callable[[RecordedArray, Any], Any]:
    """Return an operator that makes the array, under all of its names, the result. Shape and dtype must not change."""

    def operate(array: RecordedArray, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        result = function(array, other)
        if (result.shape, result.dtype) != (array.shape, array.dtype):
            raise RecordingError(
                f"{function.__name__} ({users_line()}): {array.type_name} cannot become {result.type_name} in place"
            )
        array.become(result)
        return array

    return operate


def _is_operand(other: Any) -> bool:
    """Return whether a value can be an operand: a recorded or NumPy array, or a number."""
    return isinstance(other, Traced | bool | int | float | complex) or hasattr(other, "__array_interface__")


def namespace_hint(name: str) -> str:
    """Return what to write instead of a method or a NumPy function."""
    if name in namespace.__all__:
        return f"write xp.{name}(x), with xp = x.__array_namespace__()"
    return "use the functions of x.__array_namespace__()"


_getitem, _setitem = locates_errors(getitem), locates_errors(setitem)


class RecordedArray(Traced):
    """An array of the Array API standard whose operations append nodes to the graph being recorded.

    It has a shape and a dtype, but no elements yet. `bool`, `float` and `int` read an element of the example values if
    the function may read values, and otherwise raise RecordingError.

    `x[key] = value` and `x += y` change this array, under all of its names. Arrays that were indexed from it before
    keep their elements, which the standard allows, unlike NumPy's views.
    """

    __hash__ = None  # type: ignore[assignment] # == is elementwise

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        if api_version is not None and api_version not in VERSIONS:
            raise RecordingError(f"unsupported version {api_version} of the standard; supported: {', '.join(VERSIONS)}")
        return namespace

    @property
    def device(self) -> str:
        """The device of the elements."""
        return DEVICE

    def to_device(self, device: object, /, *, stream: object = None) -> Self:
        """Return self, since there is only one device. Raises RecordingError for any other device."""
        if device != DEVICE:
            raise RecordingError(f"to_device ({users_line()}): the only device is {DEVICE!r}")
        return self

    @property
    def T(self) -> Traced:  # noqa: N802 - the standard's name
        """The transpose of a matrix. Raises RecordingError unless the array has two axes."""
        if self.ndim != 2:
            raise RecordingError(
                f"T ({users_line()}): expected a matrix, but {self.type_name} has {self.ndim} axes: use mT"
            )
        return permute_dims(self, (1, 0))

    @property
    def mT(self) -> Traced:  # noqa: N802 - the standard's name
        """The array with its last two axes swapped."""
        return matrix_transpose(self)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Traced]:
        return (_getitem(self, i) for i in range(len(self)))

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"recorded arrays have no {name}; {namespace_hint(name)}")

    def __repr__(self) -> str:
        return f"<recorded {self.type_name} of {self.node!r}>"

    def __bool__(self) -> bool:
        truth = elementwise.not_equal(self, 0) if self.dtype.kind == "c" else self
        return bool(truth.recorder.value(truth, "bool"))

    def __float__(self) -> float:
        return float(self._real("float"))

    def __int__(self) -> int:
        return int(self._real("int"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError(f"{self.type_name} is not an integer")
        return int(self.recorder.value(self, "int"))

    def __complex__(self) -> complex:
        if self.dtype.kind != "c":
            return complex(self.recorder.value(self, "complex"))
        parts = elementwise.real(self), elementwise.imag(self)
        return complex(*(part.recorder.value(part, "complex") for part in parts))

    def _real(self, reader: str) -> float | int | bool:
        """Read the only element. Raises RecordingError for a complex dtype, which `reader` cannot return."""
        if self.dtype.kind == "c":
            raise RecordingError(f"{reader} ({users_line()}): {self.type_name} is complex: use complex(x) or abs(x)")
        return self.recorder.value(self, reader)

    def __array__(self, *args: object, **kwargs: object) -> NoReturn:
        raise RecordingError(
            f"NumPy cannot read a recorded array ({users_line()}), which has no values yet: use the functions of "
            "x.__array_namespace__() instead of NumPy's"
        )

    def __array_function__(self, function: Callable[..., Any], *args: object) -> NoReturn:
        name = function.__name__
        raise RecordingError(f"numpy.{name} ({users_line()}): does not accept recorded arrays; {namespace_hint(name)}")

    def __dlpack__(self, **kwargs: object) -> NoReturn:
        self.__array__()

    def __getitem__(self, key: Any, /) -> Traced:
        return _getitem(self, key)

    def __setitem__(self, key: Any, value: Any, /) -> None:
        self.become(_setitem(self, key, value))

    def __neg__(self) -> Traced:
        return elementwise.negative(self)

    def __pos__(self) -> Traced:
        return elementwise.positive(self)

    def __abs__(self) -> Traced:
        return elementwise.abs(self)

    def __invert__(self) -> Traced:
        return elementwise.bitwise_invert(self)

    __add__, __radd__, __iadd__ = (
        make_operator(elementwise.add) for make_operator in (_operator, _reflected, _in_place)
    )
    __sub__, __rsub__, __isub__ = (
        make_operator(elementwise.subtract) for make_operator in (_operator, _reflected, _in_place)
    )
    __mul__, __rmul__, __imul__ = (
        make_operator(elementwise.multiply) for make_operator in (_operator, _reflected, _in_place)
    )
    __truediv__, __rtruediv__, __itruediv__ = (
        make_operator(elementwise.divide) for make_operator in (_operator, _reflected, _in_place)
    )
    __floordiv__, __rfloordiv__, __ifloordiv__ = (
        make_operator(elementwise.floor_divide) for make_operator in (_operator, _reflected, _in_place)
    )
    __mod__, __rmod__, __imod__ = (
        make_operator(elementwise.remainder) for make_operator in (_operator, _reflected, _in_place)
    )
    __pow__, __rpow__, __ipow__ = (
        make_operator(elementwise.pow) for make_operator in (_operator, _reflected, _in_place)
    )
    __matmul__, __rmatmul__, __imatmul__ = (
        make_operator(products.matmul) for make_operator in (_operator, _reflected, _in_place)
    )
    __and__, __rand__, __iand__ = (
        make_operator(elementwise.bitwise_and) for make_operator in (_operator, _reflected, _in_place)
    )
    __or__, __ror__, __ior__ = (
        make_operator(elementwise.bitwise_or) for make_operator in (_operator, _reflected, _in_place)
    )
    __xor__, __rxor__, __ixor__ = (
        make_operator(elementwise.bitwise_xor) for make_operator in (_operator, _reflected, _in_place)
    )
    __lt__ = _operator(elementwise.less)
    __le__ = _operator(elementwise.less_equal)
    __gt__ = _operator(elementwise.greater)
    __ge__ = _operator(elementwise.greater_equal)
    __eq__ = _operator(elementwise.equal)
    __ne__ = _operator(elementwise.not_equal)
