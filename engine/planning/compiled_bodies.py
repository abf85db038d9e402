"""Bodies for machine code: all that can be fused is, since a step in Python costs more than many of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from engine.bodies.runs_functions import in_parts
from engine.graph.ir import Graph, Node
from engine.graph.limits import NO_LIMITS
from engine.graph.op import Kernel
from engine.planning.fit import compiled_within
from engine.planning.for_loops import for_loops
from engine.planning.fused import Fused
from engine.planning.looped import PlannedCountedScan, PlannedScan, RunsPlans
from engine.planning.microkernel_op import MicrokernelOp
from engine.planning.plan import Plan, graph_of, make_plan, standing_for
from engine.planning.split_sums import split_sums
from engine.planning.step_loop import step_loop

#: bytes that a body may take in any case: its kernels work in some
_FREE_BYTES: Final = 1 << 16


#: what kernels are made for
CompiledOp = Fused | MicrokernelOp | PlannedScan


def with_compiled_bodies(graph: Graph, *, microkernels: bool = True, few_launches: bool = False) -> Graph:
    """`graph` with all bodies planned for kernels, each within the memory that it was planned for; or itself.

    With `few_launches` they are as `compiled_within` has them, and their sums over several axes in two.
    """
    if not any(isinstance(node.op, RunsPlans) for node in graph.nodes):
        return graph
    made: dict[Plan, Plan] = {}

    def compiled(plan: Plan) -> Plan:
        if plan not in made:
            body = graph_of(plan, graph.registry)
            split = split_sums(body) if few_launches else body
            instead = _compiled(split, plan.peak_bytes, microkernels=microkernels, few_launches=few_launches)
            made[plan] = standing_for(instead, plan)
        return made[plan]

    nodes = [_with_plans(node, compiled) if isinstance(node.op, RunsPlans) else node for node in graph.nodes]
    return graph.rewritten(nodes, graph.outputs)


def _with_plans(node: Node, compiled: Callable[[Plan], Plan]) -> Node:
    op = node.op
    assert isinstance(op, RunsPlans)
    plans = tuple(map(compiled, op.plans))
    if not isinstance(op, PlannedScan):
        return node._replace(op=replace(op, plans=plans))
    operands = len(node.operands) - isinstance(op, PlannedCountedScan)
    parts = in_parts(range(operands), node.attrs["carries"], node.attrs["sequences"])
    return node._replace(
        op=replace(op, plans=plans, step_loop=step_loop(plans[0], len(parts.consts), len(parts.carries)))
    )


def _compiled(graph: Graph, most_bytes: int, *, microkernels: bool, few_launches: bool) -> Plan:
    """Written for loops, where there is memory for that: rows that lie across it are copied."""
    written = for_loops(graph)
    for each in (written, graph) if written is not graph else (graph,):
        inner = with_compiled_bodies(each, microkernels=microkernels, few_launches=few_launches)
        within = compiled_within(
            inner,
            max(most_bytes, _FREE_BYTES),
            1,
            microkernels=microkernels,
            all_pay=True,
            few_launches=few_launches,
        )
        if within:
            return within.plan
    return make_plan(inner, NO_LIMITS, tight=True)


def kernel_ops(plan: Plan, is_gone_through: Callable[[PlannedScan], bool] = lambda scan: False) -> Iterator[CompiledOp]:
    """Ops that kernels are made for, in bodies of loops, too, each of which is visited once.

    Of a scan that one kernel goes through by itself, that kernel is all.
    """
    for here in plans_within(plan, lambda op: isinstance(op, PlannedScan) and is_gone_through(op)):
        for step in here.steps:
            if isinstance(step.op, (Fused, MicrokernelOp)) or (
                isinstance(step.op, PlannedScan) and is_gone_through(step.op)
            ):
                yield step.op


def plans_within(plan: Plan, is_whole: Callable[[Kernel], bool] = lambda op: False) -> Iterator[Plan]:
    """A plan, and those that it runs, each once; what an op that `is_whole` runs is left out."""
    seen, todo = {plan}, [plan]
    while todo:
        here = todo.pop()
        yield here
        bodies = [body for step in here.steps if not is_whole(step.op) for body in step.op.runs if body not in seen]
        seen.update(bodies)
        todo += dict.fromkeys(bodies)
