"""A graph being written: what a rule gets wrong is said where it writes, and is nobody else's fault."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, EngineError, TensorType, Value, registry

F = TensorType((2, 3), np.dtype("float64"))


def leaf() -> Value:
    return Builder(registry()).leaf(F, 0)


def test_an_attribute_that_the_op_does_not_have() -> None:
    x = leaf()
    with pytest.raises(TypeError, match=r"^sum has no attribute axis \(known: axes, keepdims\)$") as raised:
        x.sum(axis=(0,))
    assert not isinstance(raised.value, EngineError), "a rule's mistake is not the client's"
    assert len(x.builder.nodes) == 1, "nothing was written"


def test_an_attribute_of_an_op_that_has_none() -> None:
    with pytest.raises(TypeError, match=r"^neg has no attribute axes \(known: none\)$"):
        leaf().neg(axes=(0,))


def test_several_unknown_attributes_beside_known_ones() -> None:
    with pytest.raises(TypeError, match=r"^sum has no attribute axis, keep \(known: axes, keepdims\)$"):
        leaf().sum(axis=(0,), keep=True, keepdims=True)


@pytest.mark.parametrize("stated", [{}, {"to": "float32"}])
def test_a_required_attribute_that_is_missing(stated: dict[str, str]) -> None:
    wrong = r"cast has no attribute to \(known: dtype\)" if stated else r"cast needs the attribute dtype"
    with pytest.raises(TypeError, match=f"^{wrong}$"):
        leaf().cast(**stated)


def test_what_is_not_stated_has_its_default() -> None:
    assert leaf().sum(axes=(0,)).node.attrs == {"axes": (0,), "keepdims": False}
