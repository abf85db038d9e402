"""The graph that the examples of all calls share: a mean of squares."""

from __future__ import annotations

from typing import Final

from service.calls.description import Json


def feed(shape: list[int], data: list[float], node: int = 0, dtype: str = "float64") -> Json:
    """A tensor for a node."""
    return {"node": node, "tensor": {"dtype": dtype, "shape": shape, "data": data}}


W: Final[Json] = {"op": "parameter", "name": "w"}
NODES: Final[list[Json]] = [W, {"op": "square", "operands": [0]}, {"op": "mean", "operands": [1]}]
#: with a value of w, and with its type alone
MEAN: Final[Json] = {"graph": {"nodes": NODES}, "feeds": [feed([2], [1.5, -2.0])]}
TYPED: Final[Json] = {"graph": {"nodes": NODES}, "types": [{"node": 0, "dtype": "float64", "shape": [2]}]}
