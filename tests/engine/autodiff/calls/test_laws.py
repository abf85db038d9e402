"""Laws that hold between the calls, on every op: what one of them says, another says in another way."""

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
    """For each op that has derivatives, its first sample that has them."""
    chosen: dict[str, Case] = {}
    for case in filter(has_rule, all_cases()):
        if not case.is_complex:  # of which there is no Jacobian
            chosen.setdefault(case.op.name, case)
    return list(chosen.values())


each_op = pytest.mark.parametrize("case", first_of_each(), ids=str)


def ends(case: Case) -> tuple[Net, list[int], list[int]]:
    """The op, its float operands and its float results."""
    net, count = Net.of(case), len(case.sample.operands)
    types = case.result_types()
    results = [count + 1 + k for k in range(len(types))] if case.op.several else [count]
    floats = [i for i, a in net.feeds.items() if a.dtype.kind == "f"]
    return net, floats, [i for i, t in zip(results, types, strict=True) if t.is_differentiable]


def draws(net: Net, nodes: list[int], seed: int, lead: tuple[int, ...] = ()) -> dict[int, Array]:
    """Random tensors of the nodes' types."""
    rng = np.random.default_rng(seed)
    return {
        i: np.asarray(rng.uniform(-1, 1, (*lead, *a.shape)), a.dtype)
        for i, a in zip(nodes, net.values(*nodes), strict=True)
    }


def weighted(case: Case, salt: int = 0) -> tuple[Net, list[int], int]:
    """Σ sum(result · weight), a scalar in which every element of every result counts."""
    net, wrt, results = ends(case)
    net.feeds = dict(enumerate(case.arrays(salt=salt)))
    weights = draws(net, results, 2)
    terms = [
        net.add("sum", net.add("mul", y, net.add("constant", value=np.asarray(w + 1.5)))) for y, w in weights.items()
    ]
    return net, wrt, reduce(lambda a, b: net.add("add", a, b), terms)


@together
@each_op
def test_jacobian_and_its_products(case: Case) -> None:
    """vᵀ J and J u, each asked for by itself, are those of the whole Jacobian; by either of its ways."""
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
def test_batched_products_are_a_loop(case: Case) -> None:
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
def test_hessian_is_the_jacobian_of_the_gradients_and_symmetric(case: Case) -> None:
    net, wrt, loss = weighted(case)
    wrt = [x for x in wrt if x not in ONCE.get(case.op.name, ())]
    found = net.ask(Hessian.of_program(net.program, loss, wrt))
    blocks = kind(found, "hessian")
    pieces = kind(net.ask(Hessian.of_program(net.program, loss, wrt), chunks=(1,)), "hessian")
    vectors = draws(net, wrt, 5)
    types, fed = net.given("vectors", vectors)
    products = kind(net.ask(HVP.along(net.program, types, loss, wrt), fed), "hvp")
    gradients = [net.add("grad", loss, x) for x in wrt]
    again = kind(net.ask(Jacobian.of_program(net.program, wrt, gradients)), "jacobian")
    for row, g in zip(wrt, gradients, strict=True):
        n = net.feeds[row].size
        total = sum(np.tensordot(blocks[row, x], vectors[x], vectors[x].ndim) for x in wrt)
        np.testing.assert_allclose(products[(row,)], total, **CLOSE)
        for column in wrt:
            m, block = net.feeds[column].size, blocks[row, column]
            np.testing.assert_allclose(block.reshape(n, m), blocks[column, row].reshape(m, n).T, **CLOSE)
            np.testing.assert_allclose(again[g, column], block, **CLOSE)
            np.testing.assert_allclose(pieces[row, column], block, **CLOSE)


@together
@each_op
def test_a_batch_is_a_loop(case: Case) -> None:
    singles = [weighted(case, salt) for salt in range(4)]
    net, wrt, loss = singles[0]
    call = Gradients.of_program(net.program, loss, wrt, [loss])
    answers = [one.ask(call) for one, _, _ in singles]
    many = Net(net.statements, {i: np.stack([one.feeds[i] for one, _, _ in singles]) for i in net.feeds})
    mapped = Batch.of_program(many.program, many.types, list(many.feeds), loss, wrt, [loss])
    for label, batched in many.ask(mapped).items():
        for one, answer in zip(batched, answers, strict=True):
            np.testing.assert_allclose(one, answer[label], 1e-11, 1e-12)
