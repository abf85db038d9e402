"""Rules of `custom_jvp` and `custom_vjp` as jaxprs of operands, results and cotangents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gradserve_client.importing import Blocked
from gradserve_client.jax.call import Call
from gradserve_client.jax.values import Value, typed

_WAY_ROUND = "custom_rules='body' differentiates its body in place of its rule"


def told(call: Call) -> str:
    """What tells functions with rules apart: where one was written, and what it does."""
    closed = call.params["call_jaxpr"]
    info = closed.jaxpr.debug_info
    return f"{call.op} {info.func_src_info if info is not None else ''} {closed.jaxpr}"


def pulled_back(call: Call, passed: Sequence[int]) -> Any:
    """The jaxpr of a rule: of all operands, the results, and a cotangent for each of these.

    It gives a cotangent for each operand of `passed` that is a float, as `derivative` of `call` has to: of complex
    numbers the conjugate of JAX's. A rule of tangents is transposed, which JAX does by itself. By values that a
    function closes over, JAX has no rule: their cotangents are NaN. Raises Blocked for a rule that JAX cannot say so.
    """
    equation, count, results = call.equation, len(call.operands), len(call.results)
    floats = [i for i in passed if call.operands[i].is_float]
    wanted = [i for i in floats if i >= call.params["num_consts"]]
    given = [i for i, value in enumerate(call.results) if value.is_float]

    def back(*values: Any) -> Any:
        operands, cotangents = values[:count], values[count + results :]

        def of_floats(*moved: Any) -> Any:
            known = dict(zip(wanted, moved, strict=True))
            outputs = bound(equation, [known.get(i, operand) for i, operand in enumerate(operands)])
            return [outputs[i] for i in given]

        _, pull = jax.vjp(of_floats, *(operands[i] for i in wanted))
        pulled = pull([conjugate(cotangents[i]) for i in given])
        found = dict(zip(wanted, map(conjugate, pulled), strict=True))
        return [found[i] if i in found else unknown(operands[i]) for i in floats]

    try:
        closed = jax.make_jaxpr(back)(*types_of(call))
    except Exception as error:  # whatever a rule raises that is another's
        said = str(error).strip().splitlines()
        about = f"{type(error).__name__}: {said[0][:160]}" if said else type(error).__name__
        raise Blocked(f"its rule cannot be said as one of cotangents ({about})", _WAY_ROUND) from error
    if any(isinstance(value, jax.core.Tracer) for value in closed.consts):
        raise Blocked("its rule reads values of the function around it", _WAY_ROUND)
    return closed


def not_followed(call: Call, passed: Sequence[int]) -> Any:
    """The jaxpr of a derivative of the same operands whose cotangents are NaN: nobody takes it for one in silence."""
    floats = [i for i in passed if call.operands[i].is_float]
    return jax.make_jaxpr(lambda *values: [unknown(values[i]) for i in floats])(*types_of(call))


def conjugate(cotangent: Any) -> Any:
    """JAX's cotangent of ours, and ours of JAX's: the conjugate of a complex one."""
    return jnp.conj(cotangent) if cotangent.dtype.kind == "c" else cotangent


def unknown(operand: Any) -> Any:
    """NaN for each element."""
    return jnp.full(operand.shape, jnp.nan, operand.dtype)


def types_of(call: Call) -> list[Any]:
    """What a derivative is given: the types of operands, results, and a cotangent for each result."""
    cotangents = [value if value.is_float else Value(value.shape, np.dtype(np.float64)) for value in call.results]
    return [typed(value) for value in (*call.operands, *call.results, *cotangents)]


def bound(equation: Any, operands: Sequence[Any]) -> list[Any]:
    """The results of an equation on other operands."""
    params = equation.primitive.get_bind_params(equation.params)
    found = equation.primitive.bind(*operands, **params)
    return list(found) if equation.primitive.multiple_results else [found]
