"""Calls that read resident tensors and store values: as if the tensors were sent and the values returned."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import numpy as np
import orjson
import pytest

from service.api.binary import write_one
from service.api.calls import calls, computing_calls
from service.api.media import JSON, SAFETENSORS
from service.api.residents import Version
from service.core.settings import Settings
from service.store.tables import TensorVersion
from service.store.writes import Stored
from service.workers.executions import executions
from service.workers.memory import HeapAllocation
from service.workers.residents import array_of
from service.workers.task import GET_TENSOR, PUT_TENSOR, NeedsTensors, Reply, Task, TooLong
from service.workers.worker import Worker
from tests.service.support import SQUARES, Json, feed, node, request, tensor
from tests.service.thread_pool import version_of

SETTINGS = Settings(device="cpu", compile="off", write_behind_ms=250)
WORKER = Worker(SETTINGS)

#: w − 0.25 · ∇ mean((w · x)²), as node 7
STEP = request(
    node("parameter"), node("input"), node("mul", 0, 1), node("square", 2), node("mean", 3), node("grad", 4, 0),
    node("mul_scalar", 5, scalar=0.25), node("sub", 0, 6),
)  # fmt: skip


class Residents:
    """Resident tensors as a front stores them."""

    def __init__(self, **arrays: Any) -> None:
        self.versions: dict[str, Version] = {}
        for name, array in arrays.items():
            self.put(name, np.asarray(array))

    def put(self, name: str, array: Any, etag: str = "0" * 16) -> None:
        memory = HeapAllocation(array.nbytes)
        memory.view[:] = array.tobytes()
        self.versions[name] = version_of(TensorVersion(array.dtype.name, array.shape, etag, memory))

    def commit(self, reply: Reply) -> None:
        """Store the values of a reply, as the front does once all conditions hold."""
        for stored, data in zip(reply.stored, reply.stored_data, strict=True):
            memory = HeapAllocation(len(data))
            memory.view[:] = data
            self.versions[stored.name] = version_of(TensorVersion(stored.dtype, stored.shape, stored.etag, memory))

    def array(self, name: str) -> Any:
        return self.versions[name].array


def make_task(body: Json | bytes, residents: Residents | None, call: str, **more: Any) -> Task:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    job = Task(call, sent, "id", 60.0, time.monotonic() + 60.0, **more)
    if residents is not None:
        job.resident = residents.versions.get
    return job


def ask(body: Json | bytes, residents: Residents | None = None, call: str = "forward", **more: Any) -> Reply:
    return WORKER(make_task(body, residents, call, **more))


def requested(body: Json | bytes, residents: Residents, call: str = "forward") -> list[str]:
    """The tensors that a worker with `may_ask` requests."""
    result = WORKER.attempt(make_task(body, residents, call, may_ask=True))
    assert isinstance(result, NeedsTensors)
    return list(result.names)


def answer(reply: Reply) -> Json:
    assert reply.status == 200, reply.body
    content: Json = orjson.loads(reply.body)
    return content


def refused(reply: Reply, status: int, code: str) -> Json:
    report: Json = orjson.loads(reply.body)
    assert (reply.status, report["code"]) == (status, code), report
    assert not reply.stored
    assert not reply.stored_data
    return report


def resident(i: int, name: str) -> Json:
    return {"node": i, "tensor_id": name}


def without_stats(reply: Reply) -> Json:
    return answer(reply) | {"stats": None}


@pytest.mark.parametrize("name", sorted(computing_calls()))
def test_resident_tensor_equals_a_sent_tensor(name: str) -> None:
    """Test every role; a repeated request finds other numbers under the same name."""
    body = next(iter(calls()[name].examples.values()))
    roles = [role for role in ("feeds", "cotangents", "tangents", "vectors") if role in body]
    residents, named = Residents(), dict(body)
    for scale in (1.0, -0.5, 3.0):
        sent = dict(body)
        for role in roles:
            sent[role] = [_scaled(entry, scale) for entry in body[role]]
            named[role] = [resident(entry["node"], f"{role}.{entry['node']}") for entry in body[role]]
            for entry in sent[role]:
                value = entry["tensor"]
                residents.put(
                    f"{role}.{entry['node']}", np.array(value["data"], value["dtype"]).reshape(value["shape"])
                )
        assert without_stats(ask(named, residents, name)) == without_stats(ask(sent, residents, name))


def _scaled(entry: Json, scale: float) -> Json:
    return entry | {"tensor": entry["tensor"] | {"data": [scale * x for x in entry["tensor"]["data"]]}}


def test_check_reads_a_resident_tensor() -> None:
    content = answer(ask(SQUARES | {"feeds": [resident(0, "w")]}, Residents(w=[1.0, 2.0]), "check"))
    assert content["passed"] is True


def test_version_of_another_type_is_replanned() -> None:
    body, residents = SQUARES | {"feeds": [resident(0, "w")]}, Residents(w=[1.0, 2.0])
    assert [ask(body, residents).cached for _ in range(2)] == [False, True]
    residents.put("w", np.float32([1, 2, 3]))
    assert answer(ask(body, residents))["values"][0]["tensor"] == tensor([], [14.0], "float32")
    residents.put("w", np.array([3.0, 4.0]))
    assert answer(ask(body, residents))["values"][0]["tensor"]["data"] == [25.0]


@pytest.mark.parametrize("times", [1, 3])
def test_stored_step_is_read_by_the_next_step(times: int) -> None:
    residents, x = Residents(w=[1.0, -2.0, 0.5]), np.array([0.5, 1.5, -1.0])
    expected = residents.array("w").copy()
    step = STEP | {
        "feeds": [resident(0, "w"), feed(1, [3], x.tolist())],
        "outputs": [4],
        "store": [{"node": 7, "tensor_id": "w"}],
    }
    for _ in range(times):
        reply = ask(step, residents)
        (stored,) = reply.stored
        expected = expected - 0.25 * 2 * expected * x * x / 3
        content = answer(reply)
        assert [value["node"] for value in content["values"]] == [4], "what is stored need not come back"
        assert content["stored"] == [{"node": 7, "tensor_id": "w", "etag": stored.etag, "durable": True}]
        assert stored == Stored("w", stored.etag, "float64", (3,))
        assert re.fullmatch("[0-9a-f]{16}", stored.etag)
        residents.commit(reply)
        np.testing.assert_allclose(residents.array("w"), expected, 1e-12)
    assert reply.cached == (times > 1)


def is_cached(body: Json, residents: Residents) -> bool:
    """Whether the request is answered without being read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(executions()["forward"]), "read_call", lambda *_: pytest.fail("it was read anew"))
        return ask(body, residents).status == 200


