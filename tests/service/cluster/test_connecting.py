"""Connections that end as soon as they are made are told like those that are refused."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

import httpx
import pytest

from service.cluster.connecting import PeerTransport
from service.cluster.http_peers import HttpPeers
from service.cluster.peers import Unreachable


def asked(what: str) -> None:
    """Ask another server, where httpx looks for an attribute of a socket that is gone."""

    async def fails(*_: Any) -> httpx.Response:
        socket: Any = None
        answer: httpx.Response = getattr(socket, what)
        return answer

    async def ask() -> None:
        peers = HttpPeers("secret")
        try:
            await peers.ask("http://127.0.0.1:1", "versions", {}, (), float("inf"))
        finally:
            await peers.close()

    with patch.object(httpx.AsyncHTTPTransport, "handle_async_request", fails):
        asyncio.run(ask())


def test_one_that_ended_at_once_was_not_made() -> None:
    with pytest.raises(Unreachable, match="127"):
        asked("getpeername")


def test_other_faults_are_faults() -> None:
    with pytest.raises(AttributeError, match="of_ours"):
        asked("of_ours")
    assert issubclass(PeerTransport, httpx.AsyncHTTPTransport)
