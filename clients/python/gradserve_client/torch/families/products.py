"""Matrix products, inverses, linear systems and determinants."""

from __future__ import annotations

from gradserve_client.graph import Node
from gradserve_client.importing.writing import outputs_of
from gradserve_client.torch.call import Call, Results, require
from gradserve_client.torch.families.table import RULES


@RULES("mm", "bmm", "mv", "matmul", "dot")
def matmul(call: Call) -> Results:
    """Write `matmul`."""
    first, second = [name for name in call.arguments if name in ("self", "mat2", "other", "vec", "tensor")]
    return call.node(first).matmul(call.node(second))


@RULES("linear")
def linear(call: Call) -> Results:
    """Compute x wᵀ + b."""
    x, w = call.node("input"), call.node("weight")
    if call.rank("weight") == 1:
        y = x.matmul(w)
        return y.add(call.node("bias")) if call.has("bias") else y
    if call.has("bias") and call.result.is_float and call.rank("input") > 1:
        return x.mlp_layer(w, call.node("bias"))
    y = x.matmul(w.transpose())
    return y.add(call.node("bias")) if call.has("bias") else y


@RULES("addmm", "baddbmm", "addmv")
def addmm(call: Call) -> Results:
    """Compute beta · a + alpha · b c."""
    a, (first, second) = call.node(), [name for name in call.arguments if name not in ("self", "beta", "alpha")]
    alpha, beta = call["alpha"], call["beta"]
    b, c = call.node(first), call.node(second)
    if alpha == beta == 1 and call.result.is_float and call.op == "addmm":
        return b.linear(c, a)
    product = _scale(b.matmul(c), alpha)
    return product if beta == 0 else product.add(_scale(a, beta))


def _scale(node: Node, factor: float) -> Node:
    return node if factor == 1 else node.mul_scalar(float(factor))


@RULES("_linalg_slogdet")
def slogdet(call: Call) -> Results:
    """Return the sign and the logarithm. The kernel's LU results are unused."""
    return [*outputs_of(call.node("A").slogdet(), 2), None, None]


@RULES("linalg_inv", "linalg_inv_ex")
def inverse(call: Call) -> Results:
    """Write `inv`. Whether the inverse exists is not checked."""
    inverted = call.node("A").inv()
    return [inverted, None] if call.op == "linalg_inv_ex" else inverted


@RULES("linalg_solve", "_linalg_solve_ex")
def solve(call: Call) -> Results:
    """Solve a linear system, from the left or the right. Whether a solution exists is not checked."""
    a, b = call.node("A"), call.node("B")
    solution = a.solve(b) if call["left"] else a.transpose().solve(b.transpose()).transpose()
    return [solution, None, None, None] if call.op == "_linalg_solve_ex" else solution


@RULES("linalg_solve_triangular")
def solve_triangular(call: Call) -> Results:
    """Solve a triangular system, from the left or the right."""
    require(not call["unitriangular"], "it assumes a unit diagonal, which no op supports")
    a, b, upper = call.node(), call.node("B"), bool(call["upper"])
    if call["left"]:
        return a.triangular_solve(b, lower=not upper)
    return a.triangular_solve(b.transpose(), lower=not upper, transpose=True).transpose()


@RULES("linalg_cholesky", "linalg_cholesky_ex")
def cholesky(call: Call) -> Results:
    """Return the lower or upper factor. Whether the matrix is positive definite is not checked."""
    factor = call.node().cholesky()
    factor = factor.transpose() if call["upper"] else factor
    return [factor, None] if call.op == "linalg_cholesky_ex" else factor
