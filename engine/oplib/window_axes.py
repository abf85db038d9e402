"""Windows along one axis as an axis of their own: what pools of any number of axes take one after the other."""

from __future__ import annotations

from engine.graph.ir import Value
from engine.oplib.indices import read_at


def windows_at(x: Value, axis: int, places: Value) -> Value:
    """x with `axis` replaced by two, those of `places` int64 [windows, taps], at which it is read."""
    count, taps = places.shape
    read = read_at(x, places.reshape(shape=(count * taps,)), axis)
    return read.reshape(shape=(*x.shape[:axis], count, taps, *x.shape[axis + 1 :]))


def first_largest(windows: Value, axis: int) -> Value:
    """The largest along `axis`, NaN before all; of equal ones the first takes the gradient."""
    found = windows.argmax(axis=axis, keepdims=True)
    return windows.gather(found, axis=axis).squeeze(axes=(axis,))


def regular_places(x: Value, count: int, taps: int, stride: int, dilation: int) -> Value:
    """The places i · stride + t · dilation of window i's tap t: int64 [count, taps]."""
    starts = x.builder.arange(count * stride, step=stride).reshape(shape=(count, 1))
    return starts.add(x.builder.arange(taps * dilation, step=dilation).reshape(shape=(1, taps)))


def adaptive_ranges(x: Value, extent: int, count: int) -> tuple[Value, Value]:
    """Where each of `count` windows over an axis begins, ⌊i · extent / count⌋, and ends: int64 [count, 1]."""
    numbers = x.builder.arange(count).reshape(shape=(count, 1))
    ends = numbers.add(1).mul(extent).add(count - 1)
    return numbers.mul(extent).floor_div(count), ends.floor_div(count)
