"""A program at a point, in float64 throughout: what a certificate is about, and what it runs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

import numpy as np

from engine.calls import Gradients
from engine.calls.call import Scope
from engine.executors.interpreter import Executor
from engine.graph.dtypes import COMPLEX, FLOATS
from engine.graph.ir import Builder, Value
from engine.graph.limits import Deadline, Limits
from engine.graph.program import Function, Program
from engine.graph.statement import Statement
from engine.graph.tensor_type import COMPLEX128, FLOAT64, HostArray, TensorType
from engine.passes.allowance import Allowance
from engine.planning.bodies import runnable
from engine.planning.compiler import open_scope
from engine.planning.plan import Plan, make_plan
from engine.tools.peel import Peeled

#: by NumPy's letter of a kind, the widest there is
_WIDE: Final = {"f": FLOAT64, "c": COMPLEX128}


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
        """With float64, or complex128, for every narrower dtype that is fed, or that the program states."""
        wide = _widened_program(program)
        return cls(executor, wide, {node: _wide(a) for node, a in feeds.items()}, limits, deadline)

    @cached_property
    def types(self) -> dict[int, TensorType]:
        """The types of the feeds."""
        return {node: TensorType.of(a) for node, a in self.feeds.items()}

    def plan(self, builder: Builder, results: Sequence[Value]) -> Plan:
        """The plan of results, optimised. Raises OverBudget, DeadlineExceeded."""
        graph = runnable(builder.graph(results), self.limits, Allowance(self.limits.flops, self.deadline))
        return make_plan(graph, self.limits, self.deadline)

    def builder(self) -> Builder:
        """An empty one."""
        return Builder(self.program.registry, self.limits, self.deadline)

    def scope(self, call: Gradients) -> Scope:
        """The program, written as `call` needs it."""
        return open_scope(self.program, self.types, (call.of, *call.wrt), call.wrt, self.limits, self.deadline)

    def displaced(
        self,
        builder: Builder,
        call: Gradients,
        moving: Sequence[int],
        move: Callable[[Value, int], Value],
        peeled: Peeled | None = None,
    ) -> Mapping[int, Value]:
        """`of` and `wrt`, written into `builder`, where node k of `moving` gives way to `move(x, k)`."""
        scope = self.scope(call)
        movers = {scope.nodes[node].index: k for k, node in enumerate(moving)}
        copied: list[Value] = []
        for index, node in enumerate(scope.builder.nodes):
            operands = [copied[i] for i in node.operands]
            x = peeled.copy(node, operands) if peeled else builder.copy(node, operands)
            copied.append(move(x, movers[index]) if index in movers else x)
        return {node: copied[x.index] for node, x in scope.nodes.items()}

    def peeled(self, builder: Builder) -> Peeled:
        """Writer into `builder` of the bodies that ops run, at this point."""
        return Peeled(builder, lambda values: self._look(self.plan(builder, values)))

    def _look(self, plan: Plan) -> list[HostArray]:
        """The results of a plan, where nothing that is fed beside the feeds moves anything."""
        others = {feed: type for feed, type in plan.feed_types.items() if feed not in self.feeds}
        return self.run_plan(plan, {feed: np.zeros(type.shape, type.dtype) for feed, type in others.items()})

    def run_plan(self, plan: Plan, beside: Mapping[Any, HostArray] | None = None) -> list[HostArray]:
        """The results of a plan on the feeds, and what is fed beside them."""
        fed: dict[Any, HostArray] = {**self.feeds, **(beside or {})}
        return self.executor.run(plan, fed, self.deadline)


def _widened_program(program: Program) -> Program:
    registry, limits, functions = program.registry, program.limits, list[Function]()
    for function in program.functions:
        inside = list(map(_widened, function.statements))
        functions.append(Function(registry, inside, function.outputs, limits, functions=functions, name=function.name))
    return Program(registry, list(map(_widened, program.statements)), limits, None, program.opset, functions)


def _widened(statement: Statement) -> Statement:
    attrs = {name: _wide(value) for name, value in statement.attrs.items()}
    return Statement(statement.op, statement.operands, attrs, statement.name)


def _wide(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.astype(_WIDE[value.dtype.kind], copy=False) if value.dtype.kind in _WIDE else value
    return FLOAT64.name if value in FLOATS else COMPLEX128.name if value in COMPLEX else value
