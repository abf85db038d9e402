"""UM-Bridge: its calls match closed forms, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_type_hints

import numpy as np
import pytest

from service.facades.umbridge import UMBRIDGE_CALLS
from tests.conftest import Client
from tests.service.facades.fitting import (
    BOUND,
    FIT,
    INPUTS,
    W,
    X,
    Y,
    hessian_by_w,
    loss,
    loss_by_w,
    mixed_by_x,
    put_models,
    residual,
    residual_by_w,
    residual_by_x,
)
from tests.service.support import Json, node, request, tensor

POINT = [value.reshape(-1).tolist() for value in INPUTS.values()]
SENS, ALONG = np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.7])


def ask(client: Client, path: str, status: int = 200, **body: Any) -> Json:
    """Send a request for the shared model, unless another is named."""
    answer = client.post(f"/{path}", json={"name": FIT, **body})
    assert answer.status_code == status, answer.text
    content: Json = answer.json()
    return content


def error(client: Client, path: str, status: int = 400, **body: Any) -> tuple[str, str]:
    """The type and the message of a refusal."""
    content = ask(client, path, status, **body)
    assert list(content) == ["error"]
    return content["error"]["type"], content["error"]["message"]


def test_server_and_model_info(foreign: Client) -> None:
    assert foreign.get("/Info").json() == {"protocolVersion": 1.0, "models": [BOUND, FIT]}
    support = dict.fromkeys(("Evaluate", "Gradient", "ApplyJacobian", "ApplyHessian"), True)
    assert ask(foreign, "ModelInfo") == {"support": support}
    assert ask(foreign, "InputSizes", config={}) == {"inputSizes": [6, 2, 3]}
    assert ask(foreign, "OutputSizes") == {"outputSizes": [1, 3]}


@pytest.mark.parametrize("call", UMBRIDGE_CALLS, ids=lambda call: call.path)
def test_config_may_be_absent_null_or_empty(foreign: Client, call: Any) -> None:
    fields = {"input": POINT, "outWrt": 1, "inWrt": 1, "inWrt1": 1, "inWrt2": 1, "sens": SENS.tolist(), "vec": [1, 2]}
    body = {name: value for name, value in fields.items() if name in get_type_hints(call.message)}
    answers = [ask(foreign, call.path, **body, **config) for config in ({}, {"config": None}, {"config": {}})]
    assert answers[0] == answers[1] == answers[2]


def test_answer_respects_max_response_bytes(make_client: Callable[..., Client]) -> None:
    """Elements are written as float64, and take more bytes than in answers of `/v1`, which keep their dtype."""
    client = make_client(facades=("umbridge",), max_response_bytes=6000)
    graph_id = client.post("/v1/graphs", json={"graph": {"nodes": [node("input"), node("neg", 0)]}}).json()["graph_id"]
    for name, n in (("short", 100), ("long", 400)):
        leaf = {"name": "x", "node": 0, "dtype": "int8", "shape": [n]}
        body = {"graph_id": graph_id, "inputs": [leaf], "outputs": [{"name": "y", "node": 1}]}
        assert client.request("PUT", f"/v1/models/{name}", json=body).is_success
    assert ask(client, "Evaluate", name="short", input=[[1] * 100])["output"] == [[-1.0] * 100]
    kind, message = error(client, "Evaluate", 413, name="long", input=[[1] * 400])
    assert (kind, "the limit is 6000" in message) == ("InvalidInput", True)


def test_values(foreign: Client) -> None:
    outputs = ask(foreign, "Evaluate", input=POINT)["output"]
    assert len(outputs) == 2
    np.testing.assert_allclose(outputs[0], [loss()], 1e-14)
    np.testing.assert_allclose(outputs[1], residual(), 1e-14)


@pytest.mark.parametrize("call", ["Gradient", "ApplyJacobian"])
def test_derivatives_of_each_output_with_respect_to_each_input(foreign: Client, call: str) -> None:
    jacobians = {(1, 0): residual_by_x().reshape(3, 6), (1, 1): residual_by_w(), (0, 1): loss_by_w()[None]}
    for (output_index, input_index), jacobian in jacobians.items():
        vector = np.linspace(-1, 2, jacobian.shape[0] if call == "Gradient" else jacobian.shape[1])
        vector_field = {"sens": vector.tolist()} if call == "Gradient" else {"vec": vector.tolist()}
        expected = vector @ jacobian if call == "Gradient" else jacobian @ vector
        product = ask(foreign, call, input=POINT, outWrt=output_index, inWrt=input_index, **vector_field)["output"]
        np.testing.assert_allclose(product, expected, 1e-13)


def test_hessians_within_and_across_inputs(foreign: Client) -> None:
    fields = {"input": POINT, "outWrt": 1, "sens": SENS.tolist()}
    within = ask(foreign, "ApplyHessian", inWrt1=1, inWrt2=1, vec=ALONG.tolist(), **fields)["output"]
    np.testing.assert_allclose(within, hessian_by_w(SENS, ALONG), 1e-13)
    across = ask(foreign, "ApplyHessian", inWrt1=0, inWrt2=1, vec=ALONG.tolist(), **fields)["output"]
    np.testing.assert_allclose(across, mixed_by_x(SENS, ALONG).reshape(-1), 1e-13)


def test_hessian_follows_the_weights(foreign: Client) -> None:
    """The graph of the Hessian is built once, and the weights are fed."""
    for weights in (SENS, 2 * SENS, -SENS):
        fields = {"input": POINT, "outWrt": 1, "sens": weights.tolist(), "vec": ALONG.tolist()}
        product = ask(foreign, "ApplyHessian", inWrt1=1, inWrt2=1, **fields)["output"]
        np.testing.assert_allclose(product, hessian_by_w(weights, ALONG), 1e-13)


@pytest.mark.slow
def test_inputs_of_other_dtypes_are_cast(make_client: Callable[..., Client]) -> None:
    client = make_client(facades=("umbridge",))
    graph = request(node("input"), node("input"), node("mul", 0, 1))["graph"]
    graph_id = client.post("/v1/graphs", json={"graph": graph}).json()["graph_id"]
    dtypes = {"a": "float32", "b": "int64"}
    leaves = [{"name": n, "node": i, "dtype": dtypes[n], "shape": [2]} for i, n in enumerate(dtypes)]
    body = {"graph_id": graph_id, "inputs": leaves, "outputs": [{"name": "y", "node": 2}]}
    assert client.request("PUT", "/v1/models/fit", json=body).is_success
    outputs = ask(client, "Evaluate", input=[[0.1, 2], [3.0, 4]])["output"]
    np.testing.assert_allclose(outputs[0], [3 * 0.1, 8], 1e-7)
    kind, message = error(client, "Evaluate", input=[[0.1, 2], [3.5, 4]])
    assert (kind, "whole numbers" in message) == ("InvalidInput", True)
    kind, _ = error(client, "Gradient", input=[[0.1, 2], [3, 4]], outWrt=0, inWrt=1, sens=[1, 1])
    assert kind == "UnsupportedFeature"


def test_nonfinite_output_is_an_error_with_its_index(foreign: Client) -> None:
    graph = request(node("input"), node("log", 0))["graph"]
    graph_id = foreign.post("/v1/graphs", json={"graph": graph}).json()["graph_id"]
    leaf = {"name": "x", "node": 0, "dtype": "float64", "shape": [3]}
    body = {"graph_id": graph_id, "inputs": [leaf], "outputs": [{"name": "y", "node": 1}]}
    foreign.request("PUT", "/v1/models/log", json=body)
    kind, message = error(foreign, "Evaluate", name="log", input=[[1, 0, 2]])
    assert (kind, message) == ("InvalidInput", "“y” is -inf at 1, but UM-Bridge supports only finite numbers")
    foreign.request("DELETE", "/v1/models/log")


def test_free_extents_are_unsupported(foreign: Client) -> None:
    for path, more in (("InputSizes", {}), ("OutputSizes", {}), ("Evaluate", {"input": [[1, 2], [3]]})):
        kind, message = error(foreign, path, name=BOUND, **more)
        assert kind == "UnsupportedFeature"
        assert "“bound” has free extents" in message


@pytest.mark.parametrize(
    ("path", "changed", "kind", "says"),
    [
        ("Evaluate", {"name": "nobody"}, "ModelNotFound", "there is no model “nobody”"),
        ("Evaluate", {"config": {"level": 1}}, "UnsupportedFeature", "config must be absent or {}"),
        ("Evaluate", {"input": POINT[:2]}, "InvalidInput", "input has 2 vectors, but the model “fit” has 3 inputs"),
        ("Evaluate", {"input": [[1.0], *POINT[1:]]}, "InvalidInput", "input[0], for “x”, must have 6 numbers"),
        ("Evaluate", {"input": [POINT[0], ["a", 1], POINT[2]]}, "InvalidInput", "input[1], for “w”"),
        ("Evaluate", {"input": [POINT[0], {"a": 1}, POINT[2]]}, "InvalidInput", "must have 2 numbers, but has an"),
        ("Gradient", {"outWrt": 2}, "InvalidInput", "outWrt must be 0 to 1, but is 2"),
        ("Gradient", {"inWrt": -1}, "InvalidInput", "inWrt must be 0 to 2, but is -1"),
        ("Gradient", {"sens": [1.0]}, "InvalidInput", "sens, for “residual”, must have 3 numbers, but has 1"),
    ],
)  # fmt: skip
def test_refusals(foreign: Client, path: str, changed: Json, kind: str, says: str) -> None:
    body = {"input": POINT} | ({"outWrt": 1, "inWrt": 1, "sens": SENS.tolist()} if path == "Gradient" else {}) | changed
    error_type, message = error(foreign, path, **body)
    assert (error_type, says in message) == (kind, True), message


def test_resident_weights_are_read_at_each_call(make_client: Callable[..., Client]) -> None:
    client = make_client(facades=("umbridge",))
    put_models(client)
    graph_id = client.get("/v1/models/fit").json()["graph_id"]
    leaves = [leaf for leaf in client.get("/v1/models/fit").json()["inputs"] if leaf["name"] != "w"]
    outputs = [{"name": "loss", "node": 6}]
    body = {"graph_id": graph_id, "inputs": leaves, "outputs": outputs, "bound": [{"node": 1, "tensor_id": "w"}]}
    assert client.request("PUT", "/v1/models/own", json=body).is_success
    point = [POINT[0], POINT[2]]
    for weights in (W, 3 * W):
        client.request("PUT", "/v1/tensors/w", json=tensor([2], weights.tolist()))
        np.testing.assert_allclose(
            ask(client, "Evaluate", name="own", input=point)["output"][0], [loss(X, weights, Y)], 1e-14
        )
    client.request("PUT", "/v1/tensors/w", json=tensor([3], [1, 2, 3]))
    _, message = error(client, "Evaluate", name="own", input=point)
    assert "the resident tensor “w” is [3], but was [2] when the model “own” was stored" in message
    client.request("DELETE", "/v1/tensors/w")
    kind, message = error(client, "Evaluate", name="own", input=point)
    assert (kind, "there is no resident tensor “w”" in message) == ("InvalidInput", True)
