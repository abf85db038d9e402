"""Plans whose kernels run on copies of their operands, each beside a guard page, one step at a time.

A build that checks bounds reports its findings after each step; for any build, the journal has the step of a crash.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import numpy as np
import pytest

from engine import Graph, HostArray, Plan
from engine.codegen.kernels.llvm_text import llvm_text
from engine.codegen.kernels.program import lanes_of, table_layout
from engine.codegen.native import machine_code
from engine.codegen.native.native_call import BOUNDS, FaultEntry, NativeCall, byte_span, make_calls
from engine.compiler.body_plans import with_compiled_bodies
from engine.compiler.control_flow import RunsPlans
from engine.compiler.fused_kernel import Fused, MicrokernelOp, select_microkernels
from engine.compiler.fusion import fuse
from engine.compiler.plan import Step, make_plan
from engine.ir.errors import IndexOutOfRange
from engine.ir.op import Array, KernelCall
from engine.ir.run_context import NO_DEADLINE, NO_LIMITS, RunContext
from engine.runtime.binding import Binder
from engine.runtime.numpy_backend import Kernels, NumPyExecutor
from engine.runtime.tiers import ExecutionTier
from tests.bounds.corpus import Watched
from tests.engine.guarded import guarded
from tests.engine.printers import ready

#: threads of kernels that check bounds, each with its own tables and workspace; others have one thread
THREADS: Final = 2
_PLENTY: Final = 1 << 40
#: initial content of a workspace: NaN if read as a float
_NEVER_WRITTEN: Final = 0xFF
_TABLE: Final = "the table"

Tell = Callable[[str], None]


class Built:
    """Kernels that check bounds, and regular ones."""

    def __init__(self) -> None:
        self._kernels = {True: Kernels(threads=THREADS), False: Kernels()}

    def of(self, checked: bool) -> Kernels:
        """The kernels of one kind."""
        return self._kernels[checked]

    @property
    def count(self) -> int:
        """The number of compiled kernels of both kinds."""
        return sum(kernels.loaded_count for kernels in self._kernels.values())


class Outside(Exception):
    """An access of a kernel outside of its buffer."""


class Journal:
    """The current step of a process, in a file that survives a crash."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def __call__(self, text: str) -> None:
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, text.encode(), 0)


class Watching(Binder):
    """Binds steps like `inner`, but kernels to guarded copies; passes each step to `tell` before it runs."""

    def __init__(self, inner: Binder, at_end: bool, tell: Tell) -> None:
        self._inner, self._at_end, self._tell = inner, at_end, tell

    def calls(self, run: RunContext, step: Step, operands: Sequence[Array], out: Array) -> Sequence[KernelCall]:
        """One call, which binds the step each time."""
        if not isinstance(step.op, Fused | MicrokernelOp | RunsPlans):
            return self._inner.calls(run, step, operands, out)
        return [(self._make, (run, step, operands, out))]

    def _make(self, run: RunContext, step: Step, operands: Sequence[Array], out: Any) -> None:
        self._tell(step_name(step))
        several = isinstance(out, tuple)
        read = [guarded_copy(x, self._at_end) for x in operands]
        written = [guarded_copy(x, self._at_end) for x in (out if several else [out])]
        workspace = guarded(np.full(self._inner.workspace(step), _NEVER_WRITTEN, np.uint8), self._at_end)
        guarded_run = RunContext(run.xp, run.deadline, workspace)
        guarded_run.bind_plan, guarded_run.stop_flag = run.bind_plan, run.stop_flag
        calls = self._inner.calls(guarded_run, step, read, tuple(written) if several else written[0])
        make_calls(calls)
        if BOUNDS.record[FaultEntry.OCCURRED]:
            fault, BOUNDS.record[:] = BOUNDS.record.copy(), 0
            raise Outside(_fault_report(step, [call for call, _ in calls if isinstance(call, NativeCall)], fault))
        if isinstance(step.op, RunsPlans):
            assert isinstance(calls[0][0], NativeCall), f"{step_name(step)} is no native call"
        for array, array_copy in zip(out if several else [out], written, strict=True):
            array[...] = array_copy


def guarded_copy(x: Array, at_end: bool) -> Array:
    """A copy with the same strides, whose last element ends, or whose first begins, at a guard page."""
    before, behind = byte_span(x)
    memory = guarded(before + behind, at_end)
    copy: Array = np.ndarray(x.shape, x.dtype, memory, before, x.strides)
    copy[...] = x
    return copy


def compiled(graph: Graph, threads: int) -> Plan:
    """A plan with all possible nodes in kernels, single ones too."""
    fused = fuse(with_compiled_bodies(graph), 0, compiled=True, threads=threads)
    return make_plan(select_microkernels(fused, _PLENTY, threads), NO_LIMITS)


