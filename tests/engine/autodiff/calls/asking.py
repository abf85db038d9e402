"""Calls as the engine takes them: programs with their feeds, and what comes back by its label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine import LATEST, Call, Label, Limits, Program, Statement, TensorType, Values, registry
from engine.compiler.compiler import CHUNK_BYTES, CompileRequest, plan_call
from tests.contract.cases import EXECUTOR, LIMITS, Case

Array = np.ndarray[Any, Any]


@dataclass
class Net:
    """A program being written, and the feeds of its leaves."""

    statements: list[Statement] = field(default_factory=list)
    feeds: dict[int, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, case: Case, salt: int = 0) -> Net:
        """One op on inputs."""
        return cls(list(case.program().statements), dict(enumerate(case.arrays(salt=salt))))

    def leaf(self, value: Any, op: str = "parameter") -> int:
        """A fed node."""
        self.feeds[len(self.statements)] = np.asarray(value)
        return self.add(op)

    def add(self, op: str, *operands: int, **attrs: Any) -> int:
        """A node."""
        self.statements.append(Statement(registry().ops[op], operands, attrs))
        return len(self.statements) - 1

    @property
    def program(self) -> Program:
        """What has been written."""
        return Program(registry(), self.statements, opset=LATEST)

    @property
    def last(self) -> int:
        """The node written last."""
        return len(self.statements) - 1

    @property
    def types(self) -> dict[int, TensorType]:
        """The types of the feeds."""
        return {node: TensorType.of(array) for node, array in self.feeds.items()}

    def given(self, role: str, tensors: Mapping[int, Any]) -> tuple[tuple[tuple[int, TensorType], ...], Any]:
        """Tensors beside the feeds: as the call is told of them, and as they are fed."""
        arrays = {node: np.asarray(value) for node, value in tensors.items()}
        types = tuple((node, TensorType.of(array)) for node, array in arrays.items())
        return types, {(role, node): array for node, array in arrays.items()}

    def ask(self, call: Call, beside: Any = None, chunks: Sequence[int] = CHUNK_BYTES) -> dict[Label, Array]:
        """The results of a call, on the feeds that it needs."""
        program = self.program
        needed = set(program.needed(call.roots))
        feeds = {node: array for node, array in self.feeds.items() if node in needed}
        types = {node: TensorType.of(array) for node, array in feeds.items()}
        asked, plan = plan_call(CompileRequest(program, types, call, LIMITS, chunks=chunks))
        arrays = EXECUTOR.run(plan, {**feeds, **(beside or {})})
        return dict(zip(asked.labels, arrays, strict=True))

    def values(self, *outputs: int) -> list[Array]:
        """The values of nodes."""
        return list(self.ask(Values.of_program(self.program, outputs)).values())


def kind(answer: Mapping[Label, Array], name: str) -> dict[tuple[int, ...], Array]:
    """The results of one kind, by their nodes."""
    return {label.nodes: array for label, array in answer.items() if label.kind == name}


def limited(**stated: int) -> Limits:
    """Limits of one's own."""
    return Limits(**stated)
