"""A graph that ends in one number: the sum of a node's elements, each times a weight that is fed.

Its second derivatives are the action of the node's Hessian with these weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from service.wire.graph_source import GraphSource, Programs

#: nodes that such a graph has more: the weights, the product, the sum
_MORE: Final = 3


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """The node, its dtype, and the weights as a tensor of a request."""

    node: int
    dtype: str
    weights: Mapping[str, Any]

    def of(self, source: GraphSource, programs: Programs) -> tuple[GraphSource, int]:
        """The graph, made once for each node as long as it is known, and the id of the first node that it has more."""
        name = (source.name, "weighted sum", self.node)
        made = programs.known(name) or programs.source(name, self._text(source))
        return made, len(programs.of(made).statements) - _MORE

    def asked(self, fields: Mapping[str, Any], first: int) -> dict[str, Any]:
        """A request about the sum: its weights are fed, and it is what is differentiated."""
        feeds = [*fields["feeds"], {"node": first, "tensor": self.weights}]
        return {**fields, "feeds": feeds, "of": first + _MORE - 1}

    def _text(self, source: GraphSource) -> bytes:
        graph: dict[str, Any] = orjson.loads(source.text)
        first = len(graph["nodes"])
        leaf = {"op": "input", "attrs": {"dtype": self.dtype}}
        product, total = {"op": "mul", "operands": [self.node, first]}, {"op": "sum", "operands": [first + 1]}
        return orjson.dumps({**graph, "nodes": [*graph["nodes"], leaf, product, total]})
