"""The scripted server sends a case's answers in order and records the requests; future answers have extra fields."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from clients.conformance.bits import from_file, to_file
from clients.conformance.rewriting import CODE, DTYPE, FIELD, OP, expected, grown, grown_body
from clients.conformance.scripted import ScriptedServer, scripted_server

ONE = {"dtype": "float64", "shape": [], "hex": "000000000000f03f"}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as started:
        yield started


def case(*answers: dict[str, Any]) -> dict[str, Any]:
    return {"id": "a-case", "answers": list(answers)}


def test_answers_come_in_order_and_requests_are_recorded(server: ScriptedServer) -> None:
    script = case({"status": 201, "json": {"a": 1}, "headers": {"ETag": '"x"'}}, {"text": "hello"})
    url = server.begin(script)
    first = httpx.put(url + "/v1/tensors/a%20b?timeout_ms=5", content=b"body", headers={"X-Some": "Header"})
    second = httpx.get(url + "/v1/ops")
    third = httpx.delete(url + "/v1/ops")
    assert (first.status_code, first.json(), first.headers["ETag"]) == (201, {"a": 1}, '"x"')
    assert first.headers["Content-Type"] == "application/json"
    assert first.headers["Connection"] == "close"
    assert (second.status_code, second.text) == (200, "hello")
    assert third.status_code == 500
    put, get, delete = server.end(script)
    assert (put.method, put.path, put.query, put.body) == ("PUT", "/v1/tensors/a%20b", "timeout_ms=5", b"body")
    assert put.headers["x-some"] == "Header"
    assert (get.method, get.path, get.query) == ("GET", "/v1/ops", "")
    assert delete.method == "DELETE"


def test_request_body_may_be_chunked(server: ScriptedServer) -> None:
    script = case({"json": {}})
    httpx.post(server.begin(script) + "/v1/forward", content=iter([b"one", b"two"]))
    assert server.end(script)[0].body == b"onetwo"


def test_content_types_of_problems_and_files(server: ScriptedServer) -> None:
    tensors = {"values.0": ONE}
    script = case({"status": 404, "json": {}}, {"file": {"response": {"a": 1}, "tensors": tensors}}, {"hex": "0001"})
    url = server.begin(script)
    assert httpx.get(url).headers["Content-Type"] == "application/problem+json"
    file = httpx.get(url)
    assert file.headers["Content-Type"] == "application/vnd.safetensors"
    metadata, received = from_file(file.content)
    assert (json.loads(metadata["response"]), received) == ({"a": 1}, tensors)
    assert httpx.get(url).content == b"\0\1"


@pytest.mark.parametrize("chunked", [False, True])
def test_bodies_are_padded(server: ScriptedServer, chunked: bool) -> None:
    script = case({"json": {}, "pad": 200_000, "chunked": chunked})
    answer = httpx.get(server.begin(script))
    assert len(answer.content) == 200_000
    assert ("Content-Length" in answer.headers) is not chunked


@pytest.mark.parametrize("chunked", [False, True])
def test_connection_may_close_within_an_answer(server: ScriptedServer, chunked: bool) -> None:
    script = case({"json": {"a": "b" * 100}, "close": "middle", "chunked": chunked})
    with pytest.raises(httpx.RemoteProtocolError, match=r"without sending complete|incomplete"):
        httpx.get(server.begin(script))
    assert len(server.end(script)) == 1


def test_connection_may_close_before_an_answer(server: ScriptedServer) -> None:
    script = case({"close": "before"}, {"json": {}})
    with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        httpx.get(server.begin(script))
    assert len(server.end(script)) == 1


def test_half_of_the_body_is_sent_before_closing(server: ScriptedServer) -> None:
    url = httpx.URL(server.begin(case({"text": "0123456789", "close": "middle"})))
    with socket.create_connection((url.host, url.port)) as connection:
        connection.sendall(f"GET {url.path} HTTP/1.1\r\nHost: {url.host}\r\n\r\n".encode())
        received = b"".join(iter(lambda: connection.recv(4096), b""))
    assert b"Content-Length: 10\r\n" in received
    assert received.endswith(b"\r\n\r\n01234")


def test_request_for_another_case_is_not_recorded(server: ScriptedServer) -> None:
    script = case({"json": {}})
    url = server.begin(script)
    assert httpx.get(url.replace("a-case", "another")).status_code == 500
    assert server.end(script) == []


# ------------------------------------------------------- answers of the future


def test_every_object_gains_a_field() -> None:
    today = {
        "values": [{"node": 0, "tensor": {"dtype": "int8", "shape": []}}],
        "limits": {"nodes": 1},
        "attrs": {"axis": 0},
    }
    tomorrow = grown(today)
    assert FIELD in tomorrow
    assert FIELD in tomorrow["values"][0]
    assert FIELD in tomorrow["values"][0]["tensor"]
    assert tomorrow["limits"] == {"nodes": 1, FIELD: 0}
    assert tomorrow["attrs"] == {"axis": 0}


def test_catalogue_gains_an_op_and_ops_gain_a_dtype() -> None:
    tomorrow = grown({"opset": 1, "ops": [{"name": "add", "dtypes": ["int8"]}]})
    assert tomorrow["ops"][-1] == OP
    assert tomorrow["ops"][0]["dtypes"] == ["int8", DTYPE]
    assert expected({"ops": [{"name": "add"}]}) == {"ops": [{"name": "add"}, {"name": OP["name"]}]}


def test_codes_of_422_change() -> None:
    problem = {"status": 422, "code": "bad_tensor", "errors": [{"status": 422, "code": "bad_tensor"}]}
    tomorrow = grown(problem)
    assert tomorrow["code"] == tomorrow["errors"][0]["code"] == CODE + "bad_tensor"
    result = expected({"raised": {"type": "graph"} | problem})["raised"]
    assert result["code"] == result["errors"][0]["code"] == CODE + "bad_tensor"
    assert grown({"status": 503, "code": "worker_died"})["code"] == "worker_died"


def test_file_headers_are_padded() -> None:
    today = to_file({"values.0": ONE}, {"response": "{}"}, 4000)
    for file in (today, grown_body("application/vnd.safetensors", today)):
        assert len(file) == 8 + 4000 + 8
        assert from_file(file)[1] == {"values.0": ONE}


def test_files_gain_fields() -> None:
    today = to_file({"values.0": ONE}, {"response": json.dumps({"values": [{"node": 0}]})})
    metadata, tensors = from_file(grown_body("application/vnd.safetensors", today))
    assert tensors == {"values.0": ONE}
    assert FIELD in json.loads(metadata["response"])["values"][0]


@pytest.mark.parametrize("body", [b'{"a": 1', b"", b"\xff"])
def test_broken_bodies_are_unchanged(body: bytes) -> None:
    for kind in ("application/json", "application/vnd.safetensors"):
        assert grown_body(kind, body) == body


def test_future_server_extends_its_answers() -> None:
    script = case({"json": {"a": 1}}, {"status": 422, "json": {"status": 422, "code": "bad_tensor"}})
    with scripted_server(future=True) as tomorrow:
        url = tomorrow.begin(script)
        assert FIELD in httpx.get(url).json()
        assert httpx.get(url).json()["code"] == CODE + "bad_tensor"
