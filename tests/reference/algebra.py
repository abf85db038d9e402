"""Factorizations and linear systems, from their definitions, in formulas that take complex steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import numpy as np

from tests.reference.case import Array, Case, case, draw


def each(f: Callable[..., Any]) -> Callable[..., Any]:
    """Apply f to the matrices at every index of their batch axes, which broadcast."""

    def apply(*xs: Any, **attrs: Any) -> Any:
        batch = np.broadcast_shapes(*(x.shape[:-2] for x in xs))
        spread = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in xs]
        parts = {i: f(*(x[i] for x in spread), **attrs) for i in np.ndindex(*batch)}
        like = f(*(np.zeros(x.shape[-2:], x.dtype) + np.eye(*x.shape[-2:]) for x in xs), **attrs)
        y = np.zeros((*batch, *np.shape(like)), np.result_type(like, *parts.values()))
        for i, part in parts.items():
            y[i] = part
        return y

    return apply


def factor(x: Any) -> Any:
    """Row by row: yᵢⱼ = (xᵢⱼ − Σₖ yᵢₖ yⱼₖ) / yⱼⱼ, and yᵢᵢ the root of the rest of xᵢᵢ."""
    even = (x + x.T) / 2
    y = np.zeros_like(even)
    for i, j in np.ndindex(*x.shape):
        if j <= i:
            left = even[i, j] - np.sum(y[i, :j] * y[j, :j])
            y[i, j] = np.sqrt(left) if i == j else left / y[j, j]
    return y


def substituted(a: Any, b: Any, lower: bool = True, transpose: bool = False) -> Any:
    """Solve from the row with one unknown to the row with all."""
    t = (np.tril if lower else np.triu)(a)
    t = t.T if transpose else t
    y = np.zeros(b.shape, np.result_type(a, b))
    order = range(len(t)) if lower != transpose else reversed(range(len(t)))
    for i in order:
        y[i] = (b[i] - t[i] @ y) / t[i, i]
    return y


def parity(order: tuple[int, ...]) -> int:
    swaps = sum(order[i] > order[j] for i in range(len(order)) for j in range(i + 1, len(order)))
    return -1 if swaps % 2 else 1


def determinant(x: Any) -> Any:
    """Leibniz: Σ over permutations of ± Π xᵢ,ₚ₍ᵢ₎."""
    rows = list(range(len(x)))
    return sum(parity(p) * np.prod(x[rows, list(p)]) for p in permutations(rows))


def inverse(x: Any) -> Any:
    """The cofactors, transposed, over the determinant."""
    y = np.zeros_like(x)
    for i, j in np.ndindex(*x.shape):
        minor = np.delete(np.delete(x, j, axis=0), i, axis=1)
        y[i, j] = (-1) ** (i + j) * determinant(minor)
    return y / determinant(x)


def solved(a: Any, b: Any) -> Any:
    return inverse(a) @ b


def system(f: Callable[..., Any]) -> Callable[..., Any]:
    """Apply f to matrices; a vector b, or one for each matrix, is one column."""

    def apply(a: Any, b: Any, **attrs: Any) -> Any:
        vectors = b.ndim == 1 or (b.shape == a.shape[:-1] and b.shape[-2] != a.shape[-1])
        return each(f)(a, b[..., None], **attrs)[..., 0] if vectors else each(f)(a, b, **attrs)

    return apply


def sign_and_log(x: Any) -> tuple[Any, Any]:
    """The sign is constant near x, so its derivative is 0."""
    det = each(determinant)(x)
    sign = np.sign(np.real(det))
    return sign, np.log(sign * det)


def regular(*shape: int) -> Array:
    return draw(*shape) + 5 * np.eye(shape[-1])


SHAPES = [(3, 3), (1, 1), (4, 4), (2, 3, 3), (2, 1, 2, 2), (0, 0), (0, 2, 2)]
SYSTEMS = [
    ((3, 3), (3,)),
    ((3, 3), (3, 2)),
    ((2, 3, 3), (3,)),
    ((2, 3, 3), (2, 3)),
    ((3, 3, 3), (3, 3)),
    ((3, 3), (2, 3, 1)),
    ((2, 1, 2, 2), (3, 2, 2)),
    ((0, 0), (0, 2)),
    ((2, 3, 3), (3, 0)),
]
TRIANGLES = [{}, {"lower": False}, {"transpose": True}, {"lower": False, "transpose": True}]


def cases() -> Iterator[Case]:
    """All cases of this family."""
    for shape in SHAPES:
        yield case("cholesky", each(factor), draw(*shape, low=-1, high=1) + 4 * np.eye(shape[-1]))
        yield case("inv", each(inverse), regular(*shape))
        yield case("slogdet", sign_and_log, regular(*shape))
    yield case("slogdet", sign_and_log, [[0.0, 1.0], [2.0, 0.5]])
    yield case("slogdet", sign_and_log, [[0.0, 1.0, 0.3], [0.2, 0.5, 1.0], [1.0, 0.1, 0.4]])
    yield case("inv", each(inverse), [[0.0, 1.0, 0.3], [0.2, 0.5, 1.0], [1.0, 0.1, 0.4]])
    for a, b in SYSTEMS:
        yield case("solve", system(solved), regular(*a), draw(*b))
        for attrs in TRIANGLES:
            yield case("triangular_solve", system(substituted), regular(*a), draw(*b), **attrs)
    whole = np.array([[4, 1], [2, 3]])
    yield case("inv", each(inverse), whole.astype(float))
    yield case("solve", system(solved), whole, draw(2), label="special")
    yield case("triangular_solve", system(substituted), regular(2, 2), np.array([1, -3]), label="special")
