"""Errors: all that can be wrong with a graph, as the client will read it.

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

An op raises the sentence without saying where; `EngineError.at` adds the node once, on the way out.
No message ever contains an element of a tensor.
"""

from __future__ import annotations

from types import TracebackType
from typing import ClassVar, Final, Self

#: errors in one answer
MOST_FAULTS: Final = 10


def printable(text: str, limit: int = 64) -> str:
    """`text` with control characters replaced by `?` and cut to `limit` characters: safe to show anywhere."""
    clean = "".join(c if c.isprintable() else "?" for c in text[: limit + 1])
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def counted(count: int, one: str, many: str | None = None) -> str:
    """“1 axis”, “2 axes”: a number with its noun; `many` is the noun with an s unless it is given."""
    return f"{count} {one if count == 1 else many or one + 's'}"


class EngineError(Exception):
    """A graph that cannot be run, and why.

    `detail` is one sentence for a person; `node` and `operand` (zero-based) say where, in the client's own
    numbering; `expected` and `got` repeat the two sides for programs. Inside a function, `node` is the node of the
    graph that uses it, where one does, and `function` and `function_node` say where exactly. `others` are further
    errors of the same graph, which do not follow from this one.
    """

    code: ClassVar[str] = "invalid_field"

    def __init__(
        self,
        detail: str,
        *,
        node: int | None = None,
        operand: int | None = None,
        expected: str | None = None,
        got: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.node = node
        self.operand = operand
        self.expected = expected
        self.got = got
        self.function: int | None = None
        self.function_node: int | None = None
        self.others: tuple[EngineError, ...] = ()

    def __str__(self) -> str:
        return self.detail

    def at(self, node: int, op: str, label: str | None = None) -> Self:
        """The same error, its sentence opened with the node it happened at (kept if already known); so the others."""
        for other in self.others:
            other.at(node, op, label)
        if self.node is None:
            self.node = node
            self.detail = f"{_place(node, op, label)}: {self.detail}"
        return self

    def within(self, function: int, node: int, op: str, label: str | None = None) -> Self:
        """The same error, its sentence opened with the node of a function that it happened at; so the others.

        Of functions within functions, the innermost is kept in `function`; the sentence has all of them.
        """
        for other in self.others:
            other.within(function, node, op, label)
        if self.node is None:
            if self.function is None:
                self.function, self.function_node = function, node
            self.detail = f"function {function}, {_place(node, op, label)}: {self.detail}"
        return self

    def of_function(self, function: int) -> Self:
        """The same error, about a function as a whole."""
        if self.function is None:
            self.function = function
        return self


def _place(node: int, op: str, label: str | None) -> str:
    name = f" “{printable(label)}”" if label else ""
    return f"node {node} ({op}{name})"


class UnknownOp(EngineError):
    """No op has this name or alias."""

    code = "unknown_op"


class BadReference(EngineError):
    """An operand, `of`, `wrt` or output that names no usable node."""

    code = "bad_reference"


class OperandCount(EngineError):
    """Too few or too many operands."""

    code = "operand_count"


class BadAttribute(EngineError):
    """An attribute that is unknown, missing, of the wrong type or out of its range."""

    code = "bad_attribute"


class ShapeMismatch(EngineError):
    """Operand shapes that do not fit the op or one another."""

    code = "shape_mismatch"


class DtypeMismatch(EngineError):
    """An operand dtype that the op does not take."""

    code = "dtype_mismatch"


class IndexOutOfRange(EngineError):
    """An index tensor with an entry outside its axis; found while running, before the kernel."""

    code = "index_out_of_range"


class MissingFeed(EngineError):
    """A leaf that the answer needs and the request does not feed."""

    code = "missing_feed"


class UnexpectedFeed(EngineError):
    """A feed for a node that takes none, or that does not exist."""

    code = "unexpected_feed"


class NonScalarOutput(EngineError):
    """A gradient of a tensor of several elements, asked for without a cotangent."""

    code = "non_scalar_output"


class NotDifferentiable(EngineError):
    """A derivative of, or with respect to, something that is not float; a tangent through what is not linear."""

    code = "not_differentiable"


class InvalidField(EngineError):
    """A request field that contradicts the graph (a node listed twice in `wrt`, say)."""

    code = "invalid_field"


class OverBudget(EngineError):
    """More bytes, FLOPs or axes than the server's limits allow; decided before anything is allocated."""

    code = "over_budget"


class OverMemory(OverBudget):
    """More bytes than there may be: fewer may do, where some of what is kept is computed once more.

    `peak` is what it would take in all, where that is known.
    """

    peak: int | None = None


class TooManyNodes(OverBudget):
    """More nodes than the limit, after gradients have been written out."""

    code = "too_many_nodes"


class DeadlineExceeded(EngineError):
    """The request's time is up; looked at while planning and between steps."""

    code = "deadline_exceeded"

    def at(self, node: int, op: str, label: str | None = None) -> Self:
        """Return the error as it is: the node at hand when the time was up is no more to blame than any other."""
        return self

    def within(self, function: int, node: int, op: str, label: str | None = None) -> Self:
        """Return the error as it is, as `at` does."""
        return self


class DeadlineTooNear(EngineError):
    """A node's work at one go, which nothing interrupts, takes longer than the time that the request has left."""

    code = "deadline_exceeded"


class Faults:
    """Collection of the errors of parts that do not depend on one another: `with faults:` around each, then `report()`.

    `with faults.at(node, op, label):` says where what is found there happened, as `EngineError.at` does; or, of the
    nodes of a function, as `EngineError.within`.

    The first found is raised with the others attached: by `report`, or at once when there are MOST_FAULTS, or when a
    budget is spent, since nothing is worth looking at after that. A spent budget is no fault of the graph: it is
    raised only when it comes first.
    """

    __slots__ = ("_function", "_where", "found")

    def __init__(self, function: int | None = None) -> None:
        """`function` is the index of the function whose nodes are looked at; None: those of the graph."""
        self._function = function
        self.found: list[EngineError] = []
        self._where: tuple[int, str, str | None] | None = None

    def at(self, node: int, op: str, label: str | None = None) -> Self:
        """Name the place of errors inside the next `with`."""
        self._where = (node, op, label)
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> bool:
        """Keep the error, if it is an EngineError, and go on."""
        where, self._where = self._where, None
        if not isinstance(error, EngineError):
            return False
        if where and self._function is None:
            error.at(*where)
        elif where and self._function is not None:
            error.within(self._function, *where)
        if isinstance(error, OverBudget | DeadlineExceeded):
            self.report()
            return False
        self.found += (error, *error.others)
        error.others = ()
        if len(self.found) >= MOST_FAULTS:
            self.report()
        return True

    def report(self) -> None:
        """Raise the first error, if there is any."""
        if not self.found:
            return
        first, *others = self.found[:MOST_FAULTS]
        first.others = tuple(other.with_traceback(None) for other in others)
        self.found.clear()
        try:
            raise first from None
        finally:
            del first, others  # a frame that holds its own error would keep its callers' tensors until a collection
