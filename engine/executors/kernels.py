"""Loops as machine code: compiled once for this processor, kept, and bound where a plan has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from engine.executors.binding import Binder, bind_step
from engine.graph.op import Array, KernelCall, Namespace
from engine.graph.tensor_type import HostArray
from engine.loops.blocks import bind_blocks
from engine.loops.kernel_errors import KernelUnavailable
from engine.loops.kernel_store import KernelStore, kernel_key
from engine.loops.llvm_text import llvm_text
from engine.loops.machine_code import machine_code, target
from engine.loops.native import NativeKernel, block_count, kernel_workspace, native_kernel
from engine.loops.part_sums import LANES, sum_loop
from engine.loops.program import Loop
from engine.loops.runner import Runner, shared_runner
from engine.loops.schedule import lanes_of
from engine.loops.turns import make_calls
from engine.loops.within_range import bind_within_range
from engine.planning.fused import Fused
from engine.planning.plan import Plan, Step

#: kernels that could not be made, which are remembered
MOST_REFUSED: Final = 4096


class CompiledLoop(NamedTuple):
    """A kernel, and the loop that it computes, whose functions are written out; and kernels that add up its parts."""

    kernel: NativeKernel
    loop: Loop
    sums: Mapping[str, NativeKernel]


def _never() -> bool:
    return False


class Kernels:
    """Makes the kernels of fused nodes. Threads may share it.

    A kernel that could not be made is not tried again, so that a plan runs one way as long as this lives.
    """

    def __init__(self, store: KernelStore | None = None, threads: int = 1) -> None:
        self.threads = threads
        self._store = KernelStore() if store is None else store
        self._loaded: WeakValueDictionary[str, NativeKernel] = WeakValueDictionary()
        self._refused: dict[str, str] = {}
        #: kernels that were compiled or loaded, so far
        self.made = 0
        #: binds fused nodes by NumPy, block by block
        self.without = LoopBinder({}, threads)

    def compile(self, plan: Plan, closing: Callable[[], bool] = _never) -> LoopBinder | None:
        """What binds the steps of a plan, all fused ones by kernels; None where `closing` came true between two.

        As many threads take part in them as may, unless they would work in more memory than was planned: then one.
        Raises KernelUnavailable: either all of a plan's kernels are there, or none is used.
        """
        made: dict[Fused, CompiledLoop] = {}
        for step in plan.steps:
            if isinstance(step.op, Fused) and step.op not in made:
                if closing():
                    return None
                made[step.op] = self._compiled(step.op)
        return self._fitting(plan, made, shared_runner(self._store))

    def _fitting(self, plan: Plan, made: Mapping[Fused, CompiledLoop], runner: Runner | None) -> LoopBinder:
        """So that bits do not depend on threads, it is decided for one whether kernels fit in what was planned."""
        alone, together = LoopBinder(made, 1, runner), LoopBinder(made, self.threads, runner)
        takes = {binder: max(map(binder.workspace, plan.steps), default=0) for binder in (alone, together)}
        room = max((op.works_in(1) for op in made), default=0)
        if takes[alone] > room:
            raise KernelUnavailable(f"kernels would work in {takes[alone]} bytes, and {room} were planned")
        return together if takes[together] <= max((op.works_in(op.threads) for op in made), default=0) else alone

    def _compiled(self, op: Fused) -> CompiledLoop:
        loop = op.expanded
        kernel = self._kernel(loop, lanes_of(loop, op.space.columns))
        return CompiledLoop(kernel, loop, {k: self._kernel(sum_loop(loop.dtype, k), LANES) for k in sum_kinds(op)})

    def _kernel(self, loop: Loop, lanes: int) -> NativeKernel:
        text = llvm_text(loop, lanes)
        key = kernel_key(text, **target())
        kernel = self._loaded.get(key)
        if kernel is None:
            kernel = self._loaded[key] = self._made(key, loop, lanes, text)
            self.made += 1
        return kernel

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


class LoopBinder(Binder):
    """Binds loops to their kernels, where there are any, else to NumPy, which computes them block by block.

    `threads` may take part in a kernel, and in the rest those that it was planned for. Other steps are bound to their
    ops' own calls.
    """

    def __init__(self, compiled: Mapping[Fused, CompiledLoop], threads: int, runner: Runner | None = None) -> None:
        self.compiled = compiled
        self.runner = runner
        self._threads = threads

    def workspace(self, step: Step) -> int:
        """That of a kernel. NumPy's is allocated anew with each run."""
        if not isinstance(step.op, Fused) or step.op not in self.compiled:
            return 0
        kernel, loop, _ = self.compiled[step.op]
        return kernel_workspace(kernel, loop, step.op.space, self._threads)

    def calls(
        self, xp: Namespace, step: Step, operands: Sequence[Array], out: Array, workspace: HostArray
    ) -> Sequence[KernelCall]:
        """As its parent."""
        if not isinstance(step.op, Fused):
            return bind_step(xp, step, operands, out)
        op, found = step.op, self.compiled.get(step.op)
        if found is None:
            return [(_run_blocks, (op, operands, out))]
        by_numpy = partial(bind_blocks, op.loop, op.space, threads=op.threads)
        kernel, loop, sums = found
        return bind_within_range(kernel, loop, op.space, operands, out, self._threads, by_numpy, workspace, sums)


def sum_kinds(op: Fused) -> list[str]:
    """The kinds of the op's results that several blocks make parts of."""
    kinds = {result.kind for result in op.expanded.results if result.adds_up}
    return sorted(kinds) if block_count(op.space) > 1 else []


def _run_blocks(op: Fused, operands: Sequence[Array], out: Array) -> None:
    """Bound anew with each run, so that a plan of many loops holds the blocks of one at a time."""
    make_calls(bind_blocks(op.loop, op.space, operands, out, op.threads))
