"""Requests read in parts get the same answers and refusals as requests read whole, with less work."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import jiter
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.openapi.examples import failures
from service.api.calls import calls
from service.api.json_codec import elements
from service.api.json_reader import STUB, split_graph
from service.api.media import SAFETENSORS
from service.core.settings import Settings
from service.workers.task import Reply, Task
from service.workers.worker import Worker
from tests.sampling import together
from tests.service.api.safetensors_support import body as packed
from tests.service.support import SQUARES, feed, node, request

SETTINGS = Settings(device="cpu", compile="off", max_nodes=50)
IN_PARTS, WHOLE = Worker(SETTINGS), Worker(SETTINGS)


def post(worker: Worker, body: bytes, call: str = "gradients", sent: str = "application/json") -> Reply:
    return worker(Task(call, body, "id", 60.0, time.monotonic() + 60.0, sent))


def timeless(reply: Reply) -> tuple[int, bytes]:
    body = re.sub(rb'"(execute_ms|plan_cached)":[^,]*,', b"", reply.body)
    return reply.status, body


@pytest.fixture(autouse=True)
def read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WHOLE._json, "_in_parts", lambda text: None)


def check_agreement(body: bytes, call: str = "gradients") -> int:
    """Check that both readers answer alike, with the graph cached or not, and return the status."""
    expected = timeless(post(WHOLE, body, call))
    assert [timeless(post(IN_PARTS, body, call)) for _ in range(2)] == [expected] * 2
    return expected[0]


@pytest.mark.parametrize("name", list(calls()))
def test_examples_agree(name: str) -> None:
    assert {check_agreement(orjson.dumps(body), name) for body in calls()[name].examples.values()} == {200}


def refusal_cases() -> Iterator[Any]:
    for name, call in calls().items():
        for failure in failures(call):
            body = failure.raw.encode() if failure.raw is not None else orjson.dumps(failure.body)
            if failure.refusal is None:
                yield pytest.param(name, body, id=f"{name}-{failure.code}")


@together
@pytest.mark.parametrize(("name", "body"), list(refusal_cases()))
def test_refusals_agree(name: str, body: bytes) -> None:
    assert check_agreement(body, name) >= 400


GRAPH = orjson.dumps(SQUARES["graph"]).decode()
FEEDS = orjson.dumps(SQUARES["feeds"]).decode()


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (f' {{ "feeds" : {FEEDS} ,\n "graph" : {GRAPH} }} ', 200),
        (f'{{"gr\\u0061ph": {GRAPH}, "feeds": {FEEDS}}}', 200),
        (f'{{"graph": {GRAPH}, "feeds": {FEEDS}, "graph": {GRAPH}}}', 400),
        (f'{{"graph": {GRAPH}, "gr\\u0061ph": {GRAPH}, "feeds": {FEEDS}}}', 400),
        (f'{{"graph": {GRAPH}, "feeds": {FEEDS}, "feeds": []}}', 400),
        (f'{{"graph": {GRAPH[:-1]}, "nodes": []}}, "feeds": {FEEDS}}}', 400),
        (f'{{"graph": {GRAPH}, "feeds": {FEEDS}', 400),
        (f'{{"graph": {GRAPH[:-2]}, "feeds": {FEEDS}}}', 400),
        (f'{{"graph": {GRAPH}, "feeds": {FEEDS}}} x', 400),
        (f'{{"graph": {GRAPH}, "feeds": NaN}}', 400),
        (f'{{"feeds": {{"graph": {GRAPH}}}, "graph": {GRAPH}}}', 422),
        (f'{{"feeds": [{{"node": 0, "tensor": {GRAPH}}}], "graph": {GRAPH}}}', 422),
        (f'{{"graph": {GRAPH}, "feeds": {FEEDS}, "wtr": [0], "of": "1"}}', 422),
        (f'{{"graph": {GRAPH[:-1]}, "node": 1}}, "feeds": {FEEDS}, "wtr": [0]}}', 422),
        (f'{{"graph": [{GRAPH}], "feeds": {FEEDS}}}', 422),
        (f'{{"graph": null, "feeds": {FEEDS}}}', 422),
        (f'{{"graph": {{}}, "feeds": {FEEDS}}}', 422),
        (f'{{"graph": {{"nodes": []}}, "feeds": {FEEDS}}}', 422),
        (f'{{"graph": {{"nodes": [], "opset": 3}}, "feeds": {FEEDS}}}', 422),
        (f'{{"feeds": {FEEDS}}}', 422),
        (f"[{GRAPH}]", 422),
        ("{" * 200, 400),
        (f'{{"graph": {{"nodes": {"[" * 99}{"]" * 99}}}}}', 400),
        (f'{{"graph": {{"nodes": {"[" * 98}{"]" * 98}}}}}', 422),
        ("", 400),
    ],
)
def test_unusual_requests_agree(text: str, status: int) -> None:
    check_agreement(orjson.dumps(SQUARES))  # caches its graph
    assert check_agreement(text.encode()) == status


def test_invalid_utf8_agrees() -> None:
    for body in (b'{"graph": {"nodes": [{"op": "\xff"}]}}', b'{"graph": ' + GRAPH.encode() + b', "\xff": 1}'):
        assert check_agreement(body) == 400


@pytest.mark.slow
@given(st.data())
def test_request_with_one_byte_changed_agrees(data: st.DataObject) -> None:
    body = bytearray(orjson.dumps(SQUARES))
    offset = data.draw(st.integers(0, len(body) - 1))
    body[offset] = data.draw(st.sampled_from(b'{}[]",:0 1\\an'))
    check_agreement(bytes(body))


def parsed_texts(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Record the texts that the parser receives."""
    seen: list[bytes] = []
    parse = jiter.from_json

    def spy(text: bytes, **options: Any) -> Any:
        seen.append(text)
        return parse(text, **options)

    monkeypatch.setattr("service.api.json_codec.jiter.from_json", spy)
    return seen


