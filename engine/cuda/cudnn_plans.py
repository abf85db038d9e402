"""Plans of cuDNN: the first of its heuristics with the right notes that fits the workspace, or the quickest one."""

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
from engine.cuda.autotuning import MOST_CANDIDATES, NO_CHOICES, Candidate, Choices, Contest, StreamLaunch
from engine.ir.lru import LRU

_logger = logging.getLogger("gradserve.kernels")

#: bytes of a float → cuDNN's name of the dtype, and of the dtype of sums
_FLOATS: Final = MappingProxyType({2: ("HALF", "FLOAT"), 4: ("FLOAT", "FLOAT"), 8: ("DOUBLE", "DOUBLE")})
#: plans that are kept ready, some kB each
_MOST_READY: Final = 1024
#: characters of a reason
_MOST_SAID: Final = 200


class CudnnLibrary:
    """cuDNN by its frontend, the module `cudnn`, for one kind of card. Threads may share it.

    `card` tells its plans from those for other cards. For a card that is not here, `described` has arguments of the
    frontend's graphs, which are then planned and not run.
    """

    def __init__(self, cudnn: Any, card: str, described: Mapping[str, Any] | None = None) -> None:
        self._cudnn, self._described = cudnn, described
        self._of_thread = local()
        #: card and versions, on which plans depend
        self.target = f"{card} cudnn {cudnn.backend_version()} frontend {cudnn.__version__}"
        #: errors of calls that cannot be done; others pass through
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
        """Make an empty graph of tensors of a float dtype, with sums in float32 at least."""
        kinds, (element, summed) = self._cudnn.data_type, _FLOATS[np.dtype(dtype).itemsize]
        given = self._described or {"handle": self.handle()}
        return self._cudnn.pygraph(
            io_data_type=getattr(kinds, element),
            intermediate_data_type=getattr(kinds, summed),
            compute_data_type=getattr(kinds, summed),
            **given,
        )

    @property
    def is_here(self) -> bool:
        """Whether the card is in this machine, so that plans can be loaded and run."""
        return self._described is None

    def loaded(self, code: bytes) -> Any:
        """Load a graph with its plan from serialized bytes. Raises one of `errors`."""
        graph = self._cudnn.pygraph(handle=self.handle())
        # A list of numbers is the one form that every version takes.
        graph.deserialize(self.handle(), list(code))
        return graph

    def modes(self) -> tuple[Any, ...]:
        """List its heuristics, in the order in which they are asked."""
        of = self._cudnn.heur_mode
        return of.A, of.B, of.FALLBACK

    def notes(self, *names: str) -> list[Any]:
        """Find numerical notes by name."""
        return [getattr(self._cudnn.numerical_note, name) for name in names]

    def element(self, dtype: str) -> Any:
        """Find its name of a float dtype."""
        return getattr(self._cudnn.data_type, _FLOATS[np.dtype(dtype).itemsize][0])

    def handle(self) -> Any:
        """Return this thread's handle, made on the card that is current at the first call."""
        of = self._of_thread
        if not hasattr(of, "handle"):
            of.handle, of.stream = self._cudnn.create_handle(), None
        return of.handle

    def handle_on(self, stream: int) -> Any:
        """Return this thread's handle, set to launch on `stream`. A change of the stream costs some microseconds."""
        handle, of = self.handle(), self._of_thread
        if of.stream != stream:
            self._cudnn.set_stream(handle=handle, stream=stream)
            of.stream = stream
        return handle


def cudnn_library(card: str) -> CudnnLibrary | None:
    """Open cuDNN for the current card, of the kind `card`; None, and a line of the log, if it is not usable."""
    try:
        import cudnn  # noqa: PLC0415 - optional

        return CudnnLibrary(cudnn, card)
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        _logger.info("cuDNN is not used: %s", error)
        return None


class CudnnPlan:
    """A graph whose plan is built; it runs in `workspace` bytes."""

    def __init__(self, graph: Any, workspace: int) -> None:
        self.graph, self.workspace = graph, workspace


class PlanRequest(NamedTuple):
    """Request for a plan of cuDNN.

    `text`, whose first word is a name, has all that a plan depends on beside card and libraries. `state` makes its
    graph. No engine has one of the notes `without`, or needs more than `workspace` bytes. `sizes` are the numbers and
    bytes of its tensors; without them, plans are not timed.
    """

    text: str
    state: Callable[[CudnnLibrary], Any]
    without: tuple[str, ...]
    workspace: int
    sizes: tuple[tuple[int, int], ...] = ()

    @property
    def identity(self) -> str:
        """The key of its plans."""
        return repr((self.text, self.without, self.workspace))


