"""Sources of NaN and infinity: an observer of an execution, which checks every result."""

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
    """The first place where NaN or infinity came out of finite operands, NaN out of infinite ones, or was fed.

    `computed` is the primitive that did it, `ranges` are those of its operands (None for an empty one; of complex
    numbers, their sizes). Within a function, `node` is the graph's node that runs it, and it happened at
    `function_node` of `function`, in the `steps` of the loops around that, the outermost first.
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
    """Place in a graph where a body runs: the node, and the steps of the loops around."""

    origin: Origin | None = None
    steps: tuple[int, ...] = ()


_GRAPH: Final = _Place()


class NonfiniteWatch:
    """Observer of feeds, by node or by (role, node), then of results of steps; keeps the first that is not finite.

    Feeds that `plan` does not read are ignored. An infinity that an op fills in for its own purposes (a mask inside
    `attention`) has no operands and is no finding, unless it becomes NaN; one that the client's graph states is.
    """

    def __init__(
        self, program: Program, feeds: Mapping[Hashable, np.ndarray[Any, Any]], plan: Plan, executor: Executor
    ) -> None:
        """`executor` runs the plan, and runs a body with a result that is not finite once more, step by step."""
        self._program = program
        self._executor = executor
        self.found: Nonfinite | None = None
        key: Any = next((key for key, array in feeds.items() if key in plan.feeds and not _finite(np, array)), None)
        if key is not None:
            role, node = key if isinstance(key, tuple) else (None, key)
            op = program.statements[node].op.name
            self.found = Nonfinite(node, op, False, role or op, ())

    def __call__(self, run: RunContext, step: Step, operands: Sequence[Array], result: Array) -> None:
        """Check the result of a step."""
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
        """Run a step with bodies once more, up to the first finding in one of them; it writes the same results."""
        assert isinstance(step.op, RunsPlans)
        op, origin = step.op, place.origin or step.origin

        def bind(plan: Plan) -> RunPlan:
            runs = count()

            def once(feeds: Mapping[Any, Array], deadline: Deadline) -> Sequence[Array]:
                number, steps = op.number_of(next(runs), operands, step.attrs), place.steps
                if step.origin is None:
                    steps = ()
                elif number is not None and _innermost(step.origin).op != "map":
                    steps = (*steps, number)  # a batch of a map is no step, and a step in a segment has no number
                watch = _Within(self._look, _Place(origin, steps))
                return self._executor.interpret(plan, feeds, deadline, watch, turned=True)

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
    """Observer of the steps of a body, at one place; it ends the run at the first finding."""

    look: Callable[[_Place, RunContext, Step, Sequence[Array], Array], Nonfinite | None]
    place: _Place

    def __call__(self, run: RunContext, step: Step, operands: Sequence[Array], result: Array) -> None:
        if found := self.look(self.place, run, step, operands, result):
            raise _Ended(found)


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
