"""Fixtures of the tests of tensors over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from service.web.model_routes import MODELS
from service.web.tensor_routes import TENSORS
from tests.conftest import Client


@pytest.fixture(scope="module")
def tensor_server(make_client: Callable[..., Client]) -> Client:
    """A client of a server that only this module uses."""
    return make_client()


@pytest.fixture
def empty_client(tensor_server: Client) -> Iterator[Client]:
    """A client of a server that stores no tensors, models or graphs yet."""
    yield tensor_server
    for entry in tensor_server.get(f"{MODELS}?limit=1000").json()["models"]:
        tensor_server.request("DELETE", f"{MODELS}/{entry['name']}")
    for entry in tensor_server.get(f"{TENSORS}?limit=1000").json()["tensors"]:
        tensor_server.request("DELETE", f"{TENSORS}/{entry['tensor_id']}")
    for entry in tensor_server.get("/v1/graphs?limit=1000").json()["graphs"]:
        tensor_server.request("DELETE", f"/v1/graphs/{entry['graph_id']}")
