"""All calls to a real server: with sent and registered graphs, in every form, and lookups in answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pytest

import gradserve_client as gs
from gradserve_client.fields import Precision
from tests.conftest import RunningServer

X, W = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.5], [-0.25]])
FORMS: list[Any] = ["json", "base64", "safetensors", None]


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[gs.Client]:
    with gs.Client(server.url) as client:
        yield client


class Model:
    """y = x w, and the sum of squares of y."""

    def __init__(self) -> None:
        self.graph = gs.Graph()
        self.x, self.w = self.graph.input("x"), self.graph.parameter("w")
        self.y = self.x.matmul(self.w, name="y")
        self.loss = (self.y * self.y).sum(name="loss")
        self.feeds: dict[Any, Any] = {self.x: X, self.w: W}
        self.types: dict[Any, Any] = {self.x: X, "w": (np.float64, (2, 1))}


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module", params=["graph", "registered"])
def ask(request: pytest.FixtureRequest, client: gs.Client, model: Model) -> Any:
    """Function that makes a call with the model's graph, sent or registered."""
    if request.param == "graph":
        return lambda call, /, *arguments, **options: getattr(client, call)(model.graph, *arguments, **options)
    registered = client.register(model.graph, description="for tests")
    return lambda call, /, *arguments, **options: getattr(registered, call)(*arguments, **options)


GRADIENT, HESSIAN = 2 * X.T @ X @ W, 2 * X.T @ X


@pytest.mark.parametrize("form", FORMS)
def test_values_and_gradients(ask: Any, model: Model, form: Any) -> None:
    answer = ask("gradients", model.feeds, outputs=[model.y, "loss"], form=form)
    assert np.allclose(answer.values[model.y], X @ W)
    assert answer.values["loss"].shape == ()
    assert np.allclose(answer.gradients[model.w], GRADIENT)
    assert (answer.gradients["w"] == answer.gradients[0]).all()
    assert answer.disconnected == []
    assert answer.stats["device"] == "cpu"
    assert np.allclose(ask("forward", model.feeds, form=form).value, ((X @ W) ** 2).sum())


@pytest.mark.parametrize("precision", get_args(Precision))
def test_cpu_computes_float32_at_every_precision(ask: Any, model: Model, precision: Precision) -> None:
    feeds = {node: value.astype("float32") for node, value in model.feeds.items()}
    assert ask("gradients", feeds, precision=precision).stats["precision"] == "float32"
    assert ask("check", feeds, precision=precision).passed
    assert ask("plan", model.types, precision=precision).admitted


def test_stats_without_a_precision(ask: Any, model: Model) -> None:
    """No product reads float32: the graph is in float64, and `check` computes in float64."""
    assert "precision" not in ask("gradients", model.feeds).stats
    assert "precision" not in ask("check", model.feeds).stats


def test_unknown_precision_is_refused(ask: Any, model: Model) -> None:
    with pytest.raises(gs.GraphError) as caught:
        ask("gradients", model.feeds, precision="float16")
    assert caught.value.pointer == "/precision"


RUNS: dict[str, dict[str, Any]] = {
    "forward": {},
    "gradients": {},
    "vjp": {"cotangents": {"loss": np.ones(())}},
    "jvp": {"tangents": {"w": W}},
    "jacobian": {"outputs": ["y"]},
    "hvp": {"vectors": {"w": W}},
    "hessian": {},
    "batch": {"mapped": ["x"]},
    "check": {},
}


@pytest.mark.parametrize("call", RUNS)
def test_call_respects_its_memory_budget(ask: Any, model: Model, call: str) -> None:
    feeds = model.feeds | {model.x: X[None]} if call == "batch" else model.feeds
    assert ask(call, feeds, memory_budget=1 << 20, **RUNS[call]).stats["peak_bytes"] <= 1 << 20
    with pytest.raises(gs.GraphError) as caught:
        ask(call, feeds, memory_budget=1, **RUNS[call])
    assert caught.value.code == "over_budget"


def test_memory_budget_causes_recomputation(client: gs.Client) -> None:
    graph = gs.Graph()
    last = x = graph.parameter("x")
    for _ in range(16):
        last = last.sin()
    last.sum()
    feeds = {x: np.linspace(0.1, 1.6, 16)}
    budget = 2 * client.plan(graph, feeds).fields["peak_bytes"] // 3
    planned = client.plan(graph, feeds, memory_budget=budget)
    assert planned.fields["peak_bytes"] <= budget
    answer = client.gradients(graph, feeds, memory_budget=budget)
    assert answer.stats["recomputed_flops"] == planned.fields["recomputed_flops"] > 0
    assert (answer.gradients[x] == client.gradients(graph, feeds).gradients[x]).all()


