"""A server is killed after it stores a tensor and before it answers: each client's retry stores it once.

These tests run if a client can be built without downloads. `make test-clients` downloads the rest and runs them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest

from clients.conformance.languages import LANGUAGES
from clients.conformance.programs import Program
from clients.conformance.proxy import ForwardingHandler, Response, served_by
from tests.clients.building import built
from tests.conftest import RunningServer

pytestmark = pytest.mark.slow

ZERO, ONE = ({"dtype": "float64", "shape": [], "hex": hex} for hex in ("00" * 8, "000000000000f03f"))
STEP = {
    "do": "forward",
    "graph": {"steps": [{"op": "input"}, {"op": "add_scalar", "operands": [0], "attrs": {"scalar": 1.0}}]},
    "feeds": [{"node": 0, "tensor_id": "w"}],
    "store": [{"node": 1, "tensor_id": "w"}],
}
CALLS = [{"do": "put", "name": "w", "tensor": ZERO}, STEP, {"do": "get", "name": "w"}]


class LosingProxy(ForwardingHandler):
    """Proxy that drops the answer to the first `POST`, kills the server and starts it again."""

    server: ClassVar[RunningServer]
    start: ClassVar[Callable[[], RunningServer]]
    replayed: ClassVar[list[bool]]

    def send(self, response: Response) -> None:
        kind = type(self)
        if self.command == "POST":
            kind.replayed.append("Idempotency-Replayed" in response.headers)
            if len(kind.replayed) == 1:
                kind.server.process.kill()
                kind.server.process.wait()
                kind.server = kind.start()
                kind.origin = urlsplit(kind.server.url).netloc
                self.close_connection = True
                return
        super().send(response)


@contextmanager
def losing_proxy(start: Callable[[], RunningServer]) -> Iterator[tuple[str, list[bool]]]:
    """Yield the address, and for each `POST` whether its answer was replayed."""
    server, replayed = start(), []
    own = {"server": server, "start": staticmethod(start), "replayed": replayed, "origin": urlsplit(server.url).netloc}
    with served_by(type("_Handler", (LosingProxy,), own)) as url:
        yield url, replayed


@pytest.mark.parametrize("name", LANGUAGES)
def test_retry_after_a_crash_stores_once(name: str, start_server: Callable[..., RunningServer], tmp_path: Path) -> None:
    language = built(name)
    with losing_proxy(lambda: start_server("--state", str(tmp_path))) as (url, replayed), Program(language) as program:
        case: dict[str, Any] = {"id": "restart", "kind": "live", "url": url, "client": {}, "calls": CALLS}
        put, stored, fetched = program.ask(case)[0]["results"]
    assert replayed == [False, True]
    assert put["returned"]["etag"] != fetched["returned"]["etag"]
    assert stored["returned"]["stored"][0]["etag"] == fetched["returned"]["etag"]
    assert fetched["returned"]["tensor"] == ONE
