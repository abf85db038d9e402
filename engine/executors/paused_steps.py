"""Steps of bodies that Python makes, for which the runner leaves a loop: bound to arrays that lie still meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from engine.executors.body_layout import ConstView, memory_at
from engine.graph.errors import DeadlineExceeded, EngineError
from engine.graph.ir import Origin, at_origin
from engine.graph.op import KernelCall
from engine.graph.tensor_type import HostArray
from engine.native.bounds import reach
from engine.native.calls import joined
from engine.native.native_call import NativeGuard

#: of a runner's list: here it always returns
PAUSE_GUARD: Final = NativeGuard(np.ones(1, np.int64), (lambda: None, ()))


class PausedStep:
    """A step as calls of Python, made while the runner waits: `bind` has those on operands that lie still.

    What is read of a const stays where it is: the step is bound to that as soon as a loop knows where.
    """

    def __init__(
        self,
        origin: Origin | None,
        operands: Sequence[HostArray | ConstView],
        bind: Callable[[Sequence[HostArray]], Sequence[KernelCall]],
    ) -> None:
        self._origin, self._operands, self._bind = origin, operands, bind
        #: the feeds that it reads where they are
        self.consts = [operand.feed for operand in operands if isinstance(operand, ConstView)]
        self._addresses: list[int] = []
        self._call: KernelCall | None = None
        if not self.consts:
            self.look({})

    def look(self, addresses: Mapping[int, int]) -> None:
        """Read consts where they begin now: at these addresses, by feed."""
        found = [addresses[feed] for feed in self.consts]
        if self._call is None or found != self._addresses:
            arrays = [_there(x, addresses) if isinstance(x, ConstView) else x for x in self._operands]
            self._call, self._addresses = joined(self._bind(arrays)), found

    def __call__(self) -> None:
        """Make it. Raises what it finds in its data, with its node."""
        assert self._call is not None
        function, arguments = self._call
        try:
            function(*arguments)
        except DeadlineExceeded:
            raise  # the fault of no node
        except EngineError as error:
            raise at_origin(error, self._origin) from None


def _there(view: ConstView, addresses: Mapping[int, int]) -> HostArray:
    feed, offset, alike = view
    before, behind = reach(alike)
    memory = memory_at(addresses[feed] + offset - before, before + behind)
    return np.ndarray(alike.shape, alike.dtype, memory, before, alike.strides)
