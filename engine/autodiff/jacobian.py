"""Full Jacobians: all rows in one batched pass of reverse mode, or all columns in one of forward mode.

A sweep is a vector-Jacobian product (or its transpose) with a unit vector, mapped by `vmap` over all unit vectors. The
memory of one product decides how many are mapped at once, a chunk. All chunks are in the same graph, one after the
other, so that the memory of one is free for the next.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.autodiff.jvp import Push, linearise
from engine.autodiff.vjp import Dependence, vjp
from engine.autodiff.vmap import dependents, vmap_onto
from engine.ir.errors import OverBudget
from engine.ir.graph import Builder, Value, shaped
from engine.ir.tensor_type import TensorType

#: integers up to this are exact in float64, in which `arange` counts
_COUNTABLE = 1 << 53


def jacobian(
    builder: Builder, y: Value, wrt: Sequence[Value], chunk_bytes: int, dependence: Dependence | None = None
) -> list[Value | None]:
    """Append ∂y/∂x, of shape (*y.shape, *x.shape) and x's dtype, for each x in `wrt`; None if there is no path.

    Computes by rows if y has no more elements than all x together, else by columns. A chunk of a sweep may hold
    `chunk_bytes`. `dependence` is passed on to `vjp`. Raises OverBudget if the result alone exceeds the byte limit.
    """
    # Reverse mode needs one product per element of y, forward mode one per element of the x.
    if y.type.size <= sum(x.type.size for x in wrt):
        return jacobian_rows(builder, y, wrt, chunk_bytes, dependence)
    push = linearise(builder, [y], wrt, dependence)
    return [_columns(builder, y, x, push, chunk_bytes) for x in wrt]


def jacobian_rows(
    builder: Builder, y: Value, wrt: Sequence[Value], chunk_bytes: int, dependence: Dependence | None = None
) -> list[Value | None]:
    """Append the Jacobian by rows, using reverse mode."""
    seed = _seed(builder, y.type, "row")
    pullbacks = vjp(builder, [(y, seed)], wrt, dependence)
    products = [g for g in pullbacks if g is not None]
    swept = iter(_sweep(builder, products, seed, chunk_bytes) if products else ())
    return [
        None if g is None else shaped(next(swept), (*y.shape, *x.shape)) for x, g in zip(wrt, pullbacks, strict=True)
    ]


def _columns(builder: Builder, y: Value, x: Value, push: Push, chunk_bytes: int) -> Value | None:
    """Append the Jacobian by columns, using forward mode."""
    seed = _seed(builder, x.type, "column")
    (pushforward,) = push([(x, seed)])
    if pushforward is None:
        return None
    (swept,) = _sweep(builder, [pushforward], seed, chunk_bytes)
    # The sweep runs over elements of x, so x's axes come first: transpose. Its numbers have y's dtype: cast to x's.
    cast = swept if swept.dtype == x.dtype else swept.cast(dtype=x.dtype)
    columns = cast.reshape(shape=(x.type.size, y.type.size))
    return columns.transpose().reshape(shape=(*y.shape, *x.shape))


def _seed(builder: Builder, type: TensorType, name: str) -> Value:
    """Append a leaf that stands for a unit vector of the space of `type`; in one dimension, the unit vector itself."""
    if type.size == 1:
        return builder.full(type.shape, 1.0, type.dtype)
    return builder.leaf(type, (name, len(builder.nodes)))


def _sweep(builder: Builder, products: Sequence[Value], seed: Value, chunk_bytes: int) -> list[Value]:
    """Return `products` stacked along a new leading axis, with every unit vector in place of `seed`.

    If there is a single unit vector, `seed` is that vector, and the products are returned as they are.
    """
    # The results of all chunks are held together in the end. Check that before writing the chunks.
    count = seed.type.size
    builder.limits.admit_bytes(count * sum(p.type.nbytes for p in products))
    if count == 1:
        return list(products)
    if not count:
        return [p.full_like(0.0, (0, *p.shape)) for p in products]
    step = max(1, chunk_bytes // _peak_bytes(builder, products, seed))
    chunks = []
    for start in range(0, count, step):
        stop = min(start + step, count)
        if stop > _COUNTABLE:
            raise OverBudget(f"a Jacobian may have at most 2^53 rows or columns, but this one has {count}")
        # The graph makes the unit vectors of a chunk, so that the identity matrix is never held as a whole.
        numbers = builder.arange(stop, start=start)
        units = numbers.one_hot(classes=count, dtype=seed.dtype).reshape(shape=(stop - start, *seed.shape))
        chunks.append(vmap_onto(builder, products, {seed: units}, stop - start))
    return [parts[0] if len(parts) == 1 else parts[0].cat(*parts[1:], axis=0) for parts in zip(*chunks, strict=True)]


def _peak_bytes(builder: Builder, products: Sequence[Value], seed: Value) -> int:
    """Return the peak memory in bytes of one product. The result of a node lives until its last reader has run."""
    nodes = dependents(builder.nodes, [p.index for p in products], {seed.index})
    size = {i: sum(t.nbytes for t in builder.nodes[i].types) for i in nodes}
    last = {j: i for i in nodes for j in builder.nodes[i].operands} | {p.index: len(builder.nodes) for p in products}
    live = peak = seed.type.nbytes
    for i in nodes:
        # Operands are freed after the node that reads them last; an unread result, after the node itself.
        live += size[i]
        peak = max(peak, live)
        live -= sum(size.get(j, 0) for j in {i, *builder.nodes[i].operands} if last.get(j, i) == i)
    return peak
