"""The one place that decides what is kept, and in which order.

A proposal waits until nothing before it concerns the same names. Then it is decided against what is there and what is
coming, written down together with all that have gathered meanwhile, and settled: only then can anybody see it. What
need not be durable settles at once, and is written down within a stated time, its newest state alone.

Nothing is said of the state without a proof that it is still this server's to tell: a commit that succeeded, or a look.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from service.core.errors import Refusal, fault, late, stopping
from service.store.changes import Change
from service.store.fence import Fence
from service.store.journal import Journal, StateFull, StateLost, StateUnknown
from service.store.writes import Name, Write, commit_of, name_of

# Writes that can be seen and are not on disk yet.


class WriteBehind:
    """Writes that wait, the newest of each name, in groups without a common name.

    What was kept as one is in one group, and a group is written as one: so what is on disk is never half of anything,
    and whatever is newer than a group waits for it or goes with it.
    """

    def __init__(self) -> None:
        self._groups: dict[Name, dict[Name, Write]] = {}

    def __len__(self) -> int:
        """Return how many writes wait."""
        return len(self._groups)

    def __contains__(self, name: Name) -> bool:
        """Return whether a write of this name waits."""
        return name in self._groups

    def add(self, writes: Iterable[Write]) -> None:
        """Have these wait, in place of older ones; they are one group, with all that share a name with them."""
        fresh = {name_of(write): write for write in writes}
        group: dict[Name, Write] = {}
        for other in self._of(fresh):
            group, smaller = (other, group) if len(other) > len(group) else (group, other)
            group |= smaller
            self._groups |= dict.fromkeys(smaller, group)
        group |= fresh
        self._groups |= dict.fromkeys(fresh, group)

    def put_back(self, writes: Iterable[Write]) -> None:
        """Have a group that was taken wait again, but for what has been replaced meanwhile."""
        self.add([self._groups.get(name, {name: write})[name] for write in writes for name in [name_of(write)]])

    def drain(self, names: Container[Name] | None) -> list[Sequence[Write]]:
        """Take out the groups that have one of these names; None: all of them."""
        taken = self._of(name for name in self._groups if names is None or name in names)
        for group in taken:
            for name in group:
                del self._groups[name]
        return [list(group.values()) for group in taken]

    def _of(self, names: Iterable[Name]) -> list[dict[Name, Write]]:
        """The groups that have these names, each once."""
        found = (self._groups[name] for name in names if name in self._groups)
        return list({id(group): group for group in found}.values())


_logger = logging.getLogger("gradserve")

#: (value that each change replaces) → the changes, with the record of the answer filled in
Completion = Callable[[Sequence[Any]], Sequence[Change]]
#: told of each proposal's outcome, and of how many seconds it took
CommitCallback = Callable[[str, float], None]
WRITTEN: Final = "written"


@dataclass(eq=False, slots=True)
class Proposal:
    """Changes of which all are to be made, or none; `done` is called once, with the reason where none was.

    `expires` is when, on the monotonic clock, a proposal that was not begun is too late; `timeout` what that was
    agreed to be. Where it was begun by then and may yet be kept, `unsure` is called, and `done` when that is known.

    An answer that tells what a write replaced is filled in by `complete`, at the moment of the decision: anything read
    earlier may have been replaced since. It gets the value that each change replaces, None where there is none, and
    returns the same changes, with the record of the answer filled in.
    """

    changes: Sequence[Change]
    done: Callable[[Refusal | None], None]
    durable: bool = True
    expires: float = float("inf")
    timeout: float = 0.0
    unsure: Callable[[Refusal], None] | None = None
    complete: Completion | None = None
    submitted: float = 0.0
    timer: asyncio.TimerHandle | None = None
    is_answered: bool = False

    @property
    def names(self) -> set[Name]:
        """The names that it concerns."""
        return {change.name for change in self.changes}


class Commits:
    """Proposals, as one event loop takes them; a thread of its own writes them down."""

    def __init__(
        self,
        journal: Journal,
        within: float,
        on_commit: CommitCallback = lambda outcome, seconds: None,
        executor: Executor | None = None,
        fence: Fence | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Write what is not durable to disk `within` so many seconds."""
        self._journal = journal
        self._clock = clock
        self._within = within
        self._on_commit = on_commit
        self._executor = executor or ThreadPoolExecutor(1, thread_name_prefix="state")
        self._waiting: deque[Proposal] = deque()
        self._writing: set[Name] = set()
        self._behind = WriteBehind()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._flushes = False
        self._closing = False
        self.fence = fence or Fence(journal)

    @property
    def lost(self) -> Refusal | None:
        """The reason why nothing can be kept any more."""
        return self.fence.lost

    @property
    def behind(self) -> int:
        """Things that are not on disk yet."""
        return len(self._behind)

    def is_behind(self, name: Name) -> bool:
        """Return whether the value under this name is not on disk yet."""
        return name in self._behind

    def submit(self, proposal: Proposal) -> None:
        """Take up a proposal. It goes through whatever becomes of whoever made it."""
        proposal.submitted = self._clock()
        if refusal := self.lost or (stopping() if self._closing else None):
            self._tell(proposal, refusal)
            return
        if self._journal.shared and proposal.expires != float("inf"):
            seconds = max(0.0, proposal.expires - proposal.submitted)
            proposal.timer = asyncio.get_running_loop().call_later(seconds, self._expire, proposal)
        self._waiting.append(proposal)
        self._go()

    async def close(self, seconds: float) -> bool:
        """Take nothing more, and write down all that is left; whether that was done within so many seconds."""
        self._closing = self._flushes = True
        self._go()
        done = False
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._task is not None:
                    await asyncio.shield(self._task)
                await asyncio.get_running_loop().run_in_executor(self._executor, self._journal.close)
                done = True
        if not done:
            self._journal.give_up()
        if self._behind or not done:
            _logger.error("the server ends, and %d writes that were not durable are lost", len(self._behind))
        self._executor.shutdown(wait=False)
        self.fence.close()
        return done

    def _go(self) -> None:
        """Settle what may settle at once, and begin to write where nothing is being written."""
        batch = self._taken()
        if self._task is not None or not (batch or self._flushes):
            return
        names = set[Name]().union(*(proposal.names for proposal in batch))
        groups = self._behind.drain(None if self._flushes else names)
        self._flushes = False
        if self._timer is not None and not self._behind:
            self._timer.cancel()
            self._timer = None
        if batch or groups:
            self._writing = names
            self._task = asyncio.get_running_loop().create_task(self._work(batch, groups))

    def _taken(self) -> list[Proposal]:
        """Take the proposals to be written next. One that concerns the same names as an earlier one waits behind it."""
        batch: list[Proposal] = []
        taken = set[Name]()
        blocked = set(self._writing)
        waiting, self._waiting = self._waiting, deque()
        for proposal in waiting:
            names = proposal.names
            durable = proposal.durable or not self.fence.open  # a write is as good as a look
            if not blocked.isdisjoint(names) or (durable and self._task is not None):
                blocked |= names
                self._waiting.append(proposal)
            elif durable or not taken.isdisjoint(names):
                taken |= names
                batch.append(proposal)
            else:
                self._settle_at_once(proposal)
        return batch

    def _settle_at_once(self, proposal: Proposal) -> None:
        refusal, changes = self._decided(proposal)
        self._settle(changes)
        if changes:
            self._behind.add(change.write for change in changes)
            self._promise()
        self._tell(proposal, refusal)

    def _promise(self) -> None:
        """See to it that what is behind is written in time: from half of it on, as writing takes some, too."""
        if self._timer is None and not self._closing:
            self._timer = asyncio.get_running_loop().call_later(self._within / 2, self._flush)

    def _flush(self) -> None:
        self._timer = None
        self._flushes = True
        self._go()

    async def _work(self, batch: Sequence[Proposal], groups: Sequence[Sequence[Write]]) -> None:
        """Write together; where there is no space for that, one after the other."""
        try:
            if not await self._together(batch, groups, divisible=len(batch) + len(groups) > 1):
                for group in groups:
                    await self._together([], [group])
                for proposal in batch:
                    await self._together([proposal], self._behind.drain(proposal.names))
        finally:
            self._task = None
            self._writing = set()
            if self._behind and not self._closing and self.lost is None:
                self._promise()
            self._go()

    async def _together(
        self, batch: Sequence[Proposal], groups: Sequence[Sequence[Write]], *, divisible: bool = False
    ) -> bool:
        """Decide, write, settle and tell; False where there is no space for all, and there might be for some."""
        decided = [self._decided(proposal) for proposal in batch]
        changes = [change for _, accepted in decided for change in accepted]
        parts = [*groups, *([change.write for change in accepted] for _, accepted in decided)]
        refusal = await (self._written(parts) if any(parts) else self._seen())
        if refusal is None:
            self._settle(changes)
        else:
            self._take_back(changes, groups)
            if divisible and refusal.code == "store_full":
                return False
        # What was decided upon what did not come about, or was another server's to decide, is as good as not decided.
        founded = refusal is None or self.fence.open
        for proposal, (refused, accepted) in zip(batch, decided, strict=True):
            founded &= refusal is None or not accepted
            self._tell(proposal, refused if founded else refusal)
        return True

    def _decided(self, proposal: Proposal) -> tuple[Refusal | None, Sequence[Change]]:
        """The changes that are coming now; none where the proposal is refused, and why."""
        try:
            if self.lost is not None:
                raise self.lost
            if proposal.expires <= self._clock():
                raise late(proposal.timeout)
            replaced = [change.table.latest(change.key) for change in proposal.changes]
            checks = [change.check(value) for change, value in zip(proposal.changes, replaced, strict=True)]
            changes = proposal.changes if proposal.complete is None else proposal.complete(replaced)
            needed = [change for change, is_needed in zip(changes, checks, strict=True) if is_needed]
            for table in {id(change.table): change.table for change in needed}.values():
                table.admit({change.key: change.value for change in needed if change.table is table})
        except Refusal as refusal:
            return refusal, ()
        except Exception:
            _logger.exception("a proposal could not be decided")
            return fault(), ()
        for change in needed:
            change.table.expect(change.key, change.value)
        return None, needed

    async def _seen(self) -> Refusal | None:
        """Have it seen that what was decided on is what there is, where nothing is to be written; why it is not."""
        try:
            await self.fence.passed()
        except Refusal as refusal:
            return refusal
        return None

    async def _written(self, parts: Sequence[Sequence[Write]]) -> Refusal | None:
        """Have the journal keep these; why it did not."""
        if self.lost is not None:
            return self.lost
        commits = [commit_of(part) for part in parts if part]
        try:
            await asyncio.get_running_loop().run_in_executor(self._executor, self._journal.commit, commits)
        except StateFull as full:
            _logger.warning("there is no room for what is to be kept: %s", full)
            detail = "the place where the server keeps its state is full; what was there before stands"
            return Refusal("store_full", detail)
        except StateLost as lost:
            return self.fence.lose(lost)
        except StateUnknown:
            _logger.exception("the server ends, and does not know whether its last writes are kept")
            return unconfirmed()
        except Exception as error:
            _logger.exception("what was to be kept could not be written")
            if not isinstance(error, OSError):
                return fault()
            detail = "the place where the server keeps its state cannot be written to; what was there before stands"
            return Refusal("not_ready", detail, retry_after=5)
        return None

    def _expire(self, proposal: Proposal) -> None:
        """The time of a proposal is up, and it is not known what becomes of it."""
        proposal.timer = None
        if proposal in self._waiting:
            self._waiting.remove(proposal)
            self._tell(proposal, late(proposal.timeout))
            self._go()  # others may have waited behind it
        elif proposal.unsure is not None:
            self._count(proposal, "unconfirmed")
            proposal.is_answered = True
            proposal.unsure(unconfirmed())

    @staticmethod
    def _settle(changes: Iterable[Change]) -> None:
        for change in changes:
            change.table.settle(change.key, change.value)

    def _take_back(self, changes: Iterable[Change], groups: Iterable[Sequence[Write]]) -> None:
        """Undo what was decided: the earlier values stand, and what was behind is behind again."""
        for change in changes:
            change.table.drop(change.key)
        for group in groups:
            self._behind.put_back(group)

    def _tell(self, proposal: Proposal, refusal: Refusal | None) -> None:
        if proposal.timer is not None:
            proposal.timer.cancel()
            proposal.timer = None
        if not proposal.is_answered:
            self._count(proposal, WRITTEN if refusal is None else refusal.code)
        asyncio.get_running_loop().call_soon(proposal.done, refusal)

    def _count(self, proposal: Proposal, outcome: str) -> None:
        self._on_commit(outcome, self._clock() - proposal.submitted)


def unconfirmed() -> Refusal:
    """The report of a write that may have been kept."""
    detail = (
        "the place where the server keeps its state has not said whether this was kept; "
        "send it again with its Idempotency-Key, or read what is there"
    )
    return Refusal("unconfirmed", detail, retry_after=1)
