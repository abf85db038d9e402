"""Scores of queries and keys, a tile at a time: a tile stays in a core's own cache, and the whole matrix nowhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from engine.graph.op import Array, Namespace
from engine.graph.tensor_type import Shape, TensorType
from engine.oplib.product import is_readable

#: of the tiles that are worked on together; a core's own cache holds that much, or nearly
TILE_BYTES: Final = 1 << 20
#: fewer queries at a time make slow products
LEAST_ROWS: Final = 16
#: keys of a tile that need not hold whole rows
MOST_COLUMNS: Final = 512


class ScoreTile(NamedTuple):
    """Place of a tile: neighbouring queries and keys, of one matrix of scores or of neighbouring ones."""

    lead: tuple[int | slice, ...]
    queries: slice
    keys: slice

    def of_queries(self, x: Array) -> Array:
        """The rows of x[..., queries, n] that belong to the tile."""
        return x[self.lead][..., self.queries, :]

    def of_keys(self, x: Array) -> Array:
        """The rows of x[..., keys, n] that belong to the tile."""
        return x[self.lead][..., self.keys, :]

    def of_scores(self, x: Array) -> Array:
        """The part of x[..., queries, keys] that is the tile."""
        return x[self.lead][..., self.queries, self.keys]

    def of_mask(self, x: Array) -> Array:
        """As `of_scores`, of an x that has extent 1 on axes along which it is broadcast."""
        index = zip((*self.lead, self.queries, self.keys), x.shape, strict=True)
        return x[tuple(i if e > 1 else 0 if isinstance(i, int) else slice(None) for i, e in index)]


class Tiling(NamedTuple):
    """Cut of scores [*lead, queries, keys]: tiles of at most `rows` × `columns` of `group` matrices."""

    lead: Shape
    queries: int
    keys: int
    group: int
    rows: int
    columns: int

    @property
    def size(self) -> int:
        """Elements of the largest tile."""
        return self.group * self.rows * self.columns

    def tiles(self, *, below: bool) -> Iterator[ScoreTile]:
        """All tiles, those of the same keys one after the other; `below`: without what lies above the diagonal only."""
        for lead in self._groups():
            for first in range(0, self.keys, self.columns):
                for start in range(0, self.queries, self.rows):
                    stop = min(start + self.rows, self.queries)
                    last = min(first + self.columns, self.keys, stop if below else self.keys)
                    if first < last:
                        yield ScoreTile(lead, slice(start, stop), slice(first, last))

    def _groups(self) -> Iterator[tuple[int | slice, ...]]:
        """Indices of matrices, those of a group neighbours along the longest axis."""
        counts = list(self.lead)
        longest = max(range(len(counts)), key=counts.__getitem__, default=0)
        if counts:
            counts[longest] = -(-counts[longest] // self.group)
        for index in np.ndindex(*counts):
            lead: list[int | slice] = [*index]
            if lead:
                lead[longest] = slice(index[longest] * self.group, (index[longest] + 1) * self.group)
            yield tuple(lead)


def tiling(lead: Shape, queries: int, keys: int, itemsize: int, *, together: int, whole_rows: bool) -> Tiling:
    """Tiles of which so many are worked on `together`, of `whole_rows` or of a part of the keys."""
    most = TILE_BYTES // (itemsize * together)
    columns = keys if whole_rows else min(keys, MOST_COLUMNS)
    rows = min(queries, max(LEAST_ROWS, most // columns))
    whole = (rows, columns) == (queries, keys)
    group = min(max(lead, default=1), max(1, most // (rows * columns))) if whole else 1
    return Tiling(lead, queries, keys, group, rows, columns)


class Scores:
    """The scores of q [..., queries, d] and k [..., keys, d] under a mask; leading axes are broadcast to `lead`."""

    def __init__(
        self, xp: Namespace, q: Array, k: Array, mask: Array | None, lead: Shape, *, scale: float, causal: bool
    ) -> None:
        self._xp = xp
        self.q = spread(xp, xp.multiply(q, scale), lead)
        self.k = spread(xp, blas_readable(xp, k), lead)
        self._mask = None if mask is None else xp.broadcast_to(mask, (*lead, q.shape[-2], k.shape[-2]))
        self._causal = causal

    def write_tile(self, at: ScoreTile, memory: Array) -> Array:
        """The tile, in `memory`: −∞ where a key is hidden."""
        xp = self._xp
        q, k = at.of_queries(self.q), at.of_keys(self.k)
        scores = carved(memory, (*q.shape[:-1], k.shape[-2]))
        xp.matmul(q, k.swapaxes(-1, -2), out=scores)
        if self._mask is not None and self._mask.dtype.kind == "f":
            xp.add(scores, at.of_scores(self._mask), out=scores)
        self.hide(at, scores, -math.inf)
        return scores

    def hide(self, at: ScoreTile, scores: Array, fill: float) -> None:
        """Write `fill` where a key is hidden from its query."""
        xp = self._xp
        if self._mask is not None and self._mask.dtype.kind == "b":
            xp.copyto(scores, fill, where=xp.logical_not(at.of_scores(self._mask)))
        if self._causal and at.keys.stop - 1 > at.queries.start:
            queries, keys = (xp.arange(part.start, part.stop) for part in (at.queries, at.keys))
            xp.copyto(scores, fill, where=keys > queries[:, None])


def spread(xp: Namespace, x: Array, lead: Shape) -> Array:
    """Matrices x, broadcast over the leading axes."""
    return xp.broadcast_to(x, (*lead, *x.shape[-2:]))


def blas_readable(xp: Namespace, x: Array) -> Array:
    """x, copied where BLAS cannot read it as it lies."""
    return x if is_readable(x, x.dtype) else xp.ascontiguousarray(x)


def carved(memory: Array, shape: Shape) -> Array:
    """The beginning of flat memory, in this shape."""
    return memory[: math.prod(shape)].reshape(shape)


def copied_bytes(q: TensorType, *others: TensorType) -> int:
    """Bytes of the scaled queries, and of the `others` that `blas_readable` copies."""
    return q.nbytes + sum(x.nbytes for x in others if not is_readable(x, x.dtype))


def hiding_bytes(tiles: Tiling, *mask: TensorType, causal: bool) -> int:
    """Bytes of what says which keys of a tile are hidden."""
    return tiles.size if causal or any(m.dtype.kind == "b" for m in mask) else 0
