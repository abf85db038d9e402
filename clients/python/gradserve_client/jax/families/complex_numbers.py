"""Parts of complex numbers, and the primitives that support them."""

from __future__ import annotations

from typing import Final

from gradserve_client.jax.call import Call, Results
from gradserve_client.jax.families.table import RULES

#: primitives whose rules support complex operands and results
TAKE_COMPLEX: Final = frozenset(
    (
        "abs",
        "add",
        "add_any",
        "broadcast_in_dim",
        "call",
        "cholesky",
        "closed_call",
        "complex",
        "composite",
        "concatenate",
        "cond",
        "conj",
        "convert_element_type",
        "copy",
        "cos",
        "cosh",
        "cumprod",
        "cumsum",
        "custom_jvp_call",
        "custom_linear_solve",
        "custom_vjp_call",
        "custom_vmap_call",
        "device_put",
        "div",
        "dot_general",
        "dynamic_slice",
        "dynamic_update_slice",
        "eigh",
        "eq",
        "exp",
        "fft",
        "gather",
        "imag",
        "integer_pow",
        "jit",
        "log",
        "logistic",
        "lu",
        "mul",
        "name",
        "ne",
        "neg",
        "optimization_barrier",
        "pad",
        "pow",
        "pvary",
        "qr",
        "real",
        "reduce_prod",
        "reduce_sum",
        "remat2",
        "reshape",
        "rev",
        "rsqrt",
        "scan",
        "scatter",
        "scatter-add",
        "scatter-sub",
        "select_n",
        "sharding_constraint",
        "sin",
        "sinh",
        "slice",
        "split",
        "sqrt",
        "square",
        "squeeze",
        "stack",
        "stop_gradient",
        "sub",
        "svd",
        "tan",
        "tanh",
        "tile",
        "transpose",
        "triangular_solve",
        "unstack",
        "while",
    )
)


@RULES("complex")
def complex_(call: Call) -> Results:
    """`make_complex`."""
    return call.node(0).make_complex(call.node(1))


@RULES("real")
def real(call: Call) -> Results:
    """`real`."""
    return call.node().real()


@RULES("imag")
def imag(call: Call) -> Results:
    """`imag`."""
    return call.node().imag()


@RULES("conj")
def conj(call: Call) -> Results:
    """`conj`; the result is complex for a real operand, too."""
    return call.cast(call.node(), call.dtype()).conj()
