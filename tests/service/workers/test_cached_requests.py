"""A request that comes again with other numbers is answered as if it came for the first time, to the byte."""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.compiler import Cache
from service.api.calls import calls, computing_calls
from service.api.media import JSON, SAFETENSORS
from service.core.settings import Settings
from service.workers.executions import executions
from service.workers.executions.computing import Computing
from service.workers.task import Reply, Task, TaskResult, TooLong
from service.workers.worker import Worker
from tests.service.support import SQUARES, Json, feed, node, request, tensor

SETTINGS = Settings(device="cpu", compile="off")


def never_again() -> Worker:
    """A worker that remembers no request."""
    worker = Worker(SETTINGS)
    worker._cached_requests = Cache(0, 0, lambda kept: kept.nbytes)
    return worker


AGAIN, ANEW = Worker(SETTINGS), never_again()


def post(worker: Worker, body: bytes, call: str = "gradients", accepted: str = JSON, **more: Any) -> Reply:
    return worker(Task(call, body, "id", 60.0, time.monotonic() + 60.0, JSON, accepted, **more))


def timeless(reply: Reply) -> tuple[int, bytes]:
    return reply.status, re.sub(rb'\\?"execute_ms\\?":[^,]*,', b"", reply.body)


def agree(*bodies: Json | bytes, call: str = "gradients", accepted: str = JSON) -> list[int]:
    """The statuses of requests in a row, once they are answered like by a worker that remembers none."""
    texts = [body if isinstance(body, bytes) else json.dumps(body).encode() for body in bodies]
    again = [timeless(post(AGAIN, text, call, accepted)) for text in texts]
    anew = [timeless(post(ANEW, text, call, accepted)) for text in texts]
    if accepted == JSON:
        assert again == anew
    else:  # where the time is as long as it happens to be, the header is, too
        assert [status for status, _ in again] == [status for status, _ in anew]
    return [status for status, _ in again]


def is_remembered(worker: Worker, body: Json, call: str = "gradients") -> bool:
    """Whether the request is answered without being read."""

    def read(*_: Any) -> Any:
        raise AssertionError("it was read anew")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(executions()[call]), "read_call", read)
        return post(worker, json.dumps(body).encode(), call).status == 200


EXAMPLES = [
    pytest.param(name, body, id=f"{name}-{shown}")
    for name, call in calls().items()
    for shown, body in call.examples.items()
]


def others(body: Json) -> Json:
    """The request with other numbers."""

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: [0.75 * x + 0.5 for x in v] if k == "data" else changed(v) for k, v in value.items()}
        return [changed(item) for item in value] if isinstance(value, list) else value

    return body | {name: changed(part) for name, part in body.items() if name != "graph"}


@pytest.mark.parametrize(("call", "body"), EXAMPLES)
@pytest.mark.parametrize("encoding", ["json", "base64"])
def test_every_example_comes_again(call: str, body: Json, encoding: str) -> None:
    asked = body | {"encoding": encoding}
    assert agree(asked, others(asked), asked, others(others(asked)), call=call) == [200] * 4
    assert is_remembered(AGAIN, others(asked), call) == isinstance(executions()[call], Computing)


@pytest.mark.parametrize(("call", "body"), EXAMPLES)
def test_every_example_comes_again_for_safetensors(call: str, body: Json) -> None:
    assert agree(body, others(body), body, call=call, accepted=SAFETENSORS) == [200] * 3


def test_a_request_with_diagnose_is_read_anew() -> None:
    asked = SQUARES | {"diagnose": True}
    assert agree(asked, others(asked), asked) == [200] * 3
    assert not is_remembered(AGAIN, asked)


ECHO = request(node("input"), node("identity", 0))


def echo(shape: list[int], data: Any, dtype: str = "float64", name: str = "data") -> Json:
    return ECHO | {"feeds": [{"node": 0, "tensor": {"dtype": dtype, "shape": shape, name: data}}]}


#: (dtype, shape) → payloads of which every one comes after every other
PAYLOADS: list[tuple[str, list[int], list[Any]]] = [
    ("float64", [2], [[1, 2.5], [1e308, -1e308], [1e-320, -0.0], [2**70, 1], [1, 2, 3], [1], [], ["1", 2], [None, 1]]),
    ("float64", [2], [[1, 2], [True, 1], [[1, 2]], {}, "AAAA", None, 1, [10**400, 1]]),
    ("float32", [2], [[0.1, 0.2], [3.4e38, 1], [3.5e38, 1], [1e39, 1], [-1e300, 0], [1e-50, 0]]),
    ("float16", [2], [[0.1, 0.2], [65504, 1], [65519, 1], [65520, 1], [1e5, 1]]),
    ("int32", [2], [[1, 2], [1.0, 2.0], [1.5, 2], [2**31, 0], [-(2**31), 0], [2**70, 0], [True, 0]]),
    ("int64", [2], [[1, 2], [2**53, 1], [2**53 + 1, 1], [2**63 - 1, -(2**63)], [2**63, 0]]),
    ("uint8", [2], [[1, 2], [255, 0], [256, 0], [-1, 0]]),
    ("bool", [2], [[0, 1], [1, 1], [2, 0], [True, False]]),
    ("float64", [], [[1], [], [1, 2], 1]),
    ("float64", [0, 3], [[], [1], None]),
]


