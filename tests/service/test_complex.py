"""Complex tensors on the wire: every encoding, every place for a tensor, and malformed ones."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load

from service.store.commit_objects import safetensors_type
from tests.conftest import Client
from tests.service.api.safetensors_support import BINARY, KIND, SENT, body, framed, unpacked
from tests.service.support import node, problem

Z = np.array([1 + 2j, 3 - 1j])
GRAPH = {
    "opset": 2,
    "nodes": [node("parameter"), node("square", 0), node("real", 1), node("sum", 2)],
}


def request_for(tensor: dict[str, Any], leaf: int = 0) -> dict[str, Any]:
    return {"graph": GRAPH, "feeds": [{"node": leaf, "tensor": tensor}]}


def tensor(z: np.ndarray[Any, Any], encoding: str = "json") -> dict[str, Any]:
    """Encode a tensor without the code under test: real part and imaginary part of each element."""
    fields: dict[str, Any] = {"dtype": z.dtype.name, "shape": list(z.shape)}
    if encoding == "base64":
        return fields | {"data_b64": base64.b64encode(z.tobytes()).decode()}
    return fields | {"data": [float(part) for x in z.ravel() for part in (x.real, x.imag)]}


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("encoding", ["json", "base64"])
@pytest.mark.parametrize("sent", ["json", "base64"])
def test_values_and_gradients(client: Client, dtype: str, encoding: str, sent: str) -> None:
    """L = Re Σ z²: the gradient is 2 conj(z)."""
    z = Z.astype(dtype)
    for _ in range(3):  # from scratch, from a plan, and from a template
        answer = client.post("/v1/gradients", json=request_for(tensor(z, sent)) | {"encoding": encoding}).json()
        assert answer["gradients"] == [{"node": 0, "tensor": tensor(2 * z.conj(), encoding)}]
        assert answer["values"] == [{"node": 3, "tensor": tensor_of_real((z**2).real.sum(), encoding)}]


def tensor_of_real(x: np.floating[Any], encoding: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"dtype": x.dtype.name, "shape": []}
    packed = {"data_b64": base64.b64encode(x.tobytes()).decode()}
    return fields | (packed if encoding == "base64" else {"data": [float(x)]})


def test_safetensors(client: Client) -> None:
    for dtype in ("complex64", "complex128"):
        z = Z.astype(dtype)
        request = {"graph": GRAPH, "of": 3, "outputs": [1]}
        answer = client.post("/v1/gradients", content=body(request, {"feeds.0": z}), headers=BINARY)
        _, tensors = unpacked(answer.content)
        np.testing.assert_array_equal(load(answer.content)["gradients.0"], np.stack([2 * z.real, -2 * z.imag], -1))
        assert {name: (x.dtype, x.tolist()) for name, x in tensors.items()} == {
            "values.1": (z.dtype, (z**2).tolist()),
            "gradients.0": (z.dtype, (2 * z.conj()).tolist()),
        }


def test_complex_dtype_of_the_format_is_accepted(client: Client) -> None:
    raw = Z.astype("complex64").tobytes()
    header = {
        "__metadata__": {"request": json.dumps({"graph": GRAPH})},
        "feeds.0": {"dtype": "C64", "shape": [2], "data_offsets": [0, len(raw)]},
    }
    answer = client.post("/v1/forward", content=framed(json.dumps(header).encode(), raw), headers=SENT)
    assert answer.json()["values"][0]["tensor"] == {"dtype": "float32", "shape": [], "data": [5.0]}


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ('["feeds.1"]', "the safetensors body has no tensor “feeds.1”, but __metadata__.complex lists it"),
        ("[1]", "an invalid __metadata__.complex: a JSON list of names, as a string"),
        ("{", "an invalid __metadata__.complex: a JSON list of names, as a string"),
        ('"feeds.0"', "an invalid __metadata__.complex: a JSON list of names, as a string"),
        (["feeds.0"], "an invalid __metadata__.complex: a JSON list of names, as a string"),
    ],
)
def test_malformed_list_of_complex_tensors(client: Client, stated: object, says: str) -> None:
    metadata = {"request": json.dumps({"graph": GRAPH}), "complex": stated}
    sent = body(None, {"feeds.0": np.zeros((2, 2))}, __metadata__=metadata)
    assert says in problem(client.post("/v1/forward", content=sent, headers=SENT), 422, "bad_tensor")["detail"]


@pytest.mark.parametrize("parts", [np.zeros((2, 3)), np.zeros(()), np.zeros((2, 2), np.float16), np.zeros((2, 2), int)])
def test_invalid_real_and_imaginary_parts_are_refused(client: Client, parts: np.ndarray[Any, Any]) -> None:
    metadata = {"request": json.dumps({"graph": GRAPH}), "complex": '["feeds.0"]'}
    sent = body(None, {"feeds.0": parts}, __metadata__=metadata)
    report = problem(client.post("/v1/forward", content=sent, headers=SENT), 422, "bad_tensor")
    assert report["detail"].startswith("tensor feeds.0 is listed as complex, so it must be F32 or F64 with a last axis")
    assert report["node"] == 0


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([1, 2, 3], "must hold 4 numbers to be complex64[2], but holds 3"),
        ([1, 2], "must hold 4 numbers to be complex64[2], but holds 2"),
        ([1, 2, 3, 1e39], "has a number in data that is too large for complex64"),
        ([[1, 2], [3, 4]], "has nested lists in data"),
        ([1, 2, 3, "i"], "has a string at data[3]"),
    ],
)
def test_malformed_elements(client: Client, data: list[Any], says: str) -> None:
    sent = request_for({"dtype": "complex64", "shape": [2], "data": data})
    assert says in problem(client.post("/v1/forward", json=sent), 422, "bad_tensor")["detail"]


def test_byte_count_of_base64_is_checked(client: Client) -> None:
    sent = request_for({"dtype": "complex64", "shape": [2], "data_b64": base64.b64encode(bytes(8)).decode()})
    report = problem(client.post("/v1/forward", json=sent), 422, "bad_tensor")
    assert "must hold 16 bytes to be complex64[2], but holds 8" in report["detail"]


def test_nonfinite_results_are_answered_as_base64(client: Client) -> None:
    graph = {"opset": 2, "nodes": [node("input"), node("neg", 0)]}
    z = np.array([complex(1, np.nan), complex(np.inf, 0)])
    sent = {"graph": graph, "feeds": [{"node": 0, "tensor": tensor(z, "base64")}]}
    (value,) = client.post("/v1/forward", json=sent).json()["values"]
    np.testing.assert_array_equal(np.frombuffer(base64.b64decode(value["tensor"]["data_b64"]), z.dtype), -z)


def test_resident_tensor_round_trip(client: Client) -> None:
    z = Z.astype("complex64")
    put = client.request("PUT", "/v1/tensors/z", json=tensor(z)).json()
    assert (put["dtype"], put["shape"], put["bytes"]) == ("complex64", [2], 16)
    assert client.get("/v1/tensors/z").json()["tensor"] == tensor(z)
    file = client.get("/v1/tensors/z", headers={"Accept": KIND}).content
    assert client.request("PUT", "/v1/tensors/copy", content=file, headers=SENT).json()["dtype"] == "complex64"
    answer = client.post("/v1/gradients", json={"graph": GRAPH, "feeds": [{"node": 0, "tensor_id": "copy"}]}).json()
    assert answer["gradients"][0]["tensor"] == tensor(2 * z.conj())


def test_result_is_stored(client: Client) -> None:
    body_json = request_for(tensor(Z)) | {"outputs": [1], "store": [{"node": 1, "tensor_id": "squares"}]}
    assert client.post("/v1/forward", json=body_json).status_code == 200
    assert client.get("/v1/tensors/squares").json()["tensor"] == tensor(Z**2)


def test_complex_constant(client: Client) -> None:
    product = [node("constant", value=tensor(Z)), node("parameter"), node("mul", 0, 1), node("real", 2), node("sum", 3)]
    body_json = {"graph": {"opset": 2, "nodes": product}, "feeds": [{"node": 1, "tensor": tensor(Z)}]}
    answer = client.post("/v1/gradients", json=body_json).json()
    assert answer["gradients"] == [{"node": 1, "tensor": tensor(Z.conj())}]


def test_opset_1_has_no_complex_dtypes(client: Client) -> None:
    body_json = {"graph": {"nodes": [node("input")]}, "feeds": [{"node": 0, "tensor": tensor(Z)}]}
    report = problem(client.post("/v1/forward", json=body_json), 422, "dtype_mismatch")
    assert "needs opset 2" in report["detail"]
    assert report["node"] == 0


def test_journal_uses_standard_safetensors_dtypes() -> None:
    assert safetensors_type("complex128", (3,)) == {"dtype": "F64", "shape": [3, 2]}
    assert safetensors_type("complex64", ()) == {"dtype": "F32", "shape": [2]}
    assert safetensors_type("float16", (3,)) == {"dtype": "F16", "shape": (3,)}
