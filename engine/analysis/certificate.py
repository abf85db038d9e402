"""The certificate: gradients against central differences, in float64, along random directions.

This is the only place that uses finite differences. First, the chain rule is checked link by link (`Chain`), for all
nodes of `wrt` at once. If some link of a node does not agree, because of a kink, a path without derivative, rounding or
a wrong rule, that node is moved by itself, and the change of `of` decides (`Whole`).

A link is a value x and its readers y = c(x, …), whose cotangents ȳ are known. By the chain rule, the cotangent of x is
the gradient of φ(x) = Σ ȳ·c(x, …). For y = x², z = sin(y), dz/dx, the links are x → x² with ȳ = cos(y), and y → sin(y)
with z̄ = 1; each is compared separately. A difference of φ runs one op, where a difference of `of` runs the network. It
is also more accurate: Δφ is the sum of the elements of ȳ·Δy, so the rounding error is that of ȳ·y, and not that of the
whole sum `of`. If x̄ is this gradient for every x between a node and `of`, and the cotangent of `of` is 1, then the
node's gradient is right by induction. So no link is skipped, for any op, and an integer reader must not change at all.

x̄ may be smaller than its terms: a bias before a norm has terms ȳ·Δy that cancel up to rounding. Then both sides are
compared within the rounding of the terms, Σ |ȳ·Δy|, and no more: a rule that returns 0 is wrong as soon as the
difference exceeds that, however small it is.

Each element moves in proportion to its size, so that small moves do not cross 0. If rounding is too large, the known
derivative determines how far x must move, which a straight function allows. A 0 that stays 0 when all of `wrt` move, as
the output of a unit that is off, is not moved: otherwise two such units would tie in every pooling window.
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

#: relative distances: the first one, and others for functions that are curved or have a kink nearby
_DISTANCE: Final = 1e-3
_OTHER_DISTANCES: Final = (1e-1, 1e-5, 1e-7)
#: fraction of the tolerance below which no other distance is tried
_NEGLIGIBLE: Final = 1e-2
#: distances at which a change that is 0 nearby must be 0, too
_OUTWARDS: Final = (-1e-1, 1e-1, 1.0, 2.0**10, 2.0**20, 2.0**40, 2.0**60)
#: relative distance by which all of `wrt` move together, to find the elements that do not move
_PERTURBATION: Final = 1e-6
#: rounding allowance for the terms of a gradient, and for values that are subtracted
_TERM_ROUNDING: Final = 64 * float(np.finfo(FLOAT64).eps)
_VALUE_ROUNDING: Final = 4 * float(np.finfo(FLOAT64).eps)

#: reason of a link that does not agree: a kink, a jump or a wrong rule
_DISAGREES: Final = "disagrees"
_DETAILS: Final = {
    "kink": "the slopes on the two sides of this point differ, even close to it: there is a kink or a tie",
    "not_finite": "the value or the gradient is NaN or infinite here or nearby",
    "roundoff": "this derivative is so small compared with the values that rounding errors dominate the differences",
}
_ZERO: Final = np.zeros(())

Arrays = Mapping[Any, HostArray]


@dataclass(frozen=True, eq=False)
class Reader:
    """A single op in a plan of its own, with operands fed by node number, and the nodes of its results.

    If `is_step`, it has no derivative, and its results must not change at all.
    """

    plan: Plan
    results: tuple[int, ...]
    is_step: bool


@dataclass(frozen=True)
class Links:
    """The graph of `of`, in which node k of `wrt` is at `sources[k]`, offset by the feed ("offset", k).

    `between` lists the nodes that depend on `sources`, these included, on the way to `end`, in ascending order.
    `readers` maps the floats among them that are compared to their readers. `values` is the plan of `operands`, all
    nodes that are read; `cotangents` is the plan of the cotangents of `pulled`.
    """

    nodes: Sequence[Node]
    end: int
    sources: tuple[int, ...]
    between: Sequence[int]
    readers: Mapping[int, Sequence[Reader]]
    operands: tuple[int, ...]
    values: Plan
    pulled: tuple[int, ...]
    cotangents: Plan

    @property
    def peak_bytes(self) -> int:
        """Maximum number of bytes held at once, with all values and cotangents."""
        values, cotangents = (sum(self.nodes[i].type.nbytes for i in nodes) for nodes in (self.operands, self.pulled))
        reader_peak = max(
            (reader.plan.peak_bytes for readers in self.readers.values() for reader in readers), default=0
        )
        return values + max(self.values.peak_bytes, self.cotangents.peak_bytes, cotangents + reader_peak)

    def after(self, k: int) -> list[int]:
        """Return node k of `wrt` and the nodes that depend on it on the way to the end, in ascending order."""
        return _dependents(self.nodes, self.between, [self.sources[k]])

    def accumulated(self, errors: Mapping[int, float]) -> dict[int, float]:
        """Add up `errors` from each of `between` to the end, along the path on which they are largest."""
        largest = dict.fromkeys(self.between, 0.0)
        for i in reversed(self.between):
            largest[i] += errors.get(i, 0.0)
            for j in self.nodes[i].operands:
                if j in largest:
                    largest[j] = max(largest[j], largest[i])
        return largest


def find_links(point: Point, call: Gradients, *, peels: bool = False) -> Links:
    """Return the links of `call`; with `peels`, also those within the bodies that ops run. Raises EngineError."""
    builder = point.builder()
    peeled = point.peeled(builder) if peels else None
    moved = point.displaced(builder, call, call.wrt, lambda x, k: x + builder.leaf(x.type, ("offset", k)), peeled)
    # An `identity` reads `of`, so that `of` has a reader and is checked like other values.
    end, sources = moved[call.of].identity().index, [moved[node].index for node in call.wrt]
    nodes = tuple(builder.nodes)
    between = _dependents(nodes, ancestors([end], lambda i: nodes[i].operands), sources)
    floats = [i for i in between if nodes[i].type.is_differentiable and not nodes[i].op.several and i != end]
    operands = sorted({j for i in between for j in nodes[i].operands if not nodes[j].op.several} | {*sources})
    values = point.plan(builder, [builder.value(i) for i in operands])
    seed = builder.value(end).full_like(1.0)
    gradients = vjp(builder, [(builder.value(end), seed)], [builder.value(i) for i in (*floats, end)])
    pulled = {i: g for i, g in zip((*floats, end), gradients, strict=True) if g is not None}
    if peeled:
        pulled |= {x: pulled[y] for x, y in peeled.same_value.items() if y in pulled}
    cotangents = point.plan(builder, list(pulled.values()))
    readers = _readers(builder, nodes, between, [i for i in floats if not peeled or i not in peeled.hidden])
    links = Links(nodes, end, tuple(sources), between, readers, tuple(operands), values, tuple(pulled), cotangents)
    point.limits.admit_bytes(links.peak_bytes)
    return links


def _dependents(nodes: Sequence[Node], candidates: Iterable[int], sources: Iterable[int]) -> list[int]:
    """Return the nodes of `candidates` that depend on `sources`, and these themselves, in ascending order."""
    reached = set(sources)
    for i in candidates:
        if not reached.isdisjoint(nodes[i].operands):
            reached.add(i)
    return sorted(reached)


def _readers(
    builder: Builder, nodes: Sequence[Node], between: Sequence[int], floats: Iterable[int]
) -> dict[int, list[Reader]]:
    projections: dict[int, list[int]] = {}
    for i in between:
        if nodes[i].op.name == "get_output":
            projections.setdefault(nodes[i].operands[0], []).append(i)
    readers: dict[int, list[Reader]] = {i: [] for i in floats}
    for i in between:
        read = readers.keys() & nodes[i].operands
        if read:
            reader = _single_op(builder, nodes, i, projections.get(i, [i]))
            for j in read:
                readers[j].append(reader)
    return readers


def _single_op(builder: Builder, nodes: Sequence[Node], index: int, results: Sequence[int]) -> Reader:
    op_builder = Builder(builder.registry, builder.limits, builder.deadline)
    operands = {i: op_builder.leaf(nodes[i].type, i) for i in dict.fromkeys(nodes[index].operands)}
    copied = op_builder.copy(nodes[index], [operands[i] for i in nodes[index].operands])
    results_read = [op_builder.copy(nodes[i], [copied]) for i in results] if nodes[index].op.several else [copied]
    graph = with_planned_bodies(
        op_builder.graph(results_read), op_builder.limits, Allowance(deadline=op_builder.deadline)
    )
    plan = make_plan(graph, op_builder.limits, op_builder.deadline)
    return Reader(plan, tuple(results), isinstance(nodes[index].op.vjp, NoGradient))


class Measured(NamedTuple):
    """Change of φ at the moves; the mean over them of Σ |ȳ·Δy|; the largest Σ |ȳ·y|; the largest Σ |ȳ| · max |y|."""

    moved: HostArray
    terms: Any
    sizes: Any
    largest: Any


class Chain:
    """Links with the values and cotangents at one point. `gradients` are those of `wrt`, which are to be certified."""

    def __init__(self, point: Point, links: Links, gradients: Sequence[HostArray]) -> None:
        self.point, self.links = point, links
        self._no_offsets = {("offset", k): np.zeros_like(g) for k, g in enumerate(gradients)}
        self.values: Arrays = dict(zip(links.operands, point.run_plan(links.values, self._no_offsets), strict=True))
        self.cotangents = dict(zip(links.pulled, point.run_plan(links.cotangents, self._no_offsets), strict=True))
        self.cotangents.update(zip(links.sources, gradients, strict=True))
        self._original = cache(lambda reader: self._read_results(reader, {}))

    @np.errstate(all="ignore")
    def findings(self, directions: int, tolerance: float) -> list[Finding]:
        """Return the accumulated error of each node of `wrt`; with a reason, if some link does not agree.

        The reason is roundoff if all links might agree but for rounding. Links that fail while all of `wrt` move are
        compared again for each node, since a kink does not matter to a node that moves nothing there.
        """
        targets = range(len(self.links.sources))
        fixed = self._fixed_elements(targets)
        by_link = {i: self._link(i, fixed[i], directions, tolerance) for i in self.links.readers}
        findings = self._accumulate(by_link, targets)
        for k in (k for k in targets if findings[k].error > tolerance):
            fixed_alone = self._fixed_elements([k])
            failed = [i for i in self.links.after(k) if i in by_link and by_link[i].reason]
            changed = [i for i in failed if not np.array_equal(fixed_alone[i], fixed[i])]
            repeated = {i: self._link(i, fixed_alone[i], directions, tolerance) for i in changed}
            findings |= self._accumulate({**by_link, **repeated}, [k])
        return list(findings.values())

    def _accumulate(self, by_link: Mapping[int, Finding], targets: Iterable[int]) -> dict[int, Finding]:
        error = self.links.accumulated({i: finding.error for i, finding in by_link.items()})
        disagree = self.links.accumulated({i: float(finding.reason == _DISAGREES) for i, finding in by_link.items()})
        findings = {}
        for k in targets:
            i = self.links.sources[k]
            reason = None if np.isfinite(error[i]) else _DISAGREES if disagree[i] else "roundoff"
            findings[k] = Finding(error[i], reason)
        return findings

    def _fixed_elements(self, moving: Sequence[int]) -> dict[int, Any]:
        """Mask the elements that are 0 or not finite, and do not change when all nodes `moving` move together."""
        rng = np.random.default_rng(20)
        moved = self._no_offsets | {
            ("offset", k): _PERTURBATION * direction(rng, self.values[self.links.sources[k]]) for k in moving
        }
        fixed = {i: (x == 0) | ~np.isfinite(x) for i, x in self.values.items()}
        for sign in (1.0, -1.0):
            nearby = self.point.run_plan(self.links.values, {k: sign * v for k, v in moved.items()})
            for i, x in zip(self.links.operands, nearby, strict=True):
                fixed[i] &= x == self.values[i]
        return fixed | {self.links.sources[k]: np.False_ for k in moving}

    def _link(self, i: int, fixed: HostArray, directions: int, tolerance: float) -> Finding:
        """Return the largest error of a link along `directions`; with a reason, if one does not agree."""
        if not self.links.readers[i]:
            return Finding(np.inf, _DISAGREES) if np.any(self._cotangent(i)) else Finding(0.0)
        rng = np.random.default_rng([20, i])
        samples = (np.where(fixed, 0.0, direction(rng, self.values[i])) for _ in range(directions))
        worst = Finding(0.0)
        for v in samples:
            worst = max(
                worst, self._compare(i, v, tolerance), key=lambda finding: (finding.reason == _DISAGREES, finding.error)
            )
            if worst.reason == _DISAGREES:
                break
        return worst

    def _compare(self, i: int, along: HostArray, tolerance: float) -> Finding:
        """Return the smallest error among the distances at which the link agrees. Stops once an error is negligible."""
        first, magnitude = self._measure(i, along, _DISTANCE), float(np.sum(np.abs(paired(self._cotangent(i), along))))
        if first.largest and not first.terms and not magnitude:
            return Finding(0.0) if self._is_flat(i, along) else Finding(np.inf, "roundoff")
        # Also try the distance at which rounding is a quarter of the allowed error: right for a straight function.
        allowed = tolerance * magnitude + _TERM_ROUNDING * first.terms / _DISTANCE
        rounding_distance = 4 * _VALUE_ROUNDING * first.sizes / allowed if first.sizes and allowed else _DISTANCE
        best = np.inf
        for distance in (_DISTANCE, rounding_distance, *_OTHER_DISTANCES):
            measured = first if distance == _DISTANCE else self._measure(i, along, distance)
            noise, allowance = _VALUE_ROUNDING * measured.sizes / distance, _TERM_ROUNDING * measured.terms / distance
            finding = compare(measured.moved, self._cotangent(i), along, distance, noise, tolerance, allowance)
            best = min(best, finding.error) if finding.reason is None else best
            if best <= _NEGLIGIBLE * tolerance:
                break
        if best <= tolerance:
            return Finding(best)
        rounding_only = compare(
            first.moved,
            self._cotangent(i),
            along,
            _DISTANCE,
            _TERM_ROUNDING * first.largest / _DISTANCE,
            tolerance,
        )
        return Finding(np.inf, "roundoff" if rounding_only == (0.0, "roundoff") else _DISAGREES)

    def _is_flat(self, i: int, along: HostArray) -> bool:
        """Return whether φ is constant far outwards, too: x + 10²⁰, for example, is constant only nearby."""
        away = _away_from_zero(self.values[i], along)
        return not any(
            np.any(self._change(j, y, original))
            for reader in self.links.readers[i]
            for distance in _OUTWARDS
            for j, y, original in self._moved(reader, {i: self.values[i] + distance * away})
        )

    def _measure(self, i: int, along: HostArray, distance: float) -> Measured:
        moved, terms, sizes, largest = np.zeros((4, len(MOVES)))
        for reader in self.links.readers[i]:
            for row, move in enumerate(MOVES):
                for j, y, original in self._moved(reader, {i: self.values[i] + move * distance * along}):
                    is_step = reader.is_step or y.dtype.kind not in "fc"
                    # The chain rule fails at a jump: a change of a value without derivative counts as infinite.
                    change = np.where(y == original, 0.0, np.inf) if is_step else self._change(j, y, original)
                    moved[row] += np.sum(change)
                    terms[row] += np.sum(np.abs(change))
                    if not is_step:
                        size = np.maximum(np.abs(y), np.abs(original))
                        sizes[row] += _finite_sum(self._cotangent(j) * size)
                        largest[row] += _finite_sum(self._cotangent(j) * np.max(size, initial=0.0))
        return Measured(moved, np.mean(terms), np.max(sizes), np.max(largest))

    def _cotangent(self, i: int) -> HostArray:
        return self.cotangents.get(i, _ZERO)

    def _moved(self, reader: Reader, operands: Arrays) -> Iterator[tuple[int, HostArray, HostArray]]:
        """Run a reader; yield the nodes of its results, their values on these operands, and their original values."""
        return zip(reader.results, self._read_results(reader, operands), self._original(reader), strict=True)

    def _read_results(self, reader: Reader, moved: Arrays) -> list[HostArray]:
        operands: Arrays = {**self.values, **moved}
        return self.point.executor.run(reader.plan, operands, self.point.deadline)

    def _change(self, j: int, y: HostArray, original: HostArray) -> Any:
        """Return ȳ·Δy, which is 0 where nothing changes, even at ±∞. Integers have no ȳ."""
        if y.dtype.kind not in "fc":
            return np.zeros(y.shape)
        return np.where(y == original, 0.0, paired(self._cotangent(j), y - original))


def _away_from_zero(x: HostArray, along: HostArray) -> HostArray:
    """Return moves of the size of `along` that point away from 0; for complex numbers, in each part."""
    if np.iscomplexobj(x):
        parts: HostArray = _away_from_zero(x.real, along.real) + 1j * _away_from_zero(x.imag, along.imag)
        return parts
    return np.where(x < 0, -np.abs(along), np.abs(along))


def _finite_sum(weighted: Any) -> float:
    return float(np.sum(np.abs(weighted), where=np.isfinite(weighted)))


class Uncertified(NamedTuple):
    """A node whose gradient could not be compared.

    `reason` is kink, integer_path, stop_gradient, not_finite or roundoff.
    """

    node: int
    reason: str
    detail: str


@dataclass(frozen=True)
class Certificate:
    """The largest relative error of each node of `wrt` that was compared, and the nodes that could not be compared."""

    errors: tuple[tuple[int, float], ...]
    uncertified: tuple[Uncertified, ...]
    tolerance: float
    peak_bytes: int
    recomputed_flops: int

    @property
    def passed(self) -> bool:
        """Whether every node was compared, and its error is within the tolerance."""
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
    widened_call = Gradients(roots, call.of, call.wrt)
    threads = point.executor.kernel_threads
    _, exact, _ = plan_within(
        CompileRequest(point.program, point.types, widened_call, limits, deadline, threads, memory)
    )
    value, *arrays = point.run_plan(exact)
    points, gradients = arrays[: len(call.wrt)], arrays[len(call.wrt) :]
    findings, link_bytes = _by_links(point, call, gradients, directions, tolerance)
    if any(finding.error > tolerance for finding in findings) and program.functions:
        by_steps, peeled_bytes = _by_links(point, call, gradients, directions, tolerance, peels=True)
        findings = [
            steps if steps.error <= tolerance else finding for finding, steps in zip(findings, by_steps, strict=True)
        ]
        link_bytes = max(link_bytes, peeled_bytes)
    failed = [k for k, finding in enumerate(findings) if finding.error > tolerance]
    settled = {k: [finding] for k, finding in enumerate(findings) if k not in failed}
    whole_bytes = 0
    if failed:
        whole = Whole(point, call, [call.wrt[k] for k in failed], value, [points[k] for k in failed])
        whole_bytes = whole.peak_bytes
        by_direction = whole.findings([gradients[k] for k in failed], directions, tolerance)
        for k, node_findings in zip(failed, by_direction, strict=True):
            is_rounding = findings[k].reason == "roundoff"  # every link may agree but for rounding: no error is proven
            settled[k] = [
                Finding(finding.error, finding.reason or "roundoff")
                if is_rounding and finding.error > tolerance
                else finding
                for finding in node_findings
            ]
    peak = max(exact.peak_bytes, link_bytes, whole_bytes)
    errors, uncertified = _verdicts(point, call, settled, tolerance)
    return Certificate(errors, uncertified, tolerance, peak, exact.recomputed_flops)


def _by_links(
    point: Point,
    call: Gradients,
    gradients: Sequence[HostArray],
    directions: int,
    tolerance: float,
    *,
    peels: bool = False,
) -> tuple[list[Finding], int]:
    """Return the accumulated errors of links for each node, and the bytes that the links took.

    All errors are infinite if values and cotangents do not fit into memory.
    """
    try:
        links = find_links(point, call, peels=peels)
    except (OverBudget, TooManyNodes):
        return [Finding(np.inf)] * len(call.wrt), 0
    return Chain(point, links, gradients).findings(directions, tolerance), links.peak_bytes


def _verdicts(
    point: Point, call: Gradients, findings: Mapping[int, Sequence[Finding]], tolerance: float
) -> tuple[tuple[tuple[int, float], ...], tuple[Uncertified, ...]]:
    """Return the error of each node that was compared, and the nodes that could not be compared."""
    _, values = point.program.build(point.types, (call.of, *call.wrt), point.deadline)
    errors, uncertified = [], []
    for k, node in enumerate(call.wrt):
        worst = max(finding.error for finding in findings[k])
        reason = next((finding.reason for finding in findings[k] if finding.reason), None)
        may_be_stopped = (reason == "kink" or worst > tolerance) and reason != "not_finite"
        stopping = stops_between(point.program, values, (node,), (call.of,)) if may_be_stopped else ()
        if stopping:
            uncertified.append(_stopped(point.program, node, call.of, stopping))
        elif reason:
            uncertified.append(Uncertified(node, reason, _DETAILS[reason]))
        else:
            errors.append((node, float(worst)))
    return tuple(errors), tuple(uncertified)


def _stopped(program: Program, node: int, of: int, stopping: Sequence[int]) -> Uncertified:
    """Return the reason that a node on the way carries no derivative."""
    names = {program.statements[i].op.name for i in stopping}
    reason = "stop_gradient" if names == {"stop_gradient"} else "integer_path"
    nodes = ", ".join(f"node {i} ({program.statements[i].op.name})" for i in stopping[:3])
    has_functions = any(program.statements[i].op.functions for i in stopping)
    plain = f"which {'carries' if len(stopping) == 1 else 'carry'} no derivative"
    carry = "inside which a node carries no derivative" if has_functions else plain
    return Uncertified(node, reason, f"its value also reaches node {of} through {nodes}, {carry}")
