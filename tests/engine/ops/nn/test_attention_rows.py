"""Attention a tile at a time: its results and its ways back are what is written out in whole matrices."""

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


def both(op: ScoreOp, arrays: list[Array], **attrs: Any) -> tuple[list[Array], list[Array]]:
    """What the op's kernel comes to, and what its formula does."""
    builder = Builder(registry())
    values = [builder.leaf(TensorType.of(a), i) for i, a in enumerate(arrays)]
    made = builder.emit(op, values, attrs)
    kernel = [made.output(i) for i in range(len(made.node.types))] if op.several else [made]
    formula: list[Value] = list(op.written_out(*values, **attrs))
    found = run_graph(builder.graph([*kernel, *formula]), dict(enumerate(arrays)))
    return found[: len(kernel)], found[len(kernel) :]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", [None, SHOWN, ADDED], ids=["no mask", "bool", "float"])
def test_kernels_are_their_formulas(mask: Array | None, causal: bool) -> None:
    more = [] if mask is None else [mask]
    found, wanted = both(AttentionRows(), [Q, K, V, *more], scale=0.6, causal=causal)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, 1e-12, 1e-13)
    y, lse = wanted
    g = RNG.normal(size=y.shape)
    back = [Q, K, V, lse, (g * y).sum(-1, keepdims=True), g, *more]
    for op in (GRADIENTS, *([MASK_GRADIENT] if mask is ADDED else [])):
        found, wanted = both(op, back, scale=0.6, causal=causal)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, 1e-11, 1e-12)


@pytest.mark.parametrize("of_y", [False, True])
@pytest.mark.parametrize("mask", [None, SHOWN, ADDED], ids=["no mask", "bool", "float"])
def test_the_logarithms_have_derivatives(mask: Array | None, of_y: bool) -> None:
    """Alone, and beside those of y: those of a row's are its probabilities."""
    g, by_lse = RNG.normal(size=(2, 5, 4)) * of_y, RNG.normal(size=(2, 5, 1))
    arrays = [Q, K, V, *([] if mask is None else [mask]), g, by_lse]
    builder = Builder(registry())
    *operands, gs, by = (builder.leaf(TensorType.of(a), i) for i, a in enumerate(arrays))
    made = builder.emit(AttentionRows(), operands, {"scale": 0.6, "causal": False})
    seeds = [(made.output(1), by), *([(made.output(0), gs)] if of_y else [])]
    gradients = [x for x in vjp(builder, seeds, operands) if x is not None]
    found = run_graph(builder.graph(gradients), dict(enumerate(arrays)))
    p = np.exp(0.6 * Q @ K.swapaxes(-1, -2) + (ADDED if mask is ADDED else 0.0)) * (SHOWN if mask is SHOWN else 1.0)
    p /= p.sum(-1, keepdims=True)
    dp = g @ V.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True) + by_lse)
    wanted = [0.6 * ds @ K, 0.6 * ds.swapaxes(-1, -2) @ Q, p.swapaxes(-1, -2) @ g]
    for a, b in zip(found, [*wanted, ds] if mask is ADDED else wanted, strict=True):
        np.testing.assert_allclose(a, b, 1e-11, 1e-12)


def test_axes_of_batches_broadcast() -> None:
    types = [TensorType(shape, np.dtype("float64")) for shape in ((4, 1, 5, 3), (2, 7, 3), (7, 4))]
    assert batch_axes(*types) == (4, 2)
