"""Several values as one node."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, TensorType
from engine.autodiff.vjp import vjp
from engine.autodiff.vmap import vmap
from engine.ir.run_context import NO_LIMITS, RunContext
from engine.ops import registry
from engine.ops.common.batching import PACK, pack

VECTOR, MATRIX = TensorType((3,), np.dtype("float64")), TensorType((2, 3), np.dtype("float32"))


@pytest.fixture
def builder() -> Builder:
    return Builder(registry(), NO_LIMITS)


def test_output_of_pack_is_the_packed_value(builder: Builder) -> None:
    values = [builder.leaf(VECTOR, 0), builder.leaf(MATRIX, 1)]
    both = pack(builder, values)
    assert both.node.types == (VECTOR, MATRIX)
    assert [both.output(k).index for k in (0, 1)] == [value.index for value in values]


def test_vjp_passes_cotangents_to_operands(builder: Builder) -> None:
    x, y = builder.leaf(VECTOR, 0), builder.leaf(VECTOR, 1)
    both = builder.emit(PACK, [x, y], {})
    g = builder.leaf(VECTOR, 2)
    assert PACK.vjp((None, g), both, x, y) == (None, g)
    second = both.output(1).identity()
    assert [None if gradient is None else gradient.index for gradient in vjp(builder, [(second, g)], [x, y])] == [
        None,
        g.index,
    ]


def test_batch_gives_every_output_the_batch_axis(builder: Builder) -> None:
    x, y = builder.leaf(VECTOR, "x"), builder.leaf(VECTOR, "y")
    both = pack(builder, [x, y])
    batched = vmap(builder.graph([both.output(0).identity(), both.output(1).identity()]), {"x"}, 5)
    assert [batched.nodes[i].type.shape for i in batched.outputs] == [(5, 3), (5, 3)]
    alone = PACK.batch([True], builder.leaf(TensorType((5, 3), VECTOR.dtype), "alone"))
    assert [type.shape for type in alone.node.types] == [(5, 3)]
    both = PACK.batch([True, False], builder.leaf(TensorType((5, 3), VECTOR.dtype), "many"), y)
    assert [type.shape for type in both.node.types] == [(5, 3), (5, 3)]


def test_forward_copies() -> None:
    arrays = [np.arange(3.0), np.ones((2, 3))]
    out = [np.empty_like(array) for array in arrays]
    PACK.forward(RunContext(np), *arrays, out=out)
    assert all(np.array_equal(a, b) and not np.shares_memory(a, b) for a, b in zip(arrays, out, strict=True))
