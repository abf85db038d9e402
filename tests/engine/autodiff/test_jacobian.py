"""Jacobians against closed forms: by rows and by columns, in chunks of any size, and without a path."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from engine import Builder, EngineError, Limits, TensorType, Value, open_executor, registry
from engine.autodiff.jacobian import jacobian, jacobian_rows
from engine.autodiff.vmap import vmap_onto
from engine.compiler.plan import make_plan
from engine.ir.passes import optimise

Array = np.ndarray[Any, Any]
EXECUTOR = open_executor("cpu")
RNG = np.random.default_rng(0)


def run(builder: Builder, outputs: list[Value], *arrays: Array) -> list[Array]:
    plan = make_plan(optimise(builder.graph(outputs)), Limits())
    feeds: dict[Any, Array] = dict(enumerate(arrays))
    return EXECUTOR.run(plan, {key: feeds[key] for key in plan.feeds})


def leaves(builder: Builder, *arrays: Array) -> list[Value]:
    return [builder.leaf(TensorType.of(a), i) for i, a in enumerate(arrays)]


@pytest.mark.parametrize("chunk_bytes", [0, 300, 1000, 2**30])
@pytest.mark.parametrize("width", [1, 2, 3, 5], ids=lambda width: f"{2 * width} results of 6 numbers")
def test_jacobian_matches_the_closed_form(width: int, chunk_bytes: int) -> None:
    """Σₖ sin(xᵢₖ) bₖⱼ has the Jacobians δᵢₐ cos(xₐₖ) bₖⱼ wrt x, and δⱼₑ sin(xᵢₖ) wrt b."""
    x, b = RNG.normal(size=(2, 3)), RNG.normal(size=(3, width))
    builder = Builder(registry())
    xs, bs, other = leaves(builder, x, b, x)
    y = xs.sin() @ bs
    jacobian_x, unread_x = jacobian(builder, y, [xs, other], chunk_bytes)
    jacobian_b, unread_b = jacobian_rows(builder, y, [bs, other], chunk_bytes)
    assert unread_x is None
    assert unread_b is None
    assert jacobian_x is not None
    assert jacobian_b is not None
    blocks = run(builder, [jacobian_x, jacobian_b], x, b)
    np.testing.assert_allclose(blocks[0], np.einsum("ia,ak,kj->ijak", np.eye(2), np.cos(x), b), 1e-12, 1e-14)
    np.testing.assert_allclose(blocks[1], np.einsum("je,ik->ijke", np.eye(width), np.sin(x)), 1e-12, 1e-14)


@pytest.mark.parametrize(
    ("chunk_bytes", "pieces"), [(0, [1, 1, 1]), (95, [1, 1, 1]), (96, [2, 1]), (143, [2, 1]), (144, [3])]
)
def test_chunk_size_follows_the_memory_limit(chunk_bytes: int, pieces: list[int]) -> None:
    """Three scaled numbers: a unit vector and its product take 24 bytes each."""
    builder = Builder(registry())
    (x,) = leaves(builder, np.ones(3))
    (block,) = jacobian(builder, x * 2.5, [x], chunk_bytes)
    assert [node.type.shape for node in builder.nodes if node.op.name == "one_hot"] == [(n, 3) for n in pieces]
    assert block is not None
    np.testing.assert_array_equal(run(builder, [block], np.ones(3))[0], 2.5 * np.eye(3))


@pytest.mark.parametrize(("chunk_bytes", "pieces"), [(143, [1, 1, 1]), (144, [2, 1]), (215, [2, 1]), (216, [3])])
def test_chunk_size_counts_memory_freed_after_the_last_read(chunk_bytes: int, pieces: list[int]) -> None:
    """Three functions of three numbers: a unit vector, an operand and a result take 24 bytes each."""
    builder = Builder(registry())
    (x,) = leaves(builder, np.ones(3))
    jacobian(builder, x.sin().sin().sin(), [x], chunk_bytes)
    assert [node.type.shape for node in builder.nodes if node.op.name == "one_hot"] == [(n, 3) for n in pieces]


@pytest.mark.parametrize("rows", [1, 3])
def test_block_has_the_dtype_of_its_wrt_node(rows: int) -> None:
    """Swept by rows, or by columns if there are more results than inputs."""
    x, scale = np.ones(2, "float32"), RNG.normal(size=(rows, 2))
    builder = Builder(registry())
    xs, scales = leaves(builder, x, scale)
    (value,) = jacobian(builder, xs * scales, [xs], 2**20)
    assert value is not None
    (block,) = run(builder, [value], x, scale)
    assert block.dtype == np.float32
    np.testing.assert_array_equal(block, (scale[..., None] * np.eye(2)).astype("float32"))


def test_square_jacobian_is_swept_by_rows() -> None:
    """A sweep by rows covers all operands; by columns, each operand has its own."""
    for more, sweeps in ((0, 1), (1, 2)):
        builder = Builder(registry())
        x, b, others = leaves(builder, np.ones(2), np.ones(3), np.ones(more))
        blocks = jacobian(builder, x.cat(b, others, axis=0).sin(), [x, b], 2**20)
        assert [None if block is None else block.shape for block in blocks] == [(5 + more, 2), (5 + more, 3)]
        assert [node.op.name for node in builder.nodes].count("one_hot") == sweeps


def test_jacobian_over_the_limit_is_refused_before_it_is_built() -> None:
    for limit, fits in ((800, True), (799, False)):
        builder = Builder(registry(), Limits(bytes=limit))
        (x,) = leaves(builder, np.ones(10))
        with nullcontext() if fits else pytest.raises(EngineError, match="800"):
            jacobian(builder, x, [x], 1)
        assert fits == ("one_hot" in {node.op.name for node in builder.nodes})


def test_more_rows_than_floats_can_count_are_refused() -> None:
    for size, fits in ((2**53, True), (2**53 + 1, False)):
        builder = Builder(registry(), Limits(bytes=2**200, flops=2**200))
        x = builder.leaf(TensorType((size,), np.dtype("float64")), 0)
        with nullcontext() if fits else pytest.raises(EngineError, match=f"at most 2\\^53 .* {size}"):
            jacobian(builder, x, [x], 2**200)


@pytest.mark.parametrize(("shape", "width"), [((0, 3), 2), ((2, 3), 0)], ids=str)
def test_empty_jacobian(shape: tuple[int, ...], width: int) -> None:
    builder = Builder(registry())
    x, b = leaves(builder, np.ones(shape), np.ones((3, width)))
    for block in (*jacobian(builder, x @ b, [x], 100), *jacobian(builder, (x @ b).sum(), [x], 100)):
        assert block is not None
        assert block.shape in ((shape[0], width, *shape), shape)
        assert run(builder, [block], np.ones(shape), np.ones((3, width)))[0].shape == block.shape


def test_node_on_many_paths_is_visited_once() -> None:
    builder = Builder(registry())
    (x,) = leaves(builder, np.ones(2))
    y = x
    for _ in range(50):
        y = y + y
    (block,) = jacobian(builder, y, [x], 2**20)
    assert block is not None
    np.testing.assert_array_equal(run(builder, [block], np.ones(2))[0], 2.0**50 * np.eye(2))


def test_vmap_reuses_values_that_are_not_mapped() -> None:
    builder = Builder(registry())
    x, b = leaves(builder, np.ones(3), np.ones(3))
    unmapped = b.exp()
    many = builder.leaf(TensorType((4, 3), x.dtype), 2)
    before = len(builder.nodes)
    both, alone, itself = vmap_onto(builder, [x * unmapped, unmapped, x], {x: many}, 4)
    assert [node.op.name for node in builder.nodes[before:]].count("exp") == 0
    rows, given = RNG.normal(size=(4, 3)), np.arange(3.0)
    results = run(builder, [both, alone, itself], given, given, rows)
    np.testing.assert_array_equal(results[0], rows * np.exp(given))
    np.testing.assert_array_equal(results[1], np.tile(np.exp(given), (4, 1)))
    np.testing.assert_array_equal(results[2], rows)
