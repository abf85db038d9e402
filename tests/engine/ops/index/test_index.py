"""Writing at several index tensors: errors, and the first update."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.ops.index.index import IndexAdd, IndexSet
from tests.engine.ops.run import error, run

X = np.arange(6.0).reshape(3, 2)
ROWS = np.array([2, 0])


@pytest.mark.parametrize("op", [IndexAdd, IndexSet])
def test_at_least_one_index_is_required(op: type[IndexAdd | IndexSet]) -> None:
    assert op().arity == (3, math.inf)
    refused = error(op.name, X, ROWS)
    assert (refused.code, refused.expected, refused.got) == ("operand_count", "at least 3 operands", "2 operands")


@pytest.mark.parametrize("name", ["index_add", "index_set"])
@pytest.mark.parametrize("shape", [(3,), (1, 2, 2), (2, 1, 1)])
def test_updates_must_broadcast_to_the_indexed_shape(name: str, shape: tuple[int, ...]) -> None:
    refused = error(name, X, ROWS, np.zeros(shape))
    assert (refused.code, refused.operand) == ("shape_mismatch", 2)
    assert refused.expected == "a shape that broadcasts to [2, 2], the shape that the indices select"


def test_first_update_is_written() -> None:
    written = X.copy()
    written[ROWS] = [[7.0, 8.0], [9.0, 10.0]]
    np.testing.assert_array_equal(run("index_set", X, ROWS, written[ROWS]), written)


def test_operand_names() -> None:
    assert [IndexAdd().operand_name(i) for i in range(3)] == ["x", "indices and updates", "indices and updates"]
