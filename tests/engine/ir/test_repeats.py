"""Repeated statements reuse the nodes of earlier ones, with the same result as checking each of them."""

from __future__ import annotations

from typing import Any
from unittest.mock import PropertyMock, patch

import pytest
from hypothesis import HealthCheck, given, settings

from engine import Builder, Limits, Program, Statement, TensorType, registry
from engine.ir.attributes import make_attributes_key
from engine.ir.errors import TooManyNodes
from engine.ir.tensor_type import FLOAT64
from tests.engine.strategies import Sketch, sketches

OPS = registry().ops


def built(program: Program, types: dict[int, TensorType], roots: list[int]) -> tuple[list[Any], dict[int, int]]:
    """The nodes in comparable form, and the index of each node of the program."""
    builder, values = program.build(types, roots)
    nodes = [node._replace(attrs={} if node.is_leaf else make_attributes_key(node.attrs)) for node in builder.nodes]
    return nodes, {node: value.index for node, value in values.items()}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sketches())
def test_reuse_gives_the_same_nodes(sketch: Sketch) -> None:
    program, roots = Program(registry(), sketch.nodes), list(range(len(sketch.nodes)))
    quick = built(program, sketch.types, roots)
    with patch.object(Builder, "may_repeat", PropertyMock(return_value=False)):
        assert built(program, sketch.types, roots) == quick


@pytest.mark.parametrize(
    "others",
    [
        [Statement(OPS["sum"], (0,), {"axes": [0]}), Statement(OPS["sum"], (0,), {"axes": [1]})],
        [Statement(OPS["mul_scalar"], (0,), {"scalar": 0.0}), Statement(OPS["mul_scalar"], (0,), {"scalar": -0.0})],
        [Statement(OPS["sin"], (0,)), Statement(OPS["sum"], (0,)), Statement(OPS["sin"], (2,))],
        [Statement(OPS["sin"], (0,)), Statement(OPS["cos"], (0,))],
    ],
    ids=["axes", "the sign of zero", "types", "ops"],
)
def test_different_statements_are_not_reused(others: list[Statement]) -> None:
    program = Program(registry(), [Statement(OPS["parameter"]), *others])
    nodes, _ = built(program, {0: TensorType((2, 3), FLOAT64)}, list(range(len(others) + 1)))
    assert len({(node.op.name, str(node.attrs), str(node.types)) for node in nodes}) == len(nodes)


def test_node_limit_applies_to_repeated_statements() -> None:
    chain = [Statement(OPS["parameter"]), *(Statement(OPS["sin"], (i,)) for i in range(600))]
    program = Program(registry(), chain, Limits(nodes=601))
    with pytest.raises(TooManyNodes, match="node 500"):
        program.build({0: TensorType((), FLOAT64)}, [600], limits=Limits(nodes=500))
