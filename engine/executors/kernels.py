"""Loops as machine code: compiled once for this processor, kept, and bound where a plan has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from engine.executors.binding import Binder, bind_step
from engine.graph.op import Array, KernelCall, Namespace
from engine.loops.blocks import bind_blocks
from engine.loops.functions import expand_functions
from engine.loops.kernel_errors import KernelUnavailable
from engine.loops.kernel_store import KernelStore, kernel_key
from engine.loops.llvm_text import llvm_text
from engine.loops.machine_code import machine_code, target
from engine.loops.native import NativeKernel, native_kernel
from engine.loops.program import Loop
from engine.loops.schedule import lanes_of
from engine.loops.tiles import TILE
from engine.loops.turns import make_calls
from engine.loops.within_range import bind_within_range
from engine.planning.fused import Fused
from engine.planning.plan import Plan, Step

#: kernels that could not be made, which are remembered
MOST_REFUSED: Final = 4096


class CompiledLoop(NamedTuple):
    """A kernel, and the loop that it computes, whose functions are written out."""

    kernel: NativeKernel
    loop: Loop


def _never() -> bool:
    return False


class Kernels:
    """Makes the kernels of fused nodes. Threads may share it.

    A kernel that could not be made is not tried again, so that a plan runs one way as long as this lives.
    """

    def __init__(self, store: KernelStore | None = None, threads: int = 1) -> None:
        self._threads = threads
        self._store = KernelStore() if store is None else store
        self._loaded: WeakValueDictionary[str, NativeKernel] = WeakValueDictionary()
        self._refused: dict[str, str] = {}
        #: binds fused nodes by NumPy, block by block
        self.without: Binder = partial(bind_loops, {}, threads)
        #: the same in one thread: for once, others are not worth waking, while those of BLAS still look for work
        self.alone: Binder = partial(bind_loops, {}, 1)

    def compile(self, plan: Plan, closing: Callable[[], bool] = _never) -> Binder | None:
        """What binds the steps of a plan, all fused ones by kernels; None where `closing` came true between two.

        Raises KernelUnavailable: either all of a plan's kernels are there, or none is used.
        """
        made: dict[Fused, CompiledLoop] = {}
        for step in plan.steps:
            if isinstance(step.op, Fused) and step.op not in made:
                if closing():
                    return None
                made[step.op] = self._compiled(step.op)
        return partial(bind_loops, made, self._threads)

    def _compiled(self, op: Fused) -> CompiledLoop:
        loop = expand_functions(op.loop)
        lanes = lanes_of(loop, op.space.columns)
        text = llvm_text(loop, lanes)
        key = kernel_key(text, **target())
        kernel = self._loaded.get(key)
        if kernel is None:
            kernel = self._loaded[key] = self._made(key, loop, lanes, text)
        return CompiledLoop(kernel, loop)

    def _made(self, key: str, loop: Loop, lanes: int, text: str) -> NativeKernel:
        if key in self._refused:
            raise KernelUnavailable(self._refused[key])
        try:
            return self._kept(key, loop, lanes) or self._new(key, loop, lanes, text)
        except KernelUnavailable as error:
            self._refused[key] = str(error)
            if len(self._refused) > MOST_REFUSED:
                self._refused.pop(next(iter(self._refused)), None)
            raise

    def _kept(self, key: str, loop: Loop, lanes: int) -> NativeKernel | None:
        """The kernel that was kept; None where there is none, or it cannot be loaded."""
        code = self._store.get(key)
        try:
            return None if code is None else native_kernel(loop, lanes, code)
        except KernelUnavailable:
            return None

    def _new(self, key: str, loop: Loop, lanes: int, text: str) -> NativeKernel:
        code = machine_code(text)
        kernel = native_kernel(loop, lanes, code)
        self._store.put(key, code)
        return kernel


def bind_loops(
    compiled: Mapping[Fused, CompiledLoop],
    threads: int,
    xp: Namespace,
    step: Step,
    operands: Sequence[Array],
    out: Array,
) -> Sequence[KernelCall]:
    """The calls of a step: those of a loop by its kernel, where there is one, else by NumPy, block by block."""
    if not isinstance(step.op, Fused):
        return bind_step(xp, step, operands, out)
    op, found = step.op, compiled.get(step.op)
    if found is None:
        if op.space.length > TILE:
            return [(_run_blocks, (op, operands, out, threads))]
        return bind_blocks(op.loop, op.space, operands, out, threads)
    by_numpy = partial(bind_blocks, op.loop, op.space, threads=threads)
    return bind_within_range(found.kernel, found.loop, op.space, operands, out, threads, by_numpy)


def _run_blocks(op: Fused, operands: Sequence[Array], out: Array, threads: int) -> None:
    """Bound anew with each run, so that a plan of many loops holds the blocks of one at a time."""
    make_calls(bind_blocks(op.loop, op.space, operands, out, threads))
