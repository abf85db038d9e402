"""LSTM: the loss of a sequence model, and its gradient by all weights."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.workload import Array, Workload, normal

#: ADBench's smallest has 2 layers of 14 and 1,024 characters; these are the first of them, since all but JAX unroll
LAYERS, WIDTH, CHARACTERS = 2, 14, 128
UNROLLED = "compiling 7,000 nodes takes minutes"


def recurrent(layers: int = LAYERS, width: int = WIDTH, characters: int = CHARACTERS) -> Workload:
    """Each character is predicted from those before it; the cells' gates have weights by element, no matrices.

    The loss is −Σ gold · (y − log(2 + Σ exp y)) over the predictions y, divided by their number. `gates` has a weight
    and a bias for each of a layer's four gates: forget and change read what the layer is given, in and out its state.
    """

    def loss(ops: Any, gates: Any, ends: Any, text: Any) -> Any:
        own = [[_row(ops, gates, 8 * layer + i) for i in range(8)] for layer in range(layers)]
        first, scale, shift = (_row(ops, ends, i) for i in range(3))
        characters_of = [_row(ops, text, t) for t in range(characters)]
        zero = first * 0.0
        states = [(zero, zero)] * layers
        total = 0.0
        for given, gold in pairwise(characters_of):
            x = given * first
            for layer, gate in enumerate(own):
                x, cell = _cell(ops, gate, x, *states[layer])
                states[layer] = (x, cell)
            total = _score(ops, x * scale + shift, gold) + total
        return total * (-1.0 / (width * (characters - 1)))

    parameters = [normal(1, 8 * layers, width, scale=0.5, dtype="float64"), normal(2, 3, width, dtype="float64")]
    title = f"LSTM: {layers} layers of {width}, {characters} characters"
    return Workload(
        "lstm",
        title,
        loss,
        parameters,
        [_text(width, characters)],
        written={"jax": _scanned(layers)},
        without={"torch.compile": UNROLLED},
    )


def _row(ops: Any, x: Any, i: int) -> Any:
    """As a tensor of shape (1, width)."""
    return ops.slice(x, starts=[i, 0], stops=[i + 1, 1 << 30])


def _cell(ops: Any, gate: Any, x: Any, hidden: Any, cell: Any) -> tuple[Any, Any]:
    """The layer's hidden state, which is its result, and its cell."""
    forget = ops.sigmoid(x * gate[0] + gate[1])
    into = ops.sigmoid(hidden * gate[2] + gate[3])
    out = ops.sigmoid(x * gate[4] + gate[5])
    change = ops.tanh(hidden * gate[6] + gate[7])
    cell = cell * forget + into * change
    return out * ops.tanh(cell), cell


def _score(ops: Any, y: Any, gold: Any) -> Any:
    return ops.sum(gold * (y - ops.log(ops.sum(ops.exp(y)) + 2.0)))


def _scanned(layers: int) -> Any:
    """As JAX has it: a loop that is compiled once, for one character."""

    def loss(ops: Any, gates: Any, ends: Any, text: Any) -> Any:
        import jax  # noqa: PLC0415 - only where it is the side that runs

        def one(states: Any, pair: Any) -> Any:
            given, gold = pair
            x, after = given * ends[0], []
            for layer in range(layers):
                x, cell = _cell(ops, gates[8 * layer : 8 * layer + 8], x, *states[layer])
                after.append((x, cell))
            return after, _score(ops, x * ends[1] + ends[2], gold)

        zero = 0.0 * text[0]
        _, scores = jax.lax.scan(one, [(zero, zero)] * layers, (text[:-1], text[1:]))
        return -scores.sum() / text[1:].size

    return loss


def _text(width: int, characters: int) -> Array:
    """A bit for each kind of character."""
    chosen = np.random.default_rng(3).integers(0, width, characters)
    return np.eye(width)[chosen]