def test_conditional_store_is_a_cache_hit() -> None:
    residents = Residents(w=[1.0, -2.0, 0.5])
    step = STEP | {"feeds": [resident(0, "w"), feed(1, [3], [1, 2, 3])], "store": [{"node": 7, "tensor_id": "w"}]}
    first = ask(step, residents)
    assert first.stored[0].if_match is None
    for condition in ("*", "", first.stored[0].etag):
        conditional = step | {"store": [{"node": 7, "tensor_id": "w", "if_match": condition}]}
        assert is_cached(conditional, residents)
        assert ask(conditional, residents).stored[0].if_match == condition
    assert len({ask(step, residents).stored[0].etag for _ in range(5)}) == 5


def test_non_durable_store_reports_its_delay() -> None:
    body = SQUARES | {"store": [{"node": 1, "tensor_id": "s", "durable": False}, {"node": 1, "tensor_id": "t"}]}
    for _ in range(2):
        reply = ask(body)
        first, second = answer(reply)["stored"]
        assert (first["durable"], first["written_within_ms"]) == (False, 250)
        assert (second["durable"], second.get("written_within_ms")) == (True, None)
        assert [stored.durable for stored in reply.stored] == [False, True]
        assert [bytes(data) for data in reply.stored_data] == [np.array([1.0, 4.0]).tobytes()] * 2


@pytest.mark.parametrize("name", sorted(computing_calls()))
@pytest.mark.parametrize("accepted", [JSON, SAFETENSORS])
def test_every_call_stores_unanswered_nodes(name: str, accepted: str) -> None:
    """The value is the one that the node has in `forward`; for a batch, all of them."""
    body = next(iter(calls()[name].examples.values())) | {"store": [{"node": 1, "tensor_id": "squares"}]}
    plain = {name_of_field: part for name_of_field, part in body.items() if name_of_field != "store"}
    for _ in range(2):
        reply = ask(body, None, name, answer_type=accepted)
        (stored,), (data,) = reply.stored, reply.stored_data
        squares = np.square(np.array(body["feeds"][0]["tensor"]["data"])).reshape(body["feeds"][0]["tensor"]["shape"])
        np.testing.assert_array_equal(array_of(data, stored.dtype, stored.shape), squares)
        fields, plain_fields = _fields(reply, accepted), _fields(ask(plain, None, name, answer_type=accepted), accepted)
        assert fields.pop("stored")[0]["etag"] == stored.etag
        assert fields | {"stats": 0} == plain_fields | {"stats": 0}
        assert fields["stats"]["dtype"] == plain_fields["stats"]["dtype"]


