"""Tiled attention: results and derivatives match the decomposition into whole matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, TensorType, registry
from engine.autodiff.vjp import vjp
from engine.ir.graph import Value
from engine.ops.nn.attention_tiles import GRADIENTS, MASK_GRADIENT, AttentionRows, ScoreOp, batch_axes
from tests.contract.cases import run_graph

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(10)
Q, K, V = RNG.normal(size=(2, 5, 3)), RNG.normal(size=(2, 7, 3)), RNG.normal(size=(2, 7, 4))
SHOWN, ADDED = RNG.random((5, 7)) < 0.8, RNG.normal(size=(2, 5, 7))
SHOWN[:, 0] = True


def kernel_and_decomposition(op: ScoreOp, arrays: list[Array], **attrs: Any) -> tuple[list[Array], list[Array]]:
    """Return the results of the op's kernel, and those of its decomposition."""
    builder = Builder(registry())
    values = [builder.leaf(TensorType.of(a), i) for i, a in enumerate(arrays)]
    result = builder.emit(op, values, attrs)
    kernel = [result.output(i) for i in range(len(result.node.types))] if op.several else [result]
    formula: list[Value] = list(op.written_out(*values, **attrs))
    results = run_graph(builder.graph([*kernel, *formula]), dict(enumerate(arrays)))
    return results[: len(kernel)], results[len(kernel) :]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", [None, SHOWN, ADDED], ids=["no mask", "bool", "float"])
def test_kernels_match_their_decompositions(mask: Array | None, causal: bool) -> None:
    more = [] if mask is None else [mask]
    actual, expected = kernel_and_decomposition(AttentionRows(), [Q, K, V, *more], scale=0.6, causal=causal)
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, 1e-12, 1e-13)
    y, lse = expected
    g = RNG.normal(size=y.shape)
    saved = [Q, K, V, lse, (g * y).sum(-1, keepdims=True), g, *more]
    for op in (GRADIENTS, *([MASK_GRADIENT] if mask is ADDED else [])):
        actual, expected = kernel_and_decomposition(op, saved, scale=0.6, causal=causal)
        for a, b in zip(actual, expected, strict=True):
            np.testing.assert_allclose(a, b, 1e-11, 1e-12)


@pytest.mark.parametrize("of_y", [False, True])
@pytest.mark.parametrize("mask", [None, SHOWN, ADDED], ids=["no mask", "bool", "float"])
def test_log_sums_have_derivatives(mask: Array | None, of_y: bool) -> None:
    """Alone, and together with y: the derivatives of a row's log-sum are its probabilities."""
    g, by_lse = RNG.normal(size=(2, 5, 4)) * of_y, RNG.normal(size=(2, 5, 1))
    arrays = [Q, K, V, *([] if mask is None else [mask]), g, by_lse]
    builder = Builder(registry())
    *operands, gs, seed = (builder.leaf(TensorType.of(a), i) for i, a in enumerate(arrays))
    rows = builder.emit(AttentionRows(), operands, {"scale": 0.6, "causal": False})
    seeds = [(rows.output(1), seed), *([(rows.output(0), gs)] if of_y else [])]
    gradients = [x for x in vjp(builder, seeds, operands) if x is not None]
    actual = run_graph(builder.graph(gradients), dict(enumerate(arrays)))
    p = np.exp(0.6 * Q @ K.swapaxes(-1, -2) + (ADDED if mask is ADDED else 0.0)) * (SHOWN if mask is SHOWN else 1.0)
    p /= p.sum(-1, keepdims=True)
    dp = g @ V.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True) + by_lse)
    expected = [0.6 * ds @ K, 0.6 * ds.swapaxes(-1, -2) @ Q, p.swapaxes(-1, -2) @ g]
    for a, b in zip(actual, [*expected, ds] if mask is ADDED else expected, strict=True):
        np.testing.assert_allclose(a, b, 1e-11, 1e-12)


def test_batch_axes_broadcast() -> None:
    types = [TensorType(shape, np.dtype("float64")) for shape in ((4, 1, 5, 3), (2, 7, 3), (7, 4))]
    assert batch_axes(*types) == (4, 2)
