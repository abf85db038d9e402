"""Attributes of any size, sent to a started server that compiles: it answers, or says which node it is, and stays."""

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
#: calls, at most, until a worker has compiled what they run
MANY: Final = 2000


@pytest.fixture(scope="module")
def client(start_server: Callable[..., RunningServer]) -> Iterator[httpx.Client]:
    """Of a server with one worker."""
    server = start_server("--workers", "1")
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


def convolution(width: int, **attrs: Any) -> Json:
    """Squares of a convolution added up, to be differentiated by its kernel."""
    rng = np.random.default_rng(0)
    numbers = [(s, rng.normal(size=s).astype("float32").ravel().tolist()) for s in ((2, 8, 32, width), KERNEL)]
    feeds = [feed(i, list(shape), data, "float32") for i, (shape, data) in enumerate(numbers)]
    parts = node("input"), node("parameter"), node("conv2d", 0, 1, **attrs), node("square", 2), node("sum", 3)
    return request(*parts, feeds=feeds)


def gradient(client: httpx.Client, body: Json) -> Any:
    found = client.post("/v1/gradients", json=body)
    assert found.status_code == 200, found.text
    return np.array(found.json()["gradients"][0]["tensor"]["data"])


def counted(client: httpx.Client, name: str) -> float:
    """What a counter says, over all its labels."""
    return sum(map(float, re.findall(rf"^{name}(?:{{.*}})? (.*)$", client.get("/metrics").text, re.MULTILINE)))


@pytest.mark.slow
@pytest.mark.parametrize(("width", "stride"), [(33, 2**57), (34, 2**58), (35, 2**62)])
def test_a_stride_of_any_size_is_answered_by_kernels_as_by_numpy(client: httpx.Client, width: int, stride: int) -> None:
    """Of each width there are kernels of its own."""
    body, before = convolution(width, stride=[1, stride], padding=[1, 1]), counted(client, "gradserve_kernels_total")
    first = gradient(client, body)
    for _ in range(MANY):
        np.testing.assert_allclose(gradient(client, body), first, 1e-3, 1e-3)
        if counted(client, "gradserve_kernels_total") > before:
            break
    for _ in range(3):
        np.testing.assert_allclose(gradient(client, body), first, 1e-3, 1e-3)
    assert counted(client, "gradserve_kernels_total") > before
    assert counted(client, "gradserve_worker_restarts_total") == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [-1, -(2**63), 2**63 - 1, 2**63, 2**64, 10**30])
@pytest.mark.parametrize("name", ["stride", "padding", "dilation"])
def test_what_is_refused_names_its_node(client: httpx.Client, name: str, number: int) -> None:
    """A stride that is a number of 64 bits is no reason to refuse."""
    found = client.post("/v1/gradients", json=convolution(33, **{name: [number, 1]}))
    if name == "stride" and number == 2**63 - 1:
        assert found.status_code == 200
        return
    codes = {"bad_attribute", "over_budget", "shape_mismatch", "invalid_field"}
    report = problem(found, found.status_code, found.json()["code"])
    assert (found.status_code // 100, report["code"] in codes) == (4, True), report
    assert "node 2" in report["detail"] or report["code"] == "over_budget"
