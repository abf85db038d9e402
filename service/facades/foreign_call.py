"""The contract of a facade's calls: a request of another protocol comes in, one of ours goes on, and an answer back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import orjson

from engine import HostArray, Label, Limits
from service.api.answers import admit_answer
from service.api.graphs import GraphSource, Programs
from service.api.json_reader import NO_TENSORS
from service.api.validation import NodePlace
from service.facades.model import Model
from service.facades.protocols import ForeignAnswer

# A graph that ends in one number: the sum of a node's elements, each times a weight that is fed.
#
# Its second derivatives are the action of the node's Hessian with these weights.

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


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Limits of requests that are read: the bytes of their JSON, its nesting, and their tensors."""

    json_bytes: int
    json_depth: int
    tensors: Limits


class ResultArrays:
    """Arrays that a call of ours came to, by what they are: "values", "gradients" and so on, and their nodes.

    Of a call that computes nothing, its answer in JSON is the `body`. The answer that is written of them has
    `most_bytes` at most.
    """

    def __init__(self, labelled: Iterable[tuple[Label, HostArray]], most_bytes: int, body: bytes = b"") -> None:
        self.body = body
        self._most_bytes = most_bytes
        self._found = {(label.kind, *label.nodes): array for label, array in labelled}

    def __call__(self, kind: str, *nodes: int) -> HostArray:
        """The one of this kind, of these nodes."""
        return self._found[(kind, *nodes)]

    def admit(self, nbytes: int, encoding: str = "") -> None:
        """Raise OverBudget, before an answer is written, where it may be longer than it may be."""
        admit_answer(nbytes, encoding, self._most_bytes)


@dataclass(frozen=True, slots=True)
class OwnRequest:
    """A request to one of our calls, on a model's graph.

    `fields` and `tensors` are what a client of ours would send; `write_answer` makes the answer, and may raise Refusal.
    Where something is `weighted`, the call is about that sum.
    """

    call: str
    fields: Mapping[str, Any]
    write_answer: Callable[[ResultArrays], ForeignAnswer]
    tensors: Mapping[tuple[str, NodePlace], HostArray] = field(default_factory=lambda: NO_TENSORS)
    weighted: WeightedSum | None = None


class ForeignCall(ABC):
    """One kind of request of a protocol. It is read and answered in a worker."""

    #: what its jobs, log lines and figures are called
    name: ClassVar[str]

    def model_name(self, body: bytes, limits: ReadLimits) -> str:
        """The model that a body is about, where no path says it. Raises Refusal."""
        raise NotImplementedError

    @abstractmethod
    def read_request(self, body: bytes, said: str, model: Model, limits: ReadLimits) -> OwnRequest | ForeignAnswer:
        """Read a request to a model, or return its answer if nothing has to be computed. Raises Refusal.

        `said` is what the head of the request said that matters here.
        """
