"""Tensors in JSON and base64: bit-exact roundtrips, and reports of malformed tensors."""

from __future__ import annotations

import base64
import json
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import DTYPES, LATEST, Limits, OverBudget
from schemas import NodeType, Tensor
from service.api.tensors import decode, encode, encoded_bytes, type_of
from service.core.errors import Refusal
from tests.conftest import Client
from tests.service.support import feed, node, problem, request, tensor

LIMITS = Limits()
dtypes = st.sampled_from(DTYPES)


def same_bits(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.slow
@given(st.data(), dtypes, st.sampled_from(["json", "base64"]))
def test_roundtrip_is_bit_exact(data: st.DataObject, dtype: str, encoding: str) -> None:
    array = data.draw(hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0, max_dims=3)))
    written = orjson.dumps(encode(array, encoding), option=orjson.OPT_SERIALIZE_NUMPY)
    assert same_bits(decode(orjson.loads(written), LIMITS), array)


@pytest.mark.parametrize("encoding", ["json", "base64"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_roundtrip_through_the_server_is_bit_exact(client: Client, dtype: str, encoding: str) -> None:
    info = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else np.finfo(dtype) if dtype != "bool" else None
    ends = [0, 1] if info is None else [info.min, info.max, 0, 1]
    array = np.array(ends, dtype)
    sent = {"dtype": dtype, "shape": [len(ends)], "data_b64": base64.b64encode(array.tobytes()).decode()}
    body = request(node("input"), feeds=[{"node": 0, "tensor": sent}], encoding=encoding)
    body["graph"]["opset"] = LATEST
    answer = client.post("/v1/forward", json=body)
    assert same_bits(decode(answer.json()["values"][0]["tensor"], LIMITS), array), answer.text


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float16", np.nan), ("float32", np.inf), ("float64", -np.inf),
        ("int64", 2**53 + 1), ("int64", -(2**63)),
    ],
)  # fmt: skip
def test_values_that_json_cannot_express_use_base64(dtype: str, value: float) -> None:
    assert "data" in encode(np.array([1], dtype), "json")
    assert "data_b64" in encode(np.array([1, value], dtype), "json")


def test_each_tensor_falls_back_separately(client: Client) -> None:
    body = request(node("full"), node("div", 0, 0), outputs=[0, 1])
    whole, broken = (value["tensor"] for value in client.post("/v1/forward", json=body).json()["values"])
    assert whole["data"] == [0.0]
    assert np.isnan(decode(broken, LIMITS))


def test_minus_zero_is_preserved() -> None:
    array = decode(tensor([1], [-0.0]), LIMITS)  # type: ignore[arg-type]
    assert np.signbit(array).all()
    assert orjson.dumps(encode(array, "json"), option=orjson.OPT_SERIALIZE_NUMPY).endswith(b"[-0.0]}")


def test_large_integers_are_exact() -> None:
    assert decode(tensor([1], [2**62 + 1], "int64"), LIMITS)[0] == 2**62 + 1  # type: ignore[arg-type]


def test_integral_floats_are_accepted_as_integers() -> None:
    """R and Lua write 1.0 for 1."""
    assert decode(tensor([2], [1.0, 2], "int8"), LIMITS).tolist() == [1, 2]  # type: ignore[arg-type]
    assert decode(tensor([2], [1.0, 0], "bool"), LIMITS).tolist() == [True, False]  # type: ignore[arg-type]


def test_bool_is_0_or_1(client: Client) -> None:
    body = request(node("input"), feeds=[feed(0, [2], [0, 1], "bool")])
    assert client.post("/v1/forward", json=body).json()["values"][0]["tensor"]["data"] == [0, 1]


@pytest.mark.parametrize("payload", [{}, {"data": []}, {"data_b64": ""}, {"data": [], "data_b64": ""}], ids=str)
def test_empty_tensor_needs_no_payload(payload: dict[str, Any]) -> None:
    assert decode({"dtype": "float32", "shape": [0, 3], **payload}, LIMITS).shape == (0, 3)  # type: ignore[typeddict-item]


def test_empty_payload_is_ignored_beside_the_other() -> None:
    packed = base64.b64encode(np.array(7.0).tobytes()).decode()
    for payload in ({"data": [], "data_b64": packed}, {"data": [7], "data_b64": ""}):
        assert decode({"dtype": "float64", "shape": [], **payload}, LIMITS) == 7  # type: ignore[typeddict-item]


