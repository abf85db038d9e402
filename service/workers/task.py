"""Task and reply: what the front sends to a worker, and what comes back.

A worker that cannot do a task says what it lacks (`NotDone`). That never leaves the pool, which sends the task again
with what is missing, or to another worker. A task may also be a part of a sum over examples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from engine import HostArray
from engine.ir.run_report import (
    COMPILED,
    PARTLY_COMPILED,
    PRECISIONS,
    UNCOMPILED,
    Precision,
    RunReport,
    RunTier,
    coarsest,
)
from service.api.media import JSON, PROBLEM
from service.api.residents import Find, Version
from service.core.allocation import GrowingAllocation, Held
from service.core.errors import Refusal
from service.store.writes import Stored
from service.workers.claims import Claim

#: the header of a piece's reply that says how it was run
RUN_HEADER: Final = "Gradserve-Run"
#: the header of a piece's request that says which go to one server, where that can be
PIECE_HEADER: Final = "Gradserve-Piece"
_TIERS: Final[tuple[RunTier, ...]] = (UNCOMPILED, PARTLY_COMPILED, COMPILED)

#: names of the tasks that are no calls
REGISTER: Final = "registerGraph"
PUT_TENSOR: Final = "putTensor"
GET_TENSOR: Final = "getTensor"
READ_MODEL: Final = "readModel"
PUT_MODEL: Final = "putModel"

#: what `Task.stop` is for a task that nobody stops
NEVER: Final = b"\0"
#: bytes of JSON that are read, or of elements that are written as JSON, in a second
TEXT_RATE: Final = 50e6


class Piece(NamedTuple):
    """Part of a sum: the sums over the blocks from `first` to `stop`, of which nothing is kept.

    They travel as the bytes of their arrays, one after the other: whoever has the plan knows their types.
    """

    first: int
    stop: int


class PieceRequest(NamedTuple):
    """Request by which another server answers the sums over these blocks."""

    first: int
    stop: int


class Total(NamedTuple):
    """Answer of the whole, from the sums of `pieces`, which lie in a buffer one after the other.

    `repeated` of them had to be begun again; they took so many seconds in all.
    """

    pieces: int
    repeated: int
    seconds: float
    tier: RunTier
    precision: Precision
    buffer: int
    nbytes: int

    @property
    def report(self) -> RunReport:
        """Report of how all of them were run."""
        return RunReport(self.tier, self.precision)


SumPart: TypeAlias = Piece | PieceRequest | Total
_KINDS: Final = (Piece, PieceRequest, Total)


def part_text(part: SumPart) -> str:
    """Write a part as it travels."""
    return orjson.dumps([_KINDS.index(type(part)), *part]).decode()


def read_part(text: str) -> SumPart:
    """Read a text of `part_text`."""
    fields: list[Any]
    kind, *fields = orjson.loads(text)
    return _KINDS[kind](*fields)


def run_header(report: RunReport, seconds: float) -> tuple[str, str]:
    """Make the header that says how a piece was run, and for how long."""
    return RUN_HEADER, f"{report.tier} {report.precision} {seconds:.6f}"


def read_run(headers: Sequence[tuple[str, str]]) -> tuple[RunReport, float]:
    """Read from its headers how a piece was run, and for how long. Raises ValueError where they do not say so."""
    stated = next((value for name, value in headers if name.lower() == RUN_HEADER.lower()), "")
    tier, precision, seconds = stated.split(" ")
    return RunReport(_TIERS[_TIERS.index(tier)], PRECISIONS[PRECISIONS.index(precision)]), float(seconds)


def least(reports: Sequence[RunReport]) -> RunReport:
    """Combine reports of pieces: no more compiled, and no more exact, than any."""
    tier = min((report.tier for report in reports), key=_TIERS.index)
    return RunReport(tier, coarsest(*(report.precision for report in reports)))


class ModelOfGraph(NamedTuple):
    """A model that is kept: its record, what workers know its graph by, and that graph."""

    record: bytes
    graph: str
    graph_bytes: bytes


#: the model of a name. Raises Refusal: not_found
FindModel = Callable[[str], ModelOfGraph]


def _no_tensor(_: str) -> Version | None:
    return None


def _no_model(name: str) -> ModelOfGraph:
    raise AssertionError(f"nobody was to ask for the model {name}")


@dataclass(eq=False, slots=True)
class Task:
    """One call: its name, its body as it came, and when (on the monotonic clock) its time is up.

    `sent` and `accepted` are the media types of the body and of the answer: JSON, or safetensors. `graph` is the id of
    the registered graph that the call is made of, and `graph_bytes` is that graph, for a worker that does not know it.
    `memory` is what holds the body, where it was received into some. The first byte of `stop` is set once nobody wants
    the answer any more.

    Tensors that the body names are those of `namespace`; `resident` gives them by their names, None for one that is
    not there, and the task has `consulted` them then. Where it `may_ask`, as it may once, None may be for not having
    asked. `subject` is the name of the tensor or model that the task is about, where it is about one; of a task of
    another protocol, what the head of its request said. `tenant` is whose share of the server the task comes out of;
    that of tasks which the server asks for itself is empty.

    A task of another protocol is about a `model`, whose record that is; where only the body says which, `find_model`
    gives the one of a name, once that has been read.

    Where versions were found for this task alone, `reads` is what they are known by, in place of the namespace.

    A sum over examples `may_divide`, where others may do pieces of it; a `part` of one is all that is asked for then,
    and `beside` holds the sums that its end is made of. `credential` is the header that it came with, where pieces of
    it may go to other servers.
    """

    call: str
    body: bytes | memoryview | HostArray
    request_id: str
    timeout: float  # seconds, as agreed with the client
    expires: float  # time.monotonic()
    sent: str = JSON
    accepted: str = JSON
    graph: str | None = None
    graph_bytes: bytes | None = None
    memory: GrowingAllocation | None = None
    stop: Sequence[int] = NEVER
    namespace: str = ""
    subject: str | None = None
    tenant: str = ""
    resident: Find = _no_tensor
    may_ask: bool = False
    consulted: bool = False
    model: bytes | None = None
    find_model: FindModel = _no_model
    reads: str = ""
    may_divide: bool = False
    part: SumPart | None = None
    beside: bytes | HostArray = b""
    credential: str = ""

    def give_model(self, name: str) -> None:
        """Make it about the model of this name. Raises Refusal: not_found."""
        self.consulted = True
        self.model, self.graph, self.graph_bytes = self.find_model(name)

    def tensor(self, name: str) -> Version | None:
        """Return the resident tensor of a name, None where there is none."""
        self.consulted = True
        return self.resident(name)


class Timings(NamedTuple):
    """Seconds that each part of a task took: `waited` until a worker took it up; `backward` is a part of `execute`."""

    waited: float = 0.0
    decode: float = 0.0
    plan: float = 0.0
    execute: float = 0.0
    backward: float = 0.0
    encode: float = 0.0


_UNKNOWN: Final = Timings()


@dataclass(eq=False, slots=True)
class Reply:
    """The answer's status, media type and body, in parts; a problem unless the status is 200.

    `begun` is when a worker took the task up, on the monotonic clock; 0 where none did, or where nobody looks.

    It is given back once the parts are written or nobody wants them: they may lie in `memory` that is used again, as
    may `kept`: the bytes of the tensors that are `stored`. The front keeps these before it answers, or refuses. One
    that has `consulted` resident tensors is an answer about these, too.

    Whoever sends the parts may say, to the `claim` of their memory, how they are taken back. `recycle`, which only the
    pool reads, is why a worker is not to be used any more.
    """

    status: int
    media_type: str
    parts: Sequence[bytes | memoryview]
    headers: tuple[tuple[str, str], ...] = ()
    timings: Timings = _UNKNOWN
    cached: bool = False
    memory: Held | None = None
    recycle: str | None = None
    stored: Sequence[Stored] = ()
    kept: Sequence[bytes | memoryview] = ()
    begun: float = 0.0
    consulted: bool = False
    claim: Claim | None = None

    @property
    def body(self) -> bytes:
        """All parts, joined."""
        return b"".join(self.parts)

    def give_back(self) -> None:
        """Give back the memory of the parts, which nobody looks at any more."""
        if self.memory is not None:
            self.memory.give_back()


def refused(refusal: Refusal, request_id: str, recycle: str | None = None) -> Reply:
    """Make the reply that says a refusal."""
    headers = tuple(refusal.headers.items())
    return Reply(refusal.status, PROBLEM, [refusal.body(request_id)], headers, recycle=recycle)


class Estimate(NamedTuple):
    """Needs of a plan, as they are known before it runs: seconds, and bytes at the peak and, at most, in the answer."""

    seconds: float
    peak_bytes: int = 0
    response_bytes: int = 0


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
TaskResult: TypeAlias = Reply | NotDone
