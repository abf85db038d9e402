"""Conjugates add no nodes for real values; a real operand's cotangent is the real part, in its dtype."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, TensorType, Value, registry
from engine.ir.graph import adjoint, cast_cotangent, conjugate, real_cotangent


def leaf(dtype: str) -> Value:
    return Builder(registry()).leaf(TensorType((2, 3), np.dtype(dtype)), dtype)


def test_real_values_need_no_conjugate() -> None:
    x = leaf("float32")
    assert conjugate(x) is x
    assert adjoint(x).node.op.name == "transpose"
    assert real_cotangent(x, x.type) is x
    assert cast_cotangent(x, x.type) is x


def test_complex_values_are_conjugated() -> None:
    x = leaf("complex64")
    assert conjugate(x).node.op.name == "conj"
    assert (adjoint(x).node.op.name, adjoint(x).shape) == ("conj", (3, 2))
    assert real_cotangent(x, x.type) is x


@pytest.mark.parametrize(
    ("given", "wanted", "written"),
    [
        ("complex128", "float64", ["real"]),
        ("complex128", "float32", ["real", "cast"]),
        ("complex128", "complex64", ["cast"]),
        ("float32", "complex64", ["cast"]),
        ("float64", "float32", ["cast"]),
    ],
)
def test_cotangent_is_cast_to_the_dtype_of_its_node(given: str, wanted: str, written: list[str]) -> None:
    g = leaf(given)
    cotangent = cast_cotangent(g, TensorType((2, 3), np.dtype(wanted)))
    assert cotangent.dtype == wanted
    assert [node.op.name for node in g.builder.nodes[1:]] == written
