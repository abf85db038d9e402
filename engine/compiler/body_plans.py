"""Plans of bodies: graphs with control flow are optimised, and get kernels that hold the plans of their bodies.

A body is planned once for each way that it is used, however often it runs: what it says is kept with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

from engine.autodiff.bodies import tidy
from engine.autodiff.control_flow import RunsFunctions, in_parts
from engine.codegen.kernels.program import Scalars
from engine.compiler.control_flow import (
    PlannedCall,
    PlannedCond,
    PlannedCountedScan,
    PlannedScan,
    PlannedWhile,
    RunsPlans,
    hoist,
    lower,
    merge,
    step_loop,
)
from engine.compiler.fit_memory import choose_plan, compiled_within, rematerialize
from engine.compiler.fused_kernel import Fused, MicrokernelOp
from engine.compiler.plan import Plan, graph_of, make_plan, standing_for
from engine.compiler.sums import split_sums
from engine.ir.errors import OverMemory
from engine.ir.graph import Builder, Graph, Node, Value, at_origin, permute, shaped, unpermute
from engine.ir.op import Definition, Kernel
from engine.ir.passes import Allowance, dce, optimise
from engine.ir.program import Body
from engine.ir.run_context import NO_DEADLINE, NO_LIMITS, Limits
from engine.ir.tensor_type import BOOL, FLOAT64, DType, Shape, has_loops, promote
from engine.ops.common.numerics import count
from engine.ops.control.while_loop import While, asking
from engine.ops.elementwise.base import Elementwise
from engine.ops.index.slice import UpdateSlice
from engine.ops.reduce.logsumexp import Norm
from engine.ops.reduce.sums import AllTrue, AnyTrue, Rowwise, Sum
from engine.ops.shape.cat import Cat

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
    """Optimise `graph`, and plan its bodies for so many threads.

    With `body_bytes`, each body takes no more than so many bytes, and recomputes what it must. Raises EngineError.
    """
    return _let_go(_runnable(graph, _Options(limits, allowance, loop_threads, body_bytes)))


def with_planned_bodies(
    graph: Graph, limits: Limits, allowance: Allowance, loop_threads: int = 1, body_bytes: int | None = None
) -> Graph:
    """Plan the bodies of `graph`, which is optimised already. Raises EngineError."""
    return _let_go(_with_planned_bodies(graph, _Options(limits, allowance, loop_threads, body_bytes)))


def _let_go(graph: Graph) -> Graph:
    """Lift the deadline of bodies that are planned at every depth: from now on they serve other requests."""
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
    """Copy strided operands once, in front of the loop: a body is planned for entries that lie densely."""
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
    bodies = _functions_of(node)
    if isinstance(node.op, While):  # a step evaluates the condition again
        condition, body, carries = (node.attrs[name] for name in ("condition", "body", "carries"))
        bodies = [condition, asking(body, condition, carries)]
    try:
        plans = [_plan_of(body, options) for body in bodies]
    except OverMemory as error:
        raise at_origin(error, node.origin) from None
    return node._replace(op=_PLANNED[node.op.name](node.op, tuple(plans)))


def _functions_of(node: Node) -> list[Body]:
    return [node.attrs[name] for name in node.op.functions if node.attrs[name] is not None]


def _plan_of(body: Body, options: _Options) -> Plan:
    """Plan a body, or return its plan for the same options."""
    limits, allowance, threads, body_bytes = options

    def make() -> Plan:
        graph = _runnable(tidy(body).graph, options)
        if body_bytes is None:
            return choose_plan(graph, limits, allowance.deadline, threads)
        return rematerialize(graph, limits.within(body_bytes), allowance.deadline, threads).plan

    return body.made(("plan", limits, threads, body_bytes), make)


# Rewrites that make a body compilable: cast integers to the floats they are computed with, make rows contiguous. The
# results have the same bits, except that sums are in the order in which kernels add up.

#: truth as numbers: any is the largest, all the least; and how many is a sum, which is exact
_OF_TRUTH: Final[Mapping[type[Definition], str]] = MappingProxyType({AnyTrue: "max", AllTrue: "min", Sum: "sum"})
#: sizes whose squares, and sums of these, are far from the ends of a float's range
_MODERATE: Final = {"float32": (1e-15, 1e15), "float64": (1e-140, 1e140)}


def make_compilable(graph: Graph) -> Graph:
    """Rewrite nodes that kernels cannot compute as they are; return `graph` itself if there are none."""
    graph = _rewritten(graph, _of_one_dtype)
    return _rewritten(graph, partial(_in_rows, _row_lengths(graph)))


def _rewritten(graph: Graph, write_node: Callable[[Node, Sequence[Value]], Value | None]) -> Graph:
    """Rewrite nodes that have operands and one result, all of them with elements."""

    def written(node: Node, operands: Sequence[Value]) -> Value | None:
        types = [*node.types, *(type for x in operands for type in x.node.types)]
        is_eligible = bool(operands) and not node.op.several and all(type.size for type in types)
        return write_node(node, operands) if is_eligible else None

    rewritten = Builder(graph.registry, NO_LIMITS).rewrite(graph, written)
    return graph if rewritten is graph else dce(rewritten)


def _of_one_dtype(node: Node, operands: Sequence[Value]) -> Value | None:
    """Rewrite a node in the dtype that kernels compute in, or that is copied."""
    op, dtype = node.op, node.type.dtype
    if isinstance(op, Norm) and has_loops(dtype):
        return _norm(node, _as(operands[0], dtype))
    if type(op) in _OF_TRUTH and (dtype == BOOL or operands[0].dtype == BOOL):
        truth = _as(_as(operands[0], BOOL), FLOAT64)
        return _as(getattr(truth, _OF_TRUTH[type(op)])(**node.attrs), dtype)
    if isinstance(op, (Cat, UpdateSlice)) or (isinstance(op, Rowwise) and has_loops(dtype)):
        return _emitted(node, operands, [_as(x, dtype) for x in operands])
    return _of_elements(node, op, operands) if isinstance(op, Elementwise) else None


def _of_elements(node: Node, op: Elementwise, operands: Sequence[Value]) -> Value | None:
    """Cast integers to the float that they are computed with, as the op does; a bool, which kernels read, stays."""
    floats: list[Scalars] = ["float" for _ in operands]
    reads = op.reads(*floats)
    numbers = [x.dtype for x, type in zip(operands, reads, strict=True) if type == "float"]
    common = node.type.dtype if node.type.dtype != BOOL else promote(*numbers) if numbers else FLOAT64
    if not has_loops(common):
        return None
    dtypes = [common if type == "float" else BOOL for type in reads]
    cast = [_as(x, dtype) if x.dtype.kind in "iu" else x for x, dtype in zip(operands, dtypes, strict=True)]
    return _emitted(node, operands, cast)


def _as(x: Value, dtype: DType) -> Value:
    return x if x.dtype == dtype else x.cast(dtype=dtype)


def _emitted(node: Node, operands: Sequence[Value], cast: Sequence[Value]) -> Value | None:
    """Emit the node on cast operands; return None if none was cast, or its result would have another type."""
    if all(x is y for x, y in zip(operands, cast, strict=True)):
        return None
    emitted = cast[0].builder.emit(node.op, cast, node.attrs)
    return emitted if emitted.type == node.type else None


def _norm(node: Node, x: Value) -> Value:
    """Write √Σ x², of x / max |x| where squares might leave the range."""
    axes = node.attrs["axes"]
    largest = x.abs().max(axes=axes, keepdims=True)
    low, high = _MODERATE[x.dtype.name]
    is_extreme = (largest < low).logical_or(largest > high).logical_and(largest > 0).logical_and(largest < math.inf)
    scale = is_extreme.where(largest, 1.0)
    return shaped((x / scale).square().sum(axes=axes, keepdims=True).sqrt() * scale, node.type.shape)


def _row_lengths(graph: Graph) -> Mapping[tuple[Shape, DType], set[int]]:
    """Numbers of trailing axes that make a row, by the shape and dtype of what is reduced."""
    lengths: dict[tuple[Shape, DType], set[int]] = {}
    for node in graph.nodes:
        if isinstance(node.op, Rowwise):
            x = graph.nodes[node.operands[0]].type
            axes = _axes(node, x.ndim)
            is_trailing = _is_trailing(axes, x.ndim)
            if is_trailing or _is_added_up(node, axes):
                lengths.setdefault((x.shape, x.dtype), set()).add(len(axes) if is_trailing else x.ndim - len(axes))
    return lengths


def _axes(node: Node, rank: int) -> Shape:
    assert isinstance(node.op, Rowwise)
    return tuple(node.op.row_axes(node.attrs)) if rank else ()


def _is_trailing(axes: Shape, rank: int) -> bool:
    return axes == tuple(range(rank - len(axes), rank))


def _is_added_up(node: Node, axes: Shape) -> bool:
    """Whether it is a sum over leading axes, for which kernels have a way of their own."""
    assert isinstance(node.op, Rowwise)
    return axes == tuple(range(len(axes))) and node.op.divisor(1) is not None


def _in_rows(lengths: Mapping[tuple[Shape, DType], set[int]], node: Node, operands: Sequence[Value]) -> Value | None:
    """Make the elements of a row contiguous, if they lie across memory; write a mean as a sum and its quotient."""
    x, op = operands[0], node.op
    if not isinstance(op, Rowwise) or x.dtype != node.type.dtype or not has_loops(x.dtype):
        return None
    axes = _axes(node, x.ndim)
    if not axes:
        if op.is_one_of_one or not op.reduces:
            return None
        # A number as a row.
        return x.builder.emit(op, (x.reshape(shape=(1,)),), {**node.attrs, "axes": (0,), "keepdims": False})
    divisor = op.divisor(count(x.shape, axes)) if op.reduces else None
    if divisor is None or divisor == 1:
        return _turned(lengths, node, x, axes)
    total = x.sum(axes=axes, keepdims=node.attrs["keepdims"])
    turned = _turned(lengths, total.node, x, axes)
    return (total if turned is None else turned) / divisor


def _turned(lengths: Mapping[tuple[Shape, DType], set[int]], node: Node, x: Value, axes: Shape) -> Value | None:
    """Reduce a copy with the axes of a row behind the others; return None if kernels can read it as it is.

    A kernel has rows of one length. If there are several lengths, sums over leading axes are turned, and the axes of
    other reductions are made one.
    """
    is_alone = len(lengths.get((x.shape, x.dtype), ())) < 2
    if _is_trailing(axes, x.ndim) and (is_alone or len(axes) == 1):
        return None
    if _is_added_up(node, axes) and is_alone:
        return None
    order = [*(a for a in range(x.ndim) if a not in axes), *axes]
    rows = x if order == list(range(x.ndim)) else permute(x, order).identity()
    if not node.op.reduces:  # type: ignore[attr-defined]  # a Rowwise has it
        return unpermute(x.builder.emit(node.op, (rows,), {**node.attrs, "axis": x.ndim - 1}), order)
    kept = tuple(x.shape[a] for a in order[: x.ndim - len(axes)])
    rows = rows.reshape(shape=(*kept, -1))
    reduced = x.builder.emit(node.op, (rows,), {**node.attrs, "axes": (len(kept),), "keepdims": False})
    return shaped(reduced, node.type.shape)


# Bodies for machine code: all that can be fused is, since a step in Python costs more than many of a kernel.

#: bytes that a body may take in any case: its kernels work in some
_FREE_BYTES: Final = 1 << 16

#: ops that kernels are compiled for
CompiledOp = Fused | MicrokernelOp | PlannedScan


def with_compiled_bodies(graph: Graph, *, microkernels: bool = True, few_launches: bool = False) -> Graph:
    """Plan all bodies for kernels, each within the memory that it was planned for; return `graph` if it has none.

    `few_launches` is that of `compiled_within`, and splits sums over several axes.
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
    loop = step_loop(plans[0], len(parts.consts), len(parts.carries))
    return node._replace(op=replace(op, plans=plans, step_loop=loop))


