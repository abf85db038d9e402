"""Sources of NaN and infinity: an observer of an execution that checks every result."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, NamedTuple

import numpy as np

from engine.compiler.control_flow import RunsPlans
from engine.compiler.plan import Plan, Step
from engine.ir.graph import Origin
from engine.ir.op import Array, Namespace
from engine.ir.program import Program
from engine.ir.run_context import Deadline, RunContext, RunPlan
from engine.ir.tensor_type import has_infinities, is_complex
from engine.runtime.interpreter import Executor


class Nonfinite(NamedTuple):
    """The first place where finite operands gave NaN or infinity, infinite ones gave NaN, or a feed was not finite.

    `computed` is the primitive that computed it. `ranges` are the ranges of its operands (None for an empty one; of
    absolute values for complex numbers). Within a function, `node` is the graph's node that runs the function,
    `function_node` of `function` is the source, and `steps` are the steps of the enclosing loops, outermost first.
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
    """Place in a graph where a body runs: the node, and the steps of the enclosing loops."""

    origin: Origin | None = None
    steps: tuple[int, ...] = ()


_GRAPH: Final = _Place()


class NonfiniteWatch:
    """Observer of feeds, by node or by (role, node), then of results of steps; it records the `first_nonfinite`.

    Feeds that `plan` does not read are ignored. An infinity that an op fills in for its own purposes (a mask inside
    `attention`) has no operands and is not reported, unless it becomes NaN; an infinity in the client's graph is.
    """

    def __init__(
        self, program: Program, feeds: Mapping[Hashable, np.ndarray[Any, Any]], plan: Plan, executor: Executor
    ) -> None:
        """Check the feeds.

        `executor` runs the plan, and reruns bodies with a result that is not finite, step by step.
        """
        self._program = program
        self._executor = executor
        self.first_nonfinite: Nonfinite | None = None
        key: Any = next((key for key, array in feeds.items() if key in plan.feeds and not _finite(np, array)), None)
        if key is not None:
            role, node = key if isinstance(key, tuple) else (None, key)
            op = program.statements[node].op.name
            self.first_nonfinite = Nonfinite(node, op, False, role or op, ())

    def __call__(self, run: RunContext, step: Step, operands: Sequence[Array], result: Array) -> None:
        """Check the result of a step."""
        if self.first_nonfinite is None:
            self.first_nonfinite = self._check(_GRAPH, run, step, operands, result)

    def _check(
        self, place: _Place, run: RunContext, step: Step, operands: Sequence[Array], result: Array
    ) -> Nonfinite | None:
        results = result if isinstance(result, tuple) else (result,)
        if all(_finite(run.xp, r) for r in results):
            return None
        if isinstance(step.op, RunsPlans) and (
            inner_finding := self._check_bodies(place, run, step, operands, results)
        ):
            return inner_finding
        if step.origin is None or not self._is_source(run.xp, step, operands, results):
            return None
        outer, inner = place.origin or step.origin, _innermost(step.origin)
        inner_node = None if inner.function is None else inner.node
        return Nonfinite(
            node=outer.node,
            op=outer.op,
            backward=outer.backward,
            computed=step.op.name,
            ranges=tuple(map(_range, operands)),
            function=inner.function,
            function_node=inner_node,
            steps=place.steps,
        )

    def _check_bodies(
        self, place: _Place, run: RunContext, step: Step, operands: Sequence[Array], results: Sequence[Array]
    ) -> Nonfinite | None:
        """Rerun a step with bodies up to the first finding in one of them. It writes the same results."""
        assert isinstance(step.op, RunsPlans)
        op, origin = step.op, place.origin or step.origin

        def bind(plan: Plan) -> RunPlan:
            runs = count()

            def run_observed(feeds: Mapping[Any, Array], deadline: Deadline) -> Sequence[Array]:
                step_number, steps = op.step_number(next(runs), operands, step.attrs), place.steps
                if step.origin is None:
                    steps = ()
                elif step_number is not None and _innermost(step.origin).op != "map":
                    steps = (*steps, step_number)  # a batch of a map is no step; a step in a segment has no number
                watch = _BodyWatch(self._check, _Place(origin, steps))
                return self._executor.interpret(plan, feeds, deadline, watch, in_backward_pass=True)

            return run_observed

        context = self._executor.context(run.deadline)
        context.bind_plan = bind
        try:
            op.forward(context, *operands, out=results, **step.attrs)
        except _SourceFound as source:
            return source.finding
        return None

    def _is_source(self, xp: Namespace, step: Step, operands: Sequence[Array], results: Sequence[Array]) -> bool:
        assert step.origin is not None
        if not operands:
            inner = _innermost(step.origin)
            program = self._program if inner.function is None else self._program.functions[inner.function]
            return program.statements[inner.node].op is step.op
        arrays = [x for x in operands if not isinstance(x, tuple)]
        if all(_finite(xp, x) for x in arrays):
            return True
        return any(_has_nan(xp, r) for r in results) and not any(_has_nan(xp, x) for x in arrays)


class _SourceFound(Exception):
    """Ends a run at the first finding."""

    def __init__(self, finding: Nonfinite) -> None:
        super().__init__()
        self.finding = finding


@dataclass(frozen=True)
class _BodyWatch:
    """Observer of the steps of a body at one place; it ends the run at the first finding."""

    check: Callable[[_Place, RunContext, Step, Sequence[Array], Array], Nonfinite | None]
    place: _Place

    def __call__(self, run: RunContext, step: Step, operands: Sequence[Array], result: Array) -> None:
        if finding := self.check(self.place, run, step, operands, result):
            raise _SourceFound(finding)


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
