"""Executors, which run a plan: NumPy on the CPU, CuPy on a GPU. One loop, two array modules.

Files:
    binding             From a step to the calls that run it. What fuses steps, or has kernels of its own, puts its
                        binder in this place
    body_layout         Layout of a body of a loop: where its results lie, which of them move from step to step, and
                        what it needs for that
    compiling           Compiling in the background: one thread, a bounded queue, and an end that waits for what is
                        inside the compiler
    cuda_binding        From a step to the calls that run it on a card: a compiled loop, else a card recipe, else the
                        op's own function
    cuda_capture        Calls in a row on a card: recorded once as a graph of CUDA, and launched again by one call
    cuda_clock          A card's clock for candidates: events on a stream of its own, and memory of the pool, while no
                        run is under way
    cuda_compiling      Compilers of kernels for a card: LLVM with nvJitLink, where both are there, and NVRTC, in all
                        cores' threads
    cuda_exchange       What a run is fed and what it finds, in a block on either side: copied to the card by one call,
                        and back by one
    cuda_flags          Flags on the card: faults that the kernels of one run find in their data, so that nobody waits
                        before the end
    cuda_kernels        Kernels of a card, of loops and of recipes: compiled once for its kind, kept, and launched by
                        plans
    cuda_pinned         Pinned memory of the host, which a card reads and writes by itself, and how much of it plans may
                        hold
    cuda_prepared_plan  A plan made ready to run on a card again and again: memory of its own, and all that it launches,
                        bound to it
    cuda_recipes        From card recipes to calls: kernels of their texts, and products by cuBLASLt, in the one
                        workspace of a worker
    cuda_registered     Large feeds from mapped memory of the host, which the card reads by itself once it is registered
    cupy_backend        A GPU. CuPy is imported when an executor is opened, never before
    feeds               A plan runs on feeds of the types that it was made for: anything else would be broadcast or cast
                        in silence
    host_mapping        Mapped memory of the host that says when it goes: a device may read it by itself until then
    instance_pool       Plans that are ready to run, kept while nobody runs them: those used lately, and a bounded
                        number of bytes
    interpreter         The loop that runs a plan step by step for any array module, and how compiled plans take the
                        places of others
    kernels             Loops as machine code: compiled once for this processor, kept, and bound where a plan has them
    left_loops          Loops that the runner has left for a step that is Python's: it makes that, and sends the runner
                        on behind it
    lifetimes           Lifetimes of a plan's memory: the part that stays from run to run, and the part that comes and
                        goes with each
    native_bodies       Bodies of loops as lists of native calls: bound once, and told where what moves lies by words of
                        their tables
    native_loops        Loops as one call of machine code: a runner goes through the calls of a body again and again
    native_recurrences  Recurrences bound as bodies of loops: one native call, which goes through as many steps as a
                        word says
    numpy_backend       The CPU
    output_buffer       Memory of large results. Most callers drop a result before they ask for the next one; then it
                        serves again
    paused_steps        Steps of bodies that Python makes, for which the runner leaves a loop: bound to arrays that lie
                        still meanwhile
    prepared_plan       A plan made ready to run again and again: memory of its own, and each kernel's call with its
                        arrays in it
    rebinding           Steps on arrays that come and go with runs: native calls are pointed at them, and others are
                        bound anew
    regions             Neighbouring native calls of a plan as one call: a runner makes them, one after the other, large
                        ones by threads
    segments            Calls in a row. Between two segments a run looks at the clock; an error inside one is told from
                        its position
    stopwatch           Time that each step of a run takes: the order of compiling is told from it
    sum_runs            Sums over examples, run block by block, and added up in a tree by position: neighbours first,
                        level by level
    tiers               Tiers of a plan: run by NumPy at first, and by compiled kernels once that is worth the compiling
    witness             Witness of what this process computes at this moment, in memory that outlives it: read by
                        whoever finds it dead
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import isabstract, isclass
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Final

from engine.executors.instance_pool import INSTANCE_BYTES
from engine.executors.interpreter import DEVICE_WORKSPACE, Executor, ExecutorSettings
from engine.executors.tiers import Compiling, Determinism
from engine.native.kernel_store import KernelStore


def _backends() -> Iterator[type[Executor]]:
    """The executors that stand in modules called so."""
    for module in iter_modules(__path__, f"{__name__}."):
        if module.name.endswith("_backend"):
            stated = vars(import_module(module.name)).values()
            yield from (
                found for found in stated if isclass(found) and issubclass(found, Executor) and not isabstract(found)
            )


#: kind of device → its executor
BACKENDS: Final[Mapping[str, type[Executor]]] = MappingProxyType(
    {backend.device: backend for backend in sorted(_backends(), key=lambda each: each.position)}
)


def open_executor(
    device: str = "auto",
    threads: int = 1,
    determinism: Determinism = "fast",
    store: KernelStore | None = None,
    instance_bytes: int = INSTANCE_BYTES,
    device_bytes: int | None = None,
    device_workspace: int = DEVICE_WORKSPACE,
    *,
    compile: Compiling = "off",
) -> Executor:
    """The executor for `device`: a kind of BACKENDS, as cpu or cuda, or auto (cuda where a usable GPU is found).

    On a CPU, `threads` are what one kernel may use. With `compile` on, loops are compiled: in the background, by and by
    (`determinism` fast), or before the first result (bitwise); `store` keeps what was compiled. Plans that are ready to
    run again may take `instance_bytes` in all while they are idle; on a GPU, what they carry to it and back, which lies
    in pinned memory, may take as many. Of a GPU's memory, at most `device_bytes` are taken, by default nine tenths;
    `device_workspace` of them, a quarter at most, are what its kernels and libraries work in.

    Raises RuntimeError when a device is asked for and cannot be had.
    """
    there = [
        backend for kind, backend in BACKENDS.items() if kind == device or (device == "auto" and backend.is_available())
    ]
    if not there:
        *others, last = "auto", *sorted(BACKENDS)
        raise ValueError(f"device must be {', '.join(others)} or {last}, but is {device}")
    sizes = instance_bytes, device_bytes, device_workspace
    return there[0].opened(ExecutorSettings(threads, determinism, store, *sizes, compile))
