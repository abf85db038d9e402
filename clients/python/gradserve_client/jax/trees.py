"""Pytrees of arguments and results, with a name for each leaf."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jax

from gradserve_client.errors import InputError

#: name of a function's result, and first part of the names of its leaves
RESULT: Final = "result"


@dataclass(frozen=True)
class Tree:
    """The structure of a pytree and the names of its leaves: a first name and the key path, separated by dots."""

    structure: Any
    names: tuple[str, ...]

    @classmethod
    def of(cls, name: str, value: Any) -> Tree:
        """Return the tree of a value. A single leaf is named `name`. Raises InputError if a name repeats."""
        leaves, structure = jax.tree_util.tree_flatten_with_path(value)
        names = tuple(".".join([name, *_keys(path)]) for path, _ in leaves)
        repeated = sorted({each for each in names if names.count(each) > 1})
        if repeated:
            raise InputError(f"two leaves would be named {repeated[0]!r}: give the entries of {name!r} other keys")
        return cls(structure, names)

    def build(self, leaves: Mapping[str, Any]) -> Any:
        """Build the tree from leaves by name. Raises InputError if a leaf is missing."""
        missing = [name for name in self.names if name not in leaves]
        if missing:
            raise InputError(f"{missing[0]!r} is missing")
        return jax.tree_util.tree_unflatten(self.structure, [leaves[name] for name in self.names])


def _keys(path: Iterable[Any]) -> list[str]:
    return [jax.tree_util.keystr((key,), simple=True) for key in path]


def argument_names(function: Callable[..., Any], count: int) -> list[str]:
    """Return the names of a function's arguments. Variadic ones are numbered, and all are if there is no signature."""
    try:
        parameters: Sequence[inspect.Parameter] = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        parameters = []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [each.name for each in parameters if each.kind in positional][:count]
    variadic = [each.name for each in parameters if each.kind is inspect.Parameter.VAR_POSITIONAL] or ["argument"]
    return names + [f"{variadic[0]}.{i}" for i in range(count - len(names))]
