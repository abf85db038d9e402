"""Graphs: handles, operators, and refusals with the line that wrote a node."""

from __future__ import annotations

import inspect
import math
from keyword import iskeyword
from typing import Any

import numpy as np
import pytest

from engine import registry
from gradserve_client.errors import InputError
from gradserve_client.graph import Graph, Node
from gradserve_client.ops import SINCE
from gradserve_client.opset import opset_of
from gradserve_client.requests import to_wire
from tests.sampling import together


def summary(graph: Graph) -> list[tuple[str, tuple[int, ...], dict[str, Any]]]:
    return [(node.op, node.operands, dict(node.attrs)) for node in graph]


def test_methods_append_nodes() -> None:
    graph = Graph()
    x, w = graph.input("x"), graph.parameter("w", dtype=np.float32, shape=(2, -1))
    loss = x.matmul(w).softmax(axis=0).sum(axes=[0], keepdims=True, name="loss")
    assert [(node.id, node.op, node.operands, node.attrs, node.name) for node in graph] == [
        (0, "input", (), {}, "x"),
        (1, "parameter", (), {"dtype": "float32", "shape": [2, -1]}, "w"),
        (2, "matmul", (0, 1), {}, None),
        (3, "softmax", (2,), {"axis": 0}, None),
        (4, "sum", (3,), {"axes": [0], "keepdims": True}, "loss"),
    ]
    assert loss is graph.find("loss") is graph.find(4)


@pytest.mark.parametrize(
    ("write", "nodes"),
    [
        (lambda x, y: x + y, [("add", (0, 1), {})]),
        (lambda x, y: x - 2, [("sub_scalar", (0,), {"scalar": 2})]),
        (lambda x, y: 2 - x, [("neg", (0,), {}), ("add_scalar", (2,), {"scalar": 2})]),
        (lambda x, y: 3 * x, [("mul_scalar", (0,), {"scalar": 3})]),
        (lambda x, y: x / y, [("div", (0, 1), {})]),
        (lambda x, y: 1 / x, [("reciprocal", (0,), {})]),
        (lambda x, y: 2 / x, [("reciprocal", (0,), {}), ("mul_scalar", (2,), {"scalar": 2})]),
        (lambda x, y: x**2, [("pow_scalar", (0,), {"exponent": 2})]),
        (lambda x, y: x**y, [("pow", (0, 1), {})]),
        (lambda x, y: x @ y, [("matmul", (0, 1), {})]),
        (lambda x, y: x % y, [("mod", (0, 1), {})]),
        (lambda x, y: -abs(x), [("abs", (0,), {}), ("neg", (2,), {})]),
        (lambda x, y: x < y, [("less", (0, 1), {})]),
        (lambda x, y: y >= x, [("greater_equal", (1, 0), {})]),
    ],
)
def test_operators_append_ops(write: Any, nodes: list[Any]) -> None:
    graph = Graph()
    write(graph.input(), graph.input())
    assert summary(graph)[2:] == nodes


@pytest.mark.parametrize("write", [lambda x, a: a * x, lambda x, a: a @ x, lambda x, a: a - x, lambda x, a: a / x])
def test_array_operand_becomes_a_constant(write: Any) -> None:
    graph = Graph()
    write(graph.input(), np.ones((2, 2), np.float32))
    assert [node.op for node in graph][:2] == ["input", "constant"]
    assert graph.find(1).attrs["value"].dtype == np.float32
    assert graph.find(2).operands == (1, 0)


def test_compared_number_becomes_a_constant() -> None:
    graph = Graph()
    assert (graph.input() > 0).operands == (0, 1)
    assert graph.find(1).attrs["value"].dtype == np.int64


def test_handles_are_hashable_and_have_no_truth_value() -> None:
    graph = Graph()
    x, y = graph.input(), graph.input()
    assert {x: 1, y: 2}[x] == 1
    with pytest.raises(InputError, match=r"less \(test_graph.py:\d+\)"):
        bool(x < y)


def test_op_appends_any_op_by_name() -> None:
    graph = Graph()
    x = graph.input()
    assert graph.op("newer", x, x, level=np.int64(3), sizes=(1, 2), name="n").attrs == {"level": 3, "sizes": [1, 2]}


def test_constant_copies_its_array() -> None:
    array, graph = np.ones(2), Graph()
    constant = graph.constant(array)
    array[:] = 0
    assert constant.attrs["value"].tolist() == [1, 1]


def test_unset_attributes_are_not_sent() -> None:
    graph = Graph()
    assert graph.input().sum(axes=None, keepdims=False).attrs == {"keepdims": False}