MALFORMED: dict[str, dict[str, Any]] = {
    "no dtype": {"shape": [1], "data": [1]},
    "no shape": {"dtype": "float64", "data": [1]},
    "dtype of another library": {"dtype": "f8", "shape": [1], "data": [1]},
    "dtype in capitals": {"dtype": "FLOAT64", "shape": [1], "data": [1]},
    "dtype null": {"dtype": None, "shape": [1], "data": [1]},
    "dtype number": {"dtype": 64, "shape": [1], "data": [1]},
    "complex": {"dtype": "complex64", "shape": [1], "data": [1]},
    "shape of fractions": {"dtype": "float64", "shape": [1.5], "data": [1]},
    "shape of strings": {"dtype": "float64", "shape": ["1"], "data": [1]},
    "shape of booleans": {"dtype": "float64", "shape": [True], "data": [1]},
    "shape a number": {"dtype": "float64", "shape": 1, "data": [1]},
    "shape null": {"dtype": "float64", "shape": None, "data": [1]},
    "negative extent": {"dtype": "float64", "shape": [-1], "data": [1]},
    "extents that multiply to one": {"dtype": "float64", "shape": [-1, -1], "data": [1]},
    "extent beyond 64 bits": {"dtype": "float64", "shape": [2**64], "data": [1]},
    "too few": {"dtype": "float64", "shape": [2], "data": [1]},
    "too many": {"dtype": "float64", "shape": [2], "data": [1, 2, 3]},
    "no payload": {"dtype": "float64", "shape": [2]},
    "0-d without payload": {"dtype": "float64", "shape": []},
    "0-d with nothing": {"dtype": "float64", "shape": [], "data": []},
    "two payloads": {"dtype": "float64", "shape": [1], "data": [1], "data_b64": "AAAAAAAA8D8="},
    "nested": {"dtype": "float64", "shape": [1, 1], "data": [[1]]},
    "rows": {"dtype": "float64", "shape": [2, 2], "data": [[1, 2], [3, 4]]},
    "a string": {"dtype": "float64", "shape": [1], "data": ["1"]},
    "NaN as a string": {"dtype": "float64", "shape": [1], "data": ["NaN"]},
    "null": {"dtype": "float64", "shape": [1], "data": [None]},
    "true": {"dtype": "bool", "shape": [1], "data": [True]},
    "an object": {"dtype": "float64", "shape": [1], "data": [{}]},
    "data null": {"dtype": "float64", "shape": [1], "data": None},
    "data a number": {"dtype": "float64", "shape": [], "data": 1},
    "data a string": {"dtype": "float64", "shape": [1], "data": "1"},
    "fraction for an integer": {"dtype": "int32", "shape": [1], "data": [0.5]},
    "float too large to be a whole number": {"dtype": "int64", "shape": [1], "data": [1e17]},
    "int8 over": {"dtype": "int8", "shape": [1], "data": [128]},
    "int8 under": {"dtype": "int8", "shape": [1], "data": [-129]},
    "uint8 negative": {"dtype": "uint8", "shape": [1], "data": [-1]},
    "int64 over": {"dtype": "int64", "shape": [1], "data": [2**63]},
    "bool two": {"dtype": "bool", "shape": [1], "data": [2]},
    "float16 over": {"dtype": "float16", "shape": [1], "data": [1e5]},
    "float32 over": {"dtype": "float32", "shape": [1], "data": [1e39]},
    "float64 over, as an integer": {"dtype": "float64", "shape": [1], "data": [10**400]},
    "base64 null": {"dtype": "float64", "shape": [1], "data_b64": None},
    "base64 number": {"dtype": "float64", "shape": [1], "data_b64": 1},
    "base64 too short": {"dtype": "float64", "shape": [1], "data_b64": "AAAA"},
    "base64 of other characters": {"dtype": "uint8", "shape": [3], "data_b64": "A!AA"},
    "base64 with a line break": {"dtype": "uint8", "shape": [3], "data_b64": "AA\nAA"},
    "base64 of the URL alphabet": {"dtype": "uint8", "shape": [3], "data_b64": "__--"},
    "base64 without padding": {"dtype": "uint8", "shape": [1], "data_b64": "AA"},
    "base64 not ASCII": {"dtype": "uint8", "shape": [3], "data_b64": "ÄAAA"},
    "base64 bool of two": {"dtype": "bool", "shape": [1], "data_b64": "Ag=="},
}