@pytest.mark.parametrize("form", FORMS)
def test_jacobian_products(ask: Any, model: Model, form: Any) -> None:
    cotangent = np.array([[1.0], [2.0]])
    forward = {"outputs": [model.y], "form": form}
    assert np.allclose(
        ask("vjp", model.feeds, cotangents={model.y: cotangent}, **forward).gradients[model.w], X.T @ cotangent
    )
    batched = ask("vjp", model.feeds, cotangents={model.y: cotangent[None]}, batched=True, **forward)
    assert batched.gradients[model.w].shape == (1, 2, 1)
    assert np.allclose(ask("jvp", model.feeds, tangents={model.w: W}, **forward).tangents[model.y], X @ W)
    assert np.allclose(ask("jacobian", model.feeds, **forward).jacobian[model.y, "w"][:, 0, :, 0], X)
    pulled = ask("gradients", model.feeds, of=model.y, cotangent=cotangent, form=form)
    assert np.allclose(pulled.gradients[model.w], X.T @ cotangent)


@pytest.mark.parametrize("form", FORMS)
def test_second_order(ask: Any, model: Model, form: Any) -> None:
    answer = ask("hessian", model.feeds, form=form)
    assert np.allclose(answer.hessian[model.w, model.w][:, 0, :, 0], HESSIAN)
    assert [key for key, _ in answer.hessian.items()] == [(model.w, model.w)]
    assert np.allclose(ask("hvp", model.feeds, vectors={model.w: W}, form=form).hvp[model.w], HESSIAN @ W)


@pytest.mark.parametrize("form", FORMS)
def test_hessian_as_one_matrix(ask: Any, model: Model, form: Any) -> None:
    blocks = ask("hessian", model.feeds, wrt=[model.w, model.x], layout="blocks", form=form)
    assert blocks.matrix is None
    answer = ask("hessian", model.feeds, wrt=[model.w, model.x], layout="matrix", form=form)
    array, offsets = answer.matrix
    assert array.shape == (6, 6)
    assert [(node, *place) for node, place in offsets.items()] == [(model.w, 0, 2), (model.x, 2, 4)]
    assert offsets["x"] == offsets[model.x] == offsets[1]
    for (row, column), block in blocks.hessian.items():
        assert (array[offsets[row].slice, offsets[column].slice].ravel() == block.ravel()).all()
    assert len(answer.hessian) == 0
    assert (answer.fields["matrix"]["tensor"] == array).all()


def test_batch(ask: Any, model: Model) -> None:
    answer = ask("batch", {model.x: X[None], model.w: W}, mapped=[model.x])
    assert np.allclose(answer.gradients[model.w][0], GRADIENT)


