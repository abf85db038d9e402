"""Whole Jacobians: every row in one sweep of reverse mode, or every column in one of forward mode, batched.

A sweep is the product with one unit vector, mapped over all of them; where there is but one, it is the product. What
a product holds decides how many are mapped at once: the rest follow, in the same graph, so that the memory of one
chunk is free for the next.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.autodiff.jvp import Push, linearise
from engine.autodiff.vjp import Dependence, vjp
from engine.autodiff.vmap import dependents, vmap_onto
from engine.ir.errors import OverBudget
from engine.ir.graph import Builder, Value, shaped
from engine.ir.tensor_type import TensorType

#: up to here every whole number is a float, as which `arange` counts
_COUNTABLE = 1 << 53


def jacobian(
    builder: Builder, y: Value, wrt: Sequence[Value], chunk_bytes: int, known: Dependence | None = None
) -> list[Value | None]:
    """Append ∂y/∂x, of shape (*y.shape, *x.shape) and x's dtype, for each x of `wrt`; None where there is no path.

    By rows where y has no more elements than all x together, else by columns. One chunk of a sweep may hold
    `chunk_bytes`. `known` is `vjp`'s. Raises OverBudget when the blocks alone are more than one execution may take.
    """
    if y.type.size <= sum(x.type.size for x in wrt):
        return jacobian_rows(builder, y, wrt, chunk_bytes, known)
    push = linearise(builder, [y], wrt, known)
    return [_columns(builder, y, x, push, chunk_bytes) for x in wrt]


def jacobian_rows(
    builder: Builder, y: Value, wrt: Sequence[Value], chunk_bytes: int, known: Dependence | None = None
) -> list[Value | None]:
    """Append `jacobian` by rows: reverse mode."""
    seed = _seed(builder, y.type, "row")
    pulled = vjp(builder, [(y, seed)], wrt, known)
    products = [g for g in pulled if g is not None]
    swept = iter(_sweep(builder, products, seed, chunk_bytes) if products else ())
    return [None if g is None else shaped(next(swept), (*y.shape, *x.shape)) for x, g in zip(wrt, pulled, strict=True)]


def _columns(builder: Builder, y: Value, x: Value, push: Push, chunk_bytes: int) -> Value | None:
    """Append it by columns: forward mode."""
    seed = _seed(builder, x.type, "column")
    (pushed,) = push([(x, seed)])
    if pushed is None:
        return None
    (swept,) = _sweep(builder, [pushed], seed, chunk_bytes)
    cast = swept if swept.dtype == x.dtype else swept.cast(dtype=x.dtype)
    columns = cast.reshape(shape=(x.type.size, y.type.size))
    return columns.transpose().reshape(shape=(*y.shape, *x.shape))


def _seed(builder: Builder, type: TensorType, name: str) -> Value:
    """Append a leaf that stands for the unit vectors of the space of `type`; in one dimension, the only one itself."""
    if type.size == 1:
        return builder.full(type.shape, 1.0, type.dtype)
    return builder.leaf(type, (name, len(builder.nodes)))


def _sweep(builder: Builder, products: Sequence[Value], seed: Value, chunk_bytes: int) -> list[Value]:
    """`products` for every unit vector in place of `seed`, along a leading axis: a new one, if there are several."""
    count = seed.type.size
    builder.limits.admit_bytes(count * sum(p.type.nbytes for p in products))
    if count == 1:
        return list(products)
    if not count:
        return [p.full_like(0.0, (0, *p.shape)) for p in products]
    step = max(1, chunk_bytes // _held(builder, products, seed))
    chunks = []
    for start in range(0, count, step):
        stop = min(start + step, count)
        if stop > _COUNTABLE:
            raise OverBudget(f"a Jacobian may have at most 2^53 rows or columns, but this one has {count}")
        numbers = builder.arange(stop, start=start)
        units = numbers.one_hot(classes=count, dtype=seed.dtype).reshape(shape=(stop - start, *seed.shape))
        chunks.append(vmap_onto(builder, products, {seed: units}, stop - start))
    return [parts[0] if len(parts) == 1 else parts[0].cat(*parts[1:], axis=0) for parts in zip(*chunks, strict=True)]


def _held(builder: Builder, products: Sequence[Value], seed: Value) -> int:
    """Bytes that one product holds at its most: what its nodes write, each until it is read for the last time."""
    nodes = dependents(builder.nodes, [p.index for p in products], {seed.index})
    size = {i: sum(t.nbytes for t in builder.nodes[i].types) for i in nodes}
    read = {j: i for i in nodes for j in builder.nodes[i].operands} | {p.index: len(builder.nodes) for p in products}
    live = most = seed.type.nbytes
    for i in nodes:
        live += size[i]
        most = max(most, live)
        live -= sum(size.get(j, 0) for j in {i, *builder.nodes[i].operands} if read.get(j, i) == i)
    return most
