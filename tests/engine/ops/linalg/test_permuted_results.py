"""Permuted results on NumPy: values, shapes, flops and strides."""

from __future__ import annotations

import numpy as np

from engine.ir.run_context import RunContext
from engine.ir.tensor_type import TensorType
from engine.ops.linalg.layouts import PermutedResults, inverse
from engine.ops.nn.attention_tiles import ROWS

ORDERS = ((1, 2, 0, 3), (0, 1, 2, 3))
ATTRS = {"scale": 0.5, "causal": True}


def test_results_are_transposed_results_of_the_inner_op() -> None:
    random = np.random.default_rng(0)
    arrays = [random.normal(size=(2, 3, 5, 4)) for _ in range(3)]
    types = [TensorType.of(x) for x in arrays]
    op = PermutedResults(ROWS, ORDERS)
    actual, plain = ([np.empty(t.shape, t.dtype) for t in each.infer(*types, **ATTRS)] for each in (op, ROWS))
    assert [x.shape for x in actual] == [(3, 5, 2, 4), (2, 3, 5, 1)]
    op.forward(RunContext(np), *arrays, out=tuple(actual), **ATTRS)
    ROWS.forward(RunContext(np), *arrays, out=tuple(plain), **ATTRS)
    for one, other, order in zip(actual, plain, ORDERS, strict=True):
        np.testing.assert_array_equal(one, other.transpose(order))


def test_costs_and_strides_match_the_inner_op() -> None:
    types = [TensorType((2, 3, 5, 4), np.dtype("float32"))] * 3
    op = PermutedResults(ROWS, ORDERS)
    assert (op.several, op.internal) == (True, True), "no op of the opset"
    out, plain = op.infer(*types, **ATTRS), ROWS.infer(*types, **ATTRS)
    assert op.flops(out, *types, **ATTRS) == ROWS.flops(plain, *types, **ATTRS)
    assert op.workspace(out, *types, **ATTRS) == ROWS.workspace(plain, *types, **ATTRS)
    y, lse = op.inner_types(out)
    assert (y.shape, y.strides) == ((2, 3, 5, 4), (16, 160, 32, 4))
    assert lse.is_dense


def test_inverse_undoes_the_permutation() -> None:
    assert [ORDERS[0][axis] for axis in inverse(ORDERS[0])] == [0, 1, 2, 3]
