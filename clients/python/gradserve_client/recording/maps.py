"""A recorded graph as a map from arrays to arrays, whose derivatives are such maps again.

They are graphs with `grad` nodes: to have them takes no call, not even those of derivatives of derivatives, and so
who traces, as JAX does, has them without values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from gradserve_client.client import Client
from gradserve_client.graph import Graph, Node
from gradserve_client.recording.recorder import DType, Shape
from gradserve_client.registered import Registered
from gradserve_client.resident import Resident
from gradserve_client.tensors import Array

#: inputs, by their places
Places = tuple[int, ...]


class TypedNode(NamedTuple):
    """A node of which shape and dtype are known."""

    node: Node
    shape: Shape
    dtype: DType

    @property
    def is_float(self) -> bool:
        """Whether it has derivatives."""
        return self.dtype.kind == "f"

    def within(self, graph: Graph) -> TypedNode:
        """The same node of a copy of its graph."""
        return self._replace(node=graph.find(self.node.id))

    def alike(self, graph: Graph) -> TypedNode:
        """A new leaf of a graph, of this shape and dtype: a tangent or cotangent."""
        node = graph.input(dtype=self.dtype, shape=[*self.shape] or None, zero_d=None if self.shape else True)
        return self._replace(node=node)


Nodes = list[TypedNode]


class Map:
    """Arrays, one for each of `inputs`, to arrays, one for each of `outputs`. `fixed` is what feeds the other leaves.

    Derivatives are by the inputs at some places, all of them floats, and of those outputs that are floats.
    """

    def __init__(
        self,
        client: Client,
        registered: Registered,
        inputs: Sequence[TypedNode],
        outputs: Sequence[TypedNode],
        fixed: Mapping[Node, Resident] | None = None,
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self._client = client
        self.registered = registered
        self._fixed = fixed or {}
        self._derived: dict[Hashable, Map] = {}

    @property
    def is_scalar(self) -> bool:
        """Whether it gives one float, and so has a gradient."""
        return len(self.outputs) == 1 and self.outputs[0].is_float and not self.outputs[0].shape

    def __call__(self, values: Sequence[Any], mapped: Sequence[bool] = ()) -> list[Array]:
        """The outputs; where inputs are `mapped`, they and all outputs have a leading axis of examples."""
        feeds = self.feeds(values)
        asked = [*dict.fromkeys(each.node for each in self.outputs)]
        if any(mapped):
            axes = [each.node for each, has_axis in zip(self.inputs, mapped, strict=True) if has_axis]
            answer = self._client.batch(self.registered, feeds, outputs=asked, mapped=axes).values
        else:
            answer = self._client.forward(self.registered, feeds, outputs=asked).values
        return [answer[each.node] for each in self.outputs]

    def keep(self, values: Sequence[Any], names: Sequence[str | None]) -> list[Array]:
        """The outputs that have no name here. The server keeps the others under their names: these do not travel."""
        to = self.derived("kept", _kept)
        *outputs, receipt = (each.node for each in to.outputs)
        named = [*zip(outputs, names, strict=True)]
        answered = [node for node, name in named if name is None]
        store = {node: name for node, name in named if name is not None}
        asked = answered or [receipt]
        answer = self._client.forward(to.registered, to.feeds(values), outputs=asked, store=store).values
        return [answer[node] for node in answered]

    def feeds(self, values: Sequence[Any]) -> dict[Any, Any]:
        """What is fed, by leaf."""
        return {**self._fixed, **{each.node: value for each, value in zip(self.inputs, values, strict=True)}}

    def bound(self, tensors: Sequence[tuple[int, str]]) -> Map:
        """The map of the other inputs, where those at some places are what the server keeps under these names."""
        if tensors and ("bound", *tensors) not in self._derived:
            bound = {self.inputs[place].node: Resident(name, "") for place, name in tensors}
            left = [each for each in self.inputs if each.node not in bound]
            fixed = {**self._fixed, **bound}
            self._derived["bound", *tensors] = Map(self._client, self.registered, left, self.outputs, fixed)
        return self._derived["bound", *tensors] if tensors else self

    def with_gradients(self, wrt: Places) -> Map:
        """The value of a map that gives one float, and behind it its gradients."""

        def extend(graph: Graph, inputs: Nodes, outputs: Nodes) -> tuple[Nodes, Nodes]:
            return inputs, [outputs[0], *(_gradient(outputs[0].node, inputs[place]) for place in wrt)]

        return self.derived(("gradients", wrt), extend)

    def pullback(self, wrt: Places) -> Map:
        """From the inputs, and behind them a cotangent for each output that is a float: that times the Jacobian."""

        def extend(graph: Graph, inputs: Nodes, outputs: Nodes) -> tuple[Nodes, Nodes]:
            floats = _floats(outputs)
            cotangents = [output.alike(graph) for output in floats]
            weighted = _weighted(floats, cotangents)
            return [*inputs, *cotangents], [_gradient(weighted, inputs[place]) for place in wrt]

        return self.derived(("pullback", wrt), extend)

    def pushforward(self, wrt: Places) -> Map:
        """From the inputs, and behind them a tangent for each of `wrt`: the Jacobian times that, for each float.

        A pullback is linear in its cotangents: it is pulled back by these, at zero.
        """

        def extend(graph: Graph, inputs: Nodes, outputs: Nodes) -> tuple[Nodes, Nodes]:
            floats = _floats(outputs)
            zeros = [each._replace(node=graph.full(shape=[*each.shape], fill=0.0, dtype=each.dtype)) for each in floats]
            weighted = _weighted(floats, zeros)
            pulled = [_gradient(weighted, inputs[place]) for place in wrt]
            tangents = [inputs[place].alike(graph) for place in wrt]
            along = _weighted(pulled, tangents)
            return [*inputs, *tangents], [_gradient(along, zero) for zero in zeros]

        return self.derived(("pushforward", wrt), extend)

    def plus(self, places: Places) -> Map:
        """With further inputs behind the others, which are added to the outputs at these places."""

        def extend(graph: Graph, inputs: Nodes, outputs: Nodes) -> tuple[Nodes, Nodes]:
            summands = {place: outputs[place].alike(graph) for place in places}
            sums = [
                each._replace(node=each.node + summands[place].node) if place in summands else each
                for place, each in enumerate(outputs)
            ]
            return [*inputs, *summands.values()], sums

        return self.derived(("plus", places), extend)

    def derived(self, key: Hashable, extend: Callable[[Graph, Nodes, Nodes], tuple[Nodes, Nodes]]) -> Map:
        """A map by a copy of the graph and what is written behind it: made once for each key.

        `extend` is given the copy, and the inputs and outputs in it, and gives those of the new map.
        """
        if key not in self._derived:
            graph = self.registered.graph.copy()
            within = ([each.within(graph) for each in nodes] for nodes in (self.inputs, self.outputs))
            inputs, outputs = extend(graph, *within)
            fixed = {graph.find(node.id): tensor for node, tensor in self._fixed.items()}
            registered = self._client.register(graph, at_once=False)
            self._derived[key] = Map(self._client, registered, inputs, outputs, fixed)
        return self._derived[key]


def _floats(nodes: Nodes) -> Nodes:
    return [each for each in nodes if each.is_float]


def _gradient(of: Node, by: TypedNode) -> TypedNode:
    return by._replace(node=of.grad(by.node))


def _weighted(nodes: Nodes, weights: Nodes) -> Node:
    """The sum of all elements, each with its weight: the gradient of it by something is a vector-Jacobian product."""
    return reduce(Node.add, ((each.node * by.node).sum() for each, by in zip(nodes, weights, strict=True)))


def _kept(graph: Graph, inputs: Nodes, outputs: Nodes) -> tuple[Nodes, Nodes]:
    """Each output a node of its own, which has a name of its own; and one number more.

    A call is answered with at least one value: that is one where all others are kept.
    """
    receipt = TypedNode(graph.full(shape=[], fill=0.0, dtype="float64"), (), np.dtype("float64"))
    return inputs, [*(each._replace(node=each.node.identity()) for each in outputs), receipt]
