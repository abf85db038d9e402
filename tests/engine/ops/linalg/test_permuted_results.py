"""Results in other orders, by NumPy: those of the op, and what is stated of them."""

from __future__ import annotations

import numpy as np

from engine.ir.run_context import RunContext
from engine.ir.tensor_type import TensorType
from engine.ops.linalg.layouts import PermutedResults, inverse
from engine.ops.nn.attention_tiles import ROWS

ORDERS = ((1, 2, 0, 3), (0, 1, 2, 3))
ATTRS = {"scale": 0.5, "causal": True}


def test_results_are_those_of_the_op_with_their_axes_in_order() -> None:
    random = np.random.default_rng(0)
    arrays = [random.normal(size=(2, 3, 5, 4)) for _ in range(3)]
    types = [TensorType.of(x) for x in arrays]
    op = PermutedResults(ROWS, ORDERS)
    found, plain = ([np.empty(t.shape, t.dtype) for t in each.infer(*types, **ATTRS)] for each in (op, ROWS))
    assert [x.shape for x in found] == [(3, 5, 2, 4), (2, 3, 5, 1)]
    op.forward(RunContext(np), *arrays, out=tuple(found), **ATTRS)
    ROWS.forward(RunContext(np), *arrays, out=tuple(plain), **ATTRS)
    for one, other, order in zip(found, plain, ORDERS, strict=True):
        np.testing.assert_array_equal(one, other.transpose(order))


def test_it_takes_what_the_op_takes_and_says_how_its_results_lie() -> None:
    types = [TensorType((2, 3, 5, 4), np.dtype("float32"))] * 3
    op = PermutedResults(ROWS, ORDERS)
    assert (op.several, op.internal) == (True, True), "no op of the opset"
    out, plain = op.infer(*types, **ATTRS), ROWS.infer(*types, **ATTRS)
    assert op.flops(out, *types, **ATTRS) == ROWS.flops(plain, *types, **ATTRS)
    assert op.workspace(out, *types, **ATTRS) == ROWS.workspace(plain, *types, **ATTRS)
    y, lse = op.inner_types(out)
    assert (y.shape, y.strides) == ((2, 3, 5, 4), (16, 160, 32, 4))
    assert lse.is_dense


def test_an_order_and_its_inverse_are_none() -> None:
    assert [ORDERS[0][axis] for axis in inverse(ORDERS[0])] == [0, 1, 2, 3]
