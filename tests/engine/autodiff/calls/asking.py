"""Plan and run engine calls on small programs with feeds; results are keyed by label."""

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
    """A program under construction, and the feeds of its leaves."""

    statements: list[Statement] = field(default_factory=list)
    feeds: dict[int, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, case: Case, salt: int = 0) -> Net:
        """Build a net of one op on inputs."""
        return cls(list(case.program().statements), dict(enumerate(case.arrays(salt=salt))))

    def leaf(self, value: Any, op: str = "parameter") -> int:
        """Add a leaf and its feed."""
        self.feeds[len(self.statements)] = np.asarray(value)
        return self.add(op)

    def add(self, op: str, *operands: int, **attrs: Any) -> int:
        """Add a node."""
        self.statements.append(Statement(registry().ops[op], operands, attrs))
        return len(self.statements) - 1

    @property
    def program(self) -> Program:
        """The program so far."""
        return Program(registry(), self.statements, opset=LATEST)

    @property
    def last(self) -> int:
        """The last node."""
        return len(self.statements) - 1

    @property
    def types(self) -> dict[int, TensorType]:
        """The types of the feeds."""
        return {node: TensorType.of(array) for node, array in self.feeds.items()}

    def given(self, role: str, tensors: Mapping[int, Any]) -> tuple[tuple[tuple[int, TensorType], ...], Any]:
        """Return types and feeds of tensors that a call takes beside the feeds, such as cotangents."""
        arrays = {node: np.asarray(value) for node, value in tensors.items()}
        types = tuple((node, TensorType.of(array)) for node, array in arrays.items())
        return types, {(role, node): array for node, array in arrays.items()}

    def ask(self, call: Call, beside: Any = None, chunks: Sequence[int] = CHUNK_BYTES) -> dict[Label, Array]:
        """Run a call on the feeds that it needs, and return its results."""
        program = self.program
        needed = set(program.needed(call.roots))
        feeds = {node: array for node, array in self.feeds.items() if node in needed}
        types = {node: TensorType.of(array) for node, array in feeds.items()}
        written, plan = plan_call(CompileRequest(program, types, call, LIMITS, chunks=chunks))
        arrays = EXECUTOR.run(plan, {**feeds, **(beside or {})})
        return dict(zip(written.labels, arrays, strict=True))

    def values(self, *outputs: int) -> list[Array]:
        """Compute the values of nodes."""
        return list(self.ask(Values.of_program(self.program, outputs)).values())


def kind(answer: Mapping[Label, Array], name: str) -> dict[tuple[int, ...], Array]:
    """Select the results of one kind, keyed by their nodes."""
    return {label.nodes: array for label, array in answer.items() if label.kind == name}


def limited(**stated: int) -> Limits:
    """Build limits with the given values."""
    return Limits(**stated)
