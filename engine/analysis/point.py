"""A program at a point, in float64 throughout: what a certificate is about, and what it runs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np

from engine.autodiff.bodies import derived, tidy, way_back
from engine.autodiff.calls import Gradients
from engine.autodiff.calls.call import Scope
from engine.autodiff.control_flow import Parts, emit_scan, in_parts
from engine.compiler.body_plans import runnable
from engine.compiler.compiler import open_scope
from engine.compiler.plan import Plan, make_plan
from engine.ir.body import Body
from engine.ir.dtypes import COMPLEX, FLOATS
from engine.ir.graph import Builder, Node, Value
from engine.ir.limits import Deadline, Limits
from engine.ir.passes import Allowance
from engine.ir.program import Function, Program
from engine.ir.statement import Statement
from engine.ir.tensor_type import BOOL, COMPLEX128, FLOAT64, INT64, HostArray, TensorType
from engine.ops.common.batching import bundled
from engine.ops.control.fixed_point import emit_adjoint
from engine.ops.index.slice import cut
from engine.runtime.interpreter import Executor

# Peeling of ops that run functions: they are certified in terms of their bodies.
#
# Of a scan and a while, that is the first, middle and last step, written out, and loops of those between; of a map,
# such entries; of a cond, the function that ran; of a call, its body, unless it has a derivative of its own; of a fixed
# point, the body, once, at what was found.

#: appends a loop of some steps that lie between others: its results
EmitSpan = Callable[[Body, Parts, int], Sequence[Value]]


class Peeled:
    """Nodes as they are copied into `builder`, what they run in their places; and so on in their bodies.

    `look` tells what values are here: how many steps a `while` takes, and which function a `cond` runs.
    `hidden` are copies of what the loops between read, which stand for steps that nobody looks at. Of a fixed point x,
    `alike` has x, by its node, and the body of it: both have one cotangent, as they are one value.
    """

    def __init__(self, builder: Builder, look: Callable[[Sequence[Value]], Sequence[HostArray]]) -> None:
        self.builder, self._look = builder, look
        self.hidden: set[int] = set()
        self.alike: dict[int, int] = {}

    def copy(self, node: Node, operands: Sequence[Value]) -> Value:
        """Append a node."""
        self.builder.origin = node.origin
        if node.op.name == "get_output":
            return operands[0].output(node.attrs["index"])
        peel = _PEELS.get(node.op.name)
        results = peel(self, node, operands) if peel else None
        return self.builder.copy(node, operands) if results is None else bundled(self.builder, results)

    def scan(self, node: Node, operands: Sequence[Value]) -> list[Value] | None:
        """Some of its steps, if it has any."""
        attrs = node.attrs
        parts = in_parts(operands, attrs["carries"], attrs["sequences"])
        return self._steps(attrs["body"], parts, attrs["length"], reverse=attrs["reverse"]) if attrs["length"] else None

    def loop(self, node: Node, operands: Sequence[Value]) -> list[Value]:
        """Some of the steps that a `while` takes here."""
        carries, loop = node.attrs["carries"], self.builder.copy(node, operands)
        steps, finished = self._look([loop.output(carries), loop.output(carries + 1)])
        found = self._steps(node.attrs["body"], in_parts(operands, carries), int(steps))
        return [*found, self.builder.full((), int(steps), INT64), self.builder.full((), bool(finished), BOOL)]

    def map(self, node: Node, operands: Sequence[Value]) -> list[Value] | None:
        """Some of its entries, if it has any."""
        parts = in_parts(operands, 0, node.attrs["sequences"])
        entries = parts.sequences[0].shape[0]
        if not entries:
            return None

        def between(body: Body, span: Parts, _: int) -> list[Value]:
            loop = self.builder.emit(node.op, [*span.consts, *span.sequences], node.attrs)
            return [loop.output(k) for k in range(len(body.outputs))]

        return self._steps(node.attrs["body"], parts, entries, between)

    def cond(self, node: Node, operands: Sequence[Value]) -> list[Value]:
        """The function that ran. The predicate is read as well: where it changes, there is no derivative."""
        predicate, *given = operands
        (holds,) = self._look([predicate])
        results = self._written(node.attrs["then" if holds else "otherwise"], given)
        return [predicate.where(x, x) for x in results]

    def call(self, node: Node, operands: Sequence[Value]) -> list[Value] | None:
        """The body, where nothing else is said to be its derivative."""
        return None if node.attrs["derivative"] is not None else self._written(node.attrs["body"], operands)

    def fixed_point(self, node: Node, operands: Sequence[Value]) -> list[Value]:
        """The body of x, for the x that was found: by x, what arrives at its result arrives at x, too.

        What does is u = g + (∂body/∂x)ᵀu. It is computed as in the op's own gradient, and certified as x is.
        """
        carries, body = node.attrs["carries"], node.attrs["body"]
        apart = self._apart(operands)
        solved = self.builder.emit(node.op, apart, node.attrs)
        consts = in_parts(operands, carries).consts
        found = [solved.output(k) for k in range(carries + 2)]
        x = [value.stop_gradient() for value in found[:carries]]
        y = [value.identity() for value in self._written(body, [*consts, *x])]
        self.hidden.update(value.index for value in (*found[:carries], *y))
        self.alike |= {one.index: other.index for one, other in zip(x, y, strict=True)}
        attrs = {**_solution(node, len(consts)), "recompute": False}
        joined = self.builder.emit(self.builder.registry.ops["call"], [*apart[: len(consts)], *y, *x], attrs)
        return [*[joined.output(k) for k in range(carries)], *found[carries:]]

    def _steps(
        self, body: Body, parts: Parts, length: int, between: EmitSpan | None = None, *, reverse: bool = False
    ) -> list[Value]:
        """The results of a scan, or of another loop that goes through such spans."""
        state, stacks, carries = list(parts.carries), list[list[Value]](), len(parts.carries)
        for first, last in _spans(length):
            start, stop = (length - last, length - first) if reverse else (first, last)
            span = Parts(parts.consts, state, [cut(x, 0, start, stop) for x in parts.sequences])
            if stop - start == 1:
                found = self._one(body, span)
            else:
                span = in_parts(self._apart([*span.consts, *state, *span.sequences]), carries, len(span.sequences))
                emit = between or partial(emit_scan, self.builder, reverse=reverse)
                found = list(emit(body, span, stop - start))
            state = found[:carries]
            stacks.append(found[carries:])
        joined = zip(*(reversed(stacks) if reverse else stacks), strict=True)
        return [*state, *[first.cat(*rest, axis=0) if rest else first for first, *rest in joined]]

    def _one(self, body: Body, parts: Parts) -> list[Value]:
        """One step: the carries, and stacks of one entry."""
        entries = [x.reshape(shape=x.shape[1:]) for x in parts.sequences]
        results, carries = self._written(body, [*parts.consts, *parts.carries, *entries]), len(parts.carries)
        return [*results[:carries], *[x.reshape(shape=(1, *x.shape)) for x in results[carries:]]]

    def _written(self, body: Body, operands: Sequence[Value]) -> list[Value]:
        """The results of a body, node by node."""
        values, origin, graph = list[Value](), self.builder.origin, tidy(body).graph
        for node in graph.nodes:
            read = [values[i] for i in node.operands]
            values.append(operands[node.attrs["feed"]] if node.is_leaf else self.copy(node, read))
        self.builder.origin = origin
        return [values[i] for i in graph.outputs]

    def _apart(self, operands: Sequence[Value]) -> list[Value]:
        """Copies for what nobody looks at."""
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


def _solution(node: Node, consts: int) -> dict[str, Body]:
    """A body of consts, y and x: x, whose cotangent g arrives at y as u, for which u = g + (∂body/∂x)ᵀu."""
    body, carries = node.attrs["body"], node.attrs["carries"]
    types = [*body.inputs[:consts], *body.outputs, *body.outputs]
    builder = body.budget.builder(body.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
    given = derived(body, builder.graph(leaves[-carries:]), types)
    types += [*body.outputs, *body.outputs]
    builder = body.budget.builder(body.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
    arrived, x = leaves[-carries:], leaves[consts + carries : consts + 2 * carries]
    attrs = {name: value for name, value in node.attrs.items() if name not in ("body", "carries")}
    u = emit_adjoint(way_back(body, tuple(range(carries))), leaves[:consts], x, arrived, **attrs)
    none = [value.full_like(0.0) for value in leaves[:consts] if value.type.is_differentiable]
    back = [*none, *[u.output(k) for k in range(carries)], *arrived]
    return {"body": given, "derivative": derived(body, builder.graph(back), types)}


def _spans(length: int) -> list[tuple[int, int]]:
    """Bounds of the first, middle and last step, and of what lies between them."""
    single = sorted({0, length // 2, length - 1}) if length else []
    ends = sorted({0, length, *single, *[k + 1 for k in single]})
    return list(pairwise(ends))


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
