"""A program at a point, in float64 throughout, for certificates; and ops replaced by their bodies there ("peeled").

An op that runs functions is certified in terms of its bodies (`Peeled`). A scan or `while` becomes its first, middle
and last step, written out, and loops of the steps between; a map likewise, with entries for steps. A `cond` becomes the
function that ran, a call its body, unless it has a derivative of its own, and a fixed point one run of its body, at the
solution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np

from engine.autodiff.bodies import derive_body, differentiate_body, tidy
from engine.autodiff.calls import Gradients
from engine.autodiff.control_flow import Parts, emit_scan, split_operands
from engine.compiler.body_plans import optimise_and_plan_bodies
from engine.compiler.compiler import open_scope
from engine.compiler.plan import Plan, make_plan
from engine.ir.graph import Builder, Node, Value
from engine.ir.passes import Allowance
from engine.ir.program import Body, Function, Program, Statement
from engine.ir.run_context import Deadline, Limits
from engine.ir.tensor_type import BOOL, COMPLEX, COMPLEX128, FLOAT64, FLOATS, INT64, HostArray, TensorType
from engine.ops.common.batching import pack
from engine.ops.control.fixed_point import emit_adjoint
from engine.ops.index.slice import slice_axis
from engine.runtime.interpreter import Executor

#: appends a loop of a span of steps, and returns its results
EmitSpan = Callable[[Body, Parts, int], Sequence[Value]]
#: NumPy dtype kind → widest dtype
_WIDEST: Final = {"f": FLOAT64, "c": COMPLEX128}


class Peeled:
    """Copy of nodes into `builder` in which ops that run bodies are replaced by the bodies, recursively.

    `evaluate` computes values at this point: the number of steps of a `while`, the predicate of a `cond`. `hidden` are
    copies of operands of the loops between, whose steps are not compared. `same_value` maps a fixed point x, by node,
    to its body at x: they are one value, so they have one cotangent.
    """

    def __init__(self, builder: Builder, evaluate: Callable[[Sequence[Value]], Sequence[HostArray]]) -> None:
        self.builder, self._evaluate = builder, evaluate
        self.hidden: set[int] = set()
        self.same_value: dict[int, int] = {}

    def copy(self, node: Node, operands: Sequence[Value]) -> Value:
        """Append a node."""
        self.builder.origin = node.origin
        if node.op.name == "get_output":
            return operands[0].output(node.attrs["index"])
        peel = _PEELS.get(node.op.name)
        results = peel(self, node, operands) if peel else None
        return self.builder.copy(node, operands) if results is None else pack(self.builder, results)

    def scan(self, node: Node, operands: Sequence[Value]) -> list[Value] | None:
        """Peel a scan, if it has any steps."""
        attrs = node.attrs
        parts = split_operands(operands, attrs["carries"], attrs["sequences"])
        return self._steps(attrs["body"], parts, attrs["length"], reverse=attrs["reverse"]) if attrs["length"] else None

    def loop(self, node: Node, operands: Sequence[Value]) -> list[Value]:
        """Peel a `while` with the steps that it takes here."""
        carries, loop = node.attrs["carries"], self.builder.copy(node, operands)
        steps, finished = self._evaluate([loop.output(carries), loop.output(carries + 1)])
        results = self._steps(node.attrs["body"], split_operands(operands, carries), int(steps))
        return [*results, self.builder.full((), int(steps), INT64), self.builder.full((), bool(finished), BOOL)]

    def map(self, node: Node, operands: Sequence[Value]) -> list[Value] | None:
        """Peel a map, if it has any entries."""
        parts = split_operands(operands, 0, node.attrs["sequences"])
        entries = parts.sequences[0].shape[0]
        if not entries:
            return None

        def between(body: Body, span: Parts, _: int) -> list[Value]:
            loop = self.builder.emit(node.op, [*span.consts, *span.sequences], node.attrs)
            return [loop.output(k) for k in range(len(body.outputs))]

        return self._steps(node.attrs["body"], parts, entries, between)

    def cond(self, node: Node, operands: Sequence[Value]) -> list[Value]:
        """Write the function that ran. It also reads the predicate: if that changes, there is no derivative."""
        predicate, *arguments = operands
        (holds,) = self._evaluate([predicate])
        results = self._inline(node.attrs["then" if holds else "otherwise"], arguments)
        return [predicate.where(x, x) for x in results]

    def call(self, node: Node, operands: Sequence[Value]) -> list[Value] | None:
        """Write the body of a call, unless the call states its derivative."""
        return None if node.attrs["derivative"] is not None else self._inline(node.attrs["body"], operands)

    def fixed_point(self, node: Node, operands: Sequence[Value]) -> list[Value]:
        """Write the body at the solution x. Its cotangent arrives at x, too.

        The cotangent is u = g + (∂body/∂x)ᵀu. It is computed as in the op's own gradient, and certified like that of x.
        """
        carries, body = node.attrs["carries"], node.attrs["body"]
        copies = self._hidden_copies(operands)
        solution = self.builder.emit(node.op, copies, node.attrs)
        consts = split_operands(operands, carries).consts
        outputs = [solution.output(k) for k in range(carries + 2)]
        x = [value.stop_gradient() for value in outputs[:carries]]
        y = [value.identity() for value in self._inline(body, [*consts, *x])]
        self.hidden.update(value.index for value in (*outputs[:carries], *y))
        self.same_value |= {value_x.index: value_y.index for value_x, value_y in zip(x, y, strict=True)}
        attrs = {**_solution_bodies(node, len(consts)), "recompute": False}
        joined = self.builder.emit(self.builder.registry.ops["call"], [*copies[: len(consts)], *y, *x], attrs)
        return [*[joined.output(k) for k in range(carries)], *outputs[carries:]]

    def _steps(
        self, body: Body, parts: Parts, length: int, between: EmitSpan | None = None, *, reverse: bool = False
    ) -> list[Value]:
        """Peel a loop: the first, middle and last step separately, and loops of the steps between."""
        state, stacks, carries = list(parts.carries), list[list[Value]](), len(parts.carries)
        unrolled = {0, length // 2, length - 1} if length else set[int]()
        for first, last in pairwise(sorted({0, length, *unrolled, *(k + 1 for k in unrolled)})):
            start, stop = (length - last, length - first) if reverse else (first, last)
            span = Parts(parts.consts, state, [slice_axis(x, 0, start, stop) for x in parts.sequences])
            if stop - start == 1:
                results = self._single_step(body, span)
            else:
                span = split_operands(
                    self._hidden_copies([*span.consts, *state, *span.sequences]), carries, len(span.sequences)
                )
                emit = between or partial(emit_scan, self.builder, reverse=reverse)
                results = list(emit(body, span, stop - start))
            state = results[:carries]
            stacks.append(results[carries:])
        joined = zip(*(reversed(stacks) if reverse else stacks), strict=True)
        return [*state, *[first.cat(*rest, axis=0) if rest else first for first, *rest in joined]]

    def _single_step(self, body: Body, parts: Parts) -> list[Value]:
        """Write one step; return its carries, and stacks of one entry."""
        entries = [x.reshape(shape=x.shape[1:]) for x in parts.sequences]
        results, carries = self._inline(body, [*parts.consts, *parts.carries, *entries]), len(parts.carries)
        return [*results[:carries], *[x.reshape(shape=(1, *x.shape)) for x in results[carries:]]]

    def _inline(self, body: Body, operands: Sequence[Value]) -> list[Value]:
        values, origin, graph = list[Value](), self.builder.origin, tidy(body).graph
        for node in graph.nodes:
            read = [values[i] for i in node.operands]
            values.append(operands[node.attrs["feed"]] if node.is_leaf else self.copy(node, read))
        self.builder.origin = origin
        return [values[i] for i in graph.outputs]

    def _hidden_copies(self, operands: Sequence[Value]) -> list[Value]:
        """Copy operands of steps that are not compared."""
        copies = [x.identity() for x in operands]
        self.hidden.update(x.index for x in copies)
        return copies


_PEELS = {
    "scan": Peeled.scan,
    "while": Peeled.loop,
    "map": Peeled.map,
    "cond": Peeled.cond,
    "call": Peeled.call,
    "fixed_point": Peeled.fixed_point,
}


def _solution_bodies(node: Node, consts: int) -> dict[str, Body]:
    """Return a function of consts, y and x that returns x, and its derivative.

    The derivative passes x's cotangent g to y as u, where u = g + (∂body/∂x)ᵀu.
    """
    body, carries = node.attrs["body"], node.attrs["carries"]
    types = [*body.inputs[:consts], *body.outputs, *body.outputs]
    builder = body.budget.builder(body.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
    identity_on_x = derive_body(body, builder.graph(leaves[-carries:]), types)
    types += [*body.outputs, *body.outputs]
    builder = body.budget.builder(body.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
    arrived, x = leaves[-carries:], leaves[consts + carries : consts + 2 * carries]
    attrs = {name: value for name, value in node.attrs.items() if name not in ("body", "carries")}
    u = emit_adjoint(differentiate_body(body, tuple(range(carries))), leaves[:consts], x, arrived, **attrs)
    none = [value.full_like(0.0) for value in leaves[:consts] if value.type.is_differentiable]
    back = [*none, *[u.output(k) for k in range(carries)], *arrived]
    return {"body": identity_on_x, "derivative": derive_body(body, builder.graph(back), types)}


@dataclass(frozen=True)
class Point:
    """A program with its feeds, executor, limits and deadline."""

    executor: Executor
    program: Program
    feeds: Mapping[int, HostArray]
    limits: Limits
    deadline: Deadline

    @classmethod
    def widened(
        cls, executor: Executor, program: Program, feeds: Mapping[int, HostArray], limits: Limits, deadline: Deadline
    ) -> Self:
        """Replace every narrower float or complex dtype, in feeds and program, with float64 or complex128."""
        registry, program_limits, functions = program.registry, program.limits, list[Function]()
        for function in program.functions:
            widened, name = list(map(_widen_statement, function.statements)), function.name
            functions.append(
                Function(registry, widened, function.outputs, program_limits, functions=functions, name=name)
            )
        statements = list(map(_widen_statement, program.statements))
        wide = Program(registry, statements, program_limits, None, program.opset, functions)
        return cls(executor, wide, {node: _widen(a) for node, a in feeds.items()}, limits, deadline)

    @cached_property
    def types(self) -> dict[int, TensorType]:
        """Types of the feeds."""
        return {node: TensorType.of(a) for node, a in self.feeds.items()}

    def plan(self, builder: Builder, results: Sequence[Value]) -> Plan:
        """Optimise and plan results. Raises OverBudget, DeadlineExceeded."""
        graph = optimise_and_plan_bodies(
            builder.graph(results), self.limits, Allowance(self.limits.flops, self.deadline)
        )
        return make_plan(graph, self.limits, self.deadline)

    def builder(self) -> Builder:
        """Return an empty builder."""
        return Builder(self.program.registry, self.limits, self.deadline)

    def displaced(
        self,
        builder: Builder,
        call: Gradients,
        moving: Sequence[int],
        move: Callable[[Value, int], Value],
        peeled: Peeled | None = None,
    ) -> Mapping[int, Value]:
        """Write `of` and `wrt` into `builder`, with node k of `moving` replaced with `move(x, k)`."""
        roots = call.of, *call.wrt
        scope = open_scope(self.program, self.types, roots, call.wrt, self.limits, self.deadline)
        moving_index = {scope.nodes[node].index: k for k, node in enumerate(moving)}
        copied: list[Value] = []
        for index, node in enumerate(scope.builder.nodes):
            operands = [copied[i] for i in node.operands]
            x = peeled.copy(node, operands) if peeled else builder.copy(node, operands)
            copied.append(move(x, moving_index[index]) if index in moving_index else x)
        return {node: copied[x.index] for node, x in scope.nodes.items()}

    def peeled(self, builder: Builder) -> Peeled:
        """Return a writer of peeled nodes at this point into `builder`."""
        return Peeled(builder, lambda values: self._evaluate(self.plan(builder, values)))

    def _evaluate(self, plan: Plan) -> list[HostArray]:
        """Run a plan with zeros for all other feeds, so that nothing moves."""
        unfed = {feed: type for feed, type in plan.feed_types.items() if feed not in self.feeds}
        return self.run_plan(plan, {feed: np.zeros(type.shape, type.dtype) for feed, type in unfed.items()})

    def run_plan(self, plan: Plan, further_feeds: Mapping[Any, HostArray] | None = None) -> list[HostArray]:
        """Run a plan on the feeds and `further_feeds`."""
        fed: dict[Any, HostArray] = {**self.feeds, **(further_feeds or {})}
        return self.executor.run(plan, fed, self.deadline)


def _widen_statement(statement: Statement) -> Statement:
    attrs = {name: _widen(value) for name, value in statement.attrs.items()}
    return Statement(statement.op, statement.operands, attrs, statement.name)


def _widen(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.astype(_WIDEST[value.dtype.kind], copy=False) if value.dtype.kind in _WIDEST else value
    return FLOAT64.name if value in FLOATS else COMPLEX128.name if value in COMPLEX else value
