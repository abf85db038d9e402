"""Kernels of a GPU, of fused nodes, loops and recipes: compiled once for its kind, stored, and launched by plans."""

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
from engine.cuda.compilers import CardText, CardWay, card_compilers, in_threads, ways
from engine.cuda.cuda_text import cuda_parts, cuda_recurrence_text, cuda_text
from engine.cuda.launch import CudaKernel, Launch, recurrence_launch
from engine.cuda.ptx_text import ptx_recurrence_text, ptx_text
from engine.ir.op import Array, Kernel

#: bytes of arguments that any card takes
_MOST_ARGUMENTS: Final = 4096


class CudaModule:
    """The loaded kernels of one text, by name."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._functions: dict[str, Any] = {}

    def launch(self, launch: Launch) -> None:
        """Launch a kernel on the current stream."""
        function = self._functions.get(launch.kernel)
        if function is None:
            function = self._functions[launch.kernel] = self._module.get_function(launch.kernel)
        # CuPy passes an array by value where it has one element, however large that is.
        function((*launch.grid, 1), (*launch.block, 1), (launch.table.view(f"V{launch.table.nbytes}"),))


class CompiledCudaKernel:
    """A fused kernel, loaded on the GPU."""

    def __init__(self, module: CudaModule, loop: CudaKernel) -> None:
        self._module, self._loop = module, loop
        self.workspace = loop.workspace

    def launches(
        self, operands: Sequence[Array], results: Sequence[Array], workspace: Array, flag: int
    ) -> list[tuple[Callable[..., object], tuple[Launch]]]:
        """Make the calls that compute `results`; `workspace` is large enough, `flag` the address of a byte."""
        launches = self._loop.bind(operands, results, workspace.data.ptr, flag, lambda array: array.data.ptr)
        return [(self._module.launch, (launch,)) for launch in launches]


class CompiledCudaRecurrence:
    """A kernel that runs all steps of a scan, loaded on the GPU."""

    #: bytes that it works in
    workspace = 0

    def __init__(self, module: CudaModule, loop: StepLoop) -> None:
        self._module, self._loop = module, loop

    def launches(
        self, operands: Sequence[Array], results: Sequence[Array], attrs: Mapping[str, Any], flag: int
    ) -> list[tuple[Callable[..., object], tuple[Launch]]]:
        """Make the call that computes `results`; `flag` is the address of a byte, set if a step is out of range."""
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
    """Maker of kernels for the current card, of fused nodes, scans and texts. Threads may share it.

    A kernel that could not be made is not tried again, so that a plan always runs one way.
    """

    def __init__(self, cupy: Any, store: KernelStore | None = None) -> None:
        self._cupy = cupy
        self._store = KernelStore() if store is None else store
        self._loaded: WeakValueDictionary[str, CudaModule] = WeakValueDictionary()
        self._refused = RefusedKernels()
        self._lock = Lock()
        #: number of kernels that were compiled or loaded, and of those that were compiled
        self.made = 0
        self.compiled = 0

    def compile(
        self,
        plan: Plan,
        stop: Callable[[], bool] = lambda: False,
        first: Iterable[Kernel] = (),
        texts: Iterable[str] = (),
    ) -> dict[Kernel, CudaCode] | None:
        """Make the kernels of a plan, those of the ops `first` first; None if `stop` came true between two.

        Missing ones are compiled side by side, and with them `texts` of CUDA C, which `module` then has; the calling
        thread loads all kernels in their order. Raises KernelUnavailable, but not for `texts`.
        """
        made: dict[Kernel, CudaCode] = {}
        known = {op: op for op in kernel_ops(plan, _is_gone_through)}
        ops, request = list(dict.fromkeys([*(known[op] for op in first if op in known), *known])), cache(_request)
        self._compile_missing(chain((request(op).text for op in ops), map(_in_cuda, texts)), stop)
        for op in ops:
            if stop():
                return None
            made[op] = request(op).bound(self.module(request(op).text))
        return made

    def _compile_missing(self, texts: Iterable[CardText], stop: Callable[[], bool]) -> None:
        """Compile kernels that are not in the store, and remember those that were refused."""
        compilers = card_compilers(self._cupy)

        def jobs() -> Iterator[Callable[[], None]]:
            asked = set[str]()
            for text in texts:
                if stop():
                    return
                way = next(ways(text, compilers), None)
                if way is not None and way.key not in asked:
                    asked.add(way.key)
                    yield partial(self._compile, ways(text, compilers))

        in_threads(jobs())

    def _compile(self, ways: Iterable[CardWay]) -> None:
        """Compile a kernel by the first way that is not refused, unless it is in the store."""
        for way in ways:
            if way.key in self._refused:
                continue
            if way.key in self._loaded or self._store.get(way.key) is not None:
                return
            try:
                self._code(way)
            except KernelUnavailable as error:
                self._refused.add(way.key, str(error))
            else:
                return

    def module(self, text: CardText | str) -> CudaModule:
        """Load or compile the kernels of a text, or of CUDA C alone. Raises KernelUnavailable if all ways fail."""
        asked, refusals = _in_cuda(text) if isinstance(text, str) else text, list[str]()
        for way in ways(asked, card_compilers(self._cupy)):
            module = self._loaded.get(way.key)
            if module is not None:
                return module
            try:
                module = self._loaded[way.key] = self._made(way)
            except KernelUnavailable as error:
                refusals.append(str(error))
            else:
                self.made += 1
                return module
        raise KernelUnavailable("; ".join(refusals))

    def _made(self, way: CardWay) -> CudaModule:
        self._refused.demand(way.key)
        try:
            return self._kept(way.key) or self._load(self._code(way))
        except KernelUnavailable as error:
            self._refused.add(way.key, str(error))
            raise

    def _kept(self, key: str) -> CudaModule | None:
        """Load kernels from the store; None if they are not there, or cannot be loaded."""
        code = self._store.get(key)
        try:
            return None if code is None else self._load(code)
        except KernelUnavailable:
            return None

    def _code(self, way: CardWay) -> bytes:
        code = way.compile()
        with self._lock:
            self.compiled += 1
        self._store.put(way.key, code)
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


def _is_gone_through(scan: PlannedScan) -> bool:
    """Whether one kernel runs all steps: not if their number is known on the GPU alone, or its table is too large."""
    loop = scan.step_loop
    if loop is None or isinstance(scan, PlannedCountedScan):
        return False
    return 8 * recurrence_layout(loop.recurrence).size <= _MOST_ARGUMENTS


def cuda_fused_kernel(op: Fused) -> CudaKernel:
    """Divide the kernel of a fused node, with as many lanes as on a CPU, so that both add in one order.

    Raises KernelUnavailable.
    """
    loop = op.expanded
    parts = cuda_parts(loop, reports_range=reports_range(op.loop))
    kernel = CudaKernel(op.loop, parts, op.space, lanes_of(loop, op.space.columns))
    if kernel.table_bytes > _MOST_ARGUMENTS:
        raise KernelUnavailable(f"a kernel would take {kernel.table_bytes} bytes of arguments")
    return kernel


CudaCode = CompiledCudaKernel | CompiledCudaRecurrence


class _Request(NamedTuple):
    """A kernel that a plan needs: its text, and a function that makes it of the loaded module."""

    text: CardText
    bound: Callable[[CudaModule], CudaCode]


def _request(op: Kernel) -> _Request:
    if isinstance(op, PlannedScan):
        steps = op.step_loop
        assert steps is not None
        return _Request(recurrence_card_text(steps), lambda module: CompiledCudaRecurrence(module, steps))
    assert isinstance(op, Fused)
    loop = cuda_fused_kernel(op)
    return _Request(kernel_card_text(loop), lambda module: CompiledCudaKernel(module, loop))


def kernel_card_text(loop: CudaKernel) -> CardText:
    """Write the kernels of a fused node, in each language."""
    return CardText(
        cache(lambda: cuda_text(loop.parts, loop.lanes)), cache(lambda: ptx_text(loop.parts, loop.lanes, loop.kernels))
    )


def recurrence_card_text(loop: StepLoop) -> CardText:
    """Write the kernel that runs all steps of a loop, in each language."""
    return CardText(
        cache(lambda: cuda_recurrence_text(loop.expanded)), cache(lambda: ptx_recurrence_text(loop.expanded))
    )
