"""Matrix factorizations."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import outputs_of
from gradserve_client.jax.call import Call, Results
from gradserve_client.jax.families.table import RULES
from gradserve_client.jax.values import LazyNode, Value


@RULES("cholesky")
def cholesky(call: Call) -> Results:
    """`cholesky` of a matrix that was made symmetric first, as JAX's functions do."""
    return _unsymmetrized(call, "; for jax.scipy.linalg.solve, pass assume_a='gen'").cholesky()


@RULES("eigh")
def eigh(call: Call) -> Results:
    """`eigh` of a matrix that was made symmetric first, as JAX's functions do."""
    _require_all_values(call)
    w, v = outputs_of(_unsymmetrized(call).eigh(), 2)
    return [v, w]


@RULES("svd")
def svd(call: Call) -> Results:
    """`svd`, reduced."""
    _require_all_values(call)
    u, s, vh = outputs_of(call.node().svd(), 3)
    if not call.params["compute_uv"]:
        return [s]
    rows, columns = call.shape()[-2:]
    if call.params["full_matrices"] and rows != columns:
        raise Blocked("it requests more singular vectors than singular values", "use full_matrices=False")
    return [s, u, vh]


@RULES("qr")
def qr(call: Call) -> Results:
    """`qr`, reduced."""
    rows, columns = call.shape()[-2:]
    if call.params["pivoting"]:
        raise Blocked("it pivots columns", "leave pivoting at its default, False")
    if call.params["full_matrices"] and rows > columns:
        raise Blocked("it requests more columns than the matrix has", "use mode='reduced'")
    return outputs_of(call.node().qr(), 2)


@RULES("lu")
def lu(call: Call) -> Results:
    """`lu`, with both factors in one matrix. It is not written if only `custom_linear_solve` reads them."""
    rows, columns = call.shape()[-2:]

    @cache
    def outputs() -> list[Node]:
        return outputs_of(call.node().lu(), 3)

    def packed() -> Node:
        _, lower, upper = outputs()
        lead, rank = [0, 0] * (call.rank() - 2), min(rows, columns)
        below = lower.tril(offset=-1)
        lower_part = below.pad([*lead, 0, 0, 0, columns - rank]) if columns > rank else below
        upper_part = upper.pad([*lead, 0, rows - rank, 0, 0]) if rows > rank else upper
        return lower_part.add(upper_part)

    def permutation() -> Node:
        return outputs()[0].cast(call.results[2].dtype.name)

    pivots = Value(call.results[1].shape, call.results[1].dtype, marker=Pivots(permutation))
    return [_lazy(call, 0, packed), pivots, _lazy(call, 2, permutation)]


class Pivots:
    """Marker of LU's row exchanges, which no node computes. `permutation` writes the row order that they lead to."""

    reason = "it reads the row exchanges of LU as a sequence"
    workaround = "read the permutation, which lax.linalg.lu also returns"

    def __init__(self, permutation: Callable[[], Node]) -> None:
        self.permutation = permutation


@RULES("lu_pivots_to_permutation")
def lu_pivots_to_permutation(call: Call) -> Results:
    """The permutation of `lu`. Other pivots are unsupported."""
    pivots = call.operands[0].marker
    if not isinstance(pivots, Pivots) or call.params["permutation_size"] != call.shape()[-1]:
        raise Blocked("its pivots are not those of lu, or are fewer than the rows")
    return [_lazy(call, 0, pivots.permutation)]


def _lazy(call: Call, i: int, write: Callable[[], Node]) -> Value:
    return Value(call.results[i].shape, call.results[i].dtype, marker=LazyNode(write))


def _require_all_values(call: Call) -> None:
    """Raise Blocked if only some of the values are requested."""
    if call.params["subset_by_index"] is not None:
        raise Blocked("it requests only some of the values", "slice the result for all of them")


def _unsymmetrized(call: Call, more: str = "") -> Node:
    """Return x if the operand is the symmetric part of x. Raises Blocked if it is not recognised as one."""
    symmetric = _symmetric_origin(call.node(), is_complex=call.is_complex())
    if symmetric is None:
        raise Blocked(
            "it reads only the lower triangle of a matrix", f"leave symmetrize_input at its default, True{more}"
        )
    return symmetric


def _symmetric_origin(node: Node, is_complex: bool) -> Node | None:
    """Return x if the node is (x + xᴴ) / 2, which the op computes itself, else None."""
    if node.op not in {"div_scalar", "mul_scalar"} or node.attrs["scalar"] != {"div_scalar": 2.0}.get(node.op, 0.5):
        return None
    total = node.graph.find(node.operands[0])
    if total.op != "add":
        return None
    left, right = (node.graph.find(i) for i in total.operands)
    for x, adjoint in ((left, right), (right, left)):
        if _is_adjoint(adjoint, x, is_complex):
            return x
    return None


def _is_adjoint(node: Node, x: Node, is_complex: bool) -> bool:
    """Return whether a node is the conjugate transpose of x, or the transpose of a real x."""
    if is_complex and node.op != "conj":
        return False
    transposed = node.graph.find(node.operands[0]) if is_complex else node
    if transposed.op != "transpose" or transposed.operands != (x.id,):
        return False
    axes = transposed.attrs["axes"]
    return [*axes] == [*range(len(axes) - 2), len(axes) - 1, len(axes) - 2]
