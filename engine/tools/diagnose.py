"""Sources of NaN and infinity: a watch over an execution, which costs a look at every result."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.graph.dtypes import has_infinities
from engine.graph.ir import Origin
from engine.graph.op import Array, Namespace
from engine.graph.program import Program
from engine.planning.plan import Plan, Step


class Nonfinite(NamedTuple):
    """The first place where NaN or infinity came out of finite operands, NaN out of infinite ones, or was fed.

    `computed` is the primitive that did it, `ranges` what each of its operands ranged over (None for an empty one).
    Inside a function, `node` is the node of the graph that uses it; `function` and `function_node` say where exactly,
    and `step` how often the function had run before there, where an op runs it.
    """

    node: int
    op: str
    backward: bool
    computed: str
    ranges: tuple[tuple[float, float] | None, ...]
    function: int | None = None
    function_node: int | None = None
    step: int | None = None


class NonfiniteWatch:
    """Looks at what is fed, by node or by (role, node), then at the results of steps; keeps the first not finite.

    Of the feeds it looks at those that `plan` reads, without a plan at all: what nothing reads spoils nothing.
    An infinity that an op fills in for its own purposes (a mask inside `attention`) has no operands and is no finding,
    unless it becomes NaN; one that the client's graph states is.
    """

    def __init__(self, program: Program, feeds: Mapping[Hashable, np.ndarray[Any, Any]], plan: Plan) -> None:
        self._program = program
        wrong = (self._fed(key) for key, array in feeds.items() if key in plan.feeds and not _finite(np, array))
        self.found: Nonfinite | None = next(wrong, None)

    def _fed(self, key: Any) -> Nonfinite:
        role, node = key if isinstance(key, tuple) else (None, key)
        op = self._program.statements[node].op.name
        return Nonfinite(node, op, False, role or op, ())

    def __call__(self, xp: Namespace, step: Step, operands: Sequence[Array], result: Array) -> None:
        """Look at what a step of the plan has written."""
        self.look(xp, step, operands, result)

    def inside(self, step: Step, number: int) -> _Inside:
        """Who looks at the steps of a body that a step runs."""
        return _Inside(self, step.origin, number)

    def look(
        self,
        xp: Namespace,
        step: Step,
        operands: Sequence[Array],
        result: Array,
        use: Origin | None = None,
        number: int | None = None,
    ) -> None:
        """Look at what a step has written; of a body, `use` runs it, which it had done so many times before."""
        if self.found is not None or step.origin is None:
            return
        results = result if isinstance(result, tuple) else (result,)
        if all(_finite(xp, r) for r in results) or not self._is_source(xp, step, operands, results):
            return
        ranges = tuple(map(_range, operands))
        node, at = use or step.origin, _innermost(step.origin)
        inside = () if at.function is None else (at.function, at.node, number)
        backward = node.backward or step.origin.backward
        self.found = Nonfinite(node.node, node.op, backward, step.op.name, ranges, *inside)

    def _is_source(self, xp: Namespace, step: Step, operands: Sequence[Array], results: Sequence[Array]) -> bool:
        assert step.origin is not None
        if not operands:
            at = _innermost(step.origin)
            part = self._program if at.function is None else self._program.functions[at.function]
            return part.statements[at.node].op is step.op
        single = [x for x in operands if not isinstance(x, tuple)]
        if all(_finite(xp, x) for x in single):
            return True
        return any(_has_nan(xp, r) for r in results) and not any(_has_nan(xp, x) for x in single)


class _Inside:
    """Looks on at a body for a watch, which it tells the node of the graph that runs it."""

    def __init__(self, watch: NonfiniteWatch, use: Origin | None, number: int) -> None:
        self._watch, self._use, self._number = watch, use, number

    def __call__(self, xp: Namespace, step: Step, operands: Sequence[Array], result: Array) -> None:
        """Look at what a step has written."""
        if self._use is not None:
            self._watch.look(xp, step, operands, result, self._use, self._number)

    def inside(self, step: Step, number: int) -> _Inside:
        """Who looks at a body within the body."""
        return _Inside(self._watch, self._use, number)


def _innermost(origin: Origin) -> Origin:
    """The node of a function that was written in the place of another; else itself."""
    while origin.inner is not None:
        origin = origin.inner
    return origin


def _finite(xp: Namespace, array: Array) -> bool:
    return not has_infinities(array.dtype) or bool(xp.isfinite(array).all())


def _has_nan(xp: Namespace, array: Array) -> bool:
    return has_infinities(array.dtype) and bool(xp.isnan(array).any())


def _range(array: Array) -> tuple[float, float] | None:
    if isinstance(array, tuple) or not array.size:
        return None
    return float(array.min()), float(array.max())
