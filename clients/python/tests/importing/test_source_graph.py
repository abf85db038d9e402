"""The part of a graph that outputs need, with the functions that it runs."""

from __future__ import annotations

from typing import Any

import gradserve_client as gs
from gradserve_client.importing import SourceGraph


def doubled(graph: Any) -> Any:
    x, unread = graph.input(), graph.input()
    x.exp()
    return x.add(x), unread


def test_unused_nodes_and_functions_are_removed(client: gs.Client) -> None:
    graph = SourceGraph()
    x, w, y = graph.input("x"), graph.parameter("w"), graph.input("y")
    graph.function(lambda inner: inner.input().neg(), "unused")
    body = graph.function(doubled, "doubled")
    x.exp()
    output = graph.call(x, w, body=body).get_output(0)
    subgraph = graph.subgraph([output, y])
    assert [node.op for node in subgraph.graph] == ["input", "parameter", "input", "call", "get_output"]
    assert [(function.name, [node.op for node in function.nodes]) for function in subgraph.graph.functions] == [
        ("doubled", ["input", "input", "add"])
    ]
    value = client.forward(subgraph.graph, {"x": 3.0, "w": 1.0, "y": 0.0}, outputs=[subgraph.nodes[output.id]]).value
    assert value == 6


def test_nested_functions_are_preserved(client: gs.Client) -> None:
    graph = SourceGraph()

    def outer(inner: Any) -> Any:
        inner.function(lambda innermost: innermost.input(), "unused")
        body = inner.function(lambda innermost: innermost.input().mul_scalar(3.0), "thrice")
        return inner.call(inner.input(), body=body).get_output(0)

    x = graph.input("x")
    output = graph.call(x, body=graph.function(outer, "outer")).get_output(0)
    subgraph = graph.subgraph([output])
    assert [function.name for function in subgraph.graph.functions] == ["thrice", "outer"]
    assert client.forward(subgraph.graph, {"x": 2.0}).value == 6
