"""The certificate: gradients against central differences, in float64, along random directions.

The only place where finite differences occur. Each node of `wrt`, leaf or not, is moved by s · v in a copy of the
graph, and the moves are rows of one batched execution. How they are compared: `engine.tools.differences`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from engine.calls import Gradients
from engine.executors.interpreter import Executor
from engine.graph.errors import OverBudget
from engine.graph.ir import Builder, Value
from engine.graph.limits import NO_DEADLINE, Deadline, Limits
from engine.graph.program import Program, Statement
from engine.graph.tensor_type import FLOAT64, HostArray, TensorType
from engine.passes.allowance import Allowance
from engine.passes.pipeline import optimise
from engine.planning.compiler import plan_call
from engine.planning.plan import Plan, make_plan
from engine.tools.analysis import stops_between
from engine.tools.differences import MOVES, TREMBLES, Finding, findings
from engine.transforms.expand_grad import expand_grad
from engine.transforms.vmap import vmap_onto

#: rows of one execution for each node: its moves, and its trembles
_ROWS: Final = len(MOVES) + len(TREMBLES)
#: nodes that are moved in one execution, memory permitting
_AT_ONCE: Final = 16


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
) -> Certificate:
    """Compare the gradients of `call` by each of its nodes along `directions`. Raises EngineError."""
    roots = (call.of, *call.wrt)
    used = program.used({node: TensorType.of(a) for node, a in feeds.items()}, roots)
    program.build(used, roots, deadline)
    wide = _float64(program)
    fed: dict[Any, HostArray] = {node: _as_float64(feeds[node]) for node in used}
    types = {node: TensorType.of(a) for node, a in fed.items()}
    asked = Gradients(roots, call.of, call.wrt)
    _, exact = plan_call(wide, types, asked, limits, deadline)
    value, *rest = executor.run(exact, fed, deadline)
    at, gradients = rest[: len(call.wrt)], rest[len(call.wrt) :]
    plan, rows = _affordable(wide, types, call, limits, deadline)
    found: list[list[Finding]] = [[] for _ in call.wrt]
    for along in _directions(at, directions):
        moved: dict[Any, HostArray] = {**fed, **{("direction", k): v for k, v in enumerate(along)}}

        def around(nodes: Sequence[int], distance: float, moved: Mapping[Any, HostArray] = moved) -> list[HostArray]:
            return _values_around(executor, plan, rows, moved, len(call.wrt), nodes, distance, deadline)

        for k, finding in findings(float(value.ravel()[0]), gradients, along, around, tolerance).items():
            found[k].append(finding)
    peak = max(plan.peak_bytes, exact.peak_bytes)
    return _certificate(wide, types, call, found, tolerance, peak)


def _float64(program: Program) -> Program:
    """The same program, with float64 for every float dtype that it states."""
    return Program(program.registry, [_widened(statement) for statement in program.statements], program.limits)


def _widened(statement: Statement) -> Statement:
    attrs = {name: _wide(value) for name, value in statement.attrs.items()}
    return Statement(statement.op, statement.operands, attrs, statement.name)


def _wide(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _as_float64(value)
    return FLOAT64.name if value in ("float16", "float32") else value


def _as_float64(array: HostArray) -> HostArray:
    return array.astype(FLOAT64) if array.dtype.kind == "f" else array


# ---------------------------------------------------------------- the graph that is moved


def _affordable(
    program: Program, types: Mapping[int, TensorType], call: Gradients, limits: Limits, deadline: Deadline
) -> tuple[Plan, int]:
    """The plan with as many nodes moved at once as the budget allows, and that number."""
    count = min(len(call.wrt), _AT_ONCE)
    try:
        return _moved(program, types, call, count, limits, deadline), count
    except OverBudget:
        return _moved(program, types, call, 1, limits, deadline), 1


def _moved(
    program: Program, types: Mapping[int, TensorType], call: Gradients, count: int, limits: Limits, deadline: Deadline
) -> Plan:
    """The plan of `of` where node k of `wrt` has moved by moves[row, k] times direction k: one value a row."""
    roots = (call.of, *call.wrt)
    built, values = program.build(types, roots, deadline, call.wrt)
    graph = expand_grad(built.graph([values[i] for i in roots]), limits, deadline)
    builder = Builder(graph.registry, limits, deadline)
    moves = builder.leaf(TensorType((len(call.wrt),), FLOAT64), "one row")
    movers = {index: k for k, index in enumerate(graph.outputs[1:])}
    copied: list[Value] = []
    for index, node in enumerate(graph.nodes):
        copy = builder.copy(node, [copied[i] for i in node.operands])
        copied.append(_move(copy, moves, movers[index]) if index in movers else copy)
    rows = count * _ROWS
    many = builder.leaf(TensorType((rows, len(call.wrt)), FLOAT64), "moves")
    of = vmap_onto(builder, [copied[graph.outputs[0]]], {moves: many}, rows)
    return make_plan(optimise(builder.graph(of), Allowance(limits.flops, deadline)), limits, deadline)


def _move(x: Value, moves: Value, k: int) -> Value:
    direction = x.builder.leaf(x.type, ("direction", k))
    distance = moves.slice(starts=(k,), stops=(k + 1,), steps=(1,)).reshape(shape=())
    return x + direction * distance


def _directions(at: Sequence[HostArray], count: int) -> Iterator[list[HostArray]]:
    """For each node, elements of either sign between half and all of the element's size: the same ones every time."""
    rng = np.random.default_rng(20)
    sizes = [_sizes(x) for x in at]
    for _ in range(count):
        yield [s * rng.uniform(0.5, 1.0, s.shape) * rng.choice([-1.0, 1.0], s.shape) for s in sizes]


