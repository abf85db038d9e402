"""Task and reply: what the front sends to a worker, and what comes back.

A worker that cannot do a task says what it lacks (`NotDone`). That never leaves the pool, which sends the task again
with what is missing, or to another worker. A task may also be a part of a sum over examples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from engine import HostArray
from service.allocation import GrowingAllocation, Held
from service.errors import Refusal
from service.state.values import Stored
from service.transport.claims import Claim
from service.transport.sum_parts import SumPart
from service.wire.media import JSON, PROBLEM
from service.wire.version import Find, Version


def _none_of(_: str) -> None:
    pass


class ModelOfGraph(NamedTuple):
    """A model that is kept: its record, what workers know its graph by, and that graph."""

    record: bytes
    graph: str
    graph_bytes: bytes


#: the model of a name. Raises Refusal: not_found
FindModel = Callable[[str], ModelOfGraph]


def _no_model(name: str) -> ModelOfGraph:
    raise AssertionError(f"nobody was to ask for the model {name}")


#: names of the tasks that are no calls
REGISTER: Final = "registerGraph"
PUT_TENSOR: Final = "putTensor"
GET_TENSOR: Final = "getTensor"
READ_MODEL: Final = "readModel"
PUT_MODEL: Final = "putModel"

#: what `Task.stop` is for a task that nobody stops
NEVER: Final = b"\0"


@dataclass(eq=False, slots=True)
class Job:
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
    resident: Find = _none_of
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
        """The resident tensor of a name, None where there is none."""
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
        """The parts as one."""
        return b"".join(self.parts)

    def give_back(self) -> None:
        """Nobody looks at the parts any more."""
        if self.memory is not None:
            self.memory.give_back()


def refused(refusal: Refusal, request_id: str, recycle: str | None = None) -> Reply:
    """The reply that a refusal is."""
    headers = tuple(refusal.headers.items())
    return Reply(refusal.status, PROBLEM, [refusal.body(request_id)], headers, recycle=recycle)
