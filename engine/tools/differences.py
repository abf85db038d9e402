"""Central differences of a function along one direction, and what they say of its gradient.

Differences at two distances give an error of the fourth order (Richardson), and tell a kink from a curve: of a smooth
function, the difference of the slopes on both sides halves with the distance.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from engine.graph.tensor_type import HostArray

#: how far a node moves along a direction, in distances
MOVES: Final = np.array([1.0, -1.0, 0.5, -0.5])


class Finding(NamedTuple):
    """Relative error of one node along one direction, or why there is none."""

    error: float
    reason: str | None = None


def paired(gradient: HostArray, along: Any) -> Any:
    """Derivative along a move, element by element: Re (conj g · v), which is g · v for real numbers."""
    product = np.conj(gradient) * along
    return product.real if np.iscomplexobj(product) else product


def direction(rng: np.random.Generator, x: HostArray) -> HostArray:
    """Elements of either sign between half and all of the size of those of `x`, whatever their magnitude.

    Of complex numbers, so are both parts, each by itself.
    """
    if np.iscomplexobj(x):
        both: HostArray = direction(rng, x.real) + 1j * direction(rng, x.imag)
        return both
    signed: HostArray = rng.uniform(0.5, 1.0, x.shape) * rng.choice([-1.0, 1.0], x.shape)
    return _sizes(x) * signed


def _sizes(x: HostArray) -> HostArray:
    """Sizes of the elements; the tensor's root mean square, or 1, where one is 0."""
    most = float(np.max(np.abs(x), initial=0.0))
    whole = np.isfinite(most) and most > 0
    mean = most * float(np.sqrt(np.mean(np.square(x / most)))) if whole else 1.0
    return np.where(x == 0, mean, np.abs(x))


@np.errstate(all="ignore")
def compare(
    moved: Any,
    gradient: HostArray,
    along: HostArray,
    distance: float,
    noise: float,
    tolerance: float,
    conceded: float = 0.0,
) -> Finding:
    """A gradient along a direction against `moved`: how much the function changes at MOVES, times `distance`.

    A slope may be off by `noise`, through rounding; there is no finding where that is over the tolerance. An error of
    `conceded` counts as none.
    """
    far, close = (moved[0] - moved[1]) / (2 * distance), (moved[2] - moved[3]) / distance
    slope, expected = (4 * close - far) / 3, float(np.sum(paired(gradient, along)))
    size = max(abs(slope), float(np.sum(np.abs(paired(gradient, along)))))
    bend = (moved[0] + moved[1]) / distance, (moved[2] + moved[3]) / (distance / 2)
    if not np.isfinite([slope, size, noise, *bend]).all():
        return Finding(np.inf, "not_finite")
    if abs(2 * bend[1] - bend[0]) > tolerance * size + 8 * (noise + conceded):
        return Finding(np.inf, "kink")
    error = max(0.0, abs(slope - expected) - noise - conceded) / size if size else 0.0
    return Finding(error, None if noise <= tolerance * size + conceded else "roundoff")
