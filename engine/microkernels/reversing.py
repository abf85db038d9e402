"""A dense copy of what runs backwards on its last axis, vector by vector; any bits of a float's width."""

from __future__ import annotations

import math

from engine.graph.tensor_type import Shape
from engine.microkernels.recipe import Recipe
from engine.microkernels.register_tile import lanes_for
from engine.microkernels.routine import MOVED_AS, Routine


def reversing(itemsize: int, shape: Shape, strides: tuple[int, ...]) -> Recipe:
    """Of operand 0, of these strides in bytes, the last of which is −itemsize."""
    to = Routine(MOVED_AS[itemsize], lanes_for(itemsize))
    x, y, run = to.place("operand", 0), to.place("result", 0), shape[-1]
    whole = run - run % to.lanes
    with to.loop("%first", "%past") as row:
        here, there = x, to.at(y, to.mul(row.index, run * itemsize))
        for at, step in zip(to.unravelled(row.index, shape[:-1]), strides, strict=False):
            here = to.at(here, to.mul(at, step))
        with to.loop(0, whole, to.lanes) as column:
            last = to.mul(to.add(column.index, to.lanes - 1), -itemsize)
            to.store(to.reversed(to.load(to.at(here, last))), to.at(there, to.mul(column.index, itemsize)))
        for i in range(whole, run):
            to.store_number(to.load_number(to.at(here, -i * itemsize)), to.at(there, i * itemsize))
    return Recipe((to.phase(math.prod(shape[:-1]), math.prod(shape)),))
