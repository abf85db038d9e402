"""The pool of workers of a server that shares its state: each job reads versions that were found for it alone.

What a tensor is may be another server's to say, so workers know versions under a name for each set of them that jobs
have read together, and never under the tensor's own: what they know is right for ever. A worker asks for what a job
names, and it is sent again with what was found; what jobs like it have asked for is looked for before it is sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

from service.cluster.expected_reads import Expectation, ExpectedReads
from service.cluster.speculation import SpeculativeJob
from service.errors import Refusal, fault
from service.pool.lending import Lending
from service.pool.pool import Done
from service.pool.process import COMMAND
from service.pool.process_pool import ProcessPool
from service.pool.replica import TensorKey
from service.pool.ticket import Ticket
from service.settings import Settings
from service.state.tensors import TensorVersion
from service.transport.frames import INLINE
from service.transport.job import Job, Reply, refused

#: what jobs read of which nobody has asked yet: nothing is known under it
_UNASKED: Final = "?"
#: bytes of versions in buffers that a worker knows beside those of its next job
_MOST_MAPPED: Final = 256 << 20

#: seconds in which what a job is expected to read has to be found, or it is sent without: it may read something else
_EXPECTING: Final = 0.05

#: the versions of these names in a namespace, found not later than at a time; they are lent. Raises Refusal
FindVersions = Callable[[str, Sequence[str], float], Awaitable[Mapping[str, TensorVersion]]]
#: those of them that were last known, where another server has them and all are here; they are lent
RecallVersions = Callable[[str, Sequence[str]], Mapping[str, TensorVersion]]

_logger = logging.getLogger("gradserve.cluster")


class ClusterPool(ProcessPool):
    """Finder of the versions that jobs read; `find` and `recall` are to be set before the first job."""

    find: FindVersions
    recall: RecallVersions

    def __init__(self, settings: Settings, lending: Lending, command: Sequence[str] = COMMAND) -> None:
        super().__init__(settings, command, lending)
        self.most_mapped = _MOST_MAPPED
        self._current: dict[TensorKey, TensorVersion] = {}
        self._finding: dict[Ticket, asyncio.Task[None]] = {}
        self._expected = ExpectedReads()
        self._speculative: dict[Job, SpeculativeJob] = {}

    def place(self, namespace: str, name: str, resident: TensorVersion | None) -> None:
        """As `Pool` has it, but that nobody reads it here: those who look for it find it."""
        before = self._current.pop((namespace, name), None)
        if resident is not None:
            self._current[namespace, name] = resident
        if before is not None:
            self._lending.retire(before)

    def submit(self, job: Job, done: Done) -> None:
        """As `Pool` has it."""
        expected = self._expected.of(job)
        if expected is not None and (known := self._known_to_be_steady(job, expected)):
            self._speculate(job, done, expected, known)
            return
        job.reads = _UNASKED
        ticket = self._admit(job, done)
        if ticket is not None and expected is not None:
            self._finding[ticket] = self._loop.create_task(self._look_ahead(ticket, expected))
        elif ticket is not None:
            self._enqueue(ticket)

    def cancel(self, job: Job) -> None:
        """As `Pool` has it."""
        if (run := self._speculative.pop(job, None)) is not None:
            run.end()
        super().cancel(job)

    def _known_to_be_steady(self, job: Job, expected: Expectation) -> Mapping[str, TensorVersion]:
        """What a short job reads, lent, where that is known here and likely to be what there is; or nothing."""
        if not expected.is_steady or job.memory is not None or len(job.body) > INLINE:
            return {}
        if self._cost_model.known(job)[0] is not None:
            return {}
        return self.recall(job.namespace, expected.names)

    def _speculate(self, job: Job, done: Done, expected: Expectation, known: Mapping[str, TensorVersion]) -> None:
        def answered(reply: Reply) -> None:
            del self._speculative[job]
            done(reply)

        self._speculative[job] = run = SpeculativeJob(job, answered, expected, self._lending, self._submit_reading)
        run.begin(known, partial(self.find, job.namespace, expected.names, job.expires))

    def _submit_reading(self, job: Job, done: Done, versions: Mapping[str, TensorVersion]) -> None:
        """Take up a job that reads these, which are lent."""
        job.reads = _UNASKED
        ticket = self._admit(job, done)
        if ticket is None:
            self._lending.give_back(*versions.values())
            return
        self._give_versions(ticket, versions)
        self._enqueue(ticket)

    def _give_versions(self, ticket: Ticket, versions: Mapping[str, TensorVersion]) -> None:
        """Send a job with these, which are lent."""
        ticket.wanted = [*versions]
        self._read_together(ticket, versions)

    async def _look_ahead(self, ticket: Ticket, expected: Expectation) -> None:
        """Send a job with what it is expected to read, so that its worker need not ask."""
        job = ticket.job
        found: Mapping[str, TensorVersion] = {}
        try:
            async with asyncio.timeout(_EXPECTING):
                found = await self.find(job.namespace, expected.names, job.expires)
        except (Refusal, TimeoutError):
            pass  # it is told so where it does read them
        except Exception:
            _logger.exception("request %s: what it may read could not be looked for", job.request_id)
        del self._finding[ticket]
        if found:
            expected.found(found)
            self._give_versions(ticket, found)
        self._enqueue(ticket)

    def _find_tensors(self, ticket: Ticket) -> None:
        self._expected.learn(ticket.job, ticket.wanted)
        if ticket in self._pinned and self._pinned[ticket][1].keys() >= set(ticket.wanted):
            super()._find_tensors(ticket)
            return
        if (run := self._speculative.get(ticket.job)) is not None:
            run.leave_to_pool()
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
