"""The network ops and the factorizations against JAX, if it is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.conftest import Client
from tests.reference.case import Case
from tests.reference.client import Graph
from tests.reference.families import ALL
from tests.sampling import together

CLOSE = {"rtol": 1e-7, "atol": 1e-9}
pytestmark = [
    pytest.mark.reference,
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed"),
]


@pytest.fixture(scope="module")
def jax() -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax


def biased(y: Any, *bias: Any) -> Any:
    return y + bias[0][:, None, None] if bias else y


def conv2d(
    jax: Any,
    x: Any,
    kernel: Any,
    *bias: Any,
    stride: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
) -> Any:
    around = [(p, p) for p in padding]
    y = jax.lax.conv_general_dilated(x, kernel, stride, around, rhs_dilation=dilation, feature_group_count=groups)
    return biased(y, *bias)


def conv_transpose2d(
    jax: Any,
    x: Any,
    kernel: Any,
    *bias: Any,
    stride: Any = (1, 1),
    padding: Any = (0, 0),
    output_padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
) -> Any:
    """A convolution of dilated x with the flipped kernel, whose features come first."""
    channels, per_group, *k = kernel.shape
    turned = kernel[:, :, ::-1, ::-1].reshape(groups, channels // groups, per_group, *k)
    turned = turned.swapaxes(1, 2).reshape(groups * per_group, channels // groups, *k)
    reach = [d * (m - 1) for d, m in zip(dilation, k, strict=True)]
    around = [(r - p, r - p + e) for r, p, e in zip(reach, padding, output_padding, strict=True)]
    y = jax.lax.conv_general_dilated(
        x, turned, (1, 1), around, lhs_dilation=stride, rhs_dilation=dilation, feature_group_count=groups
    )
    return biased(y, *bias)


def pool(jax: Any, x: Any, kernel_size: Sequence[int], stride: Any, padding: Any, start: float, combine: Any) -> Any:
    ones, around = (1,) * (x.ndim - 2), [(0, 0)] * (x.ndim - 2) + [(p, p) for p in padding]
    return jax.lax.reduce_window(x, start, combine, (*ones, *kernel_size), (*ones, *(stride or kernel_size)), around)


def max_pool2d(jax: Any, x: Any, kernel_size: Any, stride: Any = None, padding: Any = (0, 0)) -> Any:
    return pool(jax, x, kernel_size, stride, padding, -np.inf, jax.lax.max)


def avg_pool2d(jax: Any, x: Any, kernel_size: Any, stride: Any = None, padding: Any = (0, 0)) -> Any:
    return pool(jax, x, kernel_size, stride, padding, 0.0, jax.lax.add) / np.prod(kernel_size)


def layer_norm(jax: Any, x: Any, *parts: Any, axes: Any = (-1,), eps: float = 1e-5) -> Any:
    over = tuple(a % x.ndim for a in axes)
    y = jax.nn.standardize(x, axis=over, epsilon=eps)
    for part, combine in zip(parts, (jax.numpy.multiply, jax.numpy.add), strict=False):
        y = combine(y, part.reshape([e if a in over else 1 for a, e in enumerate(x.shape)]))
    return y


def attention(jax: Any, q: Any, k: Any, v: Any, mask: Any = None, scale: Any = None, causal: bool = False) -> Any:
    """Attention by its formula, because jax.nn.dot_product_attention computes its scores in float32."""
    scores = q @ k.T * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = jax.numpy.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal:
        scores = jax.numpy.where(np.tri(*scores.shape, dtype=bool), scores, -np.inf)
    return jax.nn.softmax(scores) @ v


def cross_entropy(jax: Any, logits: Any, targets: Any, reduction: str = "mean") -> Any:
    exact = targets.dtype.kind == "f"
    probabilities = targets if exact else jax.nn.one_hot(targets, logits.shape[-1], dtype=logits.dtype)
    losses = -(probabilities * jax.nn.log_softmax(logits)).sum(-1)
    return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.mean()


def triangular_solve(jax: Any, a: Any, b: Any, lower: bool = True, transpose: bool = False) -> Any:
    columns = (b[:, None] if b.ndim == 1 else b).astype(a.dtype)
    batch = np.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    left, right = (jax.numpy.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, columns))
    y = jax.lax.linalg.triangular_solve(left, right, left_side=True, lower=lower, transpose_a=transpose)
    return y[..., 0] if b.ndim == 1 else y


JAX_OPS: dict[str, Callable[..., Any]] = {
    "conv2d": conv2d,
    "conv_transpose2d": conv_transpose2d,
    "max_pool2d": max_pool2d,
    "avg_pool2d": avg_pool2d,
    "layer_norm": layer_norm,
    "attention": attention,
    "cross_entropy": cross_entropy,
    "softmax": lambda jax, x, axis=-1: jax.nn.softmax(x, axis),
    "log_softmax": lambda jax, x, axis=-1: jax.nn.log_softmax(x, axis),
    "einsum": lambda jax, *xs, equation: jax.numpy.einsum(equation, *xs),
    "matmul": lambda jax, a, b: jax.numpy.matmul(a, b),
    "cholesky": lambda jax, x: jax.numpy.linalg.cholesky(x, symmetrize_input=True),
    "triangular_solve": triangular_solve,
    "solve": lambda jax, a, b: jax.numpy.linalg.solve(a, b),
    "inv": lambda jax, x: jax.numpy.linalg.inv(x),
}


def has_jax_equivalent(case: Case) -> bool:
    """Whether this file has the case in JAX: one head, no fully masked row, no ties in a window."""
    if case.op == "attention":
        square = all(a.ndim == 2 for a in case.arrays) and case.label != "special"
        return square and (len(case.arrays) < 4 or case.arrays[3].shape == (3, 4))
    tied = case.op == "max_pool2d" and len(np.unique(case.arrays[0])) < case.arrays[0].size
    return case.op in JAX_OPS and not tied and 0 not in np.shape(case.arrays[0])


CASES = list(filter(has_jax_equivalent, ALL))


@together
@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_and_gradients_match_jax(client: Client, jax: Any, case: Case) -> None:
    floats = [i for i, a in enumerate(case.arrays) if a.dtype.kind == "f"]

    def f(*moved: Any) -> Any:
        arrays = [jax.numpy.asarray(a) for a in case.arrays]
        for i, a in zip(floats, moved, strict=True):
            arrays[i] = a
        return JAX_OPS[case.op](jax, *arrays, **case.attrs)

    value, pull = jax.vjp(f, *(jax.numpy.asarray(case.arrays[i]) for i in floats))
    cotangent = np.random.default_rng(4).uniform(0.5, 1.5, value.shape)
    g = Graph(client)
    leaves, (node,) = case.written(g, case.op)
    actual, *gradients = g.gradients(node, [leaves[i] for i in floats], cotangent)
    np.testing.assert_allclose(actual, np.asarray(value), **CLOSE)
    for gradient, expected in zip(gradients, pull(jax.numpy.asarray(cotangent)), strict=True):
        np.testing.assert_allclose(gradient, np.asarray(expected), **CLOSE)
