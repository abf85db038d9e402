"""Helpers that put and read tensors over HTTP."""

from __future__ import annotations

from typing import Any

import httpx

from service.web.tensor_routes import TENSORS
from tests.conftest import Client
from tests.service.support import Json, node, request, tensor

KIND = "application/vnd.safetensors"
VECTOR = tensor([2], [1.5, -2.0])


def put(client: Client, name: str, value: Any = VECTOR, **more: Any) -> httpx.Response:
    """Put a tensor."""
    return client.request("PUT", f"{TENSORS}/{name}", json=value, **more)


def value(client: Client, name: str) -> Any:
    """The elements of a tensor, or None if it does not exist."""
    answer = client.get(f"{TENSORS}/{name}")
    return answer.json()["tensor"]["data"] if answer.status_code == 200 else None


def step(**more: Any) -> Json:
    """w ← w − grad(sum(w²)) = −w."""
    nodes = [node("parameter"), node("square", 0), node("sum", 1), node("grad", 2, 0), node("sub", 0, 3)]
    return request(*nodes, feeds=[{"node": 0, "tensor_id": "w"}], store=[{"node": 4, "tensor_id": "w", **more}])
