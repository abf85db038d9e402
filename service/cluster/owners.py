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
_TRIES: Final = 10
#: seconds that a shard which another server has taken gets to end its threads
_END: Final = 1.0
#: seconds between two questions, where a server has not what it should
_AGAIN: Final = 0.05
_PAUSE: Final = 0.25

_logger = logging.getLogger("gradserve.cluster")
_T = TypeVar("_T")
_shard: Final = lru_cache(4096)(shard_of)


class Owner(NamedTuple):
    """The server that has a shard, and when it made its opening, in Unix seconds."""

    address: str
    began: float

    def peace(self, today: float) -> float:
        """Seconds for which nobody else should make an opening; not more, whatever a clock says."""
        return min(max(0.0, self.began + PEACE - today), PEACE)


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
        for _ in range(_TRIES):
            last = max(objects.list(COMMITS), default=None)
            if last is None:
                return None
            try:
                return read_head(objects, int(last.removeprefix(COMMITS)))
            except Missing:
                continue
        raise OSError("the last commit of a shard is listed, and not there")


class Owning:
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
        self._looked = 0

    def __iter__(self) -> Iterator[StoreService]:
        return iter(self._owned.values())

    @property
    def looks(self) -> int:
        """Number of looks whether another server has taken a shard."""
        return self._looked + sum(store.commits.fence.looks for store in self)

    def get(self, shard: int) -> StoreService | None:
        """Return a shard's store, where this server has it, as far as it knows."""
        store = self._owned.get(shard)
        if store is not None and store.commits.lost is not None:
            self._leave(shard, _END)  # another server has it: what is in memory is nothing any more
            return None
        return store

    async def open(self, shard: int) -> StoreService:
        """Take a shard; of several who ask, one opening is made. Raises Taken, Refusal: not_ready."""
        if (store := self.get(shard)) is not None:
            return store
        if self._draining:
            raise stopping()
        if shard not in self.opening:
            self.opening[shard] = asyncio.get_running_loop().create_task(self._opened(shard))
            self.opening[shard].add_done_callback(partial(task_over, self.opening, shard))
        return await asyncio.shield(self.opening[shard])

    def release(self, shard: int, seconds: float) -> None:
        """Begin to leave a shard to others: what is behind is written within so many seconds, and nothing answered."""
        if shard in self._owned:
            self._leave(shard, seconds)

    def drain(self, seconds: float) -> None:
        """Take no more, and begin to leave those that are here."""
        self._draining = True
        for opening in self.opening.values():
            opening.cancel()
        for shard in [*self._owned]:
            self._leave(shard, seconds)

    async def close(self, seconds: float) -> bool:
        """Leave all of them; whether that was done in time."""
        self.drain(seconds)
        return all(await asyncio.gather(*self._leaving.values()))

    async def _opened(self, shard: int) -> StoreService:
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
            table.beside = partial(self._beside, store, name)
        store.restore(loaded)
        self._owned[shard] = store
        _logger.info("shard %d is this server's from now on", shard)
        return store

    async def _left(self, shard: int, store: StoreService, seconds: float) -> bool:
        try:
            return await store.close(seconds)
        finally:
            self._looked += store.commits.fence.looks
            del self._leaving[shard]
            store.commits.fence.leave()
            for key, _ in [*store.tensors]:  # give back their memory
                store.tensors.load(key, None)

    def _leave(self, shard: int, seconds: float) -> None:
        left = self._left(shard, self._owned.pop(shard), seconds)
        self._leaving[shard] = asyncio.get_running_loop().create_task(left)

    def _beside(self, store: StoreService, name: str) -> Quota:
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
        owning: Owning,
        directory: OwnerDirectory,
        executor: Executor,
        clock: Callable[[], float] = time.monotonic,
        today: Callable[[], float] = time.time,
    ) -> None:
        self.address, self.owning = address, owning
        self._directory, self._executor = directory, executor
        self.clock, self._today = clock, today
        #: the other servers that have shards, as far as that is known
        self.known: dict[int, Owner] = {}
        self._looking: dict[int, asyncio.Task[Owner | None]] = {}
        self.takeovers = 0
        #: questions of this server to owners, and those that it answered as one, by their shards
        self.asked: Counter[int] = Counter()
        self.served: Counter[int] = Counter()
        self._served_before: Counter[int] = Counter()

    def here(self, namespace: str) -> StoreService | None:
        """Return the store of a namespace, if this server has its shard."""
        shard = _shard(namespace)
        self.served[shard] += 1
        return self.owning.get(shard)

    def owns(self, namespace: str) -> bool:
        """Whether this server has the shard of a namespace, as far as it knows."""
        return self.owning.get(_shard(namespace)) is not None

    async def found(self, namespace: str, expires: float) -> StoreService | Owner:
        """Find the store of a namespace, or the server that has it. Raises Refusal: not_ready, deadline_exceeded."""
        shard = _shard(namespace)
        found = await self._own(shard, expires) or self.known.get(shard) or await self._look_up(shard, expires)
        if found is None or (isinstance(found, Owner) and found.address == self.address):
            found = await self._taken(shard, self.owning.open(shard), expires)
        (self.asked if isinstance(found, Owner) else self.served)[shard] += 1
        return found

    async def own(self, namespace: str, expires: float) -> StoreService:
        """Return the store of a namespace to a server that takes this one for its owner. Raises Moved, Refusal."""
        shard = _shard(namespace)
        found = await self._own(shard, expires)
        if found is None or (not isinstance(found, Owner) and not await self.still_has(found, expires)):
            found = await self._look_up(shard, expires)
            if found is None or found.address != self.address:
                raise Moved(None if found is None else found.address)
            found = await self._taken(shard, self.owning.open(shard), expires)  # this is its process now
        if isinstance(found, Owner):
            raise Moved(found.address)
        self.served[shard] += 1
        return found

    async def still_has(self, store: StoreService, expires: float) -> bool:
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
            found = await self.found(namespace, expires)
            try:
                if isinstance(found, Owner):
                    return await there(found.address)
                return await here(found)
            except Refusal:
                if not repeats or isinstance(found, Owner) or found.commits.lost is None:
                    raise
            except (Moved, Unreachable, Silent, Slow) as error:
                assert isinstance(found, Owner), "nothing that is here raises these"
                await self.unanswered(namespace, found, error, expires, repeats=repeats)
            if self.clock() >= expires:
                raise _nobody()

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
            raise _nobody()
        if self.known.get(shard) == owner:
            del self.known[shard]
        if isinstance(error, Moved):
            if error.owner not in (None, owner.address, self.address):
                self.known[shard] = Owner(str(error.owner), owner.began)
            await asyncio.sleep(_AGAIN)
            return
        now = await self._look_up(shard, expires)
        if now is None or now.address != owner.address:
            return
        if (peace := now.peace(self._today())) > 0:
            await asyncio.sleep(min(peace, _PAUSE, max(0.0, expires - self.clock())))
            return
        _logger.warning("%s does not answer, and shard %d is taken over from it", owner.address, shard)
        self.takeovers += 1
        await self._taken(shard, self.owning.open(shard), expires)

    def begin_window(self) -> None:
        """Count anew; what was counted so far is what owners go by when others ask for a shard."""
        self._served_before, self.served = self.served, Counter()

    def should_go(self, shard: int, asked: int) -> bool:
        """Whether a server that has asked so often in a window should have a shard of ours: more than all others."""
        served = self._served_before[shard]
        return self.owning.get(shard) is not None and served > 0 and 2 * asked > served

    async def _own(self, shard: int, expires: float) -> StoreService | Owner | None:
        """Return the store of a shard that is here, or will be; or who was first to take it."""
        if (store := self.owning.get(shard)) is not None:
            return store
        opening = self.owning.opening.get(shard)
        return None if opening is None else await self._taken(shard, asyncio.shield(opening), expires)

    async def _taken(self, shard: int, opening: Awaitable[StoreService], expires: float) -> StoreService | Owner:
        """Wait for a shard to be taken; returns its store, or who was first to take it."""
        try:
            return await self._in_time(opening, expires)
        except Taken as taken:
            self.known[shard] = Owner(taken.owner, taken.began)
            return self.known[shard]

    async def _look_up(self, shard: int, expires: float) -> Owner | None:
        """Look who has a shard by its last commit; one look for all that wait."""
        if shard not in self._looking:
            self._looking[shard] = asyncio.get_running_loop().create_task(self._looked_up(shard))
            self._looking[shard].add_done_callback(partial(task_over, self._looking, shard))
        return await self._in_time(asyncio.shield(self._looking[shard]), expires)

    async def _looked_up(self, shard: int) -> Owner | None:
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._executor, self._directory.owner, shard)
        except (OSError, Damaged) as error:
            _logger.warning("it cannot be seen who has shard %d: %s", shard, error)
            raise _nobody() from None
        self.known.pop(shard, None)
        if found is not None and found.address != self.address:
            self.known[shard] = found
        return found

    async def _in_time(self, awaited: Awaitable[_T], expires: float) -> _T:
        try:
            async with asyncio.timeout(None if expires == float("inf") else max(0.0, expires - self.clock())):
                return await awaited
        except TimeoutError:
            raise _nobody() from None


def _nobody() -> Refusal:
    detail = "no server has the part of the state that this is about at the moment; try again shortly"
    return Refusal("not_ready", detail, retry_after=1)
