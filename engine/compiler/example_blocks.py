"""Sums over examples in blocks: the block size, and the two plans that serve all blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from engine.autodiff.calls import BatchSum
from engine.compiler.compiler import Compiled, Compiler, CompileRequest, plan_call
from engine.compiler.plan import Plan
from engine.ir.errors import OverBudget, OverMemory, TooManyNodes, counted
from engine.ir.run_context import NO_END

#: maximum peak bytes and FLOPs of a block of default size
BLOCK_BYTES: Final = 64 << 20
BLOCK_FLOPS: Final = 2 * 10**9


@dataclass(frozen=True, slots=True)
class Blocks:
    """N examples in blocks of `block`, of which the last may be smaller. Zero examples make one empty block."""

    examples: int
    block: int

    @property
    def count(self) -> int:
        """Number of blocks."""
        return max(1, -(-self.examples // self.block))

    @property
    def last(self) -> int:
        """Number of examples of the last block."""
        return self.examples - self.block * (self.count - 1)

    def rows(self, index: int) -> slice:
        """Return the slice of examples of a block."""
        return slice(index * self.block, min((index + 1) * self.block, self.examples))


@dataclass(frozen=True, slots=True)
class CompiledSum:
    """Blocks, the plan of a full block, and the plan of the last one, which may have fewer examples."""

    blocks: Blocks
    full_block: Compiled
    last_block: Compiled

    def plan(self, index: int) -> Plan:
        """Return the plan of a block."""
        return (self.last_block if index + 1 == self.blocks.count else self.full_block).plan

    @property
    def flops(self) -> int:
        """Total FLOPs of all blocks."""
        return self.full_block.plan.flops * (self.blocks.count - 1) + self.last_block.plan.flops

    @property
    def recomputed_flops(self) -> int:
        """Total FLOPs of all blocks that are spent on recomputation to save memory."""
        return self.full_block.plan.recomputed_flops * (self.blocks.count - 1) + self.last_block.plan.recomputed_flops


def compile_sum(compiler: Compiler, request: CompileRequest) -> CompiledSum:
    """Plan a `BatchSum` in blocks.

    Raises EngineError: for a block that exceeds the memory, it states the largest power of two that fits. Raises
    OverBudget if all blocks together exceed the FLOPs.
    """
    limited_request, call = replace(request, limits=request.limits.within(request.memory)), _batch_sum(request)
    # The search for the default size plans several blocks, so its outcome is cached.
    size, _ = compiler.block_sizes.get(
        (request.program.digest, frozenset(request.types.items()), call, limited_request.limits.bytes),
        lambda: example_blocks(limited_request).block,
        request.deadline,
    )
    blocks = Blocks(call.size, size)

    def compiled(examples: int) -> Compiled:
        return compiler.compile_request(replace(request, call=call.of_examples(examples)))

    try:
        last = compiled(blocks.last)
        plans = CompiledSum(blocks, compiled(blocks.block) if blocks.count > 1 else last, last)
    except OverMemory as error:
        max_exponent = (size - 1).bit_length() - 1
        fitting = _largest_power(limited_request, max_exponent) if max_exponent >= 0 else None
        raise _over(error, size, fitting) from None
    request.limits.admit_flops(plans.flops)
    return plans


def _batch_sum(request: CompileRequest) -> BatchSum:
    assert isinstance(request.call, BatchSum)
    return request.call


def example_blocks(request: CompileRequest) -> Blocks:
    """Divide a `BatchSum` into blocks of the stated size, or else of the default size.

    The default is the largest power of two whose plan is within BLOCK_BYTES, BLOCK_FLOPS and the limits. To be the same
    on every machine, it refers to the plan without fusion, with all rows of a Jacobian at once. Raises EngineError.
    """
    call, limits = _batch_sum(request), request.limits
    if call.block is not None:
        return Blocks(call.size, max(1, min(call.block, call.size)))
    block_limits = replace(limits, bytes=min(limits.bytes, BLOCK_BYTES), flops=min(limits.flops, BLOCK_FLOPS))
    max_exponent = max(0, call.size - 1).bit_length()
    return Blocks(call.size, _largest_power(replace(request, limits=block_limits, chunks=(NO_END,)), max_exponent) or 1)


def _largest_power(request: CompileRequest, max_exponent: int) -> int | None:
    """Return the largest power of two, up to 2^`max_exponent`, of examples whose plan is within the limits, if any.

    A Jacobian's sweep uses the largest of the request's `chunks` that fits.
    """
    call = _batch_sum(request)

    def fits(exponent: int) -> bool:
        try:
            plan_call(replace(request, call=call.of_examples(1 << exponent), kernel_threads=0))
        # The number of nodes hardly depends on the number of examples, so smaller blocks would not help.
        except TooManyNodes:
            raise
        except OverBudget:
            return False
        return True

    if not fits(0):
        return None
    # Bisect the exponent: 2^low fits, 2^high is too large or out of bounds.
    low, high = 0, max_exponent + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return 1 << low


def _over(error: OverMemory, size: int, fitting: int | None) -> OverMemory:
    """Add to an error that it is about a block of `size` examples, and which block would fit."""
    error.detail = f"{error.detail}, for a block of {counted(size, 'example')}"
    if fitting is not None:
        error.detail += f"; a block of {fitting} fits"
        error.expected = f"a block of at most {fitting}"
        error.got = f"a block of {size}"
    return error
