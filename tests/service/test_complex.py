"""Complex tensors cross the wire in every encoding, wherever tensors do, and what is malformed is told."""

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


def fed(tensor: dict[str, Any], at: int = 0) -> dict[str, Any]:
    return {"graph": GRAPH, "feeds": [{"node": at, "tensor": tensor}]}


def tensor(z: np.ndarray[Any, Any], encoding: str = "json") -> dict[str, Any]:
    """By the description, and not with the code under test: real part, imaginary part, element by element."""
    stated: dict[str, Any] = {"dtype": z.dtype.name, "shape": list(z.shape)}
    if encoding == "base64":
        return stated | {"data_b64": base64.b64encode(z.tobytes()).decode()}
    return stated | {"data": [float(part) for x in z.ravel() for part in (x.real, x.imag)]}


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("encoding", ["json", "base64"])
@pytest.mark.parametrize("sent", ["json", "base64"])
def test_values_and_gradients(client: Client, dtype: str, encoding: str, sent: str) -> None:
    """L = Re Σ z²: the gradient is 2 conj(z)."""
    z = Z.astype(dtype)
    for _ in range(3):  # anew, from a plan, and from a template
        answer = client.post("/v1/gradients", json=fed(tensor(z, sent)) | {"encoding": encoding}).json()
        assert answer["gradients"] == [{"node": 0, "tensor": tensor(2 * z.conj(), encoding)}]
        assert answer["values"] == [{"node": 3, "tensor": tensor_of_real((z**2).real.sum(), encoding)}]


def tensor_of_real(x: np.floating[Any], encoding: str) -> dict[str, Any]:
    stated: dict[str, Any] = {"dtype": x.dtype.name, "shape": []}
    packed = {"data_b64": base64.b64encode(x.tobytes()).decode()}
    return stated | (packed if encoding == "base64" else {"data": [float(x)]})


def test_as_safetensors(client: Client) -> None:
    for dtype in ("complex64", "complex128"):
        z = Z.astype(dtype)
        request = {"graph": GRAPH, "of": 3, "outputs": [1]}
        answer = client.post("/v1/gradients", content=body(request, {"feeds.0": z}), headers=BINARY)
        _, found = unpacked(answer.content)
        np.testing.assert_array_equal(load(answer.content)["gradients.0"], np.stack([2 * z.real, -2 * z.imag], -1))
        assert {name: (x.dtype, x.tolist()) for name, x in found.items()} == {
            "values.1": (z.dtype, (z**2).tolist()),
            "gradients.0": (z.dtype, (2 * z.conj()).tolist()),
        }


def test_the_spelling_of_the_format_is_read(client: Client) -> None:
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
        ('["feeds.1"]', "the safetensors body has no tensor “feeds.1”, which its __metadata__.complex names"),
        ("[1]", "in __metadata__.complex than a JSON list of names, as a string"),
        ("{", "in __metadata__.complex than a JSON list of names, as a string"),
        ('"feeds.0"', "in __metadata__.complex than a JSON list of names, as a string"),
        (["feeds.0"], "in __metadata__.complex than a JSON list of names, as a string"),
    ],
)
def test_a_wrong_list_of_complex_tensors(client: Client, stated: object, says: str) -> None:
    metadata = {"request": json.dumps({"graph": GRAPH}), "complex": stated}
    sent = body(None, {"feeds.0": np.zeros((2, 2))}, __metadata__=metadata)
    assert says in problem(client.post("/v1/forward", content=sent, headers=SENT), 422, "bad_tensor")["detail"]


