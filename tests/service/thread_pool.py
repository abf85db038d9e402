"""A pool of threads of this process, so that tests can look inside and wait for no process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from service.api.residents import Version
from service.core.allocation import Allocation
from service.core.errors import Refusal, deadline_exceeded, queue_full, stopping
from service.store.tables import TensorVersion
from service.workers.memory import HeapAllocation
from service.workers.pool import Done, Stats
from service.workers.residents import array_of
from service.workers.task import Reply, Task, refused
from service.workers.worker_main import divide


class HeapForBody(HeapAllocation):
    """Memory of a body in this process, allocated all at once."""

    def reserve(self, nbytes: int) -> int:
        return len(self.view)

    def pin(self) -> None:
        pass


def version_of(tensor: TensorVersion) -> Version:
    """The version of a tensor as jobs in this process read it."""
    return Version(tensor.etag, array_of(tensor.memory.view, tensor.dtype, tensor.shape))


class ThreadPool:
    """A bounded number of jobs: `workers` run, `queue` wait, one more is refused. Nothing is isolated."""

    def __init__(self, work: Callable[[Task], Reply], device: str, workers: int, queue: int) -> None:
        self.device = device
        self._work = work
        divide(workers)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="worker")
        self._workers = workers
        self._capacity = workers + queue
        self._held = 0
        self._draining = False
        self._waiting: dict[Task, Done] = {}
        #: by namespace and name. A job sees the versions at its submission, so its dict is copied before a change
        self._residents: dict[str, dict[str, Version]] = {}
        self._seen: set[str] = set()
        self._tensor_memory: dict[tuple[str, str], Allocation] = {}
        self._freed = asyncio.Event()

    @property
    def ready(self) -> bool:
        """Whether work is accepted."""
        return not self._draining

    @property
    def busy(self) -> bool:
        """Whether a job runs or waits."""
        return self._held > 0

    def allocate(self, nbytes: int, tenant: str = "") -> HeapForBody:
        """Memory for a body. Raises Refusal: shutting_down, queue_full."""
        if refusal := self._refusal():
            raise refusal
        return HeapForBody(nbytes)

    def allocate_tensor(self, nbytes: int) -> HeapAllocation:
        """Memory for a resident tensor; it is freed with its last reader."""
        return HeapAllocation(nbytes)

    def place(self, namespace: str, name: str, resident: TensorVersion | None) -> None:
        """Set the version that jobs read from now on; None deletes it."""
        versions = self._residents.get(namespace, {})
        if namespace in self._seen:
            self._seen.discard(namespace)
            self._residents[namespace] = versions = versions.copy()
        if before := self._tensor_memory.pop((namespace, name), None):
            before.release()
        if resident is None:
            versions.pop(name, None)
        else:
            self._tensor_memory[namespace, name] = resident.memory
            self._residents.setdefault(namespace, versions)[name] = version_of(resident)

    def submit(self, job: Task, done: Done) -> None:
        """Submit a job; the front stops waiting at its deadline, whatever the thread does then."""
        if refusal := self._refusal():
            done(refused(refusal, job.request_id))
            return
        self._held += 1
        self._freed.clear()
        self._waiting[job] = done
        if residents := self._residents.get(job.namespace):
            self._seen.add(job.namespace)
            job.resident = residents.get
        loop = asyncio.get_running_loop()
        running = self._threads.submit(self._work, job)
        timer = loop.call_later(max(0.0, job.expires - time.monotonic()), self._late, job, running)

        def ended(finished: Future[Reply]) -> None:
            loop.call_soon_threadsafe(self._ended, job, finished, timer)

        running.add_done_callback(ended)

    def cancel(self, job: Task) -> None:
        """Drop the callback. A queued job is cancelled at its deadline; a running one checks its own."""
        self._waiting.pop(job, None)

    def stats(self) -> Stats:
        """Count the jobs; threads have nothing else to report."""
        running = min(self._held, self._workers)
        return Stats({"all": self._held - running}, running, {"all": self._workers})

    def drain(self) -> None:
        """Accept no more jobs; accepted ones go on."""
        self._draining = True

    async def start(self) -> None:
        """Do nothing: threads start with their first job."""

    async def close(self, grace: float) -> bool:
        """Wait up to `grace` seconds for the jobs; return whether all ended. A thread cannot be stopped."""
        self.drain()
        self._threads.shutdown(wait=False, cancel_futures=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                while self._held:
                    await self._freed.wait()
        return not self._held

    def _late(self, job: Task, running: Future[Reply]) -> None:
        running.cancel()
        self._reply(job, refused(deadline_exceeded(job.timeout), job.request_id))

    def _ended(self, job: Task, finished: Future[Reply], timer: asyncio.TimerHandle) -> None:
        timer.cancel()
        self._held -= 1
        if not self._held:
            self._freed.set()
        if not finished.cancelled():
            self._reply(job, finished.result())

    def _reply(self, job: Task, reply: Reply) -> None:
        if done := self._waiting.pop(job, None):
            done(reply)

    def _refusal(self) -> Refusal | None:
        if self._draining:
            return stopping()
        if self._held >= self._capacity:
            return queue_full(self._held, retry_after=1)
        return None
