"""Discovery: every op under `engine.ops`, found by walking the package. There is no list to edit."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

import engine.ops
from engine.attrs import Attr
from engine.errors import UnknownOp, printable
from engine.op import Op


class Registry:
    """The opset: canonical names, the spellings of other systems, and one type for each attribute name."""

    def __init__(self, ops: Iterable[Op]) -> None:
        """Raises ValueError when two ops claim one name or one attribute name has two kinds."""
        self.ops: Mapping[str, Op] = MappingProxyType(
            _unique((op.name, op) for op in sorted(ops, key=lambda op: op.name))
        )
        self._spellings = _unique((s.lower(), op) for op in self.ops.values() for s in _spellings(op))
        self.attributes: Mapping[str, str] = MappingProxyType(_attribute_kinds(self.ops.values()))

    def find(self, spelling: str) -> Op | None:
        """The op of this canonical name or alias, ignoring case."""
        return self._spellings.get(spelling.lower())

    def get(self, spelling: str) -> Op:
        """As `find`. Raises UnknownOp with the nearest name."""
        op = self.find(spelling)
        if op is None:
            raise _unknown(spelling, self._spellings)
        return op


def _spellings(op: Op) -> set[str]:
    return {op.name, *(alias.lower() for alias in op.aliases)}


def _unique(pairs: Iterable[tuple[str, Op]]) -> dict[str, Op]:
    found: dict[str, Op] = {}
    for name, op in pairs:
        if name in found:
            raise ValueError(f"two ops are called {name}: {found[name]!r} and {op!r}")
        found[name] = op
    return found


def _attribute_kinds(ops: Iterable[Op]) -> dict[str, str]:
    kinds: dict[str, str] = {}
    for op in ops:
        for name, attr in op.attrs.items():
            if kinds.setdefault(name, attr.kind) != attr.kind:
                raise ValueError(f"attribute {name} is {attr.kind} in {op.name} and {kinds[name]} elsewhere")
    return dict(sorted(kinds.items()))


def _unknown(spelling: str, known: Mapping[str, Op]) -> UnknownOp:
    near = get_close_matches(spelling[:64].lower(), known, n=1)
    hint = f"; did you mean {known[near[0]].name}?" if near else "; GET /v1/ops lists all ops"
    shown = printable(spelling)
    return UnknownOp(f"there is no op called “{shown}”{hint}", expected="the name or an alias of an op", got=shown)


@lru_cache(maxsize=1)
def registry() -> Registry:
    """All ops of this installation, discovered once."""
    return Registry(_discover())


def _discover() -> Iterator[Op]:
    for module_info in pkgutil.walk_packages(engine.ops.__path__, "engine.ops."):
        module = importlib.import_module(module_info.name)
        for _, cls in inspect.getmembers(module, inspect.isclass):
            # A class without a name of its own is a base.
            if issubclass(cls, Op) and cls.__module__ == module.__name__ and "name" in vars(cls):
                yield cls()


def describe(known: Registry) -> list[dict[str, Any]]:
    """The catalogue: one JSON-ready row an op, sorted by name."""
    return [_row(op) for op in known.ops.values()]


def _row(op: Op) -> dict[str, Any]:
    doc = inspect.cleandoc(op.__doc__ or "")
    return {
        "name": op.name,
        "summary": doc.partition("\n")[0],
        "doc": doc,
        "operands": list(op.operands),
        "attributes": [_attribute(name, attr) for name, attr in op.attrs.items()],
        "gradient": op.gradient,
        "dtypes": list(op.dtypes),
        "aliases": [{"name": alias, "systems": systems} for alias, systems in op.aliases.items()],
        "several_outputs": op.several,
        "since": op.since,
    }


def _attribute(name: str, attr: Attr) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "type": attr.kind, "required": attr.required, "doc": attr.doc}
    if not attr.required and attr.default is not None:
        row["default"] = _jsonable(attr.default)
    if attr.choices:
        row["choices"] = list(attr.choices)
    return row


def _jsonable(default: Any) -> Any:
    if isinstance(default, tuple):
        return list(default)
    return default.name if isinstance(default, np.dtype) else default
