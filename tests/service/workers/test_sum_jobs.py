"""What a worker does of a sum: says that it may be cut, runs pieces, and puts them together."""

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
ASKED: Json = {
    "graph": {"nodes": NODES},
    "feeds": [feed(0, [D, D], W.ravel().tolist()), feed(1, [N, D], X.ravel().tolist())],
    "mapped": [1],
    "reduce": "mean",
    "block": 64,
    "encoding": "base64",
}


def job(asked: Json = ASKED, **more: Any) -> Task:
    return Task("batch", orjson.dumps(asked), "id", 60.0, time.monotonic() + 60, **more)


def piece(first: int, stop: int) -> Reply:
    reply = WORKER(job(part=Piece(first, stop)))
    assert (reply.status, reply.media_type) == (200, PIECE_SUMS), reply.body
    return reply


def test_what_may_be_cut_says_so() -> None:
    found = WORKER.attempt(job(may_divide=True))
    assert isinstance(found, Divisible)
    assert (found.blocks, found.nbytes, found.reads) == (32, 8 * (1 + D * D), [])
    assert found.seconds > 0.01
    assert found.reading > 0
    assert found.response_bytes > found.nbytes


def of_examples(count: int) -> Json:
    return {"feeds": [ASKED["feeds"][0], feed(1, [count, D], X[:count].ravel().tolist())]}


@pytest.mark.parametrize(
    "changed",
    [{"block": N}, {"diagnose": True}, of_examples(64) | {"block": 2}],
    ids=["one block", "looked at", "short"],
)
def test_what_is_better_done_by_one_is_done(changed: Json) -> None:
    reply = WORKER.attempt(job(ASKED | changed, may_divide=True))
    assert isinstance(reply, Reply)
    assert reply.status == 200
    assert orjson.loads(reply.body)["stats"]["pieces"] == 1
    assert isinstance(WORKER.attempt(job(may_divide=False), 0.001), TooLong)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 4, 16, 32])
def test_pieces_come_to_the_bits_of_the_whole(size: int) -> None:
    whole = orjson.loads(WORKER(job()).body)
    pieces = [piece(at, min(at + size, 32)) for at in range(0, 32, size)]
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
def test_the_last_piece_may_have_fewer_blocks_and_examples() -> None:
    asked = ASKED | {"feeds": [ASKED["feeds"][0], feed(1, [N - 70, D], X[70:].ravel().tolist())]}
    whole = orjson.loads(WORKER(job(asked)).body)
    pieces = [WORKER(job(asked, part=Piece(at, min(at + 8, 31)))) for at in range(0, 31, 8)]
    data = b"".join(each.body for each in pieces)
    total = WORKER(job(asked, part=Total(4, 0, 0.0, "uncompiled", "float32", 1, len(data)), sums=data))
    assert orjson.loads(total.body)["gradients"] == whole["gradients"]


def test_another_server_gets_all_blocks_and_how_they_were_run() -> None:
    asked = WORKER(job(answer_type=PIECE_SUMS))
    assert asked.body == piece(0, 32).body
    report, seconds = read_run(asked.headers)
    assert report == RunReport("uncompiled", "float32")
    assert seconds > 0
    assert not asked.stored


def test_nothing_else_has_pieces() -> None:
    asked = {key: value for key, value in (ASKED | of_examples(4)).items() if key not in ("reduce", "block")}
    reply = WORKER(job(asked, answer_type=PIECE_SUMS))
    assert (reply.status, orjson.loads(reply.body)["code"]) == (406, "not_acceptable")
    assert WORKER(replace(job(), answer_type=JSON)).status == 200


def request_of(first: int, stop: int, asked: Json = ASKED, **more: Any) -> Reply:
    reply = WORKER(job(asked, part=PieceRequest(first, stop), **more))
    assert (reply.status, reply.media_type) == (200, SAFETENSORS), reply.body
    return reply


def answered(request: Reply, **more: Any) -> Reply:
    """What another server says to it."""
    return WORKER(Task("batch", request.body, "id", 60.0, time.monotonic() + 60, SAFETENSORS, PIECE_SUMS, **more))


@pytest.mark.parametrize(("first", "stop"), [(0, 4), (8, 12), (28, 32)])
def test_another_server_comes_to_the_same_bits(first: int, stop: int) -> None:
    request = request_of(first, stop)
    assert answered(request).body == piece(first, stop).body
    assert len(request.body) < 8 * (D * D + 4 * 64 * D) + 2000, "only its rows go there"


def test_what_came_beside_the_request_goes_on() -> None:
    graph = {"nodes": [*NODES[:4], node("constant"), node("mul", 3, 4), node("sum", 5)]}
    fields = {"graph": graph, "mapped": [1], "reduce": "sum", "block": 64, "store": [{"node": 6, "tensor_id": "s"}]}
    arrays = {"feeds.0": W, "feeds.1": X, "constants.4": np.full(D, 2.0)}
    sent = save(arrays, metadata={"request": orjson.dumps(fields).decode()})

    def of(part: Any) -> Reply:
        return WORKER(Task("batch", sent, "id", 60.0, time.monotonic() + 60, SAFETENSORS, SAFETENSORS, part=part))

    reply = answered(of(PieceRequest(4, 8)))
    assert reply.body == of(Piece(4, 8)).body
    assert not reply.stored


def version(array: Any, etag: str) -> Version:
    return Version(etag, array)


def test_rows_of_resident_tensors_are_named_and_not_sent() -> None:
    feeds = [{"node": 0, "tensor_id": "w"}, {"node": 1, "tensor_id": "x", "rows": [16, N]}]
    asked = ASKED | {"feeds": feeds}
    known = {"w": version(W, "a" * 16), "x": version(X, "b" * 16)}
    request = request_of(4, 8, asked, resident=known.get)
    assert len(request.body) < 2000
    there = answered(request, resident=known.get)
    assert there.body == WORKER(job(asked, part=Piece(4, 8), resident=known.get)).body
    again = request_of(4, 8, asked, resident=known.get)
    assert dict(request.headers) == dict(again.headers)
    assert dict(request.headers) != dict(request_of(8, 12, asked, resident=known.get).headers)
    for changed in ({"w": version(W, "c" * 16)}, {"x": None}):
        refused = answered(request, resident={**known, **changed}.get)
        code = orjson.loads(refused.body)["code"]
        assert (refused.status, code) in [(412, "precondition_failed"), (404, "not_found")]
