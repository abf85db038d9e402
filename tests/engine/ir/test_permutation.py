"""Permuting axes and back; no node is added if nothing changes."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from engine.ir.graph import permute, shaped, unpermute
from tests.engine.ops.values import written

X = np.arange(24.0).reshape(2, 3, 4)


def test_permute_and_unpermute() -> None:
    for order in permutations(range(3)):
        (moved, back), (permuted, restored) = written(
            lambda x, order=order: [permute(x, order), unpermute(permute(x, order), order)], X
        )
        np.testing.assert_array_equal(permuted, X.transpose(order))
        np.testing.assert_array_equal(restored, X)
        assert (moved.node.is_leaf, back.node.is_leaf)[0] == (order == (0, 1, 2))


def test_shaped_adds_a_node_only_if_needed() -> None:
    (same, flat), (_, numbers) = written(lambda x: [shaped(x, [2, 3, 4]), shaped(x, [24])], X)
    assert same.node.is_leaf
    assert not flat.node.is_leaf
    np.testing.assert_array_equal(numbers, X.reshape(24))
