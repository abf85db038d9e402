"""Owners of shards: who has one is found out, asked, and replaced where it does not answer.

A server that is asked for something has the shard of its namespace, or asks the server that has it: the one that
answered last, or that the shard's last commit tells. Where that takes no connections, or does not say that it lives, it
makes an opening of its own; not within some seconds of another one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Executor
from functools import lru_cache, partial
from typing import Final, NamedTuple, TypeVar

from service.cluster.protocol import Moved, Silent, Slow, Unreachable
from service.core.errors import Refusal, stopping
from service.observe.store import StoreService
from service.store.commit_objects import COMMITS, Contents, Damaged, read_head
from service.store.commits import unconfirmed
from service.store.fence import consume_exception
from service.store.objects import Missing, Objects, ShardObjects, shard_of
from service.store.ownership import PEACE, Taken
from service.store.tables import Quota, Table

#: how often a last commit is looked for that is gone when it is read
_READ_ATTEMPTS: Final = 10
#: seconds that a shard which another server has taken gets to end its threads
_LEAVE_SECONDS: Final = 1.0
#: seconds between two questions, where a server has not what it should
_MOVED_DELAY: Final = 0.05
_RETRY_DELAY: Final = 0.25

_logger = logging.getLogger("gradserve.cluster")
_T = TypeVar("_T")
_shard: Final = lru_cache(4096)(shard_of)


class Owner(NamedTuple):
    """The server that has a shard, and when it made its opening, in Unix seconds."""

    address: str
    began: float

    def peace(self, now: float) -> float:
        """Seconds for which nobody else should make an opening; not more, whatever a clock says."""
        return min(max(0.0, self.began + PEACE - now), PEACE)


class OwnerDirectory:
    """Reader of last commits, which say who has a shard; it blocks."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def owner(self, shard: int) -> Owner | None:
        """Find the owner of a shard; None where nobody has it, or who had it released it. Raises OSError, Damaged."""
        head = self._last(ShardObjects(self._objects, shard))
        if head is None or head.note.released or head.note.owner is None:
            return None
        return Owner(head.note.owner, time.time() if head.note.began is None else head.note.began)

    @staticmethod
    def _last(objects: Objects) -> Contents | None:
        for _ in range(_READ_ATTEMPTS):
            last_key = max(objects.list(COMMITS), default=None)
            if last_key is None:
                return None
            try:
                return read_head(objects, int(last_key.removeprefix(COMMITS)))
            except Missing:
                continue
        raise OSError("the last commit of a shard is listed, and not there")


class OwnedShards:
    """Shards that this server has: each is taken by an opening, answered from memory, and let go of as a whole.

    Each has a store service, as a server has that shares no state. The service ends with the ownership; the next owner
    begins with what the objects say. For one event loop.
    """

    def __init__(self, make: Callable[[int], StoreService], executor: Executor) -> None:
        """`make` makes the store of a shard, which has read nothing; `executor` has a thread for each being taken."""
        self._make, self._executor = make, executor
        self._owned: dict[int, StoreService] = {}
        #: shards that are being taken
        self.opening: dict[int, asyncio.Task[StoreService]] = {}
        self._leaving: dict[int, asyncio.Task[bool]] = {}
        self._draining = False
        self._finished_looks = 0

    def __iter__(self) -> Iterator[StoreService]:
        return iter(self._owned.values())

    @property
    def looks(self) -> int:
        """Number of looks whether another server has taken a shard."""
        return self._finished_looks + sum(store.commits.fence.looks for store in self)

    def get(self, shard: int) -> StoreService | None:
        """Return a shard's store, where this server has it, as far as it knows."""
        store = self._owned.get(shard)
        if store is not None and store.commits.lost is not None:
            self._begin_leaving(shard, _LEAVE_SECONDS)  # another server has it: what is in memory is nothing any more
            return None
        return store

    async def open(self, shard: int) -> StoreService:
        """Take a shard; of several who ask, one opening is made. Raises Taken, Refusal: not_ready."""
        if (store := self.get(shard)) is not None:
            return store
        if self._draining:
            raise stopping()
        if shard not in self.opening:
            self.opening[shard] = asyncio.get_running_loop().create_task(self._open_shard(shard))
            self.opening[shard].add_done_callback(partial(task_over, self.opening, shard))
        return await asyncio.shield(self.opening[shard])

    def release(self, shard: int, seconds: float) -> None:
        """Begin to leave a shard to others: what is behind is written within so many seconds, and nothing answered."""
        if shard in self._owned:
            self._begin_leaving(shard, seconds)

    def drain(self, seconds: float) -> None:
        """Take no more, and begin to leave those that are here."""
        self._draining = True
        for opening in self.opening.values():
            opening.cancel()
        for shard in [*self._owned]:
            self._begin_leaving(shard, seconds)

    async def close(self, seconds: float) -> bool:
        """Leave all of them; whether that was done in time."""
        self.drain(seconds)
        return all(await asyncio.gather(*self._leaving.values()))

    async def _open_shard(self, shard: int) -> StoreService:
        if (leaving := self._leaving.get(shard)) is not None:
            await asyncio.shield(leaving)
        store = self._make(shard)
        try:
            loaded = await asyncio.get_running_loop().run_in_executor(self._executor, store.load)
        except RuntimeError as error:
            _logger.warning("shard %d cannot be taken: %s", shard, error)
            detail = "the part of the state that this is about cannot be read now; the log says why"
            raise Refusal("not_ready", detail, retry_after=1) from None
        for name in ("tensors", "graphs", "models", "answers"):  # all shards share one quota for each kind of things
            table: Table[object] = getattr(store, name)
            table.beside = partial(self._usage_of_others, store, name)
        store.restore(loaded)
        self._owned[shard] = store
        _logger.info("shard %d is this server's from now on", shard)
        return store

    async def _close_shard(self, shard: int, store: StoreService, seconds: float) -> bool:
        try:
            return await store.close(seconds)
        finally:
            self._finished_looks += store.commits.fence.looks
            del self._leaving[shard]
            store.commits.fence.leave()
            for key, _ in [*store.tensors]:  # give back their memory
                store.tensors.load(key, None)

    def _begin_leaving(self, shard: int, seconds: float) -> None:
        closing = self._close_shard(shard, self._owned.pop(shard), seconds)
        self._leaving[shard] = asyncio.get_running_loop().create_task(closing)

    def _usage_of_others(self, store: StoreService, name: str) -> Quota:
        tables = [getattr(other, name) for other in self if other is not store]
        return Quota(sum(table.count for table in tables), sum(table.held for table in tables))


