"""cuDNN plans: the first of the heuristics that has no excluded note and fits the workspace, or the fastest one."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from threading import local
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from engine.codegen.native.machine_code import KernelStore, Reasons, RefusedKernels, kernel_key
from engine.cuda.autotuning import MAX_CANDIDATES, NO_CHOICES, Candidate, Choices, Contest, StreamLaunch
from engine.ir.lru import LRU

_logger = logging.getLogger("gradserve.kernels")

#: bytes of a float → cuDNN's names of the dtype and of the dtype of sums
_FLOATS: Final = MappingProxyType({2: ("HALF", "FLOAT"), 4: ("FLOAT", "FLOAT"), 8: ("DOUBLE", "DOUBLE")})
#: maximum number of loaded plans, a few kB each
_MOST_READY: Final = 1024
#: maximum characters of a logged reason
_MAX_REASON: Final = 200


class CudnnLibrary:
    """cuDNN through its frontend, the module `cudnn`, for one kind of GPU. Thread-safe.

    `card` distinguishes its plans from those for other GPUs. For a GPU that is not in this machine, `described` has
    arguments of the frontend's graphs; their plans are built but cannot run.
    """

    def __init__(self, cudnn: Any, card: str, described: Mapping[str, Any] | None = None) -> None:
        self._cudnn, self._described = cudnn, described
        self._thread = local()
        #: GPU and versions, on which plans depend
        self.target = f"{card} cudnn {cudnn.backend_version()} frontend {cudnn.__version__}"
        #: errors that mean "unsupported"; others propagate
        self.errors: tuple[type[Exception], ...] = (
            cudnn.cudnnGraphNotSupportedError,
            AttributeError,
            LookupError,
            MemoryError,
            RuntimeError,
            TypeError,
            ValueError,
        )

    def graph(self, dtype: str) -> Any:
        """Return an empty graph for tensors of a float dtype, with sums in at least float32."""
        kinds, (element, summed) = self._cudnn.data_type, _FLOATS[np.dtype(dtype).itemsize]
        context = self._described or {"handle": self.handle()}
        return self._cudnn.pygraph(
            io_data_type=getattr(kinds, element),
            intermediate_data_type=getattr(kinds, summed),
            compute_data_type=getattr(kinds, summed),
            **context,
        )

    @property
    def is_here(self) -> bool:
        """Whether the GPU is in this machine, so that plans can be loaded and run."""
        return self._described is None

    def loaded(self, code: bytes) -> Any:
        """Load a graph with its plan from serialized bytes. Raises one of `errors`."""
        graph = self._cudnn.pygraph(handle=self.handle())
        # Every version of the frontend accepts a list of integers.
        graph.deserialize(self.handle(), list(code))
        return graph

    def modes(self) -> tuple[Any, ...]:
        """Return its heuristics modes, in the order in which they are tried."""
        mode = self._cudnn.heur_mode
        return mode.A, mode.B, mode.FALLBACK

    def notes(self, *names: str) -> list[Any]:
        """Return numerical notes by name."""
        return [getattr(self._cudnn.numerical_note, name) for name in names]

    def element(self, dtype: str) -> Any:
        """Return its name of a float dtype."""
        return getattr(self._cudnn.data_type, _FLOATS[np.dtype(dtype).itemsize][0])

    def handle(self) -> Any:
        """Return this thread's handle, created on the GPU that is current at the first call."""
        thread = self._thread
        if not hasattr(thread, "handle"):
            thread.handle, thread.stream = self._cudnn.create_handle(), None
        return thread.handle

    def handle_on(self, stream: int) -> Any:
        """Return this thread's handle, set to launch on `stream`. It caches the stream: a change takes microseconds."""
        handle, thread = self.handle(), self._thread
        if thread.stream != stream:
            self._cudnn.set_stream(handle=handle, stream=stream)
            thread.stream = stream
        return handle


def cudnn_library(card: str) -> CudnnLibrary | None:
    """Open cuDNN for the current GPU, of the kind `card`. If it is not usable, log why and return None."""
    try:
        import cudnn  # noqa: PLC0415 - optional

        return CudnnLibrary(cudnn, card)
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        _logger.info("cuDNN is not used: %s", error)
        return None


class CudnnPlan:
    """Graph with a built plan, which uses `workspace` bytes."""

    def __init__(self, graph: Any, workspace: int) -> None:
        self.graph, self.workspace = graph, workspace


class PlanRequest(NamedTuple):
    """Request for a cuDNN plan.

    `text`, whose first word is a name, has everything that a plan depends on besides GPU and libraries. `build_graph`
    builds its graph. Engines are excluded if they have one of `excluded_notes`, or need more than `workspace` bytes.
    `sizes` are the numbers and bytes of its tensors; if they are empty, plans are not timed.
    """

    text: str
    build_graph: Callable[[CudnnLibrary], Any]
    excluded_notes: tuple[str, ...]
    workspace: int
    sizes: tuple[tuple[int, int], ...] = ()

    @property
    def identity(self) -> str:
        """Cache key of its plans."""
        return repr((self.text, self.excluded_notes, self.workspace))


