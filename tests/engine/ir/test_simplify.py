"""Simplification keeps values: empty sums, and numbers that a narrow dtype cannot hold."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from engine import (
    Builder,
    Compiler,
    Graph,
    Limits,
    Program,
    Statement,
    TensorType,
    Value,
    open_executor,
    registry,
)
from engine.ir import passes as simplify
from engine.ir.graph import Node
from engine.ir.op import rewrite
from engine.ir.text import print_graph
from engine.ops.elementwise.base import Elementwise
from engine.ops.rewrites import ELEMENTWISE_RULES

OPS = registry().ops
F = TensorType((2, 3), np.dtype("float64"))

Array = np.ndarray[Any, Any]


def line(op: str, *operands: int, **attrs: Any) -> Statement:
    return Statement(registry().ops[op], operands, attrs)


def run(fed: Array, *nodes: Statement) -> Array:
    """The value of the last node; the first is fed."""
    compiled = Compiler(Limits()).forward(Program(registry(), [line("parameter"), *nodes]), {0: TensorType.of(fed)})
    return open_executor("cpu").run(compiled.plan, {0: fed})[0]


def test_empty_sum_of_infinity_and_nan_is_zero() -> None:
    result = run(np.array([np.inf, np.nan]), line("broadcast_to", 0, shape=[0, 2]), line("sum", 1, axes=[0]))
    assert result.tolist() == [0, 0]


@pytest.mark.parametrize("count", [3, 1000, 100_000])
def test_float16_sum_of_more_terms_than_it_can_count(count: int) -> None:
    result = run(np.array(2.0**-14, "float16"), line("broadcast_to", 0, shape=[count]), line("sum", 1))
    np.testing.assert_allclose(result, count * 2.0**-14, rtol=1e-3)


@pytest.mark.parametrize(("start", "first", "second"), [(2.0**-14, 1024.0, 100.0), (1024.0, 2.0**-10, 2.0**-20)])
def test_scalars_whose_product_is_out_of_float16_range(start: float, first: float, second: float) -> None:
    result = run(np.array(start, "float16"), line("mul_scalar", 0, scalar=first), line("mul_scalar", 1, scalar=second))
    np.testing.assert_allclose(result, start * first * second, rtol=1e-3)


# ---------------------------------------------------------------- which nodes rules are tried on


def operand_forms(x: Value) -> dict[str, Value]:
    """Functions of x, one for each op that rules look for."""
    forms = {op: getattr(x, op)() for op in ("neg", "sin")}
    numbers = {f"full {fill}": x.builder.full(F.shape, fill, F.dtype) for fill in (0.0, 1.0, -1.0, 2.0)}
    spread = {f"broadcast_to {shape}": x.sum().broadcast_to(shape=shape) for shape in (F.shape, (1, 3))}
    reshaped = x.builder.full((6,), 1.0, F.dtype).reshape(shape=F.shape)
    left, right = (x.slice(starts=(0, i), stops=(2, i + 1)) for i in range(2))
    joined = {"pad": left.pad(pad_width=(0, 0, 0, 2)), "cat": left.cat(x.full_like(0.0, (2, 1)), right, axis=1)}
    joined["matmul"] = x @ x.full_like(2.0, (3, 3))
    joined["-matmul"] = -joined["matmul"]
    return joined | {
        "input": x,
        **forms,
        **numbers,
        **spread,
        "reshape": reshaped,
        "transpose": x.reshape(shape=F.shape[::-1]).transpose(),
        "mul_scalar": x.mul_scalar(scalar=2.0),
    }


def graphs() -> Iterator[tuple[str, Graph]]:
    """Yield each op with rules, and two without, on operands from every other op."""
    own = {name for name, op in OPS.items() if op.rewrites not in ((), ELEMENTWISE_RULES)}
    for name in sorted({*own, "maximum", "where", "exp"}):
        op, forms = OPS[name], list(operand_forms(Builder(registry()).leaf(F, 0)))
        if name == "reshape":
            forms = [form for form in forms if form != "broadcast_to (1, 3)"]
        for picked in itertools.product(forms, repeat=min(len(op.operands), 2)):
            builder = Builder(registry())
            values = operand_forms(builder.leaf(F, 0))
            operands = [values[form] for form in picked]
            if name == "where":
                operands = [builder.leaf(F.with_dtype("bool"), 1), *operands]
            attrs: dict[str, dict[str, Any]] = {
                "cast": {"dtype": F.dtype},
                "pad": {"pad_width": (0, 0, 0, 0)},
                "reshape": {"shape": F.shape},
                "broadcast_to": {"shape": F.shape},
            }
            scalar = {"scalar": 1.0} if name.endswith("_scalar") else {}
            y = builder.emit(op, operands, attrs.get(name, scalar))
            yield f"{name}({', '.join(picked)})", builder.graph([y])


@pytest.mark.slow
def test_triggers_miss_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare with the same rules tried on every node."""
    cases = dict(graphs())
    triggered = {case: print_graph(simplify.simplify(graph)) for case, graph in cases.items()}
    monkeypatch.setattr(simplify, "_triggers", lambda *_: None)
    tried = {case: print_graph(simplify.simplify(graph)) for case, graph in cases.items()}
    assert triggered == tried
    assert sum(triggered[case] != print_graph(graph) for case, graph in cases.items()) > 100


def test_every_elementwise_op_has_the_elementwise_rules() -> None:
    """An op that declares its own rules without them would keep broadcasts and transposes."""
    lacking = [
        op.name
        for op in OPS.values()
        if isinstance(op, Elementwise) and op.rewrites[-len(ELEMENTWISE_RULES) :] != ELEMENTWISE_RULES
    ]
    assert not lacking


def test_declared_rewrites_of_an_op_are_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    @rewrite(needs=["abs"])
    def even(_: Node, operands: Sequence[Value]) -> Value:
        return operands[0].builder.value(operands[0].node.operands[0]).cos()

    monkeypatch.setattr(type(OPS["cos"]), "rewrites", (even,))
    builder = Builder(registry())
    x = builder.leaf(F, 0)
    simplified = simplify.simplify(builder.graph([x.abs().cos(), x.sin().cos()]))
    assert [node.op.name for node in simplified.nodes] == ["input", "abs", "cos", "sin", "cos"]
    assert simplified.nodes[simplified.outputs[0]].operands == (0,)
