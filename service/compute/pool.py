"""Admission, and the workers behind it. The front hands in jobs and awaits replies; what runs them is decided here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Protocol

from service.compute.blas import divide
from service.compute.job import Job, Reply
from service.errors import Refusal


class Pool(Protocol):
    """What the front knows of the workers. Threads are behind it today; processes fit as well."""

    device: str

    @property
    def ready(self) -> bool:
        """Whether work is accepted."""

    async def run(self, job: Job) -> Reply:
        """The reply to a job. Raises Refusal: queue_full, shutting_down, deadline_exceeded."""

    def drain(self) -> None:
        """Accept nothing more; what was accepted goes on."""


def _at_once(_: float) -> bool:
    return True


class ThreadPool:
    """A bounded number of jobs: `workers` run, `queue` wait, one more is refused.

    `end` ends what goes on beside the jobs, and says whether it has ended within so many seconds.
    """

    def __init__(
        self,
        work: Callable[[Job], Reply],
        device: str,
        workers: int,
        queue: int,
        end: Callable[[float], bool] = _at_once,
    ) -> None:
        self.device = device
        self._end = end
        self._work = work
        divide(workers)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="worker")
        self._capacity = workers + queue
        self._held = 0
        self._counting = Lock()
        self._draining = False

    @property
    def ready(self) -> bool:
        """Whether work is accepted."""
        return not self._draining

    @property
    def busy(self) -> bool:
        """Whether a job runs or waits."""
        return self._held > 0

    async def run(self, job: Job) -> Reply:
        """The reply to a job; the front stops waiting at its deadline, whatever the worker does then.

        Raises Refusal: queue_full, shutting_down, deadline_exceeded.
        """
        self._admit()
        running = self._threads.submit(self._work, job)
        # Of the thread's own future: a job that outlives its deadline is held until it ends.
        running.add_done_callback(self._release)
        reply = asyncio.wrap_future(running)
        done, _ = await asyncio.wait([reply], timeout=max(0.0, job.expires - time.monotonic()))
        if done:
            return reply.result()
        reply.cancel()  # a job that has not begun leaves the queue; one that runs looks at its own deadline
        raise Refusal("deadline_exceeded", f"the request was not finished within its {job.timeout:g} s")

    def drain(self) -> None:
        """Accept nothing more; what was accepted goes on."""
        self._draining = True

    def close(self, timeout: float) -> bool:
        """End what goes on beside the jobs; False where it, or a job, still goes on after `timeout` seconds."""
        return self._end(timeout) and not self.busy

    def _admit(self) -> None:
        if self._draining:
            raise Refusal("shutting_down", "the server is stopping and takes no new work", retry_after=5)
        with self._counting:
            if self._held >= self._capacity:
                raise Refusal(
                    "queue_full",
                    f"the server already holds {self._held} requests, its limit; try again shortly",
                    retry_after=1,
                )
            self._held += 1

    def _release(self, _: Future[Reply]) -> None:
        with self._counting:
            self._held -= 1
