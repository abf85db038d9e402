"""What is foreseen of a graph, compared with what is written."""

from __future__ import annotations

from collections.abc import Sequence

from engine import Builder, Value
from engine.graph.attributes import keyed
from engine.transforms.sketch import Sketch


def indices(values: Sequence[Value | None]) -> list[int | None]:
    return [None if value is None else value.index for value in values]


def assert_alike(sketch: Sketch, builder: Builder) -> None:
    """The same nodes: ops, attributes, types, operands."""
    assert len(sketch) == len(builder.nodes)
    for index, node in enumerate(builder.nodes):
        like = sketch.form(index).node
        assert (like.op, like.types, sketch.operands(index)) == (node.op, node.types, node.operands)
        assert node.is_leaf or keyed(like.attrs) == keyed(node.attrs)