@pytest.mark.parametrize("malformed", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_tensor_is_refused_with_its_pointer(client: Client, malformed: dict[str, Any]) -> None:
    body = request(node("full"), node("input"), feeds=[{"node": 1, "tensor": malformed}])
    report = problem(client.post("/v1/forward", json=body), 422, "bad_tensor")
    assert report["node"] == 1
    assert report["pointer"].startswith("/feeds/0/tensor")
    constant = request(node("full"), node("constant", value=malformed))
    report = problem(client.post("/v1/forward", json=constant), 422, "bad_tensor")
    assert report["node"] == 1
    assert report["pointer"].startswith("/graph/nodes/1/attrs/value")


@pytest.mark.parametrize("malformed", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_cotangent_is_refused(client: Client, malformed: dict[str, Any]) -> None:
    report = problem(
        client.post("/v1/gradients", json=request(node("full"), wrt=[0], cotangent=malformed)), 422, "bad_tensor"
    )
    assert report["pointer"].startswith("/cotangent")


def test_number_beyond_float64_is_reported(client: Client) -> None:
    body = json.dumps(request(node("input"), feeds=[feed(0, [1], [123456])])).replace("123456", "1e999")
    report = problem(client.post("/v1/forward", content=body), 422, "bad_tensor")
    assert report["detail"] == "node 0: feeds[0].tensor has a number in data that is too large for float64"


@pytest.mark.parametrize("shape", [[10**6, 10**6, 10**6], [2**62, 2**62], [1] * 33, [0, 2**62], [2**62]], ids=str)
def test_oversized_tensor_is_refused_before_decoding(client: Client, shape: list[int]) -> None:
    body = request(node("input"), feeds=[{"node": 0, "tensor": {"dtype": "float64", "shape": shape}}])
    assert problem(client.post("/v1/forward", json=body), 413, "over_budget")["node"] == 0


def test_refusals_do_not_echo_elements(client: Client) -> None:
    secret = 48151623.42
    for malformed in (
        tensor([1], [secret, secret]),
        tensor([1], [secret], "int8"),
        tensor([1], [str(secret)]),
        tensor([1, 2], [[secret, secret]]),
    ):
        for body in (
            request(node("input"), feeds=[{"node": 0, "tensor": malformed}]),
            request(node("constant", value=malformed)),
            request(node("full", fill=malformed)),
        ):
            assert "48151623" not in client.post("/v1/forward", json=body).text


@pytest.mark.slow
@given(st.data(), dtypes, st.sampled_from(["json", "base64"]))
def test_length_of_an_answer_is_never_underestimated(data: st.DataObject, dtype: str, encoding: str) -> None:
    from engine import TensorType

    array = data.draw(hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0)))
    written = orjson.dumps({"node": 99_999, "tensor": encode(array, encoding)}, option=orjson.OPT_SERIALIZE_NUMPY)
    assert len(written) <= encoded_bytes([TensorType.of(array)], encoding)


@pytest.mark.parametrize(
    ("dtype", "longest"),
    [
        ("bool", 1), ("int8", -128), ("uint8", 255), ("int32", -(2**31)), ("int64", -(2**53)), ("float16", -6.104e-05),
        ("float32", -1.1754944e-38), ("float64", -2.2250738585072014e-308),
    ],
)  # fmt: skip
def test_length_estimate_covers_the_longest_elements(dtype: str, longest: float) -> None:
    from engine import TensorType

    array = np.full(1000, longest, dtype)
    written = orjson.dumps(encode(array, "json"), option=orjson.OPT_SERIALIZE_NUMPY)
    assert b"data_b64" not in written
    assert len(written) <= encoded_bytes([TensorType.of(array)], "json")


def test_decode_raises_documented_errors() -> None:
    with pytest.raises(Refusal):
        decode({"dtype": "int8", "shape": [1], "data": ["x"]}, LIMITS)
    with pytest.raises(OverBudget):
        decode({"dtype": "int8", "shape": [2**50]}, LIMITS)


@pytest.mark.parametrize("reader", [Tensor, NodeType])
def test_too_many_axes_are_refused_without_computing_the_size(reader: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """The product of 50,000 large extents takes more than a minute."""
    monkeypatch.setattr("service.api.tensors.TensorType", lambda *_: pytest.fail("its size was computed"))
    with pytest.raises(OverBudget, match="at most 32 axes, but this one has 50000"):
        type_of(reader(dtype="float64", shape=[2**62] * 50_000), LIMITS)
