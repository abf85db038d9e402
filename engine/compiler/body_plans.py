"""Plans of bodies: optimise graphs with control flow, and replace its ops by kernels that run planned bodies.

A `scan`, `while`, `cond` or `call` node becomes a `RunsPlans` kernel, which holds the plan of each of its functions:

    scan(x0, xs; body: c, x → c + sin(x))     becomes     PlannedScan(plans=[%2 = sin(x), %3 = add(c, %2)])

Bodies may contain control flow, so planning recurses from the outside in. Before a body is planned, loop invariants
move out of it (`hoist`), and loops through the same steps are merged. The plan is cached with the body. So a body is
planned once for each set of options, however often a graph uses it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

from engine.autodiff.bodies import tidy
from engine.autodiff.control_flow import RunsFunctions, split_operands
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
from engine.compiler.plan import Plan, graph_of, make_plan, with_identity_of
from engine.compiler.sums import split_sums
from engine.ir.errors import OverMemory
from engine.ir.graph import Builder, Graph, Node, Value, locate_error, permute, shaped, unpermute
from engine.ir.op import Definition, Kernel
from engine.ir.passes import Allowance, dce, optimise
from engine.ir.program import Body
from engine.ir.run_context import NO_DEADLINE, NO_LIMITS, Limits
from engine.ir.tensor_type import BOOL, FLOAT64, DType, Shape, has_kernels, promote
from engine.ops.common.numerics import reduced_elements
from engine.ops.control.while_loop import While, step_with_condition
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
    """Options for planning bodies at every depth."""

    limits: Limits
    allowance: Allowance
    kernel_threads: int
    body_bytes: int | None


def optimise_and_plan_bodies(
    graph: Graph, limits: Limits, allowance: Allowance, kernel_threads: int = 1, body_bytes: int | None = None
) -> Graph:
    """Optimise `graph` and plan its bodies, for `kernel_threads` threads per kernel.

    With `body_bytes`, each body takes at most that many bytes, and recomputes values to fit. Raises EngineError.
    """
    return _without_deadlines(_runnable(graph, _Options(limits, allowance, kernel_threads, body_bytes)))


def with_planned_bodies(
    graph: Graph, limits: Limits, allowance: Allowance, kernel_threads: int = 1, body_bytes: int | None = None
) -> Graph:
    """Plan the bodies of a graph that is already optimised. Raises EngineError."""
    return _without_deadlines(_with_planned_bodies(graph, _Options(limits, allowance, kernel_threads, body_bytes)))


def _without_deadlines(graph: Graph) -> Graph:
    """Remove the deadlines of bodies: they are cached, and will serve other requests."""
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
    while (merged := merge(graph)) is not graph:  # merging two loops can make the loops that read them mergeable
        graph = optimise(merged, allowance)
    # Merging comes first, as loops with different invariants would not merge any more.
    graph = optimise(hoist(dce(graph, allowance)), allowance)
    return _with_planned_bodies(graph, options)


def _with_planned_bodies(graph: Graph, options: _Options) -> Graph:
    if not _runs_functions(graph):
        return graph
    graph = _with_dense_operands(lower(graph, options.limits, options.allowance.deadline))
    return graph.with_nodes([_planned(node, options) for node in graph.nodes], graph.outputs)


def _with_dense_operands(graph: Graph) -> Graph:
    """Copy strided operands in front of the loop, once: bodies are planned for dense entries."""
    builder = Builder(graph.registry, NO_LIMITS)

    def dense(node: Node, operands: Sequence[Value]) -> Value | None:
        if not isinstance(node.op, RunsFunctions) or not any(_is_strided(x.node) for x in operands):
            return None
        return builder.copy(node, [x.identity() if _is_strided(x.node) else x for x in operands])

    return builder.rewrite(graph, dense)


def _is_strided(node: Node) -> bool:
    view = node.view
    return view is not None and not view.reshapes


def _runs_functions(graph: Graph) -> bool:
    return any(isinstance(node.op, RunsFunctions) for node in graph.nodes)


def _planned(node: Node, options: _Options) -> Node:
    if not isinstance(node.op, RunsFunctions):
        return node
    bodies = _functions_of(node)
    if isinstance(node.op, While):  # a step also evaluates the condition for the next one
        condition, body, carries = (node.attrs[name] for name in ("condition", "body", "carries"))
        bodies = [condition, step_with_condition(body, condition, carries)]
    try:
        plans = [_plan_of(body, options) for body in bodies]
    except OverMemory as error:
        raise locate_error(error, node.origin) from None
    return node._replace(op=_PLANNED[node.op.name](node.op, tuple(plans)))


def _functions_of(node: Node) -> list[Body]:
    return [node.attrs[name] for name in node.op.functions if node.attrs[name] is not None]


def _plan_of(body: Body, options: _Options) -> Plan:
    """Return the plan of a body for these options; cached with the body."""
    limits, allowance, threads, body_bytes = options

    def make() -> Plan:
        graph = _runnable(tidy(body).graph, options)
        if body_bytes is None:
            return choose_plan(graph, limits, allowance.deadline, threads)
        return rematerialize(graph, limits.within(body_bytes), allowance.deadline, threads).plan

    return body.cached(("plan", limits, threads, body_bytes), make)


# Rewrites that make a body compilable: cast integers to the floats that they are computed with, and make rows
# contiguous. Results keep their bits, except that sums are added in the order of kernels.

#: reductions of bools as reductions of floats: any is a maximum, all a minimum, and a sum of bools is exact in float64
_BOOL_REDUCTIONS: Final[Mapping[type[Definition], str]] = MappingProxyType({AnyTrue: "max", AllTrue: "min", Sum: "sum"})
#: range of magnitudes whose squares can be summed without overflow or underflow
_SQUARABLE: Final = {"float32": (1e-15, 1e15), "float64": (1e-140, 1e140)}


def make_compilable(graph: Graph) -> Graph:
    """Rewrite nodes that kernels cannot compute as they are; return `graph` itself if there are none."""
    graph = _rewritten(graph, _in_float_dtype)
    return _rewritten(graph, partial(_in_rows, _row_lengths(graph)))


def _rewritten(graph: Graph, write_node: Callable[[Node, Sequence[Value]], Value | None]) -> Graph:
    """Rewrite nodes that have operands, a single result, and no empty tensors."""

    def write_eligible(node: Node, operands: Sequence[Value]) -> Value | None:
        types = [*node.types, *(type for x in operands for type in x.node.types)]
        is_eligible = bool(operands) and not node.op.several and all(type.size for type in types)
        return write_node(node, operands) if is_eligible else None

    rewritten = Builder(graph.registry, NO_LIMITS).rewrite(graph, write_eligible)
    return graph if rewritten is graph else dce(rewritten)


def _in_float_dtype(node: Node, operands: Sequence[Value]) -> Value | None:
    """Rewrite a node to compute in the float dtype of its result, or to copy in it."""
    op, dtype = node.op, node.type.dtype
    if isinstance(op, Norm) and has_kernels(dtype):
        return _norm(node, _cast(operands[0], dtype))
    if type(op) in _BOOL_REDUCTIONS and (dtype == BOOL or operands[0].dtype == BOOL):
        as_float = _cast(_cast(operands[0], BOOL), FLOAT64)
        return _cast(getattr(as_float, _BOOL_REDUCTIONS[type(op)])(**node.attrs), dtype)
    if isinstance(op, (Cat, UpdateSlice)) or (isinstance(op, Rowwise) and has_kernels(dtype)):
        return _emit(node, operands, [_cast(x, dtype) for x in operands])
    return _cast_operands(node, op, operands) if isinstance(op, Elementwise) else None


def _cast_operands(node: Node, op: Elementwise, operands: Sequence[Value]) -> Value | None:
    """Cast integer operands to the float dtype that the op computes with. Kernels read bools, so these stay."""
    floats: list[Scalars] = ["float" for _ in operands]
    operand_kinds = op.reads(*floats)
    float_dtypes = [x.dtype for x, type in zip(operands, operand_kinds, strict=True) if type == "float"]
    common = node.type.dtype if node.type.dtype != BOOL else promote(*float_dtypes) if float_dtypes else FLOAT64
    if not has_kernels(common):
        return None
    dtypes = [common if type == "float" else BOOL for type in operand_kinds]
    cast_operands = [_cast(x, dtype) if x.dtype.kind in "iu" else x for x, dtype in zip(operands, dtypes, strict=True)]
    return _emit(node, operands, cast_operands)


def _cast(x: Value, dtype: DType) -> Value:
    return x if x.dtype == dtype else x.cast(dtype=dtype)


def _emit(node: Node, operands: Sequence[Value], cast: Sequence[Value]) -> Value | None:
    """Emit the node on cast operands; return None if none was cast, or if the type of the result would change."""
    if all(x is y for x, y in zip(operands, cast, strict=True)):
        return None
    emitted = cast[0].builder.emit(node.op, cast, node.attrs)
    return emitted if emitted.type == node.type else None


def _norm(node: Node, x: Value) -> Value:
    """Write √Σ x². Divide by max |x| first if squares might overflow or underflow."""
    axes = node.attrs["axes"]
    largest = x.abs().max(axes=axes, keepdims=True)
    low, high = _SQUARABLE[x.dtype.name]
    # Do not divide by 0 or infinity, which would make the norm NaN.
    is_extreme = (largest < low).logical_or(largest > high).logical_and(largest > 0).logical_and(largest < math.inf)
    scale = is_extreme.where(largest, 1.0)
    return shaped((x / scale).square().sum(axes=axes, keepdims=True).sqrt() * scale, node.type.shape)


def _row_lengths(graph: Graph) -> Mapping[tuple[Shape, DType], set[int]]:
    """Collect the numbers of trailing axes that make a row, by shape and dtype of the reduced tensor."""
    lengths: dict[tuple[Shape, DType], set[int]] = {}
    for node in graph.nodes:
        if isinstance(node.op, Rowwise):
            x = graph.nodes[node.operands[0]].type
            axes = _axes(node, x.ndim)
            is_trailing = _is_trailing(axes, x.ndim)
            if is_trailing or _is_leading_sum(node, axes):
                lengths.setdefault((x.shape, x.dtype), set()).add(len(axes) if is_trailing else x.ndim - len(axes))
    return lengths


def _axes(node: Node, rank: int) -> Shape:
    assert isinstance(node.op, Rowwise)
    return tuple(node.op.row_axes(node.attrs)) if rank else ()


def _is_trailing(axes: Shape, rank: int) -> bool:
    return axes == tuple(range(rank - len(axes), rank))


def _is_leading_sum(node: Node, axes: Shape) -> bool:
    """Whether a node sums over leading axes, which kernels can do without a transpose."""
    assert isinstance(node.op, Rowwise)
    return axes == tuple(range(len(axes))) and node.op.divisor(1) is not None


def _in_rows(lengths: Mapping[tuple[Shape, DType], set[int]], node: Node, operands: Sequence[Value]) -> Value | None:
    """Make the elements of each row contiguous if they are not, and write a mean as a sum and a quotient."""
    x, op = operands[0], node.op
    if not isinstance(op, Rowwise) or x.dtype != node.type.dtype or not has_kernels(x.dtype):
        return None
    axes = _axes(node, x.ndim)
    if not axes:
        if op.keeps_single_elements or not op.reduces:
            return None
        # Reduce a scalar as a row of one element.
        return x.builder.emit(op, (x.reshape(shape=(1,)),), {**node.attrs, "axes": (0,), "keepdims": False})
    divisor = op.divisor(reduced_elements(x.shape, axes)) if op.reduces else None
    if divisor is None or divisor == 1:
        return _transposed(lengths, node, x, axes)
    total = x.sum(axes=axes, keepdims=node.attrs["keepdims"])
    transposed = _transposed(lengths, total.node, x, axes)
    return (total if transposed is None else transposed) / divisor


def _transposed(lengths: Mapping[tuple[Shape, DType], set[int]], node: Node, x: Value, axes: Shape) -> Value | None:
    """Reduce a copy with the reduced axes last; return None if kernels can read the operand as it is.

    A kernel has rows of one length. If reductions of one tensor need several lengths, sums over leading axes are
    transposed, and the axes of other reductions are merged into one.
    """
    has_one_length = len(lengths.get((x.shape, x.dtype), ())) < 2
    if _is_trailing(axes, x.ndim) and (has_one_length or len(axes) == 1):
        return None
    if _is_leading_sum(node, axes) and has_one_length:
        return None
    # Other axes first, then those of the row. `identity` copies, so that rows are contiguous.
    order = [*(a for a in range(x.ndim) if a not in axes), *axes]
    rows = x if order == list(range(x.ndim)) else permute(x, order).identity()
    if not node.op.reduces:  # type: ignore[attr-defined]  # a Rowwise has the attribute
        return unpermute(x.builder.emit(node.op, (rows,), {**node.attrs, "axis": x.ndim - 1}), order)
    outer = tuple(x.shape[a] for a in order[: x.ndim - len(axes)])
    rows = rows.reshape(shape=(*outer, -1))
    reduced = x.builder.emit(node.op, (rows,), {**node.attrs, "axes": (len(outer),), "keepdims": False})
    return shaped(reduced, node.type.shape)


# Compiled bodies: everything that can be fused is fused, since one step in Python costs more than many native steps.

#: bytes that a body may always take, for the workspace of its kernels
_FREE_BYTES: Final = 1 << 16

#: ops that are compiled to kernels
CompiledOp = Fused | MicrokernelOp | PlannedScan


def with_compiled_bodies(graph: Graph, *, microkernels: bool = True, few_launches: bool = False) -> Graph:
    """Plan all bodies with kernels, each within the memory of its old plan; return `graph` if it has none.

    `few_launches` is passed to `compiled_within`, and also splits sums over several axes.
    """
    if not any(isinstance(node.op, RunsPlans) for node in graph.nodes):
        return graph
    compiled_plans: dict[Plan, Plan] = {}

    def compiled(plan: Plan) -> Plan:
        if plan not in compiled_plans:
            body = graph_of(plan, graph.registry)
            split = split_sums(body) if few_launches else body
            substitute = _compiled(split, plan.peak_bytes, microkernels=microkernels, few_launches=few_launches)
            compiled_plans[plan] = with_identity_of(substitute, plan)
        return compiled_plans[plan]

    nodes = [_with_plans(node, compiled) if isinstance(node.op, RunsPlans) else node for node in graph.nodes]
    return graph.with_nodes(nodes, graph.outputs)


def _with_plans(node: Node, compiled: Callable[[Plan], Plan]) -> Node:
    op = node.op
    assert isinstance(op, RunsPlans)
    plans = tuple(map(compiled, op.plans))
    if not isinstance(op, PlannedScan):
        return node._replace(op=replace(op, plans=plans))
    operands = len(node.operands) - isinstance(op, PlannedCountedScan)
    parts = split_operands(range(operands), node.attrs["carries"], node.attrs["sequences"])
    loop = step_loop(plans[0], len(parts.consts), len(parts.carries))
    return node._replace(op=replace(op, plans=plans, step_loop=loop))


def _compiled(graph: Graph, most_bytes: int, *, microkernels: bool, few_launches: bool) -> Plan:
    """Compile `make_compilable(graph)` if there is memory for the copies that it adds, else `graph`."""
    compilable, byte_limit = make_compilable(graph), max(most_bytes, _FREE_BYTES)
    # Casts and transposes are copies, which may not fit. The body as it is fuses less, but always has a plan.
    for variant in (compilable, graph) if compilable is not graph else (graph,):
        inner = with_compiled_bodies(variant, microkernels=microkernels, few_launches=few_launches)
        compiled = compiled_within(
            inner, byte_limit, 1, microkernels=microkernels, all_pay=True, few_launches=few_launches
        )
        if compiled:
            return compiled.plan
    return make_plan(inner, NO_LIMITS, tight=True)


def kernel_ops(plan: Plan, is_one_kernel: Callable[[PlannedScan], bool] = lambda scan: False) -> Iterator[CompiledOp]:
    """Yield ops that have kernels, including those in bodies of loops, each of which is visited once.

    A scan that runs as one kernel is yielded in place of the ops of its body.
    """
    for current in plans_within(plan, lambda op: isinstance(op, PlannedScan) and is_one_kernel(op)):
        for step in current.steps:
            op = step.op
            if isinstance(op, Fused | MicrokernelOp) or (isinstance(op, PlannedScan) and is_one_kernel(op)):
                yield op


def plans_within(plan: Plan, is_opaque: Callable[[Kernel], bool] = lambda op: False) -> Iterator[Plan]:
    """Yield a plan and the plans that it runs, each once, except plans run by ops that are `is_opaque`."""
    seen, pending = {plan}, [plan]
    while pending:
        current = pending.pop()
        yield current
        bodies = [body for step in current.steps if not is_opaque(step.op) for body in step.op.runs if body not in seen]
        seen.update(bodies)
        pending += dict.fromkeys(bodies)
