"""Central differences along one direction, and their comparison with a gradient.

Combining differences at two distances gives a fourth-order error (Richardson). It also distinguishes a kink from a
curve: for a smooth function, the difference of the slopes on both sides halves with the distance.

`Whole` moves nodes of `wrt`, leaves or not, in a copy of the graph, and compares `of` itself. The moves of several
nodes are rows of one batched execution. A kink or an error is compared again at smaller distances, where a steep curve
is straight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from engine.analysis.point import Point
from engine.autodiff.calls import Gradients
from engine.autodiff.vmap import vmap_onto
from engine.compiler.plan import Plan
from engine.ir.errors import OverBudget
from engine.ir.graph import Value
from engine.ir.tensor_type import FLOAT64, HostArray, TensorType

#: moves of a node along a direction, as multiples of the distance
MOVES: Final = np.array([1.0, -1.0, 0.5, -0.5])
#: distances relative to each element; the next one is tried if the comparison fails
_DISTANCES: Final = (1e-4, 1e-6, 1e-8)
#: moves of a few units in the last place, under which a change of `of` is rounding
_TINY_MOVES: Final = np.array([1e-14, -1e-14])
#: estimates of the rounding error of `of`: a number of units in the last place, and a multiple of its tiny change
_ROUNDING: Final = 64 * float(np.finfo(FLOAT64).eps)
_TINY_CHANGE_FACTOR: Final = 4
#: a larger tiny change, relative to `of` and to the moved values, is a jump
_JUMP: Final = 1e-9
#: rows of one execution for each node: its moves and tiny moves
_ROWS: Final = len(MOVES) + len(_TINY_MOVES)
#: maximum number of nodes that are moved in one execution
_NODES_AT_ONCE: Final = 16


class Finding(NamedTuple):
    """Relative error of one node along one direction, or the reason why there is none."""

    error: float
    reason: str | None = None


def paired(gradient: HostArray, along: Any) -> Any:
    """Return the derivative along a move, per element: Re (conj g · v), which is g · v for real numbers."""
    product = np.conj(gradient) * along
    return product.real if np.iscomplexobj(product) else product


def direction(rng: np.random.Generator, x: HostArray) -> HostArray:
    """Return random elements of either sign, of half to all of the size of those of `x`.

    The parts of complex numbers are drawn separately. A zero counts as the root mean square of the tensor, or as 1.
    """
    if np.iscomplexobj(x):
        parts: HostArray = direction(rng, x.real) + 1j * direction(rng, x.imag)
        return parts
    signed: HostArray = rng.uniform(0.5, 1.0, x.shape) * rng.choice([-1.0, 1.0], x.shape)
    largest = float(np.max(np.abs(x), initial=0.0))
    is_scalable = np.isfinite(largest) and largest > 0
    mean = largest * float(np.sqrt(np.mean(np.square(x / largest)))) if is_scalable else 1.0
    return np.where(x == 0, mean, np.abs(x)) * signed


@np.errstate(all="ignore")
def compare(
    moved: Any,
    gradient: HostArray,
    along: HostArray,
    distance: float,
    noise: float,
    tolerance: float,
    allowance: float = 0.0,
) -> Finding:
    """Compare a gradient along a direction with `moved`, the changes of the function at MOVES times `distance`.

    Slopes have a rounding error of `noise`; if that exceeds the tolerance, no error is reported. An error within
    `allowance` counts as none.
    """
    far, close = (moved[0] - moved[1]) / (2 * distance), (moved[2] - moved[3]) / distance
    slope, expected = (4 * close - far) / 3, float(np.sum(paired(gradient, along)))
    size = max(abs(slope), float(np.sum(np.abs(paired(gradient, along)))))
    side_differences = (moved[0] + moved[1]) / distance, (moved[2] + moved[3]) / (distance / 2)
    if not np.isfinite([slope, size, noise, *side_differences]).all():
        return Finding(np.inf, "not_finite")
    if abs(2 * side_differences[1] - side_differences[0]) > tolerance * size + 8 * (noise + allowance):
        return Finding(np.inf, "kink")
    error = max(0.0, abs(slope - expected) - noise - allowance) / size if size else 0.0
    return Finding(error, None if noise <= tolerance * size + allowance else "roundoff")


class Whole:
    """The graph of `of`, with value `value`, in which nodes of `call.wrt` are moved from `points`, several at once."""

    def __init__(
        self, point: Point, call: Gradients, moving: Sequence[int], value: HostArray, points: Sequence[HostArray]
    ) -> None:
        self._point, self._value, self._points = point, float(value.ravel()[0]), points
        self._plan, self._count = _plan_within_budget(point, call, moving)

    @property
    def peak_bytes(self) -> int:
        """Peak memory of one execution in bytes."""
        return self._plan.peak_bytes

    @np.errstate(all="ignore")
    def findings(self, gradients: Sequence[HostArray], directions: int, tolerance: float) -> list[list[Finding]]:
        """Compare each node along each direction."""
        rng = np.random.default_rng(20)
        by_direction = [
            self._along([direction(rng, x) for x in self._points], gradients, tolerance) for _ in range(directions)
        ]
        return [list(findings) for findings in zip(*by_direction, strict=True)]

    def _along(self, along: Sequence[HostArray], gradients: Sequence[HostArray], tolerance: float) -> list[Finding]:
        findings: dict[int, Finding] = {}
        nodes: Sequence[int] = range(len(along))
        for distance in _DISTANCES:
            for k, values in zip(nodes, self._around(along, nodes, distance), strict=True):
                finding = self._compare(values, gradients[k], along[k], distance, tolerance)
                if k not in findings or finding.reason != "roundoff":
                    findings[k] = finding
            nodes = [k for k in nodes if findings[k].reason == "kink" or findings[k].error > tolerance]
        return [findings[k] for k in range(len(along))]

    def _compare(
        self, values: HostArray, gradient: HostArray, along: HostArray, distance: float, tolerance: float
    ) -> Finding:
        moved = values[: len(MOVES)] - self._value
        if not np.any(moved) and not np.any(gradient * along):
            return Finding(0.0, "roundoff")  # rounding may hide a change
        # The tiny change estimates the rounding of `of`, unless it is large: then it is a jump, and does not count.
        size = float(np.max(np.abs([self._value, *values])))
        tiny_change = abs(float(values[-1] + values[-2] - 2 * self._value))
        rounding = tiny_change if tiny_change <= _JUMP * max(size, float(np.max(np.abs(along), initial=0))) else 0.0
        noise = max(_ROUNDING * size, _TINY_CHANGE_FACTOR * rounding) / distance
        return compare(moved, gradient, along, distance, noise, tolerance)

    def _around(self, along: Sequence[HostArray], nodes: Sequence[int], distance: float) -> list[HostArray]:
        """Return `of` at the moves of each of `nodes`, then at its tiny moves."""
        fed: dict[Any, HostArray] = {("direction", k): v for k, v in enumerate(along)}
        rows: list[HostArray] = []
        for first in range(0, len(nodes), self._count):
            moves = np.zeros((self._count, _ROWS, len(along)))
            for i, k in enumerate(nodes[first : first + self._count]):
                moves[i, :, k] = *(distance * MOVES), *_TINY_MOVES
            (values,) = self._point.run_plan(self._plan, {**fed, "moves": moves.reshape(-1, len(along))})
            rows.extend(values.reshape(self._count, _ROWS))
        return rows[: len(nodes)]


def _plan_within_budget(point: Point, call: Gradients, moving: Sequence[int]) -> tuple[Plan, int]:
    """Return a plan that moves as many nodes at once as the budget allows, and that number."""
    count = min(len(moving), _NODES_AT_ONCE)
    try:
        return _moved(point, call, moving, count), count
    except OverBudget:
        return _moved(point, call, moving, 1), 1


def _moved(point: Point, call: Gradients, moving: Sequence[int], count: int) -> Plan:
    """Plan `of` with node k of `moving` moved by moves[row, k] times direction k: one value per row."""
    builder = point.builder()
    moves = builder.leaf(TensorType((len(moving),), FLOAT64), "one row")

    def move(x: Value, k: int) -> Value:
        distance = moves.slice(starts=(k,), stops=(k + 1,), steps=(1,)).reshape(shape=())
        return x + builder.leaf(x.type, ("direction", k)) * distance

    nodes = point.displaced(builder, call, moving, move)
    rows = count * _ROWS
    all_moves = builder.leaf(TensorType((rows, len(moving)), FLOAT64), "moves")
    return point.plan(builder, vmap_onto(builder, [nodes[call.of]], {moves: all_moves}, rows))
