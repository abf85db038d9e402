"""Context of a run: what a kernel is given beside its arrays, and the kernels that are looked up by its device.

A kernel is a function of a `RunContext` and arrays. `DeviceFunction` and `DeviceMethod` are tables of such kernels: one
for any array module, and others for devices that have a better one; `copying` is the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from engine.graph.limits import NO_DEADLINE, Deadline

_Item = TypeVar("_Item")

#: array module → the kind of device that its arrays lie on
_DEVICES = {"numpy": "cpu", "cupy": "cuda"}


#: runs a plan on arrays by what they are fed under
RunPlan = Callable[[Mapping[Any, Any], Deadline], Sequence[Any]]


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