@pytest.mark.parametrize(("dtype", "shape", "payloads"), PAYLOADS)
@pytest.mark.parametrize("call", ["forward", "jvp"])
def test_every_payload_after_every_other(dtype: str, shape: list[int], payloads: list[Any], call: str) -> None:
    bodies = [echo(shape, data, dtype) for data in payloads]
    if call == "jvp":
        bodies = [body | {"tangents": body["feeds"]} for body in bodies]
    statuses = agree(*bodies, *reversed(bodies), call=call)
    assert statuses[: len(bodies)] == statuses[: len(bodies) - 1 : -1]


def test_base64_after_numbers_and_the_other_way_round() -> None:
    packed = "AAAAAAAA8D8AAAAAAAAAQA=="  # 1 and 2
    right = echo([2], [1, 2]), echo([2], packed, name="data_b64")
    infinite = echo([2], "AAAAAAAA8H8AAAAAAAAAQA==", name="data_b64")
    wrong = (
        echo([2], packed, name="data"),
        echo([2], [1, 2], name="data_b64"),
        echo([2], packed[:-2], name="data_b64"),
        echo([2], None, name="data_b64"),
        ECHO | {"feeds": [{"node": 0, "tensor": tensor([2], [1, 2]) | {"data_b64": packed}}]},
        ECHO | {"feeds": [{"node": 0, "tensor": {"dtype": "float64", "shape": [2]}}]},
    )
    both = ECHO | {"feeds": [{"node": 0, "tensor": tensor([2], []) | {"data_b64": packed}}]}
    agree(*right, *wrong, infinite, both, *right, *wrong, infinite, both, *reversed(wrong), call="forward")
    assert is_remembered(AGAIN, right[1], "forward")


@pytest.mark.parametrize(
    "change",
    [
        {"of": 2.0},
        {"of": True},
        {"wrt": [0.0]},
        {"wrt": [False]},
        {"outputs": [2.0]},
        {"encoding": "JSON"},
        {"feeds": [feed(0, [2.0], [1, 2])]},  # type: ignore[list-item]
        {"feeds": [feed(False, [2], [1, 2])]},
        {"feeds": [feed(0, [True, 2], [1, 2])]},
        {"feeds": [feed(0, [2], [1, 2]) | {"x": 1}]},
        {"feeds": [feed(0, [2], [1, 2]), feed(0, [2], [1, 2])]},
        {"feeds": {"0": feed(0, [2], [1, 2])}},
        {"feeds": [1]},
        {"feeds": [{"node": 0}]},
        {"feeds": [{"node": 0, "tensor": None}]},
        {"feeds": None},
        {"cotangent": 1},
        {"cotangent": [tensor([], [1])]},
        {"cotangents": [feed(2, [], [1])]},
        {"of": 2**70},
    ],
)
def test_what_only_looks_alike_is_not_taken_for_it(change: Json) -> None:
    plain = SQUARES | {"of": 2, "wrt": [0], "outputs": [2], "encoding": "json"}
    assert agree(plain, plain | change, plain, plain | change)[::2] == [200, 200]


def test_results_that_json_has_no_number_for() -> None:
    roots = request(node("parameter"), node("sqrt", 0), node("sum", 1))
    bodies = [roots | {"feeds": [feed(0, [2], data)]} for data in ([1, 4], [-1, 4], [0, 1], [4, 9])]
    assert agree(*bodies, *bodies) == [200] * 8


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [[], [3], [0], [2, 2]])
def test_results_of_every_dtype(dtype: str, shape: list[int]) -> None:
    count = int(np.prod(shape))
    bodies = [echo(shape, [(i + shift) % 2 for i in range(count)], dtype) for shift in (0, 1, 0)]
    several = [body | {"outputs": [1, 0]} for body in bodies]
    assert agree(*bodies, *several, call="forward") == [200] * 6


def test_an_index_that_is_outside_is_found_again() -> None:
    picked = request(node("input"), node("constant", value=tensor([2], [1, 2])), node("gather", 1, 0))
    bodies = [picked | {"feeds": [feed(0, [1], [i], "int64")]} for i in (0, 1, 2, -1, 1)]
    assert agree(*bodies, *bodies, call="forward") == 2 * [200, 200, 422, 422, 200]


