"""Factors of matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import several
from gradserve_client.jax.call import Call, Said
from gradserve_client.jax.families.table import RULES
from gradserve_client.jax.values import Later, Value


@RULES("cholesky")
def cholesky(call: Call) -> Said:
    """`cholesky` of what was made symmetric before, as JAX's functions do."""
    return _whole(call, "; of jax.scipy.linalg.solve, assume_a='gen'").cholesky()


@RULES("eigh")
def eigh(call: Call) -> Said:
    """`eigh` of what was made symmetric before, as JAX's functions do."""
    _require_all(call)
    w, v = several(_whole(call).eigh(), 2)
    return [v, w]


@RULES("svd")
def svd(call: Call) -> Said:
    """`svd`, whose vectors are those of values, and no more."""
    _require_all(call)
    u, s, vh = several(call.node().svd(), 3)
    if not call.params["compute_uv"]:
        return [s]
    rows, columns = call.shape()[-2:]
    if call.params["full_matrices"] and rows != columns:
        raise Blocked("it asks for vectors beyond those of values", "state full_matrices=False")
    return [s, u, vh]


@RULES("qr")
def qr(call: Call) -> Said:
    """`qr`, reduced."""
    rows, columns = call.shape()[-2:]
    if call.params["pivoting"]:
        raise Blocked("it exchanges columns", "leave pivoting as it is, False")
    if call.params["full_matrices"] and rows > columns:
        raise Blocked("it asks for columns beyond those of the matrix", "state mode='reduced'")
    return several(call.node().qr(), 2)


@RULES("lu")
def lu(call: Call) -> Said:
    """`lu`, its factors in one matrix; none where `custom_linear_solve` alone reads them, which is `solve`."""
    rows, columns = call.shape()[-2:]

    @cache
    def found() -> list[Node]:
        return several(call.node().lu(), 3)

    def packed() -> Node:
        _, lower, upper = found()
        lead, least = [0, 0] * (call.rank() - 2), min(rows, columns)
        below = lower.tril(offset=-1)
        wide = below.pad([*lead, 0, 0, 0, columns - least]) if columns > least else below
        tall = upper.pad([*lead, 0, rows - least, 0, 0]) if rows > least else upper
        return wide.add(tall)

    def permutation() -> Node:
        return found()[0].cast(call.results[2].dtype.name)

    pivots = Value(call.results[1].shape, call.results[1].dtype, marker=Pivots(permutation))
    return [_later(call, 0, packed), pivots, _later(call, 2, permutation)]


class Pivots:
    """Which rows were exchanged, one after the other: no node says that, but one the order that it leads to."""

    reason = "it reads which rows LU exchanged, one after the other"
    way_round = "read the permutation, which lax.linalg.lu gives, too"

    def __init__(self, permutation: Callable[[], Node]) -> None:
        self.permutation = permutation


@RULES("lu_pivots_to_permutation")
def lu_pivots_to_permutation(call: Call) -> Said:
    """The permutation of `lu`; of no pivots from elsewhere."""
    pivots = call.operands[0].marker
    if not isinstance(pivots, Pivots) or call.params["permutation_size"] != call.shape()[-1]:
        raise Blocked("it is of other pivots than those of lu, or of fewer than rows")
    return [_later(call, 0, pivots.permutation)]


def _later(call: Call, i: int, write: Callable[[], Node]) -> Value:
    return Value(call.results[i].shape, call.results[i].dtype, marker=Later(write))


def _require_all(call: Call) -> None:
    """Raise Blocked where some of the values are asked for."""
    if call.params["subset_by_index"] is not None:
        raise Blocked("it asks for some of the values alone", "slice what it gives of all of them")


def _whole(call: Call, more: str = "") -> Node:
    """x, of which the operand is the symmetric part. Raises Blocked where it is not seen to be one."""
    symmetric = _symmetrised(call.node(), is_complex=call.is_complex())
    if symmetric is None:
        raise Blocked("it reads the lower triangle of a matrix alone", f"leave symmetrize_input as it is, True{more}")
    return symmetric


def _symmetrised(node: Node, is_complex: bool) -> Node | None:
    """x, where the node is (x + xᴴ) / 2, which our op makes itself; or None."""
    if node.op not in {"div_scalar", "mul_scalar"} or node.attrs["scalar"] != {"div_scalar": 2.0}.get(node.op, 0.5):
        return None
    total = node.graph.find(node.operands[0])
    if total.op != "add":
        return None
    one, other = (node.graph.find(i) for i in total.operands)
    for x, turned in ((one, other), (other, one)):
        if _is_adjoint(turned, x, is_complex):
            return x
    return None


def _is_adjoint(node: Node, of: Node, is_complex: bool) -> bool:
    """Whether a node is xᴴ of another: xᵀ, where that is real."""
    if is_complex and node.op != "conj":
        return False
    turned = node.graph.find(node.operands[0]) if is_complex else node
    if turned.op != "transpose" or turned.operands != (of.id,):
        return False
    axes = turned.attrs["axes"]
    return [*axes] == [*range(len(axes) - 2), len(axes) - 1, len(axes) - 2]
