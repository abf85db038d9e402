"""HTTP client for other servers: keep-alive connections, questions, and forwarded requests."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeVar

import aiohttp

from service.cluster.connecting import PeerConnections, body_of
from service.cluster.protocol import (
    ADDRESS_HEADER,
    ALIVE,
    MISDIRECTED,
    PROCESS_HEADER,
    PROTOCOL,
    PROTOCOL_HEADER,
    SECRET_HEADER,
    STORE_HEADER,
    Answer,
    Silent,
    Slow,
    Unreachable,
    message_of,
    moved_of,
    read_message,
    refusal_of_row,
    speaks,
)
from service.core.errors import Refusal
from service.core.prefix import CLUSTER_PREFIX

#: seconds without an answer after which a server is probed, and the timeout of a probe
PEER_SILENCE: Final = 1.0
#: seconds for which a server counts as unreachable that was found silent after the deadline of a question
_SILENT_SECONDS: Final = 30.0
#: most seconds of a timeout, and the part of it, in which the answer of another server comes back
_RETURN_SECONDS: Final = 0.05
_RETURN_PART: Final = 0.1
#: most connections to all servers together
_CONNECTIONS: Final = 256
_T = TypeVar("_T")

_logger = logging.getLogger("gradserve.cluster")


class Alive(NamedTuple):
    """Server that answers: the name of its process, None in earlier versions, and whether it reaches the store."""

    process: str | None
    reaches_store: bool


class HttpPeers:
    """Client of other servers, for one event loop."""

    def __init__(self, secret: str, address: str) -> None:
        """`address` is where other servers reach this one."""
        self._secret, self._address = secret, address
        headers = {SECRET_HEADER: secret, PROTOCOL_HEADER: str(PROTOCOL), ADDRESS_HEADER: address}
        self._connections = PeerConnections(_CONNECTIONS, PEER_SILENCE, headers)
        #: called with the address of a server that does not accept the secret or the protocol of this one
        self.on_stranger: Callable[[str], None] = lambda address: None
        self._strangers: set[str] = set()
        #: servers that were found silent, and until when that is believed, unless they answer
        self._silent: dict[str, float] = {}
        self._probes: dict[str, asyncio.Task[None]] = {}

    def for_another_loop(self) -> HttpPeers:
        """Return a client with the same secret for another event loop."""
        return HttpPeers(self._secret, self._address)

    async def ask(
        self, address: str, question: str, head: Mapping[str, Any], blobs: Sequence[bytes | memoryview], expires: float
    ) -> Answer:
        """Ask a question. Raises Moved, Unreachable, Silent, Slow, and the refusal of the other server."""
        # Remaining seconds instead of a deadline: the monotonic clocks of two machines are unrelated.
        message = message_of({**head, "left": min(seconds_for_peer(expires), 86_400.0)}, blobs)

        async def send_question() -> tuple[aiohttp.ClientResponse, bytes]:
            url = f"{address}{CLUSTER_PREFIX}{question}"
            async with await self._connections.request("POST", url, *body_of(message)) as response:
                return response, await response.read()

        response, content = await self.await_answer(address, send_question(), expires)
        self._check_response(response, address)
        answer, payload = read_message(content)
        if "refused" in answer:
            raise refusal_of_row(answer["refused"])
        return Answer(answer, payload)

    async def forward(
        self,
        address: str,
        method: str,
        path: str,
        headers: Sequence[tuple[str, str]],
        body: AsyncIterator[bytes] | None,
        expires: float,
    ) -> aiohttp.ClientResponse:
        """Forward a request; return the beginning of the response, which must be closed.

        Raises Moved, Unreachable, Silent, Slow.
        """
        responding = self._connections.request(method, f"{address}{path}", headers, body)
        response = await self.await_answer(address, responding, expires)
        try:
            self._check_response(response, address)
        except BaseException:
            response.close()
            raise
        return response

    async def close(self) -> None:
        """Close all connections."""
        for probe in self._probes.values():
            probe.cancel()
        await self._connections.close()

    async def await_answer(self, address: str, answering: Coroutine[Any, Any, _T], expires: float) -> _T:
        """Wait for an answer as long as the server is alive. Raises Unreachable, Silent, Slow."""
        if self._silent.pop(address, 0.0) > time.monotonic():
            answering.close()
            raise Unreachable(address)
        watch = _Watch(address, self._is_alive, expires)
        try:
            async with watch.patience:
                watch.begin()
                answer = await answering
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise Unreachable(address) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            if watch.failure is None and watch.patience.expired():
                self.suspect(address)
                raise Slow(address) from error
            raise watch.failure or Silent(address) from error
        finally:
            watch.end()
        self._silent.pop(address, None)
        return answer

    def suspect(self, address: str) -> None:
        """Probe a server later, after a question whose deadline came before that of a probe.

        Otherwise a dead owner would never be replaced if all clients had short timeouts.
        """

        async def probe() -> None:
            await asyncio.sleep(PEER_SILENCE)
            if not await self._is_alive(address):
                self._silent[address] = time.monotonic() + _SILENT_SECONDS

        if address not in self._probes:
            self._probes[address] = asyncio.get_running_loop().create_task(probe())
            self._probes[address].add_done_callback(lambda _: self._probes.pop(address))

    async def probe(self, address: str) -> Alive | None:
        """Return who answers at an address; None if nobody of this cluster does."""
        url = f"{address}{CLUSTER_PREFIX}{ALIVE}"
        try:
            async with await self._connections.request("GET", url, total_seconds=PEER_SILENCE) as response:
                if response.status == HTTPStatus.OK:
                    return Alive(response.headers.get(PROCESS_HEADER), STORE_HEADER in response.headers)
        except (aiohttp.ClientError, TimeoutError):
            pass
        return None

    async def _is_alive(self, address: str) -> bool:
        return await self.probe(address) is not None

    def _check_response(self, response: aiohttp.ClientResponse, address: str) -> None:
        """Raise Moved, or Refusal if the servers do not understand each other."""
        version = response.headers.get(PROTOCOL_HEADER)
        if version is not None and speaks(version):
            self._strangers.discard(address)
            if response.status == MISDIRECTED:
                raise moved_of(response.headers)
            return
        self.on_stranger(address)
        if address not in self._strangers:
            self._strangers.add(address)
            _logger.error("%s", _misunderstanding(address, version))
        detail = "this server cannot communicate with the owner of this part of the state; the log has the reason"
        raise Refusal("not_ready", detail, retry_after=5)


class _Watch:
    """Watch over a server that was asked: after a while without an answer, it is probed.

    The answer is awaited in the caller's own task, which the watch wakes through its timeout. A task for each question
    would cost a fifth of the question's time.
    """

    def __init__(self, address: str, lives: Callable[[str], Awaitable[bool]], expires: float) -> None:
        self._address, self._is_alive = address, lives
        self._loop = asyncio.get_running_loop()
        self.patience = asyncio.timeout(None if expires == float("inf") else expires - time.monotonic())
        #: why the wait has ended before `expires`
        self.failure: Silent | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._probe_task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin to wait."""
        self._timer = self._loop.call_later(PEER_SILENCE, self._fell_silent)

    def end(self) -> None:
        """End the watch."""
        if self._timer is not None:
            self._timer.cancel()
        if self._probe_task is not None:
            self._probe_task.cancel()

    def _fell_silent(self) -> None:
        self._probe_task = self._loop.create_task(self._probe())

    async def _probe(self) -> None:
        if await self._is_alive(self._address):
            self.begin()
        elif not self.patience.expired():
            # The waiting task gets TimeoutError, and `await_answer` replaces it by `failure`.
            self.failure = Silent(self._address)
            self.patience.reschedule(self._loop.time())


def seconds_for_peer(expires: float) -> float:
    """Return the seconds until another server must answer, so that its answer arrives before `expires`."""
    left = expires - time.monotonic()
    return left - min(_RETURN_SECONDS, left * _RETURN_PART)


def _misunderstanding(address: str, version: str | None) -> str:
    if version is None:
        return f"{address} does not accept the cluster secret of this server, so it is not in the same cluster"
    return f"{address} uses version {version} of the protocol between servers, but this server uses version {PROTOCOL}"
