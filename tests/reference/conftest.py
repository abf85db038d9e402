"""An application that waits for what it computes: graphs of 20,000 nodes take long on a busy machine."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conftest import Client


@pytest.fixture(scope="session")
def client(make_client: Callable[..., Client]) -> Client:
    """A client of an application in this process, whose requests have five minutes."""
    return make_client(timeout_ms=300_000)
