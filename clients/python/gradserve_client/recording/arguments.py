"""What a recorded function is called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.recording.recorder import DType, Shape, Traced
from gradserve_client.recording.trees import Structure, flatten
from gradserve_client.resident import Resident
from gradserve_client.tensors import Array, as_array

#: which arguments: a position, a name, or several of these
Which = int | str | Sequence[int | str]


class LeafType(NamedTuple):
    """Dtype and shape of an array among the arguments."""

    dtype: DType
    shape: Shape


def is_array(value: object) -> bool:
    """Whether it is fed: an array, a number, or what the server keeps."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float | complex | np.ndarray | np.generic | Resident | Traced)


#: what is fed; or the type alone, where there are no elements yet
Fed = Array | Resident | LeafType


class Library(NamedTuple):
    """What the arrays of a library are, and what is fed of them."""

    is_array: Callable[[object], bool]
    fed: Callable[[Any], Fed]


NUMPY: Final = Library(is_array, lambda array: array if isinstance(array, Resident) else as_array(array))


class Argument(NamedTuple):
    """One argument, and which of all arrays are its."""

    key: int | str
    name: str
    structure: Structure
    start: int
    stop: int


class Chosen(NamedTuple):
    """Arrays by their places, and the structure in which what belongs to them is given back."""

    places: tuple[int, ...]
    structure: Structure


class Arguments:
    """The arguments of one call: arrays in order, and where they stand.

    What is no array, number, list, tuple or dict, is part of what is recorded, as are those that `static` names.
    """

    def __init__(
        self,
        names: Sequence[str],
        static: Iterable[str],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        library: Library = NUMPY,
    ) -> None:
        given: list[tuple[int | str, Any]] = [*enumerate(args), *sorted(kwargs.items())]
        self._library = library
        self.arguments: list[Argument] = []
        self.given: list[Any] = []
        self.names: list[str] = []
        for key, value in given:
            name = key if isinstance(key, str) else names[key] if key < len(names) else f"argument{key}"
            self._add(key, name, value, is_static=name in {*static})
        self.arrays: list[Fed] = [*map(library.fed, self.given)]

    def _add(self, key: int | str, name: str, value: Any, *, is_static: bool) -> None:
        if is_static and not isinstance(value, Hashable):
            raise InputError(f"{name} is static, and {type(value).__name__} cannot be compared by a key")
        leaves, structure = ([], Structure(fixed=value)) if is_static else flatten(value, self._library.is_array)
        start = len(self.given)
        for leaf in leaves:
            self.names.append(name + leaf.path)
            self.given.append(leaf.value)
        self.arguments.append(Argument(key, name, structure, start, len(self.given)))

    def key(self, types: Sequence[LeafType]) -> Hashable:
        """What a recording is found by."""
        return tuple((argument.key, argument.structure) for argument in self.arguments), tuple(types)

    def filled(self, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments as they were given, with other values in place of the arrays."""
        args, kwargs = list[Any](), dict[str, Any]()
        for argument in self.arguments:
            value = argument.structure.build(iter(values[argument.start : argument.stop]))
            if isinstance(argument.key, int):
                args.append(value)
            else:
                kwargs[argument.key] = value
        return args, kwargs

    def chosen(self, which: Which) -> Chosen:
        """The arrays of some arguments. Raises InputError where there is none of the name or at the position."""
        if isinstance(which, int | str):
            return self._one(which)
        each = [self._one(one) for one in which]
        places = tuple(place for one in each for place in one.places)
        return Chosen(places, Structure(tuple, (), tuple(one.structure for one in each)))

    def _one(self, which: int | str) -> Chosen:
        for argument in self.arguments:
            if which in (argument.key, argument.name):
                return Chosen(tuple(range(argument.start, argument.stop)), argument.structure)
        told = ", ".join(argument.name for argument in self.arguments)
        raise InputError(f"there is no argument {which!r} among {told or 'none'}")


def names_of(function: Callable[..., Any]) -> list[str]:
    """The names of the positional parameters, where the function says."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
