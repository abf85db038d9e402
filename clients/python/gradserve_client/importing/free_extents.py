"""Free extents: two imports of a model, for different examples, joined into a graph with -1 in its shapes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.graph import Graph, Node
from gradserve_client.importing.imported import Imported
from gradserve_client.importing.obstacles import Blocked, Obstacles
from gradserve_client.importing.source_graph import SourceGraph

#: free axes by the names of inputs
FreeAxes = Mapping[str, Collection[int]]
NO_FREE_AXES: Final[FreeAxes] = {}


def check_second_example(free: FreeAxes, first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
    """Raise InputError unless the shapes of the examples differ on all free axes, and nowhere else."""
    unknown = sorted(free.keys() - first.keys())
    if unknown:
        raise InputError(f"{unknown[0]!r} is not an input of the model and cannot have free extents")
    for name, example in first.items():
        one, other = np.shape(example), np.shape(second[name])
        axes = {axis % max(1, len(one)) for axis in free.get(name, ())}
        differing = {axis for axis, (a, b) in enumerate(zip(one, other, strict=False)) if a != b}
        if len(one) != len(other) or differing - axes:
            raise InputError(
                f"the examples of {name!r} have shapes {[*one]} and {[*other]}, but only axes {sorted(axes)} are free"
            )
        if axes - differing:
            raise InputError(
                f"axis {min(axes - differing)} of {name!r} is free, but both examples have the extent "
                f"{one[min(axes - differing)]} there: use another extent in the second example"
            )


def join_imports(first: Imported, second: Imported, free: FreeAxes) -> Imported:
    """Return the first import, with -1 for extents in which the second one differs.

    Raises ImportRefused if an attribute depends on a free extent, unless it is a single extent of a shape.
    """
    obstacles = Obstacles()
    axes = {node.id: {*free.get(name, ())} for name, node in first.inputs.items()}
    graph = SourceGraph(first.graph.opset)
    copied: dict[int, Node] = {}
    _functions(first, second, graph, obstacles)
    if len(first.graph) != len(second.graph):
        obstacles.add(
            "graph",
            "the whole graph",
            Blocked(f"it has {len(first.graph)} nodes, but {len(second.graph)} with the second example"),
        )
        obstacles.raise_all("the model with free extents")
    for one, other in zip(first.graph, second.graph, strict=True):
        attrs = _declared(one, axes[one.id]) if one.id in axes else _attrs(one, other, obstacles)
        copied[one.id] = graph.copy_node(one, [copied[i] for i in one.operands], attrs)
    obstacles.raise_all("the model with free extents")
    return replace(
        first,
        graph=graph,
        inputs=_copied_nodes(first.inputs, copied),
        parameters=_copied_nodes(first.parameters, copied),
        outputs=_copied_nodes(first.outputs, copied),
        state=_copied_nodes(first.state, copied),
        buffers=_copied_nodes(first.buffers, copied),
    )


def _copied_nodes(nodes: Mapping[str, Node], copied: Mapping[int, Node]) -> dict[str, Node]:
    return {name: copied[node.id] for name, node in nodes.items()}


def _functions(first: Imported, second: Imported, joined_graph: SourceGraph, obstacles: Obstacles) -> None:
    """Append the functions of both imports. Free extents appear only in their shapes."""
    for one, other in zip(first.graph.functions, second.graph.functions, strict=False):
        if len(one.nodes) != len(other.nodes):
            obstacles.add("function", repr(one.name), Blocked("it has different nodes with the second example"))
            continue

        def write(graph: Graph, one: Any = one, other: Any = other) -> Sequence[Node]:
            assert isinstance(graph, SourceGraph)
            copied: dict[int, Node] = {}
            for a, b in zip(one.nodes, other.nodes, strict=True):
                copied[a.id] = graph.copy_node(a, [copied[i] for i in a.operands], _attrs(a, b, obstacles))
            return [copied[output.id] for output in one.outputs]

        joined_graph.function(write, one.name)


def _declared(leaf: Node, axes: Collection[int]) -> dict[str, Any]:
    """Return the attributes of an input, with -1 for its free axes."""
    shape = leaf.attrs.get("shape")
    if shape is None or not axes:
        return dict(leaf.attrs)
    free = {axis % len(shape) for axis in axes}
    return {**leaf.attrs, "shape": [-1 if axis in free else extent for axis, extent in enumerate(shape)]}


def _attrs(one: Node, other: Node, obstacles: Obstacles) -> dict[str, Any]:
    """Return the common attributes. One extent of `reshape` may differ: it follows from the others."""
    if one.op != other.op or one.operands != other.operands or one.attrs.keys() != other.attrs.keys():
        obstacles.add(one.op, f"node {one.id}", Blocked(f"with the second example, it is {other.op}"))
        return dict(one.attrs)
    attrs = dict(one.attrs)
    for name, value in one.attrs.items():
        if _same(value, other.attrs[name]):
            continue
        shape = _with_one_free(value, other.attrs[name]) if (one.op, name) == ("reshape", "shape") else None
        if shape is None:
            blocked = Blocked(
                f"its {name} is {_describe(value)}, but {_describe(other.attrs[name])} with the second example"
            )
            obstacles.add(one.op, f"node {one.id}", blocked)
        else:
            attrs[name] = shape
    return attrs


def _with_one_free(one: Sequence[int], other: Sequence[int]) -> list[int] | None:
    """Return the shape with -1 where the two differ; None if that is not exactly one place."""
    if len(one) != len(other) or -1 in one:
        return None
    shape = [a if a == b else -1 for a, b in zip(one, other, strict=True)]
    return shape if shape.count(-1) == 1 and 0 not in shape else None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.shape(one) == np.shape(other) and one.dtype == other.dtype and bool(one.tobytes() == other.tobytes())
    return bool(one == other)


def _describe(value: Any) -> str:
    return f"a tensor of shape {[*value.shape]}" if isinstance(value, np.ndarray) else str(value)
