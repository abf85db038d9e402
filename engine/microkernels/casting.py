"""Elements in another dtype, as NumPy's astype: fractions are cut off towards zero, nonzero is true."""

from __future__ import annotations

import math
from typing import Final

from engine.graph.tensor_type import TensorType
from engine.microkernels.axes import Axes, steps_over
from engine.microkernels.recipe import Recipe
from engine.microkernels.routine import Routine

_FLOATS: Final = {4: "float", 8: "double"}


def casting(out: TensorType, x: TensorType) -> Recipe | None:
    """Of operand 0, which broadcasts to the result; None for float16, and for complex numbers."""
    if any(type.is_complex or (type.is_float and type.dtype.itemsize not in _FLOATS) for type in (out, x)):
        return None
    axes, to = Axes.of(out.shape, [steps_over(out.shape, x), out.strides]), Routine("float64", 1)
    places = [to.place("operand", 0), to.place("result", 0)]
    with to.loop("%first", "%past") as item:
        (source, place), count = axes.item(to, item.index, places)
        with to.loop(0, count) as each:
            read = to.memory.load(_stored(x), to.at(source, to.mul(each.index, axes.steps[0][-1])))
            to.memory.store(_stored(out), _cast(to, read, x, out), to.at(place, to.mul(each.index, axes.steps[1][-1])))
    return Recipe((to.phase(axes.items, math.prod(out.shape)),))


def _stored(type: TensorType) -> str:
    """What an element is in memory, in LLVM's words."""
    return _FLOATS[type.dtype.itemsize] if type.dtype.kind == "f" else f"i{8 * type.dtype.itemsize}"


def _cast(to: Routine, read: str, x: TensorType, out: TensorType) -> str:
    source, wanted, signed = _stored(x), _stored(out), x.dtype.kind == "i"
    if out.dtype.kind == "b":
        differs = f"fcmp une {source} {read}, 0.0" if x.dtype.kind == "f" else f"icmp ne {source} {read}, 0"
        return to.to.value(f"zext i1 {to.to.value(differs)} to i8")
    if x.dtype.kind == "f" and out.dtype.kind == "f":
        if source == wanted:
            return read
        return to.to.value(f"{'fpext' if wanted == 'double' else 'fptrunc'} {source} {read} to {wanted}")
    if out.dtype.kind == "f":
        return to.to.value(f"{'sitofp' if signed else 'uitofp'} {source} {read} to {wanted}")
    if x.dtype.kind == "f":
        return _whole(to, read, source, out)
    if x.dtype.itemsize == out.dtype.itemsize:
        return read
    how = "trunc" if x.dtype.itemsize > out.dtype.itemsize else "sext" if signed else "zext"
    return to.to.value(f"{how} {source} {read} to {wanted}")


def _whole(to: Routine, read: str, source: str, out: TensorType) -> str:
    """A float cut off, by way of a signed integer as wide as C takes: what does not fit is as it is with NumPy."""
    by = "i64" if out.dtype.itemsize == 8 or out.dtype.name == "uint32" else "i32"
    found = to.to.value(f"fptosi {source} {read} to {by}")
    wanted = f"i{8 * out.dtype.itemsize}"
    return found if wanted == by else to.to.value(f"trunc {by} {found} to {wanted}")
