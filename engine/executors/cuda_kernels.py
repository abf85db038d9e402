"""Kernels of a card, of loops and of recipes: compiled once for its kind by NVRTC, kept, and launched by plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from weakref import WeakValueDictionary

from engine.functions.expansions import reports_range
from engine.graph.op import Array, Kernel
from engine.loops.cuda_launch import CudaLoop, Launch
from engine.loops.cuda_parts import cuda_parts
from engine.loops.cuda_recurrence import cuda_recurrence_text, recurrence_launch
from engine.loops.cuda_text import OPTIONS, cuda_text
from engine.loops.recurrence import recurrence_layout
from engine.loops.schedule import lanes_of
from engine.native.kernel_errors import KernelUnavailable
from engine.native.kernel_store import KernelStore, kernel_key
from engine.planning.compiled_bodies import kernel_ops
from engine.planning.fused import Fused
from engine.planning.looped import PlannedCountedScan, PlannedScan
from engine.planning.plan import Plan
from engine.planning.step_loop import StepLoop

#: bytes of arguments that any card takes
_MOST_ARGUMENTS: Final = 4096
#: kernels that could not be made, which are remembered
_MOST_REFUSED: Final = 4096


class CudaModule:
    """The loaded kernels of one text, by name."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._functions: dict[str, Any] = {}

    def launch(self, launch: Launch) -> None:
        """Launch one of them on the current stream."""
        function = self._functions.get(launch.kernel)
        if function is None:
            function = self._functions[launch.kernel] = self._module.get_function(launch.kernel)
        # CuPy passes an array by value where it has one element, however large that is.
        function((*launch.grid, 1), (*launch.block, 1), (launch.table.view(f"V{launch.table.nbytes}"),))


class CompiledCudaLoop:
    """A loop of a plan as a card runs it."""

    def __init__(self, module: CudaModule, loop: CudaLoop) -> None:
        self._module, self._loop = module, loop
        self.workspace = loop.workspace

    def launches(
        self, operands: Sequence[Array], results: Sequence[Array], workspace: Array, flag: int
    ) -> list[tuple[Callable[..., object], tuple[Launch]]]:
        """The calls that compute `results`, in an array of bytes that is large enough; `flag` is the address of one."""
        found = self._loop.bind(operands, results, workspace.data.ptr, flag, lambda array: array.data.ptr)
        return [(self._module.launch, (launch,)) for launch in found]


class CompiledCudaRecurrence:
    """A scan of a plan whose steps a kernel goes through by itself, as a card runs it."""

    #: bytes that it works in
    workspace = 0

    def __init__(self, module: CudaModule, loop: StepLoop) -> None:
        self._module, self._loop = module, loop

    def launches(
        self, operands: Sequence[Array], results: Sequence[Array], attrs: Mapping[str, Any], flag: int
    ) -> list[tuple[Callable[..., object], tuple[Launch]]]:
        """The call that computes `results`; `flag` is the address of a byte that tells of what is out of range."""
        loop, carries, length = self._loop, attrs["carries"], attrs["length"]
        entries = loop.entries(operands, results, carries, reverse=attrs["reverse"])
        arrays = [*[operands[fed] for fed in loop.inputs], *results]
        last = (length - 1) * attrs["reverse"]
        at_first = [
            array.data.ptr + last * abs(entry) * array.itemsize for array, entry in zip(arrays, entries, strict=True)
        ]
        given, written = at_first[: len(loop.inputs)], at_first[len(loop.inputs) :]
        launch = recurrence_launch(
            loop.expanded, loop.space, length, entries, given, written, flag, (*operands, *results)
        )
        return [(self._module.launch, (launch,))]


