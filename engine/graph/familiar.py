"""Names that other systems have for ops and attributes, to suggest ours: `familiar_names.toml`, read on first use.

These are no aliases: a request that uses one is refused, and told the name to use.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class Familiar(NamedTuple):
    """A name, the op that it stands for, the systems that use it, and what else there is to write or to know."""

    name: str
    op: str
    systems: tuple[str, ...]
    note: str


def familiar_systems() -> Mapping[str, str]:
    """Titles of the systems, by key."""
    titles: Mapping[str, str] = _table()["systems"]
    return titles


@cache
def familiar_ops() -> tuple[Familiar, ...]:
    """Every name of an op, in the table's order."""
    return tuple(
        Familiar(name, op, tuple(systems.split(", ")), note)
        for op, names in _table()["ops"].items()
        for name, said in names.items()
        for systems, _, note in [said.partition(": ")]
    )


def familiar_attributes() -> Mapping[str, Sequence[str]]:
    """Names of attributes, and for each the ones of ours that it may stand for, the likeliest first."""
    names: Mapping[str, Sequence[str]] = _table()["attributes"]
    return names


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads((files("engine.graph") / "familiar_names.toml").read_text(encoding="utf-8"))
