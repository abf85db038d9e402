"""When calls on a card are recorded, and what is noted of them; the card is a stand-in that keeps count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine import registry
from engine.compiler.plan import Step
from engine.cuda.prepared_plan import CudaCall, in_segments
from engine.ir.errors import IndexOutOfRange
from engine.ir.graph import Origin
from engine.ops.index.indices import INDEX_ERRORS, check_indices, index_error


class Tape:
    """Records by keeping what it is given."""

    def __init__(self) -> None:
        self.records = False
        self.recorded = 0

    def record(self, make: Callable[[], None]) -> Callable[[], None]:
        self.records = True
        make()
        self.records = False
        self.recorded += 1
        return make


def step_of(name: str) -> Step:
    return Step(registry().ops[name], (), {}, 0, (), (), (), Origin(7, name), 0)


def calls_of(*names: str, said: list[str]) -> list[CudaCall]:
    return [
        CudaCall(k, step, (said.append, (step.op.name,)), step.op.is_captured)
        for k, step in enumerate(map(step_of, names))
    ]


def segments_of(tape: Any, *names: str, said: list[str] | None = None) -> list[Any]:
    return in_segments(calls_of(*names, said=[] if said is None else said), tape, lambda number: None)


def test_what_may_be_recorded_stands_apart_from_what_may_not() -> None:
    tape = Tape()
    segments = segments_of(tape, "exp", "add", "inv", "exp")
    for _ in range(3):
        for segment in segments:
            segment.launch()
    assert [segment.launches for segment in segments] == [1, 0, 1]
    assert tape.recorded == 2


def test_a_first_run_makes_all_ready() -> None:
    said: list[str] = []
    tape = Tape()
    (segment,) = segments_of(tape, "exp", "add", said=said)
    segment.launch()
    assert (said, tape.recorded) == (["exp", "add"], 0)


def test_what_cannot_be_recorded_is_called_between_what_can() -> None:
    said: list[str] = []
    tape = Tape()

    def wait() -> None:
        if tape.records:
            tape.records = False
            raise RuntimeError("no graph holds this")
        said.append("matmul")

    calls = calls_of("exp", "add", "tanh", said=said)
    calls[1:1] = [CudaCall(9, step_of("add"), (wait, ()), is_captured=True)] * 2
    (segment,) = in_segments(calls, tape, lambda number: None)  # type: ignore[arg-type]
    for _ in range(3):
        segment.launch()
    assert (segment.launches, tape.recorded) == (4, 2)
    assert said[-5:] == ["exp", "matmul", "matmul", "add", "tanh"]


def test_an_error_has_its_node() -> None:
    def fail() -> None:
        raise index_error(3, 1)

    (segment,) = in_segments([CudaCall(0, step_of("gather"), (fail, ()), True)], Tape(), lambda number: None)  # type: ignore[arg-type]
    with pytest.raises(IndexOutOfRange) as caught:
        segment.launch()
    assert caught.value.node == 7


def test_a_check_that_is_noted_does_not_raise() -> None:
    noted: list[Any] = []

    class Notes:
        def record(self, index: Any, extent: int, operand: int, lower: int) -> None:
            noted.append((extent, operand))

    token = INDEX_ERRORS.set(Notes())
    try:
        check_indices(np.array([9]), 3, operand=1)
        with pytest.raises(IndexOutOfRange):  # nothing can be read instead
            check_indices(np.array([0]), 0, operand=1)
    finally:
        INDEX_ERRORS.reset(token)
    assert noted == [(3, 1)]
    with pytest.raises(IndexOutOfRange):
        check_indices(np.array([9]), 3, operand=1)
