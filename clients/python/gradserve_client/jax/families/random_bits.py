"""Random bits that JAX turns into floats by integer operations, recognised as `random_uniform`.

`jax.random.uniform` draws bits, shifts them right to the width of a fraction, sets the exponent of 1.0 with a bitwise
or, and reinterprets the result as floats in [1, 2). No ops exist for these steps on unsigned integers. A value of
random bits therefore carries a `RandomBits` marker, which each of these rules advances by one stage, and the last
stage is one `random_uniform` node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.jax.call import Call
from gradserve_client.jax.values import Value
from gradserve_client.tensors import Array

#: by the number of bits: the float dtype that they become, and the bits of its fraction
_FLOATS: Final[Mapping[int, tuple[np.dtype[Any], int]]] = {
    32: (np.dtype(np.float32), 23),
    64: (np.dtype(np.float64), 52),
}


@dataclass(frozen=True)
class RandomBits:
    """Random bits at a stage of their conversion to floats in [1, 2).

    `keys` is the node of the keys and `key_shape` their shape; `shape` is the shape drawn from each key.
    """

    keys: Node
    key_shape: tuple[int, ...]
    shape: tuple[int, ...]
    width: int
    stage: Literal["bits", "fraction", "float"] = "bits"

    @property
    def reason(self) -> str:
        """The reason why no node computes it."""
        return f"it reads {self.width} random bits as an integer, an unsupported dtype"

    @property
    def workaround(self) -> str:
        """The dtypes to draw instead."""
        return "draw floats, or 32-bit integers: dtype='int32'"

    def shifted(self, by: Array) -> RandomBits | None:
        """Return the stage after a shift right that leaves the fraction, or None for other shifts."""
        lost = self.width - _FLOATS[self.width][1]
        return replace(self, stage="fraction") if self.stage == "bits" and bool(np.all(by == lost)) else None

    def with_exponent(self, bits: Array) -> RandomBits | None:
        """Return the stage after a bitwise or with the bits of 1.0, or None for other bits."""
        one = np.asarray(1.0, _FLOATS[self.width][0]).view(f"uint{self.width}")
        return replace(self, stage="float") if self.stage == "fraction" and bool(np.all(bits == one)) else None

    def as_float(self, dtype: Any) -> Node | None:
        """Return a node of the floats in [1, 2), or None at an earlier stage or for another dtype."""
        if self.stage != "float" or np.dtype(dtype) != _FLOATS[self.width][0]:
            return None
        name = np.dtype(dtype).name
        return draw_per_key(
            self.keys, self.key_shape, self.shape, lambda key: key.random_uniform([*self.shape], name)
        ).add(self.keys.graph.constant(np.ones((), dtype)))


def draw_per_key(keys: Node, key_shape: tuple[int, ...], shape: tuple[int, ...], draw: Any) -> Node:
    """Call `draw` on one key, or on each of several by a `map`."""
    if not key_shape:
        node: Node = draw(keys)
        return node
    graph = keys.graph
    body = graph.function(lambda inner: draw(inner.input()), "drawn")
    rows = keys if len(key_shape) == 1 else keys.reshape(shape=[int(np.prod(key_shape)), 2])
    mapped = graph.map(rows, body=body, sequences=1).get_output(0)
    return mapped if len(key_shape) == 1 else mapped.reshape(shape=[*key_shape, *shape])


def random_bits_of(value: Value) -> RandomBits | None:
    """Return the random bits that a value is marked as, or None."""
    return value.marker if isinstance(value.marker, RandomBits) else None


def with_marker(call: Call, marker: RandomBits, node: Node | None = None) -> Value:
    """Return a value for result 0 of a call with this marker, and with a node if one computes it."""
    return Value(call.results[0].shape, call.results[0].dtype, node=node, marker=marker)
