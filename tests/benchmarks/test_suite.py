"""Every workload can be planned, and every op has a large size."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.problems.equivalents import EQUIVALENTS
from benchmarks.problems.opset import ABSENT, LARGE, names, of_op
from benchmarks.sides import LIMITS, engine_call, recorded
from benchmarks.suite import GROUPS, chosen, find
from benchmarks.workload import Workload
from engine import Compiler, Plan, registry
from tests.sampling import together

PLANNED = ["W1", "W1-0d", "W2", "W4", "W4n", "W5", "gmm", "ba", "hand", "nodes-10", "elements-1000", "batch-8"]


def planned(work: Workload) -> Plan:
    program, types, call = recorded(work)
    return Compiler(LIMITS).compile(program, types, call).plan


@together
@pytest.mark.parametrize("op", names())
def test_every_op_is_planned_at_a_large_size(op: str) -> None:
    work = of_op(op)
    elements = max([a.size for a in work.arrays] + [t.size for t in planned(work).result_types])
    assert elements >= 60_000


def test_tables_name_existing_ops() -> None:
    assert {*LARGE, *EQUIVALENTS, *ABSENT} <= set(registry().ops)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANNED)
def test_workloads_run_and_give_finite_results(name: str) -> None:
    work = find(name)()
    call, settle, _ = engine_call(planned(work), work.arrays, "cpu")
    settle()
    results = call()
    assert all(np.isfinite(a).all() for a in results)
    assert len(results) > len(work.parameters)


def test_names_belong_to_one_group() -> None:
    every = [name for group in GROUPS.values() for name in group]
    assert len(every) == len(set(every))


def test_names_and_groups_can_be_chosen() -> None:
    assert chosen(["W3", "gmm"]) == {"W3": "workloads", "gmm": "adbench"}
    assert set(chosen(["composites"]).values()) == {"composites"}
    with pytest.raises(ValueError, match="no W33"):
        chosen(["W33"])
