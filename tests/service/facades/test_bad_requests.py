"""Bad requests of each protocol are refused in its own form, and no input gets a 500."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from service.core.errors import UNREADABLE
from tests.conftest import Client
from tests.sampling import together
from tests.service.facades.bad_requests import GOOD, BadRequest, bad_requests
from tests.service.support import node

ALL = bad_requests()


def is_in_its_form(facade: str, content: Any) -> bool:
    """Whether the content is an error as the protocol's clients read it."""
    if facade == "openinference":
        return set(content) == {"error"} and isinstance(content["error"], str) and bool(content["error"])
    if facade == "umbridge":
        return set(content) == {"error"} and set(content["error"]) == {"type", "message"}
    fields = {"type", "loc", "msg", "input", "ctx"}
    return set(content) == {"detail"} and all(set(one) == fields for one in content["detail"])


def test_bad_requests_are_many_and_distinct() -> None:
    assert len({case.name for case in ALL}) == len(ALL) >= 150
    assert {case.facade for case in ALL} == {"umbridge", "openinference", "tesseract"}


@pytest.mark.parametrize(("path", "body"), GOOD.items())
def test_good_requests_are_accepted(foreign: Client, path: str, body: Any) -> None:
    assert foreign.post(path, json=body).status_code == 200


@together
@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name[:80])
def test_bad_request_is_refused_in_the_form_of_its_protocol(foreign: Client, case: BadRequest) -> None:
    answer = foreign.request(case.method, case.path, content=case.body, headers=case.headers)
    assert 400 <= answer.status_code < 500, (answer.status_code, answer.text[:300])
    assert answer.headers["content-type"] == "application/json"
    assert is_in_its_form(case.facade, answer.json()), answer.text[:300]
    assert UNREADABLE not in answer.text
    assert len(answer.content) < 3000


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/Evaluate", {"name": "spectrum", "input": [[1.0, 2.0]]}),
        ("/v2/models/spectrum/infer", {"inputs": [{"name": "x", "datatype": "FP64", "shape": [2], "data": [1, 2]}]}),
        ("/tesseract/spectrum/apply", {"inputs": {"x": [1.0, 2.0]}}),
    ],
)
def test_complex_outputs_are_refused_by_every_protocol(
    make_client: Callable[..., Client], path: str, body: Any
) -> None:
    client = make_client(facades=("umbridge", "openinference", "tesseract"))
    graph = {"opset": 2, "nodes": [node("input"), node("make_complex", 0, 0)]}
    graph_id = client.post("/v1/graphs", json={"graph": graph}).json()["graph_id"]
    inputs = [{"name": "x", "node": 0, "dtype": "float64", "shape": [2]}]
    model = {"graph_id": graph_id, "inputs": inputs, "outputs": [{"name": "z", "node": 1}]}
    assert client.request("PUT", "/v1/models/spectrum", json=model).status_code == 201
    answer = client.post(path, json=body)
    assert 400 <= answer.status_code < 500
    assert (
        "has complex inputs or outputs, such as “z” of complex128; this protocol does not support them" in answer.text
    )
    assert is_in_its_form(BadRequest("", path, b"").facade, answer.json())


def test_missing_key_is_refused_in_the_form_of_the_protocol(make_client: Callable[..., Client]) -> None:
    client = make_client(facades=("umbridge", "openinference", "tesseract"), api_key="a-key-that-is-long-enough-it-is")
    for path, body in GOOD.items():
        answer = client.post(path, json=body)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert is_in_its_form(BadRequest("", path, b"").facade, json.loads(answer.content))
    assert client.get("/v2/health/live").status_code == 200
