"""A graph as a function writes it, with the looks that it takes at values on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.graph import Graph, Line, Node
from gradserve_client.recording.lines import RecordingError, users_line
from gradserve_client.recording.traced import DType, Traced
from gradserve_client.tensors import Array, dtype_name

#: gives the value of a node of a graph that is being written, whose leaves are these
Look = Callable[[Graph, Sequence[Node], Node], Array]
#: whole numbers up to which float64, in which guards are compared, tells neighbours apart
_EXACT: Final = 2**53
_CURRENT: Final[ContextVar[Recorder | None]] = ContextVar("recorder", default=None)


class Guard(NamedTuple):
    """A value that the function has looked at: what is recorded holds where it comes out so again."""

    node: Node
    outcome: float
    line: Line

    def holds(self, value: Array) -> bool:
        """Whether it came out so, in all examples of a batch."""
        return bool(np.array_equal(value, np.full_like(value, self.outcome), equal_nan=True))


class RecordedGraph(Graph):
    """A graph whose nodes name the user's line, not that of a library between."""

    def op(self, op: str, /, *operands: Node | None, name: str | None = None, **attrs: Any) -> Node:
        """As of every graph."""
        return self._append(op, operands, attrs, name, users_line())


class Recorder:
    """What is being recorded. `look` gives values, where the function may ask for any."""

    def __init__(self, array_type: type[Traced], look: Look | None) -> None:
        self.graph = RecordedGraph()
        self.leaves: list[Node] = []
        self.guards: list[Guard] = []
        self._array_type = array_type
        self._look = look
        #: nodes that are the same whatever is fed, and of these the values that are known here
        self._fixed: set[int] = set()
        self._constants: dict[int, Array] = {}

    def array(self, node: Node, shape: Sequence[int], dtype: DType) -> Traced:
        """A node as the function sees it."""
        return self._array_type(self, node, shape, dtype)

    def leaf(self, name: str, shape: Sequence[int], dtype: DType) -> Traced:
        """An argument: an input, by which one differentiates where a call names it."""
        node = self.graph.input(name, dtype=dtype, shape=list(shape) or None, zero_d=None if shape else True)
        self.leaves.append(node)
        return self.array(node, shape, dtype)

    def emit(self, op: str, operands: Sequence[Traced], shape: Sequence[int], dtype: DType, /, **attrs: Any) -> Traced:
        """An op, of whose result shape and dtype are known."""
        node = self.graph.op(op, *(operand.node for operand in operands), **attrs)
        if all(operand.node.id in self._fixed for operand in operands):
            self._fixed.add(node.id)
        return self.array(node, shape, dtype)

    def constant(self, value: Array) -> Traced:
        """A tensor that is part of the graph."""
        dtype_name(value.dtype)
        made = self.emit("constant", (), value.shape, value.dtype, value=value)
        self._constants[made.node.id] = value
        return made

    def known(self, array: Traced) -> Array | None:
        """The elements of a constant; None where they depend on something."""
        return self._constants.get(array.node.id)

    def value(self, array: Traced, asked: str) -> float | int | bool:
        """The only element, which is guarded from now on unless it is always the same.

        Raises RecordingError where the function may not look, and where there is not one element.
        """
        if array.size != 1:
            raise RecordingError(f"{asked} ({users_line()}): {array.told} has {array.size} elements, and not one")
        known = self.known(array)
        if known is None:
            known = self._looked_at(array, asked)
        value: float | int | bool = known.reshape(()).item()
        return value

    def _looked_at(self, array: Traced, asked: str) -> Array:
        line = users_line()
        if self._look is None:
            raise RecordingError(
                f"{asked} ({line}): a recorded array has no value yet; choose between values with where(), or record "
                'with values="guarded"'
            )
        guard = self._comparable(array)
        value = self._look(self.graph, self.leaves, guard)
        if array.dtype.kind in "iu" and abs(float(value)) > _EXACT:
            raise RecordingError(f"{asked} ({line}): whole numbers beyond 2⁵³ cannot be looked at")
        if array.node.id not in self._fixed:
            self.guards.append(Guard(guard, float(value), line))
        return value.astype(array.dtype)

    def _comparable(self, array: Traced) -> Node:
        """The value as a float64 without derivatives, which every call takes as an output."""
        node = array.node if array.ndim == 0 else array.node.reshape(shape=[])
        return node.cast("float64").stop_gradient()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Within, what has no array to say where it belongs belongs here."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)


def current() -> Recorder:
    """What is being recorded now. Raises InputError where nothing is."""
    recorder = _CURRENT.get()
    if recorder is None:
        raise InputError("there are recorded arrays only while a function is recorded: call this inside of it")
    return recorder
