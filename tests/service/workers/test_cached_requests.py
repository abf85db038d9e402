"""A cached request with other numbers is answered like a new one, byte for byte."""

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


def uncached_worker() -> Worker:
    """A worker that caches no request."""
    worker = Worker(SETTINGS)
    worker._cached_requests = Cache(0, 0, lambda entry: entry.nbytes)
    return worker


CACHING, UNCACHED = Worker(SETTINGS), uncached_worker()


def post(worker: Worker, body: bytes, call: str = "gradients", accepted: str = JSON, **more: Any) -> Reply:
    return worker(Task(call, body, "id", 60.0, time.monotonic() + 60.0, JSON, accepted, **more))


def timeless(reply: Reply) -> tuple[int, bytes]:
    return reply.status, re.sub(rb'\\?"execute_ms\\?":[^,]*,', b"", reply.body)


def check_agreement(*bodies: Json | bytes, call: str = "gradients", accepted: str = JSON) -> list[int]:
    """Check that consecutive requests are answered as without a cache; return their statuses."""
    texts = [body if isinstance(body, bytes) else json.dumps(body).encode() for body in bodies]
    cached = [timeless(post(CACHING, text, call, accepted)) for text in texts]
    uncached = [timeless(post(UNCACHED, text, call, accepted)) for text in texts]
    if accepted == JSON:
        assert cached == uncached
    else:  # the length of the header depends on the digits of the time
        assert [status for status, _ in cached] == [status for status, _ in uncached]
    return [status for status, _ in cached]


def is_cached(worker: Worker, body: Json, call: str = "gradients") -> bool:
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


def with_other_numbers(body: Json) -> Json:
    """The request with other numbers."""

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: [0.75 * x + 0.5 for x in v] if k == "data" else changed(v) for k, v in value.items()}
        return [changed(item) for item in value] if isinstance(value, list) else value

    return body | {name: changed(part) for name, part in body.items() if name != "graph"}


@pytest.mark.parametrize(("call", "body"), EXAMPLES)
@pytest.mark.parametrize("encoding", ["json", "base64"])
def test_repeated_examples_match_an_uncached_worker(call: str, body: Json, encoding: str) -> None:
    encoded = body | {"encoding": encoding}
    assert (
        check_agreement(
            encoded, with_other_numbers(encoded), encoded, with_other_numbers(with_other_numbers(encoded)), call=call
        )
        == [200] * 4
    )
    assert is_cached(CACHING, with_other_numbers(encoded), call) == isinstance(executions()[call], Computing)


@pytest.mark.parametrize(("call", "body"), EXAMPLES)
def test_repeated_safetensors_match_an_uncached_worker(call: str, body: Json) -> None:
    assert check_agreement(body, with_other_numbers(body), body, call=call, accepted=SAFETENSORS) == [200] * 3


def test_diagnose_is_not_cached() -> None:
    body = SQUARES | {"diagnose": True}
    assert check_agreement(body, with_other_numbers(body), body) == [200] * 3
    assert not is_cached(CACHING, body)


ECHO = request(node("input"), node("identity", 0))


def echo(shape: list[int], data: Any, dtype: str = "float64", name: str = "data") -> Json:
    return ECHO | {"feeds": [{"node": 0, "tensor": {"dtype": dtype, "shape": shape, name: data}}]}


#: (dtype, shape) → payloads that are sent one after the other, forwards and backwards
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
def test_payloads_in_sequence(dtype: str, shape: list[int], payloads: list[Any], call: str) -> None:
    bodies = [echo(shape, data, dtype) for data in payloads]
    if call == "jvp":
        bodies = [body | {"tangents": body["feeds"]} for body in bodies]
    statuses = check_agreement(*bodies, *reversed(bodies), call=call)
    assert statuses[: len(bodies)] == statuses[: len(bodies) - 1 : -1]


def test_base64_and_numbers_in_sequence() -> None:
    packed = "AAAAAAAA8D8AAAAAAAAAQA=="  # 1 and 2
    valid = echo([2], [1, 2]), echo([2], packed, name="data_b64")
    infinite = echo([2], "AAAAAAAA8H8AAAAAAAAAQA==", name="data_b64")
    invalid = (
        echo([2], packed, name="data"),
        echo([2], [1, 2], name="data_b64"),
        echo([2], packed[:-2], name="data_b64"),
        echo([2], None, name="data_b64"),
        ECHO | {"feeds": [{"node": 0, "tensor": tensor([2], [1, 2]) | {"data_b64": packed}}]},
        ECHO | {"feeds": [{"node": 0, "tensor": {"dtype": "float64", "shape": [2]}}]},
    )
    both = ECHO | {"feeds": [{"node": 0, "tensor": tensor([2], []) | {"data_b64": packed}}]}
    check_agreement(
        *valid, *invalid, infinite, both, *valid, *invalid, infinite, both, *reversed(invalid), call="forward"
    )
    assert is_cached(CACHING, valid[1], "forward")


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
def test_similar_request_is_no_cache_hit(change: Json) -> None:
    plain = SQUARES | {"of": 2, "wrt": [0], "outputs": [2], "encoding": "json"}
    assert check_agreement(plain, plain | change, plain, plain | change)[::2] == [200, 200]


