"""Contract of a facade's calls: translate a request of another protocol into one of ours, and our answer back."""

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

#: nodes that a weighted sum adds to a graph: the weights, the product, the sum
_MORE: Final = 3


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """Sum of a node's elements, each times a weight, which is a tensor of a request.

    Its second derivatives are the action of the node's Hessian with these weights.
    """

    node: int
    dtype: str
    weights: Mapping[str, Any]

    def of(self, source: GraphSource, programs: Programs) -> tuple[GraphSource, int]:
        """Return the graph that ends in the sum, and the id of the first node that is added; its program is cached."""
        name = (source.name, "weighted sum", self.node)
        made = programs.known(name)
        if made is None:
            graph: dict[str, Any] = orjson.loads(source.text)
            first = len(graph["nodes"])
            leaf = {"op": "input", "attrs": {"dtype": self.dtype}}
            product, total = {"op": "mul", "operands": [self.node, first]}, {"op": "sum", "operands": [first + 1]}
            nodes = [*graph["nodes"], leaf, product, total]
            made = programs.source(name, orjson.dumps({**graph, "nodes": nodes}))
        return made, len(programs.of(made).statements) - _MORE

    def asked(self, fields: Mapping[str, Any], first: int) -> dict[str, Any]:
        """Make the request about the sum: its weights are fed, and it is differentiated."""
        feeds = [*fields["feeds"], {"node": first, "tensor": self.weights}]
        return {**fields, "feeds": feeds, "of": first + _MORE - 1}


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Limits of requests that are read: the bytes of their JSON, its nesting, and their tensors."""

    json_bytes: int
    json_depth: int
    tensors: Limits


class ResultArrays:
    """Results of a call of ours, by kind ("values", "gradients" and so on) and nodes.

    `body` is the JSON of a call that computes nothing. The answer has `most_bytes` at most.
    """

    def __init__(self, labelled: Iterable[tuple[Label, HostArray]], most_bytes: int, body: bytes = b"") -> None:
        self.body = body
        self._most_bytes = most_bytes
        self._arrays = {(label.kind, *label.nodes): array for label, array in labelled}

    def __call__(self, kind: str, *nodes: int) -> HostArray:
        """Return the result of this kind and these nodes."""
        return self._arrays[(kind, *nodes)]

    def admit(self, nbytes: int, encoding: str = "") -> None:
        """Raise OverBudget, before an answer is written, if it may be too long."""
        admit_answer(nbytes, encoding, self._most_bytes)


@dataclass(frozen=True, slots=True)
class OwnRequest:
    """A request to one of our calls, on a model's graph.

    `fields` and `tensors` are as a client of ours sends them; `write_answer` makes the answer, and may raise Refusal.
    If there is a `weighted` sum, the call is about that.
    """

    call: str
    fields: Mapping[str, Any]
    write_answer: Callable[[ResultArrays], ForeignAnswer]
    tensors: Mapping[tuple[str, NodePlace], HostArray] = field(default_factory=lambda: NO_TENSORS)
    weighted: WeightedSum | None = None


class ForeignCall(ABC):
    """Kind of request of a protocol, read and answered in a worker."""

    #: name of its jobs, in log lines and metrics
    name: str

    def model_name(self, body: bytes, limits: ReadLimits) -> str:
        """Read the name of the model from a body, if the path does not have it. Raises Refusal."""
        raise NotImplementedError

    @abstractmethod
    def read_request(self, body: bytes, said: str, model: Model, limits: ReadLimits) -> OwnRequest | ForeignAnswer:
        """Read a request to a model, or return its answer if nothing has to be computed. Raises Refusal.

        `said` is the part of the request's head that the route extracts.
        """
