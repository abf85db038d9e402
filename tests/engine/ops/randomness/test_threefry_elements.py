"""Floats carry words and counters as bits, for every shape, without loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, registry
from engine.compiler.plan import make_plan
from engine.ops.randomness.threefry import MOST_COUNTED, can_count, fold_in_elements, uniform_elements
from tests.engine.ops.run import EXECUTOR

KEYS = np.array([[0xFFFFFFFF, 0x7F800001], [0, 0x80000000]], "uint32")


def node_results(shape: tuple[int, ...], dtype: str) -> dict[str, list[Any]]:
    """The results of each op's nodes, viewed as integers."""
    builder = Builder(registry())
    keys = builder.leaf(TensorType.of(KEYS), 0)
    uniform_elements(keys, shape, np.dtype(dtype))
    values = [builder.value(i) for i in range(1, len(builder.nodes))]
    arrays = EXECUTOR.run(make_plan(builder.graph(values), Limits()), {0: KEYS})
    results: dict[str, list[Any]] = {}
    for value, array in zip(values, arrays, strict=True):
        results.setdefault(value.node.op.name, []).append(array.view(f"u{array.dtype.itemsize}"))
    return results


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_words_are_carried_unchanged(dtype: str) -> None:
    first, second = node_results((3, 4), dtype)["carried_word"]
    assert first.shape == second.shape == (2, 1, 1)
    assert (first.ravel().tolist(), second.ravel().tolist()) == (KEYS[:, 0].tolist(), KEYS[:, 1].tolist())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 4), (2, 3, 4), (4, 1)], ids=str)
def test_counters_sum_to_the_flat_index(shape: tuple[int, ...], dtype: str) -> None:
    row, column = node_results(shape, dtype)["counters"]
    assert np.array_equal(np.broadcast_to(row + column, shape), np.arange(row.size * column.size).reshape(shape))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
def test_integers_are_carried_by_their_lower_words(dtype: str) -> None:
    numbers = np.array([1, 100] if dtype[0] == "u" else [-1, 100], dtype)
    builder = Builder(registry())
    keys, data = builder.leaf(TensorType.of(KEYS), 0), builder.leaf(TensorType.of(numbers), 1)
    counter = fold_in_elements(keys, data).node.operands[0]
    (carried,) = (builder.value(i) for i in builder.nodes[counter].operands[2:3])
    (actual,) = EXECUTOR.run(make_plan(builder.graph([carried]), Limits()), {0: KEYS, 1: numbers})
    assert actual.view("uint32").tolist() == [[int(n) % 2**32] for n in numbers]


def test_can_count() -> None:
    assert [can_count(shape) for shape in [(), (0, 4), (MOST_COUNTED,), (2, MOST_COUNTED)]] == [
        True,
        False,
        True,
        False,
    ]
