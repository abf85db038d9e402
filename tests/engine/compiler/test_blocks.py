"""Block sizes of sums over examples, and the plans of all blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine import BatchSum, Blocks, Compiler, Limits, OverBudget, compile_sum
from engine.compiler.compiler import CompileRequest, plan_call
from engine.compiler.example_blocks import BLOCK_BYTES, BLOCK_FLOPS, example_blocks
from tests.engine.autodiff.calls.asking import Net

LIMITS = Limits()


def layer(examples: int, width: int) -> tuple[Net, list[int]]:
    """Σ tanh(x w)² with a square w of this width; x is mapped."""
    net = Net()
    x, w = net.leaf(np.broadcast_to(0.0, (examples, width)), "input"), net.leaf(np.ones((width, width)))
    net.add("sum", net.add("square", net.add("tanh", net.add("matmul", x, w))))
    return net, [x]


def batch_sum(net: Net, mapped: list[int], block: int | None = None) -> BatchSum:
    return BatchSum.over_program(net.program, net.types, mapped, block=block)


def fits(net: Net, call: BatchSum, examples: int) -> bool:
    """Whether the unfused plan of this many examples is within both bounds of a block."""
    _, plan = plan_call(CompileRequest(net.program, net.types, call.of_examples(examples), LIMITS, kernel_threads=0))
    return plan.peak_bytes <= BLOCK_BYTES and plan.flops <= BLOCK_FLOPS


@pytest.mark.parametrize(
    ("examples", "block", "rows"),
    [
        (10, 4, [(0, 4), (4, 8), (8, 10)]),
        (8, 4, [(0, 4), (4, 8)]),
        (3, 4, [(0, 3)]),
        (0, 4, [(0, 0)]),
    ],
)
def test_blocks_split_rows_from_the_front(examples: int, block: int, rows: list[tuple[int, int]]) -> None:
    blocks = Blocks(examples, block)
    assert [blocks.rows(i) for i in range(blocks.count)] == [slice(*each) for each in rows]
    assert blocks.last == rows[-1][1] - rows[-1][0]


@pytest.mark.parametrize("width", [8, 512])
def test_default_block_is_largest_power_of_two_within_bounds(width: int) -> None:
    """Narrow layers reach the byte bound first, and wide ones the FLOP bound."""
    net, mapped = layer(1 << 20, width)
    call = batch_sum(net, mapped)
    block = example_blocks(CompileRequest(net.program, net.types, call, LIMITS)).block
    assert block.bit_count() == 1
    assert fits(net, call, block)
    assert not fits(net, call, 2 * block)


def test_default_block_is_no_larger_than_needed_and_at_least_one() -> None:
    net, mapped = layer(100, 8)
    assert example_blocks(CompileRequest(net.program, net.types, batch_sum(net, mapped), LIMITS)) == Blocks(100, 128)
    tiny = replace(LIMITS, bytes=1000)
    assert example_blocks(CompileRequest(net.program, net.types, batch_sum(net, mapped), tiny)) == Blocks(100, 1)


def test_default_block_does_not_depend_on_the_executor() -> None:
    net, mapped = layer(1 << 20, 64)
    call = batch_sum(net, mapped)
    compilers = [Compiler(LIMITS, kernel_threads=threads, splits_sums=threads > 1) for threads in (0, 1, 64)]
    assert len({compile_sum(each, each.request(net.program, net.types, call)).blocks for each in compilers}) == 1


def test_memory_budget_reduces_the_block() -> None:
    net, mapped = layer(1 << 12, 64)
    compiler, call = Compiler(LIMITS), batch_sum(net, mapped)
    whole = compile_sum(compiler, compiler.request(net.program, net.types, call))
    less = compile_sum(compiler, compiler.request(net.program, net.types, call, memory=1 << 20))
    assert less.blocks.block < whole.blocks.block
    assert less.full_block.plan.peak_bytes <= 1 << 20


def test_oversized_block_is_refused_with_one_that_fits() -> None:
    net, mapped = layer(4096, 64)
    compiler = Compiler(replace(LIMITS, bytes=1 << 20))
    with pytest.raises(OverBudget, match=r"for a block of 4096 examples; a block of [0-9]+ fits") as caught:
        compile_sum(compiler, compiler.request(net.program, net.types, batch_sum(net, mapped, 4096)))
    suggested = int(str(caught.value.expected).rpartition(" ")[2])
    assert (
        compile_sum(compiler, compiler.request(net.program, net.types, batch_sum(net, mapped, suggested))).blocks.count
        == 4096 // suggested
    )
    with pytest.raises(OverBudget):
        compile_sum(compiler, compiler.request(net.program, net.types, batch_sum(net, mapped, 4 * suggested)))


def test_error_suggests_no_block_if_none_fits() -> None:
    net, mapped = layer(8, 64)
    with pytest.raises(OverBudget, match=r"for a block of 1 example$"):
        compile_sum(
            Compiler(replace(LIMITS, bytes=5000)),
            CompileRequest(net.program, net.types, batch_sum(net, mapped), replace(LIMITS, bytes=5000)),
        )


def test_flop_limit_applies_to_all_blocks_together() -> None:
    net, mapped = layer(4096, 64)
    call = batch_sum(net, mapped, 64)
    needed = compile_sum(Compiler(LIMITS), CompileRequest(net.program, net.types, call, LIMITS)).flops
    compile_sum(
        Compiler(replace(LIMITS, flops=needed)),
        CompileRequest(net.program, net.types, call, replace(LIMITS, flops=needed)),
    )
    with pytest.raises(OverBudget, match=f"this needs {needed} FLOPs"):
        compile_sum(
            Compiler(replace(LIMITS, flops=needed - 1)),
            CompileRequest(net.program, net.types, call, replace(LIMITS, flops=needed - 1)),
        )


def test_two_plans_serve_all_blocks() -> None:
    net, mapped = layer(300, 8)
    compiled = compile_sum(Compiler(LIMITS), CompileRequest(net.program, net.types, batch_sum(net, mapped, 64), LIMITS))
    plans = [compiled.plan(i) for i in range(5)]
    assert len({id(plan) for plan in plans}) == 2
    assert [plan.feed_types[0].shape[0] for plan in plans] == [64, 64, 64, 64, 44]
    assert compiled.flops == sum(plan.flops for plan in plans)