def _fields(reply: Reply, accepted: str) -> Json:
    if accepted == JSON:
        return answer(reply)
    length = int.from_bytes(reply.body[:8], "little")
    header = orjson.loads(reply.body[8 : 8 + length])
    response: Json = orjson.loads(header["__metadata__"]["response"])
    return response


def test_leaves_outputs_and_odd_values_are_stored() -> None:
    """Store a feed, an answered node, NaN, a tensor without elements, and a scalar."""
    roots = request(node("input"), node("sqrt", 0), node("input"), node("sum", 2))
    body = roots | {
        "feeds": [resident(0, "a"), feed(2, [0], [])],
        "outputs": [1],
        "store": [{"node": i, "tensor_id": f"n{i}"} for i in range(4)],
    }
    for _ in range(2):
        residents = Residents(a=[-1.0, 4.0])
        residents.commit(ask(body, residents))
        np.testing.assert_array_equal(residents.array("n0"), [-1.0, 4.0])
        np.testing.assert_array_equal(residents.array("n1"), [np.nan, 2.0])
        assert residents.array("n2").shape == (0,)
        assert residents.array("n3").shape == ()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"])
def test_every_dtype_is_stored(dtype: str) -> None:
    body = request(node("input"), node("identity", 0), feeds=[resident(0, "x")])
    residents = Residents(x=np.array([[0, 1, 1]], dtype))
    reply = ask(body | {"store": [{"node": 1, "tensor_id": "y"}]}, residents)
    residents.commit(reply)
    assert residents.array("y").dtype == dtype
    np.testing.assert_array_equal(residents.array("y"), residents.array("x"))


def test_resident_tensors_with_diagnose_and_with_safetensors() -> None:
    body = SQUARES | {"feeds": [resident(0, "w")], "diagnose": True, "store": [{"node": 1, "tensor_id": "s"}]}
    reply = ask(body, Residents(w=[np.inf, 2.0]))
    assert answer(reply)["stats"]["first_nonfinite"]["node"] == 0
    assert len(reply.stored) == 1
    request_json = orjson.dumps(STEP | {"feeds": [resident(0, "w")], "outputs": [4]}).decode()
    x = np.array([1.0, 2.0])
    entry = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
    header = orjson.dumps({"__metadata__": {"request": request_json}, "feeds.1": entry})
    header += b" " * (-len(header) % 8)
    reply = ask(
        len(header).to_bytes(8, "little") + header + x.tobytes(), Residents(w=[2.0, 1.0]), body_type=SAFETENSORS
    )
    assert answer(reply)["values"][0]["tensor"]["data"] == [4.0]


