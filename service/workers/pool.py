"""Pool of workers as the front sees it, and its statistics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from service.core.allocation import Allocation, GrowingAllocation
from service.store.tables import TensorVersion
from service.workers.task import Reply, Task


@dataclass(frozen=True, slots=True)
class Stats:
    """Numbers of what waits and runs at this moment, and of what has become of workers since the start.

    `queued` and `workers` are by lane, `restarts` by the reason for which workers were replaced. Bytes: `reserved` for
    requests from their heads on, `resident` of the workers in all, `device` of their GPUs' pools. `compiled` are
    kernels that were made or loaded. `incidents` are workers that were ended by a signal, by its name; `condemned` are
    plans that run without kernels since they ended workers. `callers` share it all at this moment, and `displaced`
    tasks have given way to others' since the start. `pieces` of sums have been done since then, by where, and some of
    them `repeated`.
    """

    queued: Mapping[str, int] = field(default_factory=dict)
    running: int = 0
    workers: Mapping[str, int] = field(default_factory=dict)
    restarts: Mapping[str, int] = field(default_factory=dict)
    reserved: int = 0
    resident: int = 0
    device: int = 0
    compiled: int = 0
    incidents: Mapping[str, int] = field(default_factory=dict)
    condemned: int = 0
    callers: int = 0
    displaced: int = 0
    pieces: Mapping[str, int] = field(default_factory=dict)
    repeated: int = 0


#: called once with the reply to a task, on the event loop's thread; never after `cancel`
Done = Callable[[Reply], None]


class Pool(Protocol):
    """Admission, and the workers behind it."""

    device: str

    @property
    def ready(self) -> bool:
        """Whether tasks are accepted."""

    @property
    def busy(self) -> bool:
        """Whether a task runs or waits."""

    def allocate(self, nbytes: int, tenant: str = "") -> GrowingAllocation:
        """Give memory for a body of this many bytes at most, out of a tenant's share; nothing of it is reserved yet.

        Raises Refusal: shutting_down.
        """

    def allocate_tensor(self, nbytes: int) -> Allocation:
        """Give memory for a resident tensor of this many bytes, which no admission counts: who places it has a quota.

        Raises Refusal: store_full, where the system has none.
        """

    def place(self, namespace: str, name: str, resident: TensorVersion | None) -> None:
        """Have tasks that are submitted from now on read this version under the name; None for none any more.

        Several that are placed in one turn of the event loop are seen together. The pool gives back the memory of the
        version before; tasks that have begun with it go on with it.
        """

    def submit(self, task: Task, done: Done) -> None:
        """Take up a task. Its reply may be a refusal: shutting_down, queue_full, deadline_exceeded.

        At the deadline there is a reply, whatever the worker does then.
        """

    def cancel(self, task: Task) -> None:
        """Stop the work on a task whose reply nobody waits for any more."""

    def stats(self) -> Stats:
        """Return the statistics of this moment."""

    def drain(self) -> None:
        """Accept nothing more; what was accepted goes on."""


async def awaited(pool: Pool, task: Task) -> Reply:
    """Return the reply to a task, which is cancelled with whoever awaits it."""
    future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    pool.submit(task, lambda reply: None if future.done() else future.set_result(reply))
    try:
        return await future
    except asyncio.CancelledError:
        pool.cancel(task)
        raise
