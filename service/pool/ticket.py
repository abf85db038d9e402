"""A job in the hands of the front: whose it is, who is to be told, where it is, and what is held for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from engine.shares.turns import Turns
from service.pool.accounts import Account
from service.pool.cost_model import JobKind
from service.pool.pool import Done
from service.transport.claims import Claim
from service.transport.job import Estimate, Job
from service.transport.rooms import SharedRoom


class Carrier(Protocol):
    """The worker that a job was sent to."""

    def stop(self, ticket: Ticket) -> None:
        """The job is not to begin, or to end early."""

    def begun(self, ticket: Ticket) -> float | None:
        """When it began to do this, on the monotonic clock; None where it has not."""


class Ticket:
    """One job from being admitted until no worker has it any more, which may be later than its reply."""

    __slots__ = (
        "account",
        "answered",
        "bound",
        "charged",
        "deaths",
        "done",
        "doubtful",
        "estimate",
        "graph_wanted",
        "isolated",
        "job",
        "kind",
        "lane",
        "long",
        "promised",
        "room",
        "slot",
        "stopped",
        "submitted",
        "wanted",
        "worker",
    )  # fmt: skip

    def __init__(self, job: Job, account: Account, done: Done, submitted: float) -> None:
        self.job = job
        self.account = account
        self.done = done
        self.submitted = submitted  # time.monotonic()
        self.answered = False
        #: what it is known by to those like it, where it is not short
        self.kind: JobKind | None = None
        self.long = False
        #: whether it is with the long jobs only to be alone, after it was one of several that were executed as one
        self.isolated = False
        #: whether it waits with the long jobs since its caller's short ones have not been short lately
        self.doubtful = False
        #: where its caller was charged so many seconds, which were expected of it, until it is known what it took
        self.lane: Turns[Ticket] | None = None
        self.charged = 0.0
        #: seconds that it may take where it is, or else it is handed back
        self.bound: float | None = None
        self.estimate: Estimate | None = None
        self.graph_wanted = False
        #: the resident tensors that a worker has asked for to do it
        self.wanted: Sequence[str] = ()
        #: what is reserved for its answer
        self.promised: Claim | None = None
        #: where the pool put the body, where nobody else had
        self.room: SharedRoom | None = None
        self.worker: Carrier | None = None
        self.slot = 0
        #: when it was told to stop; 0 while nobody did
        self.stopped = 0.0
        #: what it has to do with deaths of workers that had it
        self.deaths = 0
