"""Interface of the worker pool, as the front sees it, and its statistics."""

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
    """Current load of the pool, and counts since the start.

    `queued` and `workers` are by lane, `restarts` by the reason for which workers were replaced. Bytes: `reserved` for
    requests as soon as their heads have arrived, `resident` in all workers, `device` in the memory pools of their GPUs.
    `compiled` counts kernels that were compiled or loaded from the store. `incidents` counts workers that were killed
    by a signal, by its name; `condemned` counts plans that run without kernels because they killed workers. `callers`
    is the number of callers that share the pool now; `displaced` counts tasks that were dropped to make room for other
    callers. `pieces` counts pieces of sums by where they were computed; `repeated` of them had to be begun again.
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
    """Admission of tasks, and the workers that run them."""

    device: str

    @property
    def ready(self) -> bool:
        """Whether tasks are accepted."""

    @property
    def busy(self) -> bool:
        """Whether any task runs or waits."""

    def allocate(self, nbytes: int, tenant: str = "") -> GrowingAllocation:
        """Allocate memory for a body of at most this many bytes, from a tenant's share; none of it is reserved yet.

        Raises Refusal: shutting_down.
        """

    def allocate_tensor(self, nbytes: int) -> Allocation:
        """Allocate memory for a resident tensor. Admission does not count it: the caller has a quota for tensors.

        Raises Refusal (store_full) if the system has none.
        """

    def place(self, namespace: str, name: str, resident: TensorVersion | None) -> None:
        """Set the tensor version that tasks read if they are submitted from now on; None deletes the tensor.

        Tasks see all versions that are placed in one turn of the event loop, or none of them. The pool releases the
        memory of the previous version once the tasks that read it are done.
        """

    def submit(self, task: Task, done: Done) -> None:
        """Accept a task, or refuse it: shutting_down, queue_full, deadline_exceeded.

        The task is answered by its deadline, whatever its worker does.
        """

    def cancel(self, task: Task) -> None:
        """Stop the work on a task whose result nobody waits for."""

    def stats(self) -> Stats:
        """Return the current statistics."""

    def drain(self) -> None:
        """Accept no more tasks; those that were accepted continue."""


async def run_task(pool: Pool, task: Task) -> Reply:
    """Return the reply to a task; cancel the task if the caller is cancelled."""
    future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    pool.submit(task, lambda reply: None if future.done() else future.set_result(reply))
    try:
        return await future
    except asyncio.CancelledError:
        pool.cancel(task)
        raise
