"""Structs and maps stored as one tensor: a part is selected, and only that part gets a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.engine.ops.run import error, grads, run

OPS = [("struct_field", "field_index", "total_fields"), ("map_lookup", "key_index", "total_keys")]


@pytest.mark.parametrize(("op", "index", "total"), OPS)
@pytest.mark.parametrize("shape", [(6,), (6, 2), (6, 0)])
def test_parts_split_the_leading_axis(op: str, index: str, total: str, shape: tuple[int, ...]) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape)
    for count in (1, 2, 3, 6):
        parts = [run(op, x, **{index: i, total: count}) for i in range(count)]
        assert all(part.shape == (6 // count, *shape[1:]) for part in parts)
        np.testing.assert_array_equal(np.concatenate(parts), x)


@pytest.mark.parametrize(("op", "index", "total"), OPS)
def test_gradient_is_zero_outside_the_part(op: str, index: str, total: str) -> None:
    _, (gradient,) = grads(op, np.full((6, 2), np.inf), cotangent=[[1, 2], [3, 4]], **{index: 1, total: 3})
    np.testing.assert_array_equal(gradient, [[0, 0], [0, 0], [1, 2], [3, 4], [0, 0], [0, 0]])


def test_empty_struct_has_empty_fields() -> None:
    assert run("struct_field", np.zeros((0, 2)), field_index=1, total_fields=3).shape == (0, 2)


INVALID = [
    ({"field_index": 3, "total_fields": 3}, (6,),
     "attribute field_index must be less than total_fields = 3, but is 3"),
    ({"field_index": -1, "total_fields": 3}, (6,),
     "attribute field_index must be a whole number of at least 0, but is -1"),
    ({"field_index": 0, "total_fields": 0}, (6,),
     "attribute total_fields must be a whole number of at least 1, but is 0"),
    ({"total_fields": 2}, (6,), "attribute field_index is required"),
    ({"field_index": 0, "total_fields": 4}, (6,),
     "operand 0 (x) must have a leading extent that total_fields = 4 divides, but has 6"),
    ({"field_index": 0, "total_fields": 1}, (), "needs at least 1 axis to hold parts, but the operand has 0"),
]  # fmt: skip


@pytest.mark.parametrize(("attrs", "shape", "sentence"), INVALID)
def test_errors(attrs: dict[str, Any], shape: tuple[int, ...], sentence: str) -> None:
    assert error("struct_field", np.zeros(shape), **attrs).detail == f"node 1 (struct_field): {sentence}"
    spelled = sentence.replace("field_index", "key_index").replace("total_fields", "total_keys")
    renamed = {key.replace("field_index", "key_index").replace("fields", "keys"): v for key, v in attrs.items()}
    assert error("map_lookup", np.zeros(shape), **renamed).detail == f"node 1 (map_lookup): {spelled}"
