"""Collection of errors, so that one answer names all that is wrong."""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

from engine.graph.errors import DeadlineExceeded, EngineError, OverBudget

#: errors in one answer
MOST_FAULTS: Final = 10


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
