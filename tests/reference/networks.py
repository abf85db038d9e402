"""Linear algebra and the layers of networks, as loops over their definitions; gradients by complex steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from tests.reference.case import Array, Case, case, draw
from tests.reference.pointwise import SELU, each, sigmoid

# ---------------------------------------------------------------- products


def matmul(a: Any, b: Any) -> Any:
    """Σₖ a[…, i, k] · b[…, k, j]; a vector is a row on the left and a column on the right, and its axis goes."""
    left, right = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
    y = np.sum(left[..., :, :, None] * right[..., None, :, :], axis=-2)
    y = y[..., 0, :] if a.ndim == 1 else y
    return y[..., 0] if b.ndim == 1 else y


def einsum(*xs: Any, equation: str) -> Any:
    """Compute einsum by its definition: one loop over all letters."""
    inputs, output = equation.replace(" ", "").split("->")
    letters = sorted(set(inputs) - {","})
    extents = {c: e for term, x in zip(inputs.split(","), xs, strict=True) for c, e in zip(term, x.shape, strict=True)}
    y = np.zeros([extents[c] for c in output], np.result_type(*xs))
    for place in product(*(range(extents[c]) for c in letters)):
        index = dict(zip(letters, place, strict=True))
        factors = [x[tuple(index[c] for c in term)] for term, x in zip(inputs.split(","), xs, strict=True)]
        y[tuple(index[c] for c in output)] += np.prod(factors)
    return y


def logistic(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def erf(z: Any) -> Any:
    """math.erf; for a complex step, plus its derivative times the step."""
    real = np.vectorize(math.erf, otypes=[float])(np.real(z))
    return real + 1j * np.imag(z) * 2 / np.sqrt(np.pi) * np.exp(-(np.real(z) ** 2)) if np.iscomplexobj(z) else real


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "none": lambda z: z,
    "relu": lambda z: np.where(np.real(z) > 0, z, 0),
    "tanh": np.tanh,
    "sigmoid": logistic,
    "gelu": lambda z: z / 2 * (1 + erf(z / np.sqrt(2))),
    "silu": lambda z: z * logistic(z),
    "elu": lambda z: np.where(np.real(z) > 0, z, np.exp(z) - 1),
    "selu": lambda z: SELU[0] * np.where(np.real(z) > 0, z, SELU[1] * (np.exp(z) - 1)),
    "sin": np.sin,
}


def linear(x: Any, w: Any, b: Any = 0.0, activation: str = "none") -> Any:
    return ACTIVATIONS[activation](matmul(x, w) + b)


def mlp_layer(x: Any, w: Any, b: Any, activation: str = "none") -> Any:
    return ACTIVATIONS[activation](matmul(x, w.T) + b)


MATRICES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 1, 2, 3), (4, 3, 2)),
    ((3,), (2, 3, 2)),
    ((2, 2, 3), (3,)),
    ((2, 0), (0, 3)),
    ((0, 2), (2, 1)),
]


EQUATIONS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(2, 3), (3, 2)]),
    ("i,i->", [(3,), (3,)]),
    ("bij,bjk->bki", [(2, 2, 3), (2, 3, 2)]),
    ("ij->ji", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("i,j->ij", [(2,), (3,)]),
    ("ij,jk,kl->il", [(2, 2), (2, 3), (3, 2)]),
    ("ijk -> j", [(2, 3, 2)]),
    ("ij,ij->j", [(2, 3), (2, 3)]),
    ("a,->a", [(3,), ()]),
    ("ij,jk->ik", [(2, 0), (0, 2)]),
]


def product_cases() -> Iterator[Case]:
    for a, b in MATRICES:
        yield case("matmul", matmul, draw(*a), draw(*b))
    for name in ACTIVATIONS:
        yield case("linear", linear, draw(2, 3), draw(3, 4), draw(4), activation=name)
        yield case("mlp_layer", mlp_layer, draw(2, 3), draw(4, 3), draw(4), activation=name)
    yield case("linear", linear, draw(2, 2, 3), draw(3, 4))
    yield case("linear", linear, draw(3), draw(3, 2), draw(2))
    yield case("mlp_layer", mlp_layer, draw(3), draw(2, 3), draw(2))
    yield case("linear", linear, draw(0, 3), draw(3, 2), draw(2))
    for equation, sizes in EQUATIONS:
        yield case("einsum", einsum, *(draw(*s) for s in sizes), equation=equation)


# ---------------------------------------------------------------- probabilities and losses


def log_softmax(x: Any, axis: int = -1) -> Any:
    shifted = x - np.max(np.real(x), axis, keepdims=True, initial=-np.inf)
    return shifted - np.log(np.sum(np.exp(shifted), axis, keepdims=True))


def softmax(x: Any, axis: int = -1) -> Any:
    return np.exp(log_softmax(x, axis))


def reduced(losses: Any, reduction: str) -> Any:
    return losses if reduction == "none" else np.sum(losses) / (np.size(losses) if reduction == "mean" else 1)


def cross_entropy(logits: Any, targets: Any, reduction: str = "mean") -> Any:
    """−log p[target], or −Σ target · log p."""
    scores = log_softmax(logits)
    if targets.dtype.kind in "fc":
        return reduced(-np.sum(targets * scores, axis=-1), reduction)
    rows = np.array([-scores[i][targets[i]] for i in np.ndindex(*targets.shape)], scores.dtype)
    return reduced(rows.reshape(targets.shape), reduction)


def mse_loss(x: Any, y: Any, reduction: str = "mean") -> Any:
    return reduced((x - y) ** 2, reduction)


def bce(x: Any, y: Any, reduction: str = "mean") -> Any:
    """−y log σ(x) − (1 − y) log(1 − σ(x)), with log σ(x) = −softplus(−x)."""
    positive = np.where(np.real(x) > 0, x, 0)
    return reduced(positive - x * y + np.log1p(np.exp(np.where(np.real(x) > 0, -x, x))), reduction)


EXTREME = [[1e4, -1e4, 0.0], [-1e4, -1e4, -1e4], [1e4, 1e4, -1e4], [800.0, 0.0, -800.0]]


def soft_pull(g: Array, x: Array) -> list[Array]:
    """The gradient of softmax at extreme rows: y · (g − Σ g y)."""
    y = softmax(x)
    return [y * (g - np.sum(g * y, -1, keepdims=True))]


def log_soft_pull(g: Array, x: Array) -> list[Array]:
    return [g - softmax(x) * np.sum(g, -1, keepdims=True)]


def loss_cases() -> Iterator[Case]:
    for shape, axis in (((2, 3), -1), ((2, 3), 0), ((2, 2, 3), 1), ((3,), 0), ((0, 3), -1), ((1, 1), 0)):
        yield case("softmax", softmax, draw(*shape), axis=axis)
        yield case("log_softmax", log_softmax, draw(*shape), axis=axis)
    yield case("softmax", softmax, draw(2, 3))
    yield case("log_softmax", log_softmax, draw(2, 3))
    yield case("softmax", softmax, EXTREME, pull=soft_pull, label="special")
    yield case("log_softmax", log_softmax, EXTREME, pull=log_soft_pull, label="special")
    spread = softmax(draw(2, 3))
    for reduction in ("mean", "sum", "none"):
        for logits, targets in (
            (draw(2, 3), np.array([2, 0])),
            (draw(2, 2, 3), np.array([[0, 1], [2, 2]], "int32")),
            (draw(3), np.array(1)),
            (draw(2, 3), spread),
            (draw(3), np.array([0.0, 1.0, 0.0])),
        ):
            yield case("cross_entropy", cross_entropy, logits, targets, reduction=reduction)
        yield case(
            "cross_entropy", cross_entropy, EXTREME, np.array([0, 1, 2, 1]), reduction=reduction, label="special"
        )
        yield case(
            "cross_entropy", cross_entropy, EXTREME, np.eye(3)[[0, 1, 2, 1]], reduction=reduction, label="special"
        )
        for shape in ((2, 3), (), (0, 2)):
            if shape != (0, 2) or reduction != "mean":
                yield case("mse_loss", mse_loss, draw(*shape), draw(*shape), reduction=reduction)
                yield case("bce_with_logits", bce, draw(*shape), draw(*shape, low=0, high=1), reduction=reduction)
        points, targets = np.array([-1e4, -800.0, -40.0, 40.0, 800.0, 1e4]), np.array([0.0, 1.0, 0.3, 0.0, 1.0, 0.5])
        yield case("bce_with_logits", bce, points, targets, reduction=reduction, label="special")
        yield case("bce_with_logits", bce, np.zeros(2), np.array([0.0, 1.0]), reduction=reduction, pull=bce_pull)
    yield case("cross_entropy", cross_entropy, draw(2, 3), np.array([2, 0]))
    yield case("mse_loss", mse_loss, draw(2, 3), draw(2, 3))
    yield case("bce_with_logits", bce, draw(2, 3), draw(2, 3, low=0, high=1))


def bce_pull(g: Array, x: Array, y: Array, reduction: str) -> list[Array]:
    scale = g / (x.size if reduction == "mean" else 1)
    return [scale * (each(sigmoid)(x) - y), -scale * x]


# ---------------------------------------------------------------- normalisation


def layer_norm(x: Any, *parts: Any, axes: Sequence[int] = (-1,), eps: float = 1e-5) -> Any:
    over = tuple(a % x.ndim for a in axes)
    centred = x - np.mean(x, over, keepdims=True)
    y = centred / np.sqrt(np.mean(centred**2, over, keepdims=True) + eps)
    return affine(y, parts, [e if a in over else 1 for a, e in enumerate(x.shape)])


def rms_norm(x: Any, *parts: Any, axes: Sequence[int] = (-1,), eps: float = 1e-5) -> Any:
    over = tuple(a % x.ndim for a in axes)
    y = x / np.sqrt(np.mean(x**2, over, keepdims=True) + eps)
    return affine(y, parts, [e if a in over else 1 for a, e in enumerate(x.shape)])


def batch_norm(x: Any, *parts: Any, axis: int = 1, eps: float = 1e-5) -> Any:
    over = tuple(a for a in range(x.ndim) if a != axis % x.ndim)
    y = layer_norm(x, axes=over, eps=eps)
    return affine(y, parts, [1 if a in over else e for a, e in enumerate(x.shape)])


def affine(y: Any, parts: Sequence[Any], shape: Sequence[int]) -> Any:
    weight, bias = (*parts, 1.0, 0.0)[:2] if len(parts) != 1 else (parts[0], 0.0)
    return y * np.reshape(weight, shape if len(parts) else ()) + np.reshape(bias, shape if len(parts) == 2 else ())


def norm_cases() -> Iterator[Case]:
    for shape, axes in (((2, 4), [-1]), ((2, 3, 2), [1, 2]), ((2, 3), [0, 1]), ((3, 2), [0]), ((4,), [-1])):
        own = [shape[a] for a in axes]
        for count in range(3):
            parts = [draw(*own) for _ in range(count)]
            yield case("layer_norm", layer_norm, draw(*shape), *parts, axes=axes)
            if count < 2:
                yield case("rms_norm", rms_norm, draw(*shape), *parts, axes=axes, eps=0.1)
    yield case("layer_norm", layer_norm, draw(2, 4), draw(4), draw(4), eps=0.5)
    yield case("layer_norm", layer_norm, np.full((2, 3), 7.0), draw(3), draw(3))
    yield case("layer_norm", layer_norm, draw(0, 3))
    yield case("rms_norm", rms_norm, draw(2, 4), draw(4))
    yield case("rms_norm", rms_norm, np.zeros((2, 3)))
    for shape, axis in (((3, 2), 1), ((2, 3, 2, 2), 1), ((4, 3), 0), ((2, 2, 3), -1)):
        for count in range(3):
            yield case("batch_norm", batch_norm, draw(*shape), *(draw(shape[axis]) for _ in range(count)), axis=axis)
    yield case("batch_norm", batch_norm, draw(4, 2), draw(2), draw(2), eps=0.5)


# ---------------------------------------------------------------- attention


def attention(q: Any, k: Any, v: Any, mask: Any = None, scale: float | None = None, causal: bool = False) -> Any:
    scores = matmul(q, np.swapaxes(k, -1, -2)) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    return matmul(softmax(scores), v)


def nothing_pull(g: Array, q: Array, k: Array, *_: Array) -> list[Array]:
    """The second query is fully masked: its row is NaN, and masked entries get no gradient."""
    return [0 * q, 0 * k, np.array([[1, np.nan], [0, np.nan]]) @ g]


def attention_cases() -> Iterator[Case]:
    shapes = [((3, 2), (4, 2), (4, 3)), ((2, 2, 3, 2), (2, 2, 4, 2), (2, 2, 4, 3)), ((2, 3, 2), (2, 3, 2), (2, 3, 2))]
    keep = np.array([[True, False, True, True], [True, True, True, True], [False, False, True, False]])
    for q, k, v in shapes:
        for attrs in ({}, {"scale": 0.3}, {"causal": True}):
            yield case("attention", attention, draw(*q), draw(*k), draw(*v), **attrs)
    for mask in (keep, keep[None, 0], draw(3, 4), draw(1, 4), draw(2, 1, 3, 4), keep[:1].copy()):
        batch = (2, 2) if mask.ndim == 4 else ()
        for causal in (False, True):
            tensors = [draw(*batch, rows, width) for rows, width in ((3, 2), (4, 2), (4, 3))]
            yield case("attention", attention, *tensors, mask, causal=causal)
    far = [draw(2, 2) * 1e4, draw(3, 2), draw(3, 2)]
    yield case("attention", attention, *far, scale=1.0, label="special")
    nothing = np.array([[True, False], [False, False]])
    yield case("attention", attention, *(draw(2, 2) for _ in "qkv"), nothing, pull=nothing_pull, label="special")


def cases() -> Iterator[Case]:
    """All cases of this family."""
    yield from product_cases()
    yield from loss_cases()
    yield from norm_cases()
    yield from attention_cases()
