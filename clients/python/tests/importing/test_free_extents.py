"""Two imports of one model, joined into one graph whose shapes contain -1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradserve_client as gs
from gradserve_client.importing import Imported, ImportRefused, SourceGraph
from gradserve_client.importing.free_extents import join_imports


def imported(rows: int, build: Any) -> Imported:
    graph = SourceGraph()
    x = graph.input("x", dtype="float64", shape=[rows, 4])
    return Imported(graph, {"x": x}, {}, {}, {"y": build(graph, x, rows)})


def test_one_extent_of_a_reshape_may_be_free(client: gs.Client) -> None:
    joined = join_imports(
        *(imported(rows, lambda graph, x, rows: x.reshape(shape=[rows, 2, 2])) for rows in (3, 5)), {"x": [0]}
    )
    assert (joined.inputs["x"].attrs["shape"], joined.outputs["y"].attrs["shape"]) == ([-1, 4], [-1, 2, 2])
    assert client.forward(joined.graph, {joined.inputs["x"]: np.ones((7, 4))}).value.shape == (7, 2, 2)


def test_functions_are_joined() -> None:
    def build(graph: Any, x: Any, rows: int) -> Any:
        body = graph.function(lambda inner: inner.input().reshape(shape=[2, rows]), "body")
        return graph.call(x, body=body).get_output(0)

    joined = join_imports(*(imported(rows, build) for rows in (3, 5)), {"x": [0]})
    assert [node.attrs.get("shape") for node in joined.graph.functions[0].nodes] == [None, [2, -1]]


REFUSED = {
    "two extents": (lambda graph, x, rows: x.reshape(shape=[rows, rows]), "reshape (at node 1): its shape is [3, 3]"),
    "another attribute": (lambda graph, x, rows: x.slice(stops=[rows - 1]), "slice (at node 1): its stops is [2]"),
    "another op": (
        lambda graph, x, rows: x.exp() if rows == 3 else x.log(),
        "exp (at node 1): with the second example, it is log",
    ),
    "more nodes": (lambda graph, x, rows: x if rows == 3 else x.exp(), "graph (at the whole graph): it has 1 nodes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_dependence_on_the_extent_is_refused(name: str) -> None:
    build, sentence = REFUSED[name]
    with pytest.raises(ImportRefused) as caught:
        join_imports(imported(3, build), imported(5, build), {"x": [0]})
    assert sentence in str(caught.value)
