"""Floats carry words and counters as their bits, through every shape, and nothing is lost of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, registry
from engine.oplib.uniform_elements import uniform_elements
from engine.planning.plan import make_plan
from tests.engine.ops.run import EXECUTOR

KEYS = np.array([[0xFFFFFFFF, 0x7F800001], [0, 0x80000000]], "uint32")


def nodes(shape: tuple[int, ...], dtype: str) -> dict[str, list[Any]]:
    """What the nodes of each op give, one keys after the other, seen as integers."""
    builder = Builder(registry())
    keys = builder.leaf(TensorType.of(KEYS), 0)
    uniform_elements(keys, shape, np.dtype(dtype))
    values = [builder.value(i) for i in range(1, len(builder.nodes))]
    arrays = EXECUTOR.run(make_plan(builder.graph(values), Limits()), {0: KEYS})
    found: dict[str, list[Any]] = {}
    for value, array in zip(values, arrays, strict=True):
        found.setdefault(value.node.op.name, []).append(array.view(f"u{array.dtype.itemsize}"))
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_words_are_carried_as_they_are(dtype: str) -> None:
    first, second = nodes((3, 4), dtype)["key_word"]
    assert first.shape == second.shape == (2, 1, 1)
    assert (first.ravel().tolist(), second.ravel().tolist()) == (KEYS[:, 0].tolist(), KEYS[:, 1].tolist())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 4), (2, 3, 4), (4, 1)], ids=str)
def test_counters_add_up_to_the_place_in_memory(shape: tuple[int, ...], dtype: str) -> None:
    row, column = nodes(shape, dtype)["counters"]
    assert np.array_equal(np.broadcast_to(row + column, shape), np.arange(row.size * column.size).reshape(shape))
