"""Reductions: explicit sums, ties by hand, and complex steps through analytic functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tests.reference.case import Array, Case, case, draw

CASES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3), {}),
    ((2, 3, 2), {"axes": [0, -1]}),
    ((2, 3), {"axes": [1], "keepdims": True}),
    ((2, 3), {"keepdims": True}),
    ((), {}),
    ((2, 0), {"axes": [0]}),
    ((1, 3), {"axes": [0]}),
]
EMPTY_CASES: list[tuple[tuple[int, ...], dict[str, Any]]] = [((0, 3), {"axes": [0]}), ((0,), {})]


def over(f: Callable[[Any], Any]) -> Callable[..., Any]:
    """Apply f to the vector of elements of each result."""

    def apply(x: Any, axes: Sequence[int] | None = None, keepdims: bool = False, **attrs: Any) -> Any:
        chosen = sorted(a % x.ndim for a in axes or range(x.ndim))
        kept = [a for a in range(x.ndim) if a not in chosen]
        moved = np.transpose(x, [*kept, *chosen])
        rows = [f(moved[i].ravel(), **attrs) for i in np.ndindex(*[x.shape[a] for a in kept])]
        shape = [(1 if a in chosen else e) for a, e in enumerate(x.shape) if keepdims or a not in chosen]
        return np.array(rows).reshape(shape) if rows else np.zeros(shape, x.dtype)

    return apply


def pulled(slope: Callable[[Array], Array]) -> Callable[..., list[Array]]:
    """The gradient from `slope`, the derivatives of one result with respect to its elements."""

    def apply(g: Array, x: Array, axes: Sequence[int] | None = None, **attrs: Any) -> list[Array]:
        attrs.pop("keepdims", None)
        chosen = sorted(a % x.ndim for a in axes or range(x.ndim))
        kept = [a for a in range(x.ndim) if a not in chosen]
        order = [*kept, *chosen]
        moved, gradient = np.transpose(x, order), np.zeros([x.shape[a] for a in order])
        flat = np.reshape(g, [x.shape[a] for a in kept])
        for i in np.ndindex(*flat.shape):
            gradient[i] = (flat[i] * slope(moved[i].ravel(), **attrs)).reshape(gradient[i].shape)
        return [np.transpose(gradient, np.argsort(order))]

    return apply


def shared(best: Callable[[Array], Any]) -> Callable[[Array], Array]:
    return lambda v: (v == best(v)) / np.sum(v == best(v))


def variance(v: Any, ddof: int = 0) -> Any:
    centre = sum(v) / len(v) if len(v) else np.nan
    return sum((v - centre) ** 2) / (len(v) - ddof) if len(v) > ddof else np.nan


def log_sum_exp(v: Any) -> Any:
    if not len(v):
        return -np.inf
    top = np.max(np.real(v))
    return top + np.log(np.sum(np.exp(v - top))) if np.isfinite(top) else top


def length(v: Any) -> Any:
    """√Σ v², scaled to avoid overflow; analytic away from 0."""
    top = np.max(np.abs(np.real(v)), initial=0)
    return top * np.sqrt(np.sum((v / top) ** 2)) if top else 0.0 * np.sum(v)


ANALYTIC: dict[str, Callable[[Any], Any]] = {
    "sum": lambda v: sum(v) if len(v) else 0.0,
    "mean": lambda v: sum(v) / len(v) if len(v) else np.nan,
    "prod": np.prod,
    "norm": length,
    "logsumexp": log_sum_exp,
}


def analytic_cases() -> Iterator[Case]:
    for op, f in ANALYTIC.items():
        for shape, attrs in [*CASES, *EMPTY_CASES]:
            yield case(op, over(f), draw(*shape, low=-1.5, high=1.5), **attrs)
    for op in ("sum", "mean"):
        whole = "int64" if op == "sum" else float
        yield case(
            op, over(lambda v, f=ANALYTIC[op], t=whole: np.asarray(f(v), t)), np.array([[1, 2], [3, 5]]), axes=[0]
        )
    yield case("prod", over(np.prod), [[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [-1.0, 2.0, 4.0]], axes=[1])
    yield case("prod", over(np.prod), [0.0, -0.0, 0.0])
    yield case("prod", over(np.prod), [1e200, 1e-200, 3.0, 1e100], label="special")
    yield case("sum", over(ANALYTIC["sum"]), [1e300, -1e300, 1.0], label="special")


def special_cases() -> Iterator[Case]:
    for rows in ([[800.0, 800.0], [-800.0, -800.0]], [[1e4, -1e4], [-1e4, -1e4]], [[0.0, 0.0], [-1e300, 700.0]]):
        yield case("logsumexp", over(log_sum_exp), rows, axes=[1], pull=pulled(softmax), label="special")
    low = [[-np.inf, -np.inf], [-np.inf, 1.0]]
    yield case("logsumexp", over(log_sum_exp), low, axes=[1], pull=pulled(softmax), label="special")
    for values in ([[3e200, -4e200], [3e-200, 4e-200], [0.0, 0.0], [0.0, -5.0]], [[1e-300, 1e300]] * 2):
        yield case("norm", over(length), values, axes=[1], pull=pulled(unit), label="special")
    yield case("norm", over(length), 0.0, pull=pulled(unit))
    for ddof in (0, 1):
        for shape, attrs in CASES:
            if shape != () and (shape[0] > 1 or not ddof):
                yield case("var", over(variance), draw(*shape), **attrs, ddof=ddof)
    yield case("var", over(variance), draw(5) + 1e8, pull=pulled(lambda v: (v - np.mean(v)) * 2 / 5), label="special")
    yield case("var", over(variance), [2.5], label="special")


def softmax(v: Array) -> Array:
    top = np.max(v)
    return np.exp(v - top) / np.sum(np.exp(v - top)) if np.isfinite(top) else np.zeros(len(v))


def unit(v: Array) -> Array:
    return v / length(v) if np.any(v) else np.zeros(len(v))


TIES = [[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [-1.0, -5.0, 0.0]]


def order_cases() -> Iterator[Case]:
    for op, best in (("max", np.max), ("min", np.min)):
        for shape, attrs in CASES:
            yield case(op, over(best), draw(*shape), pull=pulled(shared(best)), **attrs)
        yield case(op, over(best), TIES, pull=pulled(shared(best)), axes=[1])
        yield case(op, over(best), TIES, pull=pulled(shared(best)))
        yield case(op, over(best), [-np.inf, np.inf, 1e300], pull=pulled(shared(best)), label="special")
    for op, f in (("any", np.any), ("all", np.all)):
        for shape, attrs in [*CASES, *EMPTY_CASES]:
            yield case(op, over(lambda v, f=f: bool(f(v))), draw(*shape) > 0, **attrs)
        yield case(op, over(lambda v, f=f: bool(f(v))), [[0.0, 2.0], [1.0, 1.0], [0.0, -0.0]], axes=[1])
    for op, best in (("argmax", max), ("argmin", min)):
        for axis, keepdims in ((0, False), (-1, True), (1, False)):
            first = over(lambda v, best=best: next(i for i, e in enumerate(v) if e == best(v)))
            yield case(op, positions(first), TIES, axis=axis, keepdims=keepdims)
        yield case(op, positions(first), draw(2, 3), axis=1)


def positions(first: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, axis, keepdims=False: first(x, axes=[axis], keepdims=keepdims)


def running(x: Any, axis: int) -> Any:
    sums = np.array(x)
    moved = np.moveaxis(sums, axis, 0)
    for i in range(1, len(moved)):
        moved[i] = moved[i - 1] + moved[i]
    return sums


def cases() -> Iterator[Case]:
    """All cases of this family."""
    yield from analytic_cases()
    yield from special_cases()
    yield from order_cases()
    for shape, axis in (((4,), 0), ((2, 3), -1), ((2, 3), 0), ((2, 0), 1), ((0, 3), 0)):
        yield case("cumsum", running, draw(*shape), axis=axis)
    yield case("cumsum", running, np.array([3, -1, 2]), axis=0)
