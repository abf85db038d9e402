"""The arguments of a recorded function."""

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

#: selects arguments: a position, a name, or several of these
Selector = int | str | Sequence[int | str]


class LeafType(NamedTuple):
    """The dtype and shape of an array among the arguments."""

    dtype: DType
    shape: Shape


def is_array(value: object) -> bool:
    """Return whether a value becomes a feed: an array, a number, or a resident tensor."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float | complex | np.ndarray | np.generic | Resident | Traced)


#: a feed, or its type alone if its elements are not known yet
Feed = Array | Resident | LeafType


class Library(NamedTuple):
    """The arrays of an array library: `is_array` recognises them, `to_feed` converts one to a feed."""

    is_array: Callable[[object], bool]
    to_feed: Callable[[Any], Feed]


NUMPY: Final = Library(is_array, lambda array: array if isinstance(array, Resident) else as_array(array))


class Argument(NamedTuple):
    """One argument. Its arrays are those from `start` to `stop` (exclusive) among the arrays of the call."""

    key: int | str
    name: str
    structure: Structure
    start: int
    stop: int


class Selection(NamedTuple):
    """The positions of some arrays among the arrays of the call, and the structure that results for them have."""

    positions: tuple[int, ...]
    structure: Structure


class Arguments:
    """The arguments of one call: its arrays in order, and the structure around them.

    Values that are not arrays, numbers, lists, tuples or dicts become part of the recording, and so do the arguments
    named in `static`.
    """

    def __init__(
        self,
        names: Sequence[str],
        static: Iterable[str],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        library: Library = NUMPY,
    ) -> None:
        named_values: list[tuple[int | str, Any]] = [*enumerate(args), *sorted(kwargs.items())]
        self._library = library
        self.arguments: list[Argument] = []
        self.library_arrays: list[Any] = []
        self.names: list[str] = []
        for key, value in named_values:
            name = key if isinstance(key, str) else names[key] if key < len(names) else f"argument{key}"
            self._add(key, name, value, is_static=name in {*static})
        self.arrays: list[Feed] = [*map(library.to_feed, self.library_arrays)]

    def _add(self, key: int | str, name: str, value: Any, *, is_static: bool) -> None:
        if is_static and not isinstance(value, Hashable):
            raise InputError(f"{name} is static, but {type(value).__name__} is not hashable")
        leaves, structure = ([], Structure(static=value)) if is_static else flatten(value, self._library.is_array)
        start = len(self.library_arrays)
        for leaf in leaves:
            self.names.append(name + leaf.path)
            self.library_arrays.append(leaf.value)
        self.arguments.append(Argument(key, name, structure, start, len(self.library_arrays)))

    def key(self, types: Sequence[LeafType]) -> Hashable:
        """Return the cache key of the recordings for these arguments, if their arrays have these types."""
        return tuple((argument.key, argument.structure) for argument in self.arguments), tuple(types)

    def replace_arrays(self, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and keyword arguments with other values in place of the arrays."""
        args, kwargs = list[Any](), dict[str, Any]()
        for argument in self.arguments:
            value = argument.structure.build(iter(values[argument.start : argument.stop]))
            if isinstance(argument.key, int):
                args.append(value)
            else:
                kwargs[argument.key] = value
        return args, kwargs

    def select(self, selector: Selector) -> Selection:
        """Select the arrays of some arguments. Raises InputError for an unknown name or position."""
        if isinstance(selector, int | str):
            return self._select_one(selector)
        selections = [self._select_one(each) for each in selector]
        positions = tuple(position for selection in selections for position in selection.positions)
        return Selection(positions, Structure(tuple, (), tuple(selection.structure for selection in selections)))

    def _select_one(self, selector: int | str) -> Selection:
        for argument in self.arguments:
            if selector in (argument.key, argument.name):
                return Selection(tuple(range(argument.start, argument.stop)), argument.structure)
        known_names = ", ".join(argument.name for argument in self.arguments)
        raise InputError(f"there is no argument {selector!r}; the arguments are {known_names or 'none'}")


def names_of(function: Callable[..., Any]) -> list[str]:
    """Return the names of the positional parameters; nothing if the function has no signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
