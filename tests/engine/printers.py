"""Every plan fused, and its loops run by one printer: by NumPy's ufuncs, by LLVM, or by the machine's C compiler.

This one builds what is written for a processor, and what is written for a card, too.

`GRADSERVE_TEST_PRINTER=numpy|llvm|c|cuda|ptx` has all tests run their plans so, on the CPU; `make test-printers` does.
Small plans, as most of those in tests are, would else run node by node.
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

#: the printer of all tests; none: plans run as they are
PRINTER: Final = os.environ.get("GRADSERVE_TEST_PRINTER", "none")
#: whether loops are machine code, with functions of their own
COMPILED: Final = PRINTER in ("llvm", "c", "cuda", "ptx")


def _by_c(plan: Plan) -> Binder:
    """Kernels that the C compiler makes, all of a plan at once."""
    ops = list(dict.fromkeys(op for op in kernel_ops(plan) if isinstance(op, Fused)))
    loops = [(op.expanded, lanes_of(op.expanded, op.iteration_space.columns)) for op in ops]
    sums = [{kind: (part_sum_kernel(op.kernel.dtype, kind), LANES) for kind in sum_kinds(op)} for op in ops]
    in_c([*loops, *(loop for of_op in sums for loop in of_op.values())])
    found = [
        CompiledKernel(in_c([loop])[0], loop[0], {kind: in_c([each])[0] for kind, each in of_op.items()})
        for loop, of_op in zip(loops, sums, strict=True)
    ]
    return KernelBinder(dict(zip(ops, found, strict=True)), 1)


class _CudaOnHost(Binder):
    """Runs loops as a card does, on a processor."""

    def __init__(self, made: Mapping[Fused, tuple[HostKernels, CudaKernel]]) -> None:
        self._made = made

    def calls(self, run: RunContext, step: Step, operands: Sequence[Array], out: Array) -> Sequence[KernelCall]:
        """Of a loop, one call, which looks whether an argument was out of range."""
        if not isinstance(step.op, Fused):
            return bind_step(run, step, operands, out)
        return [(self._run, (step.op, operands, out))]

    def _run(self, op: Fused, operands: Sequence[Array], out: Sequence[Array]) -> None:
        if run_on_host(*self._made[op], operands, out):
            op.forward(RunContext(np), *operands, out=out)


def _for_a_card(printer: str, plan: Plan) -> Binder:
    """Kernels for a card, compiled for this processor."""
    ops = list(dict.fromkeys(op for op in kernel_ops(plan) if isinstance(op, Fused)))
    loops = [cuda_fused_kernel(op) for op in ops]
    return _CudaOnHost(dict(zip(ops, zip(on_host(printer, loops), loops, strict=True), strict=True)))


class _OnArrays(Binder):
    """Runs loops as a card does that has no kernel of them: by array functions."""

    def calls(self, run: RunContext, step: Step, operands: Sequence[Array], out: Array) -> Sequence[KernelCall]:
        """Of a loop, one call."""
        if not isinstance(step.op, Fused):
            return bind_step(run, step, operands, out)
        return [(run_on_arrays, (run, step.op.kernel, step.op.iteration_space, operands, out))]


_kernels: Final = Kernels(KernelStore())
#: what binds a plan's steps
_BINDERS: Final[dict[str, Callable[[Plan], Binder | None]]] = {
    "numpy": lambda plan: _kernels.uncompiled_binder,
    "llvm": _kernels.compile,
    "c": _by_c,
    "cuda": partial(_for_a_card, "cuda"),
    "ptx": partial(_for_a_card, "ptx"),
    "arrays": lambda plan: _OnArrays(),
}
#: those that run here
_THERE: Final = {
    "numpy": True,
    "llvm": find_spec("llvmlite"),
    "c": COMPILER,
    "cuda": COMPILER,
    "ptx": COMPILER and find_spec("llvmlite"),
    "arrays": True,
}
PRINTERS: Final = [name for name in _BINDERS if _THERE[name]]
#: compiled quickly: bits do not depend on how well
_C_FLAGS: Final = ("-O1",)
_built: Final[dict[tuple[str, int], NativeKernel]] = {}
_built_for_a_card: Final[dict[tuple[str, str], HostKernels]] = {}
_fused: Final[dict[str, WeakKeyDictionary[Plan, Plan]]] = {name: WeakKeyDictionary() for name in _BINDERS}
_ready: Final[dict[str, WeakKeyDictionary[Plan, ExecutionTier]]] = {name: WeakKeyDictionary() for name in _BINDERS}
_lock: Final = RLock()  # fusing patches a module, and threads share plans
_current: Final = {"printer": "none"}


def in_c(wanted: list[tuple[FusedKernel, int]]) -> list[NativeKernel]:
    """Kernels of loops and their lanes, each compiled once in this process."""
    missing = {(repr(loop), lanes): (loop, lanes) for loop, lanes in wanted}
    missing = {key: value for key, value in missing.items() if key not in _built}
    if missing:
        with tempfile.TemporaryDirectory() as folder:
            _built.update(zip(missing, c_kernels(list(missing.values()), Path(folder), *_C_FLAGS), strict=True))
    return [_built[repr(loop), lanes] for loop, lanes in wanted]


def on_host(printer: str, wanted: list[CudaKernel]) -> list[HostKernels]:
    """Kernels for a card of loops, as CUDA C or as LLVM IR, each compiled once in this process."""
    keys = [(printer, repr((loop.parts, loop.lanes, sorted(loop.kernels)))) for loop in wanted]
    missing = {key: loop for key, loop in zip(keys, wanted, strict=True) if key not in _built_for_a_card}
    loops = list(missing.values())
    if loops:
        with tempfile.TemporaryDirectory() as folder:
            if printer == "cuda":
                made = host_kernels([(loop.parts, loop.lanes) for loop in loops], Path(folder))
            else:
                made = host_ptx_kernels(loops, Path(folder))
        _built_for_a_card.update(zip(missing, made, strict=True))
    return [_built_for_a_card[key] for key in keys]


def fused(plan: Plan, printer: str) -> Plan:
    """The same with all of it fused that can be, single nodes too."""
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
    """What runs in the place of this plan, fused and compiled."""
    with _lock:
        if plan not in _ready[printer]:
            instead = fused(plan, printer)
            binder = _BINDERS[printer](instead)
            assert binder is not None
            _ready[printer][plan] = ExecutionTier(instead, binder)
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
        return self._run_prepared(ready(plan, printer), feeds, deadline)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NumPyExecutor, "execute", execute_fused)
        patch.setitem(_current, "printer", printer)
        yield
