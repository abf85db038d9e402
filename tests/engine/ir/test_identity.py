"""Graph ids: the same for the same graph, in every implementation."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pytest

from engine import Function, Program, Statement, graph_id, registry
from engine.ir.program import canonical

OPS = registry().ops


def s(op: str, *operands: int, name: str | None = None, **attrs: object) -> Statement:
    return Statement(OPS[op], operands, attrs, name)


#: programs, their canonical text and its hash, for other implementations
VECTORS = [
    (
        [s("parameter"), s("square", 0), s("sum", 1)],
        '{"nodes":[{"op":"parameter"},{"op":"square","operands":[0]},{"op":"sum","operands":[1]}],"opset":1}',
        "64a0b9af0ea5643b8e3dfab43d2fdf490e923554fd0ec428a224da892efb1e19",
    ),
    (
        [
            s("input", dtype="float32", shape=[-1, 2]),
            s("sum", 0, axes=[1], keepdims=True),
            s("mul_scalar", 1, scalar=-0.5),
        ],
        (
            '{"nodes":[{"attrs":{"dtype":"float32","shape":[-1,2]},"op":"input"},'
            '{"attrs":{"axes":[1],"keepdims":true},"op":"sum","operands":[0]},'
            '{"attrs":{"scalar":"bfe0000000000000"},"op":"mul_scalar","operands":[1]}],"opset":1}'
        ),
        "226cbb89f4814847e0f3dcca1c807604b8f4a0b51051721fd61ce4073f0e8325",
    ),
    (
        [s("constant", value=np.array([[1, 2]], ">i4")), s("cast", 0, dtype="float64")],
        (
            '{"nodes":[{"attrs":{"value":{"dtype":"int32","sha256":'
            '"34fb5c825de7ca4aea6e712f19d439c1da0c92c37b423936c5f618545ca4fa1f","shape":[1,2]}},'
            '"op":"constant"},{"attrs":{"dtype":"float64"},"op":"cast","operands":[0]}],"opset":1}'
        ),
        "a9c301e34b7434ef8f1c142bf351870cb7af795b07b42327a1d7ea0b4ecca7e2",
    ),
]


@pytest.mark.parametrize(("statements", "text", "digest"), VECTORS, ids=["plain", "attributes", "a tensor"])
def test_graph_id_vectors(statements: list[Statement], text: str, digest: str) -> None:
    program = Program(registry(), statements)
    assert canonical(program) == text
    assert graph_id(program) == digest == sha256(text.encode()).hexdigest()


def test_functions_come_first_in_the_canonical_text() -> None:
    def with_function(name: str, *outputs: int) -> Program:
        inside = [s("input", name=name), s("mul_scalar", 0, scalar=2.0)]
        function = Function(registry(), inside, outputs, name=name)
        return Program(registry(), [s("input"), s("call", 0, body=0)], opset=2, functions=[function])

    assert canonical(with_function("double", 1, 0)) == (
        '{"functions":[{"nodes":[{"op":"input"},{"attrs":{"scalar":"4000000000000000"},"op":"mul_scalar",'
        '"operands":[0]}],"outputs":[1,0]}],'
        '"nodes":[{"op":"input"},{"attrs":{"body":0},"op":"call","operands":[0]}],"opset":2}'
    )
    assert (
        graph_id(with_function("double", 1, 0))
        == graph_id(with_function("twice", 1, 0))
        != graph_id(with_function("double", 0, 1))
    )


def test_graph_id_ignores_names_and_stated_defaults() -> None:
    plain = Program(registry(), [s("parameter"), s("sum", 0)])
    spelled = Program(registry(), [s("parameter", name="w"), s("sum", 0, keepdims=False, name="total")])
    assert graph_id(plain) == graph_id(spelled)


BASE = [s("parameter"), s("mul_scalar", 0, scalar=0.0), s("sum", 1, axes=[0])]
OTHERS = {
    "another op": [s("input"), *BASE[1:]],
    "another operand": [*BASE[:2], s("sum", 0, axes=[0])],
    "another attribute": [*BASE[:2], s("sum", 1, axes=[-1])],
    "an attribute less": [*BASE[:2], s("sum", 1)],
    "the sign of a zero": [BASE[0], s("mul_scalar", 0, scalar=-0.0), BASE[2]],
    "the next number": [BASE[0], s("mul_scalar", 0, scalar=5e-324), BASE[2]],
    "one node more": [*BASE, s("parameter")],
    "a declared dtype": [s("parameter", dtype="float64"), *BASE[1:]],
    "a declared shape": [s("parameter", shape=[-1]), *BASE[1:]],
}


@pytest.mark.parametrize("other", OTHERS)
def test_graph_id_depends_on_everything_else(other: str) -> None:
    assert graph_id(Program(registry(), BASE)) != graph_id(Program(registry(), OTHERS[other]))


CONSTANTS = [
    np.array(0.0),
    np.array(-0.0),
    np.array(np.nan),
    np.array([0.0]),
    np.zeros((0, 2)),
    np.zeros((2, 0)),
    np.array(0),
    np.array(False),
    np.array(0, "int32"),
    np.array(0, "float16"),
    np.array(0, "float32"),
]


def test_each_constant_has_its_own_graph_id() -> None:
    assert len({graph_id(Program(registry(), [s("constant", value=value)])) for value in CONSTANTS}) == len(CONSTANTS)


def test_graph_id_ignores_the_layout_of_constants() -> None:
    dense = np.arange(6.0).reshape(2, 3)
    for other in (np.asfortranarray(dense), dense.astype(">f8"), np.repeat(dense, 2, 1)[:, ::2]):
        assert graph_id(Program(registry(), [s("constant", value=other)])) == graph_id(
            Program(registry(), [s("constant", value=dense)])
        )
