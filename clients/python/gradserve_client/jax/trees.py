"""Arguments and results of a function as trees, and the names of their leaves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jax

from gradserve_client.errors import InputError

#: what the result of a function is called
RESULT: Final = "result"


@dataclass(frozen=True)
class Tree:
    """A tree of JAX's, and the names of its leaves: the key path behind a name, with dots between."""

    structure: Any
    names: tuple[str, ...]

    @classmethod
    def of(cls, name: str, value: Any) -> Tree:
        """That of a value. A value that is a leaf itself has the name. Raises InputError for names that repeat."""
        found, structure = jax.tree_util.tree_flatten_with_path(value)
        names = tuple(".".join([name, *_keys(path)]) for path, _ in found)
        repeated = sorted({each for each in names if names.count(each) > 1})
        if repeated:
            raise InputError(f"two leaves would be called {repeated[0]!r}: give the entries of {name!r} other keys")
        return cls(structure, names)

    def built(self, leaves: Mapping[str, Any]) -> Any:
        """The tree of these leaves, by name. Raises InputError for one that is missing."""
        missing = [name for name in self.names if name not in leaves]
        if missing:
            raise InputError(f"{missing[0]!r} is missing")
        return jax.tree_util.tree_unflatten(self.structure, [leaves[name] for name in self.names])


def _keys(path: Iterable[Any]) -> list[str]:
    return [jax.tree_util.keystr((key,), simple=True) for key in path]


def argument_names(function: Callable[..., Any], count: int) -> list[str]:
    """What a function calls its arguments; those behind a star are counted, and so are all where it does not say."""
    try:
        parameters: Sequence[inspect.Parameter] = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        parameters = []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [each.name for each in parameters if each.kind in positional][:count]
    starred = [each.name for each in parameters if each.kind is inspect.Parameter.VAR_POSITIONAL] or ["argument"]
    return names + [f"{starred[0]}.{i}" for i in range(count - len(names))]
