"""Building a graph: mistakes of a rule raise a TypeError at the call, and are not reported as the client's."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, EngineError, TensorType, Value, registry

F = TensorType((2, 3), np.dtype("float64"))


def leaf() -> Value:
    return Builder(registry()).leaf(F, 0)


def test_unknown_attribute_is_refused() -> None:
    x = leaf()
    with pytest.raises(TypeError, match=r"^sum has no attribute axis \(known: axes, keepdims\)$") as raised:
        x.sum(axis=(0,))
    assert not isinstance(raised.value, EngineError), "a rule's mistake is not the client's"
    assert len(x.builder.nodes) == 1, "nothing was written"


def test_attribute_of_an_op_without_attributes_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^neg has no attribute axes \(known: none\)$"):
        leaf().neg(axes=(0,))


def test_only_unknown_attributes_are_listed() -> None:
    with pytest.raises(TypeError, match=r"^sum has no attribute axis, keep \(known: axes, keepdims\)$"):
        leaf().sum(axis=(0,), keep=True, keepdims=True)


@pytest.mark.parametrize("stated", [{}, {"to": "float32"}])
def test_missing_required_attribute_is_refused(stated: dict[str, str]) -> None:
    wrong = r"cast has no attribute to \(known: dtype\)" if stated else r"cast needs the attribute dtype"
    with pytest.raises(TypeError, match=f"^{wrong}$"):
        leaf().cast(**stated)


def test_omitted_attribute_has_its_default() -> None:
    assert leaf().sum(axes=(0,)).node.attrs == {"axes": (0,), "keepdims": False}
