"""Programs with loops whose kernels are watched: all ways in which an address may change between steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np

from tests.engine.looping import Writer, Written, random, written


def _driven(g: Writer, k: int, y: int, u: int) -> list[int]:
    """A step that is one elementwise kernel."""
    new = g.add(g.mul(k, y), g.sin(u))
    return [new, y, g.greater(new, y)]


def _elements(*shape: int, reverse: bool = False) -> Written:
    arrays = [random(*lead, *shape, seed=i) for i, lead in enumerate([(), (), (7,)])]
    return written(lambda g, *given: g.scan(*given, body=_driven, carries=1, sequences=1, reverse=reverse), *arrays)


def _turned(g: Writer, k: int, y: int, u: int) -> list[int]:
    """A step on complex elements, with their absolute values."""
    new = g.add(g.mul(k, y), g.sin(u))
    return [new, g.abs(new)]


def _pairs(dtype: str) -> Written:
    k = random(dtype=np.zeros(0, dtype).real.dtype.name)
    parts = [[random(*shape, seed=part) for part in range(2)] for shape in ((3, 37), (7, 3, 37))]
    arrays = [np.asarray(re + 1j * im, dtype) for re, im in parts]
    return written(lambda g, *given: g.scan(*given, body=_turned, carries=1, sequences=1), k, *arrays, floats=[1])


def _recurrent(g: Writer, w: int, h: int, x: int) -> list[int]:
    """A step with products, copies and sums, and a transposed stack."""
    new = g.tanh(g.add(g.matmul(h, w), x))
    return [new, g.cat(new, x, axis=0), g.sum(g.mul(h, x), axes=[1]), g.transpose(new, axes=[1, 0])]


def _network(dtype: str, *, reverse: bool = False) -> Written:
    arrays = [random(*shape, seed=i, dtype=dtype) for i, shape in enumerate([(5, 5), (3, 5), (6, 3, 5)])]
    return written(lambda g, *given: g.scan(*given, body=_recurrent, carries=1, sequences=1, reverse=reverse), *arrays)


def _outer(g: Writer, k: int, y: int) -> list[int]:
    inner = g.scan(k, g.cos(y), body=lambda g, k, y: [g.add(y, g.mul(k, y)), y], carries=1, length=3, reverse=True)
    return [g.add(y, inner[0]), g.sum(inner[1])]


def _nested() -> Written:
    return written(lambda g, *given: g.scan(*given, body=_outer, carries=1, length=4), 0.3, random(5))


def _while() -> Written:
    return written(
        lambda g, *given: g.while_(
            *given,
            condition=lambda g, k, y: [g.less(g.sum(y), g.number(9.0))],
            body=lambda g, k, y: [g.mul(y, k)],
            carries=1,
            max_steps=20,
        )[:1],
        *(1.25, np.full(3, 0.5)),
    )


def _chosen(g: Writer, k: int, y: int) -> list[int]:
    return list(
        g.cond(
            g.less(g.sum(y), k),
            *(k, y),
            then=lambda g, k, y: [g.mul(y, y), g.exp(y)],
            otherwise=lambda g, k, y: [g.mul(y, k), g.sin(y)],
        )
    )


def _choices() -> Written:
    return written(lambda g, *given: g.scan(*given, body=_chosen, carries=1, length=5), 0.9, random(7))


def _map() -> Written:
    def solved(g: Writer, k: int, m: int) -> list[int]:
        return g.fixed_point(
            k, m, m, body=lambda g, k, m, x: [g.add(m, g.mul(k, g.sin(x)))], carries=1, tolerance=1e-9, max_steps=50
        )[:1]

    return written(lambda g, *given: g.map(*given, body=solved, sequences=1, at_once=2), 0.4, random(5))


LOOPS: Final[Mapping[str, Callable[[], Written]]] = {
    "one scalar": _elements,
    "elements": partial(_elements, 5),
    "rows of elements, backwards": partial(_elements, 3, 40, reverse=True),
    "complex elements": partial(_pairs, "complex128"),
    "complex elements of float32": partial(_pairs, "complex64"),
    "a network": partial(_network, "float64"),
    "a network of float32, backwards": partial(_network, "float32", reverse=True),
    "loops": _nested,
    "steps until something holds": _while,
    "choices": _choices,
    "fixed points, entry by entry": _map,
}
