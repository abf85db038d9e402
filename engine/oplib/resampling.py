"""Weights by which an axis is brought to another extent: computed like all else, so that a plan holds no tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from engine.graph.ir import Builder, Value
from engine.graph.tensor_type import FLOAT64, INT64

Method = Literal["nearest", "linear", "cubic"]

#: how far from its place an entry counts, in distances of entries
_REACH: Final = {"nearest": 1, "linear": 1, "cubic": 2}


def middles(builder: Builder, extent: int, size: int, corners: bool) -> Value:
    """Where the middles of `size` new entries lie among `extent` old ones: float64 [size]."""
    places = builder.arange(size).cast(dtype=FLOAT64)
    if corners:
        return places * ((extent - 1) / (size - 1) if size > 1 else 0.0)
    return (places + 0.5) * (extent / size) - 0.5


def taps_of(method: Method, at: Value, extent: int) -> Iterator[tuple[Value, Value]]:
    """The places that new entries with their middles `at` read, int64 [size], and their weights, float64 [size].

    Beyond an end there is what is at the end.
    """
    reach = _REACH[method]
    first = (at + 0.5).floor() if method == "nearest" else at.floor() - float(reach - 1)
    for tap in range(1 if method == "nearest" else 2 * reach):
        reached = first + float(tap)
        yield reached.clamp(min=0.0, max=float(extent - 1)).cast(dtype=INT64), _kernel(method, reached - at, -0.75)


def smoothing(method: Method, at: Value, extent: int) -> Value:
    """The weight of each old entry in each new one, float64 [size, extent], kernels as wide as new ones are apart.

    What is beyond an end does not count: the weights of an entry add up to 1.
    """
    size = at.shape[0]
    widened = max(extent / max(size, 1), 1.0)
    old = at.builder.arange(extent).cast(dtype=FLOAT64)
    apart = old.reshape(shape=(1, extent)) - at.reshape(shape=(size, 1))
    weights = _kernel(method, apart * (1 / widened), -0.5)
    return weights / weights.sum(axes=(1,), keepdims=True)


def _kernel(method: Method, apart: Value, a: float) -> Value:
    """A triangle; or R. Keys, "Cubic convolution interpolation for digital image processing" (1981), with this a."""
    distance = apart.abs()
    if method != "cubic":
        return (1.0 - distance).clamp(min=0.0)
    near = ((a + 2) * distance - (a + 3)) * distance.square() + 1.0
    far = ((distance - 5.0) * distance + 8.0) * distance * a - 4 * a
    return (distance <= 1.0).where(near, (distance < 2.0).where(far, 0.0))
