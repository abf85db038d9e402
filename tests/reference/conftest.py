"""An application with a long timeout: graphs of 20,000 nodes take long on a busy machine."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conftest import Client


@pytest.fixture(scope="session")
def client(make_client: Callable[..., Client]) -> Client:
    """A client of an application in this process, with a timeout of five minutes."""
    return make_client(timeout_ms=300_000)
