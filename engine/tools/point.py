"""A program at a point, in float64 throughout: what a certificate is about, and what it runs on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from engine.executors.interpreter import Executor
from engine.graph.limits import Deadline, Limits
from engine.graph.program import Program, Statement
from engine.graph.tensor_type import FLOAT64, HostArray, TensorType
from engine.planning.plan import Plan


@dataclass(frozen=True)
class Point:
    """A program, its feeds, and where, within which limits and until when it runs."""

    executor: Executor
    program: Program
    feeds: Mapping[int, HostArray]
    limits: Limits
    deadline: Deadline

    @classmethod
    def widened(
        cls, executor: Executor, program: Program, feeds: Mapping[int, HostArray], limits: Limits, deadline: Deadline
    ) -> Self:
        """With float64 for every float dtype that is fed, or that the program states."""
        wide = Program(program.registry, [_widened(statement) for statement in program.statements], program.limits)
        return cls(executor, wide, {node: _wide(a) for node, a in feeds.items()}, limits, deadline)

    @cached_property
    def types(self) -> dict[int, TensorType]:
        """The types of the feeds."""
        return {node: TensorType.of(a) for node, a in self.feeds.items()}

    def run(self, plan: Plan, beside: Mapping[Any, HostArray] | None = None) -> list[HostArray]:
        """The results of a plan on the feeds, and what is fed beside them."""
        fed: dict[Any, HostArray] = {**self.feeds, **(beside or {})}
        return self.executor.run(plan, fed, self.deadline)


def _widened(statement: Statement) -> Statement:
    attrs = {name: _wide(value) for name, value in statement.attrs.items()}
    return Statement(statement.op, statement.operands, attrs, statement.name)


def _wide(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.astype(FLOAT64) if value.dtype.kind == "f" else value
    return FLOAT64.name if value in ("float16", "float32") else value
