"""Watch over what a server in a cluster needs, so that it is ready only while it can answer.

Every PERIOD seconds, a server reads a small object of the store, asks its own address who answers there, and asks a
server that did not accept its secret again. It is not ready

- while the store does not answer, or has not for shards that it owns (see `Contact`), but another server reaches it. If
  the store answers nobody, all stay ready: they can still compute. A server that does not reach the store when it
  starts waits for it;
- while another process answers at its address, as with a copied configuration. Both would take shards for their own,
  so the one that finds the other takes no part in the cluster;
- while a server that was there before it does not accept its secret, or its version of the protocol. The older server
  stays ready: of two that do not understand each other, one must go on.

For the first rule, servers have to know each other before the store is lost. So each of them looks up the owner of
another shard from time to time, and greets the servers that it knows, which learn its address that way.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Final

from service.cluster.http_peers import Alive, HttpPeers
from service.cluster.owners import Owners
from service.cluster.protocol import Moved, Silent, Slow, Unreachable
from service.core.errors import Refusal
from service.store.contact import Contact, Retries
from service.store.objects import Missing, Objects
from service.store.places import FORMAT_KEY

PERIOD: Final = 2.0
#: number of periods between two greetings, of shards that are looked up for one, and of servers that are greeted; and
#: seconds after which a silent server is forgotten
_GREETING: Final = 8
_LOOKED_UP: Final = 2
_GREETED: Final = 8
_FORGOTTEN: Final = 600.0
#: seconds in which another server must have replaced this one
_REPLACED: Final = 10.0

_logger = logging.getLogger("gradserve.cluster")


class Watch:
    """Watch of a server over its surroundings, for one event loop.

    `process` is a random name, which tells this process from others at its address.
    """

    def __init__(
        self,
        owners: Owners,
        peers: HttpPeers,
        objects: Objects,
        prepare: Callable[[], None],
        place: str,
        patience: float,
    ) -> None:
        """Set up without asking anything.

        `prepare` checks the state, which messages call `place`, before it is used; it raises OSError if the store does
        not answer, and RuntimeError. The store is lost after `patience` seconds without an answer.
        """
        self._owners, self._peers, self._objects, self._prepare = owners, peers, objects, prepare
        self._place, self._patience = place, patience
        self.process = secrets.token_hex(8)
        self._executor = ThreadPoolExecutor(1, "gradserve-watch")
        self._is_prepared = False
        #: what is wrong with the state, other than that the store does not answer
        self._problem: str | None = None
        self._contact = Contact(patience, time.monotonic)
        self._retries = Retries(_logger, time.monotonic)
        self._reading: Future[None] | None = None
        self._began = time.time()
        #: address of an older server that does not understand this one
        self._stranger: str | None = None
        self.has_conflict = False
        #: times at which other servers were last heard of, by address
        self._known: dict[str, float] = {}
        self._others_reach_store = False
        self._greetings = itertools.cycle(range(owners.shards))
        peers.on_stranger, owners.require_part = self._estrange, self.require_part
        owners.ask_elsewhere = self.ask_elsewhere

    def begin(self) -> None:
        """Check, before this server listens, its address and the state, without waiting long for the store; blocks.

        Raises RuntimeError if another server has the address, or the state cannot be used.
        """

        async def who_answers() -> Alive | None:
            peers = self._peers.for_another_loop()
            try:
                return await peers.probe(self._owners.address)
            finally:
                await peers.close()

        if asyncio.run(who_answers()) is not None:
            raise RuntimeError(_same_address(self._owners.address))
        self._reading = self._executor.submit(self._read)
        wait([self._reading], self._patience)
        if self._problem is not None:
            raise RuntimeError(self._problem)

    async def run(self) -> None:
        """Check again and again."""
        for turn in itertools.count():
            await self.check()
            if turn % _GREETING == 0:
                await self._greet()
            await asyncio.sleep(PERIOD)

    async def check(self) -> None:
        """Check everything once. A read of the store that does not return is not waited for."""
        if self._reading is None or self._reading.done():
            self._reading = self._executor.submit(self._read)
        await self._check_address()
        if self._stranger is not None and await self._peers.probe(self._stranger) is not None:
            self._stranger = None
        self._others_reach_store = not self.reaches_store and bool(await self._with_store())

    @property
    def reaches_store(self) -> bool:
        """Whether the store answers this server, as far as it knows."""
        return self._is_prepared and not self._contact.is_lost and not self._owners.owned_shards.blind

    def meet(self, address: str | None) -> None:
        """Note the address of another server."""
        if address is not None and address != self._owners.address:
            self._known[address] = time.monotonic()

    def require_ready(self) -> None:
        """Return if the server can answer. Raises Refusal: not_ready."""
        self._owners.require_part()
        if self._others_reach_store:
            raise Refusal("not_ready", "the storage of the server's state does not respond", retry_after=1)
        if self._stranger is not None:
            detail = (
                f"the server at {self._stranger} does not accept the cluster secret of this server, or its version of "
                "the protocol; the log has the reason"
            )
            raise Refusal("not_ready", detail, retry_after=5)

    def _read(self) -> None:
        try:
            with self._contact.attempt():
                if not self._is_prepared:
                    self._prepare()
                    self._is_prepared = True
                with suppress(Missing):
                    self._objects.get(FORMAT_KEY, 0, 1)
        except OSError as error:
            self._retries.failed(f"cannot reach {self._place}, so the server is not ready: {error}")
        except RuntimeError as error:
            _logger.error("%s", error)  # noqa: TRY400 - the sentence says it all
            self._problem = str(error)
        else:
            self._problem = None
            self._retries.succeeded()

    async def _check_address(self) -> None:
        address = self._owners.address
        had_conflict, answer = self.has_conflict, await self._peers.probe(address)
        self.has_conflict = answer is not None and answer.process != self.process
        if self.has_conflict and not had_conflict:
            _logger.error("%s", _same_address(address))

    def require_part(self) -> None:
        """Return if this server may take part in the cluster. Raises Refusal: not_ready."""
        if self._problem is not None:
            raise Refusal("not_ready", self._problem, retry_after=5)
        if not self._is_prepared:
            detail = "the server has not reached the storage of its state yet, and waits for it"
            raise Refusal("not_ready", detail, retry_after=1)
        if self.has_conflict:
            raise Refusal("not_ready", _same_address(self._owners.address), retry_after=5)

    async def _greet(self) -> None:
        """Find other servers, and greet the ones that are known."""
        with suppress(Refusal):
            self.require_part()
            for shard in itertools.islice(self._greetings, _LOOKED_UP):
                await self._owners.learn(shard, time.monotonic() + PERIOD)
        for owner in self._owners.known_owners.values():
            self._known.setdefault(owner.address, time.monotonic())
        for address in self._latest():
            if await self._peers.probe(address) is not None:
                self.meet(address)

    async def ask_elsewhere(self, shard: int) -> str | None:
        """Ask another server for the owner of a shard; None if this one reaches the store, or none answers.

        If this server is the owner, the one that is asked takes the shard over.
        """
        if self.reaches_store:
            return None
        head = {"shard": shard, "address": self._owners.address}
        for address in await self._with_store():
            with suppress(Refusal, Moved, Unreachable, Silent, Slow):
                answer = await self._peers.ask(address, "owner", head, (), time.monotonic() + _REPLACED)
                return str(answer.head["owner"])
        return None

    async def _with_store(self) -> list[str]:
        """Return the other servers that reach the store."""
        latest = self._latest()
        answers = await asyncio.gather(*map(self._peers.probe, latest))
        pairs = zip(latest, answers, strict=True)
        return [address for address, answer in pairs if answer is not None and answer.reaches_store]

    def _latest(self) -> list[str]:
        """Return the servers that were heard of last, and forget those that were not for long."""
        now = time.monotonic()
        self._known = {address: since for address, since in self._known.items() if now - since < _FORGOTTEN}
        return sorted(self._known, key=lambda address: -self._known[address])[:_GREETED]

    def _estrange(self, address: str) -> None:
        """Note a server that does not understand this one, if it was there first."""
        if any(o.address == address and o.began < self._began for o in self._owners.known_owners.values()):
            self._stranger = address


def _same_address(address: str) -> str:
    """Return the sentence about another process at the address of this server."""
    return f"another server answers at {address}; give each server of a cluster its own --cluster-address"
