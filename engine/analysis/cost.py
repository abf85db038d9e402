"""Analysis of a call without running it: shapes, arithmetic, memory, and nodes where derivatives stop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Final

from engine.autodiff.calls import BatchSum
from engine.compiler.compiler import CompileRequest, plan_call, plan_within
from engine.compiler.example_blocks import Blocks, example_blocks
from engine.compiler.plan import MemoryBlocks
from engine.ir.errors import OverBudget
from engine.ir.graph import Node, Value
from engine.ir.op import NoGradient
from engine.ir.program import NO_BUDGET, FunctionTyping, Program
from engine.ir.run_context import NO_END
from engine.ir.tensor_type import TensorType

#: attributes whose functions are differentiated
_DIFFERENTIATED: Final = frozenset({"body", "then", "otherwise"})


@dataclass(frozen=True, slots=True)
class NodeCost:
    """Cost of one of the client's nodes: its (first) type, and its FLOPs, forward and backward."""

    node: int
    type: TensorType
    flops: int


@dataclass(frozen=True, slots=True)
class Analysis:
    """Cost of a call, and whether it is within the limits.

    `saved_bytes` are results of the forward pass that the backward pass reads; `recomputed_flops` are spent to save
    memory. The fastest plan is the one without a memory limit. `blocks` are those of a sum over examples.
    """

    nodes: tuple[NodeCost, ...]
    forward_flops: int
    backward_flops: int
    saved_bytes: int
    peak_bytes: int
    recomputed_flops: int
    fastest_flops: int
    fastest_peak_bytes: int
    stops_gradient: tuple[int, ...]
    result_types: tuple[TensorType, ...]
    within: bool
    blocks: Blocks | None = None


def analyse(request: CompileRequest) -> Analysis:
    """Plan a call as it would run within its limits and memory; if it exceeds them, as it would run without.

    Tensors other than feeds are assumed to fit. A sum over examples has the FLOPs of all its `blocks`, and the bytes of
    one. Raises EngineError, but OverBudget only for a rank.
    """
    call, limits = request.call, request.limits
    if not isinstance(call, BatchSum):
        return _analyse_plan(request)
    blocks = example_blocks(replace(request, limits=limits.within(request.memory)))
    total = last = _analyse_plan(replace(request, call=call.of_examples(blocks.last)))
    if blocks.count > 1:
        total = _sum_of_blocks(_analyse_plan(replace(request, call=call.of_examples(blocks.block))), last, blocks.count)
    flops = total.forward_flops + total.backward_flops
    return replace(total, blocks=blocks, within=total.within and flops <= limits.flops)


def _sum_of_blocks(full: Analysis, last: Analysis, count: int) -> Analysis:
    """Add up the analyses of `count` blocks, the last of which may be smaller."""
    nodes = [replace(a, flops=(count - 1) * a.flops + b.flops) for a, b in zip(full.nodes, last.nodes, strict=True)]
    fields = "forward_flops", "backward_flops", "recomputed_flops", "fastest_flops"
    flops = {name: (count - 1) * getattr(full, name) + getattr(last, name) for name in fields}
    return replace(full, nodes=tuple(nodes), within=full.within and last.within, **flops)


def _analyse_plan(request: CompileRequest) -> Analysis:
    program, call = request.program, request.call
    unlimited = replace(request.limits, bytes=NO_END, flops=NO_END)
    _, values = program.build(call.example(program, request.types), call.roots, request.deadline, limits=unlimited)
    call = call.with_types(values)
    request = replace(request, call=call)
    try:
        traced, plan, fastest = plan_within(request)
        within = True
    except OverBudget:
        traced, plan = plan_call(request.without_limits())
        fastest, within = plan, False
    storage = MemoryBlocks(traced.graph)
    node_flops = _flops_by_node(storage)
    return Analysis(
        nodes=tuple(
            NodeCost(node, value.type, node_flops.get((node, False), 0) + node_flops.get((node, True), 0))
            for node, value in values.items()
        ),
        forward_flops=sum(flops for (_, backward), flops in node_flops.items() if not backward),
        backward_flops=sum(flops for (_, backward), flops in node_flops.items() if backward),
        saved_bytes=_saved_bytes(storage),
        peak_bytes=plan.peak_bytes,
        recomputed_flops=plan.recomputed_flops,
        fastest_flops=fastest.flops,
        fastest_peak_bytes=fastest.peak_bytes,
        stops_gradient=stops_between(program, values, call.wrt_nodes, call.differentiated),
        result_types=plan.result_types,
        within=within,
    )


def stops_between(
    program: Program, values: Mapping[int, Value], sources: Iterable[int], ends: Iterable[int]
) -> tuple[int, ...]:
    """Return the client's nodes on paths from `sources` to `ends` that read floats but carry no derivative.

    This includes nodes that call a function with such a node.
    """
    sources = set(sources)
    reached = program.dependents(sources)
    between = reached.intersection(program.needed(ends)).difference(sources)
    return tuple(node for node in sorted(between) if _stops(program, values, node, reached))


def _stops(program: Program, values: Mapping[int, Value], node: int, reached: Set[int]) -> bool:
    statement = program.statements[node]
    if not any(values[i].type.is_differentiable for i in statement.operands):
        return False
    if statement.op.functions:
        return _stops_inside(program, values, node, reached)
    return isinstance(statement.op.vjp, NoGradient) or not any(t.is_differentiable for t in values[node].node.types)


def _stops_inside(program: Program, values: Mapping[int, Value], node: int, reached: Set[int]) -> bool:
    """Return whether a derivative stops in the functions that a node runs.

    A carry is reached if any operand is: in the next step at the latest.
    """
    statement, attrs = program.statements[node], program.attrs[node]
    for name in _DIFFERENTIATED.intersection(attrs) if attrs.get("derivative") is None else ():
        function, typed = program.functions[attrs[name]], values[node].node.attrs.get(name)
        operands = statement.operands[len(statement.operands) - len(function.leaves) :]
        types = typed.inputs if typed is not None else [values[i].type for i in operands]
        consts = len(operands) - attrs.get("sequences", 0) - attrs.get("carries", 0)
        carries = range(consts, consts + attrs.get("carries", 0))
        sources = [function.leaves[k] for k, i in enumerate(operands) if i in reached or k in carries]
        inner = function.values_for(types, FunctionTyping(function.functions, NO_BUDGET))
        if stops_between(function, inner, sources, function.outputs):
            return True
    return False


def _flops_by_node(storage: MemoryBlocks) -> dict[tuple[int, bool], int]:
    flops: dict[tuple[int, bool], int] = {}
    for node in storage.graph.nodes:
        key = (-1, False) if node.origin is None else (node.origin.node, node.origin.backward)
        flops[key] = flops.get(key, 0) + (0 if node.is_leaf else node.work(storage.types).flops)
    return flops


def _saved_bytes(storage: MemoryBlocks) -> int:
    nodes = storage.graph.nodes
    read = {storage.block[i] for node in nodes if _is_backward(node) for i in node.operands}
    forward_bytes = {
        storage.block[i] + k: type.nbytes
        for i, node in enumerate(nodes)
        if not (storage.is_view[i] or node.is_leaf or _is_backward(node))
        for k, type in enumerate(node.types)
    }
    return sum(size for block, size in forward_bytes.items() if block in read)


def _is_backward(node: Node) -> bool:
    return node.origin is not None and node.origin.backward