W = {"graph": SQUARES["graph"]}
PLACE = {"node": 1, "tensor_id": "s"}
NAME = "1 to 128 characters from A-Z a-z 0-9 _ . -, not starting with a dot or hyphen"
REFUSALS: list[tuple[Json, int, str, str, str]] = [
    (W | {"feeds": [resident(0, "v")]}, 404, "not_found", "/feeds/0/tensor_id",
     "node 0: there is no resident tensor “v”; GET /v1/tensors lists the stored tensors"),
    (W | {"feeds": [resident(0, "../w")]}, 422, "invalid_field", "/feeds/0/tensor_id",
     f"node 0: feeds[0].tensor_id must be {NAME}, but is “../w”"),
    (W | {"feeds": [resident(0, "")]}, 422, "invalid_field", "/feeds/0/tensor_id",
     f"node 0: feeds[0].tensor_id must be {NAME}, but is empty"),
    (W | {"feeds": [SQUARES["feeds"][0] | {"tensor_id": "w"}]}, 422, "invalid_field", "/feeds/0/tensor_id",
     "node 0: feeds[0] has both tensor and tensor_id; one of them is expected"),
    (W | {"feeds": [{"node": 0, "tensor_id": 1}]}, 422, "invalid_field", "/feeds/0/tensor_id",
     "node 0: feeds[0].tensor_id must be a string, but is a whole number"),
    (W | {"feeds": [resident(0, "w"), SQUARES["feeds"][0]]}, 422, "invalid_field", "/feeds/1/node",
     "feeds name node 0 twice"),
    (W | {"feeds": [resident(1, "w")]}, 422, "unexpected_feed", "/feeds/0/node", ""),
    (SQUARES | {"store": [PLACE | {"node": 9}]}, 422, "bad_reference", "/store/0/node",
     "store names node 9, but the nodes are 0 to 2"),
    (SQUARES | {"store": [PLACE | {"tensor_id": "-s"}]}, 422, "invalid_field", "/store/0/tensor_id", ""),
    (SQUARES | {"store": [PLACE, PLACE | {"node": 2}]}, 422, "invalid_field", "/store/1/tensor_id",
     "store names the tensor “s” twice"),
    (SQUARES | {"store": [PLACE | {"if_match": "abc"}]}, 422, "invalid_field", "/store/0/if_match",
     "node 1: store[0].if_match must be an etag of 16 hexadecimal digits, * or empty, but is “abc”"),
    (SQUARES | {"store": [PLACE | {"if_match": 1}]}, 422, "invalid_field", "/store/0/if_match",
     "node 1: store[0].if_match must be a string, but is a whole number"),
    (SQUARES | {"store": [PLACE | {"durable": 1}]}, 422, "invalid_field", "/store/0/durable",
     "node 1: store[0].durable must be true or false, but is a whole number"),
    (SQUARES | {"store": [{"node": 1}]}, 422, "invalid_field", "/store/0/tensor_id",
     "node 1: store[0].tensor_id is required, but is missing or null"),
    (SQUARES | {"store": [PLACE | {"name": "s"}]}, 422, "invalid_field", "/store/0/name", ""),
    (SQUARES | {"store": {}}, 422, "invalid_field", "/store", "store must be a list, but is an object"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "code", "pointer", "detail"), REFUSALS)
def test_invalid_references_are_refused(body: Json, status: int, code: str, pointer: str, detail: str) -> None:
    """Send it twice: first alone, then after similar valid requests."""
    residents = Residents(w=[1.0, 2.0])
    for _ in range(2):
        report = refused(ask(body, residents), status, code)
        assert report.get("pointer", "") == pointer
        assert report["detail"] == detail or not detail
        ask(W | {"feeds": [resident(0, "w")]}, residents)
        ask(SQUARES | {"store": [PLACE]}, residents)


@pytest.mark.parametrize("call", ["plan", "differentiate", "check"])
def test_calls_without_a_run_refuse_store(call: str) -> None:
    body = next(iter(calls()[call].examples.values()))
    report = refused(ask(body | {"store": []}, call=call), 422, "invalid_field")
    assert report["pointer"] == "/store"


def test_empty_store_stores_nothing() -> None:
    reply = ask(SQUARES | {"store": []})
    assert "stored" not in answer(reply)
    assert not reply.stored


def test_deleted_tensor_is_missing_for_a_cached_request() -> None:
    residents, body = Residents(w=[1.0, 2.0]), W | {"feeds": [resident(0, "w")]}
    assert ask(body, residents).status == 200
    assert ask(body, residents).status == 200
    del residents.versions["w"]
    refused(ask(body, residents), 404, "not_found")


@pytest.mark.parametrize("seen", [False, True])
def test_worker_requests_all_missing_tensors(seen: bool) -> None:
    body = STEP | {"feeds": [resident(0, "w"), resident(1, "x")]}
    if seen:
        ask(body, Residents(w=[1.0, 2.0], x=[1.0, 2.0]))
    assert requested(body, Residents()) == ["w", "x"]
    assert requested(body, Residents(x=[1.0, 2.0])) == ["w", "x"], "or x might be dropped for w"
    assert ask(body, Residents(w=[1.0, 2.0], x=[1.0, 2.0]), may_ask=True).status == 200
    refused(ask(W | {"feeds": [resident(0, "-")]}, Residents(), may_ask=True), 422, "invalid_field")
    assert requested({"tensor_id": "w"}, Residents(), GET_TENSOR) == ["w"]


