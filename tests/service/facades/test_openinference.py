"""Open Inference: values and gradients, as JSON and as bytes, and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest

from service.facades.openinference import LENGTH_HEADER
from tests.conftest import Client
from tests.service.facades.fitting import BOUND, FIT, INPUTS, Array, X, Y, loss, loss_by_w, put_models, residual
from tests.service.support import Json

MODEL = f"/v2/models/{FIT}"
OCTETS = {"Content-Type": "application/octet-stream"}


def json_input(name: str, value: Array, **more: Any) -> Json:
    """An input as JSON."""
    return {"name": name, "shape": list(value.shape), "datatype": "FP64", "data": value.reshape(-1).tolist()} | more


ALL = [json_input(name, value) for name, value in INPUTS.items()]


def infer(client: Client, body: Json, path: str = MODEL) -> httpx.Response:
    """Send a request as JSON only."""
    return client.post(f"{path}/infer", json=body)


def packed(body: Json, *arrays: Array) -> tuple[bytes, dict[str, str]]:
    """A body with these bytes after its JSON, and its headers."""
    text = json.dumps(body).encode()
    return text + b"".join(array.tobytes() for array in arrays), {**OCTETS, LENGTH_HEADER: str(len(text))}


def unpacked(answer: httpx.Response) -> tuple[Json, dict[str, Array]]:
    """The JSON of an answer, and its outputs by name."""
    length = int(answer.headers.get(LENGTH_HEADER, len(answer.content)))
    content, rest = json.loads(answer.content[:length]), answer.content[length:]
    arrays = {}
    for output in content["outputs"]:
        size = output.get("parameters", {}).get("binary_data_size")
        dtype = {"FP64": "f8", "FP32": "f4", "INT64": "i8", "BOOL": "?"}[output["datatype"]]
        if size is None:
            array = np.array(output["data"], dtype)
        else:
            array, rest = np.frombuffer(rest[:size], dtype), rest[size:]
        arrays[output["name"]] = array.reshape(output["shape"])
    assert not rest
    return content, arrays


def test_server_and_model_metadata(foreign: Client) -> None:
    server = foreign.get("/v2").json()
    assert (server["name"], server["extensions"]) == ("gradserve", ["binary_tensor_data", "gradserve_gradients"])
    assert foreign.get("/v2/health/live").json() == {"live": True}
    assert foreign.get("/v2/health/ready").json() == {"ready": True}
    graph_id = foreign.get(f"/v1/models/{FIT}").json()["graph_id"]
    for path in (MODEL, f"{MODEL}/versions/{graph_id}"):
        content = foreign.get(path).json()
        assert (content["name"], content["versions"]) == (FIT, [graph_id])
        assert content["inputs"][0] == {"name": "x", "datatype": "FP64", "shape": [3, 2]}
        assert content["outputs"][1] == {"name": "residual", "datatype": "FP64", "shape": [3]}
        assert foreign.get(f"{path}/ready").status_code == 200
    assert foreign.get(f"/v2/models/{BOUND}").json()["inputs"][0]["shape"] == [-1, 2]


def test_values_as_json(foreign: Client) -> None:
    content, outputs = unpacked(infer(foreign, {"id": "7", "inputs": ALL}))
    assert (content["model_name"], content["id"]) == (FIT, "7")
    np.testing.assert_allclose(outputs["loss"], loss(), 1e-14)
    np.testing.assert_allclose(outputs["residual"], residual(), 1e-14)


def test_nested_rows_without_an_id(foreign: Client) -> None:
    content, outputs = unpacked(infer(foreign, {"inputs": [ALL[0] | {"data": X.tolist()}, *ALL[1:]]}))
    assert "id" not in content
    np.testing.assert_allclose(outputs["residual"], residual(), 1e-14)


def test_binary_input_and_output(foreign: Client) -> None:
    inputs = [json_input(n, a, parameters={"binary_data_size": a.nbytes}) for n, a in INPUTS.items()]
    for binary_input in inputs:
        del binary_input["data"]
    body, headers = packed({"inputs": inputs, "parameters": {"binary_data_output": True}}, *INPUTS.values())
    answer = foreign.post(f"{MODEL}/infer", content=body, headers=headers)
    assert answer.headers["content-type"] == "application/octet-stream"
    _, outputs = unpacked(answer)
    np.testing.assert_allclose(outputs["residual"], residual(), 1e-14)


def test_mixed_json_and_binary_tensors(foreign: Client) -> None:
    first = json_input("x", X, parameters={"binary_data_size": X.nbytes})
    del first["data"]
    outputs = [{"name": "loss"}, {"name": "residual", "parameters": {"binary_data": True}}]
    body, headers = packed({"inputs": [first, *ALL[1:]], "outputs": outputs}, X)
    content, arrays = unpacked(foreign.post(f"{MODEL}/infer", content=body, headers=headers))
    assert ["data" in output for output in content["outputs"]] == [True, False]
    np.testing.assert_allclose(arrays["loss"], loss(), 1e-14)
    np.testing.assert_allclose(arrays["residual"], residual(), 1e-14)


def test_gradients_are_outputs(foreign: Client) -> None:
    outputs = [{"name": "gradient.w"}, {"name": "loss"}, {"name": "gradient.y", "parameters": {"binary_data": True}}]
    request = {"inputs": ALL, "outputs": outputs, "parameters": {"gradient_of": "loss"}}
    content, arrays = unpacked(infer(foreign, request))
    assert [output["name"] for output in content["outputs"]] == ["gradient.w", "loss", "gradient.y"]
    np.testing.assert_allclose(arrays["gradient.w"], loss_by_w(), 1e-13)
    np.testing.assert_allclose(arrays["gradient.y"], -2 / 3 * (X @ INPUTS["w"] - Y), 1e-13)


def test_free_rows_and_resident_weights(foreign: Client) -> None:
    for rows in (1, 2, 3):
        inputs = [json_input("x", X[:rows]), json_input("y", Y[:rows])]
        _, outputs = unpacked(infer(foreign, {"inputs": inputs}, f"/v2/models/{BOUND}"))
        np.testing.assert_allclose(outputs["residual"], residual()[:rows], 1e-14)


def test_nonfinite_values_need_binary_output(foreign: Client) -> None:
    infinite = np.array([[np.inf, 0], [np.nan, 1], [1, 1]])
    first = json_input("x", infinite, parameters={"binary_data_size": infinite.nbytes})
    del first["data"]
    request: Json = {"inputs": [first, *ALL[1:]], "outputs": [{"name": "residual"}]}
    body, headers = packed(request, infinite)
    answer = foreign.post(f"{MODEL}/infer", content=body, headers=headers)
    detail = "the output “residual” is nan at 1, which JSON cannot represent; ask for a binary encoding"
    assert (answer.status_code, answer.json()) == (400, {"error": detail})
    body, headers = packed(request | {"parameters": {"binary_data_output": True}}, infinite)
    _, arrays = unpacked(foreign.post(f"{MODEL}/infer", content=body, headers=headers))
    np.testing.assert_array_equal(np.isnan(arrays["residual"]), [False, True, False])


@pytest.mark.parametrize(
    ("changed", "status", "says"),
    [
        ({"inputs": ALL[:2]}, 400, "the input “y” is missing"),
        ({"inputs": [*ALL, json_input("v", X)]}, 400, "there is no input “v”"),
        ({"inputs": [*ALL, ALL[0]]}, 400, "inputs[3] is named “x”, like an earlier input"),
        ({"inputs": [ALL[0] | {"datatype": "FP32"}, *ALL[1:]]}, 400, "the input “x” is FP64, but inputs[0] is FP32"),
        ({"inputs": [ALL[0] | {"datatype": "BYTES"}, *ALL[1:]]}, 400, "inputs[0].datatype must be one of BOOL"),
        ({"inputs": [ALL[0] | {"shape": [6]}, *ALL[1:]]}, 400, "the input “x” has shape [3, 2]"),
        ({"inputs": [ALL[0] | {"shape": [-3, -2]}, *ALL[1:]]}, 400, "has shape [3, 2]"),
        ({"inputs": [ALL[0] | {"data": [1.0]}, *ALL[1:]]}, 400, "must hold 6 elements"),
        ({"inputs": [ALL[0] | {"data": ["a"] * 6}, *ALL[1:]]}, 400, "inputs[0].data must hold numbers"),
        ({"inputs": [ALL[0] | {"data": [[1]] * 6}, *ALL[1:]]}, 400, "inputs[0].data must be a list of 3"),
        ({"inputs": [ALL[0] | {"data": [[1, 2, 3]] * 2}, *ALL[1:]]}, 400, "inputs[0].data must be a list of 3"),
        ({"inputs": [ALL[0] | {"data": [[1, 2], [3], [4, 5]]}, *ALL[1:]]}, 400, "data[1] must be a list of 2, but is"),
        ({"inputs": [ALL[0] | {"data": [[1, 2], 3, [4, 5]]}, *ALL[1:]]}, 400, "inputs[0].data[1] must be a list of 2"),
        ({"inputs": [ALL[0] | {"data": [[[1, 2]], [3], [4]]}, *ALL[1:]]}, 400, "inputs[0].data[0] must be a list of 2"),
        ({"inputs": [ALL[0] | {"data": [[1, 2], [3, [4]], [5, 6]]}, *ALL[1:]]}, 400, "has a list at [1][1]"),
        ({"inputs": [ALL[0] | {"data": [[1, 2], [3, None], [5, 6]]}, *ALL[1:]]}, 400, "has null at [1][1]"),
        ({"inputs": [*ALL[:2], ALL[2] | {"data": [[1], [2], [3]]}]}, 400, "inputs[2].data must hold numbers, but"),
        ({"inputs": [ALL[0] | {"data": [10**400] * 6}, *ALL[1:]]}, 400, "inputs[0] has a number in data that is"),
        ({"outputs": [{"name": "los"}]}, 400, "there is no output “los”"),
        ({"outputs": [{"name": "gradient.w"}]}, 400, "parameters.gradient_of must name the output"),
        ({"outputs": [{"name": "gradient.w"}], "parameters": {"gradient_of": "x"}}, 400, "but is “x”"),
        ({"outputs": [{"name": "gradient.w"}], "parameters": {"gradient_of": "residual"}}, 400, "residual"),
        ({"parameters": {"sequence_id": 3}}, 400, "gradserve does not support sequences"),
    ],
)  # fmt: skip
def test_refusals(foreign: Client, changed: Json, status: int, says: str) -> None:
    answer = infer(foreign, {"inputs": ALL} | changed)
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    if says != "residual":
        assert says in answer.json()["error"]


def test_booleans_are_read_as_numbers(foreign: Client) -> None:
    _, outputs = unpacked(infer(foreign, {"inputs": [ALL[0], ALL[1] | {"data": [True, False]}, ALL[2]]}))
    np.testing.assert_allclose(outputs["loss"], loss(w=np.array([1.0, 0.0])), 1e-14)


@pytest.fixture(scope="module")
def narrow(make_client: Callable[..., Client]) -> Client:
    """A client of a server that takes short JSON and gives short answers."""
    client = make_client(facades=("umbridge", "openinference", "tesseract"), max_body_bytes=3000,
                         max_binary_bytes=30_000, max_response_bytes=4000)  # fmt: skip
    put_models(client)
    return client


class TestLimits:
    """The JSON of a body has its own limit, and so does an answer."""

    def test_binary_data_may_exceed_the_json_limit(self, narrow: Client) -> None:
        rows = 1000
        inputs = [
            json_input("x", np.ones((rows, 2)), parameters={"binary_data_size": 16 * rows}),
            json_input("y", np.ones(1)),
        ]
        inputs[1] |= {"shape": [rows], "parameters": {"binary_data_size": 8 * rows}}
        for binary_input in inputs:
            del binary_input["data"]
        request = {"inputs": inputs, "outputs": [{"name": "loss"}]}
        body, headers = packed(request, np.ones((rows, 2)), np.ones(rows))
        assert len(body) > 3000
        answer = narrow.post(f"/v2/models/{BOUND}/infer", content=body, headers=headers)
        assert answer.status_code == 200, answer.text

    @pytest.mark.parametrize("length", ["", "5000", "29000"])
    def test_json_may_not_exceed_its_limit(self, narrow: Client, length: str) -> None:
        body = json.dumps({"inputs": ALL}).encode().ljust(29_000)
        answer = narrow.post(f"{MODEL}/infer", content=body, headers=OCTETS | {LENGTH_HEADER: length})
        size = length or "29000"
        detail = f"the JSON of the body may have at most 3000 bytes, but has {size} bytes"
        assert (answer.status_code, answer.json()) == (413, {"error": detail})

    @pytest.mark.parametrize(
        "path",
        ["/Evaluate", f"/tesseract/{FIT}/apply", MODEL, f"{MODEL}/versions/1", "/v2/x", "/v2/models/a/b/infer", "/x"],
    )
    def test_length_header_is_ignored_on_other_paths(self, narrow: Client, path: str) -> None:
        answer = narrow.post(path, content=b"{}".ljust(3001), headers={LENGTH_HEADER: "2"})
        assert answer.status_code == 413, answer.text

    def test_repeated_outputs_count_towards_the_limit(self, narrow: Client) -> None:
        request = {"inputs": ALL, "outputs": [{"name": "residual"}] * 30}
        answer = infer(narrow, request)
        assert (answer.status_code, "the limit is 4000" in answer.json()["error"]) == (413, True)
        assert infer(narrow, request | {"outputs": [{"name": "residual"}] * 2}).status_code == 200


def test_unknown_model_and_version_are_not_found(foreign: Client) -> None:
    for path, says in (("/v2/models/nobody", "nobody"), (f"{MODEL}/versions/1", "no version “1”")):
        for answer in (foreign.get(path), foreign.get(f"{path}/ready"), infer(foreign, {"inputs": ALL}, path)):
            assert answer.status_code == 404
            assert says in answer.json()["error"]
    assert foreign.get("/v2/nothing").json()["error"].startswith("the path /v2/nothing does not exist")


def test_compression_is_refused(foreign: Client) -> None:
    answer = foreign.post(f"{MODEL}/infer", content=b"x", headers={"Content-Encoding": "gzip"})
    assert (answer.status_code, list(answer.json())) == (415, ["error"])
