"""Task and reply: the messages that the front and a worker exchange about one request.

A worker that cannot do a task says what it lacks (`NotDone`). The pool handles that itself: it sends the task again
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
from service.api.residents import FindTensor, Version
from service.core.allocation import GrowingAllocation, MemoryHolder
from service.core.errors import Refusal
from service.store.writes import Stored
from service.workers.claims import Claim

#: header of the reply to a piece that tells how it was run, and for how long
RUN_HEADER: Final = "Gradserve-Run"
#: in place of the precision if nothing read float32
_NO_PRECISION: Final = "-"
#: header of the request of a piece; if there are several peers, requests with the same value go to the same one
PIECE_HEADER: Final = "Gradserve-Piece"
_TIERS: Final[tuple[RunTier, ...]] = (UNCOMPILED, PARTLY_COMPILED, COMPILED)

#: names of tasks that are no calls of the API
REGISTER: Final = "registerGraph"
PUT_TENSOR: Final = "putTensor"
GET_TENSOR: Final = "getTensor"
READ_MODEL: Final = "readModel"
PUT_MODEL: Final = "putModel"

#: value of `Task.stop` for a task that cannot be stopped
NEVER: Final = b"\0"
#: estimated bytes per second of JSON that is parsed, or of elements that are written as JSON
TEXT_RATE: Final = 50e6


class Piece(NamedTuple):
    """Piece of a sum: the sums over the blocks from `first` to `stop`, without an answer.

    The reply has the bytes of the sums one after the other: the owner of the plan knows their types.
    """

    first: int
    stop: int


class PieceRequest(NamedTuple):
    """Order to write the request by which a peer computes the sums over these blocks."""

    first: int
    stop: int


class Total(NamedTuple):
    """Order to answer the whole sum from the sums of `pieces`, which lie in a buffer one after the other.

    `repeated` pieces were begun more than once. The pieces took `seconds` together.
    """

    pieces: int
    repeated: int
    seconds: float
    tier: RunTier
    precision: Precision | None
    buffer: int
    nbytes: int

    @property
    def report(self) -> RunReport:
        """Report of how all pieces were run."""
        return RunReport(self.tier, self.precision)


SumPart: TypeAlias = Piece | PieceRequest | Total
_KINDS: Final = (Piece, PieceRequest, Total)


def write_part(part: SumPart) -> str:
    """Encode a part as text."""
    return orjson.dumps([_KINDS.index(type(part)), *part]).decode()


def read_part(text: str) -> SumPart:
    """Decode a text of `write_part`."""
    fields: list[Any]
    kind, *fields = orjson.loads(text)
    return _KINDS[kind](*fields)


def run_header(report: RunReport, seconds: float) -> tuple[str, str]:
    """Return the header that tells how a piece was run, and for how long."""
    return RUN_HEADER, f"{report.tier} {report.precision or _NO_PRECISION} {seconds:.6f}"


def read_run(headers: Sequence[tuple[str, str]]) -> tuple[RunReport, float]:
    """Read from its headers how a piece was run, and for how long. Raises ValueError if they do not tell."""
    header = next((value for name, value in headers if name.lower() == RUN_HEADER.lower()), "")
    tier, precision, seconds = header.split(" ")
    stated = None if precision == _NO_PRECISION else PRECISIONS[PRECISIONS.index(precision)]
    return RunReport(_TIERS[_TIERS.index(tier)], stated), float(seconds)


def combine_reports(reports: Sequence[RunReport]) -> RunReport:
    """Combine the reports of pieces into one that claims no more compilation and precision than any of them."""
    # `_TIERS` goes from the least compiled tier to the most.
    tier = min((report.tier for report in reports), key=_TIERS.index)
    precisions = [report.precision for report in reports if report.precision is not None]
    return RunReport(tier, coarsest(*precisions) if precisions else None)


class ModelOfGraph(NamedTuple):
    """Stored model: its record, the key by which workers know its graph, and the graph."""

    record: bytes
    graph: str
    graph_bytes: bytes


#: function that returns the model of a name. Raises Refusal: not_found
FindModel = Callable[[str], ModelOfGraph]


def _no_tensor(_: str) -> Version | None:
    return None


def _no_model(name: str) -> ModelOfGraph:
    raise AssertionError(f"nobody was to ask for the model {name}")


@dataclass(eq=False, slots=True)
class Task:
    """One call: its name, its body as received, and its deadline on the monotonic clock.

    `body_type` and `answer_type` are the media types of the body and of the answer: JSON or safetensors. `graph` is the
    id of the registered graph that the call uses, and `graph_bytes` is that graph, for a worker that does not have it.
    `memory` holds the body if it was received into shared memory. The first byte of `stop` is set once nobody waits
    for the answer.

    Tensors that the body names are in `namespace`; `resident` returns them by name, or None if there is none, and the
    task has then `consulted` them. While the task `may_ask`, None may also mean that the worker does not have the
    tensor, and can ask for it, once. `subject` is the name of the tensor or model that the task is about, if it is
    about one; for another protocol, it is text from the head of the request. `tenant` is the caller that the task is
    charged to, empty for the server's own tasks.

    A task of another protocol is about a `model`, given as its record. If only the body names it, `find_model` returns
    it once the body has been read.

    `recalled` is the id of that graph if another server owns it, and this one only knows it from an earlier call: then
    the owner is asked about it while the task runs.

    If versions were pinned for this task, `reads` is the name of their set, and replaces the namespace.

    A sum over examples `may_divide` if there is somebody to do pieces of it. If `part` is set, only that is computed,
    and `sums` holds the sums of the pieces for a `Total`. `credential` is the header that authenticated the request,
    for pieces that go to peers.
    """

    call: str
    body: bytes | memoryview | HostArray
    request_id: str
    timeout: float  # seconds, as agreed with the client
    expires: float  # time.monotonic()
    body_type: str = JSON
    answer_type: str = JSON
    graph: str | None = None
    graph_bytes: bytes | None = None
    recalled: str | None = None
    memory: GrowingAllocation | None = None
    stop: Sequence[int] = NEVER
    namespace: str = ""
    subject: str | None = None
    tenant: str = ""
    resident: FindTensor = _no_tensor
    may_ask: bool = False
    consulted: bool = False
    model: bytes | None = None
    find_model: FindModel = _no_model
    reads: str = ""
    may_divide: bool = False
    part: SumPart | None = None
    sums: bytes | HostArray = b""
    credential: str = ""

    def set_model(self, name: str) -> None:
        """Set the model by name. Raises Refusal: not_found."""
        self.consulted = True
        self.model, self.graph, self.graph_bytes = self.find_model(name)

    def tensor(self, name: str) -> Version | None:
        """Return the resident tensor of a name, or None."""
        self.consulted = True
        return self.resident(name)


class Timings(NamedTuple):
    """Seconds of each phase of a task: `waited` until a worker began it; `backward` is a part of `execute`."""

    waited: float = 0.0
    decode: float = 0.0
    plan: float = 0.0
    execute: float = 0.0
    backward: float = 0.0
    encode: float = 0.0


_UNKNOWN: Final = Timings()


@dataclass(eq=False, slots=True)
class Reply:
    """Result of a task: status, media type and body, in parts; a problem report unless the status is 200.

    `begun` is when a worker began the task, on the monotonic clock; 0 if none did, or if it is not recorded.

    The reader calls `release` once the parts are written or not needed: they may lie in `memory` that is reused, as
    may `stored_data`, the elements of the tensors to be `stored`. The front stores these before it answers, or refuses.
    A reply that has `consulted` resident tensors depends on their state.

    The sender of the parts may tell the `claim` of their memory how it can be revoked. `recycle` is the reason for
    which the worker has to be replaced; only the pool reads it.
    """

    status: int
    media_type: str
    parts: Sequence[bytes | memoryview]
    headers: tuple[tuple[str, str], ...] = ()
    timings: Timings = _UNKNOWN
    cached: bool = False
    memory: MemoryHolder | None = None
    recycle: str | None = None
    stored: Sequence[Stored] = ()
    stored_data: Sequence[bytes | memoryview] = ()
    begun: float = 0.0
    consulted: bool = False
    claim: Claim | None = None

    @property
    def body(self) -> bytes:
        """All parts, joined."""
        return b"".join(self.parts)

    def release(self) -> None:
        """Release the memory of the parts, which must not be read after that."""
        if self.memory is not None:
            self.memory.release()


def refused(refusal: Refusal, request_id: str, recycle: str | None = None) -> Reply:
    """Return the reply that reports a refusal."""
    headers = tuple(refusal.headers.items())
    return Reply(refusal.status, PROBLEM, [refusal.body(request_id)], headers, recycle=recycle)


class Estimate(NamedTuple):
    """Estimated needs of a plan: seconds, bytes at the peak, and most bytes of the answer."""

    seconds: float
    peak_bytes: int = 0
    response_bytes: int = 0


class NeedsGraph(NamedTuple):
    """Lack of a registered graph, which was not sent with the task."""


class NeedsTensors(NamedTuple):
    """Lack of resident tensors: the names of all that the task reads."""

    names: Sequence[str]


class NeedsModel(NamedTuple):
    """Lack of the model of this name, which only the body of the task tells."""

    name: str


class Divisible(NamedTuple):
    """Offer to divide a task: a sum over `blocks` blocks, which takes `seconds` in all.

    Each worker that takes part spends `reading` seconds to read the request. The sums of a piece take `nbytes`, and the
    answer takes `response_bytes`. The task `reads` resident tensors, given by name and etag.
    """

    blocks: int
    seconds: float
    reading: float
    nbytes: int
    response_bytes: int
    reads: Sequence[tuple[str, str]]


class TooLong(NamedTuple):
    """Excess of a task over the time that it was given, with the estimate of its plan."""

    estimate: Estimate


NotDone: TypeAlias = NeedsGraph | NeedsTensors | NeedsModel | TooLong | Divisible
TaskResult: TypeAlias = Reply | NotDone
