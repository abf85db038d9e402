"""What the tests of the client take from those of the project: servers, and Hypothesis without clocks; and a client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import gradserve_client as gs
from tests.conftest import RunningServer, servers, start_server

__all__ = ["client", "server", "start_server"]


@pytest.fixture(scope="session")
def server() -> Iterator[RunningServer]:
    """A server with the default settings, for all files: what one keeps there has names that no other asks for."""
    with servers() as start:
        yield start()


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[gs.Client]:
    """One client of one server for a module."""
    with gs.Client(server.url) as client:
        yield client
