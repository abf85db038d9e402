"""Protocols of others as the front knows them: paths, names of calls, and the form of errors.

A `Facade` is one protocol. The front turns a request to one of its paths into a job for the call of that name, and
writes errors in the protocol's form. Workers read and answer the request (`service.facades.foreign_call`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from service.wire.media import JSON

Header = Callable[[str], str | None]  # the value of a header field, None where there is none

#: statuses that stay in most protocols: who may not, what is not there, and who is to wait
KEPT_STATUSES: Final = frozenset({401, 403, 404, 405, 408, 413, 415, 421, 429, 431})


@dataclass(frozen=True, slots=True)
class ForeignAnswer:
    """An answer in the words of a protocol."""

    parts: Sequence[bytes | memoryview]
    media_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FacadeRoute:
    """A path of a protocol, and the name of its call; `said` is what of the head the call is to know.

    Where `{name}` is in the path, it is the name of the model, and `{version}` the id of its graph; elsewhere the body
    says the name. Parameters of the query that are `ignored` change nothing.
    """

    method: str
    path: str
    call: str
    said: Callable[[Header], str] = lambda header: ""
    ignored: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """A path that lists what there is: it is given the names of all models."""

    path: str
    write_answer: Callable[[Sequence[str]], Mapping[str, Any]]


class Facade(ABC):
    """One protocol."""

    #: as the setting `--facades` names it
    name: ClassVar[str]
    places: ClassVar[Sequence[FacadeRoute]]
    listings: ClassVar[Sequence[Listing]] = ()
    #: paths that say whether the server is live, or ready; for everybody
    health: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def owns(self, path: str) -> bool:
        """Tell whether a path belongs to the protocol, served or not: its errors have the protocol's form."""

    @abstractmethod
    def write_error(self, problem: Mapping[str, Any]) -> tuple[int, ForeignAnswer]:
        """Return the status and the protocol's form of a problem report of ours."""
