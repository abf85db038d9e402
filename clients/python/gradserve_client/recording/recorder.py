"""A graph as a function writes it, with the looks that it takes at values on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.graph import Graph, Line, Node
from gradserve_client.recording.lines import RecordingError, users_line
from gradserve_client.tensors import Array, dtype_name

DType = np.dtype[Any]
Shape = tuple[int, ...]
#: a number of Python's, which takes the dtype of the array that it meets
Scalar = bool | int | float | complex
#: gives the value of a node of a graph that is being written, whose leaves are these
Look = Callable[[Graph, Sequence[Node], Node], Array]
#: whole numbers up to which float64, in which guards are compared, tells neighbours apart
_EXACT: Final = 2**53
_CURRENT: Final[ContextVar[Recorder | None]] = ContextVar("recorder", default=None)


class Traced:
    """An array of which the server will know the elements."""

    # NumPy leaves operators with its arrays to this class.
    __array_ufunc__ = None

    def __init__(self, recorder: Recorder, node: Node, shape: Sequence[int], dtype: DType) -> None:
        self.recorder = recorder
        self.node = node
        self.shape: Shape = tuple(map(int, shape))
        self.dtype = dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def told(self) -> str:
        """Dtype and shape, as messages have them."""
        return f"{self.dtype.name}{list(self.shape)}"

    def become(self, other: Traced) -> None:
        """Stand for another node from now on, as after an assignment to elements.

        Raises RecordingError for an array of the function around, which is not this one's to change.
        """
        if other.recorder is not self.recorder:
            raise RecordingError(
                f"in place ({users_line()}): {self.told} is of the function around this one, which would not see that "
                "it is another: make it a carry, or give it back"
            )
        self.node, self.shape, self.dtype = other.node, other.shape, other.dtype


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

    def again(self, node: Node, operands: Sequence[Node]) -> Node:
        """A node of another graph on operands of this one, as from the line that wrote it."""
        return self._append(node.op, operands, node.attrs, node.name, node.line)


class Captured(NamedTuple):
    """An array of the function around, and what stands for it in the one that is passed it."""

    outer: Traced
    own: Traced


class Recorder:
    """What is being recorded. `look` gives values, where the function may ask for any.

    `outer` is the recording of the function around, where it is one for an op to run.
    """

    def __init__(self, array_type: type[Traced], look: Look | None, outer: Recorder | None = None) -> None:
        self.graph: RecordedGraph = RecordedGraph(outer=outer.graph.owner if outer else None)
        self.outer = outer
        #: what is read of the function around, by the ids of its nodes there
        self.captured: dict[int, Captured] = {}
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

    def inner(self) -> Recorder:
        """For a function within this one. It may not look at values: they differ from step to step."""
        return Recorder(self._array_type, None, self)

    def parameter(self, dtype: DType, shape: Sequence[int]) -> Traced:
        """What a function is given by the op that runs it."""
        return self.array(self.graph.input(), shape, dtype)

    def own(self, array: Traced) -> Traced:
        """An array as it is here: what is of the function around is passed to this one.

        Raises RecordingError for what is neither.
        """
        if array.recorder is self:
            return array
        if self.outer is None:
            raise RecordingError(
                f"{array.told} ({users_line()}): is of another function that is recorded, of which only what it gives "
                "back is seen"
            )
        outer = self.outer.own(array)
        if outer.node.id not in self.captured:
            kept = self.outer.array(outer.node, outer.shape, outer.dtype)
            self.captured[outer.node.id] = Captured(kept, self.parameter(outer.dtype, outer.shape))
            self._know(self.captured[outer.node.id].own, self.outer.known(outer))
        return self.captured[outer.node.id].own

    def several(self, op: str, operands: Sequence[Traced], types: Sequence[Any], /, **attrs: Any) -> list[Traced]:
        """An op of several results, of which dtypes and shapes are known."""
        node = self.graph.op(op, *(self.own(operand).node for operand in operands), **attrs)
        return [self.array(node.get_output(i), shape, dtype) for i, (dtype, shape) in enumerate(types)]

    def emit(self, op: str, operands: Sequence[Traced], shape: Sequence[int], dtype: DType, /, **attrs: Any) -> Traced:
        """An op, of whose result shape and dtype are known."""
        operands = [self.own(operand) for operand in operands]
        node = self.graph.op(op, *(operand.node for operand in operands), **attrs)
        if all(operand.node.id in self._fixed for operand in operands):
            self._fixed.add(node.id)
        return self.array(node, shape, dtype)

    def constant(self, value: Array) -> Traced:
        """A tensor that is part of the graph."""
        dtype_name(value.dtype)
        made = self.emit("constant", (), value.shape, value.dtype, value=value)
        self._know(made, value)
        return made

    def _know(self, array: Traced, value: Array | None) -> None:
        """Keep what the elements are, if that is known."""
        if value is not None:
            self._fixed.add(array.node.id)
            self._constants[array.node.id] = value

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
            guarded = "" if self.outer else ', or record with values="guarded"'
            raise RecordingError(
                f"{asked} ({line}): a recorded array has no value yet; choose with where() or gs.cond(), loop with "
                f"gs.while_loop() or gs.scan(){guarded}"
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
