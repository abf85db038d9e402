"""Memory budget of a server's processes: their own size, and the shares of a worker's caches."""

from __future__ import annotations

from typing import Final, NamedTuple

#: private memory, measured: of a front without state, with its records of callers and their jobs; of a worker with
#: compiled kernels, with LLVM and the memory of their allocator; of its caches of types, formulas and attributes; of
#: each thread of its BLAS
FRONT_BYTES, WORKER_BYTES, REMEMBERED_BYTES, THREAD_BYTES = 80 << 20, 72 << 20, 20 << 20, 16 << 20
#: tolerance for a front and for a worker when the limits of all processes have to fit into the memory
FRONT_MARGIN, WORKER_MARGIN = 48 << 20, 36 << 20
#: bytes of a plan of a graph of 60 nodes, with its memory and its graph, measured; and of a cached request
SMALL_PLAN, SMALL_REQUEST = 64 << 10, 4 << 10
#: default limits of the graphs, answers and models that a front keeps
GRAPH_BYTES, ANSWER_BYTES, MODEL_BYTES = 256 << 20, 64 << 20, 16 << 20
#: bytes of a front at these limits
FRONT_LIMIT: Final = FRONT_BYTES + FRONT_MARGIN + GRAPH_BYTES + ANSWER_BYTES + MODEL_BYTES
#: cached requests, for each of the plans
REQUESTS_OF_A_PLAN: Final = 4
#: resident tensors that a worker has in memory of its own
TENSOR_BYTES: Final = 32 << 20
#: buffers that wait for a worker's next answer; they are shared memory, which counts for no process
IDLE_ANSWER_BYTES: Final = 32 << 20
#: bytes of Python objects for each byte of JSON: the lists and objects of a body must fit into this
PARSED: Final = 16


class WorkerBudget(NamedTuple):
    """Most bytes of each cache of a worker.

    `plans`, those that are `ready` to run again, and the `graphs` that were read are the worker's part of the setting
    `plan_cache_bytes`. On top of it come `cached_requests`, `kernels`, and resident `tensors`.
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
        """The sum of all that can be made again."""
        return self.whole - self.tensors


def worker_budget(plan_bytes: int, *, compiles: bool) -> WorkerBudget:
    """Divide a worker's part of `plan_cache_bytes`, and set the budgets beside it."""
    ready, graphs = plan_bytes // 4, plan_bytes // 8
    return WorkerBudget(
        plans=plan_bytes - ready - graphs,
        ready=ready,
        graphs=graphs,
        cached_requests=min(16 << 20, plan_bytes // 16),
        kernels=min(32 << 20, plan_bytes // 8) if compiles else 0,
    )


def request_bytes(answer: int, body: int) -> int:
    """Bound the bytes of a request: an answer, as values and as text, and a body of JSON, as objects."""
    return 2 * answer + PARSED * body


class WorkerPlaces(NamedTuple):
    """Places of workers on processors: `general` ones, beside them a quick one and a spare."""

    general: int
    quick: bool = True
    spare: bool = True
