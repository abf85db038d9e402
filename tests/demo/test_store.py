"""Training by `store`: the server steps the parameters, as a client would that held them itself."""

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

from examples.server import running_server
from tests.docs.marked import ROOT

pytestmark = pytest.mark.slow

STEPS = 200


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that keeps its state on disk."""
    folder = tmp_path_factory.mktemp("state")
    with running_server("--device", "cpu", "--state", str(folder), "--write-behind-ms", "50") as address:
        yield address


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """An example as a module; those that it imports are beside it."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    return import_module


class Model:
    """Two layers of three units, in float64, and numbers to fit."""

    def __init__(self, graph: Any) -> None:
        rng = np.random.default_rng(5)
        self.graph = graph
        self.x, self.y = graph.input(), graph.input()
        w1, b1, w2 = (graph.parameter() for _ in range(3))
        hidden = graph.op("tanh", graph.op("add", graph.op("matmul", self.x, w1), b1))
        self.loss = graph.op("mse_loss", graph.op("matmul", hidden, w2), self.y)
        self.parameters = {w1: rng.normal(size=(2, 3)), b1: rng.normal(size=3), w2: rng.normal(size=(3, 1))}
        self.data = {self.x: rng.normal(size=(16, 2)), self.y: rng.normal(size=(16, 1))}


@pytest.mark.parametrize("durable", [True, False])
def test_the_server_steps_as_a_client_does(url: str, example: Callable[[str], Any], *, durable: bool) -> None:
    client_module, adam, resident = example("client"), example("adam"), example("resident_adam")
    ours, theirs = Model(client_module.Graph()), Model(client_module.Graph())
    names = {leaf: f"step.{leaf}" for leaf in theirs.parameters}
    with client_module.Client(url) as client:
        stepping = adam.Adam(ours.parameters, rate=0.01)
        stored = resident.ResidentAdam(theirs.graph, theirs.loss, theirs.parameters, names, rate=0.01)
        graph_id = stored.begin(client)
        losses = []
        for _ in range(STEPS):
            loss, gradients = client.gradients(ours.graph, {**ours.data, **ours.parameters}, ours.loss)
            stepping.step(gradients)
            losses.append((loss, stored.step(client, graph_id, theirs.data, durable=durable)))
        first, second = np.transpose(losses)
        np.testing.assert_allclose(second, first, rtol=0, atol=1e-10)
        assert first[-1] < first[0] / 2, "it learns something"
        for leaf, name in names.items():
            np.testing.assert_allclose(client.get(name), ours.parameters[leaf], rtol=0, atol=1e-10)
        assert client.get("steps") == STEPS
        stored.end(client, graph_id)


def test_a_step_on_a_kilobyte_moves_less_than_two(url: str, example: Callable[[str], Any]) -> None:
    """A registered graph and resident parameters, of 80 KB: what travels is the batch, and the loss."""
    client_module = example("client")
    graph = client_module.Graph()
    x, w = graph.input(), graph.parameter()
    loss = graph.op("mean", graph.op("square", graph.op("matmul", x, w)))
    new = graph.op("sub", w, graph.op("mul_scalar", graph.op("grad", loss, w), scalar=0.01))
    with client_module.Client(url) as client:
        client.put("wide", np.ones((96, 100)))
        graph_id = client.register(graph)
        batch = np.random.default_rng(0).normal(size=(1, 96))
        store = [{"node": new, "tensor_id": "wide"}]
        body = {"feeds": client_module.pack({x: batch, w: "wide"}), "outputs": [loss], "store": store}
        answer = client.http.post(f"/v1/graphs/{graph_id}/forward", json=body)
        assert answer.is_success
        assert len(body["feeds"][0]["tensor"]["data_b64"]) == 1024
        for moved in (answer.request.content, answer.content):
            headers = answer.request.headers if moved is answer.request.content else answer.headers
            assert len(moved) + sum(len(name) + len(value) + 4 for name, value in headers.raw) < 2048
        assert 0 < np.max(np.abs(client.get("wide") - 1)) < 0.1
        client.http.delete("/v1/tensors/wide").raise_for_status()
        client.http.delete(f"/v1/graphs/{graph_id}").raise_for_status()


@pytest.mark.parametrize("store", ["durable", "behind"])
def test_the_demo_trains_by_store(url: str, tmp_path: Path, store: str) -> None:
    command = [sys.executable, ROOT / "examples/digits.py", "--url", url, "--store", store]
    options = ["--epochs", "15", "--picture", str(tmp_path / "loss.png")]
    run = subprocess.run([*command, *options], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    found = re.search(r"test accuracy: (0\.\d+)", run.stdout)
    assert found, run.stdout
    assert float(found[1]) > 0.94
    assert httpx.get(url + "/v1/tensors").json() == {"tensors": []}
    assert httpx.get(url + "/v1/graphs").json() == {"graphs": []}
