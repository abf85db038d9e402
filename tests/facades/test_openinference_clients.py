"""Triton's and KServe's own HTTP clients, unmodified: JSON and bytes, gradients, and refusals that they can print."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from tests.service.facades.fitting import BOUND, FIT, INPUTS, X, Y, loss, loss_by_w, residual

# Their clients leave connections to the collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")

triton = pytest.importorskip("tritonclient.http", reason="make test-facades installs it")


@pytest.fixture(scope="module")
def client(url: str) -> Any:
    with triton.InferenceServerClient(url.removeprefix("http://")) as made:
        yield made


def inputs(binary: bool, **values: Any) -> list[Any]:
    found = []
    for name, value in (values or INPUTS).items():
        one = triton.InferInput(name, list(value.shape), "FP64")
        one.set_data_from_numpy(np.ascontiguousarray(value), binary_data=binary)
        found.append(one)
    return found


def test_what_it_learns(client: Any) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready(FIT)
    assert not client.is_model_ready("nobody")
    assert client.get_server_metadata()["name"] == "gradserve"
    assert client.get_model_metadata(FIT)["inputs"][0] == {"name": "x", "datatype": "FP64", "shape": [3, 2]}


@pytest.mark.parametrize("binary_in", [False, True])
@pytest.mark.parametrize("binary_out", [False, True])
def test_values(client: Any, binary_in: bool, binary_out: bool) -> None:
    wanted = [triton.InferRequestedOutput(name, binary_data=binary_out) for name in ("loss", "residual")]
    answer = client.infer(FIT, inputs(binary_in), outputs=wanted, request_id="7")
    np.testing.assert_allclose(answer.as_numpy("residual"), residual(), 1e-14)
    np.testing.assert_allclose(answer.as_numpy("loss"), loss(), 1e-14)
    assert answer.get_response()["id"] == "7"


def test_all_outputs_unless_some_are_named(client: Any) -> None:
    answer = client.infer(FIT, inputs(True))
    np.testing.assert_allclose(answer.as_numpy("residual"), residual(), 1e-14)


def test_gradients(client: Any) -> None:
    wanted = [triton.InferRequestedOutput("gradient.w"), triton.InferRequestedOutput("loss", binary_data=False)]
    answer = client.infer(FIT, inputs(True), outputs=wanted, parameters={"gradient_of": "loss"})
    np.testing.assert_allclose(answer.as_numpy("gradient.w"), loss_by_w(), 1e-13)


def test_many_rows_and_weights_at_home(client: Any) -> None:
    answer = client.infer(BOUND, inputs(True, x=X[:2], y=Y[:2]))
    np.testing.assert_allclose(answer.as_numpy("residual"), residual()[:2], 1e-14)


def test_refusals_can_be_read(client: Any) -> None:
    for asked, says in (
        (lambda: client.infer("nobody", inputs(True)), "there is no model “nobody”"),
        (lambda: client.infer(FIT, inputs(True)[1:]), "the input “x” is missing"),
        (lambda: client.infer(FIT, inputs(True), model_version="1"), "has no version “1”"),
        (lambda: client.infer(FIT, inputs(True), request_compression_algorithm="gzip"), "content encoding gzip"),
        (lambda: client.infer(FIT, inputs(True), sequence_id=3, sequence_start=True), "no sequences"),
    ):
        with pytest.raises(Exception, match=says) as refused:
            asked()
        assert "Internal" not in str(refused.value)


def test_kserves_own_client(url: str) -> None:
    kserve = pytest.importorskip("kserve")
    from kserve.inference_client import InferenceRESTClient, RESTConfig

    made = []
    for name, value in INPUTS.items():
        one = kserve.InferInput(name, list(value.shape), "FP64")
        one.set_data_from_numpy(value, binary_data=False)
        made.append(one)

    async def asked() -> Any:
        client = InferenceRESTClient(RESTConfig(protocol="v2"))
        assert await client.is_server_live(url)
        assert await client.is_server_ready(url)
        assert await client.is_model_ready(url, FIT)
        request = kserve.InferRequest(FIT, infer_inputs=made)
        return await client.infer(url, request, model_name=FIT)

    answer = asyncio.run(asked())
    found = {output.name: output.as_numpy() for output in answer.outputs}
    np.testing.assert_allclose(found["residual"], residual(), 1e-14)
