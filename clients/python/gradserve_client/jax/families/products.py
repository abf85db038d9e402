"""Tensor products."""

from __future__ import annotations

import string
from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.jax.call import Call, Results
from gradserve_client.jax.families.table import RULES
from gradserve_client.jax.values import unsupported


@RULES("dot_general")
def dot_general(call: Call) -> Results:
    """`matmul` if its axes fit, else `einsum`; in the dtype that JAX accumulates in."""
    dtype = call.results[0].dtype
    reason = unsupported(dtype)
    if reason is not None:
        raise Blocked(f"it returns {reason}")
    widest = np.result_type(dtype, call.dtype(0), call.dtype(1))
    a, b = (_node_as(call, i, widest) for i in (0, 1))
    (left, right), (left_batch, right_batch) = (
        tuple([int(axis) for axis in axes] for axes in pair) for pair in call.params["dimension_numbers"]
    )
    if _is_matmul(call, left, right, left_batch, right_batch):
        return call.cast(a.matmul(b), widest)
    return call.cast(call.graph.einsum(a, b, equation=_equation(call, left, right, left_batch, right_batch)), widest)


def _node_as(call: Call, i: int, dtype: np.dtype[Any]) -> Node:
    return call.node(i) if call.dtype(i) == dtype else call.node(i).cast(dtype.name)


def _is_matmul(call: Call, left: list[int], right: list[int], left_batch: list[int], right_batch: list[int]) -> bool:
    """Return whether the axes are those of `matmul`: batches lead, then rows by columns."""
    left_rank, right_rank, batch_rank = call.rank(0), call.rank(1), len(left_batch)
    batch_leads = left_batch == right_batch == [*range(batch_rank)]
    if not batch_leads or left != [left_rank - 1] or (batch_rank and {left_rank, right_rank} != {batch_rank + 2}):
        return False
    return right == [max(0, right_rank - 2)] and right_rank - batch_rank <= 2


def _equation(call: Call, left: list[int], right: list[int], left_batch: list[int], right_batch: list[int]) -> str:
    letters = iter(string.ascii_letters)
    left_letters, right_letters = [""] * call.rank(0), [""] * call.rank(1)
    for a, b in zip([*left_batch, *left], [*right_batch, *right], strict=True):
        left_letters[a] = right_letters[b] = next(letters)
    left_letters, right_letters = (
        [letter or next(letters) for letter in axes] for axes in (left_letters, right_letters)
    )
    batch = [left_letters[axis] for axis in left_batch]
    free = [letter for letter in left_letters if letter not in right_letters] + [
        letter for letter in right_letters if letter not in left_letters
    ]
    return f"{''.join(left_letters)},{''.join(right_letters)}->{''.join(batch + free)}"
