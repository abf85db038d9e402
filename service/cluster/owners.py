"""Ownership of shards: which server answers for a namespace, and who takes over when it fails.

The state of a cluster lies in an object store, split into shards. A namespace belongs to the shard that its hash
selects. At any time one server, the owner, reads and writes a shard: it holds it in memory and answers from there.
There is no coordinator and no heartbeat. The chain of commits in the object store is the only authority: a server
becomes the owner by writing an *opening* (see `service.store.ownership`), and each commit names its owner's address.

Suppose that A owns shard 3, and B receives a request about it:

    B  known_owners has no entry         → read the last commit of shard 3: owner A
    B  asks A                            → A answers from memory; B remembers A for the next request
    A  crashes; B asks A                 → Unreachable
    B  reads the last commit again       → still A, and its opening is older than OPENING_INTERVAL
    B  writes an opening                 → B owns shard 3, loads it, waits out A's lease and answers
    C  still has A in known_owners       → Unreachable; C reads the last commit and asks B
    A  restarts, and D asks it           → the last commit names B: A answers Moved(B), and D asks B

The opening is an atomic create of the next commit's number. If B and C take over at once, one of them wins, and the
other gets `Taken` with the winner's address. An owner that was merely slow notices on its next commit, or on the next
check of its fence, that the number is taken; then it drops the shard from memory. So errors in detecting a failure cost
time, never consistency. OPENING_INTERVAL bounds that cost: for some seconds after an opening no other server makes one,
so that servers that cannot reach each other do not take a shard back and forth.

An owner that cannot reach the object store for about three leases is *blind*: it says so to servers that ask, and the
first of them takes the shard over. If only clients ask it, it asks a server that reaches the store to take over, and
forwards the requests there.

A shard whose requests come to another server most of the time is handed over to that one by name: the last commit names
the successor, and others ask the successor instead of opening the shard themselves.

Requests that change something are sent to an owner at most once. If it may have received one and did not answer, the
client gets `unconfirmed` (`repeats`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Executor
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, TypeVar

from service.cluster.protocol import Moved, Silent, Slow, Unreachable
from service.core.errors import Refusal, stopping
from service.observe.store import StoreService
from service.store.commit_objects import COMMITS, Contents, Damaged, read_head
from service.store.commits import unconfirmed
from service.store.contact import Retries
from service.store.objects import Missing, Objects, ShardObjects, shard_of
from service.store.ownership import OPENING_INTERVAL, Taken
from service.store.places import UNRECORDED_SHARDS
from service.store.residency import Residency
from service.store.tables import Table, Usage
from service.store.together import consume_exception

#: attempts to read the last commit, which may be deleted between listing and reading
_READ_ATTEMPTS: Final = 10
#: seconds that the store of a lost shard gets to end its threads
_LEAVE_SECONDS: Final = 1.0
#: seconds before the next attempt: after a server has moved a shard, and during its opening interval
_MOVED_DELAY: Final = 0.05
_RETRY_DELAY: Final = 0.25

#: reasons for which a server opens a shard: nobody owned it; its owner gave it to this server; the owner did not
#: respond; or could not reach the store
FREE: Final = "free"
HANDED_OVER: Final = "handed_over"
UNRESPONSIVE: Final = "unresponsive"
WITHOUT_STORE: Final = "without_store"
#: seconds for which another server must have used a shard most before it is handed over
_CLAIM_SECONDS: Final = 30.0

_logger = logging.getLogger("gradserve.cluster")
_T = TypeVar("_T")


class Owner(NamedTuple):
    """Server that has a shard, or the successor that is to open it next, and since when, in Unix seconds."""

    address: str
    began: float
    is_successor: bool = False

    def opening_wait(self, now: float) -> float:
        """Return the seconds for which no other server should make an opening: never above OPENING_INTERVAL."""
        return min(max(0.0, self.began + OPENING_INTERVAL - now), OPENING_INTERVAL)


class _Claim(NamedTuple):
    """Server that uses a shard most, from the first to the last time it said so, in seconds of the monotonic clock."""

    address: str
    first: float
    last: float


class OwnerDirectory:
    """Reader of the last commits, which name the owners. Its methods block."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def owner(self, shard: int) -> Owner | None:
        """Return the owner of a shard, or the named successor; None if there is none. Raises OSError, Damaged."""
        head = self._last(ShardObjects(self._objects, shard))
        if head is None:
            return None
        note = head.note
        address = note.successor if note.released else note.owner
        if address is None:
            return None
        return Owner(address, time.time() if note.began is None else note.began, note.released)

    @staticmethod
    def _last(objects: Objects) -> Contents | None:
        for _ in range(_READ_ATTEMPTS):
            last_key = max(objects.list(COMMITS), default=None)
            if last_key is None:
                return None
            try:
                return read_head(objects, int(last_key.removeprefix(COMMITS)))
            except Missing:  # the owner has compacted its commits since; a later one exists
                continue
        raise OSError("the last commit of a shard is listed, but missing")


