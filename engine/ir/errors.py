"""Errors: everything that can be wrong with a graph, in the form that the client reads.

    EngineError
    ├── UnknownOp            unknown_op
    ├── BadReference         bad_reference
    ├── OperandCount         operand_count
    ├── BadAttribute         bad_attribute
    ├── ShapeMismatch        shape_mismatch
    ├── DtypeMismatch        dtype_mismatch
    ├── IndexOutOfRange      index_out_of_range
    ├── MissingFeed          missing_feed
    ├── UnexpectedFeed       unexpected_feed
    ├── NonScalarOutput      non_scalar_output
    ├── NotDifferentiable    not_differentiable
    ├── InvalidField         invalid_field
    ├── OverBudget           over_budget
    │   ├── OverMemory
    │   └── TooManyNodes     too_many_nodes
    ├── DeadlineExceeded     deadline_exceeded
    └── DeadlineTooNear

An op raises an error without a location; `EngineError.at` adds the node once, while the error propagates. Messages
never contain elements of a tensor.
"""

from __future__ import annotations

from types import TracebackType
from typing import ClassVar, Final, Self

#: maximum number of errors in one response
MOST_FAULTS: Final = 10


def printable(text: str, limit: int = 64) -> str:
    """Return `text` cut to `limit` characters, with control characters replaced by `?`: safe to show anywhere."""
    clean = "".join(c if c.isprintable() else "?" for c in text[: limit + 1])
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """Return a number with its noun: “1 axis”, “2 axes”. `plural` defaults to the singular with an s."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


class EngineError(Exception):
    """Reason why a graph cannot be run.

    `detail` is one sentence for a person. `node`, `operand` (zero-based) and `attribute` locate the error in the
    client's own numbering. `expected` and `got` repeat the two sides for programs. If the error is inside a function,
    `function` and `function_node` locate it, and `node` is the node of the graph that calls the function, if there is
    one. `field` and `named_node` are those of `in_field`. `others` are further errors of the same graph that are not
    consequences of this one.
    """

    code: ClassVar[str] = "invalid_field"

    def __init__(
        self,
        detail: str,
        *,
        node: int | None = None,
        operand: int | None = None,
        attribute: str | None = None,
        expected: str | None = None,
        got: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.node = node
        self.operand = operand
        self.attribute = attribute
        self.expected = expected
        self.got = got
        self.function: int | None = None
        self.function_node: int | None = None
        self.field: tuple[str | int, ...] = ()
        self.named_node: int | None = None
        self.others: tuple[EngineError, ...] = ()

    def __str__(self) -> str:
        return self.detail

    def at(self, node: int, op: str, label: str | None = None) -> Self:
        """Prefix the message with the node, unless it is already located; likewise for `others`. Returns the error."""
        for other in self.others:
            other.at(node, op, label)
        if self.node is None:
            self.node = node
            self.detail = f"{_location(node, op, label)}: {self.detail}"
        return self

    def within(self, function: int, node: int, op: str, label: str | None = None) -> Self:
        """Prefix the message with a node of a function; likewise for `others`. Returns the error.

        For nested functions, `function` is the innermost one; the message names all of them.
        """
        for other in self.others:
            other.within(function, node, op, label)
        if self.node is None:
            if self.function is None:
                self.function, self.function_node = function, node
            self.detail = f"function {function}, {_location(node, op, label)}: {self.detail}"
        return self

    def at_function(self, function: int) -> Self:
        """Locate the error at a function as a whole. Returns the error."""
        if self.function is None:
            self.function = function
        return self

    def in_field(self, *keys: str | int, node: int | None = None) -> Self:
        """Locate the error in the field of the call, or of `function`, to which `keys` lead. Returns the error.

        With `node`, the error is in the field's entry that names this node, if the client stated one.
        """
        self.field, self.named_node = keys, node
        return self


def _location(node: int, op: str, label: str | None) -> str:
    name = f" “{printable(label)}”" if label else ""
    return f"node {node} ({op}{name})"


class UnknownOp(EngineError):
    """No op has this name or alias."""

    code = "unknown_op"


class BadReference(EngineError):
    """An operand, `of`, `wrt` or output does not name a usable node."""

    code = "bad_reference"


class OperandCount(EngineError):
    """Too few or too many operands."""

    code = "operand_count"


class BadAttribute(EngineError):
    """An attribute is unknown, missing, of the wrong type or out of range."""

    code = "bad_attribute"

    def __init__(self, detail: str, *, attribute: str, expected: str | None = None, got: str | None = None) -> None:
        super().__init__(detail, attribute=attribute, expected=expected, got=got)


class ShapeMismatch(EngineError):
    """Operand shapes do not fit the op or one another."""

    code = "shape_mismatch"


class DtypeMismatch(EngineError):
    """The op does not support an operand's dtype."""

    code = "dtype_mismatch"