class CudnnPlans:
    """Plans by their requests. Threads may share it.

    A request without a plan is not tried again, so that it always runs one way; each reason is logged once.
    """

    def __init__(self, library: CudnnLibrary, store: KernelStore | None = None) -> None:
        self._library = library
        self._store = KernelStore() if store is None else store
        self._ready: LRU[str | bytes, CudnnPlan] = LRU(_MOST_READY)
        self._refused = RefusedKernels()
        self._reasons = Reasons("cuDNN is not used for %s")

    def find(self, request: PlanRequest, *, may_plan: bool = True, choices: Choices = NO_CHOICES) -> CudnnPlan | None:
        """Find the plan for a request: the chosen one, if it can be loaded, else the first of the heuristics.

        None if there is none, planning failed, or may not be done now.
        """
        key = self._key(request.identity)
        if key in self._refused:
            return None
        first = self._ready.hit(key)
        if first is None and self._library.is_here and (code := self._store.get(key)) is not None:
            first = self._loaded(code, request)
        if first is None and may_plan:
            first, code = next(self._passing(request), (None, b""))
            if first is None:
                self._refused.add(key, "it has no plan")
            else:
                self._store.put(key, code)
        if first is None:
            return None
        self._ready.put(key, first)
        return self._chosen(request, choices) or first

    def _chosen(self, request: PlanRequest, choices: Choices) -> CudnnPlan | None:
        """Find the chosen plan, timed now if choices are open; None if there is none, or it cannot be loaded."""
        if not request.sizes:
            return None
        code = choices.find(self._key(f"the quickest of {request.identity}"), partial(self._contest, request))
        if code is None:
            return None
        plan = self._ready.hit(code) or self._loaded(code, request)
        if plan is not None:
            self._ready.put(code, plan)
        return plan

    def _contest(self, request: PlanRequest) -> Contest:
        """Make candidates of the plans that pass, loaded as they would be later."""
        codes = [code for _, code in islice(self._passing(request), MOST_CANDIDATES)]
        loaded = [(code, plan) for code in codes if (plan := self._loaded(code, request))]
        candidates = [Candidate(code, partial(self._on, request, plan)) for code, plan in loaded]
        needs = max((plan.workspace for _, plan in loaded), default=0)
        return Contest(candidates, (*(nbytes for _, nbytes in request.sizes), needs))

    def _on(self, request: PlanRequest, plan: CudnnPlan, addresses: Sequence[int]) -> StreamLaunch:
        """Bind the launch of a plan to its tensors and a workspace."""
        *tensors, workspace = addresses
        placed = dict(zip((number for number, _ in request.sizes), tensors, strict=True))

        def launch(stream: int) -> None:
            plan.graph.execute(placed, workspace if plan.workspace else 0, handle=self._library.handle_on(stream))

        return launch

    def _key(self, text: str) -> str:
        return kernel_key(text, system="cuda", processor="", compiler=self._library.target)

    def _loaded(self, code: bytes, request: PlanRequest) -> CudnnPlan | None:
        """Load a plan; None if that fails, or it needs more workspace."""
        try:
            graph = self._library.loaded(code)
            needed = int(graph.get_workspace_size())
        except self._library.errors as error:
            self._say("a plan that was kept", error)
            return None
        return CudnnPlan(graph, needed) if needed <= request.workspace else None

    def _passing(self, request: PlanRequest) -> Iterator[tuple[CudnnPlan, bytes]]:
        """Yield plans with their code, from the first heuristics that have some; each must be used at once.

        If there are none, the reason is logged.
        """
        reason, count = None, 0
        for mode in self._library.modes():
            try:
                graph = request.state(self._library)
                graph.validate()
                graph.build_operation_graph()
                graph.create_execution_plans([mode])
                graph.deselect_numeric_notes(self._library.notes(*request.without))
                for needed in self._built(graph, request.workspace):
                    yield CudnnPlan(graph, needed), bytes(graph.serialize())
                    count += 1
            except self._library.errors as error:
                # Of several, the first: another mode has less to say.
                reason = reason or error
            if count:
                return
        self._say(request.text.partition(" ")[0], reason or LookupError("no engine passes the notes and the workspace"))

    def _built(self, graph: Any, most: int) -> Iterator[int]:
        """Build plans in order, and yield the workspace of each that fits, while it is selected."""
        for index in range(graph.get_execution_plan_count()):
            try:
                graph.build_plan_at_index(index)
                needed = int(graph.get_workspace_size_plan_at_index(index))
            except self._library.errors:
                continue  # it has one of the notes, or its engine cannot do this
            if needed <= most:
                yield needed

    def _say(self, what: str, error: Exception) -> None:
        self._reasons.tell(f"{what}: {' '.join(str(error).split())[:_MOST_SAID]}")


def packed_strides(shape: Sequence[int]) -> list[int]:
    """Strides of a dense tensor, in elements."""
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
