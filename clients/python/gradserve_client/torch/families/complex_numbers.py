"""Parts of complex numbers, and the ops that support them."""

from __future__ import annotations

from typing import Final

from gradserve_client.torch.call import Call, Results
from gradserve_client.torch.families.table import RULES

#: ops whose rules support complex operands and results
TAKE_COMPLEX: Final = frozenset(
    (
        "_conj",
        "_conj_physical",
        "_fft_c2c",
        "_fft_c2r",
        "_fft_r2c",
        "_linalg_det",
        "_linalg_eigh",
        "_linalg_slogdet",
        "_linalg_solve_ex",
        "_linalg_svd",
        "_to_copy",
        "_unsafe_view",
        "abs",
        "add.Scalar",
        "add.Tensor",
        "alias",
        "angle",
        "bmm",
        "cat",
        "clone",
        "complex",
        "constant_pad_nd",
        "cos",
        "cosh",
        "cumprod",
        "cumsum",
        "div.Scalar",
        "div.Tensor",
        "dot",
        "eq.Scalar",
        "eq.Tensor",
        "exp",
        "expand",
        "flip",
        "gradserve_client.stop_gradient",
        "index.Tensor",
        "linalg_cholesky",
        "linalg_inv",
        "linalg_lu",
        "linalg_matrix_exp",
        "linalg_pinv.atol_rtol_tensor",
        "linalg_qr",
        "linalg_solve",
        "log",
        "matmul",
        "mean",
        "mean.dim",
        "mm",
        "mul.Scalar",
        "mul.Tensor",
        "mv",
        "ne.Scalar",
        "ne.Tensor",
        "neg",
        "permute",
        "polar",
        "prod",
        "prod.dim_int",
        "reciprocal",
        "repeat",
        "rsqrt",
        "rsub.Scalar",
        "select.int",
        "sigmoid",
        "sin",
        "sinh",
        "slice.Tensor",
        "sqrt",
        "squeeze",
        "squeeze.dim",
        "squeeze.dims",
        "sub.Scalar",
        "sub.Tensor",
        "sum",
        "sum.dim_IntList",
        "tanh",
        "unbind.int",
        "unsqueeze",
        "view",
        "view_as_complex",
        "view_as_real",
        "where.self",
    )
)


@RULES("complex")
def complex_(call: Call) -> Results:
    """Compose real and imaginary parts."""
    return call.node("real").make_complex(call.node("imag"))


@RULES("polar")
def polar(call: Call) -> Results:
    """Compose absolute value and angle."""
    size, angle = call.node("abs"), call.node("angle")
    return size.mul(angle.cos()).make_complex(size.mul(angle.sin()))


@RULES("view_as_real")
def view_as_real(call: Call) -> Results:
    """Stack both parts along a new last axis."""
    x = call.node()
    return call.graph.stack(x.real(), x.imag(), axis=call.rank())


@RULES("view_as_complex")
def view_as_complex(call: Call) -> Results:
    """Compose both parts, which are on the last axis."""
    x, axis = call.node(), call.rank() - 1
    return x.select(0, axis=axis).make_complex(x.select(1, axis=axis))


@RULES("_conj", "_conj_physical")
def conj(call: Call) -> Results:
    """Write `conj`."""
    return call.node().conj()


@RULES("angle")
def angle(call: Call) -> Results:
    """Write `angle`, which is 0 or π for real numbers."""
    return call.node_as("self", call.result.dtype if not call.value().type.is_complex else call.dtype()).angle()
