"""Analysis of a call without running it: shapes, arithmetic, memory, and where derivatives stop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from engine.autodiff.calls import BatchSum
from engine.compiler.compiler import CompileRequest, plan_call, plan_within
from engine.compiler.example_blocks import Blocks, example_blocks
from engine.compiler.memory_plan import Storage
from engine.ir.body import NO_BUDGET
from engine.ir.errors import OverBudget
from engine.ir.graph import Node, Value
from engine.ir.limits import NO_END
from engine.ir.op import NoGradient
from engine.ir.program import Function, FunctionTyping, Program
from engine.ir.tensor_type import TensorType

#: attributes whose functions are differentiated
_DIFFERENTIATED: Final = frozenset({"body", "then", "otherwise"})


@dataclass(frozen=True, slots=True)
class NodeCost:
    """One of the client's nodes: its (first) type, and the FLOPs of its value and of the way back through it."""

    node: int
    type: TensorType
    flops: int


@dataclass(frozen=True, slots=True)
class Analysis:
    """Needs of a call, and whether they are within the limits.

    `saved_bytes` are of results of the forward pass that the backward pass reads; `recomputed_flops` are spent for want
    of memory. The fastest plan is the one that there would be if memory were no matter. `blocks` are those of a sum
    over examples.
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
    """Plan a call as it would run within its limits and memory; where it is over them, as it would run without.

    The tensors that the call takes beside feeds are taken to fit. A sum over examples has the FLOPs of all its
    `blocks`, and the bytes of one. Raises EngineError, OverBudget only for a rank.
    """
    call, limits = request.call, request.limits
    if not isinstance(call, BatchSum):
        return _analysed(request)
    blocks = example_blocks(replace(request, limits=limits.within(request.memory)))
    found = last = _analysed(replace(request, call=call.of_examples(blocks.last)))
    if blocks.count > 1:
        found = _of_all(_analysed(replace(request, call=call.of_examples(blocks.block))), last, blocks.count)
    flops = found.forward_flops + found.backward_flops
    return replace(found, blocks=blocks, within=found.within and flops <= limits.flops)


def _of_all(full: Analysis, last: Analysis, count: int) -> Analysis:
    """Analysis of so many blocks, of which the last one may be another."""
    others = count - 1
    nodes = [replace(a, flops=others * a.flops + b.flops) for a, b in zip(full.nodes, last.nodes, strict=True)]
    return replace(
        full,
        nodes=tuple(nodes),
        forward_flops=others * full.forward_flops + last.forward_flops,
        backward_flops=others * full.backward_flops + last.backward_flops,
        recomputed_flops=others * full.recomputed_flops + last.recomputed_flops,
        fastest_flops=others * full.fastest_flops + last.fastest_flops,
        within=full.within and last.within,
    )


def _analysed(request: CompileRequest) -> Analysis:
    program, call = request.program, request.call
    endless = replace(request.limits, bytes=NO_END, flops=NO_END)
    _, values = program.build(call.example(program, request.types), call.roots, request.deadline, limits=endless)
    call = call.fitted(values)
    request = replace(request, call=call)
    within = True
    try:
        asked, plan, fastest = plan_within(request)
    except OverBudget:
        within = False
        asked, plan = plan_call(request.without_limits())
        fastest = plan
    storage = Storage(asked.graph)
    spent = _spent(storage)
    return Analysis(
        nodes=tuple(
            NodeCost(node, value.type, spent.get((node, False), 0) + spent.get((node, True), 0))
            for node, value in values.items()
        ),
        forward_flops=sum(flops for (_, backward), flops in spent.items() if not backward),
        backward_flops=sum(flops for (_, backward), flops in spent.items() if backward),
        saved_bytes=_saved(storage),
        peak_bytes=plan.peak_bytes,
        recomputed_flops=plan.recomputed_flops,
        fastest_flops=fastest.flops,
        fastest_peak_bytes=fastest.peak_bytes,
        stops_gradient=stops_between(program, values, call.wrt_nodes, call.differentiated),
        result_types=plan.result_types,
        within=within,
    )


def stops_between(
    program: Program, values: Mapping[int, Value], by: Iterable[int], ends: Iterable[int]
) -> tuple[int, ...]:
    """The client's nodes on the way from `by` to `ends` that no derivative passes, though they read floats.

    And those that run functions in which there is such a node.
    """
    by = set(by)
    reached = program.dependent(by)
    between = reached.intersection(program.needed(ends)).difference(by)
    return tuple(node for node in sorted(between) if _stops(program, values, node, reached))


def _stops(program: Program, values: Mapping[int, Value], node: int, reached: Set[int]) -> bool:
    statement = program.statements[node]
    if not any(values[i].type.is_differentiable for i in statement.operands):
        return False
    if statement.op.functions:
        return any(_stops_inside(*inner) for inner in _inside(program, values, node, reached))
    return isinstance(statement.op.vjp, NoGradient) or not any(t.is_differentiable for t in values[node].node.types)


def _inside(
    program: Program, values: Mapping[int, Value], node: int, reached: Set[int]
) -> Iterator[tuple[Function, Sequence[TensorType], Sequence[int]]]:
    """The functions that derivatives of a node go through, the types of their operands, and which are `reached`.

    Carries are, if anything is: at the next step.
    """
    statement, attrs = program.statements[node], program.attrs[node]
    for name in _DIFFERENTIATED.intersection(attrs) if attrs.get("derivative") is None else ():
        function, typed = program.functions[attrs[name]], values[node].node.attrs.get(name)
        given = statement.operands[len(statement.operands) - len(function.leaves) :]
        types = typed.inputs if typed is not None else [values[i].type for i in given]
        consts = len(given) - attrs.get("sequences", 0) - attrs.get("carries", 0)
        carries = range(consts, consts + attrs.get("carries", 0))
        yield function, types, [k for k, i in enumerate(given) if i in reached or k in carries]


def _stops_inside(function: Function, types: Sequence[TensorType], moving: Sequence[int]) -> bool:
    values = function.values_for(types, FunctionTyping(function.functions, NO_BUDGET))
    return bool(stops_between(function, values, [function.leaves[k] for k in moving], function.outputs))


def _spent(storage: Storage) -> dict[tuple[int, bool], int]:
    """FLOPs by the client's node that they stem from, and by direction."""
    spent: dict[tuple[int, bool], int] = {}
    for node in storage.graph.nodes:
        key = (-1, False) if node.origin is None else (node.origin.node, node.origin.backward)
        spent[key] = spent.get(key, 0) + (0 if node.is_leaf else node.work(storage.types).flops)
    return spent


def _saved(storage: Storage) -> int:
    """Bytes of the blocks that the forward pass writes and the backward pass reads."""
    nodes = storage.graph.nodes
    read = {storage.block[i] for node in nodes if _is_backward(node) for i in node.operands}
    kept = {
        storage.block[i] + k: type.nbytes
        for i, node in enumerate(nodes)
        if not (storage.is_view[i] or node.is_leaf or _is_backward(node))
        for k, type in enumerate(node.types)
    }
    return sum(size for block, size in kept.items() if block in read)


def _is_backward(node: Node) -> bool:
    return node.origin is not None and node.origin.backward
