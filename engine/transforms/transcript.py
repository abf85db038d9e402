"""Transcript of one sweep of reverse mode, node by node, in the order of `vjp`: laid out as arrays.

For each node that is pulled back: what its rule writes; then for each cotangent that it gives, the cast, and the sum
with what has arrived there before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.transforms.forms import NO_CAST, Forms
from engine.transforms.pullback import Outlined, Pullback, marked
from engine.transforms.ragged import Flags, Int32s, Ragged, before, different, ints, spans


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Cotangents as they arrive, the seeds first: where to, whether they are cast and added, and by place the last."""

    to: Int32s
    is_cast: Flags
    is_added: Flags
    last: Int32s

    @classmethod
    def of(cls, sweep: Pullback) -> Arrivals:
        """All of a sweep's."""
        to = np.concatenate([ints(output for output, _ in sweep.seeds), sweep.gifts.to])
        casts = sweep.stencils.cast[sweep.gifts.what] != NO_CAST
        order = np.arange(len(to), dtype=np.int32)
        first, last = np.zeros(sweep.places.count, np.int32), np.zeros(sweep.places.count, np.int32)
        last[to] = order  # of several, the last one stays
        first[to[::-1]] = order[::-1]
        return cls(to, np.concatenate([np.zeros(len(sweep.seeds), np.bool_), casts]), first[to] != order, last)

    def previous(self) -> Int32s:
        """For each that is added, the one that came to the same place before it."""
        shared = np.zeros(len(self.last), np.bool_)
        shared[self.to[self.is_added]] = True
        some = np.flatnonzero(shared[self.to])
        order = some[np.argsort(self.to[some], kind="stable")]
        found = np.zeros(len(self.to), np.int32)
        found[order[1:]] = order[:-1]
        return found[self.is_added]


