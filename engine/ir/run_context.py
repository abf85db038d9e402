"""Context of a run: what a kernel receives in addition to its arrays, and the lookup of kernels by device.

A kernel is a function of a `RunContext` and arrays. `DeviceFunction` and `DeviceMethod` hold a general kernel for any
array module, and specialised ones by device; `copying` is an example.
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

#: no limit: more nodes, axes, bytes or FLOPs than any graph has
NO_END: Final = 1 << 200
#: nodes that any graph may have, gradients included: enough for ten nested derivatives of some functions
FREE_NODES: Final = 30_000


@dataclass(frozen=True)
class Limits:
    """Budgets of one request. `bytes` bounds the peak memory of an execution, `flops` its arithmetic.

    `nodes` bounds a graph including its gradients and functions. `expansion` bounds these additional nodes per node
    that was sent, beyond `FREE_NODES`. `depth` bounds the nesting of functions. With `checkpointing`, loops save values
    that are costly to recompute for the backward pass.
    """

    nodes: int = 100_000
    rank: int = 32
    bytes: int = 4 << 30
    flops: int = 10**12
    expansion: int = NO_END
    depth: int = 16
    checkpointing: bool = True

    def of_graph(self, sent: int) -> Limits:
        """Return the budgets of a graph with `sent` nodes in the request.

        Nested gradients may multiply the nodes with each level. Nodes are counted while they are written, so this
        bounds the time and memory before a refusal in proportion to the request.
        """
        return replace(self, nodes=min(self.nodes, FREE_NODES + self.expansion * sent))

    def within(self, memory: int | None) -> Limits:
        """Return these limits with at most `memory` bytes, if given."""
        return self if memory is None else replace(self, bytes=min(memory, self.bytes))

    def admit_nodes(self, count: int) -> None:
        """Raise TooManyNodes if `count` exceeds the limit."""
        if count > self.nodes:
            raise TooManyNodes(
                f"the graph has more than {counted(self.nodes, 'node')}, including those of its gradients",
                expected=f"at most {counted(self.nodes, 'node')}",
                got=f"at least {counted(count, 'node')}",
            )

    def admit_rank(self, rank: int) -> None:
        """Raise OverBudget if a tensor has too many axes.

        Call it before creating a `TensorType` from a client's shape: the product of many large extents takes minutes.
        """
        if rank > self.rank:
            most = counted(self.rank, "axis", "axes")
            raise OverBudget(
                f"a tensor may have at most {most}, but this one has {rank}",
                expected=f"at most {most}",
                got=counted(rank, "axis", "axes"),
            )

    def admit_type(self, type: TensorType) -> None:
        """Raise OverBudget if a single tensor exceeds the rank or byte limit."""
        self.admit_rank(type.ndim)
        if type.span > self.bytes:
            self.admit_bytes(type.span)

    def admit_bytes(self, count: int) -> None:
        """Raise OverMemory if `count` bytes exceed the limit."""
        if count > self.bytes:
            raise _refusal(count, self.bytes, "byte", OverMemory)

    def admit_peak(self, count: int) -> None:
        """Raise OverMemory, with `peak`, if an execution's peak of `count` bytes exceeds the limit."""
        if count > self.bytes:
            error = _refusal(count, self.bytes, "byte", OverMemory)
            error.peak = count
            raise error

    def admit_flops(self, count: int) -> None:
        """Raise OverBudget if `count` floating-point operations exceed the limit."""
        if count > self.flops:
            raise _refusal(count, self.flops, "FLOP", OverBudget)

    def admit_depth(self, depth: int) -> None:
        """Raise OverBudget if functions are nested too deeply."""
        if depth > self.depth:
            most, levels = counted(self.depth, "level"), counted(depth, "level")
            raise OverBudget(
                f"functions are nested {levels} deep, and the limit is {self.depth}",
                expected=f"at most {most}",
                got=levels,
            )


def _refusal(count: int, limit: int, unit: str, error: type[_Error]) -> _Error:
    amount, most = counted(count, unit) if count < 10**30 else f"over 10^30 {unit}s", counted(limit, unit)
    return error(f"this needs {amount}, and the limit is {most}", expected=f"at most {most}", got=amount)


