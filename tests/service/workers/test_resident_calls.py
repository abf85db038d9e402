"""Calls that read resident tensors and store values: as if the tensors had come, and the values had gone."""

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


class Kept:
    """Resident tensors as a front keeps them."""

    def __init__(self, **arrays: Any) -> None:
        self.versions: dict[str, Version] = {}
        for name, array in arrays.items():
            self.put(name, np.asarray(array))

    def put(self, name: str, array: Any, etag: str = "0" * 16) -> None:
        memory = HeapAllocation(array.nbytes)
        memory.view[:] = array.tobytes()
        self.versions[name] = version_of(TensorVersion(array.dtype.name, array.shape, etag, memory))

    def commit(self, reply: Reply) -> None:
        """As the front does once all conditions hold."""
        for stored, data in zip(reply.stored, reply.stored_data, strict=True):
            memory = HeapAllocation(len(data))
            memory.view[:] = data
            self.versions[stored.name] = version_of(TensorVersion(stored.dtype, stored.shape, stored.etag, memory))

    def array(self, name: str) -> Any:
        return self.versions[name].array


def asked(body: Json | bytes, kept: Kept | None, call: str, **more: Any) -> Task:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    job = Task(call, sent, "id", 60.0, time.monotonic() + 60.0, **more)
    if kept is not None:
        job.resident = kept.versions.get
    return job


def ask(body: Json | bytes, kept: Kept | None = None, call: str = "forward", **more: Any) -> Reply:
    return WORKER(asked(body, kept, call, **more))


def wanted(body: Json | bytes, kept: Kept, call: str = "forward") -> list[str]:
    """The tensors that a worker asks for which may."""
    found = WORKER.attempt(asked(body, kept, call, may_ask=True))
    assert isinstance(found, NeedsTensors)
    return list(found.names)


def answer(reply: Reply) -> Json:
    assert reply.status == 200, reply.body
    found: Json = orjson.loads(reply.body)
    return found


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
def test_a_resident_tensor_is_as_good_as_one_that_comes(name: str) -> None:
    """In every role; also when the request comes again, with other numbers behind the name."""
    body = next(iter(calls()[name].examples.values()))
    roles = [role for role in ("feeds", "cotangents", "tangents", "vectors") if role in body]
    kept, named = Kept(), dict(body)
    for scale in (1.0, -0.5, 3.0):
        sent = dict(body)
        for role in roles:
            sent[role] = [_scaled(entry, scale) for entry in body[role]]
            named[role] = [resident(entry["node"], f"{role}.{entry['node']}") for entry in body[role]]
            for entry in sent[role]:
                stated = entry["tensor"]
                kept.put(f"{role}.{entry['node']}", np.array(stated["data"], stated["dtype"]).reshape(stated["shape"]))
        assert without_stats(ask(named, kept, name)) == without_stats(ask(sent, kept, name))


def _scaled(entry: Json, scale: float) -> Json:
    return entry | {"tensor": entry["tensor"] | {"data": [scale * x for x in entry["tensor"]["data"]]}}


def test_check_takes_one_too() -> None:
    found = answer(ask(SQUARES | {"feeds": [resident(0, "w")]}, Kept(w=[1.0, 2.0]), "check"))
    assert found["passed"] is True


def test_a_version_of_another_type_is_planned_anew() -> None:
    body, kept = SQUARES | {"feeds": [resident(0, "w")]}, Kept(w=[1.0, 2.0])
    assert [ask(body, kept).cached for _ in range(2)] == [False, True]
    kept.put("w", np.float32([1, 2, 3]))
    assert answer(ask(body, kept))["values"][0]["tensor"] == tensor([], [14.0], "float32")
    kept.put("w", np.array([3.0, 4.0]))
    assert answer(ask(body, kept))["values"][0]["tensor"]["data"] == [25.0]


