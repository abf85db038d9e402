"""What an importer gives: feeds by name, and weights that stay with a server."""

from __future__ import annotations

import numpy as np
import pytest

import gradserve_client as gs
from gradserve_client.importing import Imported, SourceGraph


def imported(*names: str) -> Imported:
    graph = SourceGraph()
    x = graph.input("x", dtype="float32", shape=[2])
    parameters = {name: graph.parameter(name) for name in names}
    y = x
    for parameter in parameters.values():
        y = y.mul(parameter)
    values = {name: np.full(2, 2.0, np.float32) for name in names}
    return Imported(graph, {"x": x}, parameters, values, {"y": y})


def test_feeds_are_the_inputs_and_the_values(client: gs.Client) -> None:
    found = imported("w", "v")
    feeds = found.feeds({"x": [1, 2]})
    assert feeds[found.inputs["x"]].dtype == np.float32
    assert client.forward(found.graph, feeds).value.tolist() == [4, 8]
    assert repr(found) == "<imported: 5 nodes, 1 inputs, 2 parameters, 1 outputs>"


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        ({}, "the inputs of this model are 'x': 'x' is missing"),
        ({"x": 1, "w": 2}, "the inputs of this model are 'x': 'w' is none"),
    ],
)
def test_inputs_that_are_not_the_models_are_told(inputs: dict[str, int], sentence: str) -> None:
    with pytest.raises(gs.InputError) as caught:
        imported("w").feeds(inputs)
    assert str(caught.value) == sentence


def test_weights_are_kept_under_names_that_tensors_may_have(client: gs.Client) -> None:
    found = imported("layers.0/weight", "onnx::MatMul_3")
    kept = found.keep(client, "kept-net")
    assert [each.name for each in kept.values()] == ["kept-net.layers.0_weight", "kept-net.onnx__MatMul_3"]
    assert found.register(client).forward({**kept, "x": np.ones(2, np.float32)}).value.tolist() == [4, 4]


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("a/b", "a:b"), "'m.a/b' and 'm.a:b' would both be the tensor 'm.a_b'"),
        (("a" * 127,), f"'m.{'a' * 127}' is longer than the name of a tensor may be, 128 characters"),
    ],
)
def test_names_that_cannot_be_are_told_before_anything_is_put(names: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(gs.InputError) as caught:
        imported(*names).tensor_names("m")
    assert str(caught.value) == sentence


def test_a_model_has_the_names_and_its_weights_at_home(client: gs.Client) -> None:
    graph = SourceGraph()
    x = graph.input(dtype="float32", shape=[-1, 2])
    k = graph.input(dtype="float64", zero_d=True)
    w, mean = graph.parameter("w"), graph.input(dtype="float32", shape=[2])
    outputs = {"y/0": x.mul(w).sub(mean), "k": k.square()}
    values = {"layer/w": np.array([2, 3], np.float32), "mean": np.array([1, -1], np.float32)}
    found = Imported(graph, {"x:0": x, "-k": k}, {"layer/w": w}, values, outputs, state={"mean": mean})
    model = found.to_model(client, "to model", "for the test")
    assert (model.name, model.description) == ("to_model", "for the test")
    assert model.inputs == {"x_0": gs.ModelValue(0, "float32", (-1, 2)), "_k": gs.ModelValue(1, "float64", ())}
    assert {name: value.shape for name, value in model.outputs.items()} == {"y_0": (-1, 2), "k": ()}
    assert {leaf.tensor_name for leaf in model.bound} == {"to_model.layer_w", "to_model.mean"}
    for rows in (1, 3):
        given = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
        came = model.forward({"x_0": given, "_k": 3.0}).values
        assert came["y_0"].tolist() == (given * values["layer/w"] - values["mean"]).tolist()
        assert came["k"] == 9


@pytest.mark.parametrize(
    ("inputs", "outputs", "sentence"),
    [
        (("a/b", "a:b"), ("y",), "'a/b' and 'a:b' would both be the input 'a_b'"),
        (("x",), ("y/0", "y 0"), "'y/0' and 'y 0' would both be the output 'y_0'"),
        (("x",), ("a" * 129,), f"'{'a' * 129}' is longer than the name of an output may be, 128 characters"),
    ],
)
def test_names_of_a_model_that_cannot_be_are_told_before_anything_is_put(
    client: gs.Client, inputs: tuple[str, ...], outputs: tuple[str, ...], sentence: str
) -> None:
    graph = SourceGraph()
    leaves = {name: graph.input(dtype="float32", shape=[2]) for name in inputs}
    w = graph.parameter("w")
    made = {name: w.square() for name in outputs}
    with pytest.raises(gs.InputError) as caught:
        Imported(graph, leaves, {"w": w}, {"w": np.ones(2)}, made).to_model(client, "unnameable")
    assert str(caught.value) == sentence
    assert not [kept.name for kept in client.tensors() if kept.name.startswith("unnameable")]
