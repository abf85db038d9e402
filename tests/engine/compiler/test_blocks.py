"""How many examples are added up at a time, and the plans of all blocks."""

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
    """Σ tanh(x w)², w of `width` squared; x is mapped."""
    net = Net()
    x, w = net.leaf(np.broadcast_to(0.0, (examples, width)), "input"), net.leaf(np.ones((width, width)))
    net.add("sum", net.add("square", net.add("tanh", net.add("matmul", x, w))))
    return net, [x]


def asked(net: Net, mapped: list[int], block: int | None = None) -> BatchSum:
    return BatchSum.over_program(net.program, net.types, mapped, block=block)


def fits(net: Net, call: BatchSum, examples: int) -> bool:
    """Whether the plan of so many examples, a step a node, is within both of a block's bounds."""
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
def test_blocks_are_cut_from_the_front(examples: int, block: int, rows: list[tuple[int, int]]) -> None:
    blocks = Blocks(examples, block)
    assert [blocks.rows(i) for i in range(blocks.count)] == [slice(*each) for each in rows]
    assert blocks.last == rows[-1][1] - rows[-1][0]


@pytest.mark.parametrize("width", [8, 512])
def test_the_default_is_the_largest_power_of_two_within_both_bounds(width: int) -> None:
    """Narrow layers come to the bytes first, and wide ones to the FLOPs."""
    net, mapped = layer(1 << 20, width)
    call = asked(net, mapped)
    block = example_blocks(CompileRequest(net.program, net.types, call, LIMITS)).block
    assert block.bit_count() == 1
    assert fits(net, call, block)
    assert not fits(net, call, 2 * block)


def test_the_default_is_no_larger_than_it_has_to_be_and_one_at_least() -> None:
    net, mapped = layer(100, 8)
    assert example_blocks(CompileRequest(net.program, net.types, asked(net, mapped), LIMITS)) == Blocks(100, 128)
    tiny = replace(LIMITS, bytes=1000)
    assert example_blocks(CompileRequest(net.program, net.types, asked(net, mapped), tiny)) == Blocks(100, 1)


def test_the_default_is_the_same_for_any_executor() -> None:
    net, mapped = layer(1 << 20, 64)
    call = asked(net, mapped)
    compilers = [Compiler(LIMITS, kernel_threads=threads, splits_sums=threads > 1) for threads in (0, 1, 64)]
    assert len({compile_sum(each, each.request(net.program, net.types, call)).blocks for each in compilers}) == 1


def test_a_memory_budget_makes_smaller_blocks() -> None:
    net, mapped = layer(1 << 12, 64)
    compiler, call = Compiler(LIMITS), asked(net, mapped)
    whole = compile_sum(compiler, compiler.request(net.program, net.types, call))
    less = compile_sum(compiler, compiler.request(net.program, net.types, call, memory=1 << 20))
    assert less.blocks.block < whole.blocks.block
    assert less.full_block.plan.peak_bytes <= 1 << 20


def test_a_block_over_the_budget_is_refused_with_the_one_that_fits() -> None:
    net, mapped = layer(4096, 64)
    compiler = Compiler(replace(LIMITS, bytes=1 << 20))
    with pytest.raises(OverBudget, match=r"in a block of 4096 examples; a block of [0-9]+ is within it") as found:
        compile_sum(compiler, compiler.request(net.program, net.types, asked(net, mapped, 4096)))
    named = int(str(found.value.expected).rpartition(" ")[2])
    assert (
        compile_sum(compiler, compiler.request(net.program, net.types, asked(net, mapped, named))).blocks.count
        == 4096 // named
    )
    with pytest.raises(OverBudget):
        compile_sum(compiler, compiler.request(net.program, net.types, asked(net, mapped, 4 * named)))


def test_where_no_block_fits_none_is_named() -> None:
    net, mapped = layer(8, 64)
    with pytest.raises(OverBudget, match=r"in a block of 1 example$"):
        compile_sum(
            Compiler(replace(LIMITS, bytes=5000)),
            CompileRequest(net.program, net.types, asked(net, mapped), replace(LIMITS, bytes=5000)),
        )


def test_all_blocks_together_are_within_the_flops() -> None:
    net, mapped = layer(4096, 64)
    call = asked(net, mapped, 64)
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
    compiled = compile_sum(Compiler(LIMITS), CompileRequest(net.program, net.types, asked(net, mapped, 64), LIMITS))
    plans = [compiled.plan(i) for i in range(5)]
    assert len({id(plan) for plan in plans}) == 2
    assert [plan.feed_types[0].shape[0] for plan in plans] == [64, 64, 64, 64, 44]
    assert compiled.flops == sum(plan.flops for plan in plans)