@pytest.mark.parametrize("times", [1, 3])
def test_a_step_is_stored_and_read_by_the_next(times: int) -> None:
    kept, x = Kept(w=[1.0, -2.0, 0.5]), np.array([0.5, 1.5, -1.0])
    expected = kept.array("w").copy()
    step = STEP | {
        "feeds": [resident(0, "w"), feed(1, [3], x.tolist())],
        "outputs": [4],
        "store": [{"node": 7, "tensor_id": "w"}],
    }
    for _ in range(times):
        reply = ask(step, kept)
        (stored,) = reply.stored
        expected = expected - 0.25 * 2 * expected * x * x / 3
        told = answer(reply)
        assert [value["node"] for value in told["values"]] == [4], "what is stored need not come back"
        assert told["stored"] == [{"node": 7, "tensor_id": "w", "etag": stored.etag, "durable": True}]
        assert stored == Stored("w", stored.etag, "float64", (3,))
        assert re.fullmatch("[0-9a-f]{16}", stored.etag)
        kept.commit(reply)
        np.testing.assert_allclose(kept.array("w"), expected, 1e-12)
    assert reply.cached == (times > 1)


def is_remembered(body: Json, kept: Kept) -> bool:
    """Whether it is answered without being read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(executions()["forward"]), "read_call", lambda *_: pytest.fail("it was read anew"))
        return ask(body, kept).status == 200


def test_a_request_with_both_comes_again_whatever_its_condition() -> None:
    kept = Kept(w=[1.0, -2.0, 0.5])
    step = STEP | {"feeds": [resident(0, "w"), feed(1, [3], [1, 2, 3])], "store": [{"node": 7, "tensor_id": "w"}]}
    first = ask(step, kept)
    assert first.stored[0].if_match is None
    for condition in ("*", "", first.stored[0].etag):
        conditional = step | {"store": [{"node": 7, "tensor_id": "w", "if_match": condition}]}
        assert is_remembered(conditional, kept)
        assert ask(conditional, kept).stored[0].if_match == condition
    assert len({ask(step, kept).stored[0].etag for _ in range(5)}) == 5


def test_what_is_not_durable_says_when_it_will_be() -> None:
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
def test_every_call_stores_nodes_that_it_does_not_answer(name: str, accepted: str) -> None:
    """The value is the one that the node has in `forward`; of a batch, all of them."""
    body = next(iter(calls()[name].examples.values())) | {"store": [{"node": 1, "tensor_id": "squares"}]}
    plain = {field: part for field, part in body.items() if field != "store"}
    for _ in range(2):
        reply = ask(body, None, name, answer_type=accepted)
        (stored,), (data,) = reply.stored, reply.stored_data
        squares = np.square(np.array(body["feeds"][0]["tensor"]["data"])).reshape(body["feeds"][0]["tensor"]["shape"])
        np.testing.assert_array_equal(array_of(data, stored.dtype, stored.shape), squares)
        found, alone = _fields(reply, accepted), _fields(ask(plain, None, name, answer_type=accepted), accepted)
        assert found.pop("stored")[0]["etag"] == stored.etag
        assert found | {"stats": 0} == alone | {"stats": 0}
        assert found["stats"]["dtype"] == alone["stats"]["dtype"]


def _fields(reply: Reply, accepted: str) -> Json:
    if accepted == JSON:
        return answer(reply)
    length = int.from_bytes(reply.body[:8], "little")
    header = orjson.loads(reply.body[8 : 8 + length])
    response: Json = orjson.loads(header["__metadata__"]["response"])
    return response


def test_leaves_outputs_and_odd_values_are_stored() -> None:
    """A feed as it is; a node that is answered as well; NaN; no elements at all; one element."""
    roots = request(node("input"), node("sqrt", 0), node("input"), node("sum", 2))
    body = roots | {
        "feeds": [resident(0, "a"), feed(2, [0], [])],
        "outputs": [1],
        "store": [{"node": i, "tensor_id": f"n{i}"} for i in range(4)],
    }
    for _ in range(2):
        kept = Kept(a=[-1.0, 4.0])
        kept.commit(ask(body, kept))
        np.testing.assert_array_equal(kept.array("n0"), [-1.0, 4.0])
        np.testing.assert_array_equal(kept.array("n1"), [np.nan, 2.0])
        assert kept.array("n2").shape == (0,)
        assert kept.array("n3").shape == ()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"])
def test_every_dtype(dtype: str) -> None:
    body = request(node("input"), node("identity", 0), feeds=[resident(0, "x")])
    kept = Kept(x=np.array([[0, 1, 1]], dtype))
    reply = ask(body | {"store": [{"node": 1, "tensor_id": "y"}]}, kept)
    kept.commit(reply)
    assert kept.array("y").dtype == dtype
    np.testing.assert_array_equal(kept.array("y"), kept.array("x"))


def test_with_diagnose_and_beside_safetensors() -> None:
    body = SQUARES | {"feeds": [resident(0, "w")], "diagnose": True, "store": [{"node": 1, "tensor_id": "s"}]}
    reply = ask(body, Kept(w=[np.inf, 2.0]))
    assert answer(reply)["stats"]["first_nonfinite"]["node"] == 0
    assert len(reply.stored) == 1
    asked = orjson.dumps(STEP | {"feeds": [resident(0, "w")], "outputs": [4]}).decode()
    x = np.array([1.0, 2.0])
    entry = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
    header = orjson.dumps({"__metadata__": {"request": asked}, "feeds.1": entry})
    header += b" " * (-len(header) % 8)
    reply = ask(len(header).to_bytes(8, "little") + header + x.tobytes(), Kept(w=[2.0, 1.0]), body_type=SAFETENSORS)
    assert answer(reply)["values"][0]["tensor"]["data"] == [4.0]


W = {"graph": SQUARES["graph"]}
PLACE = {"node": 1, "tensor_id": "s"}
NAME = "1 to 128 of A-Z a-z 0-9 _ . - with neither a dot nor a hyphen first"
REFUSALS: list[tuple[Json, int, str, str, str]] = [
    (W | {"feeds": [resident(0, "v")]}, 404, "not_found", "/feeds/0/tensor_id",
     "node 0: there is no resident tensor “v”; GET /v1/tensors lists those that are kept"),
    (W | {"feeds": [resident(0, "../w")]}, 422, "invalid_field", "/feeds/0/tensor_id",
     f"node 0: feeds[0].tensor_id must be {NAME}, but is “../w”"),
    (W | {"feeds": [resident(0, "")]}, 422, "invalid_field", "/feeds/0/tensor_id",
     f"node 0: feeds[0].tensor_id must be {NAME}, but is empty"),
    (W | {"feeds": [SQUARES["feeds"][0] | {"tensor_id": "w"}]}, 422, "invalid_field", "/feeds/0/tensor_id",
     "node 0: feeds[0] has both tensor and tensor_id; one of them is expected"),
    (W | {"feeds": [{"node": 0, "tensor_id": None}]}, 422, "invalid_field", "/feeds/0/tensor_id",
     "node 0: feeds[0].tensor_id must be a string, but is null"),
    (W | {"feeds": [resident(0, "w"), SQUARES["feeds"][0]]}, 422, "invalid_field", "/feeds/1/node",
     "feeds name node 0 twice"),
    (W | {"feeds": [resident(1, "w")]}, 422, "unexpected_feed", "/graph/nodes/1", ""),
    (SQUARES | {"store": [PLACE | {"node": 9}]}, 422, "bad_reference", "",
     "store names node 9, but the nodes are 0 to 2"),
    (SQUARES | {"store": [PLACE | {"tensor_id": "-s"}]}, 422, "invalid_field", "/store/0/tensor_id", ""),
    (SQUARES | {"store": [PLACE, PLACE | {"node": 2}]}, 422, "invalid_field", "/store/1/tensor_id",
     "store names the tensor “s” twice"),
    (SQUARES | {"store": [PLACE | {"if_match": "abc"}]}, 422, "invalid_field", "/store/0/if_match",
     "node 1: store[0].if_match must be an etag of 16 hexadecimal digits, * or empty, but is “abc”"),
    (SQUARES | {"store": [PLACE | {"if_match": None}]}, 422, "invalid_field", "/store/0/if_match",
     "node 1: store[0].if_match must be a string, but is null"),
    (SQUARES | {"store": [PLACE | {"durable": 1}]}, 422, "invalid_field", "/store/0/durable",
     "node 1: store[0].durable must be true or false, but is a whole number"),
    (SQUARES | {"store": [{"node": 1}]}, 422, "invalid_field", "/store/0/tensor_id",
     "node 1: store[0].tensor_id is missing, and required"),
    (SQUARES | {"store": [PLACE | {"name": "s"}]}, 422, "invalid_field", "/store/0/name", ""),
    (SQUARES | {"store": {}}, 422, "invalid_field", "/store", "store must be a list, but is an object"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "code", "pointer", "detail"), REFUSALS)
def test_what_is_refused(body: Json, status: int, code: str, pointer: str, detail: str) -> None:
    """The first time, and after a request that only looks like it."""
    kept = Kept(w=[1.0, 2.0])
    for _ in range(2):
        report = refused(ask(body, kept), status, code)
        assert report.get("pointer", "") == pointer
        assert report["detail"] == detail or not detail
        ask(W | {"feeds": [resident(0, "w")]}, kept)
        ask(SQUARES | {"store": [PLACE]}, kept)


@pytest.mark.parametrize("call", ["plan", "differentiate", "check"])
def test_what_runs_no_graph_stores_nothing(call: str) -> None:
    body = next(iter(calls()[call].examples.values()))
    report = refused(ask(body | {"store": []}, call=call), 422, "invalid_field")
    assert report["pointer"] == "/store"


def test_an_empty_store_is_none() -> None:
    reply = ask(SQUARES | {"store": []})
    assert "stored" not in answer(reply)
    assert not reply.stored


def test_a_tensor_that_is_gone_is_missed_also_by_what_came_before() -> None:
    kept, body = Kept(w=[1.0, 2.0]), W | {"feeds": [resident(0, "w")]}
    assert ask(body, kept).status == 200
    assert ask(body, kept).status == 200
    del kept.versions["w"]
    refused(ask(body, kept), 404, "not_found")


@pytest.mark.parametrize("seen", [False, True])
def test_a_worker_that_may_asks_for_all_that_it_lacks(seen: bool) -> None:
    body = STEP | {"feeds": [resident(0, "w"), resident(1, "x")]}
    if seen:
        ask(body, Kept(w=[1.0, 2.0], x=[1.0, 2.0]))
    assert wanted(body, Kept()) == ["w", "x"]
    assert wanted(body, Kept(x=[1.0, 2.0])) == ["w", "x"], "or x might be dropped for w"
    assert ask(body, Kept(w=[1.0, 2.0], x=[1.0, 2.0]), may_ask=True).status == 200
    refused(ask(W | {"feeds": [resident(0, "-")]}, Kept(), may_ask=True), 422, "invalid_field")
    assert wanted({"tensor_id": "w"}, Kept(), GET_TENSOR) == ["w"]


def put(body: Json | bytes, name: str = "w", **more: Any) -> Reply:
    return ask(body, None, PUT_TENSOR, subject=name, **more)


def test_a_tensor_is_put_and_got() -> None:
    reply = put(tensor([2, 2], [1, 2, 3, 4], "float32"))
    (stored,), (data,) = reply.stored, reply.stored_data
    assert stored == Stored("w", stored.etag, "float32", (2, 2))
    assert bytes(data) == np.float32([1, 2, 3, 4]).tobytes()
    assert answer(reply) == {
        "tensor_id": "w", "dtype": "float32", "shape": [2, 2], "bytes": 16, "etag": stored.etag, "durable": True,
    }  # fmt: skip
    kept = Kept()
    kept.commit(reply)
    got = ask({"tensor_id": "w"}, kept, GET_TENSOR)
    assert got.headers == (("ETag", f'"{stored.etag}"'),)
    told = {"tensor_id": "w", "etag": stored.etag, "tensor": tensor([2, 2], [1, 2, 3, 4], "float32")}
    assert answer(got) == told
    packed = answer(ask({"tensor_id": "w", "encoding": "base64"}, kept, GET_TENSOR))["tensor"]
    assert packed["data_b64"] == "AACAPwAAAEAAAEBAAACAQA=="
    whole = ask({"tensor_id": "w"}, kept, GET_TENSOR, answer_type=SAFETENSORS)
    again = put(whole.body, "again", body_type=SAFETENSORS)
    assert (again.stored[0].shape, bytes(again.stored_data[0])) == ((2, 2), bytes(data))


def test_a_tensor_that_is_too_large_to_be_written_here_is_estimated() -> None:
    kept = Kept(w=np.zeros(1 << 18))
    job = Task(GET_TENSOR, b'{"tensor_id":"w"}', "id", 60.0, time.monotonic() + 60.0, resident=kept.versions.get)
    found = WORKER.attempt(job, 0.002)
    assert isinstance(found, TooLong)
    assert found.estimate.seconds > 0.01


TWO = b"".join(write_one("a", np.zeros(2)))
BAD_TENSORS: list[tuple[Json | bytes, str, int, str, str]] = [
    (tensor([3], [1]), JSON, 422, "bad_tensor", "the tensor must hold 3 elements to be float64[3], but holds 1"),
    (tensor([1], [1], "f8"), JSON, 422, "bad_tensor", "the tensor has the dtype “f8”"),
    ({"shape": [1], "data": [1]}, JSON, 422, "bad_tensor", "dtype is missing, and required"),
    (tensor([1], [1]) | {"strides": []}, JSON, 422, "invalid_field", "the request has no field “strides”"),
    (b"[1]", JSON, 422, "invalid_field", "the body must be a JSON object"),
    (tensor([1] * 40, [1]), JSON, 413, "over_budget", ""),
    (TWO[:-1], SAFETENSORS, 422, "bad_tensor", "the safetensors body has 15 bytes of data, but its tensors take 16"),
    (TWO[:20], SAFETENSORS, 422, "bad_tensor", "the safetensors body states a header of"),
    (b"".join([(2).to_bytes(8, "little"), b"{}"]), SAFETENSORS, 422, "bad_tensor",
     "the safetensors body must hold one tensor, but holds 0"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "sent", "status", "code", "detail"), BAD_TENSORS)
def test_what_is_no_tensor(body: Json | bytes, sent: str, status: int, code: str, detail: str) -> None:
    report = refused(put(body, body_type=sent), status, code)
    assert detail in report["detail"]


@pytest.mark.parametrize("name", ["", ".", "..", "-a", "a/b", "a\0", "a" * 129, "ä", "a b", "a\n"])
def test_what_is_no_name(name: str) -> None:
    report = refused(put(tensor([1], [1]), name), 422, "invalid_field")
    assert "the name of a tensor must be 1 to 128 of A-Z a-z 0-9 _ . -" in report["detail"]
    body = W | {"feeds": [resident(0, name)]}
    refused(ask(body, Kept()), 422, "invalid_field")
    refused(ask(SQUARES | {"store": [{"node": 0, "tensor_id": name}]}), 422, "invalid_field")


@pytest.mark.parametrize("name", ["a", "_", "0", "A.b-c_d", "a" * 128])
def test_what_is_a_name(name: str) -> None:
    assert put(tensor([1], [1]), name).stored[0].name == name
