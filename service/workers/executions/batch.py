"""Execution of the batch call."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from engine import Batch, BatchSum, Call, CompiledSum, Deadline, HostArray, NonfiniteWatch, Plan, compile_sum
from engine.analysis.diagnose import Nonfinite
from engine.compiler.fused_kernel import run_seconds
from engine.ir.run_report import RunReport
from engine.runtime.sum_runs import finish_sum, run_blocks
from service.api.calls.batch import BatchCall
from service.core.errors import Refusal
from service.workers.executions.computing import (
    CallArguments,
    CallOutcome,
    Computation,
    Computing,
    Prepared,
    check_answer,
)
from service.workers.executions.execution import CachedRequest, Engine
from service.workers.task import Estimate


class AddedUp(NamedTuple):
    """Sums over all blocks, computed in pieces: number of pieces and of repeated ones, their time, and their report."""

    sums: Sequence[HostArray]
    pieces: int
    repeated: int
    seconds: float
    report: RunReport


@dataclass(frozen=True)
class PreparedSum(Prepared):
    """Sum over examples with the plans of its blocks; `compiled` is the plan of the largest block.

    If its sums are `added_up` already, nothing has to be run.
    """

    call: BatchSum
    parts: CompiledSum
    added_up: AddedUp | None = None

    @property
    def recomputed_flops(self) -> int:
        """FLOPs that are computed again, in all blocks."""
        return self.parts.recomputed_flops


class BatchExecution(Computing):
    """Execution of the batch call: one graph on many examples."""

    description = BatchCall

    def call(self, arguments: CallArguments) -> Call:
        """Return the values and gradients along N, or of the sum."""
        mapped, reduce, block = arguments.get("mapped", "reduce", "block")
        is_reduced = reduce not in (None, "none")
        if block is not None and (block < 1 or not is_reduced):
            expected = "at least 1" if is_reduced else "absent unless reduce is sum or mean"
            detail = f"block must be {expected}, but is {block}"
            raise Refusal("invalid_field", detail, expected=expected, got=str(block), pointer="/block")
        program, types, mapped = arguments.program, arguments.types, mapped or ()
        rest = arguments.get("of", "wrt", "outputs")
        if not is_reduced:
            return Batch.of_program(program, types, mapped, *rest)
        return BatchSum.over_program(program, types, mapped, *rest, is_mean=reduce == "mean", block=block)

    def prepare(self, parsed: Computation, engine: Engine, deadline: Deadline) -> Prepared:
        """Compile one plan, or the plans of a sum's blocks."""
        if not isinstance(parsed.call, BatchSum):
            return super().prepare(parsed, engine, deadline)
        parts = compile_sum(engine.compiler, parsed.compile_request(engine, deadline))
        return check_answer(PreparedSum(parsed, parts.full_block, 0, engine.dense_flop, parsed.call, parts), engine)

    def run_call(self, ready: Prepared, engine: Engine, deadline: Deadline) -> CallOutcome:
        """Run the plan; for a sum, add the number of pieces and their time to the statistics."""
        outcome = super().run_call(ready, engine, deadline)
        if not isinstance(ready, PreparedSum):
            return outcome
        if (added := ready.added_up) is None:
            return replace(outcome, stats=replace(outcome.stats, pieces=1))
        stats = replace(
            outcome.stats,
            pieces=added.pieces,
            repeated=added.repeated,
            execute_ms=round(outcome.stats.execute_ms + 1000 * added.seconds, 4),
            report=added.report,
        )
        return replace(outcome, stats=stats)

    def cost(self, ready: Prepared) -> Estimate:
        """Estimate one run; for a sum, all blocks, with memory for the partial sums."""
        once = super().cost(ready)
        if not isinstance(ready, PreparedSum):
            return once
        count, plan = ready.parts.blocks.count, ready.compiled.plan
        # Blocks are added in pairs, so at most one partial sum per level of the tree is held.
        sums = sum(type.nbytes for type in plan.result_types) * count.bit_length()
        seconds = (count - 1) * once.seconds + run_seconds(ready.parts.last_block.plan, ready.dense_flop)
        return once._replace(seconds=seconds, peak_bytes=once.peak_bytes + sums)

    def execute(
        self, ready: Prepared, engine: Engine, deadline: Deadline
    ) -> tuple[Sequence[HostArray], Nonfinite | None]:
        """Run the plan once; for a sum, block by block."""
        if not isinstance(ready, PreparedSum):
            return super().execute(ready, engine, deadline)
        if ready.added_up is not None:
            return finish_sum(ready.call, ready.added_up.sums), None
        parsed, watches = ready.execution, list[NonfiniteWatch]()

        # With `diagnose`, each block is watched separately, and the first finding is reported.
        def watch(plan: Plan, feeds: Mapping[Hashable, HostArray]) -> NonfiniteWatch:
            watches.append(NonfiniteWatch(parsed.program, feeds, plan, engine.executor))
            return watches[-1]

        sums = run_blocks(
            engine.executor,
            ready.parts,
            ready.call,
            parsed.tensors,
            range(ready.parts.blocks.count),
            deadline,
            watch if parsed.diagnose else None,
        )
        nonfinite = (each.first_nonfinite for each in watches if each.first_nonfinite is not None)
        return finish_sum(ready.call, sums), next(nonfinite, None)

    def cache_entry(
        self, ready: Prepared, outcome: CallOutcome, engine: Engine, cost: Estimate
    ) -> CachedRequest | None:
        """Return the cache entry; None for a sum, which has more than one plan."""
        return None if isinstance(ready, PreparedSum) else super().cache_entry(ready, outcome, engine, cost)
