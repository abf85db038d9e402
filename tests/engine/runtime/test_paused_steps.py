"""Every op that runs as a Python step of a loop body: native loops give the same bits as loops run step by step.

If nothing else in the loop is compiled, these are the bits of the interpreter.
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


def draw(case: Case, *shape: int) -> list[Array]:
    """Return operands for this many steps, along leading axes."""
    salts = range(int(np.prod(shape)))
    each = [np.stack(column) for column in zip(*[case.arrays(salt=salt) for salt in salts], strict=True)]
    return [x.reshape(*shape, *x.shape[1:]) for x in each]


def by_entries(case: Case, *, reverse: bool = False) -> Written:
    """Pass all operands as entries of sequences."""
    arrays = draw(case, STEPS)

    def body(g: Writer, *x: int) -> list[int]:
        return results(g, case, x)

    return written(
        lambda g, *x: g.scan(*x, body=body, sequences=len(x), reverse=reverse), *arrays, floats=(), limits=LIMITS
    )


def backwards(case: Case) -> Written:
    return by_entries(case, reverse=True)


def by_carries(case: Case) -> Written:
    """Pass all operands as carries, which take the next entries: entries are carried over one step."""
    arrays = draw(case, STEPS)

    def body(g: Writer, *inputs: int) -> list[int]:
        carries, entries = inputs[: len(arrays)], inputs[len(arrays) :]
        return [*entries, *results(g, case, carries)]

    return written(
        lambda g, *x: g.scan(*x, body=body, carries=len(arrays), sequences=len(arrays)),
        *(x[-1] for x in arrays),
        *arrays,
        floats=(),
        limits=LIMITS,
    )


def by_consts(case: Case) -> Written:
    """Pass the first operand as an entry, and the others as consts."""
    first, *others = draw(case, STEPS)
    return written(
        lambda g, *x: g.scan(*x, body=lambda g, *x: results(g, case, [x[-1], *x[:-1]]), sequences=1),
        *(x[0] for x in others),
        first,
        floats=(),
        limits=LIMITS,
    )


def in_a_while(case: Case) -> Written:
    """Swap operands in each step of a while loop, whose results are carries."""
    arrays = draw(case, 2)
    count, types = len(arrays), case.result_types()

    def body(g: Writer, *inputs: int) -> list[int]:
        current, other, i = inputs[:count], inputs[count : 2 * count], inputs[2 * count]
        return [*other, *current, g.add(i, g.number(1.0)), *results(g, case, current)]

    def condition(g: Writer, *inputs: int) -> list[int]:
        return [g.less(inputs[2 * count], g.number(STEPS - 0.5))]

    initial = [
        *(x[0] for x in arrays),
        *(x[1] for x in arrays),
        np.float64(0),
        *(np.zeros(t.shape, t.dtype) for t in types),
    ]
    return written(
        lambda g, *x: g.while_(*x, condition=condition, body=body, carries=len(x), max_steps=10 * STEPS),
        *initial,
        floats=(),
        limits=LIMITS,
    )


def nested(case: Case) -> Written:
    """Pass entries of entries; the inner scan reads a stack in reverse."""
    arrays = draw(case, 2, STEPS)

    def inner(g: Writer, *x: int) -> list[int]:
        return results(g, case, x)

    def outer(g: Writer, *x: int) -> list[int]:
        return list(g.scan(*x, body=inner, sequences=len(x), reverse=True))

    return written(lambda g, *x: g.scan(*x, body=outer, sequences=len(x)), *arrays, floats=(), limits=LIMITS)


LIMITS = Limits(flops=1 << 60)
VARIANTS: Mapping[str, Callable[[Case], Written]] = {
    "entries": by_entries,
    "backwards": backwards,
    "carries": by_carries,
    "consts": by_consts,
    "while": in_a_while,
    "nested": nested,
}


@cache
def python_cases() -> list[tuple[Case, int]]:
    """Return the first non-empty sample of each op that runs as a Python step, and its number of such steps."""
    result = list[tuple[Case, int]]()
    for op in registry().ops.values():
        cases = [Case(op, k) for k in range(len(getattr(op, "samples", ())))]
        for case in cases:
            arrays = case.arrays()
            if arrays and all(x.size for x in arrays) and (paused := Bound(compiled(by_entries(case))).paused):
                result.append((case, paused))
                break
    return result


def test_python_cases_are_as_expected() -> None:
    names = {case.op.name for case, _ in python_cases()}
    assert {"log_ndtr", "segment_sum", "sort"} <= names
    assert not {"mul", "sin", "tanh"} & names


@pytest.mark.parametrize("way", VARIANTS)
def test_bits_and_calls_match_step_by_step(way: str) -> None:
    steps = STEPS * (2 if way == "nested" else 1)
    for case, paused in python_cases():
        asked = VARIANTS[way](case)
        plan = compiled(asked)
        native, stepped = Bound(plan), Bound(plan, step_by_step=True)
        expected = stepped.run(asked)
        feeds = {feed: asked.feeds[feed] for feed in plan.feeds}
        same(expected, EXECUTOR.interpret(plan, feeds), 1e-12 if native.binder.has_kernels else 0, str(case))
        for _ in range(2):
            same(native.run(asked), expected, 0, str(case))
        # values that depend on consts only are computed before the loop
        assert native.paused <= paused if way == "consts" else native.paused == paused, str(case)
        assert (native.made, stepped.made) == (2 * steps * native.paused, 0), str(case)
