"""Context of a run: what a kernel is given beside its arrays, and the kernels that are looked up by its device.

A kernel is a function of a `RunContext` and arrays. `DeviceFunction` and `DeviceMethod` are tables of such kernels: one
for any array module, and others for devices that have a better one; `copying` is the first of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import update_wrapper
from types import MethodType
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar, overload

from engine.ir.errors import DeadlineExceeded, DeadlineTooNear, OverBudget, OverMemory, TooManyNodes, counted
from engine.ir.run_report import IEEE, UNCOMPILED, Precision, RunReport, RunTier, coarsest
from engine.ir.tensor_type import HostArray, TensorType

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


_Item = TypeVar("_Item")

#: array module → the kind of device that its arrays lie on
_DEVICES = {"numpy": "cpu", "cupy": "cuda"}


#: runs a plan on arrays by what they are fed under
RunPlan = Callable[[Mapping[Any, Any], Deadline], Sequence[Any]]
#: bytes that each array begins at a multiple of: a cache line, which is also the widest vector
ALIGNMENT: Final = 64
#: columns of a strip: NumPy goes through it row by row, and so reads as many lines of the cache as there are columns
_STRIP: Final = 16
#: what a strip must have for NumPy's call to be worth it, and a whole copy for any of this to show
_LEAST_ROWS: Final = 64
_LEAST_ELEMENTS: Final = 1 << 15
#: bytes between neighbours from which each of them lies in a line of its own
_LINE: Final = 64


class RunContext:
    """The array module that a kernel computes with, memory to work in, and whether it is to go on.

    A plan that is bound once and run often has one, whose `deadline` is that of the run. `workspace` are bytes that
    nothing is left in from call to call, as many as the plan's kernels say that they want at most; None where a kernel
    allocates what it needs. `device` is the kind of device whose kernels run: by default the one whose arrays `xp`
    makes. `bind_plan` makes a plan within the plan ready to run: of a body, what a loop runs at each step. It is given
    arrays by number, and a deadline, and gives the results. `watch` is what machine code looks at to know whether it
    is to end; None where none is run. A library that shares its work among threads may use `threads`.
    """

    __slots__ = ("bind_plan", "deadline", "device", "threads", "watch", "workspace", "xp")

    def __init__(
        self, xp: Any, deadline: Deadline = NO_DEADLINE, workspace: Any = None, device: str | None = None
    ) -> None:
        """`xp` is numpy or cupy."""
        self.xp = xp
        self.deadline = deadline
        self.workspace = workspace
        self.device = device or _DEVICES[xp.__name__]
        self.bind_plan: Callable[[Any], RunPlan] = _nobody
        self.watch: Any = None
        self.threads = 1

    def through(self, chunks: Iterable[_Item]) -> Iterator[_Item]:
        """`chunks` of work one by one, with a look before each. Raises DeadlineExceeded.

        What may take long looks after every few milliseconds of work; what it has written by then is never read.
        """
        for chunk in chunks:
            self.deadline.check()
            yield chunk


def _nobody(_: Any) -> RunPlan:
    raise TypeError("no executor runs plans here")


def aligned(nbytes: int) -> int:
    """`nbytes` and what is lost up to the next multiple of ALIGNMENT."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


_Self = TypeVar("_Self")
_P = ParamSpec("_P")
_Result = TypeVar("_Result")
_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


class _KernelTable:
    """Kernels by device, of which each is entered once."""

    table: dict[str, Any]

    def on(self, device: str) -> Callable[[_Kernel], _Kernel]:
        """Return a decorator that enters the kernel on `device`, of the same signature."""

        def enter(kernel: _Kernel) -> _Kernel:
            if self.table.setdefault(device, kernel) is not kernel:
                raise TypeError(f"{kernel.__qualname__} would be a second kernel on {device}")
            return kernel

        return enter


class DeviceFunction(_KernelTable, Generic[_P, _Result]):
    """A function of a run's context and arrays, which looks up the kernel of the context's device.

    `table` has the kernels by device; `general`, written for any array module, serves devices that are not in it.
    """

    def __init__(self, general: Callable[Concatenate[RunContext, _P], _Result]) -> None:
        self.general = general
        self.table: dict[str, Callable[Concatenate[RunContext, _P], _Result]] = {}
        update_wrapper(self, general)

    def __call__(self, run: RunContext, /, *args: _P.args, **kwargs: _P.kwargs) -> _Result:
        """Run the device's kernel."""
        return self.table.get(run.device, self.general)(run, *args, **kwargs)


class DeviceMethod(_KernelTable, Generic[_Self, _P, _Result]):
    """DeviceFunction for a method of an op: its kernels are given the op, too, before the context."""

    def __init__(self, general: Callable[Concatenate[_Self, RunContext, _P], _Result]) -> None:
        self.general = general
        self.table: dict[str, Callable[Concatenate[_Self, RunContext, _P], _Result]] = {}
        update_wrapper(self, general)

    @overload
    def __get__(self, op: None, owner: type | None = None) -> DeviceMethod[_Self, _P, _Result]: ...

    @overload
    def __get__(self, op: _Self, owner: type | None = None) -> Callable[Concatenate[RunContext, _P], _Result]: ...

    def __get__(self, op: Any, owner: type | None = None) -> Any:
        """Bound to an op, as functions are; of a class, this table."""
        return self if op is None else MethodType(self, op)

    def __call__(self, op: _Self, run: RunContext, /, *args: _P.args, **kwargs: _P.kwargs) -> _Result:
        """Run the device's kernel."""
        return self.table.get(run.device, self.general)(op, run, *args, **kwargs)


@DeviceFunction
def copying(_: RunContext, x: Any, out: Any) -> tuple[Callable[..., object], tuple[Any, ...]]:
    """A call that makes out = x, arrays of one shape and dtype: a function, and its arguments."""
    return out.__setitem__, (..., x)


@copying.on("cpu")
def _copying(run: RunContext, x: HostArray, out: HostArray) -> tuple[Callable[..., object], tuple[Any, ...]]:
    # Whether rows of x run across those of memory, and there are enough of them.
    is_turned = x.size >= _LEAST_ELEMENTS and x.strides[-1] >= _LINE
    if is_turned and x.shape[-1] > _STRIP and x.size >= _LEAST_ROWS * x.shape[-1]:
        return _copy_in_strips, (run, x, out)
    return out.__setitem__, (..., x)


def _copy_in_strips(run: RunContext, x: HostArray, out: HostArray) -> None:
    """out = x. A strip has some columns, of all rows."""
    for start in run.through(range(0, x.shape[-1], _STRIP)):
        strip = (..., slice(start, start + _STRIP))
        out[strip] = x[strip]
