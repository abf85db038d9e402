"""Every op that Python makes in a body: a loop that is left for it gives the bits that it gives step by step.

Where nothing beside it is compiled, these are the interpreter's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from engine import Limits, registry
from engine.codegen.native.native_call import IS_SUPPORTED
from tests.contract.cases import Case
from tests.engine.looping import EXECUTOR, Writer, Written, same, written
from tests.engine.runtime.leaving import Bound, compiled

pytest.importorskip("llvmlite")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not IS_SUPPORTED, reason="no runner for this machine")]

Array = np.ndarray[Any, Any]
STEPS = 3


def results(g: Writer, case: Case, operands: Sequence[int]) -> list[int]:
    y = getattr(g, case.op.name)(*operands, **case.attrs)
    return [g.get_output(y, index=k) for k in range(len(case.result_types()))] if case.op.several else [y]


def drawn(case: Case, *shape: int) -> list[Array]:
    """Operands of so many steps, along leading axes."""
    salts = range(int(np.prod(shape)))
    each = [np.stack(column) for column in zip(*[case.arrays(salt=salt) for salt in salts], strict=True)]
    return [x.reshape(*shape, *x.shape[1:]) for x in each]


def by_entries(case: Case, *, reverse: bool = False) -> Written:
    """All operands are entries of sequences."""
    arrays = drawn(case, STEPS)

    def body(g: Writer, *x: int) -> list[int]:
        return results(g, case, x)

    return written(
        lambda g, *x: g.scan(*x, body=body, sequences=len(x), reverse=reverse), *arrays, floats=(), limits=LIMITS
    )


def backwards(case: Case) -> Written:
    return by_entries(case, reverse=True)


def by_carries(case: Case) -> Written:
    """All operands are carries, which the next entries follow; entries are carried over one step."""
    arrays = drawn(case, STEPS)

    def body(g: Writer, *given: int) -> list[int]:
        carries, entries = given[: len(arrays)], given[len(arrays) :]
        return [*entries, *results(g, case, carries)]

    return written(
        lambda g, *x: g.scan(*x, body=body, carries=len(arrays), sequences=len(arrays)),
        *(x[-1] for x in arrays),
        *arrays,
        floats=(),
        limits=LIMITS,
    )


def by_consts(case: Case) -> Written:
    """The first operand is an entry, the others are consts."""
    first, *others = drawn(case, STEPS)
    return written(
        lambda g, *x: g.scan(*x, body=lambda g, *x: results(g, case, [x[-1], *x[:-1]]), sequences=1),
        *(x[0] for x in others),
        first,
        floats=(),
        limits=LIMITS,
    )


def in_a_while(case: Case) -> Written:
    """Operands that change places with others, and results that are carries."""
    arrays = drawn(case, 2)
    count, types = len(arrays), case.result_types()

    def body(g: Writer, *given: int) -> list[int]:
        here, there, i = given[:count], given[count : 2 * count], given[2 * count]
        return [*there, *here, g.add(i, g.number(1.0)), *results(g, case, here)]

    def condition(g: Writer, *given: int) -> list[int]:
        return [g.less(given[2 * count], g.number(STEPS - 0.5))]

    first = [
        *(x[0] for x in arrays),
        *(x[1] for x in arrays),
        np.float64(0),
        *(np.zeros(t.shape, t.dtype) for t in types),
    ]
    return written(
        lambda g, *x: g.while_(*x, condition=condition, body=body, carries=len(x), max_steps=10 * STEPS),
        *first,
        floats=(),
        limits=LIMITS,
    )


def nested(case: Case) -> Written:
    """Entries of entries, and in the step between, a stack that is read from its end."""
    arrays = drawn(case, 2, STEPS)

    def inner(g: Writer, *x: int) -> list[int]:
        return results(g, case, x)

    def outer(g: Writer, *x: int) -> list[int]:
        return list(g.scan(*x, body=inner, sequences=len(x), reverse=True))

    return written(lambda g, *x: g.scan(*x, body=outer, sequences=len(x)), *arrays, floats=(), limits=LIMITS)


LIMITS = Limits(flops=1 << 60)
WAYS: Mapping[str, Callable[[Case], Written]] = {
    "entries": by_entries,
    "backwards": backwards,
    "carries": by_carries,
    "consts": by_consts,
    "while": in_a_while,
    "nested": nested,
}


@cache
def pythons() -> list[tuple[Case, int]]:
    """Of each op of which Python makes a step, the first sample with elements where it does; and how many steps."""
    found = list[tuple[Case, int]]()
    for op in registry().ops.values():
        cases = [Case(op, k) for k in range(len(getattr(op, "samples", ())))]
        for case in cases:
            arrays = case.arrays()
            if arrays and all(x.size for x in arrays) and (paused := Bound(compiled(by_entries(case))).paused):
                found.append((case, paused))
                break
    return found


def test_there_are_such_ops() -> None:
    names = {case.op.name for case, _ in pythons()}
    assert {"log_ndtr", "segment_sum", "sort"} <= names
    assert not {"mul", "sin", "tanh"} & names


@pytest.mark.parametrize("way", WAYS)
def test_bits_and_calls_are_those_of_its_steps(way: str) -> None:
    steps = STEPS * (2 if way == "nested" else 1)
    for case, paused in pythons():
        asked = WAYS[way](case)
        plan = compiled(asked)
        left, stepped = Bound(plan), Bound(plan, step_by_step=True)
        wanted = stepped.run(asked)
        fed = {feed: asked.feeds[feed] for feed in plan.feeds}
        same(wanted, EXECUTOR.interpret(plan, fed), 1e-12 if left.binder.has_kernels else 0, str(case))
        for _ in range(2):
            same(left.run(asked), wanted, 0, str(case))
        # what an op computes of consts alone is made before the loop
        assert left.paused <= paused if way == "consts" else left.paused == paused, str(case)
        assert (left.made, stepped.made) == (2 * steps * left.paused, 0), str(case)
