"""Errors: what is in them, and what never is; and answers of which too much comes."""

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
from clients.python.tests.scripted import FORWARD, answer, client_of, problem, square
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
def test_errors_are_by_what_one_does_about_them(status: int, kind: type[gs.GradserveError]) -> None:
    client, _, _ = client_of([problem(status, "a_code_of_tomorrow")], retries=0)
    with pytest.raises(kind) as caught:
        client.forward(square()[0])
    assert isinstance(caught.value, gs.Refusal)
    assert (caught.value.status, caught.value.code) == (status, "a_code_of_tomorrow")


def test_all_fields_of_the_report_are_there() -> None:
    one = {"status": 422, "code": "shape_mismatch", "detail": "it does not fit", "node": 1, "operand": 0}
    report = {
        **one, "type": "/docs/errors/shape_mismatch", "title": "Shapes do not fit", "request_id": "abc",
        "expected": "this", "got": "that", "pointer": "/graph/nodes/1", "errors": [one], "hint": {"later": 1},
    }  # fmt: skip
    client, _, _ = client_of([answer(422, report)])
    graph, _, value = square()
    with pytest.raises(gs.GraphError) as caught:
        client.forward(graph)
    error = caught.value
    assert {name: getattr(error, name) for name in report if name not in ("errors", "hint")} == {
        name: value for name, value in report.items() if name not in ("errors", "hint")
    }
    assert (error.extra, error.errors[0].operand) == ({"hint": {"later": 1}}, 0)
    assert str(error) == f"shape_mismatch: it does not fit (node 1 was written at {value.line})"


def test_a_page_of_a_proxy_has_a_status_alone() -> None:
    client, _, _ = client_of([httpx.Response(502, text="<html>")])
    with pytest.raises(gs.ServerError, match="status 502") as caught:
        client.forward(square()[0])
    assert (caught.value.code, caught.value.detail) == ("", "")


def test_the_tree_is_drawn_as_it_is() -> None:
    named = [name for name, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, Exception)]
    drawn = errors.__doc__ or ""
    assert not [name for name in named if name not in drawn]
    assert {*named} <= {*gs.__all__}


@pytest.mark.parametrize("how", ["argument", "environment"])
@pytest.mark.parametrize("reply", [problem(401, "unauthenticated"), httpx.ReadError("lost"), httpx.Response(302)])
def test_the_key_is_in_requests_and_nowhere_else(
    how: str, reply: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("GRADSERVE_API_KEY", KEY if how == "environment" else "gs_another")
    caplog.set_level(logging.DEBUG)
    client, script, _ = client_of([reply], retries=0, **({"api_key": KEY} if how == "argument" else {}))
    with pytest.raises(gs.GradserveError) as caught:
        client.forward(square()[0])
    assert script.came[0].headers["authorization"] == f"Bearer {KEY}"
    told = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert KEY not in told + caplog.text + repr(client) + repr(caught.value)


def test_a_key_that_no_header_can_have_is_refused_and_not_shown() -> None:
    with pytest.raises(gs.InputError) as caught:
        gs.Client("http://localhost", api_key=f"{KEY}\n")
    assert KEY not in str(caught.value)


def test_without_a_key_none_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADSERVE_API_KEY", raising=False)
    client, script, _ = client_of([answer(200, FORWARD)])
    client.forward(square()[0])
    assert "authorization" not in script.came[0].headers


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://localhost", "http://", "http://[::1"])
def test_what_is_no_url_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(gs.InputError):
        gs.Client(url)


class Endless(httpx.SyncByteStream):
    """A body that says how much of it was read."""

    def __init__(self) -> None:
        self.read = 0

    def __iter__(self) -> Any:
        while True:
            self.read += 1000
            yield b" " * 1000


def test_an_answer_that_is_too_long_is_not_read_on() -> None:
    body = Endless()
    client, script, _ = client_of([httpx.Response(200, stream=body)], max_response_bytes=5000)
    with pytest.raises(gs.AnswerTooLarge, match="max_response_bytes"):
        client.forward(square()[0])
    assert body.read == 6000
    assert len(script.came) == 1


def test_an_answer_that_says_that_it_is_too_long_is_not_read_at_all() -> None:
    body = Endless()
    reply = httpx.Response(200, stream=body, headers={"Content-Length": "5001"})
    client, _, _ = client_of([reply], max_response_bytes=5000)
    with pytest.raises(gs.AnswerTooLarge):
        client.forward(square()[0])
    assert body.read == 0


def test_an_answer_that_only_drips_is_over_with_the_deadline() -> None:
    client, _, clock = client_of([], timeout=3)

    class Dripping(Endless):
        def __iter__(self) -> Any:
            for chunk in super().__iter__():
                clock.now += 1
                yield chunk

    client._transport._http._transport.replies.append(httpx.Response(200, stream=Dripping()))
    with pytest.raises(gs.DeadlineError):
        client.forward(square()[0])
    assert clock.now == 3


def test_nothing_compressed_is_asked_for_or_read() -> None:
    reply = httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=Endless())
    client, script, _ = client_of([reply])
    with pytest.raises(gs.MalformedAnswer, match="compressed"):
        client.forward(square()[0])
    assert script.came[0].headers["accept-encoding"] == "identity"


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
def test_what_is_not_as_promised(reply: httpx.Response) -> None:
    client, _, _ = client_of([reply])
    with pytest.raises(gs.MalformedAnswer):
        client.forward(square()[0])


def test_fields_that_are_not_known_are_kept() -> None:
    client, _, _ = client_of([answer(200, FORWARD | {"later": {"a": 1}})])
    assert client.forward(square()[0]).fields["later"] == {"a": 1}


@pytest.mark.parametrize(
    "members",
    [
        {"detail": 7, "node": "first", "errors": None},
        {"errors": [1, {"code": "bad_tensor"}]},
        {"node": True, "operand": 0.5, "expected": [], "request_id": None},
    ],
)
def test_members_of_other_types_are_as_if_absent(members: Any) -> None:
    client, _, _ = client_of([problem(422, "bad_tensor", **members)])
    with pytest.raises(gs.GraphError) as caught:
        client.forward(square()[0])
    error = caught.value
    assert (error.node, error.operand, error.expected, error.request_id) == (None, None, None, "")
    assert [(one.status, one.code) for one in error.errors] in ([], [(422, "bad_tensor")])


def test_a_refusal_goes_between_processes() -> None:
    client, _, _ = client_of([problem(503, "queue_full", 7, node=1, hint=[1])], retries=0)
    with pytest.raises(gs.OverloadError) as caught:
        client.forward(square()[0])
    there = pickle.loads(pickle.dumps(caught.value))
    assert type(there) is gs.OverloadError
    assert str(there) == str(caught.value)
    assert (there.node, there.extra, there.retry_after) == (1, {"hint": [1]}, 7)
