"""GPU kernels of fused nodes, loops and recipes: compiled once per text, stored, and launched by plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from threading import Lock
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from engine.codegen.functions.expansions import reports_range
from engine.codegen.kernels.program import lanes_of
from engine.codegen.kernels.recurrence import recurrence_layout
from engine.codegen.native.machine_code import KernelStore, KernelUnavailable, RefusedKernels
from engine.compiler.body_plans import kernel_ops
from engine.compiler.control_flow import PlannedCountedScan, PlannedScan, StepLoop
from engine.compiler.fused_kernel import Fused
from engine.compiler.plan import Plan
from engine.cuda.compilers import CardText, Compilation, card_compilers, compilations, in_threads
from engine.cuda.cuda_text import cuda_parts, cuda_recurrence_text, cuda_text
from engine.cuda.launch import CudaKernel, Launch, recurrence_launch
from engine.cuda.ptx_text import ptx_recurrence_text, ptx_text
from engine.ir.op import Array, Kernel

#: bytes of kernel arguments that every GPU accepts
_MAX_ARGUMENT_BYTES: Final = 4096


class CudaModule:
    """Loaded kernels of one text, by name."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._functions: dict[str, Any] = {}

    def launch(self, launch: Launch) -> None:
        """Launch a kernel on the current stream."""
        function = self._functions.get(launch.kernel)
        if function is None:
            function = self._functions[launch.kernel] = self._module.get_function(launch.kernel)
        # CuPy passes an array by value if it has a single element, whatever that element's size.
        function((*launch.grid, 1), (*launch.block, 1), (launch.table.view(f"V{launch.table.nbytes}"),))


class CompiledCudaKernel:
    """Fused kernel, loaded on the GPU."""

    def __init__(self, module: CudaModule, kernel: CudaKernel) -> None:
        self._module, self._kernel = module, kernel
        self.workspace = kernel.workspace

    def launches(
        self, operands: Sequence[Array], results: Sequence[Array], workspace: Array, flag: int
    ) -> list[tuple[Callable[..., object], tuple[Launch]]]:
        """Return the calls that compute `results`, in `workspace`; `flag` is the address of a byte."""
        launches = self._kernel.bind(operands, results, workspace.data.ptr, flag, lambda array: array.data.ptr)
        return [(self._module.launch, (launch,)) for launch in launches]


class CompiledCudaRecurrence:
    """Kernel that runs all steps of a scan, loaded on the GPU."""

    #: bytes of workspace
    workspace = 0

    def __init__(self, module: CudaModule, loop: StepLoop) -> None:
        self._module, self._loop = module, loop

    def launches(
        self, operands: Sequence[Array], results: Sequence[Array], attrs: Mapping[str, Any], flag: int
    ) -> list[tuple[Callable[..., object], tuple[Launch]]]:
        """Return the call that computes `results`; `flag` is the address of a byte, set if a step is out of range."""
        loop, carries, length = self._loop, attrs["carries"], attrs["length"]
        entries = loop.entries(operands, results, carries, reverse=attrs["reverse"])
        arrays = [*[operands[number] for number in loop.inputs], *results]
        # A reverse scan begins at the last entry of each array.
        last = (length - 1) * attrs["reverse"]
        first_addresses = [
            array.data.ptr + last * abs(entry) * array.itemsize for array, entry in zip(arrays, entries, strict=True)
        ]
        input_addresses, result_addresses = first_addresses[: len(loop.inputs)], first_addresses[len(loop.inputs) :]
        launch = recurrence_launch(
            loop.expanded, loop.space, length, entries, input_addresses, result_addresses, flag, (*operands, *results)
        )
        return [(self._module.launch, (launch,))]


