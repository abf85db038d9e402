"""Invalid safetensors bodies: each is refused with one sentence that names the tensor, never with a 5xx."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.conftest import Client, RunningServer
from tests.service.api.safetensors_support import BINARY, KIND, SENT, Array, answered, body, framed, split
from tests.service.support import SQUARES, Json, exchange, node, problem, request

W = np.array([1.0, 2.0])
REST, TENSORS = split(SQUARES)
GOOD = body(REST, TENSORS)
META = {"request": json.dumps(REST)}


def entry(start: Any = 0, stop: Any = 16, dtype: Any = "F64", shape: Any = (2,)) -> Json:
    """A tensor's entry in the header."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


def with_header(header: Any, data: bytes = W.tobytes()) -> bytes:
    """Build a body with this JSON header."""
    return framed(json.dumps(header).encode(), data)


def with_entry(tensor_entry: Any, name: str = "feeds.0", data: bytes = W.tobytes()) -> bytes:
    """Build a body whose only tensor has this entry."""
    return with_header({"__metadata__": META, name: tensor_entry}, data)


def refused(client: Client, content: bytes, status: int, code: str, call: str = "gradients") -> Json:
    """Send a body that must be refused with a detail of one sentence, and return the report."""
    report = problem(client.post(f"/v1/{call}", content=content, headers=BINARY), status, code)
    detail = report["detail"]
    assert "\n" not in detail
    assert not detail.endswith(".")
    assert len(detail) < 400
    return report


def test_valid_body(client: Client) -> None:
    assert answered(client.post("/v1/gradients", content=GOOD, headers=BINARY))[1]["gradients.0"].tolist() == [2.0, 4.0]


HUGE = (0, 2**62), (0, 2**63), (0, 2**64), (2**64, 2**64 + 16), (0, 10**400)
FLOATS = (0.0, 16), (0, 16.0), (0, 1e300), (0.5, 16)
OTHERS = (False, True), (True, 17), ("0", 16), (None, 16), ([], 16), (-1, 15), (-16, 0), (0, -16)


@pytest.mark.parametrize(
    "offsets", [*HUGE, *FLOATS, *OTHERS, (16, 0), (8, 24), (1, 17), (0, 15), (0, 17), (0, 8)], ids=str
)
def test_invalid_offsets_are_refused(client: Client, offsets: tuple[Any, Any]) -> None:
    report = refused(client, with_entry(entry(*offsets)), 422, "bad_tensor")
    assert "feeds.0" in report["detail"] or "safetensors body" in report["detail"]


@pytest.mark.parametrize(
    "offsets", [None, 0, "0,16", [], [0], [0, 16, 16], {"start": 0, "stop": 16}, [[0, 16]], [None, None]], ids=str
)
def test_offsets_must_be_two_numbers(client: Client, offsets: Any) -> None:
    report = refused(client, with_entry(entry() | {"data_offsets": offsets}), 422, "bad_tensor")
    assert report["detail"] == "tensor feeds.0 has no data_offsets: two whole numbers are expected"
    assert report["node"] == 0


@pytest.mark.parametrize("one", [1, "F64", [], [0, 16], True, {}, {"dtype": "F64", "shape": [2]}], ids=str)
def test_malformed_entry_is_refused(client: Client, one: Any) -> None:
    assert "feeds.0" in refused(client, with_entry(one), 422, "bad_tensor")["detail"]


TWO = request(node("parameter"), node("parameter"), node("mul", 0, 1), node("sum", 2))


@pytest.mark.parametrize(
    ("first", "second", "length", "named"),
    [
        ((0, 16), (8, 24), 24, "feeds.1"),
        ((0, 16), (0, 16), 16, "feeds.1"),
        ((0, 16), (24, 40), 40, "feeds.1"),
        ((8, 24), (24, 40), 40, "feeds.0"),
        ((0, 16), (16, 32), 33, "safetensors body"),
        ((0, 16), (16, 32), 31, "safetensors body"),
        ((0, 16), (16, 32), 0, "safetensors body"),
        ((0, 32), (16, 16), 32, "feeds.1"),
    ],
    ids=["overlap", "same place", "gap", "gap in front", "bytes over", "a byte missing", "no data", "inside"],
)
def test_overlapping_or_missing_data_is_refused(
    client: Client, first: tuple[int, int], second: tuple[int, int], length: int, named: str
) -> None:
    header = {"__metadata__": {"request": json.dumps({"graph": TWO["graph"]})}}
    tensors = {"feeds.0": entry(*first), "feeds.1": entry(*second)}
    report = refused(client, with_header(header | tensors, bytes(length)), 422, "bad_tensor")
    assert named in report["detail"]


