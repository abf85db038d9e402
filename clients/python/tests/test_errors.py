"""Errors: their fields, and the key that they never contain; and oversized answers."""

from __future__ import annotations

import inspect
import logging
import pickle
import traceback
from typing import Any

import httpx
import numpy as np
import pytest

import gradserve_client as gs
from clients.python.tests.scripted import FORWARD, answer, problem, scripted_client, square
from gradserve_client import errors, safetensors

KEY = "gs_a_secret_of_many_letters"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, gs.GraphError), (401, gs.AuthenticationError), (403, gs.AuthenticationError), (404, gs.NotFoundError),
        (405, gs.GraphError), (408, gs.DeadlineRefusal), (409, gs.ConditionError), (412, gs.ConditionError),
        (413, gs.GraphError), (422, gs.GraphError), (429, gs.RateError), (500, gs.ServerError), (502, gs.ServerError),
        (503, gs.OverloadError), (504, gs.DeadlineError), (507, gs.StoreFullError), (599, gs.ServerError),
    ],
)  # fmt: skip
def test_status_selects_the_error_class(status: int, kind: type[gs.GradserveError]) -> None:
    client, _, _ = scripted_client([problem(status, "a_code_of_tomorrow")], retries=0)
    with pytest.raises(kind) as caught:
        client.forward(square()[0])
    assert isinstance(caught.value, gs.Refusal)
    assert (caught.value.status, caught.value.code) == (status, "a_code_of_tomorrow")


def test_error_has_all_fields_of_the_report() -> None:
    one = {"status": 422, "code": "shape_mismatch", "detail": "it does not fit", "node": 1, "operand": 0}
    report = {
        **one, "type": "/docs/errors/shape_mismatch", "title": "Shapes do not fit", "request_id": "abc",
        "expected": "this", "got": "that", "pointer": "/graph/nodes/1", "errors": [one], "hint": {"later": 1},
    }  # fmt: skip
    client, _, _ = scripted_client([answer(422, report)])
    graph, _, value = square()
    with pytest.raises(gs.GraphError) as caught:
        client.forward(graph)
    error = caught.value
    assert {name: getattr(error, name) for name in report if name not in ("errors", "hint")} == {
        name: value for name, value in report.items() if name not in ("errors", "hint")
    }
    assert (error.extra, error.errors[0].operand) == ({"hint": {"later": 1}}, 0)
    assert str(error) == f"shape_mismatch: it does not fit (node 1 was written at {value.line})"


def test_proxy_page_becomes_an_error_with_a_status() -> None:
    client, _, _ = scripted_client([httpx.Response(502, text="<html>")])
    with pytest.raises(gs.ServerError, match="status 502") as caught:
        client.forward(square()[0])
    assert (caught.value.code, caught.value.detail) == ("", "")


def test_docstring_draws_the_whole_class_tree() -> None:
    named = [name for name, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, Exception)]
    drawn = errors.__doc__ or ""
    assert not [name for name in named if name not in drawn]
    assert {*named} <= {*gs.__all__}