def test_nonfinite_results() -> None:
    roots = request(node("parameter"), node("sqrt", 0), node("sum", 1))
    bodies = [roots | {"feeds": [feed(0, [2], data)]} for data in ([1, 4], [-1, 4], [0, 1], [4, 9])]
    assert check_agreement(*bodies, *bodies) == [200] * 8


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [[], [3], [0], [2, 2]])
def test_results_of_every_dtype(dtype: str, shape: list[int]) -> None:
    count = int(np.prod(shape))
    bodies = [echo(shape, [(i + shift) % 2 for i in range(count)], dtype) for shift in (0, 1, 0)]
    several = [body | {"outputs": [1, 0]} for body in bodies]
    assert check_agreement(*bodies, *several, call="forward") == [200] * 6


def test_out_of_range_index_is_refused_again() -> None:
    picked = request(node("input"), node("constant", value=tensor([2], [1, 2])), node("gather", 1, 0))
    bodies = [picked | {"feeds": [feed(0, [1], [i], "int64")]} for i in (0, 1, 2, -1, 1)]
    assert check_agreement(*bodies, *bodies, call="forward") == 2 * [200, 200, 422, 422, 200]


@pytest.mark.slow
@given(st.data(), st.sampled_from(sorted(computing_calls())))
def test_random_numbers(data: st.DataObject, call: str) -> None:
    numbers = st.floats(width=32) | st.integers(-(2**70), 2**70) | st.sampled_from([True, None, "1", [1]])
    bodies = [copy.deepcopy(next(iter(calls()[call].examples.values()))) for _ in range(3)]
    for body in bodies[1:]:
        for name in ("feeds", "cotangents", "tangents", "vectors"):
            for entry in body.get(name, ()):
                size = len(entry["tensor"]["data"])
                finite = st.lists(numbers.filter(lambda x: x == x and x not in (np.inf, -np.inf)))  # noqa: PLR0124
                drawn = data.draw(st.lists(st.floats(-9, 9), min_size=size, max_size=size) | finite)
                entry["tensor"]["data"] = drawn
    check_agreement(*bodies, bodies[0], call=call)


def test_evicted_plan_is_built_again() -> None:
    worker = Worker(SETTINGS.model_copy(update={"plan_cache": 1}))
    other = request(node("parameter"), node("exp", 0), node("sum", 1), feeds=SQUARES["feeds"])
    bodies = [json.dumps(body).encode() for body in (SQUARES, SQUARES, other, SQUARES, SQUARES)]
    replies = [post(worker, body) for body in bodies]
    assert [reply.cached for reply in replies] == [False, True, False, False, True]
    assert [orjson.loads(reply.body)["stats"]["plan_cached"] for reply in replies] == [r.cached for r in replies]


def test_cache_hit_keeps_the_plan_from_eviction() -> None:
    """A hit counts as use: the plan of a frequent request is never the oldest."""
    worker = Worker(SETTINGS.model_copy(update={"plan_cache": 2}))
    for shift in range(4):
        other = request(node("parameter"), node("add_scalar", 0, scalar=shift), node("sum", 1), feeds=SQUARES["feeds"])
        assert post(worker, json.dumps(other).encode()).status == 200
        assert post(worker, json.dumps(SQUARES).encode()).cached == (shift > 0)


def test_cached_request_has_timings_and_estimates() -> None:
    worker, body = Worker(SETTINGS), json.dumps(SQUARES).encode()
    first = post(worker, body)
    assert is_cached(worker, SQUARES)
    second = post(worker, body)
    assert (second.cached, first.cached) == (True, False)
    assert all(part >= 0 for part in second.timings)
    assert second.timings.decode > 0
    assert second.timings.execute > 0

    def attempt(worker: Worker) -> TaskResult:
        return worker.attempt(Task("gradients", body, "id", 60.0, time.monotonic() + 60.0), 0.0)

    assert isinstance(attempt(worker), TooLong)
    assert attempt(worker) == attempt(UNCACHED)


def test_cached_request_respects_its_deadline() -> None:
    body = json.dumps(SQUARES).encode()
    assert post(CACHING, body).status == 200
    assert CACHING(Task("gradients", body, "id", 60.0, time.monotonic() - 1)).status == 504


def test_registered_graphs_are_cached_separately() -> None:
    """Send the same body for two graphs."""
    from service.workers.task import REGISTER

    worker, body = Worker(SETTINGS), orjson.dumps({"feeds": SQUARES["feeds"]})
    graphs = [request(node("parameter"), node(op, 0), node("sum", 1))["graph"] for op in ("square", "exp")]
    records = [post(worker, orjson.dumps({"graph": graph}), REGISTER).body for graph in graphs]
    for _ in range(3):
        gradients = [
            orjson.loads(post(worker, body, graph=str(i), graph_bytes=record).body)["gradients"][0]["tensor"]["data"]
            for i, record in enumerate(records)
        ]
        assert gradients == [[2.0, 4.0], [np.exp(1), np.exp(2)]]


@pytest.fixture
def cached_count() -> Callable[[Json], int]:
    """Send a worker one more request; return how many it caches."""
    worker = Worker(SETTINGS.model_copy(update={"plan_cache": 1}))

    def ask(body: Json) -> int:
        assert post(worker, json.dumps(body).encode()).status == 200
        return len(worker._cached_requests._entries)

    return ask


def test_number_of_cached_requests_is_bounded(cached_count: Callable[[Json], int]) -> None:
    counts = [cached_count(SQUARES | {"feeds": [feed(0, [n], [1.0] * n)]}) for n in range(1, 9)]
    assert counts == [1, 2, 3, 4, 4, 4, 4, 4]


def test_request_with_many_feeds_is_not_cached(cached_count: Callable[[Json], int]) -> None:
    many = request(*[node("parameter")] * 400, node("sum", 0), feeds=[feed(i, [1], [1]) for i in range(400)])
    assert cached_count(many) == 0
