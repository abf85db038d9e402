"""Errors in a client's graph, found before a run: each with its code, node and message."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Compiler, EngineError, Function, Limits, Program, Statement, TensorType, open_executor, registry
from engine.ir.errors import BadAttribute, TooManyNodes

F = TensorType((2,), np.dtype("float64"))
M = TensorType((2, 3), np.dtype("float64"))


def node(op: str, *operands: int, name: str | None = None, **attrs: Any) -> Statement:
    return Statement(registry().get(op), operands, attrs, name)


def gradients(statements: list[Statement], types: dict[int, TensorType], **request: Any) -> None:
    Compiler(Limits()).gradients(Program(registry(), statements), types, **request)


X = node("parameter")
INT = TensorType((2,), np.dtype("int64"))

WRONG: list[tuple[str, list[Statement], dict[int, TensorType], dict[str, Any], str, int | None, str]] = [
    (
        "forward reference",
        [X, node("neg", 1)],
        {0: F},
        {},
        "bad_reference",
        1,
        "node 1 (neg): operand 0 must be an earlier node, 0 to 0, but is 1",
    ),
    (
        "reference from the first node",
        [node("neg", 0)],
        {},
        {},
        "bad_reference",
        0,
        "node 0 (neg): operand 0 must be an earlier node (node 0 has none), but is 0",
    ),
    (
        "too many operands, and a label",
        [X, node("neg", 0, 0, name="bad\nname")],
        {0: F},
        {},
        "operand_count",
        1,
        "node 1 (neg “bad?name”): takes 1 operand (x), but got 2",
    ),
    (
        "unknown attribute",
        [X, node("sum", 0, axis=1)],
        {0: F},
        {},
        "bad_attribute",
        1,
        "node 1 (sum): there is no attribute axis here (known: axes, keepdims); did you mean axes?",
    ),
    (
        "missing attribute",
        [X, node("cast", 0)],
        {0: F},
        {},
        "bad_attribute",
        1,
        "node 1 (cast): attribute dtype is required",
    ),
    (
        "attribute of the wrong type",
        [X, node("sum", 0, keepdims=1)],
        {0: F},
        {},
        "bad_attribute",
        1,
        "node 1 (sum): attribute keepdims must be true or false, but is 1",
    ),
    (
        "attribute below its minimum",
        [node("full", shape=[-1]), X],
        {1: F},
        {"of": 1},
        "bad_attribute",
        0,
        "node 0 (full): attribute shape must be whole numbers of at least 0, but is [-1]",
    ),
    (
        "endless attribute",
        [node("full", shape=[1] * 200), X],
        {1: F},
        {"of": 1},
        "over_budget",
        0,
        "node 0 (full): attribute shape has 200 entries, but may have at most 128",
    ),
    (
        "get_output of a single output",
        [X, node("get_output", 0, index=0)],
        {0: F},
        {},
        "bad_reference",
        1,
        "node 1 (get_output): operand 0: get_output reads an op with several outputs, but node 0 is parameter",
    ),
    (
        "missing feed",
        [X, node("input", name="data"), node("add", 0, 1), node("sum", 2)],
        {0: F},
        {},
        "missing_feed",
        1,
        "node 1 (input “data”): the result needs a feed for this node, but there is none",
    ),
    (
        "feed of an op",
        [X, node("sum", 0)],
        {0: F, 1: F},
        {},
        "unexpected_feed",
        1,
        "node 1 (sum): got a feed, but only input and parameter nodes take one",
    ),
    (
        "feed that nothing needs, of a shape that is not declared",
        [X, node("input", shape=[3]), node("sum", 0)],
        {0: F, 1: F},
        {},
        "shape_mismatch",
        1,
        "node 1 (input): is declared with shape [3], but is fed shape [2]",
    ),
    (
        "feed of no node",
        [X, node("sum", 0)],
        {0: F, 7: F},
        {},
        "unexpected_feed",
        None,
        "feeds name node 7, but the graph has 2 nodes",
    ),
    (
        "declared dtype",
        [node("parameter", dtype="float32"), node("sum", 0)],
        {0: F},
        {},
        "dtype_mismatch",
        0,
        "node 0 (parameter): is declared as float32, but is fed float64",
    ),
    (
        "declared shape",
        [node("parameter", shape=[-1, 2]), node("sum", 0)],
        {0: M},
        {},
        "shape_mismatch",
        0,
        "node 0 (parameter): is declared with shape [-1, 2], but is fed shape [2, 3]",
    ),
    (
        "declared 0-d",
        [node("parameter", zero_d=True), node("sum", 0)],
        {0: F},
        {},
        "shape_mismatch",
        0,
        "node 0 (parameter): is declared with shape [], but is fed shape [2]",
    ),
    (
        "several elements without a cotangent",
        [X, node("neg", 0)],
        {0: F},
        {},
        "non_scalar_output",
        1,
        "node 1 (neg): has shape [2]: reduce it to one element (sum, mean), or ask for its jacobian",
    ),
    (
        "cotangent of another shape",
        [X, node("neg", 0)],
        {0: F},
        {"cotangent": M},
        "shape_mismatch",
        1,
        "node 1 (neg): its cotangent must have shape [2], but has [2, 3]",
    ),
    (
        "cotangent of another dtype",
        [X, node("neg", 0)],
        {0: F},
        {"cotangent": TensorType((2,), np.dtype("float32"))},
        "dtype_mismatch",
        1,
        "node 1 (neg): its cotangent must be float64, but is float32",
    ),
    (
        "of is not float",
        [X, node("equal", 0, 0)],
        {0: F},
        {},
        "not_differentiable",
        1,
        "node 1 (equal): of names this node, whose dtype bool has no derivatives",
    ),
    (
        "wrt is not float",
        [X, node("sum", 0)],
        {0: INT},
        {},
        "not_differentiable",
        0,
        "node 0 (parameter): is int64, which has no derivatives: feed it as a float dtype, or take it out of wrt",
    ),
    (
        "grad by an integer",
        [X, node("input"), node("sum", 0), node("grad", 2, 1), node("sum", 3)],
        {0: F, 1: INT},
        {},
        "not_differentiable",
        3,
        "node 3 (grad): operand 1 (x) must be float to be differentiated, but is int64",
    ),
    (
        "wrt twice",
        [X, node("sum", 0)],
        {0: F},
        {"wrt": [0, 0]},
        "invalid_field",
        0,
        "wrt names node 0 twice",
    ),
    (
        "wrt out of range",
        [X, node("sum", 0)],
        {0: F},
        {"wrt": [2]},
        "bad_reference",
        None,
        "wrt names node 2, but the nodes are 0 to 1",
    ),
    (
        "no parameters",
        [node("input"), node("sum", 0)],
        {0: F},
        {},
        "invalid_field",
        None,
        "wrt is empty and the graph has no parameter nodes: name the nodes to differentiate with respect to",
    ),
    ("no nodes", [], {}, {}, "invalid_field", None, "the graph has no nodes"),
    (
        "shapes that do not broadcast",
        [X, node("input"), node("add", 0, 1), node("sum", 2)],
        {0: M, 1: F},
        {},
        "shape_mismatch",
        2,
        "node 2 (add): shapes [2, 3] and [2] do not broadcast: their extents at axis -1 differ and none of them is 1",
    ),
]


@pytest.mark.parametrize(
    ("statements", "types", "request_", "code", "where", "detail"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG]
)
def test_invalid_graph_error(
    statements: list[Statement],
    types: dict[int, TensorType],
    request_: dict[str, Any],
    code: str,
    where: int | None,
    detail: str,
) -> None:
    with pytest.raises(EngineError) as caught:
        gradients(statements, types, **request_)
    assert (caught.value.code, caught.value.node, str(caught.value)) == (code, where, detail)


def test_unknown_op_suggests_the_nearest() -> None:
    with pytest.raises(EngineError, match="there is no op called “mutmul”; did you mean") as caught:
        registry().get("mutmul")
    assert caught.value.code == "unknown_op"
    with pytest.raises(EngineError, match="GET /v1/ops lists all ops"):
        registry().get("x" * 500)


def chained(count: int) -> list[Function]:
    """Functions, each of which runs the previous one."""
    functions: list[Function] = []
    for index in range(count):
        called = [node("call", 0, body=index - 1), node("get_output", 1, index=0)] if index else [node("neg", 0)]
        functions.append(Function(registry(), [node("input"), *called], [len(called)], functions=functions))
    return functions


def test_function_depth_includes_the_functions_it_calls() -> None:
    """For any number of them: none is visited twice."""
    assert [function.depth for function in chained(3000)] == list(range(1, 3001))


def test_program_size_includes_its_functions() -> None:
    functions = chained(3)
    program = Program(registry(), [node("input"), node("neg", 0)], opset=2, functions=functions)
    assert (program.size, [function.size for function in functions]) == (2 + 8, [2, 3, 3])
    with pytest.raises(TooManyNodes):
        Program(registry(), [node("input")], Limits(nodes=8), opset=2, functions=functions)


def test_function_can_only_call_earlier_functions() -> None:
    functions = chained(2)
    with pytest.raises(BadAttribute, match="must be the index of an earlier function, 0 to 1, but is 2"):
        Function(registry(), [node("input"), node("call", 0, body=2)], [0], functions=functions)


def test_digest_ignores_names_but_not_types_and_bits() -> None:
    def digest(*statements: Statement) -> bytes:
        return Program(registry(), statements).digest

    assert digest(node("input", name="a")) == digest(node("input"))
    assert digest(node("input")) != digest(node("parameter"))
    assert digest(node("full", fill=0.0)) != digest(node("full", fill=-0.0))
    one, true = np.array(1, "int64"), np.array(1, "int32")
    assert digest(node("constant", value=one)) != digest(node("constant", value=true))


def test_kernel_error_names_the_op_of_the_client() -> None:
    statements = [X, node("input"), node("embedding", 0, 1), node("sum", 2)]
    table, outside = np.ones((4, 2)), np.array([1, 4])
    plan = (
        Compiler(Limits())
        .gradients(Program(registry(), statements), {0: TensorType.of(table), 1: TensorType.of(outside)})
        .plan
    )
    with pytest.raises(EngineError) as caught:
        open_executor("cpu").run(plan, {0: table, 1: outside})
    assert (caught.value.code, caught.value.node) == ("index_out_of_range", 2)
    assert str(caught.value).startswith("node 2 (embedding): operand 1 holds an index outside")
