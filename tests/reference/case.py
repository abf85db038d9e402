"""One use of one op, with its value and gradients from an independent float64 computation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine import registry
from tests.reference.client import Array, Graph, complex_step

#: writes the case into a graph under a spelling of its op: (leaves, outputs)
Writer = Callable[[Graph, "Case", str], tuple[list[int], list[int]]]


@dataclass(frozen=True)
class Case:
    """`value(*arrays, **attrs)` gives the result, or a tuple if there are several.

    `pull(g, *arrays, **attrs)` gives the gradients of sum(g · value), one per operand, None if there is none. Without
    it they are complex steps of `value`, which must then take complex arrays and be analytic.
    """

    op: str
    arrays: tuple[Array, ...]
    attrs: Mapping[str, Any]
    value: Callable[..., Any]
    pull: Callable[..., Sequence[Any]] | None = None
    label: str = ""
    write: Writer | None = None

    def __str__(self) -> str:
        shapes = ",".join(f"{a.dtype.char}{list(a.shape)}" for a in self.arrays)
        stated = "".join(f",{k}={v if not isinstance(v, np.ndarray) else v.shape}" for k, v in self.attrs.items())
        return f"{self.op}({shapes}{stated}){self.label}".replace(" ", "")

    def written(self, graph: Graph, spelling: str) -> tuple[list[int], list[int]]:
        """The leaves and the outputs of this case in a graph."""
        return (self.write or write_op)(graph, self, spelling)

    def values(self) -> tuple[Array, ...]:
        """The expected outputs."""
        with np.errstate(all="ignore"):
            result = self.value(*self.arrays, **self.attrs)
        return tuple(np.asarray(y) for y in (result if isinstance(result, tuple) else (result,)))

    def gradients(self, output: int, g: Array) -> list[Array]:
        """The expected gradients with respect to the float operands, for the cotangent `g` of one output."""
        floats = [i for i, a in enumerate(self.arrays) if a.dtype.kind == "f"]
        with np.errstate(all="ignore"):
            if self.pull is not None:
                pulled = self.pull(g, *self.arrays, **self.attrs)
                return [np.broadcast_to(np.asarray(pulled[i], float), self.arrays[i].shape) for i in floats]
            return [complex_step(lambda *xs: np.sum(self._output(output, xs) * g), self.arrays, i) for i in floats]

    def _output(self, output: int, xs: Sequence[Any]) -> Any:
        result = self.value(*xs, **self.attrs)
        return result[output] if isinstance(result, tuple) else result


def case(op: str, value: Callable[..., Any], /, *arrays: Any, pull: Any = None, label: str = "", **attrs: Any) -> Case:
    """A case; lists stand for float arrays."""
    return Case(op, tuple(np.asarray(a) for a in arrays), attrs, value, pull, label)


def write_op(graph: Graph, which: Case, spelling: str) -> tuple[list[int], list[int]]:
    """Write leaves, the op, and a projection for each of several outputs."""
    leaves = [graph.leaf(a, "parameter" if a.dtype.kind == "f" else "input") for a in which.arrays]
    node = graph.add(spelling, *leaves, **which.attrs)
    if not registry().ops[which.op].several:
        return leaves, [node]
    return leaves, [graph.add("get_output", node, index=k) for k in range(len(which.values()))]


RNG = np.random.default_rng(1)


def draw(*shape: int, low: float = -2.0, high: float = 2.0) -> Array:
    """Random floats."""
    return np.asarray(RNG.uniform(low, high, shape))


def unbroadcast(g: Array, shape: Sequence[int]) -> Array:
    """Sum g down to a shape that was broadcast to g's."""
    g = np.sum(g, axis=tuple(range(np.ndim(g) - len(shape))))
    return np.sum(g, axis=tuple(i for i, e in enumerate(shape) if e == 1), keepdims=True)