@pytest.mark.parametrize("how", ["argument", "environment"])
@pytest.mark.parametrize("reply", [problem(401, "unauthenticated"), httpx.ReadError("lost"), httpx.Response(302)])
def test_api_key_appears_only_in_requests(
    how: str, reply: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("GRADSERVE_API_KEY", KEY if how == "environment" else "gs_another")
    caplog.set_level(logging.DEBUG)
    client, script, _ = scripted_client([reply], retries=0, **({"api_key": KEY} if how == "argument" else {}))
    with pytest.raises(gs.GradserveError) as caught:
        client.forward(square()[0])
    assert script.received[0].headers["authorization"] == f"Bearer {KEY}"
    text = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert KEY not in text + caplog.text + repr(client) + repr(caught.value)


def test_invalid_key_is_refused_without_showing_it() -> None:
    with pytest.raises(gs.InputError) as caught:
        gs.Client("http://localhost", api_key=f"{KEY}\n")
    assert KEY not in str(caught.value)


def test_no_authorization_header_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADSERVE_API_KEY", raising=False)
    client, script, _ = scripted_client([answer(200, FORWARD)])
    client.forward(square()[0])
    assert "authorization" not in script.received[0].headers


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://localhost", "http://", "http://[::1"])
def test_invalid_server_url_is_refused(url: str) -> None:
    with pytest.raises(gs.InputError):
        gs.Client(url)


class Endless(httpx.SyncByteStream):
    """An endless body that counts the bytes read."""

    def __init__(self) -> None:
        self.read = 0

    def __iter__(self) -> Any:
        while True:
            self.read += 1000
            yield b" " * 1000


def test_reading_stops_at_the_size_limit() -> None:
    body = Endless()
    client, script, _ = scripted_client([httpx.Response(200, stream=body)], max_response_bytes=5000)
    with pytest.raises(gs.AnswerTooLarge, match="max_response_bytes"):
        client.forward(square()[0])
    assert body.read == 6000
    assert len(script.received) == 1


def test_oversized_content_length_is_not_read() -> None:
    body = Endless()
    reply = httpx.Response(200, stream=body, headers={"Content-Length": "5001"})
    client, _, _ = scripted_client([reply], max_response_bytes=5000)
    with pytest.raises(gs.AnswerTooLarge):
        client.forward(square()[0])
    assert body.read == 0


def test_slow_answer_ends_at_the_deadline() -> None:
    client, _, clock = scripted_client([], timeout=3)

    class Dripping(Endless):
        def __iter__(self) -> Any:
            for chunk in super().__iter__():
                clock.now += 1
                yield chunk

    client._transport._http._transport.replies.append(httpx.Response(200, stream=Dripping()))
    with pytest.raises(gs.DeadlineError):
        client.forward(square()[0])
    assert clock.now == 3


def test_compressed_answers_are_refused() -> None:
    reply = httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=Endless())
    client, script, _ = scripted_client([reply])
    with pytest.raises(gs.MalformedAnswer, match="compressed"):
        client.forward(square()[0])
    assert script.received[0].headers["accept-encoding"] == "identity"


def file(metadata: dict[str, str], **tensors: Any) -> httpx.Response:
    arrays = {name.replace("_", "."): np.asarray(array) for name, array in tensors.items()}
    body = b"".join(safetensors.encode(arrays, metadata))
    return httpx.Response(200, content=body, headers={"Content-Type": "application/vnd.safetensors"})


@pytest.mark.parametrize(
    "reply",
    [
        answer(200, []),
        answer(200, {}),
        answer(200, {"values": [{"node": 1}]}),
        answer(200, {"values": [{"node": 1, "tensor": {"dtype": "float64", "shape": [2], "data": [1]}}]}),
        answer(200, {"values": 3}),
        file({}, values_1=9.0),
        file({"response": '{"values": [{"node": 1}]}'}, values_0=9.0),
        file({"response": "{"}, values_1=9.0),
    ],
)
def test_malformed_answers_are_refused(reply: httpx.Response) -> None:
    client, _, _ = scripted_client([reply])
    with pytest.raises(gs.MalformedAnswer):
        client.forward(square()[0])


def test_unknown_fields_are_preserved() -> None:
    client, _, _ = scripted_client([answer(200, FORWARD | {"later": {"a": 1}})])
    assert client.forward(square()[0]).fields["later"] == {"a": 1}


@pytest.mark.parametrize(
    "members",
    [
        {"detail": 7, "node": "first", "errors": None},
        {"errors": [1, {"code": "bad_tensor"}]},
        {"node": True, "operand": 0.5, "expected": [], "request_id": None},
    ],
)
def test_members_of_wrong_types_are_ignored(members: Any) -> None:
    client, _, _ = scripted_client([problem(422, "bad_tensor", **members)])
    with pytest.raises(gs.GraphError) as caught:
        client.forward(square()[0])
    error = caught.value
    assert (error.node, error.operand, error.expected, error.request_id) == (None, None, None, "")
    assert [(one.status, one.code) for one in error.errors] in ([], [(422, "bad_tensor")])


def test_refusal_survives_pickling() -> None:
    client, _, _ = scripted_client([problem(503, "queue_full", 7, node=1, hint=[1])], retries=0)
    with pytest.raises(gs.OverloadError) as caught:
        client.forward(square()[0])
    restored = pickle.loads(pickle.dumps(caught.value))
    assert type(restored) is gs.OverloadError
    assert str(restored) == str(caught.value)
    assert (restored.node, restored.extra, restored.retry_after) == (1, {"hint": [1]}, 7)
