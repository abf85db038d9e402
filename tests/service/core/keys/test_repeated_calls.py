"""Who is given an answer again that was kept for a call with an Idempotency-Key: keys that may write, and no others."""

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
    """A client of a server with three keys of one namespace, where the owner's step was taken."""
    keys = [record(name, key, scopes, namespace="lab") for name, (key, scopes) in SCOPES.items()]
    client = make_client(keys_file=write(tmp_path / "keys.json", keys))
    assert client.request("PUT", "/v1/tensors/w", json=VECTOR, headers=by(OWNER, "put")).status_code == 201
    assert client.post("/v1/forward", json=step(), headers=by(OWNER)).status_code == 200
    return client


def by(key: str, name: str = "step-1") -> dict[str, str]:
    """The headers of a call by a key, which has a name."""
    return {"Authorization": f"Bearer {key}", "Idempotency-Key": name}


def test_a_key_that_may_write_gets_it(client: Any) -> None:
    again = client.post("/v1/forward", json=step(), headers=by(WRITER))
    assert (again.status_code, again.headers.get("idempotency-replayed")) == (200, "true")


def test_a_key_that_computes_alone_is_refused_as_if_it_were_new(client: Any) -> None:
    again, new = (client.post("/v1/forward", json=step(), headers=by(COMPUTER, name)) for name in ("step-1", "step-2"))
    assert problem(again, 403, "forbidden")["expected"] == "write"
    assert (again.status_code, again.json()["detail"]) == (new.status_code, new.json()["detail"])
    assert "idempotency-replayed" not in again.headers


def test_nor_does_it_learn_that_another_call_had_the_name(client: Any) -> None:
    other = step()
    del other["store"]
    assert client.post("/v1/forward", json=other | {"outputs": [4]}, headers=by(COMPUTER)).status_code == 200
