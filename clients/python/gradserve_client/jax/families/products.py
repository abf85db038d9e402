"""Products of tensors."""

from __future__ import annotations

import string
from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.jax.call import Call, Said
from gradserve_client.jax.families.table import RULES
from gradserve_client.jax.values import unsendable


@RULES("dot_general")
def dot_general(call: Call) -> Said:
    """`matmul` where its axes are those, else `einsum`; in the dtype that JAX adds up in."""
    wanted = call.results[0].dtype
    reason = unsendable(wanted)
    if reason is not None:
        raise Blocked(f"it gives {reason}")
    widest = np.result_type(wanted, call.dtype(0), call.dtype(1))
    a, b = (_as(call, i, widest) for i in (0, 1))
    (left, right), (left_batch, right_batch) = (
        tuple([int(axis) for axis in axes] for axes in pair) for pair in call.params["dimension_numbers"]
    )
    if _is_matmul(call, left, right, left_batch, right_batch):
        return call.cast(a.matmul(b), widest)
    return call.cast(call.graph.einsum(a, b, equation=_equation(call, left, right, left_batch, right_batch)), widest)


def _as(call: Call, i: int, wanted: np.dtype[Any]) -> Node:
    return call.node(i) if call.dtype(i) == wanted else call.node(i).cast(wanted.name)


def _is_matmul(call: Call, left: list[int], right: list[int], left_batch: list[int], right_batch: list[int]) -> bool:
    """Whether the last axis of the first is added up with the last but one of the second, and batches lead."""
    one, other, batch = call.rank(0), call.rank(1), len(left_batch)
    leads = left_batch == right_batch == [*range(batch)]
    if not leads or left != [one - 1] or (batch and {one, other} != {batch + 2}):
        return False
    return right == [max(0, other - 2)] and other - batch <= 2


def _equation(call: Call, left: list[int], right: list[int], left_batch: list[int], right_batch: list[int]) -> str:
    letters = iter(string.ascii_letters)
    one, other = [""] * call.rank(0), [""] * call.rank(1)
    for a, b in zip([*left_batch, *left], [*right_batch, *right], strict=True):
        one[a] = other[b] = next(letters)
    one, other = ([letter or next(letters) for letter in axes] for axes in (one, other))
    batch = [one[axis] for axis in left_batch]
    kept = [letter for letter in one if letter not in other] + [letter for letter in other if letter not in one]
    return f"{''.join(one)},{''.join(other)}->{''.join(batch + kept)}"
