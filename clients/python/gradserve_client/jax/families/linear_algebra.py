"""Systems of equations, inverses, determinants and exponentials of matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import jax
import numpy as np
from jax.extend.core import jaxpr_as_fun

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import size
from gradserve_client.jax.call import Call, Said
from gradserve_client.jax.families.helpers import inverse, transposed
from gradserve_client.jax.families.table import RULES
from gradserve_client.jax.values import Later, Value
from gradserve_client.tensors import Array


@RULES("triangular_solve")
def triangular_solve(call: Call) -> Said:
    """`triangular_solve`; from the right by transposing, and with ones on the diagonal where these are meant."""
    stated = call.params
    a, b = call.nodes
    lower, transpose = bool(stated["lower"]), bool(stated["transpose_a"])
    if stated["conjugate_a"] and call.is_complex():
        a = a.conj()
    if stated["unit_diagonal"]:
        extent = call.shape()[-1]
        strict = a.tril(offset=-1) if lower else a.triu(offset=1)
        a = strict.add(call.constant(np.eye(extent), call.dtype()))
    if stated["left_side"]:
        return a.triangular_solve(b, lower=lower, transpose=transpose)
    return a.triangular_solve(b.transpose(), lower=lower, transpose=not transpose).transpose()


def _random(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Numbers that tell hypotheses apart; square matrices of them are far from singular."""
    drawn = np.random.default_rng(0).standard_normal(tuple(shape))
    if len(shape) >= 2 and shape[-1] == shape[-2]:
        drawn = drawn / 4 + 2 * np.eye(shape[-1])
    return (drawn * (1 + 0.5j) if dtype.kind == "c" else drawn).astype(dtype)


def _agree(one: Any, other: Any, dtype: np.dtype[Any]) -> bool:
    if np.shape(one) != np.shape(other):
        return False
    tolerance = 1e-3 if np.finfo(dtype).bits <= 32 else 1e-9
    return np.allclose(one, other, rtol=tolerance, atol=tolerance)


@RULES("custom_linear_solve")
def custom_linear_solve(call: Call) -> Said:
    """`solve` of the matrix that its product is with, where it is solved by factors of that; of no other solver."""
    lengths, jaxprs = call.params["const_lengths"], call.params["jaxprs"]
    places = [0, lengths.matvec, lengths.vecmat, lengths.solve, lengths.transpose_solve]
    first = np.cumsum(places)
    solver = call.operands[first[2] : first[3]]
    if lengths.matvec != 1 or not any(isinstance(value.marker, Later) for value in solver) or len(call.results) != 1:
        raise Blocked("it is solved by a program of its own", "use jnp.linalg.solve, or lax.fixed_point as custom_vjp")
    a, b = call.operands[0], call.operands[-1]
    for turned in (False, True):
        for axis in range(len(b.shape)):
            if _is_product(jaxprs.matvec, a, b, axis, turned):
                return [_solved(call, a, b, axis, turned)]
    raise Blocked("which axes of its operands are those of matrices is not to be seen", "map over leading axes")


def _places(a: Value, b: Value, axis: int) -> tuple[int, list[int]] | None:
    """How many axes of the matrices are a batch, and the order of b's axes in which its columns stand behind it."""
    batch = len(a.shape) - 2
    if axis < batch or len(b.shape) <= batch or b.shape[axis] != a.shape[-1] or b.shape[:batch] != a.shape[:batch]:
        return None
    return batch, [*range(batch), axis, *(i for i in range(batch, len(b.shape)) if i != axis)]


def _is_product(matvec: Any, a: Value, b: Value, axis: int, turned: bool) -> bool:
    """Whether the product is that of matrices on the last axes of a with the columns along an axis of b."""
    found = _places(a, b, axis)
    if found is None:
        return False
    batch, order = found
    matrix, x = _random(a.shape, a.dtype), _random(b.shape, b.dtype)
    moved = np.transpose(x, order)
    columns = moved.reshape(*moved.shape[: batch + 1], -1)
    product = (np.swapaxes(matrix, -1, -2) if turned else matrix) @ columns
    expected = np.transpose(product.reshape(moved.shape), np.argsort(order))
    (given,) = jaxpr_as_fun(matvec)(matrix, x)
    return _agree(given, expected, a.dtype)


def _solved(call: Call, a: Value, b: Value, axis: int, turned: bool) -> Node:
    found = _places(a, b, axis)
    assert found is not None, "it is a product"
    batch, order = found
    matrix = call.scope.node_of(a)
    moved = transposed(call.scope.node_of(b), order)
    shape = [b.shape[i] for i in order]
    columns = moved.reshape(shape=[*shape[: batch + 1], size(shape[batch + 1 :])])
    solution = (matrix.transpose() if turned else matrix).solve(columns)
    return transposed(solution.reshape(shape=shape), inverse(order))


def _results_among(call: Call, closed: Any, reference: Callable[[Array], Sequence[Array]]) -> list[int] | None:
    """Which results of a function of matrices on the last two axes a jaxpr gives; None where it gives others."""
    value = call.operands[0]
    if len(call.operands) != 1 or len(value.shape) < 2 or value.shape[-1] != value.shape[-2]:
        return None
    matrix = _random(value.shape, value.dtype)
    expected = reference(matrix)
    places = []
    for result in jaxpr_as_fun(closed)(matrix):
        among = [i for i, each in enumerate(expected) if _agree(result, each, value.dtype)]
        if len(among) != 1:
            return None
        places += among
    return places


def log_determinant(call: Call, closed: Any) -> Said | None:
    """`slogdet`, of which one result may be all that is read."""
    places = _results_among(call, closed, lambda x: [*np.linalg.slogdet(x)])
    if places is None:
        return None
    found = call.node().slogdet()
    return [found.get_output(place) for place in places]


def determinant(call: Call, closed: Any) -> Said | None:
    """`det`."""
    if _results_among(call, closed, lambda x: [np.linalg.det(x)]) is None:
        return None
    return [call.node().det()]


def _inverse(call: Call, closed: Any) -> Said | None:
    if _results_among(call, closed, lambda x: [np.linalg.inv(x)]) is None:
        return None
    return [call.node().inv()]


def _exponential(call: Call, closed: Any) -> Said | None:
    if _results_among(call, closed, lambda x: [np.asarray(jax.scipy.linalg.expm(x))]) is None:
        return None
    return [call.node().matrix_exp()]


#: JAX's own jitted functions that are put in place of what they run
NAMED: Final[Mapping[str, Callable[[Call, Any], Said | None]]] = {
    "expm": _exponential,
    "inv": _inverse,
    "slogdet": log_determinant,
}
