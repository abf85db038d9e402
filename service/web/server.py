"""The process: a socket, uvicorn on it, and an orderly end."""

from __future__ import annotations

import gc
import logging
import os
import socket
import sys
from collections.abc import Callable
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from service.compute.threads import ThreadPool
from service.settings import Settings
from service.web.protocol import ProblemProtocol


class Server(uvicorn.Server):
    """uvicorn, announcing its address, and refusing new work from the moment it is asked to stop."""

    def __init__(self, config: uvicorn.Config, pool: ThreadPool, url: str) -> None:
        super().__init__(config)
        self._pool = pool
        self._url = url

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Say where, once connections are taken."""
        await super().startup(sockets)
        sys.stdout.write(f"gradserve listening on {self._url}\n")
        sys.stdout.flush()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal ends gracefully, the second at once."""
        self._pool.drain()
        self.force_exit = self.should_exit
        self.should_exit = True


def serve(settings: Settings, assemble: Callable[[Settings], tuple[ASGIApp, ThreadPool]]) -> None:
    """Serve what `assemble` makes until a signal.

    Raises OSError when the address cannot be had, RuntimeError for the device.
    """
    logging.basicConfig(
        level=settings.log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    _calm_the_collector()
    with listen(settings.host, settings.port) as listening:
        app, pool = assemble(settings)
        config = uvicorn.Config(
            app,
            http=ProblemProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=settings.keep_alive,
            timeout_graceful_shutdown=settings.shutdown_grace,
            h11_max_incomplete_event_size=settings.max_header_bytes,
        )
        Server(config, pool, address(settings.host, listening)).run(sockets=[listening])
    _leave(pool)


def _calm_the_collector() -> None:
    # A request makes up to millions of small objects without a cycle among them. At the default threshold they are
    # scanned over and over: three quarters of the time that a graph of 100,000 nodes takes to be read.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound to the address.

    An answer's head and body are two writes: with Nagle's algorithm the second would wait some 40 ms for the client's
    delayed acknowledgement. asyncio turns it off only for sockets it made itself; accepted ones inherit this.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    socket.getaddrinfo(host, port, family)  # raises gaierror, which create_server would make an error without a reason
    listening = socket.create_server((host, port), family=family, backlog=2048)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def address(host: str, listening: socket.socket) -> str:
    """The URL of a bound socket."""
    port = listening.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _leave(pool: ThreadPool) -> None:
    """A thread inside a kernel cannot be stopped, and Python would wait for it."""
    if pool.busy:
        logging.getLogger("gradserve").warning("work was still running when the grace was over")
        sys.stdout.flush()
        os._exit(0)
