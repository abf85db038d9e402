"""Run every plan fused, with its kernels printed by one printer: NumPy ufuncs, LLVM, or the machine's C compiler.

The C compiler builds kernels written for a processor as well as those written for a card.

`GRADSERVE_TEST_PRINTER=numpy|llvm|c|cuda|ptx` runs all tests this way on the CPU; `make test-printers` does it for you.
Small plans, which most tests have, would otherwise run node by node.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import pytest

from engine import Plan, registry
from engine.codegen.kernels.blocks import run_on_arrays
from engine.codegen.kernels.compiled import LANES, NativeKernel, part_sum_kernel
from engine.codegen.kernels.program import FusedKernel, lanes_of
from engine.codegen.native.machine_code import KernelStore
from engine.compiler.body_plans import kernel_ops
from engine.compiler.control_flow import RunsPlans
from engine.compiler.fused_kernel import Fused
from engine.compiler.fusion import fuse
from engine.compiler.plan import Step, graph_of, make_plan
from engine.cuda.kernels import cuda_fused_kernel
from engine.cuda.launch import CudaKernel
from engine.ir.graph import Graph
from engine.ir.op import Array, KernelCall
from engine.ir.run_context import NO_DEADLINE, NO_LIMITS, Deadline, RunContext
from engine.runtime.binding import Binder, bind_step
from engine.runtime.numpy_backend import CompiledKernel, KernelBinder, Kernels, NumPyExecutor, sum_kinds
from engine.runtime.tiers import ExecutionTier
from tests.engine.codegen.kernels.c_compiler import COMPILER, c_kernels
from tests.engine.codegen.kernels.cuda_shim import HostKernels, host_kernels, run_on_host
from tests.engine.codegen.kernels.ptx_shim import host_ptx_kernels

#: the printer of all tests; none: plans run unchanged
PRINTER: Final = os.environ.get("GRADSERVE_TEST_PRINTER", "none")
#: whether kernels are machine code with functions of its own
COMPILED: Final = PRINTER in ("llvm", "c", "cuda", "ptx")


def _compile_with_c(plan: Plan) -> Binder:
    """Compile all kernels of a plan at once with the C compiler."""
    ops = list(dict.fromkeys(op for op in kernel_ops(plan) if isinstance(op, Fused)))
    loops = [(op.expanded, lanes_of(op.expanded, op.iteration_space.columns)) for op in ops]
    sums = [{kind: (part_sum_kernel(op.kernel.dtype, kind), LANES) for kind in sum_kinds(op)} for op in ops]
    in_c([*loops, *(loop for of_op in sums for loop in of_op.values())])
    kernels = [
        CompiledKernel(in_c([loop])[0], loop[0], {kind: in_c([each])[0] for kind, each in of_op.items()})
        for loop, of_op in zip(loops, sums, strict=True)
    ]
    return KernelBinder(dict(zip(ops, kernels, strict=True)), 1)


class _CudaOnHost(Binder):
    """Runs kernels on the processor the way a card does."""

    def __init__(self, made: Mapping[Fused, tuple[HostKernels, CudaKernel]]) -> None:
        self._made = made

    def calls(self, run: RunContext, step: Step, operands: Sequence[Array], out: Array) -> Sequence[KernelCall]:
        """Return one call for a kernel; it also checks for arguments out of range."""
        if not isinstance(step.op, Fused):
            return bind_step(run, step, operands, out)
        return [(self._run, (step.op, operands, out))]

    def _run(self, op: Fused, operands: Sequence[Array], out: Sequence[Array]) -> None:
        if run_on_host(*self._made[op], operands, out):
            op.forward(RunContext(np), *operands, out=out)


def _compile_for_card(printer: str, plan: Plan) -> Binder:
    """Compile kernels written for a card for this processor."""
    ops = list(dict.fromkeys(op for op in kernel_ops(plan) if isinstance(op, Fused)))
    loops = [cuda_fused_kernel(op) for op in ops]
    return _CudaOnHost(dict(zip(ops, zip(on_host(printer, loops), loops, strict=True), strict=True)))


class _OnArrays(Binder):
    """Runs kernels by array functions, as a card does if it has no compiled kernel."""

    def calls(self, run: RunContext, step: Step, operands: Sequence[Array], out: Array) -> Sequence[KernelCall]:
        """Return one call for a kernel."""
        if not isinstance(step.op, Fused):
            return bind_step(run, step, operands, out)
        return [(run_on_arrays, (run, step.op.kernel, step.op.iteration_space, operands, out))]


_kernels: Final = Kernels(KernelStore())
#: returns the binder of a plan's steps
_BINDERS: Final[dict[str, Callable[[Plan], Binder | None]]] = {
    "numpy": lambda plan: _kernels.uncompiled_binder,
    "llvm": _kernels.compile,
    "c": _compile_with_c,
    "cuda": partial(_compile_for_card, "cuda"),
    "ptx": partial(_compile_for_card, "ptx"),
    "arrays": lambda plan: _OnArrays(),
}
#: whether each printer is available on this machine
_AVAILABLE: Final = {
    "numpy": True,
    "llvm": find_spec("llvmlite"),
    "c": COMPILER,
    "cuda": COMPILER,
    "ptx": COMPILER and find_spec("llvmlite"),
    "arrays": True,
}
PRINTERS: Final = [name for name in _BINDERS if _AVAILABLE[name]]
#: fast compilation: bits do not depend on the level of optimisation
_C_FLAGS: Final = ("-O1",)
_built: Final[dict[tuple[str, int], NativeKernel]] = {}
_built_for_card: Final[dict[tuple[str, str], HostKernels]] = {}
_fused: Final[dict[str, WeakKeyDictionary[Plan, Plan]]] = {name: WeakKeyDictionary() for name in _BINDERS}
_ready: Final[dict[str, WeakKeyDictionary[Plan, ExecutionTier]]] = {name: WeakKeyDictionary() for name in _BINDERS}
_lock: Final = RLock()  # fusing patches a module, and threads share plans
_current: Final = {"printer": "none"}


def in_c(requested: list[tuple[FusedKernel, int]]) -> list[NativeKernel]:
    """Return C kernels for these (kernel, lanes) pairs, each compiled once per process."""
    missing = {(repr(loop), lanes): (loop, lanes) for loop, lanes in requested}
    missing = {key: value for key, value in missing.items() if key not in _built}
    if missing:
        with tempfile.TemporaryDirectory() as folder:
            _built.update(zip(missing, c_kernels(list(missing.values()), Path(folder), *_C_FLAGS), strict=True))
    return [_built[repr(loop), lanes] for loop, lanes in requested]


def on_host(printer: str, requested: list[CudaKernel]) -> list[HostKernels]:
    """Return host builds of card kernels, as CUDA C or LLVM IR, each compiled once per process."""
    keys = [(printer, repr((loop.parts, loop.lanes, sorted(loop.kernels)))) for loop in requested]
    missing = {key: loop for key, loop in zip(keys, requested, strict=True) if key not in _built_for_card}
    loops = list(missing.values())
    if loops:
        with tempfile.TemporaryDirectory() as folder:
            if printer == "cuda":
                built = host_kernels([(loop.parts, loop.lanes) for loop in loops], Path(folder))
            else:
                built = host_ptx_kernels(loops, Path(folder))
        _built_for_card.update(zip(missing, built, strict=True))
    return [_built_for_card[key] for key in keys]


def fused(plan: Plan, printer: str) -> Plan:
    """Return the same plan fused as far as possible, single nodes included."""
    with _lock:
        if plan not in _fused[printer]:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("engine.compiler.fusion._COSTLY", 0)
                graph = fuse(_with_fused_bodies(plan, printer), 0, compiled=printer != "numpy")
            _fused[printer][plan] = make_plan(graph, NO_LIMITS)
        return _fused[printer][plan]


def _with_fused_bodies(plan: Plan, printer: str) -> Graph:
    graph = graph_of(plan, registry())
    nodes = [
        node._replace(op=replace(node.op, plans=tuple(fused(body, printer) for body in node.op.plans)))
        if isinstance(node.op, RunsPlans)
        else node
        for node in graph.nodes
    ]
    return graph.with_nodes(nodes, graph.outputs)


def ready(plan: Plan, printer: str) -> ExecutionTier:
    """Return the fused and compiled plan that runs in place of this one."""
    with _lock:
        if plan not in _ready[printer]:
            replacement = fused(plan, printer)
            binder = _BINDERS[printer](replacement)
            assert binder is not None
            _ready[printer][plan] = ExecutionTier(replacement, binder)
        return _ready[printer][plan]


def run_instead(plan: Plan) -> Plan:
    """Return the plan that runs in place of this one, and prepare it."""
    return plan if _current["printer"] == "none" else ready(plan, _current["printer"]).plan


@contextmanager
def printing(printer: str) -> Iterator[None]:
    """Run plans by this printer, except watched runs and executors that compile in the background."""
    if printer == "none":
        yield
        return
    execute = NumPyExecutor.execute

    def execute_fused(
        self: Any, plan: Plan, feeds: Any, deadline: Deadline = NO_DEADLINE, watch: Any = None
    ) -> list[Any]:
        if self._tiers is not None or watch is not None:
            return execute(self, plan, feeds, deadline, watch)
        return self._run_prepared(ready(plan, printer), feeds, deadline)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NumPyExecutor, "execute", execute_fused)
        patch.setitem(_current, "printer", printer)
        yield
