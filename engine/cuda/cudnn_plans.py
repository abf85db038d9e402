"""Plans of cuDNN: the first of its heuristics that passes the notes and fits the workspace, or the quickest; kept."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from threading import local
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from engine.codegen.native.kernel_errors import Reasons, RefusedKernels
from engine.codegen.native.kernel_store import KernelStore, kernel_key
from engine.cuda.autotuning import MOST_CANDIDATES, NO_CHOICES, Candidate, Choices, Contest, StreamLaunch
from engine.ir.lru import LRU

# cuDNN, where it is installed: graphs for one card, a handle for each thread, and what calls raise.

_logger = logging.getLogger("gradserve.kernels")

#: floats by their width: what it calls them, and what it adds them up in
_FLOATS: Final = MappingProxyType({2: ("HALF", "FLOAT"), 4: ("FLOAT", "FLOAT"), 8: ("DOUBLE", "DOUBLE")})


class CudnnLibrary:
    """cuDNN by its frontend, the module `cudnn`, for one kind of card. Threads may share it.

    `card` is what tells its plans from those for other cards. A card that is not here is `described`: arguments of
    the frontend's graphs, which are then planned and not run.
    """

    def __init__(self, cudnn: Any, card: str, described: Mapping[str, Any] | None = None) -> None:
        self._cudnn, self._described = cudnn, described
        self._of_thread = local()
        #: what its plans depend on beside what they compute: the card, and the versions
        self.target = f"{card} cudnn {cudnn.backend_version()} frontend {cudnn.__version__}"
        #: what its calls raise where they cannot do something; what is not theirs passes through
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
        """An empty graph of tensors of `dtype`, which is a float's; sums are of float32 at least."""
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
        """Whether the card is, so that plans can be loaded and run."""
        return self._described is None

    def loaded(self, code: bytes) -> Any:
        """A graph with its plan, of what `serialize` gave, on a card that is here. Raises one of `errors`."""
        graph = self._cudnn.pygraph(handle=self.handle())
        # Its list of numbers, and nothing else, is what every version takes.
        graph.deserialize(self.handle(), list(code))
        return graph

    def modes(self) -> tuple[Any, ...]:
        """Its heuristics, in the order in which they are asked."""
        of = self._cudnn.heur_mode
        return of.A, of.B, of.FALLBACK

    def notes(self, *names: str) -> list[Any]:
        """Numerical notes, by name."""
        return [getattr(self._cudnn.numerical_note, name) for name in names]

    def element(self, dtype: str) -> Any:
        """What it calls the dtype of floats."""
        return getattr(self._cudnn.data_type, _FLOATS[np.dtype(dtype).itemsize][0])

    def handle(self) -> Any:
        """The handle of this thread, on the card that is current when it is first asked for."""
        of = self._of_thread
        if not hasattr(of, "handle"):
            of.handle, of.stream = self._cudnn.create_handle(), None
        return of.handle

    def handle_on(self, stream: int) -> Any:
        """The handle of this thread, which launches on `stream` from now on. To say so costs some microseconds."""
        handle, of = self.handle(), self._of_thread
        if of.stream != stream:
            self._cudnn.set_stream(handle=handle, stream=stream)
            of.stream = stream
        return handle


def cudnn_library(card: str) -> CudnnLibrary | None:
    """cuDNN for the current card, which is of the kind `card`; None, and a line of the log, where it is not usable."""
    try:
        import cudnn  # noqa: PLC0415 - optional

        return CudnnLibrary(cudnn, card)
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        _logger.info("cuDNN is not used: %s", error)
        return None


#: plans that are ready, some kB each
_MOST_READY: Final = 1024
#: characters of a reason
_MOST_SAID: Final = 200


class CudnnPlan:
    """A graph whose plan is built; it runs in `workspace` bytes."""

    def __init__(self, graph: Any, workspace: int) -> None:
        self.graph, self.workspace = graph, workspace


class PlanRequest(NamedTuple):
    """Request for a plan of cuDNN's.

    `text`, whose first word names it, says all that a plan depends on beside card and libraries. `state` makes a graph
    of it. No engine has one of the notes `without`, or needs more than `workspace` bytes. `sizes` are the numbers of
    its tensors, each with the bytes that it lies in; without them, plans are not timed.
    """

    text: str
    state: Callable[[CudnnLibrary], Any]
    without: tuple[str, ...]
    workspace: int
    sizes: tuple[tuple[int, int], ...] = ()

    @property
    def identity(self) -> str:
        """What plans are kept under."""
        return repr((self.text, self.without, self.workspace))


