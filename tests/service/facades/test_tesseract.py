"""Tesseract: arrays in both encodings, derivatives by name, the OpenAPI document, and refusals."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import orjson
import pytest

from service.facades.tesseract import encode_array, encoded_array_bytes
from tests.conftest import Client
from tests.sampling import together
from tests.service.facades.fitting import (
    BOUND,
    FIT,
    INPUTS,
    Array,
    W,
    X,
    Y,
    loss,
    loss_by_w,
    residual,
    residual_by_w,
    residual_by_x,
)
from tests.service.support import Json, node

MODEL = f"/tesseract/{FIT}"


def coded(array: Array, encoding: str = "base64") -> Json:
    """An array as clients send it."""
    buffer = base64.b64encode(array.tobytes()).decode() if encoding == "base64" else array.tolist()
    fields = {"object_type": "array", "shape": list(array.shape), "dtype": array.dtype.name}
    return fields | {"data": {"buffer": buffer, "encoding": encoding}}


def read(encoded: Json) -> Array:
    """Decode an array of an answer."""
    buffer, dtype = encoded["data"]["buffer"], encoded["dtype"]
    if encoded["data"]["encoding"] == "base64":
        return np.frombuffer(base64.b64decode(buffer), dtype).reshape(encoded["shape"])
    array = np.array(buffer, dtype)
    assert list(array.shape) == encoded["shape"]
    return array


ALL = {name: coded(value) for name, value in INPUTS.items()}


def ask(client: Client, path: str, accept: str | None = None, model: str = MODEL, **body: Any) -> httpx.Response:
    """Send a request."""
    headers = {} if accept is None else {"Accept": accept}
    return client.post(f"{model}/{path}", json={"inputs": ALL, **body}, headers=headers)


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "application/json+base64"])
@pytest.mark.parametrize("encoding", ["json", "base64"])
def test_values_in_both_encodings(foreign: Client, accept: str | None, encoding: str) -> None:
    answer = ask(foreign, "apply", accept, inputs={n: coded(v, encoding) for n, v in INPUTS.items()})
    content = answer.json()
    assert content["loss"]["data"]["encoding"] == ("json" if accept == "application/json" else "base64")
    np.testing.assert_allclose(read(content["loss"]), loss(), 1e-14)
    np.testing.assert_allclose(read(content["residual"]), residual(), 1e-14)


def test_numbers_and_lists_are_arrays(foreign: Client) -> None:
    content = ask(foreign, "apply", inputs={name: value.tolist() for name, value in INPUTS.items()}).json()
    np.testing.assert_allclose(read(content["residual"]), residual(), 1e-14)


def test_jacobians_have_the_axes_of_output_and_input(foreign: Client) -> None:
    content = ask(foreign, "jacobian", jac_inputs=["w", "x"], jac_outputs=["residual", "loss"]).json()
    np.testing.assert_allclose(read(content["residual"]["w"]), residual_by_w(), 1e-13)
    np.testing.assert_allclose(read(content["residual"]["x"]), residual_by_x(), 1e-13)
    np.testing.assert_allclose(read(content["loss"]["w"]), loss_by_w(), 1e-13)


def test_jacobian_vector_and_vector_jacobian_products(foreign: Client) -> None:
    along, back = np.array([0.5, -1.0]), np.array([1.0, 2.0, -1.0])
    forward = {"jvp_inputs": ["w"], "jvp_outputs": ["residual"], "tangent_vector": {"w": coded(along)}}
    content = ask(foreign, "jacobian_vector_product", **forward).json()
    np.testing.assert_allclose(read(content["residual"]), residual_by_w() @ along, 1e-13)
    backward = {"vjp_inputs": ["w"], "vjp_outputs": ["residual"], "cotangent_vector": {"residual": coded(back)}}
    content = ask(foreign, "vector_jacobian_product", **backward).json()
    assert list(content) == ["w"]
    np.testing.assert_allclose(read(content["w"]), back @ residual_by_w(), 1e-13)


def test_abstract_eval(foreign: Client) -> None:
    types = {name: {"shape": list(value.shape), "dtype": "float64"} for name, value in INPUTS.items()}
    content = ask(foreign, "abstract_eval", inputs=types).json()
    assert content == {"loss": {"shape": [], "dtype": "float64"}, "residual": {"shape": [3], "dtype": "float64"}}
    bound_types = {"x": {"shape": [7, 2], "dtype": "float64"}, "y": {"shape": [7], "dtype": "float64"}}
    answer = foreign.post(f"/tesseract/{BOUND}/abstract_eval", json={"inputs": bound_types})
    assert answer.json()["residual"]["shape"] == [7]


def test_resident_weights(foreign: Client) -> None:
    answer = foreign.post(f"/tesseract/{BOUND}/apply", json={"inputs": {"x": coded(X[:2]), "y": coded(Y[:2])}})
    np.testing.assert_allclose(read(answer.json()["residual"]), residual()[:2], 1e-14)


def test_openapi_document(foreign: Client) -> None:
    document = foreign.get(f"{MODEL}/openapi.json").json()
    schemas = document["components"]["schemas"]
    assert set(schemas) == {"Apply_InputSchema", "Apply_OutputSchema", "ApplyInputSchema", "ApplyOutputSchema"}
    assert list(schemas["Apply_InputSchema"]["properties"]) == ["x", "w", "y"]
    assert schemas["ApplyInputSchema"]["differentiable_arrays"]["w"] == {"shape": [2], "dtype": "float64"}
    assert schemas["ApplyOutputSchema"]["differentiable_arrays"]["loss"] == {"shape": [], "dtype": "float64"}
    assert document["x-supported-output-formats"] == ["json", "json+base64"]
    assert foreign.get(f"{MODEL}/health").json() == {"status": "ok"}
    assert "/vector_jacobian_product" in document["paths"]


def test_nonfinite_values_need_base64(foreign: Client) -> None:
    inputs = ALL | {"x": coded(np.array([[np.nan, 0], [1, 1], [1, 1]]))}
    assert np.isnan(read(ask(foreign, "apply", inputs=inputs).json()["residual"])[0])
    answer = ask(foreign, "apply", "application/json", inputs=inputs)
    assert answer.status_code == 422
    assert "the output “loss” is nan at 0" in answer.json()["detail"][0]["msg"]


def test_run_id_parameter_is_accepted(foreign: Client) -> None:
    assert foreign.post(f"{MODEL}/apply?run_id=7", json={"inputs": ALL}).status_code == 200


@pytest.mark.parametrize(
    ("path", "changed", "place", "says"),
    [
        ("apply", {"inputs": {"x": ALL["x"]}}, ["inputs", "w"], "“w” is missing"),
        ("apply", {"inputs": ALL | {"v": 1}}, ["inputs", "v"], "unknown name “v”; expected x, w, y"),
        ("apply", {"inputs": ALL | {"w": coded(X)}}, ["inputs", "w"], "“w” must be an array of shape [2]"),
        ("apply", {"inputs": ALL | {"w": "a"}}, ["inputs", "w"], "“w” must be a list of numbers"),
        ("apply", {"inputs": ALL | {"w": [[1], [2, 3]]}}, ["inputs", "w", 1], "all rows must have the same length"),
        ("apply", {"inputs": ALL | {"w": coded(np.array([1j, 2j]))}}, ["inputs", "w"], "converted without loss"),
        ("apply", {"inputs": ALL | {"w": coded(X[0]) | {"dtype": "float128"}}}, ["inputs", "w", "dtype"], "the dtype"),
        ("apply", {"inputs": ALL | {"w": coded(X[0]) | {"shape": [-2]}}}, ["inputs", "w", "shape"], "the shape of “w”"),
        ("apply", {"inputs": ALL | {"w": coded(X[0]) | {"data": {"buffer": "!", "encoding": "base64"}}}},
         ["inputs", "w", "data", "buffer"], "must be base64 of 16 bytes"),
        ("apply", {"inputs": ALL | {"w": coded(X[0]) | {"data": {"buffer": "x", "encoding": "binref"}}}},
         ["inputs", "w", "data"], "encoding is one of json, base64"),
        ("apply", {"inputs": ALL | {"x": [[1, 2], [3, "a"], [5, 6]]}}, ["inputs", "x", 1, 1], "has a string at [1][1]"),
        ("apply", {"inputs": ALL | {"x": [[1, 2], [3, None], [5, 6]]}}, ["inputs", "x", 1, 1], "has null at [1][1]"),
        ("apply", {"inputs": ALL | {"x": [[1, 2], [3, [4]], [5, 6]]}}, ["inputs", "x", 1, 1], "has a list at [1][1]"),
        ("apply", {"inputs": ALL | {"x": [[1, 2], [3], [5, 6]]}}, ["inputs", "x", 1], "“x”[1] must be a list of 2"),
        ("apply", {"inputs": ALL | {"x": [[1, 2], 3, [5, 6]]}}, ["inputs", "x", 1], "but is a whole number"),
        ("apply", {"inputs": ALL | {"w": [1, "a"]}}, ["inputs", "w", 1], "“w” must hold numbers"),
        ("apply", {"inputs": ALL | {"w": [1, {}]}}, ["inputs", "w", 1], "an object at [1]"),
        ("apply", {"inputs": ALL | {"w": None}}, ["inputs", "w"], "“w” is missing"),
        ("apply", {"inputs": ALL | {"w": [10**400, 1]}}, ["inputs", "w"], "too large for float64"),
        ("apply", {"inputs": ALL | {"w": coded(W, "json") | {"data": {"buffer": ["a", 1], "encoding": "json"}}}},
         ["inputs", "w", "data", "buffer", 0], "a string at [0]"),
        ("apply", {"inputs": ALL | {"x": coded(X) | {"data": {"buffer": [[1, 2], [3], [4]], "encoding": "json"}}}},
         ["inputs", "x", "data", "buffer", 1], "[1] must be a list of 2"),
        ("apply", {"inputs": ALL | {"w": coded(W) | {"data": {"buffer": [1], "encoding": "json"}}}},
         ["inputs", "w", "data", "buffer"], "must hold 2 elements"),
        ("apply", {"inputs": ALL | {"w": coded(W, "json") | {"data": {"buffer": [10**400, 1], "encoding": "json"}}}},
         ["inputs", "w", "data", "buffer"], "too large for float64"),
        ("vector_jacobian_product",
         {"vjp_inputs": ["w"], "vjp_outputs": ["residual"], "cotangent_vector": {"residual": [1, 2, "a"]}},
         ["cotangent_vector", "residual", 2], "“residual” must hold numbers, but has a string at [2]"),
        ("abstract_eval", {"inputs": {"x": {"shape": [-1], "dtype": ""}, "w": 1, "y": 1}}, ["inputs", "x"], "“x”"),
        ("apply", {"9" * 5000: 1}, ["9" * 63 + "…"], "there is no field"),
        ("apply", {"input": 1}, ["input"], "there is no field “input”"),
        ("jacobian", {"jac_inputs": ["v"], "jac_outputs": ["loss"]}, ["jac_inputs", 0], "must be one of x, w, y"),
        ("jacobian", {"jac_inputs": [], "jac_outputs": ["loss"]}, ["jac_inputs"], "is empty"),
        ("jacobian", {"jac_inputs": ["w"]}, ["jac_outputs"], "jac_outputs must be a list"),
        ("abstract_eval", {"inputs": {"x": 1, "w": 1, "y": 1}}, ["inputs", "x"], "an object with shape and dtype"),
    ],
)  # fmt: skip
def test_refusals(foreign: Client, path: str, changed: Json, place: list[Any], says: str) -> None:
    answer = ask(foreign, path, **changed)
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["detail"]
    assert set(error) == {"type", "loc", "msg", "input", "ctx"}
    assert error["loc"] == ["body", *place]
    assert says in error["msg"]


def test_number_beyond_float64_is_refused(foreign: Client) -> None:
    body = json.dumps({"inputs": ALL | {"w": [1.5, 2]}}).replace("1.5", "1e999")
    (error,) = foreign.post(f"{MODEL}/apply", content=body).json()["detail"]
    assert (error["loc"], "too large for float64" in error["msg"]) == (["body", "inputs", "w"], True)


@pytest.fixture(scope="module")
def empty(make_client: Callable[..., Client]) -> Client:
    """A client of a server with short answers and a model that takes arrays of two axes."""
    client = make_client(facades=("tesseract",), max_response_bytes=10_000)
    graph_id = client.post("/v1/graphs", json={"graph": {"nodes": [node("input"), node("neg", 0)]}}).json()["graph_id"]
    inputs = [{"name": "x", "node": 0, "dtype": "float64", "shape": [-1, -1]}]
    body = {"graph_id": graph_id, "inputs": inputs, "outputs": [{"name": "y", "node": 1}]}
    assert client.request("PUT", "/v1/models/empty", json=body).is_success
    return client


@pytest.mark.parametrize("rows", [1, 2, 1000])
def test_empty_arrays_in_both_encodings(empty: Client, rows: int) -> None:
    for accept in ("application/json", "*/*"):
        for encoding in ("json", "base64"):
            inputs = {"x": coded(np.zeros((rows, 0)), encoding)}
            content = ask(empty, "apply", accept, "/tesseract/empty", inputs=inputs).json()["y"]
            assert read(content).shape == (rows, 0)


@pytest.mark.parametrize("shape", [[10**6, 0], [3 * 10**8, 0]])
def test_lists_of_an_empty_array_count_towards_the_limit(empty: Client, shape: list[int]) -> None:
    inputs = {"x": {"shape": shape, "dtype": "float64", "data": {"buffer": "", "encoding": "base64"}}}
    answer = ask(empty, "apply", "application/json", "/tesseract/empty", inputs=inputs)
    assert answer.status_code == 413, answer.text
    assert "the limit is 10000" in answer.json()["detail"][0]["msg"]
    assert ask(empty, "apply", "*/*", "/tesseract/empty", inputs=inputs).status_code == 200


@together
@pytest.mark.parametrize("shape", [(), (0,), (5,), (1, 1), (4, 0), (0, 4), (3, 0, 2), (2, 3, 0), (30, 1), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("form", ["json", "json+base64"])
def test_byte_count_of_an_encoded_array_is_an_upper_bound(shape: tuple[int, ...], dtype: str, form: str) -> None:
    array = np.full(shape, -1.2345678901234567e-300 if dtype == "float64" else -0.1, dtype)
    encoded = encode_array("y", array, form)
    written = json.dumps({"y": json.loads(orjson.dumps(encoded))}).replace(" ", "")
    assert len(written) <= encoded_array_bytes("y", array, form)
    assert json.loads(orjson.dumps(encoded))["shape"] == list(shape)
    if form == "json":
        assert json.loads(orjson.dumps(encoded))["data"]["buffer"] == array.tolist()


def test_integers_and_float32_are_accepted_for_float64(foreign: Client) -> None:
    assert ask(foreign, "apply", inputs=ALL | {"w": coded(np.array([1, 2]))}).status_code == 200
    assert ask(foreign, "apply", inputs=ALL | {"w": coded(np.array([1, 2], "float32"))}).status_code == 200


def test_unknown_model_is_not_found(foreign: Client) -> None:
    for answer in (
        ask(foreign, "apply", model="/tesseract/nobody"),
        foreign.get("/tesseract/nobody/health"),
        foreign.get("/tesseract/nobody/openapi.json"),
    ):
        assert answer.status_code == 404
        assert "nobody" in answer.json()["detail"][0]["msg"]
