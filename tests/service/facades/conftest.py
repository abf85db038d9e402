"""Fixtures of the tests of facades."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conftest import Client
from tests.service.facades.fitting import put_models

ALL = ("umbridge", "openinference", "tesseract")


@pytest.fixture(scope="package")
def foreign(make_client: Callable[..., Client]) -> Client:
    """A client of a server with all facades and both models."""
    client = make_client(facades=ALL)
    put_models(client)
    return client
