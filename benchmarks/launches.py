"""How much a card launches for a plan, counted without one: `python3 -m benchmarks.launches W2 W4 W5 N1 N2`."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

from benchmarks.sides import LIMITS, recorded
from benchmarks.suite import find
from benchmarks.workload import Workload
from engine import Compiler, Plan, registry
from engine.executors.cuda_binding import CudaPlans
from engine.executors.cuda_kernels import cuda_loop
from engine.graph.op import View
from engine.oplib.source import Source
from engine.planning.fit import compiled_within
from engine.planning.fused import Fused
from engine.planning.plan import Step, graph_of


def card_plan(work: Workload) -> Plan:
    """The plan that a card runs a workload by, once all of it is compiled."""
    program, types, asked = recorded(work)
    plan = Compiler(LIMITS, splits_sums=CudaPlans.splits_sums).compile(program, types, asked, memory=work.memory).plan
    graph = graph_of(plan, registry())
    found = compiled_within(graph, plan.peak_bytes, CudaPlans.threads, microkernels=CudaPlans.has_microkernels)
    return plan if found is None else found.plan


def launches(plan: Plan) -> Counter[str]:
    """What is launched: kernels of loops by the names that these have, and the other ops.

    An op that CuPy runs counts once, and may be several launches. What only looks at memory, or is there before a run,
    is none.
    """
    found = Counter[str]()
    for step in plan.steps:
        if isinstance(step.op, Fused):
            found.update(f"loops' {kernel}" for kernel in cuda_loop(step.op).kernels)
        elif not _is_none(plan, step):
            found[step.op.name] += 1
    return found


def _is_none(plan: Plan, step: Step) -> bool:
    if step.op.name == "get_output" or (not step.places and isinstance(step.op, View)):
        return True
    return isinstance(step.op, Source) and step.result not in plan.results


def row(name: str, found: Counter[str]) -> str:
    """One line: how many there are in all, and of what."""
    parts = ", ".join(f"{count} {kind}" for kind, count in found.most_common())
    return f"{name:6} {found.total():4} launches: {parts}"


def main(names: Sequence[str] | None = None) -> None:
    """Print a line for each workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="+", help="names of workloads")
    for name in parser.parse_args(names).workloads:
        print(row(name, launches(card_plan(find(name)()))), flush=True)


if __name__ == "__main__":
    main()
