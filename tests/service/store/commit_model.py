"""Commits without threads and disks: a test says when a write ends, and how; and what is on disk can be looked at."""

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
from service.store.journal import Loaded
from service.store.tables import Quota, TensorTable, TensorVersion
from service.store.writes import Commit


class Heap:
    """Memory that knows whether it was given back."""

    def __init__(self, data: bytes) -> None:
        self.view = memoryview(data)
        self.given_back = 0

    def release(self) -> None:
        self.given_back += 1


class Disk:
    """A journal of which all can be seen; where it is `shared`, somebody says whether what was read `is_current`."""

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

    def load(self) -> Loaded:
        return Loaded()

    def commit(self, batch: Sequence[Commit]) -> None:
        self.commits += batch

    def close(self) -> None:
        self.closed = True

    @property
    def tensors(self) -> dict[str, str]:
        """The etags that a server which starts now would find."""
        found: dict[str, str] = {}
        for commit in self.commits:
            for write in commit.tensors:
                if write.data is None:
                    found.pop(write.name, None)
                else:
                    assert bytes(write.data) == write.etag.encode(), "what is written is what was proposed"
                    found[write.name] = write.etag
        return found


class Hand(Executor):
    """Does what it is given when it is told to."""

    def __init__(self) -> None:
        self.given: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, do: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.given.append((future, lambda: do(*arguments, **named)))
        return future

    def go_on(self, failure: Exception | None = None) -> None:
        """Do the next thing; or fail at it."""
        future, do = self.given.pop(0)
        if failure is None:
            future.set_result(do())
        else:
            future.set_exception(failure)


class Bench:
    """Commits with a table of tensors, on an event loop that stands still between two calls."""

    def __init__(
        self, most: int = 100, most_bytes: int = 1 << 20, within: float = 1e9, *, shared: bool = False
    ) -> None:
        self.loop = asyncio.new_event_loop()
        self.disk, self.hand, self.eye = Disk(), Hand(), Hand()
        self.disk.shared = shared
        self.now = 0.0
        self.proposed: list[Proposal] = []
        self.placed: dict[str, TensorVersion] = {}
        self.tensors = TensorTable(Quota(most, most_bytes), self._place)
        self.told: list[tuple[str, float]] = []
        clock = (lambda: self.now) if shared else time.monotonic
        fence = Fence(self.disk, self.eye, clock)
        self.commits = Commits(self.disk, within, lambda *told: self.told.append(told), self.hand, fence, clock)

    def _place(self, namespace: str, name: str, version: TensorVersion | None) -> None:
        if version is None:
            del self.placed[name]
        else:
            self.placed[name] = version

    def change(self, name: str, etag: str | None, condition: Condition = ALWAYS) -> Change:
        """A new version of a tensor, which holds its etag; None: its end."""
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
        """Propose a new version of a tensor, which `answers` are told of; where it is in doubt, as unsure."""
        said = f"{name}={etag}"
        proposal = Proposal([self.change(name, etag, condition)], answers.of(said), durable, expires, 1.0)
        proposal.unsure = answers.of(f"{said} unsure")
        self.proposed.append(proposal)
        self.do(lambda: self.commits.submit(proposal))

    def look_on(self, failure: Exception | None = None) -> None:
        """The look at hand ends."""
        self.do(lambda: self.eye.go_on(failure))

    def wait(self, until: float) -> None:
        """Time passes."""
        for proposal in sorted(self.proposed, key=lambda proposal: proposal.expires):
            if proposal.timer is not None and proposal.expires <= until:
                proposal.timer.cancel()
                self.now = proposal.expires
                self.do(partial(self.commits._expire, proposal))
        self.now = until

    def submit(self, *changes: Change, done: Callable[[Refusal | None], None], **stated: Any) -> None:
        """Propose, and let the loop go on as far as it can."""
        self.do(lambda: self.commits.submit(Proposal(changes, done, **stated)))

    def go_on(self, failure: Exception | None = None) -> None:
        """The write at hand ends."""
        self.do(lambda: self.hand.go_on(failure))

    def flush(self) -> None:
        """The time of what is behind has come."""
        self.do(self.commits._flush)

    def do(self, what: Callable[[], None]) -> None:
        """Something, and all that follows from it."""

        async def whole() -> None:
            what()
            for _ in range(20):
                await asyncio.sleep(0)

        self.loop.run_until_complete(whole())

    def close(self) -> bool:
        """End, with a disk that takes what it is given."""

        async def whole() -> bool:
            closing = asyncio.ensure_future(self.commits.close(30.0))
            while not closing.done():
                if self.hand.given:
                    self.hand.go_on()
                await asyncio.sleep(0)
            return await closing

        try:
            return self.loop.run_until_complete(whole())
        finally:
            self.loop.close()
