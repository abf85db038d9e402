"""Sources of NaN and infinity: a watch over an execution, which costs a look at every result."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, NamedTuple

import numpy as np

from engine.compiler.control_flow import RunsPlans
from engine.compiler.plan import Plan, Step
from engine.ir.dtypes import has_infinities, is_complex
from engine.ir.graph import Origin
from engine.ir.limits import Deadline
from engine.ir.op import Array, Namespace
from engine.ir.program import Program
from engine.ir.run_context import RunContext, RunPlan
from engine.runtime.interpreter import Executor


class Nonfinite(NamedTuple):
    """The first place where NaN or infinity came out of finite operands, NaN out of infinite ones, or was fed.

    `computed` is the primitive that did it, `ranges` what each of its operands ranged over (None for an empty one; of
    complex numbers, their sizes). Within a function, `node` is that of the graph which runs it, and it happened at
    `function_node` of `function`, in the step `steps` of the loops around that, the outermost first.
    """

    node: int
    op: str
    backward: bool
    computed: str
    ranges: tuple[tuple[float, float] | None, ...]
    function: int | None = None
    function_node: int | None = None
    steps: tuple[int, ...] = ()


class _Place(NamedTuple):
    """Place in a graph where a body runs: in which of its nodes, and in which steps of the loops there."""

    origin: Origin | None = None
    steps: tuple[int, ...] = ()


_GRAPH: Final = _Place()


class NonfiniteWatch:
    """Observer of what is fed, by node or by (role, node), then of results of steps; keeps the first not finite.

    Of the feeds it looks at those that `plan` reads, without a plan at all: what nothing reads spoils nothing.
    An infinity that an op fills in for its own purposes (a mask inside `attention`) has no operands and is no finding,
    unless it becomes NaN; one that the client's graph states is.
    """

    def __init__(
        self, program: Program, feeds: Mapping[Hashable, np.ndarray[Any, Any]], plan: Plan, executor: Executor
    ) -> None:
        """`executor` is what runs the plan, and what becomes not finite within it once more, step by step."""
        self._program = program
        self._executor = executor
        wrong = (self._fed(key) for key, array in feeds.items() if key in plan.feeds and not _finite(np, array))
        self.found: Nonfinite | None = next(wrong, None)

    def _fed(self, key: Any) -> Nonfinite:
        role, node = key if isinstance(key, tuple) else (None, key)
        op = self._program.statements[node].op.name
        return Nonfinite(node, op, False, role or op, ())

    def __call__(self, run: RunContext, step: Step, operands: Sequence[Array], result: Array) -> None:
        """Look at what a step has written."""
        if self.found is None:
            self.found = self._look(_GRAPH, run, step, operands, result)

    def _look(
        self, place: _Place, run: RunContext, step: Step, operands: Sequence[Array], result: Array
    ) -> Nonfinite | None:
        results = result if isinstance(result, tuple) else (result,)
        if all(_finite(run.xp, r) for r in results):
            return None
        if isinstance(step.op, RunsPlans) and (within := self._look_within(place, run, step, operands, results)):
            return within
        if step.origin is None or not self._is_source(run.xp, step, operands, results):
            return None
        node, inner = place.origin or step.origin, _innermost(step.origin)
        inner_node = None if inner.function is None else inner.node
        return Nonfinite(
            node=node.node,
            op=node.op,
            backward=node.backward,
            computed=step.op.name,
            ranges=tuple(map(_range, operands)),
            function=inner.function,
            function_node=inner_node,
            steps=place.steps,
        )

    def _look_within(
        self, place: _Place, run: RunContext, step: Step, operands: Sequence[Array], results: Sequence[Array]
    ) -> Nonfinite | None:
        """Run a step that runs bodies once more, to where one of these finds something; it writes what is there."""
        assert isinstance(step.op, RunsPlans)
        op, origin = step.op, place.origin or step.origin

        def bind(plan: Plan) -> RunPlan:
            runs = count()

            def once(feeds: Mapping[Any, Array], deadline: Deadline) -> Sequence[Array]:
                steps = _steps(place, step, op.number_of(next(runs), operands, step.attrs))
                looking = _Within(self._look, _Place(origin, steps))
                return self._executor.interpret(plan, feeds, deadline, looking, turned=True)

            return once

        again = self._executor.context(run.deadline)
        again.bind_plan = bind
        try:
            op.forward(again, *operands, out=results, **step.attrs)
        except _Ended as ended:
            return ended.found
        return None

    def _is_source(self, xp: Namespace, step: Step, operands: Sequence[Array], results: Sequence[Array]) -> bool:
        assert step.origin is not None
        if not operands:
            stated = _innermost(step.origin)
            part = self._program if stated.function is None else self._program.functions[stated.function]
            return part.statements[stated.node].op is step.op
        single = [x for x in operands if not isinstance(x, tuple)]
        if all(_finite(xp, x) for x in single):
            return True
        return any(_has_nan(xp, r) for r in results) and not any(_has_nan(xp, x) for x in single)


class _Ended(Exception):
    """End of a run, as an exception."""

    def __init__(self, found: Nonfinite) -> None:
        super().__init__()
        self.found = found


@dataclass(frozen=True)
class _Within:
    """Observer of what the steps of a body write, at one place; ends the run at the first that it finds."""

    look: Callable[[_Place, RunContext, Step, Sequence[Array], Array], Nonfinite | None]
    place: _Place

    def __call__(self, run: RunContext, step: Step, operands: Sequence[Array], result: Array) -> None:
        if found := self.look(self.place, run, step, operands, result):
            raise _Ended(found)


def _steps(place: _Place, step: Step, number: int | None) -> tuple[int, ...]:
    """Steps of the loops around a body. Batches of a map are none; of loops in segments, not known."""
    if step.origin is None:
        return ()
    return place.steps if number is None or _innermost(step.origin).op == "map" else (*place.steps, number)


def _innermost(origin: Origin) -> Origin:
    return origin if origin.inner is None else _innermost(origin.inner)


def _finite(xp: Namespace, array: Array) -> bool:
    return not has_infinities(array.dtype) or bool(xp.isfinite(array).all())


def _has_nan(xp: Namespace, array: Array) -> bool:
    return has_infinities(array.dtype) and bool(xp.isnan(array).any())


def _range(array: Array) -> tuple[float, float] | None:
    if isinstance(array, tuple) or not array.size:
        return None
    sizes = abs(array) if is_complex(array.dtype) else array
    return float(sizes.min()), float(sizes.max())
