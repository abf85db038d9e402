"""Kernels of a GPU, fused ones and those of recipes: compiled once for its kind, kept, and launched by plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from threading import Lock
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from engine.codegen.functions.expansions import reports_range
from engine.codegen.kernels.recurrence import recurrence_layout
from engine.codegen.kernels.schedule import lanes_of
from engine.codegen.native.kernel_errors import KernelUnavailable, RefusedKernels
from engine.codegen.native.kernel_store import KernelStore
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
        """Launch one of them on the current stream."""
        function = self._functions.get(launch.kernel)
        if function is None:
            function = self._functions[launch.kernel] = self._module.get_function(launch.kernel)
        # CuPy passes an array by value where it has one element, however large that is.
        function((*launch.grid, 1), (*launch.block, 1), (launch.table.view(f"V{launch.table.nbytes}"),))


class CompiledCudaKernel:
    """A loop of a plan as a card runs it."""

    def __init__(self, module: CudaModule, loop: CudaKernel) -> None:
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
    """Maker of kernels for the current card: of fused nodes, of scans that are loops, of texts. Threads may share it.

    One that could not be made is not tried again, so that a plan runs one way as long as this lives.
    """

    def __init__(self, cupy: Any, store: KernelStore | None = None) -> None:
        self._cupy = cupy
        self._store = KernelStore() if store is None else store
        self._loaded: WeakValueDictionary[str, CudaModule] = WeakValueDictionary()
        self._refused = RefusedKernels()
        self._lock = Lock()
        #: kernels that were compiled or loaded, so far; and of these, those that were compiled
        self.made = 0
        self.compiled = 0

    def compile(
        self,
        plan: Plan,
        stop: Callable[[], bool] = lambda: False,
        first: Iterable[Kernel] = (),
        texts: Iterable[str] = (),
    ) -> dict[Kernel, CudaCode] | None:
        """The loops of a plan, first those of the ops `first`; None where `stop` came true between two.

        What is missing is compiled first, side by side, with it `texts` of CUDA C, which `module` then has; and all is
        loaded by the thread that asks, in its order. Raises KernelUnavailable for a loop.
        """
        made: dict[Kernel, CudaCode] = {}
        there = {op: op for op in kernel_ops(plan, _is_gone_through)}
        ops, wanted = list(dict.fromkeys([*(there[op] for op in first if op in there), *there])), cache(_wanted)
        self._compile_missing(chain((wanted(op).text for op in ops), map(_in_cuda, texts)), stop)
        for op in ops:
            if stop():
                return None
            made[op] = wanted(op).bound(self.module(wanted(op).text))
        return made

    def _compile_missing(self, texts: Iterable[CardText], stop: Callable[[], bool]) -> None:
        """Have kernels that are not there in the store, and remember what was refused."""
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
        """Have the code of the first way that is not refused."""
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
        """The kernels of a text, or of CUDA C alone, compiled or loaded. Raises KernelUnavailable, where all refuse."""
        asked, refusals = _in_cuda(text) if isinstance(text, str) else text, list[str]()
        for way in ways(asked, card_compilers(self._cupy)):
            found = self._loaded.get(way.key)
            if found is not None:
                return found
            try:
                found = self._loaded[way.key] = self._made(way)
            except KernelUnavailable as error:
                refusals.append(str(error))
            else:
                self.made += 1
                return found
        raise KernelUnavailable("; ".join(refusals))

    def _made(self, way: CardWay) -> CudaModule:
        self._refused.demand(way.key)
        try:
            return self._kept(way.key) or self._load(self._code(way))
        except KernelUnavailable as error:
            self._refused.add(way.key, str(error))
            raise

    def _kept(self, key: str) -> CudaModule | None:
        """The kernels that were kept; None where there are none, or they cannot be loaded."""
        code = self._store.get(key)
        try:
            return None if code is None else self._load(code)
        except KernelUnavailable:
            return None

    def _code(self, way: CardWay) -> bytes:
        """What is compiled now, and kept."""
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
    """Whether one kernel goes through all steps: not where the card alone knows how many there are."""
    loop = scan.step_loop
    if loop is None or isinstance(scan, PlannedCountedScan):
        return False
    return 8 * recurrence_layout(loop.recurrence).size <= _MOST_ARGUMENTS


def cuda_fused_kernel(op: Fused) -> CudaKernel:
    """The loop of a fused node in parts, with the lanes that its kernel for a processor has. Raises KernelUnavailable.

    So both add in one order.
    """
    loop = op.expanded
    parts = cuda_parts(loop, reports_range=reports_range(op.loop))
    found = CudaKernel(op.loop, parts, op.space, lanes_of(loop, op.space.columns))
    if found.table_bytes > _MOST_ARGUMENTS:
        raise KernelUnavailable(f"a kernel would take {found.table_bytes} bytes of arguments")
    return found


CudaCode = CompiledCudaKernel | CompiledCudaRecurrence


class _Wanted(NamedTuple):
    """A kernel that a plan wants: its text, and what becomes of it when it is loaded."""

    text: CardText
    bound: Callable[[CudaModule], CudaCode]


def _wanted(op: Kernel) -> _Wanted:
    if isinstance(op, PlannedScan):
        steps = op.step_loop
        assert steps is not None
        return _Wanted(recurrence_card_text(steps), lambda module: CompiledCudaRecurrence(module, steps))
    assert isinstance(op, Fused)
    loop = cuda_fused_kernel(op)
    return _Wanted(kernel_card_text(loop), lambda module: CompiledCudaKernel(module, loop))


def kernel_card_text(loop: CudaKernel) -> CardText:
    """The kernels of a loop, in each language."""
    return CardText(
        cache(lambda: cuda_text(loop.parts, loop.lanes)),
        cache(lambda: ptx_text(loop.parts, loop.lanes, loop.kernels)),
    )


def recurrence_card_text(loop: StepLoop) -> CardText:
    """The kernel that goes through all steps of a loop, in each language."""
    return CardText(
        cache(lambda: cuda_recurrence_text(loop.expanded)), cache(lambda: ptx_recurrence_text(loop.expanded))
    )