class Deadline:
    """Time on the monotonic clock at which work on a request stops, or earlier if the request is cancelled.

    It also reports on its last run: `backward_start` is the time at which the backward pass began, None if unknown;
    `tier` says how much ran compiled kernels; `precision` says how precisely products and convolutions read float32,
    None if none did.
    """

    __slots__ = ("backward_start", "precision", "seconds", "stop", "tier", "time")

    def __init__(self, seconds: float | None = None, start: float | None = None, stop: Sequence[int] = b"\0") -> None:
        """Set the deadline to `seconds` from `start` on the monotonic clock, by default from now; None means never.

        Setting the first byte of `stop`, which may be memory shared with another process, cancels the work.
        """
        self.seconds = seconds
        self.stop = stop
        self.backward_start: float | None = None
        self.tier: RunTier = UNCOMPILED
        self.precision: Precision | None = None
        start_time = time.monotonic() if start is None else start
        self.time = float("inf") if seconds is None else start_time + seconds

    def begin_backward(self) -> None:
        """Record that the backward pass begins."""
        if self.seconds is not None:  # NO_DEADLINE is shared, so it reports on no run
            self.backward_start = time.monotonic()

    @property
    def report(self) -> RunReport:
        """The report of the last run."""
        return RunReport(self.tier, self.precision)

    def begin_run(self, tier: RunTier, *, reads_float32: bool) -> None:
        """Begin the report of a run of this tier; `reads_float32` if its products or convolutions do."""
        if self.seconds is not None:
            self.tier, self.precision = tier, IEEE if reads_float32 else None

    def record_precision(self, precision: Precision) -> None:
        """Record how precisely a product or convolution read float32 operands; the report has the least precise."""
        if self.seconds is not None and self.precision is not None:
            self.precision = coarsest(self.precision, precision)

    def check(self) -> None:
        """Raise DeadlineExceeded if the time has passed or the work is cancelled."""
        if self.stop[0]:
            raise DeadlineExceeded("the client no longer waits for the response")
        if time.monotonic() > self.time:
            raise DeadlineExceeded(f"the request did not finish within its timeout of {self.seconds:g} s")

    def admit(self, seconds: float) -> None:
        """Raise DeadlineTooNear if uninterruptible work of `seconds` would end too late.

        Raises DeadlineExceeded if the deadline has already passed.
        """
        remaining = self.time - time.monotonic()
        if seconds > remaining:
            self.check()
            raise DeadlineTooNear(
                f"this takes about {seconds:.2g} s and cannot be interrupted, but only {remaining:.2g} s of the "
                f"request's {self.seconds:g} s are left",
                expected=f"at most {remaining:.2g} s",
                got=f"about {seconds:.2g} s",
            )


NO_DEADLINE = Deadline()
#: limits for graphs that were admitted before, and are rewritten or planned again
NO_LIMITS: Final = Limits(nodes=NO_END, rank=NO_END, bytes=NO_END, flops=NO_END, depth=NO_END)


_Item = TypeVar("_Item")

#: array module → device of its arrays
_DEVICES = {"numpy": "cpu", "cupy": "cuda"}


#: runs a plan on arrays by feed key
RunPlan = Callable[[Mapping[Any, Any], Deadline], Sequence[Any]]
#: alignment of arrays in bytes: a cache line, which is also the widest vector
ALIGNMENT: Final = 64
#: columns per strip: NumPy copies a strip row by row, and so touches one cache line per column at a time
_STRIP: Final = 16
#: minimum rows for which copying in strips pays for the calls, and minimum elements for which it is noticeable
_LEAST_ROWS: Final = 64
_LEAST_ELEMENTS: Final = 1 << 15
#: stride in bytes from which neighbouring elements lie in different cache lines
_LINE: Final = 64


class RunContext:
    """The array module that a kernel computes with, its workspace, and its deadline.

    A bound plan that runs repeatedly has one context, whose `deadline` is that of the current run. `workspace` is
    scratch memory, not preserved between calls, as large as the largest request among the plan's kernels; None if
    kernels allocate their own. `device` selects the kernels; by default, the device of `xp`'s arrays. `bind_plan` binds
    a nested plan, such as a loop body: the result maps arrays by number and a deadline to results. `stop_flag` is the
    memory that machine code polls to see whether to stop; None if no machine code runs. Multithreaded libraries may use
    `threads`.
    """

    __slots__ = ("bind_plan", "deadline", "device", "stop_flag", "threads", "workspace", "xp")

    def __init__(
        self, xp: Any, deadline: Deadline = NO_DEADLINE, workspace: Any = None, device: str | None = None
    ) -> None:
        """Create a context for the array module `xp`, numpy or cupy."""
        self.xp = xp
        self.deadline = deadline
        self.workspace = workspace
        self.device = device or _DEVICES[xp.__name__]
        self.bind_plan: Callable[[Any], RunPlan] = _no_executor
        self.stop_flag: Any = None
        self.threads = 1

    def checked(self, chunks: Iterable[_Item]) -> Iterator[_Item]:
        """Iterate over `chunks` of work, checking the deadline before each. Raises DeadlineExceeded.

        A chunk should take a few milliseconds. Results that are written before an exception are never read.
        """
        for chunk in chunks:
            self.deadline.check()
            yield chunk


