"""The op catalogue: every op's declarations as plain data."""

from __future__ import annotations

import inspect
from typing import Any

from engine.ir.attributes import Attr
from engine.ir.op import Definition, Registry


def describe(registry: Registry) -> list[dict[str, Any]]:
    """Return the catalogue: one JSON-ready row per op, sorted by name."""
    return [_row(op) for op in registry.ops.values()]


def _row(op: Definition) -> dict[str, Any]:
    doc = inspect.cleandoc(op.__doc__ or "")
    return {
        "name": op.name,
        "summary": doc.partition("\n")[0],
        "doc": doc,
        "operands": list(op.operands),
        "attributes": [_attribute(name, attr, op.since) for name, attr in op.attrs.items()],
        "gradient": op.gradient,
        "dtypes": list(op.dtypes),
        "aliases": [{"name": alias, "systems": systems} for alias, systems in op.aliases.items()],
        "several_outputs": op.several,
        "since": op.since,
    }


def _attribute(name: str, attr: Attr, since: int) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "type": attr.definition.spelling, "required": attr.required, "doc": attr.doc}
    row["since"] = max(attr.since, since)
    if not attr.required and attr.default is not None:
        row["default"] = attr.definition.stated(attr.default)
    if attr.choices:
        row["choices"] = list(attr.choices)
    return row
