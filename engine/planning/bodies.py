"""Plans of bodies: graphs with control flow are optimised, and get kernels that hold the plans of their bodies.

A body is planned once for each way that it is used, however often it runs: what it says is kept with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from engine.bodies.hoist import hoist
from engine.bodies.lower import lower
from engine.bodies.merge import merge
from engine.bodies.runs_functions import RunsFunctions
from engine.bodies.tidy import tidy
from engine.graph.body import Body
from engine.graph.errors import OverMemory
from engine.graph.ir import Builder, Graph, Node, Value, at_origin
from engine.graph.limits import NO_DEADLINE, NO_LIMITS, Limits
from engine.ops.while_loop import While, asking
from engine.passes.allowance import Allowance
from engine.passes.dce import dce
from engine.passes.pipeline import optimise
from engine.planning.looped import PlannedCall, PlannedCond, PlannedCountedScan, PlannedScan, PlannedWhile, RunsPlans
from engine.planning.plan import Plan
from engine.planning.smallest import smallest_plan
from engine.planning.spare import plan_sparing

_PLANNED: Final[Mapping[str, type[RunsPlans]]] = {
    "scan": PlannedScan,
    "counted_scan": PlannedCountedScan,
    "while": PlannedWhile,
    "stacking_while": PlannedWhile,
    "cond": PlannedCond,
    "call": PlannedCall,
}


class _Options(NamedTuple):
    """Options that bodies are planned with, at every depth."""

    limits: Limits
    allowance: Allowance
    loop_threads: int
    body_bytes: int | None


def runnable(
    graph: Graph, limits: Limits, allowance: Allowance, loop_threads: int = 1, body_bytes: int | None = None
) -> Graph:
    """`graph` optimised, its bodies planned for so many threads.

    With `body_bytes`, each body takes no more than so many bytes, and computes again what it must. Raises EngineError.
    """
    return _let_go(_runnable(graph, _Options(limits, allowance, loop_threads, body_bytes)))


def with_planned_bodies(
    graph: Graph, limits: Limits, allowance: Allowance, loop_threads: int = 1, body_bytes: int | None = None
) -> Graph:
    """`graph`, which is not optimised any more. Raises EngineError."""
    return _let_go(_with_planned_bodies(graph, _Options(limits, allowance, loop_threads, body_bytes)))


def _let_go(graph: Graph) -> Graph:
    """The graph, planned at every depth: what is made of its bodies from now on is for other requests."""
    for node in graph.nodes:
        for body in _functions_of(node):
            body.budget.deadline = NO_DEADLINE
    return graph


def _runnable(graph: Graph, options: _Options) -> Graph:
    limits, allowance = options.limits, options.allowance
    graph = optimise(graph, allowance)
    if not _runs_functions(graph):
        return graph
    graph = optimise(lower(graph, limits, allowance.deadline), allowance)
    while (merged := merge(graph)) is not graph:  # loops that become one let those that read them become one, too
        graph = optimise(merged, allowance)
    graph = optimise(hoist(dce(graph, allowance)), allowance)
    return _with_planned_bodies(graph, options)


def _with_planned_bodies(graph: Graph, options: _Options) -> Graph:
    if not _runs_functions(graph):
        return graph
    graph = _with_dense_operands(lower(graph, options.limits, options.allowance.deadline))
    return graph.rewritten([_planned(node, options) for node in graph.nodes], graph.outputs)


def _with_dense_operands(graph: Graph) -> Graph:
    """A body is planned for entries that lie densely: what is seen askew is copied once, in front of the loop."""
    builder = Builder(graph.registry, NO_LIMITS)

    def dense(node: Node, operands: Sequence[Value]) -> Value | None:
        if not isinstance(node.op, RunsFunctions) or not any(_is_askew(x.node) for x in operands):
            return None
        return builder.copy(node, [x.identity() if _is_askew(x.node) else x for x in operands])

    return builder.rewrite(graph, dense)


def _is_askew(node: Node) -> bool:
    view = node.view
    return view is not None and not view.reshapes


def _runs_functions(graph: Graph) -> bool:
    return any(isinstance(node.op, RunsFunctions) for node in graph.nodes)


def _planned(node: Node, options: _Options) -> Node:
    if not isinstance(node.op, RunsFunctions):
        return node
    bodies = _bodies(node)
    try:
        plans = [_plan_of(body, options) for body in bodies]
    except OverMemory as error:
        raise at_origin(error, node.origin) from None
    return node._replace(op=_PLANNED[node.op.name](node.op, tuple(plans)))


def _bodies(node: Node) -> list[Body]:
    """The bodies that are run: of a `while`, the condition, and a step that evaluates it again."""
    if isinstance(node.op, While):
        condition, body, carries = (node.attrs[name] for name in ("condition", "body", "carries"))
        return [condition, asking(body, condition, carries)]
    return _functions_of(node)


def _functions_of(node: Node) -> list[Body]:
    return [node.attrs[name] for name in node.op.functions if node.attrs[name] is not None]


def _plan_of(body: Body, options: _Options) -> Plan:
    """The plan of a body: the same for all who use it."""
    limits, allowance, threads, body_bytes = options

    def make() -> Plan:
        graph = _runnable(tidy(body).graph, options)
        if body_bytes is None:
            return smallest_plan(graph, limits, allowance.deadline, threads)
        return plan_sparing(graph, limits.within(body_bytes), allowance.deadline, threads).plan

    return body.made(("plan", limits, threads, body_bytes), make)