def _no_executor(_: Any) -> RunPlan:
    raise TypeError("no executor runs plans here")


def aligned(nbytes: int) -> int:
    """Return `nbytes` rounded up to a multiple of ALIGNMENT."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


_Self = TypeVar("_Self")
_P = ParamSpec("_P")
_Result = TypeVar("_Result")
_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


class _KernelTable:
    """Kernels by device, one for each."""

    table: dict[str, Any]

    def on(self, device: str) -> Callable[[_Kernel], _Kernel]:
        """Return a decorator that registers a kernel for `device`, with the same signature."""

        def register(kernel: _Kernel) -> _Kernel:
            if self.table.setdefault(device, kernel) is not kernel:
                raise TypeError(f"{kernel.__qualname__} would be a second kernel on {device}")
            return kernel

        return register


class DeviceFunction(_KernelTable, Generic[_P, _Result]):
    """Function of a run context and arrays that dispatches to the kernel of the context's device.

    `table` holds the kernels by device; `general`, written for any array module, serves the other devices.
    """

    def __init__(self, general: Callable[Concatenate[RunContext, _P], _Result]) -> None:
        self.general = general
        self.table: dict[str, Callable[Concatenate[RunContext, _P], _Result]] = {}
        update_wrapper(self, general)

    def __call__(self, run: RunContext, /, *args: _P.args, **kwargs: _P.kwargs) -> _Result:
        """Run the device's kernel."""
        return self.table.get(run.device, self.general)(run, *args, **kwargs)


class DeviceMethod(_KernelTable, Generic[_Self, _P, _Result]):
    """DeviceFunction for a method of an op: kernels receive the op before the context."""

    def __init__(self, general: Callable[Concatenate[_Self, RunContext, _P], _Result]) -> None:
        self.general = general
        self.table: dict[str, Callable[Concatenate[_Self, RunContext, _P], _Result]] = {}
        update_wrapper(self, general)

    @overload
    def __get__(self, op: None, owner: type | None = None) -> DeviceMethod[_Self, _P, _Result]: ...

    @overload
    def __get__(self, op: _Self, owner: type | None = None) -> Callable[Concatenate[RunContext, _P], _Result]: ...

    def __get__(self, op: Any, owner: type | None = None) -> Any:
        """Bind to an op, as functions do; accessed on the class, return the table."""
        return self if op is None else MethodType(self, op)

    def __call__(self, op: _Self, run: RunContext, /, *args: _P.args, **kwargs: _P.kwargs) -> _Result:
        """Run the device's kernel."""
        return self.table.get(run.device, self.general)(op, run, *args, **kwargs)


@DeviceFunction
def copying(_: RunContext, x: Any, out: Any) -> tuple[Callable[..., object], tuple[Any, ...]]:
    """Return a bound call that copies x to out, arrays of the same shape and dtype: a function and its arguments."""
    return out.__setitem__, (..., x)


@copying.on("cpu")
def _copying(run: RunContext, x: HostArray, out: HostArray) -> tuple[Callable[..., object], tuple[Any, ...]]:
    # NumPy copies row by row. If neighbours in a row of x are a cache line apart, each row would load all lines again.
    is_turned = x.size >= _LEAST_ELEMENTS and x.strides[-1] >= _LINE
    if is_turned and x.shape[-1] > _STRIP and x.size >= _LEAST_ROWS * x.shape[-1]:
        return _copy_in_strips, (run, x, out)
    return out.__setitem__, (..., x)


def _copy_in_strips(run: RunContext, x: HostArray, out: HostArray) -> None:
    """Copy x to out in strips of some columns and all rows."""
    for start in run.checked(range(0, x.shape[-1], _STRIP)):
        strip = (..., slice(start, start + _STRIP))
        out[strip] = x[strip]
