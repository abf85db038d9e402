"""Budget of a server's processes: what they take by themselves, and every share of what a worker may take beside."""

from __future__ import annotations

from typing import Final, NamedTuple

#: private memory, as it was measured: of a front that keeps nothing yet, with what it knows of callers and their jobs;
#: of a worker that has compiled kernels, with LLVM and what their allocator holds; of what it remembers of types,
#: formulas and attributes, whatever the plans; and of each thread of its BLAS
FRONT_BYTES, WORKER_BYTES, REMEMBERED_BYTES, THREAD_BYTES = 80 << 20, 72 << 20, 20 << 20, 16 << 20
#: by how much a front and a worker may be larger where the limits of all processes have to fit into the memory
FRONT_MARGIN, WORKER_MARGIN = 48 << 20, 36 << 20
#: what a plan of a graph of 60 nodes takes, with its memory and its graph, as it was measured; and a cached request
SMALL_PLAN, SMALL_REQUEST = 64 << 10, 4 << 10
#: of the graphs, answers and models that a front keeps, by default
GRAPH_BYTES, ANSWER_BYTES, MODEL_BYTES = 256 << 20, 64 << 20, 16 << 20
#: what a front takes that keeps as much as it may by default
FRONT_LIMIT: Final = FRONT_BYTES + FRONT_MARGIN + GRAPH_BYTES + ANSWER_BYTES + MODEL_BYTES
#: cached requests, for each of the plans
REQUESTS_OF_A_PLAN: Final = 4
#: resident tensors that a worker has in memory of its own
TENSOR_BYTES: Final = 32 << 20
#: buffers that wait for a worker's next answer; they are shared memory, which counts for no process
IDLE_ANSWER_BYTES: Final = 32 << 20
#: what JSON takes as Python objects, for each of its bytes: a body may have no more lists and objects than fit
PARSED: Final = 16
#: of what is there for plans, plans that are ready take one part in so many, and graphs that were read
_READY_SHARE, _GRAPH_SHARE = 4, 8
#: beside it, kernels, and requests that may come again; both have a most
_KERNEL_SHARE, _KERNEL_BYTES = 8, 32 << 20
_REQUEST_SHARE, _REQUEST_BYTES = 16, 1 << 24


class WorkerBudget(NamedTuple):
    """Bytes of what one worker keeps, each at most.

    `plans`, those that are `ready` to run again, and the `graphs` that were read are the worker's part of the setting
    `plan_cache_bytes`. What comes on top of it: `cached_requests`, `kernels`, and resident `tensors`.
    """

    plans: int
    ready: int
    graphs: int
    cached_requests: int
    kernels: int
    tensors: int = TENSOR_BYTES

    @property
    def whole(self) -> int:
        """The sum of all."""
        return sum(self)

    @property
    def caches(self) -> int:
        """The sum of what can be made again."""
        return self.whole - self.tensors


def worker_budget(plan_bytes: int, *, compiles: bool) -> WorkerBudget:
    """The budget of a worker whose part of `plan_cache_bytes` is this, and which has kernels or compiles none."""
    ready, graphs = plan_bytes // _READY_SHARE, plan_bytes // _GRAPH_SHARE
    return WorkerBudget(
        plans=plan_bytes - ready - graphs,
        ready=ready,
        graphs=graphs,
        cached_requests=min(_REQUEST_BYTES, plan_bytes // _REQUEST_SHARE),
        kernels=min(_KERNEL_BYTES, plan_bytes // _KERNEL_SHARE) if compiles else 0,
    )


def request_bytes(answer: int, body: int) -> int:
    """Return the bytes that a request may take: an answer, as values and as text, and a body of JSON, as objects."""
    return 2 * answer + PARSED * body


class WorkerPlaces(NamedTuple):
    """Places of workers on processors: `general` ones, beside them a quick one and a spare."""

    general: int
    quick: bool = True
    spare: bool = True