def test_graph_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    body = orjson.dumps(request(node("full", shape=[3], fill=8.25), node("sum", 0)))
    seen = parsed_texts(monkeypatch)
    for call in ("forward", "plan", "forward"):
        sent = body if call == "forward" else body.replace(b',"feeds":[]', b"")
        assert post(IN_PARTS, sent, call).status == 200
    assert sum(b"8.25" in text for text in seen) == 1


def test_binary_and_json_requests_share_cached_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    body = request(node("full", shape=[3], fill=9.25), node("sum", 0))
    assert post(IN_PARTS, json.dumps(body).encode(), "forward").status == 200
    seen = parsed_texts(monkeypatch)
    assert post(IN_PARTS, packed(body, {}), "forward", SAFETENSORS).status == 200
    assert not [text for text in seen[1:] if b"9.25" in text]  # the header itself quotes the request


def test_invalid_graph_is_not_cached() -> None:
    body = orjson.dumps(request(node("full", shape=[3], fill=8.5), node("sums", 0)))
    first, second = (timeless(post(IN_PARTS, body)) for _ in range(2))
    assert first == second
    assert first[0] == 422


@pytest.mark.parametrize("nodes", ['{"op":"neg","operands":[0]}', "1", "[1,[2,3]]", '"a,b"', "{}"])
@pytest.mark.parametrize("count", [50, 51, 5000])
def test_too_many_nodes_are_counted_exactly(nodes: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = ", ".join([nodes] * count)
    body = f'{{"graph": {{"opset": 1, "nodes": [ {listed} ]}}, "feeds": []}}'.encode()
    expected = timeless(post(WHOLE, body))
    seen = parsed_texts(monkeypatch)
    assert timeless(post(IN_PARTS, body)) == expected
    assert (b"too_many_nodes" in expected[1]) == (count > 50)
    assert any(listed.encode() in text for text in seen) == (count <= 50)


@pytest.mark.parametrize(
    ("functions", "count"),
    [
        ([{"nodes": [{"op": "input"}] * 24, "outputs": [0]}] * 2, 49),
        ([{"nodes": [{"op": "input"}] * 24, "outputs": [0]}] * 2 + [{"nodes": [], "outputs": []}], 50),
        ([{"nodes": [{"op": "input"}] * 24, "outputs": [0]}] * 3, 73),
        ([{"nodes": [], "outputs": []}] * 49, 50),
        ([{"nodes": [], "outputs": []}] * 50, 51),
        ([{}] * 50, 51),
        ([[]] * 50, 51),
        ([{"nodes": dict.fromkeys(map(str, range(99)), 0)}] * 49, 50),
        ([{"nodes": 1}] * 50, 51),
    ],
)
def test_node_counts_of_functions_agree(functions: list[Any], count: int) -> None:
    body = {"graph": {"nodes": [{"op": "input"}], "opset": 2, "functions": functions, "a": ","}, "feeds": []}
    expected = timeless(post(WHOLE, orjson.dumps(body)))
    assert timeless(post(IN_PARTS, orjson.dumps(body))) == expected
    assert (b"too_many_nodes" in expected[1]) == (count > 50)


@pytest.mark.parametrize("functions", ["null", "{}", "1", '"functions"'])
def test_malformed_functions_count_no_nodes(functions: str) -> None:
    body = f'{{"graph": {{"nodes": [{"1," * 50}1], "functions": {functions}}}, "feeds": []}}'.encode()
    assert check_agreement(body) == 413


def test_commas_in_attributes_do_not_count_as_nodes() -> None:
    weighted = request(*[node("full", shape=[2, 2, 2], fill=1)] * 50)
    assert check_agreement(orjson.dumps(weighted), "forward") == 200


@pytest.mark.slow
@given(
    st.lists(st.recursive(st.integers() | st.text('[]{},"\\'), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
)
def test_element_count_matches_a_parser(value: list[Any]) -> None:
    assert elements(json.dumps(value).encode()) == len(value)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["graph", "feeds", "of"]), st.recursive(st.integers(), st.lists), min_size=1))
