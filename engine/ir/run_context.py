"""Context of a run: what a kernel is given beside its arrays, and the kernels that are looked up by its device.

A kernel is a function of a `RunContext` and arrays. `DeviceFunction` and `DeviceMethod` are tables of such kernels: one
for any array module, and others for devices that have a better one; `copying` is the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import update_wrapper
from types import MethodType
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar, overload

from engine.ir.limits import NO_DEADLINE, Deadline
from engine.ir.tensor_type import HostArray

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


# Copies of views: NumPy's own, and in strips for a transposed array, so that cache lines are read once.


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
