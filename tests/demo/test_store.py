"""Training with `store`: the server steps the parameters as a client with its own copies would."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import gradserve_client as gs
from examples.server import running_server
from tests.docs.marked import ROOT

pytestmark = pytest.mark.slow

STEPS = 200


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that stores its state on disk."""
    folder = tmp_path_factory.mktemp("state")
    with running_server("--device", "cpu", "--state", str(folder), "--write-behind-ms", "50") as address:
        yield address


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Import examples as modules; the examples that they import are beside them."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    return import_module


class Model:
    """A float64 network of two layers with three units, and data to fit."""

    def __init__(self) -> None:
        rng = np.random.default_rng(5)
        graph = self.graph = gs.Graph()
        self.x, self.y = graph.input(), graph.input()
        w1, b1, w2 = (graph.parameter() for _ in range(3))
        self.loss = ((self.x @ w1 + b1).tanh() @ w2).mse_loss(self.y)
        self.parameters = {w1: rng.normal(size=(2, 3)), b1: rng.normal(size=3), w2: rng.normal(size=(3, 1))}
        self.data = {self.x: rng.normal(size=(16, 2)), self.y: rng.normal(size=(16, 1))}


class SizeRecorder(httpx.HTTPTransport):
    """Transport that records the size of each request and answer, headers included."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        for headers in (request.headers, response.headers):
            self.sizes.append(int(headers.get("Content-Length", 0)) + sum(len(n) + len(v) + 4 for n, v in headers.raw))
        return response


@pytest.mark.parametrize("durable", [True, False])
def test_stored_steps_match_client_steps(url: str, example: Callable[[str], Any], *, durable: bool) -> None:
    ours, theirs = Model(), Model()
    names = {leaf: f"step.{leaf.id}" for leaf in theirs.parameters}
    with gs.Client(url) as client:
        stepping = example("adam").Adam(ours.parameters, rate=0.01)
        stored = example("resident_adam").ResidentAdam(client, theirs.loss, theirs.parameters, names, rate=0.01)
        losses = []
        for _ in range(STEPS):
            answer = client.gradients(ours.graph, {**ours.data, **ours.parameters}, of=ours.loss)
            stepping.step(answer)
            losses.append((answer.value, stored.step(theirs.data, durable=durable)))
        first, second = np.transpose(losses)
        np.testing.assert_allclose(second, first, rtol=0, atol=1e-10)
        assert first[-1] < first[0] / 2, "it learns something"
        for name, parameter in zip(names.values(), ours.parameters.values(), strict=True):
            np.testing.assert_allclose(client.get(name).array, parameter, rtol=0, atol=1e-10)
        assert client.get("steps").array == STEPS
        stored.end()


def test_resident_step_transfers_under_two_kilobytes_each_way(url: str) -> None:
    """Registered graph and 80 KB of resident parameters: only the batch and the loss travel."""
    graph = gs.Graph()
    x, w = graph.input(), graph.parameter()
    loss = (x @ w).square().mean()
    new = w - 0.01 * loss.grad(w)
    batch = np.random.default_rng(0).normal(size=(1, 96))
    recorder = SizeRecorder()
    with gs.Client(url, transport=recorder) as client:
        handle = client.put("wide", np.ones((96, 100)))
        model = client.register(graph)
        recorder.sizes.clear()
        model.forward({x: batch, w: handle}, outputs=[loss], store={new: "wide"}, form="base64")
        assert len(recorder.sizes) == 2
        assert 1024 < recorder.sizes[0] < 2048, "the batch in base64, and little more"
        assert recorder.sizes[1] < 2048
        assert 0 < np.max(np.abs(client.get("wide").array - 1)) < 0.1
        client.delete(handle)
        client.unregister(model)


@pytest.mark.parametrize("store", ["durable", "behind"])
def test_demo_trains_with_store(url: str, tmp_path: Path, store: str) -> None:
    command = [sys.executable, ROOT / "examples/digits.py", "--url", url, "--store", store]
    options = ["--epochs", "15", "--picture", str(tmp_path / "loss.png")]
    run = subprocess.run([*command, *options], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    match = re.search(r"test accuracy: (0\.\d+)", run.stdout)
    assert match, run.stdout
    assert float(match[1]) > 0.94
    assert httpx.get(url + "/v1/tensors").json() == {"tensors": []}
    assert httpx.get(url + "/v1/graphs").json() == {"graphs": []}
