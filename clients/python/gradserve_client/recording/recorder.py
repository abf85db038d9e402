"""Recording: the arrays that stand for values while a function runs, and the graph that their operations write.

A function is recorded by calling it once with `Traced` arrays, which have a shape and a dtype but no elements. Each
operation on them appends a node to the graph of their `Recorder` and returns a new `Traced` array. For

    def loss(w, x):
        return xp.mean(xp.square(x @ w))

the graph is `w`, `x`, `matmul`, `square`, `mean`. Python control flow runs during recording only, so the graph holds
the branch that was taken. With guarded values a function may nevertheless read an element, as in `if x[0] > 0`: the
server computes it for the arguments of the recording, and the recorder notes a `Guard`, the node with the outcome. Each
later call requests the guards too. If one differs, its result is discarded and the function is recorded again for this
outcome.

The body of a loop is recorded by a nested recorder, into the graph of a function. An array of the enclosing function
that it uses is captured: the nested recorder adds a parameter for it, and the op passes the array as an operand.
"""

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
#: a Python number, which takes the dtype of the array that it is combined with
Scalar = bool | int | float | complex
#: a callback that computes the value of a node, given the unfinished graph, its leaves, and the node
ReadValue = Callable[[Graph, Sequence[Node], Node], Array]
#: largest integer up to which float64, the dtype in which guards are compared, is exact
_MAX_EXACT_INTEGER: Final = 2**53
_CURRENT: Final[ContextVar[Recorder | None]] = ContextVar("recorder", default=None)


class Traced:
    """An array whose elements only the server will know: a node with its shape and dtype."""

    # Makes NumPy arrays defer to the operators of this class.
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
    def type_name(self) -> str:
        """The dtype and shape, as error messages show them."""
        return f"{self.dtype.name}{list(self.shape)}"

    def become(self, other: Traced) -> None:
        """Stand for another node from now on, as after an assignment to elements.

        Raises RecordingError for an array of the enclosing function, which would not see the change.
        """
        if other.recorder is not self.recorder:
            raise RecordingError(
                f"in place ({users_line()}): {self.type_name} belongs to the enclosing function, which would not see "
                "the change: make it a carry, or return it"
            )
        self.node, self.shape, self.dtype = other.node, other.shape, other.dtype


class Guard(NamedTuple):
    """A value that the function has read: the recording is valid for calls in which it has the same outcome."""

    node: Node
    outcome: float
    line: Line

    def holds(self, value: Array) -> bool:
        """Return whether the value equals the outcome, in every example of a batch."""
        return bool(np.array_equal(value, np.full_like(value, self.outcome), equal_nan=True))


class RecordedGraph(Graph):
    """A graph whose nodes point at the user's line, even if a library in between wrote them."""

    def op(self, op: str, /, *operands: Node | None, name: str | None = None, **attrs: Any) -> Node:
        """Append an op, as `Graph.op` does."""
        return self._append(op, operands, attrs, name, users_line())

    def copy_node(self, node: Node, operands: Sequence[Node]) -> Node:
        """Append a copy of a node of another graph, with operands of this graph and the line of the original."""
        return self._append(node.op, operands, node.attrs, node.name, node.line)


class Captured(NamedTuple):
    """An array of the enclosing function, and the parameter that stands for it in the nested function."""

    outer: Traced
    inner: Traced


