"""Contract of a facade's calls: translate a request of another protocol into a /v1 request, and the results back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from engine import HostArray, Label, Limits
from service.api.answers import admit_answer
from service.api.graphs import GraphSource, Programs
from service.api.json_reader import NO_TENSORS
from service.api.tensors import NodePlace
from service.facades.model import Model
from service.facades.protocols import ForeignAnswer

#: number of nodes that a weighted sum adds to a graph: the weights, the product, the sum
_ADDED_NODES: Final = 3


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """Sum of a node's elements, each multiplied by a weight. The weights are a tensor of the request.

    The Hessian of this sum is the node's second derivative contracted with the weights.
    """

    node: int
    dtype: str
    weights: Mapping[str, Any]

    def extend_graph(self, source: GraphSource, programs: Programs) -> tuple[GraphSource, int]:
        """Return the graph extended by the sum, and the id of the first added node. The program is cached."""
        name = (source.name, "weighted sum", self.node)
        extended = programs.cached(name)
        if extended is None:
            graph: dict[str, Any] = orjson.loads(source.text)
            first = len(graph["nodes"])
            leaf = {"op": "input", "attrs": {"dtype": self.dtype}}
            product, total = {"op": "mul", "operands": [self.node, first]}, {"op": "sum", "operands": [first + 1]}
            nodes = [*graph["nodes"], leaf, product, total]
            extended = programs.source(name, orjson.dumps({**graph, "nodes": nodes}))
        return extended, len(programs.program(extended).statements) - _ADDED_NODES

    def request_fields(self, fields: Mapping[str, Any], first: int) -> dict[str, Any]:
        """Return the request fields for the extended graph: feed the weights, and differentiate the sum."""
        feeds = [*fields["feeds"], {"node": first, "tensor": self.weights}]
        return {**fields, "feeds": feeds, "of": first + _ADDED_NODES - 1}


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Limits for reading a request: bytes and nesting of its JSON, and its tensors."""

    json_bytes: int
    json_depth: int
    tensors: Limits


class ResultArrays:
    """Results of one of our calls, by kind ("values", "gradients" and so on) and nodes.

    `body` is the JSON of a call that computes nothing. `most_bytes` is the maximum size of the response.
    """

    def __init__(self, labelled: Iterable[tuple[Label, HostArray]], most_bytes: int, body: bytes = b"") -> None:
        self.body = body
        self._most_bytes = most_bytes
        self._arrays = {(label.kind, *label.nodes): array for label, array in labelled}

    def __call__(self, kind: str, *nodes: int) -> HostArray:
        """Return the result of this kind for these nodes."""
        return self._arrays[(kind, *nodes)]

    def admit(self, nbytes: int, encoding: str = "") -> None:
        """Raise OverBudget, before a response is written, if it could be too long."""
        admit_answer(nbytes, encoding, self._most_bytes)


@dataclass(frozen=True, slots=True)
class OwnRequest:
    """Request to one of our calls on a model's graph.

    `fields` and `tensors` have the form of a /v1 request; `write_answer` builds the response and may raise Refusal. If
    `weighted` is set, the call differentiates that sum.
    """

    call: str
    fields: Mapping[str, Any]
    write_answer: Callable[[ResultArrays], ForeignAnswer]
    tensors: Mapping[tuple[str, NodePlace], HostArray] = field(default_factory=lambda: NO_TENSORS)
    weighted: WeightedSum | None = None


class ForeignCall(ABC):
    """Kind of request in a protocol, read and answered in a worker."""

    #: name in log lines and metrics
    name: str

    def model_name(self, body: bytes, limits: ReadLimits) -> str:
        """Read the name of the model from the body, if the path does not contain it. Raises Refusal."""
        raise NotImplementedError

    @abstractmethod
    def read_request(self, body: bytes, head: str, model: Model, limits: ReadLimits) -> OwnRequest | ForeignAnswer:
        """Read a request to a model, or return the response if nothing has to be computed. Raises Refusal.

        `head` is the part of the request's head that the route extracts.
        """
