"""Correlation of single channels, tap by tap: for a channel that gives one or two, a matrix product has nothing to do.

Windows of a padded plane differ by where they begin in it. So what a tap adds to all of them is one run of the plane
times one number, the ends of rows included, where no window begins.
"""

from __future__ import annotations

import math
from itertools import product

from engine.graph.op import Array, Namespace
from engine.oplib.tiling import Layout, slices, within_chunk
from engine.oplib.windows import each_index

#: features of a channel, and windows that begin where none is wanted for each one that is, at most
FEATURES, WASTE = 2, 8


def goes_by_taps(sizes: Layout) -> bool:
    """Whether that is faster than a product of columns."""
    return sizes.depth == 1 and sizes.features <= FEATURES and math.prod(sizes.windows.stride) <= WASTE


def correlate_taps(xp: Namespace, x: Array, weights: Array, out: Array, sizes: Layout) -> None:
    """As `correlate_groups`, of one channel in each group."""
    for part, groups in product(slices(len(x), images_of_taps(sizes)), slices(sizes.groups, groups_of_taps(sizes))):
        _add_taps(xp, x[part, groups], weights[groups].astype(sizes.dtype, copy=False), out[part, groups], sizes)


def _add_taps(xp: Namespace, x: Array, weights: Array, out: Array, sizes: Layout) -> None:
    windows, span = sizes.windows, sizes.windows.span(sizes.positions)
    taken, inside = windows.met(x.shape[3:], sizes.positions)
    plane = xp.zeros((*x.shape[:3], *span), sizes.dtype)
    plane[(..., *inside)] = x[(..., *taken)]
    steps = [math.prod(span[i + 1 :]) for i in range(len(span))]
    begins = 1 + sum((n - 1) * s * step for n, s, step in zip(sizes.positions, windows.stride, steps, strict=True))
    flat = plane.reshape(*plane.shape[:3], math.prod(span))
    sums, terms = (xp.empty((*out.shape[:3], begins), sizes.dtype) for _ in range(2))
    for i, tap in enumerate(each_index(windows.size)):
        first = sum(t * d * step for t, d, step in zip(tap, windows.dilation, steps, strict=True))
        weight = weights[(..., 0, *tap)][..., None]
        xp.multiply(flat[..., first : first + begins], weight, out=terms if i else sums)
        if i:
            xp.add(sums, terms, out=sums)
    strides = [sums.itemsize * s * step for s, step in zip(windows.stride, steps, strict=True)]
    out[...] = xp.lib.stride_tricks.as_strided(sums, out.shape, (*sums.strides[:3], *strides))


def images_of_taps(sizes: Layout) -> int:
    """As many images as CHUNK holds the planes of all groups of, one at least."""
    return within_chunk(sizes.wide[0], sizes.groups * _bytes_of_a_group(sizes))


def groups_of_taps(sizes: Layout) -> int:
    """As many groups as CHUNK holds the planes of one image of, one at least."""
    return within_chunk(sizes.groups, _bytes_of_a_group(sizes))


def taps_workspace(sizes: Layout) -> int:
    """Bytes that `correlate_taps` allocates: planes, and twice the sums."""
    return images_of_taps(sizes) * groups_of_taps(sizes) * _bytes_of_a_group(sizes)


def _bytes_of_a_group(sizes: Layout) -> int:
    return (1 + 2 * sizes.features) * sizes.span_bytes
