"""Triton's and KServe's own HTTP clients, unmodified: JSON and bytes, gradients, and refusals that they can print."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from tests.service.facades.fitting import BOUND, FIT, INPUTS, X, Y, loss, loss_by_w, residual

# The clients leave connections for the garbage collector to close.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")

triton = pytest.importorskip("tritonclient.http", reason="make test-facades installs it")


@pytest.fixture(scope="module")
def client(url: str) -> Any:
    with triton.InferenceServerClient(url.removeprefix("http://")) as opened:
        yield opened


def inputs(binary: bool, **values: Any) -> list[Any]:
    result = []
    for name, value in (values or INPUTS).items():
        entry = triton.InferInput(name, list(value.shape), "FP64")
        entry.set_data_from_numpy(np.ascontiguousarray(value), binary_data=binary)
        result.append(entry)
    return result


def test_server_and_model_metadata(client: Any) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready(FIT)
    assert not client.is_model_ready("nobody")
    assert client.get_server_metadata()["name"] == "gradserve"
    assert client.get_model_metadata(FIT)["inputs"][0] == {"name": "x", "datatype": "FP64", "shape": [3, 2]}


@pytest.mark.parametrize("binary_in", [False, True])
@pytest.mark.parametrize("binary_out", [False, True])
def test_values(client: Any, binary_in: bool, binary_out: bool) -> None:
    requested = [triton.InferRequestedOutput(name, binary_data=binary_out) for name in ("loss", "residual")]
    answer = client.infer(FIT, inputs(binary_in), outputs=requested, request_id="7")
    np.testing.assert_allclose(answer.as_numpy("residual"), residual(), 1e-14)
    np.testing.assert_allclose(answer.as_numpy("loss"), loss(), 1e-14)
    assert answer.get_response()["id"] == "7"


def test_all_outputs_are_returned_by_default(client: Any) -> None:
    answer = client.infer(FIT, inputs(True))
    np.testing.assert_allclose(answer.as_numpy("residual"), residual(), 1e-14)


def test_gradients(client: Any) -> None:
    requested = [triton.InferRequestedOutput("gradient.w"), triton.InferRequestedOutput("loss", binary_data=False)]
    answer = client.infer(FIT, inputs(True), outputs=requested, parameters={"gradient_of": "loss"})
    np.testing.assert_allclose(answer.as_numpy("gradient.w"), loss_by_w(), 1e-13)


def test_free_row_count_with_bound_weights(client: Any) -> None:
    answer = client.infer(BOUND, inputs(True, x=X[:2], y=Y[:2]))
    np.testing.assert_allclose(answer.as_numpy("residual"), residual()[:2], 1e-14)


def test_refusals_have_readable_messages(client: Any) -> None:
    for call, message in (
        (lambda: client.infer("nobody", inputs(True)), "there is no model “nobody”"),
        (lambda: client.infer(FIT, inputs(True)[1:]), "the input “x” is missing"),
        (lambda: client.infer(FIT, inputs(True), model_version="1"), "has no version “1”"),
        (lambda: client.infer(FIT, inputs(True), request_compression_algorithm="gzip"), "content encoding gzip"),
        (lambda: client.infer(FIT, inputs(True), sequence_id=3, sequence_start=True), "no sequences"),
    ):
        with pytest.raises(Exception, match=message) as refused:
            call()
        assert "Internal" not in str(refused.value)


def test_kserve_client(url: str) -> None:
    kserve = pytest.importorskip("kserve")
    from kserve.inference_client import InferenceRESTClient, RESTConfig

    infer_inputs = []
    for name, value in INPUTS.items():
        entry = kserve.InferInput(name, list(value.shape), "FP64")
        entry.set_data_from_numpy(value, binary_data=False)
        infer_inputs.append(entry)

    async def infer() -> Any:
        client = InferenceRESTClient(RESTConfig(protocol="v2"))
        assert await client.is_server_live(url)
        assert await client.is_server_ready(url)
        assert await client.is_model_ready(url, FIT)
        request = kserve.InferRequest(FIT, infer_inputs=infer_inputs)
        return await client.infer(url, request, model_name=FIT)

    answer = asyncio.run(infer())
    outputs = {output.name: output.as_numpy() for output in answer.outputs}
    np.testing.assert_allclose(outputs["residual"], residual(), 1e-14)