class IndexOutOfRange(EngineError):
    """An index tensor has an entry outside its axis; detected at run time, before the kernel."""

    code = "index_out_of_range"


class MissingFeed(EngineError):
    """The results need a leaf that the request does not feed."""

    code = "missing_feed"


class UnexpectedFeed(EngineError):
    """A feed for a node that takes none, or does not exist."""

    code = "unexpected_feed"


class NonScalarOutput(EngineError):
    """A gradient of a tensor with several elements was requested without a cotangent."""

    code = "non_scalar_output"


class NotDifferentiable(EngineError):
    """A derivative of, or with respect to, a dtype without derivatives; or a tangent through a nonlinear map."""

    code = "not_differentiable"


class InvalidField(EngineError):
    """A request field contradicts the graph, for example a node listed twice in `wrt`."""

    code = "invalid_field"


class OverBudget(EngineError):
    """The graph exceeds the limit on bytes, FLOPs or axes. Detected before anything is allocated."""

    code = "over_budget"


class OverMemory(OverBudget):
    """The graph exceeds the memory limit. It may still fit if some values are recomputed instead of stored.

    `peak` is the total memory it needs, if known.
    """

    peak: int | None = None


class TooManyNodes(OverBudget):
    """The graph has too many nodes, including those of its gradients."""

    code = "too_many_nodes"


class DeadlineExceeded(EngineError):
    """The request's time is up; checked while planning and between steps."""

    code = "deadline_exceeded"

    def at(self, node: int, op: str, label: str | None = None) -> Self:
        """Return the error as it is: the node that happened to be running is no cause."""
        return self

    def within(self, function: int, node: int, op: str, label: str | None = None) -> Self:
        """Return the error as it is, as `at` does."""
        return self


class DeadlineTooNear(EngineError):
    """A node's uninterruptible work takes longer than the request's remaining time."""

    code = "deadline_exceeded"


class Faults:
    """Collector for errors of independent parts: `with faults:` around each part, then `report()`.

    `with faults.at(node, op, label):` locates errors inside the block, as `EngineError.at` does, or within a function
    as `EngineError.within` does.

    The first error is raised with the others attached: by `report`, or at once after MOST_FAULTS, or when a budget is
    exceeded, since further checks are pointless then. An exceeded budget is not a fault of the graph: it is raised only
    if it comes first.
    """

    __slots__ = ("_function", "_where", "errors")

    def __init__(self, function: int | None = None) -> None:
        """Start without errors. `function` is the index of the function whose nodes are checked; None for the graph."""
        self._function = function
        self.errors: list[EngineError] = []
        self._where: tuple[int, str, str | None] | None = None

    def at(self, node: int, op: str, label: str | None = None) -> Self:
        """Locate errors inside the next `with` block."""
        self._where = (node, op, label)
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> bool:
        """Collect an EngineError and suppress it; let other exceptions propagate."""
        location, self._where = self._where, None
        if not isinstance(error, EngineError):
            return False
        if location and self._function is None:
            error.at(*location)
        elif location and self._function is not None:
            error.within(self._function, *location)
        if isinstance(error, OverBudget | DeadlineExceeded):
            self.report()
            return False
        self.errors += (error, *error.others)
        error.others = ()
        if len(self.errors) >= MOST_FAULTS:
            self.report()
        return True

    def report(self) -> None:
        """Raise the first error, if there is one, with the others attached."""
        if not self.errors:
            return
        first, *others = self.errors[:MOST_FAULTS]
        first.others = tuple(other.with_traceback(None) for other in others)
        self.errors.clear()
        try:
            raise first from None
        finally:
            del first, others  # break the cycle error → traceback → frame → error, which would keep tensors alive
