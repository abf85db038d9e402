"""Shards that this server has: each is taken by an opening, answered from memory, and let go of as a whole.

What is there of one is a store service, as a server has it whose state is its own. It ends with its tenure: what comes
after begins with what the objects say.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from functools import partial
from typing import Final, TypeVar

from service.errors import Refusal, stopping
from service.state.fence import noted
from service.state.table import Quota, Table
from service.store import StoreService

_logger = logging.getLogger("gradserve.cluster")

#: seconds that a shard which another server has taken gets to end its threads
_END: Final = 1.0

_T = TypeVar("_T")

#: makes the store service of a shard, which has read nothing yet
MakeStore = Callable[[int], StoreService]


class Owning:
    """The store services of the shards that this server has. For one event loop."""

    def __init__(self, make: MakeStore, executor: Executor) -> None:
        """`executor` has a thread for each shard that is being taken."""
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
        """How often it was looked whether another server has taken a shard."""
        return self._looked + sum(store.commits.fence.looks for store in self)

    def get(self, shard: int) -> StoreService | None:
        """A shard's store, where this server has it, as far as it knows."""
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
        self._share_quota(store)
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
            _forget(store)

    def _leave(self, shard: int, seconds: float) -> None:
        left = self._left(shard, self._owned.pop(shard), seconds)
        self._leaving[shard] = asyncio.get_running_loop().create_task(left)

    def _share_quota(self, store: StoreService) -> None:
        """What all shards hold here comes out of one quota for each kind of things."""
        for name in ("tensors", "graphs", "models", "answers"):
            table: Table[object] = getattr(store, name)
            table.beside = partial(self._beside, store, name)

    def _beside(self, store: StoreService, name: str) -> Quota:
        tables = [getattr(other, name) for other in self if other is not store]
        return Quota(sum(table.count for table in tables), sum(table.held for table in tables))


def task_over(tasks: dict[int, asyncio.Task[_T]], shard: int, task: asyncio.Task[_T]) -> None:
    """A task of a shard is done."""
    del tasks[shard]
    noted(task)


def _forget(store: StoreService) -> None:
    """Give back the memory of its tensors."""
    for key, _ in [*store.tensors]:
        store.tensors.load(key, None)