def test_split_parts_make_up_the_body(value: dict[str, Any]) -> None:
    body = json.dumps(value).encode()
    parts = split_graph(body)
    assert (parts is None) == ("graph" not in value)
    if parts is not None:
        assert json.loads(parts.graph) == value["graph"]
        assert json.loads(parts.rest) == value | {"graph": json.loads(STUB)}


def test_long_body_of_numbers_is_not_split(monkeypatch: pytest.MonkeyPatch) -> None:
    split_lengths: list[int] = []
    monkeypatch.setattr("service.api.json_reader.split_graph", lambda text: split_lengths.append(len(text)))
    numbers = SQUARES | {"feeds": [feed(0, [40_000], [1.5] * 40_000)]}
    nodes = request(*[node("full", shape=[1])] * 2000)
    for body in (numbers, nodes, SQUARES):
        IN_PARTS._json.read_request(orjson.dumps(body))
    assert split_lengths == [len(orjson.dumps(body)) for body in (nodes, SQUARES)]


def test_long_body_of_numbers_agrees() -> None:
    assert check_agreement(orjson.dumps(SQUARES | {"feeds": [feed(0, [40_000], [1.5] * 40_000)]})) == 200


def test_graph_cache_is_bounded() -> None:
    worker = Worker(SETTINGS.model_copy(update={"plan_cache": 2}))
    graphs = [orjson.dumps(request(node("full", shape=[1], fill=fill))) for fill in (1, 2, 3)]
    names = [worker._json.read_request(graph).source for graph in graphs]
    for graph in graphs:
        assert post(worker, graph, "forward").status == 200
    assert [worker._programs.cached(source.name) is not None for source in names if source] == [False, True, True]
