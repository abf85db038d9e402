"""Internal ops decomposed into ops of the registry: the same results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine import TensorType, Value, registry
from engine.analysis.export import body_written_out
from engine.ir.op import Definition
from engine.ir.tensor_type import FLOAT64, INT64
from engine.ops.control.scan import CountedScan, SummingMap
from engine.ops.control.while_loop import StackingWhile
from engine.ops.conv.convolution import KERNEL_GRADIENT
from tests.engine.ops.values import body_of, results_of

Array = np.ndarray[Any, Any]
NUMBER, PAIR = TensorType((), FLOAT64), TensorType((2,), FLOAT64)
X, K, SEQUENCE = np.array([0.5, -2.0]), np.array(0.75), np.arange(10.0).reshape(5, 2)

IMAGES = np.random.default_rng(0).normal(size=(2, 4, 6, 5))  # no window contains the last row
RESULTS = np.random.default_rng(1).normal(size=(2, 6, 3, 3))


STEP = body_of([NUMBER, PAIR], lambda k, x: [x * k, x.sin()])
STEP_ON_SEQUENCE = body_of([NUMBER, PAIR, PAIR], lambda k, x, s: [x * k + s, x.sin(), s * x])
LARGE = body_of([NUMBER, PAIR], lambda k, x: [x.abs().sum().greater(k)])
SUMS = body_of([NUMBER, PAIR], lambda k, s: [k * s.sum(), s.cos(), s * k])


def scan_attrs(length: int, reverse: bool, sequences: int = 1) -> dict[str, Any]:
    step = STEP_ON_SEQUENCE if sequences else STEP
    return {"body": step, "carries": 1, "sequences": sequences, "length": length, "reverse": reverse}


ENDS = body_of([PAIR], lambda x: [x.abs().sum().greater(0.5)])
HALVES = body_of([PAIR], lambda x: [x * 0.5, x.sin()])
STACKING = {"condition": LARGE, "body": STEP, "carries": 1, "max_steps": 12}
#: an op, its operands and its attributes
CASES: dict[str, tuple[Definition, list[Array], dict[str, Any]]] = {
    **{
        f"{count} of 5 steps{' from the last' * reverse}": (
            CountedScan(), [K, X, SEQUENCE, np.array(count)], scan_attrs(5, reverse)
        )
        for count in (0, 3, 5)
        for reverse in (False, True)
    },
    "no step of none": (CountedScan(), [K, X, np.array(0)], scan_attrs(0, False, 0)),
    "a while": (StackingWhile(), [K, X], STACKING),
    "a while that does not begin": (StackingWhile(), [np.array(9.0), X], STACKING),
    "a while that is ended": (StackingWhile(), [np.array(-1.0), X], STACKING),
    "a while of one operand": (StackingWhile(), [X], {**STACKING, "condition": ENDS, "body": HALVES}),
    "sums": (SummingMap(), [K, SEQUENCE], {"body": SUMS, "sequences": 1, "at_once": None, "sums": 1}),
    "a kernel's gradient": (
        KERNEL_GRADIENT,
        [IMAGES, RESULTS],
        {"taps": (3, 2), "stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 2},
    ),
    "sums of none": (SummingMap(), [K, SEQUENCE[:0]], {"body": SUMS, "sequences": 1, "at_once": 2, "sums": 2}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_decomposition_computes_the_same(case: str) -> None:
    op, arrays, attrs = CASES[case]

    def original(*operands: Value) -> Sequence[Value]:
        result = operands[0].builder.emit(op, operands, attrs)
        return [result.output(k) for k in range(len(result.node.types))] if op.several else [result]

    def decomposed(*operands: Value) -> Sequence[Value]:
        results = op.written_out(*operands, **attrs)
        assert not [node.op for node in operands[0].builder.nodes if node.op.internal]
        return results

    for actual, expected in zip(results_of(decomposed, *arrays), results_of(original, *arrays), strict=True):
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(actual, expected, rtol=1e-14)


def test_bodies_are_decomposed() -> None:
    count = TensorType((), INT64)
    attrs = scan_attrs(5, False, 0)

    def write(k: Value, x: Value, n: Value) -> Sequence[Value]:
        loop = k.builder.emit(CountedScan(), (k, x, n), attrs)
        return [loop.output(1), loop.output(0)]

    outer = body_of([NUMBER, PAIR, count], write)
    public = body_written_out(outer)
    assert public.outputs == outer.outputs
    assert {node.op.name for node in outer.graph.nodes} >= {"counted_scan"}
    assert not [node.op for node in public.graph.nodes if node.op.internal]


def test_op_without_decomposition_is_refused() -> None:
    with pytest.raises(TypeError, match="sin is nowhere written out"):
        registry().ops["sin"].written_out()