class Transcript:
    """The nodes that a sweep appends to `nodes`, and where its cotangents are."""

    def __init__(self, nodes: Outlined, forms: Forms, sweep: Pullback) -> None:
        self._nodes, self._forms, self._sweep = nodes, forms, sweep
        self._arrivals = Arrivals.of(sweep)
        self._written = sweep.stencils.forms.lengths[sweep.which]
        self._starts, self._extras = self._positions()
        self._values = self._known_values()
        #: by place, the number of the cotangent once all has arrived there
        self._cotangents = np.zeros(sweep.places.count, np.int32)
        self._settle()

    def cotangents(self, nodes: Sequence[int]) -> list[int | None]:
        """Those of the (first) results of some nodes, where there are any."""
        return [int(self._cotangents[index]) if self._sweep.arrived[index] else None for index in nodes]

    def appended(self) -> Outlined:
        """The nodes."""
        stencils, which, arrivals = self._sweep.stencils, self._sweep.which, self._arrivals
        first = len(self._nodes.forms)
        of_rules = spans(self._starts, self._written) - first
        of_casts = self._extras[arrivals.is_cast] - first
        of_sums = (self._extras + arrivals.is_cast)[arrivals.is_added] - first
        forms = np.zeros(self._sweep.count, np.int32)
        arities = np.ones(len(forms), np.int32)
        said = stencils.forms.places(which)
        forms[of_rules], arities[of_rules] = stencils.forms.flat[said], stencils.arities[said]
        forms[of_casts] = stencils.cast[self._sweep.gifts.what[arrivals.is_cast[len(self._sweep.seeds) :]]]
        forms[of_sums], arities[of_sums] = self._sums(), 2
        starts = before(arities)
        return Outlined(forms, Ragged(self._operands(starts, self._starts - first, of_casts, of_sums), starts))

    def _positions(self) -> tuple[Int32s, Int32s]:
        """Where what each rule writes begins, and the cast and sum of each arrival."""
        sweep, count, seeded = self._sweep, len(self._nodes.forms), len(self._sweep.seeds)
        extras = before(self._arrivals.is_cast.astype(np.int32) + self._arrivals.is_added)
        written = before(self._written)
        given = before(sweep.stencils.given.lengths[sweep.which])[:-1]
        positions = count + extras[:-1]
        positions[seeded:] += written[1:][sweep.gifts.by]
        return count + written[:-1] + extras[given + seeded], positions

    def _known_values(self) -> Ragged:
        """For each node pulled back, what its rule's numbers stand for; for cotangents, as yet nothing."""
        sweep, operands = self._sweep, self._nodes.operands
        arrived, reads = sweep.stencils.arrived[sweep.which], operands.lengths[sweep.pulled]
        starts = before(arrived + 1 + reads + self._written)
        flat = np.zeros(int(starts[-1]), np.int32)
        at = starts[:-1] + arrived
        flat[at] = sweep.pulled
        flat[spans(at + 1, reads)] = operands.flat[operands.places(sweep.pulled)]
        flat[spans(at + 1 + reads, self._written)] = spans(self._starts, self._written)
        return Ragged(flat, starts)

    def _settle(self) -> None:
        """Find out which node each cotangent is, and put that into the values.

        A rule may hand on what has arrived, as that of a sum does: such a cotangent is that of another place, which
        may again be that of another. Following all of these at once takes as many steps as the longest way has bits.
        """
        sweep, arrivals = self._sweep, self._arrivals
        fed = self._fed()
        arrived = np.flatnonzero(marked(sweep.arrived))
        last = arrivals.last[arrived]
        self._cotangents[arrived] = self._results(self._received())[last]
        same = np.arange(sweep.places.count, dtype=np.int32)
        handed = self._handed_on(fed)
        alias = handed[last] >= 0
        same[arrived[alias]] = handed[last[alias]]
        while not np.array_equal(further := same[same], same):
            same = further
        self._cotangents = self._cotangents[same]
        values = self._values
        values.flat[spans(values.starts[:-1], fed.lengths)] = self._cotangents[fed.flat]

    def _fed(self) -> Ragged:
        """For each node pulled back, the places whose cotangents its rule reads."""
        sweep = self._sweep
        lengths = sweep.stencils.arrived[sweep.which]
        flat, starts = np.repeat(sweep.pulled, lengths), before(lengths)
        for k in np.flatnonzero(sweep.places.results[sweep.pulled] > 1).tolist():
            places = sweep.places.of_node(int(sweep.pulled[k]))
            flat[starts[k] : starts[k + 1]] = [place for place in places if sweep.arrived[place]]
        return Ragged(flat, starts)

    def _handed_on(self, fed: Ragged) -> Int32s:
        """For each arrival, the place whose cotangent it is as it stands, neither cast nor added; else -1."""
        sweep, arrivals, seeded = self._sweep, self._arrivals, len(self._sweep.seeds)
        by, what, _ = sweep.gifts
        number = sweep.stencils.number[what]
        plain = ~(arrivals.is_cast | arrivals.is_added)[seeded:] & (number < fed.lengths[by])
        found = np.full(len(arrivals.to), -1, np.int32)
        found[seeded:][plain] = fed.flat[fed.starts[by[plain]] + number[plain]]
        return found

    def _received(self) -> Int32s:
        """For each arrival, the node that arrives, before it is cast."""
        by, what, _ = self._sweep.gifts
        seeds = ints(g for _, g in self._sweep.seeds)
        return np.concatenate([seeds, self._values.flat[self._values.starts[by] + self._sweep.stencils.number[what]]])

    def _added(self, received: Int32s) -> Int32s:
        """For each arrival, what is added, or stays as it is."""
        return np.where(self._arrivals.is_cast, self._extras, received)

    def _results(self, received: Int32s) -> Int32s:
        """For each arrival, what is there once it has arrived."""
        arrivals = self._arrivals
        return np.where(arrivals.is_added, self._extras + arrivals.is_cast, self._added(received))

    def _sums(self) -> Int32s:
        """The forms of all sums."""
        nodes, results = self._sweep.places.where(self._arrivals.to[self._arrivals.is_added])
        most = int(results.max(initial=0)) + 1
        pairs = self._nodes.forms[nodes] * most + results
        found = different(pairs)
        table = np.zeros(int(found.max(initial=-1)) + 1, np.int32)
        table[found] = [self._forms.sum(*divmod(pair, most)) for pair in found.tolist()]
        forms: Int32s = table[pairs]
        return forms

    def _operands(self, starts: Int32s, rules: Int32s, casts: Int32s, sums: Int32s) -> Int32s:
        """What all appended nodes read; theirs begin at `starts`, and these nodes are the first of each kind."""
        sweep, values, received = self._sweep, self._values, self._received()
        read = sweep.stencils.operands
        lengths = read.lengths[sweep.which]
        flat = np.zeros(int(starts[-1]), np.int32)
        numbers = read.flat[read.places(sweep.which)]
        flat[spans(starts[rules], lengths)] = values.flat[np.repeat(values.starts[:-1], lengths) + numbers]
        flat[starts[casts]] = received[self._arrivals.is_cast]
        flat[starts[sums]] = self._results(received)[self._arrivals.previous()]
        flat[starts[sums] + 1] = self._added(received)[self._arrivals.is_added]
        return flat
