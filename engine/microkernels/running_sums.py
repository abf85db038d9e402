"""Running sums along an axis, by the loop of NumPy's addition: a sum and the next element make the next sum."""

from __future__ import annotations

import math

import numpy as np

from engine.graph.tensor_type import TensorType
from engine.microkernels.recipe import Recipe
from engine.microkernels.routine import Routine
from engine.microkernels.ufunc_calls import LoopCall
from engine.native.ufunc_loops import ufunc_loop


def adding_on(out: TensorType, x: TensorType, axis: int) -> Recipe | None:
    """Of operand 0; None where the sums have another dtype, and of complex numbers."""
    loop = ufunc_loop(np.add, (x.dtype, x.dtype, out.dtype))
    if loop is None or x.dtype != out.dtype or x.is_complex:
        return None
    to, others = Routine("float64", 1), [a for a in range(x.ndim) if a != axis]
    call, type = LoopCall(to, loop, 3, 1, 3), f"i{8 * x.dtype.itemsize}"
    steps = out.strides[axis], x.strides[axis], out.strides[axis]
    call.store_steps(steps)
    places = to.place("operand", 0), to.place("result", 0)
    with to.loop("%first", "%past") as item:
        lead = to.unravelled(item.index, [x.shape[a] for a in others])
        source, y = (
            to.moved(place, lead, [each.strides[a] for a in others])
            for place, each in zip(places, (x, out), strict=True)
        )
        to.memory.store(type, to.memory.load(type, source), y)
        call.make([y, to.at(source, steps[1]), to.at(y, steps[0])], [x.shape[axis] - 1])
    return Recipe((to.phase(math.prod(x.shape[a] for a in others), x.size),), own=call.own)
