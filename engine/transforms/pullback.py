"""One sweep of reverse mode over forms of nodes, as arrays: what is pulled back, how many nodes that writes, and which.

As `vjp` goes from node to node, this goes from array to array; what has to be done one after the other, since it
depends on what was before, is to mark what can be reached: some 0.1 µs for each operand. Everything else is NumPy's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from engine.transforms.forms import NO_CAST, Forms, Written
from engine.transforms.ragged import Flags, Int32s, Ragged, before, different, ints

#: operands that are looked at between two parts of an array that become Python's numbers
_PART: Final = 1 << 12

#: an output, and its cotangent
Seeds = Sequence[tuple[int, int]]


class Outlined(NamedTuple):
    """Nodes of these forms on these operands."""

    forms: Int32s
    operands: Ragged


class Places:
    """Places where cotangents arrive: a node, which is its first result, or behind all nodes, one of its others."""

    def __init__(self, nodes: Outlined, forms: Forms) -> None:
        self.results = ints(len(form.node.types) for form in forms.forms)[nodes.forms]
        further = before(self.results - 1)
        self.count = len(nodes.forms) + int(further[-1])
        self._further = further[:-1] + (len(nodes.forms) - 1)
        self._of_further = np.repeat(np.arange(len(nodes.forms), dtype=np.int32), self.results - 1)

    def of(self, nodes: Int32s, results: Int32s) -> Int32s:
        """Those of these results of nodes."""
        return np.where(results == 0, nodes, self._further[nodes] + results)

    def where(self, places: Int32s) -> tuple[Int32s, Int32s]:
        """The nodes whose they are, and the numbers of the results."""
        nodes, first = places.copy(), len(self.results)
        others = places >= first
        nodes[others] = self._of_further[places[others] - first]
        return nodes, np.where(others, places - self._further[nodes], 0)

    def of_node(self, node: int) -> list[int]:
        """Those of all results of a node."""
        further = int(self._further[node])
        return [node, *range(further + 1, further + int(self.results[node]))]


class Stencils:
    """Writings of rules, as arrays: each a list for every one of some numbers, where `at` says which is whose."""

    def __init__(self, written: Sequence[Written], numbers: Int32s) -> None:
        used = [written[number] for number in numbers]
        self.error = next((each.error for each in used if each.error is not None), None)
        self.at = np.zeros(len(written), np.int32)
        self.at[numbers] = np.arange(len(numbers), dtype=np.int32)
        self.forms = Ragged.of(each.forms for each in used)
        self.arities = ints(len(operands) for each in used for operands in each.operands)
        self.operands = Ragged.of([i for operands in each.operands for i in operands] for each in used)
        self.arrived = ints(each.arrived for each in used)
        given = [each.given for each in used]
        self.given = Ragged.of(range(len(each)) for each in given)
        flat = [one for each in given for one in each]
        self.to = ints(one.operand for one in flat)
        self.result = ints(one.result for one in flat)
        self.number = ints(one.number for one in flat)
        self.cast = ints(one.cast for one in flat)
        self.depends = np.array([one.way is not None for one in flat], np.bool_)
        self.ways = Ragged.of(one.way or () for one in flat)


class Gifts(NamedTuple):
    """The cotangents that rules give, from the last node on: by which (an index), what of a stencil's, and where to."""

    by: Int32s
    what: Int32s
    to: Int32s

    @classmethod
    def of(cls, nodes: Outlined, places: Places, pulled: Int32s, stencils: Stencils, which: Int32s) -> Gifts:
        """Those of the nodes `pulled`, whose rules write the stencils `which`."""
        what = stencils.given.places(which)
        by = np.repeat(np.arange(len(pulled), dtype=np.int32), stencils.given.lengths[which])
        operands = nodes.operands
        targets = operands.flat[operands.starts[pulled[by]] + stencils.to[what]]
        return cls(by, what, places.of(targets, stencils.result[what]))


class Downstream:
    """Nodes that depend differentiably on one of `wrt`, of the first ones: as many as have been looked at."""

    def __init__(self, wrt: Sequence[int]) -> None:
        self.wrt = tuple(wrt)
        self.reached = bytearray(max(wrt, default=-1) + 1)
        for index in wrt:
            self.reached[index] = 1
        self._looked_at = min(wrt, default=0)

    def look(self, operands: Ragged, passing: Flags) -> None:
        """Look at nodes up to those that it is told of whether derivatives pass through them."""
        first, self._looked_at = self._looked_at, max(self._looked_at, len(passing))
        self.reached.extend(bytes(max(0, len(passing) - len(self.reached))))
        more = first + np.flatnonzero(passing[first:]).astype(np.int32)
        flood(self.reached, operands.flat[operands.places(more)], np.repeat(more, operands.lengths[more]))


