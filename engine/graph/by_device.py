"""Tables of kernels by device."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from engine.graph.run_context import RunContext

_Self = TypeVar("_Self")
_P = ParamSpec("_P")
_Result = TypeVar("_Result")
_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


class DeviceFunction(Generic[_P, _Result]):
    """A function of a run's context and arrays, which looks up the kernel of the context's device.

    `table` has the kernels by device; `general`, written for any array module, serves devices that are not in it.
    """

    def __init__(self, general: Callable[Concatenate[RunContext, _P], _Result]) -> None:
        self.general = general
        self.table: dict[str, Callable[Concatenate[RunContext, _P], _Result]] = {}
        update_wrapper(self, general)

    def on(self, device: str) -> Callable[[_Kernel], _Kernel]:
        """A decorator: what it is given is the kernel on `device`, of the same signature."""
        return _entering(self.table, device)

    def __call__(self, run: RunContext, /, *args: _P.args, **kwargs: _P.kwargs) -> _Result:
        """Run the device's kernel."""
        return self.table.get(run.device, self.general)(run, *args, **kwargs)


class DeviceMethod(Generic[_Self, _P, _Result]):
    """DeviceFunction for a method of an op: its kernels are given the op, too, before the context."""

    def __init__(self, general: Callable[Concatenate[_Self, RunContext, _P], _Result]) -> None:
        self.general = general
        self.table: dict[str, Callable[Concatenate[_Self, RunContext, _P], _Result]] = {}
        update_wrapper(self, general)

    def on(self, device: str) -> Callable[[_Kernel], _Kernel]:
        """A decorator: what it is given is the kernel on `device`, of the same signature."""
        return _entering(self.table, device)

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


def _entering(table: dict[str, Any], device: str) -> Callable[[_Kernel], _Kernel]:
    def enter(kernel: _Kernel) -> _Kernel:
        if table.setdefault(device, kernel) is not kernel:
            raise TypeError(f"{kernel.__qualname__} would be a second kernel on {device}")
        return kernel

    return enter
