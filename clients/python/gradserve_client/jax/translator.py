"""Translation of a jaxpr to nodes of a graph, one equation at a time.

`Translator.walk` drops the equations that no result needs and visits the others in order. An environment maps each
variable to a `Value`, and the rule of the primitive adds nodes to the graph:

    y = sin x        the rule of `sin` adds the node sin(x)
    z = mul 2.0 y    the rule of `mul` adds the node mul_scalar(y, scalar=2.0)

An equation of constants is not translated: JAX evaluates it at once, and the result is a constant of the graph. Rules
of primitives that run a jaxpr (`jit`, `scan`, `cond`) call `walk` again, on the same graph or on that of a function.

A rule that cannot translate an equation raises Blocked. The translator records the reason, stands placeholder inputs
in for the results and continues, so that one import reports everything that is unsupported.
"""

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
from gradserve_client.jax.call import Call, Result, Results
from gradserve_client.jax.context import Context, CustomRules
from gradserve_client.jax.custom_rules import bind
from gradserve_client.jax.families.complex_numbers import TAKE_COMPLEX
from gradserve_client.jax.families.unsupported import COMPUTED
from gradserve_client.jax.rules import RULES, refusal_of
from gradserve_client.jax.values import Scope, Value, require_threefry, unsupported

#: primitives that draw random numbers: the server draws them, so they are never folded
_RANDOM: Final = frozenset({"random_bits"})
#: elements up to which a result is folded, if its operands are smaller
_FOLD_LIMIT: Final = 1024
#: primitives whose jaxpr is inlined; the tally counts its equations, and no nodes for them
_INLINE: Final = frozenset({"call", "closed_call", "composite", "custom_vmap_call", "jit"})
#: ops of leaves, which the tally of nodes per primitive leaves out
_LEAVES: Final = ("constant", "input", "parameter")
#: beginnings of paths that are not the user's source
_HIDDEN: Final = (str(Path(jax.__file__).parent), str(Path(__file__).parent), "<frozen")


class Translator(Context):
    """Translates one function. `obstacles` has what is unsupported, `tally` counts primitives and their nodes."""

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
        #: the current equation, behind the equations that enclose it
        self._enclosing: list[Any] = []

    def walk(self, closed: Any, operands: Sequence[Value], scope: Scope) -> list[Value]:
        """Translate the equations that the results need, and return the results."""
        reads = getattr(closed, "reads", None)
        if reads is not None:
            closed, operands = closed.closed, reads(operands)
        jaxpr, _ = partial_eval.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars), instantiate=True)
        environment = {
            var: _constant_value(var.aval, value)
            for var, value in zip(closed.jaxpr.constvars, closed.consts, strict=True)
        }
        environment |= dict(zip(jaxpr.invars, operands, strict=True))

        def read(atom: Any) -> Value:
            return _constant_value(atom.aval, atom.val) if isinstance(atom, Number) else environment[atom]

        for equation in jaxpr.eqns:
            results = self._translate_or_block(equation, [read(atom) for atom in equation.invars], scope)
            environment |= dict(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _translate_or_block(self, equation: Any, operands: Sequence[Value], scope: Scope) -> list[Value]:
        op, before = equation.primitive.name, len(scope.graph)
        results = [Value.of_type(var.aval) for var in equation.outvars]
        self._enclosing.append(equation)
        self.budget.locate(op, self._place)
        try:
            self.budget.add_steps()
            return self._translate(equation, operands, results, scope)
        except Blocked as blocked:
            self.obstacles.add(op, self._place(), blocked)
            # the import fails in the end: placeholders only let the walk find further obstacles
            return [value.with_node(scope.graph.input()) for value in results]
        finally:
            self._enclosing.pop()
            self.tally.count(op, () if op in _INLINE else _ops_since(scope.graph, before))

    def _place(self) -> str:
        """Return the source location of the current equation, or of the innermost enclosing equation that has one."""
        for equation in reversed(self._enclosing):
            place = place_of(equation)
            if place is not None:
                return place
        return "an unknown place"

    def _translate(
        self, equation: Any, operands: Sequence[Value], results: Sequence[Value], scope: Scope
    ) -> list[Value]:
        op = equation.primitive.name
        for atom in (*equation.invars, *equation.outvars):
            require_threefry(atom.aval)
        if _can_fold(equation, operands, results):
            return _fold(equation, operands)
        refusal = refusal_of(op)
        if refusal is not None:
            raise refusal
        rule = RULES.find(op)
        if rule is None:
            raise Blocked("there is no rule for it")
        if op not in TAKE_COMPLEX and any(value.is_complex for value in (*operands, *results)):
            raise Blocked("no op computes it for complex numbers", "compute with separate real and imaginary parts")
        call = Call(op, equation.params, operands, results, scope, self, equation)
        return _as_values(rule.translate(call), results)


def _constant_value(aval: Any, value: Any) -> Value:
    constant = Value.of_type(aval)
    constant.constant = value if constant.is_key else np.asarray(value, constant.dtype)
    return constant


def _can_fold(equation: Any, operands: Sequence[Value], results: Sequence[Value]) -> bool:
    """Return whether JAX can evaluate an equation now, without making the graph's constants much larger."""
    op = equation.primitive.name
    if op in _RANDOM or not all(value.is_constant for value in operands) or equation.effects:
        return False
    if (refusal_of(op) is not None and op not in COMPUTED) or _has_jaxprs(equation.params):
        return False
    operand_size = sum(_size(value) for value in operands)
    return all(_size(value) <= max(_FOLD_LIMIT, operand_size) for value in results)


def _has_jaxprs(params: Mapping[str, Any]) -> bool:
    """Return whether there are jaxprs among the parameters."""
    return any(isinstance(each, ClosedJaxpr | Jaxpr) for value in params.values() for each in _as_tuple(value))


def _as_tuple(value: Any) -> Sequence[Any]:
    return value if isinstance(value, tuple) else (value,)


def _size(value: Value) -> int:
    return int(np.prod(value.shape, dtype=np.int64))


def _fold(equation: Any, operands: Sequence[Value]) -> list[Value]:
    results = bind(equation, [value.constant for value in operands])
    return [_constant_value(var.aval, value) for var, value in zip(equation.outvars, results, strict=True)]


def _as_values(output: Results, results: Sequence[Value]) -> list[Value]:
    outputs: Sequence[Result] = [output] if isinstance(output, Node | Value | np.ndarray | np.generic) else output
    return [_as_value(one, result) for one, result in zip(outputs, results, strict=True)]


def _as_value(output: Result, result: Value) -> Value:
    if isinstance(output, Value):
        return output
    if isinstance(output, Node):
        reason = unsupported(result.dtype)
        if reason is not None:
            raise Blocked(f"it returns {reason}")
        return result.with_node(output)
    result.constant = np.asarray(output, result.dtype)
    return result


def _ops_since(graph: SourceGraph, before: int) -> list[str]:
    """Return the ops of the nodes added since, without leaves."""
    ops = (graph.find(i).op for i in range(before, len(graph)))
    return [op for op in ops if op not in _LEAVES]


def place_of(equation: Any) -> str | None:
    """Return the source location of an equation, or None if it is inside JAX."""
    traceback = equation.source_info.traceback
    for frame in traceback.frames if traceback is not None else ():
        if not str(frame.file_name).startswith(_HIDDEN):
            return f"{Path(frame.file_name).name}:{frame.line_num} ({frame.function_name})"
    return None