def test_header_entries_may_be_in_any_order(client: Client) -> None:
    header = {"__metadata__": {"request": json.dumps({"graph": TWO["graph"]})}}
    data = np.array([1.0, 2.0, 3.0, 4.0]).tobytes()
    sent = with_header({"feeds.1": entry(0, 16), **header, "feeds.0": entry(16, 32)}, data)
    tensors = answered(client.post("/v1/gradients", content=sent, headers=BINARY))[1]
    assert tensors["gradients.0"].tolist() == [1.0, 2.0]
    assert tensors["gradients.1"].tolist() == [3.0, 4.0]


@pytest.mark.parametrize("dtype", ["BF16", "F8_E4M3", "F8_E5M2", "U16", "U64", "F4", "C128", "f64", "", "i16"])
def test_unsupported_dtype_is_refused(client: Client, dtype: str) -> None:
    report = refused(client, with_entry(entry(dtype=dtype)), 422, "bad_tensor")
    assert report["detail"] == (
        f"tensor feeds.0 has the dtype {dtype}; one of BOOL, I8, U8, I16, I32, U32, I64, F16, F32, F64, C64 is expected"
    )
    assert (report["node"], report["got"]) == (0, dtype)


@pytest.mark.parametrize("dtype", [None, 64, ["F64"], {"F64": 1}, True], ids=str)
def test_dtype_must_be_a_string(client: Client, dtype: Any) -> None:
    report = refused(client, with_entry(entry(dtype=dtype)), 422, "bad_tensor")
    assert report["detail"].startswith("tensor feeds.0 has the dtype ")


@pytest.mark.parametrize("field", ["dtype", "shape", "data_offsets"])
@pytest.mark.parametrize("digits", [400, 4301, 100_000])
def test_number_with_many_digits_is_refused(client: Client, field: str, digits: int) -> None:
    """Python refuses to write an integer of more than 4,300 digits."""
    for value in ("9" * digits, "[" + "9" * digits + "]"):
        text = json.dumps({"__metadata__": META, "feeds.0": entry() | {field: "here"}}).replace('"here"', value)
        sent = framed(text.encode(), W.tobytes())
        response = client.post("/v1/gradients", content=sent, headers=BINARY)
        assert response.status_code in (400, 422), response.text


@pytest.mark.parametrize(
    "shape", [None, 2, "2", [2.0], ["2"], [True, 2], [-2], [-1, -2], [None], [2**64], [[2]], {"0": 2}], ids=str
)
def test_shape_must_be_a_list_of_extents(client: Client, shape: Any) -> None:
    report = refused(client, with_entry(entry(shape=shape)), 422, "bad_tensor")
    assert report["detail"] == "tensor feeds.0 has no shape: a list of whole numbers is expected"


@pytest.mark.parametrize(("dtype", "shape"), [("F64", [1]), ("F64", [3]), ("F64", []), ("F32", [2]), ("F64", [0])])
def test_shape_must_match_the_number_of_bytes(client: Client, dtype: str, shape: list[int]) -> None:
    report = refused(client, with_entry(entry(dtype=dtype, shape=shape)), 422, "bad_tensor")
    assert re.match(r"tensor feeds.0 must hold \d+ bytes to be float\d\d\[.*\], but holds 16 bytes", report["detail"])


@pytest.mark.parametrize("shape", [[2**61], [2**31, 2**31], [2**32, 2**32, 2**32], [1] * 33, [0, 2**61], [1] * 100_000])
def test_huge_shape_is_over_budget(client: Client, shape: list[int]) -> None:
    """Products use exact arithmetic: 2^32 · 2^32 · 2^32 · 8 is 0 in 64 bits."""
    report = refused(client, with_entry(entry(shape=shape)), 413, "over_budget")
    assert report["detail"].startswith("tensor feeds.0: ")
    assert report["node"] == 0


