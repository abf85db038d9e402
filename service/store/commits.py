"""Commits: decide which changes are made, in which order, and write them to the journal.

A `Proposal` is a list of `Change`s that are made atomically. It passes four steps:

    wait     until no earlier proposal that is undecided or being written concerns the same names
    decide   check its conditions and the quota, with coming values counted as present
    write    one journal commit for all proposals that arrived during the previous one (group commit)
    settle   put the values into their tables: only now can requests see them, and only now is the client answered

Two clients that write tensor `w` follow each other, so that `If-Match` holds at the moment of the write. Ten clients
that write ten tensors while the disk is busy share the next commit, and so one flush. If the disk has no room for all
of them together, they are written one by one.

A proposal that need not be durable settles at once. `WriteBehind` keeps the newest write of each name. The next commit
includes it, or a timer writes it within the configured time.

Values that the owner has promised to other servers change once the promise is over (`promises`).

If other servers may have taken over the place, a decision counts only with a proof that the state was still current:
a successful commit, or a look through the `Fence`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence, Set
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from service.core.errors import Refusal, deadline_exceeded, internal_error, stopping
from service.store.changes import Change
from service.store.contact import Retries
from service.store.fence import Fence, unseen
from service.store.journal import Journal, StateFull, StateLost, StateUnknown
from service.store.promises import Promises
from service.store.writes import Name, Write, commit_of, name_of

_logger = logging.getLogger("gradserve")

#: seconds after which a commit that is still being written asks whether the storage answers at all
_LONG_COMMIT: Final = 0.5

#: function from the values that the changes replace to the changes, with the answer filled in
Completion = Callable[[Sequence[Any]], Sequence[Change]]
#: function that is called with the outcome of each proposal and the seconds that it took
CommitCallback = Callable[[str, float], None]
WRITTEN: Final = "written"


class WriteBehind:
    """Writes that requests see and that are not on disk yet: the newest of each name, in disjoint groups.

    Writes that were made atomically form a group, and a group is written in one commit. So the disk never has half of a
    proposal. A newer write of a name joins the group of the older one, or waits until that is written.
    """

    def __init__(self) -> None:
        self._groups: dict[Name, dict[Name, Write]] = {}

    def __len__(self) -> int:
        """Return the number of writes that wait."""
        return len(self._groups)

    def __contains__(self, name: Name) -> bool:
        """Return whether a write of this name waits."""
        return name in self._groups

    def add(self, writes: Iterable[Write]) -> None:
        """Add writes, replacing older ones, as one group merged with all groups that share a name with them."""
        fresh = {name_of(write): write for write in writes}
        group: dict[Name, Write] = {}
        for other in self._groups_of(fresh):
            # Merging the smaller group into the larger keeps the total cost of many merges low.
            group, smaller = (other, group) if len(other) > len(group) else (group, other)
            group |= smaller
            self._groups |= dict.fromkeys(smaller, group)
        group |= fresh
        self._groups |= dict.fromkeys(fresh, group)

    def put_back(self, writes: Iterable[Write]) -> None:
        """Add a group that was taken out again, with newer writes in place of those that were replaced meanwhile."""
        self.add([self._groups.get(name, {name: write})[name] for write in writes for name in [name_of(write)]])

    def drain(self, names: Container[Name] | None) -> list[Sequence[Write]]:
        """Take out the groups that have one of these names; None: all groups."""
        groups = self._groups_of(name for name in self._groups if names is None or name in names)
        for group in groups:
            for name in group:
                del self._groups[name]
        return [list(group.values()) for group in groups]

    def _groups_of(self, names: Iterable[Name]) -> list[dict[Name, Write]]:
        """Return the groups that have these names, each once."""
        groups = (self._groups[name] for name in names if name in self._groups)
        return list({id(group): group for group in groups}.values())


@dataclass(eq=False, slots=True)
class Proposal:
    """Changes that are made atomically; `done` is called once, with the reason if they were not made.

    A proposal that was not begun by `expires`, on the monotonic clock, is too late; its error message names `timeout`.
    If it was begun by then, `unsure` is called then, and `done` when the outcome is known.

    `complete` fills in an answer that tells what a write replaced, at the moment of the decision: a value read earlier
    may have been replaced since. It gets the value that each change replaces, or None, and returns the same changes.
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
    may_be_made: bool = True

    @property
    def names(self) -> set[Name]:
        """Names that the changes concern."""
        return {change.name for change in self.changes}


