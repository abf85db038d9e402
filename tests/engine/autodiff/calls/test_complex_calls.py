"""Calls on complex nodes: gradients, products of either mode, and refused matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import HVP, JVP, VJP, Batch, Gradients, Hessian, Jacobian, TensorType
from engine.ir.errors import DtypeMismatch
from tests.engine.autodiff.calls.asking import Array, Net, kind

Z = np.array([1 + 2j, 3 - 1j])


def energy(z: Any = Z) -> Net:
    """Σ |z|²."""
    net = Net()
    net.add("sum", net.add("square", net.add("abs", net.leaf(z))))
    return net


def product(real: bool = False) -> tuple[Net, int, int, int]:
    """y = tanh(z w), w real or complex."""
    net = Net()
    z = net.leaf(Z)
    w = net.leaf(np.array([0.5, -0.25]) if real else np.array([0.5 - 0.1j, -0.25 + 0.3j]))
    return net, z, w, net.add("tanh", net.add("mul", z, w))


def test_gradient_is_the_direction_of_steepest_ascent() -> None:
    """Closed form: ∂(x² + y²)/∂x + i ∂(x² + y²)/∂y = 2z."""
    net = energy()
    answer = net.ask(Gradients.of_program(net.program))
    np.testing.assert_allclose(kind(answer, "values")[(net.last,)], 15, rtol=1e-15)
    np.testing.assert_allclose(kind(answer, "gradients")[(0,)], 2 * Z, rtol=1e-15)


def test_complex_output_needs_a_cotangent_of_its_dtype() -> None:
    net, z, w, y = product()
    with pytest.raises(DtypeMismatch, match=r"node 3 \(tanh\): of names this node, which is complex128: make it real"):
        net.ask(Gradients.of_program(net.program, y))
    seed = np.array([1 - 2j, 0.5 + 1j])
    for wrong in (np.dtype("float64"), np.dtype("complex64")):
        with pytest.raises(DtypeMismatch, match="its cotangent must be complex128"):
            net.ask(Gradients.of_program(net.program, y, cotangent=TensorType((2,), wrong)))
    call = Gradients.of_program(net.program, y, cotangent=TensorType.of(seed))
    gradients = kind(net.ask(call, {("cotangents", y): seed}), "gradients")
    value, weight = np.tanh(Z * net.feeds[w]), net.feeds[w]
    np.testing.assert_allclose(gradients[(z,)], seed * np.conj((1 - value**2) * weight), rtol=1e-12)
    np.testing.assert_allclose(gradients[(w,)], seed * np.conj((1 - value**2) * Z), rtol=1e-12)


@pytest.mark.parametrize("real", [False, True])
def test_jvp_and_vjp_are_adjoint_under_the_real_part(real: bool) -> None:
    net, z, w, y = product(real)
    rng = np.random.default_rng(1)

    def drawn(like: Array) -> Array:
        parts = rng.uniform(-1, 1, (2, *like.shape))
        return parts[0] + 1j * parts[1] if np.iscomplexobj(like) else parts[0]

    tangents, seed = {z: drawn(Z), w: drawn(net.feeds[w])}, drawn(Z)
    types, fed = net.given("tangents", tangents)
    pushed = kind(net.ask(JVP.of_program(net.program, types), fed), "tangents")[(y,)]
    types, fed = net.given("cotangents", {y: seed})
    pulled = kind(net.ask(VJP.of_program(net.program, types, [z, w]), fed), "gradients")
    assert pulled[(w,)].dtype == net.feeds[w].dtype
    forward = np.sum((np.conj(seed) * pushed).real)
    reverse = sum(np.sum((np.conj(pulled[(i,)]) * t).real) for i, t in tangents.items())
    np.testing.assert_allclose(forward, reverse, rtol=1e-12)
    h = 1e-6
    moved = [np.tanh((Z + s * h * tangents[z]) * (net.feeds[w] + s * h * tangents[w])) for s in (1, -1)]
    np.testing.assert_allclose(pushed, (moved[0] - moved[1]) / (2 * h), rtol=1e-8)


def test_hvp_takes_complex_vectors() -> None:
    """Closed form: Σ |z|⁴ has the gradient 4 |z|² z, whose derivative along v is 8 Re(conj z · v) z + 4 |z|² v."""
    net = Net()
    z = net.leaf(Z)
    net.add("sum", net.add("square", net.add("square", net.add("abs", z))))
    v = np.array([0.5 - 1j, 2j])
    types, fed = net.given("vectors", {z: v})
    hvp = kind(net.ask(HVP.along(net.program, types), fed), "hvp")[(z,)]
    np.testing.assert_allclose(hvp, 8 * (np.conj(Z) * v).real * Z + 4 * np.abs(Z) ** 2 * v, rtol=1e-12)


def test_batch_and_batched_cotangents_match_a_loop() -> None:
    many = np.array([[1 + 2j, 3 - 1j], [0.5j, 2], [-1, -1j]])
    net = energy(many)
    call = Batch.of_program(net.program, net.types, [0])
    gradients = kind(net.ask(call), "gradients")[(0,)]
    np.testing.assert_allclose(gradients, 2 * many, rtol=1e-14)
    net, z, _, y = product()
    seeds = many[:, :2]
    types, fed = net.given("cotangents", {y: seeds})
    batched = kind(net.ask(VJP.of_program(net.program, types, [z], [y], True), fed), "gradients")[(z,)]
    for seed, row in zip(seeds, batched, strict=True):
        types, fed = net.given("cotangents", {y: seed})
        single = kind(net.ask(VJP.of_program(net.program, types, [z], [y]), fed), "gradients")[(z,)]
        np.testing.assert_allclose(row, single, rtol=1e-13)


def test_jacobian_and_hessian_of_complex_nodes_are_refused() -> None:
    net = energy()
    with pytest.raises(DtypeMismatch, match=r"node 0 \(parameter\): wrt names this node, .* make_complex"):
        net.ask(Jacobian.of_program(net.program))
    with pytest.raises(DtypeMismatch, match=r"node 0 \(parameter\): wrt names this node, .* make_complex"):
        net.ask(Hessian.of_program(net.program))
    net = Net()
    net.add("make_complex", net.leaf([1.0]), net.leaf([2.0]))
    with pytest.raises(
        DtypeMismatch, match=r"node 2 \(make_complex\): outputs names this node, .* real and imag nodes"
    ):
        net.ask(Jacobian.of_program(net.program))


def test_hessian_wrt_the_parts_of_make_complex() -> None:
    """The Hessian of |x + iy|² has 2 on its diagonal."""
    net = Net()
    x, y = net.leaf([1.0]), net.leaf([2.0])
    net.add("sum", net.add("square", net.add("abs", net.add("make_complex", x, y))))
    hessian = kind(net.ask(Hessian.of_program(net.program)), "hessian")
    np.testing.assert_allclose([[hessian[i, j].item() for j in (x, y)] for i in (x, y)], [[2, 0], [0, 2]], atol=1e-14)


def test_gradient_inside_a_graph() -> None:
    """Closed form: g = 2z, and the gradient of Σ |g|² is 8z. A complex y needs a cotangent in a graph, too."""
    net = energy()
    g = net.add("grad", net.last, 0)
    net.add("sum", net.add("square", net.add("abs", g)))
    np.testing.assert_allclose(kind(net.ask(Gradients.of_program(net.program)), "gradients")[(0,)], 8 * Z, rtol=1e-14)
    net, z, _, y = product()
    net.add("grad", y, z)
    with pytest.raises(DtypeMismatch, match=r"node 4 \(grad\): operand 0 \(y\) is complex128: give a cotangent"):
        net.values(net.last)
