"""The certificate: gradients against central differences, in float64, along random directions.

This is the only place where finite differences occur. First the chain rule is followed link by link (`Chain`), for all
nodes of `wrt` at once. A node for which some link does not agree, be it through a kink, a way without derivative,
rounding or a wrong rule, is moved by itself, and what it does to `of` is the verdict (`Whole`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from engine.calls import Gradients
from engine.executors.interpreter import Executor
from engine.graph.errors import OverBudget, TooManyNodes
from engine.graph.limits import NO_DEADLINE, Deadline, Limits
from engine.graph.program import Program
from engine.graph.tensor_type import HostArray, TensorType
from engine.planning.compiler import CompileRequest, plan_within
from engine.tools.analysis import stops_between
from engine.tools.chain import Chain
from engine.tools.differences import Finding
from engine.tools.links import find_links
from engine.tools.point import Point
from engine.tools.whole import Whole


class Uncertified(NamedTuple):
    """A node whose gradient could not be compared.

    `reason` is kink, integer_path, stop_gradient, not_finite or roundoff.
    """

    node: int
    reason: str
    detail: str


@dataclass(frozen=True)
class Certificate:
    """The largest relative error of each node of `wrt` that was compared, and the others."""

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
    """Compare the gradients of `call` by each of its nodes along `directions`, in at most `memory` bytes at a time.

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
        settled |= {k: _unless_drowned(found[k], seen, tolerance) for k, seen in zip(left, alone, strict=True)}
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
    """Findings of the links about each node, and the bytes that they took.

    Nothing is known of any where all values and cotangents are more than there is memory for.
    """
    try:
        links = find_links(point, call, peels=peels)
    except (OverBudget, TooManyNodes):
        return [Finding(np.inf)] * len(call.wrt), 0
    return Chain(point, links, gradients).findings(directions, tolerance), links.peak_bytes


def _unless_drowned(linked: Finding, seen: Sequence[Finding], tolerance: float) -> list[Finding]:
    """Findings about `of`; but no error is one where every link might agree but for rounding."""
    if linked.reason != "roundoff":
        return list(seen)
    return [Finding(one.error, one.reason or ("roundoff" if one.error > tolerance else None)) for one in seen]


def _verdicts(
    point: Point, call: Gradients, found: Mapping[int, Sequence[Finding]], tolerance: float
) -> tuple[tuple[tuple[int, float], ...], tuple[Uncertified, ...]]:
    """The error of each node that was compared, and the others."""
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


_DETAILS: Final = {
    "kink": "the slopes on the two sides of this point differ, from close by, too: there is a kink, or a tie",
    "not_finite": "the value or the gradient is NaN or infinite here or nearby",
    "roundoff": "this derivative is so small beside the values that it is between that differences drown in rounding",
}


def _silenced(program: Program, node: int, of: int, silent: Sequence[int]) -> Uncertified:
    """The reason is a node on the way that carries no derivative."""
    names = {program.statements[i].op.name for i in silent}
    reason = "stop_gradient" if names == {"stop_gradient"} else "integer_path"
    listed = ", ".join(f"node {i} ({program.statements[i].op.name})" for i in silent[:3])
    within = any(program.statements[i].op.functions for i in silent)
    carry = "in which something carries" if within else f"which {'carries' if len(silent) == 1 else 'carry'}"
    return Uncertified(node, reason, f"its value also reaches node {of} through {listed}, {carry} no derivative")
