"""A store like S3 on virtual time: linearizable, but requests are late, answers are lost, and races are refused."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from service.state.objects import Data, Exists, MemoryObjects
from service.state.packing import decoded
from tests.simulation.virtual import Process, World

#: seconds that a server waits for an answer, and that a request is late at most
TIMEOUT = 1.5
LATEST = 4.0


class Store:
    """What is kept, how bad the network is, and what happened."""

    def __init__(self, world: World, bad: float) -> None:
        self.world, self.bad = world, bad
        self.kept = MemoryObjects()
        #: when each opening was made, by its token
        self.opened: dict[str, float] = {}

    def put_new(self, key: str, data: bytes) -> None:
        if self.world.chance.random() < self.bad / 2:  # 409: somebody else is at it, and perhaps does not get it either
            raise Exists(key)
        self.kept.put_new(key, [data])
        if key.startswith("commits/") and (head := decoded(data)).is_opening:
            self.opened[head.token] = self.world.now


class Remote:
    """The objects as one process has them."""

    exclusive = False

    def __init__(self, store: Store, process: Process) -> None:
        self._store, self._process = store, process
        self.made = ""  # token of the last commit that was asked for

    def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
        found: bytes = self._ask(lambda: self._store.kept.get(key, start, stop))
        return found

    def put(self, key: str, data: Sequence[Data]) -> None:
        whole = b"".join(data)
        self._ask(lambda: self._store.kept.put(key, [whole]))

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        whole = b"".join(data)
        if key.startswith("commits/"):
            self.made = decoded(whole).token
        self._ask(lambda: self._store.put_new(key, whole))

    def delete(self, keys: Sequence[str]) -> None:
        if keys:
            self._ask(lambda: self._store.kept.delete(keys))

    def list(self, prefix: str, after: str = "") -> Iterable[str]:
        found: list[str] = self._ask(lambda: self._store.kept.list(prefix, after))
        return found

    def close(self) -> None:
        pass

    def _ask(self, do: Callable[[], Any]) -> Any:
        """The answer to a request. Raises what the store does, and OSError where no answer comes in time."""
        world, chance, bad = self._process.world, self._process.world.chance, self._store.bad
        there, back = chance.uniform(0.005, 0.05), chance.uniform(0.005, 0.05)
        if chance.random() < bad:
            there = chance.uniform(0.5, LATEST)
        lost = chance.random() < bad
        answer: list[Callable[[], Any]] = []

        def reach() -> None:
            try:
                result = do()
            except Exception as error:
                told = error
                came = lambda: _raised(told)
            else:
                came = lambda: result
            if not lost and not self._process.cut:
                world.at(world.now + back, lambda: arrive(came))

        def arrive(came: Callable[[], Any]) -> None:
            if not answer:
                answer.append(came)
                wakes[0]()

        def out_of_time() -> Any:
            raise OSError(errno.ETIMEDOUT, "no answer came in time")

        wakes: list[Callable[[], object]] = []

        def wait(wake: Callable[[], object]) -> None:
            wakes.append(lambda: self._process.at(world.now, wake))
            if not self._process.cut or chance.random() < 0.5:
                world.at(world.now + there, reach)
            world.at(world.now + TIMEOUT, lambda: arrive(out_of_time))

        self._process.block(wait)
        return answer[0]()


def _raised(error: Exception) -> Any:
    raise error
