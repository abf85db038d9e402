"""One server and one client for a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import gradserve_client as gs
from tests.conftest import RunningServer


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[gs.Client]:
    with gs.Client(server.url) as client:
        yield client
