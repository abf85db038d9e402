"""A started server with all facades, which the protocols' own clients talk to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.conftest import RunningServer
from tests.service.facades.fitting import put_models


@pytest.fixture(scope="module")
def url(start_server: Callable[..., RunningServer]) -> Iterator[str]:
    """The server's address. The server has the models that the facade tests share."""
    facades = "umbridge,openinference,tesseract"
    server = start_server("--facades", facades, "--workers", "1", "--state", "memory")
    with httpx.Client(base_url=server.url, timeout=60) as client:
        put_models(client)
    return server.url