@pytest.mark.parametrize("byte", [2, 0x80, 0xFF])
def test_bool_byte_must_be_0_or_1(client: Client, byte: int) -> None:
    sent = with_entry(entry(0, 2, "BOOL"), data=bytes([1, byte]))
    report = refused(client, sent, 422, "bad_tensor")
    assert report["detail"] == "tensor feeds.0 has a byte that is neither 0 nor 1"


@pytest.mark.parametrize(
    "name",
    [
        "feeds", "feeds.", ".0", "feeds.-1", "feeds.00", "feeds.01", "feeds.0.1", "feeds.x", "Feeds.0", "feeds 0",
        "", "0", "feeds.٣", "feeds.²", "feeds.0\n", "feeds." + "9" * 19, "weight", "f" * 33 + ".0", "x" * 100_000,
    ],
    ids=lambda name: repr(name)[:20],
)  # fmt: skip
def test_malformed_tensor_name_is_refused(client: Client, name: str) -> None:
    report = refused(client, with_entry(entry(), name), 422, "invalid_field")
    assert "names are ROLE.NODE, such as feeds.0" in report["detail"]


@pytest.mark.parametrize(
    ("call", "name", "taken"),
    [
        ("gradients", "values.0", "feeds.NODE, constants.NODE, cotangents.NODE"),
        ("gradients", "tangents.0", "feeds.NODE, constants.NODE, cotangents.NODE"),
        ("forward", "cotangents.0", "feeds.NODE, constants.NODE"),
        ("plan", "feeds.0", "constants.NODE"),
        ("check", "cotangents.2", "feeds.NODE, constants.NODE"),
        ("differentiate", "feeds.0", "constants.NODE"),
    ],
)
def test_role_unsupported_by_the_call_is_refused(client: Client, call: str, name: str, taken: str) -> None:
    sent = body({"graph": SQUARES["graph"]}, {name: W})
    report = refused(client, sent, 422, "invalid_field", call)
    assert report["detail"] == f"the body has a tensor “{name}”, but this call takes {taken}"


@pytest.mark.parametrize("name", ["feeds.1", "feeds.3", "feeds.999999999999999999"])
def test_feed_of_a_non_leaf_is_refused(client: Client, name: str) -> None:
    report = refused(client, body(REST, TENSORS | {name: W}), 422, "unexpected_feed")
    assert name.partition(".")[2] in report["detail"]


@pytest.mark.parametrize("name", ["constants.0", "constants.3", "constants.999999999999999999"])
def test_constant_of_another_node_is_refused(client: Client, name: str) -> None:
    report = refused(client, body(REST, TENSORS | {name: W}), 422, "invalid_field")
    assert f"“{name}”" in report["detail"]


def test_cotangent_of_another_node_is_refused(client: Client) -> None:
    report = refused(client, body(REST, TENSORS | {"cotangents.1": W}), 422, "bad_reference")
    assert report["detail"] == "a cotangent is given for node 1, but the node to differentiate is 2"


ONE = {"dtype": "float64", "shape": [], "data": [1]}
VALUE = {"dtype": "float64", "shape": [2], "data": [1, 2]}


@pytest.mark.parametrize(
    ("rest", "tensors", "says"),
    [
        (SQUARES, TENSORS, "feeds name node 0 twice"),
        (REST | {"cotangent": ONE}, TENSORS | {"cotangents.2": np.array(1.0)}, "its JSON request also has a cotangent"),
        (REST | {"of": 1, "cotangent": VALUE}, TENSORS | {"cotangents.1": W}, "its JSON request also has a cotangent"),
        (
            request(node("constant", value=VALUE), node("sum", 0)),
            {"constants.0": W},
            "node 0 is not a constant without a value",
        ),
    ],
    ids=["feed", "cotangent", "cotangent of another node", "constant"],
)
def test_tensor_given_twice_is_refused(client: Client, rest: Json, tensors: dict[str, Array], says: str) -> None:
    assert says in refused(client, body(rest, tensors), 422, "invalid_field")["detail"]


def test_feed_entry_without_a_tensor_is_refused(client: Client) -> None:
    report = refused(client, body({"graph": SQUARES["graph"], "feeds": [{"node": 0}]}, {}), 422, "invalid_field")
    assert report["pointer"] == "/feeds/0/tensor"


