"""Hand: how far the vertices of a posed hand are from points that were measured, and the Jacobian by the pose."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Array, Question, Workload, normal

#: 22 bones: wrist, palm and five fingers of four; 26 numbers of pose: rotation and place of the whole, four a finger
BONES, FINGERS, VERTICES, PARAMETERS = 22, 5, 544, 26
CORRESPONDENCES = 1000


def hand(points: int = CORRESPONDENCES) -> Workload:
    """Errors of all points; each belongs to a vertex, which several bones move, each with its weight.

    The bones' rotations come from angles about three axes, and are chained from the wrist to the fingertips; the whole
    hand is then turned by a rotation vector and moved.
    """

    def errors(ops: Any, pose: Any, *data: Any) -> Any:
        fixed, by_angle, relatives, inverses, weights, base, measured, axes, identity = data
        angles = ops.reshape(by_angle @ pose, shape=(BONES, 3, 1, 1))
        turned = relatives @ _turns(ops, angles, fixed)
        moved = _chained(ops, turned) @ inverses
        rows = weights @ ops.reshape(moved, shape=(BONES, 16))
        vertices = ops.reshape(rows, shape=(points, 4, 4)) @ base
        vertices = ops.reshape(ops.slice(vertices, starts=[0, 0, 0], stops=[points, 3, 1]), shape=(points, 3))
        turn = _rotation(ops, _part(ops, pose, 0, 3), axes, identity)
        return measured - (vertices @ ops.transpose(turn, axes=(1, 0)) + _part(ops, pose, 3, 6))

    title = f"Hand: {points:,} points, {PARAMETERS} parameters"
    pose = normal(1, PARAMETERS, scale=0.3, dtype="float64")
    return Workload("hand", title, errors, [pose], _model(points), Question.JACOBIAN)


def _part(ops: Any, x: Any, start: int, stop: int) -> Any:
    return ops.slice(x, starts=[start], stops=[stop])


def _turns(ops: Any, angles: Any, fixed: Any) -> Any:
    """Rz Ry Rx of each bone, as 4 × 4: a rotation about an axis is C cos θ + S sin θ + K, with C, S and K `fixed`."""
    parts = [ops.slice(fixed, starts=[i, 0, 0, 0], stops=[i + 1, 3, 4, 4]) for i in range(3)]
    each = ops.cos(angles) * parts[0] + ops.sin(angles) * parts[1] + parts[2]
    x, y, z = (
        ops.reshape(ops.slice(each, starts=[0, i, 0, 0], stops=[BONES, i + 1, 4, 4]), shape=(BONES, 4, 4))
        for i in range(3)
    )
    return z @ y @ x


def _chained(ops: Any, relatives: Any) -> Any:
    """Where each bone comes to lie: its own motion after its parent's, all five fingers at once.

    The bones are in the order wrist, palm, the fingers' first bones, their second ones, and so on.
    """

    def bones(first: int, past: int) -> Any:
        return ops.slice(relatives, starts=[first, 0, 0], stops=[past, 4, 4])

    levels = [bones(0, 1)]
    levels.append(levels[0] @ bones(1, 2))
    for first in range(2, BONES, FINGERS):
        levels.append(levels[-1] @ bones(first, first + FINGERS))
    return ops.cat(*levels, axis=0)


def _rotation(ops: Any, vector: Any, axes: Any, identity: Any) -> Any:
    """cos θ I + sin θ [a]× + (1 − cos θ) a aᵀ, for the vector θ a."""
    angle = ops.sqrt(ops.sum(ops.square(vector)))
    unit = vector / angle
    column = ops.reshape(unit, shape=(3, 1))
    cross = ops.reshape(axes @ unit, shape=(3, 3))
    outer = column @ ops.reshape(unit, shape=(1, 3))
    return identity * ops.cos(angle) + cross * ops.sin(angle) + outer * (1.0 - ops.cos(angle))


def _model(points: int) -> list[Array]:
    """A hand with as many bones and vertices as ADBench's: numbers of the same kind, drawn at random."""
    rng = np.random.default_rng(2)
    relatives = _rigid(rng, BONES)
    inverses = np.linalg.inv(_rigid(rng, BONES))
    weights = rng.random((VERTICES, BONES)) ** 4
    weights /= weights.sum(1, keepdims=True)
    base = np.concatenate([rng.standard_normal((VERTICES, 3)), np.ones((VERTICES, 1))], 1)[..., None]
    of = rng.integers(0, VERTICES, points)
    axes = np.zeros((3, 3, 3))
    axes[[0, 1, 2], [2, 0, 1], [1, 2, 0]] = -1
    axes[[0, 1, 2], [1, 2, 0], [2, 0, 1]] = 1
    cross = axes.reshape(9, 3)
    measured = rng.standard_normal((points, 3))
    return [_about_axes(), _angles(), relatives, inverses, weights[of], base[of], measured, cross, np.eye(3)]


def _rigid(rng: np.random.Generator, count: int) -> Array:
    """Motions, as 4 × 4."""
    motions = np.tile(np.eye(4), (count, 1, 1))
    motions[:, :3, :3] = np.linalg.qr(rng.standard_normal((count, 3, 3)))[0]
    motions[:, :3, 3] = rng.standard_normal((count, 3))
    return motions


def _about_axes() -> Array:
    """C, S and K of the rotations about x, y and z, of shape (3, 3, 4, 4)."""
    fixed = np.zeros((3, 3, 4, 4))
    for axis in range(3):
        i, j = (axis + 1) % 3, (axis + 2) % 3
        fixed[0, axis, [i, j], [i, j]] = 1
        fixed[1, axis, [j, i], [i, j]] = [1, -1]
        fixed[2, axis, [axis, 3], [axis, 3]] = 1
    return fixed


def _angles() -> Array:
    """What angle each number of the pose is: a finger's first bone bends about x and y, its next two about x."""
    which = np.zeros((BONES, 3, PARAMETERS))
    for finger in range(FINGERS):
        first = 6 + 4 * finger
        bones = [2 + level * FINGERS + finger for level in range(3)]
        which[[bones[0], bones[0], bones[1], bones[2]], [0, 1, 0, 0], range(first, first + 4)] = 1
    return which.reshape(3 * BONES, PARAMETERS)
