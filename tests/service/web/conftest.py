"""What the tests of tensors over HTTP share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from service.web.model_routes import MODELS
from service.web.tensor_routes import TENSORS
from tests.conftest import Client


@pytest.fixture(scope="module")
def tensor_server(make_client: Callable[..., Client]) -> Client:
    """A client of a server of this module's own."""
    return make_client()


@pytest.fixture
def empty_client(tensor_server: Client) -> Iterator[Client]:
    """A client of a server that keeps no tensors, no models and no graphs yet."""
    yield tensor_server
    for one in tensor_server.get(f"{MODELS}?limit=1000").json()["models"]:
        tensor_server.request("DELETE", f"{MODELS}/{one['name']}")
    for one in tensor_server.get(f"{TENSORS}?limit=1000").json()["tensors"]:
        tensor_server.request("DELETE", f"{TENSORS}/{one['tensor_id']}")
    for one in tensor_server.get("/v1/graphs?limit=1000").json()["graphs"]:
        tensor_server.request("DELETE", f"/v1/graphs/{one['graph_id']}")
