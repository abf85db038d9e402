"""Functions for ops to run: recorded by themselves, and written into the graph with what they read from around."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradserve_client.graph import Graph, GraphFunction, Node
from gradserve_client.recording.arguments import LeafType
from gradserve_client.recording.emitting import common_dtype, is_scalar, lifted
from gradserve_client.recording.recorder import RecordedGraph, Traced, current
from gradserve_client.recording.trees import Structure, flatten


class Arrays(NamedTuple):
    """The arrays of a tree, the place of each, and the tree without them."""

    arrays: list[Traced]
    paths: list[str]
    structure: Structure

    @property
    def types(self) -> list[LeafType]:
        """Dtypes and shapes."""
        return [type_of(array) for array in self.arrays]

    @property
    def kind(self) -> Kind:
        """All that is known of them."""
        return Kind(self.types, self.structure)


class Kind(NamedTuple):
    """Types of arrays, and the tree that they are in."""

    types: list[LeafType]
    structure: Structure

    def built(self, arrays: Iterable[Traced]) -> Any:
        """The tree of such arrays."""
        return self.structure.build(iter(arrays))


def type_of(array: Traced) -> LeafType:
    """Dtype and shape."""
    return LeafType(array.dtype, array.shape)


def arrays_of(tree: Any, like: Sequence[Traced] = ()) -> Arrays:
    """The arrays of a tree. Numbers become constants, which take the dtypes of what they are `like`."""
    leaves, structure = flatten(tree, _is_leaf)
    arrays = [_lifted(leaf.value, [*like[i : i + 1]]) for i, leaf in enumerate(leaves)]
    return Arrays(arrays, [leaf.path for leaf in leaves], structure)


def _is_leaf(value: object) -> bool:
    return isinstance(value, bool | int | float | complex | np.ndarray | np.generic | Traced)


def _lifted(value: Any, like: Sequence[Traced]) -> Traced:
    dtype = common_dtype(value, *like) if like and is_scalar(value) else None
    return current().own(lifted(value, dtype))


class Body:
    """A function of Python's, called once with arrays of these kinds; `result` is what it gave back."""

    def __init__(self, function: Callable[..., Any], *given: Kind) -> None:
        name = getattr(function, "__name__", "")
        self._name = name if name.isidentifier() else None
        self._recorder = current().inner()
        with self._recorder.recording():
            trees = [kind.built([self._recorder.parameter(*each) for each in kind.types]) for kind in given]
            self.result = function(*trees)

    def arrays(self, tree: Any, like: Sequence[Traced] = ()) -> Arrays:
        """The arrays of a part of the result."""
        with self._recorder.recording():
            return arrays_of(tree, like)

    @property
    def consts(self) -> list[Traced]:
        """What it read of the function around it."""
        return [each.outer for each in self._recorder.captured.values()]

    def written(self, outputs: Sequence[Traced], consts: Sequence[Traced]) -> GraphFunction:
        """The function of the graph: of consts, which may be more than it read, and what it was given."""
        return self._recorder.graph.function(lambda graph: self._again(graph, outputs, consts), self._name)

    def _again(self, graph: Graph, outputs: Sequence[Traced], consts: Sequence[Traced]) -> list[Node]:
        """All of its nodes once more, behind the consts: which these are is known when it has been called alone."""
        assert isinstance(graph, RecordedGraph)
        made: dict[int, Node] = {}
        for const in consts:
            node = graph.input()
            if const.node.id in self._recorder.captured:
                made[self._recorder.captured[const.node.id].own.node.id] = node
        for node in self._recorder.graph:
            if node.id not in made:
                made[node.id] = graph.again(node, [made[i] for i in node.operands])
        return [made[output.node.id] for output in outputs]


def run(
    op: str,
    bodies: Mapping[str, tuple[Body, Sequence[Traced]]],
    operands: Sequence[Traced],
    results: Sequence[LeafType],
    /,
    first: Sequence[Traced] = (),
    **attrs: Any,
) -> list[Traced]:
    """An op that runs functions, which are stated with their outputs: its results.

    What they read is passed in front of the operands, behind those that come `first`.
    """
    consts = list({const.node.id: const for body, _ in bodies.values() for const in body.consts}.values())
    functions = {name: body.written(outputs, consts) for name, (body, outputs) in bodies.items()}
    return current().several(op, [*first, *consts, *operands], results, **functions, **attrs)
