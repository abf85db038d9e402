"""The part of a worker in a sum: reporting that it is divisible, running pieces, and combining them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest
from safetensors.numpy import save

from engine.ir.run_report import RunReport
from service.api.media import JSON, PIECE_SUMS, SAFETENSORS
from service.api.residents import Version
from service.core.settings import Settings
from service.workers.task import Divisible, Piece, PieceRequest, Reply, Task, TooLong, Total, read_run
from service.workers.worker import Worker
from tests.service.support import Json, feed, node

WORKER = Worker(Settings(device="cpu", compile="off"))
N, D = 2000, 256
X = np.random.default_rng(3).standard_normal((N, D))
W = np.random.default_rng(4).standard_normal((D, D)) / D
NODES = [node("parameter"), node("input"), node("matmul", 1, 0), node("tanh", 2), node("sum", 3)]
REQUEST: Json = {
    "graph": {"nodes": NODES},
    "feeds": [feed(0, [D, D], W.ravel().tolist()), feed(1, [N, D], X.ravel().tolist())],
    "mapped": [1],
    "reduce": "mean",
    "block": 64,
    "encoding": "base64",
}


def job(body: Json = REQUEST, **more: Any) -> Task:
    return Task("batch", orjson.dumps(body), "id", 60.0, time.monotonic() + 60, **more)


def piece(first: int, stop: int) -> Reply:
    reply = WORKER(job(part=Piece(first, stop)))
    assert (reply.status, reply.media_type) == (200, PIECE_SUMS), reply.body
    return reply


def test_divisible_job_is_reported() -> None:
    result = WORKER.attempt(job(may_divide=True))
    assert isinstance(result, Divisible)
    assert (result.blocks, result.nbytes, result.reads) == (32, 8 * (1 + D * D), [])
    assert result.seconds > 0.01
    assert result.reading > 0
    assert result.response_bytes > result.nbytes


def feeds_for(count: int) -> Json:
    return {"feeds": [REQUEST["feeds"][0], feed(1, [count, D], X[:count].ravel().tolist())]}


@pytest.mark.parametrize(
    "changed",
    [{"block": N}, {"diagnose": True}, feeds_for(64) | {"block": 2}],
    ids=["one block", "looked at", "short"],
)
def test_job_not_worth_dividing_is_done(changed: Json) -> None:
    reply = WORKER.attempt(job(REQUEST | changed, may_divide=True))
    assert isinstance(reply, Reply)
    assert reply.status == 200
    assert orjson.loads(reply.body)["stats"]["pieces"] == 1
    assert isinstance(WORKER.attempt(job(may_divide=False), 0.001), TooLong)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 4, 16, 32])
def test_pieces_give_the_same_bits_as_the_whole(size: int) -> None:
    whole = orjson.loads(WORKER(job()).body)
    pieces = [piece(start, min(start + size, 32)) for start in range(0, 32, size)]
    data = b"".join(each.body for each in pieces)
    total = job(part=Total(len(pieces), 2, 1.5, "compiled", "tf32", 1, len(data)), sums=data)
    answer = orjson.loads(WORKER(total).body)
    assert answer["gradients"] == whole["gradients"]
    assert answer["values"] == whole["values"]
    stats = answer["stats"]
    assert (stats["pieces"], stats["repeated"], stats["tier"], stats["precision"]) == (
        len(pieces),
        2,
        "compiled",
        "tf32",
    )
    assert 1500 <= stats["execute_ms"] < 3000
    assert whole["stats"]["pieces"] == 1


@pytest.mark.slow
def test_last_piece_may_have_fewer_blocks_and_examples() -> None:
    body = REQUEST | {"feeds": [REQUEST["feeds"][0], feed(1, [N - 70, D], X[70:].ravel().tolist())]}
    whole = orjson.loads(WORKER(job(body)).body)
    pieces = [WORKER(job(body, part=Piece(start, min(start + 8, 31)))) for start in range(0, 31, 8)]
    data = b"".join(each.body for each in pieces)
    total = WORKER(job(body, part=Total(4, 0, 0.0, "uncompiled", "float32", 1, len(data)), sums=data))
    assert orjson.loads(total.body)["gradients"] == whole["gradients"]


def test_remote_reply_has_all_sums_and_the_run_report() -> None:
    reply = WORKER(job(answer_type=PIECE_SUMS))
    assert reply.body == piece(0, 32).body
    report, seconds = read_run(reply.headers)
    assert report == RunReport("uncompiled", None)
    assert seconds > 0
    assert not reply.stored


def test_calls_without_a_sum_have_no_pieces() -> None:
    body = {key: value for key, value in (REQUEST | feeds_for(4)).items() if key not in ("reduce", "block")}
    reply = WORKER(job(body, answer_type=PIECE_SUMS))
    assert (reply.status, orjson.loads(reply.body)["code"]) == (406, "not_acceptable")
    assert WORKER(replace(job(), answer_type=JSON)).status == 200


def piece_request(first: int, stop: int, body: Json = REQUEST, **more: Any) -> Reply:
    reply = WORKER(job(body, part=PieceRequest(first, stop), **more))
    assert (reply.status, reply.media_type) == (200, SAFETENSORS), reply.body
    return reply


def answer_piece(request: Reply, **more: Any) -> Reply:
    """The reply of another server to a piece request."""
    return WORKER(Task("batch", request.body, "id", 60.0, time.monotonic() + 60, SAFETENSORS, PIECE_SUMS, **more))


@pytest.mark.parametrize(("first", "stop"), [(0, 4), (8, 12), (28, 32)])
def test_another_server_gives_the_same_bits(first: int, stop: int) -> None:
    request = piece_request(first, stop)
    assert answer_piece(request).body == piece(first, stop).body
    assert len(request.body) < 8 * (D * D + 4 * 64 * D) + 2000, "only its rows go there"


def test_safetensors_constants_are_forwarded() -> None:
    graph = {"nodes": [*NODES[:4], node("constant"), node("mul", 3, 4), node("sum", 5)]}
    fields = {"graph": graph, "mapped": [1], "reduce": "sum", "block": 64, "store": [{"node": 6, "tensor_id": "s"}]}
    arrays = {"feeds.0": W, "feeds.1": X, "constants.4": np.full(D, 2.0)}
    sent = save(arrays, metadata={"request": orjson.dumps(fields).decode()})

    def run_part(part: Any) -> Reply:
        return WORKER(Task("batch", sent, "id", 60.0, time.monotonic() + 60, SAFETENSORS, SAFETENSORS, part=part))

    reply = answer_piece(run_part(PieceRequest(4, 8)))
    assert reply.body == run_part(Piece(4, 8)).body
    assert not reply.stored


def version(array: Any, etag: str) -> Version:
    return Version(etag, array)


def test_resident_rows_are_sent_by_name() -> None:
    feeds = [{"node": 0, "tensor_id": "w"}, {"node": 1, "tensor_id": "x", "rows": [16, N]}]
    body = REQUEST | {"feeds": feeds}
    residents = {"w": version(W, "a" * 16), "x": version(X, "b" * 16)}
    request = piece_request(4, 8, body, resident=residents.get)
    assert len(request.body) < 2000
    remote_reply = answer_piece(request, resident=residents.get)
    assert remote_reply.body == WORKER(job(body, part=Piece(4, 8), resident=residents.get)).body
    again = piece_request(4, 8, body, resident=residents.get)
    assert dict(request.headers) == dict(again.headers)
    assert dict(request.headers) != dict(piece_request(8, 12, body, resident=residents.get).headers)
    for changed in ({"w": version(W, "c" * 16)}, {"x": None}):
        refused = answer_piece(request, resident={**residents, **changed}.get)
        code = orjson.loads(refused.body)["code"]
        assert (refused.status, code) in [(412, "precondition_failed"), (404, "not_found")]
