"""The pool of workers of a server that shares its state: each job reads versions that were found for it alone.

What a tensor is may be another server's to say, so workers know versions under a name for each set of them that jobs
have read together, and never under the tensor's own: what they know is right for ever. A worker asks for what a job
names, and it is sent again with what was found; what jobs like it have asked for is looked for before it is sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from service.cluster.expected_reads import ExpectedReads
from service.errors import Refusal, fault
from service.pool.lending import Lending
from service.pool.pool import Done
from service.pool.process import COMMAND
from service.pool.process_pool import ProcessPool
from service.pool.replica import TensorKey
from service.pool.ticket import Ticket
from service.settings import Settings
from service.state.tensors import TensorVersion
from service.transport.job import Job, refused

#: what jobs read of which nobody has asked yet: nothing is known under it
_UNASKED: Final = "?"
#: bytes of versions in buffers that a worker knows beside those of its next job
_MOST_MAPPED: Final = 256 << 20

#: seconds in which what a job is expected to read has to be found, or it is sent without: it may read something else
_EXPECTING: Final = 0.05

#: the versions of these names in a namespace, found not later than at a time; they are lent. Raises Refusal
FindVersions = Callable[[str, Sequence[str], float], Awaitable[Mapping[str, TensorVersion]]]

_logger = logging.getLogger("gradserve.cluster")


class ClusterPool(ProcessPool):
    """Finder of the versions that jobs read; `find` is to be set before the first job."""

    find: FindVersions

    def __init__(self, settings: Settings, lending: Lending, command: Sequence[str] = COMMAND) -> None:
        super().__init__(settings, command, lending)
        self.most_mapped = _MOST_MAPPED
        self._current: dict[TensorKey, TensorVersion] = {}
        self._finding: dict[Ticket, asyncio.Task[None]] = {}
        self._expected = ExpectedReads()

    def place(self, namespace: str, name: str, resident: TensorVersion | None) -> None:
        """As `Pool` has it, but that nobody reads it here: those who look for it find it."""
        before = self._current.pop((namespace, name), None)
        if resident is not None:
            self._current[namespace, name] = resident
        if before is not None:
            self._lending.retire(before)

    def submit(self, job: Job, done: Done) -> None:
        """As `Pool` has it."""
        job.reads = _UNASKED
        super().submit(job, done)

    def _enqueue(self, ticket: Ticket) -> None:
        names = self._expected.of(ticket.job)
        if names:
            self._finding[ticket] = self._loop.create_task(self._look_ahead(ticket, names))
        else:
            super()._enqueue(ticket)

    async def _look_ahead(self, ticket: Ticket, names: Sequence[str]) -> None:
        """Send a job with what it is expected to read, so that its worker need not ask."""
        job = ticket.job
        found: Mapping[str, TensorVersion] = {}
        try:
            async with asyncio.timeout(_EXPECTING):
                found = await self.find(job.namespace, names, job.expires)
        except (Refusal, TimeoutError):
            pass  # it is told so where it does read them
        except Exception:
            _logger.exception("request %s: what it may read could not be looked for", job.request_id)
        del self._finding[ticket]
        if found:
            ticket.wanted = [*found]
            self._read_together(ticket, found)
        super()._enqueue(ticket)

    def _find_tensors(self, ticket: Ticket) -> None:
        self._expected.learn(ticket.job, ticket.wanted)
        if ticket in self._pinned and self._pinned[ticket][1].keys() >= set(ticket.wanted):
            super()._find_tensors(ticket)
            return
        self._unpin(ticket)  # it was expected to read something else
        self._lanes.hold(ticket)
        self._finding[ticket] = self._loop.create_task(self._look_for(ticket))

    async def _look_for(self, ticket: Ticket) -> None:
        job = ticket.job
        try:
            found = await self.find(job.namespace, ticket.wanted, job.expires)
        except Refusal as refusal:
            self._not_found(ticket, refusal)
        except Exception:
            _logger.exception("request %s: its tensors could not be found", job.request_id)
            self._not_found(ticket, fault())
        else:
            del self._finding[ticket]
            self._read_together(ticket, found)
            self._lanes.put_first(ticket)
        self._pump()

    def _not_found(self, ticket: Ticket, refusal: Refusal) -> None:
        del self._finding[ticket]
        self._end(ticket, refused(refusal, ticket.job.request_id))

    def pin(self, ticket: Ticket, reads: Sequence[tuple[str, str]]) -> bool:
        """As a pool has it: what a job reads here was found for it alone."""
        return True

    def _unread(self, keys: Sequence[TensorKey]) -> None:
        """Nothing: what workers know of a set is right for ever."""

    def _abandon(self, ticket: Ticket, refusal: Refusal | None = None) -> None:
        if (finding := self._finding.pop(ticket, None)) is None:
            super()._abandon(ticket, refusal)
            return
        finding.cancel()
        self._end(ticket, None if refusal is None else refused(refusal, ticket.job.request_id))
