"""Functions of graphs: construction, refusals, and the answers of a server."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradserve_client as gs
from gradserve_client.graph import Graph, GraphFunction, Node
from gradserve_client.requests import to_wire


def euler(f: Graph) -> tuple[Node, Node]:
    """One step of a decay, carried and stacked."""
    k, y = f.input("k"), f.input("y")
    step = y + k * y * -0.5
    return step, step


def decay() -> tuple[Graph, GraphFunction]:
    """A graph with the sum of four decay steps."""
    graph = Graph()
    step = graph.function(euler, name="euler")
    k, y0 = graph.parameter("k"), graph.input("y0")
    graph.scan(k, y0, body=step, carries=1, length=4).get_output(1).sum()
    return graph, step


def test_function_is_a_graph_within_a_graph() -> None:
    graph, step = decay()
    assert (step.index, step.name, len(step.nodes)) == (0, "euler", 5)
    assert [node.name for node in step.parameters] == ["k", "y"]
    assert repr(step) == "<function 0 'euler' of 2, with 2 results>"
    wire = to_wire(graph)
    assert wire["opset"] == 2
    assert wire["functions"][0]["outputs"] == [4, 4]
    assert wire["nodes"][2] == {"op": "scan", "operands": [0, 1], "attrs": {"body": 0, "carries": 1, "length": 4}}
    assert to_wire(graph.copy()) == to_wire(Graph.from_wire(wire)) == wire


def test_server_runs_functions(client: gs.Client) -> None:
    graph, _ = decay()
    for target in (graph, client.register(graph)):
        answer = client.gradients(target, {"k": 1.0, "y0": 16.0})
        assert (answer.value, answer.gradients["k"]) == (15, -26)


def test_function_decorator() -> None:
    graph = Graph()

    @graph.function
    def double(f: Graph) -> Node:
        return f.input(dtype="float32", shape=[2]) * 2

    assert isinstance(double, GraphFunction)
    assert to_wire(graph)["functions"][0]["nodes"][0]["attrs"] == {"dtype": "float32", "shape": [2]}


def test_function_may_define_nested_functions(client: gs.Client) -> None:
    graph = Graph()

    def twice(f: Graph) -> Node:
        inner = f.function(lambda g: g.input() * g.constant([1.0, 2.0]))
        x = f.input()
        return f.call(f.call(x, body=inner).get_output(0), body=inner).get_output(0)

    outer = graph.function(twice)
    assert [function.index for function in graph.functions] == [0, 1]
    graph.call(graph.input("x"), body=outer).get_output(0)
    for form in ("json", "safetensors"):
        assert client.forward(graph, {"x": [3.0, 3.0]}, form=form).value.tolist() == [3, 12]
    derived = client.differentiate(
        graph,
        types={"x": ("float64", [2])},
        of=graph.call(graph.find("x"), body=graph.function(lambda f: f.input().square().sum())).get_output(0),
        wrt=["x"],
        form="safetensors",
    ).graph
    assert client.forward(derived, {"x": [3.0, 3.0]}).value.tolist() == [6, 6]


def test_functions_do_not_share_nodes() -> None:
    graph = Graph()
    x = graph.input()
    inner: list[Node] = []
    with pytest.raises(gs.InputError, match=r"operand 1, input \(test_functions.py:\d+\), belongs to another graph"):
        graph.function(lambda f: f.input() + x)
    graph.function(lambda f: inner.append(f.input()) or inner[0])
    with pytest.raises(gs.InputError, match="belongs to another graph"):
        x.add(inner[0])


@pytest.mark.parametrize(
    ("outputs", "told"),
    [
        (lambda x: x, "as output 0, which is not one of its own nodes"),
        (lambda x: (), None),
        (lambda x: [1.0], "returns float as output 0"),
    ],
)
def test_outputs_must_be_nodes_of_the_function(outputs: Any, told: str | None) -> None:
    graph = Graph()
    x = graph.input()
    if told is None:
        assert graph.function(lambda f: outputs(x)).outputs == ()
        return
    with pytest.raises(gs.InputError, match=told):
        graph.function(lambda f: outputs(x))
    assert graph.functions == []


def test_function_belongs_to_one_graph() -> None:
    _, step = decay()
    graph = Graph()
    with pytest.raises(
        gs.InputError, match=r"scan \(test_functions.py:\d+\), attribute body: <function 0 .* belongs to another"
    ):
        graph.scan(body=step, length=1)
    with pytest.raises(gs.InputError, match="belongs to another graph"):
        graph.copy().scan(body=graph.function(lambda f: f.input()), length=1)
    with pytest.raises(gs.InputError, match="cannot be sent by itself"):
        to_wire(step.nodes)


def test_error_in_a_function_names_its_line(client: gs.Client) -> None:
    graph = Graph()
    wrong = graph.function(lambda f: f.input() @ f.constant(np.ones(3)))
    used = graph.call(graph.input("x"), body=wrong)
    used.get_output(0)
    with pytest.raises(gs.GraphError) as caught:
        client.forward(graph, {"x": np.ones((2, 2))})
    error, node = caught.value, wrong.outputs[0]
    assert (error.node, error.function, error.function_node) == (1, 0, 2)
    assert error.pointer == "/graph/functions/0/nodes/2/operands/1"
    assert str(error).endswith(f"(node 1 was written at {used.line}) (node 2 of function 0 was written at {node.line})")
