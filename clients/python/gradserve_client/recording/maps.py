"""A recorded graph as a map from arrays to arrays, whose derivatives are maps too.

Derivatives are graphs with `grad` nodes. They are built without a call to the server, to any order, so that a tracing
library such as JAX can have them without values.
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

#: positions of inputs
Positions = tuple[int, ...]


class TypedNode(NamedTuple):
    """A node with its shape and dtype."""

    node: Node
    shape: Shape
    dtype: DType

    @property
    def is_float(self) -> bool:
        """Whether the node has derivatives."""
        return self.dtype.kind == "f"

    def in_copy(self, graph: Graph) -> TypedNode:
        """Return the corresponding node of a copy of its graph."""
        return self._replace(node=graph.find(self.node.id))

    def new_leaf(self, graph: Graph) -> TypedNode:
        """Append a leaf with this shape and dtype to a graph: a tangent or cotangent."""
        node = graph.input(dtype=self.dtype, shape=[*self.shape] or None, zero_d=None if self.shape else True)
        return self._replace(node=node)


Nodes = list[TypedNode]


class Map:
    """A map from arrays, one for each input, to arrays, one for each output. `fixed` are the feeds of the other leaves.

    Derivatives are with respect to inputs at given positions, all of which must be floats. Outputs that are not floats
    have no derivatives.
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
        """Whether the map has one output, which is one float, and so has a gradient."""
        return len(self.outputs) == 1 and self.outputs[0].is_float and not self.outputs[0].shape

    def __call__(self, values: Sequence[Any], mapped: Sequence[bool] = ()) -> list[Array]:
        """Return the outputs. If inputs are `mapped`, they and all outputs have a leading axis of examples."""
        feeds = self.feeds(values)
        requested = [*dict.fromkeys(each.node for each in self.outputs)]
        if any(mapped):
            mapped_nodes = [each.node for each, has_axis in zip(self.inputs, mapped, strict=True) if has_axis]
            answer = self._client.batch(self.registered, feeds, outputs=requested, mapped=mapped_nodes).values
        else:
            answer = self._client.forward(self.registered, feeds, outputs=requested).values
        return [answer[each.node] for each in self.outputs]

    def call_and_store(self, values: Sequence[Any], names: Sequence[str | None]) -> list[Array]:
        """Return the outputs without a name. The others are stored on the server under their names, not downloaded."""
        stored_map = self.derived("stored", _with_receipt)
        *outputs, receipt = (each.node for each in stored_map.outputs)
        named_outputs = [*zip(outputs, names, strict=True)]
        returned = [node for node, name in named_outputs if name is None]
        store = {node: name for node, name in named_outputs if name is not None}
        requested = returned or [receipt]
        answer = self._client.forward(
            stored_map.registered, stored_map.feeds(values), outputs=requested, store=store
        ).values
        return [answer[node] for node in returned]

    def feeds(self, values: Sequence[Any]) -> dict[Any, Any]:
        """Return the feeds, by leaf."""
        return {**self._fixed, **{each.node: value for each, value in zip(self.inputs, values, strict=True)}}

    def with_residents(self, tensors: Sequence[tuple[int, str]]) -> Map:
        """Return a map of the remaining inputs, with the named resident tensors fed to the inputs at positions."""
        if tensors and ("residents", *tensors) not in self._derived:
            residents = {self.inputs[position].node: Resident(name, "") for position, name in tensors}
            remaining = [each for each in self.inputs if each.node not in residents]
            fixed = {**self._fixed, **residents}
            self._derived["residents", *tensors] = Map(self._client, self.registered, remaining, self.outputs, fixed)
        return self._derived["residents", *tensors] if tensors else self

    def with_gradients(self, wrt: Positions) -> Map:
        """Return a map to the value of a scalar map, followed by its gradients."""

        def extend(graph: Graph, inputs: Nodes, outputs: Nodes) -> tuple[Nodes, Nodes]:
            return inputs, [outputs[0], *(_gradient(outputs[0].node, inputs[position]) for position in wrt)]

        return self.derived(("gradients", wrt), extend)

    def pullback(self, wrt: Positions) -> Map:
        """Return a map to vector-Jacobian products. Its inputs are followed by a cotangent for each float output."""

        def extend(graph: Graph, inputs: Nodes, outputs: Nodes) -> tuple[Nodes, Nodes]:
            floats = _floats(outputs)
            cotangents = [output.new_leaf(graph) for output in floats]
            weighted = _weighted(floats, cotangents)
            return [*inputs, *cotangents], [_gradient(weighted, inputs[position]) for position in wrt]

        return self.derived(("pullback", wrt), extend)

    def pushforward(self, wrt: Positions) -> Map:
        """Return a map to Jacobian-vector products, one for each float output.

        Its inputs are followed by a tangent for each of `wrt`. A vector-Jacobian product is linear in its cotangents,
        and its transpose is the Jacobian-vector product: the gradient, with respect to cotangents of zero, of the
        products weighted with the tangents.
        """

        def extend(graph: Graph, inputs: Nodes, outputs: Nodes) -> tuple[Nodes, Nodes]:
            floats = _floats(outputs)
            zeros = [each._replace(node=graph.full(shape=[*each.shape], fill=0.0, dtype=each.dtype)) for each in floats]
            weighted = _weighted(floats, zeros)
            products = [_gradient(weighted, inputs[position]) for position in wrt]
            tangents = [inputs[position].new_leaf(graph) for position in wrt]
            weighted_products = _weighted(products, tangents)
            return [*inputs, *tangents], [_gradient(weighted_products, zero) for zero in zeros]

        return self.derived(("pushforward", wrt), extend)

    def with_summands(self, positions: Positions) -> Map:
        """Return a map with further inputs, which are added to the outputs at these positions."""

        def extend(graph: Graph, inputs: Nodes, outputs: Nodes) -> tuple[Nodes, Nodes]:
            summands = {position: outputs[position].new_leaf(graph) for position in positions}
            sums = [
                each._replace(node=each.node + summands[position].node) if position in summands else each
                for position, each in enumerate(outputs)
            ]
            return [*inputs, *summands.values()], sums

        return self.derived(("summands", positions), extend)

    def derived(self, key: Hashable, extend: Callable[[Graph, Nodes, Nodes], tuple[Nodes, Nodes]]) -> Map:
        """Return the map of an extended copy of the graph. It is built once for each key.

        `extend` receives the copy with its inputs and outputs, appends nodes, and returns the inputs and outputs of the
        new map.
        """
        if key not in self._derived:
            graph = self.registered.graph.copy()
            copied_nodes = ([each.in_copy(graph) for each in nodes] for nodes in (self.inputs, self.outputs))
            inputs, outputs = extend(graph, *copied_nodes)
            fixed = {graph.find(node.id): tensor for node, tensor in self._fixed.items()}
            registered = self._client.register(graph, at_once=False)
            self._derived[key] = Map(self._client, registered, inputs, outputs, fixed)
        return self._derived[key]


def _floats(nodes: Nodes) -> Nodes:
    return [each for each in nodes if each.is_float]


def _gradient(output: Node, node: TypedNode) -> TypedNode:
    return node._replace(node=output.grad(node.node))


def _weighted(nodes: Nodes, weights: Nodes) -> Node:
    """Return the sum of all elements, each times its weight. The gradient of this sum is a vector-Jacobian product."""
    return reduce(Node.add, ((each.node * weight.node).sum() for each, weight in zip(nodes, weights, strict=True)))


def _with_receipt(graph: Graph, inputs: Nodes, outputs: Nodes) -> tuple[Nodes, Nodes]:
    """Make each output a node of its own, so that it can have its own name, and append a number as an output.

    A call must return at least one value: this number, if all outputs are stored.
    """
    receipt = TypedNode(graph.full(shape=[], fill=0.0, dtype="float64"), (), np.dtype("float64"))
    return inputs, [*(each._replace(node=each.node.identity()) for each in outputs), receipt]
