"""Rules of `custom_jvp` and `custom_vjp` as jaxprs from operands, results and cotangents to cotangents.

The `derivative` of a `call` node is a function (operands, results, cotangents of the results) -> cotangents of the
operands. JAX keeps a custom rule as Python code, so the equation is bound again under `jax.vjp`: for `custom_vjp` this
runs the user's forward and backward functions, for `custom_jvp` JAX transposes the rule for tangents. `jax.make_jaxpr`
traces this into the jaxpr that becomes the derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gradserve_client.importing import Blocked
from gradserve_client.jax.call import Call
from gradserve_client.jax.values import Value, shape_dtype

_WORKAROUND = "use custom_rules='body' to differentiate its body instead of its rule"


def function_key(call: Call) -> str:
    """Return a key for the function with a rule: its source location and its jaxpr."""
    closed = call.params["call_jaxpr"]
    info = closed.jaxpr.debug_info
    return f"{call.op} {info.func_src_info if info is not None else ''} {closed.jaxpr}"


def derivative_jaxpr(call: Call, passed: Sequence[int]) -> Any:
    """Trace the rule as a jaxpr (operands, results, cotangents of the results) -> cotangents of operands.

    It returns a cotangent for each float operand in `passed`, in the convention of `derivative`: for complex numbers,
    the conjugate of JAX's. JAX has no derivatives with respect to values that the function closes over; their
    cotangents are NaN. Raises Blocked if JAX cannot trace the rule.
    """
    equation, count, results = call.equation, len(call.operands), len(call.results)
    floats = [i for i in passed if call.operands[i].is_float]
    differentiated = [i for i in floats if i >= call.params["num_consts"]]
    float_results = [i for i, value in enumerate(call.results) if value.is_float]

    def back(*values: Any) -> Any:
        operands, cotangents = values[:count], values[count + results :]

        def primal(*replaced: Any) -> Any:
            by_position = dict(zip(differentiated, replaced, strict=True))
            outputs = bind(equation, [by_position.get(i, operand) for i, operand in enumerate(operands)])
            return [outputs[i] for i in float_results]

        _, pull = jax.vjp(primal, *(operands[i] for i in differentiated))
        pulled = pull([conjugate(cotangents[i]) for i in float_results])
        gradients = dict(zip(differentiated, map(conjugate, pulled), strict=True))
        return [gradients[i] if i in gradients else nan_like(operands[i]) for i in floats]

    try:
        closed = jax.make_jaxpr(back)(*derivative_types(call))
    except Exception as error:  # a user's rule can raise anything
        message = str(error).strip().splitlines()
        about = f"{type(error).__name__}: {message[0][:160]}" if message else type(error).__name__
        raise Blocked(f"its rule cannot be expressed as a function of cotangents ({about})", _WORKAROUND) from error
    if any(isinstance(value, jax.core.Tracer) for value in closed.consts):
        raise Blocked("its rule reads values of the enclosing function", _WORKAROUND)
    return closed


def nan_jaxpr(call: Call, passed: Sequence[int]) -> Any:
    """Return a jaxpr of the same operands whose cotangents are NaN, which cannot be mistaken for a derivative."""
    floats = [i for i in passed if call.operands[i].is_float]
    return jax.make_jaxpr(lambda *values: [nan_like(values[i]) for i in floats])(*derivative_types(call))


def conjugate(cotangent: Any) -> Any:
    """Convert a cotangent between JAX's convention and the server's: conjugate it if it is complex."""
    return jnp.conj(cotangent) if cotangent.dtype.kind == "c" else cotangent


def nan_like(operand: Any) -> Any:
    """Return NaN in the operand's shape and dtype."""
    return jnp.full(operand.shape, jnp.nan, operand.dtype)


def derivative_types(call: Call) -> list[Any]:
    """Return the types of a derivative's operands: the operands, the results, and a cotangent for each result."""
    cotangents = [value if value.is_float else Value(value.shape, np.dtype(np.float64)) for value in call.results]
    return [shape_dtype(value) for value in (*call.operands, *call.results, *cotangents)]


def bind(equation: Any, operands: Sequence[Any]) -> list[Any]:
    """Evaluate an equation on other operands."""
    params = equation.primitive.get_bind_params(equation.params)
    results = equation.primitive.bind(*operands, **params)
    return list(results) if equation.primitive.multiple_results else [results]
