"""Loops as machine code: compiled once for this processor, kept, and bound where a plan has them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from threading import Lock
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

from engine.executors.binding import bind_step
from engine.graph.op import Array, KernelCall, Namespace
from engine.loops.blocks import bind_blocks
from engine.loops.functions import expand_functions
from engine.loops.kernel_store import KernelStore, kernel_key
from engine.loops.machine_code import target
from engine.loops.native import NativeKernel, compile_loop, native_kernel
from engine.loops.program import Loop
from engine.loops.schedule import lanes_of
from engine.loops.within_range import bind_within_range
from engine.planning.fused import Fused
from engine.planning.plan import Plan, Step

#: names what prints loops, and changes with each of its texts: part of what a kept kernel is known by
PRINTER: Final = "llvm 2"


class CompiledLoop(NamedTuple):
    """A kernel, and the loop that it computes, whose functions are written out."""

    kernel: NativeKernel
    loop: Loop


class Kernels:
    """The kernels of fused nodes. Threads may share it."""

    def __init__(self, store: KernelStore | None = None, threads: int = 1) -> None:
        self.threads = threads
        self._store = KernelStore() if store is None else store
        self._of: WeakKeyDictionary[Fused, CompiledLoop] = WeakKeyDictionary()
        self._loaded: WeakValueDictionary[str, NativeKernel] = WeakValueDictionary()
        self._lock = Lock()

    def compile(self, plan: Plan) -> None:
        """Make the kernels of a plan, before it is bound. Raises KernelUnavailable."""
        for step in plan.steps:
            if isinstance(step.op, Fused) and step.op not in self._of:
                compiled = self._compiled(step.op)
                with self._lock:
                    self._of[step.op] = compiled

    def bind(self, xp: Namespace, step: Step, operands: Sequence[Array], out: Array) -> Sequence[KernelCall]:
        """The calls of a step: those of a loop by its kernel, where there is one, else by NumPy, block by block."""
        if not isinstance(step.op, Fused):
            return bind_step(xp, step, operands, out)
        compiled = self._of.get(step.op)
        if compiled is None:
            return bind_blocks(step.op.loop, step.op.space, operands, out, self.threads)
        by_numpy = partial(bind_blocks, step.op.loop, step.op.space, threads=self.threads)
        return bind_within_range(compiled.kernel, compiled.loop, step.op.space, operands, out, self.threads, by_numpy)

    def _compiled(self, op: Fused) -> CompiledLoop:
        loop = expand_functions(op.loop)
        lanes = lanes_of(loop, op.space.columns)
        key = kernel_key(repr(loop), PRINTER, lanes, **target())
        kernel = self._loaded.get(key)
        if kernel is None:
            code = self._store.get(key)
            if code is None:
                code = compile_loop(loop, lanes)
                self._store.put(key, code)
            kernel = self._loaded[key] = native_kernel(loop, lanes, code)
        return CompiledLoop(kernel, loop)
