"""The result of an importer: feeds by name, and weights that stay on a server."""

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


def test_feeds_contain_inputs_and_values(client: gs.Client) -> None:
    result = imported("w", "v")
    feeds = result.feeds({"x": [1, 2]})
    assert feeds[result.inputs["x"]].dtype == np.float32
    assert client.forward(result.graph, feeds).value.tolist() == [4, 8]
    assert repr(result) == "<imported: 5 nodes, 1 inputs, 2 parameters, 1 outputs>"


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        ({}, "the inputs of this model are 'x': 'x' is missing"),
        ({"x": 1, "w": 2}, "the inputs of this model are 'x': 'w' is unknown"),
    ],
)
def test_wrong_inputs_are_refused(inputs: dict[str, int], sentence: str) -> None:
    with pytest.raises(gs.InputError) as caught:
        imported("w").feeds(inputs)
    assert str(caught.value) == sentence


def test_weights_are_stored_under_valid_names(client: gs.Client) -> None:
    result = imported("layers.0/weight", "onnx::MatMul_3")
    residents = result.keep(client, "kept-net")
    assert [each.name for each in residents.values()] == ["kept-net.layers.0_weight", "kept-net.onnx__MatMul_3"]
    assert result.register(client).forward({**residents, "x": np.ones(2, np.float32)}).value.tolist() == [4, 4]


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("a/b", "a:b"), "'m.a/b' and 'm.a:b' would both become the tensor 'm.a_b'"),
        (("a" * 127,), f"'m.{'a' * 127}' is too long for the name of a tensor: the limit is 128 characters"),
    ],
)
def test_invalid_tensor_names_are_refused(names: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(gs.InputError) as caught:
        imported(*names).tensor_names("m")
    assert str(caught.value) == sentence


def test_model_has_valid_names_and_bound_weights(client: gs.Client) -> None:
    graph = SourceGraph()
    x = graph.input(dtype="float32", shape=[-1, 2])
    k = graph.input(dtype="float64", zero_d=True)
    w, mean = graph.parameter("w"), graph.input(dtype="float32", shape=[2])
    outputs = {"y/0": x.mul(w).sub(mean), "k": k.square()}
    values = {"layer/w": np.array([2, 3], np.float32), "mean": np.array([1, -1], np.float32)}
    result = Imported(graph, {"x:0": x, "-k": k}, {"layer/w": w}, values, outputs, state={"mean": mean})
    model = result.to_model(client, "to model", "for the test")
    assert (model.name, model.description) == ("to_model", "for the test")
    assert model.inputs == {"x_0": gs.ModelValue(0, "float32", (-1, 2)), "_k": gs.ModelValue(1, "float64", ())}
    assert {name: value.shape for name, value in model.outputs.items()} == {"y_0": (-1, 2), "k": ()}
    assert {leaf.tensor_name for leaf in model.bound} == {"to_model.layer_w", "to_model.mean"}
    for rows in (1, 3):
        batch = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
        answer = model.forward({"x_0": batch, "_k": 3.0}).values
        assert answer["y_0"].tolist() == (batch * values["layer/w"] - values["mean"]).tolist()
        assert answer["k"] == 9


@pytest.mark.parametrize(
    ("inputs", "outputs", "sentence"),
    [
        (("a/b", "a:b"), ("y",), "'a/b' and 'a:b' would both become the input 'a_b'"),
        (("x",), ("y/0", "y 0"), "'y/0' and 'y 0' would both become the output 'y_0'"),
        (("x",), ("a" * 129,), f"'{'a' * 129}' is too long for the name of an output: the limit is 128 characters"),
    ],
)
def test_invalid_model_names_are_refused_before_storing(
    client: gs.Client, inputs: tuple[str, ...], outputs: tuple[str, ...], sentence: str
) -> None:
    graph = SourceGraph()
    leaves = {name: graph.input(dtype="float32", shape=[2]) for name in inputs}
    w = graph.parameter("w")
    results = {name: w.square() for name in outputs}
    with pytest.raises(gs.InputError) as caught:
        Imported(graph, leaves, {"w": w}, {"w": np.ones(2)}, results).to_model(client, "unnameable")
    assert str(caught.value) == sentence
    assert not [tensor.name for tensor in client.tensors() if tensor.name.startswith("unnameable")]
