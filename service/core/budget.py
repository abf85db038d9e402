"""Memory budget of the server's processes: their base size, and the shares of a worker's caches."""

from __future__ import annotations

from typing import Final, NamedTuple

#: measured private memory: of a front without state, with its records of callers and their jobs; of a worker with
#: compiled kernels, including LLVM and its allocator's memory; of a worker's caches of types, formulas and attributes;
#: of each BLAS thread
FRONT_BYTES, WORKER_BYTES, WORKER_CACHE_BYTES, THREAD_BYTES = 80 << 20, 72 << 20, 20 << 20, 16 << 20
#: tolerance for a front and for a worker in the check that the limits of all processes fit into memory
FRONT_MARGIN, WORKER_MARGIN = 48 << 20, 36 << 20
#: measured bytes of a plan of a 60-node graph, including its memory and the graph; bytes of a cached request
SMALL_PLAN, SMALL_REQUEST = 64 << 10, 4 << 10
#: default limits of the graphs, stored responses and models that a front keeps
GRAPH_BYTES, ANSWER_BYTES, MODEL_BYTES = 256 << 20, 64 << 20, 16 << 20
#: bytes of a front at these default limits
FRONT_LIMIT: Final = FRONT_BYTES + FRONT_MARGIN + GRAPH_BYTES + ANSWER_BYTES + MODEL_BYTES
#: cached requests per plan
REQUESTS_PER_PLAN: Final = 4
#: bytes of resident tensors in a worker's own memory
TENSOR_BYTES: Final = 32 << 20
#: bytes of idle buffers kept for a worker's next response; they are shared memory, which counts for no process
IDLE_ANSWER_BYTES: Final = 32 << 20
#: bytes of Python objects per byte of JSON; the lists and objects of a parsed body must fit into this
OBJECT_BYTES_PER_JSON_BYTE: Final = 16


class WorkerBudget(NamedTuple):
    """Byte limits of a worker's caches.

    `plans`, `ready` (plans that are ready to run again) and `graphs` (parsed graphs) divide the worker's part of the
    setting `plan_cache_bytes`. `cached_requests`, `kernels` and resident `tensors` are in addition to it.
    """

    plans: int
    ready: int
    graphs: int
    cached_requests: int
    kernels: int
    tensors: int = TENSOR_BYTES

    @property
    def whole(self) -> int:
        """Sum of all limits."""
        return sum(self)

    @property
    def caches(self) -> int:
        """Sum of the limits of everything that can be recomputed."""
        return self.whole - self.tensors


def worker_budget(plan_bytes: int, *, compiles: bool) -> WorkerBudget:
    """Divide a worker's part of `plan_cache_bytes`, and derive the other limits from it."""
    ready, graphs = plan_bytes // 4, plan_bytes // 8
    return WorkerBudget(
        plans=plan_bytes - ready - graphs,
        ready=ready,
        graphs=graphs,
        cached_requests=min(16 << 20, plan_bytes // 16),
        kernels=min(32 << 20, plan_bytes // 8) if compiles else 0,
    )


def request_bytes(answer: int, body: int) -> int:
    """Return an upper bound of a request's bytes: the response as values and text, and the JSON body as objects."""
    return 2 * answer + OBJECT_BYTES_PER_JSON_BYTE * body


class WorkerCounts(NamedTuple):
    """Number of worker processes to budget for: `general` ones, plus a quick one and a spare one."""

    general: int
    quick: bool = True
    spare: bool = True