class Pullback:
    """Course of `vjp` for these seeds: nodes whose rules are asked, from the last one on, and what they write.

    `count` is how many nodes that is in all. Raises EngineError where a rule does.
    """

    def __init__(self, nodes: Outlined, forms: Forms, seeds: Seeds, dependence: Downstream) -> None:
        """The gradients are by what nodes are to depend on."""
        self._nodes, self._forms, self.seeds, self._downstream = nodes, forms, seeds, dependence
        self.places = Places(nodes, forms)
        self.arrived = bytearray(self.places.count)
        for output, _ in seeds:
            self.arrived[output] = 1
        self.pulled, written = self._pull(self._paths())
        self.stencils = Stencils(forms.written, different(written))
        if self.stencils.error is not None:
            raise self.stencils.error
        self.which = self.stencils.at[written]
        self.gifts = Gifts.of(nodes, self.places, self.pulled, self.stencils, self.which)

    @property
    def count(self) -> int:
        """Nodes of rules, casts, and sums where something has arrived before."""
        nodes = int(self.stencils.forms.lengths[self.which].sum())
        casts = int(np.count_nonzero(self.stencils.cast[self.gifts.what] != NO_CAST))
        return nodes + casts + len(self.seeds) + len(self.gifts.by) - self.arrived.count(1)

    def _paths(self) -> Int32s:
        """The nodes derivatives pass through that depend on one of `wrt`, from the last of the seeds backwards."""
        past = max((output for output, _ in self.seeds), default=-1) + 1
        passing = np.array([form.passes for form in self._forms.forms], np.bool_)[self._nodes.forms[:past]]
        self._downstream.look(self._nodes.operands, passing)
        return np.flatnonzero(passing & marked(self._downstream.reached)[:past]).astype(np.int32)[::-1]

    def _pull(self, paths: Int32s) -> tuple[Int32s, Int32s]:
        """Of the nodes on `paths`, those that a cotangent arrives at, and the numbers of what their rules write.

        What a rule of several results writes depends on which of these have arrived. All that can arrive there comes
        from later nodes: the marks are made up to each of these ops, and then it is asked.
        """
        single = self.places.results[paths] == 1
        singles, several = paths[single], paths[~single]
        written = self._written_of(singles)
        stencils = Stencils(self._forms.written, different(written))
        gifts = Gifts.of(self._nodes, self.places, singles, stencils, stencils.at[written])
        sources, done = singles[gifts.by], 0
        asked: list[tuple[int, int]] = []
        for index, until in zip(several.tolist(), np.searchsorted(-sources, -several).tolist(), strict=True):
            flood(self.arrived, sources[done:until], gifts.to[done:until])
            done = until
            asked += self._ask(index)
        flood(self.arrived, sources[done:], gifts.to[done:])
        here = marked(self.arrived)[singles]
        pulled = np.concatenate([singles[here], ints(index for index, _ in asked)])
        numbers = np.concatenate([written[here], ints(number for _, number in asked)])
        order = np.argsort(-pulled, kind="stable")
        return pulled[order], numbers[order]

    def _written_of(self, singles: Int32s) -> Int32s:
        """The numbers of what the rules of these nodes write, which have one result."""
        forms = self._nodes.forms[singles]
        numbers = np.zeros(len(self._forms.forms), np.int32)
        for form in different(forms).tolist():
            numbers[form] = self._forms.pull(form, (True,))
        return numbers[forms]

    def _ask(self, index: int) -> list[tuple[int, int]]:
        """A node of several results, if anything has arrived at it, and what it writes then; marks what that gives."""
        there = tuple([bool(self.arrived[place]) for place in self.places.of_node(index)])
        if not any(there):
            return []
        number = self._forms.pull(int(self._nodes.forms[index]), there)
        operands = self._nodes.operands
        for given in self._forms.written[number].given:
            target = int(operands.flat[operands.starts[index] + given.operand])
            self.arrived[self.places.of_node(target)[given.result]] = 1
        return [(index, number)]

    def mapped(self) -> int:
        """Elementwise nodes that depend on a seed, and that a gradient depends on: by rules of one result, all of them.

        A rule of several may pass over a cotangent that has arrived: what leads through it is not counted. None is
        counted where a rule gives what does not depend on what has arrived: attention's way back does, if but the
        cotangent of its last result has.
        """
        if not self.stencils.depends.all():
            return 0
        single = self.places.results[self.pulled[self.gifts.by]] == 1
        by, what, to = (each[single] for each in self.gifts)
        targets, leading = self.places.where(to)[0], bytearray(len(self._nodes.forms))
        for index in self._downstream.wrt:
            leading[index] = 1
        flood(leading, targets[::-1], self.pulled[by][::-1])
        leads = marked(leading)[targets]
        return self._elementwise(by[leads], what[leads])

    def _elementwise(self, by: Int32s, what: Int32s) -> int:
        """How many different elementwise nodes there are on the ways to these gifts."""
        starts = before(self.stencils.forms.lengths[self.which])
        on_a_way = np.zeros(int(starts[-1]), np.bool_)
        ways = self.stencils.ways
        on_a_way[np.repeat(starts[by], ways.lengths[what]) + ways.flat[ways.places(what)]] = True
        return int(np.count_nonzero(on_a_way))


def flood(marks: bytearray, sources: Int32s, targets: Int32s) -> None:
    """Mark each target whose source is marked: all of it that leads to a source stands before it."""
    for start in range(0, len(sources), _PART):
        part = slice(start, start + _PART)
        for source, target in zip(sources[part].tolist(), targets[part].tolist(), strict=True):
            if marks[source]:
                marks[target] = 1


def marked(marks: bytearray) -> Flags:
    """The marks, as they are until the next is made."""
    return np.frombuffer(marks, np.bool_)
