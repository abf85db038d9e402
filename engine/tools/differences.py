"""Central differences of a function along one direction, and what they say of its gradient.

Differences at two distances give an error of the fourth order (Richardson), and tell a kink from a curve: of a smooth
function, the difference of the slopes on both sides halves with the distance. What looks like a kink or an error is
looked at from closer by, where a steep curve is straight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from engine.graph.tensor_type import FLOAT64, HostArray

#: distances, relative to each element; to the tensor's root mean square where that is 0. The next is for what fails
_DISTANCES: Final = (1e-4, 1e-6, 1e-8)
MOVES: Final = np.array([1.0, -1.0, 0.5, -0.5])
#: moves of a few units in the last place: what `of` does then is rounding
TREMBLES: Final = np.array([1e-14, -1e-14])
#: what `of` may be off by through rounding: units in the last place, and times what it was seen to tremble
_ROUNDING: Final = 64
_TREMBLING: Final = 4
#: trembling by more than this, beside the size of `of` and of what is moved, is a jump
_JUMP: Final = 1e-9


class Finding(NamedTuple):
    """Of one node along one direction: the relative error, or why there is none."""

    error: float
    reason: str | None = None


def findings(
    value: float,
    gradients: Sequence[HostArray],
    along: Sequence[HostArray],
    around: Callable[[Sequence[int], float], list[HostArray]],
    tolerance: float,
) -> dict[int, Finding]:
    """Of each node along one direction; `around` gives the values beside `value` of some nodes at a distance."""
    found: dict[int, Finding] = {}
    nodes: Sequence[int] = range(len(along))
    for distance in _DISTANCES:
        for k, near in zip(nodes, around(nodes, distance), strict=True):
            finding = _compare(value, near, gradients[k], along[k], distance, tolerance)
            if k not in found or finding.reason != "roundoff":
                found[k] = finding
        nodes = [k for k in nodes if found[k].reason == "kink" or found[k].error > tolerance]
    return found


@np.errstate(all="ignore")
def _compare(
    value: float, near: HostArray, gradient: HostArray, along: HostArray, distance: float, tolerance: float
) -> Finding:
    """One gradient along one direction, of a function that is `value` here and `near` at the moves of a node."""
    far, close = (near[0] - near[1]) / (2 * distance), (near[2] - near[3]) / distance
    slope, expected = (4 * close - far) / 3, float(np.sum(gradient * along))
    most = float(np.sum(np.abs(gradient * along)))
    size = max(abs(slope), most)
    rounding = _rounding(value, near, float(np.max(np.abs(along), initial=0)))
    noise = rounding / distance
    bend = (near[0] + near[1] - 2 * value) / distance, (near[2] + near[3] - 2 * value) / (distance / 2)
    if not np.isfinite([slope, size, noise, *bend]).all():
        return Finding(np.inf, "not_finite")
    if abs(2 * bend[1] - bend[0]) > tolerance * size + 8 * noise:
        return Finding(np.inf, "kink")
    error = max(0.0, abs(slope - expected) - noise) / size if size else 0.0
    silent = error == 0 and most <= rounding
    return Finding(error, None if silent or noise <= tolerance * size else "roundoff")


def _rounding(value: float, near: HostArray, moved: float) -> float:
    """How far apart two values of the same function at the same point may be, whose operand is of the size `moved`."""
    size = float(np.max(np.abs([value, *near])))
    trembling = abs(float(near[-1] + near[-2] - 2 * value))
    seen = trembling if trembling <= _JUMP * max(size, moved) else 0.0
    return max(_ROUNDING * float(np.finfo(FLOAT64).eps) * size, _TREMBLING * seen)
