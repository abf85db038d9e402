"""A server that is killed when it has kept something and has not said so: the client's retry keeps it once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest

import gradserve_client as gs
from tests.conftest import RunningServer


class Losing(httpx.BaseTransport):
    """Brings requests to a server, and kills that when it has answered the first `POST`, whose answer is lost."""

    def __init__(self, start: Callable[[], RunningServer]) -> None:
        self._start = start
        self._server = start()
        self._http = httpx.HTTPTransport()
        self._has_lost = False
        self.replayed: list[bool] = []

    def close(self) -> None:
        self._http.close()

    def restart(self, _: float) -> None:
        """What is done while the client waits."""
        self._server = self._start()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(port=self._server.address[1])
        response = self._http.handle_request(request)
        response.read()
        if request.method == "POST":
            self.replayed.append("idempotency-replayed" in response.headers)
            if not self._has_lost:
                self._has_lost = True
                self._server.process.kill()
                self._server.process.wait()
                raise httpx.ReadError("the server was killed")
        return response


@pytest.mark.slow
def test_what_was_kept_is_kept_once(start_server: Callable[..., RunningServer], tmp_path: Path) -> None:
    server = Losing(lambda: start_server("--state", str(tmp_path)))
    graph = gs.Graph()
    w = graph.parameter("w")
    after = w + 1
    with gs.Client("http://127.0.0.1", transport=server, sleep=server.restart) as client:
        kept = client.put("w", np.array(0.0))
        stored = client.forward(graph, {w: kept}, store={after: "w"}).stored[after]
        assert server.replayed == [False, True]
        there = client.get("w")
        assert there.array == 1
        assert there.handle.etag == stored.etag
