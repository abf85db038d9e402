"""Places in memory, chunk by chunk, are those that indexing picks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.ir.tensor_type import Strided, TensorType
from engine.ops.index import gather as flat_places
from engine.ops.index.gather import element_steps, has_forward_strides, index_chunk_bytes, index_chunks, memory_view
from tests.engine.ops.values import allocated

X = np.random.default_rng(3).normal(size=(4, 6, 5))
LAYOUTS: dict[str, Any] = {
    "dense": X, "transposed": X.transpose(2, 0, 1), "every second": np.repeat(X, 2, axis=1)[:, ::2],
    "broadcast": np.broadcast_to(X[:1], X.shape), "one": X[:1, :1, :1], "a corner": X[1:, 2:, 1:],
}  # fmt: skip


@pytest.mark.parametrize("chunk", [1, 7, 1 << 16])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("lies", LAYOUTS)
def test_picking_by_places_is_take_along_axis(
    lies: str, axis: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flat_places, "CHUNK_ELEMENTS", chunk)
    x = LAYOUTS[lies]
    index = np.random.default_rng(4).integers(0, x.shape[axis], x.shape)
    out, seen = np.full(x.shape, np.nan), 0
    memory = memory_view(x)
    assert memory is not None
    for where, first, places in index_chunks(index, element_steps(x), axis):
        assert (places.dtype, places.min() >= 0) == ("int64", True)
        out[where] = memory[first:][places]
        seen += places.size
    assert seen == index.size
    np.testing.assert_array_equal(out, np.take_along_axis(x, index, axis))


def test_a_vector_that_is_small_is_one_chunk() -> None:
    (found,) = index_chunks(np.array([3, 0, 4], "uint8"), (2,), 0)
    assert (found.where, found.first, found.offsets.tolist()) == ((slice(0, 3),), 0, [6, 0, 8])


def test_what_runs_backwards_or_is_empty_has_no_memory_to_walk() -> None:
    for x in (X[::-1], X[:0], X[:, :, ::-2]):
        assert memory_view(x) is None
        assert not has_forward_strides(Strided(TensorType.of(x), x.strides))
    assert has_forward_strides(TensorType.of(X))


def test_what_a_chunk_takes() -> None:
    most = index_chunk_bytes(TensorType((1 << 30,), np.dtype("int64")))
    assert index_chunk_bytes(TensorType((3,), np.dtype("uint8"))) == 48
    assert most == 16 * flat_places.CHUNK_ELEMENTS


@pytest.mark.parametrize("shape", [(2, 8000), (8000, 2), (40, 3000), (100_000,)], ids=str)
def test_chunks_take_no_more_than_is_said(shape: tuple[int, ...]) -> None:
    index = np.zeros(shape, "int64")
    steps = element_steps(index)
    most = index_chunk_bytes(TensorType.of(index))
    assert allocated(lambda: [found.first for found in index_chunks(index, steps, 0)]) <= 1.5 * most + 20_000
