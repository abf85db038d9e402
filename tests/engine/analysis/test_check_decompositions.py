"""The certificate of graphs with eigenvectors: where eigenvalues are equal, it tells what is right of what is said."""

from __future__ import annotations

import numpy as np
import pytest

from engine.analysis.certificate import Certificate
from tests.engine.analysis.test_check import certificate, reasons
from tests.engine.autodiff.calls.asking import Net
from tests.engine.ops.linalg.test_eigh import EQUAL, WEIGHTS
from tests.engine.ops.run import Array

EACH = pytest.mark.parametrize("x", EQUAL.values(), ids=EQUAL)


def weighted(net: Net, y: int, weights: Array) -> Certificate:
    net.add("sum", net.add("mul", y, net.add("constant", value=weights)))
    return certificate(net, [0])


def parts(net: Net, x: Array) -> list[int]:
    both = net.add("eigh", net.leaf(x), degenerate="whole")
    return [net.add("get_output", both, index=i) for i in range(2)]


@EACH
def test_a_projector_onto_a_whole_space_passes(x: Array) -> None:
    net = Net()
    _, v = parts(net, x)
    kept = net.add("slice", v, starts=[0, 1], stops=[3, 3])
    found = weighted(net, net.add("matmul", kept, net.add("transpose", kept)), WEIGHTS)
    assert found.passed, found


@EACH
def test_a_whole_that_is_none_is_told(x: Array) -> None:
    net = Net()
    w, v = parts(net, x)
    root = net.add("matmul", net.add("mul", v, net.add("sqrt", w)), net.add("transpose", v))
    found = weighted(net, root, WEIGHTS)
    assert not found.passed
    assert found.errors[0][1] > 0.01


@EACH
def test_weights_that_differ_within_a_pair_are_a_kink(x: Array) -> None:
    net = Net()
    w, _ = parts(net, x)
    assert reasons(weighted(net, w, np.array([1.0, 2.0, 5.0]))) == {0: "kink"}


@EACH
def test_a_function_of_the_matrix_passes(x: Array) -> None:
    net = Net()
    found = weighted(net, net.add("symmetric_function", net.leaf(x), function="log"), WEIGHTS)
    assert found.passed, found
