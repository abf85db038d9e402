"""Captured calls on a card and their errors, on a stand-in that counts captures."""

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
    """Captures by keeping the function that it is given."""

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


def calls_of(*names: str, log: list[str]) -> list[CudaCall]:
    return [
        CudaCall(k, step, (log.append, (step.op.name,)), step.op.is_captured)
        for k, step in enumerate(map(step_of, names))
    ]


def segments_of(tape: Any, *names: str, log: list[str] | None = None) -> list[Any]:
    return in_segments(calls_of(*names, log=[] if log is None else log), tape, lambda number: None)


def test_segments_split_at_uncapturable_ops() -> None:
    tape = Tape()
    segments = segments_of(tape, "exp", "add", "inv", "exp")
    for _ in range(3):
        for segment in segments:
            segment.launch()
    assert [segment.launches for segment in segments] == [1, 0, 1]
    assert tape.recorded == 2


def test_first_run_is_not_captured() -> None:
    log: list[str] = []
    tape = Tape()
    (segment,) = segments_of(tape, "exp", "add", log=log)
    segment.launch()
    assert (log, tape.recorded) == (["exp", "add"], 0)


def test_failed_capture_is_called_between_graphs() -> None:
    log: list[str] = []
    tape = Tape()

    def wait() -> None:
        if tape.records:
            tape.records = False
            raise RuntimeError("no graph holds this")
        log.append("matmul")

    calls = calls_of("exp", "add", "tanh", log=log)
    calls[1:1] = [CudaCall(9, step_of("add"), (wait, ()), is_captured=True)] * 2
    (segment,) = in_segments(calls, tape, lambda number: None)  # type: ignore[arg-type]
    for _ in range(3):
        segment.launch()
    assert (segment.launches, tape.recorded) == (4, 2)
    assert log[-5:] == ["exp", "matmul", "matmul", "add", "tanh"]


def test_error_names_its_node() -> None:
    def fail() -> None:
        raise index_error(3, 1)

    (segment,) = in_segments([CudaCall(0, step_of("gather"), (fail, ()), True)], Tape(), lambda number: None)  # type: ignore[arg-type]
    with pytest.raises(IndexOutOfRange) as caught:
        segment.launch()
    assert caught.value.node == 7


def test_recorded_index_check_does_not_raise() -> None:
    noted: list[Any] = []

    class Notes:
        def record(self, index: Any, extent: int, operand: int, lower: int) -> None:
            noted.append((extent, operand))

    token = INDEX_ERRORS.set(Notes())
    try:
        check_indices(np.array([9]), 3, operand=1)
        with pytest.raises(IndexOutOfRange):  # no element could be read instead
            check_indices(np.array([0]), 0, operand=1)
    finally:
        INDEX_ERRORS.reset(token)
    assert noted == [(3, 1)]
    with pytest.raises(IndexOutOfRange):
        check_indices(np.array([9]), 3, operand=1)