class OwnedShards:
    """Shards that this server owns: each is taken by an opening, answered from memory, and dropped as a whole.

    Each has a store service of its own, like a server without a cluster. The store ends with the ownership, and the
    next owner loads it from the objects. For one event loop.
    """

    def __init__(
        self, make: Callable[[int], StoreService], executor: Executor, residency: Residency | None = None
    ) -> None:
        """`make` makes the empty store of a shard; `executor` opens as many shards at a time as it has threads.

        All stores share `residency`, which says what their tensors take of the memory.
        """
        self._make, self._executor, self.residency = make, executor, residency
        self._owned: dict[int, StoreService] = {}
        #: usage by all shards, also those that are being released: of tensors, graphs, models and answers
        self._totals = tuple(Usage() for _ in range(4))
        #: shards that are being opened
        self.opening: dict[int, asyncio.Task[StoreService]] = {}
        self._leaving: dict[int, asyncio.Task[bool]] = {}
        self._draining = False
        self._finished_checks = 0
        #: number of shards that were opened, by reason
        self.moves: Counter[str] = Counter()

    def __iter__(self) -> Iterator[StoreService]:
        return iter(self._owned.values())

    @property
    def state_checks(self) -> int:
        """Number of checks whether another server has taken a shard."""
        return self._finished_checks + sum(store.commits.fence.state_checks for store in self)

    def get(self, shard: int) -> StoreService | None:
        """Return the store of a shard if this server owns it, as far as it knows."""
        store = self._owned.get(shard)
        if store is not None and store.commits.lost is not None:
            # Another server has written an opening: memory is stale, and must not answer any more.
            self._begin_leaving(shard, _LEAVE_SECONDS)
            return None
        return store

    @property
    def blind(self) -> int:
        """Number of shards whose store has not answered for about three leases."""
        return sum(store.commits.fence.is_blind for store in self)

    async def open(self, shard: int, reason: str) -> StoreService:
        """Take a shard; concurrent calls share one opening, and its `reason`. Raises Taken, Refusal: not_ready."""
        if (store := self.get(shard)) is not None:
            return store
        if self._draining:
            raise stopping()
        if shard not in self.opening:
            self.opening[shard] = asyncio.get_running_loop().create_task(self._open_shard(shard, reason))
            self.opening[shard].add_done_callback(partial(task_over, self.opening, shard))
        # Shielded, since other requests wait for the same opening.
        return await asyncio.shield(self.opening[shard])

    def release(self, shard: int, seconds: float, successor: str | None = None) -> None:
        """Begin to release a shard, if this server owns it: answer nothing, write pending changes within `seconds`."""
        if shard in self._owned:
            self._begin_leaving(shard, seconds, successor)

    def drain(self, seconds: float) -> None:
        """Take no more shards, and begin to release all."""
        self._draining = True
        for opening in self.opening.values():
            opening.cancel()
        for shard in [*self._owned]:
            self._begin_leaving(shard, seconds)

    async def close(self, seconds: float) -> bool:
        """Release all shards; return whether that was done in time."""
        self.drain(seconds)
        return all(await asyncio.gather(*self._leaving.values()))

    async def _open_shard(self, shard: int, reason: str) -> StoreService:
        # The old store must have written everything before a new one reads the objects.
        if (leaving := self._leaving.get(shard)) is not None:
            await asyncio.shield(leaving)
        store = self._make(shard)
        try:
            loaded = await asyncio.get_running_loop().run_in_executor(self._executor, store.load)
        except RuntimeError as error:
            _logger.warning("cannot load shard %d: %s", shard, error)
            detail = "the server cannot read this part of the state now; the log has the reason"
            raise Refusal("not_ready", detail, retry_after=1) from None
        store.restore(loaded)
        # Limits are for the server as a whole, so the tables of all shards count together.
        for table, total in zip(_tables(store), self._totals, strict=True):
            table.share_quota(total)
        self._owned[shard] = store
        self.moves[reason] += 1
        _logger.info("this server now owns shard %d", shard)
        return store

    async def _close_shard(self, shard: int, store: StoreService, seconds: float, successor: str | None) -> bool:
        try:
            return await store.close(seconds, successor)
        finally:
            self._finished_checks += store.commits.fence.state_checks
            del self._leaving[shard]
            store.commits.fence.leave()
            for key, _ in [*store.tensors]:  # give back their memory
                store.tensors.load(key, None)
            for table in _tables(store):
                table.share_quota(Usage())

    def _begin_leaving(self, shard: int, seconds: float, successor: str | None = None) -> None:
        closing = self._close_shard(shard, self._owned.pop(shard), seconds, successor)
        self._leaving[shard] = asyncio.get_running_loop().create_task(closing)


