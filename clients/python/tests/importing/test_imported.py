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
        (("a/b", "a:b"), "'a/b' and 'a:b' would be kept under one name, 'm.a_b'"),
        (("a" * 127,), f"'m.{'a' * 127}' is longer than a tensor's name may be, 128 characters"),
    ],
)
def test_names_that_cannot_be_are_told_before_anything_is_put(names: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(gs.InputError) as caught:
        imported(*names).tensor_names("m")
    assert str(caught.value) == sentence
