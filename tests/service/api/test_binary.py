"""safetensors requests and answers: bit-exact, equivalent to JSON, and compatible with the safetensors library."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load, save

from engine import DTYPES, LATEST
from engine.ir.tensor_type import REALS, has_infinities, real_dtype
from service.api.calls import calls
from tests.conftest import Client, RunningServer
from tests.sampling import together
from tests.service.api.safetensors_support import (
    BINARY,
    KIND,
    SENT,
    Array,
    answered,
    array,
    body,
    same_bits,
    split,
    tensor,
)
from tests.service.support import SQUARES, Json, feed, node, request

#: bit patterns by dtype: quiet and signalling NaN with payloads and either sign, infinities, −0.0, subnormals
PATTERNS: dict[str, list[int]] = {
    "float16": [0x7E01, 0xFE42, 0x7D01, 0x7C00, 0xFC00, 0x8000, 0x0001, 0x83FF, 0x7BFF, 0x0400],
    "float32": [
        0x7FC00001, 0xFFC12345, 0x7FA00001, 0x7F800000, 0xFF800000, 0x80000000, 1, 0x807FFFFF, 0x7F7FFFFF, 0x00800000,
    ],
    "float64": [
        0x7FF8000000000001, 0xFFF8DEADBEEF1234, 0x7FF4000000000001, 0x7FF0000000000000, 0xFFF0000000000000,
        0x8000000000000000, 1, 0x800FFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF, 0x0010000000000000,
    ],
}  # fmt: skip
FINITE = slice(5, None)


def special_values(dtype: str) -> Array:
    """The special values of a dtype."""
    if dtype in PATTERNS:
        return np.array(PATTERNS[dtype], f"uint{8 * np.dtype(dtype).itemsize}").view(dtype)
    if dtype == "bool":
        return np.array([False, True, True, False])
    if dtype.startswith("complex"):
        real = special_values(str(real_dtype(np.dtype(dtype))))
        return np.stack([real, np.concatenate([real[:5][::-1], real[FINITE][::-1]])], -1).view(dtype)[:, 0]
    info = np.iinfo(dtype)
    return np.array([info.min, info.max, 0, 1, info.max // 3], dtype)


def sample_values(dtype: str) -> dict[str, Array]:
    """Test values by a description."""
    values = special_values(dtype)
    plain = values[FINITE] if has_infinities(values.dtype) else values[:0] if dtype == "int64" else values
    return {
        "every kind of value": values,
        "what JSON holds": plain,
        "0-d": values[:1].reshape(()),
        "empty": np.empty(0, dtype),
        "empty with extents": np.empty((3, 0, 2), dtype),
        "rank 5": np.resize(values, (1, 2, 1, 3, 2)),
    }


CASES = [pytest.param(value, id=f"{dtype}-{name}") for dtype in DTYPES for name, value in sample_values(dtype).items()]
ECHO = {"graph": {"opset": LATEST, "nodes": [node("input")]}}


def echo_json(post: Callable[..., httpx.Response], value: Array, encoding: str) -> Array:
    """Send a value to the server and read it back from JSON."""
    feeds = [{"node": 0, "tensor": tensor(value)}]
    response = post("/v1/forward", json={**ECHO, "feeds": feeds, "encoding": encoding})
    return array(response.json()["values"][0]["tensor"])


def echo_binary(post: Callable[..., httpx.Response], value: Array) -> Array:
    """Send a value to the server and read it back from safetensors."""
    response = post("/v1/forward", content=body(ECHO, {"feeds.0": value}), headers=BINARY)
    answer, tensors = answered(response)
    assert answer["values"] == [{"node": 0}]
    return tensors["values.0"]


@together
@pytest.mark.parametrize("encoding", ["json", "base64"])
@pytest.mark.parametrize("value", CASES)
def test_json_roundtrip_is_bit_exact(client: Client, value: Array, encoding: str) -> None:
    assert same_bits(echo_json(client.post, value, encoding), value)


@pytest.mark.parametrize("value", CASES)
def test_safetensors_roundtrip_is_bit_exact(client: Client, value: Array) -> None:
    assert same_bits(echo_binary(client.post, value), value)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_roundtrip_through_a_server_process_is_bit_exact(server: RunningServer, dtype: str) -> None:
    value = special_values(dtype)

    def post(path: str, **options: Any) -> httpx.Response:
        return httpx.post(server.url + path, **options)

    assert same_bits(echo_binary(post, value), value)
    assert same_bits(echo_json(post, value, "json"), value)
    assert same_bits(echo_json(post, value, "base64"), value)


def test_numbers_exact_in_json_are_sent_as_numbers(client: Client) -> None:
    """Only values that JSON cannot express fall back to base64: −0.0, subnormals and 2^53 are numbers."""
    for value in (special_values("float64")[FINITE], np.array([2**53, -(2**53)])):
        feeds = [{"node": 0, "tensor": tensor(value)}]
        returned = client.post("/v1/forward", json={**ECHO, "feeds": feeds}).json()["values"][0]["tensor"]
        assert "data" in returned
        assert same_bits(array(returned), value)


def test_unaligned_tensors_of_many_dtypes(client: Client) -> None:
    """The order leaves most tensors unaligned: 1, 8, 2, 4, 1, 8, … bytes after a header of odd length."""
    order = ["bool", "float64", "float16", "int32", "uint8", "int64", "float32", "int8"]
    values = [special_values(dtype)[:3] for dtype in order]
    graph = {"graph": {"nodes": [node("input") for _ in order]}, "outputs": list(range(8))}
    sent = body(graph, {f"feeds.{i}": value for i, value in enumerate(values)})
    for padding in range(8):
        length = int.from_bytes(sent[:8], "little")
        header = sent[8 : 8 + length].rstrip() + b" " * padding
        moved = len(header).to_bytes(8, "little") + header + sent[8 + length :]
        _, tensors = answered(client.post("/v1/forward", content=moved, headers=BINARY))
        assert list(tensors) == sorted(tensors, key=lambda name: -tensors[name].itemsize), "the widest first"
        assert all(same_bits(tensors[f"values.{i}"], value) for i, value in enumerate(values))


def test_unaligned_operands_compute_correctly(client: Client) -> None:
    """An odd number of bytes precedes the float64 operands."""
    x = np.array([1.5, -2.0, 3.25])
    graph = request(node("input"), node("input"), node("matmul", 0, 0), outputs=[2])
    tensors = {"feeds.1": np.array([7], np.uint8), "feeds.0": x}
    nodes = [*graph["graph"]["nodes"], node("mul", 2, 1)]
    sent = body({"graph": {"nodes": nodes}, "outputs": [2, 3]}, tensors)
    _, tensors_out = answered(client.post("/v1/forward", content=sent, headers=BINARY))
    assert tensors_out["values.2"] == 1.5**2 + 2**2 + 3.25**2


CALLS = [(name, title) for name, call in calls().items() for title in call.examples]


def without_times(answer: Json) -> Json:
    """Remove the fields of an answer that differ between runs."""
    stats = {k: v for k, v in answer.get("stats", {}).items() if k not in ("execute_ms", "plan_cached", "tier")}
    return {**answer, "stats": stats}


def without_tensors(value: Any) -> Any:
    """Remove the tensors of an answer."""
    if isinstance(value, dict):
        constant = value.get("op") == "constant"
        return {k: without_tensors(v) for k, v in value.items() if k != "tensor" and not (constant and k == "attrs")}
    return [without_tensors(item) for item in value] if isinstance(value, list) else value


def tensors_by_name(answer: Json) -> dict[str, Array]:
    """Map the tensors of a JSON answer by their names in safetensors."""
    fields = {"jacobian": ("of", "wrt"), "hessian": ("row", "column")}
    tensors: dict[str, Array] = {}
    for kind, entries in answer.items():
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and "tensor" in entry:
                nodes = (str(entry[field]) for field in fields.get(kind, ("node",)))
                tensors[".".join((kind, *nodes))] = array(entry["tensor"])
    for i, each in enumerate(answer.get("graph", {}).get("nodes", [])):
        if each["op"] == "constant":
            tensors[f"constants.{i}"] = array(each["attrs"]["value"])
    return tensors


def check_equivalent(client: Client, call: str, sent: Json) -> dict[str, Array]:
    """Check that JSON and safetensors requests and answers are equivalent, and return the tensors."""
    rest, tensors = split(sent)
    packed = body(rest, tensors)
    path = f"/v1/{call}"
    json_response = client.post(path, json=sent)
    assert json_response.status_code == 200, json_response.text
    expected = json_response.json()
    assert without_times(client.post(path, content=packed, headers=SENT).json()) == without_times(expected)
    json_tensors = tensors_by_name(expected)
    constants = {name for name in tensors if name.startswith("constants.")}  # the client's nodes are returned unchanged
    for response, omitted in (
        (client.post(path, content=packed, headers=BINARY), set()),
        (client.post(path, json=sent, headers={"Accept": KIND}), constants),
    ):
        answer, binary_tensors = answered(response)
        if call == "plan":  # the length differs in safetensors
            answer["response_bytes"] = expected["response_bytes"]
        assert without_tensors(without_times(answer)) == without_tensors(without_times(expected))
        assert "tensor" not in json.dumps(answer)
        assert set(binary_tensors) == set(json_tensors) - omitted
        assert all(same_bits(binary_tensors[name], json_tensors[name]) for name in binary_tensors)
    return json_tensors


@pytest.mark.parametrize(("call", "title"), CALLS)
def test_json_and_safetensors_answers_are_equivalent(client: Client, call: str, title: str) -> None:
    check_equivalent(client, call, calls()[call].examples[title])


#: two parameters, for blocks of two nodes, and a constant
TWO = request(
    node("parameter"),
    node("parameter"),
    {"op": "constant", "attrs": {"value": {"dtype": "float64", "shape": [2], "data": [0.5, 4.0]}}},
    node("mul", 0, 1),
    node("sin", 3),
    node("mul", 4, 2),
    node("sum", 5),
    feeds=[feed(0, [2], [1.5, -2.0]), feed(1, [2], [0.25, 3.0])],
)
VECTOR = {"dtype": "float64", "shape": [2], "data": [1.0, -0.5]}
PAIR = [{"node": 0, "tensor": VECTOR}, {"node": 1, "tensor": VECTOR}]
TYPES = [{"node": i, "dtype": "float64", "shape": [2]} for i in (0, 1)]
TYPED: Json = {"graph": TWO["graph"], "types": TYPES}


@pytest.mark.parametrize(
    ("call", "sent", "tensors"),
    [
        ("forward", TWO | {"outputs": [3, 6]}, {"values.3", "values.6"}),
        (
            "gradients",
            TWO | {"of": 5, "cotangent": VECTOR, "outputs": [5]},
            {"values.5", "gradients.0", "gradients.1"},
        ),
        (
            "vjp",
            TWO | {"outputs": [3, 5], "cotangents": [{"node": 3, "tensor": VECTOR}, {"node": 5, "tensor": VECTOR}]},
            {"values.3", "values.5", "gradients.0", "gradients.1"},
        ),
        ("jvp", TWO | {"tangents": PAIR, "outputs": [5]}, {"values.5", "tangents.5"}),
        ("jacobian", TWO | {"outputs": [5]}, {"values.5", "jacobian.5.0", "jacobian.5.1"}),
        (
            "hvp",
            TWO | {"vectors": PAIR},
            {"values.6", "gradients.0", "gradients.1", "hvp.0", "hvp.1"},
        ),
        (
            "hessian",
            TWO,
            {"values.6", "gradients.0", "gradients.1", *(f"hessian.{i}.{j}" for i in (0, 1) for j in (0, 1))},
        ),
        (
            "batch",
            TWO | {"mapped": [0], "feeds": [feed(0, [3, 2], [1, 2, 3, 4, 5, 6]), feed(1, [2], [0.25, 3.0])]},
            {"values.6", "gradients.0", "gradients.1"},
        ),
        ("plan", TYPED, set()),
        ("check", TWO, set()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_call_names_its_tensors(client: Client, call: str, sent: Json, tensors: set[str]) -> None:
    assert set(check_equivalent(client, call, sent)) == tensors


def test_differentiated_graph_has_its_constants_as_tensors(client: Client) -> None:
    """The returned graph computes the gradients when it is sent back unchanged."""
    json_tensors = check_equivalent(client, "differentiate", TYPED)
    assert same_bits(json_tensors["constants.2"], np.array([0.5, 4.0]))
    rest, tensors = split(TYPED)
    answer, constants = answered(client.post("/v1/differentiate", content=body(rest, tensors), headers=BINARY))
    outputs = [entry["gradient_node"] for entry in answer["gradients"]]
    feeds = {f"feeds.{entry['node']}": array(entry["tensor"]) for entry in TWO["feeds"]}
    sent = body({"graph": answer["graph"], "outputs": outputs}, constants | feeds)
    _, values = answered(client.post("/v1/forward", content=sent, headers=BINARY))
    x, y, c = np.array([1.5, -2.0]), np.array([0.25, 3.0]), np.array([0.5, 4.0])
    np.testing.assert_allclose(values[f"values.{outputs[0]}"], c * np.cos(x * y) * y, rtol=1e-14)
    np.testing.assert_allclose(values[f"values.{outputs[1]}"], c * np.cos(x * y) * x, rtol=1e-14)


def test_cotangent_tensor_belongs_to_the_differentiated_node(client: Client) -> None:
    sent = {"graph": TWO["graph"], "of": 4}
    tensors = {f"feeds.{entry['node']}": array(entry["tensor"]) for entry in TWO["feeds"]}
    response = client.post(
        "/v1/gradients", content=body(sent, tensors | {"cotangents.4": np.array([2.0, 0.0])}), headers=BINARY
    )
    gradient = answered(response)[1]["gradients.0"]
    np.testing.assert_allclose(gradient, [2 * np.cos(1.5 * 0.25) * 0.25, 0], rtol=1e-14)


def test_feed_entries_may_mark_or_contain_tensors(client: Client) -> None:
    rest, tensors = split(TWO)
    expected = answered(client.post("/v1/gradients", content=body(rest, tensors), headers=BINARY))[1]
    marked = {**rest, "feeds": [{"node": 0}, {"node": 1}]}
    mixed = {**rest, "feeds": [{"node": 1, "tensor": TWO["feeds"][1]["tensor"]}, {"node": 0}]}
    without = {name: value for name, value in tensors.items() if name != "feeds.1"}
    for sent in (body(marked, tensors), body(mixed, without)):
        returned = answered(client.post("/v1/gradients", content=sent, headers=BINARY))[1]
        assert all(same_bits(returned[name], expected[name]) for name in expected)


def test_octet_stream_is_safetensors(client: Client) -> None:
    rest, tensors = split(SQUARES)
    octets = {"Content-Type": "application/octet-stream", "Accept": "application/octet-stream"}
    _, returned = answered(client.post("/v1/gradients", content=body(rest, tensors), headers=octets))
    assert returned["gradients.0"].tolist() == [2.0, 4.0]


def test_request_without_tensors(client: Client) -> None:
    sent = body(request(node("full", shape=[2], fill=3.0)), {})
    assert answered(client.post("/v1/forward", content=sent, headers=BINARY))[1]["values.0"].tolist() == [3.0, 3.0]


@pytest.mark.slow
def test_chunked_upload(server: RunningServer) -> None:
    rest, tensors = split(SQUARES)
    sent = body(rest, tensors)
    pieces = (sent[i : i + 7] for i in range(0, len(sent), 7))
    returned = answered(httpx.post(server.url + "/v1/gradients", content=pieces, headers=BINARY))[1]
    assert returned["gradients.0"].tolist() == [2.0, 4.0]


def save_with_library(rest: Json, tensors: dict[str, Array]) -> bytes:
    """Write a body with the safetensors library."""
    written: bytes = save(tensors, {"request": json.dumps(rest)})
    return written


@pytest.mark.parametrize(("call", "title"), CALLS)
def test_bodies_are_compatible_with_the_safetensors_library(
    client: Client, call: str, title: str, tmp_path: Any
) -> None:
    rest, tensors = split(calls()[call].examples[title])
    path = f"/v1/{call}"
    expected, ours = answered(client.post(path, content=body(rest, tensors), headers=BINARY))
    response = client.post(path, content=save_with_library(rest, tensors), headers=BINARY)
    assert without_times(answered(response)[0]) == without_times(expected)
    theirs = load(response.content)
    assert set(theirs) == set(ours)
    assert all(same_bits(theirs[name], ours[name]) for name in ours)
    file = tmp_path / "answer.safetensors"
    file.write_bytes(response.content)
    with safe_open(file, framework="numpy") as opened:
        assert without_times(json.loads(opened.metadata()["response"])) == without_times(expected)


def test_library_roundtrip_is_bit_exact(client: Client) -> None:
    values = {f"feeds.{i}": value for i, value in enumerate(map(special_values, REALS))}
    graph = {"graph": {"opset": LATEST, "nodes": [node("input") for _ in REALS]}, "outputs": list(range(len(REALS)))}
    returned = load(client.post("/v1/forward", content=save_with_library(graph, values), headers=BINARY).content)
    assert all(same_bits(returned[f"values.{i}"], values[f"feeds.{i}"]) for i in range(len(REALS)))
