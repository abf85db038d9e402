"""Certificates of graphs with eigenvectors at equal eigenvalues: right gradients pass, and wrong ones fail."""

from __future__ import annotations

import numpy as np
import pytest

from engine.analysis.certificate import Certificate
from tests.engine.analysis.test_check import certificate, reasons
from tests.engine.autodiff.calls.asking import Net
from tests.engine.ops.linalg.test_eigh import EQUAL, WEIGHTS
from tests.engine.ops.run import Array

EACH_MATRIX = pytest.mark.parametrize("x", EQUAL.values(), ids=EQUAL)


def weighted(net: Net, y: int, weights: Array) -> Certificate:
    net.add("sum", net.add("mul", y, net.add("constant", value=weights)))
    return certificate(net, [0])


def parts(net: Net, x: Array) -> list[int]:
    both = net.add("eigh", net.leaf(x), degenerate="whole")
    return [net.add("get_output", both, index=i) for i in range(2)]


@EACH_MATRIX
def test_projector_onto_an_eigenspace_passes(x: Array) -> None:
    net = Net()
    _, v = parts(net, x)
    top = net.add("slice", v, starts=[0, 1], stops=[3, 3])
    report = weighted(net, net.add("matmul", top, net.add("transpose", top)), WEIGHTS)
    assert report.passed, report


@EACH_MATRIX
def test_root_from_eigenvectors_fails(x: Array) -> None:
    net = Net()
    w, v = parts(net, x)
    root = net.add("matmul", net.add("mul", v, net.add("sqrt", w)), net.add("transpose", v))
    report = weighted(net, root, WEIGHTS)
    assert not report.passed
    assert report.errors[0][1] > 0.01


@EACH_MATRIX
def test_unequal_weights_within_a_pair_are_a_kink(x: Array) -> None:
    net = Net()
    w, _ = parts(net, x)
    assert reasons(weighted(net, w, np.array([1.0, 2.0, 5.0]))) == {0: "kink"}


@EACH_MATRIX
def test_symmetric_function_passes(x: Array) -> None:
    net = Net()
    report = weighted(net, net.add("symmetric_function", net.leaf(x), function="log"), WEIGHTS)
    assert report.passed, report