class CudnnPlans:
    """Plans by request. Thread-safe.

    A request without a plan is not tried again, so that it always runs the same way; each reason is logged once.
    """

    def __init__(self, library: CudnnLibrary, store: KernelStore | None = None) -> None:
        self._library = library
        self._store = KernelStore() if store is None else store
        self._ready: LRU[str | bytes, CudnnPlan] = LRU(_MOST_READY)
        self._refused = RefusedKernels()
        self._reasons = Reasons("cuDNN is not used for %s")

    def find(self, request: PlanRequest, *, may_plan: bool = True, choices: Choices = NO_CHOICES) -> CudnnPlan | None:
        """Return the plan for a request: the chosen one if it can be loaded, else the heuristics' first one.

        Return None if there is none, if planning failed, or if `may_plan` is False and no plan is cached.
        """
        key = self._key(request.identity)
        if key in self._refused:
            return None
        first = self._ready.hit(key)
        if first is None and self._library.is_here and (code := self._store.get(key)) is not None:
            first = self._load(code, request)
        if first is None and may_plan:
            first, code = next(self._usable_plans(request), (None, b""))
            if first is None:
                self._refused.add(key, "it has no plan")
            else:
                self._store.put(key, code)
        if first is None:
            return None
        self._ready.put(key, first)
        return self._choose(request, choices) or first

    def _choose(self, request: PlanRequest, choices: Choices) -> CudnnPlan | None:
        """Return the chosen plan, timed now if choices are open; None if there is none or it cannot be loaded."""
        if not request.sizes:
            return None
        code = choices.find(self._key(f"the quickest of {request.identity}"), partial(self._contest, request))
        if code is None:
            return None
        plan = self._ready.hit(code) or self._load(code, request)
        if plan is not None:
            self._ready.put(code, plan)
        return plan

    def _contest(self, request: PlanRequest) -> Contest:
        """Return the usable plans as candidates, loaded as they would be later."""
        codes = [code for _, code in islice(self._usable_plans(request), MAX_CANDIDATES)]
        loaded = [(code, plan) for code in codes if (plan := self._load(code, request))]
        candidates = [Candidate(code, partial(self._bind_candidate, request, plan)) for code, plan in loaded]
        needed = max((plan.workspace for _, plan in loaded), default=0)
        return Contest(candidates, (*(nbytes for _, nbytes in request.sizes), needed))

    def _bind_candidate(self, request: PlanRequest, plan: CudnnPlan, addresses: Sequence[int]) -> StreamLaunch:
        """Bind the launch of a plan to its tensors and a workspace."""
        *tensors, workspace = addresses
        places = dict(zip((number for number, _ in request.sizes), tensors, strict=True))

        def launch(stream: int) -> None:
            plan.graph.execute(places, workspace if plan.workspace else 0, handle=self._library.handle_on(stream))

        return launch

    def _key(self, text: str) -> str:
        return kernel_key(text, system="cuda", processor="", compiler=self._library.target)

    def _load(self, code: bytes, request: PlanRequest) -> CudnnPlan | None:
        """Load a plan; None if that fails, or if it needs more workspace."""
        try:
            graph = self._library.loaded(code)
            needed = int(graph.get_workspace_size())
        except self._library.errors as error:
            self._log_reason("a plan that was kept", error)
            return None
        return CudnnPlan(graph, needed) if needed <= request.workspace else None

    def _usable_plans(self, request: PlanRequest) -> Iterator[tuple[CudnnPlan, bytes]]:
        """Yield plans with their code, from the first heuristics mode that has any; each must be used before the next.

        If there is none, the reason is logged.
        """
        reason, count = None, 0
        for mode in self._library.modes():
            try:
                graph = request.build_graph(self._library)
                graph.validate()
                graph.build_operation_graph()
                graph.create_execution_plans([mode])
                graph.deselect_numeric_notes(self._library.notes(*request.excluded_notes))
                for needed in self._build_plans(graph, request.workspace):
                    yield CudnnPlan(graph, needed), bytes(graph.serialize())
                    count += 1
            except self._library.errors as error:
                # Report the first error: those of later modes are less specific.
                reason = reason or error
            if count:
                return
        self._log_reason(
            request.text.partition(" ")[0], reason or LookupError("no engine passes the notes and the workspace")
        )

    def _build_plans(self, graph: Any, limit: int) -> Iterator[int]:
        """Build plans in order, and yield the workspace of each that fits, while it is selected."""
        for index in range(graph.get_execution_plan_count()):
            try:
                graph.build_plan_at_index(index)
                needed = int(graph.get_workspace_size_plan_at_index(index))
            except self._library.errors:
                continue  # it has an excluded note, or its engine does not support the graph
            if needed <= limit:
                yield needed

    def _log_reason(self, subject: str, error: Exception) -> None:
        self._reasons.log(f"{subject}: {' '.join(str(error).split())[:_MAX_REASON]}")


def packed_strides(shape: Sequence[int]) -> list[int]:
    """Return the strides of a dense tensor, in elements."""
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