def task_over(tasks: dict[int, asyncio.Task[_T]], shard: int, task: asyncio.Task[_T]) -> None:
    """Forget a task of a shard that is done."""
    del tasks[shard]
    consume_exception(task)


class Owners:
    """Owners of all shards, as the server at an address knows them. For one event loop."""

    def __init__(
        self,
        address: str,
        owned_shards: OwnedShards,
        directory: OwnerDirectory,
        executor: Executor,
        clock: Callable[[], float] = time.monotonic,
        today: Callable[[], float] = time.time,
    ) -> None:
        self.address, self.owned_shards = address, owned_shards
        self._directory, self._executor = directory, executor
        self.clock, self._today = clock, today
        #: the other servers that have shards, as far as that is known
        self.known_owners: dict[int, Owner] = {}
        self._lookups: dict[int, asyncio.Task[Owner | None]] = {}
        self.takeovers = 0
        #: questions of this server to owners, and those that it answered as one, by their shards
        self.forwarded: Counter[int] = Counter()
        self.served: Counter[int] = Counter()
        self._served_last_window: Counter[int] = Counter()

    def local_store(self, namespace: str) -> StoreService | None:
        """Return the store of a namespace, if this server has its shard."""
        shard = _shard(namespace)
        self.served[shard] += 1
        return self.owned_shards.get(shard)

    def owns(self, namespace: str) -> bool:
        """Whether this server has the shard of a namespace, as far as it knows."""
        return self.owned_shards.get(_shard(namespace)) is not None

    async def locate(self, namespace: str, expires: float) -> StoreService | Owner:
        """Find the store of a namespace, or the server that has it. Raises Refusal: not_ready, deadline_exceeded."""
        shard = _shard(namespace)
        location = (
            await self._local_store(shard, expires)
            or self.known_owners.get(shard)
            or await self._look_up(shard, expires)
        )
        if location is None or (isinstance(location, Owner) and location.address == self.address):
            location = await self._finish_opening(shard, self.owned_shards.open(shard), expires)
        (self.forwarded if isinstance(location, Owner) else self.served)[shard] += 1
        return location

    async def owned_store(self, namespace: str, expires: float) -> StoreService:
        """Return the store of a namespace to a server that takes this one for its owner. Raises Moved, Refusal."""
        shard = _shard(namespace)
        location = await self._local_store(shard, expires)
        if location is None or (not isinstance(location, Owner) and not await self.still_owns(location, expires)):
            location = await self._look_up(shard, expires)
            if location is None or location.address != self.address:
                raise Moved(None if location is None else location.address)
            location = await self._finish_opening(
                shard, self.owned_shards.open(shard), expires
            )  # this is its process now
        if isinstance(location, Owner):
            raise Moved(location.address)
        self.served[shard] += 1
        return location

    async def still_owns(self, store: StoreService, expires: float) -> bool:
        """Whether what is kept here is what there is, at some moment from now on. Raises Refusal: not_ready."""
        try:
            await store.commits.fence.passed(expires)
        except Refusal:
            if store.commits.lost is None:
                raise
            return False
        return True

    async def at_owner(
        self,
        namespace: str,
        here: Callable[[StoreService], Awaitable[_T]],
        there: Callable[[str], Awaitable[_T]],
        expires: float,
        *,
        repeats: bool = True,
    ) -> _T:
        """Call `here` with the store if this server has it, or `there` with the address of whoever has.

        Both are begun again where an owner is none any more. What does not `repeat` is not sent to another server once
        it may have reached one. Raises Refusal: not_ready, unconfirmed, deadline_exceeded, and what they do.
        """
        while True:
            location = await self.locate(namespace, expires)
            try:
                if isinstance(location, Owner):
                    return await there(location.address)
                return await here(location)
            except Refusal:
                if not repeats or isinstance(location, Owner) or location.commits.lost is None:
                    raise
            except (Moved, Unreachable, Silent, Slow) as error:
                assert isinstance(location, Owner), "nothing that is here raises these"
                await self.unanswered(namespace, location, error, expires, repeats=repeats)
            if self.clock() >= expires:
                raise _no_owner()

    async def unanswered(
        self, namespace: str, owner: Owner, error: Moved | Unreachable | Silent | Slow, expires: float, *, repeats: bool
    ) -> None:
        """Find another owner, or become it, after one has not answered; return where that may be asked the same.

        Raises Refusal: not_ready; unconfirmed, where the owner may have done what cannot be repeated.
        """
        doubtful = isinstance(error, Silent | Slow) and not repeats
        try:
            await self._replace(_shard(namespace), owner, error, expires)
        except Refusal:
            if not doubtful:
                raise
        if doubtful:
            raise unconfirmed()

    async def _replace(
        self, shard: int, owner: Owner, error: Moved | Unreachable | Silent | Slow, expires: float
    ) -> None:
        if isinstance(error, Slow):
            raise _no_owner()
        if self.known_owners.get(shard) == owner:
            del self.known_owners[shard]
        if isinstance(error, Moved):
            if error.owner not in (None, owner.address, self.address):
                self.known_owners[shard] = Owner(str(error.owner), owner.began)
            await asyncio.sleep(_MOVED_DELAY)
            return
        current = await self._look_up(shard, expires)
        if current is None or current.address != owner.address:
            return
        if (peace := current.peace(self._today())) > 0:
            await asyncio.sleep(min(peace, _RETRY_DELAY, max(0.0, expires - self.clock())))
            return
        _logger.warning("%s does not answer, and shard %d is taken over from it", owner.address, shard)
        self.takeovers += 1
        await self._finish_opening(shard, self.owned_shards.open(shard), expires)

    def begin_window(self) -> None:
        """Count anew; what was counted so far is what owners go by when others ask for a shard."""
        self._served_last_window, self.served = self.served, Counter()

    def should_release(self, shard: int, count: int) -> bool:
        """Whether a server that has asked so often in a window should have a shard of ours: more than all others."""
        served = self._served_last_window[shard]
        return self.owned_shards.get(shard) is not None and served > 0 and 2 * count > served

    async def _local_store(self, shard: int, expires: float) -> StoreService | Owner | None:
        """Return the store of a shard that is here, or will be; or who was first to take it."""
        if (store := self.owned_shards.get(shard)) is not None:
            return store
        opening = self.owned_shards.opening.get(shard)
        return None if opening is None else await self._finish_opening(shard, asyncio.shield(opening), expires)

    async def _finish_opening(
        self, shard: int, opening: Awaitable[StoreService], expires: float
    ) -> StoreService | Owner:
        """Wait for a shard to be taken; returns its store, or who was first to take it."""
        try:
            return await self._within(opening, expires)
        except Taken as taken:
            self.known_owners[shard] = Owner(taken.owner, taken.began)
            return self.known_owners[shard]

    async def _look_up(self, shard: int, expires: float) -> Owner | None:
        """Look who has a shard by its last commit; one look for all that wait."""
        if shard not in self._lookups:
            self._lookups[shard] = asyncio.get_running_loop().create_task(self._read_owner(shard))
            self._lookups[shard].add_done_callback(partial(task_over, self._lookups, shard))
        return await self._within(asyncio.shield(self._lookups[shard]), expires)

    async def _read_owner(self, shard: int) -> Owner | None:
        try:
            owner = await asyncio.get_running_loop().run_in_executor(self._executor, self._directory.owner, shard)
        except (OSError, Damaged) as error:
            _logger.warning("it cannot be seen who has shard %d: %s", shard, error)
            raise _no_owner() from None
        self.known_owners.pop(shard, None)
        if owner is not None and owner.address != self.address:
            self.known_owners[shard] = owner
        return owner

    async def _within(self, awaited: Awaitable[_T], expires: float) -> _T:
        try:
            async with asyncio.timeout(None if expires == float("inf") else max(0.0, expires - self.clock())):
                return await awaited
        except TimeoutError:
            raise _no_owner() from None


def _no_owner() -> Refusal:
    detail = "no server has the part of the state that this is about at the moment; try again shortly"
    return Refusal("not_ready", detail, retry_after=1)
