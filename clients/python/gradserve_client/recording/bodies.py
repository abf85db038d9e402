"""Bodies: functions that an op runs, recorded on their own and written into the graph with the arrays they capture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradserve_client.graph import Graph, GraphFunction, Node
from gradserve_client.recording.arguments import LeafType
from gradserve_client.recording.emitting import common_dtype, is_scalar, lift
from gradserve_client.recording.recorder import RecordedGraph, Traced, current
from gradserve_client.recording.trees import Structure, flatten


class ArrayTree(NamedTuple):
    """The arrays of a tree with their paths, and the tree's structure."""

    arrays: list[Traced]
    paths: list[str]
    structure: Structure

    @property
    def types(self) -> list[LeafType]:
        """The dtypes and shapes of the arrays."""
        return [type_of(array) for array in self.arrays]

    @property
    def tree_type(self) -> TreeType:
        """The types of the arrays with the structure of the tree."""
        return TreeType(self.types, self.structure)


class TreeType(NamedTuple):
    """The types of the arrays of a tree, and its structure."""

    types: list[LeafType]
    structure: Structure

    def build(self, arrays: Iterable[Traced]) -> Any:
        """Return a tree of this structure with these arrays."""
        return self.structure.build(iter(arrays))


def type_of(array: Traced) -> LeafType:
    """Return the dtype and shape of an array."""
    return LeafType(array.dtype, array.shape)


def flatten_arrays(tree: Any, like: Sequence[Traced] = ()) -> ArrayTree:
    """Return the arrays of a tree. Numbers become constants, with the dtype of the array in `like` at their place."""
    leaves, structure = flatten(tree, _is_leaf)
    arrays = [_lift(leaf.value, [*like[i : i + 1]]) for i, leaf in enumerate(leaves)]
    return ArrayTree(arrays, [leaf.path for leaf in leaves], structure)


def _is_leaf(value: object) -> bool:
    return isinstance(value, bool | int | float | complex | np.ndarray | np.generic | Traced)


def _lift(value: Any, like: Sequence[Traced]) -> Traced:
    dtype = common_dtype(value, *like) if like and is_scalar(value) else None
    return current().capture(lift(value, dtype))


class Body:
    """A Python function, called once with arrays of the given types. `result` is its result."""

    def __init__(self, function: Callable[..., Any], *tree_types: TreeType) -> None:
        name = getattr(function, "__name__", "")
        self._name = name if name.isidentifier() else None
        self._recorder = current().nested()
        with self._recorder.recording():
            trees = [
                tree_type.build([self._recorder.parameter(*each) for each in tree_type.types])
                for tree_type in tree_types
            ]
            self.result = function(*trees)

    def arrays(self, tree: Any, like: Sequence[Traced] = ()) -> ArrayTree:
        """Return the arrays of a part of the result."""
        with self._recorder.recording():
            return flatten_arrays(tree, like)

    @property
    def consts(self) -> list[Traced]:
        """The arrays that it captured from the enclosing function."""
        return [each.outer for each in self._recorder.captured.values()]

    def write(self, outputs: Sequence[Traced], consts: Sequence[Traced]) -> GraphFunction:
        """Write the function into the graph. Its parameters are `consts`, a superset of its captures, then its own."""
        return self._recorder.graph.function(lambda graph: self._copy_nodes(graph, outputs, consts), self._name)

    def _copy_nodes(self, graph: Graph, outputs: Sequence[Traced], consts: Sequence[Traced]) -> list[Node]:
        """Copy all nodes behind parameters for `consts`, which are known only after all bodies of the op have run."""
        assert isinstance(graph, RecordedGraph)
        copies: dict[int, Node] = {}
        for const in consts:
            node = graph.input()
            if const.node.id in self._recorder.captured:
                copies[self._recorder.captured[const.node.id].inner.node.id] = node
        for node in self._recorder.graph:
            if node.id not in copies:
                copies[node.id] = graph.copy_node(node, [copies[i] for i in node.operands])
        return [copies[output.node.id] for output in outputs]


def run(
    op: str,
    bodies: Mapping[str, tuple[Body, Sequence[Traced]]],
    operands: Sequence[Traced],
    results: Sequence[LeafType],
    /,
    first: Sequence[Traced] = (),
    **attrs: Any,
) -> list[Traced]:
    """Append an op that runs functions, given with their outputs, and return its results.

    Its operands are `first`, then the arrays that the functions captured, then `operands`.
    """
    consts = list({const.node.id: const for body, _ in bodies.values() for const in body.consts}.values())
    functions = {name: body.write(outputs, consts) for name, (body, outputs) in bodies.items()}
    return current().emit_several(op, [*first, *consts, *operands], results, **functions, **attrs)
