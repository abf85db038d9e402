"""Fixtures of the client's tests: the project's servers, Hypothesis without clocks, and a client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import gradserve_client as gs
from tests.conftest import RunningServer, servers, start_server

__all__ = ["client", "server", "start_server"]


@pytest.fixture(scope="session")
def server() -> Iterator[RunningServer]:
    """A server with the default settings for all files; each file stores tensors under names of its own."""
    with servers() as start:
        yield start()


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[gs.Client]:
    """A client of the server, one for each module."""
    with gs.Client(server.url) as client:
        yield client
