"""The plan for many runs of a plan at once: what each is fed, and what each gives, are rows."""

from __future__ import annotations

from engine.graph.limits import NO_DEADLINE, Deadline, Limits
from engine.graph.op import Op
from engine.graph.registry import Registry
from engine.passes.allowance import Allowance
from engine.planning.bodies import as_written, runnable
from engine.planning.pause import collector_paused
from engine.planning.plan import Plan, graph_of, standing_for
from engine.planning.precision import with_precision
from engine.planning.smallest import smallest_plan
from engine.transforms.vmap import vmap


def plan_of_many(
    plan: Plan,
    size: int,
    registry: Registry,
    limits: Limits,
    deadline: Deadline = NO_DEADLINE,
    loop_threads: int = 1,
) -> Plan | None:
    """The plan of `size` runs of `plan`: every feed has a leading axis of this extent, and so has every result.

    A row of its results is what `plan` gives for that row of the feeds, but for the order of additions. None where a
    step has no rule for many: what fusion made of several nodes has none. Raises OverBudget where all runs together are
    over `limits`, TooManyNodes and DeadlineExceeded. It has the digest of `plan`, and its precision.
    """
    graph = as_written(graph_of(plan, registry), limits, deadline)
    if any(node.operands and not isinstance(node.op, Op) for node in graph.nodes):
        return None
    with collector_paused():
        many = vmap(graph, set(graph.feeds), size, limits, deadline)
        ready = runnable(many, limits, Allowance(limits.flops, deadline), loop_threads)
        made = smallest_plan(ready, limits, deadline, loop_threads)
        return standing_for(with_precision(made, plan.precision), plan)