class CudaKernels:
    """Makes kernels for the current card: of fused nodes, of scans that are loops, and of texts. Threads may share it.

    One that could not be made is not tried again, so that a plan runs one way as long as this lives.
    """

    def __init__(self, cupy: Any, store: KernelStore | None = None) -> None:
        self._cupy = cupy
        self._store = KernelStore() if store is None else store
        self._loaded: WeakValueDictionary[str, CudaModule] = WeakValueDictionary()
        self._refused: dict[str, str] = {}
        #: kernels that were compiled or loaded, so far; and of these, those that were compiled
        self.made = 0
        self.compiled = 0

    def compile(
        self, plan: Plan, stop: Callable[[], bool] = lambda: False, first: Iterable[Kernel] = ()
    ) -> dict[Kernel, CudaCode] | None:
        """The loops of a plan, first those of the ops `first`; None where `stop` came true between two.

        Raises KernelUnavailable.
        """
        made: dict[Kernel, CudaCode] = {}
        there = {op: op for op in kernel_ops(plan, _is_gone_through)}
        for op in dict.fromkeys([*(there[op] for op in first if op in there), *there]):
            if stop():
                return None
            made[op] = self._recurrence(op.step_loop) if isinstance(op, PlannedScan) else self._loop(op)
        return made

    def _loop(self, op: Kernel) -> CompiledCudaLoop:
        assert isinstance(op, Fused)
        loop = cuda_loop(op)
        return CompiledCudaLoop(self.module(cuda_text(loop.parts, loop.lanes)), loop)

    def _recurrence(self, loop: StepLoop | None) -> CompiledCudaRecurrence:
        assert loop is not None
        return CompiledCudaRecurrence(self.module(cuda_recurrence_text(loop.expanded)), loop)

    def module(self, text: str) -> CudaModule:
        """The kernels of a text, compiled or loaded. Raises KernelUnavailable."""
        architecture = self._cupy.cuda.Device().compute_capability
        version = ".".join(map(str, self._cupy.cuda.nvrtc.getVersion()))
        key = kernel_key(text, system="cuda", processor=f"sm_{architecture}", compiler=f"nvrtc {version} {OPTIONS}")
        found = self._loaded.get(key)
        if found is None:
            found = self._loaded[key] = self._made(key, text, architecture)
            self.made += 1
        return found

    def _made(self, key: str, text: str, architecture: str) -> CudaModule:
        if key in self._refused:
            raise KernelUnavailable(self._refused[key])
        try:
            return self._kept(key) or self._new(key, text, architecture)
        except KernelUnavailable as error:
            self._refused[key] = str(error)
            if len(self._refused) > _MOST_REFUSED:
                self._refused.pop(next(iter(self._refused)), None)
            raise

    def _kept(self, key: str) -> CudaModule | None:
        """The kernels that were kept; None where there are none, or they cannot be loaded."""
        code = self._store.get(key)
        try:
            return None if code is None else self._load(code)
        except KernelUnavailable:
            return None

    def _new(self, key: str, text: str, architecture: str) -> CudaModule:
        code = compile_cuda(self._cupy, text, architecture)
        self.compiled += 1
        module = self._load(code)
        self._store.put(key, code)
        return module

    def _load(self, code: bytes) -> CudaModule:
        module = self._cupy.cuda.function.Module()
        try:
            module.load(code)
        except self._cupy.cuda.driver.CUDADriverError as error:
            raise KernelUnavailable(f"a kernel was not loaded: {error}") from None
        return CudaModule(module)


def _is_gone_through(scan: PlannedScan) -> bool:
    """Whether one kernel goes through all steps: not where the card alone knows how many there are."""
    loop = scan.step_loop
    if loop is None or isinstance(scan, PlannedCountedScan):
        return False
    return 8 * recurrence_layout(loop.recurrence).size <= _MOST_ARGUMENTS


def cuda_loop(op: Fused) -> CudaLoop:
    """The loop of a fused node in parts, with the lanes that its kernel for a processor has. Raises KernelUnavailable.

    So both add in one order.
    """
    loop = op.expanded
    parts = cuda_parts(loop, reports_range=reports_range(op.loop))
    found = CudaLoop(op.loop, parts, op.space, lanes_of(loop, op.space.columns))
    if found.table_bytes > _MOST_ARGUMENTS:
        raise KernelUnavailable(f"a kernel would take {found.table_bytes} bytes of arguments")
    return found


CudaCode = CompiledCudaLoop | CompiledCudaRecurrence


def compile_cuda(cupy: Any, text: str, architecture: str) -> bytes:
    """Machine code for cards of this compute capability (90: 9.0). Raises KernelUnavailable."""
    nvrtc = cupy.cuda.nvrtc
    program = nvrtc.createProgram(text, "loop.cu", (), ())
    try:
        nvrtc.compileProgram(program, (*OPTIONS, f"--gpu-architecture=sm_{architecture}"))
        code: bytes = nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError as error:
        raise KernelUnavailable(f"NVRTC: {error}: {nvrtc.getProgramLog(program)[:500]}") from None
    finally:
        nvrtc.destroyProgram(program)
    return code
