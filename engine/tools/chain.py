"""The chain rule, link by link: each value between `wrt` and `of` against what reads it, and nothing beyond.

A link is a value x and its readers y = c(x, …), whose cotangents ȳ are known. By the chain rule the cotangent of x is
the gradient of φ(x) = Σ ȳ·c(x, …). Differences of φ take one op where those of `of` take a network, and they lose
less: Δφ is the sum of the elements of ȳ·Δy, so that what rounds is ȳ·y, not all that `of` adds up. Where x̄ is that
gradient for every x from a node to `of`, the cotangent of `of` being 1, the node's gradient is right by induction: so
no link is left out, whichever op it is, and an integer among the readers must not change at all.

x̄ may be smaller than what it is the sum of: a bias before a norm has terms ȳ·Δy that add up to rounding. Both sides
are then held to the rounding of the terms, Σ |ȳ·Δy|, and no more is conceded: a rule that says 0 is wrong as soon as
there is more than that, however small.

Each element moves in proportion to itself, so that from nearby it does not cross 0. Where rounding is too much, the
known derivative says how far x must move; what is straight allows it. A 0 that is one still when all of `wrt` move,
as of a unit that is off, stays where it is: else two such units would tie in every pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from engine.graph.tensor_type import FLOAT64, HostArray
from engine.tools.differences import MOVES, Finding, compare, direction, paired
from engine.tools.links import Links, Reader
from engine.tools.point import Point

#: relative distances: tried first, and for what is curved, or beside a kink
_NEAR: Final = 1e-3
_OTHERS: Final = (1e-1, 1e-5, 1e-7)
#: this much of the tolerance is no error that is worth a second look
_NOTHING: Final = 1e-2
#: distances at which what is 0 here has to be 0, too
_OUTWARDS: Final = (-1e-1, 1e-1, 1.0, 2.0**10, 2.0**20, 2.0**40, 2.0**60)
#: how far all of `wrt` move together, to see what moves with them
_STIRRED: Final = 1e-6
#: rounding that is conceded to the terms of a gradient, and that values may have which are subtracted
_OF_TERMS: Final = 64 * float(np.finfo(FLOAT64).eps)
_OF_VALUES: Final = 4 * float(np.finfo(FLOAT64).eps)

#: the reason of a link that is no gradient: a kink, a jump, a wrong rule
_DISAGREES: Final = "disagrees"
_ZERO: Final = np.zeros(())

Arrays = Mapping[Any, HostArray]


class Measured(NamedTuple):
    """Change of φ at the moves; the mean over them of Σ |ȳ·Δy|; the largest Σ |ȳ·y|; and Σ |ȳ| · max |y|."""

    moved: HostArray
    terms: Any
    sizes: Any
    largest: Any


class Chain:
    """Links with the values and cotangents at one point; `gradients` are those of `wrt`, as they are certified."""

    def __init__(self, point: Point, links: Links, gradients: Sequence[HostArray]) -> None:
        self.point, self.links = point, links
        self._at_rest = {("offset", k): np.zeros_like(g) for k, g in enumerate(gradients)}
        self.values: Arrays = dict(zip(links.operands, point.run_plan(links.values, self._at_rest), strict=True))
        self.cotangents = dict(zip(links.pulled, point.run_plan(links.cotangents, self._at_rest), strict=True))
        self.cotangents.update(zip(links.by, gradients, strict=True))
        self._before = cache(lambda reader: self._read_results(reader, {}))

    @np.errstate(all="ignore")
    def findings(self, directions: int, tolerance: float) -> list[Finding]:
        """For each node of `wrt`, the errors on its way added up; the reason, where some link does not agree.

        It is roundoff where all of those might agree but for rounding. What fails when all of `wrt` move is looked
        at again for each: a kink does not matter to a node that moves nothing there.
        """
        every = range(len(self.links.by))
        stays = self._staying(every)
        single = {i: self._link(i, stays[i], directions, tolerance) for i in self.links.readers}
        found = self._along_the_way(single, every)
        for k in (k for k in every if found[k].error > tolerance):
            alone = self._staying([k])
            failed = [i for i in self.links.after(k) if i in single and single[i].reason]
            others = [i for i in failed if not np.array_equal(alone[i], stays[i])]
            again = {i: self._link(i, alone[i], directions, tolerance) for i in others}
            found |= self._along_the_way({**single, **again}, [k])
        return list(found.values())

    def _along_the_way(self, single: Mapping[int, Finding], asked: Iterable[int]) -> dict[int, Finding]:
        error = self.links.added_up({i: one.error for i, one in single.items()})
        disagree = self.links.added_up({i: float(one.reason == _DISAGREES) for i, one in single.items()})
        at = {k: self.links.by[k] for k in asked}
        failed = {k: _DISAGREES if disagree[i] else "roundoff" for k, i in at.items()}
        return {k: Finding(error[i], None if np.isfinite(error[i]) else failed[k]) for k, i in at.items()}

    def _staying(self, moving: Sequence[int]) -> dict[int, Any]:
        """Mask of the elements that are 0, or not finite, and still are when these of `wrt` have moved together."""
        rng = np.random.default_rng(20)
        moved = self._at_rest | {
            ("offset", k): _STIRRED * direction(rng, self.values[self.links.by[k]]) for k in moving
        }
        stays = {i: (x == 0) | ~np.isfinite(x) for i, x in self.values.items()}
        for sign in (1.0, -1.0):
            near = self.point.run_plan(self.links.values, {k: sign * v for k, v in moved.items()})
            for i, x in zip(self.links.operands, near, strict=True):
                stays[i] &= x == self.values[i]
        return stays | {self.links.by[k]: np.False_ for k in moving}

    def _link(self, i: int, stays: HostArray, directions: int, tolerance: float) -> Finding:
        """The largest error of a link along `directions`; the reason where one does not agree."""
        if not self.links.readers[i]:
            return Finding(np.inf, _DISAGREES) if np.any(self._cotangent(i)) else Finding(0.0)
        rng = np.random.default_rng([20, i])
        along = (np.where(stays, 0.0, direction(rng, self.values[i])) for _ in range(directions))
        worst = Finding(0.0)
        for v in along:
            worst = max(worst, self._compare(i, v, tolerance), key=lambda one: (one.reason == _DISAGREES, one.error))
            if worst.reason == _DISAGREES:
                break
        return worst

    def _compare(self, i: int, along: HostArray, tolerance: float) -> Finding:
        """The smallest error of the distances at which the link agrees, until one is next to none."""
        near, most = self._measure(i, along, _NEAR), float(np.sum(np.abs(paired(self._cotangent(i), along))))
        if near.largest and not near.terms and not most:
            return Finding(0.0) if self._is_flat(i, along) else Finding(np.inf, "roundoff")
        wanted = tolerance * most + _OF_TERMS * near.terms / _NEAR
        far = 4 * _OF_VALUES * near.sizes / wanted if near.sizes and wanted else _NEAR
        best = np.inf
        for distance in (_NEAR, far, *_OTHERS):
            measured = near if distance == _NEAR else self._measure(i, along, distance)
            noise, conceded = _OF_VALUES * measured.sizes / distance, _OF_TERMS * measured.terms / distance
            found = compare(measured.moved, self._cotangent(i), along, distance, noise, tolerance, conceded)
            best = min(best, found.error) if found.reason is None else best
            if best <= _NOTHING * tolerance:
                break
        if best <= tolerance:
            return Finding(best)
        drowned = compare(near.moved, self._cotangent(i), along, _NEAR, _OF_TERMS * near.largest / _NEAR, tolerance)
        return Finding(np.inf, "roundoff" if drowned == (0.0, "roundoff") else _DISAGREES)

    def _is_flat(self, i: int, along: HostArray) -> bool:
        """Whether φ stays the same from here outwards. Of x + 10²⁰ that is so nearby alone."""
        outwards = _outwards(self.values[i], along)
        return not any(
            np.any(self._change(j, y, before))
            for reader in self.links.readers[i]
            for distance in _OUTWARDS
            for j, y, before in self._moved(reader, {i: self.values[i] + distance * outwards})
        )

    def _measure(self, i: int, along: HostArray, distance: float) -> Measured:
        moved, terms, sizes, largest = np.zeros((4, len(MOVES)))
        for reader in self.links.readers[i]:
            for row, move in enumerate(MOVES):
                for j, y, before in self._moved(reader, {i: self.values[i] + move * distance * along}):
                    is_step = reader.is_step or y.dtype.kind not in "fc"
                    change = _jump(y, before) if is_step else self._change(j, y, before)
                    moved[row] += np.sum(change)
                    terms[row] += np.sum(np.abs(change))
                    if not is_step:
                        size = np.maximum(np.abs(y), np.abs(before))
                        sizes[row] += _finite_sum(self._cotangent(j) * size)
                        largest[row] += _finite_sum(self._cotangent(j) * np.max(size, initial=0.0))
        return Measured(moved, np.mean(terms), np.max(sizes), np.max(largest))

    def _cotangent(self, i: int) -> HostArray:
        return self.cotangents.get(i, _ZERO)

    def _moved(self, reader: Reader, operands: Arrays) -> Iterator[tuple[int, HostArray, HostArray]]:
        """The results of a reader: which nodes they are, as they are on these operands, and as they were."""
        return zip(reader.results, self._read_results(reader, operands), self._before(reader), strict=True)

    def _read_results(self, reader: Reader, moved: Arrays) -> list[HostArray]:
        operands: Arrays = {**self.values, **moved}
        return self.point.executor.run(reader.plan, operands, self.point.deadline)

    def _change(self, j: int, y: HostArray, before: HostArray) -> Any:
        """ȳ·Δy, which is 0 where nothing changes, −∞ and ∞ included; of what is no float, there is no ȳ."""
        if y.dtype.kind not in "fc":
            return np.zeros(y.shape)
        return np.where(y == before, 0.0, paired(self._cotangent(j), y - before))


def _outwards(x: HostArray, along: HostArray) -> HostArray:
    """Moves as far as `along`, away from 0; of complex numbers, each part."""
    if np.iscomplexobj(x):
        both: HostArray = _outwards(x.real, along.real) + 1j * _outwards(x.imag, along.imag)
        return both
    return np.where(x < 0, -np.abs(along), np.abs(along))


def _finite_sum(weighed: Any) -> float:
    """Σ |weighed| of what is finite."""
    return float(np.sum(np.abs(weighed), where=np.isfinite(weighed)))


def _jump(y: HostArray, before: HostArray) -> Any:
    """Infinity where a value without a derivative changes: the chain rule ends at a jump."""
    return np.where(y == before, 0.0, np.inf)
