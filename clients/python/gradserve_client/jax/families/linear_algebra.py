"""Linear systems, inverses, determinants and exponentials of matrices.

JAX implements solvers, inverses and determinants by LU factors and custom rules. The name of a function says which
operation it is, but `vmap` may have moved its axes. The rules therefore evaluate the jaxpr on a random matrix, compare
the result with NumPy's, and then write one op.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import jax
import numpy as np
from jax.extend.core import jaxpr_as_fun

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import size
from gradserve_client.jax.call import Call, Results
from gradserve_client.jax.families.helpers import inverse_order, transpose_axes
from gradserve_client.jax.families.table import RULES
from gradserve_client.jax.values import LazyNode, Value
from gradserve_client.tensors import Array


@RULES("triangular_solve")
def triangular_solve(call: Call) -> Results:
    """`triangular_solve`; transposed if `left_side` is false, with ones on the diagonal if `unit_diagonal` is set."""
    params = call.params
    a, b = call.nodes
    lower, transpose = bool(params["lower"]), bool(params["transpose_a"])
    if params["conjugate_a"] and call.is_complex():
        a = a.conj()
    if params["unit_diagonal"]:
        extent = call.shape()[-1]
        strict = a.tril(offset=-1) if lower else a.triu(offset=1)
        a = strict.add(call.constant(np.eye(extent), call.dtype()))
    if params["left_side"]:
        return a.triangular_solve(b, lower=lower, transpose=transpose)
    return a.triangular_solve(b.transpose(), lower=lower, transpose=not transpose).transpose()


def _random_array(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Draw numbers to compare functions on. Square matrices are far from singular."""
    numbers = np.random.default_rng(0).standard_normal(tuple(shape))
    if len(shape) >= 2 and shape[-1] == shape[-2]:
        numbers = numbers / 4 + 2 * np.eye(shape[-1])
    return (numbers * (1 + 0.5j) if dtype.kind == "c" else numbers).astype(dtype)


def _agree(actual: Any, expected: Any, dtype: np.dtype[Any]) -> bool:
    if np.shape(actual) != np.shape(expected):
        return False
    tolerance = 1e-3 if np.finfo(dtype).bits <= 32 else 1e-9
    return np.allclose(actual, expected, rtol=tolerance, atol=tolerance)


@RULES("custom_linear_solve")
def custom_linear_solve(call: Call) -> Results:
    """`solve`, if the matrix of its product is solved by LU factors. Other solvers are unsupported."""
    lengths, jaxprs = call.params["const_lengths"], call.params["jaxprs"]
    counts = [0, lengths.matvec, lengths.vecmat, lengths.solve, lengths.transpose_solve]
    starts = np.cumsum(counts)
    solver = call.operands[starts[2] : starts[3]]
    if lengths.matvec != 1 or not any(isinstance(value.marker, LazyNode) for value in solver) or len(call.results) != 1:
        raise Blocked("it has its own solver", "use jnp.linalg.solve, or lax.fixed_point as custom_vjp")
    a, b = call.operands[0], call.operands[-1]
    for transposed in (False, True):
        for axis in range(len(b.shape)):
            if _is_product(jaxprs.matvec, a, b, axis, transposed):
                return [_solve(call, a, b, axis, transposed)]
    raise Blocked("the matrix axes of its operands cannot be determined", "map over leading axes")


def _column_order(a: Value, b: Value, axis: int) -> tuple[int, list[int]] | None:
    """Return the number of batch axes, and the order of b's axes that puts `axis` behind these and the columns last."""
    batch = len(a.shape) - 2
    if axis < batch or len(b.shape) <= batch or b.shape[axis] != a.shape[-1] or b.shape[:batch] != a.shape[:batch]:
        return None
    return batch, [*range(batch), axis, *(i for i in range(batch, len(b.shape)) if i != axis)]


def _is_product(matvec: Any, a: Value, b: Value, axis: int, transposed: bool) -> bool:
    """Return whether the product multiplies matrices on the last axes of a by columns along an axis of b."""
    columns_order = _column_order(a, b, axis)
    if columns_order is None:
        return False
    batch, order = columns_order
    matrix, x = _random_array(a.shape, a.dtype), _random_array(b.shape, b.dtype)
    moved = np.transpose(x, order)
    columns = moved.reshape(*moved.shape[: batch + 1], -1)
    product = (np.swapaxes(matrix, -1, -2) if transposed else matrix) @ columns
    expected = np.transpose(product.reshape(moved.shape), np.argsort(order))
    (actual,) = jaxpr_as_fun(matvec)(matrix, x)
    return _agree(actual, expected, a.dtype)


def _solve(call: Call, a: Value, b: Value, axis: int, transposed: bool) -> Node:
    columns_order = _column_order(a, b, axis)
    assert columns_order is not None, "it is a product"
    batch, order = columns_order
    matrix = call.scope.node_of(a)
    moved = transpose_axes(call.scope.node_of(b), order)
    shape = [b.shape[i] for i in order]
    columns = moved.reshape(shape=[*shape[: batch + 1], size(shape[batch + 1 :])])
    solution = (matrix.transpose() if transposed else matrix).solve(columns)
    return transpose_axes(solution.reshape(shape=shape), inverse_order(order))


def _matching_results(call: Call, closed: Any, reference: Callable[[Array], Sequence[Array]]) -> list[int] | None:
    """Return which results of `reference`, a function of a matrix, a jaxpr returns, or None if it returns others."""
    value = call.operands[0]
    if len(call.operands) != 1 or len(value.shape) < 2 or value.shape[-1] != value.shape[-2]:
        return None
    matrix = _random_array(value.shape, value.dtype)
    expected = reference(matrix)
    positions = []
    for result in jaxpr_as_fun(closed)(matrix):
        matches = [i for i, candidate in enumerate(expected) if _agree(result, candidate, value.dtype)]
        if len(matches) != 1:
            return None
        positions += matches
    return positions


def log_determinant(call: Call, closed: Any) -> Results | None:
    """Write `slogdet` if the jaxpr returns its results or one of them."""
    positions = _matching_results(call, closed, lambda x: [*np.linalg.slogdet(x)])
    if positions is None:
        return None
    node = call.node().slogdet()
    return [node.get_output(position) for position in positions]


def determinant(call: Call, closed: Any) -> Results | None:
    """Write `det` if the jaxpr returns the determinant."""
    if _matching_results(call, closed, lambda x: [np.linalg.det(x)]) is None:
        return None
    return [call.node().det()]


def _inverse(call: Call, closed: Any) -> Results | None:
    if _matching_results(call, closed, lambda x: [np.linalg.inv(x)]) is None:
        return None
    return [call.node().inv()]


def _exponential(call: Call, closed: Any) -> Results | None:
    if _matching_results(call, closed, lambda x: [np.asarray(jax.scipy.linalg.expm(x))]) is None:
        return None
    return [call.node().matrix_exp()]


#: jitted JAX functions that are one op, by name
NAMED: Final[Mapping[str, Callable[[Call, Any], Results | None]]] = {
    "expm": _exponential,
    "inv": _inverse,
    "slogdet": log_determinant,
}