def _compiled(graph: Graph, most_bytes: int, *, microkernels: bool, few_launches: bool) -> Plan:
    """Compile `make_compilable(graph)` if there is memory for the copies that it makes, else `graph`."""
    written, most = make_compilable(graph), max(most_bytes, _FREE_BYTES)
    for each in (written, graph) if written is not graph else (graph,):
        inner = with_compiled_bodies(each, microkernels=microkernels, few_launches=few_launches)
        within = compiled_within(inner, most, 1, microkernels=microkernels, all_pay=True, few_launches=few_launches)
        if within:
            return within.plan
    return make_plan(inner, NO_LIMITS, tight=True)


def kernel_ops(plan: Plan, is_gone_through: Callable[[PlannedScan], bool] = lambda scan: False) -> Iterator[CompiledOp]:
    """Yield ops that kernels are made for, also those in bodies of loops, each of which is visited once.

    A scan that one kernel goes through by itself is yielded instead of the ops of its body.
    """
    for each in plans_within(plan, lambda op: isinstance(op, PlannedScan) and is_gone_through(op)):
        for step in each.steps:
            op = step.op
            if isinstance(op, Fused | MicrokernelOp) or (isinstance(op, PlannedScan) and is_gone_through(op)):
                yield op


def plans_within(plan: Plan, is_whole: Callable[[Kernel], bool] = lambda op: False) -> Iterator[Plan]:
    """Yield a plan and those that it runs, each once, but for the plans that an op runs which `is_whole`."""
    seen, waiting = {plan}, [plan]
    while waiting:
        current = waiting.pop()
        yield current
        bodies = [body for step in current.steps if not is_whole(step.op) for body in step.op.runs if body not in seen]
        seen.update(bodies)
        waiting += dict.fromkeys(bodies)
