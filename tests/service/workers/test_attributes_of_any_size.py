"""Attributes of any size, sent to a server that compiles: it answers or names the node, and stays alive."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import httpx
import numpy as np
import pytest

from tests.conftest import RunningServer
from tests.service.support import Json, feed, node, problem, request

pytest.importorskip("llvmlite")
KERNEL: Final = (8, 8, 3, 3)
#: maximum number of calls until a worker has compiled their kernels
MAX_CALLS: Final = 2000


@pytest.fixture(scope="module")
def client(start_server: Callable[..., RunningServer]) -> Iterator[httpx.Client]:
    """Client of a server with one worker."""
    server = start_server("--workers", "1")
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


def convolution(width: int, **attrs: Any) -> Json:
    """Sum of squares of a convolution, to be differentiated with respect to its kernel."""
    rng = np.random.default_rng(0)
    arrays = [(s, rng.normal(size=s).astype("float32").ravel().tolist()) for s in ((2, 8, 32, width), KERNEL)]
    feeds = [feed(i, list(shape), data, "float32") for i, (shape, data) in enumerate(arrays)]
    nodes = node("input"), node("parameter"), node("conv2d", 0, 1, **attrs), node("square", 2), node("sum", 3)
    return request(*nodes, feeds=feeds)


def gradient(client: httpx.Client, body: Json) -> Any:
    response = client.post("/v1/gradients", json=body)
    assert response.status_code == 200, response.text
    return np.array(response.json()["gradients"][0]["tensor"]["data"])


def counter_value(client: httpx.Client, name: str) -> float:
    """Value of a counter, summed over all labels."""
    return sum(map(float, re.findall(rf"^{name}(?:{{.*}})? (.*)$", client.get("/metrics").text, re.MULTILINE)))


@pytest.mark.slow
@pytest.mark.parametrize(("width", "stride"), [(33, 2**57), (34, 2**58), (35, 2**62)])
def test_kernels_match_numpy_for_huge_strides(client: httpx.Client, width: int, stride: int) -> None:
    """Each width has kernels of its own."""
    body, before = (
        convolution(width, stride=[1, stride], padding=[1, 1]),
        counter_value(client, "gradserve_kernels_total"),
    )
    first = gradient(client, body)
    for _ in range(MAX_CALLS):
        np.testing.assert_allclose(gradient(client, body), first, 1e-3, 1e-3)
        if counter_value(client, "gradserve_kernels_total") > before:
            break
    for _ in range(3):
        np.testing.assert_allclose(gradient(client, body), first, 1e-3, 1e-3)
    assert counter_value(client, "gradserve_kernels_total") > before
    assert counter_value(client, "gradserve_worker_restarts_total") == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [-1, -(2**63), 2**63 - 1, 2**63, 2**64, 10**30])
@pytest.mark.parametrize("name", ["stride", "padding", "dilation"])
def test_refused_attribute_names_its_node(client: httpx.Client, name: str, number: int) -> None:
    """A stride that fits into 64 bits is accepted."""
    response = client.post("/v1/gradients", json=convolution(33, **{name: [number, 1]}))
    if name == "stride" and number == 2**63 - 1:
        assert response.status_code == 200
        return
    codes = {"bad_attribute", "over_budget", "shape_mismatch", "invalid_field"}
    report = problem(response, response.status_code, response.json()["code"])
    assert (response.status_code // 100, report["code"] in codes) == (4, True), report
    assert "node 2" in report["detail"] or report["code"] == "over_budget"
