"""What takes much memory an element, as a map of elements: some at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.graph.body import Body
from engine.graph.ir import Builder, Value
from engine.graph.tensor_type import TensorType, broadcast

#: elements that are not worth a loop
_FEW: Final = 1 << 10
#: those of one step, stated so that none is planned to find out: a hundred numbers of each are in a core's own cache
_LEAST, _MOST = 1 << 4, 1 << 8


def entrywise(function: Callable[..., Value], *values: Value) -> Value:
    """An elementwise function of broadcast values of one dtype: where there are many, by a map of single ones.

    What it writes has one axis at most, so that many axes cost no more to plan than one.
    """
    shape = broadcast(*(x.shape for x in values))
    size = TensorType(shape, values[0].dtype).size
    if size <= _FEW and len(shape) <= 1:
        return function(*values)
    rows = [_widened(x, shape).reshape(shape=(size,)) for x in values]
    if size <= _FEW:
        return function(*rows).reshape(shape=shape)
    body = _body_of(function, values)
    first, *others = rows
    return first.map(*others, body=body, sequences=len(rows), at_once=_at_once(size)).output(0).reshape(shape=shape)


def _at_once(size: int) -> int:
    """As many as leave no rest where that can be, since a rest is one more body to plan."""
    return max((count for count in range(_LEAST, _MOST + 1) if size % count == 0), default=_MOST)


def _widened(x: Value, shape: tuple[int, ...]) -> Value:
    return x if x.shape == shape else x.broadcast_to(shape=shape)


def _body_of(function: Callable[..., Value], values: tuple[Value, ...]) -> Body:
    builder = Builder(values[0].builder.registry)
    types = [TensorType((), x.dtype) for x in values]
    return Body(builder.graph([function(*(builder.leaf(type, i) for i, type in enumerate(types)))]), types)
