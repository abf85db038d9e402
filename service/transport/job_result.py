from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from service.calls.estimate import Estimate
from service.transport.job import Reply


class NeedsGraph(NamedTuple):
    """The worker does not know the registered graph that the task is made of, and was not sent its bytes."""


class WantsTensors(NamedTuple):
    """The worker does not have resident tensors that the task reads: the names of all that it reads."""

    names: Sequence[str]


class WantsModel(NamedTuple):
    """The task is about the model of this name, which its body says: the worker has no models."""

    name: str


class Divisible(NamedTuple):
    """The task is a sum over so many blocks, which takes so long in all, and may be done in pieces.

    To read it takes `reading` seconds each time. The sums of a piece are `nbytes`, and the answer `response_bytes`. It
    reads resident tensors, by name and etag.
    """

    blocks: int
    seconds: float
    reading: float
    nbytes: int
    response_bytes: int
    reads: Sequence[tuple[str, str]]


class TooLong(NamedTuple):
    """The task would take longer than it was given: what it will take, as far as its plan tells."""

    estimate: Estimate


NotDone: TypeAlias = NeedsGraph | WantsTensors | WantsModel | TooLong | Divisible
JobResult: TypeAlias = Reply | NotDone
