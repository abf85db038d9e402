"""Budget of a worker between requests: every share of the memory that there is for plans, in one place."""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.executors.instance_pool import IDLE_SHARE

#: of what is there for plans, graphs that were read take one part in so many; plans that are ready, IDLE_SHARE
_GRAPH_SHARE: Final = 8
#: beside it, plans of several requests at once, kernels, and requests that may come again; the last two have a most
_TOGETHER_SHARE: Final = 8
_KERNEL_SHARE, _KERNEL_BYTES = 8, 32 << 20
_REQUEST_SHARE, _REQUEST_BYTES = 16, 1 << 24


class WorkerBudget(NamedTuple):
    """Bytes of what one worker keeps, each at most.

    `plans`, those that are `ready` to run again, and the `graphs` that were read are the worker's part of the setting
    `plan_cache_bytes`. What comes on top of it: plans that run several requests `together`, `cached_requests`, and
    `kernels`.
    """

    plans: int
    ready: int
    graphs: int
    together: int
    cached_requests: int
    kernels: int

    @property
    def whole(self) -> int:
        """All of it."""
        return sum(self)


def worker_budget(plan_bytes: int, *, compiles: bool) -> WorkerBudget:
    """The budget of a worker whose part of `plan_cache_bytes` is this, and which has kernels or compiles none."""
    ready, graphs = plan_bytes // IDLE_SHARE, plan_bytes // _GRAPH_SHARE
    return WorkerBudget(
        plans=plan_bytes - ready - graphs,
        ready=ready,
        graphs=graphs,
        together=plan_bytes // _TOGETHER_SHARE,
        cached_requests=min(_REQUEST_BYTES, plan_bytes // _REQUEST_SHARE),
        kernels=min(_KERNEL_BYTES, plan_bytes // _KERNEL_SHARE) if compiles else 0,
    )
