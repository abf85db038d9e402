"""The certificate: gradients against central differences, in float64, along random directions.

This is the only place where finite differences occur. First the chain rule is followed link by link (`Chain`), for all
nodes of `wrt` at once. A node for which some link does not agree, because of a kink, a path without derivative,
rounding or a wrong rule, is moved by itself, and the change of `of` decides (`Whole`).

A link is a value x and its readers y = c(x, …), whose cotangents ȳ are known. By the chain rule the cotangent of x is
the gradient of φ(x) = Σ ȳ·c(x, …). For y = x², z = sin(y), dz/dx: the links are x → x² with ȳ = cos(y), and y → sin(y)
with z̄ = 1; each is compared by itself. Differences of φ take one op where those of `of` take a network, and they lose
less: Δφ is the sum of the elements of ȳ·Δy, so that what rounds is ȳ·y, not all that `of` adds up. If x̄ is that
gradient for every x from a node to `of`, the cotangent of `of` being 1, the node's gradient is right by induction: so
no link is left out, whichever op it is, and an integer among the readers must not change at all.

x̄ may be smaller than its terms: a bias before a norm has terms ȳ·Δy that add up to rounding. Both sides are then held
to the rounding of the terms, Σ |ȳ·Δy|, and no more is conceded: a rule that says 0 is wrong as soon as there is more
than that, however small.

Each element moves in proportion to itself, so that from nearby it does not cross 0. If rounding is too much, the known
derivative says how far x must move; a straight function allows it. A 0 that is still 0 when all of `wrt` move, as of a
unit that is off, stays where it is: else two such units would tie in every pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from engine.analysis.cost import stops_between
from engine.analysis.differences import MOVES, Finding, Whole, compare, direction, paired
from engine.analysis.point import Point
from engine.autodiff.calls import Gradients
from engine.autodiff.vjp import vjp
from engine.compiler.body_plans import with_planned_bodies
from engine.compiler.compiler import CompileRequest, plan_within
from engine.compiler.plan import Plan, make_plan
from engine.ir.errors import OverBudget, TooManyNodes
from engine.ir.graph import Builder, Node, ancestors
from engine.ir.op import NoGradient
from engine.ir.passes import Allowance
from engine.ir.program import Program
from engine.ir.run_context import NO_DEADLINE, Deadline, Limits
from engine.ir.tensor_type import FLOAT64, HostArray, TensorType
from engine.runtime.interpreter import Executor

#: relative distances: the first one, and others for what is curved, or beside a kink
_NEAR: Final = 1e-3
_OTHERS: Final = (1e-1, 1e-5, 1e-7)
#: part of the tolerance below which an error is not worth a second look
_NOTHING: Final = 1e-2
#: distances at which a change that is 0 here has to be 0, too
_OUTWARDS: Final = (-1e-1, 1e-1, 1.0, 2.0**10, 2.0**20, 2.0**40, 2.0**60)
#: distance by which all of `wrt` move together, to see what moves with them
_STIRRED: Final = 1e-6
#: rounding that is conceded to the terms of a gradient, and to values that are subtracted
_OF_TERMS: Final = 64 * float(np.finfo(FLOAT64).eps)
_OF_VALUES: Final = 4 * float(np.finfo(FLOAT64).eps)

#: the reason of a link that is no gradient: a kink, a jump, a wrong rule
_DISAGREES: Final = "disagrees"
_DETAILS: Final = {
    "kink": "the slopes on the two sides of this point differ, from close by, too: there is a kink, or a tie",
    "not_finite": "the value or the gradient is NaN or infinite here or nearby",
    "roundoff": "this derivative is so small beside the values that it is between that differences drown in rounding",
}
_ZERO: Final = np.zeros(())

Arrays = Mapping[Any, HostArray]


@dataclass(frozen=True, eq=False)
class Reader:
    """One op in a plan of its own, fed its operands by their nodes; and the nodes of its results.

    If `is_step`, it carries no derivative, and must not change at all.
    """

    plan: Plan
    results: tuple[int, ...]
    is_step: bool


@dataclass(frozen=True)
class Links:
    """The graph of `of`, in which node k of `wrt`, at `by[k]`, is offset by the feed ("offset", k).

    `between` has all nodes that depend on `by`, these included, on the way to `end`, in ascending order. `readers` has
    the floats among them that are compared, and the readers of each. `values` is the plan of `operands`, all nodes that
    are read; `cotangents` is the plan of the cotangents of `pulled`.
    """

    nodes: Sequence[Node]
    end: int
    by: tuple[int, ...]
    between: Sequence[int]
    readers: Mapping[int, Sequence[Reader]]
    operands: tuple[int, ...]
    values: Plan
    pulled: tuple[int, ...]
    cotangents: Plan

    @property
    def peak_bytes(self) -> int:
        """Most bytes that are held at once, with all values and cotangents."""
        values, cotangents = (sum(self.nodes[i].type.nbytes for i in kept) for kept in (self.operands, self.pulled))
        single = max((reader.plan.peak_bytes for some in self.readers.values() for reader in some), default=0)
        return values + max(self.values.peak_bytes, self.cotangents.peak_bytes, cotangents + single)

    def after(self, k: int) -> list[int]:
        """List node k of `wrt`, and the nodes that depend on it on the way to the end, in ascending order."""
        return _between(self.nodes, self.between, [self.by[k]])

    def added_up(self, errors: Mapping[int, float]) -> dict[int, float]:
        """Add up `errors` from each of `between` to the end, along the path on which they are largest."""
        most = dict.fromkeys(self.between, 0.0)
        for i in reversed(self.between):
            most[i] += errors.get(i, 0.0)
            for j in self.nodes[i].operands:
                if j in most:
                    most[j] = max(most[j], most[i])
        return most


def find_links(point: Point, call: Gradients, *, peels: bool = False) -> Links:
    """Find the links of `call`; with `peels`, also those within the bodies that ops run. Raises EngineError."""
    builder = point.builder()
    peeled = point.peeled(builder) if peels else None
    moved = point.displaced(builder, call, call.wrt, lambda x, k: x + builder.leaf(x.type, ("offset", k)), peeled)
    # an `identity` reads `of`, so that the end is a reader, too
    end, by = moved[call.of].identity().index, [moved[node].index for node in call.wrt]
    nodes = tuple(builder.nodes)
    between = _between(nodes, ancestors([end], lambda i: nodes[i].operands), by)
    floats = [i for i in between if nodes[i].type.is_differentiable and not nodes[i].op.several and i != end]
    operands = sorted({j for i in between for j in nodes[i].operands if not nodes[j].op.several} | {*by})
    values = point.plan(builder, [builder.value(i) for i in operands])
    one = builder.value(end).full_like(1.0)
    gradients = vjp(builder, [(builder.value(end), one)], [builder.value(i) for i in (*floats, end)])
    pulled = {i: g for i, g in zip((*floats, end), gradients, strict=True) if g is not None}
    if peeled:
        pulled |= {x: pulled[y] for x, y in peeled.alike.items() if y in pulled}
    cotangents = point.plan(builder, list(pulled.values()))
    readers = _readers(builder, nodes, between, [i for i in floats if not peeled or i not in peeled.hidden])
    links = Links(nodes, end, tuple(by), between, readers, tuple(operands), values, tuple(pulled), cotangents)
    point.limits.admit_bytes(links.peak_bytes)
    return links


def _between(nodes: Sequence[Node], among: Iterable[int], by: Iterable[int]) -> list[int]:
    """List the nodes of `among` that depend on `by`, and these themselves, in ascending order."""
    reached = set(by)
    for i in among:
        if not reached.isdisjoint(nodes[i].operands):
            reached.add(i)
    return sorted(reached)


def _readers(
    builder: Builder, nodes: Sequence[Node], between: Sequence[int], floats: Iterable[int]
) -> dict[int, list[Reader]]:
    parts: dict[int, list[int]] = {}
    for i in between:
        if nodes[i].op.name == "get_output":
            parts.setdefault(nodes[i].operands[0], []).append(i)
    readers: dict[int, list[Reader]] = {i: [] for i in floats}
    for i in between:
        read = readers.keys() & nodes[i].operands
        if read:
            reader = _alone(builder, nodes, i, parts.get(i, [i]))
            for j in read:
                readers[j].append(reader)
    return readers


def _alone(builder: Builder, nodes: Sequence[Node], index: int, results: Sequence[int]) -> Reader:
    own = Builder(builder.registry, builder.limits, builder.deadline)
    operands = {i: own.leaf(nodes[i].type, i) for i in dict.fromkeys(nodes[index].operands)}
    made = own.copy(nodes[index], [operands[i] for i in nodes[index].operands])
    read = [own.copy(nodes[i], [made]) for i in results] if nodes[index].op.several else [made]
    graph = with_planned_bodies(own.graph(read), own.limits, Allowance(deadline=own.deadline))
    plan = make_plan(graph, own.limits, own.deadline)
    return Reader(plan, tuple(results), isinstance(nodes[index].op.vjp, NoGradient))


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
        """Add up the errors on the way of each node of `wrt`; with a reason, if some link does not agree.

        The reason is roundoff if all links might agree but for rounding. Links that fail when all of `wrt` move are
        compared again for each node: a kink does not matter to a node that moves nothing there.
        """
        every = range(len(self.links.by))
        stays = self._staying(every)
        single = {i: self._link(i, stays[i], directions, tolerance) for i in self.links.readers}
        findings = self._along_the_way(single, every)
        for k in (k for k in every if findings[k].error > tolerance):
            alone = self._staying([k])
            failed = [i for i in self.links.after(k) if i in single and single[i].reason]
            others = [i for i in failed if not np.array_equal(alone[i], stays[i])]
            again = {i: self._link(i, alone[i], directions, tolerance) for i in others}
            findings |= self._along_the_way({**single, **again}, [k])
        return list(findings.values())

    def _along_the_way(self, single: Mapping[int, Finding], asked: Iterable[int]) -> dict[int, Finding]:
        error = self.links.added_up({i: one.error for i, one in single.items()})
        disagree = self.links.added_up({i: float(one.reason == _DISAGREES) for i, one in single.items()})
        findings = {}
        for k in asked:
            i = self.links.by[k]
            reason = None if np.isfinite(error[i]) else _DISAGREES if disagree[i] else "roundoff"
            findings[k] = Finding(error[i], reason)
        return findings

    def _staying(self, moving: Sequence[int]) -> dict[int, Any]:
        """Mask the elements that are 0, or not finite, and still are when these of `wrt` have moved together."""
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
        """Find the largest error of a link along `directions`; with a reason, if one does not agree."""
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
        """Find the smallest error of the distances at which the link agrees, until one is next to none."""
        near, most = self._measure(i, along, _NEAR), float(np.sum(np.abs(paired(self._cotangent(i), along))))
        if near.largest and not near.terms and not most:
            return Finding(0.0) if self._is_flat(i, along) else Finding(np.inf, "roundoff")
        allowed = tolerance * most + _OF_TERMS * near.terms / _NEAR
        far = 4 * _OF_VALUES * near.sizes / allowed if near.sizes and allowed else _NEAR
        best = np.inf
        for distance in (_NEAR, far, *_OTHERS):
            measured = near if distance == _NEAR else self._measure(i, along, distance)
            noise, conceded = _OF_VALUES * measured.sizes / distance, _OF_TERMS * measured.terms / distance
            finding = compare(measured.moved, self._cotangent(i), along, distance, noise, tolerance, conceded)
            best = min(best, finding.error) if finding.reason is None else best
            if best <= _NOTHING * tolerance:
                break
        if best <= tolerance:
            return Finding(best)
        drowned = compare(near.moved, self._cotangent(i), along, _NEAR, _OF_TERMS * near.largest / _NEAR, tolerance)
        return Finding(np.inf, "roundoff" if drowned == (0.0, "roundoff") else _DISAGREES)

    def _is_flat(self, i: int, along: HostArray) -> bool:
        """Whether φ stays the same far outwards, too. That of x + 10²⁰ stays the same only nearby."""
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
                    # The chain rule ends at a jump: a change of a value without derivative counts as infinite.
                    change = np.where(y == before, 0.0, np.inf) if is_step else self._change(j, y, before)
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
        """Run a reader: the nodes of its results, their values on these operands, and their values before."""
        return zip(reader.results, self._read_results(reader, operands), self._before(reader), strict=True)

    def _read_results(self, reader: Reader, moved: Arrays) -> list[HostArray]:
        operands: Arrays = {**self.values, **moved}
        return self.point.executor.run(reader.plan, operands, self.point.deadline)

    def _change(self, j: int, y: HostArray, before: HostArray) -> Any:
        """Compute ȳ·Δy, which is 0 where nothing changes, −∞ and ∞ included; integers have no ȳ."""
        if y.dtype.kind not in "fc":
            return np.zeros(y.shape)
        return np.where(y == before, 0.0, paired(self._cotangent(j), y - before))


def _outwards(x: HostArray, along: HostArray) -> HostArray:
    """Point moves as far as `along` away from 0; of complex numbers, each part."""
    if np.iscomplexobj(x):
        both: HostArray = _outwards(x.real, along.real) + 1j * _outwards(x.imag, along.imag)
        return both
    return np.where(x < 0, -np.abs(along), np.abs(along))


def _finite_sum(weighed: Any) -> float:
    return float(np.sum(np.abs(weighed), where=np.isfinite(weighed)))


class Uncertified(NamedTuple):
    """A node whose gradient could not be compared.

    `reason` is kink, integer_path, stop_gradient, not_finite or roundoff.
    """

    node: int
    reason: str
    detail: str


@dataclass(frozen=True)
class Certificate:
    """The largest relative error of each node of `wrt` that was compared, and the nodes that could not be."""

    errors: tuple[tuple[int, float], ...]
    uncertified: tuple[Uncertified, ...]
    tolerance: float
    peak_bytes: int
    recomputed_flops: int

    @property
    def passed(self) -> bool:
        """Whether every node was compared, and is within the tolerance."""
        return not self.uncertified and all(error <= self.tolerance for _, error in self.errors)


def certify(
    executor: Executor,
    program: Program,
    feeds: Mapping[int, HostArray],
    call: Gradients,
    directions: int,
    tolerance: float,
    limits: Limits,
    deadline: Deadline = NO_DEADLINE,
    memory: int | None = None,
) -> Certificate:
    """Compare the gradients of `call` for each node along `directions`, in at most `memory` bytes at a time.

    Raises EngineError.
    """
    limits = limits.within(memory)
    roots = (call.of, *call.wrt)
    used = program.used({node: TensorType.of(a) for node, a in feeds.items()}, roots, deadline)
    program.build(used, roots, deadline)
    point = Point.widened(executor, program, {node: feeds[node] for node in used}, limits, deadline)
    asked = Gradients(roots, call.of, call.wrt)
    threads = point.executor.loop_threads
    _, exact, _ = plan_within(CompileRequest(point.program, point.types, asked, limits, deadline, threads, memory))
    value, *rest = point.run_plan(exact)
    at, gradients = rest[: len(call.wrt)], rest[len(call.wrt) :]
    found, linked = _by_links(point, call, gradients, directions, tolerance)
    if any(one.error > tolerance for one in found) and program.functions:
        by_steps, more = _by_links(point, call, gradients, directions, tolerance, peels=True)
        found = [steps if steps.error <= tolerance else one for one, steps in zip(found, by_steps, strict=True)]
        linked = max(linked, more)
    left = [k for k, one in enumerate(found) if one.error > tolerance]
    settled = {k: [one] for k, one in enumerate(found) if k not in left}
    moved = 0
    if left:
        whole = Whole(point, call, [call.wrt[k] for k in left], value, [at[k] for k in left])
        moved = whole.peak_bytes
        alone = whole.findings([gradients[k] for k in left], directions, tolerance)
        for k, seen in zip(left, alone, strict=True):
            drowns = found[k].reason == "roundoff"  # every link might agree but for rounding, so no error is one
            settled[k] = [
                Finding(one.error, one.reason or "roundoff") if drowns and one.error > tolerance else one
                for one in seen
            ]
    peak = max(exact.peak_bytes, linked, moved)
    errors, open_ = _verdicts(point, call, settled, tolerance)
    return Certificate(errors, open_, tolerance, peak, exact.recomputed_flops)


def _by_links(
    point: Point,
    call: Gradients,
    gradients: Sequence[HostArray],
    directions: int,
    tolerance: float,
    *,
    peels: bool = False,
) -> tuple[list[Finding], int]:
    """Find the errors of links for each node, and the bytes that they took.

    All errors are infinite if values and cotangents do not fit memory.
    """
    try:
        links = find_links(point, call, peels=peels)
    except (OverBudget, TooManyNodes):
        return [Finding(np.inf)] * len(call.wrt), 0
    return Chain(point, links, gradients).findings(directions, tolerance), links.peak_bytes


def _verdicts(
    point: Point, call: Gradients, found: Mapping[int, Sequence[Finding]], tolerance: float
) -> tuple[tuple[tuple[int, float], ...], tuple[Uncertified, ...]]:
    """List the error of each node that was compared, and the nodes that could not be."""
    _, values = point.program.build(point.types, (call.of, *call.wrt), point.deadline)
    errors, open_ = [], []
    for k, node in enumerate(call.wrt):
        worst = max(finding.error for finding in found[k])
        reason = next((finding.reason for finding in found[k] if finding.reason), None)
        suspect = (reason == "kink" or worst > tolerance) and reason != "not_finite"
        silent = stops_between(point.program, values, (node,), (call.of,)) if suspect else ()
        if silent:
            open_.append(_silenced(point.program, node, call.of, silent))
        elif reason:
            open_.append(Uncertified(node, reason, _DETAILS[reason]))
        else:
            errors.append((node, float(worst)))
    return tuple(errors), tuple(open_)


def _silenced(program: Program, node: int, of: int, silent: Sequence[int]) -> Uncertified:
    """Explain that a node on the way carries no derivative."""
    names = {program.statements[i].op.name for i in silent}
    reason = "stop_gradient" if names == {"stop_gradient"} else "integer_path"
    listed = ", ".join(f"node {i} ({program.statements[i].op.name})" for i in silent[:3])
    within = any(program.statements[i].op.functions for i in silent)
    carry = "in which something carries" if within else f"which {'carries' if len(silent) == 1 else 'carry'}"
    return Uncertified(node, reason, f"its value also reaches node {of} through {listed}, {carry} no derivative")
