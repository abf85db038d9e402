"""What runs a jaxpr: put inline, computed again on the way back, or with a rule of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked, Note
from gradserve_client.importing.writing import several
from gradserve_client.jax.bodies import function, known_places
from gradserve_client.jax.call import Call, Said
from gradserve_client.jax.custom_rules import not_followed, pulled_back, told
from gradserve_client.jax.families.linear_algebra import NAMED, determinant, log_determinant
from gradserve_client.jax.families.table import RULES
from gradserve_client.jax.values import KnownCall, Value

#: how often the rule of a function is followed in the rule itself, where that runs it on other operands
_ORDERS: Final = 2
_LIBRARY: Final = str(Path(jax.__file__).parent)


def is_of_jax(closed: Any) -> bool:
    """Whether a jaxpr is of a function of JAX itself."""
    info = closed.jaxpr.debug_info
    return info is not None and str(info.func_filename or "").startswith(_LIBRARY)


@RULES("jit", "closed_call", "call", "composite", "custom_vmap_call")
def inlined(call: Call) -> Said:
    """The nodes of what it runs; some of JAX's own functions by their name."""
    closed = next(call.params[name] for name in ("call_jaxpr", "jaxpr", "call") if name in call.params)
    if isinstance(closed, Jaxpr):
        closed = ClosedJaxpr(closed, ())
    named = NAMED.get(str(call.params.get("name"))) if is_of_jax(closed) else None
    found = named(call, closed) if named is not None else None
    return call.inline(closed) if found is None else found


@RULES("remat2")
def remat(call: Call) -> Said:
    """`call` with `recompute`: nothing of what it runs is kept for the way back."""
    jaxpr = ClosedJaxpr(call.params["jaxpr"], ())
    inside = known_places(call.operands, range(len(call.operands)))
    if len(inside) == len(call.operands):
        return call.inline(jaxpr)
    body = function(call.context, call.scope, jaxpr, call.operands, inside)
    passed = [call.node(i) for i in range(len(call.operands)) if i not in inside]
    return several(call.graph.call(*passed, body=body, recompute=True), len(call.results))


def _relu(call: Call, _: Any) -> Said:
    return call.node().relu()


def _logaddexp(call: Call, _: Any) -> Said | None:
    for i in (0, 1):
        if call.is_constant(i) and not np.any(call.known(i)) and call.shape(1 - i) == call.results[0].shape:
            return call.node(1 - i).softplus()
    return call.node(0).logaddexp(call.node(1))


_AROUND: Final = "reads values of the function around it, by which JAX has no derivatives: those are NaN"
#: JAX's own, by name, whose rule says what the gradient of ours is
OWN: Final[Mapping[str, Any]] = {
    "relu": _relu,
    "logaddexp": _logaddexp,
    "_slogdet_lu": log_determinant,
    "_det": determinant,
}


@RULES("custom_jvp_call", "custom_vjp_call")
def custom(call: Call) -> Said:
    """`call` with `derivative`: the rule, transposed where it is one of tangents. Some of JAX's own by name."""
    closed = call.params["call_jaxpr"]
    info = closed.jaxpr.debug_info
    own = OWN.get(info.func_name) if info is not None and is_of_jax(closed) else None
    found: Said | None = own(call, closed) if own is not None else None
    if found is not None:
        return found
    who = told(call)
    for known in call.scope.known:
        if known.is_of(who, call.operands):
            return [*known.results]
    if call.context.custom_rules == "body":
        sentence = "is differentiated as its body is, and not by its rule: custom_rules='body'"
        call.context.remark(Note("op", f"{call.op} {_name(call)}", 1, sentence))
        return call.inline(closed)
    if not any(value.is_float for value in call.operands if not value.is_constant):
        return call.inline(closed)
    return _with_rule(call, closed, who)


def _name(call: Call) -> str:
    info = call.params["call_jaxpr"].jaxpr.debug_info
    return str(info.func_name) if info is not None else "of no name"


def _rule_of(call: Call, passed: list[int], source: str) -> Any:
    """The rule; within rules NaN, from where it cannot be followed: what was imported has derivatives up to there."""
    orders = len(call.scope.rules)
    if call.scope.rules.count(source) < _ORDERS:
        try:
            return pulled_back(call, passed)
        except Blocked:
            if not orders:
                raise
    sentence = f"is run by a rule, and has derivatives up to order {orders}: those beyond are NaN"
    call.context.remark(Note("op", source, 1, sentence))
    return not_followed(call, passed)


def _with_rule(call: Call, closed: Any, who: str) -> list[Node]:
    count = len(call.operands)
    inside = known_places(call.operands, range(count))
    cotangents = [value if value.is_float else Value(value.shape, np.dtype(np.float64)) for value in call.results]
    passed = [i for i in range(count) if i not in inside]
    source = f"{call.op} {_name(call)}"
    if any(i < call.params["num_consts"] and call.operands[i].is_float for i in passed):
        call.context.remark(Note("op", source, 1, _AROUND))
    rule = _rule_of(call, passed, source)
    everything = [*call.operands, *call.results, *cotangents]

    def known(given: Any) -> list[KnownCall]:
        return [KnownCall(who, given[:count], given[count : count + len(call.results)])]

    body = function(call.context, call.scope, closed, call.operands, inside)
    back = function(call.context, call.scope.within(source), rule, everything, inside, known=known)
    made = call.graph.call(*(call.node(i) for i in passed), body=body, derivative=back)
    return several(made, len(call.results))