def _tables(store: StoreService) -> tuple[Table[Any], ...]:
    return store.tensors, store.graphs, store.models, store.answers


def task_over(tasks: dict[int, asyncio.Task[_T]], shard: int, task: asyncio.Task[_T]) -> None:
    """Forget a finished task of a shard."""
    del tasks[shard]
    consume_exception(task)


class Owners:
    """Owners of all shards, as known to the server at `address`. For one event loop."""

    def __init__(
        self,
        address: str,
        owned_shards: OwnedShards,
        directory: OwnerDirectory,
        executor: Executor,
        clock: Callable[[], float] = time.monotonic,
        today: Callable[[], float] = time.time,
        shards: int = UNRECORDED_SHARDS,
    ) -> None:
        self.address, self.owned_shards, self.shards = address, owned_shards, shards
        self._shard = lru_cache(4096)(partial(shard_of, shards=shards))
        self._directory, self._executor = directory, executor
        self.clock, self._today = clock, today
        #: cache of owners by shard, never this server; it may be out of date
        self.known_owners: dict[int, Owner] = {}
        self._lookups: dict[int, asyncio.Task[Owner | None]] = {}
        self._retries = Retries(_logger, clock)
        #: raises Refusal while this server takes no part in the cluster
        self.require_part: Callable[[], None] = lambda: None
        #: asks others for the owner of a shard if the store does not answer this server; the one asked replaces it
        self.ask_elsewhere: Callable[[int], Awaitable[str | None]] = _ask_nobody
        #: questions per shard in this window: sent to its owner, and answered as its owner
        self.forwarded: Counter[int] = Counter()
        self.served: Counter[int] = Counter()
        self._served_last_window: Counter[int] = Counter()
        self._claims: dict[int, _Claim] = {}
        #: servers that this one has handed shards to, and when
        self._successors: dict[int, tuple[Owner, float]] = {}

    @property
    def takeovers(self) -> int:
        """Number of shards taken from servers that did not respond, or could not reach the store."""
        return self.owned_shards.moves[UNRESPONSIVE] + self.owned_shards.moves[WITHOUT_STORE]

    def local_store(self, namespace: str) -> StoreService | None:
        """Return the store of a namespace if this server owns its shard."""
        shard = self._shard(namespace)
        self.served[shard] += 1
        return self.owned_shards.get(shard)

    def owns(self, namespace: str) -> bool:
        """Return whether this server owns the shard of a namespace, as far as it knows."""
        return self.owned_shards.get(self._shard(namespace)) is not None

    async def locate(self, namespace: str, expires: float) -> StoreService | Owner:
        """Return the store of a namespace, or the server that owns it. Raises Refusal: not_ready, deadline_exceeded."""
        self.require_part()
        shard = self._shard(namespace)
        location = await self._local_store(shard, expires)
        if location is None:
            location = self.known_owners.get(shard) or self._successor(shard) or await self._look_up(shard, expires)
        elif not isinstance(location, Owner) and location.commits.fence.is_blind:
            location = await self._look_up(shard, expires)
        if location is None or (isinstance(location, Owner) and location.address == self.address):
            location = await self._open_free(shard, location, expires)
        (self.forwarded if isinstance(location, Owner) else self.served)[shard] += 1
        return location

    async def owned_store(self, namespace: str, expires: float) -> StoreService:
        """Return the store of a namespace for a server that takes this one for the owner. Raises Moved, Refusal."""
        return await self._owned_store(self._shard(namespace), expires)

    async def _owned_store(self, shard: int, expires: float) -> StoreService:
        self.require_part()
        location = await self._local_store(shard, expires)
        if not isinstance(location, Owner) and location is not None and not await self._answers(location, expires):
            location = None
        if location is None:
            location = self._successor(shard) or await self._look_up(shard, expires)
            if location is None or location.address != self.address:
                raise Moved(None if location is None else location.address)
            location = await self._open_free(shard, location, expires)
        if isinstance(location, Owner):
            raise Moved(location.address)
        self.served[shard] += 1
        return location

    async def _answers(self, store: StoreService, expires: float) -> bool:
        """Return whether this server can answer from a store for others. Raises Moved if it is blind, and Refusal."""
        fence = store.commits.fence
        if not fence.is_blind:
            try:
                return await self.still_owns(store, expires)
            except Refusal:
                if not fence.is_blind:
                    raise
        raise Moved(None, is_blind=True)

    async def owner_for(self, asker: str, shard: int, expires: float) -> str:
        """Return the owner of a shard for the server at `asker`; this one replaces it if it is the owner.

        Raises Moved if this server does not reach the store either, and Refusal.
        """
        while True:
            try:
                await self._owned_store(shard, expires)
            except Moved as moved:
                if moved.is_blind:
                    raise
                if moved.owner is None:
                    await self._open(shard, FREE, expires)
                elif moved.owner == asker:
                    await self._replace(shard, Owner(asker, 0.0), Moved(None, is_blind=True), expires)
                else:
                    return moved.owner
            else:
                return self.address
            if self.clock() >= expires:
                raise no_owner()

    async def learn(self, shard: int, expires: float) -> None:
        """Look up the owner of a shard, unless it is this server. Raises Refusal: not_ready."""
        if self.owned_shards.get(shard) is None:
            await self._look_up(shard, expires)

    async def still_owns(self, store: StoreService, expires: float) -> bool:
        """Return whether memory is current at some moment after the call. Raises Refusal: not_ready."""
        try:
            await store.commits.fence.wait_until_current(expires)
        except Refusal:
            if store.commits.lost is None:
                raise
            return False
        return True

    async def at_owner(
        self,
        namespace: str,
        local: Callable[[StoreService], Awaitable[_T]],
        remote: Callable[[str], Awaitable[_T]],
        expires: float,
        *,
        repeats: bool = True,
    ) -> _T:
        """Call `local` with the store if this server owns it, otherwise `remote` with the owner's address.

        If ownership changes meanwhile, the call is repeated. Without `repeats`, it is not sent to another server once
        it may have reached one. Raises Refusal: not_ready, unconfirmed, deadline_exceeded, and the exceptions of both
        functions.
        """
        while True:
            location = await self.locate(namespace, expires)
            try:
                if isinstance(location, Owner):
                    return await remote(location.address)
                return await local(location)
            except Refusal:
                # A store that lost its shard during the call refuses it; the new owner may answer.
                if not repeats or isinstance(location, Owner) or location.commits.lost is None:
                    raise
            except (Moved, Unreachable, Silent, Slow) as error:
                assert isinstance(location, Owner), "nothing that is here raises these"
                await self.handle_failure(namespace, location, error, expires, repeats=repeats)
            if self.clock() >= expires:
                raise no_owner()

    async def handle_failure(
        self, namespace: str, owner: Owner, error: Moved | Unreachable | Silent | Slow, expires: float, *, repeats: bool
    ) -> None:
        """Find another owner, or become it, after `owner` failed with `error`; return when the call can be repeated."""
        # Ownership is repaired first in any case: the client's next request needs it.
        doubtful = isinstance(error, Silent | Slow) and not repeats
        try:
            await self._replace(self._shard(namespace), owner, error, expires)
        except Refusal:
            if not doubtful:
                raise
        if doubtful:
            raise unconfirmed()

    async def _replace(
        self, shard: int, owner: Owner, error: Moved | Unreachable | Silent | Slow, expires: float
    ) -> None:
        if isinstance(error, Slow):  # the owner lives, and a takeover would not be faster
            raise no_owner()
        if self.known_owners.get(shard) == owner:
            del self.known_owners[shard]
        if isinstance(error, Moved) and not error.is_blind:
            # A hint alone: if it is wrong, that server answers Moved as well, or does not answer.
            if error.owner not in (None, owner.address, self.address):
                self.known_owners[shard] = Owner(str(error.owner), owner.began)
            await asyncio.sleep(_MOVED_DELAY)
            return
        # It cannot reach this server, or the store: before a takeover, check whether others have replaced it already.
        current = await self._look_up(shard, expires)
        if current is None or current.address != owner.address:
            return
        if (wait := current.opening_wait(self._today())) > 0:
            await asyncio.sleep(min(wait, _RETRY_DELAY, max(0.0, expires - self.clock())))
            return
        reason = WITHOUT_STORE if isinstance(error, Moved) else UNRESPONSIVE
        problem = "cannot reach the store" if reason == WITHOUT_STORE else "does not respond"
        _logger.warning("%s %s; this server takes over shard %d from it", owner.address, problem, shard)
        await self._open(shard, reason, expires)

    def begin_window(self) -> None:
        """Begin a window of counts. The counts of the last one decide whether a shard is handed over."""
        self._served_last_window, self.served = self.served, Counter()

    def should_hand_over(self, shard: int, count: int, address: str) -> bool:
        """Return whether to hand a shard over to the server at `address`, which has asked `count` questions lately.

        It must have asked twice as many as there were others, in each of the last windows, so that a caller that
        alternates between servers does not move the shard.
        """
        served, now = self._served_last_window[shard], self.clock()
        if self.owned_shards.get(shard) is None or not address:  # servers before this field do not state one
            return False
        if not served or 3 * count < 2 * served:
            self._claims.pop(shard, None)
            return False
        claim = self._claims.get(shard)
        if claim is None or claim.address != address or now - claim.last > _CLAIM_SECONDS / 2:
            claim = _Claim(address, now, now)
        self._claims[shard] = claim = claim._replace(last=now)
        return now - claim.first >= _CLAIM_SECONDS

    def hand_over(self, shard: int, address: str, seconds: float) -> None:
        """Begin to hand a shard over to the server at `address`, and write pending changes within `seconds`."""
        self._claims.pop(shard, None)
        self._successors[shard] = Owner(address, self._today(), is_successor=True), self.clock()
        self.owned_shards.release(shard, seconds, address)

    def _successor(self, shard: int) -> Owner | None:
        """Return the server that this one has just handed a shard to, which may not have opened it yet."""
        successor, since = self._successors.get(shard, (None, 0.0))
        if successor is not None and self.clock() - since >= OPENING_INTERVAL:
            del self._successors[shard]
            return None
        return successor

    async def _open_free(self, shard: int, known: Owner | None, expires: float) -> StoreService | Owner:
        """Open a shard that no other server owns: this one is its successor, or an earlier process of it had it."""
        return await self._open(shard, HANDED_OVER if known is not None and known.is_successor else FREE, expires)

    async def _open(self, shard: int, reason: str, expires: float) -> StoreService | Owner:
        """Open a shard; return the store, or the owner that was faster."""
        return await self._finish_opening(shard, self.owned_shards.open(shard, reason), expires)

    async def _local_store(self, shard: int, expires: float) -> StoreService | Owner | None:
        """Return the store of a shard that is open or opening, the winner if another server took it first, or None."""
        if (store := self.owned_shards.get(shard)) is not None:
            return store
        opening = self.owned_shards.opening.get(shard)
        return None if opening is None else await self._finish_opening(shard, asyncio.shield(opening), expires)

    async def _finish_opening(
        self, shard: int, opening: Awaitable[StoreService], expires: float
    ) -> StoreService | Owner:
        """Wait for an opening; return the store, or the owner that was faster."""
        try:
            return await self._within(opening, expires)
        except Taken as taken:
            self.known_owners[shard] = Owner(taken.owner, taken.began)
            return self.known_owners[shard]

    async def _look_up(self, shard: int, expires: float) -> Owner | None:
        """Read the owner of a shard from its last commit, or ask another server; concurrent calls share one look-up."""
        if shard not in self._lookups:
            self._lookups[shard] = asyncio.get_running_loop().create_task(self._read_owner(shard))
            self._lookups[shard].add_done_callback(partial(task_over, self._lookups, shard))
        return await self._within(asyncio.shield(self._lookups[shard]), expires)

    async def _read_owner(self, shard: int) -> Owner | None:
        if (address := await self.ask_elsewhere(shard)) is not None:
            self.owned_shards.release(shard, _LEAVE_SECONDS)
            self.known_owners[shard] = Owner(address, self._today())
            return self.known_owners[shard]
        if self.owned_shards.get(shard) is not None:
            return Owner(self.address, self._today())
        if (pause := self._retries.pause) > 0:
            await asyncio.sleep(pause)
        try:
            owner = await asyncio.get_running_loop().run_in_executor(self._executor, self._directory.owner, shard)
        except (OSError, Damaged) as error:
            self._retries.failed(f"cannot find the owner of shard {shard}: {error}")
            raise no_owner() from None
        self._retries.succeeded()
        self.known_owners.pop(shard, None)
        if owner is not None and owner.address != self.address:
            self.known_owners[shard] = owner
        return owner

    async def _within(self, awaited: Awaitable[_T], expires: float) -> _T:
        try:
            return await within(awaited, expires - self.clock())
        except TimeoutError:
            raise no_owner() from None


async def _ask_nobody(_: int) -> None:
    """Return None, as if no other server reached the store."""


async def within(awaited: Awaitable[_T], seconds: float) -> _T:
    """Await something for at most `seconds` seconds. Raises TimeoutError."""
    async with asyncio.timeout(None if seconds == float("inf") else max(0.0, seconds)):
        return await awaited


def no_owner() -> Refusal:
    """Return the refusal of a request whose owner was not found in time."""
    detail = "no server owns this part of the state at the moment; try again shortly"
    return Refusal("not_ready", detail, retry_after=1)
