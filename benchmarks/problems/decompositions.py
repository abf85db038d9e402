"""Decompositions of many small matrices and of a large one, an exponential, and rows by their indices.

What is asked of vectors does not depend on their signs, which are LAPACK's own.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from benchmarks.workload import Array, Function, Maker, Ways, Workload, both_ways, normal

#: batch and side
SMALL, LARGE = (64, 64), (1, 512)
EXPONENTIALS, EXPONENTIAL_SIDE = 64, 16
ROWS, WIDTH, TABLE = 1_000_000, 64, 100_000
RESULTS: Final = {"eigh": 2, "svd": 3, "qr": 2}


def parts(op: str, ops: Any, x: Any, *weights: Any) -> list[Any]:
    """Values as they are, and the squares of vectors; what a loss weighs them by is not read."""
    del weights
    found = ops.several(op, x, count=RESULTS[op])
    return [y if _are_values(op, i) else ops.square(y) for i, y in enumerate(found)]


def _are_values(op: str, index: int) -> bool:
    return (op, index) in {("eigh", 0), ("svd", 1)}


def loss(op: str, ops: Any, x: Any, *weights: Any) -> Any:
    """All of them, each number with a weight of its own, so that nothing cancels."""
    total, *rest = (ops.sum(y * w) for y, w in zip(parts(op, ops, x), weights, strict=True))
    for each in rest:
        total = total + each
    return total


def exponential(ops: Any, x: Any, weight: Any) -> Any:
    """Of each matrix; the weight is not read."""
    del weight
    return ops.matrix_exp(x)


def exponential_loss(ops: Any, x: Any, weight: Any) -> Any:
    """A weight for each of its numbers."""
    return ops.sum(ops.matrix_exp(x) * weight)


def taken(ops: Any, x: Any, rows: Any) -> Any:
    """Rows of a table."""
    return ops.index(x, rows)


def taken_loss(ops: Any, x: Any, rows: Any) -> Any:
    """The sum of their squares."""
    return ops.sum(ops.square(taken(ops, x, rows)))


def added(ops: Any, x: Any, updates: Any, rows: Any) -> Any:
    """Rows added to those of a table."""
    return ops.index_add(x, rows, updates)


def added_loss(ops: Any, x: Any, updates: Any, rows: Any) -> Any:
    """The sum of squares."""
    return ops.sum(ops.square(added(ops, x, updates, rows)))


def matrices(batch: int, side: int, *, symmetric: bool) -> Array:
    """Regular ones in float64; of a batch of one, the matrix alone."""
    x = normal(1, batch, side, side, dtype="float64")
    x = (x + x.swapaxes(-1, -2)) / 2 if symmetric else x
    return x[0] if batch == 1 else x


def _of_matrices(op: str, extent: tuple[int, int], function: Function) -> Workload:
    batch, side = extent
    x = matrices(batch, side, symmetric=op == "eigh")
    weights = [
        normal(2 + i, *(x.shape[:-1] if _are_values(op, i) else x.shape), dtype="float64") for i in range(RESULTS[op])
    ]
    many = f"{batch} matrices {side} × {side}" if batch > 1 else f"one {side} × {side}"
    return _workload(f"{op}-{side}", f"{op}, {many}, float64", function, [x], weights)


def _of_exponentials(function: Function) -> Workload:
    title = f"matrix_exp, {EXPONENTIALS} matrices {EXPONENTIAL_SIDE} × {EXPONENTIAL_SIDE}, float64"
    x, weight = (
        normal(i, EXPONENTIALS, EXPONENTIAL_SIDE, EXPONENTIAL_SIDE, scale=0.5, dtype="float64") for i in range(2)
    )
    return _workload("matrix_exp", title, function, [x], [weight])


def _of_taken(function: Function) -> Workload:
    title = f"index, {ROWS:,} rows of {WIDTH} of a table of {TABLE:,}, float32"
    return _workload("index", title, function, [normal(1, TABLE, WIDTH)], [_indices()])


def _of_added(function: Function) -> Workload:
    title = f"index_add, {ROWS:,} rows of {WIDTH} to a table of {TABLE:,}, float32"
    parameters = [normal(1, TABLE, WIDTH), normal(2, ROWS, WIDTH)]
    return _workload("index_add", title, function, parameters, [_indices()])


def _indices() -> Array:
    return np.random.default_rng(3).integers(0, TABLE, ROWS)


def _workload(name: str, title: str, function: Function, parameters: list[Array], data: list[Array]) -> Workload:
    return Workload(name, title, function, parameters, data, sides=("gradserve", "torch", "jax", "scipy"))


_ROWS: Final[dict[str, Ways]] = {
    **{
        f"{op}-{extent[1]}": (partial(_of_matrices, op, extent), partial(loss, op), partial(parts, op))
        for op in RESULTS
        for extent in (SMALL, LARGE)
    },
    "matrix_exp": (_of_exponentials, exponential_loss, exponential),
    "index": (_of_taken, taken_loss, taken),
    "index_add": (_of_added, added_loss, added),
}
DECOMPOSITIONS: Final[dict[str, Maker]] = both_ways(_ROWS)
