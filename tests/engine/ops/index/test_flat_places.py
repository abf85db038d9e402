"""Memory offsets, chunk by chunk, match NumPy's indexing."""

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
def test_offsets_match_take_along_axis(lies: str, axis: int, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_places, "CHUNK_ELEMENTS", chunk)
    x = LAYOUTS[lies]
    index = np.random.default_rng(4).integers(0, x.shape[axis], x.shape)
    out, count = np.full(x.shape, np.nan), 0
    memory = memory_view(x)
    assert memory is not None
    for where, first, offsets in index_chunks(index, element_steps(x), axis):
        assert (offsets.dtype, offsets.min() >= 0) == ("int64", True)
        out[where] = memory[first:][offsets]
        count += offsets.size
    assert count == index.size
    np.testing.assert_array_equal(out, np.take_along_axis(x, index, axis))


def test_small_vector_is_one_chunk() -> None:
    (chunk,) = index_chunks(np.array([3, 0, 4], "uint8"), (2,), 0)
    assert (chunk.where, chunk.first, chunk.offsets.tolist()) == ((slice(0, 3),), 0, [6, 0, 8])


def test_reversed_and_empty_arrays_have_no_memory_view() -> None:
    for x in (X[::-1], X[:0], X[:, :, ::-2]):
        assert memory_view(x) is None
        assert not has_forward_strides(Strided(TensorType.of(x), x.strides))
    assert has_forward_strides(TensorType.of(X))


def test_bytes_of_a_chunk() -> None:
    limit = index_chunk_bytes(TensorType((1 << 30,), np.dtype("int64")))
    assert index_chunk_bytes(TensorType((3,), np.dtype("uint8"))) == 48
    assert limit == 16 * flat_places.CHUNK_ELEMENTS


@pytest.mark.parametrize("shape", [(2, 8000), (8000, 2), (40, 3000), (100_000,)], ids=str)
def test_chunks_stay_within_their_declared_bytes(shape: tuple[int, ...]) -> None:
    index = np.zeros(shape, "int64")
    steps = element_steps(index)
    limit = index_chunk_bytes(TensorType.of(index))
    assert allocated(lambda: [chunk.first for chunk in index_chunks(index, steps, 0)]) <= 1.5 * limit + 20_000
