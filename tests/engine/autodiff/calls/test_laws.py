"""Identities between the calls, checked on every op."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from engine import HVP, JVP, VJP, Batch, Gradients, Hessian, Jacobian
from tests.contract.cases import ONCE, Case, all_cases, has_rule
from tests.engine.autodiff.calls.asking import Array, Net, kind
from tests.sampling import together

pytestmark = pytest.mark.slow

CLOSE = {"rtol": 1e-9, "atol": 1e-11}


def first_of_each() -> list[Case]:
    """Choose the first differentiable sample of each op."""
    chosen: dict[str, Case] = {}
    for case in filter(has_rule, all_cases()):
        if not case.is_complex:  # complex nodes have no Jacobian
            chosen.setdefault(case.op.name, case)
    return list(chosen.values())


each_op = pytest.mark.parametrize("case", first_of_each(), ids=str)


def ends(case: Case) -> tuple[Net, list[int], list[int]]:
    """Build a net of one op; return its float operands and float results, too."""
    net, count = Net.of(case), len(case.sample.operands)
    types = case.result_types()
    results = [count + 1 + k for k in range(len(types))] if case.op.several else [count]
    floats = [i for i, a in net.feeds.items() if a.dtype.kind == "f"]
    return net, floats, [i for i, t in zip(results, types, strict=True) if t.is_differentiable]


def draws(net: Net, nodes: list[int], seed: int, lead: tuple[int, ...] = ()) -> dict[int, Array]:
    """Draw random tensors of the nodes' types."""
    rng = np.random.default_rng(seed)
    return {
        i: np.asarray(rng.uniform(-1, 1, (*lead, *a.shape)), a.dtype)
        for i, a in zip(nodes, net.values(*nodes), strict=True)
    }


def weighted(case: Case, salt: int = 0) -> tuple[Net, list[int], int]:
    """Build Σ sum(result · weight), a scalar that depends on every element of every result."""
    net, wrt, results = ends(case)
    net.feeds = dict(enumerate(case.arrays(salt=salt)))
    weights = draws(net, results, 2)
    terms = [
        net.add("sum", net.add("mul", y, net.add("constant", value=np.asarray(w + 1.5)))) for y, w in weights.items()
    ]
    return net, wrt, reduce(lambda a, b: net.add("add", a, b), terms)


@together
@each_op
def test_jacobian_matches_jvp_and_vjp(case: Case) -> None:
    """Separate calls of vᵀ J and J u match the whole Jacobian, computed in one chunk or in many."""
    net, wrt, results = ends(case)
    blocks = kind(net.ask(Jacobian.of_program(net.program, wrt, results)), "jacobian")
    pieces = kind(net.ask(Jacobian.of_program(net.program, wrt, results), chunks=(1,)), "jacobian")
    tangents = draws(net, wrt, 3)
    types, fed = net.given("tangents", tangents)
    pushed = kind(net.ask(JVP.of_program(net.program, types, results), fed), "tangents")
    for y in results:
        shape, size = pushed[(y,)].shape, pushed[(y,)].size
        along = sum(np.tensordot(blocks[y, x], tangents[x], tangents[x].ndim) for x in wrt)
        np.testing.assert_allclose(pushed[(y,)], along, **CLOSE)
        units = {y: np.eye(size).reshape(size, *shape)}
        types, fed = net.given("cotangents", units)
        rows = kind(net.ask(VJP.of_program(net.program, types, wrt, [y], True), fed), "gradients")
        for x in wrt:
            assert blocks[y, x].shape == (*shape, *net.feeds[x].shape)
            np.testing.assert_allclose(rows[(x,)].reshape(blocks[y, x].shape), blocks[y, x], **CLOSE)
            np.testing.assert_allclose(pieces[y, x], blocks[y, x], **CLOSE)


@together
@each_op
def test_batched_vjp_matches_a_loop(case: Case) -> None:
    net, wrt, results = ends(case)
    cotangents = draws(net, results, 4, (3,))
    types, fed = net.given("cotangents", cotangents)
    many = kind(net.ask(VJP.of_program(net.program, types, wrt, results, True), fed), "gradients")
    for k in range(3):
        types, fed = net.given("cotangents", {y: c[k] for y, c in cotangents.items()})
        single = kind(net.ask(VJP.of_program(net.program, types, wrt, results), fed), "gradients")
        for x in single:
            np.testing.assert_allclose(many[x][k], single[x], 1e-12, 1e-13)


@together
@each_op
def test_hessian_is_symmetric_and_the_jacobian_of_gradients(case: Case) -> None:
    net, wrt, loss = weighted(case)
    wrt = [x for x in wrt if x not in ONCE.get(case.op.name, ())]
    results = net.ask(Hessian.of_program(net.program, loss, wrt))
    blocks = kind(results, "hessian")
    pieces = kind(net.ask(Hessian.of_program(net.program, loss, wrt), chunks=(1,)), "hessian")
    vectors = draws(net, wrt, 5)
    types, fed = net.given("vectors", vectors)
    products = kind(net.ask(HVP.along(net.program, types, loss, wrt), fed), "hvp")
    gradients = [net.add("grad", loss, x) for x in wrt]
    jacobian = kind(net.ask(Jacobian.of_program(net.program, wrt, gradients)), "jacobian")
    for row, g in zip(wrt, gradients, strict=True):
        n = net.feeds[row].size
        total = sum(np.tensordot(blocks[row, x], vectors[x], vectors[x].ndim) for x in wrt)
        np.testing.assert_allclose(products[(row,)], total, **CLOSE)
        for column in wrt:
            m, block = net.feeds[column].size, blocks[row, column]
            np.testing.assert_allclose(block.reshape(n, m), blocks[column, row].reshape(m, n).T, **CLOSE)
            np.testing.assert_allclose(jacobian[g, column], block, **CLOSE)
            np.testing.assert_allclose(pieces[row, column], block, **CLOSE)


@together
@each_op
def test_batch_matches_a_loop(case: Case) -> None:
    singles = [weighted(case, salt) for salt in range(4)]
    net, wrt, loss = singles[0]
    call = Gradients.of_program(net.program, loss, wrt, [loss])
    answers = [one.ask(call) for one, _, _ in singles]
    many = Net(net.statements, {i: np.stack([one.feeds[i] for one, _, _ in singles]) for i in net.feeds})
    mapped = Batch.of_program(many.program, many.types, list(many.feeds), loss, wrt, [loss])
    for label, batched in many.ask(mapped).items():
        for one, answer in zip(batched, answers, strict=True):
            np.testing.assert_allclose(one, answer[label], 1e-11, 1e-12)
