"""Jobs that are done with the versions that were last known, while their owner is asked whether there are others.

The reply is held until the owner has said so, and so is of a moment after the request, like all that is read. Where
there is another version, the job is done again with that. It pays where tensors stay as they are, as weights of a
model in use do: then an answer takes as long as it would through the owner.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from service.cluster.expected_reads import Expectation, etags_of
from service.errors import Refusal, fault
from service.pool.lending import Lending
from service.pool.pool import Done
from service.state.tensors import TensorVersion
from service.transport.job import Job, Reply, refused

_logger = logging.getLogger("gradserve.cluster")

#: the versions that a job reads; they are lent
Versions = Mapping[str, TensorVersion]
#: takes up a job that reads these; with a refusal, they are given back
SubmitReading = Callable[[Job, Done, Versions], None]


class SpeculativeJob:
    """A job until it is answered, for whoever is `done` then."""

    def __init__(self, job: Job, done: Done, expected: Expectation, lending: Lending, submit: SubmitReading) -> None:
        self._job, self._done, self._expected = job, done, expected
        self._lending, self._submit = lending, submit
        self._looking: asyncio.Task[None] | None = None
        self._reply: Reply | None = None
        #: what becomes of the reply, once that is known
        self._settle: Callable[[Reply], None] | None = None
        #: what there is, lent until it is known whether the job is done again with it
        self._found: Versions | None = None

    def begin(self, known: Versions, find: Callable[[], Awaitable[Versions]]) -> None:
        """Have it done with what is known, while `find` finds what there is."""
        self._looking = asyncio.get_running_loop().create_task(self._look(etags_of(known), find))
        self._submit(self._job, self._came, known)

    def end(self) -> None:
        """Nobody waits for it any more, or nothing of it is in doubt."""
        if self._looking is not None:
            self._looking.cancel()
        if self._reply is not None:
            reply, self._reply = self._reply, None
            reply.give_back()
        if self._found is not None:
            found, self._found = self._found, None
            self._lending.give_back(*found.values())

    def leave_to_pool(self) -> None:
        """It reads something else than was expected, which is found for it: its reply is what it is."""
        self.end()
        self._settle = self._answer

    async def _look(self, known: Mapping[str, str], find: Callable[[], Awaitable[Versions]]) -> None:
        settle: Callable[[Reply], None]
        try:
            found = await find()
        except Refusal as refusal:
            settle = partial(self._refuse, refusal)
        except Exception:
            _logger.exception("request %s: what it reads could not be looked for", self._job.request_id)
            settle = partial(self._refuse, fault())
        else:
            self._expected.found(found)
            self._found = found
            settle = self._answer if etags_of(found) == known else self._repeat
        self._settle = settle
        if self._reply is not None:
            reply, self._reply = self._reply, None
            settle(reply)

    def _came(self, reply: Reply) -> None:
        if not reply.consulted:  # then it does not matter what there is
            self._answer(reply)
        elif self._settle is None:
            self._reply = reply
        else:
            self._settle(reply)

    def _answer(self, reply: Reply) -> None:
        self.end()
        self._done(reply)

    def _refuse(self, refusal: Refusal, reply: Reply) -> None:
        reply.give_back()
        self._answer(refused(refusal, self._job.request_id))

    def _repeat(self, reply: Reply) -> None:
        reply.give_back()
        assert self._found is not None, "it was found"
        found, self._found = self._found, None
        self._submit(self._job, self._answer, found)
