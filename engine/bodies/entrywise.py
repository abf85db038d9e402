"""Elementwise functions that take much memory an element, as a map: some elements at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.graph.body import Body
from engine.graph.ir import Builder, Value
from engine.graph.tensor_type import TensorType, broadcast

#: elements that are not worth a loop
_FEW: Final = 1 << 10
#: those of one step, stated so that none is planned to find out: a hundred numbers of each are in a core's own cache
_AT_ONCE: Final = 1 << 8
#: what steps are filled up with, since a rest would be one more body to plan
_FILL: Final = 0.5


def entrywise(function: Callable[..., Value], *values: Value) -> Value:
    """An elementwise function of broadcast values of one dtype: where there are many, by a map of single ones.

    What it writes has one axis at most, so that many axes cost no more to plan than one. It is finite at 0.5.
    """
    shape = broadcast(*(x.shape for x in values))
    size = TensorType(shape, values[0].dtype).size
    if size <= _FEW and len(shape) <= 1:
        return function(*values)
    rows = [(x if x.shape == shape else x.broadcast_to(shape=shape)).reshape(shape=(size,)) for x in values]
    if size <= _FEW:
        return function(*rows).reshape(shape=shape)
    first, *others = [row.pad(pad_width=(0, -size % _AT_ONCE), fill=_FILL) for row in rows]
    builder = Builder(values[0].builder.registry)
    leaves = [builder.leaf(TensorType((), x.dtype), i) for i, x in enumerate(values)]
    body = Body(builder.graph([function(*leaves)]), [leaf.type for leaf in leaves])
    mapped = first.map(*others, body=body, sequences=len(rows), at_once=_AT_ONCE).output(0)
    return mapped.slice(stops=(size,)).reshape(shape=shape)
