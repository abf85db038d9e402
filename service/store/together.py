"""Calls that are shared: those that wait for the same result get it from one call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class Together(Generic[_T]):
    """Calls by key, for one event loop.

    The result of a call that is under way may be older than a request that comes now. So that request waits for the
    next call, with all others that come until the next one begins. With many clients, few calls serve all of them.
    """

    def __init__(self) -> None:
        #: the call under way, and the one that follows
        self._calls: dict[Hashable, tuple[asyncio.Task[_T] | None, asyncio.Task[_T] | None]] = {}

    def join(self, key: Hashable, call: Callable[[], Awaitable[_T]]) -> asyncio.Task[_T]:
        """Return the next call, which must not be cancelled; `call` makes it if there is none yet."""
        under_way, following = self._calls.get(key, (None, None))
        if following is None:
            following = asyncio.get_running_loop().create_task(self._follow(key, under_way, call))
            following.add_done_callback(consume_exception)
            self._calls[key] = under_way, following
        return following

    async def _follow(self, key: Hashable, under_way: asyncio.Task[_T] | None, call: Callable[[], Awaitable[_T]]) -> _T:
        if under_way is not None:
            await asyncio.wait([under_way])
        self._calls[key] = self._calls[key][1], None
        try:
            return await call()
        finally:
            if self._calls[key][1] is None:
                del self._calls[key]


def consume_exception(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception of a task that is done, so that asyncio does not log it if nobody waits for it."""
    if not task.cancelled():
        task.exception()