@pytest.mark.parametrize("length", [len(GOOD) - 7, 1 << 32, 1 << 62, 1 << 63, (1 << 64) - 1])
def test_header_longer_than_the_body_is_refused(client: Client, length: int) -> None:
    report = refused(client, length.to_bytes(8, "little") + GOOD[8:], 422, "bad_tensor")
    left = len(GOOD) - 8
    says = f"the safetensors body states a header of {length} bytes, but has {left} bytes after the length"
    assert report["detail"] == says


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (b"", 422, "the safetensors body is too short to hold the length of its header"),
        (GOOD[:7], 422, "the safetensors body is too short to hold the length of its header"),
        (bytes(8) + GOOD[8:], 400, "the header of the safetensors body is empty; a JSON object is expected"),
        (bytes(8), 400, "the header of the safetensors body is empty; a JSON object is expected"),
        (framed(b"{'a': 1}"), 400, "the header of the safetensors body is not JSON: "),
        (framed(b"\xff\xfe"), 400, "the header of the safetensors body is not JSON: "),
        (framed(b'{"a": "\\ud800"}'), 400, "the header of the safetensors body is not JSON: "),
        (framed(b'{"a": NaN}'), 400, "the header of the safetensors body is not JSON ("),
        (framed(b"\xef\xbb\xbf{}"), 400, "the header of the safetensors body starts with a byte-order mark"),
        (framed(b"[1]"), 422, "the header of the safetensors body must be a JSON object, but is a list"),
        (framed(b"[" * 101 + b"]" * 101), 400, "the JSON is nested more than 100 levels deep"),
        (framed(b'{"feeds.0": 1, "feeds.0": 2}'), 400, "the key “feeds.0” appears twice in one JSON object"),
        (framed(b'{"a": {"dtype": "F64", "dtype": "F32"}}'), 400, "the key “dtype” appears twice"),
        (GOOD[:8] + b"x" + GOOD[9:], 400, "the header of the safetensors body is not JSON: "),
    ],
    ids=lambda value: repr(value)[:24],
)  # fmt: skip
def test_malformed_header_is_refused(client: Client, content: bytes, code: int, says: str) -> None:
    response = client.post("/v1/gradients", content=content, headers=BINARY)
    report = response.json()
    assert response.headers["content-type"] == "application/problem+json"
    assert (response.status_code, report["detail"][: len(says)]) == (code, says)


@pytest.mark.parametrize(
    "metadata", [None, {}, [], "{}", {"request": None}, {"request": {}}, {"request": 1}, {"response": "{}"}], ids=str
)
def test_request_metadata_must_be_a_string(client: Client, metadata: Any) -> None:
    for header in ({"__metadata__": metadata, "feeds.0": entry()}, {"feeds.0": entry()}):
        report = refused(client, with_header(header), 422, "bad_tensor")
        assert "__metadata__.request must be a string with the JSON request" in report["detail"]


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("", 400, "invalid_json"),
        ("{", 400, "invalid_json"),
        ('{"graph": NaN}', 400, "invalid_json"),
        ('{"graph": 1, "graph": 2}', 400, "duplicate_key"),
        ("[" * 101 + "]" * 101, 400, "too_deep"),
        ("[]", 422, "invalid_field"),
        ("{}", 422, "invalid_field"),
        ('{"graph": {"nodes": []}, "feeds": {}}', 422, "invalid_field"),
        ('{"graph": {"nodes": []}, "feeds": [[{"node": 0}], null, {"node": 0, "tensor": null}]}', 422, "invalid_field"),
        ('{"graph": {"nodes": []}, "feeds": [{"node": true}, {"node": 0.0}, {"node": "0"}]}', 422, "invalid_field"),
    ],
    ids=lambda value: repr(value)[:32],
)  # fmt: skip
def test_request_metadata_is_parsed_as_strictly_as_a_body(client: Client, text: str, status: int, code: str) -> None:
    report = refused(client, with_header({"__metadata__": {"request": text}}, b""), status, code)
    if code == "invalid_json":
        assert report["detail"].startswith("__metadata__.request of the safetensors body ")


@pytest.fixture(scope="module")
def small(make_client: Callable[..., Client]) -> Client:
    return make_client(max_body_bytes=1000, max_binary_bytes=3000)


def test_header_size_has_the_limit_of_json(small: Client) -> None:
    for length in (1000, 1001):
        sent = body(REST, TENSORS)
        header = sent[8:-16].ljust(length)
        response = small.post("/v1/gradients", content=framed(header, sent[-16:]), headers=BINARY)
        if length == 1000:
            assert response.status_code == 200, response.text
        else:
            assert problem(response, 413, "body_too_large")["detail"] == (
                "the header of the safetensors body may have at most 1000 bytes, but has 1001 bytes"
            )


