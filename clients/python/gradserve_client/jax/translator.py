"""The walk over the equations of jaxprs: what is constant is folded, rules say the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr
from jax.extend.core import Literal as Number
from jax.interpreters import partial_eval

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked, Budget, Obstacles, SourceGraph
from gradserve_client.importing.notes import Tally
from gradserve_client.jax.call import Call, Result, Said
from gradserve_client.jax.context import Context, CustomRules
from gradserve_client.jax.custom_rules import bound
from gradserve_client.jax.families.complex_numbers import TAKE_COMPLEX
from gradserve_client.jax.families.refused import COMPUTED
from gradserve_client.jax.rules import RULES, refusal_of
from gradserve_client.jax.values import Scope, Value, require_threefry, unsendable

#: what draws: its numbers are made by the server, and are no constants of the graph
_DRAWS: Final = frozenset({"random_bits"})
#: constants of more elements are not folded, unless what they are made of is as large
_FOLDED: Final = 1024
#: what is counted by what it runs
_INLINE: Final = frozenset({"call", "closed_call", "composite", "custom_vmap_call", "jit"})
#: nodes that say no primitive
_LEAVES: Final = ("constant", "input", "parameter")
_HIDDEN: Final = (str(Path(jax.__file__).parent), str(Path(__file__).parent), "<frozen")


class Translator(Context):
    """Says the equations of one function. What it cannot say is in `obstacles`, what it said in `tally`."""

    def __init__(
        self,
        budget: Budget,
        max_steps: int | None = None,
        unroll: bool = False,
        custom_rules: CustomRules = "keep",
    ) -> None:
        super().__init__(budget, max_steps, unroll, custom_rules)
        self.obstacles = Obstacles()
        self.tally = Tally()
        #: the equations that the one at hand is within, and itself
        self._around: list[Any] = []

    def walk(self, closed: Any, operands: Sequence[Value], scope: Scope) -> list[Value]:
        """The results of a jaxpr on these operands, in the graph of the scope: of what its results need alone."""
        reads = getattr(closed, "reads", None)
        if reads is not None:
            closed, operands = closed.closed, reads(operands)
        jaxpr, _ = partial_eval.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars), instantiate=True)
        known = {
            var: _constant(var.aval, value) for var, value in zip(closed.jaxpr.constvars, closed.consts, strict=True)
        }
        known |= dict(zip(jaxpr.invars, operands, strict=True))

        def find(atom: Any) -> Value:
            return _constant(atom.aval, atom.val) if isinstance(atom, Number) else known[atom]

        for equation in jaxpr.eqns:
            results = self._results(equation, [find(atom) for atom in equation.invars], scope)
            known |= dict(zip(equation.outvars, results, strict=True))
        return [find(atom) for atom in jaxpr.outvars]

    def _results(self, equation: Any, operands: Sequence[Value], scope: Scope) -> list[Value]:
        op, before = equation.primitive.name, len(scope.graph)
        results = [Value.typed(var.aval) for var in equation.outvars]
        self._around.append(equation)
        self.budget.locate(op, self._place)
        try:
            self.budget.add_steps()
            return self._said(equation, operands, results, scope)
        except Blocked as blocked:
            self.obstacles.meet(op, self._place(), blocked)
            # nobody gets to see them
            return [value.with_node(scope.graph.input()) for value in results]
        finally:
            self._around.pop()
            self.tally.count(op, () if op in _INLINE else _said_by(scope.graph, before))

    def _place(self) -> str:
        """Where in the source the equation at hand was written, or what it is within, where JAX tells no more."""
        for equation in reversed(self._around):
            place = place_of(equation)
            if place is not None:
                return place
        return "a place that JAX does not tell"

    def _said(self, equation: Any, operands: Sequence[Value], results: Sequence[Value], scope: Scope) -> list[Value]:
        op = equation.primitive.name
        for atom in (*equation.invars, *equation.outvars):
            require_threefry(atom.aval)
        if _may_fold(equation, operands, results):
            return _folded(equation, operands)
        refused = refusal_of(op)
        if refused is not None:
            raise refused
        rule = RULES.find(op)
        if rule is None:
            raise Blocked("there is no rule for it")
        if op not in TAKE_COMPLEX and any(value.is_complex for value in (*operands, *results)):
            raise Blocked("no op computes it of complex numbers", "compute with real and imaginary parts apart")
        call = Call(op, equation.params, operands, results, scope, self, equation)
        return _wrapped(rule.say(call), results)


def _constant(aval: Any, value: Any) -> Value:
    made = Value.typed(aval)
    made.constant = value if made.is_key else np.asarray(value, made.dtype)
    return made


def _may_fold(equation: Any, operands: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether the function alone decides it, and constants do not grow by that."""
    op = equation.primitive.name
    if op in _DRAWS or not all(value.is_constant for value in operands) or equation.effects:
        return False
    if (refusal_of(op) is not None and op not in COMPUTED) or _runs_others(equation.params):
        return False
    given = sum(_size(value) for value in operands)
    return all(_size(value) <= max(_FOLDED, given) for value in results)


def _runs_others(params: Mapping[str, Any]) -> bool:
    """Whether there are jaxprs among the parameters."""
    return any(isinstance(each, ClosedJaxpr | Jaxpr) for value in params.values() for each in _listed(value))


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, tuple) else (value,)


def _size(value: Value) -> int:
    return int(np.prod(value.shape, dtype=np.int64))


def _folded(equation: Any, operands: Sequence[Value]) -> list[Value]:
    found = bound(equation, [value.constant for value in operands])
    return [_constant(var.aval, value) for var, value in zip(equation.outvars, found, strict=True)]


def _wrapped(said: Said, results: Sequence[Value]) -> list[Value]:
    each: Sequence[Result] = [said] if isinstance(said, Node | Value | np.ndarray | np.generic) else said
    return [_value(one, result) for one, result in zip(each, results, strict=True)]


def _value(said: Result, result: Value) -> Value:
    if isinstance(said, Value):
        return said
    if isinstance(said, Node):
        reason = unsendable(result.dtype)
        if reason is not None:
            raise Blocked(f"it gives {reason}")
        return result.with_node(said)
    result.constant = np.asarray(said, result.dtype)
    return result


def _said_by(graph: SourceGraph, before: int) -> list[str]:
    """The ops of the nodes that came since, but leaves."""
    ops = (graph.find(i).op for i in range(before, len(graph)))
    return [op for op in ops if op not in _LEAVES]


def place_of(equation: Any) -> str | None:
    """Where in the source an equation was written, or None where that is JAX's own."""
    traceback = equation.source_info.traceback
    for frame in traceback.frames if traceback is not None else ():
        if not str(frame.file_name).startswith(_HIDDEN):
            return f"{Path(frame.file_name).name}:{frame.line_num} ({frame.function_name})"
    return None
