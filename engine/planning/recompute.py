"""Recomputation: what one kernel computes again rather than read from another, since memory costs more than arithmetic.

The way back through a chain of elementwise nodes reads values of the way there. Where these can be computed from what
is in memory anyway, or from fewer bytes, they are neither written nor kept in between. What stands at one value a row
is always read: it costs next to nothing; and so is what a kernel reads as that, though elsewhere it is elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from engine.loops.program import Level
from engine.oplib.elementwise import Elementwise
from engine.planning.groups import Group, Grouping

#: FLOPs for one element that a kernel may spend on what another has computed
MOST_COST: Final = 100
#: bytes that it may read instead of one that is then not written either: as many as a value a column beside them
MOST_READ: Final = 1.125


class _Chain(NamedTuple):
    """Nodes that are computed again, and the elements that this takes from memory."""

    nodes: set[int]
    inputs: set[int]


def with_recomputed(grouping: Grouping, groups: Sequence[Group]) -> list[Group]:
    """The groups, each with the nodes of others that its kernel computes again."""
    return _Recomputing(grouping, groups).groups


class _Recomputing:
    def __init__(self, grouping: Grouping, groups: Sequence[Group]) -> None:
        self._nodes = grouping.graph.nodes
        self._grouping = grouping
        #: what is written to memory in any case
        self._stored = set(grouping.graph.outputs)
        grouped = {i for group in groups for i in group.nodes}
        for i, node in enumerate(self._nodes):
            if i not in grouped:
                self._stored.update(node.operands)
        ordered = sorted(groups, key=lambda group: grouping.stages[group.nodes[0]])
        self.groups = [self._extended(group) for group in ordered]

    def _extended(self, group: Group) -> Group:
        """The group with all chains together, or else with each that pays by itself."""
        inside = set(group.nodes)
        reads = [(o, i) for i in group.nodes for o in self._nodes[i].operands if o not in inside]
        read = {o for o, _ in reads}
        wanted = {o for o in read if self._is_optional(o)}
        # Computed in this kernel, they would be along its columns.
        at_rows = {o for o, i in reads if self._grouping.lacks_axes(o, i)}
        again: set[int] = set()
        for values in (wanted - at_rows, *({o} for o in sorted(wanted - at_rows))):
            chain = self._chain(values, inside | at_rows)
            if values and not values <= again and self._pays(chain, values, read):
                again |= chain.nodes
        self._stored.update(wanted - again)
        return group._replace(again=tuple(sorted(again)))

    def _is_optional(self, i: int) -> bool:
        return self._grouping.is_element(i) and i not in self._stored

    def _chain(self, values: Iterable[int], inside: set[int]) -> _Chain:
        chain, todo = _Chain(set(), set()), list(values)
        while todo:
            i = todo.pop()
            if i in chain.nodes or i in inside:
                continue
            if self._is_optional(i):
                chain.nodes.add(i)
                todo.extend(self._nodes[i].operands)
            elif (member := self._grouping.members[i]) is None or member.level == Level.ELEMENT:
                chain.inputs.add(i)
        return chain

    def _pays(self, chain: _Chain, values: Iterable[int], read: set[int]) -> bool:
        ops = [self._nodes[i].op for i in chain.nodes]
        cost = sum(op.cost for op in ops if isinstance(op, Elementwise))
        return cost <= MOST_COST and self._nbytes(chain.inputs - read) <= MOST_READ * self._nbytes(values)

    def _nbytes(self, nodes: Iterable[int]) -> int:
        return sum(self._nodes[i].type.nbytes for i in nodes)
