"""BA: bundle adjustment. Reprojection errors, and their blocks by camera, point and weight: 2 × (11 + 3 + 1) each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from benchmarks.workload import Array, Question, Workload, normal

CAMERAS, POINTS, OBSERVATIONS = 49, 7_776, 31_843
#: a camera: rotation (axis times angle), centre, focal length, principal point, radial distortion
CAMERA = 11
EVERY_ROW: Final = 1 << 30


Cross = Callable[[Any, Any, Any], Any]


def bundle(observations: int = OBSERVATIONS) -> Workload:
    """Errors of all observations, along both axes of the image.

    An error depends on its own camera, point and weight alone. So the gradient of the sum of all errors along one axis
    has all blocks along that axis: two sweeps give the Jacobian. That of the weights' own errors, 1 − w², is left out.
    """
    title = f"BA: {observations:,} observations, {CAMERAS} cameras, {POINTS:,} points"
    *parameters, seen = _scene(observations)
    by_library = {side: partial(_errors, _library_cross) for side in ("torch", "torch.compile", "jax")}
    return Workload("ba", title, partial(_errors, _cross), parameters, [seen], Question.ROWS, by_library)


def _errors(cross: Cross, ops: Any, cameras: Any, points: Any, weights: Any, seen: Any) -> Any:
    def camera(first: int, past: int) -> Any:
        return columns(ops, cameras, first, past)

    turned = _rotated(ops, cross, camera(0, 3), points - camera(3, 6))
    image = columns(ops, turned, 0, 2) / columns(ops, turned, 2, 3)
    squared = ops.sum(ops.square(image), axes=[1], keepdims=True)
    distortion = squared * camera(9, 10) + ops.square(squared) * camera(10, 11) + 1.0
    pixel = image * distortion * camera(6, 7) + camera(7, 9)
    apart = (pixel - seen) * weights
    return [columns(ops, apart, 0, 1), columns(ops, apart, 1, 2)]


def columns(ops: Any, x: Any, first: int, past: int) -> Any:
    """Of the second and last axis."""
    return ops.slice(x, starts=[0, first], stops=[EVERY_ROW, past])


def _rotated(ops: Any, cross: Cross, axis: Any, x: Any) -> Any:
    """By Rodrigues' formula: x cos θ + (a × x) sin θ + a (a · x) (1 − cos θ), with a of length 1."""
    angle = ops.sqrt(ops.sum(ops.square(axis), axes=[1], keepdims=True))
    unit = axis / angle
    cosine, sine = ops.cos(angle), ops.sin(angle)
    along = ops.sum(unit * x, axes=[1], keepdims=True) * (1.0 - cosine)
    return x * cosine + cross(ops, unit, x) * sine + unit * along


def _cross(ops: Any, a: Any, b: Any) -> Any:
    (a0, a1, a2), (b0, b1, b2) = ([columns(ops, x, i, i + 1) for i in range(3)] for x in (a, b))
    return ops.cat(a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0, axis=1)


def _library_cross(ops: Any, a: Any, b: Any) -> Any:
    return ops.cross(a, b)


def _scene(observations: int) -> list[Array]:
    """Cameras, points and weights of each observation, and where it was seen: near where it should be."""
    rng = np.random.default_rng(0)
    cameras = normal(1, CAMERAS, CAMERA, scale=0.1, dtype="float64")
    cameras[:, 5] -= 5  # behind the points
    cameras[:, 6] += 500
    points = normal(2, POINTS, 3, dtype="float64")
    own = cameras[rng.integers(0, CAMERAS, observations)], points[rng.integers(0, POINTS, observations)]
    weights = 1 + normal(3, observations, 1, scale=0.1, dtype="float64")
    return [*own, weights, normal(4, observations, 2, scale=50, dtype="float64")]