def _sizes(x: HostArray) -> HostArray:
    """How large each element is; the tensor's root mean square, or 1, where it is 0."""
    most = float(np.max(np.abs(x), initial=0.0))
    whole = np.isfinite(most) and most > 0
    mean = most * float(np.sqrt(np.mean(np.square(x / most)))) if whole else 1.0
    return np.where(x == 0, mean, np.abs(x))


def _values_around(
    executor: Executor,
    plan: Plan,
    count: int,
    feeds: Mapping[Any, HostArray],
    width: int,
    nodes: Sequence[int],
    distance: float,
    deadline: Deadline,
) -> list[HostArray]:
    """For each of `nodes`, of `width` in all, the value of `of` at its moves, then at its trembles."""
    rows: list[HostArray] = []
    for first in range(0, len(nodes), count):
        moves = np.zeros((count, _ROWS, width))
        for i, k in enumerate(nodes[first : first + count]):
            moves[i, :, k] = *(distance * MOVES), *TREMBLES
        (values,) = executor.run(plan, {**feeds, "moves": moves.reshape(-1, width)}, deadline)
        rows.extend(values.reshape(count, _ROWS))
    return rows[: len(nodes)]


def _certificate(
    program: Program,
    types: Mapping[int, TensorType],
    call: Gradients,
    found: Sequence[Sequence[Finding]],
    tolerance: float,
    peak: int,
) -> Certificate:
    _, values = program.build(types, (call.of, *call.wrt))
    errors, open_ = [], []
    for node, seen in zip(call.wrt, found, strict=True):
        worst = max(finding.error for finding in seen)
        reason = next((finding.reason for finding in seen if finding.reason), None)
        silent = stops_between(program, values, (node,), (call.of,))
        if (reason == "kink" or worst > tolerance) and silent and reason != "not_finite":
            open_.append(_silenced(program, node, call.of, silent))
        elif reason:
            open_.append(Uncertified(node, reason, _DETAILS[reason]))
        else:
            errors.append((node, float(worst)))
    return Certificate(tuple(errors), tuple(open_), tolerance, peak)


_DETAILS: Final = {
    "kink": "the slopes on the two sides of this point differ, from close by, too: there is a kink, or a tie",
    "not_finite": "the value or the gradient is NaN or infinite here or nearby",
    "roundoff": "the value of `of` is so large beside this derivative that differences drown in its rounding",
}


def _silenced(program: Program, node: int, of: int, silent: Sequence[int]) -> Uncertified:
    """The reason is a node on the way that carries no derivative."""
    names = {program.statements[i].op.name for i in silent}
    reason = "stop_gradient" if names == {"stop_gradient"} else "integer_path"
    listed = ", ".join(f"node {i} ({program.statements[i].op.name})" for i in silent[:3])
    carry = "carries" if len(silent) == 1 else "carry"
    return Uncertified(node, reason, f"its value also reaches node {of} through {listed}, which {carry} no derivative")