def test_binary_body_may_be_larger_than_json(small: Client) -> None:
    graph = {"graph": {"nodes": [node("input"), node("sum", 0)]}}
    sent = body(graph, {"feeds.0": np.ones(320)})
    assert 2560 < len(sent) <= 3000
    assert answered(small.post("/v1/forward", content=sent, headers=BINARY))[1]["values.1"] == 320
    report = problem(small.post("/v1/forward", content=sent.ljust(3001), headers=SENT), 413, "body_too_large")
    assert report["got"] == "3001 bytes"
    assert report["expected"] == "at most 3000 bytes"


def test_chunked_body_over_the_limit_is_refused(small: Client) -> None:
    async def pieces() -> Any:
        for _ in range(31):
            yield b" " * 100

    problem(small.post("/v1/forward", content=pieces(), headers=SENT), 413, "body_too_large")


def head(length: int, *more: str) -> bytes:
    """The head of a POST of a body of this length."""
    lines = (
        "POST /v1/gradients HTTP/1.1",
        "Host: localhost",
        f"Content-Type: {KIND}",
        f"Content-Length: {length}",
        *more,
    )
    return "\r\n".join((*lines, "", "")).encode()


@pytest.mark.slow
def test_oversized_body_is_refused_by_its_head_alone(server: RunningServer) -> None:
    """The client sends no body, since it waits for 100 Continue."""
    received = exchange(server.address, head((1 << 30) + 1, "Expect: 100-continue"))
    assert received.startswith(b"HTTP/1.1 413 ")
    assert b"body_too_large" in received


@pytest.mark.slow
def test_body_shorter_than_announced(server: RunningServer) -> None:
    """The client hangs up in the middle of a body, and the server reads the next one."""
    received = exchange(server.address, head(len(GOOD) + 1) + GOOD, half_close=True)
    assert received == b"" or received.startswith(b"HTTP/1.1 400 ")
    assert exchange(server.address, head(len(GOOD)) + GOOD).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("change", [-1, 1])
def test_wrong_content_length_is_refused(client: Client, change: int) -> None:
    """Other servers may pass on a body of another length."""
    headers = SENT | {"Content-Length": str(len(GOOD) + change)}
    report = problem(client.post("/v1/gradients", content=GOOD, headers=headers), 400, "bad_request_framing")
    announced = len(GOOD) + change
    more, fewer = f"more bytes than the {announced} announced", f"{len(GOOD)} bytes, but Content-Length is {announced}"
    assert report["detail"] == f"the body has {more if change < 0 else fewer}"


def test_refusals_do_not_echo_elements(client: Client) -> None:
    secret = np.frombuffer(b"S3CRETS3CRETS3CR", np.float64)
    for sent in (
        body(REST, {"feeds.0": secret, "feeds.7": secret}),
        with_entry(entry(dtype="BOOL", shape=[16]), data=secret.tobytes()),
        with_entry(entry(shape=[3]), data=secret.tobytes()),
        body(REST, {"feeds.0": secret.view(np.int64)}),
    ):
        response = client.post("/v1/gradients", content=sent, headers=BINARY)
        assert 400 <= response.status_code < 500
        assert "S3CRET" not in response.text
        assert repr(float(secret[0])) not in response.text


def fail_if_called(*_: Any) -> Any:
    raise AssertionError("it is refused before this is called")


def test_too_many_axes_are_refused_without_computing_the_size(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The product of 50,000 large extents takes more than a minute."""
    monkeypatch.setattr("service.api.binary.TensorType", fail_if_called)
    report = refused(client, with_entry(entry(shape=[2**61] * 50_000)), 413, "over_budget")
    assert "at most 32 axes, but this one has 50000" in report["detail"]


def test_complex_metadata_has_the_limits_of_json(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Millions of lists in `__metadata__.complex` would take many times the memory of their text."""
    monkeypatch.setattr("service.api.binary.orjson.loads", fail_if_called)
    nested = with_header({"__metadata__": META | {"complex": "[" + "[]," * 1000 + "[]]"}, "feeds.0": entry()})
    assert "a JSON list of names" in refused(client, nested, 422, "bad_tensor")["detail"]