def test_only_trailing_operands_can_be_omitted() -> None:
    """Otherwise a bias would become the weight."""
    graph = Graph()
    x, weight = graph.input(), graph.input()
    assert x.layer_norm().operands == (0,)
    assert x.layer_norm(weight).operands == (0, 1)
    with pytest.raises(InputError, match="operand 1 must be a node, not NoneType"):
        x.layer_norm(bias=weight)


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def test_node_of_another_graph_is_refused_with_both_lines() -> None:
    one, other = Graph(), Graph()
    x, y, number = one.input(), other.input(), line()
    with pytest.raises(InputError) as caught:
        x.add(y)
    assert str(caught.value) == (
        f"add (test_graph.py:{number + 2}): operand 1, input (test_graph.py:{number}), belongs to another graph"
    )
    assert len(one) == 1


@pytest.mark.parametrize(
    ("write", "told"),
    [
        (lambda g, x: g.full(fill=math.nan), "attribute fill: JSON cannot represent nan"),
        (lambda g, x: x.mul_scalar(math.inf), "attribute scalar: JSON cannot represent inf"),
        (lambda g, x: x.cast(np.uint16), "attribute dtype: unsupported dtype uint16"),
        (lambda g, x: g.constant(np.ones(1, np.uint16)), "attribute value: unsupported dtype uint16"),
        (lambda g, x: g.constant([[1], [1, 2]]), "attribute value: cannot convert the value to an array"),
        (lambda g, x: x.sum(axes=[object()]), "attribute axes: object"),
        (lambda g, x: g.op("add", x, 1), "operand 1 must be a node, not int"),
    ],
)
def test_unsendable_value_names_the_op_and_its_line(write: Any, told: str) -> None:
    graph = Graph()
    with pytest.raises(InputError, match=rf"^\w+ \(test_graph.py:\d+\).*{told}"):
        write(graph, graph.input())


@pytest.mark.parametrize("node", ["absent", "twice", 9, -1, 0.5, None])
def test_unknown_node_is_refused(node: Any) -> None:
    graph = Graph()
    graph.input("twice").exp(name="twice")
    with pytest.raises(InputError):
        graph.find(node)


def test_graph_from_the_wire() -> None:
    wire = {
        "opset": 2,
        "nodes": [
            {"op": "constant", "attrs": {"value": {"dtype": "int8", "shape": [1], "data": [3]}}, "name": "c"},
            {"op": "unheard_of", "operands": [0], "attrs": {"level": 2}},
        ],
    }
    graph = Graph.from_wire(wire)
    assert graph.find("c").attrs["value"].tolist() == [3]
    assert summary(graph)[1] == ("unheard_of", (0,), {"level": 2})


@pytest.mark.parametrize(
    ("write", "opset"),
    [
        (lambda g: g.input().random_key(), 2),
        (lambda g: g.op("random_key", g.input()), 2),
        (lambda g: g.parameter(dtype=np.uint32), 2),
        (lambda g: g.input().cast("uint32"), 2),
        (lambda g: g.input().cast(np.complex64), 2),
        (lambda g: g.parameter(dtype="int16"), 2),
        (lambda g: g.constant([1j]), 2),
        (lambda g: g.constant(np.array([0, 2**32 - 1], np.uint32)), 2),
        (lambda g: g.input().cast("int32"), None),
        (lambda g: g.op("new", dtype="float8", word="uint32"), None),
        (lambda g: g.op("new", dtype=["uint32"]), None),
    ],
)
def test_opset_is_inferred_unless_stated(write: Any, opset: Any) -> None:
    inferred, explicit = Graph(), Graph(1)
    write(inferred)
    write(explicit)
    assert to_wire(inferred).get("opset") == to_wire(inferred.copy()).get("opset") == opset
    assert to_wire(explicit)["opset"] == to_wire(explicit.copy())["opset"] == 1


def test_opsets_of_ops_and_attributes_match_the_registry() -> None:
    ops = registry().ops.values()
    attributes = {
        f"{op.name}.{name}": attr.since for op in ops for name, attr in op.attrs.items() if attr.since > op.since
    }
    assert {op.name: op.since for op in ops if op.since > 1} | attributes == SINCE


def test_newer_attribute_raises_the_opset_of_its_graph() -> None:
    g = Graph()
    plain = g.input().cumsum(0)
    assert opset_of(g) is None
    plain.cumsum(0, reverse=True)
    assert opset_of(g) == 2


@together
@pytest.mark.parametrize("name", registry().ops)
def test_every_op_has_a_method_with_all_its_parameters(name: str) -> None:
    op = registry().ops[name]
    method = f"{name}_" if iskeyword(name) else name
    owner = Node if hasattr(Node, method) else Graph
    parameters = [*inspect.signature(getattr(owner, method)).parameters][1:]
    operands = [operand.rstrip("?.") for operand in op.operands][1 if owner is Node else 0 :]
    assert sorted(parameters) == sorted([*operands, *op.attrs, "name"])
    assert getattr(owner, method).__doc__