class Recorder:
    """The recording of one function. `read_value` computes values, if the function may read any.

    `outer` is the recorder of the enclosing function, if this is the body of an op.
    """

    def __init__(self, array_type: type[Traced], read_value: ReadValue | None, outer: Recorder | None = None) -> None:
        self.graph: RecordedGraph = RecordedGraph(outer=outer.graph.owner if outer else None)
        self.outer = outer
        #: captured arrays, by the ids of their nodes in the enclosing function
        self.captured: dict[int, Captured] = {}
        self.leaves: list[Node] = []
        self.guards: list[Guard] = []
        self._array_type = array_type
        self._read_value = read_value
        #: ids of nodes that do not depend on feeds, and the values of those that are constants
        self._constant_ids: set[int] = set()
        self._constant_values: dict[int, Array] = {}

    def array(self, node: Node, shape: Sequence[int], dtype: DType) -> Traced:
        """Return the array that stands for a node in the function."""
        return self._array_type(self, node, shape, dtype)

    def leaf(self, name: str, shape: Sequence[int], dtype: DType) -> Traced:
        """Append an input for an argument, and return its array. Calls may differentiate with respect to it."""
        node = self.graph.input(name, dtype=dtype, shape=list(shape) or None, zero_d=None if shape else True)
        self.leaves.append(node)
        return self.array(node, shape, dtype)

    def nested(self) -> Recorder:
        """Return a recorder for a nested function. It cannot read values, since they differ from step to step."""
        return Recorder(self._array_type, None, self)

    def parameter(self, dtype: DType, shape: Sequence[int]) -> Traced:
        """Append a parameter, which the op that runs the function passes, and return its array."""
        return self.array(self.graph.input(), shape, dtype)

    def capture(self, array: Traced) -> Traced:
        """Return the array as one of this function: an array of an enclosing function becomes a parameter.

        Raises RecordingError for an array of any other function.
        """
        if array.recorder is self:
            return array
        if self.outer is None:
            raise RecordingError(
                f"{array.type_name} ({users_line()}): belongs to another recorded function, of which only the results "
                "can be used"
            )
        outer = self.outer.capture(array)
        if outer.node.id not in self.captured:
            # A copy: an assignment to elements changes the node that `outer` stands for.
            outer_array = self.outer.array(outer.node, outer.shape, outer.dtype)
            self.captured[outer.node.id] = Captured(outer_array, self.parameter(outer.dtype, outer.shape))
            self._set_constant(self.captured[outer.node.id].inner, self.outer.known(outer))
        return self.captured[outer.node.id].inner

    def emit_several(self, op: str, operands: Sequence[Traced], types: Sequence[Any], /, **attrs: Any) -> list[Traced]:
        """Append an op with several results of the given dtypes and shapes."""
        node = self.graph.op(op, *(self.capture(operand).node for operand in operands), **attrs)
        return [self.array(node.get_output(i), shape, dtype) for i, (dtype, shape) in enumerate(types)]

    def emit(self, op: str, operands: Sequence[Traced], shape: Sequence[int], dtype: DType, /, **attrs: Any) -> Traced:
        """Append an op whose result has the given shape and dtype."""
        operands = [self.capture(operand) for operand in operands]
        node = self.graph.op(op, *(operand.node for operand in operands), **attrs)
        if all(operand.node.id in self._constant_ids for operand in operands):
            self._constant_ids.add(node.id)
        return self.array(node, shape, dtype)

    def constant(self, value: Array) -> Traced:
        """Append a constant. Raises InputError for an unsupported dtype."""
        dtype_name(value.dtype)
        array = self.emit("constant", (), value.shape, value.dtype, value=value)
        self._set_constant(array, value)
        return array

    def _set_constant(self, array: Traced, value: Array | None) -> None:
        """Remember the elements of a constant; do nothing if they are None."""
        if value is not None:
            self._constant_ids.add(array.node.id)
            self._constant_values[array.node.id] = value

    def known(self, array: Traced) -> Array | None:
        """Return the elements of a constant; None for any other array."""
        return self._constant_values.get(array.node.id)

    def value(self, array: Traced, reader: str) -> float | int | bool:
        """Return the only element. If it depends on the arguments, it is guarded from now on.

        `reader` names the operation in messages. Raises RecordingError if the function may not read values, and if
        there is not exactly one element.
        """
        if array.size != 1:
            raise RecordingError(f"{reader} ({users_line()}): {array.type_name} has {array.size} elements, not one")
        known = self.known(array)
        if known is None:
            known = self._read(array, reader)
        value: float | int | bool = known.reshape(()).item()
        return value

    def _read(self, array: Traced, reader: str) -> Array:
        line = users_line()
        if self._read_value is None:
            guarded = "" if self.outer else ', or record with values="guarded"'
            raise RecordingError(
                f"{reader} ({line}): a recorded array has no value yet; choose with where() or gs.cond(), loop with "
                f"gs.while_loop() or gs.scan(){guarded}"
            )
        guard_node = self._guard_node(array)
        value = self._read_value(self.graph, self.leaves, guard_node)
        if array.dtype.kind in "iu" and abs(float(value)) > _MAX_EXACT_INTEGER:
            raise RecordingError(f"{reader} ({line}): integers beyond 2⁵³ cannot be read exactly")
        if array.node.id not in self._constant_ids:
            self.guards.append(Guard(guard_node, float(value), line))
        return value.astype(array.dtype)

    def _guard_node(self, array: Traced) -> Node:
        """Return a node with the value as a float64 without derivatives, which every call accepts as an output."""
        node = array.node if array.ndim == 0 else array.node.reshape(shape=[])
        return node.cast("float64").stop_gradient()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Make this the current recorder, which functions without an array argument append to."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)


def current() -> Recorder:
    """Return the current recorder. Raises InputError if no function is being recorded."""
    recorder = _CURRENT.get()
    if recorder is None:
        raise InputError("recorded arrays exist only while a function is recorded: call this inside the function")
    return recorder
