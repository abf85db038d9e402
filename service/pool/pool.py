"""Pool of workers as the front sees it, and its statistics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from service.allocation import Allocation, GrowingAllocation
from service.pool.stats import Stats
from service.state.tensors import TensorVersion
from service.transport.job import Job, Reply

#: called once with the reply to a task, on the event loop's thread; never after `cancel`
Done = Callable[[Reply], None]


class Pool(Protocol):
    """Admission, and the workers behind it."""

    device: str

    @property
    def ready(self) -> bool:
        """Whether work is accepted."""

    @property
    def busy(self) -> bool:
        """Whether a task runs or waits."""

    def allocate(self, nbytes: int, tenant: str = "") -> GrowingAllocation:
        """Memory for a body of this many bytes at most, out of a tenant's share; nothing of it is reserved yet.

        Raises Refusal: shutting_down.
        """

    def allocate_tensor(self, nbytes: int) -> Allocation:
        """Memory for a resident tensor of this many bytes, which no admission counts: whoever places it has a quota.

        Raises Refusal: store_full, where the system has none.
        """

    def place(self, namespace: str, name: str, resident: TensorVersion | None) -> None:
        """From now on tasks that are submitted read this version under the name; None: nothing is there any more.

        Several that are placed in one turn of the event loop are seen together. The pool gives back the memory of the
        version before; tasks that have begun with it go on with it.
        """

    def submit(self, job: Job, done: Done) -> None:
        """Take up a task. Its reply may be a refusal: shutting_down, queue_full, deadline_exceeded.

        At the deadline there is a reply, whatever the worker does then.
        """

    def cancel(self, job: Job) -> None:
        """Nobody waits for the reply any more: the work stops."""

    def stats(self) -> Stats:
        """What it says of itself, at this moment."""

    def drain(self) -> None:
        """Accept nothing more; what was accepted goes on."""


async def awaited(pool: Pool, job: Job) -> Reply:
    """The reply to a task; cancelled with whoever awaits it."""
    reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    pool.submit(job, lambda found: None if reply.done() else reply.set_result(found))
    try:
        return await reply
    except asyncio.CancelledError:
        pool.cancel(job)
        raise