class Commits:
    """Queue of proposals for one event loop; a separate thread writes them to the journal."""

    def __init__(
        self,
        journal: Journal,
        within: float,
        on_commit: CommitCallback = lambda outcome, seconds: None,
        executor: Executor | None = None,
        fence: Fence | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make an empty queue. `within`: seconds until writes that are not durable must be on disk."""
        self._journal = journal
        self.clock = clock
        self._within = within
        self._on_commit = on_commit
        self._executor = executor or ThreadPoolExecutor(1, thread_name_prefix="state")
        self._waiting: deque[Proposal] = deque()
        self._writing: set[Name] = set()
        self._being_written: Sequence[Proposal] = ()
        self._write_behind = WriteBehind()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._checking: asyncio.TimerHandle | None = None
        self._flushes = False
        self._closing = False
        self._retries = Retries(_logger, clock)
        self.fence = fence or Fence(journal)
        self._promises = Promises(clock)

    @property
    def lost(self) -> Refusal | None:
        """Reason why nothing can be written any more."""
        return self.fence.lost

    @property
    def behind(self) -> int:
        """Number of writes that are not on disk yet."""
        return len(self._write_behind)

    def is_behind(self, name: Name) -> bool:
        """Return whether the value under this name is not on disk yet."""
        return name in self._write_behind

    def promise(self, names: Set[Name]) -> float:
        """Promise that these names do not change; return for how many seconds (see `promises`)."""
        if self._closing or self.lost is not None or not self._writing.isdisjoint(names):
            return 0.0
        return self._promises.make(names, self._journal.lease_left())

    def submit(self, proposal: Proposal) -> None:
        """Queue a proposal. It continues even if its request is cancelled."""
        proposal.submitted = self.clock()
        refusal = self.lost or (stopping() if self._closing else None)
        if refusal is None and self._task is not None and self.fence.is_blind:
            refusal = _unwritten()
        if refusal is not None:
            self._answer(proposal, refusal)
            return
        if self._journal.shared and proposal.expires != float("inf"):
            seconds = max(0.0, proposal.expires - proposal.submitted)
            proposal.timer = asyncio.get_running_loop().call_later(seconds, self._expire, proposal)
        self._waiting.append(proposal)
        if self._task is None or not proposal.durable:  # a durable one waits for the end of the commit under way
            self._start()

    async def close(self, seconds: float, successor: str | None = None) -> bool:
        """Accept no more proposals, and write what is left; return whether that was done within so many seconds.

        The place goes to the server at `successor`, if given.
        """
        self._closing = self._flushes = True
        self._start()
        is_done = False
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._task is not None:
                    await asyncio.shield(self._task)
                await asyncio.sleep(self._promises.left())
                await asyncio.get_running_loop().run_in_executor(self._executor, self._journal.close, successor)
                is_done = True
        if not is_done:
            self._journal.give_up()
        if self._write_behind or not is_done:
            _logger.error(
                "the server stops before its state is closed; %d writes that were not durable are lost",
                len(self._write_behind),
            )
        self._executor.shutdown(wait=False)
        self.fence.close()
        return is_done

    def _start(self) -> None:
        """Settle what can settle at once, and start writing unless a commit is in progress."""
        batch = self._next_batch()
        if self._task is not None or not (batch or self._flushes):
            return
        names = set[Name]().union(*(proposal.names for proposal in batch))
        groups = self._write_behind.drain(None if self._flushes else names)
        self._flushes = False
        if self._timer is not None and not self._write_behind:
            self._timer.cancel()
            self._timer = None
        if batch or groups:
            self._writing, self._being_written = names, batch
            self._task = asyncio.get_running_loop().create_task(self._work(batch, groups))

    def _next_batch(self) -> list[Proposal]:
        """Take the proposals to be written next. One that concerns the same names as an earlier one stays behind it."""
        batch: list[Proposal] = []
        taken = set[Name]()
        blocked = set(self._writing)
        waiting, self._waiting = self._waiting, deque()
        for proposal in waiting:
            names = proposal.names
            # A successful write proves as much as a look, and waits for promises.
            durable = proposal.durable or not self.fence.open or self._promises.left(names) > 0
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
        refusal, changes = self._decide(proposal)
        self._settle(changes)
        if changes:
            self._write_behind.add(change.write for change in changes)
            self._start_timer()
        self._answer(proposal, refusal)

    def _start_timer(self) -> None:
        """Start the timer of the write-behind, at half of the configured time, since writing takes time, too."""
        if self._timer is None and not self._closing:
            self._timer = asyncio.get_running_loop().call_later(self._within / 2, self._flush)

    def _flush(self) -> None:
        self._timer = None
        self._flushes = True
        self._start()

    async def _work(self, batch: Sequence[Proposal], groups: Sequence[Sequence[Write]]) -> None:
        """Write everything in one commit; if there is no space for that, write one group or proposal at a time."""
        try:
            if not await self._commit_together(batch, groups, divisible=len(batch) + len(groups) > 1):
                for group in groups:
                    await self._commit_together([], [group])
                for proposal in batch:
                    await self._commit_together([proposal], self._write_behind.drain(proposal.names))
        finally:
            self._task = None
            self._writing = set()
            if self._write_behind and not self._closing and self.lost is None:
                self._start_timer()
            self._start()

    async def _commit_together(
        self, batch: Sequence[Proposal], groups: Sequence[Sequence[Write]], *, divisible: bool = False
    ) -> bool:
        """Decide, write, settle and answer; return False if there is no space for all, but may be for some."""
        decisions = [self._decide(proposal) for proposal in batch]
        for proposal, (_, accepted) in zip(batch, decisions, strict=True):
            proposal.may_be_made = bool(accepted)
        changes = [change for _, accepted in decisions for change in accepted]
        parts = [*groups, *([change.write for change in accepted] for _, accepted in decisions)]
        refusal = await (self._write(parts) if any(parts) else self._confirm(max(each.expires for each in batch)))
        if refusal is None:
            await self._wait_for_promises({change.name for change in changes})
            self._settle(changes)
        else:
            for change in changes:
                change.table.drop(change.key)
            for group in groups:
                self._write_behind.put_back(group)
            if divisible and refusal.code == "store_full":
                return False
        # If the commit failed, a refusal that relied on values that did not come about, or on a state that is no longer
        # ours, does not count: the proposal fails for the reason of the commit.
        is_justified = refusal is None or self.fence.open
        for proposal, (refused, accepted) in zip(batch, decisions, strict=True):
            is_justified &= refusal is None or not accepted
            self._answer(proposal, refused if is_justified else refusal)
        return True

    async def _wait_for_promises(self, names: Set[Name]) -> None:
        """Return when no other server may answer from a copy of what these names had before."""
        if (seconds := self._promises.left(names)) > 0:
            await asyncio.sleep(seconds)

    def _decide(self, proposal: Proposal) -> tuple[Refusal | None, Sequence[Change]]:
        """Decide a proposal: return the changes that are coming now, or the refusal."""
        try:
            if self.lost is not None:
                raise self.lost
            if proposal.is_answered or proposal.expires <= self.clock():
                raise deadline_exceeded(proposal.timeout)
            replaced = [change.table.latest(change.key) for change in proposal.changes]
            checks = [change.check(value) for change, value in zip(proposal.changes, replaced, strict=True)]
            changes = proposal.changes if proposal.complete is None else proposal.complete(replaced)
            needed = [change for change, is_needed in zip(changes, checks, strict=True) if is_needed]
            for table in {id(change.table): change.table for change in needed}.values():
                table.admit({change.key: change.value for change in needed if change.table is table})
        except Refusal as refusal:
            return refusal, ()
        except Exception:
            _logger.exception("the check of a write failed")
            return internal_error(), ()
        for change in needed:
            change.table.expect(change.key, change.value)
        return None, needed

    async def _confirm(self, expires: float) -> Refusal | None:
        """Have the fence confirm by `expires` a decision that writes nothing; return the refusal if it does not."""
        try:
            await self.fence.wait_until_current(expires)
        except Refusal as refusal:
            return refusal
        return None

    async def _write(self, parts: Sequence[Sequence[Write]]) -> Refusal | None:
        """Have the journal write these parts; return the refusal if it does not."""
        if self.lost is not None:
            return self.lost
        commits = [commit_of(part) for part in parts if part]
        if self._journal.shared:
            self._checking = asyncio.get_running_loop().call_later(_LONG_COMMIT, self._check_storage)
        try:
            await asyncio.get_running_loop().run_in_executor(self._executor, self._journal.commit, commits)
        except StateFull as full:
            _logger.warning("cannot store a write: %s", full)
            detail = "the storage of the server's state is full; nothing was changed"
            return Refusal("store_full", detail)
        except StateLost as lost:
            return self.fence.lose(lost)
        except StateUnknown:
            _logger.exception("the last writes may or may not be stored")
            return unconfirmed()
        except Exception as error:
            if not isinstance(error, OSError):
                _logger.exception("cannot write to the state")
                return internal_error()
            self._retries.failed(f"cannot write to the state: {error}")
            return _unwritten()
        finally:
            if self._checking is not None:
                self._checking.cancel()
        self._retries.succeeded()
        return None

    def _expire(self, proposal: Proposal) -> None:
        """Answer a proposal whose time is up: it is too late, its outcome is unknown, or its refusal is unconfirmed."""
        proposal.timer = None
        if proposal in self._waiting:
            self._waiting.remove(proposal)
            self._answer(proposal, deadline_exceeded(proposal.timeout))
            self._start()  # others may have waited behind it
        else:
            self._answer_unsure(proposal)

    def _answer_unsure(self, proposal: Proposal) -> None:
        if proposal.unsure is not None and not proposal.is_answered:
            refusal = unconfirmed() if proposal.may_be_made else unseen()
            self._count(proposal, refusal.code)
            proposal.is_answered = True
            proposal.unsure(refusal)

    def _check_storage(self) -> None:
        """Answer everybody who waits for a storage that does not answer; called again and again during a commit."""
        if self.fence.is_blind:
            for proposal in self._being_written:
                self._answer_unsure(proposal)
            waiting, self._waiting = self._waiting, deque()
            for proposal in waiting:
                self._answer(proposal, _unwritten())
        self._checking = asyncio.get_running_loop().call_later(_LONG_COMMIT, self._check_storage)

    @staticmethod
    def _settle(changes: Iterable[Change]) -> None:
        for change in changes:
            change.table.settle(change.key, change.value)

    def _answer(self, proposal: Proposal, refusal: Refusal | None) -> None:
        if proposal.timer is not None:
            proposal.timer.cancel()
            proposal.timer = None
        if not proposal.is_answered:
            self._count(proposal, WRITTEN if refusal is None else refusal.code)
        asyncio.get_running_loop().call_soon(proposal.done, refusal)

    def _count(self, proposal: Proposal, outcome: str) -> None:
        self._on_commit(outcome, self.clock() - proposal.submitted)


def _unwritten() -> Refusal:
    detail = "the server cannot write to the storage of its state; nothing was changed"
    return Refusal("not_ready", detail, retry_after=5)


def unconfirmed() -> Refusal:
    """Return the refusal of a write that may have been made."""
    detail = (
        "the storage of the server's state has not confirmed this write, which may or may not have happened; send the "
        "request again with its Idempotency-Key, or read the current state"
    )
    return Refusal("unconfirmed", detail, retry_after=1)
