"""Comparison of a case's values and gradients with those of a graph, from a service or from the engine itself."""

from __future__ import annotations

import numpy as np

from tests.reference.case import Array, Case
from tests.reference.client import Graph

CLOSE = {"rtol": 1e-7, "atol": 1e-9}


def seed(y: Array) -> Array:
    """A cotangent for y: random, and always the same."""
    return np.asarray(np.random.default_rng(9).uniform(0.5, 1.5, y.shape)).astype(y.dtype)


def check(g: Graph, case: Case, spelling: str) -> None:
    """Write the case into `g`, an empty graph, and compare every output and its gradients."""
    leaves, outputs = case.written(g, spelling)
    expected = case.values()
    for node, actual, value in zip(outputs, g.forward(*outputs), expected, strict=True):
        assert (actual.shape, actual.dtype) == (value.shape, value.dtype)
        np.testing.assert_allclose(actual, value, **CLOSE)
        if value.dtype.kind == "f":
            check_gradients(g, case, outputs.index(node), node, leaves)


def check_gradients(g: Graph, case: Case, output: int, node: int, leaves: list[int]) -> None:
    """Compare gradients with respect to the float operands, or to the node itself if there are none."""
    cotangent = seed(case.values()[output])
    wrt = [i for i in leaves if g.feeds[i].dtype.kind == "f"]
    expected = case.gradients(output, cotangent) if wrt else [cotangent]
    _, *actual = g.gradients(node, wrt or [node], cotangent)
    for gradient, value in zip(actual, expected, strict=True):
        assert gradient.shape == value.shape
        np.testing.assert_allclose(gradient, value, **CLOSE)
