"""Every plan fused, and its loops run by one printer: by NumPy's ufuncs, by LLVM, or by the machine's C compiler.

`GRADSERVE_TEST_PRINTER=numpy|llvm|c` has all tests run their plans so, on the CPU; `make test-printers` sets it. Small
plans, as most of those in tests are, would else run node by node.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import Any, Final
from weakref import WeakKeyDictionary

import pytest

from engine import Plan, registry
from engine.executors.binding import Binder
from engine.executors.kernels import CompiledLoop, Kernels, LoopBinder, sum_kinds
from engine.executors.numpy_backend import NumPyExecutor
from engine.executors.tiers import Tier
from engine.graph.limits import NO_DEADLINE, NO_END, Deadline, Limits
from engine.loops.kernel_store import KernelStore
from engine.loops.native import NativeKernel
from engine.loops.part_sums import LANES, sum_loop
from engine.loops.program import Loop
from engine.loops.schedule import lanes_of
from engine.planning.fuse import fuse
from engine.planning.fused import Fused
from engine.planning.plan import graph_of, make_plan
from tests.engine.loops.c_compiler import COMPILER, c_kernels

#: the printer of all tests; none: plans run as they are
PRINTER: Final = os.environ.get("GRADSERVE_TEST_PRINTER", "none")
#: whether loops are machine code, with functions of their own
COMPILED: Final = PRINTER in ("llvm", "c")

_UNBOUNDED: Final = Limits(nodes=NO_END, rank=NO_END, bytes=NO_END, flops=NO_END)


def _by_c(plan: Plan) -> Binder:
    """Kernels that the C compiler makes, all of a plan at once."""
    ops = list(dict.fromkeys(step.op for step in plan.steps if isinstance(step.op, Fused)))
    loops = [(op.expanded, lanes_of(op.expanded, op.space.columns)) for op in ops]
    sums = [{kind: (sum_loop(op.loop.dtype, kind), LANES) for kind in sum_kinds(op)} for op in ops]
    in_c([*loops, *(loop for of_op in sums for loop in of_op.values())])
    found = [
        CompiledLoop(in_c([loop])[0], loop[0], {kind: in_c([each])[0] for kind, each in of_op.items()})
        for loop, of_op in zip(loops, sums, strict=True)
    ]
    return LoopBinder(dict(zip(ops, found, strict=True)), 1)


_kernels: Final = Kernels(KernelStore())
#: what binds a plan's steps
_BINDERS: Final[dict[str, Callable[[Plan], Binder | None]]] = {
    "numpy": lambda plan: _kernels.without,
    "llvm": _kernels.compile,
    "c": _by_c,
}
#: those that run here
_THERE: Final = {"numpy": True, "llvm": find_spec("llvmlite"), "c": COMPILER}
PRINTERS: Final = [name for name in _BINDERS if _THERE[name]]
#: compiled quickly: bits do not depend on how well
_C_FLAGS: Final = ("-O1",)
_built: Final[dict[tuple[str, int], NativeKernel]] = {}
_fused: Final[dict[str, WeakKeyDictionary[Plan, Plan]]] = {name: WeakKeyDictionary() for name in _BINDERS}
_ready: Final[dict[str, WeakKeyDictionary[Plan, Tier]]] = {name: WeakKeyDictionary() for name in _BINDERS}
_lock: Final = RLock()  # fusing patches a module, and threads share plans
_current: Final = {"printer": "none"}


def in_c(wanted: list[tuple[Loop, int]]) -> list[NativeKernel]:
    """Kernels of loops and their lanes, each compiled once in this process."""
    missing = {(repr(loop), lanes): (loop, lanes) for loop, lanes in wanted}
    missing = {key: value for key, value in missing.items() if key not in _built}
    if missing:
        with tempfile.TemporaryDirectory() as folder:
            _built.update(zip(missing, c_kernels(list(missing.values()), Path(folder), *_C_FLAGS), strict=True))
    return [_built[repr(loop), lanes] for loop, lanes in wanted]


def fused(plan: Plan, printer: str) -> Plan:
    """The same with all of it fused that can be, single nodes too."""
    with _lock:
        if plan not in _fused[printer]:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("engine.planning.fuse._COSTLY", 0)
                graph = fuse(graph_of(plan, registry()), 0, compiled=printer != "numpy")
            _fused[printer][plan] = make_plan(graph, _UNBOUNDED)
        return _fused[printer][plan]


def ready(plan: Plan, printer: str) -> Tier:
    """What runs in the place of this plan, fused and compiled."""
    with _lock:
        if plan not in _ready[printer]:
            instead = fused(plan, printer)
            binder = _BINDERS[printer](instead)
            assert binder is not None
            _ready[printer][plan] = Tier(instead, binder)
        return _ready[printer][plan]


def run_instead(plan: Plan) -> Plan:
    """The plan that runs in the place of this one; from now on, running it makes nothing ready."""
    return plan if _current["printer"] == "none" else ready(plan, _current["printer"]).plan


@contextmanager
def printing(printer: str) -> Iterator[None]:
    """From here on, plans run by this printer; not where somebody looks on, nor in executors that compile by and by."""
    if printer == "none":
        yield
        return
    execute = NumPyExecutor.execute

    def execute_fused(
        self: Any, plan: Plan, feeds: Any, deadline: Deadline = NO_DEADLINE, watch: Any = None
    ) -> list[Any]:
        if self._tiers is not None or watch is not None:
            return execute(self, plan, feeds, deadline, watch)
        return self._run(ready(plan, printer), feeds, deadline)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NumPyExecutor, "execute", execute_fused)
        patch.setitem(_current, "printer", printer)
        yield