class CudnnPlans:
    """Plans by what they compute. Threads may share it.

    What has no plan is not asked for again, so that it runs one way as long as this lives; why is said once for each
    reason.
    """

    def __init__(self, library: CudnnLibrary, store: KernelStore | None = None) -> None:
        self._library = library
        self._store = KernelStore() if store is None else store
        self._ready: LRU[str | bytes, CudnnPlan] = LRU(_MOST_READY)
        self._refused = RefusedKernels()
        self._reasons = Reasons("cuDNN is not used for %s")

    def find(self, request: PlanRequest, *, may_plan: bool = True, choices: Choices = NO_CHOICES) -> CudnnPlan | None:
        """The plan for a request; None where there is none, or planning failed, or would have to be done first.

        It is the one that is chosen, if one is and can be loaded, else the first of the heuristics.
        """
        key = self._key(request.identity)
        if key in self._refused:
            return None
        found = self._ready.hit(key) or self._kept(key, request)
        if found is None and may_plan:
            found = self._new(key, request)
            if found is None:
                self._refused.add(key, "it has no plan")
        if found is None:
            return None
        self._ready.put(key, found)
        return self._chosen(request, choices) or found

    def _chosen(self, request: PlanRequest, choices: Choices) -> CudnnPlan | None:
        """The plan that is chosen, now, where choices are open; None where there is none, or it cannot be loaded."""
        if not request.sizes:
            return None
        code = choices.find(self._key(f"the quickest of {request.identity}"), partial(self._contest, request))
        if code is None:
            return None
        found = self._ready.hit(code) or self._loaded(code, request)
        if found is not None:
            self._ready.put(code, found)
        return found

    def _contest(self, request: PlanRequest) -> Contest:
        """The plans that pass, each as it would be loaded."""
        codes = [code for _, code in islice(self._passing(request), MOST_CANDIDATES)]
        loaded = [(code, plan) for code in codes if (plan := self._loaded(code, request))]
        candidates = [Candidate(code, partial(self._on, request, plan)) for code, plan in loaded]
        needs = max((plan.workspace for _, plan in loaded), default=0)
        return Contest(candidates, (*(nbytes for _, nbytes in request.sizes), needs))

    def _on(self, request: PlanRequest, plan: CudnnPlan, addresses: Sequence[int]) -> StreamLaunch:
        """The launch of a plan on its tensors and a workspace."""
        *tensors, workspace = addresses
        at = dict(zip((number for number, _ in request.sizes), tensors, strict=True))

        def launch(stream: int) -> None:
            plan.graph.execute(at, workspace if plan.workspace else 0, handle=self._library.handle_on(stream))

        return launch

    def _key(self, text: str) -> str:
        return kernel_key(text, system="cuda", processor="", compiler=self._library.target)

    def _kept(self, key: str, request: PlanRequest) -> CudnnPlan | None:
        """The one that was kept; None where there is none, or it cannot be loaded, or does not fit."""
        code = self._store.get(key) if self._library.is_here else None
        return None if code is None else self._loaded(code, request)

    def _loaded(self, code: bytes, request: PlanRequest) -> CudnnPlan | None:
        try:
            graph = self._library.loaded(code)
            needed = int(graph.get_workspace_size())
        except self._library.errors as error:
            self._say("a plan that was kept", error)
            return None
        return CudnnPlan(graph, needed) if needed <= request.workspace else None

    def _new(self, key: str, request: PlanRequest) -> CudnnPlan | None:
        for plan, code in self._passing(request):
            self._store.put(key, code)
            return plan
        return None

    def _passing(self, request: PlanRequest) -> Iterator[tuple[CudnnPlan, bytes]]:
        """The plans that pass, each with its code, of the first heuristics that have some; each to be used at once.

        Where there are none, it is said why.
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
        """The workspaces of the plans that can be built, in order, each selected while it is looked at."""
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
    """Elements to step along each axis of a dense tensor."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= extent
    return strides