def test_batch_jacobians(client: gs.Client) -> None:
    """Jacobians of several elements need a graph of opset 2; a graph of opset 1 is refused."""
    points = np.array([[1.0, 2.0], [3.0, 4.0]])

    def jacobians(graph: gs.Graph) -> Any:
        x = graph.input()
        return client.batch(graph, {x: points}, mapped=[x], of=x.square(), wrt=[x]).gradients[x]

    assert jacobians(gs.Graph(opset=2)).tolist() == [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
    with pytest.raises(gs.GraphError, match=r"Jacobians .*since opset 2"):
        jacobians(gs.Graph())


def test_batch_without_parameters(client: gs.Client) -> None:
    graph = gs.Graph()
    x = graph.input()
    x.sum()
    assert client.batch(graph, {x: X}, mapped=[x]).gradients[:] == []


def test_check_and_plan(ask: Any, model: Model) -> None:
    assert ask("check", model.feeds, directions=2).passed
    assert ask("check", model.feeds).errors[model.w] < 1e-6
    forecast = ask("plan", model.types, call="hessian")
    assert forecast.admitted
    assert [node["op"] for node in forecast.fields["nodes"]][:2] == ["input", "parameter"]


@pytest.mark.parametrize("form", FORMS)
def test_differentiate_returns_a_graph(client: gs.Client, ask: Any, model: Model, form: Any) -> None:
    answer = ask("differentiate", model.types, form=form)
    node = answer.gradients[model.w]
    assert node.graph is answer.graph
    assert answer.find(model.x).name == "x"
    feeds: Any = {answer.find(node): value for node, value in model.feeds.items()}
    assert np.allclose(client.forward(answer.graph, feeds, outputs=[node]).value, GRADIENT)


@pytest.mark.parametrize("form", FORMS)
def test_constants_are_sent_in_every_form(client: gs.Client, form: Any) -> None:
    graph = gs.Graph()
    w = graph.parameter("w")
    loss = (w * graph.constant(X)).sum()
    assert (client.gradients(graph, {w: X}, of=loss, form=form).gradients[w] == X).all()
    assert (client.register(graph, form=form).gradients({w: X}).gradients[w] == X).all()
    derived = client.differentiate(graph, {w: X}, form=form)
    assert (client.forward(derived.graph, {"w": X}, outputs=[derived.gradients[w]]).value == X).all()


def test_registered_graph_by_its_id(client: gs.Client, model: Model) -> None:
    graph_id = client.register(model.graph, description="there").graph_id
    registered = client.registered(graph_id)
    assert np.allclose(registered.gradients({"x": X, "w": W}).gradients["w"], GRADIENT)
    listed = {entry.graph_id: entry for entry in client.graphs(limit=1)}
    assert listed[graph_id].node_count == len(model.graph)
    assert client.unregister(registered).graph_id == graph_id
    with pytest.raises(gs.NotFoundError):
        client.registered(graph_id)
    assert registered.forward({"x": X, "w": W}).values[0].shape == ()


def test_registered_graph_excludes_later_nodes(client: gs.Client) -> None:
    graph = gs.Graph()
    w = graph.parameter()
    w.square()
    model = client.register(graph)
    w.exp()
    answer = model.gradients({w: X}, cotangent=np.ones_like(X), form="safetensors")
    assert (answer.gradients[w] == 2 * X).all()


def test_results_are_indexed_by_position_and_node(client: gs.Client, model: Model) -> None:
    values = client.forward(model.graph, model.feeds, outputs=[model.y, model.loss]).values
    assert [node for node, _ in values.items()] == [model.y, model.loss]
    assert (len(values), len(values[:1])) == (2, 1)
    with pytest.raises(KeyError, match=r"matmul|input"):
        values[model.x]
    with pytest.raises(gs.InputError):
        values["absent"]
    with pytest.raises(gs.InputError, match="2 values"):
        _ = client.forward(model.graph, model.feeds, outputs=[model.y, model.loss]).value


def test_large_tensors_are_sent_as_safetensors(client: gs.Client) -> None:
    graph = gs.Graph()
    w = graph.parameter()
    w.sum()
    sent: list[str] = []
    client._transport._http.event_hooks = {"request": [lambda request: sent.append(request.headers["content-type"])]}
    for size in (511, 512):
        client.gradients(graph, {w: np.ones(size)})
        client.put("t", np.ones(size))
    client._transport._http.event_hooks = {"request": []}
    assert [media.rpartition(".")[2] for media in sent] == ["application/json"] * 2 + ["safetensors"] * 2


def test_refusal_names_the_line(client: gs.Client, model: Model) -> None:
    with pytest.raises(gs.GraphError, match=r"test_calls.py:\d+") as caught:
        client.gradients(model.graph, {model.x: X, model.w: W.T})
    assert caught.value.code == "shape_mismatch"
    assert caught.value.node == model.y.id


@pytest.mark.parametrize(
    ("ask_wrongly", "told"),
    [
        (lambda c, m: c.forward(m.graph, {gs.Graph().input(): X}), "another graph"),
        (
            lambda c, m: c.forward(m.graph, {m.x: [[1, 2], [3]]}),
            "feeds of input .*cannot convert the value to an array",
        ),
        (lambda c, m: c.forward(m.graph, {m.x: X.astype(np.uint16)}), "uint16"),
        (lambda c, m: c.gradients(m.graph, m.feeds, wrt=["absent"]), "absent"),
        (lambda c, m: c.check(m.graph, m.feeds, tolerance=float("nan")), "JSON"),
        (
            lambda c, m: c.plan(m.graph, {m.x: (np.uint64, [1])}),
            r"types of input \(test_calls.py:\d+\): unsupported dtype uint64",
        ),
        (
            lambda c, m: c.gradients(m.graph, m.feeds, cotangent=np.uint16(1)),
            r"cotangent of sum \(test_calls.py:\d+\): unsupported dtype uint16",
        ),
    ],
)
def test_invalid_calls_are_not_sent(client: gs.Client, model: Model, ask_wrongly: Any, told: str) -> None:
    sent: list[Any] = []
    client._transport._http.event_hooks = {"request": [sent.append]}
    with pytest.raises(gs.InputError, match=told):
        ask_wrongly(client, model)
    client._transport._http.event_hooks = {"request": []}
    assert sent == []


def test_numbers_take_the_dtype_of_their_leaf(client: gs.Client) -> None:
    graph = gs.Graph()
    x = graph.input(dtype="float32")
    assert client.forward(graph, {x: [1, 2]}).value.dtype == np.float32


def test_op_catalogue(client: gs.Client) -> None:
    assert "softmax" in {op["name"] for op in client.ops()["ops"]}
