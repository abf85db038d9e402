"""Models: put, read, list and delete; conditions; calls by names; graphs that are in use."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

import gradserve_client as gs
from clients.python.tests.scripted import Clock, Script, answer, problem
from tests.conftest import RunningServer

X = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]])
W = np.array([1.0, -1.0])
#: x ⋅ w, the mean of its squares, and its gradient with respect to x
Y = X @ W
LOSS = np.mean(Y**2)
DX = np.outer(2 * Y / 3, W)
ANSWER = {
    "name": "line",
    "etag": "0" * 16,
    "graph_id": "ab" * 32,
    "inputs": [],
    "outputs": [{"name": "y", "node": 0, "dtype": "float64", "shape": []}],
    "bound": [],
}


@pytest.fixture
def client(server: RunningServer) -> Iterator[gs.Client]:
    """A client of a server without models."""
    with gs.Client(server.url) as client:
        for model in [*client.models()]:
            model.delete()
        yield client


def line() -> tuple[gs.Graph, dict[str, gs.Node]]:
    """The graph, and its nodes by name."""
    graph = gs.Graph()
    x, w = graph.input("x", dtype="float64", shape=[-1, 2]), graph.parameter("w")
    y = x.matmul(w)
    return graph, {"x": x, "w": w, "y": y, "loss": y.square().mean()}


def put_line(client: gs.Client, name: str = "line", **changed: Any) -> gs.Model:
    """Put a model of that graph."""
    graph, nodes = line()
    arguments = {"inputs": {"x": nodes["x"]}, "outputs": {"y": nodes["y"], "loss": nodes["loss"]}}
    arguments["bound"] = {nodes["w"]: client.put("line.w", W)}
    return client.put_model(name, client.register(graph, at_once=False), **{**arguments, **changed})


def test_put_model_can_be_read(client: gs.Client) -> None:
    model = put_line(client, description="a line")
    assert model.inputs == {"x": gs.ModelValue(0, "float64", (-1, 2))}
    assert model.outputs == {"y": gs.ModelValue(2, "float64", (-1,)), "loss": gs.ModelValue(4, "float64", ())}
    assert model.bound == (gs.BoundLeaf(1, "line.w", "float64", (2,)),)
    assert (model.description, repr(model)) == ("a line", "<model line: 'x' to 'y', 'loss'>".replace("'", ""))
    assert client.model("line").summary == model.summary
    assert model.delete() == model.summary
    with pytest.raises(gs.NotFoundError):
        client.model("line")


def test_model_from_a_graph_id_and_node_ids(client: gs.Client) -> None:
    graph, _ = line()
    graph_id = client.register(graph).graph_id
    client.put("line.w", W)
    arguments: dict[str, Any] = {"inputs": {"x": (0, np.float64, (-1, 2))}, "outputs": {"y": 2}, "bound": {1: "line.w"}}
    assert client.put_model("line", graph_id, **arguments).forward({"x": X}).value.tolist() == Y.tolist()


def test_model_nodes_by_name(client: gs.Client) -> None:
    model = put_line(client, inputs={"data": ("x", "float64", [3, 2])}, bound={"w": "line.w"})
    assert model.inputs["data"] == gs.ModelValue(0, "float64", (3, 2))


def test_conditions(client: gs.Client) -> None:
    first = put_line(client, if_none_match="*")
    with pytest.raises(gs.ConditionError):
        put_line(client, if_none_match="*")
    second = put_line(client, if_match=first)
    with pytest.raises(gs.ConditionError):
        client.delete_model(second, if_match=first)
    assert client.delete_model(second, if_match=second.etag) == second.summary


def test_models_are_listed_page_by_page(client: gs.Client) -> None:
    for name in "cab":
        put_line(client, name)
    assert [model.name for model in client.models(limit=2)] == [*"abc"]
    assert [model.forward({"x": X}, outputs=["loss"]).value for model in client.models()] == [LOSS] * 3


@pytest.mark.parametrize("is_read", [False, True])
def test_calls_by_name(client: gs.Client, is_read: bool) -> None:
    created = put_line(client)
    model = client.model("line") if is_read else created
    values = model.forward({"x": X})
    assert [*values.values] == ["y", "loss"]
    assert np.allclose(values.values["y"], Y, rtol=1e-15)
    assert np.allclose(values.values["loss"], LOSS, rtol=1e-15)
    result = model.gradients({"x": X}, of="loss")
    assert ([*result.values], [*result.gradients], result.disconnected) == (["loss"], ["x"], [])
    assert np.allclose(result.gradients["x"], DX, rtol=1e-15)
    assert result.value == values.values["loss"]
    assert result.stats["graph_id"] == model.graph_id


def test_bound_leaves_use_the_current_version(client: gs.Client) -> None:
    model = put_line(client)
    client.put("line.w", 2 * W)
    assert np.allclose(model.forward({"x": X}, outputs=["y"]).value, 2 * Y, rtol=1e-15)
    client.delete("line.w")
    with pytest.raises(gs.NotFoundError) as caught:
        model.forward({"x": X})
    assert caught.value.node == 1


def test_inputs_may_be_resident_tensors(client: gs.Client) -> None:
    assert put_line(client).forward({"x": client.put("line.x", X)}, outputs=["y"]).value.tolist() == Y.tolist()


def test_repeated_output_and_disconnected_input(client: gs.Client) -> None:
    graph = gs.Graph()
    x = graph.input(dtype="float64", zero_d=True)
    k = graph.input(dtype="int64", zero_d=True)
    z = graph.input(dtype="float64", zero_d=True)
    y = x.square().mul(k.cast(dtype="float64"))
    inputs = {"x": x, "k": k, "z": z}
    model = client.put_model("twice", client.register(graph), inputs=inputs, outputs={"a": y, "b": y})
    assert {name: value.item() for name, value in model.forward({"x": 3.0, "k": 2, "z": 0.0}).values.items()} == {
        "a": 18,
        "b": 18,
    }
    result = model.gradients({"x": 3.0, "k": 2, "z": 0.0}, of="b")
    assert {name: value.item() for name, value in result.gradients.items()} == {"x": 12, "z": 0}
    assert result.disconnected == ["z"]
    with pytest.raises(gs.InputError, match="expected exactly one value, but the answer has 'a', 'b'"):
        _ = result.value


def test_graph_of_a_model_cannot_be_unregistered(client: gs.Client) -> None:
    model = put_line(client)
    with pytest.raises(gs.ConditionError) as caught:
        client.unregister(model.graph_id)
    assert (caught.value.status, caught.value.code, caught.value.retry_after) == (409, "in_use", None)
    assert "line" in caught.value.detail
    model.delete()
    assert client.unregister(model.graph_id).graph_id == model.graph_id


def test_unregistered_graph_is_registered_again(client: gs.Client) -> None:
    graph, nodes = line()
    registered = client.register(graph)
    client.unregister(registered)
    model = client.put_model("again", registered, inputs={"x": nodes["x"], "w": (1, "float64", [2])}, outputs={"y": 2})
    assert model.graph_id == registered.graph_id


def test_all_errors_are_reported_with_their_lines(client: gs.Client) -> None:
    with pytest.raises(gs.GraphError) as caught:
        put_line(client, inputs={"x": (2, "float64", [2])}, bound={"w": "line.w"})
    assert {error.code for error in caught.value.errors} == {"unexpected_feed", "missing_feed"}
    assert "was written at test_models.py:" in str(caught.value)


UNDECLARED = "the input 'x' of the model is parameter (test_models.py:"


@pytest.mark.parametrize(
    ("inputs", "outputs", "sentence"),
    [
        (lambda nodes: {"x": nodes["w"]}, {"y": 2}, UNDECLARED),
        (lambda _: {"x": ("nobody", "float64", [2])}, {"y": 2}, "the graph has no node named 'nobody'"),
        (lambda _: {"x": gs.Graph().input(dtype="float64", zero_d=True)}, {"y": 2}, "belongs to another graph"),
        (lambda _: {"x": (0, np.uint16, [2])}, {"y": 2}, "unsupported dtype uint16"),
        (lambda _: {}, {"y": 9}, "the graph has no node 9 (number of nodes: 5)"),
    ],
)
def test_invalid_models_are_refused_before_sending(inputs: Any, outputs: Any, sentence: str) -> None:
    graph, nodes = line()
    client = gs.Client("http://s", transport=Script())
    with pytest.raises(gs.InputError) as caught:
        client.put_model("m", client.register(graph, at_once=False), inputs=inputs(nodes), outputs=outputs)
    assert sentence in str(caught.value)


def test_node_names_are_refused_for_a_graph_id() -> None:
    with pytest.raises(gs.InputError, match="pass the node's id"):
        gs.Client("http://s").put_model("m", "ab" * 32, inputs={}, outputs={"y": "y"})


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda m: m.forward({}), "the inputs of the model line are 'x': 'x' is missing"),
        (lambda m: m.forward({"x": X, "w": W}), "the inputs of the model line are 'x': 'w' is unknown"),
        (lambda m: m.forward({"x": X}, outputs=["z"]), "the outputs of the model line are 'y', 'loss': 'z' is unknown"),
        (lambda m: m.gradients({"x": X}), "the model line has the outputs 'y', 'loss': pass one as `of`"),
        (lambda m: m.gradients({"x": X}, of="x"), "the outputs of the model line are 'y', 'loss': 'x' is unknown"),
        (lambda m: m.gradients({"x": X}, of="loss", wrt=["w"]), "the inputs of the model line are 'x': 'w' is unknown"),
        (
            lambda m: m.gradients({"x": X}, of="loss", wrt=[]),
            "the inputs of the model line are 'x': nothing to differentiate with respect to",
        ),
    ],
)
def test_unknown_input_and_output_names_are_refused(client: gs.Client, call: Any, sentence: str) -> None:
    with pytest.raises(gs.InputError) as caught:
        call(put_line(client))
    assert str(caught.value) == sentence


def test_conditional_put_is_retried_under_one_key() -> None:
    for condition, keys in (({}, [None] * 2), ({"if_match": "*"}, ["key-1"] * 2)):
        clock, script = Clock(), Script(problem(503, "queue_full"), answer(201, ANSWER))
        with gs.Client("http://s", transport=script, surroundings=clock.surroundings(), sleep=clock.sleep) as client:
            client.put_model("line", "ab" * 32, inputs={}, outputs={"y": 0}, **condition)  # type: ignore[arg-type]
        assert script.keys() == keys


def test_in_use_error_is_not_retried() -> None:
    clock, script = Clock(), Script(problem(409, "in_use", 1))
    client = gs.Client("http://s", transport=script, surroundings=clock.surroundings(), sleep=clock.sleep)
    with client, pytest.raises(gs.ConditionError):
        client.unregister("ab" * 32)
    assert (clock.waits, len(script.keys())) == ([], 1)


@pytest.mark.parametrize("lacking", ["name", "etag", "graph_id", "inputs", "outputs", "bound"])
def test_malformed_model_is_refused(lacking: str) -> None:
    fields = {name: value for name, value in ANSWER.items() if name != lacking}
    with gs.Client("http://s", transport=Script(answer(200, fields))) as client, pytest.raises(gs.MalformedAnswer):
        client.model("line")


def test_async_client_has_the_same_calls(server: RunningServer) -> None:
    graph, nodes = line()

    async def session() -> None:
        async with gs.AsyncClient(server.url) as client:
            bound = {nodes["w"]: await client.put("line.w", W)}
            outputs = {"y": nodes["y"], "loss": nodes["loss"]}
            registered = await client.register(graph, at_once=False)
            created = await client.put_model(
                "awaited", registered, inputs={"x": nodes["x"]}, outputs=outputs, bound=bound
            )
            read = await client.model("awaited")
            assert dataclasses.asdict(read.summary) == dataclasses.asdict(created.summary)
            for model in (created, read):
                one, other = await asyncio.gather(model.forward({"x": X}), model.gradients({"x": X}, of="loss"))
                assert np.allclose(one.values["y"], Y, rtol=1e-15)
                assert np.allclose(other.gradients["x"], DX, rtol=1e-15)
            assert "awaited" in [each.name async for each in client.models(limit=1)]
            assert await read.delete() == created.summary

    asyncio.run(session())


def test_delete_is_retried_after_a_lost_connection() -> None:
    clock, script = Clock(), Script(httpx.ReadError("lost"), answer(200, ANSWER))
    with gs.Client("http://s", transport=script, surroundings=clock.surroundings(), sleep=clock.sleep) as client:
        assert client.delete_model("line").name == "line"
    assert script.keys() == ["key-1"] * 2
