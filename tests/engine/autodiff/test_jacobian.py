"""Whole Jacobians against closed forms: by rows and by columns, in pieces of any size, and where there is no path."""

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
def test_a_jacobian_is_the_closed_form(width: int, chunk_bytes: int) -> None:
    """Of Σₖ sin(xᵢₖ) bₖⱼ by x, δᵢₐ cos(xₐₖ) bₖⱼ; and by b, δⱼₑ sin(xᵢₖ)."""
    x, b = RNG.normal(size=(2, 3)), RNG.normal(size=(3, width))
    builder = Builder(registry())
    xs, bs, other = leaves(builder, x, b, x)
    y = xs.sin() @ bs
    by_x, nothing = jacobian(builder, y, [xs, other], chunk_bytes)
    by_b, nothing_either = jacobian_rows(builder, y, [bs, other], chunk_bytes)
    assert nothing is None
    assert nothing_either is None
    assert by_x is not None
    assert by_b is not None
    found = run(builder, [by_x, by_b], x, b)
    np.testing.assert_allclose(found[0], np.einsum("ia,ak,kj->ijak", np.eye(2), np.cos(x), b), 1e-12, 1e-14)
    np.testing.assert_allclose(found[1], np.einsum("je,ik->ijke", np.eye(width), np.sin(x)), 1e-12, 1e-14)


@pytest.mark.parametrize(
    ("chunk_bytes", "pieces"), [(0, [1, 1, 1]), (95, [1, 1, 1]), (96, [2, 1]), (143, [2, 1]), (144, [3])]
)
def test_a_piece_holds_what_there_is_room_for(chunk_bytes: int, pieces: list[int]) -> None:
    """Three numbers, scaled: a unit vector and its product take 24 bytes each."""
    builder = Builder(registry())
    (x,) = leaves(builder, np.ones(3))
    (found,) = jacobian(builder, x * 2.5, [x], chunk_bytes)
    assert [node.type.shape for node in builder.nodes if node.op.name == "one_hot"] == [(n, 3) for n in pieces]
    assert found is not None
    np.testing.assert_array_equal(run(builder, [found], np.ones(3))[0], 2.5 * np.eye(3))


@pytest.mark.parametrize(("chunk_bytes", "pieces"), [(143, [1, 1, 1]), (144, [2, 1]), (215, [2, 1]), (216, [3])])
def test_what_was_read_for_the_last_time_makes_room(chunk_bytes: int, pieces: list[int]) -> None:
    """Three numbers through three functions: a unit vector, what is read and what is written, 24 bytes each."""
    builder = Builder(registry())
    (x,) = leaves(builder, np.ones(3))
    jacobian(builder, x.sin().sin().sin(), [x], chunk_bytes)
    assert [node.type.shape for node in builder.nodes if node.op.name == "one_hot"] == [(n, 3) for n in pieces]


@pytest.mark.parametrize("rows", [1, 3])
def test_a_block_has_the_dtype_of_what_it_is_by(rows: int) -> None:
    """Swept by rows, and, where there are more results than numbers, by columns."""
    x, scale = np.ones(2, "float32"), RNG.normal(size=(rows, 2))
    builder = Builder(registry())
    xs, scales = leaves(builder, x, scale)
    (found,) = jacobian(builder, xs * scales, [xs], 2**20)
    assert found is not None
    (block,) = run(builder, [found], x, scale)
    assert block.dtype == np.float32
    np.testing.assert_array_equal(block, (scale[..., None] * np.eye(2)).astype("float32"))


def test_as_many_results_as_numbers_are_swept_by_rows() -> None:
    """One sweep is for all operands then; by columns, each has its own."""
    for more, sweeps in ((0, 1), (1, 2)):
        builder = Builder(registry())
        x, b, others = leaves(builder, np.ones(2), np.ones(3), np.ones(more))
        found = jacobian(builder, x.cat(b, others, axis=0).sin(), [x, b], 2**20)
        assert [None if f is None else f.shape for f in found] == [(5 + more, 2), (5 + more, 3)]
        assert [node.op.name for node in builder.nodes].count("one_hot") == sweeps


def test_a_jacobian_beyond_the_limit_is_refused_before_it_is_written() -> None:
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
def test_a_jacobian_without_entries(shape: tuple[int, ...], width: int) -> None:
    builder = Builder(registry())
    x, b = leaves(builder, np.ones(shape), np.ones((3, width)))
    for found in (*jacobian(builder, x @ b, [x], 100), *jacobian(builder, (x @ b).sum(), [x], 100)):
        assert found is not None
        assert found.shape in ((shape[0], width, *shape), shape)
        assert run(builder, [found], np.ones(shape), np.ones((3, width)))[0].shape == found.shape


def test_what_leads_to_a_result_on_many_ways_is_visited_once() -> None:
    builder = Builder(registry())
    (x,) = leaves(builder, np.ones(2))
    y = x
    for _ in range(50):
        y = y + y
    (found,) = jacobian(builder, y, [x], 2**20)
    assert found is not None
    np.testing.assert_array_equal(run(builder, [found], np.ones(2))[0], 2.0**50 * np.eye(2))


def test_what_does_not_depend_on_a_mapped_value_is_used_as_it_is() -> None:
    builder = Builder(registry())
    x, b = leaves(builder, np.ones(3), np.ones(3))
    apart = b.exp()
    many = builder.leaf(TensorType((4, 3), x.dtype), 2)
    before = len(builder.nodes)
    both, alone, itself = vmap_onto(builder, [x * apart, apart, x], {x: many}, 4)
    assert [node.op.name for node in builder.nodes[before:]].count("exp") == 0
    rows, given = RNG.normal(size=(4, 3)), np.arange(3.0)
    found = run(builder, [both, alone, itself], given, given, rows)
    np.testing.assert_array_equal(found[0], rows * np.exp(given))
    np.testing.assert_array_equal(found[1], np.tile(np.exp(given), (4, 1)))
    np.testing.assert_array_equal(found[2], rows)
