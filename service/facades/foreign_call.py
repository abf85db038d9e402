"""The contract of a facade's calls: a request of another protocol comes in, one of ours goes on, and an answer back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from engine import HostArray, Label, Limits
from service.facades.facade import ForeignAnswer
from service.facades.model import Model
from service.facades.weighted_sum import WeightedSum
from service.wire.answers import admit_answer
from service.wire.message import NO_TENSORS
from service.wire.node_place import NodePlace


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
