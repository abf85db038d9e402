"""Lists, tuples and dicts with arrays in them: taken apart, and put together again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from gradserve_client.errors import InputError

T = TypeVar("T")


class Leaf(NamedTuple, Generic[T]):
    """What is at a place of a tree; `path` is that place, as `.w[0]`."""

    path: str
    value: T


@dataclass(frozen=True)
class Structure:
    """A tree without its leaves. `kind` is that of a container, `fixed` what is neither leaf nor container."""

    kind: type[Any] | None = None
    keys: tuple[Hashable, ...] = ()
    parts: tuple[Structure, ...] = ()
    fixed: Hashable = None
    is_leaf: bool = False

    def build(self, leaves: Iterator[Any]) -> Any:
        """A tree of the next leaves."""
        if self.is_leaf:
            return next(leaves)
        if self.kind is None:
            return self.fixed
        parts = [part.build(leaves) for part in self.parts]
        if issubclass(self.kind, dict):
            return dict(zip(self.keys, parts, strict=True))
        return self.kind(*parts) if hasattr(self.kind, "_fields") else self.kind(parts)


LEAF = Structure(is_leaf=True)


def flatten(tree: Any, is_leaf: Callable[[Any], bool], path: str = "") -> tuple[list[Leaf[Any]], Structure]:
    """Leaves in order, and the structure. Raises InputError for what can be compared by no key."""
    if is_leaf(tree):
        return [Leaf(path, tree)], LEAF
    if not isinstance(tree, list | tuple | dict):
        if not isinstance(tree, Hashable):
            raise InputError(f"{type(tree).__name__}{path and f' at {path}'} is no array, number, list, tuple or dict")
        return [], Structure(fixed=tree)
    named = [*tree.items()] if isinstance(tree, dict) else [*enumerate(tree)]
    steps = [f".{key}" if isinstance(tree, dict) else f"[{key}]" for key, _ in named]
    flat = [flatten(part, is_leaf, path + step) for step, (_, part) in zip(steps, named, strict=True)]
    keys = tuple(key for key, _ in named) if isinstance(tree, dict) else ()
    structure = Structure(type(tree), keys, tuple(part for _, part in flat))
    return [leaf for leaves, _ in flat for leaf in leaves], structure


def matched(tree: Any, structure: Structure, what: str) -> list[Any]:
    """The leaves of a tree that has this structure. Raises InputError where it has another one."""
    if structure.is_leaf:
        return [tree]
    if structure.kind is None:
        return []
    keys: Sequence[Any] = structure.keys or range(len(structure.parts))
    if not isinstance(tree, list | tuple | dict) or len(tree) != len(structure.parts):
        expected = f"a {structure.kind.__name__} of {len(structure.parts)}"
        raise InputError(f"{what} have the structure of what they belong to, and {expected} is missing")
    try:
        parts = [tree[key] for key in keys]
    except KeyError as error:
        raise InputError(f"{what} have none for {error}") from None
    return [leaf for part, inner in zip(parts, structure.parts, strict=True) for leaf in matched(part, inner, what)]
