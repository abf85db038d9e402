"""Replays of recorded answers: only keys with the write scope get them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.core.keys.caller import KeyScope, new_key
from tests.service.core.keys.cases import record, write
from tests.service.support import problem
from tests.service.web.tensors_support import VECTOR, step

OWNER, WRITER, COMPUTER = new_key(), new_key(), new_key()
SCOPES = {
    "owner": (OWNER, tuple(KeyScope)),
    "writer": (WRITER, (KeyScope.COMPUTE, KeyScope.WRITE)),
    "computer": (COMPUTER, (KeyScope.COMPUTE,)),
}


@pytest.fixture
def client(make_client: Callable[..., Any], tmp_path: Path) -> Any:
    """A client of a server with three keys of one namespace, after the owner's step."""
    keys = [record(name, key, scopes, namespace="lab") for name, (key, scopes) in SCOPES.items()]
    client = make_client(keys_file=write(tmp_path / "keys.json", keys))
    assert client.request("PUT", "/v1/tensors/w", json=VECTOR, headers=headers_of(OWNER, "put")).status_code == 201
    assert client.post("/v1/forward", json=step(), headers=headers_of(OWNER)).status_code == 200
    return client


def headers_of(key: str, name: str = "step-1") -> dict[str, str]:
    """Build the headers of a call with a key and an Idempotency-Key."""
    return {"Authorization": f"Bearer {key}", "Idempotency-Key": name}


def test_key_with_write_scope_gets_the_replay(client: Any) -> None:
    again = client.post("/v1/forward", json=step(), headers=headers_of(WRITER))
    assert (again.status_code, again.headers.get("idempotency-replayed")) == (200, "true")


def test_compute_only_key_is_refused_as_for_a_new_call(client: Any) -> None:
    again, new = (
        client.post("/v1/forward", json=step(), headers=headers_of(COMPUTER, name)) for name in ("step-1", "step-2")
    )
    assert problem(again, 403, "forbidden")["expected"] == "write"
    assert (again.status_code, again.json()["detail"]) == (new.status_code, new.json()["detail"])
    assert "idempotency-replayed" not in again.headers


def test_compute_only_key_may_reuse_an_idempotency_key(client: Any) -> None:
    other = step()
    del other["store"]
    assert client.post("/v1/forward", json=other | {"outputs": [4]}, headers=headers_of(COMPUTER)).status_code == 200
