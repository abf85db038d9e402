"""A store like S3 in virtual time: linearizable, but requests are late, answers are lost, and races are refused."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from service.store.commit_objects import decode_head
from service.store.objects import Data, Exists
from tests.service.store.memory_objects import MemoryObjects
from tests.simulation.virtual import Process, World

#: seconds that a server waits for an answer, and the largest delay of a request
TIMEOUT = 1.5
LATEST = 4.0
#: how often a read is repeated
_REPEATED = 4


class Store:
    """The stored objects, the failure rate of the network, and the openings."""

    def __init__(self, world: World, bad: float) -> None:
        self.world, self.bad = world, bad
        self.kept = MemoryObjects()
        #: the time of each opening, by its token
        self.opened: dict[str, float] = {}

    def put_new(self, key: str, data: bytes) -> None:
        if self.world.chance.random() < self.bad / 2:  # 409: another writer is active, and may fail as well
            raise Exists(key)
        self.kept.put_new(key, [data])
        if "commits/" in key and (head := decode_head(data)).is_opening:
            self.opened[head.token] = self.world.now


class Remote:
    """The objects as seen by one process."""

    exclusive = False

    def __init__(self, store: Store, process: Process) -> None:
        self._store, self._process = store, process
        self.made = ""  # token of the last commit that was requested

    def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
        data: bytes = self._read(lambda: self._store.kept.get(key, start, stop))
        return data

    def put(self, key: str, data: Sequence[Data]) -> None:
        whole = b"".join(data)
        self._ask(lambda: self._store.kept.put(key, [whole]))

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        whole = b"".join(data)
        if key.startswith("commits/"):
            self.made = decode_head(whole).token
        self._ask(lambda: self._store.put_new(key, whole))

    def delete(self, keys: Sequence[str]) -> None:
        if keys:
            self._ask(lambda: self._store.kept.delete(keys))

    def list(self, prefix: str, after: str = "") -> Iterable[str]:
        keys: list[str] = self._read(lambda: self._store.kept.list(prefix, after))
        return keys

    def close(self) -> None:
        pass

    def _read(self, do: Callable[[], Any]) -> Any:
        """Send a read like `_ask`, with retries, which the client library adds."""
        for _ in range(_REPEATED):
            with suppress(TimeoutError):
                return self._ask(do)
        return self._ask(do)

    def _ask(self, do: Callable[[], Any]) -> Any:
        """The answer to a request. Raises the store's errors, and OSError if no answer comes in time."""
        process, world = self._process, self._process.world
        chance, bad = world.chance.random, self._store.bad
        request_delay = 0.5 + (LATEST - 0.5) * chance() if chance() < bad else 0.005 + 0.045 * chance()
        answer_delay = 0.005 + 0.045 * chance()
        lost = chance() < bad
        late = request_delay + answer_delay >= TIMEOUT
        out_of_time = world.now + TIMEOUT
        answer: list[Any] = []  # the result and the error, one of them None; empty without an answer

        def reach(wake: Callable[[], object]) -> None:
            try:
                outcome = do(), None
            except Exception as error:  # noqa: BLE001  the caller gets the error
                outcome = None, error
            if late:
                return
            if lost or process.cut or process.blind:
                process.at(out_of_time, wake)
            else:
                answer.extend(outcome)
                process.at(world.now + answer_delay, wake)

        def wait(wake: Callable[[], object]) -> None:
            unsent = (process.cut or process.blind) and chance() < 0.5
            if not unsent:
                world.at(world.now + request_delay, partial(reach, wake))
            if unsent or late:
                process.at(out_of_time, wake)

        process.block(wait)
        if not answer:
            raise TimeoutError(errno.ETIMEDOUT, "no answer came in time")
        result, error = answer
        if error is not None:
            raise error
        return result
