"""Sums over the axes before and behind some, as over images and positions of each channel."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final, NamedTuple

from engine.microkernels.recipe import Recipe
from engine.microkernels.register_tile import SUMMED
from engine.microkernels.routine import Routine

#: vectors that are under way at once
ABREAST_SUMS: Final = 4


class ChannelSums(NamedTuple):
    """y[c] = Σ x[o, c, i] over o and i: extents, and bytes to the next o and c. i and y are dense."""

    dtype: str
    itemsize: int
    outer: int
    channels: int
    inner: int
    outer_step: int
    channel_step: int


def channel_sums(of: ChannelSums) -> Recipe:
    """An item is a channel: each o in lanes, four vectors at a time and what is left, then the lanes by halves."""
    to = Routine(of.dtype, SUMMED // of.itemsize)
    width = to.lanes * to.size
    whole = of.inner - of.inner % (ABREAST_SUMS * to.lanes)
    with to.loop("%first", "%past") as channel:
        x = to.at(to.place("operand", 0), to.mul(channel.index, of.channel_step))
        sums = [(to.vector, to.zero)] * ABREAST_SUMS
        with to.loop(0, of.outer, carried=[*sums, ("ptr", x)]) as outer:
            *so_far, row = outer.carried
            with to.loop(0, whole, ABREAST_SUMS * to.lanes, carried=[(to.vector, s) for s in so_far]) as some:
                here = to.at(row, to.mul(some.index, to.size))
                some.carry = [to.sum(total, to.load(to.at(here, k * width))) for k, total in enumerate(some.carried)]
            first, *others = some.carried
            for rest in range(whole, of.inner, to.lanes):
                mask = to.below(of.inner - rest)
                first = to.sum(first, to.load(to.at(row, rest * to.size), mask))
            outer.carry = [first, *others, to.at(row, of.outer_step)]
        a, b, c, d = outer.carried[:-1]
        total = to.halved(to.sum(to.sum(a, b), to.sum(c, d)))
        to.store_number(total, to.at(to.place("result", 0), to.mul(channel.index, to.size)))
    return Recipe((to.phase(of.channels, of.outer * of.channels * of.inner),))


def as_channel_sums(
    dtype: str, itemsize: int, shape: tuple[int, ...], strides: tuple[int, ...], axes: tuple[int, ...]
) -> ChannelSums | None:
    """A sum over `axes` in this form; None where the axes that stay are not some in the middle, or lie otherwise."""
    kept = [i for i in range(len(shape)) if i not in axes]
    if not kept or kept != list(range(kept[0], kept[-1] + 1)) or not 0 < kept[0] <= kept[-1] < len(shape) - 1:
        return None
    first, past = kept[0], kept[-1] + 1
    parts = (range(first), range(first, past), range(past, len(shape)))
    steps = [_step(shape, strides, part) for part in parts]
    if None in steps or steps[2] != itemsize:
        return None
    outer, channels, inner = (math.prod(shape[i] for i in part) for part in parts)
    return ChannelSums(dtype, itemsize, outer, channels, inner, steps[0] or 0, steps[1] or 0)


def _step(shape: tuple[int, ...], strides: tuple[int, ...], part: range) -> int | None:
    """Bytes from one to the next over these axes as one; None where they do not go on in one another."""
    axes = [i for i in part if shape[i] > 1]
    if any(strides[a] != strides[b] * shape[b] for a, b in pairwise(axes)):
        return None
    return strides[axes[-1]] if axes else strides[part[-1]]
