"""Certificates of gradients with respect to complex nodes: both parts are perturbed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Value, registry
from tests.engine.analysis.test_check import certificate, reasons
from tests.engine.autodiff.calls.asking import Net

Z = np.array([1 + 2j, 3 - 1j, -0.5 + 0.25j])


def squared_magnitude(op: str, value: Any = Z, **attrs: Any) -> Net:
    """Build Σ |f(z)|²."""
    net = Net()
    net.add("sum", net.add("square", net.add("abs", net.add(op, net.leaf(value), **attrs))))
    return net


@pytest.mark.parametrize("op", ["exp", "log", "sqrt", "tanh", "conj", "reciprocal", "real", "imag", "angle", "sigmoid"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_right_gradients_pass(op: str, dtype: str) -> None:
    report = certificate(squared_magnitude(op, Z.astype(dtype)))
    assert report.passed, report
    assert all(error < 1e-8 for _, error in report.errors)


@pytest.mark.parametrize("wrong", ["not conjugated", "the real part alone", "the imaginary part alone"])
def test_wrong_rule_fails(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    def rule(g: Value, _: Value, x: Value) -> list[Value | None]:
        right = g * x.cos().conj()
        return {
            "not conjugated": [g * x.cos()],
            "the real part alone": [right.real().make_complex(right.imag().full_like(0.0))],
            "the imaginary part alone": [right.real().full_like(0.0).make_complex(right.imag())],
        }[wrong]

    assert certificate(squared_magnitude("sin")).passed
    monkeypatch.setattr(registry().ops["sin"], "vjp", rule)
    report = certificate(squared_magnitude("sin"))
    assert not report.passed
    assert not report.uncertified


def test_kink_and_branch_cut_are_reported() -> None:
    net = Net()
    net.add("sum", net.add("abs", net.leaf([0, 1 + 1j])))
    assert reasons(certificate(net)) == {0: "kink"}
    net = Net()
    net.add("sum", net.add("angle", net.leaf([-1 + 0j, 1j])))
    assert set(reasons(certificate(net))) == {0}
