"""Algebraic simplification: apply the rewrite rules that ops declare.

What a rule may change of a value is said in `engine.rewrites`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import chain

from engine.graph.ir import Builder, Graph, Node, Value
from engine.graph.limits import NO_LIMITS
from engine.graph.registry import Registry
from engine.graph.rewrite_rule import RewriteRule
from engine.passes.allowance import UNBOUNDED, Allowance


def simplify(graph: Graph, allowance: Allowance = UNBOUNDED) -> Graph:
    """`graph` with the rules applied once, in order, each on operands that are simplified already.

    Raises DeadlineExceeded.
    """
    builder = Builder(graph.registry, NO_LIMITS)  # it has been admitted; what it comes down to is no larger
    nodes = builder.nodes
    renamed: list[int] = []
    shared, outputs = set[int](), frozenset(graph.outputs)
    reads = Counter(chain(graph.outputs, chain.from_iterable([node.operands for node in graph.nodes])))
    several = {i for i, count in reads.items() if count > 1}
    ops = {node.op for node in graph.nodes}
    telling = {op: _telling(op.rewrites, graph.registry) for op in ops}
    if allowance.stops_stay:
        telling |= {op: frozenset() for op in ops if not op.is_differentiable}
    for i, node in enumerate(allowance.over(graph.nodes)):
        told, shorter = telling[node.op], None
        operands = tuple(map(renamed.__getitem__, node.operands))
        if told is None or (told and not told.isdisjoint([nodes[j].op.name for j in operands])):
            builder.origin = node.origin
            shorter = _rewritten(node, [builder.value(j) for j in operands], shared, is_output=i in outputs)
        renamed.append(len(nodes) if shorter is None else shorter.index)
        if shorter is None:
            nodes.append(node.on(operands))
        if i in several:
            shared.add(renamed[i])
    return graph.rewritten(nodes, [renamed[i] for i in graph.outputs])


@cache
def _telling(rules: tuple[RewriteRule, ...], registry: Registry) -> frozenset[str] | None:
    """Return the ops that an operand must be of for any of these rules to apply; None if one is to be tried always."""
    needs = [rule.needs for rule in rules]
    if None in needs:
        return None
    numbers = [op.name for op in registry.ops.values() if op.may_be_one_number]
    return frozenset(chain(*filter(None, needs), numbers if any(rule.needs_number for rule in rules) else ()))


def _rewritten(node: Node, operands: Sequence[Value], shared: set[int], *, is_output: bool) -> Value | None:
    for rule in node.op.rewrites:
        if (is_output and not rule.of_outputs) or (rule.alone is not None and operands[rule.alone].index in shared):
            continue
        shorter: Value | None = rule.find(node, operands)
        if shorter is not None and shorter.type == node.type:
            return shorter
    return None