@contextmanager
def all_compiled() -> Iterator[None]:
    """Fuse even small ops, and share even small work with a second thread, within the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.compiler.fusion._COSTLY", 0)
        patch.setattr("engine.codegen.kernels.compiled.WORTH_THREADS", 0)
        patch.setattr("engine.codegen.microkernels.recipe.WORTH_THREADS", 0)
        yield


def watch(watched: Watched, built: Built, tell: Tell, checked: bool, at_end: bool) -> list[Array]:
    """The results of a graph; none if an index is out of range. Raises Outside."""
    with pytest.MonkeyPatch.context() as patch, all_compiled():
        patch.setattr(BOUNDS, "checked", checked)
        if checked:  # optimization does not matter
            patch.setitem(machine_code._OPTIONS, "opt", 0)
        else:
            patch.setattr(BOUNDS, "tables", partial(_guarded_tables, at_end))
        kernels = built.of(checked)
        plan = compiled(watched.graph, kernels.threads)
        binder = kernels.compile(plan)
        assert binder is not None
        return _results(watched, plan, Watching(binder, at_end, lambda step: tell(f"{watched.name}: {step}")))


def watch_text(watched: Watched, printer: str, tell: Tell, at_end: bool) -> list[Array]:
    """Run like `watch`, with unchecked kernels from another printer's text in C."""
    with all_compiled():
        tier = ready(make_plan(watched.graph, NO_LIMITS), printer)
        return _results(watched, tier.plan, Watching(tier.binder, at_end, lambda step: tell(f"{watched.name}: {step}")))


def _results(watched: Watched, plan: Plan, binder: Binder) -> list[Array]:
    feeds = {key: watched.feeds[key] for key in plan.feeds}
    try:
        return NumPyExecutor()._run_prepared(ExecutionTier(plan, binder), feeds, NO_DEADLINE)
    except IndexOutOfRange:
        return []


def _guarded_tables(at_end: bool, threads: int, size: int) -> HostArray:
    return guarded(np.zeros((threads, size), np.int64), at_end)


def step_name(step: Step) -> str:
    """A step's op and attributes, and the types of its results."""
    op = step.op.op.name if isinstance(step.op, MicrokernelOp) else step.op.name
    return f"{op} {dict(step.attrs) or ''} to {', '.join(map(str, step.types))}"


# ---------------------------------------------------------------- reports of bounds checks


def _fault_report(step: Step, calls: Sequence[NativeCall], fault: HostArray) -> str:
    numbers = [i for i, call in enumerate(calls) if fault[FaultEntry.TABLE] in _addresses(call)]
    number = numbers[0] if numbers else None
    position = int(fault[FaultEntry.POSITION])
    text, buffer = ("", f"array {position}") if number is None else _texts(step, number, position)
    offset, extent, size, lanes = (
        int(fault[entry]) for entry in (FaultEntry.OFFSET, FaultEntry.EXTENT, FaultEntry.ELEMENT, FaultEntry.LANES)
    )
    line = _access(text, int(fault[FaultEntry.ACCESS]))
    kernel = "a kernel within" if number is None else f"kernel {number}"
    return (
        f"{step_name(step)}, {kernel}: bytes {offset} to {offset + size} of {buffer}, which has {extent}, "
        f"by an access of {lanes} × {size} bytes: {line}"
    )


def _addresses(call: NativeCall) -> list[int]:
    return [table.ctypes.data for table in call.entries]


def _texts(step: Step, number: int, position: int) -> tuple[str, str]:
    """The text of a step's kernel, and the buffer at a position of its table."""
    if isinstance(step.op, MicrokernelOp):
        phase = step.op.recipe.phases[number]
        return phase.text, "{} {}".format(*phase.places[position]) if position >= 0 else _TABLE
    assert isinstance(step.op, Fused)
    if number:
        return "", "a sum's parts or result"
    loop = step.op.expanded
    layout = table_layout(loop)
    names = {-1: _TABLE, layout.scratch: "scratch"} | {place: f"operand {i}" for i, place in enumerate(layout.operands)}
    names |= {place: f"result {i}" for i, place in enumerate(layout.results)}
    return llvm_text(loop, lanes_of(loop, step.op.iteration_space.columns)), names[position]


def _access(text: str, number: int) -> str:
    """The instruction that a check precedes."""
    lines = iter(text.splitlines())
    name = f"%bounds.{number}"
    return next((line.strip() for line in lines if name in line and not line.startswith(f"  {name} =")), "?")
