"""The server decodes tensors as the cases specify for clients, and refuses those that clients refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from clients.conformance.bits import from_file, from_json, to_json
from clients.conformance.cases import Case, cases
from tests.conftest import Client
from tests.sampling import together

_FILE: Final = {"Content-Type": "application/vnd.safetensors"}
_JSON: Final = {"Content-Type": "application/json"}
DECODED = list(cases(["tensors"], "decode-"))
AS_NUMBERS = [
    case
    for case in cases(["tensors"], "encode-")
    if case["form"] == "json" and "as" in case["want"] and case["tensor"]["hex"]
]
#: cases with extra members or tensors, which a client ignores and a server refuses
NARROWER: Final = {
    *("decode-unknown-member", "decode-file-with-others", "decode-file-in-another-order"),
    *("decode-file-of-c64-beside-others", "decode-file-of-numbers-beside-complex-ones"),
}
#: the tensor in the file has another name, which a server accepts
WIDER: Final = {"decode-broken-file-no-tensor-of-the-name"}


@pytest.fixture(scope="module")
def client(make_client: Callable[..., Client]) -> Client:
    return make_client()


def put(client: Client, case: Case) -> Any:
    """Put the case's tensor unchanged, and return the answer."""
    if "file" in case:
        return client.request("PUT", "/v1/tensors/t", content=bytes.fromhex(case["file"]), headers=_FILE)
    return client.request("PUT", "/v1/tensors/t", content=case["wire"].encode(), headers=_JSON)


@together
@pytest.mark.parametrize("case", [case for case in DECODED if "tensor" in case["want"]], ids=lambda case: case["id"])
def test_server_decodes_client_cases(client: Client, case: Case) -> None:
    answer = put(client, case)
    assert answer.is_success is (case["id"] not in NARROWER), answer.text
    if answer.is_success:
        stored = client.get("/v1/tensors/t?encoding=base64").json()["tensor"]
        assert from_json(stored) == case["want"]["tensor"]
        ((_, bits),) = from_file(client.get("/v1/tensors/t", headers={"Accept": _FILE["Content-Type"]}).content)[
            1
        ].items()
        assert bits == case["want"]["tensor"]


@together
@pytest.mark.parametrize("case", [case for case in DECODED if "error" in case["want"]], ids=lambda case: case["id"])
def test_server_refuses_invalid_client_cases(client: Client, case: Case) -> None:
    answer = put(client, case)
    assert answer.is_success is (case["id"] in WIDER), answer.text
    if case["id"] not in WIDER:
        assert 400 <= answer.status_code < 500


@pytest.mark.parametrize("case", AS_NUMBERS, ids=lambda case: case["id"])
def test_server_chooses_numbers_or_base64_like_clients(client: Client, case: Case) -> None:
    put(client, {"wire": json.dumps(to_json(case["tensor"]))})
    assert case["want"]["as"] in client.get("/v1/tensors/t").json()["tensor"]
