"""Commits without threads and disks: a test decides when and how a write ends, and can inspect the disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any

from service.core.errors import Refusal
from service.store.changes import ALWAYS, Change, Condition, new_tensor, tensor_deletion
from service.store.commits import Commits, Proposal
from service.store.fence import Fence
from service.store.journal import MemoryJournal
from service.store.tables import Quota, TensorTable, TensorVersion
from service.store.writes import Commit


class Heap:
    """Memory that counts its releases."""

    def __init__(self, data: bytes) -> None:
        self.view = memoryview(data)
        self.releases = 0

    def release(self) -> None:
        self.releases += 1


class Disk(MemoryJournal):
    """Journal whose commits can be inspected; if it is `shared`, the test sets whether memory `is_current`."""

    shared = False

    def __init__(self) -> None:
        self.commits: list[Commit] = []
        self.closed = False
        self.is_current = True
        self.gave_up = False
        self.looks: list[Exception | None] = []

    def holds(self) -> bool:
        return not self.shared or self.is_current

    def look(self) -> None:
        failure = self.looks.pop(0) if self.looks else None
        if failure is not None:
            raise failure
        self.is_current = True

    def give_up(self) -> None:
        self.gave_up = True

    def commit(self, batch: Sequence[Commit]) -> None:
        self.commits += batch

    def close(self, successor: str | None = None) -> None:
        self.closed = True

    @property
    def tensors(self) -> dict[str, str]:
        """The etags that a server would load if it started now."""
        etags: dict[str, str] = {}
        for commit in self.commits:
            for write in commit.tensors:
                if write.data is None:
                    etags.pop(write.name, None)
                else:
                    assert bytes(write.data) == write.etag.encode(), "what is written is what was proposed"
                    etags[write.name] = write.etag
        return etags


class ManualExecutor(Executor):
    """Executor that runs a submitted call when the test says so."""

    def __init__(self) -> None:
        self.queued: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, do: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.queued.append((future, lambda: do(*arguments, **named)))
        return future

    def run_next(self, failure: Exception | None = None) -> None:
        """Run the next call, or make it fail."""
        future, do = self.queued.pop(0)
        if failure is None:
            future.set_result(do())
        else:
            future.set_exception(failure)


class Bench:
    """Commits with a table of tensors, on an event loop that runs only during method calls."""

    def __init__(
        self, most: int = 100, most_bytes: int = 1 << 20, within: float = 1e9, *, shared: bool = False
    ) -> None:
        self.loop = asyncio.new_event_loop()
        self.disk, self.writer, self.looker = Disk(), ManualExecutor(), ManualExecutor()
        self.disk.shared = shared
        self.now = 0.0
        self.proposed: list[Proposal] = []
        self.placed: dict[str, TensorVersion] = {}
        self.tensors = TensorTable(Quota(most, most_bytes), self._place)
        self.outcomes: list[tuple[str, float]] = []
        clock = (lambda: self.now) if shared else time.monotonic
        fence = Fence(self.disk, self.looker, clock)
        self.commits = Commits(
            self.disk, within, lambda *outcome: self.outcomes.append(outcome), self.writer, fence, clock
        )

    def _place(self, namespace: str, name: str, version: TensorVersion | None) -> None:
        if version is None:
            del self.placed[name]
        else:
            self.placed[name] = version

    def change(self, name: str, etag: str | None, condition: Condition = ALWAYS) -> Change:
        """Build the change to a new version, whose data is its etag, or the deletion if it is None."""
        if etag is None:
            return tensor_deletion(self.tensors, ("", name), condition)
        version = TensorVersion("uint8", (len(etag),), etag, Heap(etag.encode()))
        return new_tensor(self.tensors, ("", name), version, condition)

    def propose(
        self,
        name: str,
        etag: str,
        answers: Any,
        condition: Condition = ALWAYS,
        *,
        durable: bool = True,
        expires: float = float("inf"),
    ) -> None:
        """Propose a new version of a tensor, and record the outcome in `answers`."""
        label = f"{name}={etag}"
        proposal = Proposal([self.change(name, etag, condition)], answers.callback(label), durable, expires, 1.0)
        proposal.unsure = answers.callback(f"{label} unsure")
        self.proposed.append(proposal)
        self.do(lambda: self.commits.submit(proposal))

    def finish_look(self, failure: Exception | None = None) -> None:
        """Finish the current look."""
        self.do(lambda: self.looker.run_next(failure))

    def wait(self, until: float) -> None:
        """Advance the clock."""
        for proposal in sorted(self.proposed, key=lambda proposal: proposal.expires):
            if proposal.timer is not None and proposal.expires <= until:
                proposal.timer.cancel()
                self.now = proposal.expires
                self.do(partial(self.commits._expire, proposal))
        self.now = until

    def submit(self, *changes: Change, done: Callable[[Refusal | None], None], **stated: Any) -> None:
        """Submit a proposal, and run the event loop until it is idle."""
        self.do(lambda: self.commits.submit(Proposal(changes, done, **stated)))

    def run_next(self, failure: Exception | None = None) -> None:
        """Finish the current write."""
        self.do(lambda: self.writer.run_next(failure))

    def flush(self) -> None:
        """Flush the deferred writes."""
        self.do(self.commits._flush)

    def do(self, call: Callable[[], None]) -> None:
        """Run a call and everything that it schedules."""

        async def whole() -> None:
            call()
            for _ in range(20):
                await asyncio.sleep(0)

        self.loop.run_until_complete(whole())

    def close(self) -> bool:
        """Close the commits, with a disk that accepts all writes."""

        async def whole() -> bool:
            closing = asyncio.ensure_future(self.commits.close(30.0))
            while not closing.done():
                if self.writer.queued:
                    self.writer.run_next()
                await asyncio.sleep(0)
            return await closing

        try:
            return self.loop.run_until_complete(whole())
        finally:
            self.loop.close()
