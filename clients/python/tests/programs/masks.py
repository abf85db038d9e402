"""Programs in which masks select elements."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import torch

from clients.python.tests.programs.program import Arrays, Program, normal, uniform

_OBJECTS = np.array([[0.1, 0.1, 0.5, 0.45], [0.5, 0.55, 0.9, 0.95]])
_LABELS = np.array([2, 0])
_BOXES, _CLASSES, _MOST, _LEAST = 30, 3, 20, 0.25


def _boxes() -> np.ndarray:
    """Boxes of several sizes: left, top, right, bottom."""
    middles, sides = uniform(30, 0.2, 0.8, _BOXES, 2), uniform(31, 0.15, 0.25, _BOXES, 2)
    return np.concatenate([middles - sides, middles + sides], 1)


class DetectionLoss(Program):
    """The missing overlap and the class loss of the boxes that overlap an object enough.

    A mask selects these boxes. All others should have the last class, which is none.
    """

    leaves: ClassVar[Arrays] = {"boxes": _boxes(), "logits": normal(32, _BOXES, _CLASSES + 1)}

    @staticmethod
    def graph(g: Any, boxes: Any, logits: Any) -> tuple[Any, ...]:
        a, b = boxes.unsqueeze(axes=[1]), g.constant(_OBJECTS[None])
        low, high = a.slice(stops=[_BOXES, 1, 2]), a.slice(starts=[0, 0, 2])
        other_low, other_high = b.slice(stops=[1, 2, 2]), b.slice(starts=[0, 0, 2])
        both = (high.minimum(other_high) - low.maximum(other_low)).relu().prod(axes=[2])
        overlaps = both / ((high - low).prod(axes=[2]) + (other_high - other_low).prod(axes=[2]) - both)
        nearest = overlaps.argmax(axis=1)
        best = overlaps.max(axes=[1])
        chosen = best.stop_gradient() > _LEAST
        places = chosen.nonzero(k=_MOST)
        rows, count = places.get_output(0).reshape(shape=[_MOST]), places.get_output(1)
        valid = g.arange(_MOST).less(count)
        labels = g.constant(_LABELS).gather(nearest).gather(rows)
        sure = g.index(logits.log_softmax(axis=1), rows, labels)
        nothing, total = g.constant(0.0), count.cast(dtype="float64")
        lack = (1.0 - best.compress(chosen, k=_MOST, fill=1.0).get_output(0)).sum() / total
        unsure = -valid.where(sure, nothing).sum() / total
        others = chosen.where(nothing, logits.log_softmax(axis=1).select(_CLASSES, axis=1))
        return lack + unsure - others.sum() / (_BOXES - total), count, overlaps

    @staticmethod
    def by_torch(boxes: Any, logits: Any) -> tuple[Any, ...]:
        a, b = boxes[:, None], torch.from_numpy(_OBJECTS)[None]
        both = torch.relu(torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).prod(2)
        overlaps = both / ((a[..., 2:] - a[..., :2]).prod(2) + (b[..., 2:] - b[..., :2]).prod(2) - both)
        nearest, best = overlaps.argmax(1), overlaps.amax(1)
        chosen = best.detach() > _LEAST
        labels = torch.from_numpy(_LABELS)[nearest][chosen]
        unsure = torch.nn.functional.cross_entropy(logits[chosen], labels)
        empty = torch.full((int((~chosen).sum()),), _CLASSES)
        others = torch.nn.functional.cross_entropy(logits[~chosen], empty)
        return (1 - best[chosen]).mean() + unsure + others, chosen.sum(), overlaps

    @staticmethod
    def by_jax(boxes: Any, logits: Any) -> tuple[Any, ...]:
        a, b = boxes[:, None], jnp.asarray(_OBJECTS)[None]
        both = jax.nn.relu(jnp.minimum(a[..., 2:], b[..., 2:]) - jnp.maximum(a[..., :2], b[..., :2])).prod(2)
        overlaps = both / ((a[..., 2:] - a[..., :2]).prod(2) + (b[..., 2:] - b[..., :2]).prod(2) - both)
        nearest, best = overlaps.argmax(1), overlaps.max(1)
        chosen = jax.lax.stop_gradient(best) > _LEAST
        logs, count = jax.nn.log_softmax(logits), chosen.sum()
        unsure = -jnp.where(chosen, logs[np.arange(_BOXES), jnp.asarray(_LABELS)[nearest]], 0).sum() / count
        others = -jnp.where(chosen, 0, logs[:, _CLASSES]).sum() / (_BOXES - count)
        return jnp.where(chosen, 1 - best, 0).sum() / count + unsure + others, count, overlaps


_ATOMS, _PAIRS, _NEAR, _WIDTH = 8, 40, 1.6, 4
_TARGET = normal(33, _ATOMS, _WIDTH)


class GraphNetwork(Program):
    """Message passing between near atoms: sums and maxima of messages along edges that a mask selects."""

    leaves: ClassVar[Arrays] = {
        "places": uniform(34, 0, 3, _ATOMS, 3),
        "features": normal(35, _ATOMS, _WIDTH),
        "weights": 0.4 * normal(36, 2 * _WIDTH + 1, _WIDTH),
        "updated": 0.4 * normal(37, 2 * _WIDTH, _WIDTH),
    }

    @staticmethod
    def graph(g: Any, places: Any, features: Any, weights: Any, updated: Any) -> tuple[Any, ...]:
        fixed = places.stop_gradient()
        near = fixed.cdist(fixed) < _NEAR
        positions = near.logical_and(g.constant(~np.eye(_ATOMS, dtype=bool))).nonzero(k=_PAIRS)
        edges, count = positions.get_output(0), positions.get_output(1)
        receivers, senders = edges.select(0, axis=1), edges.select(1, axis=1)
        valid = g.arange(_PAIRS).less(count)
        squares = (places.embedding(receivers) - places.embedding(senders)).square().sum(axes=[1], keepdims=True)
        pairs = g.cat(features.embedding(receivers), features.embedding(senders), squares, axis=1)
        messages = (pairs @ weights).tanh()
        # padding edges go to an extra atom
        target = valid.where(receivers, g.constant(_ATOMS))
        sums = messages.segment_sum(target, _ATOMS + 1).slice(stops=[_ATOMS])
        most = messages.segment_max(target, _ATOMS + 1).slice(stops=[_ATOMS])
        joined = g.cat(sums, most.is_finite().where(most, g.constant(0.0)), axis=1)
        y = features + joined @ updated
        return (y - g.constant(_TARGET)).square().mean(), y, count

    @staticmethod
    def by_torch(places: Any, features: Any, weights: Any, updated: Any) -> tuple[Any, ...]:
        fixed = places.detach()
        near = (torch.cdist(fixed, fixed) < _NEAR) & ~torch.eye(_ATOMS, dtype=torch.bool)
        receivers, senders = near.nonzero(as_tuple=True)
        squares = (places[receivers] - places[senders]).square().sum(1, keepdim=True)
        messages = torch.tanh(torch.cat([features[receivers], features[senders], squares], 1) @ weights)
        empty = torch.zeros(_ATOMS, _WIDTH)
        sums = empty.index_add(0, receivers, messages)
        most = empty.scatter_reduce(0, receivers[:, None].expand(-1, _WIDTH), messages, "amax", include_self=False)
        y = features + torch.cat([sums, most], 1) @ updated
        return (y - torch.from_numpy(_TARGET)).square().mean(), y, near.sum()

    @staticmethod
    def by_jax(places: Any, features: Any, weights: Any, updated: Any) -> tuple[Any, ...]:
        fixed = jax.lax.stop_gradient(places)
        near = (jnp.linalg.norm(fixed[:, None] - fixed[None], axis=2) < _NEAR) & ~np.eye(_ATOMS, dtype=bool)
        receivers, senders = jnp.nonzero(near, size=_PAIRS, fill_value=_ATOMS)
        squares = jnp.square(places[receivers] - places[senders]).sum(1, keepdims=True)
        messages = jnp.tanh(jnp.concatenate([features[receivers], features[senders], squares], 1) @ weights)
        sums = jax.ops.segment_sum(messages, receivers, _ATOMS)
        most = jax.ops.segment_max(messages, receivers, _ATOMS)
        y = features + jnp.concatenate([sums, jnp.where(jnp.isfinite(most), most, 0)], 1) @ updated
        return jnp.square(y - _TARGET).mean(), y, near.sum()
