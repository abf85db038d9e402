"""Primitives that run a jaxpr: inlined, rematerialized (`remat`), or with a custom rule."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked, Note
from gradserve_client.importing.writing import outputs_of
from gradserve_client.jax.bodies import build_function, constant_positions
from gradserve_client.jax.call import Call, Results
from gradserve_client.jax.custom_rules import derivative_jaxpr, function_key, nan_jaxpr
from gradserve_client.jax.families.linear_algebra import NAMED, determinant, log_determinant
from gradserve_client.jax.families.table import RULES
from gradserve_client.jax.values import KnownCall, Value

#: times that a rule is translated inside itself, if it calls its function on other operands
_MAX_RULE_NESTING: Final = 2
_LIBRARY: Final = str(Path(jax.__file__).parent)


def is_jax_function(closed: Any) -> bool:
    """Return whether a jaxpr is that of a function of the JAX library."""
    info = closed.jaxpr.debug_info
    return info is not None and str(info.func_filename or "").startswith(_LIBRARY)


@RULES("jit", "closed_call", "call", "composite", "custom_vmap_call")
def inline(call: Call) -> Results:
    """The inlined jaxpr, or one op for some of JAX's own functions."""
    closed = next(call.params[name] for name in ("call_jaxpr", "jaxpr", "call") if name in call.params)
    if isinstance(closed, Jaxpr):
        closed = ClosedJaxpr(closed, ())
    by_name = NAMED.get(str(call.params.get("name"))) if is_jax_function(closed) else None
    results = by_name(call, closed) if by_name is not None else None
    return call.inline(closed) if results is None else results


@RULES("remat2")
def remat(call: Call) -> Results:
    """`call` with `recompute`: no intermediate values are kept for the backward pass."""
    jaxpr = ClosedJaxpr(call.params["jaxpr"], ())
    constants = constant_positions(call.operands, range(len(call.operands)))
    if len(constants) == len(call.operands):
        return call.inline(jaxpr)
    body = build_function(call.context, call.scope, jaxpr, call.operands, constants)
    passed = [call.node(i) for i in range(len(call.operands)) if i not in constants]
    return outputs_of(call.graph.call(*passed, body=body, recompute=True), len(call.results))


def _relu(call: Call, _: Any) -> Results:
    return call.node().relu()


def _logaddexp(call: Call, _: Any) -> Results | None:
    for i in (0, 1):
        if call.is_constant(i) and not np.any(call.constant_value(i)) and call.shape(1 - i) == call.results[0].shape:
            return call.node(1 - i).softplus()
    return call.node(0).logaddexp(call.node(1))


_CLOSURE_SENTENCE: Final = "reads values of the enclosing function, for which JAX has no derivatives: they are NaN"
#: JAX functions with a custom rule that are one op with the same gradient
OWN: Final[Mapping[str, Any]] = {
    "relu": _relu,
    "logaddexp": _logaddexp,
    "_slogdet_lu": log_determinant,
    "_det": determinant,
}


@RULES("custom_jvp_call", "custom_vjp_call")
def custom(call: Call) -> Results:
    """`call` with the rule as `derivative`, transposed if it is for tangents; one op for some of JAX's own."""
    closed = call.params["call_jaxpr"]
    info = closed.jaxpr.debug_info
    rule = OWN.get(info.func_name) if info is not None and is_jax_function(closed) else None
    results: Results | None = rule(call, closed) if rule is not None else None
    if results is not None:
        return results
    key = function_key(call)
    # inside its own derivative, the results of the call are operands of the derivative
    for other in call.scope.known_calls:
        if other.matches(key, call.operands):
            return [*other.results]
    if call.context.custom_rules == "body":
        sentence = "its body is differentiated, not its rule: custom_rules='body'"
        call.context.remark(Note("op", f"{call.op} {_name(call)}", 1, sentence))
        return call.inline(closed)
    if not any(value.is_float for value in call.operands if not value.is_constant):
        return call.inline(closed)
    return _with_rule(call, closed, key)


def _name(call: Call) -> str:
    info = call.params["call_jaxpr"].jaxpr.debug_info
    return str(info.func_name) if info is not None else "without a name"


def _trace_rule(call: Call, passed: list[int], source: str) -> Any:
    """Return the jaxpr of the rule, or, inside other rules, of NaN if it cannot be traced or is nested too deeply.

    Derivatives of the imported function are then correct up to the order of the enclosing rules.
    """
    order = len(call.scope.rules)
    if call.scope.rules.count(source) < _MAX_RULE_NESTING:
        try:
            return derivative_jaxpr(call, passed)
        except Blocked:
            if not order:
                raise
    sentence = f"is run by a rule and has derivatives up to order {order}: higher ones are NaN"
    call.context.remark(Note("op", source, 1, sentence))
    return nan_jaxpr(call, passed)


def _with_rule(call: Call, closed: Any, key: str) -> list[Node]:
    count = len(call.operands)
    constants = constant_positions(call.operands, range(count))
    cotangents = [value if value.is_float else Value(value.shape, np.dtype(np.float64)) for value in call.results]
    passed = [i for i in range(count) if i not in constants]
    source = f"{call.op} {_name(call)}"
    if any(i < call.params["num_consts"] and call.operands[i].is_float for i in passed):
        call.context.remark(Note("op", source, 1, _CLOSURE_SENTENCE))
    rule = _trace_rule(call, passed, source)
    operands_of_rule = [*call.operands, *call.results, *cotangents]

    def known_calls(inner: Any) -> list[KnownCall]:
        return [KnownCall(key, inner[:count], inner[count : count + len(call.results)])]

    body = build_function(call.context, call.scope, closed, call.operands, constants)
    back = build_function(
        call.context, call.scope.within(source), rule, operands_of_rule, constants, known_calls=known_calls
    )
    node = call.graph.call(*(call.node(i) for i in passed), body=body, derivative=back)
    return outputs_of(node, len(call.results))
