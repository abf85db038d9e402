"""The jobs of resident tensors: put and get, and errors in malformed or missing tensors."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import orjson
import pytest
from safetensors.numpy import load, save

from engine import Limits
from engine.ir.errors import OverBudget
from service.api.media import JSON, SAFETENSORS
from service.api.residents import Version
from service.core.errors import Refusal
from service.core.settings import Settings
from service.store.writes import Stored
from service.workers.executions.execution import TaskContext
from service.workers.store_tasks import TensorTasks
from service.workers.task import GET_TENSOR, PUT_TENSOR, NeedsTensors, NotDone, Reply, Task, TooLong
from tests.service.support import tensor

X = np.array([[1.5, -2.0, 3.0]], "float32")
JOBS = TensorTasks(Settings(device="cpu"), Limits())


def context(call: str, body: bytes, most: float | None = None, **stated: Any) -> TaskContext:
    return TaskContext(Task(call, body, "id", 60.0, time.monotonic() + 60.0, **stated), most)


def put(body: bytes, name: str = "w", **stated: Any) -> Reply:
    return JOBS.put(context(PUT_TENSOR, body, subject=name, **stated))


def get(query: dict[str, str], array: Any = X, most: float | None = None, **stated: Any) -> Reply | NotDone:
    residents = {"w": Version("tag", array)}.get
    return JOBS.get(context(GET_TENSOR, orjson.dumps(query), most, resident=residents, **stated))


@pytest.mark.parametrize("binary", [False, True])
def test_put_stores_the_bytes_of_the_tensor(binary: bool) -> None:
    sent = SAFETENSORS if binary else JSON
    body = save({"any": X}) if binary else orjson.dumps(tensor([1, 3], X.tolist()[0], "float32"))
    reply = put(body, body_type=sent)
    (stored,), (data,) = reply.stored, reply.stored_data
    assert (stored.name, stored.dtype, stored.shape) == ("w", "float32", (1, 3))
    assert bytes(data) == X.tobytes()
    content = orjson.loads(reply.body)
    assert (content["tensor_id"], content["bytes"], content["etag"]) == ("w", 12, stored.etag)
    assert all(part >= 0 for part in reply.timings)


def test_each_version_has_its_own_etag() -> None:
    body = orjson.dumps(tensor([1], [1.0]))
    assert put(body).stored[0].etag != put(body).stored[0].etag


@pytest.mark.parametrize(
    ("body", "name", "said"),
    [
        (orjson.dumps(tensor([3], [1.0])), "w", "bad_tensor"),
        (b"{", "w", "invalid_json"),
        (orjson.dumps(tensor([1], [1.0])), "no/name", "invalid_field"),
    ],
)
def test_error_in_a_tensor_refers_to_the_body(body: bytes, name: str, said: str) -> None:
    with pytest.raises(Refusal) as refused:
        put(body, name)
    assert refused.value.code == said
    if said == "bad_tensor":
        assert refused.value.detail.startswith("the tensor ")
        assert refused.value.pointer == "/data"


@pytest.mark.parametrize("encoding", ["json", "base64"])
def test_get_in_the_requested_encoding(encoding: str) -> None:
    reply = get({"tensor_id": "w", "encoding": encoding})
    assert isinstance(reply, Reply)
    content = orjson.loads(reply.body)
    assert (content["tensor_id"], content["etag"], content["tensor"]["shape"]) == ("w", "tag", [1, 3])
    assert reply.headers == (("ETag", '"tag"'),)
    assert ("data" in content["tensor"] and content["tensor"]["data"] == [1.5, -2.0, 3.0]) == (encoding == "json")


def test_get_as_safetensors() -> None:
    reply = get({"tensor_id": "w"}, answer_type=SAFETENSORS)
    assert isinstance(reply, Reply)
    (array,) = load(reply.body).values()
    np.testing.assert_array_equal(array, X)
    assert reply.media_type == SAFETENSORS


def test_missing_tensor_is_requested_or_not_found() -> None:
    assert get({"tensor_id": "v"}, may_ask=True) == NeedsTensors(["v"])
    with pytest.raises(Refusal) as refused:
        get({"tensor_id": "v"})
    assert refused.value.code == "not_found"


def test_slow_get_is_too_long_for_the_quick_worker() -> None:
    large = np.zeros(200_000)
    for options, seconds in ({"encoding": "json"}, large.nbytes / 50e6), ({"encoding": "base64"}, large.nbytes / 2e9):
        result = get({"tensor_id": "w", **options}, large, most=seconds * 0.99)
        assert isinstance(result, TooLong)
        assert result.estimate.seconds == pytest.approx(seconds)
        assert isinstance(get({"tensor_id": "w", **options}, large, most=seconds * 1.01), Reply)


def test_get_respects_max_response_bytes() -> None:
    small = TensorTasks(Settings(device="cpu", max_response_bytes=1000), Limits())
    get_context = context(GET_TENSOR, b'{"tensor_id": "w"}', resident={"w": Version("tag", np.zeros(1000))}.get)
    with pytest.raises(OverBudget, match="the limit is 1000"):
        small.get(get_context)


def test_summary_of_a_pending_write_states_its_delay() -> None:
    content = Stored("w", "tag", "int8", (2, 2)).summary()
    assert {"tensor_id": "w", "dtype": "int8", "shape": (2, 2), "bytes": 4, "etag": "tag"}.items() <= content.items()
    assert Stored("w", "tag", "int8", (2, 2)).summary(7) == {**content, "written_within_ms": 7}