@pytest.mark.slow
@given(st.data(), st.sampled_from(sorted(computing_calls())))
def test_numbers_that_are_drawn(data: st.DataObject, call: str) -> None:
    numbers = st.floats(width=32) | st.integers(-(2**70), 2**70) | st.sampled_from([True, None, "1", [1]])
    bodies = [copy.deepcopy(next(iter(calls()[call].examples.values()))) for _ in range(3)]
    for body in bodies[1:]:
        for name in ("feeds", "cotangents", "tangents", "vectors"):
            for entry in body.get(name, ()):
                size = len(entry["tensor"]["data"])
                finite = st.lists(numbers.filter(lambda x: x == x and x not in (np.inf, -np.inf)))  # noqa: PLR0124
                drawn = data.draw(st.lists(st.floats(-9, 9), min_size=size, max_size=size) | finite)
                entry["tensor"]["data"] = drawn
    agree(*bodies, bodies[0], call=call)


def test_a_plan_that_was_dropped_is_made_again() -> None:
    worker = Worker(SETTINGS.model_copy(update={"plan_cache": 1}))
    other = request(node("parameter"), node("exp", 0), node("sum", 1), feeds=SQUARES["feeds"])
    asked = [json.dumps(body).encode() for body in (SQUARES, SQUARES, other, SQUARES, SQUARES)]
    replies = [post(worker, body) for body in asked]
    assert [reply.cached for reply in replies] == [False, True, False, False, True]
    assert [orjson.loads(reply.body)["stats"]["plan_cached"] for reply in replies] == [r.cached for r in replies]


def test_a_plan_that_is_used_again_stays() -> None:
    """To be remembered counts as use: what is asked for all the time is not the oldest."""
    worker = Worker(SETTINGS.model_copy(update={"plan_cache": 2}))
    for shift in range(4):
        other = request(node("parameter"), node("add_scalar", 0, scalar=shift), node("sum", 1), feeds=SQUARES["feeds"])
        assert post(worker, json.dumps(other).encode()).status == 200
        assert post(worker, json.dumps(SQUARES).encode()).cached == (shift > 0)


def test_a_request_that_comes_again_has_phases_and_estimates() -> None:
    worker, body = Worker(SETTINGS), json.dumps(SQUARES).encode()
    first = post(worker, body)
    assert is_remembered(worker, SQUARES)
    again = post(worker, body)
    assert (again.cached, first.cached) == (True, False)
    assert all(part >= 0 for part in again.timings)
    assert again.timings.decode > 0
    assert again.timings.execute > 0

    def estimated(worker: Worker) -> TaskResult:
        return worker.attempt(Task("gradients", body, "id", 60.0, time.monotonic() + 60.0), 0.0)

    assert isinstance(estimated(worker), TooLong)
    assert estimated(worker) == estimated(ANEW)


def test_its_deadline_holds() -> None:
    body = json.dumps(SQUARES).encode()
    assert post(AGAIN, body).status == 200
    assert AGAIN(Task("gradients", body, "id", 60.0, time.monotonic() - 1)).status == 504


def test_a_registered_graph_is_another_request() -> None:
    """The same body on two graphs."""
    from service.workers.task import REGISTER

    worker, body = Worker(SETTINGS), orjson.dumps({"feeds": SQUARES["feeds"]})
    graphs = [request(node("parameter"), node(op, 0), node("sum", 1))["graph"] for op in ("square", "exp")]
    records = [post(worker, orjson.dumps({"graph": graph}), REGISTER).body for graph in graphs]
    for _ in range(3):
        found = [
            orjson.loads(post(worker, body, graph=str(i), graph_bytes=record).body)["gradients"][0]["tensor"]["data"]
            for i, record in enumerate(records)
        ]
        assert found == [[2.0, 4.0], [np.exp(1), np.exp(2)]]


@pytest.fixture
def kept() -> Callable[[Json], int]:
    """How many requests a worker remembers once it has answered one more."""
    worker = Worker(SETTINGS.model_copy(update={"plan_cache": 1}))

    def ask(body: Json) -> int:
        assert post(worker, json.dumps(body).encode()).status == 200
        return len(worker._cached_requests._entries)

    return ask


def test_what_is_remembered_is_bounded(kept: Callable[[Json], int]) -> None:
    counts = [kept(SQUARES | {"feeds": [feed(0, [n], [1.0] * n)]}) for n in range(1, 9)]
    assert counts == [1, 2, 3, 4, 4, 4, 4, 4]


def test_a_request_of_a_long_shape_is_not_remembered(kept: Callable[[Json], int]) -> None:
    many = request(*[node("parameter")] * 400, node("sum", 0), feeds=[feed(i, [1], [1]) for i in range(400)])
    assert kept(many) == 0
