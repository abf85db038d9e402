"""Sums in blocks: the summation tree, agreement with the whole batch, and reproducible bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from engine import BatchSum, Compiler, DeadlineExceeded, Limits, compile_sum
from engine.compiler.compiler import CompileRequest
from engine.runtime.sum_runs import SumTree, finish_sum, run_blocks
from tests.contract.cases import EXECUTOR
from tests.engine.autodiff.calls.asking import Array, Net
from tests.engine.looping import Ticking

RNG = np.random.default_rng(5)


def pairwise_sum(leaves: Sequence[Array]) -> Array:
    """Add neighbours level by level; an odd leaf moves up unchanged."""
    while len(leaves) > 1:
        pairs = [a + b for a, b in zip(leaves[::2], leaves[1::2], strict=False)]
        leaves = pairs + ([leaves[-1]] if len(leaves) % 2 else [])
    return leaves[0]


def tree_sum(leaves: Sequence[Array]) -> Array:
    accumulator = SumTree(np)
    for leaf in leaves:
        accumulator.add([leaf])
    return accumulator.total()[0]


@pytest.mark.parametrize("count", [*range(1, 20), 100])
def test_sum_tree_adds_neighbours_level_by_level(count: int) -> None:
    leaves = list(RNG.standard_normal((count, 50)).astype("float32") * 10.0 ** RNG.integers(-6, 6, (count, 1)))
    assert tree_sum(leaves).tobytes() == pairwise_sum(leaves).tobytes()


@pytest.mark.parametrize("count", [5, 16, 23])
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_neighbouring_blocks_are_subtrees(count: int, size: int) -> None:
    leaves = list(RNG.standard_normal((count, 50)).astype("float32"))
    parts = [tree_sum(leaves[i : i + size]) for i in range(0, count, size)]
    assert tree_sum(parts).tobytes() == tree_sum(leaves).tobytes()


def network(examples: int) -> tuple[Net, list[int]]:
    """Σ (tanh(x w₁) w₂ − y)², where x and y are mapped."""
    net, rng = Net(), np.random.default_rng(1)
    x, y = net.leaf(rng.standard_normal((examples, 6)), "input"), net.leaf(rng.standard_normal((examples, 3)), "input")
    w1, w2 = net.leaf(rng.standard_normal((6, 5))), net.leaf(rng.standard_normal((5, 3)))
    hidden = net.add("tanh", net.add("matmul", x, w1))
    net.add("sum", net.add("square", net.add("sub", net.add("matmul", hidden, w2), y)))
    return net, [x, y]


def numpy_reference(net: Net) -> list[Array]:
    """Return value and gradients of the network's sum, in NumPy."""
    x, y, w1, w2 = (net.feeds[i] for i in range(4))
    h = np.tanh(x @ w1)
    r = h @ w2 - y
    return [np.sum(r**2), x.T @ ((2 * r @ w2.T) * (1 - h**2)), h.T @ (2 * r)]


@pytest.mark.parametrize("block", [1, 7, 32, 100, 1000, None])
@pytest.mark.parametrize("is_mean", [False, True])
def test_blocks_match_the_whole_batch(block: int | None, is_mean: bool) -> None:
    net, mapped = network(100)
    call = BatchSum.over_program(net.program, net.types, mapped, is_mean=is_mean, block=block)
    compiled = compile_sum(Compiler(Limits()), CompileRequest(net.program, net.types, call, Limits()))
    sums = run_blocks(EXECUTOR, compiled, call, net.feeds, range(compiled.blocks.count))
    for actual, expected in zip(finish_sum(call, sums), numpy_reference(net), strict=True):
        np.testing.assert_allclose(actual, expected / (100 if is_mean else 1), 1e-12)


def test_bits_do_not_depend_on_the_grouping_of_blocks() -> None:
    net, mapped = network(100)
    call = BatchSum.over_program(net.program, net.types, mapped, block=8)
    compiled = compile_sum(Compiler(Limits()), CompileRequest(net.program, net.types, call, Limits()))
    whole = run_blocks(EXECUTOR, compiled, call, net.feeds, range(13))
    for size in (1, 2, 4):
        parts = SumTree(np)
        for first in range(0, 13, size):
            parts.add(run_blocks(EXECUTOR, compiled, call, net.feeds, range(first, min(first + size, 13))))
        assert [a.tobytes() for a in parts.total()] == [a.tobytes() for a in whole]


def test_mean_of_an_empty_batch_is_nan() -> None:
    net, mapped = network(0)
    call = BatchSum.over_program(net.program, net.types, mapped, is_mean=True)
    compiled = compile_sum(Compiler(Limits()), CompileRequest(net.program, net.types, call, Limits()))
    sums = run_blocks(EXECUTOR, compiled, call, net.feeds, range(1))
    assert sums[0] == 0.0
    assert all(np.isnan(a).all() for a in finish_sum(call, sums))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_mean_preserves_its_dtype_and_is_rounded_once(dtype: str) -> None:
    net = Net()
    x = net.leaf(np.ones((3, 2), dtype), "input")
    net.add("mul", x, net.leaf(np.asarray([1.0, 5.0], dtype)))
    call = BatchSum.over_program(net.program, net.types, [x], net.last, None, [net.last], is_mean=True)
    actual = finish_sum(call, [np.asarray([10.0, 5.0], dtype)])[0]
    assert actual.dtype == dtype
    np.testing.assert_array_equal(actual, (np.array([10.0, 5.0]) / 3).astype(dtype))


def test_deadline_covers_all_blocks() -> None:
    net, mapped = network(100)
    call = BatchSum.over_program(net.program, net.types, mapped, block=4)
    compiled = compile_sum(Compiler(Limits()), CompileRequest(net.program, net.types, call, Limits()))
    run_blocks(EXECUTOR, compiled, call, net.feeds, range(25))
    unlimited = Ticking(1 << 30)
    run_blocks(EXECUTOR, compiled, call, net.feeds, range(1), unlimited)
    looks = (1 << 30) - unlimited.left
    with pytest.raises(DeadlineExceeded):
        run_blocks(EXECUTOR, compiled, call, net.feeds, range(25), Ticking(10 * looks))
