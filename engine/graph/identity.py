"""Identity of a program: a canonical text, and its hash.

The text is JSON without spaces, its keys sorted: `{"nodes":[…],"opset":1}`. A node has `op` (the canonical name) and,
where they are not empty, `operands` and `attrs`. Attributes at their default are left out, and so are names. The kind
of an attribute says how its value is written: so that no two languages write it differently. Where a graph has
functions, they come first: `"functions":[{"nodes":[…],"outputs":[…]}]`.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from engine.graph.kinds import key
from engine.graph.program import Program


def graph_id(program: Program) -> str:
    """SHA-256 of the canonical text, as 64 hexadecimal digits."""
    return sha256(canonical(program).encode()).hexdigest()


class GraphName:
    """The `graph_id` of programs that say the same: found when it is first asked for, and known from then on."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: str | None = None

    def of(self, program: Program) -> str:
        """`graph_id(program)`, the program being one of those."""
        if self._found is None:
            self._found = graph_id(program)
        return self._found


def canonical(program: Program) -> str:
    """The canonical text of a program."""
    said: dict[str, Any] = {"nodes": _nodes(program), "opset": program.opset}
    if program.functions:
        said["functions"] = [{"nodes": _nodes(f), "outputs": f.outputs} for f in program.functions]
    return json.dumps(said, sort_keys=True, separators=(",", ":"))


def _nodes(part: Program) -> list[dict[str, Any]]:
    return [_node(part, i) for i in range(len(part.statements))]


def _node(program: Program, i: int) -> dict[str, Any]:
    statement, bound = program.statements[i], program.attrs[i]
    attrs = {}
    for name, value in bound.items():
        attr = statement.op.attrs[name]
        # Types are compared first: no tensor has a default, and to hash one would take as long as to name it.
        if type(value) is not type(attr.default) or key(value) != key(attr.default):
            attrs[name] = attr.definition.canonical(value)
    node: dict[str, Any] = {"op": statement.op.name}
    if statement.operands:
        node["operands"] = statement.operands
    if attrs:
        node["attrs"] = attrs
    return node
