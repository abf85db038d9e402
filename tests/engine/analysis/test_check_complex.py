"""The certificate of gradients by complex nodes: both parts move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Value, registry
from tests.engine.analysis.test_check import certificate, reasons
from tests.engine.autodiff.calls.asking import Net

Z = np.array([1 + 2j, 3 - 1j, -0.5 + 0.25j])


def size_of(op: str, value: Any = Z, **attrs: Any) -> Net:
    """Σ |f(z)|²."""
    net = Net()
    net.add("sum", net.add("square", net.add("abs", net.add(op, net.leaf(value), **attrs))))
    return net


@pytest.mark.parametrize("op", ["exp", "log", "sqrt", "tanh", "conj", "reciprocal", "real", "imag", "angle", "sigmoid"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_right_gradients_pass(op: str, dtype: str) -> None:
    found = certificate(size_of(op, Z.astype(dtype)))
    assert found.passed, found
    assert all(error < 1e-8 for _, error in found.errors)


@pytest.mark.parametrize("wrong", ["not conjugated", "the real part alone", "the imaginary part alone"])
def test_a_wrong_rule_is_found(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    def rule(g: Value, _: Value, x: Value) -> list[Value | None]:
        right = g * x.cos().conj()
        return {
            "not conjugated": [g * x.cos()],
            "the real part alone": [right.real().make_complex(right.imag().full_like(0.0))],
            "the imaginary part alone": [right.real().full_like(0.0).make_complex(right.imag())],
        }[wrong]

    assert certificate(size_of("sin")).passed
    monkeypatch.setattr(registry().ops["sin"], "vjp", rule)
    found = certificate(size_of("sin"))
    assert not found.passed
    assert not found.uncertified


def test_a_kink_and_a_cut_are_named() -> None:
    net = Net()
    net.add("sum", net.add("abs", net.leaf([0, 1 + 1j])))
    assert reasons(certificate(net)) == {0: "kink"}
    net = Net()
    net.add("sum", net.add("angle", net.leaf([-1 + 0j, 1j])))
    assert set(reasons(certificate(net))) == {0}
