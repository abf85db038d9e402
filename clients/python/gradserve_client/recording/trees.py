"""Trees: nested lists, tuples and dicts of arrays, flattened to their leaves and rebuilt."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from gradserve_client.errors import InputError

T = TypeVar("T")


class Leaf(NamedTuple, Generic[T]):
    """A leaf of a tree, with its path such as `.w[0]`."""

    path: str
    value: T


@dataclass(frozen=True)
class Structure:
    """A tree without its leaves. `kind` is the type of a container; `static` is a value that is neither."""

    kind: type[Any] | None = None
    keys: tuple[Hashable, ...] = ()
    parts: tuple[Structure, ...] = ()
    static: Hashable = None
    is_leaf: bool = False

    def build(self, leaves: Iterator[Any]) -> Any:
        """Return the tree with the next leaves."""
        if self.is_leaf:
            return next(leaves)
        if self.kind is None:
            return self.static
        parts = [part.build(leaves) for part in self.parts]
        if issubclass(self.kind, dict):
            return dict(zip(self.keys, parts, strict=True))
        return self.kind(*parts) if hasattr(self.kind, "_fields") else self.kind(parts)


LEAF = Structure(is_leaf=True)


def flatten(tree: Any, is_leaf: Callable[[Any], bool], path: str = "") -> tuple[list[Leaf[Any]], Structure]:
    """Return the leaves in order, and the structure. Raises InputError for any other value that is not hashable."""
    if is_leaf(tree):
        return [Leaf(path, tree)], LEAF
    if not isinstance(tree, list | tuple | dict):
        if not isinstance(tree, Hashable):
            raise InputError(
                f"{type(tree).__name__}{path and f' at {path}'} is not an array, number, list, tuple or dict"
            )
        return [], Structure(static=tree)
    items = [*tree.items()] if isinstance(tree, dict) else [*enumerate(tree)]
    path_steps = [f".{key}" if isinstance(tree, dict) else f"[{key}]" for key, _ in items]
    flat = [flatten(part, is_leaf, path + step) for step, (_, part) in zip(path_steps, items, strict=True)]
    keys = tuple(key for key, _ in items) if isinstance(tree, dict) else ()
    structure = Structure(type(tree), keys, tuple(part for _, part in flat))
    return [leaf for leaves, _ in flat for leaf in leaves], structure


def match_leaves(tree: Any, structure: Structure, role: str) -> list[Any]:
    """Return the leaves of a tree with this structure. Raises InputError if it has a different structure."""
    if structure.is_leaf:
        return [tree]
    if structure.kind is None:
        return []
    keys: Sequence[Any] = structure.keys or range(len(structure.parts))
    if not isinstance(tree, list | tuple | dict) or len(tree) != len(structure.parts):
        expected = f"a {structure.kind.__name__} of {len(structure.parts)}"
        raise InputError(f"the {role} must have the structure of the arrays they belong to, but {expected} is missing")
    try:
        parts = [tree[key] for key in keys]
    except KeyError as error:
        raise InputError(f"the {role} have no entry for {error}") from None
    return [
        leaf for part, inner in zip(parts, structure.parts, strict=True) for leaf in match_leaves(part, inner, role)
    ]
