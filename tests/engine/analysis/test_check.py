"""Certificates: right gradients pass, wrong ones fail, and incomparable ones are reported with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine import Gradients, Limits, Value, certify, registry
from engine.analysis.certificate import Certificate
from tests.contract.cases import EXECUTOR, LIMITS
from tests.engine.autodiff.calls.asking import Net
from tests.engine.autodiff.calls.networks import NETWORKS
from tests.engine.autodiff.calls.test_laws import each_op, weighted
from tests.sampling import together


def certificate(
    net: Net,
    wrt: Sequence[int] | None = None,
    of: int | None = None,
    directions: int = 4,
    tolerance: float = 1e-6,
    limits: Limits = LIMITS,
) -> Certificate:
    call = Gradients.of_program(net.program, of, wrt)
    needed = set(net.program.needed(call.roots))
    feeds = {i: a for i, a in net.feeds.items() if i in needed}
    return certify(EXECUTOR, net.program, feeds, call, directions, tolerance, limits)


def reasons(report: Certificate) -> dict[int, str]:
    assert not report.passed
    return {one.node: one.reason for one in report.uncertified}


def unary(op: str, value: Any, **attrs: Any) -> Net:
    """Build Σ op(x)·x."""
    net = Net()
    x = net.leaf(value)
    net.add("sum", net.add("mul", net.add(op, x, **attrs), x))
    return net


@pytest.mark.parametrize("name", list(NETWORKS))
def test_networks_pass_wrt_every_float_node(name: str) -> None:
    network = NETWORKS[name]()
    inner = [network.output, *(i for i, s in enumerate(network.net.statements) if s.op.name in ("matmul", "tanh"))]
    report = certificate(network.net, [*network.parameters, *dict.fromkeys(inner)], network.loss)
    assert report.passed, report
    assert all(error < 1e-8 for _, error in report.errors)


#: operands in which a result is piecewise constant: indistinguishable from roundoff
PIECEWISE_CONSTANT = {"max_pool2d_back": 1, "angle": 0}


@together
@each_op
def test_every_op_passes_at_its_samples(case: Any) -> None:
    net, wrt, loss = weighted(case)
    inputs = [i for i in wrt if i != PIECEWISE_CONSTANT.get(case.op.name)]
    if not inputs:
        pytest.skip("all of it is constant in pieces")
    report = certificate(net, inputs, loss)
    assert report.passed, report


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_narrow_graphs_are_compared_in_float64(dtype: str) -> None:
    net = Net()
    x = net.leaf(np.array([0.5, -0.25], dtype))
    y = net.add("tanh", net.add("cast", net.add("exp", x), dtype="float16"))
    net.add(
        "sum", net.add("add", y, net.add("cast", net.add("full", shape=[], fill=0.3, dtype="float16"), dtype="float16"))
    )
    report = certificate(net)
    assert report.passed
    assert all(error < 1e-9 for _, error in report.errors)


@pytest.mark.parametrize("wrong", ["a factor", "a sign", "a missing path", "one element in ten"])
def test_wrong_rule_fails(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    def rule(g: Value, _: Value, a: Value) -> list[Value | None]:
        right = g * a.cos()
        unit = np.where(np.arange(10) == 3, 1.0001, 1.0)
        return {
            "a factor": [right * 1.0001],
            "a sign": [-right],
            "a missing path": [None],
            "one element in ten": [right * a.builder.constant(unit)],
        }[wrong]

    net = unary("sin", np.linspace(0.5, 1.4, 10))
    assert certificate(net).passed
    monkeypatch.setattr(registry().ops["sin"], "vjp", rule)
    report = certificate(net)
    assert not report.passed
    assert not report.uncertified, "a wrong gradient is an error, and no excuse"
    assert report.errors[0][1] > 1e-6


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: unary("relu", [0.0, 1.0]), None),  # x relu(x) has no kink at 0
        (lambda: unary("abs", [1.0, 0.0]), None),
        (lambda: unary("sign", [1.0, 0.0]), "integer_path"),  # x sign(x) has one
        (lambda: unary("floor", [1.5, -0.5]), None),
        (lambda: unary("floor", [1.0, -0.5]), "integer_path"),
        (lambda: unary("round", [0.5, 1.0]), "integer_path"),
        (lambda: unary("stop_gradient", [0.5, 1.0]), "stop_gradient"),
        (lambda: unary("log", [0.0, 1.0]), "not_finite"),
        (lambda: unary("log", [-1.0, 1.0]), "not_finite"),
        (lambda: unary("mul_scalar", [1e200, 1.0], scalar=1e300), "not_finite"),
        (lambda: unary("mul_scalar", [1e8, -1e4], scalar=1e290), None),
        (lambda: unary("mul_scalar", [1e8, -1e4], scalar=1e299), "not_finite"),
    ],
)
def test_reason_for_missing_certification(make: Any, reason: str | None) -> None:
    report = certificate(make())
    assert (None if report.passed else reasons(report)[0]) == reason


def test_kink_is_reported() -> None:
    net = Net()
    x = net.leaf([0.0, 2.0, -1.0])
    net.add("sum", net.add("relu", x))
    assert reasons(certificate(net)) == {x: "kink"}


def test_tie_is_a_kink_for_its_operands_only() -> None:
    net = Net()
    x, y, z = net.leaf([1.0, 2.0]), net.leaf([1.0, 3.0]), net.leaf(0.5)
    net.add("mul", net.add("sum", net.add("maximum", x, y)), z)
    report = certificate(net)
    assert reasons(report) == {x: "kink", y: "kink"}
    assert [node for node, _ in report.errors] == [z]


@pytest.mark.parametrize("beside", [1e-5, 3e-6])
def test_kink_near_the_point_passes(beside: float) -> None:
    net = Net()
    x = net.leaf([1.0 + beside, 2.0])
    net.add("sum", net.add("relu", net.add("add_scalar", x, scalar=-1.0)))
    assert certificate(net).passed


def test_index_computed_from_a_value() -> None:
    """x[argmax x] passes without a tie; at a tie the change is attributed to the integer path."""
    for value, passed in (([1.0, 3.0, 2.0], True), ([1.0, 3.0, 3.0], False)):
        net = Net()
        x = net.leaf(value)
        index = net.add("argmax", x, axis=0, keepdims=True)
        net.add("sum", net.add("square", net.add("gather", x, index, axis=0)))
        report = certificate(net)
        assert report.passed is passed
        assert passed or reasons(report) == {x: "integer_path"}


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e-4, 1.0, 1e4, 1e8, 1e150])
@pytest.mark.parametrize("op", ["square", "tanh", "asinh", "sqrt", "log"])
def test_values_of_any_magnitude_pass(op: str, scale: float) -> None:
    net = Net()
    x = net.leaf(np.array([0.5, 1.5, 0.75]) * scale)
    net.add("sum", net.add(op, x))
    report = certificate(net)
    assert report.passed, report


def test_steep_curve_is_not_a_kink() -> None:
    net = Net()
    x = net.leaf([1.2e4, -3e4])
    net.add("sum", net.add("sin", x))
    assert certificate(net).passed


def test_derivative_below_the_rounding_of_its_op() -> None:
    """cos x rounds to 1 in every bit, and its derivative is −10⁻⁹; no step size shows that."""
    net = Net()
    x = net.leaf([1e-9, 2e-9])
    net.add("sum", net.add("cos", x))
    assert reasons(certificate(net)) == {x: "roundoff"}


@pytest.mark.parametrize("far", [1e6, 1e12])
def test_derivative_below_the_rounding_of_the_total_passes(far: float) -> None:
    """Each op is checked by itself, with a step large enough to see its change."""
    net = Net()
    x = net.leaf([1.5, 2.5])
    net.add("add_scalar", net.add("sum", net.add("sin", x)), scalar=far)
    assert certificate(net).passed


def test_gradient_that_is_only_rounding_error_passes() -> None:
    """The sum of a softmax is 1: its derivative is 0, and the computed one about 1e-17."""
    net = Net()
    x = net.leaf([1.0, 0.0, -1.0])
    net.add("sum", net.add("softmax", x, axis=0))
    assert certificate(net).passed


def test_a_second_order_kink_passes() -> None:
    net = Net()
    x = net.leaf([0.0, 1.0])
    net.add("sum", net.add("square", net.add("relu", x)))
    assert certificate(net).passed


@pytest.mark.slow
def test_forty_parameters_within_a_tight_budget() -> None:
    """Perturb as many parameters at once as fit; results do not change."""
    net = Net()
    rng = np.random.default_rng(1)
    y = net.leaf(rng.uniform(0.5, 1, 30), "input")
    wrt = []
    for _ in range(40):
        wrt.append(net.leaf(rng.uniform(0.5, 1, 30)))
        y = net.add("sin", net.add("mul", y, wrt[-1]))
    net.add("sum", y)
    unlimited = certificate(net)
    assert unlimited.passed
    assert [node for node, _ in unlimited.errors] == wrt
    limited = certificate(net, limits=Limits(bytes=unlimited.peak_bytes // 2))
    assert limited.passed
    assert limited.peak_bytes <= unlimited.peak_bytes // 2


def test_certificates_are_reproducible() -> None:
    network = NETWORKS["attention"]()
    assert certificate(network.net, None, network.loss) == certificate(network.net, None, network.loss)


def test_empty_parameter_has_no_error() -> None:
    net = Net()
    empty, x, other = net.leaf(np.zeros((0, 2))), net.leaf(2.0), net.leaf([1.0])
    net.add("mul", net.add("exp", net.add("sum", empty)), x)
    report = certificate(net, [empty, x, other])
    assert report.passed
    assert dict(report.errors)[other] == dict(report.errors)[empty] == 0.0


def test_node_that_reads_one_operand_twice() -> None:
    """At a point where the whole difference is inaccurate, so that each node is compared."""
    net = Net()
    x = net.leaf([1.0, -2.0, 0.5])
    net.add("sum", net.add("betaln", x, x))
    certificate(net)