@pytest.mark.parametrize("parts", [np.zeros((2, 3)), np.zeros(()), np.zeros((2, 2), np.float16), np.zeros((2, 2), int)])
def test_what_cannot_be_parts(client: Client, parts: np.ndarray[Any, Any]) -> None:
    metadata = {"request": json.dumps({"graph": GRAPH}), "complex": '["feeds.0"]'}
    sent = body(None, {"feeds.0": parts}, __metadata__=metadata)
    told = problem(client.post("/v1/forward", content=sent, headers=SENT), 422, "bad_tensor")
    assert told["detail"].startswith("tensor feeds.0 is said to be complex, and so must be F32 or F64 with a last axis")
    assert told["node"] == 0


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([1, 2, 3], "must hold 4 numbers to be complex64[2], but holds 3"),
        ([1, 2], "must hold 4 numbers to be complex64[2], but holds 2"),
        ([1, 2, 3, 1e39], "has a number in data that is beyond complex64"),
        ([[1, 2], [3, 4]], "has nested lists in data"),
        ([1, 2, 3, "i"], "has a string at data[3]"),
    ],
)
def test_malformed_elements(client: Client, data: list[Any], says: str) -> None:
    sent = fed({"dtype": "complex64", "shape": [2], "data": data})
    assert says in problem(client.post("/v1/forward", json=sent), 422, "bad_tensor")["detail"]


def test_the_bytes_of_a_tensor_are_counted(client: Client) -> None:
    sent = fed({"dtype": "complex64", "shape": [2], "data_b64": base64.b64encode(bytes(8)).decode()})
    told = problem(client.post("/v1/forward", json=sent), 422, "bad_tensor")
    assert "must hold 16 bytes to be complex64[2], but holds 8" in told["detail"]


def test_what_json_has_no_number_for_is_answered_as_bytes(client: Client) -> None:
    graph = {"opset": 2, "nodes": [node("input"), node("neg", 0)]}
    z = np.array([complex(1, np.nan), complex(np.inf, 0)])
    sent = {"graph": graph, "feeds": [{"node": 0, "tensor": tensor(z, "base64")}]}
    (value,) = client.post("/v1/forward", json=sent).json()["values"]
    np.testing.assert_array_equal(np.frombuffer(base64.b64decode(value["tensor"]["data_b64"]), z.dtype), -z)


def test_a_resident_tensor_there_and_back(client: Client) -> None:
    z = Z.astype("complex64")
    put = client.request("PUT", "/v1/tensors/z", json=tensor(z)).json()
    assert (put["dtype"], put["shape"], put["bytes"]) == ("complex64", [2], 16)
    assert client.get("/v1/tensors/z").json()["tensor"] == tensor(z)
    file = client.get("/v1/tensors/z", headers={"Accept": KIND}).content
    assert client.request("PUT", "/v1/tensors/copy", content=file, headers=SENT).json()["dtype"] == "complex64"
    answer = client.post("/v1/gradients", json={"graph": GRAPH, "feeds": [{"node": 0, "tensor_id": "copy"}]}).json()
    assert answer["gradients"][0]["tensor"] == tensor(2 * z.conj())


def test_a_result_is_stored(client: Client) -> None:
    asked = fed(tensor(Z)) | {"outputs": [1], "store": [{"node": 1, "tensor_id": "squares"}]}
    assert client.post("/v1/forward", json=asked).status_code == 200
    assert client.get("/v1/tensors/squares").json()["tensor"] == tensor(Z**2)


def test_a_constant(client: Client) -> None:
    product = [node("constant", value=tensor(Z)), node("parameter"), node("mul", 0, 1), node("real", 2), node("sum", 3)]
    asked = {"graph": {"opset": 2, "nodes": product}, "feeds": [{"node": 1, "tensor": tensor(Z)}]}
    answer = client.post("/v1/gradients", json=asked).json()
    assert answer["gradients"] == [{"node": 1, "tensor": tensor(Z.conj())}]


def test_a_graph_of_opset_1_has_none(client: Client) -> None:
    asked = {"graph": {"nodes": [node("input")]}, "feeds": [{"node": 0, "tensor": tensor(Z)}]}
    told = problem(client.post("/v1/forward", json=asked), 422, "dtype_mismatch")
    assert "since opset 2" in told["detail"]
    assert told["node"] == 0


def test_a_file_of_the_journal_is_one_that_libraries_read() -> None:
    assert safetensors_type("complex128", (3,)) == {"dtype": "F64", "shape": [3, 2]}
    assert safetensors_type("complex64", ()) == {"dtype": "F32", "shape": [2]}
    assert safetensors_type("float16", (3,)) == {"dtype": "F16", "shape": (3,)}
