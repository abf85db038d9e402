"""A recorded graph as a map from arrays to arrays, whose derivatives are such maps again.

They are graphs with `grad` nodes: to have them takes no call, not even those of derivatives of derivatives, and so
who traces, as JAX does, has them without values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

from gradserve_client.client import RegisteredGraph
from gradserve_client.graph import Graph, Node
from gradserve_client.recording.traced import DType, Shape
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


class Map:
    """Arrays, one for each of `inputs`, to arrays, one for each of `outputs`. `fixed` is what feeds the other leaves.

    Derivatives are by the inputs at some places, all of them floats, and of those outputs that are floats.
    """

    def __init__(
        self,
        registered: RegisteredGraph,
        inputs: Sequence[TypedNode],
        outputs: Sequence[TypedNode],
        fixed: Mapping[Node, Resident] | None = None,
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self._registered = registered
        self._fixed = fixed or {}
        self._derived: dict[Hashable, Map] = {}

    @property
    def is_scalar(self) -> bool:
        """Whether it gives one float, and so has a gradient."""
        return len(self.outputs) == 1 and self.outputs[0].is_float and not self.outputs[0].shape

    def __call__(self, values: Sequence[Any], mapped: Sequence[bool] = ()) -> list[Array]:
        """The outputs; where inputs are `mapped`, they and all outputs have a leading axis of examples."""
        feeds: dict[Any, Any] = {**self._fixed}
        feeds.update((each.node, value) for each, value in zip(self.inputs, values, strict=True))
        asked = [*dict.fromkeys(each.node for each in self.outputs)]
        if any(mapped):
            axes = [each.node for each, has_axis in zip(self.inputs, mapped, strict=True) if has_axis]
            answer = self._registered.batch(feeds, outputs=asked, mapped=axes).values
        else:
            answer = self._registered.forward(feeds, outputs=asked).values
        return [answer[each.node] for each in self.outputs]

    def bound(self, tensors: Sequence[tuple[int, str]]) -> Map:
        """The map of the other inputs, where those at some places are what the server keeps under these names."""
        if not tensors:
            return self
        fixed = {self.inputs[place].node: Resident(name, "") for place, name in tensors}
        left = [each for each in self.inputs if each.node not in fixed]
        return self._once(("bound", *tensors), lambda: Map(self._registered, left, self.outputs, self._fixed | fixed))

    def with_gradients(self, wrt: Places) -> Map:
        """The value of a map that gives one float, and behind it its gradients."""

        def extend(graph: Graph, inputs: list[TypedNode], outputs: list[TypedNode]) -> Extended:
            return inputs, [outputs[0], *(_gradient(outputs[0].node, inputs[place]) for place in wrt)]

        return self._once(("gradients", wrt), lambda: self._extended(extend))

    def pullback(self, wrt: Places) -> Map:
        """From the inputs, and behind them a cotangent for each output that is a float: that times the Jacobian."""

        def extend(graph: Graph, inputs: list[TypedNode], outputs: list[TypedNode]) -> Extended:
            cotangents = [output.alike(graph) for output in outputs]
            weighted = _weighted(outputs, cotangents)
            return [*inputs, *cotangents], [_gradient(weighted, inputs[place]) for place in wrt]

        return self._once(("pullback", wrt), lambda: self._extended(extend))

    def pushforward(self, wrt: Places) -> Map:
        """From the inputs, and behind them a tangent for each of `wrt`: the Jacobian times that, for each output.

        A pullback is linear in its cotangents: it is pulled back by these, at zero.
        """

        def extend(graph: Graph, inputs: list[TypedNode], outputs: list[TypedNode]) -> Extended:
            zeros = [
                each._replace(node=graph.full(shape=[*each.shape], fill=0.0, dtype=each.dtype)) for each in outputs
            ]
            pulled = [_gradient(_weighted(outputs, zeros), inputs[place]) for place in wrt]
            tangents = [inputs[place].alike(graph) for place in wrt]
            weighted = _weighted(pulled, tangents)
            return [*inputs, *tangents], [_gradient(weighted, zero) for zero in zeros]

        return self._once(("pushforward", wrt), lambda: self._extended(extend))

    def _once(self, key: Hashable, make: Callable[[], Map]) -> Map:
        if key not in self._derived:
            self._derived[key] = make()
        return self._derived[key]

    def _extended(self, extend: Callable[[Graph, list[TypedNode], list[TypedNode]], Extended]) -> Map:
        """A map by a copy of the graph and what is written behind it, from its inputs and the outputs that are floats."""
        graph = self._registered.graph.copy()
        floats = [each.within(graph) for each in self.outputs if each.is_float]
        inputs, outputs = extend(graph, [each.within(graph) for each in self.inputs], floats)
        fixed = {graph.find(node.id): tensor for node, tensor in self._fixed.items()}
        return Map(self._registered.client.register(graph, at_once=False), inputs, outputs, fixed)


Extended = tuple[list[TypedNode], list[TypedNode]]


def _gradient(of: Node, by: TypedNode) -> TypedNode:
    return by._replace(node=of.grad(by.node))


def _weighted(nodes: Sequence[TypedNode], weights: Sequence[TypedNode]) -> Node:
    """The sum of all elements, each with its weight: the gradient of it by something is a vector-Jacobian product."""
    return reduce(Node.add, ((each.node * by.node).sum() for each, by in zip(nodes, weights, strict=True)))
