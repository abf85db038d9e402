"""Limits of one request: budgets that are compared before anything is allocated, and its time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from engine.ir.errors import DeadlineExceeded, DeadlineTooNear, OverBudget, OverMemory, TooManyNodes, counted
from engine.ir.run_report import IEEE, UNCOMPILED, Precision, RunReport, RunTier, coarsest
from engine.ir.tensor_type import TensorType

_Error = TypeVar("_Error", bound=OverBudget)

#: of nodes, axes, bytes or FLOPs: more than any graph comes to
NO_END: Final = 1 << 200
#: nodes that any graph may come to with those of its gradients: ten derivatives of one another, of some functions
FREE_NODES: Final = 30_000


@dataclass(frozen=True)
class Limits:
    """Budgets of one request. `bytes` bounds the peak of an execution, `flops` its arithmetic.

    `nodes` bounds a graph with the nodes of its gradients and functions; `expansion` how many of these there may be for
    each node that was sent, beyond `FREE_NODES`. `depth` bounds functions that run within functions. `keeps`: loops
    keep for their way back what is dear to compute again.
    """

    nodes: int = 100_000
    rank: int = 32
    bytes: int = 4 << 30
    flops: int = 10**12
    expansion: int = NO_END
    depth: int = 16
    keeps: bool = True

    def of_graph(self, sent: int) -> Limits:
        """Return the budgets of a graph of which the client sent `sent` nodes.

        Gradients of gradients may multiply with each level. Nodes of gradients are counted while they are written, so
        the time and the memory of a refusal are in proportion to this.
        """
        return replace(self, nodes=min(self.nodes, FREE_NODES + self.expansion * sent))

    def within(self, memory: int | None) -> Limits:
        """Return these limits, with at most `memory` bytes if that is given."""
        return self if memory is None else replace(self, bytes=min(memory, self.bytes))

    def admit_nodes(self, count: int) -> None:
        """Raise TooManyNodes when `count` nodes are over the limit."""
        if count > self.nodes:
            raise TooManyNodes(
                f"the graph, with the nodes of its gradients, has more than {counted(self.nodes, 'node')}",
                expected=f"at most {counted(self.nodes, 'node')}",
                got=f"at least {counted(count, 'node')}",
            )

    def admit_rank(self, rank: int) -> None:
        """Raise OverBudget when a tensor has more axes than it may.

        Check it before a `TensorType` is made of a stated shape: the product of many large extents takes minutes.
        """
        if rank > self.rank:
            most = counted(self.rank, "axis", "axes")
            raise OverBudget(
                f"a tensor may have at most {most}, but this one has {rank}",
                expected=f"at most {most}",
                got=counted(rank, "axis", "axes"),
            )

    def admit_type(self, type: TensorType) -> None:
        """Raise OverBudget when one tensor alone is over the rank or byte limit."""
        self.admit_rank(type.ndim)
        if type.span > self.bytes:
            self.admit_bytes(type.span)

    def admit_bytes(self, count: int) -> None:
        """Raise OverMemory when `count` bytes are over the limit."""
        if count > self.bytes:
            raise _refusal(count, self.bytes, "byte", OverMemory)

    def admit_peak(self, count: int) -> None:
        """Raise OverMemory when an execution of `count` bytes at its peak is over the limit."""
        if count > self.bytes:
            error = _refusal(count, self.bytes, "byte", OverMemory)
            error.peak = count
            raise error

    def admit_flops(self, count: int) -> None:
        """Raise OverBudget when `count` floating-point operations are over the limit."""
        if count > self.flops:
            raise _refusal(count, self.flops, "FLOP", OverBudget)

    def admit_depth(self, depth: int) -> None:
        """Raise OverBudget when functions run within functions at more levels than may be."""
        if depth > self.depth:
            most, got = counted(self.depth, "level"), counted(depth, "level")
            raise OverBudget(
                f"functions run within functions at {got}, and the limit is {self.depth}",
                expected=f"at most {most}",
                got=got,
            )


def _refusal(count: int, limit: int, unit: str, error: type[_Error]) -> _Error:
    amount, most = counted(count, unit) if count < 10**30 else f"over 10^30 {unit}s", counted(limit, unit)
    return error(f"this needs {amount}, and the limit is {most}", expected=f"at most {most}", got=amount)


class Deadline:
    """A moment on the monotonic clock after which work on a request stops; or before it, when nobody wants it.

    `turned` is when the last run on it, by prebound calls, began its way back; None where it has none. `tier` says how
    much of that run was done by compiled kernels, and `precision` how exactly its products and convolutions read
    float32.
    """

    __slots__ = ("at", "precision", "seconds", "stop", "tier", "turned")

    def __init__(self, seconds: float | None = None, start: float | None = None, stop: Sequence[int] = b"\0") -> None:
        """`seconds` from `start` on the monotonic clock, by default from now; None never passes.

        The first byte of `stop`, which may be memory of another process's, ends it too.
        """
        self.seconds = seconds
        self.stop = stop
        self.turned: float | None = None
        self.tier: RunTier = UNCOMPILED
        self.precision: Precision = IEEE
        begun = time.monotonic() if start is None else start
        self.at = float("inf") if seconds is None else begun + seconds

    def turn(self) -> None:
        """Note that the way back begins."""
        if self.seconds is not None:  # the deadline of all that have none says nothing of any run
            self.turned = time.monotonic()

    @property
    def report(self) -> RunReport:
        """Report of the last run on it."""
        return RunReport(self.tier, self.precision)

    def ran(self, tier: RunTier) -> None:
        """Begin the report of a run of this tier: nothing is multiplied yet."""
        if self.seconds is not None:
            self.tier, self.precision = tier, IEEE

    def multiplied(self, precision: Precision) -> None:
        """Note how a product or a convolution of this run has read float32 operands: the coarsest is what counts."""
        if self.seconds is not None:
            self.precision = coarsest(self.precision, precision)

    def check(self) -> None:
        """Raise DeadlineExceeded once the moment has passed, or the work is stopped."""
        if self.stop[0]:
            raise DeadlineExceeded("nobody waits for the answer any more")
        if time.monotonic() > self.at:
            raise DeadlineExceeded(f"the request was not finished within its {self.seconds:g} s")

    def admit(self, seconds: float) -> None:
        """Raise DeadlineTooNear where work of so many seconds, which nothing interrupts, would end too late.

        Raises DeadlineExceeded where it is too late already.
        """
        left = self.at - time.monotonic()
        if seconds > left:
            self.check()
            raise DeadlineTooNear(
                f"this takes some {seconds:.2g} s in one piece, and {left:.2g} s are left of the request's"
                f" {self.seconds:g} s",
                expected=f"at most {left:.2g} s",
                got=f"some {seconds:.2g} s",
            )


NO_DEADLINE = Deadline()
#: of what was admitted before, and is written or planned once more
NO_LIMITS: Final = Limits(nodes=NO_END, rank=NO_END, bytes=NO_END, flops=NO_END, depth=NO_END)
