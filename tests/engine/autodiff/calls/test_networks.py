"""Every call on networks, against NumPy references differentiated by complex steps."""

from __future__ import annotations

import numpy as np
import pytest

from engine import HVP, JVP, VJP, Batch, Gradients, Hessian, Jacobian
from tests.engine.analysis.test_export import check_twice
from tests.engine.autodiff.calls.asking import Array, Net, kind
from tests.engine.autodiff.calls.networks import NETWORKS, Network, draw

pytestmark = pytest.mark.slow

CLOSE = {"rtol": 1e-7, "atol": 1e-12}


@pytest.fixture(params=list(NETWORKS))
def network(request: pytest.FixtureRequest) -> Network:
    return NETWORKS[request.param]()


def jacobian(network: Network) -> list[Array]:
    """Compute ∂output/∂parameter of the NumPy reference, column by column."""
    blocks = []
    for k, x in enumerate(network.point):
        columns = np.array([network.slope(v)[0] for v in network.units(k)])
        blocks.append(np.moveaxis(columns, 0, -1).reshape(*columns.shape[1:], *x.shape))
    return blocks


def test_values_gradients_and_vjp(network: Network) -> None:
    net, wrt = network.net, network.parameters
    output, loss = network.evaluate(*network.point)
    seed = draw(*output.shape, seed=30)
    types, fed = net.given("cotangents", {network.output: seed, network.loss: 0.5})
    both = [network.output, network.loss]
    results = net.ask(VJP.of_program(net.program, types, wrt, both), fed)
    np.testing.assert_allclose(kind(results, "values")[(both[0],)], output, **CLOSE)
    np.testing.assert_allclose(kind(results, "values")[(both[1],)], loss, **CLOSE)
    pulled = kind(results, "gradients")
    for x, block, g in zip(wrt, jacobian(network), network.gradients(), strict=True):
        np.testing.assert_allclose(pulled[(x,)], np.tensordot(seed, block, seed.ndim) + 0.5 * g, **CLOSE)


def test_jvp(network: Network) -> None:
    net = network.net
    along = [draw(*x.shape, seed=31) for x in network.point]
    types, fed = net.given("tangents", dict(zip(network.parameters, along, strict=True)))
    call = JVP.of_program(net.program, types, [network.output, network.loss])
    pushed = kind(net.ask(call, fed), "tangents")
    for node, expected in zip((network.output, network.loss), network.slope(along), strict=True):
        np.testing.assert_allclose(pushed[(node,)], expected, **CLOSE)


@pytest.mark.parametrize("which", ["all parameters: by rows", "the smallest: by columns"])
def test_jacobian(network: Network, which: str) -> None:
    net, expected = network.net, dict(zip(network.parameters, jacobian(network), strict=True))
    smallest = min(network.parameters, key=lambda i: net.feeds[i].size)
    wrt = network.parameters if which.startswith("all") else [smallest]
    blocks = kind(net.ask(Jacobian.of_program(net.program, wrt, [network.output])), "jacobian")
    for x in wrt:
        np.testing.assert_allclose(blocks[network.output, x], expected[x], **CLOSE)


def test_hvp_and_hessian(network: Network) -> None:
    net, wrt = network.net, network.parameters
    along = [draw(*x.shape, seed=32) for x in network.point]
    types, fed = net.given("vectors", dict(zip(wrt, along, strict=True)))
    product = net.ask(HVP.along(net.program, types, network.loss, wrt), fed)
    blocks = kind(net.ask(Hessian.of_program(net.program, network.loss, wrt)), "hessian")
    for x, g, expected in zip(wrt, network.gradients(), network.curvature(along), strict=True):
        np.testing.assert_allclose(kind(product, "gradients")[(x,)], g, **CLOSE)
        np.testing.assert_allclose(kind(product, "hvp")[(x,)], expected, 1e-7, 1e-9)
        whole = sum(np.tensordot(blocks[x, y], v, v.ndim) for y, v in zip(wrt, along, strict=True))
        np.testing.assert_allclose(whole, expected, 1e-7, 1e-9)


def test_batch_of_parameters(network: Network) -> None:
    """Five points in one batch, each compared with its own reference value and gradient."""
    net, wrt = network.net, network.parameters
    points = [[x + 0.1 * draw(*x.shape, seed=40 + n) for x in network.point] for n in range(5)]
    stacked = {i: np.stack(xs) for i, xs in zip(wrt, zip(*points, strict=True), strict=True)}
    many = Net(net.statements, {**net.feeds, **stacked})
    call = Batch.of_program(many.program, many.types, wrt, network.loss, wrt, [network.output, network.loss])
    results = many.ask(call)
    for n, point in enumerate(points):
        output, loss = network.evaluate(*point)
        np.testing.assert_allclose(kind(results, "values")[(network.output,)][n], output, **CLOSE)
        np.testing.assert_allclose(kind(results, "values")[(network.loss,)][n], loss, **CLOSE)
        for x, g in zip(wrt, network.gradients(point), strict=True):
            np.testing.assert_allclose(kind(results, "gradients")[(x,)][n], g, **CLOSE)


def test_batch_of_64_matches_64_single_calls(network: Network) -> None:
    net, wrt = network.net, network.parameters[:2]
    stacked = {i: np.stack([net.feeds[i] * (1 + n / 100) for n in range(64)]) for i in wrt}
    many = Net(net.statements, {**net.feeds, **stacked})
    results = many.ask(Batch.of_program(many.program, many.types, wrt, network.loss, None, [network.loss]))
    for n in range(64):
        one = Net(net.statements, {**net.feeds, **{i: a[n] for i, a in stacked.items()}})
        for label, expected in one.ask(Gradients.of_program(one.program, network.loss)).items():
            np.testing.assert_allclose(results[label][n], expected, 1e-12, 1e-13)


def test_gradient_graph_can_be_exported_twice(network: Network) -> None:
    """Gradients of gradients with respect to the parameters and to inner layers."""
    inner = [i for i in (network.output, network.loss - 1) if not network.net.statements[i].op.several]
    check_twice(network.net, network.loss, network.parameters, [*network.parameters, *set(inner)])
