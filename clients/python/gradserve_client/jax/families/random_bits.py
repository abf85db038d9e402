"""Random bits on their way to become floats: JAX writes these by shifts of whole numbers that the wire lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.jax.call import Call
from gradserve_client.jax.values import Value
from gradserve_client.tensors import Array

#: by the width of the bits: the float that they become, and how many of them it keeps
_FLOATS: Final[Mapping[int, tuple[np.dtype[Any], int]]] = {
    32: (np.dtype(np.float32), 23),
    64: (np.dtype(np.float64), 52),
}


@dataclass(frozen=True)
class Drawn:
    """Bits of keys, of which the upper ones become the fraction of a float in [1, 2).

    `keys` is the node of the keys, whose shape is `key_shape`, and `shape` that of what is drawn of each.
    """

    keys: Node
    key_shape: tuple[int, ...]
    shape: tuple[int, ...]
    width: int
    stage: Literal["bits", "fraction", "float"] = "bits"

    @property
    def reason(self) -> str:
        """Why no node gives it."""
        return f"it reads {self.width} random bits as a whole number, which the wire lacks"

    @property
    def way_round(self) -> str:
        """What can be drawn in place of it."""
        return "draw floats, or whole numbers of 32 bits: dtype='int32'"

    def shifted(self, by: Array) -> Drawn | None:
        """The fraction, where they are shifted so far that it is left; or None."""
        lost = self.width - _FLOATS[self.width][1]
        return replace(self, stage="fraction") if self.stage == "bits" and bool(np.all(by == lost)) else None

    def with_exponent(self, bits: Array) -> Drawn | None:
        """The float in [1, 2), where these are the bits of 1; or None."""
        one = np.asarray(1.0, _FLOATS[self.width][0]).view(f"uint{self.width}")
        return replace(self, stage="float") if self.stage == "fraction" and bool(np.all(bits == one)) else None

    def as_float(self, dtype: Any) -> Node | None:
        """A node of the floats in [1, 2), where that is what they became; or None."""
        if self.stage != "float" or np.dtype(dtype) != _FLOATS[self.width][0]:
            return None
        name = np.dtype(dtype).name
        return each_key(self.keys, self.key_shape, self.shape, lambda key: key.random_uniform([*self.shape], name)).add(
            self.keys.graph.constant(np.ones((), dtype))
        )


def each_key(keys: Node, key_shape: tuple[int, ...], shape: tuple[int, ...], draw: Any) -> Node:
    """What is drawn of each key: of one by itself, of several by a `map` over them."""
    if not key_shape:
        made: Node = draw(keys)
        return made
    graph = keys.graph
    body = graph.function(lambda inner: draw(inner.input()), "drawn")
    rows = keys if len(key_shape) == 1 else keys.reshape(shape=[int(np.prod(key_shape)), 2])
    found = graph.map(rows, body=body, sequences=1).get_output(0)
    return found if len(key_shape) == 1 else found.reshape(shape=[*key_shape, *shape])


def drawn_of(value: Value) -> Drawn | None:
    """The random bits that a value is, or None."""
    return value.marker if isinstance(value.marker, Drawn) else None


def marked(call: Call, marker: Drawn, node: Node | None = None) -> Value:
    """Result 0 of a call, with a marker, and a node where one gives it."""
    return Value(call.results[0].shape, call.results[0].dtype, node=node, marker=marker)