def put(body: Json | bytes, name: str = "w", **more: Any) -> Reply:
    return ask(body, None, PUT_TENSOR, subject=name, **more)


def test_put_and_get() -> None:
    reply = put(tensor([2, 2], [1, 2, 3, 4], "float32"))
    (stored,), (data,) = reply.stored, reply.stored_data
    assert stored == Stored("w", stored.etag, "float32", (2, 2))
    assert bytes(data) == np.float32([1, 2, 3, 4]).tobytes()
    assert answer(reply) == {
        "tensor_id": "w", "dtype": "float32", "shape": [2, 2], "bytes": 16, "etag": stored.etag, "durable": True,
    }  # fmt: skip
    residents = Residents()
    residents.commit(reply)
    response = ask({"tensor_id": "w"}, residents, GET_TENSOR)
    assert response.headers == (("ETag", f'"{stored.etag}"'),)
    expected = {"tensor_id": "w", "etag": stored.etag, "tensor": tensor([2, 2], [1, 2, 3, 4], "float32")}
    assert answer(response) == expected
    packed = answer(ask({"tensor_id": "w", "encoding": "base64"}, residents, GET_TENSOR))["tensor"]
    assert packed["data_b64"] == "AACAPwAAAEAAAEBAAACAQA=="
    whole = ask({"tensor_id": "w"}, residents, GET_TENSOR, answer_type=SAFETENSORS)
    again = put(whole.body, "again", body_type=SAFETENSORS)
    assert (again.stored[0].shape, bytes(again.stored_data[0])) == ((2, 2), bytes(data))


def test_get_of_a_large_tensor_is_too_long() -> None:
    residents = Residents(w=np.zeros(1 << 18))
    job = Task(GET_TENSOR, b'{"tensor_id":"w"}', "id", 60.0, time.monotonic() + 60.0, resident=residents.versions.get)
    result = WORKER.attempt(job, 0.002)
    assert isinstance(result, TooLong)
    assert result.estimate.seconds > 0.01


TWO = b"".join(write_one("a", np.zeros(2)))
BAD_TENSORS: list[tuple[Json | bytes, str, int, str, str]] = [
    (tensor([3], [1]), JSON, 422, "bad_tensor", "the tensor must hold 3 elements to be float64[3], but holds 1"),
    (tensor([1], [1], "f8"), JSON, 422, "bad_tensor", "the tensor has the unsupported dtype “f8”"),
    ({"shape": [1], "data": [1]}, JSON, 422, "bad_tensor", "dtype is required, but is missing or null"),
    (tensor([1], [1]) | {"strides": []}, JSON, 422, "invalid_field", "the request has no field “strides”"),
    (b"[1]", JSON, 422, "invalid_field", "the body must be a JSON object"),
    (tensor([1] * 40, [1]), JSON, 413, "over_budget", ""),
    (TWO[:-1], SAFETENSORS, 422, "bad_tensor", "the safetensors body has 15 bytes of data, but its tensors take 16"),
    (TWO[:20], SAFETENSORS, 422, "bad_tensor", "the safetensors body states a header of"),
    (b"".join([(2).to_bytes(8, "little"), b"{}"]), SAFETENSORS, 422, "bad_tensor",
     "the safetensors body must hold one tensor, but holds 0"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "sent", "status", "code", "detail"), BAD_TENSORS)
def test_malformed_tensor_is_refused(body: Json | bytes, sent: str, status: int, code: str, detail: str) -> None:
    report = refused(put(body, body_type=sent), status, code)
    assert detail in report["detail"]


@pytest.mark.parametrize("name", ["", ".", "..", "-a", "a/b", "a\0", "a" * 129, "ä", "a b", "a\n"])
def test_invalid_name_is_refused(name: str) -> None:
    report = refused(put(tensor([1], [1]), name), 422, "invalid_field")
    assert "the name of a tensor must be 1 to 128 characters from A-Z a-z 0-9 _ . -" in report["detail"]
    body = W | {"feeds": [resident(0, name)]}
    refused(ask(body, Residents()), 422, "invalid_field")
    refused(ask(SQUARES | {"store": [{"node": 0, "tensor_id": name}]}), 422, "invalid_field")


@pytest.mark.parametrize("name", ["a", "_", "0", "A.b-c_d", "a" * 128])
def test_valid_name_is_accepted(name: str) -> None:
    assert put(tensor([1], [1]), name).stored[0].name == name