class CudaKernels:
    """Compiler and loader of kernels for the current GPU: of fused nodes, scans and texts. Thread-safe.

    A kernel that could not be compiled is not tried again, so that a plan always runs the same way.
    """

    def __init__(self, cupy: Any, store: KernelStore | None = None) -> None:
        self._cupy = cupy
        self._store = KernelStore() if store is None else store
        self._loaded: WeakValueDictionary[str, CudaModule] = WeakValueDictionary()
        self._refused = RefusedKernels()
        self._lock = Lock()
        #: number of kernels that were compiled or loaded, and of those that were compiled
        self.loaded_count = 0
        self.compiled = 0

    def compile(
        self,
        plan: Plan,
        stop: Callable[[], bool] = lambda: False,
        first: Iterable[Kernel] = (),
        texts: Iterable[str] = (),
    ) -> dict[Kernel, CudaCode] | None:
        """Compile and load the kernels of a plan, those of the ops in `first` first; None once `stop` returns True.

        Missing kernels are compiled in parallel, together with `texts` of CUDA C, which `module` then returns. The
        calling thread loads all kernels in order. Raises KernelUnavailable, but not for `texts`.
        """
        compiled: dict[Kernel, CudaCode] = {}
        plan_ops = {op: op for op in kernel_ops(plan, _has_step_kernel)}
        ops, request = (
            list(dict.fromkeys([*(plan_ops[op] for op in first if op in plan_ops), *plan_ops])),
            cache(_request),
        )
        self._compile_missing(chain((request(op).text for op in ops), map(_in_cuda, texts)), stop)
        for op in ops:
            if stop():
                return None
            compiled[op] = request(op).bound(self.module(request(op).text))
        return compiled

    def _compile_missing(self, texts: Iterable[CardText], stop: Callable[[], bool]) -> None:
        """Compile kernels that are not in the store, and remember those that were refused."""
        compilers = card_compilers(self._cupy)

        def jobs() -> Iterator[Callable[[], None]]:
            keys = set[str]()
            for text in texts:
                if stop():
                    return
                compilation = next(compilations(text, compilers), None)
                if compilation is not None and compilation.key not in keys:
                    keys.add(compilation.key)
                    yield partial(self._compile, compilations(text, compilers))

        in_threads(jobs())

    def _compile(self, candidates: Iterable[Compilation]) -> None:
        """Compile a kernel with the first compiler that accepts it, unless it is in the store."""
        for compilation in candidates:
            if compilation.key in self._refused:
                continue
            if compilation.key in self._loaded or self._store.get(compilation.key) is not None:
                return
            try:
                self._code(compilation)
            except KernelUnavailable as error:
                self._refused.add(compilation.key, str(error))
            else:
                return

    def module(self, text: CardText | str) -> CudaModule:
        """Load or compile the kernels of a text, or of CUDA C alone. Raises KernelUnavailable."""
        card_text, refusals = _in_cuda(text) if isinstance(text, str) else text, list[str]()
        for compilation in compilations(card_text, card_compilers(self._cupy)):
            module = self._loaded.get(compilation.key)
            if module is not None:
                return module
            try:
                module = self._loaded[compilation.key] = self._load_or_compile(compilation)
            except KernelUnavailable as error:
                refusals.append(str(error))
            else:
                self.loaded_count += 1
                return module
        raise KernelUnavailable("; ".join(refusals))

    def _load_or_compile(self, compilation: Compilation) -> CudaModule:
        self._refused.require(compilation.key)
        try:
            return self._load_stored(compilation.key) or self._load(self._code(compilation))
        except KernelUnavailable as error:
            self._refused.add(compilation.key, str(error))
            raise

    def _load_stored(self, key: str) -> CudaModule | None:
        """Load kernels from the store; None if they are missing or cannot be loaded."""
        code = self._store.get(key)
        try:
            return None if code is None else self._load(code)
        except KernelUnavailable:
            return None

    def _code(self, compilation: Compilation) -> bytes:
        code = compilation.compile()
        with self._lock:
            self.compiled += 1
        self._store.put(compilation.key, code)
        return code

    def _load(self, code: bytes) -> CudaModule:
        module = self._cupy.cuda.function.Module()
        try:
            module.load(code)
        except self._cupy.cuda.driver.CUDADriverError as error:
            raise KernelUnavailable(f"a kernel was not loaded: {error}") from None
        return CudaModule(module)


def _in_cuda(text: str) -> CardText:
    return CardText(lambda: text)


def _has_step_kernel(scan: PlannedScan) -> bool:
    """Return whether one kernel runs all steps: not if only the GPU knows their number, or its table is too large."""
    loop = scan.step_loop
    if loop is None or isinstance(scan, PlannedCountedScan):
        return False
    return 8 * recurrence_layout(loop.recurrence).size <= _MAX_ARGUMENT_BYTES


def cuda_fused_kernel(op: Fused) -> CudaKernel:
    """Split the kernel of a fused node for the GPU, with as many lanes as on a CPU, so that both add in one order.

    Raises KernelUnavailable.
    """
    fused = op.expanded
    parts = cuda_parts(fused, reports_range=reports_range(op.kernel))
    kernel = CudaKernel(op.kernel, parts, op.iteration_space, lanes_of(fused, op.iteration_space.columns))
    if kernel.table_bytes > _MAX_ARGUMENT_BYTES:
        raise KernelUnavailable(f"a kernel would take {kernel.table_bytes} bytes of arguments")
    return kernel


CudaCode = CompiledCudaKernel | CompiledCudaRecurrence


class _Request(NamedTuple):
    """Kernel that a plan needs: its text, and a function that binds it to the loaded module."""

    text: CardText
    bound: Callable[[CudaModule], CudaCode]


def _request(op: Kernel) -> _Request:
    if isinstance(op, PlannedScan):
        steps = op.step_loop
        assert steps is not None
        return _Request(recurrence_card_text(steps), lambda module: CompiledCudaRecurrence(module, steps))
    assert isinstance(op, Fused)
    kernel = cuda_fused_kernel(op)
    return _Request(kernel_card_text(kernel), lambda module: CompiledCudaKernel(module, kernel))


def kernel_card_text(kernel: CudaKernel) -> CardText:
    """Return the text of a fused node's kernels in each language."""
    return CardText(
        cache(lambda: cuda_text(kernel.parts, kernel.lanes)),
        cache(lambda: ptx_text(kernel.parts, kernel.lanes, kernel.kernels)),
    )


def recurrence_card_text(loop: StepLoop) -> CardText:
    """Return the text of the kernel that runs all steps of a loop in each language."""
    return CardText(
        cache(lambda: cuda_recurrence_text(loop.expanded)), cache(lambda: ptx_recurrence_text(loop.expanded))
    )
