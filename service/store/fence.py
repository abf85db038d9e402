"""Fence: check that the state in memory is current, if other servers may have taken over its place."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final

from service.core.errors import Refusal
from service.store.contact import Retries
from service.store.journal import Journal, StateLost
from service.store.together import Together

#: seconds after which a request that waits for a look asks whether the storage answers at all
_LONG_LOOK: Final = 0.5

_logger = logging.getLogger("gradserve")


class Fence:
    """Fence around the state in memory, for one event loop; always open if only this server can reach the place.

    One look at the place serves all requests that wait for it.
    """

    def __init__(
        self, journal: Journal, executor: Executor | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._journal = journal
        self._executor = executor or ThreadPoolExecutor(1, "gradserve-look")
        self._clock = clock
        self._retries = Retries(_logger, clock)
        self._looks = Together[None]()
        self.state_checks = 0
        #: refusal of everything about the state, once another server owns it
        self.lost: Refusal | None = None

    @property
    def open(self) -> bool:
        """True if memory is known to be current without a look."""
        return self._journal.holds()

    async def wait_until_current(self, expires: float = float("inf")) -> None:
        """Return when memory is known to have been current at some moment after the call.

        Raises Refusal (not_ready) if it is not current, or if that is not known by `expires`.
        """
        if self.lost is not None:
            raise self.lost
        if self._journal.holds():
            return
        look = self._looks.join(None, self._look)
        while not look.done():
            remaining = max(0.0, expires - self._clock())
            await asyncio.wait([look], timeout=min(remaining, _LONG_LOOK))
            if not look.done() and (self.is_blind or self._clock() >= expires):
                raise unseen()
        look.result()
        if self.lost is not None:  # since the look
            raise self.lost

    @property
    def is_blind(self) -> bool:
        """True if the storage has not answered for so long that another server should take over."""
        return self._journal.is_blind()

    def lose(self, reason: StateLost) -> Refusal:
        """Close the fence for good; return the refusal that answers all further requests."""
        if self.lost is None:
            _logger.error("the server no longer reads or writes the state: %s", reason)
            detail = "another server has taken over the state of this server, which no longer serves it"
            self.lost = Refusal("not_ready", detail, retry_after=5)
        return self.lost

    def leave(self) -> None:
        """Close the fence for good, even if a look is still valid: this server gives up the state in memory."""
        if self.lost is None:
            detail = "this server has just handed over this part of the state to another server; send the request again"
            self.lost = Refusal("not_ready", detail, retry_after=1)

    def close(self) -> None:
        """Stop looking."""
        self._executor.shutdown(wait=False)

    async def _look(self) -> None:
        if self.lost is not None:
            raise self.lost
        if (pause := self._retries.pause) > 0:
            await asyncio.sleep(pause)
        if self._journal.holds():  # thanks to the look before, or to a commit
            return
        self.state_checks += 1
        try:
            await asyncio.get_running_loop().run_in_executor(self._executor, self._journal.look)
        except StateLost as lost:
            raise self.lose(lost) from None
        except OSError as error:
            self._retries.failed(f"cannot check whether another server has taken over the state: {error}")
            raise unseen() from None
        self._retries.succeeded()


def unseen() -> Refusal:
    """Return the refusal for a place that does not answer."""
    detail = "the storage of the server's state does not respond, so the server cannot tell whether its data is current"
    return Refusal("not_ready", detail, retry_after=1)
